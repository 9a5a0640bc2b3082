"""Arguments of both packages, checked: a wrong one is reported with its value and its place.

The originals hand their arguments to C++ and Rust, which refuse what is of another type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from stencilm.shown import shown_value
from stencilm.whole_numbers import as_whole, whole_number


def check_kinds(name: str, values: Any, kinds: type | tuple[type, ...], wanted: str) -> list[Any]:
    """What an argument holds, as a list.

    Raises:
        TypeError: It cannot be gone through, or one of its values is of another kind: with the
            value, its place and what is `wanted`.
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
    # A text holds texts, and bytes hold integers; a dict and a set have no order that is meant.
    if isinstance(values, (str, bytes, bytearray, memoryview, Mapping, Set)):
        raise TypeError(f"{name} is {shown_value(values):.60}, but must be a list of {wanted}")
    return held


def check_mapping(name: str, value: Any, kind: type, wanted: str) -> dict[Any, int]:
    """The integers that an argument has by keys of a kind, which are what is `wanted`.

    Raises:
        TypeError: It is no mapping, or a key or a value is of another kind: with the two of them.
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
    """The integers that an argument holds; raises TypeError for anything else."""
    numbers = []
    for place, value in enumerate(check_kinds(name, values, object, "integers")):
        number = as_whole(value)
        if number is None:
            raise TypeError(f"{name} has {value!r:.60} at {place}, but must hold integers")
        numbers.append(number)
    return numbers


def check_temperatures(temperatures: Any, places: Sequence[int]) -> None:
    """Whether temperatures can be written at these places: other types would round them.

    Raises:
        TypeError: It is no tensor.
        RuntimeError: It is not of float32, of several rows, too short, or not in main memory.
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
    """The rows and words of a bitmask; raises TypeError and ValueError for what is no number."""
    rows = whole_number("batch_size", batch_size, least=0)
    return rows, -(-whole_number("vocab_size", vocab_size, least=0) // 32)
