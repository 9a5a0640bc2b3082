"""Mask logits in MLX arrays with MLX operations, on the device that MLX chooses.

One idea: assigning to an MLX array, as in `array[...] = value`, gives it a new value. Everyone who
holds this array sees the change; arrays that were sliced or computed from it earlier keep the old
value.
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
        rows: The rows to mask, in both; None for all rows.
        width: The number of logits that the bits decide.
    """
    if rows is not None and not rows:
        return
    bits = mx.atleast_2d(mx.array(words))
    if rows is not None:
        bits = bits[mx.array(rows)]
    # The shift extends the sign bit; `& 1` drops the copies.
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
