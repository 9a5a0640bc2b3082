"""Guesses of the next token from earlier text, each with the odds that it is right.

One idea: texts of a grammar repeat themselves, and the prompt helps, too. What followed the last
two or three tokens before may follow again (Saxena 2023, "Prompt Lookup Decoding"). And even if
words are new, the frame around them is not: after `"` and any word, `": "` came last time. For each
of these contexts, the guesses that were right are counted, so that a guess is made only if it is
likely to be right.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

_SHAPES = ((3, 0), (2, 0), (1, 1), (1, 2))
"""How many tokens must be equal, and how many tokens after them may be any."""

_REACH = max(same + free for same, free in _SHAPES)
_FADING = 0.9
_TRUST = 2.0
_LEAST_FAITH = 0.5

Key: TypeAlias = tuple[int, ...]


class Odds:
    """How often guesses of one kind were right: for each key, and for the kind as a whole.

    A key with few tries is estimated from its kind. Older tries count less.
    """

    __slots__ = ("_right", "_rights", "_tried", "_tries")

    def __init__(self) -> None:
        self._right, self._tried = 1.0, 2.0
        self._rights: dict[Hashable, float] = {}
        self._tries: dict[Hashable, float] = {}

    def of(self, key: Hashable) -> float:
        """The probability that the guess for this key is right."""
        right, tries = self._rights.get(key, 0.0), self._tries.get(key, 0.0)
        return (right + _TRUST * self._right / self._tried) / (tries + _TRUST)

    def learn(self, key: Hashable, is_right: bool) -> None:
        """Count one more try."""
        self._rights[key] = _FADING * self._rights.get(key, 0.0) + is_right
        self._tries[key] = _FADING * self._tries.get(key, 0.0) + 1
        self._right += is_right
        self._tried += 1


class Lookup:
    """An index of what follows short runs of tokens; entries that are mostly wrong are replaced."""

    __slots__ = ("_followers", "_odds", "_recent")

    def __init__(self, tokens: Sequence[int]) -> None:
        """Index the prompt."""
        self._recent: tuple[int, ...] = ()
        self._followers: dict[Key, int] = {}
        self._odds = {free: Odds() for _, free in _SHAPES}
        self.extend(tokens)

    def extend(self, tokens: Sequence[int]) -> None:
        """Index more tokens at the end."""
        for token in tokens:
            for key in _keys(self._recent):
                known = self._followers.get(key)
                if known is None:
                    self._followers[key] = token
                    continue
                odds = self._odds[key[0]]
                odds.learn(key, known == token)
                if known != token and odds.of(key) < _LEAST_FAITH:
                    self._followers[key] = token
            self._recent = (*self._recent, token)[-_REACH:]

    def go_back(self, tokens: Sequence[int]) -> None:
        """Go back to the end of these tokens, which are in the index."""
        self._recent = tuple(tokens[-_REACH:])

    def best(self, guesses: Sequence[int] = ()) -> tuple[int, float] | None:
        """The best guess after the text and these guesses, and its probability."""
        found: tuple[int, float] | None = None
        for key in _keys((*self._recent, *guesses)[-_REACH:]):
            token = self._followers.get(key)
            if token is not None:
                odds = self._odds[key[0]].of(key)
                if found is None or odds > found[1]:
                    found = token, odds
        return found


def _keys(recent: tuple[int, ...]) -> Iterator[Key]:
    for same, free in _SHAPES:
        end = len(recent) - free
        if end >= same:
            yield (free, *recent[end - same : end])
