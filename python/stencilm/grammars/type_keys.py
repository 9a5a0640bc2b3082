"""Keys of objects and elements of sets: texts that must stay distinct when they are read.

One idea: a dict or a set keeps only one of several equal members. So each key has a single
spelling, and so does each element of a set whose size is bounded. A type whose values cannot be
given a single spelling is refused if its members are counted.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from numbers import Number
from typing import Any

from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import JsonSchemaValue

from stencilm.grammars.decimal_patterns import counted_decimals, decimal_patterns
from stencilm.grammars.float_patterns import float_patterns
from stencilm.grammars.integer_patterns import integer_patterns
from stencilm.grammars.key_patterns import one_spelling, unchanged_case
from stencilm.grammars.type_bounds import (
    FUNCTIONS,
    bound_of,
    bounded,
    is_email,
    is_of_pydantic,
    with_typed_bounds,
)
from stencilm.grammars.type_configurations import ConfiguredSchemas
from stencilm.grammars.type_constraints import class_of

READ_DIGITS = 4_300  # of an integer; Python and pydantic read no more

_MICROSECONDS = "|".join(f"0{{{zeros}}}[1-9][0-9]{{{5 - zeros}}}" for zeros in range(6))
_SECONDS = rf"[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:\.(?:{_MICROSECONDS}))?"
_BELOW_60 = "(?:[1-9]|[1-5][0-9])"
_ONE_WAY = {
    "uuid": "^[0-9a-f-]*$",
    "datetime": f"T{_SECONDS}Z?$",
    "time": f"^{_SECONDS}Z?$",
    "timedelta": (
        rf"^(?:PT0S|-?P(?:[1-9][0-9]*D)?(?:T(?:(?:1?[1-9]|10|2[0-3])H)?(?:{_BELOW_60}M)?"
        rf"(?:{_BELOW_60}(?:\.[0-9]{{0,5}}[1-9])?S|0\.[0-9]{{0,5}}[1-9]S)?)?)$"
    ),
}
"""Patterns of the spelling in which pydantic writes a value that has several."""
_STRIPPED = r"^(?:[^\s\x85](?:[\s\S]*[^\s\x85])?)?$"
_WRITTEN_ONCE = frozenset({"int", "bool", "none", "str", "bytes", "date", "any", "enum", *_ONE_WAY})
_WHOLES = frozenset({"union", "tagged-union", "tuple", "named-tuple", "model", "dataclass"})
_NUMBERS = frozenset({"int", "bool", "float", "decimal", "complex", "fraction"})
_UNHASHABLE = frozenset({"list", "set", "dict", "counter", "ordered-dict", "deque", "typed-dict"})
_SCALARS: JsonSchemaValue = {"type": ["null", "boolean", "number", "string"]}


def all_of(patterns: Sequence[str]) -> JsonSchemaValue:
    """The intersection of these patterns."""
    first, *others = patterns
    return {
        "pattern": first,
        **({"allOf": [{"pattern": more} for more in others]} if others else {}),
    }


class DistinctSchemas(ConfiguredSchemas):
    """pydantic's writer of schemas, with objects and sets of which reading loses no member."""

    def dict_schema(self, schema: Any) -> JsonSchemaValue:
        """The schema of a dict, from that of its keys."""
        return self._with_keys(super().dict_schema(schema), schema)

    def ordered_dict_schema(self, schema: Any) -> JsonSchemaValue:
        """The schema of an OrderedDict, from that of its keys."""
        return self._with_keys(super().ordered_dict_schema(schema), schema)

    def counter_schema(self, schema: Any) -> JsonSchemaValue:
        """The schema of a Counter, from that of its keys."""
        return self._with_keys(super().counter_schema(schema), schema)

    def frozendict_schema(self, schema: Any) -> JsonSchemaValue:
        """The schema of a frozen dict, from that of its keys."""
        return self._with_keys(super().frozendict_schema(schema), schema)

    def set_schema(self, schema: Any) -> JsonSchemaValue:
        """The schema of a set, from that of its elements."""
        return self._with_elements(super().set_schema(schema), schema)

    def frozenset_schema(self, schema: Any) -> JsonSchemaValue:
        """The schema of a frozenset, from that of its elements."""
        return self._with_elements(super().frozenset_schema(schema), schema)

    def _with_keys(self, described: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
        """An object whose keys are texts of their type."""
        keys = schema.get("keys_schema")
        if keys is None:
            return described
        texts = self._key_texts(keys)
        if schema.get("min_length", 0) > 1 and self._is_ambiguous(keys, is_key=True):
            raise _too_few("keys of a dict", schema["min_length"])
        # pydantic's `patternProperties` would leave all other names unconstrained.
        by_pattern = described.pop("patternProperties", None)
        if by_pattern:
            (values,) = by_pattern.values()
            described["additionalProperties"] = values or True
        described.pop("propertyNames", None)
        return {**described, "propertyNames": texts} if texts else described

    def _key_texts(self, keys: Any) -> JsonSchemaValue:
        """The schema of written keys, which are strings whatever their type is."""
        schema = self._inner(keys)
        bounds = {name: schema[name] for name in ("ge", "gt", "le", "lt") if name in schema}
        if "multiple_of" in schema:
            raise PydanticInvalidForJsonSchema(
                f"multiple_of={schema['multiple_of']} of a key cannot be kept in its text: leave "
                "it out, or use a list of pairs"
            )
        match schema["type"]:
            case "int":
                low = schema["gt"] + 1 if "gt" in schema else schema.get("ge")
                high = schema["lt"] - 1 if "lt" in schema else schema.get("le")
                return all_of(integer_patterns(low, high, READ_DIGITS))
            case "float":
                return all_of(float_patterns(bounds))
            case "decimal":
                return all_of([f"^{counted_decimals(schema)}$", *decimal_patterns(bounds)])
            case "bool":
                return {"enum": ["true", "false"]}
            case "literal" | "enum":
                return _listed(schema)
            case "union" | "tagged-union":
                return self._any_of_keys(schema)
        texts = None if self._unhashable(schema) else self._texts(schema)
        if texts is None:
            raise _no_key(schema)
        texts = {name: said for name, said in texts.items() if name not in ("type", "title")}
        if schema["type"] in ("fraction", "complex") or texts.get("format") == "fraction":
            raise PydanticInvalidForJsonSchema(
                f"a key that is a {_name(schema)} can be written in several ways, of which a dict "
                "keeps one: use a list of pairs, or a Decimal"
            )
        return _with_patterns(
            self._in_one_way(schema, texts),
            one_spelling(schema, texts),
            unchanged_case(schema, self._config) if schema["type"] == "str" else None,
        )

    def _any_of_keys(self, schema: Any) -> JsonSchemaValue:
        choices = list(_parts(schema))
        # If none can be read, the first one raises the reason.
        read = [choice for choice in choices if self._reads_key(choice)] or choices
        ways = [self._key_texts(choice) for choice in read]
        return {} if {} in ways else {"anyOf": ways}

    def _reads_key(self, schema: Any) -> bool:
        try:
            self._key_texts(schema)
        except PydanticInvalidForJsonSchema:
            return False
        return True

    def _with_elements(self, described: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
        """An array whose elements all stay distinct in the set that is read from it."""
        items = self._inner(schema.get("items_schema", {"type": "any"}))
        least = schema.get("min_length", 0)
        if items["type"] == "any":
            if least > 1:  # true and 1 are equal
                raise _too_few("elements of a set", least)
            return {**described, "items": _SCALARS}
        unhashable = self._unhashable(items)
        if unhashable is not None:
            raise PydanticInvalidForJsonSchema(
                f"no set can hold a value of {_name(unhashable)}, which has no hash: use a list"
            )
        if least < 2:
            return described
        texts = self._texts(items) if self._ways(items) else None
        if texts is not None:
            return {**described, "items": self._in_one_way(items, texts)}
        if self._is_ambiguous(items):
            raise _too_few("elements of a set", least)
        return described

    def _texts(self, schema: Any) -> JsonSchemaValue | None:
        """The strings that a type reads; None if it reads none."""
        if schema["type"] == "any":
            return {}
        # The schema itself, not a reference to it.
        described = self.generate_inner(_without_name(schema))
        parts = [
            part for part in described.get("anyOf", [described]) if part.get("type") == "string"
        ]
        return None if not parts else parts[0] if len(parts) == 1 else {"anyOf": parts}

    def _in_one_way(self, schema: Any, texts: JsonSchemaValue) -> JsonSchemaValue:
        """The texts of a type, restricted to one spelling of each value."""
        return _with_patterns(texts, *self._ways(schema))

    def _ways(self, schema: Any) -> list[str]:
        """Patterns that leave one spelling of each text of a type."""
        match schema["type"]:
            case "bytes":
                return ["^[0-9a-f]*$"] if self._config.val_json_bytes == "hex" else []
            case "str":
                stripped = schema.get("strip_whitespace", self._config.str_strip_whitespace)
                return [_STRIPPED] if stripped else []
            case "decimal":
                return decimal_patterns({})
            case kind:
                return [_ONE_WAY[kind]] if kind in _ONE_WAY else []

    def _is_ambiguous(
        self, schema: Any, *, is_key: bool = False, within: tuple[int, ...] = ()
    ) -> bool:
        """Whether a value has several spellings that a uniqueness check would not see as equal.

        If it `is_key`, patterns have already restricted the spellings.
        """
        schema = self._inner(schema)
        kind = schema["type"]
        if id(schema) in within:
            return False
        if kind in _WHOLES:
            return self._is_whole_ambiguous(schema, is_key, (*within, id(schema)))
        if kind == "literal":
            return len(set(schema["expected"])) < len(schema["expected"])
        if kind == "str" and (schema.get("to_lower") or schema.get("to_upper")):
            return True
        if is_email(schema):
            return False
        if kind in ("float", "decimal"):
            return not is_key and _may_be_rounded(schema)
        if kind in _WRITTEN_ONCE:
            return not is_key and bool(self._ways(schema))
        texts = self._texts(schema)
        return texts is None or texts.get("format") != "ipv4"

    def _is_whole_ambiguous(self, schema: Any, is_key: bool, within: tuple[int, ...]) -> bool:
        parts = [part for part in _parts(schema) if not is_key or self._reads_key(part)]
        if "union" in schema["type"] and sum(map(self._is_number, parts)) > 1:
            return True  # 1, 1.0 and true are equal
        if not _is_known_by_parts(schema):
            return True
        return any(self._is_ambiguous(part, is_key=is_key, within=within) for part in parts)

    def _is_number(self, schema: Any) -> bool:
        """Whether its values may equal those of another type of numbers."""
        schema = self._inner(schema)
        members = [*schema.get("expected", ()), *schema.get("members", ())]
        return schema["type"] in _NUMBERS or any(isinstance(one, Number) for one in members)

    def _unhashable(self, schema: Any, within: tuple[int, ...] = ()) -> Any:
        """A type within this one whose values are not hashable; None if there is none."""
        schema = self._inner(schema)
        if id(schema) in within:
            return None
        if schema["type"] in _UNHASHABLE or ("cls" in schema and schema["cls"].__hash__ is None):
            return schema
        if schema["type"] in FUNCTIONS and getattr(class_of(schema), "__hash__", True) is None:
            return schema
        if schema["type"] == "any" and within:
            return schema  # its values may be unhashable
        found = (self._unhashable(part, (*within, id(schema))) for part in _parts(schema))
        return next((part for part in found if part is not None), None)

    def _resolved(self, schema: Any) -> Any:
        """The schema that a reference stands for."""
        while schema["type"] == "definition-ref" and schema["schema_ref"] in self._definitions:
            schema = self._definitions[schema["schema_ref"]]
        return schema

    def _bounded(self, schema: Any) -> Any:
        """A type with the bounds around it moved into it; None if its texts cannot satisfy them."""
        return bounded(schema, self._resolved) if bound_of(schema) else None

    def _inner(self, schema: Any) -> Any:
        """The type that JSON is read as, without functions that only check or change the value."""
        while True:
            schema = self._resolved(schema)
            kind = schema["type"]
            if (with_bounds := self._bounded(schema)) is not None:
                schema = with_bounds
            elif (
                kind in ("nullable", "default", "custom-error", "definitions")
                or (kind == "model" and schema.get("root_model") and schema["cls"].__hash__)
                or (kind in FUNCTIONS and not is_of_pydantic(schema))
            ):
                schema = schema["schema"]
            elif kind == "json-or-python":
                schema = schema["json_schema"]
            else:
                return with_typed_bounds(schema)


def _without_name(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in schema.items() if name != "ref"}


def _with_patterns(texts: JsonSchemaValue, *patterns: str | None) -> JsonSchemaValue:
    more = [{"pattern": pattern} for pattern in patterns if pattern is not None]
    return {**texts, "allOf": [*texts.get("allOf", []), *more]} if more else texts


def _parts(schema: Any) -> Iterator[Any]:
    """The types of the parts of a compound type, or of its alternatives."""
    match schema["type"]:
        case "tuple":
            yield from schema["items_schema"]
        case "union":
            yield from (each[0] if isinstance(each, tuple) else each for each in schema["choices"])
        case "tagged-union":
            yield from schema["choices"].values()
        case "named-tuple" | "model" | "dataclass":
            yield from (field["schema"] for field in _fields(schema))


def _fields(schema: Any) -> list[Any]:
    if schema["type"] != "named-tuple":
        schema = schema["schema"]
    while "fields" not in schema and "schema" in schema:
        schema = schema["schema"]
    fields = schema.get("fields", [])
    return list(fields.values() if isinstance(fields, Mapping) else fields)


def _is_known_by_parts(schema: Any) -> bool:
    """Whether values are equal whenever all their parts are, and every part is always written."""
    if schema["type"] not in ("named-tuple", "model", "dataclass"):
        return True
    compared = "__eq__" in vars(schema["cls"]) and schema["type"] == "model"
    left_out = any(
        field["schema"]["type"] == "default" or isinstance(field.get("validation_alias"), list)
        for field in _fields(schema)
    )
    return not (compared or left_out or schema.get("config", {}).get("extra") == "allow")


def _may_be_rounded(schema: Any) -> bool:
    """Whether JSON numbers of a type may have more digits than the float that they are read as."""
    if schema["type"] == "float" or schema.get("decimal_places") is None:
        return True
    return bool(schema.get("max_digits", math.inf) > sys.float_info.dig)


def _listed(schema: Any) -> JsonSchemaValue:
    """The texts of the members of a `Literal` or an `Enum`, as keys."""
    match schema.get("sub_type"):
        case "int":
            texts = [str(int(member)) for member in schema["members"]]
        case "float":
            texts = [repr(float(member)) for member in schema["members"]]
        case _:
            values = schema.get("expected") or [member.value for member in schema["members"]]
            texts = [value for value in values if isinstance(value, str)]
    if not texts:
        raise _no_key(schema)
    return {"enum": texts}


def _name(schema: Any) -> str:
    """The name of a type in messages."""
    held = class_of(schema) if schema["type"] in FUNCTIONS else schema.get("cls")
    return str(schema["type"] if held is None else held.__name__)


def _no_key(schema: Any) -> PydanticInvalidForJsonSchema:
    return PydanticInvalidForJsonSchema(
        f"pydantic reads no key of an object as a {_name(schema)}: use a list of pairs"
    )


def _too_few(what: str, least: int) -> PydanticInvalidForJsonSchema:
    return PydanticInvalidForJsonSchema(
        f"min_length={least} counts {what} once they are read, and what is equal then can be "
        "written in several ways: leave it out, or use a list"
    )
