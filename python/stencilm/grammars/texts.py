"""Checks of texts that come from outside: schemas in any of their forms, and notations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from stencilm.errors import GrammarSyntaxError, LimitExceeded
from stencilm.grammars.json_values import read_json_exactly, write_json
from stencilm.grammars.python_types import json_schema_of
from stencilm.limits import Limits
from stencilm.shown import in_a_line

Schema: TypeAlias = str | Mapping[str, Any] | bool | type
# A bound for EBNF, Lark and patterns that no limits can raise.
_LONGEST_TEXT = 1 << 20


def schema_text(schema: Schema, name: str) -> str:
    """The JSON text of a schema given in any of its forms."""
    if isinstance(schema, str):
        return checked_text(name, schema)
    if isinstance(schema, type):
        schema = json_schema_of(schema)
    elif isinstance(schema, Mapping):
        schema = dict(schema)
    elif not isinstance(schema, bool):
        raise TypeError(
            f"{name} is a {type(schema).__name__}, but must be JSON text, a dict, a bool or a "
            "Python type"
        )
    return json_text(schema, name)


def document_texts(documents: Any) -> tuple[tuple[str, str], ...]:
    """The texts of other schemas by URI; raises TypeError for anything else."""
    return tuple(
        (
            checked_text("a key of documents", uri),
            schema_text(document, f"documents[{in_a_line(uri, 200)}]"),
        )
        for uri, document in checked_mapping("documents", documents).items()
    )


def schema_value(schema: Schema) -> dict[str, Any] | bool:
    """A schema given in any of its forms, as `read_json_exactly` would read its text."""
    text = schema_text(schema, "schema")
    try:
        value: dict[str, Any] | bool = read_json_exactly(text)
    except RecursionError:
        raise LimitExceeded("the schema is nested too deeply to be read here: flatten it") from None
    except ValueError as error:
        raise GrammarSyntaxError(f"the schema is no JSON: {error}") from None
    return value


def json_text(value: Any, name: str) -> str:
    """A value as JSON text; raises GrammarSyntaxError and LimitExceeded if it has none."""
    try:
        text = write_json(value, allow_nan=False)
    except RecursionError:
        raise LimitExceeded(
            f"{name} is nested too deeply to be written as JSON: flatten it"
        ) from None
    except (TypeError, ValueError) as error:
        raise GrammarSyntaxError(f"{name} cannot be written as JSON: {error}") from error
    return checked_text(name, text)


def checked_text(name: str, value: Any) -> str:
    """The value, if it is a text that UTF-8 can encode; raises TypeError and GrammarSyntaxError."""
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
    """The value if it is a mapping, and an empty one for None; raises TypeError."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is a {type(value).__name__}, but must be a dict")
    return value


def check_length(name: str, text: str, limits: Limits, *, parts: int | None = None) -> None:
    """Refuse a text that is longer than the limits allow, or than any limits may allow.

    A text that is made of parts may be as long as `parts` texts.
    """
    length = len(text) if text.isascii() else len(text.encode())
    bound = limits.schema_bytes * parts if parts else min(limits.schema_bytes, _LONGEST_TEXT)
    if length > bound:
        way_out = (
            ", or raise `schema_bytes` of the limits" if parts or bound < _LONGEST_TEXT else ""
        )
        raise LimitExceeded(
            f"{name} has {length} bytes and at most {bound} are accepted; split it{way_out}"
        )
