"""Several sequences of a transformers model in one forward pass.

One idea: rows may have any length. In each pass, shorter rows are padded with tokens that the
attention mask hides, and positions count only visible tokens. So rows may have prompts of different
lengths, and take different numbers of tokens in one pass.

Shorter rows are padded on the left. But a sliding window counts padding, too, so between two tokens
of a row there must be none. There, later passes are padded on the right, and then the padding in
the cache is moved to the front of its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stencilm.errors import ModelError

if TYPE_CHECKING:
    from stencilm.models.transformers import TransformersRunner


class TransformersBatch:
    """Rows of tokens with one key-value cache."""

    def __init__(self, model: TransformersRunner, prompts: Sequence[Sequence[int]]) -> None:
        self._model = model
        self._cache = model.new_cache()
        self._unread = [list(prompt) for prompt in prompts]
        self._lengths = np.zeros(len(self._unread), dtype=np.int64)
        self._seen = np.zeros((len(self._unread), 0), dtype=np.int64)
        if not all(self._unread):
            raise ModelError("a sequence is empty: give the model a token to go on from")

    @property
    def num_tokens(self) -> list[int]:
        """The number of tokens in each row."""
        pairs = zip(self._lengths, self._unread, strict=True)
        return [int(length) + len(unread) for length, unread in pairs]

    def append(self, token_ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Add tokens to each row, at least one of them uncached: float32, [rows, width].

        Raises ModelError, with nothing changed, if a row would exceed the model's context.
        """
        return self.append_last(token_ids, 1)[:, 0]

    def append_last(self, token_ids: Sequence[Sequence[int]], count: int) -> NDArray[np.float32]:
        """Add tokens; the logits after each of the last `count`: float32, [rows, count, width].

        A row that is given fewer tokens than `count` has meaningless logits at the front. A row
        that is given none, while others are, does not change. Raises the errors of `append`.
        """
        added = [old + list(new) for old, new in zip(self._unread, token_ids, strict=True)]
        limit = self._model.context_size
        lengths = [int(n) + len(new) for n, new in zip(self._lengths, added, strict=True)]
        longest = max(lengths)
        if limit is not None and longest > limit:
            which = f"sequence {lengths.index(longest)}" if len(lengths) > 1 else "a sequence"
            raise ModelError(
                f"{which} would hold {longest} tokens, but the model reads at most {limit}: "
                "shorten the prompt"
            )
        logits = self._run(added, count)
        self._lengths += [len(new) for new in added]
        self._unread = [[] for _ in added]
        return logits

    def _run(self, added: Sequence[Sequence[int]], count: int) -> NDArray[np.float32]:
        """Run tokens; the logits after each of the last `count` of them: [rows, count, width]."""
        lengths = np.array([len(new) for new in added])
        width = int(lengths.max())
        is_right = (
            self._cache is not None
            and not self._cache.sees_everything
            and self._seen.shape[1] > 0
            and int(lengths.min()) < width
        )
        input_ids = np.zeros((len(added), width), dtype=np.int64)
        seen = np.zeros_like(input_ids)
        for row, new in enumerate(added):
            place = slice(0, len(new)) if is_right else slice(width - len(new), width)
            input_ids[row, place] = new
            seen[row, place] = 1
        self._seen = np.concatenate([self._seen, seen], axis=1)
        positions = np.maximum(np.cumsum(self._seen, axis=1)[:, -width:] - 1, 0)
        more: dict[str, Any] = {"attention_mask": self._seen, "position_ids": positions}
        if not is_right:
            return self._model.forward(input_ids.tolist(), self._cache, count, **more)
        first = max(0, int(lengths.min()) - count)
        logits = self._model.forward(input_ids.tolist(), self._cache, width - first, **more)
        self._move_padding()
        places = lengths[:, None] - count + np.arange(count) - first
        return np.take_along_axis(logits, np.maximum(places, 0)[:, :, None], axis=1)

    def _move_padding(self) -> None:
        """Move the padding to the front of each row."""
        assert self._cache is not None, "invariant: only a cache holds padding"
        order = np.argsort(self._seen, axis=1, kind="stable")
        self._cache.reorder(order)
        self._seen = np.take_along_axis(self._seen, order, axis=1)

    def select(self, rows: Sequence[int]) -> None:
        """Make row i what row `rows[i]` was: drops, repeats and reorders rows."""
        if self._cache is not None and self._cache.num_tokens:
            self._cache.select(rows)
        self._seen = self._seen[list(rows)]
        self._lengths = self._lengths[list(rows)]
        self._unread = [list(self._unread[row]) for row in rows]
