"""Regular expressions of bounded integers in plain digits, and helpers for other numbers.

One idea: a larger integer has more digits, or agrees up to a digit that is larger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Step(NamedTuple):
    """Texts that first differ at one digit: those before it, and a class of digits in its place."""

    before: str
    choice: str

    @property
    def beginning(self) -> str:
        """The pattern that such a number begins with."""
        return self.before + self.choice


def stepped(text: str, others: Callable[[int], range]) -> list[Step]:
    """For each digit of a text, the texts that agree before it and have one of `others` there."""
    return [
        Step(text[:place], "[" + "".join(map(str, others(int(digit)))) + "]")
        for place, digit in enumerate(text)
        if digit.isdigit() and others(int(digit))
    ]


def integer_patterns(low: int | None, high: int | None, most_digits: int) -> list[str]:
    """Patterns whose intersection is the integers from `low` to `high`.

    Each integer has one spelling: no leading zeros, and no `-0`.
    """
    positive = f"[1-9][0-9]{{0,{most_digits - 1}}}"

    def integers_from(least: int) -> list[str]:
        if least > 0:
            return _at_least(least, most_digits)
        return ["0", positive, *_negated(_at_most(-least))]

    bounded = []
    if low is not None:
        bounded.append(integers_from(low))
    if high is not None:
        bounded.append(_negated(integers_from(-high)))
    return [
        f"^(?:{'|'.join(alternatives)})$" for alternatives in bounded or [["0", f"-?{positive}"]]
    ]


def _negated(alternatives: Sequence[str]) -> list[str]:
    return [one if one == "0" else one[1:] if one[0] == "-" else f"-{one}" for one in alternatives]


def _at_least(low: int, most_digits: int) -> list[str]:
    """The integers of at least `low`, which is positive."""
    digits = str(low)
    alternatives = [digits]
    for place, digit in enumerate(digits):
        if digit < "9":
            rest = len(digits) - place - 1
            alternatives.append(f"{digits[:place]}[{int(digit) + 1}-9][0-9]{{{rest}}}")
    if len(digits) < most_digits:
        alternatives.append(f"[1-9][0-9]{{{len(digits)},{most_digits - 1}}}")
    return alternatives


def _at_most(high: int) -> list[str]:
    """The integers from 1 to `high`, which is at least 0."""
    if high == 0:
        return []
    digits = str(high)
    alternatives = [digits]
    for place, digit in enumerate(digits):
        least = 0 if place else 1
        if int(digit) > least:
            rest = len(digits) - place - 1
            alternatives.append(f"{digits[:place]}[{least}-{int(digit) - 1}][0-9]{{{rest}}}")
    if len(digits) > 1:
        alternatives.append(f"[1-9][0-9]{{0,{len(digits) - 2}}}")
    return alternatives


def whole_numbers(low: int, high: int) -> str:
    """The nonnegative integers of a range, without leading zeros."""
    alternatives = []
    for width in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (width - 1) if width > 1 else 0)
        last = min(high, 10**width - 1)
        alternatives += _between(str(first), str(last))
    return f"(?:{'|'.join(alternatives)})"


def _between(low: str, high: str) -> list[str]:
    """The numbers between two of the same width."""
    width = len(low)
    if low == high:
        return [low]
    if low == "0" * width and high == "9" * width:
        return [f"[0-9]{{{width}}}"]
    if low[0] == high[0]:
        return [low[0] + one for one in _between(low[1:], high[1:])]
    alternatives = [low[0] + one for one in _between(low[1:], "9" * (width - 1))]
    inner = range(int(low[0]) + 1, int(high[0]))
    if inner:
        alternatives.append(f"[{inner[0]}-{inner[-1]}][0-9]{{{width - 1}}}")
    return alternatives + [high[0] + one for one in _between("0" * (width - 1), high[1:])]
