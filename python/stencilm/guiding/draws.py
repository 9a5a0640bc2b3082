"""Sampling from a row of logits, first without and then with a mask."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stencilm.bitmask.arrays import apply_token_bitmask_inplace
from stencilm.errors import ModelError
from stencilm.generation.sampling import Sampling, draw
from stencilm.matching.matcher import GrammarMatcher


class Draws:
    """The random draws of one text; `seed` repeats them, and is None for a greedy text.

    Args:
        sampling: The sampling options.
        vocab_size: The number of tokens that a mask covers.
    """

    def __init__(self, sampling: Sampling, vocab_size: int) -> None:
        self.seed = sampling.seed
        if self.seed is None and not sampling.is_greedy:
            self.seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._sampling = sampling
        self._random = np.random.Generator(np.random.PCG64(self.seed))
        self._vocab_size = vocab_size
        self._mask = np.zeros((1, -(-vocab_size // 32)), dtype=np.int32)

    def freely(self, row: NDArray[np.float32]) -> int | None:
        """A token; None if the row allows none. Raises ModelError for NaN."""
        if self._sampling.is_greedy:
            token_id = int(row.argmax())
            if np.isnan(row[token_id]):
                raise ModelError("the logits hold NaN, so no token can be drawn from them")
            return token_id if row[token_id] > -np.inf else None
        try:
            return draw(row, self._sampling, self._random)
        except ValueError as error:
            raise ModelError(str(error)) from error

    def of_allowed(self, row: NDArray[np.float32], after: str) -> int:
        """A token from a masked row; `after` is the text before it, for the error."""
        token_id = self.freely(row)
        if token_id is None:
            raise ModelError(
                f"after {after[-40:]!r}, the model gives a probability of zero to every token "
                "that the grammar allows"
            )
        return token_id

    def mask(self, row: NDArray[np.float32], matcher: GrammarMatcher) -> None:
        """Mask the row in place. Raises MatcherError if no token can spell any continuation."""
        if matcher.fill_next_token_bitmask(self._mask, 0):
            width = min(row.size, self._vocab_size)
            apply_token_bitmask_inplace(row[None, :], self._mask, vocab_size=width)
