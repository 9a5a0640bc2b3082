"""The JSON Schemas of Python types: pydantic's own, made to say what pydantic reads.

pydantic's schemas describe; ours are enforced. Where a type reads fewer texts than its schema
allows, an output could be well formed and yet no value; where it writes texts that its schema
refuses, a value could not be written. Both are mended here for the types whose texts are a regular
language.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_GROUP = "[0-9a-fA-F]{1,4}"

_YEAR = "(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DATE = (
    f"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    f"|{_LEAP_YEAR}-02-29)"
)
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
_ZONE = "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"

# The counts of digits keep every sum within the 999,999,999 days of a timedelta.
_DAYS = (
    "(?:1?[0-9]{1,6}Y(?:[0-9]{1,6}M)?(?:[0-9]{1,6}W)?(?:[0-9]{1,8}D)?"
    "|[0-9]{1,6}M(?:[0-9]{1,6}W)?(?:[0-9]{1,8}D)?"
    "|[0-9]{1,6}W(?:[0-9]{1,8}D)?|[0-9]{1,8}D)"
)
_SECONDS = r"[0-9]{1,8}(?:\.[0-9]{1,6})?S"
_HOURS = (
    f"(?:[0-9]{{1,6}}H(?:[0-9]{{1,7}}M)?(?:{_SECONDS})?|[0-9]{{1,7}}M(?:{_SECONDS})?|{_SECONDS})"
)
_DURATION = f"^-?P(?:{_DAYS}(?:T{_HOURS})?|T{_HOURS})$"

_WORD = "[A-Za-z0-9_-]"
# No name in Punycode: not all of them can be read. One that ends in a number would be an address.
_LABEL = (
    f"(?:[A-WYZa-wyz0-9_]{_WORD}*"
    f"|[Xx](?:[A-MO-Za-mo-z0-9_-]{_WORD}*|[Nn](?:[A-Za-z0-9_]{_WORD}*|-(?:[A-Za-z0-9_]{_WORD}*)?)?)?)"
)
_LAST_LABEL = _LABEL.replace("A-WYZa-wyz0-9_", "A-WYZa-wyz", 1)
_NAME = rf"(?:{_LABEL}\.)*{_LAST_LABEL}\.?"
_HOST = rf"(?:{_NAME}|{_OCTET}(?:\.{_OCTET}){{3}})"
_PORT = "(?::(?:[0-9]{0,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?"
_USER = "(?:[A-Za-z0-9._~!$&'()*+,;=%-]*(?::[A-Za-z0-9._~!$&'()*+,;=%:-]*)?@)?"
# Without the comma between hosts.
_PART = "(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})"
_USER_OF_MANY = f"(?:{_PART}+(?::{_PART}*)?@)?"
_REST = "(?:[/?#][!#-;=?-Z_a-z~]*)?"


def _networks_v4() -> str:
    """IPv4 networks: the bits behind the prefix are zero."""
    ways = []
    for length in range(32):
        whole, bits = divmod(length, 8)
        parts = [_OCTET] * whole
        if bits:
            step = 1 << (8 - bits)
            parts.append("(?:" + "|".join(str(value) for value in range(0, 256, step)) + ")")
        parts += ["0"] * (4 - len(parts))
        ways.append(r"\.".join(parts) + f"/{length}")
    ways.append(rf"{_OCTET}(?:\.{_OCTET}){{3}}(?:/32)?")
    return f"^(?:{'|'.join(ways)})$"


def _networks_v6() -> str:
    """IPv6 networks whose groups behind the prefix are left out, as `fe80::/10`."""
    ways = []
    for length in range(129):
        whole, bits = divmod(length, 16)
        heads = ["::"] + [
            f"{_GROUP}(?::{_GROUP}){{{groups - 1}}}::" for groups in range(1, min(whole, 7) + 1)
        ]
        if bits:
            heads.append(f"(?:{_GROUP}:){{{whole}}}{_begun(bits)}" + ("::" if whole < 7 else ""))
        if whole == 8:
            heads.append(f"(?:{_GROUP}:){{7}}{_GROUP}")
        ways.append(f"(?:{'|'.join(heads)})/{length}")
    return f"^(?:{'|'.join(ways)}|(?:{_GROUP}:){{7}}{_GROUP})$"


def _begun(bits: int) -> str:
    """A group of which only the first bits may be ones."""
    digits = []
    for place in range(4):
        free = min(max(bits - 4 * place, 0), 4)
        values = range(0, 16, 1 << (4 - free))
        digits.append("[" + "".join(f"{value:x}{value:X}" for value in values) + "]")
    # Zeros at its beginning may be left out.
    return "(?:" + "|".join("".join(digits[place:]) for place in range(4)) + ")"


_LENGTH_V4 = "(?:/(?:[12]?[0-9]|3[0-2]))?"
_LENGTH_V6 = "(?:/(?:[1-9]?[0-9]|1[01][0-9]|12[0-8]))?"
_INTERFACE_V4 = rf"^{_OCTET}(?:\.{_OCTET}){{3}}{_LENGTH_V4}$"
_INTERFACE_V6 = (
    f"^(?:(?:{_GROUP}:){{7}}{_GROUP}|::|"
    + "|".join(f"(?:{_GROUP}:){{{head}}}(?::{_GROUP}){{1,{7 - head}}}" for head in range(1, 7))
    + f"|(?:{_GROUP}:){{1,7}}:|:(?::{_GROUP}){{1,7}}){_LENGTH_V6}$"
)


def _formats() -> dict[str, JsonSchemaValue]:
    """What the formats mean that only pydantic knows."""

    def text(pattern: str) -> JsonSchemaValue:
        return {"type": "string", "pattern": pattern}

    known = {
        f"uuid{version}": text(
            f"^[0-9a-fA-F]{{8}}-[0-9a-fA-F]{{4}}-{version}[0-9a-fA-F]{{3}}"
            "-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$"
        )
        for version in range(1, 9)
    }
    v4, v6 = text(_networks_v4()), text(_networks_v6())
    at_v4, at_v6 = text(_INTERFACE_V4), text(_INTERFACE_V6)
    addresses = [{"type": "string", "format": name} for name in ("ipv4", "ipv6")]
    for alphabet, name in (("+/", "base64"), ("_-", "base64url")):
        sign = f"[A-Za-z0-9{alphabet}]"
        known[name] = text(f"^(?:{sign}{{4}})*(?:{sign}{{2}}==|{sign}{{3}}=)?$")
    return known | {
        "ipv4network": v4,
        "ipv6network": v6,
        "ipvanynetwork": {"anyOf": [v4, v6]},
        "ipv4interface": at_v4,
        "ipv6interface": at_v6,
        "ipvanyinterface": {"anyOf": [at_v4, at_v6]},
        "ipvanyaddress": {"anyOf": addresses},
    }


def schema_generator() -> type[GenerateJsonSchema]:
    """pydantic's writer of schemas, with the changes that `json_schema_of` names."""
    return _TypeSchemas


