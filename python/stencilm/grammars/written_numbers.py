"""Numbers of a JSON text that a float cannot represent, each with the digits that were written.

One idea: pydantic turns every number with a point or an exponent into a float before a type sees
it. So such a number is replaced by another one, its mark, which occurs nowhere else in the text. A
reader that meets the mark looks up the original number.
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
"""A string, or a number; the group `rest` is nonempty if it is not written as an integer."""

# A float keeps 15 digits, and with that many every exponent of one digit, or negative of two.
_MAY_BE_LOST = re.compile(r"[0-9](?:[0-9.]{15}|[eE](?:\+?[0-9]{2}|-[0-9]{3}))")

MOST_DIGITS = 4300  # of an int, as pydantic reads it

_LARGEST = 2**53  # up to here every integer is a float


class WrittenNumber(float):
    """The float that a number is rounded to; its text has every digit.

    A user's function that sees a value before its type does is given one of these. pydantic makes a
    Decimal from the text of a float.
    """

    __slots__ = ("_text",)

    _text: str

    def __new__(cls, text: str) -> WrittenNumber:
        """Make the number from its JSON text."""
        made = super().__new__(cls, text)
        made._text = text
        return made

    def __str__(self) -> str:
        """The number as the model wrote it, without trailing zeros after the point."""
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
        """The exact value; None if a Decimal cannot have its exponent."""
        try:
            return Decimal(str(self))
        except InvalidOperation:
            return None

    def plain(self) -> float | Decimal:
        """The value by default: a float, or a Decimal for a number beyond floats."""
        exact = self.as_decimal() if self.is_beyond_floats else None
        return float(self) if exact is None else exact

    def digits(self) -> str | None:
        """The digits of an integer that an int can be read from; None for any other number."""
        number = self.as_decimal()
        if number is None or number.adjusted() >= MOST_DIGITS or _has_fraction(number):
            return None
        return f"{number.to_integral_value():f}"


class Kinds(NamedTuple):
    """The ways in which a type may read numbers.

    Attributes:
        has_exact: In a way that keeps digits that a float loses, also after a point.
        has_decimals: As a Decimal.
    """

    has_exact: bool
    has_decimals: bool


class Marks:
    """The marks of a text while it is read.

    Attributes:
        text: The JSON text, with marks in place of numbers that would lose digits.
        met: The marks that have been looked up.
        key: The key of a dict that is being read.
    """

    def __init__(self, text: str, numbers: Mapping[float, WrittenNumber]) -> None:
        self.text = text
        self.numbers = numbers
        self.met: set[float] = set()
        self.key = ""

    def number(self, value: Any) -> WrittenNumber | None:
        """The number that a mark stands for; None for any other value."""
        if type(value) is float:
            found = self.numbers.get(value)
            if found is not None:
                self.met.add(value)
            return found
        return value if isinstance(value, WrittenNumber) else None

    def restored(self, value: Any, made: Callable[[WrittenNumber], Any]) -> Any:
        """A JSON value with marks replaced by their numbers; the same object if it has none.

        Args:
            value: What pydantic made of a part of the text.
            made: Makes the replacement of a mark.
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
        """The numbers whose marks have not been looked up."""
        return frozenset(
            number._text for mark, number in self.numbers.items() if mark not in self.met
        )


_CURRENT: ContextVar[Marks] = ContextVar("_CURRENT")


@contextmanager
def reading(marks: Marks) -> Iterator[None]:
    """Set `current_marks` to these for the duration of a block."""
    token = _CURRENT.set(marks)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_marks() -> Marks:
    """The marks of the text that is being read."""
    return _CURRENT.get(_NONE)


_NONE = Marks("", {})


def marks_of(text: str, kinds: Kinds, *, without: frozenset[str] = frozenset()) -> Marks | None:
    """The marks of a text; None if the type loses nothing of its numbers.

    Args:
        text: A JSON text.
        kinds: The ways in which its numbers may be read.
        without: Numbers that get no mark.
    """
    if _MAY_BE_LOST.search(text) is None:
        return None
    tokens = [token for token in _TOKEN.finditer(text) if not token[0].startswith('"')]
    lost = {token[0] for token in tokens if _is_lost(token[0], bool(token["rest"]), kinds)}
    if not lost:
        return None
    # Integers are read exactly, so they need no marks.
    marked = {token[0] for token in tokens if token["rest"] and token[0] in lost} - without
    taken = {float(token[0]) for token in tokens}
    marks = dict(zip(sorted(marked), _new_marks(text, taken), strict=False))

    def written(token: re.Match[str]) -> str:
        return marks.get(token[0], token[0])

    numbers = {float(mark): WrittenNumber(number) for number, mark in marks.items()}
    return Marks(_TOKEN.sub(written, text), numbers)


def lost_integer(value: Any) -> WrittenNumber | None:
    """An int that no float represents, as a number; None for any other value."""
    is_lost = type(value) is int and not _is_float(value)
    return WrittenNumber(str(value)) if is_lost else None


def _new_marks(text: str, taken: set[float]) -> Iterator[str]:
    """Numbers that do not occur in the text, and are unlikely to occur elsewhere."""
    chance = random.Random(text)
    while True:
        mark = f"{chance.randrange(10**14, 10**15)}e-300"
        if float(mark) not in taken:
            taken.add(float(mark))
            yield mark


def _is_lost(written: str, has_rest: bool, kinds: Kinds) -> bool:
    """Whether a type may read a number as a different one."""
    value = float(written)
    if not math.isfinite(value):
        return True
    if not has_rest:
        # As a float where it might be a Decimal; an int keeps all its digits.
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
