"""The texts of formats that only pydantic defines: networks, interfaces, Base64, fractions.

One idea: each format is a pattern, which is added wherever a schema names the format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic.json_schema import JsonSchemaValue

from stencilm.grammars.type_keys import READ_DIGITS

if TYPE_CHECKING:
    from collections.abc import Mapping

OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
"""A part of an IPv4 address."""
_GROUP = "[0-9a-fA-F]{1,4}"


VALUES = frozenset({"const", "enum", "default", "examples"})
"""Keywords that hold values, not schemas."""


def _networks_v4(add: int = 0) -> str:
    """IPv4 networks: the bits after the prefix are zero; `add` is added to each length."""
    alternatives = []
    for length in range(32):
        whole, bits = divmod(length, 8)
        parts = [OCTET] * whole
        if bits:
            step = 1 << (8 - bits)
            parts.append("(?:" + "|".join(str(value) for value in range(0, 256, step)) + ")")
        parts += ["0"] * (4 - len(parts))
        alternatives.append(r"\.".join(parts) + f"/{length + add}")
    alternatives.append(rf"{_ADDRESS_V4}(?:/{32 + add})?")
    return "|".join(alternatives)


def _networks_v6() -> str:
    """IPv6 networks: the bits after the prefix are zero, in groups of zeros or between colons.

    Each prefix ends within one group, or before it. That group is written before `::` or without
    it, left out there, or written after it.
    """
    zero = "0{1,4}"
    alternatives = []
    for whole in range(8):
        cuts = [(_begun(bits), 16 * whole + bits) for bits in range(16)]
        zeros = f"(?::{zero}){{{7 - whole}}}"
        ends = [zeros]
        ends += [
            f"(?::{zero}){{{count}}}::{_up_to(6 - whole - count, zero)}"
            for count in range(7 - whole)
        ]
        end = f"(?:{'|'.join(ends)})"
        before = "|".join(f"{cut}{end}/{length}" for cut, length in cuts)
        alternatives.append(f"(?:{_GROUP}:){{{whole}}}(?:{before})")
        lengths = "|".join(str(length) for _, length in cuts)
        alternatives.append(f"{_up_to(whole, _GROUP)}::{_up_to(7 - whole, zero)}/(?:{lengths})")
        heads = "|".join(
            f"{_up_to(whole - 1 - count, _GROUP)}::(?:{_GROUP}:){{{count}}}"
            for count in range(whole)
        )
        if heads:
            after = "|".join(f"{cut}{zeros}/{length}" for cut, length in cuts)
            alternatives.append(f"(?:{heads})(?:{after})")
    alternatives += [f"(?:{_ADDRESS_V6})(?:/128)?", f"{_MAPPED}(?:{_networks_v4(96)})"]
    return "|".join(alternatives)


def _up_to(count: int, group: str) -> str:
    """At most so many groups of an IPv6 address, with colons between them."""
    return f"(?:{group}(?::{group}){{0,{count - 1}}})?" if count else ""


def _begun(bits: int) -> str:
    """A group of an IPv6 address in which only the first `bits` bits may be ones."""
    digits = []
    for place in range(4):
        free = min(max(bits - 4 * place, 0), 4)
        values = range(0, 16, 1 << (4 - free))
        digits.append("[" + "".join(f"{value:x}{value:X}" for value in values) + "]")
    # Leading zeros may be left out.
    return "(?:" + "|".join("".join(digits[place:]) for place in range(4)) + ")"


_LENGTH_V4 = "(?:/(?:[12]?[0-9]|3[0-2]))?"
_LENGTH_V6 = "(?:/(?:[1-9]?[0-9]|1[01][0-9]|12[0-8]))?"
_ADDRESS_V4 = rf"{OCTET}(?:\.{OCTET}){{3}}"
_ADDRESS_V6 = (
    f"(?:{_GROUP}:){{7}}{_GROUP}|::|"
    + "|".join(f"(?:{_GROUP}:){{{head}}}(?::{_GROUP}){{1,{7 - head}}}" for head in range(1, 7))
    + f"|(?:{_GROUP}:){{1,7}}:|:(?::{_GROUP}){{1,7}}"
)
_MAPPED = "::[fF]{4}:"
"""Before an IPv4 address, which Python writes with dots there from 3.13 on."""
_INTERFACE_V4 = f"^{_ADDRESS_V4}{_LENGTH_V4}$"
_INTERFACE_V6 = f"^(?:{_ADDRESS_V6}|{_MAPPED}{_ADDRESS_V4}){_LENGTH_V6}$"


def formats() -> dict[str, JsonSchemaValue]:
    """The meaning of the formats that only pydantic defines."""

    def text(pattern: str) -> JsonSchemaValue:
        return {"type": "string", "pattern": pattern}

    known = {
        f"uuid{version}": text(
            f"^[0-9a-fA-F]{{8}}-[0-9a-fA-F]{{4}}-{version}[0-9a-fA-F]{{3}}"
            "-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$"
        )
        for version in range(1, 9)
    }
    v4, v6 = (text(f"^(?:{networks})$") for networks in (_networks_v4(), _networks_v6()))
    at_v4, at_v6 = text(_INTERFACE_V4), text(_INTERFACE_V6)
    addresses = [{"type": "string", "format": name} for name in ("ipv4", "ipv6")]
    for alphabet, name in (("+/", "base64"), ("_-", "base64url")):
        sign = f"[A-Za-z0-9{alphabet}]"
        known[name] = text(f"^(?:{sign}{{4}})*(?:{sign}{{2}}==|{sign}{{3}}=)?$")
    digits = f"[1-9][0-9]{{0,{READ_DIGITS - 1}}}"
    return known | {
        "fraction": text(f"^-?(?:0|{digits})(?:/{digits})?$"),
        "ipv4network": v4,
        "ipv6network": v6,
        "ipvanynetwork": {"anyOf": [v4, v6]},
        "ipv4interface": at_v4,
        "ipv6interface": at_v6,
        "ipvanyinterface": {"anyOf": [at_v4, at_v6]},
        "ipvanyaddress": {"anyOf": addresses},
    }


_OWN_FORMATS = ("uuid", "ipv4", "ipv6", "ipvany", "base64", "fraction")


def has_unknown(described: Any) -> bool:
    """Whether a schema contains a format that only pydantic defines."""
    text = repr(described)
    return any(f"'{name}" in text for name in _OWN_FORMATS)


def with_formats(described: Any, formats: Mapping[str, JsonSchemaValue]) -> Any:
    """Add patterns to the formats that only pydantic defines."""
    if isinstance(described, list):
        return [with_formats(part, formats) for part in described]
    if not isinstance(described, dict):
        return described
    known = None
    # Schemas of property names have no type.
    if described.get("type", "string") == "string" and isinstance(described.get("format"), str):
        known = formats.get(described["format"])
    inner = {
        name: value if name in VALUES else with_formats(value, formats)
        for name, value in described.items()
    }
    if known is None:
        return inner
    if "pattern" in inner and "pattern" in known:
        return {**inner, "allOf": [*inner.get("allOf", []), known]}
    return {**inner, **known}
