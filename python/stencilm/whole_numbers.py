"""Checks of numbers from callers: an error shows the value and the way out.

Values that Python's own functions accept as an integer, such as those of NumPy and torch, are
accepted here and become an int. True is not a number, although Python counts it as one.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from stencilm.shown import shown_value

# The largest number that the core counts to.
MOST = 2**63 - 1
_MOST_DIGITS = 20  # of the largest 64-bit number


def truth(name: str, value: Any) -> bool:
    """The value, if it is True or False.

    TypeError for other values with a truth value, such as "no".
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {shown_value(value):.80}, but must be True or False")
    return value


def whole_number(
    name: str, value: Any, *, least: int, most: int | None = MOST, otherwise: str = ""
) -> int:
    """The value as an int, if it is from `least` to `most`; NumPy's integers are accepted.

    `otherwise` names alternatives for the message, such as " or None".

    Raises:
        TypeError: It is not an integer; True is not one.
        ValueError: It is out of range.
    """
    number = as_whole(value)
    if number is None:
        raise TypeError(f"{name} is {shown_value(value):.80}, but must be an int{otherwise}")
    if number < least or (most is not None and number > most):
        is_open = most is None or (most == MOST and number < least)
        bounds = f"at least {least}" if is_open else f"from {least} to {most}"
        raise ValueError(f"{name} is {shown(number)}, but must be {bounds}{otherwise}")
    return number


def count(
    name: str, value: Any, *, least: int, most: int = MOST, wish: str = "", otherwise: str = ""
) -> int:
    """The value as an int, as in `whole_number`, but any error is a ValueError.

    `wish` replaces "at least ..." in the message.
    """
    number = as_whole(value)
    wish = wish or f"at least {least}"
    if number is None:
        wanted = wish if "int" in wish else f"{wish} and an integer"
        raise ValueError(f"{name} is {shown(value)}, but must be {wanted}{otherwise}")
    if number < least:
        raise ValueError(f"{name} is {shown(number)}, but must be {wish}{otherwise}")
    if number > most:
        raise ValueError(
            f"{name} is {shown(number)}, but must be from {least} to {most}{otherwise}"
        )
    return number


def is_truth(value: Any) -> bool:
    """Whether it is a bool of Python, NumPy or torch."""
    kind = type(value).__name__
    return (
        isinstance(value, bool)
        or kind in ("bool", "bool_")
        or (kind == "Tensor" and str(value.dtype) == "torch.bool")
    )


def listed(values: Any) -> list[Any] | None:
    """The elements of a list, or of another sequence, such as a one-dimensional array.

    None for values without an order, and for texts and dicts, whose elements are not what the
    caller means. Bytes are integers, and are tokens of byte-level vocabularies. The core does the
    same.
    """
    if isinstance(values, (str, Mapping, set, frozenset)):
        return None
    if hasattr(values, "tolist"):
        try:
            held = values.tolist()
        except Exception:  # a tensor without memory may raise anything
            return None
        return held if isinstance(held, list) else None
    return list(values) if hasattr(values, "__iter__") else None


def written_number(text: str) -> int | None:
    """The number that a text of digits writes; None for any other text, and beyond 20 digits.

    Python reads more texts as numbers, such as `1_0`, and refuses some that look like one.
    """
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None


def as_whole(value: Any) -> int | None:
    """The value as an int; None if it is not an integer; True is not one."""
    if is_truth(value):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def as_real(value: Any) -> float | None:
    """The value as a float, including infinity and NaN; None if it is not a number.

    Numbers are ints, floats, and single numbers of NumPy and torch. An int beyond the range of a
    float becomes infinity.
    """
    whole = as_whole(value)
    if whole is not None:
        try:
            return float(whole)
        except OverflowError:
            return math.inf if whole > 0 else -math.inf
    if isinstance(value, float):
        return float(value)
    # Texts have no `__float__`, and it raises for anything but a single number. Since NumPy 2.4 it
    # also raises for an array of one number, which was accepted before.
    if is_truth(value) or (isinstance(value, np.ndarray) and value.ndim > 0):
        return None
    try:
        return float(value) if hasattr(type(value), "__float__") else None
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None


def plain(value: Any) -> Any:
    """A number as an int or a float; any other value unchanged."""
    if value is None or type(value) in (int, float, bool):
        return value
    whole = as_whole(value)
    if whole is not None:
        return whole
    real = as_real(value)
    return value if real is None else real


def finite(name: str, value: Any) -> float:
    """The value as a float; raises ValueError if it is not a finite number."""
    real = as_real(value)
    if real is None or not math.isfinite(real):
        raise ValueError(f"{name} is {shown(value)}, but must be a finite number")
    return real


def shown(value: Any) -> str:
    """A value that should be a number, for a message: Python cannot write all of them."""
    value = plain(value)
    if isinstance(value, int) and abs(value) >= 2**64:
        return "beyond 64 bits"
    return f"{shown_value(value):.80}"
