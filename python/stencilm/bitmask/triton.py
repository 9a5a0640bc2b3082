"""Bitmasks on a GPU: one Triton kernel masks logits, and another patches rows.

Imported only if torch has tensors on a GPU and Triton is available.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import triton
import triton.language as tl

if TYPE_CHECKING:
    from torch import Tensor

# So many words of a bitmask are looked at by one program that closes logits, and at a time by one
# that patches a row; so many flipped tokens at a time by the latter.
_WORDS_CLOSED, _WORDS_COPIED, _TOKENS = 64, 1024, 128


@triton.jit  # type: ignore[untyped-decorator]
def _close(  # type: ignore[no-untyped-def]
    logits,
    bitmask,
    targets,
    width,
    tokens,
    logits_stride,
    words_stride,
    HAS_TARGETS: tl.constexpr,
    IS_SPREAD: tl.constexpr,
    WORDS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(targets + row).to(tl.int64) if HAS_TARGETS else row
    first = tl.program_id(1) * WORDS
    at = first + tl.arange(0, WORDS)
    words = bitmask + (target if IS_SPREAD else row) * words_stride
    word = tl.load(words + at, mask=at * 32 < width, other=0)
    token = at[:, None] * 32 + tl.arange(0, 32)[None, :]
    logit = logits + target * logits_stride + token
    closed = tl.full([WORDS, 32], float("-inf"), tl.float32).to(logits.dtype.element_ty)
    is_whole = (first + WORDS) * 32 <= tl.minimum(width, tokens)
    least, most = tl.min(word), tl.max(word)
    # Much of a mask is all open or all closed, and else it is quicker to write all logits of a
    # block again than those here and there that are closed.
    if is_whole and least == 0 and most == 0:
        tl.store(logit, closed)
    elif not (is_whole and least == -1 and most == -1):
        is_closed = ((word[:, None] >> tl.arange(0, 32)[None, :]) & 1) == 0
        is_closed = is_closed | (token >= width)
        given = tl.load(logit, mask=token < tokens, other=0.0)
        tl.store(logit, tl.where(is_closed, closed, given), mask=token < tokens)


@triton.jit  # type: ignore[untyped-decorator]
def _patch(  # type: ignore[no-untyped-def]
    rows,
    sent,
    bitmask,
    count,
    width,
    WORDS: tl.constexpr,
    TOKENS: tl.constexpr,
):
    sequence = tl.program_id(0).to(tl.int64)
    row = rows + tl.load(sent + sequence).to(tl.int64) * width
    offsets = sent + count + sequence
    start, end = tl.load(offsets), tl.load(offsets + 1)
    flipped = sent + 2 * count + 1
    mine = bitmask + sequence * width
    for first in range(0, width, WORDS):
        word = first + tl.arange(0, WORDS)
        tl.store(mine + word, tl.load(row + word, mask=word < width), mask=word < width)
    # The words are there before their bits are turned over.
    tl.debug_barrier()
    for first in range(start, end, TOKENS):
        index = first + tl.arange(0, TOKENS)
        token = tl.load(flipped + index, mask=index < end, other=0)
        tl.atomic_xor(mine + (token >> 5), 1 << (token & 31), mask=index < end)


def patched(rows: Tensor, sent: Tensor, count: int) -> Tensor:
    """Copies of rows with some bits turned over, int32 of shape (count, words).

    Args:
        rows: int32 of shape (rows, words), contiguous.
        sent: int32, one after the other: the row of each sequence, where the tokens of each begin
            (`count + 1` numbers), and the tokens whose bits are turned over, each at most once in a
            sequence.
        count: How many sequences there are.
    """
    width = rows.shape[1]
    bitmask = rows.new_empty((count, width))
    if count:
        _patch[(count,)](rows, sent, bitmask, count, width, WORDS=_WORDS_COPIED, TOKENS=_TOKENS)
    return bitmask


def takes(logits: Tensor, bitmask: Tensor) -> bool:
    """Whether the kernel can write these: the elements of a row must lie next to each other."""
    return bool(logits.stride(-1) == 1 and bitmask.stride(-1) == 1)


def close(
    logits: Tensor,
    bitmask: Tensor,
    targets: Tensor | None,
    width: int,
    *,
    is_spread: bool = True,
) -> None:
    """Close in logits (batch, tokens) what the first `width` bits of a bitmask do not allow.

    Logits past `width` are closed too. All that is needed was checked before.

    Args:
        logits: With the elements of a row next to each other.
        bitmask: int32 of shape (rows, words), the same.
        targets: The rows of the logits that are closed, integers on their device; all where None.
        width: How many logits the bits decide.
        is_spread: Whether a row of the logits is closed by the row of the bitmask with the same
            number; else by the next one in turn.
    """
    tokens = logits.shape[1]
    count = logits.shape[0] if targets is None else targets.shape[0]
    if count == 0:
        return
    _close[(count, triton.cdiv(tokens, 32 * _WORDS_CLOSED))](
        logits,
        bitmask,
        bitmask if targets is None else targets,
        width,
        tokens,
        logits.stride(0),
        bitmask.stride(0),
        HAS_TARGETS=targets is not None,
        IS_SPREAD=is_spread,
        WORDS=_WORDS_CLOSED,
    )
