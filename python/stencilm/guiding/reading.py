"""Where in a draft the text continues: after talk, after repetitions, before a stop text.

One idea: a drafter never knows exactly what is already there. So each way of reading its answer is
tried on the matcher, and the one that fits furthest is used. Nothing here changes the matcher.
"""

from __future__ import annotations

from collections.abc import Sequence

from stencilm.characters import whole_length
from stencilm.guiding.backtrack import is_within, place_of_known, place_of_text
from stencilm.guiding.text_matcher import TextMatcher
from stencilm.matching.matcher import GrammarMatcher

_MAX_REPETITIONS = 16
_LONGEST_OVERLAP = 2_000
_SPACE = b" \t\r\n"
_QUOTES = b"\"'"
_PUNCTUATION = (b"{", b"}", b"[", b"]", b":", b",")
_MOST_OF_ASCII = 85  # of 95 printable characters; a text may exclude a few


def until_stop(draft: bytes, stops: Sequence[str]) -> tuple[bytes, str | None]:
    """The draft up to the first stop text in it, and that stop text."""
    found = [(draft.find(stop.encode()), stop) for stop in stops]
    places = sorted(place for place in found if place[0] >= 0)
    return (draft[: places[0][0]], places[0][1]) if places else (draft, None)


def without_repetition(
    matcher: GrammarMatcher,
    written: bytes,
    draft: bytes,
    *,
    begins_again: bool = False,
    forced: int = 0,
) -> bytes:
    """The draft without what it repeats of the text so far, if it fits better that way.

    With `begins_again`, a drafter starts over rather than continuing; the repeated text so far is
    removed if all of the rest fits. A drafter that does not know the last `forced` bytes repeats
    exactly these: after `false, fal` and the forced `se`, a draft `se, false` repeats `se`, and not
    everything that it has in common with the end.
    """
    if begins_again and written and draft.startswith(written):
        rest = draft[len(written) :]
        if fitting(matcher, rest) == len(rest):
            return rest
    best, longest = draft, fitting(matcher, draft)
    if longest == len(draft):
        return best
    # If several fit entirely, the last one is used.
    said = said_again(written[len(written) - forced :], draft)
    for overlap in (len(written), _overlap(written[-_LONGEST_OVERLAP:], draft), said):
        if overlap == 0 or not (overlap == said or draft.startswith(written[-overlap:])):
            continue
        rest = draft[overlap:]
        valid = fitting(matcher, rest)
        if valid > longest or valid == len(rest):
            best, longest = rest, valid
    return best


def said_again(forced: bytes, draft: bytes) -> int:
    """How much of a draft repeats what was forced; 0 if it does not repeat all of it.

    Quotes may differ, and so may whitespace around punctuation.
    """
    place, at = _in_common(forced, draft)
    return at if place == len(forced) else 0


def begun_again(forced: bytes, draft: bytes) -> int:
    """How much of the forced text a draft says that ends within it; 0 if the draft differs."""
    place, at = _in_common(forced, draft)
    return place if draft and at == len(draft) else 0


def _in_common(forced: bytes, draft: bytes) -> tuple[int, int]:
    """The lengths of the common beginning of the forced text and a draft, in the bytes of each."""
    at = 0
    for place, byte in enumerate(forced):
        while at < len(draft) and draft[at] != byte and _is_apart(draft, at):
            at += 1
        if at < len(draft) and (draft[at] == byte or (draft[at] in _QUOTES and byte in _QUOTES)):
            at += 1
        elif at == len(draft) or not _is_apart(forced, place):
            return place, at
    return len(forced), at


def _is_apart(text: bytes, at: int) -> bool:
    """Whether there is whitespace at a position, next to the punctuation of JSON."""
    before, after = text[:at].rstrip(_SPACE)[-1:], text[at:].lstrip(_SPACE)[:1]
    return text[at] in _SPACE and (before in _PUNCTUATION or after in _PUNCTUATION)


def forced_whitespace(matcher: GrammarMatcher, draft: bytes) -> bytes:
    """Forced whitespace that a draft left out and does not fit without.

    Empty if it does not help.
    """
    whitespace = matcher.find_jump_forward_string().encode()
    if not whitespace or whitespace.strip():
        return b""
    after = fitting(matcher, whitespace + draft)
    return whitespace if after - len(whitespace) > fitting(matcher, draft) else b""


def start_of_text(matcher: TextMatcher, written: bytes, draft: bytes) -> int:
    """Where the text goes on in a draft that begins with talk, as in `Sure! Here it is: {`.

    The draft may also say again what is there, as in `Sure: SELECT * FROM t` where `SELECT` was
    forced. Where free text may come, talk is text.
    """
    if matcher.is_completed() and takes_any_character(matcher):
        return 0
    start = place_of_text(matcher, draft)
    again = _behind_repetition(matcher, written, draft)
    fits, fits_again = (fitting(matcher, draft[place:]) for place in (start, again))
    if fits_again > fits:
        return place_of_known(matcher, draft, again, again + fits_again, written)
    return place_of_known(matcher, draft, start, start + fits) if start else 0


def fitting(matcher: TextMatcher, draft: bytes) -> int:
    """How many bytes of a draft fit, in whole characters."""
    return whole_length(draft[: matcher.longest_valid_prefix(draft).valid_bytes])


def takes_any_character(matcher: TextMatcher) -> bool:
    """Whether the text may go on with about any character, as within a string."""
    printable = range(0x20, 0x7F)
    return sum(map(matcher.is_allowed, printable)) >= _MOST_OF_ASCII


def _behind_repetition(matcher: TextMatcher, written: bytes, draft: bytes) -> int:
    """Where a draft continues after it repeats the text so far somewhere; 0 if it does not."""
    best, longest = 0, 0
    at = draft.find(written) if written else -1
    for _ in range(_MAX_REPETITIONS):
        if at < 0:
            break
        # The `1` within `-12` is not a repetition.
        is_other = is_within(draft, at)
        valid = 0 if is_other else fitting(matcher, draft[at + len(written) :])
        if valid > longest:
            best, longest = at + len(written), valid
        at = draft.find(written, at + 1)
    return best


def _overlap(text: bytes, draft: bytes) -> int:
    """The length of the longest suffix of `text` that is a prefix of `draft`."""
    for length in range(min(len(text), len(draft)), 0, -1):
        if text.endswith(draft[:length]):
            return length
    return 0
