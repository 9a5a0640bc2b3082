"""Where to cut a draft that left the grammar, and what to put there.

One idea: a grammar refuses a byte, but a model understands words. `SELEC * FROM` fails after
`SELEC`, where only `T` may follow; it is cut before the word, where keywords are the candidates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from unicodedata import category

from stencilm.characters import whole_length
from stencilm.errors import StencilError
from stencilm.grammars.grammar import Grammar
from stencilm.guiding.text_matcher import TextMatcher
from stencilm.matching.candidates import Candidate, Literal
from stencilm.matching.matcher import GrammarMatcher
from stencilm.matching.texts import byte_matcher

MAX_CANDIDATES = 16
_MAX_TALK = 2_000
_MAX_READ = 8_000_000
"""The most fitting bytes over all starts: most of a long draft may fit after each."""
_MAX_READ_NAME = 1_000
_MAX_NAMES = 256
_LEAST_TEXT = 8
_MAX_WAYS = 8
_NOTHING_MORE = re.compile(rb"\.0+(?![0-9A-Za-z_])")
"""What may follow an integer without changing its value."""
_JOINT = re.compile(rb"[-'.,:/^ ]|\.{2,3}")
"""What may join the parts of one word or number."""
_MORE_OF_NUMBER = re.compile(rb"(?:[.,:/^]|\.{2,3})[0-9]| [0-9]{3}(?![0-9A-Za-z_])| [0-9]+/[0-9]")
"""What may follow a digit in a fraction, time, date, power, range, or groups of digits."""
_BEFORE_EXPONENT = re.compile(rb"[0-9.][eE][-+]")
_ONLY_CLOSES = re.compile(rb"[]}\"',\s]+")
_DATE = re.compile(rb"[0-9]+(?:-[0-9]+){2,}")
_AROUND = " \t\r\n\"'"
_MARKS = ".,;:!?\u2026\u3002\uff01\uff0c\uff1a\uff1b\uff1f"
"""What ends a sentence or a part of it."""
_MARK = re.compile(rf"\s*[^\w\s]*[{_MARKS}][^\w\s]*(?:\s|$)")
_BLANKS_AND_MARKS = f" \t\r\n{_MARKS}"
_IN_WORDS = "\u00ad\u200c\u200d"
"""What stands in words and is not seen."""
_JOINING = "\u2010\u2011\u2019"
"""Hyphens and the apostrophe of printed texts, which join words where both sides are letters."""
_MINUSES = "\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d"


def cut_place(matcher: GrammarMatcher, draft: bytes, valid: int) -> tuple[int, list[Candidate]]:
    """The length of the draft to keep, and the candidates after it.

    `matcher` is at the beginning of the draft and is consumed; `valid` bytes of the draft fit. The
    draft is cut at the end of what fits or, if only the rest of known words could follow, at the
    beginning of its last word.
    """
    valid = whole_length(draft[:valid])
    start = _word_start(draft, valid)
    at_start = matcher.fork()
    matcher.accept_string(draft[:valid])
    candidates = readable(matcher.candidates(MAX_CANDIDATES))
    is_whole = matcher.is_completed() and cut_word(draft, valid) is None
    if start < valid and not is_whole and candidates and all(map(_is_rest_of_word, candidates)):
        at_start.accept_string(draft[:start])
        earlier = readable(at_start.candidates(MAX_CANDIDATES))
        if earlier:
            return start, earlier
    return valid, candidates


def readable(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates as a model would read them.

    A pattern with only a few possible first words is replaced by these (`(?:LIKE|IN)[ ]+` by `LIKE`
    and `IN`), and whitespace is only listed if there is nothing else.
    """
    found: dict[Candidate, None] = {}
    for candidate in candidates:
        words = None if isinstance(candidate, Literal) else _first_words(candidate.regex)
        for word in [candidate] if words is None else map(Literal, words):
            found[word] = None
    shown = [candidate for candidate in found if not _is_blank(candidate)]
    return (shown or list(found))[:MAX_CANDIDATES]


def shown_candidate(candidate: Candidate) -> str:
    """A candidate as shown in traces and logs."""
    return candidate.text if isinstance(candidate, Literal) else f"/{candidate.regex}/"


def shown_start(text: bytes, limit: int = 40) -> str:
    """The beginning of a text as shown in complaints."""
    shown = text.decode("utf-8", "replace")
    return shown if len(shown) <= limit else re.sub(r"\s+$", "", shown[:limit]) + "…"


