"""From bytes to tokens without an encoder: the fewest tokens that spell them.

Used for a vocabulary without its tokenizer, and for bytes that no encoder reads (invalid UTF-8).
Dynamic programming finds the fewest tokens, and never runs into a dead end as longest-match would.
Ties go to the shortest last token, and so on back to the beginning, then to the smallest id. So the
result is deterministic, and its first tokens are the result for the text that they spell, as in
real tokenizers.
"""

from __future__ import annotations

from collections.abc import Sequence

from stencilm.errors import TokenizerError


class Segmenter:
    """The tokens of a vocabulary by their bytes; immutable once made."""

    __slots__ = ("_id_of", "_lengths")

    def __init__(self, tokens: Sequence[bytes | None]) -> None:
        """Index the tokens, except None and empty ones."""
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
            TokenizerError: No sequence of tokens spells it; the position is that of the first byte
                that none can spell.
        """
        size = len(data)
        unreachable = size + 1
        cost = [unreachable] * (size + 1)
        begin = [0] * (size + 1)
        cost[0] = 0
        for start in range(size):
            next_cost = cost[start] + 1
            if next_cost > unreachable:
                continue
            for length in self._lengths_at(data, start):
                end = start + length
                # The latest start wins a tie.
                if end <= size and next_cost <= cost[end] and data[start:end] in self._id_of:
                    cost[end] = next_cost
                    begin[end] = start
        if cost[size] == unreachable:
            raise self._refusal(data, max(at for at in range(size) if cost[at] < unreachable))
        ids = []
        at = size
        while at > 0:
            ids.append(self._id_of[data[begin[at] : at]])
            at = begin[at]
        ids.reverse()
        return ids

    def _lengths_at(self, data: bytes, start: int) -> list[int]:
        # A token of one byte is filed under that byte alone, longer ones under their first two.
        longer = self._lengths.get(data[start : start + 2], [])
        if start + 1 < len(data):
            return longer + self._lengths.get(data[start : start + 1], [])
        return longer

    def _refusal(self, data: bytes, furthest: int) -> TokenizerError:
        return TokenizerError(
            f"no token of this vocabulary goes on with {data[furthest : furthest + 8]!r}; "
            "load a tokenizer with a token for every byte",
            place=f"byte {furthest}",
        )
