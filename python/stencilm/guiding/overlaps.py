"""How much of the start of a draft repeats what was said before.

One idea: the end of the transcript and the start of a draft may agree by accident. So a draft that
fits without changes is left alone, and otherwise the shortest overlap that helps is removed. Then
two equal elements are both kept; a part that may be one too many is reported as doubtful.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

_LEAST = 2
_LEAST_SURE = 8
"""The least bytes in common that are no accident."""
_MAX_PLACES = 64
_HEAD = 16
_OPENING = re.compile(rb"[\[{]")
_WORD = re.compile(rb"\w+")
_MAX_TRIED = 8
"""How many of the shortest overlaps are tried, besides the longest."""


class Overlap(NamedTuple):
    """How much of the start of a draft repeats what was said before.

    Attributes:
        length: The number of bytes that are repeated.
        doubtful: The number of bytes after these that may be repeated, or said a second time.
    """

    length: int = 0
    doubtful: int = 0


def overlap(said: bytes, draft: bytes, added: bytes, fits: Callable[[bytes], bool]) -> Overlap:
    """Find how much of the start of a draft repeats what was said before.

    Args:
        said: The transcript up to the end of the last draft.
        draft: The draft.
        added: What the grammar added after the last draft; the writer may know it.
        fits: Whether a transcript can be read without loss.
    """
    if whole := _all_again(said, draft):
        return Overlap(whole)
    found = [length for length in overlaps(said, draft) if says_something(draft[:length])]
    known = next(overlaps(said + added, draft), 0)
    is_doubtful = _is_apart(said + added, known) and says_something(draft[:known])
    if not is_doubtful and all(length < _LEAST for length in found):
        return Overlap()
    if found and _is_sure(said, draft, found[0]):
        return Overlap(found[0])
    if any(fits(seam + draft) for seam in dict.fromkeys((said, said + added))):
        return Overlap(0, known if is_doubtful else 0)
    tried = dict.fromkeys((*found[:1], *found[-_MAX_TRIED:]))
    fitting = [length for length in tried if length >= _LEAST and fits(said + draft[length:])]
    return Overlap(fitting[-1], fitting[0] - fitting[-1]) if fitting else Overlap()


def overlaps(said: bytes, draft: bytes) -> Iterator[int]:
    """The lengths of the suffixes of `said` that are prefixes of `draft`, longest first."""
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
    """Whether a JSON text contains more than punctuation."""
    return any(map(str.isalnum, text.decode("utf-8", "ignore")))


def _is_sure(said: bytes, draft: bytes, length: int) -> bool:
    """Whether an overlap is a repetition, neither an accident nor a text that says it twice.

    It begins at the start of a word, and the transcript ends within one, so the two words would be
    joined; none of its words occurs twice, and it occurs only once in the transcript.
    """
    again = draft[:length]
    words = _WORD.findall(again)
    is_listed = len(words) > 1 and len(words) == len(set(words))
    is_glued = again[:1].isalnum() and said[-1:].isalnum() and _is_apart(said, length)
    return length >= _LEAST_SURE and is_listed and is_glued and said.count(again) == 1


def _is_apart(said: bytes, length: int) -> bool:
    """Whether the last `length` bytes do not begin within a word or an escape."""
    before = said[: len(said) - length][-1:]
    return not (before.isalnum() or before >= b"\x80" or before == b"\\")


def _all_again(said: bytes, draft: bytes) -> int:
    """Where a draft continues that first repeats everything word by word, after talk; else 0."""
    begin = _OPENING.search(said)
    again = _OPENING.search(draft)
    if begin is None or again is None or len(said) - begin.start() < _LEAST_SURE:
        return 0
    all_said = said[begin.start() :]
    at = again.start()
    return at + len(all_said) if draft.startswith(all_said, at) else 0
