"""One matcher that tries continuations at many positions of a text.

One idea: texts that are tried one after another share most of their beginning. So the matcher rolls
back to the common part, and no forks that each keep the whole text are needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from stencilm.guiding.loose_json import Node
from stencilm.matching.matcher import GrammarMatcher

SPACE = b" \t\r\n"


@dataclass(slots=True, eq=False)
class Piece:
    """The last piece of a text, linked to those before it.

    Attributes:
        before: The piece before; None for the beginning.
        text: The piece.
        value: The value of the draft that it writes, or begins.
        number: The number of pieces before it.
        whitespace: The grammar's whitespace after it, if known.
        comma: The comma after it, if known.
        fits: For members of the object after it, whether they may come next, if known.
    """

    before: Piece | None
    text: bytes
    number: int
    value: Node | None = None
    whitespace: bytes | None = None
    comma: Piece | None = None
    fits: dict[int, bool] = field(default_factory=dict)


class State(NamedTuple):
    """A position in the text: its length, and the pieces that lead to it."""

    length: int
    pieces: Piece
    kept: int
    comes_behind: bytes  # the last token


class Cursor:
    """One matcher that moves between positions, rolling back to their common beginning.

    A fork would keep a whole text; the way from one try to the next is short.
    """

    def __init__(self, start: GrammarMatcher) -> None:
        self._matcher = start.fork()
        self.first = Piece(None, b"", 0)
        self._path = [self.first]
        self.work = 0

    def at(self, piece: Piece) -> GrammarMatcher:
        """The matcher after a piece, until the next call."""
        path = self._path
        missing: list[Piece] = []
        here = piece
        while here.number >= len(path) or path[here.number] is not here:
            missing.append(here)
            assert here.before is not None, "all texts share their beginning"
            here = here.before
        self._back(len(path) - 1 - here.number)
        for one in reversed(missing):
            self.work += len(one.text)
            if not self._matcher.accept_string(one.text):  # pragma: no cover
                raise RuntimeError("a text that was accepted is not accepted again")
            path.append(one)
        return self._matcher

    def tried(self, piece: Piece, text: bytes, *, is_whole: bool) -> Piece | None:
        """The piece for a text after another piece; None if it does not fit.

        Args:
            piece: The piece before.
            text: The text.
            is_whole: It is a number, and must not require more digits.
        """
        matcher = self.at(piece)
        self.work += len(text)
        if not matcher.accept_string(text):
            return None
        behind = Piece(piece, text, piece.number + 1)
        self._path.append(behind)
        return None if is_whole and must_go_on(matcher) else behind

    def whitespace(self, piece: Piece) -> bytes:
        """The grammar's whitespace after a piece."""
        if piece.whitespace is None:
            forced = self.at(piece).find_jump_forward_string().encode()
            piece.whitespace = forced[: len(forced) - len(forced.lstrip(SPACE))]
        return piece.whitespace

    def _back(self, count: int) -> None:
        if count:
            self._matcher.rollback(count)
            del self._path[-count:]


def must_go_on(matcher: GrammarMatcher) -> bool:
    """Whether the number before a position is only the beginning of the permitted ones."""
    return not matcher.is_completed() and not any(map(matcher.is_allowed, b",]} \t\r\n"))


def joined(state: State) -> bytes:
    """The whole text up to a position."""
    pieces: list[bytes] = []
    here: Piece | None = state.pieces
    while here is not None:
        pieces.append(here.text)
        here = here.before
    return b"".join(reversed(pieces))


def values_of(state: State) -> Iterator[int]:
    """The values of a draft that are in the text up to a position, by identity."""
    here: Piece | None = state.pieces
    while here is not None:
        if here.value is not None:
            yield id(here.value)
        here = here.before
