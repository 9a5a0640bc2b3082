"""Guesses at the next tokens from what was written before; the model checks them all in one pass.

One idea: texts of a grammar repeat themselves, and the prompt is a hint too. What followed the last
two or three tokens the last time may follow again (Saxena 2023, "Prompt Lookup Decoding"); and
where the words are new, the frame around them is not: behind `"` and any word, `": "` came the last
time. How many tokens to guess adapts to how many were right. The check is that of Leviathan et al.
(2023).
"""

from __future__ import annotations

from collections.abc import Sequence

_SHAPES = ((3, 0), (2, 0), (1, 1), (1, 2), (1, 3))
"""How many tokens must be the same, and how many behind them may be any."""


class Lookup:
    """An index of where short runs of tokens stood last."""

    __slots__ = ("_last", "_tokens", "_width", "limit")

    def __init__(self, tokens: Sequence[int], limit: int) -> None:
        """Indexes the prompt; `limit` is the most tokens to guess at once."""
        self.limit = limit
        self._width = min(2.0, limit)
        self._tokens: list[int] = []
        self._last: dict[tuple[int, ...], int] = {}
        self.extend(tokens)

    def extend(self, tokens: Sequence[int]) -> None:
        """Index more tokens at the end."""
        for token in tokens:
            # A run is indexed when the token behind it comes, so that none is found as its own end.
            for same, free in _SHAPES:
                if len(self._tokens) >= same + free:
                    self._last[self._key(same, free)] = len(self._tokens)
            self._tokens.append(token)

    def guess(self) -> list[int]:
        """Tokens that may come next; none where nothing like this stood before."""
        for same, free in _SHAPES:
            if len(self._tokens) < same + free:
                continue
            start = self._last.get(self._key(same, free))
            if start is not None:
                return self._tokens[start : start + max(1, int(self._width))]
        return []

    def learn(self, guessed: int, right: int) -> None:
        """Guess more next time where all were right, and about as many as were right where not."""
        if guessed == 0:
            return
        self._width = (
            min(float(self.limit), self._width + 1)
            if right == guessed
            else max(1.0, (self._width + right) / 2)
        )

    def _key(self, same: int, free: int) -> tuple[int, ...]:
        end = len(self._tokens) - free
        return (free, *self._tokens[end - same : end])
