"""Checks of arguments that several sources take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stencilm.errors import GrammarSyntaxError


def checked_text(name: str, value: Any) -> str:
    """The value, if it is a text that UTF-8 can spell; raises TypeError and GrammarSyntaxError."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is a {type(value).__name__}, but must be a str")
    if value.isascii():
        return value
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        before = value[: error.start]
        line, column = before.count("\n") + 1, error.start - before.rfind("\n")
        place = f"offset {error.start}" if name == "pattern" else f"line {line}, column {column}"
        raise GrammarSyntaxError(
            f"{name} holds the lone surrogate {value[error.start]!r}, which no text can spell: "
            "remove it, or write both halves of the pair",
            place=place,
        ) from None
    return value


def checked_mapping(name: str, value: Any) -> Mapping[str, Any]:
    """The value, if it is a mapping, and an empty one for None; raises TypeError."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is a {type(value).__name__}, but must be a dict")
    return value
