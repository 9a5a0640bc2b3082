"""Values written without a mark of their type: chooses the possible one of two readings.

One idea: only a value that certainly violates the schema is rejected. So a text such as `1.5`,
where an integer or a string is allowed, is the string; anything that would need a validator is left
to one.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from typing import Any

from stencilm.grammars.json_values import NumberTooLarge, read_json
from stencilm.tool_calls.reading import Malformed
from stencilm.tool_calls.schema_types import resolve, type_of, types_of

_PYTHON_WORDS = {"True": True, "False": False, "None": None}
_MAX_DEPTH = 64
# Only for these keywords it is certain on both sides whether a value fits.
_DECIDED = frozenset({"type", "const", "enum", "title", "description"})
_BOUNDS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, bound: bool(value >= bound),
    "maximum": lambda value, bound: bool(value <= bound),
    "exclusiveMinimum": lambda value, bound: bool(value > bound),
    "exclusiveMaximum": lambda value, bound: bool(value < bound),
}
_LENGTHS = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}


def read_value(text: str, schema: Any, root: Any) -> Any:
    """Read a value that is written without a mark of its type: a string as it is, others as JSON.

    If both a string and another type are possible, a text that reads as another type is that type,
    provided that the schema may allow it.

    Raises:
        Malformed: It is a number that Python cannot represent.
    """
    types = types_of(schema, root)
    if types == {"string"}:
        return text
    value = _read(text, types)
    if isinstance(value, str) or type_of(value) not in types:
        return text  # even if it is a JSON string: the quotes of a raw string belong to it
    is_text = "string" in types and not may_hold(schema, value, root)
    return text if is_text and may_hold(schema, text, root) else value


def _read(text: str, types: frozenset[str]) -> Any:
    # Whitespace of other scripts is not JSON whitespace, so it may occur in a text.
    word = text.strip(" \t\r\n" if "string" in types else None)
    if "boolean" in types or "null" in types:
        # Some templates print a value as Python does.
        known = _PYTHON_WORDS.get(word, word)
        if known is not word and type_of(known) in types:
            return known
    try:
        return read_json(word, exact=True)
    except NumberTooLarge as error:
        if "string" not in types:
            raise Malformed(str(error)) from None
        return text
    except ValueError:
        return text if "string" in types else _python_value(word, text)


def _python_value(word: str, text: str) -> Any:
    """A list or dict that a template printed as Python does; otherwise the text."""
    try:
        value = ast.literal_eval(word)
        return json.loads(json.dumps(value, allow_nan=False))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def may_hold(schema: Any, value: Any, root: Any) -> bool:
    """False if a value certainly violates a schema.

    Args:
        schema: The schema; any other value allows everything.
        value: A JSON value.
        root: The document that references of the schema point into.
    """
    return _Fitting(root).may_hold(schema, value, 0)


class _Fitting:
    """Checks of values, each made against a schema only once."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: dict[tuple[int, int], bool] = {}

    def may_hold(self, schema: Any, value: Any, depth: int) -> bool:
        if depth > _MAX_DEPTH or isinstance(schema, bool):
            return schema is not False
        if not isinstance(schema, Mapping) or (value is None and schema.get("nullable") is True):
            return True
        key = (id(schema), id(value))
        if key not in self._known:
            self._known[key] = True  # for a recursive reference
            self._known[key] = (
                _is_of_type(schema.get("type"), value)
                and _is_listed(schema, value)
                and _is_within(schema, value)
                and self._parts_may_hold(schema, value, depth + 1)
                and self._combined_may_hold(schema, value, depth + 1)
            )
        return self._known[key]

    def _parts_may_hold(self, schema: Mapping[str, Any], value: Any, depth: int) -> bool:
        if isinstance(value, list):
            items = schema.get("items")
            is_plain = "prefixItems" not in schema and not isinstance(items, list)
            return not is_plain or all(self.may_hold(items, part, depth) for part in value)
        if not isinstance(value, Mapping):
            return True
        required, properties = schema.get("required"), schema.get("properties")
        if isinstance(required, list) and not all(name in value for name in required):
            return False
        known = properties if isinstance(properties, Mapping) else {}
        is_closed = schema.get("additionalProperties") is False
        if is_closed and "patternProperties" not in schema and not value.keys() <= known.keys():
            return False
        return all(self.may_hold(known.get(name), part, depth) for name, part in value.items())

    def _combined_may_hold(self, schema: Mapping[str, Any], value: Any, depth: int) -> bool:
        def of(part: Any) -> bool:
            return self.may_hold(part, value, depth)

        for keyword in ("anyOf", "oneOf"):
            ways = schema.get(keyword)
            if isinstance(ways, list) and not any(map(of, ways)):
                return False
        parts = schema.get("allOf")
        if isinstance(parts, list) and not all(map(of, parts)):
            return False
        refused = schema.get("not")
        if isinstance(refused, Mapping) and refused.keys() <= _DECIDED and of(refused):
            return False
        reference = schema.get("$ref")
        return not isinstance(reference, str) or of(resolve(reference, self._root))


def _is_of_type(declared: Any, value: Any) -> bool:
    if declared is None:
        return True
    kinds = [declared] if isinstance(declared, str) else declared
    if not isinstance(kinds, list):
        return True
    return type_of(value) in kinds or ("integer" in kinds and _is_integer(value))


def _is_integer(value: Any) -> bool:
    """Whether a number is an integer; a number beyond floats is judged by its digits."""
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def _is_listed(schema: Mapping[str, Any], value: Any) -> bool:
    listed = schema.get("enum")
    if isinstance(listed, list) and not any(_are_equal(one, value) for one in listed):
        return False
    return "const" not in schema or _are_equal(schema["const"], value)


def _are_equal(one: Any, other: Any) -> bool:
    if type_of(one) != type_of(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_are_equal, one, other))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_are_equal(one[key], other[key]) for key in one)
    return bool(one == other)


def _is_within(schema: Mapping[str, Any], value: Any) -> bool:
    kind = type_of(value)
    if kind == "number":
        return all(
            keeps(value, schema[name])
            for name, keeps in _BOUNDS.items()
            if name in schema and type_of(schema[name]) == "number"
        )
    if kind not in _LENGTHS:
        return True
    least, most = (schema.get(name) for name in _LENGTHS[kind])
    if isinstance(least, (int, float)) and len(value) < least:
        return False
    return not isinstance(most, (int, float)) or len(value) <= most
