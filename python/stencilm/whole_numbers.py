"""Whole numbers that callers give, checked: one sentence with the value and the way out."""

from __future__ import annotations

import operator
from typing import Any, TypeGuard

# What the core counts with.
MOST = 2**63 - 1


def whole_number(
    name: str, value: Any, *, least: int, most: int | None = MOST, otherwise: str = ""
) -> int:
    """The value as an int, if it is one from `least` to `most`; integers of numpy are.

    `otherwise` names what else may be given, such as " or None".

    Raises:
        TypeError: It is no integer, as True is none.
        ValueError: It is out of range.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):  # as a number True is 1
        raise TypeError(f"{name} is {value!r:.80}, but must be an int{otherwise}") from None
    if number < least or (most is not None and number > most):
        is_open = most is None or (most == MOST and number < least)
        bounds = f"at least {least}" if is_open else f"from {least} to {most}"
        raise ValueError(f"{name} is {shown(number)}, but must be {bounds}{otherwise}")
    return number


def shown(value: Any) -> str:
    """A value that should be a number as a message shows it: Python writes not all of them."""
    if isinstance(value, int) and abs(value) >= 2**64:
        return "beyond 64 bits"
    return f"{value!r:.80}"


def is_whole(value: object, least: int) -> TypeGuard[int]:
    """Whether it is an int of Python from `least` up, which is what providers can be sent."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
