"""One sequence of tokens over a cache of the part that the model has read.

One idea: a sequence stores its tokens, and its cache how many of them it has seen. Cropping,
appending and asking again all become "run the tokens that the cache has not seen". So a backend
only needs a forward pass and a cache that can be cropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stencilm.errors import ModelError


class TokenCache(Protocol):
    """The state of a model after the first tokens of a sequence."""

    @property
    def num_tokens(self) -> int:
        """The number of these tokens."""

    def crop(self, num_tokens: int) -> bool:
        """Keep the first `num_tokens` positions; False if that is not possible.

        A cache that failed is replaced by a new one.
        """


class CachedModel(Protocol):
    """The forward passes of a model, one sequence at a time."""

    @property
    def context_size(self) -> int | None:
        """The most tokens that one sequence may hold; None if there is no such limit."""

    def new_cache(self) -> Any:
        """An empty `TokenCache`; None if the model has no cache."""

    def read(self, token_ids: Sequence[int], cache: Any, rows: int) -> NDArray[np.float32]:
        """Run tokens after those in the cache; returns the logits of the last `rows` positions.

        The result is float32, shape [rows, width], in memory of its own.
        """


class CachedSequence:
    """The tokens of one sequence, with its key-value cache."""

    def __init__(self, model: CachedModel, prompt_ids: Sequence[int]) -> None:
        self._model = model
        self._token_ids = list(prompt_ids)
        self._cache: TokenCache | None = model.new_cache()

    @property
    def num_tokens(self) -> int:
        """How many tokens the sequence holds, the prompt included."""
        return len(self._token_ids)

    def append(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """Add tokens, and return the next token's logits: float32, shape [logits width].

        Raises ModelError when the sequence is empty or outgrows the model's context; it then
        stays as it was.
        """
        row: NDArray[np.float32] = self.append_rows(token_ids, 1)[0]
        return row

    def append_rows(self, token_ids: Sequence[int], rows: int) -> NDArray[np.float32]:
        """Add tokens in one forward pass; returns the logits after each of the last `rows` tokens.

        Raises the errors of `append`, and ValueError for more rows than there are tokens.
        """
        length = len(self._token_ids) + len(token_ids)
        limit = self._model.context_size
        if length == 0:
            raise ModelError("the sequence is empty: give the model a token to go on from")
        if not 1 <= rows <= length:
            raise ValueError(f"rows is {rows}, but must be from 1 to the {length} tokens there are")
        if limit is not None and length > limit:
            raise ModelError(
                f"the sequence would hold {length} tokens, but the model reads at most {limit}: "
                "shorten the prompt"
            )
        self._token_ids.extend(token_ids)
        # Cached tokens are run again if their logits are requested again.
        self._keep_cached(length - rows)
        return self._model.read(self._token_ids[self.num_cached :], self._cache, rows)

    def crop(self, num_tokens: int) -> None:
        """Keep only the first `num_tokens` tokens. Raises ValueError when there are fewer."""
        if not 0 <= num_tokens <= len(self._token_ids):
            raise ValueError(
                f"cannot keep {num_tokens} tokens of a sequence of {len(self._token_ids)}"
            )
        del self._token_ids[num_tokens:]
        self._keep_cached(num_tokens)

    @property
    def num_cached(self) -> int:
        """The number of tokens that the next forward pass need not run again."""
        return 0 if self._cache is None else self._cache.num_tokens

    def _keep_cached(self, num_tokens: int) -> None:
        """Crop the cache, or start a new one if its layers cannot go back."""
        cache = self._cache
        if cache is None or cache.num_tokens <= num_tokens:
            return
        if num_tokens == 0 or not cache.crop(num_tokens):
            self._cache = self._model.new_cache()


def context_size_of(config: Any) -> int | None:
    """The number of positions; its name depends on the family of configurations."""
    for name in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"):
        size = getattr(config, name, None)
        if isinstance(size, int) and size > 0:
            return size
    return None
