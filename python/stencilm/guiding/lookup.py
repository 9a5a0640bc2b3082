"""Guesses at the next tokens from what was written before; the model checks them all in one pass.

One idea: texts of a grammar repeat themselves, and the prompt is a hint too: what followed the last
two or three tokens the last time may follow again (Saxena 2023, "Prompt Lookup Decoding"; the check
is that of Leviathan et al. 2023). How many to guess adapts to how many were right.
"""

from __future__ import annotations

from collections.abc import Sequence

_SPANS = (3, 2)


class Lookup:
    """An index of where short runs of tokens stood last."""

    __slots__ = ("_last", "_tokens", "_width", "limit")

    def __init__(self, tokens: Sequence[int], limit: int) -> None:
        """Indexes the prompt; `limit` is the most tokens to guess at once."""
        self.limit = limit
        self._width = min(4.0, limit)
        self._tokens: list[int] = []
        self._last: dict[tuple[int, ...], int] = {}
        self.extend(tokens)

    def extend(self, tokens: Sequence[int]) -> None:
        """Index more tokens at the end."""
        for token in tokens:
            # A run is indexed when the token behind it comes, so that none is found as its own end.
            for span in _SPANS:
                if len(self._tokens) >= span:
                    self._last[tuple(self._tokens[-span:])] = len(self._tokens)
            self._tokens.append(token)

    def guess(self) -> list[int]:
        """Tokens that may come next; none where nothing like this stood before."""
        for span in _SPANS:
            start = self._last.get(tuple(self._tokens[-span:]), len(self._tokens))
            if len(self._tokens) >= span and start < len(self._tokens):
                return self._tokens[start : start + int(self._width)]
        return []

    def learn(self, guessed: int, right: int) -> None:
        """Guess more next time where all were right, and about as many as were right where not."""
        if guessed == 0:
            return
        self._width = (
            min(float(self.limit), self._width * 2)
            if right == guessed
            else max(1.0, (self._width + 2 * right) / 3)
        )
