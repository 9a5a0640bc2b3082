"""The JSON Schemas of Python types: pydantic's own, corrected to match what pydantic reads.

pydantic's schemas describe; ours are enforced. If a type reads fewer texts than its schema allows,
an output could be well-formed and still not be read. If it writes texts that its schema refuses, a
value could not be written. Both are corrected here for types whose texts form a regular language.
"""

from __future__ import annotations

import json
import math
import operator
import string
import sys
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import available_timezones

from pydantic import ByteSize, EmailStr, NameEmail
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic.types import Base64Encoder, Base64UrlEncoder, EncodedStr
from pydantic_core import PydanticSerializationError, SchemaValidator, to_jsonable_python

from stencilm.grammars.decimal_patterns import counted_decimals
from stencilm.grammars.email_patterns import email_schema, name_email_schema
from stencilm.grammars.flags import flags_of
from stencilm.grammars.float_patterns import complex_pattern
from stencilm.grammars.format_patterns import VALUES, formats, has_unknown, with_formats
from stencilm.grammars.time_patterns import (
    date_patterns,
    datetime_patterns,
    duration_patterns,
    time_patterns,
)
from stencilm.grammars.type_bounds import is_of_pydantic, with_typed_bounds
from stencilm.grammars.type_constraints import inapplicable
from stencilm.grammars.type_keys import DistinctSchemas, all_of
from stencilm.grammars.type_patterns import OtherMeaning, schema_pattern
from stencilm.grammars.url_patterns import HOST, NAME, PORT, REST, USER, USER_OF_MANY, one_of
from stencilm.shown import shown_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_NEED_A_HOST = ("host_required", "default_host", "default_port")
"""Settings that pydantic can satisfy or apply only if a URL has a host."""
# Regular expressions without context: no references, and no reversed ranges or counts.
_ESCAPED = r"\\[dDwWsStnr.^$*+?()|/\[\]{}\\-]"
_CLASS = rf"\[\^?(?:a-z|A-Z|0-9|a-f|A-F|[^\\\[\]^&~|-]|{_ESCAPED})+\]"
_TIMES = r"(?:[*+?]\??|\{[0-9]{1,2},?\})?"
_PART_OF_PATTERN = rf"(?:[^\\()\[\]{{}}*+?|^$]|{_ESCAPED}|{_CLASS}){_TIMES}|[|^$]"
_GROUP_OF_PATTERN = rf"\((?:\?:)?(?:{_PART_OF_PATTERN})*\){_TIMES}"
_PATTERN = f"^(?:{_PART_OF_PATTERN}|{_GROUP_OF_PATTERN})*$"

# The Python types of JSON values, when no type is given.
_MADE_OF_JSON: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}

_DEFAULTS = ("default", "default_factory")
_IN_ASCII = r"^[\x00-\x7f]*$"

_ALPHABETS: dict[Any, str] = {Base64Encoder: "+/", Base64UrlEncoder: "-_"}

_UNIT = "(?:(?:[KMGTPEkmgtpe]i?)?[Bb]|[KMGTPEkmgtpe]i?bit|bit|[KMGTPEkmgtpe])"
_BYTE_SIZE = {
    "type": "string",
    "pattern": rf"^[0-9]{{1,15}}(?:\.[0-9]{{1,6}})? ?{_UNIT}?$",
}


def schema_generator() -> type[GenerateJsonSchema]:
    """pydantic's writer of schemas, with the changes that `json_schema_of` lists."""
    return _TypeSchemas


class _ReadFromNothing(PydanticInvalidForJsonSchema):
    """pydantic reads no JSON as this type, so a union can drop it without losing texts."""


