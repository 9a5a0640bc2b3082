"""What may come next in a text, for people and for programs that correct texts."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Literal(NamedTuple):
    """Exactly this text may come next."""

    text: str


class Pattern(NamedTuple):
    """What this pattern matches may come next, except for the empty text."""

    regex: str


Candidate: TypeAlias = Literal | Pattern