def nearest(candidates: Sequence[Candidate], rejected: bytes) -> str | None:
    """The text among the candidates that shares the longest prefix with what was rejected.

    Whitespace, quotes and case are ignored; None if not even one letter is shared.
    """
    wanted = _bare(rejected.decode("utf-8", "replace"))
    best, longest = None, 0
    for candidate in candidates:
        if not isinstance(candidate, Literal):
            continue
        shared = 0
        for ours, theirs in zip(_bare(candidate.text), wanted, strict=False):
            if ours != theirs:
                break
            shared += 1
        if shared > longest:
            best, longest = candidate.text, shared
    return best


def is_respelled(text: bytes, rejected: bytes) -> bool:
    """Whether a text is the beginning of what was rejected but for quotes and case, in words."""
    return behind_respelled(text, rejected) is not None


def behind_respelled(text: bytes, rejected: bytes) -> bytes | None:
    """What follows a text in what was rejected, which begins with it but for quotes and case.

    None where it does not, or goes on with the last word of the text.
    """
    ours = _bare(text.decode("utf-8", "replace"))
    given = rejected.decode("utf-8", "replace").strip(_AROUND)
    if not ours or not given.casefold().startswith(ours):
        return None
    # Some letters are longer in small ones.
    length = next((n for n in range(len(ours), 0, -1) if given[:n].casefold() == ours), len(ours))
    behind = given[length:]
    if ours[-1].isalnum() and (behind[:1].isalnum() or behind[:1] == "_"):
        return None
    draft, end = given.encode(), len(given[:length].encode())
    goes_on = behind and _goes_on(draft, end) and not _NOTHING_MORE.match(draft, end)
    return None if goes_on else behind.encode()


def is_aside(rest: bytes) -> bool:
    """Whether what follows a whole text says nothing, or stands behind a mark of a sentence."""
    said = rest.decode("utf-8", "replace")
    return not any(map(str.isalnum, said)) or _MARK.match(said) is not None


def place_of_text(matcher: TextMatcher, draft: bytes) -> int:
    """Where in a draft the text begins after talk; 0 if no position is better than the first.

    A position counts if it is the beginning of a word, and what fits from there is a complete text
    that ends with a word, or is too long for an accident. If talk contains several texts of one
    word, as in `I can neither approve nor reject this`, none of them is the answer.
    """
    best, longest = 0, end_of_text(matcher, draft)
    words = {draft[:longest]} if _is_one_word(matcher, draft, 0, longest) else set()
    end_of_word = longest if words else 0
    unread = _MAX_READ
    for start in range(1, min(len(draft), _MAX_TALK)):
        is_longest = len(draft) - start <= longest and draft[best : best + longest] not in words
        if is_longest or unread < 0:
            break
        if is_within(draft, start):
            continue
        if draft[start] in b" \t\r\n" or draft[start] & 0xC0 == 0x80:
            continue
        valid = end_of_text(matcher, draft[start:])
        unread -= valid
        if start >= end_of_word and _is_one_word(matcher, draft, start, start + valid):
            words.add(draft[start : start + valid])
            end_of_word = start + valid
        if valid <= longest:
            continue
        end = start + valid
        if _ONLY_CLOSES.fullmatch(draft, start, end):  # opened in the talk that is skipped
            continue
        is_whole_word = cut_word(draft, end) is None
        if valid >= _LEAST_TEXT or (is_whole_word and _is_text(matcher, draft[start:end])):
            best, longest = start, valid
    is_named = draft[best : best + longest] in words
    return 0 if is_named and len(words) > 1 else best


def end_of_text(matcher: TextMatcher, draft: bytes) -> int:
    """How many bytes of a draft fit, without blanks and marks of a sentence behind a whole text.

    The point of `It is 1.` is that of the sentence, though `1.5` were a text, too.
    """
    fits = draft[: matcher.longest_valid_prefix(draft).valid_bytes]
    text = fits.decode("utf-8", "ignore")
    said = text.rstrip(_BLANKS_AND_MARKS)
    if said == text:
        return len(fits)
    here = matcher.fork()
    here.accept_string(said)
    at = end = len(said.encode())
    is_text = here.is_completed()
    for character in text[len(said) :]:
        here.accept_string(character)
        at += len(character.encode())
        if here.is_completed():
            end, is_text = at, True
    return end if is_text else len(fits)


