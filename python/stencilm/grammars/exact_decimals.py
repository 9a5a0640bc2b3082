"""Decimals that keep every digit of a JSON number.

One idea: pydantic reads a JSON number with a point or an exponent as a float, also for a `Decimal`,
but a string of digits as it is written. So where a float does not hold a number, and only a
`Decimal` can be read from its place, the number is handed over as a string.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation

from stencilm.grammars.json_places import CONTAINERS, Places

_TOKEN = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)'
    r"|-?[0-9]++(?P<rest>(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)",
    re.DOTALL,
)
"""A string, or a number with what makes none of the integers of it."""

# No number is read as one of these.
_NO_NUMBERS = CONTAINERS | {"none"}


class _Number:
    """A number of a text that no float holds, and what is read from its place."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_decimal = False
        self.is_other = False

    def may_be(self, kind: str) -> None:
        if kind == "decimal":
            self.is_decimal = True
        elif kind not in _NO_NUMBERS and not (kind == "int" and self._has_fraction()):
            self.is_other = True

    def _has_fraction(self) -> bool:
        try:
            number = Decimal(self.text)
        except InvalidOperation:  # no Decimal has such an exponent
            return True
        return number.adjusted() < 0 or number != number.to_integral_value()

    def as_string(self) -> str:
        # Without zeros at its end, which pydantic would count as digits.
        number, exponent, power = re.split("([eE]|$)", self.text, maxsplit=1)
        if "." in number:
            number = number.rstrip("0").removesuffix(".")
        return f'"{number}{exponent}{power}"'


def with_decimals_as_strings(places: Places, text: str) -> str:
    """The text with strings where numbers would lose digits of a Decimal.

    Functions of the user's that look at a value before its type does are given floats, as by
    pydantic, and so are unions in which a number may also be something else than a Decimal.
    """
    if all(not one["rest"] or _is_float(one[0]) for one in _TOKEN.finditer(text)):
        return text
    numbers: list[_Number | None] = []

    def read_number(written: str) -> _Number | None:
        numbers.append(None if _is_float(written) else _Number(written))
        return numbers[-1]

    try:
        value = json.loads(text, parse_float=read_number, parse_int=lambda written: None)
    except (ValueError, RecursionError):
        return text  # pydantic says what is wrong with it
    for place in places.of(value, _Number):
        if isinstance(place.value, _Number):
            place.value.may_be(place.schema["type"])
    in_order = iter(numbers)

    def written(token: re.Match[str]) -> str:
        number = next(in_order) if token["rest"] else None
        if number is None or not number.is_decimal or number.is_other:
            return token[0]
        return number.as_string()

    return _TOKEN.sub(written, text)


def _is_float(written: str) -> bool:
    """Whether a float holds a number of JSON, with each of its digits."""
    try:
        return Decimal(repr(float(written))) == Decimal(written)
    except InvalidOperation:  # no Decimal has such an exponent
        return False
