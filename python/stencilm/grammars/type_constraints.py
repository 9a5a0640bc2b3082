"""Constraints that pydantic takes around any type, and can apply to the values of some only.

One idea: where a type has no constraint of its own, pydantic looks at the value that was read, and
fails with a bare TypeError where that has no length, or is no text. By then a model has written it,
so it is told from the class of the values before.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import functools
import uuid
from collections.abc import Iterator
from typing import Any

from pydantic import AnyUrl, EmailStr

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
    "url": AnyUrl,
    "uuid": uuid.UUID,
}
_NEEDS = {
    "min_length_validator": ("min_length", "__len__"),
    "max_length_validator": ("max_length", "__len__"),
    "forbid_inf_nan_check": ("allow_inf_nan", "__float__"),
}


def inapplicable(schema: Any) -> str | None:
    """The sentence about a constraint that pydantic cannot apply; None where there is none.

    Args:
        schema: A schema of pydantic's core with its constraints around it.
    """
    if schema["type"] == "function-after":
        called = _function(schema)
        if isinstance(called, functools.partial):
            called = called.func
        name, need = _NEEDS.get(getattr(called, "__name__", ""), ("", ""))
        values = class_of(schema["schema"])
        if name and _is_of_pydantic(called) and values is not None and not hasattr(values, need):
            what = "have no length" if need == "__len__" else "are no numbers"
            return _told(name, values, what)
    if schema["type"] == "chain":
        values = class_of(schema["steps"][0])
        for step in schema["steps"][1:]:
            is_text = step["type"] == "function-wrap" and step["schema"]["type"] == "str"
            is_text = is_text and _is_of_pydantic(_function(step))
            if is_text and values is not None and not issubclass(values, str):
                name = next((one for one in step["schema"] if one != "type"), "it")
                return _told(name, values, "are no texts")
    return None


def class_of(schema: Any) -> type | None:
    """The class of what pydantic reads; None where that is not known."""
    while schema["type"] == "function-after" and _is_of_pydantic(_function(schema)):
        owner = getattr(_function(schema), "__self__", None)
        if isinstance(owner, type):  # such as ByteSize, which makes its values itself
            return str if owner is EmailStr else owner
        schema = schema["schema"]
    if schema["type"] == "function-wrap" and schema["schema"]["type"] in ("url", "multi-host-url"):
        return AnyUrl
    if schema["type"] in ("lax-or-strict", "json-or-python"):
        return next(classes_within(schema), None)
    if schema["type"] in ("model", "dataclass", "enum"):
        held: type = schema["cls"]
        return held
    if schema["type"] == "literal":
        kinds = {type(member) for member in schema["expected"]}
        return kinds.pop() if len(kinds) == 1 else None
    return _CLASSES.get(schema["type"])


def classes_within(schema: Any) -> Iterator[type]:
    """The classes whose instances a schema of pydantic's core lets through."""
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


def _told(name: str, values: type, what: str) -> str:
    return (
        f"{name} cannot be applied to {values.__name__}, whose values {what}: leave it out, or "
        "check a str and convert it yourself, as in Annotated[str, Field(...)]"
    )
