"""What a JSON value is read by: each part with the schema of pydantic's core that reads it.

One idea: a schema and a value are walked together. Where a union may read a value by several of its
choices all of them are given, since only pydantic knows which one it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

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
OBJECTS = frozenset({"counter", "dict", "frozendict", "ordered-dict"})
_FIELDS = frozenset({"arguments", "dataclass-args", "model-fields", "named-tuple", "typed-dict"})
CONTAINERS = frozenset({"tuple", *_ARRAYS, *OBJECTS, *_FIELDS})
# What says nothing of what is read.
_SILENT = frozenset({"config", "default", "expected", "members", "metadata", "serialization"})


class Place(NamedTuple):
    """A part of a value.

    Attributes:
        schema: What reads it, or one of the choices of a union that may.
        value: The part, as JSON.
        is_sure: No union on the way to it has another choice that may read it.
        config: The configuration that it is read by; None for that of no model.
    """

    schema: Any
    value: Any
    is_sure: bool = True
    config: Any = None


class Places:
    """The places of the values of a type."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self.definitions = {
            one["ref"]: one
            for part in parts(schema)
            if part.get("type") == "definitions"
            for one in part["definitions"]
        }

    def of(self, value: Any, scalar: type) -> Iterator[Place]:
        """The places of the arrays, objects and scalars of one type in a value.

        Functions of the user's that look at a value before its type does hide what is within.
        """
        todo = [Place(self._schema, value)]
        seen = set()
        while todo:
            place = todo.pop()
            part, held = place.schema, place.value
            if not isinstance(held, (scalar, list, dict)) or (id(part), id(held)) in seen:
                continue
            seen.add((id(part), id(held)))
            place = place._replace(config=part.get("config", place.config))
            kind = part["type"]
            if kind == "definition-ref":
                todo.append(place._replace(schema=self.definitions[part["schema_ref"]]))
            elif kind in _AROUND:
                todo.append(place._replace(schema=part[_AROUND[kind]]))
            elif kind == "chain":
                todo.append(place._replace(schema=part["steps"][0]))
            elif kind in ("union", "tagged-union"):
                choices = list(_choices(part, held))
                is_one = sum(self._may_hold(one, held) for one in choices) < 2
                is_sure = place.is_sure and is_one
                todo += (place._replace(schema=one, is_sure=is_sure) for one in choices)
            else:
                yield place
                if isinstance(held, (list, dict)):
                    todo += (
                        place._replace(schema=inner, value=one)
                        for inner, one in _within(part, held)
                    )

    def resolved(self, schema: Any) -> Any:
        """What reads the same value, without what is around it."""
        while True:
            kind = schema["type"]
            if kind == "definition-ref":
                schema = self.definitions[schema["schema_ref"]]
            elif kind in _AROUND:
                schema = schema[_AROUND[kind]]
            elif kind == "chain":
                schema = schema["steps"][0]
            else:
                return schema

    def _may_hold(self, schema: Any, value: Any) -> bool:
        kind = self.resolved(schema)["type"]
        if kind not in CONTAINERS:
            return kind != "none" and not isinstance(value, (list, dict))
        is_object = kind in OBJECTS or (kind in _FIELDS and kind != "named-tuple")
        return is_object if isinstance(value, dict) else isinstance(value, list) and not is_object


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
    elif kind in OBJECTS and isinstance(value, dict) and "values_schema" in schema:
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
