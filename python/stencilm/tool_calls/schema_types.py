"""Which types of JSON a schema allows: a reader of arguments tells texts from numbers by it."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from stencilm.grammars.json_values import NumberTooLarge, read_json
from stencilm.tool_calls.reading import Malformed

ALL_TYPES = frozenset({"string", "number", "boolean", "null", "object", "array"})
_MAX_DEPTH = 32
_PYTHON_WORDS = {"True": True, "False": False, "None": None}


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


def types_of(schema: Any, root: Any, depth: int = 0) -> frozenset[str]:
    """The types that a schema may allow: never too few, where it is hard to say all."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return ALL_TYPES
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
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            types &= frozenset().union(
                *(types_of(part, root, depth + 1) for part in schema[keyword])
            )
    for part in schema["allOf"] if isinstance(schema.get("allOf"), list) else ():
        types &= types_of(part, root, depth + 1)
    if isinstance(schema.get("$ref"), str):
        types &= types_of(resolve(schema["$ref"], root), root, depth + 1)
    return types


def resolve(reference: str, root: Any) -> Any:
    """What a reference within a document leads to; None where it leads to nothing that is known."""
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


def property_schema(schema: Any, name: str, root: Any, depth: int = 0) -> Any:
    """The schema of a property, None where none is declared."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return None
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and name in properties:
        return properties[name]
    if isinstance(schema.get("$ref"), str):
        found = property_schema(resolve(schema["$ref"], root), name, root, depth + 1)
        if found is not None:
            return found
    for keyword in ("allOf", "anyOf", "oneOf"):
        for part in schema[keyword] if isinstance(schema.get(keyword), list) else ():
            found = property_schema(part, name, root, depth + 1)
            if found is not None:
                return found
    additional = schema.get("additionalProperties")
    return additional if isinstance(additional, Mapping) else None


def item_schema(schema: Any, index: int, root: Any, depth: int = 0) -> Any:
    """The schema of an element, None where none is declared."""
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


def read_value(text: str, types: frozenset[str]) -> Any:
    """A value that is written without a mark of its type: a string as it is, anything else as JSON.

    Where a string and something else may be meant, a text that reads as something else is that.

    Raises:
        Malformed: It is a number that Python has no value for.
    """
    if types == {"string"}:
        return text
    word = text.strip()
    if "boolean" in types or "null" in types:
        # Templates that print a value as Python does.
        known = _PYTHON_WORDS.get(word, word)
        if known is not word and type_of(known) in types:
            return known
    try:
        value = read_json(word, exact=True)
    except NumberTooLarge as error:
        if "string" not in types:
            raise Malformed(str(error)) from None
        value = text
    except ValueError:
        value = text
        if not types & {"string"}:
            value = _python_value(word, text)
    return value if type_of(value) in types else text


def _python_value(word: str, text: str) -> Any:
    """A list or dict that a template printed as Python does, else the text."""
    try:
        value = ast.literal_eval(word)
        return json.loads(json.dumps(value, allow_nan=False))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