class _TypeSchemas(DistinctSchemas):
    _has_tags = False

    def generate(self, schema: Any, mode: Any = "validation") -> JsonSchemaValue:
        described = super().generate(schema, mode)
        if self._has_tags:
            described = _without_repeats(described, described.get("$defs", {}))
        return with_formats(described, formats()) if has_unknown(described) else described

    def ser_schema(self, schema: Any) -> JsonSchemaValue | None:
        is_function = schema["type"] in ("function-plain", "function-wrap")
        if is_function and schema.get("return_schema") is None:
            module = str(getattr(schema["function"], "__module__", ""))
            if not module.startswith("pydantic."):
                return {}  # pydantic would describe the read value, not the function's
        return super().ser_schema(schema)

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        described = _closed(super().model_schema(schema))
        fields = schema["schema"]
        while "schema" in fields and fields["type"] != "model-fields":
            fields = fields["schema"]
        if (keys := fields.get("extras_keys_schema")) is not None:
            # pydantic describes the values of extra fields, but not their names.
            declared = {"enum": [*described["properties"]]} if described.get("properties") else None
            named = self.generate_inner(keys)
            described["propertyNames"] = {"anyOf": [declared, named]} if declared else named
        return described

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        described = _closed(super().dataclass_schema(schema))
        properties = described.get("properties", {})
        if properties:
            # In the order in which values are written; pydantic moves keyword-only fields to the
            # end.
            names = self._names_of_fields(schema["schema"])
            order = [names[field] for field in schema["cls"].__dataclass_fields__ if field in names]
            described["properties"] = {
                name: properties[name]
                for name in dict.fromkeys([*order, *properties])
                if name in properties
            }
        return described

    def _names_of_fields(self, schema: Any) -> dict[str, str]:
        while "fields" not in schema and "schema" in schema:
            schema = schema["schema"]
        return {
            field["name"]: self._get_alias_name(field, field["name"])
            for field in schema.get("fields", [])
        }

    def field_is_present(self, field: Any) -> bool:
        # A field that a dataclass sets itself is not read; its value would be lost.
        return super().field_is_present(field) and field.get("init") is not False

    def field_is_required(self, field: Any, total: bool) -> bool:
        # `OnErrorOmit` is a default without a value.
        inner = field["schema"]
        is_omitted = inner["type"] == "default" and inner.keys().isdisjoint(_DEFAULTS)
        return super().field_is_required(field, total) or (
            is_omitted and field["type"] != "typed-dict-field"
        )

    def tuple_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().tuple_schema(schema)
        # pydantic replaces the number of fixed elements by its bounds.
        variadic = schema.get("variadic_item_index")
        named = len(schema["items_schema"]) - (variadic is not None)
        if named:
            described["minItems"] = max(named, schema.get("min_length") or 0)
        if variadic is None:
            described["maxItems"] = min(named, schema.get("max_length", named))
        return described

    def typed_dict_schema(self, schema: Any) -> JsonSchemaValue:
        return _closed(super().typed_dict_schema(schema))

    def emit_warning(self, kind: Any, detail: str) -> None:
        # pydantic would leave such an alternative out of the schema, but still try it on every
        # text.
        if kind == "skipped-choice" and not isinstance(sys.exc_info()[1], _ReadFromNothing):
            raise PydanticInvalidForJsonSchema(detail)
        super().emit_warning(kind, detail)

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
        try:
            return super().handle_invalid_for_json_schema(schema, error_info)
        except PydanticInvalidForJsonSchema:
            if schema["type"] in ("callable", "is-instance"):
                named = schema.get("cls_repr") or getattr(schema.get("cls"), "__name__", "")
                raise _ReadFromNothing(
                    f"pydantic reads no JSON as {named or 'a function'}: use a model or a dataclass"
                    + (" with its fields" if named else " of its arguments, or a Literal of names")
                ) from None
            raise

    def union_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().union_schema(schema)
        if described == {"anyOf": []}:  # all of them are left out
            raise _ReadFromNothing(
                "pydantic reads no JSON as any of the union: add a type of values"
            )
        return described

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:
        try:
            return super().nullable_schema(schema)
        except _ReadFromNothing:  # left out, as from any other union
            return {"type": "null"}

    def tagged_union_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().tagged_union_schema(schema)
        if "oneOf" in described:
            has_tag = _has_tag(schema["discriminator"], described)
            self._has_tags |= bool(has_tag)
            # pydantic requires the tag even if its field has a default.
            described["anyOf"] = [
                _and(alternative, has_tag) for alternative in described.pop("oneOf")
            ]
        return described

    def literal_schema(self, schema: Any) -> JsonSchemaValue:
        read = SchemaValidator(schema)
        for value in schema["expected"]:
            if _is_read(read, value):
                continue
            shown, way_out = repr(value), "leave it out, or use its text"
            if isinstance(value, Enum):
                shown, way_out = str(value), f"derive {type(value).__name__} from str or int"
            raise PydanticInvalidForJsonSchema(
                f"pydantic reads no JSON as {shown} in a Literal: {way_out}"
            )
        return super().literal_schema(schema)

    def enum_schema(self, schema: Any) -> JsonSchemaValue:
        if schema["members"]:
            read = SchemaValidator(schema)
            for member in schema["members"]:
                if not _is_read(read, member):
                    raise PydanticInvalidForJsonSchema(
                        f"pydantic reads no JSON as {member}, which is {member.value!r}: give it a "
                        "value that JSON has, as a text or a finite number"
                    )
        described = super().enum_schema(schema)
        if flags := flags_of(schema):
            described["enum"] = flags
        return described

    def _named_required_fields_schema(self, named: Any) -> JsonSchemaValue:
        described = super()._named_required_fields_schema(named)
        # If several fields are read from one member, pydantic describes only the last of them.
        fields: dict[str, list[Any]] = {}
        for name, _, field in named:
            fields.setdefault(self._get_alias_name(field, name), []).append(field)
        for name, several in fields.items():
            if len(several) > 1 and name in described["properties"]:
                described["properties"][name] = {"allOf": [*map(self.generate_inner, several)]}
        if "required" in described:
            described["required"] = [*dict.fromkeys(described["required"])]
        return described

    def model_field_schema(self, schema: Any) -> JsonSchemaValue:
        _check_alias(schema)
        return super().model_field_schema(schema)

    def dataclass_field_schema(self, schema: Any) -> JsonSchemaValue:
        _check_alias(schema)
        return super().dataclass_field_schema(schema)

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        described = _as_read(super().float_schema(schema), schema, float)
        if schema.get("allow_inf_nan") is False:
            # A larger number is read as infinity.
            largest = 1.7976931348623157e308
            described.setdefault("maximum", largest)
            described.setdefault("minimum", -largest)
        if "multiple_of" in schema:
            limit = _largest_multiple(schema["multiple_of"])
            described["allOf"] = [{"minimum": -limit, "maximum": limit}]
        return described

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        # pydantic's own schema allows any string, and numbers that are rounded to floats.
        if not schema.keys() & {"gt", "ge", "lt", "le", "multiple_of"}:
            return {"type": "string", "pattern": f"^{counted_decimals(schema)}$"}
        branches = super().decimal_schema(schema).get("anyOf", [])
        described = next(dict(branch) for branch in branches if branch["type"] == "number")
        described = _as_read(described, schema, lambda number: Decimal(repr(number)))
        parts = [*_of_digits(schema)]
        if schema.get("multiple_of") is not None:
            # With more digits, a number is rounded to a float that may not be a multiple.
            places = len(f"{Decimal(schema['multiple_of']):f}".partition(".")[2])
            limit = 10 ** max(sys.float_info.dig - places, 0)
            within = {"exclusiveMinimum": -limit, "exclusiveMaximum": limit}
            parts.append(within)
        return {**described, "allOf": parts} if parts else described

    def date_schema(self, schema: Any) -> JsonSchemaValue:
        return {**super().date_schema(schema), **all_of(date_patterns(schema))}

    def time_schema(self, schema: Any) -> JsonSchemaValue:
        return {"type": "string", **all_of(time_patterns(schema))}

    def datetime_schema(self, schema: Any) -> JsonSchemaValue:
        return {"type": "string", **all_of(datetime_patterns(schema))}

    def timedelta_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().timedelta_schema(schema)
        if described.get("format") == "duration":
            return {"type": "string", **all_of(duration_patterns(schema))}
        return described

    def complex_schema(self, schema: Any) -> JsonSchemaValue:
        return {**super().complex_schema(schema), "pattern": complex_pattern()}

    def fraction_schema(self, schema: Any) -> JsonSchemaValue:
        # Before 2.14, pydantic writes only the format, without the type.
        if bounds := schema.keys() & {"ge", "gt", "le", "lt", "multiple_of"}:
            raise PydanticInvalidForJsonSchema(
                f"{min(bounds)} of a Fraction is no bound on its text: leave it out, or use Decimal"
            )
        return {"type": "string", "format": "fraction"}

    def str_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().str_schema(schema)
        pattern = schema.get("pattern")
        if pattern is not None:
            engine = schema.get("regex_engine") or self._config.regex_engine
            try:
                found = schema_pattern(pattern, is_python=engine == "python-re")
            except OtherMeaning as error:
                shown = pattern if isinstance(pattern, str) else pattern.pattern
                raise PydanticInvalidForJsonSchema(
                    f"the pattern {shown_value(shown):.60} means something else to pydantic than "
                    "in a "
                    f"schema: {error}; write it in another way"
                ) from None
            described["pattern"] = found
        # The configuration of a model applies where the type itself has no setting. Before 2.13,
        # pydantic ignores the configured lengths.
        if self._config.str_min_length:
            described.setdefault("minLength", self._config.str_min_length)
        if self._config.str_max_length is not None:
            described.setdefault("maxLength", self._config.str_max_length)
        is_stripped = schema.get("strip_whitespace", self._config.str_strip_whitespace)
        if schema.get("ascii_only"):
            described["allOf"] = [{"pattern": _IN_ASCII}]
        if is_stripped and described.keys() & {"minLength", "pattern"}:
            # Stripped whitespace must not be counted, or matched by the pattern.
            stripped = {"pattern": r"^(?:[^\s\x85](?:[\s\S]*[^\s\x85])?)?$"}
            described["allOf"] = [*described.get("allOf", ()), stripped]
        return described

    def bytes_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().bytes_schema(schema)
        coding = self._config.val_json_bytes
        if coding != "utf8":
            pattern = _coded_bytes(coding, schema.get("min_length", 0), schema.get("max_length"))
            return {"type": "string", "pattern": pattern}
        if "max_length" in schema:
            # pydantic counts bytes, a schema characters.
            described["pattern"] = _IN_ASCII
        return described

    def chain_schema(self, schema: Any) -> JsonSchemaValue:
        first, *others = schema["steps"]
        described = self.generate_inner(first)
        texts = [self.generate_inner(step["schema"]) for step in others if _is_of_text(step)]
        if texts and _is_decoded(self._resolved(first)):
            raise PydanticInvalidForJsonSchema(
                "pydantic looks for a pattern in what a text of Base64 stands for, and no schema "
                "does: leave it out"
            )
        if texts and not _is_changed(self._resolved(first)):
            # A pattern around a type other than str is checked after it.
            return {"allOf": [described, *texts]}
        classes = tuple(step["cls"] for step in others if step["type"] == "is-instance")
        if classes and self._resolved(first)["type"] == "any":
            return _of_classes(classes)
        return super().chain_schema(schema)

    def json_schema(self, schema: Any) -> JsonSchemaValue:
        raise PydanticInvalidForJsonSchema(
            "Json is JSON within a string, which no grammar here describes: use the type in it"
        )

    def is_subclass_schema(self, schema: Any) -> JsonSchemaValue:
        raise _ReadFromNothing("pydantic reads no JSON as a class: use a Literal of names")

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        refused = inapplicable(schema, self._resolved)
        if refused is not None:
            raise PydanticInvalidForJsonSchema(refused)
        with_bounds = self._bounded(schema)
        if with_bounds is not None:
            return self.generate_inner(with_bounds)
        described = _with_lengths(super().generate_inner(with_typed_bounds(schema)))
        if "maxLength" in described and _is_secret_of_bytes(schema):
            described = {**described, "pattern": _IN_ASCII}  # as for bytes
        function = schema.get("function")
        called = function.get("function") if isinstance(function, dict) else None
        bound = getattr(called, "__self__", None)
        if not getattr(called, "__module__", "").startswith("pydantic."):
            return described
        match getattr(called, "__qualname__", "").rpartition(".")[2]:
            case "validate_file" | "validate_directory" | "validate_new" | "validate_socket":
                raise PydanticInvalidForJsonSchema(
                    "whether there is a file of a name is no matter of its text: use pathlib.Path"
                )
            case "import_string":
                raise PydanticInvalidForJsonSchema(
                    "what can be imported is no matter of a text: use a Literal of names"
                )
            case "pattern_bytes_validator":
                raise _ReadFromNothing(
                    "pydantic reads no JSON as a pattern of bytes: use re.Pattern[str]"
                )
            case "pattern_str_validator" | "pattern_either_validator":
                return {"type": "string", "pattern": _PATTERN}
            case "decode_str":
                alphabet = _ALPHABETS.get(getattr(bound, "encoder", None))
                if alphabet is not None:
                    return {**described, "pattern": _ascii_in_base64(alphabet)}
            case "_validate" if bound is ByteSize:
                return {"anyOf": [_BYTE_SIZE, {"type": "integer", "minimum": 0}]}
            case "_validate" if bound is EmailStr:
                return {"type": "string", "allOf": [described, email_schema()]}
            case "_validate" if bound is NameEmail:
                return {"type": "string", "format": "name-email", **name_email_schema()}
            case "validate_str_is_valid_iana_tz":
                return _zones()
            case "validate" if getattr(bound, "__name__", "") == "PaymentCardNumber":
                raise PydanticInvalidForJsonSchema(
                    "the last digit of a PaymentCardNumber is a checksum of the others, which no "
                    'schema describes: use Annotated[str, Field(pattern="^[0-9]{12,19}$")]'
                )
            case "_validate" if getattr(bound, "__module__", "") == "pydantic.color":
                raise PydanticInvalidForJsonSchema(
                    "no schema describes which texts pydantic reads as a Color: use "
                    'Annotated[str, Field(pattern="^#[0-9a-f]{6}$")], or a Literal of names'
                )
        return described

    def url_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().url_schema(schema)
        schemes = schema.get("allowed_schemes") or []
        needs_host = any(schema.get(name) for name in _NEED_A_HOST)
        alternatives = []
        if "file" in schemes:  # it has neither a user nor a port
            alternatives.append(f"file://{NAME}/" if needs_host else f"file://(?:{NAME})?/")
        if others := [scheme for scheme in schemes if scheme != "file"]:
            # The format ensures that the text between the brackets is an address.
            host = rf"(?:{HOST}|\[[0-9A-Fa-f:.]+\])"
            alternatives.append(f"{one_of(others)}://{USER}{host}{PORT}(?:[/?#]|$)")
        if needs_host and not schemes:
            alternatives.append(rf"[A-Za-z][A-Za-z0-9+.-]*://{HOST}(?:[/?#]|$)")
        if alternatives:
            described["pattern"] = (
                f"^{alternatives[0]}"
                if len(alternatives) == 1
                else f"^(?:{'|'.join(alternatives)})"
            )
        return described

    def multi_host_url_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().multi_host_url_schema(schema)
        scheme = one_of(schema.get("allowed_schemes") or ["[a-z]+"])
        hosts = f"{HOST}{PORT}(?:,{HOST}{PORT})*"
        described["pattern"] = f"^{scheme}://{USER_OF_MANY}{hosts}{REST}$"
        return described