def place_of_known(
    matcher: TextMatcher, draft: bytes, start: int, end: int, before: bytes = b""
) -> int:
    """Correct the start of a text, of which `draft[start:end]` fits, by the known texts.

    It may be a part of a longer text, in any case: `Not spam` means `not spam`, not `spam`. If talk
    contains several texts, as in `It is in progress or not started`, the result is 0: none of them
    is the answer, or the one that the talk begins with, as in `Positive, not negative`. Capitals in
    the talk are ignored, but not those of a text: `no doubt` does not contain `NO`.

    `before` is the beginning of all texts, which is already written; the draft has it before
    `start`.
    """
    names = [
        before.decode("utf-8", "ignore") + candidate.text
        for candidate in (matcher.candidates(_MAX_NAMES) if start < end else ())
        if isinstance(candidate, Literal) and _is_text(matcher, candidate.text.encode())
    ]
    first = start - len(before)
    said = draft[first:end].strip().decode("utf-8", "ignore")
    if said not in names:
        said = said.rstrip(_BLANKS_AND_MARKS)
    is_known = said in names
    for name in names:
        if len(name.encode()) > end - first:
            for begin, behind in _stretches(draft, name, re.IGNORECASE):
                if begin < first and behind >= end:
                    return begin + len(before)
    for name in names if is_known else ():
        for begin, behind in _stretches(draft, name, re.IGNORECASE) if name != said else ():
            written = draft[begin:behind].decode("utf-8", "ignore")
            is_named = all(
                ours == theirs or ours.islower()
                for ours, theirs in zip(name, written, strict=False)
            )
            if is_named and (behind <= first or begin >= end):
                return 0
    return start


def _stretches(draft: bytes, name: str, flags: int = 0) -> Iterator[tuple[int, int]]:
    """The occurrences of a text as separate words in talk, in bytes."""
    talk = draft[: _MAX_TALK + _MAX_READ_NAME].decode("utf-8", "surrogateescape")
    for found in re.finditer(re.escape(name), talk, flags) if name else ():
        begin = len(talk[: found.start()].encode("utf-8", "surrogateescape"))
        end = begin + len(found[0].encode("utf-8", "surrogateescape"))
        if not is_within(draft, begin) and cut_word(draft, end) is None:
            yield begin, end


def _is_one_word(matcher: TextMatcher, draft: bytes, start: int, end: int) -> bool:
    """Whether a part of talk is a separate word, number, time or address, and a complete text."""
    if start == end or any(byte in b" \t\r\n" for byte in draft[start:end]):
        return False
    if not (_is_word_at(draft, start) or draft[start] in b"+-") or not _is_word_at(draft, end - 1):
        return False
    return cut_word(draft, end) is None and _is_text(matcher, draft[start:end])


def _first_words(regex: str) -> list[str] | None:
    """The possible first words of a pattern's texts; None if there are many."""
    try:
        matcher = byte_matcher(Grammar.from_regex(regex))
        return _words(matcher)
    except StencilError:
        return None


def _words(matcher: GrammarMatcher) -> list[str] | None:
    """Each first word, or its part up to where anything may follow; None if that is empty."""
    words: list[str] = []
    open_starts = [b""]
    while open_starts:
        if len(words) + len(open_starts) > MAX_CANDIDATES:
            return None
        start = open_starts.pop()
        here = matcher.fork()
        here.accept_string(start)
        start += (forced := here.find_jump_forward_string().encode())
        here.accept_string(forced)
        ways = [byte for byte in range(256) if here.is_allowed(byte)]
        in_word = len(ways) <= _MAX_WAYS and all(map(_is_word, ways)) and not here.is_completed()
        if in_word and ways:
            open_starts += [start + bytes([byte]) for byte in reversed(ways)]
        elif not start.strip():
            return None
        else:
            words.append(start.decode("utf-8", "ignore").rstrip())
    return words


def _is_blank(candidate: Candidate) -> bool:
    if isinstance(candidate, Literal):
        return not candidate.text.strip()
    matcher = byte_matcher(Grammar.from_regex(candidate.regex))
    return all(chr(byte).isspace() for byte in range(256) if matcher.is_allowed(byte))


def _bare(text: str) -> str:
    return text.strip(_AROUND).casefold()


def _is_text(matcher: TextMatcher, text: bytes) -> bool:
    return matcher.longest_valid_prefix(text).status == "complete"


