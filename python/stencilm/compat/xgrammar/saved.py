"""Serialization: this package's own JSON, with a version that is none of the original's."""

from __future__ import annotations

import json
from typing import Any

from stencilm.compat.xgrammar.failures import (
    DeserializeFormatError,
    DeserializeVersionError,
    InvalidJSONError,
)

_VERSION = "stencilm-1"
_KEY = "__VERSION__"


def get_serialization_version() -> str:
    """The version in serialized values; never one of the original's."""
    return _VERSION


def save(kind: str, value: dict[str, Any]) -> str:
    """Serialize a value as JSON text, with its kind and the version."""
    return json.dumps({"kind": kind, **value, _KEY: _VERSION})


def load(kind: str, text: str) -> dict[str, Any]:
    """Read a value that `save` wrote.

    Raises:
        InvalidJSONError: The text is not JSON.
        DeserializeVersionError: It has no version, or another one.
        DeserializeFormatError: It is not an object, or a value of another kind.
        TypeError: `text` is not a str.
    """
    if not isinstance(text, (str, bytes, bytearray)):
        raise TypeError(
            f"a saved {kind} is a str, not a {type(text).__name__}: give what serialize_json() "
            "returned"
        )
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidJSONError(f"the text is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise DeserializeFormatError(
            f"a saved {kind} is a JSON object, not {type(value).__name__}: give what "
            "serialize_json() returned"
        )
    if value.get(_KEY) != _VERSION:
        raise DeserializeVersionError(
            f"the text has the version {value.get(_KEY)!r}, but this package reads {_VERSION!r} "
            "only: make the value anew from its source, and save that"
        )
    if value.get("kind") != kind:
        raise DeserializeFormatError(
            f"the text holds a {value.get('kind')!r}, not a {kind!r}: read it with that class"
        )
    if "value" not in value:
        raise DeserializeFormatError(
            f"the saved {kind} has no value, so it was cut short or changed: give what "
            "serialize_json() returned"
        )
    return value
