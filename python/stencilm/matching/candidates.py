"""What may come next in a text, for people and for programs that correct texts."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Literal(NamedTuple):
    """Exactly this text may come next.

    Examples:
        >>> stencilm.Literal("yes").text
        'yes'
    """

    text: str


class Pattern(NamedTuple):
    """What this pattern matches may come next, except for the empty text.

    Examples:
        >>> stencilm.Pattern("[0-9]+").regex
        '[0-9]+'
    """

    regex: str


Candidate: TypeAlias = Literal | Pattern
