"""Regular expressions of bounded decimals, with one spelling for each: `1.5`, not `1.50`.

One idea: two decimals are ordered by the first digit in which they differ, so a bound becomes a
choice of that digit. The patterns of bounds also match other spellings; intersect them with
`_ONE_WAY`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from stencilm.grammars.integer_patterns import stepped

_FRACTION = r"(?:\.[0-9]+)?"
_UNSIGNED = f"[0-9]+{_FRACTION}"
_ONE_WAY = r"^(?:0|-?(?:[1-9][0-9]*(?:\.[0-9]*[1-9])?|0\.[0-9]*[1-9]))$"


def decimal_patterns(bounds: Mapping[str, Any]) -> list[str]:
    """Patterns whose intersection is the decimals that satisfy `ge`, `gt`, `le` and `lt`."""
    return [_ONE_WAY, *(_bounded(name, Decimal(str(value))) for name, value in bounds.items())]


def counted_decimals(schema: Mapping[str, Any]) -> str:
    """Decimals within `max_digits` and `decimal_places`; trailing zeros are not counted."""
    digits, places = schema.get("max_digits"), schema.get("decimal_places")

    def fraction(most: int) -> str:
        return rf"(?:\.[0-9]{{1,{most}}}0*)?" if most else r"(?:\.0+)?"

    if digits is None:
        most = r"(?:\.[0-9]+)?" if places is None else fraction(places)
        return f"-?(?:0|[1-9][0-9]*){most}"
    if places is not None:
        whole = digits - places
        if whole <= 0:
            # Here pydantic counts the zero before the point as a digit.
            return rf"-?0\.[0-9]{{1,{digits}}}"
        return f"-?(?:0|[1-9][0-9]{{0,{whole - 1}}}){fraction(places)}"
    alternatives = [f"0{fraction(digits)}"]
    alternatives += [
        f"[1-9][0-9]{{{whole - 1}}}{fraction(digits - whole)}" for whole in range(1, digits + 1)
    ]
    return f"-?(?:{'|'.join(alternatives)})"


def signed(positive: list[str], negative: list[str], *, zero: str | None) -> str:
    """A pattern of signed numbers; `zero` is the spelling of zero, if zero is allowed."""
    alternatives = [*positive, *(f"-{alternative}" for alternative in negative)]
    if zero is not None:
        alternatives.append(zero)
    return f"^(?:{'|'.join(alternatives)})$" if alternatives else r"^[^\s\S]$"


def _bounded(name: str, bound: Decimal) -> str:
    is_least, is_allowed = name in ("ge", "gt"), name in ("ge", "le")
    # An upper bound is a lower bound with the signs exchanged.
    least = bound if is_least else -bound
    if least > 0:
        positive, negative = _above(least, is_allowed), []
    elif least.is_infinite():
        positive = negative = [_UNSIGNED]
    else:
        positive = [_UNSIGNED] if least or is_allowed else _above(least, is_allowed)
        negative = _below(-least, is_allowed) if least else []
    fits_zero = least < 0 or (least == 0 and is_allowed)
    alternatives = (positive, negative) if is_least else (negative, positive)
    return signed(*alternatives, zero="0" if fits_zero else None)


def _above(bound: Decimal, is_allowed: bool) -> list[str]:
    """Decimals above a nonnegative one."""
    if bound.is_infinite():
        return []
    whole, fraction = _digits(bound)
    alternatives = [rf"[1-9][0-9]{{{len(whole)},}}{_FRACTION}"]
    alternatives += _by_first_other_digit(whole, fraction, lambda digit: range(digit + 1, 10))
    alternatives.append(rf"{whole}\.{fraction}[0-9]+")
    return alternatives + ([_text(whole, fraction)] if is_allowed else [])


def _below(bound: Decimal, is_allowed: bool) -> list[str]:
    """Positive decimals below a positive one."""
    whole, fraction = _digits(bound)
    alternatives = [f"[0-9]{{1,{len(whole) - 1}}}{_FRACTION}"] if len(whole) > 1 else []
    alternatives += _by_first_other_digit(whole, fraction, range)
    alternatives += [_text(whole, fraction[:length]) for length in range(len(fraction))]
    return alternatives + ([_text(whole, fraction)] if is_allowed else [])


def _by_first_other_digit(whole: str, fraction: str, others: Callable[[int], range]) -> list[str]:
    in_whole = [
        f"{step.beginning}[0-9]{{{len(whole) - len(step.before) - 1}}}{_FRACTION}"
        for step in stepped(whole, others)
    ]
    return in_whole + [rf"{whole}\.{step.beginning}[0-9]*" for step in stepped(fraction, others)]


def _digits(number: Decimal) -> tuple[str, str]:
    whole, _, fraction = f"{number.copy_abs():f}".partition(".")
    return whole.lstrip("0") or "0", fraction.rstrip("0")


def _text(whole: str, fraction: str) -> str:
    return rf"{whole}\.{fraction}" if fraction else whole
