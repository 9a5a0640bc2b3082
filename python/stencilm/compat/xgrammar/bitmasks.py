"""The original's functions for bitmasks in torch tensors."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import torch

from stencilm.bitmask.arrays import apply_token_bitmask_inplace as _apply
from stencilm.compat.arguments import bitmask_shape
from stencilm.shown import shown_value
from stencilm.whole_numbers import as_whole

_BACKENDS = {
    "auto": "auto",
    "cpu": "cpu",
    "cuda": "auto",
    "triton": "triton",
    "torch_compile": "torch",
    "torch_native": "torch",
}

bitmask_dtype: Any = torch.int32
"""The type of a bitmask's words."""


def get_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    """The shape of a bitmask: one row for each sequence, one bit for each token.

    Raises:
        TypeError: A number is not an integer.
        RuntimeError: It is negative.
    """
    try:
        return bitmask_shape(batch_size, vocab_size)
    except ValueError as error:
        raise RuntimeError(str(error)) from error


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> Any:
    """A new tensor in main memory, int32 of shape (batch, words), that allows everything.

    Raises:
        TypeError: A number is not an integer.
        RuntimeError: It is negative, or there is no room for so many rows.
    """
    return torch.full(get_bitmask_shape(batch_size, vocab_size), -1, dtype=bitmask_dtype)


def reset_token_bitmask(bitmask: Any) -> None:
    """Allow everything in every row.

    Raises:
        TypeError: It is not a tensor.
        ValueError: It is not of int32.
    """
    if not isinstance(bitmask, torch.Tensor):
        raise TypeError(_no_tensor("bitmask", bitmask))
    if bitmask.dtype != bitmask_dtype or bitmask.layout != torch.strided:
        raise ValueError(
            f"bitmask is a {bitmask.layout} tensor of {bitmask.dtype}, but must be a dense one of "
            "torch.int32: allocate_token_bitmask makes one"
        )
    bitmask.fill_(-1)


def _no_tensor(name: str, value: Any) -> str:
    return f"{name} is a {type(value).__name__}, but must be a torch.Tensor"


def apply_token_bitmask_inplace(
    logits: Any,
    bitmask: Any,
    *,
    vocab_size: int | None = None,
    indices: list[int] | None = None,
    backend: Literal["auto", "cpu", "cuda", "triton", "torch_compile", "torch_native"] = "auto",
) -> None:
    """Set the logits of all tokens that the bitmask does not allow to minus infinity.

    Args:
        logits: A floating-point tensor of shape (tokens,) or (batch, tokens). Logits past the
            bitmask stay as they are, with a warning.
        bitmask: An int32 tensor of shape (words,) or (batch, words), on the same device.
        vocab_size: How many tokens to look at; by default as many as both have.
        indices: The rows to mask, in both; by default all.
        backend: Which code does it: "triton" for Triton's, "torch_compile" and "torch_native" for
            torch's own operations, "cpu" for main memory; "cuda" and "auto" choose.

    Raises:
        TypeError: `logits` or `bitmask` is not a tensor.
        ValueError: Devices, types, `vocab_size` or the backend do not fit.
        RuntimeError: The numbers of rows do not fit.
    """
    for name, tensor in (("logits", logits), ("bitmask", bitmask)):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(_no_tensor(name, tensor))
        if tensor.ndim == 0 or tensor.layout != torch.strided:
            raise ValueError(
                f"{name} is a {tensor.layout} tensor of shape {tuple(tensor.shape)}, but must be a "
                "dense one with one or two dimensions"
            )
    if bitmask.device != logits.device:
        raise ValueError(
            f"logits are on {logits.device}, but the bitmask on {bitmask.device}: move one of them"
        )
    if not isinstance(backend, str) or backend not in _BACKENDS:
        raise ValueError(
            f"backend is {shown_value(backend):.80}, but must be one of {', '.join(_BACKENDS)}"
        )
    bits = bitmask.shape[-1] * 32
    most = min(bits, logits.shape[-1])
    if vocab_size is None:
        vocab_size = most
        if bits < logits.shape[-1]:
            warnings.warn(
                f"the bitmask has {bits} bits, but there are {logits.shape[-1]} logits: those past "
                "the bits stay as they are; allocate the bitmask with the model's vocab_size",
                stacklevel=2,
            )
    chosen: Any = _BACKENDS[backend]
    rows = indices.tolist() if isinstance(indices, torch.Tensor) else indices
    number = as_whole(vocab_size)
    # `apply` reports a wrong number of tokens; it has to see the logits as they are.
    seen = logits if number is None or not 1 <= number <= most else logits[..., :number]
    try:
        _apply(seen, bitmask, vocab_size=vocab_size, indices=rows, backend=chosen)
    except TypeError as error:
        raise ValueError(str(error)) from error
    except ValueError as error:
        if "rows" in str(error):
            raise RuntimeError(str(error)) from error
        raise
