"""Schemas in the part of JSON Schema that a provider's strict mode enforces.

One idea: the schema that is sent may allow more than the grammar, because every answer is checked,
and may use another form with the same meaning. But it is never one that the provider refuses. What
it leaves out is reported. If a schema cannot be expressed, no strict schema is sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote

from stencilm.errors import StencilError
from stencilm.grammars.json_values import plain_json
from stencilm.whole_numbers import written_number

SchemaSubset: TypeAlias = Literal["openai", "azure", "anthropic"]

WRAPPED = "value"
"""The member that holds any other value, if the root must be an object."""

_MAX_DEPTH = 40
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
_LOOK_AROUND = re.compile(r"\(\?<?[=!]|\(\?P?<|\\[1-9bB]|\\[pP]\{")
_ANNOTATIONS = ("title", "description")
_SILENT = frozenset(
    {
        "title", "description", "default", "examples", "example", "deprecated", "readOnly",
        "writeOnly", "$comment", "$schema", "$id", "id", "$defs", "definitions", "discriminator",
        "contentMediaType", "contentEncoding", "contentSchema", "$vocabulary", "nullable",
    }
)  # fmt: skip
_ASSERTIONS = frozenset(
    {
        "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies",
        "minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum",
        "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "contains",
        "minContains", "maxContains", "minProperties", "maxProperties", "propertyNames",
        "unevaluatedProperties", "unevaluatedItems", "additionalItems", "divisibleBy", "disallow",
    }
)  # fmt: skip
"""Keywords that may be left to checking, because they only exclude texts."""


@dataclass(frozen=True, slots=True)
class _Dialect:
    """The requirements of a provider's strict mode, from its documentation.

    Attributes:
        all_required: Every property is required; an optional one is null instead.
        is_object: The root is an object, without `anyOf`.
        recursive: Schemas may be recursive.
        keywords: The keywords that are accepted beside `type`, for each type.
        formats: The formats of strings.
        most_items: The highest `minItems`.
    """

    all_required: bool
    is_object: bool
    recursive: bool
    keywords: Mapping[str, frozenset[str]]
    formats: frozenset[str]
    most_items: int | None = None
    max_properties: int = 5_000
    max_nesting: int = 10
    max_enum: int = 1_000
    max_characters: int = 120_000


_NUMBERS = frozenset({"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_DIALECTS: dict[str, _Dialect] = {
    "openai": _Dialect(
        all_required=True,
        is_object=True,
        recursive=True,
        keywords={
            "string": frozenset({"pattern", "format"}),
            "number": _NUMBERS,
            "integer": _NUMBERS,
            "array": frozenset({"minItems", "maxItems"}),
        },
        formats=_FORMATS,
    ),
    # The same mode without any keyword that bounds a value.
    "azure": _Dialect(
        all_required=True,
        is_object=True,
        recursive=True,
        keywords={},
        formats=frozenset(),
        max_properties=100,
        max_nesting=5,
    ),
    "anthropic": _Dialect(
        all_required=False,
        is_object=False,
        recursive=False,
        keywords={"string": frozenset({"format"}), "array": frozenset({"minItems"})},
        formats=_FORMATS | {"uri"},
        most_items=1,
    ),
}


@dataclass(frozen=True, slots=True)
class SubsetSchema:
    """A schema that a strict mode accepts.

    Attributes:
        schema: The schema.
        is_wrapped: The value itself is the member `value` of the object in the answer.
        left_out: The places of keywords that it lacks; the answer is checked for them.
    """

    schema: dict[str, Any]
    is_wrapped: bool
    left_out: tuple[str, ...]


class _NotExpressible(StencilError):
    """The strict mode cannot express the schema."""


@lru_cache(maxsize=64)
def subset_schema(text: str, subset: SchemaSubset) -> SubsetSchema | None:
    """A JSON schema in the form of a strict mode; None if that cannot express it.

    Undeclared members are excluded if the schema does not mention them. Callers share the result.
    """
    try:
        schema = plain_json(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(schema, dict):
        return None
    try:
        return _Pass(schema, _DIALECTS[subset]).run()
    except _NotExpressible:
        return None


def unwrapped(text: str) -> str:
    """The text of the member `value` of an answer, as it was written; any other text unchanged."""
    opening = _WRAPPING.match(text)
    if opening is None:
        return text
    inner = text[opening.end() :]
    try:
        _, end = json.JSONDecoder().raw_decode(inner)
    except (ValueError, RecursionError):
        return inner  # truncated, or not JSON: as far as it came
    return inner[:end]


class Unwrapping:
    """`unwrapped`, for an answer that arrives in pieces: each part is read once."""

    def __init__(self) -> None:
        self._waiting: str | None = ""  # None once the member has begun
        self._depth = 0
        self._is_string = False
        self._is_escaped = False
        self._has_ended = False

    def feed(self, piece: str) -> str:
        """The part of the member in one more piece."""
        if self._waiting is not None:
            self._waiting += piece
            opening = _WRAPPING.match(self._waiting)
            if opening is None or opening.end() == len(self._waiting):
                return ""
            piece, self._waiting = self._waiting[opening.end() :], None
        if self._has_ended:
            return ""
        for at, character in enumerate(piece):
            if self._is_string:
                if self._is_escaped:
                    self._is_escaped = False
                elif character == "\\":
                    self._is_escaped = True
                elif character == '"':
                    self._is_string = False
            elif character == '"':
                self._is_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if self._depth < 0:  # the end of the object around it
                    self._has_ended = True
                    return piece[:at]
        return piece


_WRAPPING = re.compile(rf'\s*\{{\s*"{WRAPPED}"\s*:\s*')


class _Reference(NamedTuple):
    """A definition, and the members that are required beside the reference to it."""

    to: str
    required: frozenset[str]


@dataclass(slots=True)
class _Pass:
    """Converts one schema into a dialect."""

    root: dict[str, Any]
    dialect: _Dialect
    left_out: dict[str, None] = field(default_factory=dict)
    names: dict[_Reference, str] = field(default_factory=dict)
    waiting: list[_Reference] = field(default_factory=list)
    properties: int = 0
    enums: int = 0
    characters: int = 0
    deepest: int = 0

    def run(self) -> SubsetSchema:
        made = self._schema(self.root, "#", 0, 0)
        definitions: dict[str, Any] = {}
        while self.waiting:
            reference = self.waiting.pop()
            target = _requiring(self._target(reference.to), reference.required)
            definitions[self.names[reference]] = self._schema(target, reference.to, 0, 0)
        for _ in range(len(definitions) + 1):  # the root may not be a reference
            to = made.get("$ref")
            if to is None:
                break
            made = definitions[to.removeprefix("#/$defs/")]
        else:
            raise _NotExpressible("a reference to itself says nothing")
        if not self.dialect.recursive and _is_recursive(definitions):
            raise _NotExpressible("the schema refers to itself")
        is_wrapped = self.dialect.is_object and made.get("type") != "object"
        if is_wrapped:
            made = _object({WRAPPED: made}, [WRAPPED])
        if definitions:
            made = {**made, "$defs": definitions}
        too_much = (
            self.deepest + is_wrapped > self.dialect.max_nesting
            or self.properties > self.dialect.max_properties
            or self.enums > self.dialect.max_enum
            or self.characters > self.dialect.max_characters
        )
        if too_much:
            raise _NotExpressible("the schema is larger than the provider takes")
        return SubsetSchema(made, is_wrapped, tuple(self.left_out))

    def _schema(self, schema: Any, place: str, depth: int, nesting: int) -> dict[str, Any]:
        if not isinstance(schema, dict):
            raise _NotExpressible("any value, or none", place=place)
        self.deepest = max(self.deepest, nesting)
        if depth > _MAX_DEPTH or nesting > self.dialect.max_nesting:
            raise _NotExpressible("too deep", place=place)
        kept = {name: schema[name] for name in _ANNOTATIONS if isinstance(schema.get(name), str)}
        said: set[str] = set(_SILENT)
        if "$ref" in schema:
            beside = _required(schema)
            made: dict[str, Any] = {"$ref": self._reference(schema["$ref"], place, beside)}
            kept = {}  # other keywords are not allowed beside it
            said |= {"$ref", "required"}
        elif "enum" in schema or "const" in schema:
            made = self._enum(schema, place)
            said |= {"enum", "const", "type"}
        elif "anyOf" in schema or "oneOf" in schema:
            name = "anyOf" if "anyOf" in schema else "oneOf"
            if not isinstance(schema[name], list) or not schema[name]:
                raise _NotExpressible("no list of alternatives", place=place)
            made = {
                "anyOf": [
                    self._schema(one, f"{place}/{name}/{number}", depth + 1, nesting)
                    for number, one in enumerate(schema[name])
                ]
            }
            said |= {name, "type"}
        elif isinstance(schema.get("allOf"), list) and len(schema["allOf"]) == 1:
            made = self._schema(schema["allOf"][0], f"{place}/allOf/0", depth + 1, nesting)
            kept = {} if "$ref" in made else kept
            said |= {"allOf"}
        else:
            made = self._typed(schema, place, depth, nesting, said)
        for name in schema:
            if name in said:
                continue
            if name in _ASSERTIONS:
                self.left_out[f"{place}/{name}"] = None
            elif name in _STRUCTURE:
                raise _NotExpressible(f"{name} beside what is said", place=place)
        return {**kept, **made}

    def _reference(self, to: Any, place: str, required: frozenset[str]) -> str:
        if not isinstance(to, str) or not re.fullmatch(r"#(/.*)?", to):
            raise _NotExpressible("a reference to another document", place=place)
        if required and required <= _required(self._target(to)):
            required = frozenset()
        reference = _Reference(to, required)
        if reference not in self.names:
            last = re.sub(r"[^A-Za-z0-9_-]", "_", to.rpartition("/")[2]) or "root"
            name, number = last[:60], 1
            while name in self.names.values():
                number += 1
                name = f"{last[:60]}_{number}"
            self.names[reference] = name
            self.waiting.append(reference)
            self.characters += len(name)
        return f"#/$defs/{self.names[reference]}"

    def _target(self, reference: str) -> Any:
        here: Any = self.root
        for part in reference.split("/")[1:]:
            part = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(here, dict) and part in here:
                here = here[part]
                continue
            number = written_number(part) if isinstance(here, list) else None
            if number is None or number >= len(here):
                raise _NotExpressible("a reference to nothing", place=reference)
            here = here[number]
        return here

    def _enum(self, schema: dict[str, Any], place: str) -> dict[str, Any]:
        values = [schema["const"]] if "const" in schema else schema["enum"]
        if not isinstance(values, list) or not values:
            raise _NotExpressible("no list of values", place=place)
        types: dict[str, None] = {}
        for value in values:
            if value is not None and not isinstance(value, (str, bool, int, float)):
                raise _NotExpressible("a value that is no scalar", place=place)
            types[_type_of(value)] = None
            self.enums += 1
            self.characters += len(value) if isinstance(value, str) else 0
        if "number" in types:
            types.pop("integer", None)
        strings = sum(len(value) for value in values if isinstance(value, str))
        if len(values) > 250 and strings > 15_000:
            raise _NotExpressible("an enum longer than the provider takes", place=place)
        names = list(types)
        return {"type": names[0] if len(names) == 1 else names, "enum": values}

    def _typed(
        self, schema: dict[str, Any], place: str, depth: int, nesting: int, said: set[str]
    ) -> dict[str, Any]:
        types = schema.get("type")
        if types is None:
            if "properties" in schema:
                types = "object"
            elif isinstance(schema.get("items"), dict):
                types = "array"
        names = types if isinstance(types, list) else [types]
        if not names or not all(name in _TYPES for name in names):
            raise _NotExpressible("any value", place=place)
        said.add("type")
        made = [self._of_type(str(name), schema, place, depth, nesting, said) for name in names]
        if len(made) == 1:
            return made[0]
        if not any(name in ("object", "array") for name in names):
            together: dict[str, Any] = {}
            for one in made:
                together |= one
            return together | {"type": names}
        return {"anyOf": made}

    def _of_type(
        self, name: str, schema: dict[str, Any], place: str, depth: int, nesting: int,
        said: set[str],
    ) -> dict[str, Any]:  # fmt: skip
        if name == "object":
            return self._object(schema, place, depth, nesting, said)
        made: dict[str, Any] = {"type": name}
        if name == "array":
            if "items" not in schema or schema.get("prefixItems"):
                raise _NotExpressible("elements of any kind, or each of its own", place=place)
            made["items"] = self._schema(schema["items"], f"{place}/items", depth + 1, nesting)
            said |= {"items", "prefixItems"}
        for keyword in sorted(self.dialect.keywords.get(name, frozenset()) & schema.keys()):
            if self._takes(keyword, schema[keyword]):
                made[keyword] = schema[keyword]
                said.add(keyword)
        return made

    def _takes(self, keyword: str, value: Any) -> bool:
        if keyword == "format":
            return value in self.dialect.formats
        if keyword == "pattern":
            return isinstance(value, str) and not _LOOK_AROUND.search(value)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if keyword == "minItems" and self.dialect.most_items is not None:
            return is_number and value <= self.dialect.most_items
        return is_number

    def _object(
        self, schema: dict[str, Any], place: str, depth: int, nesting: int, said: set[str]
    ) -> dict[str, Any]:
        declared = schema.get("properties", {})
        more = schema.get("additionalProperties")
        is_closed = more is False or (more is None and bool(declared))
        if not isinstance(declared, dict) or not is_closed or schema.get("patternProperties"):
            raise _NotExpressible("members that are not declared", place=place)
        required = [name for name in schema.get("required", ()) if isinstance(name, str)]
        if any(name not in declared for name in required):
            raise _NotExpressible("a required member that is not declared", place=place)
        said |= {"properties", "required", "additionalProperties", "patternProperties"}
        made: dict[str, Any] = {}
        for name, one in declared.items():
            if one is False and name not in required:
                continue
            part = self._schema(one, f"{place}/properties/{name}", depth + 1, nesting + 1)
            if self.dialect.all_required and name not in required:
                part = _nullable(part)
            made[name] = part
            self.properties += 1
            self.characters += len(name)
        names = list(made) if self.dialect.all_required else required
        return _object(made, names)


_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_STRUCTURE = frozenset(
    {
        "$ref", "$dynamicRef", "$recursiveRef", "anyOf", "oneOf", "allOf", "enum", "const",
        "properties", "required", "patternProperties", "items", "prefixItems", "extends",
    }
)  # fmt: skip
"""Keywords that cannot be left to checking: a schema without them would mean something else."""


def _required(schema: Any) -> frozenset[str]:
    names = schema.get("required", ()) if isinstance(schema, dict) else ()
    return frozenset(name for name in names if isinstance(name, str))


def _requiring(schema: Any, names: frozenset[str]) -> Any:
    """A schema of objects that must have these members, too."""
    if not names:
        return schema
    if not isinstance(schema, dict) or not schema.keys() & {"$ref", "anyOf", "properties"}:
        raise _NotExpressible("members beside a reference to what is no object")
    if "anyOf" in schema and isinstance(schema["anyOf"], list):
        return {**schema, "anyOf": [_requiring(one, names) for one in schema["anyOf"]]}
    return {**schema, "required": sorted(_required(schema)) + sorted(names - _required(schema))}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, or null."""
    types = schema.get("type")
    if "anyOf" in schema:
        alternatives = schema["anyOf"]
        has_null = any(_takes_null(one) for one in alternatives)
        return schema if has_null else {**schema, "anyOf": [*alternatives, {"type": "null"}]}
    if _takes_null(schema):
        return schema
    names = [types] if isinstance(types, str) else types
    is_plain = isinstance(names, list) and not {"object", "array"} & set(names)
    if is_plain and isinstance(names, list) and "enum" not in schema:
        return {**schema, "type": [*names, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def _takes_null(schema: dict[str, Any]) -> bool:
    types = schema.get("type")
    return types == "null" or (isinstance(types, list) and "null" in types)


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    return "integer" if isinstance(value, int) else "number"


def _is_recursive(definitions: dict[str, Any]) -> bool:
    """Whether some definition is recursive."""
    uses = {name: set(_references(schema)) for name, schema in definitions.items()}
    for name in definitions:
        seen: set[str] = set()
        todo = list(uses[name])
        while todo:
            here = todo.pop()
            if here == name:
                return True
            if here not in seen:
                seen.add(here)
                todo += uses.get(here, ())
    return False


def _references(schema: Any) -> list[str]:
    found: list[str] = []
    todo = [schema]
    while todo:
        here = todo.pop()
        if isinstance(here, dict):
            reference = here.get("$ref")
            if isinstance(reference, str):
                found.append(reference.removeprefix("#/$defs/"))
            todo += here.values()
        elif isinstance(here, list):
            todo += here
    return found