def _zones() -> JsonSchemaValue:
    names = sorted(available_timezones())
    if not names:
        raise PydanticInvalidForJsonSchema(
            "no time zone is known here: install tzdata, or use a Literal of names"
        )
    return {"type": "string", "enum": names}


def _largest_multiple(step: float) -> float:
    """The bound up to which pydantic accepts all multiples, once read as floats, as multiples."""
    numerator, _ = float(step).as_integer_ratio()
    if Decimal(step) != Decimal(repr(float(step))):
        # pydantic tolerates a deviation of 1e-9; from here on floats are further apart.
        return math.nextafter(2.0**23, 0)
    odd = numerator // (numerator & -numerator)
    return math.ldexp(abs(step) / odd, sys.float_info.mant_dig)


def _of_digits(schema: Any) -> Iterator[JsonSchemaValue]:
    """Constraints for `max_digits` and `decimal_places`: a step and a bound.

    Digits after the point count towards `max_digits`.
    """
    digits, places = schema.get("max_digits"), schema.get("decimal_places")

    def within(whole: int) -> JsonSchemaValue:
        return {"exclusiveMinimum": -(10**whole), "exclusiveMaximum": 10**whole}

    def of_places(count: int) -> JsonSchemaValue:
        return {"multipleOf": 10.0**-count if count else 1}

    if places is not None:
        yield of_places(places if digits is None else min(places, digits))
    if digits is not None and places is not None:
        yield within(max(digits - places, 0))
    if digits is not None and places is None:
        yield {"anyOf": [within(whole) | of_places(digits - whole) for whole in range(digits + 1)]}


