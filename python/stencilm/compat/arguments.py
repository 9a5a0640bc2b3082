"""Checks of arguments for both packages: an error shows the value and its position.

The originals pass their arguments to C++ and Rust, which refuse values of other types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from stencilm.shown import shown_value
from stencilm.whole_numbers import as_whole, whole_number


def check_kinds(name: str, values: Any, kinds: type | tuple[type, ...], wanted: str) -> list[Any]:
    """The elements of an argument, as a list.

    Raises:
        TypeError: It is not iterable, or one of its values is of another kind; shows the value, its
            position and `wanted`.
    """
    try:
        held = list(values)
    except TypeError:
        raise TypeError(
            f"{name} is {shown_value(values):.60}, but must be a list of {wanted}"
        ) from None
    for place, value in enumerate(held):
        if not isinstance(value, kinds):
            raise TypeError(f"{name} has {value!r:.60} at {place}, but must hold {wanted}")
    # Texts and bytes are iterable, too, and the order of a dict or a set is not meant as one.
    if isinstance(values, (str, bytes, bytearray, memoryview, Mapping, Set)):
        raise TypeError(f"{name} is {shown_value(values):.60}, but must be a list of {wanted}")
    return held


def check_mapping(name: str, value: Any, kind: type, wanted: str) -> dict[Any, int]:
    """The integers of a mapping with keys of one kind; `wanted` describes the mapping.

    Raises:
        TypeError: It is not a mapping, or a key or a value is of another kind; shows both.
    """
    if not isinstance(value, Mapping):
        raise TypeError(
            f"{name} is {shown_value(value):.60}, but must be a dict of {wanted} and their ids"
        )
    numbers = {}
    for key, held in value.items():
        number = as_whole(held)
        if not isinstance(key, kind) or number is None:
            raise TypeError(
                f"{name} has {key!r:.60}: {held!r:.60}, but must hold {wanted} and their ids"
            )
        numbers[key] = number
    return numbers


def whole_numbers(name: str, values: Any) -> list[int]:
    """The integers of an argument; raises TypeError for anything else."""
    numbers = []
    for place, value in enumerate(check_kinds(name, values, object, "integers")):
        number = as_whole(value)
        if number is None:
            raise TypeError(f"{name} has {value!r:.60} at {place}, but must hold integers")
        numbers.append(number)
    return numbers


def check_temperatures(temperatures: Any, places: Sequence[int]) -> None:
    """Check that temperatures can be written at these positions: other types would round them.

    Raises:
        TypeError: It is not a tensor.
        RuntimeError: It is not float32, has several rows, is too short, or is not in main memory.
    """
    shape, dtype = getattr(temperatures, "shape", None), getattr(temperatures, "dtype", None)
    if shape is None or dtype is None:
        raise TypeError(
            f"temperatures is {shown_value(temperatures):.60}, "
            f"but must be a float32 tensor of one row"
        )
    device = str(getattr(temperatures, "device", "cpu"))
    if str(dtype) not in ("torch.float32", "float32") or device != "cpu":
        raise RuntimeError(
            f"temperatures has dtype {dtype} on {device}, but must be float32 in main memory"
        )
    width = shape[0] if len(shape) == 1 else -1
    if any(not 0 <= place < width for place in places):
        raise RuntimeError(
            f"temperatures has shape {tuple(shape)}, but must be one row with a place for each of "
            f"{list(places)}"
        )


def bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    """The rows and words of a bitmask; raises TypeError and ValueError for invalid numbers."""
    rows = whole_number("batch_size", batch_size, least=0)
    return rows, -(-whole_number("vocab_size", vocab_size, least=0) // 32)
