"""Bitmasks on a GPU: one Triton kernel masks logits, and another patches rows.

Imported only if torch has tensors on a GPU and Triton is available.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import triton
import triton.language as tl

if TYPE_CHECKING:
    from torch import Tensor

# The words of a bitmask that one program of the masking kernel handles; the words that the patching
# kernel handles at a time; and the flipped tokens that it handles at a time.
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
    # Many blocks of a mask are entirely allowed or entirely masked. For the others, rewriting all
    # logits of the block is faster than writing only the masked ones.
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
    # The words must be written before their bits are flipped.
    tl.debug_barrier()
    for first in range(start, end, TOKENS):
        index = first + tl.arange(0, TOKENS)
        token = tl.load(flipped + index, mask=index < end, other=0)
        tl.atomic_xor(mine + (token >> 5), 1 << (token & 31), mask=index < end)


def patched(rows: Tensor, sent: Tensor, count: int) -> Tensor:
    """Copies of rows with some bits flipped, int32 of shape (count, words).

    Args:
        rows: int32 of shape (rows, words), contiguous.
        sent: int32, one after the other: the row of each sequence, the offsets of the tokens of
            each (`count + 1` numbers), and the tokens whose bits are flipped, each at most once in
            a sequence.
        count: The number of sequences.
    """
    width = rows.shape[1]
    bitmask = rows.new_empty((count, width))
    if count:
        _patch[(count,)](rows, sent, bitmask, count, width, WORDS=_WORDS_COPIED, TOKENS=_TOKENS)
    return bitmask


def takes(logits: Tensor, bitmask: Tensor) -> bool:
    """Whether the kernel can write these: the elements of a row must be contiguous."""
    return bool(logits.stride(-1) == 1 and bitmask.stride(-1) == 1)


def close(
    logits: Tensor,
    bitmask: Tensor,
    targets: Tensor | None,
    width: int,
    *,
    is_spread: bool = True,
) -> None:
    """Mask in logits (batch, tokens) all tokens that the first `width` bits of a bitmask exclude.

    Logits beyond `width` are masked, too. All arguments were checked before.

    Args:
        logits: The elements of a row must be contiguous.
        bitmask: int32 of shape (rows, words), with contiguous rows, too.
        targets: The rows of the logits to mask, integers on their device; None for all.
        width: The number of logits that the bits decide.
        is_spread: Whether a row of the logits is masked by the row of the bitmask with the same
            number; otherwise by the next one in turn.
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
