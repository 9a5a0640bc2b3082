"""Closing logits on a GPU with one Triton kernel: each logit is written at most once, none is read.

Imported only where torch has logits on a GPU and Triton is at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from torch import Tensor

_BLOCK = 1024


@triton.jit  # type: ignore[untyped-decorator]
def _close(  # type: ignore[no-untyped-def]
    logits,
    words,
    rows,
    width,
    tokens,
    logits_stride,
    words_stride,
    HAS_ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    if HAS_ROWS:
        row = tl.load(rows + row)
    token = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(words + row * words_stride + token // 32, mask=token < width, other=0)
    is_closed = ((word >> (token % 32)) & 1) == 0
    closed = tl.full([BLOCK], float("-inf"), tl.float32).to(logits.dtype.element_ty)
    tl.store(logits + row * logits_stride + token, closed, mask=(token < tokens) & is_closed)


def takes(logits: Tensor, bitmask: Tensor) -> bool:
    """Whether the kernel can write these: the elements of a row must lie next to each other."""
    return bool(logits.stride(-1) == 1 and bitmask.stride(-1) == 1)


def close(logits: Tensor, bitmask: Tensor, rows: Sequence[int] | None, width: int) -> None:
    """Close in logits (batch, tokens) what the first `width` bits of (batch, words) do not allow.

    Logits past `width` are closed too. All that is needed was checked before.
    """
    tokens = logits.shape[1]
    count = logits.shape[0] if rows is None else len(rows)
    if count == 0:
        return
    chosen = None
    if rows is not None:
        chosen = torch.tensor(rows, dtype=torch.int64).to(logits.device, non_blocking=True)
    _close[(count, triton.cdiv(tokens, _BLOCK))](
        logits,
        bitmask,
        bitmask if chosen is None else chosen,
        width,
        tokens,
        logits.stride(0),
        bitmask.stride(0),
        HAS_ROWS=chosen is not None,
        BLOCK=_BLOCK,
    )
