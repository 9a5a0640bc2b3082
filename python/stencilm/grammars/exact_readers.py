"""A type's reader that loses nothing: no digits of a number, and no keys of a dict.

One idea: the schema by which pydantic reads a type is rewritten, so that pydantic still decides
everything, what a union takes included. Wherever a number may stand, one that a float does not hold
(see `written_numbers`) is read from all of its digits. And keys of a dict that may be read as one,
as those of `IPv6Address | str` and of a validator of the user's may, are distinguished until all of
them are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from pydantic_core import PydanticCustomError, SchemaValidator

from stencilm.grammars.written_numbers import (
    MOST_DIGITS,
    Kinds,
    WrittenNumber,
    current_marks,
    lost_integer,
)
from stencilm.shown import shown_value

_ARRAYS = frozenset({"deque", "frozenset", "generator", "list", "set"})
_OBJECTS = frozenset({"counter", "dict", "frozendict", "ordered-dict"})
_FIELDS = frozenset({"model-fields", "typed-dict"})
# Functions that are given a value before its type reads it.
_FUNCTIONS = frozenset({"function-before", "function-plain", "function-wrap"})
# What hold no schema that JSON is read by. Keys are no numbers.
_SILENT = frozenset(
    {
        "computed_fields",
        "config",
        "custom_error_context",
        "default",
        "expected",
        "keys_schema",
        "members",
        "metadata",
        "return_schema",
        "serialization",
    }
)
_ANY: Any = {"type": "any"}


def parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """All schemas within a schema, itself included."""
    todo, seen = [schema], set()
    while todo:
        part = todo.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Mapping):
            yield part
            todo += (inner for name, inner in part.items() if name not in _SILENT)
        elif isinstance(part, (list, tuple)):
            todo += part


def kinds_of(schema: Any) -> Kinds:
    """What the numbers of a type may be read as."""
    found = list(parts(schema))
    kinds = {kind for part in found if isinstance(kind := part.get("type"), str)}
    exact = {"decimal", "fraction", "int", "bool", "str", "literal", "enum", *_FUNCTIONS}
    return Kinds(
        has_exact=not exact.isdisjoint(kinds) or any(part.get("custom_init") for part in found),
        has_decimals="decimal" in kinds,
    )


def may_lose_keys(schema: Any) -> bool:
    """Whether texts that differ may be equal keys of a dict of a type."""
    found = list(parts(schema))
    is_changed = any(_changes_texts(part["config"]) for part in found if part.get("config"))
    return any(_are_equal_at_times(part, is_changed=is_changed) for part in found)


def exact_reader(schema: Any) -> SchemaValidator:
    """What reads JSON as a schema of pydantic's does, marked numbers with all their digits.

    Raises SchemaError where pydantic takes no such schema.
    """
    return SchemaValidator(_Rewriting().of(schema, None))


class _Rewriting:
    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Any, Any]] = {}

    def of(self, part: Any, config: Any) -> Any:
        """A part of a schema, rewritten; `config` is that of the type around it."""
        if isinstance(part, (list, tuple)):
            return type(part)([self.of(one, config) for one in part])
        if not isinstance(part, Mapping):
            return part
        key = (id(part), id(config))
        if key not in self._known:  # with the part, so that nothing else gets its id
            self._known[key] = (self._new(part, config), part)
        return self._known[key][0]

    def _new(self, part: Mapping[str, Any], config: Any) -> Any:
        config = part.get("config", config)
        kind = part.get("type")
        if kind == "any":
            return _around(part, "function-after", _plain)
        if kind in _GATES and isinstance(kind, str):
            return _gated(part, _GATES[kind])
        if kind == "model" and part.get("custom_init"):
            return _around(part, "function-before", _arguments(part))
        if kind in _ARRAYS:
            part = {"items_schema": _ANY, **part}
        elif kind in _OBJECTS:
            part = {"values_schema": _ANY, **part}
        elif kind in _FIELDS and _allows_extra(part, config):
            part = {"extras_schema": _ANY, **part}
        made = {
            name: inner if name in _SILENT or name == "function" else self.of(inner, config)
            for name, inner in part.items()
        }
        if kind in _FUNCTIONS:
            made["function"] = {
                **part["function"],
                "function": _given_numbers(part["function"]["function"]),
            }
        elif kind == "tagged-union" and callable(part["discriminator"]):
            made["discriminator"] = _given_numbers(part["discriminator"])
        elif kind == "model":
            return _model(made)
        elif kind == "dataclass":
            # Or else pydantic takes the reader that the class has already.
            made["generic_origin"] = made.get("generic_origin", made["cls"])
        elif kind == "generator":
            # Of another moment, when these marks are not known any more.
            return _around({**made, "type": "list"}, "function-after", iter)
        elif _are_equal_at_times(part, is_changed=_changes_texts(config)):
            made["keys_schema"] = _distinguished(made["keys_schema"])
            return _around(made, "function-after", _united)
        return made


def _around(part: Mapping[str, Any], kind: str, function: Callable[..., Any]) -> Any:
    """A function around a schema, which is called what the schema was."""
    made = {
        "type": kind,
        "function": {"type": "no-info", "function": function},
        "schema": {name: value for name, value in part.items() if name != "ref"},
    }
    return {**made, "ref": part["ref"]} if "ref" in part else made


def _gated(part: Mapping[str, Any], gate: Callable[[WrittenNumber, Any], Any]) -> Any:
    """A schema of single values, which lost numbers reach through a gate, and others as ever."""
    # An integer is read as what it is, but for where it might be rounded.
    with_integers = part["type"] in ("decimal", "float")

    def lost(value: Any) -> WrittenNumber | None:
        found = current_marks().number(value)
        return lost_integer(value) if found is None and with_integers else found

    def tag(value: Any) -> str:
        return "other" if lost(value) is None else "number"

    def read(value: Any, handler: Any) -> Any:
        number = lost(value)
        assert number is not None, "the tag of this value says that it is a number"
        return gate(number, handler)

    through = _around(part, "function-wrap", read)
    ref = {"ref": through.pop("ref")} if "ref" in through else {}
    choices = {"number": through, "other": through["schema"]}
    return {"type": "tagged-union", "discriminator": tag, "choices": choices, **ref}


def _plain(value: Any) -> Any:
    """What may be anything, arrays and objects too."""
    return current_marks().restored(value, WrittenNumber.plain)


def _read_decimal(number: WrittenNumber, handler: Any) -> Any:
    read = number.as_decimal()
    if read is None:
        raise PydanticCustomError(
            "beyond_decimals", "The number {number} is beyond what a Decimal holds", _shown(number)
        )
    return handler(read)


def _read_fraction(number: WrittenNumber, handler: Any) -> Any:
    read = number.as_decimal()
    if read is None or abs(read.adjusted()) >= MOST_DIGITS:
        raise PydanticCustomError(
            "beyond_fractions", "The number {number} has too many digits", _shown(number)
        )
    return handler(Fraction(read))


def _read_float(number: WrittenNumber, handler: Any) -> Any:
    if number.is_beyond_floats:
        raise PydanticCustomError(
            "beyond_floats", "The number {number} is beyond what a float holds", _shown(number)
        )
    # No float itself: in a union what keeps all digits is the better match.
    return handler(number)


def _read_int(number: WrittenNumber, handler: Any) -> Any:
    digits = number.digits()
    return handler(float(number) if digits is None else digits)


def _read_rounded(number: WrittenNumber, handler: Any) -> Any:
    return handler(float(number))


def _read_exactly(number: WrittenNumber, handler: Any) -> Any:
    return handler(number)


def _read_text(number: WrittenNumber, handler: Any) -> Any:
    # It is neither 1 nor 0, though it may be rounded to one of them.
    return handler(str(number))


_GATES: dict[str, Callable[[WrittenNumber, Any], Any]] = {
    "bool": _read_text,
    "complex": _read_rounded,
    "date": _read_rounded,
    "datetime": _read_rounded,
    "decimal": _read_decimal,
    "enum": _read_decimal,  # to which no float is equal
    "float": _read_float,
    "fraction": _read_fraction,
    "int": _read_int,
    "literal": _read_decimal,
    "str": _read_exactly,
    "time": _read_rounded,
    "timedelta": _read_rounded,
}
"""How a lost number is handed to what reads single values."""


def _shown(number: WrittenNumber) -> dict[str, Any]:
    text = str(number)
    return {"number": text if len(text) <= 60 else f"{text[:57]}..."}


def _given_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the user's that is given the numbers that marks stand for."""

    def given(value: Any, *others: Any) -> Any:
        return function(current_marks().restored(value, lambda number: number), *others)

    return given


