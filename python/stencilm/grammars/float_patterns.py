"""Regular expressions of bounded floats, with one spelling for each: Python's own, such as `1.0`.

One idea: different numbers of at most 15 digits are different floats. So longer texts are left out,
although some floats need 17 digits, and a bound becomes the nearest 15-digit number that satisfies
it. Two such numbers are ordered by their exponents, then by the first digit in which they differ.
The patterns of bounds also match other spellings; intersect them with `_ONE_WAY`.

The parts of a complex number may have any spelling of a finite float.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

from stencilm.grammars.decimal_patterns import signed
from stencilm.grammars.integer_patterns import stepped, whole_numbers

_FLOAT = sys.float_info
_EXACTLY = Context(prec=_FLOAT.dig, rounding=ROUND_FLOOR)
# Between these exponents Python writes a float without an exponent.
_PLAIN_FROM, _PLAIN_TO = -4, 15


def float_patterns(bounds: Mapping[str, Any]) -> list[str]:
    """Patterns whose intersection is the finite floats that satisfy `ge`, `gt`, `le` and `lt`."""
    finite = [("ge", -_FLOAT.max), ("le", _FLOAT.max)]
    patterns = [_bounded(name, float(value)) for name, value in [*finite, *bounds.items()]]
    return [_ONE_WAY, *dict.fromkeys(patterns)]


def complex_pattern() -> str:
    """Complex numbers with finite parts, in the spellings of Python and of pydantic: in digits."""
    greatest, exponent = Decimal(repr(_FLOAT.max)), _FLOAT.max_10_exp
    fraction = rf"(?:\.[0-9]{{1,{16 - Decimal(math.ulp(0.0)).adjusted()}}})?"
    whole = rf"0|[1-9][0-9]{{0,{exponent - 1}}}|{whole_numbers(10**exponent, int(greatest))}"
    digits = _scientific(greatest)[0]
    first, others = digits[0], digits[1:]
    below = [f"{step.beginning}[0-9]{{0,15}}" for step in stepped(others, range)]
    numbers = [
        f"(?:{whole}){fraction}",
        f"(?:0|[1-9][0-9]{{0,15}}){fraction}e(?:[+-]?[0-9]{{1,2}}|-[0-9]{{3}})",
        rf"[0-9]{fraction}e\+?{whole_numbers(100, exponent - 1)}",
        rf"{first}(?:\.(?:{'|'.join([*below, others])}))?e\+?{exponent}",
    ]
    number = f"(?:{'|'.join(numbers)})"
    return f"^-?(?:{number}|{number}j|{number}[+-]{number}j)$"


def _one_way() -> str:
    """Floats of at most 15 digits in Python's spelling."""
    most = _FLOAT.dig
    plain = [
        rf"[1-9][0-9]{{{place}}}\.(?:0|[0-9]{{0,{most - 2 - place}}}[1-9])"
        for place in range(most - 1)
    ]
    plain += [
        rf"[1-9][0-9]{{{most - 1}}}0{{{place + 1 - most}}}\.0"
        for place in range(most - 1, _PLAIN_TO + 1)
    ]
    plain.append(rf"0\.0{{0,{-_PLAIN_FROM - 1}}}[1-9](?:[0-9]{{0,{most - 2}}}[1-9])?")
    plain.append(rf"[1-9](?:\.[0-9]{{0,{most - 2}}}[1-9])?e[+-][0-9]{{2,3}}")
    return signed(plain, plain, zero=r"0\.0")


_ONE_WAY = _one_way()


def _bounded(name: str, bound: float) -> str:
    is_least, is_allowed = name in ("ge", "gt"), name in ("ge", "le")
    # An upper bound is a lower bound with the signs exchanged.
    least = _nearest(bound if is_least else -bound, is_allowed)
    positive: list[str] = []
    negative: list[str] = []
    if least is not None:
        whole_range = _of_exponents(_FLOAT.min_10_exp, _FLOAT.max_10_exp)
        positive = _from(least) if least > 0 else whole_range
        negative = _down_from(-least) if least < 0 else []
    alternatives = (positive, negative) if is_least else (negative, positive)
    return signed(*alternatives, zero=r"0\.0" if least is not None and least <= 0 else None)