def _is_rest_of_word(candidate: Candidate) -> bool:
    return (
        isinstance(candidate, Literal)
        and bool(candidate.text)
        and _is_word_at(candidate.text.encode(), 0)
    )


def _word_start(draft: bytes, end: int) -> int:
    start = end
    while start > 0 and _is_word_at(draft, start - 1):
        start -= 1
    return start


def cut_word(draft: bytes, end: int) -> int | None:
    """The start of the word or number that continues after `end`; None if one ends there.

    `12` is not what `123`, `12.5`, `12th`, `12 000` or `12/5` means, nor `can` what `can't` means;
    but `12` is what `12.0` means.
    """
    if not 0 < end < len(draft) or not _is_word_at(draft, end - 1):
        return None
    if _NOTHING_MORE.match(draft, end):
        return None
    if not _goes_on(draft, end):
        return None
    start = _word_start(draft, end)
    while (begin := _joint_before(draft, start)) is not None:  # the parts of a date are one word
        start = _word_start(draft, begin)
    return start


def is_within(draft: bytes, place: int) -> bool:
    """Whether a position is within a word or a number, including a sign that it needs."""
    if not 0 < place < len(draft):
        return False
    is_after_word = _is_word_at(draft, place - 1)
    if is_after_word and (_is_word_at(draft, place) or draft[place] in b"+-"):
        return True
    is_signed = draft[place - 1] in b"-" and not (place > 1 and _is_word_at(draft, place - 2))
    # A point without anything before it, as in `.5`; after a word it ends a sentence.
    is_fraction = draft[place - 1] in b"." and (place == 1 or draft[place - 2] in b" \t\r\n-+")
    is_exponent = _BEFORE_EXPONENT.fullmatch(draft, max(0, place - 3), place) is not None
    is_digit = draft[place : place + 1].isdigit()
    return (is_digit and (is_signed or is_fraction or is_exponent)) or _is_joined(draft, place)


def _is_joined(draft: bytes, place: int) -> bool:
    """Whether the text at a position is the next part of a word or number."""
    return _joint_before(draft, place) is not None


def _joint_before(draft: bytes, place: int) -> int | None:
    """Where the mark begins that joins the text at a position to a part before it; None if none."""
    for begin in range(place - 1, max(0, place - 4), -1):
        if _is_word_at(draft, begin - 1):
            is_joint = bool(_JOINT.fullmatch(draft, begin, place)) and _goes_on(draft, begin)
            return begin if is_joint else None
    return None


def _goes_on(draft: bytes, place: int) -> bool:
    """Whether the word or number before a position continues there, possibly after a mark."""
    if _is_word_at(draft, place):
        return True
    if draft[place] in b"-'" and place + 1 < len(draft) and _is_word_at(draft, place + 1):
        # A hyphen between two numbers makes a range, between three a date.
        is_range = draft[place] in b"-" and draft[place + 1 : place + 2].isdigit()
        return not is_range or _is_within_date(draft, place)
    is_number = draft[place - 1 : place].isdigit()
    return is_number and _MORE_OF_NUMBER.match(draft, place) is not None


def _is_within_date(draft: bytes, place: int) -> bool:
    start = place
    while start > 0 and draft[start - 1] in b"0123456789-":
        start -= 1
    date = _DATE.match(draft, start)
    return date is not None and date.end() > place


def _is_word(byte: int) -> bool:
    return byte >= 0x80 or byte == 0x5F or chr(byte).isalnum()


def _is_word_at(draft: bytes, place: int) -> bool:
    """Whether the character that contains a byte is part of a word or a number."""
    if draft[place] < 0x80:
        return _is_word(draft[place])
    begin = place
    while begin > 0 and draft[begin] & 0xC0 == 0x80:
        begin -= 1
    end = begin + 1
    while end < len(draft) and draft[end] & 0xC0 == 0x80:
        end += 1
    character = draft[begin:end].decode("utf-8", "ignore")
    if len(character) != 1:  # it is incomplete
        return True
    if character.isalnum() or character in _IN_WORDS or category(character).startswith("M"):
        return True
    before, after = draft[max(0, begin - 1) : begin], draft[end : end + 1]
    if after.isdigit() and (before.isdigit() or character in _MINUSES):
        return True
    return character in _JOINING and _is_letter(before) and _is_letter(after)


def _is_letter(byte: bytes) -> bool:
    return byte.isalpha() or byte >= b"\x80"
