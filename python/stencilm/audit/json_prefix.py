"""Beginnings of JSON texts, and the values that they have written so far.

One idea: a value that is not closed yet has a type of its own. So a caller sees which parts of a
value are final and which may still grow.
"""

from __future__ import annotations

import codecs
import json
import re
from fractions import Fraction
from typing import Any


class NotJson(ValueError):
    """No JSON text begins like this."""


class Unclear(ValueError):
    """It is JSON, but readers disagree about its meaning."""


class Unwritten:
    """A value that must follow, but has not begun."""

    def __repr__(self) -> str:
        return "..."


class OpenNumber(Unwritten):
    """A number that may get more digits, or one whose value readers disagree about."""


class OpenString(str):
    """The beginning of a string."""

    __slots__ = ()


class OpenArray(list[Any]):
    """An array that is not closed, or has an open element."""


class OpenObject(dict[str, Any]):
    """An object that is not closed, or has an open member."""

    is_within_key = False
    """Whether a key must follow or has begun; it is not a member yet."""


Open = (Unwritten, OpenString, OpenArray, OpenObject)
MOST_DIGITS = 15
"""For a number with a point: with more digits, readers that use doubles see another value."""
_MOST_EXPONENT = 300
_LITERALS = {"true": True, "false": False, "null": None}
_WHITESPACE = re.compile(r"[ \t\n\r]*")
_CHARACTERS = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_PART_OF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PART_OF_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:(?<=[0-9])[eE][+-]?[0-9]*)?)?")
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_json(data: bytes, *, whole: bool = False, integral: bool = True) -> Any:
    """Parse the value that a text has written so far; parts that are not closed are open values.

    Numbers are exact: those with a point are of type Fraction, or int if they are whole and
    `integral` is true. With `whole`, the text must be complete, and nothing is open.

    Raises:
        NotJson: No JSON text begins like this, or, with `whole`, the text is not complete.
        Unclear: An object has the same key twice, a string has half of a surrogate pair, or, with
            `whole`, a number has more digits than common readers represent; without `whole`, such a
            number is open.
    """
    return _Reader(_decoded(data, whole), whole, integral).read()


def _decoded(data: bytes, whole: bool) -> str:
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, whole)
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start} is no UTF-8") from None


def exact_number(text: str, integral: bool = True) -> Any:
    """The value of a JSON number: an int, or a Fraction."""
    mantissa, _, exponent = text.lower().partition("e")
    is_plain = not exponent and "." not in text
    if exponent and (len(exponent.lstrip("+-0")) > 3 or abs(int(exponent)) > _MOST_EXPONENT):
        raise Unclear(f"the number {text[:40]} is beyond what common readers hold")
    if len(text) > 4_000 or (not is_plain and len(re.sub("[-.]", "", mantissa)) > MOST_DIGITS):
        raise Unclear(f"the number {text[:40]} has more digits than common readers hold")
    if is_plain:
        return int(text)
    number = Fraction(text)
    return int(number) if integral and number.denominator == 1 else number


