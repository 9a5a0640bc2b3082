"""Masks for MLX arrays; the bitmasks themselves are NumPy's."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from stencilm.bitmask.arrays import apply_token_bitmask_inplace
from stencilm.compat.llguidance.numpy import (
    allocate_token_bitmask,
    fill_next_token_bitmask,
    get_bitmask_shape,
)

__all__ = [
    "allocate_token_bitmask",
    "apply_token_bitmask",
    "fill_next_token_bitmask",
    "get_bitmask_shape",
]


def apply_token_bitmask(logits: Any, mask_np: np.ndarray[Any, np.dtype[np.int32]]) -> Any:
    """New logits, with minus infinity for all tokens that the mask does not allow.

    Args:
        logits: An MLX array of shape (tokens,) or (batch, tokens).
        mask_np: int32 of shape (words,) or (batch, words).

    Returns:
        An MLX array of shape (batch, tokens).

    Raises:
        AssertionError: The shapes do not fit.
    """
    made = mx.array(logits if logits.ndim == 2 else mx.expand_dims(logits, axis=0))
    mask = np.atleast_2d(mask_np)
    if mask.dtype != np.int32 or made.ndim != 2 or made.shape[0] != mask.shape[0]:
        raise AssertionError(f"the logits have shape {made.shape}, but the mask {mask.shape}")
    apply_token_bitmask_inplace(made, mask, vocab_size=min(made.shape[1], 32 * mask.shape[1]))
    return made
