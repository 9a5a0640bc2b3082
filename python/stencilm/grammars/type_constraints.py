"""Constraints that pydantic accepts around any type, but can apply only to some values.

One idea: if a type has no such constraint of its own, pydantic checks the value that was read, and
fails with a bare TypeError if that has no length, or is not a text. By then a model has already
written the text. So the class of the values is determined in advance, and the constraint refused.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import functools
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import AnyUrl, EmailStr, Secret

_CLASSES: dict[str, type] = {
    "bool": bool,
    "bytes": bytes,
    "complex": complex,
    "counter": collections.Counter,
    "date": datetime.date,
    "datetime": datetime.datetime,
    "decimal": decimal.Decimal,
    "deque": collections.deque,
    "dict": dict,
    "float": float,
    "fraction": fractions.Fraction,
    "frozenset": frozenset,
    "generator": Iterator,
    "int": int,
    "list": list,
    "multi-host-url": AnyUrl,
    "none": type(None),
    "set": set,
    "str": str,
    "time": datetime.time,
    "timedelta": datetime.timedelta,
    "named-tuple": tuple,
    "tuple": tuple,
    "typed-dict": dict,
    "url": AnyUrl,
    "uuid": uuid.UUID,
}
# By the beginning of the name of pydantic's function that makes the values.
_MAKERS: dict[str, type] = {
    "Secret": Secret,
    "pattern_either_validator": re.Pattern,
    "pattern_str_validator": re.Pattern,
}
_NEEDS = {
    "min_length_validator": ("min_length", "__len__"),
    "max_length_validator": ("max_length", "__len__"),
    "forbid_inf_nan_check": ("allow_inf_nan", "__float__"),
}


MADE_OF_TEXTS = frozenset(
    {
        "function-after",
        "function-before",
        "function-plain",
        "function-wrap",
        "generator",
        "json-or-python",
        "lax-or-strict",
    }
)
"""Schemas that read values of other types from texts, such as a path or a `ByteSize`."""
_CHOICES = frozenset({"any", "chain", "literal", "tagged-union", "union"})
"""Schemas that read values of several classes."""

Resolve = Callable[[Any], Any]


def inapplicable(schema: Any, resolve: Resolve) -> str | None:
    """An error message for a constraint that pydantic cannot apply; None if all can be applied.

    Args:
        schema: A core schema of pydantic with constraints around it.
        resolve: Resolves a reference; returns any other schema unchanged.
    """
    if schema["type"] == "function-after":
        called = _function(schema)
        if isinstance(called, functools.partial):
            called = called.func
        name, need = _NEEDS.get(getattr(called, "__name__", ""), ("", ""))
        if name and _is_of_pydantic(called):
            what = "have no length" if need == "__len__" else "are no numbers"
            classes = _classes(schema["schema"], resolve, with_choices=need == "__float__")
            lacking = (values for values in classes if not hasattr(values, need))
            return next((_refusal(name, values, what) for values in lacking), None)
    if schema["type"] == "chain":
        first = resolve(schema["steps"][0])
        # In a union, only alternatives that make values of texts may read a text that was meant for
        # another alternative.
        readers = [first] if first["type"] != "union" else _made_of_texts(first, resolve)
        classes = filter(None, map(class_of, readers))
        values = next((one for one in classes if not issubclass(one, str)), None)
        for step in schema["steps"][1:]:
            is_text = step["type"] == "function-wrap" and step["schema"]["type"] == "str"
            is_text = is_text and _is_of_pydantic(_function(step))
            if is_text and values is not None:
                name = next((one for one in step["schema"] if one != "type"), "it")
                return _refusal(name, values, "are no texts")
    return None


def class_of(schema: Any) -> type | None:
    """The class of the values that pydantic reads; None if it is not known."""
    while schema["type"] in ("function-after", "function-plain"):
        called = _function(schema)
        if not _is_of_pydantic(called):
            return None
        owner = getattr(called, "__self__", None)
        if isinstance(owner, type):  # such as ByteSize, which makes its values itself
            return str if owner is EmailStr else owner
        maker = getattr(called, "__qualname__", "").partition(".")[0]
        if schema["type"] == "function-plain" or maker in _MAKERS:
            return _MAKERS.get(maker)
        schema = schema["schema"]
    if schema["type"] == "function-wrap" and schema["schema"]["type"] in ("url", "multi-host-url"):
        return AnyUrl
    if schema["type"] in ("lax-or-strict", "json-or-python"):
        known = next(classes_within(schema), None)
        read = schema.get("json_schema", {"type": ""})
        if known is None and read["type"] == "any":
            return object  # such as JsonValue
        return class_of(read) if known is None else known
    if schema["type"] in ("model", "dataclass", "enum"):
        held: type = schema["cls"]
        return held
    if schema["type"] == "literal":
        kinds = {type(member) for member in schema["expected"]}
        return kinds.pop() if len(kinds) == 1 else None
    return _CLASSES.get(schema["type"])


def _classes(schema: Any, resolve: Resolve, *, with_choices: bool) -> Iterator[type]:
    """The known classes of the values that pydantic reads, also those of a single alternative.

    Lengths are moved into each alternative that has one, see `type_bounds`.
    """
    waiting, seen = [schema], set[int]()
    while waiting:
        part = resolve(waiting.pop())
        if id(part) in seen:
            continue
        seen.add(id(part))
        kind = part["type"]
        if kind in ("definitions", "default", "nullable"):
            waiting.append(part["schema"])
        elif not with_choices or kind not in _CHOICES:
            yield from filter(None, [class_of(part)])
        elif kind == "chain":
            waiting.append(part["steps"][0])
        elif kind == "any":
            yield object
        elif kind == "literal":
            yield from map(type, part["expected"])
        else:
            choices = part["choices"]
            choices = choices.values() if isinstance(choices, dict) else choices
            waiting += [choice[0] if isinstance(choice, tuple) else choice for choice in choices]


def _made_of_texts(union: Any, resolve: Resolve) -> list[Any]:
    choices = (choice[0] if isinstance(choice, tuple) else choice for choice in union["choices"])
    return [part for part in map(resolve, choices) if part["type"] in MADE_OF_TEXTS]


def classes_within(schema: Any) -> Iterator[type]:
    """The classes whose instances a core schema accepts."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if isinstance(part.get("cls"), type):
                yield part["cls"]
            waiting += [part[name] for name in part if name.endswith(("schema", "choices"))]
        elif isinstance(part, list):
            waiting += part


def _function(schema: Any) -> Any:
    function = schema.get("function")
    return function.get("function") if isinstance(function, dict) else None


def _is_of_pydantic(called: Any) -> bool:
    called = called.func if isinstance(called, functools.partial) else called
    return str(getattr(called, "__module__", "")).startswith("pydantic.")


def _refusal(name: str, values: type, what: str) -> str:
    whose = f"{values.__name__}, whose values {what}"
    if values is object:
        whose = f"values of every type, some of which {what}"
    return (
        f"{name} cannot be applied to {whose}: leave it out, or "
        "check a str and convert it yourself, as in Annotated[str, Field(...)]"
    )
