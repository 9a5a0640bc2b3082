"""The kernel of torch operations, which the original compiles."""

from __future__ import annotations

from typing import Any

from stencilm.compat.xgrammar.bitmasks import apply_token_bitmask_inplace


def apply_token_bitmask_inplace_torch_compile(
    logits: Any,
    bitmask: Any,
    vocab_size: int | None = None,
    indices: list[int] | None = None,
) -> None:
    """Set the logits of all tokens that the bitmask does not allow to minus infinity.

    Args:
        logits: A floating-point tensor of shape (tokens,) or (batch, tokens).
        bitmask: An int32 tensor of shape (words,) or (batch, words), on the same device.
        vocab_size: How many tokens to look at; by default as many as both have.
        indices: The rows to mask, in both; by default all.

    Raises:
        ValueError: Devices, types or the backend do not fit.
        RuntimeError: The numbers of rows do not fit.
    """
    apply_token_bitmask_inplace(
        logits, bitmask, vocab_size=vocab_size, indices=indices, backend="torch_compile"
    )


def apply_token_bitmask_inplace_kernel_no_indices_torch_compile(
    logits: Any, bitmask: Any, vocab_size: int
) -> None:
    """Mask all rows."""
    apply_token_bitmask_inplace_torch_compile(logits, bitmask, vocab_size)


def apply_token_bitmask_inplace_kernel_indices_torch_compile(
    logits: Any, bitmask: Any, vocab_size: int, indices: list[int]
) -> None:
    """Mask some rows."""
    apply_token_bitmask_inplace_torch_compile(logits, bitmask, vocab_size, indices)
