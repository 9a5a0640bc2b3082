"""Bitmasks in torch tensors: int32 of shape (batch, words), one bit for each token."""

from __future__ import annotations

from typing import Any

import torch

from stencilm.bitmask.arrays import apply_token_bitmask_inplace as _apply
from stencilm.compat.arguments import bitmask_shape
from stencilm.compat.llguidance.executor import LLExecutor, checked_matcher
from stencilm.compat.llguidance.matcher import LLMatcher


def get_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    """The shape of a bitmask; raises TypeError and ValueError for an invalid number of rows."""
    return bitmask_shape(batch_size, vocab_size)


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> Any:
    """A new bitmask that allows everything; in pinned memory if there is a GPU."""
    shape = get_bitmask_shape(batch_size, vocab_size)
    return torch.full(shape, -1, dtype=torch.int32, pin_memory=torch.cuda.is_available())


def apply_token_bitmask_inplace_kernel(logits: Any, mask: Any) -> None:
    """Mask logits of (batch, tokens): minus infinity for all that the mask does not allow."""
    _apply(logits, mask, vocab_size=min(logits.shape[1], 32 * mask.shape[1]))


def apply_token_bitmask_inplace(logits: Any, mask: Any) -> None:
    """Set the logits of all tokens that the mask does not allow to minus infinity.

    Args:
        logits: Of shape (tokens,) or (batch, tokens); those beyond the mask are masked, too.
        mask: int32 of shape (words,) or (batch, words), on the same device.

    Raises:
        AssertionError: Types or shapes do not fit.
    """
    if not isinstance(logits, torch.Tensor) or not isinstance(mask, torch.Tensor):
        kinds = f"{type(logits).__name__} and {type(mask).__name__}"
        raise AssertionError(f"logits and mask are {kinds}, but must be tensors of torch")
    logits = logits.unsqueeze(0) if logits.dim() == 1 else logits
    mask = mask.unsqueeze(0) if mask.dim() == 1 else mask
    if mask.dtype != torch.int32 or logits.dim() != 2 or len(logits) != len(mask):
        raise AssertionError(
            f"the logits have shape {tuple(logits.shape)}, but the mask {tuple(mask.shape)} and "
            f"dtype {mask.dtype}"
        )
    apply_token_bitmask_inplace_kernel(logits, mask)


def fill_next_token_bitmask(interp: LLMatcher, bitmask: Any, index: int = 0) -> None:
    """Write the tokens that may come next into a row of a bitmask in main memory.

    Raises:
        AssertionError: The bitmask is not such a tensor.
        IndexError: The row is out of range.
        ValueError: The rows are too short for the vocabulary.
    """
    _check(bitmask)
    checked_matcher(interp).fill_row(bitmask[index, :].numpy())


def fill_next_token_bitmask_par(
    executor: LLExecutor, matchers: list[tuple[LLMatcher, int]], bitmask: Any
) -> None:
    """Write the masks of many matchers, each into its row; raises the same errors."""
    _check(bitmask)
    executor.fill(matchers, bitmask.numpy())


def fill_next_token_bitmask_par_with_draft_tokens(
    executor: LLExecutor, matchers: list[tuple[LLMatcher, int, list[int]]], bitmask: Any
) -> None:
    """Write masks, each followed by those after the draft tokens that fit.

    Raises the same errors.
    """
    _check(bitmask)
    executor.fill_with_drafts(matchers, bitmask.numpy())


def consume_token_par(executor: LLExecutor, matchers: list[tuple[LLMatcher, int]]) -> list[bool]:
    """Consume one token in each matcher; returns whether each fits."""
    return executor.consume_token_par(matchers)


def _check(bitmask: Any) -> None:
    if not isinstance(bitmask, torch.Tensor):
        raise AssertionError(
            f"the bitmask is a {type(bitmask).__name__}, but must be a tensor of torch"
        )
    if bitmask.dtype != torch.int32 or not bitmask.is_cpu or bitmask.dim() != 2:
        raise AssertionError(
            f"the bitmask has dtype {bitmask.dtype} and shape {tuple(bitmask.shape)} on "
            f"{bitmask.device}, but must be int32 of shape (batch, words) on the CPU"
        )
