"""The Arrow type of an output type's values, decided once for a whole dataset.

One idea: a column has one type in every block, whatever the rows of a block contain. So the type is
derived from the schema in which values are written, not from values, and they are written under the
names of that schema; under other names, Arrow would treat them as missing. If a schema has no Arrow
type, such as a union or an object with additional keys, the column holds JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from stencilm.grammars.json_values import finite_json, write_json
from stencilm.grammars.output_types import Choice, JsonSchema
from stencilm.grammars.outputs import Output
from stencilm.grammars.python_types import json_schema_of

_SCALARS: dict[str, Any] = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "string": pa.string(),
}
_MOST_NESTED = 32


def arrow_type(output_type: Any, output: Output) -> Any:
    """The type of a column of these values; None if they are written as JSON text."""
    if isinstance(output_type, Choice):
        return _common(list(output_type.options))
    if not output.is_json:
        return pa.string()
    schema = output_type.schema if isinstance(output_type, JsonSchema) else None
    if output.json_type is not Any:
        schema = json_schema_of(output.json_type, "serialization")
    return _read(schema, schema, 0) if isinstance(schema, Mapping) else None


def dumped_text(output: Output, value: Any) -> str:
    """A value as the JSON text of its column, with numbers as they were written."""
    if output.is_json and output.json_type is Any:
        return write_json(value)
    return json.dumps(finite_json(output.dump(value)), allow_nan=False)


def _read(schema: Any, document: Mapping[str, Any], depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _MOST_NESTED:
        return None
    if "$ref" in schema:
        return _read(_pointed(schema["$ref"], document), document, depth + 1)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            parts = [part for part in schema[key] if part != {"type": "null"}]
            return _read(parts[0], document, depth + 1) if len(parts) == 1 else None
    if "allOf" in schema:
        parts = schema["allOf"]
        return _read(parts[0], document, depth + 1) if len(parts) == 1 else None
    if "enum" in schema:
        return _common(schema["enum"])
    if "const" in schema:
        return _common([schema["const"]])
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [one for one in kind if one != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
    if kind == "array":
        return _list(schema, document, depth)
    if kind == "object":
        return _struct(schema, document, depth)
    return _SCALARS.get(kind) if isinstance(kind, str) else None


def _list(schema: Mapping[str, Any], document: Mapping[str, Any], depth: int) -> Any:
    members = list(schema.get("prefixItems", ()))
    rest = schema.get("items", True)
    if not members or rest not in (False, True):
        members.append(rest)
    types = [_read(member, document, depth + 1) for member in members]
    is_one = types and types[0] is not None and all(one == types[0] for one in types)
    return pa.list_(types[0]) if is_one else None


def _struct(schema: Mapping[str, Any], document: Mapping[str, Any], depth: int) -> Any:
    named = schema.get("properties")
    if not named or schema.get("additionalProperties") is not False:
        return None
    if schema.get("patternProperties"):
        return None
    fields = []
    for name, part in named.items():
        of_part = _read(part, document, depth + 1)
        if of_part is None:
            return None
        fields.append(pa.field(name, of_part))
    return pa.struct(fields)


def _pointed(reference: Any, document: Mapping[str, Any]) -> Any:
    """The target of a pointer within the schema; None for any other reference."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    at: Any = document
    for step in reference[1:].split("/")[1:]:
        at = at.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(at, Mapping) else None
    return at


def _common(values: list[Any]) -> Any:
    """The common type of some constants; None if there are several."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return pa.float64()
    if len(kinds) != 1:
        return None
    of_python: dict[type, Any] = {
        bool: pa.bool_(),
        int: pa.int64(),
        float: pa.float64(),
        str: pa.string(),
    }
    return of_python.get(kinds.pop())
