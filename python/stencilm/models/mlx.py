"""Models of mlx-lm, which run on Apple's MLX: any of its language models, with its prompt cache.

One idea: MLX computes only what is requested. So a long prompt is read in pieces whose logits are
never requested, except those of the last piece.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import mlx.nn
import numpy as np
from mlx_lm.models.cache import make_prompt_cache
from numpy.typing import NDArray

from stencilm.matching.reasoning import ReasoningFormat
from stencilm.models.prompts import encode_prompt, stop_token_ids
from stencilm.models.protocol import Prompt
from stencilm.models.sequences import CachedSequence, context_size_of
from stencilm.shown import shown_value
from stencilm.tokenizers import TokenizerInfo
from stencilm.tool_calls.reasoning import reasoning_format

# Longer prompts are read in pieces: both the logits of a whole long prompt and its attention in one
# piece would take more memory than most models.
_PIECE = 512


class MlxCache:
    """The prompt cache of an mlx-lm model for one sequence, with one entry for each layer."""

    def __init__(self, model: Any) -> None:
        self.num_tokens = 0
        self.layers = make_prompt_cache(model)

    def crop(self, num_tokens: int) -> bool:
        """Keep the first `num_tokens` positions; False if a layer cannot go back that far.

        A recurrent state never can, a sliding window only until it is full.
        """
        remove = self.num_tokens - num_tokens
        if not all(layer.is_trimmable() for layer in self.layers):
            return False
        if any(layer.trim(remove) != remove for layer in self.layers):
            return False  # chunked attention keeps only the latest chunk
        self.num_tokens = num_tokens
        return True


class MlxModel:
    """A language model of mlx-lm for a decode loop.

    Its stop tokens are those of the tokenizer, as completed by mlx-lm, and of the configuration.

    Args:
        model: A model of mlx-lm; it is put in evaluation mode.
        tokenizer: Its tokenizer: mlx-lm's wrapper, or one of transformers.

    Raises:
        TypeError: The model is not an MLX model.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        if not isinstance(model, mlx.nn.Module):
            raise TypeError(
                f"mlx_model is {shown_value(model):.60}, but must be a model of mlx-lm: "
                "mlx_lm.load('organisation/name') returns one with its tokenizer"
            )
        self.model: Any = model
        self.tokenizer = tokenizer
        model.eval()
        args = _text_args(model)
        self._context_size = context_size_of(args)
        # Only the shape is used, so nothing is computed.
        width = int(self.model(mx.array([[0]])).shape[-1])
        vocab_size = max(len(tokenizer), width)
        self._tokenizer_info = TokenizerInfo.from_huggingface(
            tokenizer,
            vocab_size=vocab_size,
            stop_token_ids=stop_token_ids(tokenizer, args, vocab_size=vocab_size),
        )

    @property
    def tokenizer_info(self) -> TokenizerInfo:
        """The tokenizer's vocabulary, as wide as the model's logits."""
        return self._tokenizer_info

    @property
    def context_size(self) -> int | None:
        """The number of positions that the model was built for; None if it is not declared."""
        return self._context_size

    @property
    def reasoning_format(self) -> ReasoningFormat | None:
        """The model's format of reasoning, taken from its chat template."""
        return reasoning_format(self.tokenizer)

    def encode(self, prompt: Prompt) -> list[int]:
        """The tokens of a text, or of chat messages through the tokenizer's chat template."""
        return encode_prompt(self.tokenizer, prompt)

    def start(self, prompt_ids: Sequence[int]) -> CachedSequence:
        """A new sequence that holds the prompt; the first `append` runs it."""
        return CachedSequence(self, prompt_ids)

    def new_cache(self) -> MlxCache:
        """An empty cache."""
        return MlxCache(self.model)

    def read(self, token_ids: Sequence[int], cache: MlxCache, rows: int) -> NDArray[np.float32]:
        """Run tokens after what the cache holds: the logits of the last `rows` positions.

        The result is float32, shape [rows, width]. A text of at most 512 tokens takes one pass.
        """
        start = 0
        while len(token_ids) - start > max(rows, _PIECE):
            end = min(start + _PIECE, len(token_ids) - rows)
            self.model(mx.array([token_ids[start:end]]), cache=cache.layers)
            mx.eval([layer.state for layer in cache.layers])
            start = end
        logits = self.model(mx.array([token_ids[start:]]), cache=cache.layers)[0, -rows:]
        # A copy, because the loop writes into the rows. Converted first, because NumPy lacks
        # bfloat16.
        found = np.array(logits.astype(mx.float32), dtype=np.float32)
        cache.num_tokens += len(token_ids)
        return found


def _text_args(model: Any) -> Any:
    """The arguments that a model was built from; for a vision model, those of its text part."""
    args = getattr(model, "args", None)
    text = getattr(args, "text_config", None)
    if isinstance(text, Mapping):
        return SimpleNamespace(**text)
    return args if text is None else text
