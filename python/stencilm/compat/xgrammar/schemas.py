"""Schemas and patterns that the original reads differently from this package."""

from __future__ import annotations

from typing import Any

_ANNOTATIONS = frozenset(
    {
        *("type", "title", "description", "default", "examples", "deprecated", "readOnly"),
        *("writeOnly", "$comment", "$id", "$schema", "$anchor", "$defs", "definitions"),
    }
)
_ONE = (
    *("items", "additionalProperties", "additionalItems", "unevaluatedItems", "contains"),
    *("unevaluatedProperties", "if", "then", "else"),
)
_SEVERAL = ("anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


def opened(schema: Any) -> Any:
    """The schema with objects opened that strict mode closes here, but not in the original.

    Parts of `allOf` and negated parts are not changed: an open part would open the whole.
    """
    if not isinstance(schema, dict):
        return schema
    made = dict(schema)
    for name in _ONE:
        if isinstance(made.get(name), dict):
            made[name] = opened(made[name])
    for name in _SEVERAL:
        if isinstance(made.get(name), list):
            made[name] = [opened(part) for part in made[name]]
    for name in _NAMED:
        if isinstance(made.get(name), dict):
            made[name] = {key: opened(part) for key, part in made[name].items()}
    kind = made.get("type")
    if (kind == "object" or (isinstance(kind, list) and "object" in kind)) and (
        made.keys() <= _ANNOTATIONS
    ):
        made["additionalProperties"] = True
    return made


def any_dot(pattern: str) -> str:
    """The pattern, with `.` for any character, as the original reads it.

    The flag stands before the pattern, not in a group around it: the bracket that closes the group
    could be one of the pattern's own.
    """
    return f"(?s){pattern}"
