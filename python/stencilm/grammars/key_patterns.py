r"""Patterns that leave one spelling of each value, for the keys of dicts.

One idea: a key need not be spelled as Python would spell it, only always in the same way. So an
IPv6 address has all its eight groups, and a URL contains nothing that reading would change: no
capitals in its host, no default port of its scheme, no `.` between slashes.
"""

from __future__ import annotations

import os
from pathlib import PurePath, PureWindowsPath
from typing import Any

from pydantic import ByteSize

from stencilm.grammars.type_constraints import classes_within

_GROUP = "(?:0|[1-9a-f][0-9a-f]{0,3})"
_V6 = f"{_GROUP}(?::{_GROUP}){{7}}"
_NOT_ZERO = "[1-9a-f][0-9a-f]{0,3}"
# The address of a network ends in zeros, all of which are left out.
_NET_V6 = f"(?:::|(?:{_GROUP}:){{0,6}}{_NOT_ZERO}::|(?:{_GROUP}:){{7}}{_NOT_ZERO})"
_V4 = r"[0-9]+(?:\.[0-9]+){3}"
_LENGTH = "/[0-9]{1,3}"
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_LABEL = "[a-z0-9]+(?:-[a-z0-9]+)*"
# A last label that begins with a digit may be read as a number.
_HOST = rf"(?:(?:{_LABEL}\.)*[a-z][a-z0-9]*(?:-[a-z0-9]+)*|{_BYTE}(?:\.{_BYTE}){{3}})"
_PORT = "(?::(?:[1-9][0-9]{3}|[1-5][0-9]{4}))"  # above the default ports of schemes
_USER = "(?:[A-Za-z0-9._~-]+(?::[A-Za-z0-9._~-]+)?@)?"
_SIGN = "[A-Za-z0-9._~%=&+-]"
_STEP = f"[A-Za-z0-9_~-]{_SIGN}*"
_PATH = rf"/(?:{_STEP}(?:/{_STEP})*/?)?(?:\?{_SIGN}+)?(?:#{_SIGN}+)?"
_IN_SCHEME = "[a-z0-9+.-]"
_OTHER_SCHEMES = (
    f"(?:[a-eg-z]{_IN_SCHEME}*|f(?:[a-hj-z0-9+.-]{_IN_SCHEME}*)?|"
    f"fi(?:[a-km-z0-9+.-]{_IN_SCHEME}*)?|fil(?:[a-df-z0-9+.-]{_IN_SCHEME}*)?|file{_IN_SCHEME}+)"
)
"""Other than `file`, which drops a host that is this machine."""

_SEGMENT = r"(?:[^/.\\][^/\\]*|\.[^/\\]+)"
# Paths of Windows, where case does not matter, and devices before a colon.
_SEGMENT_OF_WINDOWS = "(?:[a-z0-9_-][a-z0-9_. -]*)"
_BY_FORMAT = {
    "ipv6": f"^{_V6}$",
    "ipvanyaddress": f"^(?:{_V4}|{_V6})$",
    "ipv4network": f"^{_V4}{_LENGTH}$",
    "ipv4interface": f"^{_V4}{_LENGTH}$",
    "ipv6network": f"^{_NET_V6}{_LENGTH}$",
    "ipv6interface": f"^{_V6}{_LENGTH}$",
    "ipvanynetwork": f"^(?:{_V4}|{_NET_V6}){_LENGTH}$",
    "ipvanyinterface": f"^(?:{_V4}|{_V6}){_LENGTH}$",
    # The last bits before the equals signs belong to no byte.
    "base64": r"^[A-Za-z0-9+/]*(?:[AQgw]==|[AEIMQUYcgkosw048]=|[A-Za-z0-9+/])?$",
    "base64url": r"^[A-Za-z0-9_-]*(?:[AQgw]==|[AEIMQUYcgkosw048]=|[A-Za-z0-9_-])?$",
}
_BYTES = "^(?:0|[1-9][0-9]*)$"
# Characters with a lowercase form besides letters: Roman numerals and circled letters.
_NOT_LOWER = r"\p{Lu}\p{Lt}\u2160-\u216f\u24b6-\u24cf"
_NOT_UPPER = r"\p{Ll}\p{Lt}\u0345\u2170-\u217f\u24d0-\u24e9"


def one_spelling(schema: Any, described: Any) -> str | None:
    """The pattern that leaves one spelling of each value of a type; None for any other type.

    Args:
        schema: The type's core schema of pydantic.
        described: Its JSON schema.
    """
    if _url(schema) is not None:
        return _urls(schema)
    if described.get("format") == "path":
        return _paths(schema)
    function = schema.get("function")
    called = function.get("function") if isinstance(function, dict) else None
    if getattr(called, "__self__", None) is ByteSize:
        return _BYTES
    return _BY_FORMAT.get(described.get("format", ""))


def unchanged_case(schema: Any, config: Any) -> str | None:
    """The pattern of texts that lowercasing, or uppercasing, leaves unchanged."""
    if schema.get("to_lower", config.str_to_lower):
        return f"^[^{_NOT_LOWER}]*$"
    if schema.get("to_upper", config.str_to_upper):
        return f"^[^{_NOT_UPPER}]*$"
    return None


def _url(schema: Any) -> Any:
    """The schema of a URL, within the schema that makes an object of it; None if there is none."""
    while schema["type"] not in ("url", "multi-host-url"):
        if schema["type"] not in ("function-wrap", "function-after", "function-before"):
            return None
        schema = schema["schema"]
    return schema


def _urls(schema: Any) -> str:
    url = _url(schema)
    port = _PORT if "default_port" in url else f"{_PORT}?"
    host = f"{_HOST}{port}"
    hosts = f"{host}(?:,{host})*" if url["type"] == "multi-host-url" else host
    return f"^(?:file://|{_OTHER_SCHEMES}://{_USER}{hosts}){_PATH}$"


def _paths(schema: Any) -> str:
    classes = [held for held in classes_within(schema) if issubclass(held, PurePath)]
    is_windows = any(issubclass(held, PureWindowsPath) for held in classes) or os.name == "nt"
    segment = _SEGMENT_OF_WINDOWS if is_windows else _SEGMENT
    return rf"^(?:\.|/|/?{segment}(?:/{segment})*)$"
