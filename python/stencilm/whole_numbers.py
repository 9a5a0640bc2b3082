"""Numbers from callers, checked: a wrong one gets one sentence with the value and the way out.

What Python's own functions take as an integer, such as those of NumPy and torch, is one here, and
becomes an int. True is not a number, although Python counts with it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from stencilm.shown import shown_value

# What the core counts with.
MOST = 2**63 - 1
_MOST_DIGITS = 20  # of the largest number of 64 bits


def truth(name: str, value: Any) -> bool:
    """The value, if it is True or False; TypeError for what only counts as one, as "no" does."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {shown_value(value):.80}, but must be True or False")
    return value


def whole_number(
    name: str, value: Any, *, least: int, most: int | None = MOST, otherwise: str = ""
) -> int:
    """The value as an int, if it is one from `least` to `most`; integers of numpy are.

    `otherwise` names what else may be given, such as " or None".

    Raises:
        TypeError: It is no integer, as True is none.
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
    """The value as an int, as `whole_number` gives it; whatever else it is, is a ValueError.

    `wish` is what the sentence says it must be, in the place of "at least" the least.
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
    """Whether it is True or False, of Python, NumPy or torch."""
    kind = type(value).__name__
    return (
        isinstance(value, bool)
        or kind in ("bool", "bool_")
        or (kind == "Tensor" and str(value.dtype) == "torch.bool")
    )


def listed(values: Any) -> list[Any] | None:
    """What a list holds, or what else has an order, such as an array of one dimension.

    None for what has none, and for texts and dicts: what these give one by one is not what is
    meant. Bytes are integers, and tokens of vocabularies that have one for each. The core does
    the same.
    """
    if isinstance(values, (str, Mapping, set, frozenset)):
        return None
    if hasattr(values, "tolist"):
        try:
            held = values.tolist()
        except Exception:  # whatever a library raises for a tensor without memory
            return None
        return held if isinstance(held, list) else None
    return list(values) if hasattr(values, "__iter__") else None


def written_number(text: str) -> int | None:
    """The number that a text of digits writes; None for any other text, and beyond 20 digits.

    Python reads more as numbers of a text, such as `1_0`, and refuses some that look like one.
    """
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None


def as_whole(value: Any) -> int | None:
    """The int that a value is; None for what is no integer, as True is none."""
    if is_truth(value):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def as_real(value: Any) -> float | None:
    """The float that a number is, infinity and NaN included; None for what is no number.

    Numbers are ints, floats, and what NumPy and torch have for one of them; an int that no float
    holds is infinite.
    """
    whole = as_whole(value)
    if whole is not None:
        try:
            return float(whole)
        except OverflowError:
            return math.inf if whole > 0 else -math.inf
    if isinstance(value, float):
        return float(value)
    # Texts have no `__float__`, and what is not one number raises in it. So does an array of one
    # since NumPy 2.4, where it was that number before.
    if is_truth(value) or (isinstance(value, np.ndarray) and value.ndim > 0):
        return None
    try:
        return float(value) if hasattr(type(value), "__float__") else None
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None


def plain(value: Any) -> Any:
    """A number as the int or the float that it is; what is none, as it is."""
    if value is None or type(value) in (int, float, bool):
        return value
    whole = as_whole(value)
    if whole is not None:
        return whole
    real = as_real(value)
    return value if real is None else real


def finite(name: str, value: Any) -> float:
    """The value as a float; raises ValueError for what is no number, or none that is finite."""
    real = as_real(value)
    if real is None or not math.isfinite(real):
        raise ValueError(f"{name} is {shown(value)}, but must be a finite number")
    return real


def shown(value: Any) -> str:
    """A value that should be a number as a message shows it: Python writes not all of them."""
    value = plain(value)
    if isinstance(value, int) and abs(value) >= 2**64:
        return "beyond 64 bits"
    return f"{shown_value(value):.80}"
