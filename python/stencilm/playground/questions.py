"""Queries of the page, parsed from JSON and validated before they are used.

One idea: a query holds the whole state of the page, so answers depend on nothing else, and a link
with the state shows the same page again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from stencilm.shown import shown_value

Notation = Literal["json-schema", "regex", "ebnf", "lark", "structural-tag", "sql"]
Which = Literal["allowed", "refused", "all"]

NOTATIONS: dict[Notation, str] = {
    "json-schema": "JSON Schema",
    "regex": "Regular expression",
    "ebnf": "EBNF or GBNF",
    "lark": "Lark",
    "structural-tag": "Structural tag",
    "sql": "SQL over tables",
}
"""The notations, and their names on the page."""

MOST_GRAMMAR_BYTES = 256 << 10
MOST_TEXT_BYTES = 16 << 10
MOST_TOKENS = 8_192
MOST_LISTED = 500
MOST_GENERATED = 512


class BadQuestion(ValueError):
    """A query is not of the form that the page sends; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state of the page.

    Attributes:
        notation: The notation of the grammar.
        grammar: The text of the grammar.
        tokenizer: The name of a tokenizer that the playground was started with.
        text: The text to read; None if it is given as tokens.
        token_ids: The tokens to read; None if the tokenizer splits the text.
        position: The number of tokens to read before the query is answered; None for all.
        compact: A schema's texts have no whitespace between their parts.
        strict: Objects of a schema have only declared properties.
        relax: Parts of a schema that cannot be enforced are dropped and reported.
        names: The tables of names that the grammar uses, a JSON object of lists; empty for none.
        behind: The text after the hole that the text fills; empty for no hole.
    """

    notation: Notation
    grammar: str
    tokenizer: str
    text: str | None
    token_ids: tuple[int, ...] | None
    position: int | None
    compact: bool
    strict: bool
    relax: bool
    names: str
    behind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Which tokens to list: those whose text contains `search`, or that have it as id."""

    search: str
    which: Which
    offset: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """The options of generation."""

    prompt: str
    max_tokens: int
    temperature: float
    seed: int


def read_state(record: Mapping[str, Any]) -> State:
    """The state in a query. Raises BadQuestion."""
    token_ids = record.get("token_ids")
    if token_ids is not None:
        if not isinstance(token_ids, list) or len(token_ids) > MOST_TOKENS:
            raise BadQuestion(f"token_ids must be a list of at most {MOST_TOKENS:,} ids")
        for token_id in token_ids:
            _check_number("a token id", token_id, 0, 2**31 - 1)
    position = record.get("position")
    if position is not None:
        _check_number("position", position, 0, MOST_TOKENS)
    notation = record.get("notation")
    if not isinstance(notation, str) or notation not in NOTATIONS:
        raise BadQuestion(
            f"notation is {shown_value(notation):.80}, but must be one of {_named(NOTATIONS)}"
        )
    return State(
        notation=notation,
        grammar=_text(record, "grammar", MOST_GRAMMAR_BYTES),
        tokenizer=_text(record, "tokenizer", 1024),
        text=None if token_ids is not None else _text(record, "text", MOST_TEXT_BYTES),
        token_ids=None if token_ids is None else tuple(token_ids),
        position=position,
        compact=_flag(record, "compact"),
        strict=_flag(record, "strict"),
        relax=_flag(record, "relax"),
        names=_text(record, "names", MOST_GRAMMAR_BYTES, ""),
        behind=_text(record, "behind", MOST_TEXT_BYTES, ""),
    )


def read_listing(record: Mapping[str, Any]) -> Listing:
    """The tokens that a query asks for. Raises BadQuestion."""
    which = record.get("which", "allowed")
    kinds = ("allowed", "refused", "all")
    if which not in kinds:
        raise BadQuestion(f"which is {shown_value(which):.80}, but must be one of {_named(kinds)}")
    return Listing(
        search=_text(record, "search", 1024, ""),
        which=cast("Which", which),
        offset=_check_number("offset", record.get("offset", 0), 0, 2**31 - 1),
        count=_check_number("count", record.get("count", 100), 0, MOST_LISTED),
    )


def read_token_id(record: Mapping[str, Any]) -> int:
    """The token that a query is about. Raises BadQuestion."""
    return _check_number("token_id", record.get("token_id"), 0, 2**31 - 1)


def read_drawing(record: Mapping[str, Any]) -> Drawing:
    """The options of generation in a query. Raises BadQuestion."""
    temperature = record.get("temperature", 0)
    is_number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if not is_number or not 0 <= temperature <= 5:
        raise BadQuestion(f"temperature is {shown_value(temperature):.80}, but must be from 0 to 5")
    return Drawing(
        prompt=_text(record, "prompt", 4096, ""),
        max_tokens=_check_number("max_tokens", record.get("max_tokens", 128), 1, MOST_GENERATED),
        temperature=float(temperature),
        seed=_check_number("seed", record.get("seed", 0), 0, 2**32 - 1),
    )


def _text(record: Mapping[str, Any], name: str, most: int, default: str | None = None) -> str:
    value = record.get(name, default)
    if not isinstance(value, str):
        raise BadQuestion(f"{name} must be a text, not {type(value).__name__}")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise BadQuestion(
            f"{name} holds half a surrogate pair at character {error.start}: leave it out"
        ) from None
    if size > most:
        raise BadQuestion(f"{name} has {size:,} bytes, but the playground takes {most:,} at most")
    return value


def _flag(record: Mapping[str, Any], name: str) -> bool:
    value = record.get(name, False)
    if not isinstance(value, bool):
        raise BadQuestion(f"{name} is {shown_value(value):.80}, but must be true or false")
    return value


def _check_number(name: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadQuestion(
            f"{name} is {shown_value(value):.80}, but must be from {least} to {most:,}"
        )
    return value


def _named(names: Any) -> str:
    return ", ".join(names)
