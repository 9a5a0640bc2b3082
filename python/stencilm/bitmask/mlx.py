"""Masking logits in MLX arrays with MLX operations, so on whichever device it computes.

One idea: an MLX array is written by giving it a new value, as `array[...] = value` does. All who
hold this very array see it; what was sliced or computed from it before keeps the old value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx


def close(values: Any, words: Any, rows: Sequence[int] | None, width: int) -> None:
    """Set the logits whose bit is 0, and those from `width` on, to minus infinity.

    Args:
        values: Floating point, [tokens] or [batch, tokens].
        words: int32, [words] or [batch, words], an MLX or a NumPy array.
        rows: The rows to close, in both; None for all rows.
        width: How many logits the bits decide.
    """
    if rows is not None and not rows:
        return
    bits = mx.atleast_2d(mx.array(words))
    if rows is not None:
        bits = bits[mx.array(rows)]
    # The shift drags the sign bit along; `& 1` drops it again.
    bits = (bits[..., None] >> mx.arange(32, dtype=mx.int32)) & 1
    allowed = bits.reshape(bits.shape[0], -1)[:, :width] == 1
    padding = values.shape[-1] - width
    allowed = mx.pad(allowed, [(0, 0), (0, padding)], constant_values=False)
    closed = mx.array(-float("inf"), dtype=values.dtype)
    if values.ndim == 1:
        values[...] = mx.where(allowed[0], values, closed)
    else:
        chosen = slice(None) if rows is None else mx.array(rows)
        values[chosen] = mx.where(allowed, values[chosen], closed)