class _TypeSchemas(GenerateJsonSchema):
    def generate(self, schema: Any, mode: Any = "validation") -> JsonSchemaValue:
        described = super().generate(schema, mode)
        formats = _formats() if _has_unknown(described) else {}
        return _with_formats(described, formats) if formats else described

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        return _closed(super().model_schema(schema))

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        return _closed(super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: Any) -> JsonSchemaValue:
        return _closed(super().typed_dict_schema(schema))

    def tagged_union_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().tagged_union_schema(schema)
        if "oneOf" in described:
            described["anyOf"] = described.pop("oneOf")
        return described

    def literal_schema(self, schema: Any) -> JsonSchemaValue:
        for value in schema["expected"]:
            if isinstance(value, Enum) and not isinstance(value, (str, int)):
                raise PydanticInvalidForJsonSchema(
                    f"pydantic reads no JSON as {value} in a Literal: derive "
                    f"{type(value).__name__} from str or int"
                )
        return super().literal_schema(schema)

    def model_field_schema(self, schema: Any) -> JsonSchemaValue:
        _check_alias(schema)
        return super().model_field_schema(schema)

    def dataclass_field_schema(self, schema: Any) -> JsonSchemaValue:
        _check_alias(schema)
        return super().dataclass_field_schema(schema)

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().float_schema(schema)
        if schema.get("allow_inf_nan") is False:
            # A larger number reads as infinity.
            largest = 1.7976931348623157e308
            if not described.keys() & {"maximum", "exclusiveMaximum"}:
                described["maximum"] = largest
            if not described.keys() & {"minimum", "exclusiveMinimum"}:
                described["minimum"] = -largest
        return described

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        # pydantic also takes any string here, and rounds JSON numbers to floats.
        if not schema.keys() & {"gt", "ge", "lt", "le", "multiple_of"}:
            return {"type": "string", "pattern": f"^{_decimals(schema)}$"}
        branches = super().decimal_schema(schema).get("anyOf", [])
        described = next(dict(branch) for branch in branches if branch["type"] == "number")
        digits, places = schema.get("max_digits"), schema.get("decimal_places")
        if places is not None:
            step: JsonSchemaValue = {"multipleOf": 10.0**-places if places else 1}
            if "multipleOf" in described:
                described["allOf"] = [step]
            else:
                described |= step
        if digits is not None:
            limit = 10 ** max(digits - (places or 0), 0)
            within = {"exclusiveMinimum": -limit, "exclusiveMaximum": limit}
            described["allOf"] = [*described.get("allOf", []), within]
        return described

    def date_schema(self, schema: Any) -> JsonSchemaValue:
        return {**super().date_schema(schema), "pattern": f"^{_YEAR}"}

    def time_schema(self, schema: Any) -> JsonSchemaValue:
        return {"type": "string", "pattern": f"^{_TIME}{_zone(schema)}$"}

    def datetime_schema(self, schema: Any) -> JsonSchemaValue:
        return {"type": "string", "pattern": f"^{_DATE}T{_TIME}{_zone(schema)}$"}

    def timedelta_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().timedelta_schema(schema)
        if described.get("format") == "duration":
            return {"type": "string", "pattern": _DURATION}
        return described

    def url_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().url_schema(schema)
        schemes = schema.get("allowed_schemes")
        if schemes == ["file"]:
            described["pattern"] = rf"^file://(?:{_NAME})?/"
        elif schemes:
            # The format keeps what is between the brackets an address.
            host = rf"(?:{_HOST}|\[[0-9A-Fa-f:.]+\])"
            described["pattern"] = f"^{_one_of(schemes)}://{_USER}{host}{_PORT}(?:[/?#]|$)"
        return described

    def multi_host_url_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().multi_host_url_schema(schema)
        scheme = _one_of(schema.get("allowed_schemes") or ["[a-z]+"])
        hosts = f"{_HOST}{_PORT}(?:,{_HOST}{_PORT})*"
        described["pattern"] = f"^{scheme}://{_USER_OF_MANY}{hosts}{_REST}$"
        return described

    def dict_schema(self, schema: Any) -> JsonSchemaValue:
        return self._with_keys(super().dict_schema(schema), schema)

    def ordered_dict_schema(self, schema: Any) -> JsonSchemaValue:
        return self._with_keys(super().ordered_dict_schema(schema), schema)

    def counter_schema(self, schema: Any) -> JsonSchemaValue:
        return self._with_keys(super().counter_schema(schema), schema)

    def frozendict_schema(self, schema: Any) -> JsonSchemaValue:
        return self._with_keys(super().frozendict_schema(schema), schema)

    def _with_keys(self, described: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
        """An object whose keys are texts of their type."""
        keys = schema.get("keys_schema", {})
        names = described.get("propertyNames", {})
        by_pattern = described.pop("patternProperties", None)
        if by_pattern:
            # pydantic's form says nothing of the other names.
            ((pattern, values),) = by_pattern.items()
            described["additionalProperties"] = values or True
            described["propertyNames"] = {**names, "pattern": pattern}
        elif (texts := _key_texts(keys)) is not None:
            described["propertyNames"] = texts
        return described


def _closed(schema: JsonSchemaValue) -> JsonSchemaValue:
    if schema.get("type") == "object" and "properties" in schema:
        schema.setdefault("additionalProperties", False)
    return schema


def _check_alias(field: Mapping[str, Any]) -> None:
    """Refuses a field that is read from within another value: the schema names it wrongly."""
    alias = field.get("validation_alias")
    paths = alias if isinstance(alias, list) else []
    if paths and not isinstance(paths[0], list):
        paths = [paths]
    if paths and all(len(path) > 1 for path in paths):
        raise PydanticInvalidForJsonSchema(
            f"the alias {'.'.join(map(str, paths[0]))} is a path into another field, which no "
            "schema describes: give the field a name of its own"
        )


def _zone(schema: Mapping[str, Any]) -> str:
    """The offset behind a time, as a type asks for it."""
    of = {"naive": "", "aware": _ZONE}
    return of.get(schema.get("tz_constraint", ""), f"{_ZONE}?")


def _one_of(schemes: Sequence[str]) -> str:
    return (
        "(?:" + "|".join(scheme.replace("+", r"\+").replace(".", r"\.") for scheme in schemes) + ")"
    )


def _decimals(schema: Mapping[str, Any]) -> str:
    """Decimals of so many digits; zeros behind the last one are not counted."""
    digits, places = schema.get("max_digits"), schema.get("decimal_places")

    def fraction(most: int) -> str:
        return rf"(?:\.[0-9]{{1,{most}}}0*)?" if most else r"(?:\.0+)?"

    if digits is None:
        most = r"(?:\.[0-9]+)?" if places is None else fraction(places)
        return f"-?(?:0|[1-9][0-9]*){most}"
    if places is not None:
        whole = digits - places
        if whole <= 0:
            # pydantic counts the zero before the point here.
            return rf"-?0\.[0-9]{{1,{digits}}}"
        return f"-?(?:0|[1-9][0-9]{{0,{whole - 1}}}){fraction(places)}"
    ways = [f"0{fraction(digits)}"]
    ways += [
        f"[1-9][0-9]{{{whole - 1}}}{fraction(digits - whole)}" for whole in range(1, digits + 1)
    ]
    return f"-?(?:{'|'.join(ways)})"


_MOST_KEYS = 1_000


def _key_texts(keys: Mapping[str, Any]) -> JsonSchemaValue | None:
    """How keys are written that are no strings; None where pydantic's own schema says it."""
    match keys.get("type"):
        case "int":
            low = keys["gt"] + 1 if "gt" in keys else keys.get("ge")
            high = keys["lt"] - 1 if "lt" in keys else keys.get("le")
            if low is not None and high is not None and 0 <= high - low < _MOST_KEYS:
                return {"enum": [str(key) for key in range(low, high + 1)]}
            sign = "-?" if low is None or low < 0 else ""
            return {"pattern": f"^{sign}[0-9]+$"}
        case "float":
            return {"pattern": r"^-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$"}
        case "bool":
            return {"enum": ["true", "false"]}
        case "decimal":
            return {"pattern": f"^{_decimals(keys)}$"}
        case "literal":
            return {"enum": [key for key in keys["expected"] if isinstance(key, str)]}
        case "enum" if keys.get("sub_type") == "int":
            return {"enum": [str(int(member)) for member in keys["members"]]}
        case _:
            return None


def _has_unknown(described: Any) -> bool:
    """Whether any format of pydantic's own is in a schema."""
    text = repr(described)
    return any(f"'{name}" in text for name in ("uuid", "ipv4", "ipv6", "ipvany", "base64"))


def _with_formats(described: Any, formats: Mapping[str, JsonSchemaValue]) -> Any:
    """A schema in which what only pydantic's formats say is said by patterns, too."""
    if isinstance(described, list):
        return [_with_formats(part, formats) for part in described]
    if not isinstance(described, dict):
        return described
    known = None
    # Names of properties have no type.
    if described.get("type", "string") == "string" and isinstance(described.get("format"), str):
        known = formats.get(described["format"])
    inner = {
        name: value if name in _VALUES else _with_formats(value, formats)
        for name, value in described.items()
    }
    if known is None:
        return inner
    if "pattern" in inner and "pattern" in known:
        return {**inner, "allOf": [*inner.get("allOf", []), known]}
    return {**inner, **known}


# Keywords that hold values and not schemas.
_VALUES = frozenset({"const", "enum", "default", "examples"})
