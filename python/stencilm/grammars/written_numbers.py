"""Numbers of a JSON text that a float does not hold, each with what the model wrote.

One idea: pydantic makes a float of every number with a point or an exponent before a type sees it.
So such a number is handed over as another one, its mark, which stands nowhere else in the text, and
whoever reads the mark is given the number that it stands for.
"""

from __future__ import annotations

import math
import operator
import random
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

_TOKEN = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)'
    r"|-?[0-9]++(?P<rest>(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)",
    re.DOTALL,
)
"""A string, or a number with what makes none of the integers of it."""

# A float holds 15 digits, every integer of so many, and every negative exponent of two digits.
_MAY_BE_LOST = re.compile(r"[0-9](?:[0-9.]{15}|[eE](?:\+?[0-9]{2}|-[0-9]{3}))")

MOST_DIGITS = 4300  # of an int, as pydantic reads it

_LARGEST = 2**53  # up to which a float holds every integer


class WrittenNumber(float):
    """The float that a number is rounded to; its text has every digit.

    Functions of the user's that look at a value before its type does are given these, and pydantic
    makes a Decimal of a float's text.
    """

    __slots__ = ("_text",)

    _text: str

    def __new__(cls, text: str) -> WrittenNumber:
        """The number of a JSON text."""
        made = super().__new__(cls, text)
        made._text = text
        return made

    def __str__(self) -> str:
        """The number as the model wrote it, without zeros at its end."""
        # pydantic would count them as digits.
        number, exponent, power = re.split("([eE]|$)", self._text, maxsplit=1)
        if "." in number:
            number = number.rstrip("0").removesuffix(".")
        return f"{number}{exponent}{power}"

    __repr__ = __str__

    def __reduce__(self) -> tuple[type[WrittenNumber], tuple[str]]:
        return WrittenNumber, (self._text,)

    @property
    def is_beyond_floats(self) -> bool:
        """Whether the float is infinite."""
        return not math.isfinite(self)

    def as_decimal(self) -> Decimal | None:
        """The number; None where its exponent is beyond that of a Decimal."""
        try:
            return Decimal(str(self))
        except InvalidOperation:
            return None

    def plain(self) -> float | Decimal:
        """What JSON is read as where nobody says what it should be."""
        exact = self.as_decimal() if self.is_beyond_floats else None
        return float(self) if exact is None else exact

    def digits(self) -> str | None:
        """The digits of an integer that an int can be read from; None for another number."""
        number = self.as_decimal()
        if number is None or number.adjusted() >= MOST_DIGITS or _has_fraction(number):
            return None
        return f"{number.to_integral_value():f}"


class Kinds(NamedTuple):
    """What a type may read numbers as.

    Attributes:
        has_exact: As what keeps digits that a float loses, also of numbers with a point.
        has_decimals: As a Decimal.
    """

    has_exact: bool
    has_decimals: bool


class Marks:
    """The marks of a text, while it is read.

    Attributes:
        text: The JSON text, with marks where numbers would lose digits.
        met: The marks that somebody has read.
        key: The key of a dict that is read.
    """

    def __init__(self, text: str, numbers: Mapping[float, WrittenNumber]) -> None:
        self.text = text
        self.numbers = numbers
        self.met: set[float] = set()
        self.key = ""

    def number(self, value: Any) -> WrittenNumber | None:
        """What a mark stands for; None for every other value."""
        if type(value) is float:
            found = self.numbers.get(value)
            if found is not None:
                self.met.add(value)
            return found
        return value if isinstance(value, WrittenNumber) else None

    def restored(self, value: Any, made: Callable[[WrittenNumber], Any]) -> Any:
        """A JSON value with what its marks stand for; the same one where it has none.

        Args:
            value: What pydantic has made of a part of the text.
            made: What stands in the place of a mark.
        """
        match value:
            case dict():
                members = {name: self.restored(one, made) for name, one in value.items()}
                is_same = all(value[name] is one for name, one in members.items())
                return value if is_same else members
            case list():
                elements = [self.restored(one, made) for one in value]
                return value if all(map(operator.is_, value, elements)) else elements
            case float():
                found = self.number(value)
                return value if found is None else made(found)
        return value

    @property
    def unread(self) -> frozenset[str]:
        """The numbers whose marks nobody has read."""
        return frozenset(
            number._text for mark, number in self.numbers.items() if mark not in self.met
        )


_CURRENT: ContextVar[Marks] = ContextVar("_CURRENT")


@contextmanager
def reading(marks: Marks) -> Iterator[None]:
    """Within it `current_marks` are these."""
    token = _CURRENT.set(marks)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_marks() -> Marks:
    """The marks of the text that is read."""
    return _CURRENT.get(_NONE)


_NONE = Marks("", {})


def marks_of(text: str, kinds: Kinds, *, without: frozenset[str] = frozenset()) -> Marks | None:
    """The marks of a text; None where the type loses nothing of its numbers.

    Args:
        text: A JSON text.
        kinds: What its numbers may be read as.
        without: Numbers that get no mark.
    """
    if _MAY_BE_LOST.search(text) is None:
        return None
    tokens = [token for token in _TOKEN.finditer(text) if not token[0].startswith('"')]
    lost = {token[0] for token in tokens if _is_lost(token[0], bool(token["rest"]), kinds)}
    if not lost:
        return None
    # Integers are read as what they are, so they need no marks.
    marked = {token[0] for token in tokens if token["rest"] and token[0] in lost} - without
    taken = {float(token[0]) for token in tokens}
    marks = dict(zip(sorted(marked), _new_marks(text, taken), strict=False))

    def written(token: re.Match[str]) -> str:
        return marks.get(token[0], token[0])

    numbers = {float(mark): WrittenNumber(number) for number, mark in marks.items()}
    return Marks(_TOKEN.sub(written, text), numbers)


def lost_integer(value: Any) -> WrittenNumber | None:
    """An int that no float holds, as a number; None for every other value."""
    is_lost = type(value) is int and not _is_float(value)
    return WrittenNumber(str(value)) if is_lost else None


def _new_marks(text: str, taken: set[float]) -> Iterator[str]:
    """Numbers that stand nowhere, and that nothing else is likely to be."""
    chance = random.Random(text)
    while True:
        mark = f"{chance.randrange(10**14, 10**15)}e-300"
        if float(mark) not in taken:
            taken.add(float(mark))
            yield mark


def _is_lost(written: str, has_rest: bool, kinds: Kinds) -> bool:
    """Whether a type may read a number as another one."""
    value = float(written)
    if not math.isfinite(value):
        return True
    if not has_rest:
        # As a float where it could be a Decimal; an int it is with all its digits.
        return kinds.has_decimals and not _is_float(int(written))
    if not kinds.has_exact:
        return False
    if abs(value) > _LARGEST:
        return True
    try:
        return Decimal(repr(value)) != Decimal(written)
    except InvalidOperation:  # no Decimal has such an exponent
        return True


def _is_float(value: int) -> bool:
    if abs(value) <= _LARGEST:
        return True
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def _has_fraction(number: Decimal) -> bool:
    return (number.adjusted() < 0 and bool(number)) or number != number.to_integral_value()
