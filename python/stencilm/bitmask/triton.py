"""Bitmasks on a GPU: logits closed by one Triton kernel, and rows patched by another.

Each logit is written at most once, and none is read; each word of a patched row is read once and
written once. Imported only where torch has tensors on a GPU and Triton is at hand.
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
# So many words of a row are patched by one program, which looks at so many tokens at a time.
_WORDS, _TOKENS = 256, 32


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


@triton.jit  # type: ignore[untyped-decorator]
def _patch(  # type: ignore[no-untyped-def]
    rows,
    places,
    offsets,
    flipped,
    bitmask,
    width,
    WORDS: tl.constexpr,
    TOKENS: tl.constexpr,
):
    sequence = tl.program_id(0).to(tl.int64)
    word = tl.program_id(1) * WORDS + tl.arange(0, WORDS)
    place = tl.load(places + sequence).to(tl.int64)
    found = tl.load(rows + place * width + word, mask=word < width, other=0)
    end = tl.load(offsets + sequence + 1)
    for start in range(tl.load(offsets + sequence), end, TOKENS):
        index = start + tl.arange(0, TOKENS)
        token = tl.load(flipped + index, mask=index < end, other=0)
        bit = tl.where(index < end, 1 << (token & 31), 0)
        # Each token comes once, so the bits of a word add up without a carry.
        turned = tl.where((token >> 5)[None, :] == word[:, None], bit[None, :], 0)
        found = found ^ tl.sum(turned, axis=1)
    tl.store(bitmask + sequence * width + word, found, mask=word < width)


def patched(rows: Tensor, places: Tensor, offsets: Tensor, flipped: Tensor) -> Tensor:
    """Copies of rows with some bits turned over, int32 of shape (sequences, words).

    Args:
        rows: int32 of shape (rows, words), contiguous.
        places: Which row each sequence has, int32 of shape (sequences,).
        offsets: Where the tokens of each begin in `flipped`, int32 of shape (sequences + 1,).
        flipped: The tokens whose bits are turned over, int32; each at most once in a sequence.
    """
    width = rows.shape[1]
    bitmask = rows.new_empty((places.shape[0], width))
    if bitmask.numel():
        grid = (places.shape[0], triton.cdiv(width, _WORDS))
        _patch[grid](rows, places, offsets, flipped, bitmask, width, WORDS=_WORDS, TOKENS=_TOKENS)
    return bitmask


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
