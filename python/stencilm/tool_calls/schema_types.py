"""The JSON types that a schema allows, by which argument readers tell texts from numbers."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

ALL_TYPES = frozenset({"string", "number", "boolean", "null", "object", "array"})
_MAX_DEPTH = 64


def type_of(value: Any) -> str:
    """The type of a JSON value; integers are numbers."""
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    if isinstance(value, (int, float, Decimal)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def types_of(schema: Any, root: Any) -> frozenset[str]:
    """The types that a schema may allow: possibly too many, but never too few."""
    return _types(schema, root, 0, {})


def _types(schema: Any, root: Any, depth: int, known: dict[int, frozenset[str]]) -> frozenset[str]:
    """The same, with the known results of schemas, so that each is visited once."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return ALL_TYPES
    if id(schema) in known:
        return known[id(schema)]
    known[id(schema)] = ALL_TYPES  # for a recursive reference
    types = _own_types(schema)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            types &= frozenset().union(
                *(_types(part, root, depth + 1, known) for part in schema[keyword])
            )
    for part in schema["allOf"] if isinstance(schema.get("allOf"), list) else ():
        types &= _types(part, root, depth + 1, known)
    if isinstance(schema.get("$ref"), str):
        types &= _types(resolve(schema["$ref"], root), root, depth + 1, known)
    known[id(schema)] = types
    return types


def _own_types(schema: Mapping[str, Any]) -> frozenset[str]:
    """The types that a schema allows by itself."""
    types = ALL_TYPES
    declared = schema.get("type")
    if isinstance(declared, str):
        declared = [declared]
    if isinstance(declared, list):
        types &= {
            "number" if kind == "integer" else kind for kind in declared if isinstance(kind, str)
        }
    if schema.get("nullable") is True and types != ALL_TYPES:
        types |= {"null"}
    if "const" in schema:
        types &= {type_of(schema["const"])}
    if isinstance(schema.get("enum"), list):
        types &= {type_of(value) for value in schema["enum"]}
    refused = schema.get("not")
    if isinstance(refused, Mapping) and refused.keys() == {"type"}:
        named = refused["type"] if isinstance(refused["type"], list) else [refused["type"]]
        types -= frozenset(map(str, named))  # "integer" does not exclude all numbers
    return types


def resolve(reference: str, root: Any) -> Any:
    """The target of a reference within a document; None if it is not known."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    at = root
    for step in reference[2:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(at, Mapping) and step in at:
            at = at[step]
        else:
            return None
    return at


def property_schema(schema: Any, name: str, root: Any) -> Any:
    """The schema of a property; None if none is declared."""
    return _property(schema, name, root, 0, set())


def _property(schema: Any, name: str, root: Any, depth: int, seen: set[int]) -> Any:
    """The same, in schemas that were not visited yet."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH or id(schema) in seen:
        return None
    seen.add(id(schema))
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and name in properties:
        return properties[name]
    if isinstance(schema.get("$ref"), str):
        found = _property(resolve(schema["$ref"], root), name, root, depth + 1, seen)
        if found is not None:
            return found
    for keyword in ("allOf", "anyOf", "oneOf"):
        for part in schema[keyword] if isinstance(schema.get(keyword), list) else ():
            found = _property(part, name, root, depth + 1, seen)
            if found is not None:
                return found
    additional = schema.get("additionalProperties")
    return additional if isinstance(additional, Mapping) else None


def item_schema(schema: Any, index: int, root: Any, depth: int = 0) -> Any:
    """The schema of an element; None if none is declared."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return None
    prefix = schema.get("prefixItems")
    if isinstance(prefix, list) and index < len(prefix):
        return prefix[index]
    if isinstance(schema.get("items"), Mapping):
        return schema["items"]
    if isinstance(schema.get("$ref"), str):
        return item_schema(resolve(schema["$ref"], root), index, root, depth + 1)
    return None
