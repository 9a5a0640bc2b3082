"""The kernel for MLX arrays."""

from __future__ import annotations

from typing import Any

from stencilm.bitmask.arrays import apply_token_bitmask_inplace


def apply_token_bitmask_mlx(bitmask: Any, logits: Any, vocab_size: int) -> Any:
    """The logits with minus infinity for all tokens that the bitmask does not allow.

    Args:
        bitmask: An int32 array of shape (batch, words).
        logits: A floating-point array of shape (batch, tokens), which stays as it is.
        vocab_size: How many tokens to look at.

    Returns:
        A new array of shape (batch, vocab_size).

    Raises:
        TypeError: Types do not fit.
        ValueError: The numbers of rows do not fit.
    """
    masked = logits[..., :vocab_size] + 0
    apply_token_bitmask_inplace(masked, bitmask, vocab_size=vocab_size)
    return masked
