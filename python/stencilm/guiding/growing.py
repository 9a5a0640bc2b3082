"""The first document of a growing text.

One idea: settled text is not read again. A value is settled if no further text can change how it is
read: its end has come, and the text that shows that it ends there. Each settled value leaves a
place from which the next reading continues; everything after it is read again.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from stencilm.guiding.extent import said_by
from stencilm.guiding.loose_json import (
    Elements,
    How,
    Listener,
    Members,
    Node,
    Scalar,
    documents,
    first_document,
    read_on,
)

_MAX_PLACES = 64
_FOLLOWED = re.compile(r"\s*+([}\],])")
_MEMBER = re.compile(
    r"""\s*+(?:[}\]{\[]|(?:"(?:[^"\\]|\\.)*+"|[^\s,:{}\[\]"'/#]++)\s*+:)""", re.DOTALL
)
_PRINTED_QUOTES = "“„«\u2018"


class Grown(NamedTuple):
    """A document as far as it came.

    Attributes:
        node: The document, valid until another text is read; None if there is none.
        said: How much it says, by `said_by`.
        is_first: No bracket precedes it, and no fence ends it.
    """

    node: Node | None
    said: int
    is_first: bool


class _Opened(NamedTuple):
    """An open object or array at a place, with its number of items, and of those without a name."""

    node: Elements | Members
    length: int
    unnamed: int

    @classmethod
    def of(cls, node: Elements | Members) -> _Opened:
        if isinstance(node, Elements):
            return cls(node, len(node.values), 0)
        return cls(node, len(node.items), len(node.unnamed))

    def go_back(self) -> None:
        """Take from the node what has come since."""
        if isinstance(self.node, Elements):
            del self.node.values[self.length :]
        else:
            del self.node.items[self.length :]
            del self.node.unnamed[self.unnamed :]
        self.node.is_open, self.node.goes_on = True, False


class _Place(NamedTuple):
    """A place from which a reading may continue.

    Attributes:
        at: The position.
        seen: The position up to which the text has been inspected for what precedes it.
        open_nodes: The open objects and arrays there.
        said: How much the text before it says.
    """

    at: int
    seen: int
    open_nodes: tuple[_Opened, ...]
    said: int


class Growing(Listener):
    """Reads the first documents of a sequence of texts, most of which extend the previous one."""

    def __init__(self, is_late: Callable[[], bool]) -> None:
        self._is_late = is_late
        self._text = ""
        self._begin = -1
        self._places: deque[_Place] = deque(maxlen=_MAX_PLACES)
        self._seen = 0
        self._is_settled = True  # everything read since the last place is settled
        self._last: tuple[bytes, Grown] | None = None

    def read(self, said: bytes) -> Grown:
        """The first document of a text, as `documents` finds it."""
        if self._last is None or self._last[0] != said:
            self._last = (said, self._read(said.decode("utf-8", "ignore")))
        return self._last[1]

    def _read(self, whole: str) -> Grown:
        found = first_document(whole)
        if found is None:
            return Grown(None, 0, True)
        begin, end = found
        is_first = end == len(whole) and not any(map(whole[:begin].count, "[{"))
        text = whole[:end]
        self._go_back(text, begin)
        self._is_settled = True
        here = self._places[-1] if self._places else None
        at, open_nodes, before = begin, [], 0
        if here is not None:
            at, before, self._seen = here.at, here.said, here.seen
            open_nodes = [opened.node for opened in here.open_nodes]
        node, _ = read_on(text, at, open_nodes.copy(), self, is_late=self._is_late)
        if node is None:  # nested too deeply, or too late for this one
            self._places.clear()
            other = next(documents(whole, self._is_late), None)
            return Grown(other, said_by(other), False)
        # The same root as before, which has grown.
        here = self._places[-1] if self._places else None
        before = said_by(node) if here is None else here.said + _said_since(here)
        return Grown(node, before, is_first)

    def scalar(self, text: str, span: tuple[int, int], scalar: Scalar, how: How) -> None:
        """Find out whether further text may change how a scalar was read."""
        seen = None if how.is_run else _settled_by(text, span[1], scalar, how)
        self._is_settled = self._is_settled and seen is not None
        self._seen = max(self._seen, seen or 0)

    def settled(self, at: int, open_nodes: list[Elements | Members]) -> None:
        """Record a place if everything before it is settled."""
        if not self._is_settled or not _is_linked(open_nodes):
            return
        before = self._places[-1] if self._places else None
        said = said_by(open_nodes[0]) if before is None else before.said + _said_since(before)
        opened = tuple(map(_Opened.of, open_nodes))
        self._places.append(_Place(at, max(at, self._seen), opened, said))

    def _go_back(self, text: str, begin: int) -> None:
        """Forget the places that are beyond the common beginning of two texts."""
        places, before = self._places, self._text
        if begin != self._begin:
            places.clear()
        while places and not _begins_alike(text, before, places[-1].seen):
            places.pop()
        self._text, self._begin = text, begin
        self._seen = 0
        if not places:
            return
        for opened in places[-1].open_nodes:
            opened.go_back()


def _begins_alike(text: str, before: str, length: int) -> bool:
    return len(before) >= length <= len(text) and text.startswith(before[:length])


def _settled_by(text: str, at: int, scalar: Scalar, how: How) -> int | None:
    """The position that shows that a scalar ends; None if further text may change that."""
    opening = scalar.spelling[:1]
    is_quoted = opening in ("'", '"')
    if opening in _PRINTED_QUOTES or (is_quoted and scalar.is_cut):
        return None
    if how.is_key:
        return at + 1 if is_quoted or text[at : at + 1] == ":" else None
    followed = _FOLLOWED.match(text, at)
    if followed is None or followed[1] != "," or is_quoted or how.is_element:
        return None if followed is None else followed.end()
    member = _MEMBER.match(text, followed.end())
    return None if member is None else member.end()


def _is_linked(open_nodes: list[Elements | Members]) -> bool:
    """Whether each is the last item of the one before; a value without a name belongs to none."""
    return all(_last(outer) is inner for outer, inner in pairwise(open_nodes))


def _last(node: Elements | Members) -> Node | None:
    if isinstance(node, Elements):
        return node.values[-1] if node.values else None
    return node.items[-1][1] if node.items else None


def _said_since(place: _Place) -> int:
    """How much was said after a place."""
    total = 0
    for node, length, _ in place.open_nodes:
        if isinstance(node, Elements):
            total += said_by(Elements(node.values[length:])) - 1
        else:
            total += said_by(Members(node.items[length:])) - 1
    return total