def _is_changed(schema: Any) -> bool:
    """Whether a user's function makes the value."""
    return schema["type"].startswith("function-") and not is_of_pydantic(schema)


def _is_decoded(schema: Any) -> bool:
    """Whether it is an `EncodedStr`, whose values differ from the texts that are written."""
    while schema["type"] == "function-after":
        called = schema["function"]["function"]
        if isinstance(getattr(called, "__self__", None), EncodedStr):
            return True
        schema = schema["schema"]
    return False


def _of_classes(classes: Sequence[type]) -> JsonSchemaValue:
    """The JSON values whose Python types have all these classes, such as `Hashable`, as a base."""
    kinds = [
        name
        for name, made in _MADE_OF_JSON.items()
        if all(issubclass(kind, cls) for kind in made for cls in classes)
    ]
    if not kinds:
        names = " and ".join(cls.__name__ for cls in classes)
        raise _ReadFromNothing(f"pydantic reads no JSON as {names}")
    return {"anyOf": [{"type": kind} for kind in kinds]}


def _is_secret_of_bytes(schema: Any) -> bool:
    """Whether it is `SecretBytes`, with or without bounds around it."""
    while schema["type"] == "function-after":
        schema = schema["schema"]
    read = schema.get("lax_schema", {}).get("json_schema", {})
    inner = read.get("schema", {})
    return bool(read.get("type") == "function-after" and inner.get("type") == "bytes")


