"""Bounds around a type: moved into the types that they bound, where pydantic checks them outside.

pydantic makes bounds of numbers, dates and lengths part of those types. Around another type, as in
`Annotated[int | float, Field(gt=0)]`, it calls a function instead, and its JSON schema then
contains a keyword that no schema has. Here such a bound is moved into each alternative that it can
bound. A value that a user's function returns need not resemble its text, so bounds on it are left
to pydantic.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import EmailStr
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic_core import SchemaValidator, ValidationError

from stencilm.grammars.type_constraints import MADE_OF_TEXTS, class_of
from stencilm.shown import shown_value

_ORDERED = frozenset({"int", "float", "decimal", "date", "time", "datetime", "timedelta"})
_SIZED = frozenset(
    {
        "str",
        "bytes",
        "list",
        "tuple",
        "set",
        "frozenset",
        "dict",
        "counter",
        "ordered-dict",
        "deque",
    }
)
_BOUNDED: dict[str, frozenset[str]] = {
    **dict.fromkeys(("ge", "gt", "le", "lt"), _ORDERED),
    **dict.fromkeys(("min_length", "max_length"), _SIZED),
    "multiple_of": frozenset({"int", "float", "decimal"}),
    "max_digits": frozenset({"decimal"}),
    "decimal_places": frozenset({"decimal"}),
}
_KEEPS: dict[str, Callable[[Any, Any], bool]] = {
    "ge": lambda value, bound: bool(value >= bound),
    "gt": lambda value, bound: bool(value > bound),
    "le": lambda value, bound: bool(value <= bound),
    "lt": lambda value, bound: bool(value < bound),
    "multiple_of": lambda value, step: value % step == 0,
    "min_length": lambda value, least: len(value) >= least,
    "max_length": lambda value, most: len(value) <= most,
}
_VALUES = ("ge", "gt", "le", "lt", "multiple_of")
# pydantic already writes the lengths of these into their schemas.
_DESCRIBED = frozenset({"lax-or-strict", "json-or-python", "generator"})
_LENGTHS = ("min_length", "max_length")
FUNCTIONS = frozenset({"function-before", "function-after", "function-wrap"})
Resolve = Callable[[Any], Any]
"""Resolves a reference; any other schema is returned unchanged."""


class _Unbounded(Exception):
    """The bound cannot apply to a type."""


def with_typed_bounds(schema: Any) -> Any:
    """A type with its bounds converted to its own values.

    pydantic also accepts bounds that it can read as such values, such as the text of a date. Other
    types are returned unchanged.
    """
    names = [name for name in _VALUES if name in schema]
    if schema["type"] not in _ORDERED or not names:
        return schema
    read = SchemaValidator({"type": schema["type"]})
    bounds = {}
    for name in names:
        try:
            bounds[name] = read.validate_python(schema[name])
        except ValidationError:
            raise PydanticInvalidForJsonSchema(
                f"{name}={shown_value(schema[name]):.60} is no bound of the type "
                f"{schema['type']}: give a "
                "value of it"
            ) from None
    return {**schema, **bounds}


def bound_of(schema: Any) -> dict[str, Any]:
    """The bounds that pydantic checks after a type with functions of its own."""
    if schema["type"] != "function-after" or not is_of_pydantic(schema):
        return {}
    called = schema["function"]["function"]
    keywords = called.keywords if isinstance(called, functools.partial) else {}
    return {name: value for name, value in keywords.items() if name in _BOUNDED}


def bounded(schema: Any, resolve: Resolve) -> Any:
    """A type with the bounds around it moved into it; None if they are left to pydantic.

    Raises PydanticInvalidForJsonSchema for a bound that no text of the type can satisfy.
    """
    inner = schema["schema"]
    if bound_of(inner):
        inner = bounded(inner, resolve)
    if inner is None:
        return None
    for name, value in bound_of(schema).items():
        try:
            inner = _with_bound(inner, name, value, resolve)
        except _Unbounded:
            raise PydanticInvalidForJsonSchema(
                f"{name}={value} is no bound on the text of what it stands around: leave it out, "
                "or put it around a type of numbers, dates or texts"
            ) from None
        if inner is None:
            return None
    return inner


def is_of_pydantic(schema: Mapping[str, Any]) -> bool:
    """Whether a function around a type is pydantic's own, not a user's."""
    called = schema["function"]["function"]
    while isinstance(called, functools.partial):
        called = called.func
    return str(getattr(called, "__module__", "")).startswith("pydantic.")


def is_email(schema: Mapping[str, Any]) -> bool:
    """Whether it is `EmailStr`, whose values are the texts themselves."""
    function = schema.get("function")
    called = function.get("function") if isinstance(function, dict) else None
    return getattr(called, "__self__", None) is EmailStr


def _with_bound(schema: Any, name: str, value: Any, resolve: Resolve) -> Any:
    schema = resolve(schema)
    kind = schema["type"]
    if kind in FUNCTIONS and not is_of_pydantic(schema):
        return None
    # With its `ref`, the schema would be shared with uses of the type that have no bound.
    schema = {key: part for key, part in schema.items() if key != "ref"}
    if kind in _BOUNDED[name]:
        known = with_typed_bounds(schema)
        own = with_typed_bounds({**known, name: value})
        if name in ("ge", "gt", "le", "lt") and not _are_ordered(own[name], value):
            raise _Unbounded
        return {**own, name: _tighter(name, known.get(name), own[name])}
    if kind in ("nullable", "default") or is_email(schema):
        inner = _with_bound(schema["schema"], name, value, resolve)
        return None if inner is None else {**schema, "schema": inner}
    if kind == "union":
        return _union_with_bound(schema, name, value, resolve)
    members = {"literal": "expected", "enum": "members"}.get(kind)
    if members is None:
        if name in _LENGTHS and kind in _DESCRIBED:
            values = class_of(schema)
            if values is None or hasattr(values, "__len__"):
                return None
        raise _Unbounded
    kept = _members(schema[members], name, value)
    if not kept:
        raise _Unbounded
    return {**schema, members: kept}


def _union_with_bound(schema: Any, name: str, value: Any, resolve: Resolve) -> Any:
    choices = []
    for choice in schema["choices"]:
        tp, *label = choice if isinstance(choice, tuple) else (choice,)
        try:
            inner = _with_bound(tp, name, value, resolve)
        except _Unbounded:
            if name in _LENGTHS and resolve(tp)["type"] in MADE_OF_TEXTS:
                raise  # its values have no length, and pydantic may read any text as one
            continue  # pydantic refuses these values
        if inner is None:
            return None
        choices.append((inner, *label) if label else inner)
    if not choices:
        raise _Unbounded
    return {**schema, "choices": choices}


def _are_ordered(value: Any, bound: Any) -> bool:
    """Whether Python can compare a value with a bound (not a date with a text, for example)."""
    try:
        value >= bound  # noqa: B015
    except TypeError:
        return False
    return True


def _members(members: Iterable[Any], name: str, value: Any) -> list[Any]:
    """The members that satisfy a bound; none if they cannot be compared with it."""
    keeps = _KEEPS.get(name)
    kept = []
    for member in members:
        try:
            if keeps is not None and keeps(member, value):
                kept.append(member)
        except TypeError:
            continue
    return kept


def _tighter(name: str, known: Any, value: Any) -> Any:
    if known is None:
        return value
    if name in ("ge", "gt", "min_length"):
        return max(known, value)
    if name != "multiple_of":
        return min(known, value)
    if value % known and known % value:
        raise PydanticInvalidForJsonSchema(
            f"multiple_of={value} stands around multiple_of={known}: give the one that says both"
        )
    return max(known, value)
