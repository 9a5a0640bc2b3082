"""Texts with holes: pieces of text, and `HOLE` wherever text is still missing.

One idea: the texts that fill a hole are a grammar like any other, identified by the grammar and the
pieces.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, final

from stencilm import _core
from stencilm.grammars.sources import Source
from stencilm.grammars.texts import checked_text
from stencilm.shown import shown_value

if TYPE_CHECKING:
    from stencilm.limits import Limits


@final
class Hole:
    """Any text, perhaps none: what `HOLE` is, of which there is one.

    Examples:
        >>> from stencilm import HOLE, Grammar
        >>> Grammar.from_regex("(ab)*c").is_completable(["a", HOLE, "bc"])
        True
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """The name under which it is imported."""
        return "HOLE"

    def __reduce__(self) -> str:
        """Itself, wherever it is unpickled."""
        return "HOLE"


HOLE: Final = Hole()
"""What stands for a hole among the pieces of a text."""

Pieces: TypeAlias = Iterable[str | bytes | Hole] | str | bytes
"""A text with holes, as a sequence of pieces, or a text without holes."""


def checked_pieces(pieces: Pieces) -> tuple[bytes | None, ...]:
    """Check pieces and return them as bytes, with None for each hole; adjacent pieces are joined.

    Raises TypeError for a value that is not a piece, and GrammarSyntaxError for a text with a lone
    surrogate.
    """
    if isinstance(pieces, (str, bytes)):
        pieces = (pieces,)
    elif isinstance(pieces, Hole) or not isinstance(pieces, Iterable):
        raise TypeError(
            f"pieces is {shown_value(pieces):.80}, "
            f"but must be a list of texts and HOLE, such as ['{{', HOLE]"
        )
    checked: list[bytes | None] = []
    for piece in pieces:
        if isinstance(piece, Hole):
            if not checked or checked[-1] is not None:
                checked.append(None)
            continue
        if isinstance(piece, str):
            piece = checked_text("a piece", piece).encode()
        if not isinstance(piece, bytes):
            raise TypeError(
                f"a piece is {shown_value(piece):.80}, but must be a str, bytes or HOLE"
            )
        if checked and (before := checked[-1]) is not None:
            checked[-1] = before + piece
        elif piece:
            checked.append(piece)
    return tuple(checked)


@dataclass(frozen=True, slots=True)
class HoleSource:
    """The source of the grammar that fills the first hole of a text."""

    notation: ClassVar[str] = "text with holes"

    of: Source
    pieces: tuple[bytes | None, ...]

    @property
    def size_bytes(self) -> int:
        """The approximate size of the grammar's source and the pieces."""
        return self.of.size_bytes + sum(len(piece) for piece in self.pieces if piece is not None)

    def build(self, limits: Limits) -> _core.Grammar:
        """Build the grammar of the texts that fill the hole."""
        return self.of.build(limits).fill(self.pieces, limits.core)