def _is_of_text(step: Any) -> bool:
    """Whether a step of a chain checks a text as `str` does."""
    is_wrapped = step["type"] == "function-wrap" and is_of_pydantic(step)
    return is_wrapped and step["schema"]["type"] == "str"


class _Bound(NamedTuple):
    """A bound of pydantic's: its check, and the keyword of the least or the greatest number."""

    keeps: Callable[[Any, Any], bool]
    keyword: str
    inwards: float


_BOUNDS = {
    "ge": _Bound(operator.ge, "minimum", math.inf),
    "gt": _Bound(operator.gt, "minimum", math.inf),
    "le": _Bound(operator.le, "maximum", -math.inf),
    "lt": _Bound(operator.lt, "maximum", -math.inf),
}


_MOST_EXACT = 2**sys.float_info.mant_dig
"""Up to here every integer is a float."""


def _as_read(
    described: JsonSchemaValue, schema: Any, read: Callable[[float], Any]
) -> JsonSchemaValue:
    """A schema of numbers that satisfy the bounds even when they are rounded to floats."""
    left = {"exclusiveMinimum", "exclusiveMaximum"}
    described = {name: value for name, value in described.items() if name not in left}
    for name, (keeps, keyword, inwards) in _BOUNDS.items():
        given = schema.get(name)
        if given is None or given == -inwards:
            continue
        bound = float(given)
        while math.isfinite(bound) and not keeps(read(bound), given):
            bound = math.nextafter(bound, inwards)
        if not math.isfinite(bound):
            raise PydanticInvalidForJsonSchema(
                f"no number of JSON is read as one that keeps {name}={given}: loosen it"
            )
        # Use the tighter bound if there are two.
        if keyword not in described or keeps(bound, described[keyword]):
            # Beyond this, Python writes fewer digits for the float than for the integer.
            is_exact = bound.is_integer() and abs(bound) <= _MOST_EXACT
            described[keyword] = int(bound) if is_exact else bound
    return described


