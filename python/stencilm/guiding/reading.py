"""Where in a draft the text goes on: after talk, after what it says again, before a stop text.

One idea: a drafter is never quite told what stands there already, so each way of reading its answer
is tried on the matcher, and the one that fits furthest is taken. Nothing here changes the matcher.
"""

from __future__ import annotations

from collections.abc import Sequence

from stencilm.guiding.backtrack import is_within, place_of_known, place_of_text
from stencilm.matching.matcher import GrammarMatcher

_MAX_REPETITIONS = 16
_LONGEST_OVERLAP = 2_000
_SPACE = b" \t\r\n"
_QUOTES = b"\"'"
_PUNCTUATION = (b"{", b"}", b"[", b"]", b":", b",")
_MOST_OF_ASCII = 85  # of 95 printable characters; a text may exclude a few


def until_stop(draft: bytes, stops: Sequence[str]) -> tuple[bytes, str | None]:
    """The draft up to the first stop text in it, and which that is."""
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
    """The draft without what it repeats of the text so far, where it fits better so.

    Who `begins_again` rather than to go on repeats the text so far where the rest fits as well. Who
    does not know what was `forced` since, so many bytes, repeats just that: of `false, fal` and the
    `se` after it, `se, false` says `se` again and not all that it has in common with the end.
    """
    if begins_again and written and draft.startswith(written):
        rest = draft[len(written) :]
        if fitting(matcher, rest) == len(rest):
            return rest
    best, longest = draft, fitting(matcher, draft)
    if longest == len(draft):
        return best
    # Of those that fit in whole the last counts.
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
    """How much of a draft says what was forced; 0 where it does not say all of it.

    The quotes may be others, and so may the whitespace around punctuation.
    """
    place, at = _in_common(forced, draft)
    return at if place == len(forced) else 0


def begun_again(forced: bytes, draft: bytes) -> int:
    """How much of what was forced a draft says that ends within it; 0 where it says another."""
    place, at = _in_common(forced, draft)
    return place if draft and at == len(draft) else 0


def _in_common(forced: bytes, draft: bytes) -> tuple[int, int]:
    """To where what was forced and a draft say the same, and to where each in its own bytes."""
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
    """Whether whitespace stands at a place that is beside the punctuation of JSON."""
    before, after = text[:at].rstrip(_SPACE)[-1:], text[at:].lstrip(_SPACE)[:1]
    return text[at] in _SPACE and (before in _PUNCTUATION or after in _PUNCTUATION)


def forced_whitespace(matcher: GrammarMatcher, draft: bytes) -> bytes:
    """Whitespace that must come and that a dead draft left out; none where that does not help."""
    whitespace = matcher.find_jump_forward_string().encode()
    if not whitespace or whitespace.strip():
        return b""
    after = fitting(matcher, whitespace + draft)
    return whitespace if after - len(whitespace) > fitting(matcher, draft) else b""


def start_of_text(matcher: GrammarMatcher, written: bytes, draft: bytes) -> int:
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


def fitting(matcher: GrammarMatcher, draft: bytes) -> int:
    """How many bytes of a draft fit."""
    return matcher.longest_valid_prefix(draft).valid_bytes


def takes_any_character(matcher: GrammarMatcher) -> bool:
    """Whether the text may go on with about any character, as within a string."""
    printable = range(0x20, 0x7F)
    return sum(map(matcher.is_allowed, printable)) >= _MOST_OF_ASCII


def _behind_repetition(matcher: GrammarMatcher, written: bytes, draft: bytes) -> int:
    """Where a draft goes on after the text so far, somewhere within it; 0 for nowhere."""
    best, longest = 0, 0
    at = draft.find(written) if written else -1
    for _ in range(_MAX_REPETITIONS):
        if at < 0:
            break
        # The `1` of `-12` says nothing again.
        is_other = is_within(draft, at)
        valid = 0 if is_other else fitting(matcher, draft[at + len(written) :])
        if valid > longest:
            best, longest = at + len(written), valid
        at = draft.find(written, at + 1)
    return best


def _overlap(text: bytes, draft: bytes) -> int:
    """The length of the longest end of `text` that `draft` begins with."""
    for length in range(min(len(text), len(draft)), 0, -1):
        if text.endswith(draft[:length]):
            return length
    return 0
