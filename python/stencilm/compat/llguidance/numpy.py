"""Bitmasks in NumPy arrays: int32 of shape (batch, words), one bit for each token."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stencilm.compat.arguments import bitmask_shape
from stencilm.compat.llguidance.executor import LLExecutor, checked_matcher
from stencilm.compat.llguidance.matcher import LLMatcher


def get_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    """The shape of a bitmask; raises TypeError and ValueError for an invalid number of rows."""
    return bitmask_shape(batch_size, vocab_size)


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> NDArray[np.int32]:
    """A new bitmask that allows everything."""
    return np.full(get_bitmask_shape(batch_size, vocab_size), -1, dtype=np.int32)


def apply_token_bitmask_inplace_kernel(
    logits: NDArray[np.float32], mask: NDArray[np.int32]
) -> None:
    """Mask logits of (batch, tokens): minus infinity for all that the mask does not allow.

    Raises:
        AssertionError: Types or shapes do not fit.
    """
    _check_logits(logits)
    _check(mask)
    if logits.ndim != 2 or len(logits) != len(mask):
        raise AssertionError(f"the logits have shape {logits.shape}, but the mask {mask.shape}")
    bits = np.unpackbits(
        np.ascontiguousarray(mask).view(np.uint8), axis=1, count=logits.shape[1], bitorder="little"
    )
    logits[bits == 0] = -np.inf


def apply_token_bitmask_inplace(logits: NDArray[np.float32], mask: NDArray[np.int32]) -> None:
    """Set the logits of all tokens that the mask does not allow to minus infinity.

    Args:
        logits: Of shape (tokens,) or (batch, tokens); those beyond the mask are masked, too.
        mask: int32 of shape (words,) or (batch, words).

    Raises:
        AssertionError: Types or shapes do not fit.
    """
    _check_logits(logits)  # for any other value a copy would be masked
    logits, mask = np.atleast_2d(logits), np.atleast_2d(mask)
    _check(mask)
    if logits.ndim != 2 or len(logits) != len(mask):
        raise AssertionError(f"the logits have shape {logits.shape}, but the mask {mask.shape}")
    bits = 32 * mask.shape[1]
    logits[:, bits:] = -np.inf
    apply_token_bitmask_inplace_kernel(logits[:, :bits], mask)


def fill_next_token_bitmask(interp: LLMatcher, bitmask: NDArray[np.int32], index: int = 0) -> None:
    """Write the tokens that may come next into a row of a bitmask.

    Raises:
        AssertionError: The bitmask is not an int32 array of two dimensions.
        IndexError: The row is out of range.
        ValueError: The rows are too short for the vocabulary.
    """
    _check(bitmask)
    checked_matcher(interp).fill_row(bitmask[index, :])


def fill_next_token_bitmask_par(
    executor: LLExecutor, matchers: list[tuple[LLMatcher, int]], bitmask: NDArray[np.int32]
) -> None:
    """Write the masks of many matchers, each into its row; raises the same errors."""
    _check(bitmask)
    executor.fill(matchers, bitmask)


def fill_next_token_bitmask_par_with_draft_tokens(
    executor: LLExecutor,
    matchers: list[tuple[LLMatcher, int, list[int]]],
    bitmask: NDArray[np.int32],
) -> None:
    """Write masks, each followed by those after the draft tokens that fit.

    Raises the same errors.
    """
    _check(bitmask)
    executor.fill_with_drafts(matchers, bitmask)


def consume_token_par(executor: LLExecutor, matchers: list[tuple[LLMatcher, int]]) -> list[bool]:
    """Consume one token in each matcher; returns whether each fits."""
    return executor.consume_token_par(matchers)


def _check_logits(logits: Any) -> None:
    if not isinstance(logits, np.ndarray) or logits.dtype.kind in "biuOSU":
        kind = getattr(logits, "dtype", type(logits).__name__)
        raise AssertionError(f"the logits are {kind}, but must be a NumPy array of floats")


def _check(bitmask: Any) -> None:
    if not isinstance(bitmask, np.ndarray):
        raise AssertionError(
            f"the bitmask is a {type(bitmask).__name__}, but must be a NumPy array of int32"
        )
    if bitmask.dtype != np.int32 or bitmask.ndim != 2:
        raise AssertionError(
            f"the bitmask has dtype {bitmask.dtype} and shape {bitmask.shape}, but must be int32 "
            "of shape (batch, words)"
        )