class _Reader:
    """Parses one text; `stack` holds the open containers, each with the key of its last value."""

    def __init__(self, text: str, whole: bool, integral: bool) -> None:
        self.text, self.whole, self.integral = text, whole, integral
        self.at = 0
        self.root: Any = Unwritten()
        self.stack: list[list[Any]] = []
        self.wants = "value"

    def read(self) -> Any:
        while True:
            found = _WHITESPACE.match(self.text, self.at)
            self.at = found.end() if found else self.at
            if self.at == len(self.text):
                break
            self._read_one(self.text[self.at])
        if self.whole and (self.stack or self.wants != "end"):
            raise NotJson("the text is not complete")
        return self.root

    def _read_one(self, character: str) -> None:
        wants = self.wants
        if character in "]}" and wants in ("first", "after"):
            self._close(character)
        elif character == "," and wants == "after":
            self.at += 1
            container = self.stack[-1][0]
            if isinstance(container, OpenArray):
                container.append(Unwritten())
                self.stack[-1][1] += 1
                self.wants = "value"
            else:
                container.is_within_key = True
                self.wants = "key"
        elif character == ":" and wants == "colon":
            self.at += 1
            self.wants = "value"
        elif self._wants_key():
            self._read_key(character)
        elif wants in ("value", "first"):
            self._read_value(character)
        else:
            self._refuse()

    def _wants_key(self) -> bool:
        is_first = self.wants == "first" and isinstance(self.stack[-1][0], OpenObject)
        return self.wants == "key" or is_first

    def _refuse(self) -> None:
        around = self.text[max(0, self.at - 10) : self.at + 10]
        raise NotJson(f"character {self.at} is not JSON: {around!r}")

    def _close(self, character: str) -> None:
        container = self.stack[-1][0]
        if (character == "]") != isinstance(container, OpenArray):
            self._refuse()
        self.at += 1
        self.stack.pop()
        is_known = not any(isinstance(one, Open) for one in _children(container))
        self._put(_plain(container) if is_known else container)

    def _put(self, value: Any) -> None:
        """Add a value to its container, or replace the open value that it completes."""
        if self.stack:
            container, key = self.stack[-1]
            if isinstance(container, OpenArray) and key == len(container):
                container.append(value)
            else:
                container[key] = value
            self.wants = "after"
        else:
            self.root = value
            self.wants = "end"

    def _read_key(self, character: str) -> None:
        container = self.stack[-1][0]
        container.is_within_key = True
        if character != '"':
            self._refuse()
        key = self._string()
        if isinstance(key, OpenString):
            return
        if key in container:
            raise Unclear(f"the key {key!r} comes twice in an object")
        container.is_within_key = False
        container[key] = Unwritten()
        self.stack[-1][1] = key
        self.wants = "colon"

    def _read_value(self, character: str) -> None:
        if character in "[{":
            self.at += 1
            opened: Any = OpenArray() if character == "[" else OpenObject()
            self._put(opened)
            self.stack.append([opened, 0])
            self.wants = "first"
        elif character == '"':
            self._put(self._string())
        elif character in "tfn":
            self._put(self._literal())
        else:
            self._put(self._number())

    def _string(self) -> str:
        found = _CHARACTERS.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        value = json.loads(found[0] + '"')
        if self.at < len(self.text) and self.text[self.at] == '"':
            self.at += 1
            if _SURROGATE.search(value):
                raise Unclear(f"the string {value[:40]!r} has half of a surrogate pair")
            return str(value)
        if self.at < len(self.text):
            rest = _PART_OF_ESCAPE.fullmatch(self.text, self.at)
            if rest is None:
                self._refuse()
            self.at = len(self.text)
        if self.whole:
            raise NotJson("a string is not closed")
        if _SURROGATE.search(value[:-1]):
            raise Unclear(f"the string {value[:40]!r} has half of a surrogate pair")
        return OpenString(value if value[-1:] < "\ud800" or value[-1:] > "\udfff" else value[:-1])

    def _literal(self) -> Any:
        for name, value in _LITERALS.items():
            if self.text.startswith(name, self.at):
                self.at += len(name)
                return value
            if name.startswith(self.text[self.at :]) and not self.whole:
                self.at = len(self.text)
                return value  # no other text can follow
        return self._refuse()

    def _number(self) -> Any:
        part = _PART_OF_NUMBER.match(self.text, self.at)
        assert part is not None
        if part.end() == len(self.text) and not (self.whole and not self.stack):
            if not part[0] or self.whole:
                self._refuse()
            self.at = part.end()
            return OpenNumber()
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            return self._refuse()
        self.at = found.end()
        try:
            return exact_number(found[0], self.integral)
        except Unclear:
            if self.whole:
                raise
            return OpenNumber()


def _children(container: Any) -> Any:
    return container.values() if isinstance(container, OpenObject) else container


def _plain(container: Any) -> Any:
    return dict(container) if isinstance(container, OpenObject) else list(container)