def _with_lengths(described: JsonSchemaValue) -> JsonSchemaValue:
    """Rename the lengths of arrays and objects, which pydantic writes as those of strings."""
    ending = {"object": "Properties", "array": "Items"}.get(described.get("type", ""))
    for name in ("min", "max"):
        if ending is not None and f"{name}Length" in described:
            described[f"{name}{ending}"] = described.pop(f"{name}Length")
    return described


def _closed(schema: JsonSchemaValue) -> JsonSchemaValue:
    if schema.get("type") == "object" and "properties" in schema:
        schema.setdefault("additionalProperties", False)
    return schema


def _has_tag(discriminator: Any, described: JsonSchemaValue) -> JsonSchemaValue:
    """Require the tag that distinguishes the alternatives of a union.

    If a function distinguishes them, nothing is required, because its criterion is not known.
    """
    if callable(discriminator):
        return {}
    # If the tag has several names, and all alternatives share one, pydantic states that name.
    known = described.get("discriminator", {}).get("propertyName")
    paths = [known or discriminator] if known or isinstance(discriminator, str) else discriminator
    names = [path if isinstance(path, str) else path[0] for path in paths]
    required: list[JsonSchemaValue] = [{"required": [name]} for name in names]
    return required[0] if len(required) == 1 else {"anyOf": required}


