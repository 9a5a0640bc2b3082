"""Convert JSON texts to Python values and back, whatever numbers they hold.

`json.loads` refuses integers of more than 4,300 digits (`sys.set_int_max_str_digits`), reads
numbers beyond the range of a float as infinity, and accepts `NaN` and `Infinity`, which are not
JSON. Grammars do not bound numbers and never allow these words, so texts are read here.
"""

from __future__ import annotations

import decimal
import json
import math
from functools import cache
from typing import Any, NoReturn

_CHUNK = 600  # digits; the limit cannot be set lower than 640
_BITS = 2_000  # digits; a part this short is always within that limit
_EXACTLY = decimal.Context(
    prec=decimal.MAX_PREC,
    Emax=decimal.MAX_EMAX,
    Emin=decimal.MIN_EMIN,
    traps=[decimal.Inexact],
)


class NumberTooLarge(ValueError):
    """A JSON number with an exponent that no Python number can have."""


def read_json(text: str, *, strict: bool = True, exact: bool = False) -> Any:
    """The value of a JSON text, as `json.loads` reads it, except for large numbers.

    An integer may have any number of digits. A number with a point or an exponent that is beyond
    the range of a float is a `decimal.Decimal`. Raises ValueError for text that is not JSON, and
    NumberTooLarge for an exponent of more than 18 digits. Where not `strict`, strings may hold
    line breaks and other control characters as they are. Where `exact`, a number that no float
    holds is a Decimal; `rounded` makes of it what there would be otherwise.
    """
    return json.loads(
        text,
        parse_int=_read_int,
        parse_float=_read_exactly if exact else _read_float,
        parse_constant=_no_constant,
        strict=strict,
    )


def rounded(value: Any) -> Any:
    """Replace numbers that were read exactly by the floats that they round to."""
    match value:
        case dict():
            return {key: rounded(member) for key, member in value.items()}
        case list():
            return [rounded(element) for element in value]
        case decimal.Decimal():
            number = float(value)
            return number if math.isfinite(number) else value
    return value


def read_json_exactly(text: str) -> Any:
    """Read a JSON text so that `write_json` writes an equivalent one.

    Numbers with a point or an exponent that no float would be written as become Decimals. Also
    raises ValueError for a name that occurs twice in an object, of which a dict would keep only the
    last.
    """
    return json.loads(
        text,
        parse_int=_read_int,
        parse_float=_read_exactly,
        parse_constant=_no_constant,
        object_pairs_hook=_members,
    )


def plain_json(text: str) -> Any:
    """Read a JSON text as a value that any library can write again, such as an HTTP client.

    Raises ValueError if there is none: for integers and exponents that Python's own writer cannot
    write.
    """
    return json.loads(text, parse_float=_finite, parse_constant=_no_constant)


def write_json(value: Any, *, allow_nan: bool = True) -> str:
    """Write a value that was read here as JSON, with all digits of its numbers.

    Raises TypeError or ValueError for values without JSON form. NaN and infinity are allowed only
    on request, as in `json.dumps`.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=allow_nan)
    except (TypeError, ValueError):  # a Decimal, or an integer of more than 4,300 digits
        return _written(value, allow_nan, frozenset())


def _written(value: Any, allow_nan: bool, around: frozenset[int]) -> str:
    """The text of a value within containers, whose ids detect cycles."""
    if isinstance(value, (dict, list, tuple)):
        if id(value) in around:
            raise ValueError("Circular reference detected")  # the message of `json.dumps`
        around |= {id(value)}
    match value:
        case dict():
            members = (
                f"{_written_name(name)}: {_written(member, allow_nan, around)}"
                for name, member in value.items()
            )
            return f"{{{', '.join(members)}}}"
        case list() | tuple():
            return f"[{', '.join(_written(element, allow_nan, around) for element in value)}]"
        case decimal.Decimal():
            if not value.is_finite() and not allow_nan:
                raise ValueError(f"{value} is no JSON number")
            return str(value)
        case int() if value.bit_length() > _BITS:
            return _digits(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=allow_nan)


def _written_name(name: Any) -> str:
    if isinstance(name, str):
        return json.dumps(name, ensure_ascii=False)
    if isinstance(name, int) and name.bit_length() > _BITS:
        return f'"{_digits(name)}"'
    # The names that `json.dumps` makes of numbers and None; it refuses other keys, such as tuples.
    return json.dumps({name: 0}).removeprefix("{").removesuffix(": 0}")


def finite_json(value: Any) -> Any:
    """Replace each NaN and infinity in a type's output by null, as pydantic writes JSON.

    No text of the grammar holds them, but defaults, validators and computed fields may.
    """
    match value:
        case dict():
            return {key: finite_json(member) for key, member in value.items()}
        case list() | tuple():
            return [finite_json(element) for element in value]
        case float() if not math.isfinite(value):
            return None
    return value


def json_ready(value: Any) -> Any:
    """Make a value of `read_json` acceptable to `json.dumps`.

    Decimals, and integers with too many digits for Python, become strings of their digits.
    """
    match value:
        case dict():
            return {key: json_ready(member) for key, member in value.items()}
        case list():
            return [json_ready(element) for element in value]
        case decimal.Decimal():
            return str(value)
        case int() if value.bit_length() > _BITS:
            return _digits(value)
    return value


def _read_int(text: str) -> int:
    """The integer of these digits. Neighbours are joined pairwise, so few factors are long."""
    if len(text) <= _CHUNK:
        return int(text)
    digits = text.removeprefix("-")
    first = len(digits) % _CHUNK
    parts = [int(digits[at : at + _CHUNK]) for at in range(first, len(digits), _CHUNK)]
    if first:
        parts.insert(0, int(digits[:first]))
    step = 10**_CHUNK
    while len(parts) > 1:
        odd = len(parts) % 2
        pairs = zip(parts[odd::2], parts[odd + 1 :: 2], strict=True)
        parts = parts[:odd] + [upper * step + lower for upper, lower in pairs]
        step *= step
    return -parts[0] if text.startswith("-") else parts[0]


def _digits(value: int) -> str:
    """The digits of an integer, also beyond the 4,300 that Python itself writes.

    As in CPython's `_pylong`, halves become decimals, which multiply faster than integers.
    """

    def exact(part: int, bits: int) -> decimal.Decimal:
        if bits <= _BITS:
            return decimal.Decimal(part)
        half = bits // 2
        upper = part >> half
        return exact(upper, bits - half) * power(half) + exact(part - (upper << half), half)

    @cache
    def power(bits: int) -> decimal.Decimal:
        return decimal.Decimal(2) ** bits

    with decimal.localcontext(_EXACTLY):
        return f"{exact(value, value.bit_length()):f}"


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name stands twice in an object")
    return members


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def _read_float(text: str) -> float | decimal.Decimal:
    value = float(text)
    return value if math.isfinite(value) else _read_decimal(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"no float is {text[:60]}")
    return value


def _read_exactly(text: str) -> float | decimal.Decimal:
    value, exact = float(text), _read_decimal(text)
    return value if decimal.Decimal(repr(value)) == exact else exact


def _read_decimal(text: str) -> decimal.Decimal:
    try:
        return decimal.Decimal(text)
    except decimal.InvalidOperation:
        raise NumberTooLarge(f"the number {text[:60]} has too large an exponent") from None
