"""Decimals that keep every digit of a JSON number.

One idea: pydantic reads a JSON number with a point or an exponent as a float, also for a `Decimal`,
but a string of digits as it is written. So where a float does not hold a number, and only a
`Decimal` can be read from its place, the number is handed over as a string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_TOKEN = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)'
    r"|-?[0-9]++(?P<rest>(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)",
    re.DOTALL,
)
"""A string, or a number with what makes none of the integers of it."""

# What holds the schema of the same JSON value, and under which name.
_AROUND = {
    "call": "arguments_schema",
    "custom-error": "schema",
    "dataclass": "schema",
    "default": "schema",
    "definitions": "schema",
    "function-after": "schema",
    "json-or-python": "json_schema",
    "lax-or-strict": "lax_schema",
    "model": "schema",
    "nullable": "schema",
}
_ARRAYS = frozenset({"deque", "frozenset", "generator", "list", "set"})
_OBJECTS = frozenset({"counter", "dict", "frozendict", "ordered-dict"})
_FIELDS = frozenset({"arguments", "dataclass-args", "model-fields", "named-tuple", "typed-dict"})
# No number is read as one of these.
_NO_NUMBERS = frozenset({"none", "tuple", *_ARRAYS, *_OBJECTS, *_FIELDS})
# What says nothing of what is read.
_SILENT = frozenset({"config", "default", "expected", "members", "metadata", "serialization"})


@lru_cache(maxsize=512)
def json_reader(adapter: TypeAdapter[Any]) -> Callable[[str], Any]:
    """What reads a JSON text as a type does, except that no Decimal loses digits.

    Functions of the user's that look at a value before its type does are given floats, as by
    pydantic, and so are unions in which a number may also be something else than a Decimal.
    """
    if not _has_decimals(adapter.core_schema):
        return adapter.validate_json
    return lambda text: adapter.validate_json(_with_decimals_as_strings(adapter.core_schema, text))


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


def _with_decimals_as_strings(schema: Any, text: str) -> str:
    """The text with strings where numbers would lose digits of a Decimal."""
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
    _mark(schema, value)
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


def _mark(schema: Any, value: Any) -> None:
    """Tells each number of a value as what it may be read."""
    definitions: dict[str, Any] = {}
    todo = [(schema, value)]
    seen = set()
    while todo:
        part, held = todo.pop()
        if not isinstance(held, (_Number, list, dict)) or (id(part), id(held)) in seen:
            continue
        seen.add((id(part), id(held)))
        kind = part["type"]
        if kind == "definitions":
            definitions |= {one["ref"]: one for one in part["definitions"]}
        if kind == "definition-ref":
            todo.append((definitions[part["schema_ref"]], held))
        elif kind in _AROUND:
            todo.append((part[_AROUND[kind]], held))
        elif kind == "chain":
            todo.append((part["steps"][0], held))
        elif kind in ("union", "tagged-union"):
            todo += ((choice, held) for choice in _choices(part, held))
        elif isinstance(held, _Number):
            held.may_be(kind)
        else:
            todo += _within(part, held)


def _choices(schema: Any, value: Any) -> Iterator[Any]:
    choices = schema["choices"]
    if schema["type"] == "union":
        yield from (one[0] if isinstance(one, tuple) else one for one in choices)
        return
    discriminator = schema["discriminator"]
    tag = None
    if isinstance(value, dict) and isinstance(discriminator, str):
        tag = value.get(discriminator)
    yield from [choices[tag]] if isinstance(tag, str) and tag in choices else choices.values()


def _within(schema: Any, value: list[Any] | dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The parts of an array or an object, each with the schema that it is read by."""
    kind = schema["type"]
    if kind in _FIELDS:
        yield from _fields(schema, value)
    elif kind == "tuple" and isinstance(value, list):
        items, variadic = schema["items_schema"], schema.get("variadic_item_index")
        if variadic is not None:
            more = [items[variadic]] * (len(value) - len(items) + 1)
            items = [*items[:variadic], *more, *items[variadic + 1 :]]
        yield from zip(items, value, strict=False)
    elif kind in _ARRAYS and isinstance(value, list) and "items_schema" in schema:
        yield from ((schema["items_schema"], one) for one in value)
    elif kind in _OBJECTS and isinstance(value, dict) and "values_schema" in schema:
        yield from ((schema["values_schema"], one) for one in value.values())


def _fields(schema: Any, value: list[Any] | dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    listed = schema["arguments_schema"] if schema["type"] == "arguments" else schema["fields"]
    if isinstance(listed, Mapping):
        listed = [{"name": name, **field} for name, field in listed.items()]
    if isinstance(value, list):
        yield from ((field["schema"], one) for field, one in zip(listed, value, strict=False))
        return
    known: set[str] = set()
    for field in listed:
        names = {field["name"], *_aliases(field)} & value.keys()
        known |= names
        yield from ((field["schema"], value[name]) for name in names)
    extra = schema.get("extras_schema")
    if extra is not None:
        yield from ((extra, one) for name, one in value.items() if name not in known)


def _aliases(field: Any) -> Iterator[str]:
    """The names of a field in JSON; those that lead into another value are no names."""
    alias = field.get("validation_alias", field.get("alias"))
    for path in [alias] if isinstance(alias, str) else alias or []:
        if isinstance(path, str):
            yield path
        elif len(path) == 1 and isinstance(path[0], str):
            yield path[0]


def _has_decimals(schema: Any) -> bool:
    todo, seen = [schema], set()
    while todo:
        part = todo.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Mapping):
            if part.get("type") == "decimal":
                return True
            todo += (inner for name, inner in part.items() if name not in _SILENT)
        elif isinstance(part, (list, tuple)):
            todo += part
    return False
