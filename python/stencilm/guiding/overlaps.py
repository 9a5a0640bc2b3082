"""Where a draft that was to go on begins with what was said already.

One idea: the end of what was said and the beginning of a draft may be alike by accident, so what
goes on well as it is stays, and of what does not the least part is left out that helps. Of two
elements alike none is lost then; what might be one too many is told as doubtful.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from stencilm.guiding.extent import last_of
from stencilm.guiding.loose_json import Node, Scalar, constant_in, number_in

_LEAST = 3
_LEAST_SURE = 8
"""Bytes in common that are no accident."""
_MAX_PLACES = 64
_HEAD = 16
_OPENING = re.compile(rb"[\[{]")
_WORD = re.compile(rb"\w+")
_WORD_PART = re.compile(rb"[-+.0-9A-Za-z]*")
_TO_CLOSING_QUOTE = {
    '"': re.compile(rb'(?:[^\\"]|\\.)*"', re.DOTALL),
    "'": re.compile(rb"(?:[^\\']|\\.)*'", re.DOTALL),
}
_BEFORE_VALUE = (b"[", b"{", b":", b",")
_AFTER_VALUE = (b"]", b"}", b":", b",")


class Overlap(NamedTuple):
    """How much of the beginning of a draft was said already.

    Attributes:
        length: So many bytes are said again.
        doubtful: So many of those after them are said again, or once more.
    """

    length: int = 0
    doubtful: int = 0


def overlap(
    said: bytes, draft: bytes, added: bytes, document: Callable[[], Node | None]
) -> Overlap:
    """How much of the beginning of a draft was said already.

    Args:
        said: What was said, up to the end of the last draft.
        draft: The draft.
        added: What stands after the last draft, and that its writer may know.
        document: Reads what was said.
    """
    if whole := _all_again(said, draft):
        return Overlap(whole)
    found = [length for length in overlaps(said, draft) if says_something(draft[:length])]
    known = next(overlaps(said + added, draft), 0)
    is_doubtful = _is_apart(said + added, known) and says_something(draft[:known])
    if not found and not is_doubtful:
        return Overlap()
    last, is_name = last_of(document())
    is_within = isinstance(last, Scalar) and last.is_cut
    if found and is_within and _is_sure(said, draft, found[0]):
        return Overlap(found[0])
    if any(_goes_on(said, last, seam, is_name=is_name) for seam in (draft, added + draft)):
        return Overlap(0, known if is_doubtful else 0)
    fitting = [
        length
        for length in found
        if length >= _LEAST and _goes_on(said, last, draft[length:], is_name=is_name)
    ]
    return Overlap(fitting[-1], fitting[0] - fitting[-1]) if fitting else Overlap()


def overlaps(said: bytes, draft: bytes) -> Iterator[int]:
    """The lengths of the ends of what was said that a draft begins with, the longest first."""
    head = draft[:_HEAD]
    at = said.find(head)
    for _ in range(_MAX_PLACES):
        if at < 0:
            break
        if draft.startswith(said[at:]):
            yield len(said) - at
        at = said.find(head, at + 1)
    for length in range(min(len(said), len(head) - 1), 0, -1):
        if said.endswith(draft[:length]):
            yield length


def says_something(text: bytes) -> bool:
    """Whether a text of JSON holds more than punctuation."""
    return any(map(str.isalnum, text.decode("utf-8", "ignore")))


def _is_sure(said: bytes, draft: bytes, length: int) -> bool:
    """Whether so much is said again by no accident, and in no word or number that says it twice.

    It begins with a word, and no word comes twice in it, nor all of it twice in what was said.
    """
    again = draft[:length]
    words = _WORD.findall(again)
    is_listed = len(words) > 1 and len(words) == len(set(words))
    is_at_word = _is_apart(said, length) and _WORD.match(again.lstrip(b"\"'")) is not None
    return length >= _LEAST_SURE and is_listed and is_at_word and said.count(again) == 1


def _is_apart(said: bytes, length: int) -> bool:
    """Whether the end of so many bytes begins within no word or escape."""
    before = said[: len(said) - length][-1:]
    return not (before.isalnum() or before >= b"\x80" or before == b"\\")


def _goes_on(said: bytes, last: Node | None, draft: bytes, *, is_name: bool) -> bool:
    """Whether a draft goes on where a text was cut, as far as the place itself tells."""
    if not isinstance(last, Scalar) or not (last.is_cut or is_name):
        before, after = said.rstrip()[-1:], draft.lstrip()[:1]
        return before in (b"", *_BEFORE_VALUE) or after in (b"", *_AFTER_VALUE)
    if not last.is_cut:
        return draft.lstrip()[:1] in (b"", b":")
    is_string = last.kind == "string"
    to_end = _TO_CLOSING_QUOTE[last.spelling[0]] if is_string else _WORD_PART
    is_within_escape = (len(last.spelling) - len(last.spelling.rstrip("\\"))) % 2
    found = to_end.match(draft, is_within_escape if is_string else 0)
    if found is None:
        return True
    after = draft[found.end() :].lstrip()[:1]
    if after and after not in (b":" if is_name else b",}]"):
        return False
    word = last.spelling + draft[: found.end()].decode("utf-8", "ignore")
    number = number_in(word)
    return is_string or constant_in(word) is not None or number in (word, f"{word}.0")


def _all_again(said: bytes, draft: bytes) -> int:
    """Where a draft goes on that says all again word by word, after talk; 0 where it does not."""
    begin = _OPENING.search(said)
    again = _OPENING.search(draft)
    if begin is None or again is None or len(said) - begin.start() < _LEAST_SURE:
        return 0
    all_said = said[begin.start() :]
    at = again.start()
    return at + len(all_said) if draft.startswith(all_said, at) else 0