class _Shell:
    """What pydantic fills in the place of a model: it has a reader of the class itself already."""

    __slots__ = (
        "__dict__",
        "__pydantic_extra__",
        "__pydantic_fields_set__",
        "__pydantic_private__",
    )


def _model(made: dict[str, Any]) -> Any:
    cls, post_init = made["cls"], made.pop("post_init", None)

    def finish(shell: _Shell, info: Any) -> Any:
        model = cls.__new__(cls)
        for name in _Shell.__slots__:
            if hasattr(shell, name):
                object.__setattr__(model, name, getattr(shell, name))
        if post_init is not None:
            getattr(model, post_init)(info.context)
        return model

    read = _around({**made, "cls": _Shell}, "function-after", finish)
    read["function"]["type"] = "with-info"
    ref = {"ref": read.pop("ref")} if "ref" in read else {}
    # One that a function of the user's has made stays what it is.
    choices = [{"type": "is-instance", "cls": cls}, read]
    return {"type": "union", "mode": "left_to_right", "choices": choices, **ref}


def _arguments(model: Mapping[str, Any]) -> Callable[[Any], Any]:
    """What the `__init__` of a model is given, which hands it on to the reader of its class."""
    unions = [list(parts(part)) for part in parts(model) if part.get("type") == "union"]
    may_round = any(
        {"decimal"} < {part.get("type") for part in union} & {"any", "decimal", "float"}
        for union in unions
    )
    name = model["cls"].__name__

    def given(value: Any) -> Any:
        restored = current_marks().restored(value, _argument)
        if may_round and restored is not value:
            raise PydanticCustomError(
                "rounded_number",
                "{name} has an __init__ of its own, and its numbers may be read as a Decimal or "
                "rounded: one has more digits than a float holds, so let its type be Decimal alone",
                {"name": name},
            )
        return restored

    return given


