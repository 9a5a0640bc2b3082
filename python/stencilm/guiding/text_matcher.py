"""What the reading of talk needs of a matcher; `lone_strings` has another one than the engine's."""

from __future__ import annotations

from typing import Protocol, Self

from stencilm.matching.candidates import Candidate
from stencilm.matching.matcher import Verdict


class TextMatcher(Protocol):
    """A matcher of texts."""

    def fork(self) -> Self:
        """A copy."""

    def accept_string(self, text: str | bytes, /) -> bool:
        """Accept more of the text."""

    def is_completed(self) -> bool:
        """Whether the text may end here."""

    def is_allowed(self, token_id: int, /) -> bool:
        """Whether a byte may come next."""

    def longest_valid_prefix(self, text: bytes, /) -> Verdict:
        """How much of a text fits."""

    def candidates(self, limit: int = 16, /) -> list[Candidate]:
        """What may come next."""