def _and(described: JsonSchemaValue, more: JsonSchemaValue) -> JsonSchemaValue:
    if not more:
        return described
    if "anyOf" in described:  # a union within the union
        return {
            **described,
            "anyOf": [_and(alternative, more) for alternative in described["anyOf"]],
        }
    if described.keys() <= {"$ref", "required"} and "required" in more:
        return {**described, "required": [*described.get("required", ()), *more["required"]]}
    return {"allOf": [described, more]}


def _without_repeats(described: Any, definitions: Mapping[str, Any]) -> Any:
    """Drop `required` beside a reference if the definition already requires these members."""
    if isinstance(described, list):
        return [_without_repeats(part, definitions) for part in described]
    if not isinstance(described, dict):
        return described
    if described.keys() == {"$ref", "required"} and isinstance(described["$ref"], str):
        there = definitions.get(described["$ref"].removeprefix("#/$defs/"), {})
        if {*described["required"]} <= {*there.get("required", ())}:
            return {"$ref": described["$ref"]}
    return {
        name: value if name in VALUES else _without_repeats(value, definitions)
        for name, value in described.items()
    }


def _check_alias(field: Mapping[str, Any]) -> None:
    """Refuse a field with a path as alias: pydantic's schema names it wrongly."""
    alias = field.get("validation_alias")
    paths = alias if isinstance(alias, list) else []
    if paths and not isinstance(paths[0], list):
        paths = [paths]
    if paths and all(len(path) > 1 for path in paths):
        raise PydanticInvalidForJsonSchema(
            f"the alias {'.'.join(map(str, paths[0]))} is a path into another field, which no "
            "schema describes: give the field a name of its own"
        )


def _coded_bytes(coding: str, least: int, most: int | None) -> str:
    """From `least` to `most` bytes in hexadecimal, or in Base64 as pydantic writes it."""

    def times(low: int, high: int | None) -> str:
        return f"{{{low},{'' if high is None else high}}}"

    if coding == "hex":
        return f"^(?:[0-9a-fA-F]{{2}}){times(least, most)}$"
    sign = "[A-Za-z0-9_-]"
    alternatives = []
    # The last character before the equals signs has bits that belong to no byte and are zero.
    for rest, end in enumerate(("", f"{sign}[AQgw]==", f"{sign}{{2}}[AEIMQUYcgkosw048]=")):
        low = max(0, -((rest - least) // 3))
        high = None if most is None else (most - rest) // 3
        if high is None or high >= low:
            alternatives.append(f"(?:{sign}{{4}}){times(low, high)}{end}")
    return f"^(?:{'|'.join(alternatives)})$" if alternatives else "^[^\\s\\S]$"


def _ascii_in_base64(alphabet: str) -> str:
    """ASCII texts in Base64: the first bit of every byte is zero."""
    signs = string.ascii_uppercase + string.ascii_lowercase + string.digits + alphabet

    def of(keeps: Callable[[int], bool]) -> str:
        kept = "".join(sign for value, sign in enumerate(signs) if keeps(value))
        return "[" + kept.replace("-", r"\-") + "]"

    first = of(lambda value: value < 32)
    second, third = of(lambda value: not value & 8), of(lambda value: not value & 2)
    whole = first + second + third + of(lambda value: True)
    one = first + of(lambda value: not value & 15) + "=="
    two = first + second + of(lambda value: not value & 3) + "="
    return f"^(?:{whole})*(?:{one}|{two})?$"


def _is_read(read: SchemaValidator, member: Any) -> bool:
    """Whether a member of a `Literal` or an `Enum` is read back from its JSON as itself."""
    value = member.value if isinstance(member, Enum) else member
    try:
        text = json.dumps(to_jsonable_python(value), allow_nan=False)
        found = read.validate_json(text)
    except (ValueError, PydanticSerializationError):
        return False
    return bool(found == member and type(found) is type(member))