def _argument(number: WrittenNumber) -> Any:
    digits = number.digits()
    return number if digits is None else int(digits)


def _allows_extra(fields: Mapping[str, Any], config: Any) -> bool:
    inherited = (config or {}).get("extra_fields_behavior")
    return bool(fields.get("extra_behavior", inherited) == "allow")


def _changes_texts(config: Any) -> bool:
    names = ("str_strip_whitespace", "str_to_lower", "str_to_upper")
    return any((config or {}).get(name) for name in names)


def _are_equal_at_times(part: Mapping[str, Any], *, is_changed: bool) -> bool:
    """Whether it is a dict with keys that may be equal once they are read."""
    if part.get("type") not in _OBJECTS or "keys_schema" not in part:
        return False
    keys = part["keys_schema"]
    kind = keys["type"]
    if kind == "str":
        names = ("strip_whitespace", "to_lower", "to_upper")
        return is_changed or any(keys.get(name) for name in names)
    return kind not in ("enum", "literal")


class _Key:
    """A key that is equal to no other, with what the model wrote."""

    __slots__ = ("value", "written")

    def __init__(self, value: Any, written: str) -> None:
        self.value = value
        self.written = written


def _distinguished(keys: Any) -> Any:
    """A schema of keys of which each is another one."""

    def note(key: Any) -> str:
        current_marks().key = key
        return "key"

    noted = {"type": "tagged-union", "discriminator": note, "choices": {"key": keys}}
    return _around(noted, "function-after", lambda key: _Key(key, current_marks().key))


def _united(held: Any) -> Any:
    """A dict with its keys as they were read; refused where two of them are equal."""
    values: dict[Any, Any] = {}
    texts: dict[Any, str] = {}
    for key, value in held.items():
        if key.value in values:
            raise PydanticCustomError(
                "equal_keys",
                "two keys of one object, {one} and {other}, are both read as {value}: a dict can "
                "hold one of them",
                {
                    "one": f"{texts[key.value]!r:.100}",
                    "other": f"{shown_value(key.written):.100}",
                    "value": f"{shown_value(key.value):.100}",
                },
            )
        values[key.value] = value
        texts[key.value] = key.written
    return values if type(held) is dict else type(held)(values)
