"""Readers of types that lose neither digits of numbers nor keys of dicts.

One idea: rewrite the schema by which pydantic reads a type, so that pydantic still decides
everything, including which alternative a union takes. Wherever a number may stand, a number that a
float cannot represent (see `written_numbers`) is read from all of its digits. Keys of a dict that
may become equal when read, such as those of `IPv6Address | str` or of a user's validator, are kept
distinct until all of them are read.
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
# Functions that see a value before its type reads it.
_FUNCTIONS = frozenset({"function-before", "function-plain", "function-wrap"})
# These parts hold no schema that JSON is read by. (Keys are never numbers.)
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
    """All schemas within a schema, including itself."""
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
    """The ways in which a type may read its numbers."""
    found = list(parts(schema))
    kinds = {kind for part in found if isinstance(kind := part.get("type"), str)}
    exact = {"decimal", "fraction", "int", "bool", "str", "literal", "enum", *_FUNCTIONS}
    return Kinds(
        has_exact=not exact.isdisjoint(kinds) or any(part.get("custom_init") for part in found),
        has_decimals="decimal" in kinds,
    )


def may_lose_keys(schema: Any) -> bool:
    """Whether different texts may be read as equal keys of a dict in this type."""
    found = list(parts(schema))
    is_changed = any(_changes_texts(part["config"]) for part in found if part.get("config"))
    return any(_are_equal_at_times(part, is_changed=is_changed) for part in found)


def exact_reader(schema: Any) -> SchemaValidator:
    """Make a validator that reads JSON as the schema does, with all digits of marked numbers.

    Raises SchemaError if pydantic does not accept the schema.
    """
    return SchemaValidator(_Rewriting().of(schema, None))


class _Rewriting:
    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Any, Any]] = {}

    def of(self, part: Any, config: Any) -> Any:
        """Rewrite a part of a schema; `config` is that of the type around it."""
        if isinstance(part, (list, tuple)):
            return type(part)([self.of(one, config) for one in part])
        if not isinstance(part, Mapping):
            return part
        key = (id(part), id(config))
        if key not in self._known:  # keeps the part alive, so that no other object gets its id
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
            # Otherwise pydantic would use the reader that the class already has.
            made["generic_origin"] = made.get("generic_origin", made["cls"])
        elif kind == "generator":
            # pydantic's generator reads lazily, when these marks are no longer known.
            return _around({**made, "type": "list"}, "function-after", iter)
        elif _are_equal_at_times(part, is_changed=_changes_texts(config)):
            made["keys_schema"] = _distinguished(made["keys_schema"])
            return _around(made, "function-after", _united)
        return made


def _around(part: Mapping[str, Any], kind: str, function: Callable[..., Any]) -> Any:
    """Put a function around a schema, under the schema's own name."""
    made = {
        "type": kind,
        "function": {"type": "no-info", "function": function},
        "schema": {name: value for name, value in part.items() if name != "ref"},
    }
    return {**made, "ref": part["ref"]} if "ref" in part else made


def _gated(part: Mapping[str, Any], gate: Callable[[WrittenNumber, Any], Any]) -> Any:
    """A schema of single values: lost numbers pass through a gate, all others are read as usual."""
    # Other types read an int exactly; these may round it.
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
    """The schema of `Any`, which includes arrays and objects."""
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
    # Not a float itself: in a union, an alternative that keeps all digits must win.
    return handler(number)


def _read_int(number: WrittenNumber, handler: Any) -> Any:
    digits = number.digits()
    return handler(float(number) if digits is None else digits)


def _read_rounded(number: WrittenNumber, handler: Any) -> Any:
    return handler(float(number))


def _read_exactly(number: WrittenNumber, handler: Any) -> Any:
    return handler(number)


def _read_text(number: WrittenNumber, handler: Any) -> Any:
    # As a text: rounded, the number might become 1 or 0, which a bool takes.
    return handler(str(number))


_GATES: dict[str, Callable[[WrittenNumber, Any], Any]] = {
    "bool": _read_text,
    "complex": _read_rounded,
    "date": _read_rounded,
    "datetime": _read_rounded,
    "decimal": _read_decimal,
    "enum": _read_decimal,  # no float equals a Decimal that a float cannot represent
    "float": _read_float,
    "fraction": _read_fraction,
    "int": _read_int,
    "literal": _read_decimal,
    "str": _read_exactly,
    "time": _read_rounded,
    "timedelta": _read_rounded,
}
"""How a lost number is passed to each type of single values."""


def _shown(number: WrittenNumber) -> dict[str, Any]:
    text = str(number)
    return {"number": text if len(text) <= 60 else f"{text[:57]}..."}


def _given_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a user's function so that it is given the numbers that marks stand for."""

    def given(value: Any, *others: Any) -> Any:
        return function(current_marks().restored(value, lambda number: number), *others)

    return given


class _Shell:
    """A stand-in that pydantic fills instead of a model, whose class has a reader of its own."""

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
    # An instance that a user's function made stays as it is.
    choices = [{"type": "is-instance", "cls": cls}, read]
    return {"type": "union", "mode": "left_to_right", "choices": choices, **ref}


def _arguments(model: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Make a function that reads the input of a model into arguments for its `__init__`.

    That `__init__` then calls the class's own reader.
    """
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
    """Whether it is a dict with keys that may become equal when read."""
    if part.get("type") not in _OBJECTS or "keys_schema" not in part:
        return False
    keys = part["keys_schema"]
    kind = keys["type"]
    if kind == "str":
        names = ("strip_whitespace", "to_lower", "to_upper")
        return is_changed or any(keys.get(name) for name in names)
    return kind not in ("enum", "literal")


class _Key:
    """A key that equals no other, with the text that the model wrote."""

    __slots__ = ("value", "written")

    def __init__(self, value: Any, written: str) -> None:
        self.value = value
        self.written = written


def _distinguished(keys: Any) -> Any:
    """Wrap the schema of keys so that every key stays distinct."""

    def note(key: Any) -> str:
        current_marks().key = key
        return "key"

    noted = {"type": "tagged-union", "discriminator": note, "choices": {"key": keys}}
    return _around(noted, "function-after", lambda key: _Key(key, current_marks().key))


def _united(held: Any) -> Any:
    """Make a dict with its keys as read; raises an error if two of them are equal."""
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
