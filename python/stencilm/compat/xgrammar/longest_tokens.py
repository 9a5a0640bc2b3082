"""Bytes as tokens, always the longest that fits, for `find_jump_forward_tokens`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Sequence
from itertools import takewhile
from operator import eq


class Spelling:
    """The tokens that spell text, sorted by their bytes.

    Args:
        vocabulary: The bytes of each token; empty if it spells nothing.
        never: The tokens that spell nothing although they have bytes.
    """

    def __init__(self, vocabulary: Sequence[bytes], never: Container[int]) -> None:
        self._ids: dict[bytes, int] = {}
        for token_id, spelled in enumerate(vocabulary):
            if spelled and token_id not in never:
                self._ids.setdefault(spelled, token_id)
        self._sorted = sorted(self._ids)
        self._longest = max(map(len, self._sorted), default=0)

    def first(self, text: bytes) -> bytes:
        """The longest token that a text begins with; empty if there is none."""
        begun = text[: self._longest]
        while begun:
            # Among the tokens up to the text, in order, the last one shares the longest prefix with
            # it. So no token that the text begins with is longer than that prefix.
            at = bisect_right(self._sorted, begun)
            if at == 0:
                return b""
            before = self._sorted[at - 1]
            if begun.startswith(before):
                return before
            begun = begun[: sum(takewhile(bool, map(eq, begun, before)))]
        return b""

    def is_begun(self, spelled: bytes) -> bool:
        """Whether it is a proper prefix of a token."""
        at = bisect_right(self._sorted, spelled)
        return at < len(self._sorted) and self._sorted[at].startswith(spelled)

    def tokens(self, text: bytes) -> list[int]:
        """The tokens of a text up to where none fits.

        The last only if no longer token begins with it.
        """
        found: list[bytes] = []
        at = 0
        while spelled := self.first(text[at : at + self._longest]):
            found.append(spelled)
            at += len(spelled)
        if found and self.is_begun(found[-1]):
            found.pop()
        return [self._ids[spelled] for spelled in found]