def _nearest(bound: float, is_allowed: bool) -> Decimal | None:
    """The least number of 15 digits that satisfies a lower bound; None if there is none."""

    def keeps(number: Decimal) -> bool:
        return float(number) >= bound if is_allowed else float(number) > bound

    smallest = Decimal(10) ** _FLOAT.min_10_exp
    largest = _EXACTLY.create_decimal(Decimal(_FLOAT.max))
    for number in (-largest, -smallest, Decimal(0), smallest, largest):
        if keeps(number):
            break
    else:
        return None
    if number in (-smallest, largest):  # a neighbour of this number may satisfy the bound
        number = _EXACTLY.next_minus(_EXACTLY.create_decimal(Decimal(bound)))
        while not keeps(number):
            number = _EXACTLY.next_plus(number)
    return number


def _from(least: Decimal) -> list[str]:
    """Positive numbers of at least `least`."""
    digits, exponent = _scientific(least)
    alternatives = _of_exponents(exponent + 1, _FLOAT.max_10_exp)
    alternatives += [
        _written([*step.before, step.choice], exponent)
        for step in stepped(digits, lambda digit: range(digit + 1, 10))
    ]
    return [*alternatives, _written(digits, exponent)]


def _down_from(most: Decimal) -> list[str]:
    """Positive numbers of at most the given one."""
    digits, exponent = _scientific(most)
    alternatives = _of_exponents(_FLOAT.min_10_exp, exponent - 1)
    alternatives += [
        _written([*step.before, step.choice], exponent) for step in stepped(digits, range)
    ]
    # The same digits with zeros in place of the last ones.
    alternatives += [
        _written(digits[:length], exponent, ends=True) for length in range(1, len(digits) + 1)
    ]
    return alternatives


def _scientific(number: Decimal) -> tuple[str, int]:
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    return digits, number.adjusted()


def _written(digits: Sequence[str], exponent: int, *, ends: bool = False) -> str:
    """Numbers of one exponent that begin with these digits; with `ends`, only zeros follow."""
    more = "0" if ends else "[0-9]"
    if _PLAIN_FROM <= exponent < 0:
        return rf"0\.0{{{-exponent - 1}}}{''.join(digits)}{more}*"
    is_plain = 0 <= exponent <= _PLAIN_TO
    width = exponent + 1 if is_plain else 1
    whole, fraction = digits[:width], digits[width:]
    text = "".join(whole) + f"{more}{{{width - len(whole)}}}"
    rest = rf"\.{''.join(fraction)}{more}{'*' if fraction else '+'}"
    if is_plain:
        return text + rest
    return f"{text}(?:{rest}){'' if fraction else '?'}e{_exponents(exponent, exponent)}"


def _of_exponents(low: int, high: int) -> list[str]:
    """Positive numbers with any digits and an exponent in this range."""
    alternatives = []
    if max(low, 0) <= min(high, _PLAIN_TO):
        alternatives.append(rf"[1-9][0-9]{{{max(low, 0)},{min(high, _PLAIN_TO)}}}\.[0-9]+")
    if max(low, _PLAIN_FROM) <= min(high, -1):
        zeros = f"{{{-min(high, -1) - 1},{-max(low, _PLAIN_FROM) - 1}}}"
        alternatives.append(rf"0\.0{zeros}[1-9][0-9]*")
    for first, last in ((low, min(high, _PLAIN_FROM - 1)), (max(low, _PLAIN_TO + 1), high)):
        if first <= last:
            alternatives.append(rf"[1-9](?:\.[0-9]+)?e{_exponents(first, last)}")
    return alternatives


def _exponents(low: int, high: int) -> str:
    """Exponents of one sign in Python's spelling, which has at least two digits."""
    sign = "-" if high < 0 else r"\+"
    first, last = sorted((abs(low), abs(high)))
    alternatives = [f"0{digit}" for digit in range(first, min(last, 9) + 1)]
    if last > 9:
        alternatives.append(whole_numbers(max(first, 10), last))
    return f"{sign}(?:{'|'.join(alternatives)})"
