"""JSON text to Python values, whatever its numbers are.

`json.loads` refuses integers of more than 4,300 digits (`sys.set_int_max_str_digits`) and reads a
number beyond the range of a float as infinity. A grammar bounds neither, so both are read here.
"""

from __future__ import annotations

import decimal
import json
import math
from typing import Any

_CHUNK = 600  # digits; the limit cannot be set below 640
_BITS = 2_000  # of integers with fewer digits than that limit can be


def read_json(text: str) -> Any:
    """The value of a JSON text, as `json.loads` reads it, except for large numbers.

    An integer may have any number of digits. A number with a point or an exponent that is beyond
    the range of a float is a `decimal.Decimal`. Raises ValueError for text that is not JSON, and
    for an exponent of more than 18 digits.
    """
    return json.loads(text, parse_int=_read_int, parse_float=_read_float)


def json_ready(value: Any) -> Any:
    """A value of `read_json` as `json.dumps` takes it.

    An integer of very many digits, and a Decimal, are a str of their digits.
    """
    match value:
        case dict():
            return {key: json_ready(member) for key, member in value.items()}
        case list():
            return [json_ready(element) for element in value]
        case decimal.Decimal():
            return str(value)
        case int() if value.bit_length() > _BITS:
            return f"{decimal.Decimal(value):f}"
    return value


def _read_int(text: str) -> int:
    if len(text) <= _CHUNK:
        return int(text)
    digits = text.removeprefix("-")
    value = 0
    for start in range(0, len(digits), _CHUNK):
        chunk = digits[start : start + _CHUNK]
        value = value * 10 ** len(chunk) + int(chunk)
    return -value if text.startswith("-") else value


def _read_float(text: str) -> float | decimal.Decimal:
    value = float(text)
    if math.isfinite(value):
        return value
    try:
        return decimal.Decimal(text)
    except decimal.InvalidOperation:
        raise ValueError(f"the number {text[:60]} has too large an exponent") from None
