"""The values of an `enum.Flag`: its members and their combinations."""

from __future__ import annotations

from enum import Flag
from typing import Any

_MOST_BITS = 10


def flags_of(schema: Any) -> list[int]:
    """The numbers that are read as flags: combinations of members, and 0.

    Returns none if the type is another enumeration, or has too many members to list all numbers.

    Args:
        schema: pydantic's core schema of an enumeration.
    """
    cls = schema["cls"]
    members = [member.value for member in schema["members"]]
    if not issubclass(cls, Flag) or any(value < 0 for value in members):
        return []
    mask = 0
    for value in members:
        mask |= value
    if mask.bit_count() > _MOST_BITS:
        return []
    values, value = [0], 0
    while value != mask:
        value = (value - mask) & mask  # the next number whose bits are a subset of these
        values.append(value)
    return [value for value in values if _is_read(cls, value)]


def _is_read(cls: type[Flag], value: int) -> bool:
    try:
        return bool(cls(value).value == value)
    except ValueError:
        return False
