"""Bytes to tokens without an encoder: the fewest tokens that spell them.

Used where a vocabulary came without its tokenizer, and for bytes that no encoder takes (broken
UTF-8). Shortest by dynamic programming from the end, so it never runs into a dead end as
longest-match would; ties go to the longest first token, then to the smallest id, so the answer is
always the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from stencilm.errors import TokenizerError


class Segmenter:
    """The tokens of a vocabulary by their bytes; immutable once made."""

    __slots__ = ("_id_of", "_lengths")

    def __init__(self, tokens: Sequence[bytes | None]) -> None:
        """Indexes the tokens; None and empty ones are left out."""
        id_of: dict[bytes, int] = {}
        lengths: dict[bytes, set[int]] = {}
        for token_id, token in enumerate(tokens):
            if token and id_of.setdefault(token, token_id) == token_id:
                lengths.setdefault(token[:2], set()).add(len(token))
        self._id_of = id_of
        # By the first two bytes, because few tokens share them: most lengths need not be tried.
        self._lengths = {start: sorted(found, reverse=True) for start, found in lengths.items()}

    def segment(self, data: bytes) -> list[int]:
        """The fewest tokens that spell `data`.

        Raises:
            TokenizerError: No sequence of tokens spells it; the place is the byte that none reaches
                past.
        """
        size = len(data)
        unreachable = size + 1
        cost = [unreachable] * (size + 1)
        step = [0] * (size + 1)
        cost[size] = 0
        for start in range(size - 1, -1, -1):
            for length in self._lengths_at(data, start):
                end = start + length
                if end <= size and cost[end] + 1 < cost[start] and data[start:end] in self._id_of:
                    cost[start] = cost[end] + 1
                    step[start] = length
        if cost[0] >= unreachable:
            raise self._refusal(data)
        ids = []
        at = 0
        while at < size:
            ids.append(self._id_of[data[at : at + step[at]]])
            at += step[at]
        return ids

    def _lengths_at(self, data: bytes, start: int) -> list[int]:
        # A token of one byte is filed under that byte alone, longer ones under their first two.
        longer = self._lengths.get(data[start : start + 2], [])
        if start + 1 < len(data):
            return longer + self._lengths.get(data[start : start + 1], [])
        return longer

    def _refusal(self, data: bytes) -> TokenizerError:
        reached = {0}
        furthest = 0
        for start in range(len(data)):
            if start in reached:
                furthest = start
                ends = (start + length for length in self._lengths_at(data, start))
                reached.update(
                    end for end in ends if data[start:end] in self._id_of and end <= len(data)
                )
        return TokenizerError(
            f"no token of this vocabulary goes on with {data[furthest : furthest + 8]!r}; "
            "load a tokenizer with a token for every byte",
            place=f"byte {furthest}",
        )
