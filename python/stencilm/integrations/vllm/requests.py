"""The kinds of structured output that a request may ask for, as grammars.

One idea: this is the only place that reads a request. The front end calls it to admit one and the
engine to serve it, with the same options, so that both see the same grammar. Nothing of vLLM is
imported here.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

from stencilm.errors import GrammarSyntaxError, LimitExceeded
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.json_values import read_json, read_json_exactly, write_json
from stencilm.grammars.output_types import Choice
from stencilm.grammars.texts import checked_text
from stencilm.integrations.vllm.settings import Options
from stencilm.shown import shown_value


class Kind(StrEnum):
    """The notation of a request's text."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    REGEX = "regex"
    CHOICE = "choice"
    EBNF = "ebnf"
    LARK = "lark"
    STRUCTURAL_TAG = "structural_tag"


def grammar_of(kind: Kind, text: str, options: Options) -> Grammar:
    """The grammar of a request.

    Args:
        kind: The notation of the text.
        text: The schema as JSON, the pattern, the JSON list of choices, the grammar, or the
            structural tag as JSON; ignored for JSON_OBJECT.
        options: How JSON is written.

    Raises:
        StencilError: The request cannot be enforced; says where and why.
    """
    limits = options.limits
    match kind:
        case Kind.JSON_SCHEMA | Kind.JSON_OBJECT:
            return Grammar.from_json_schema(
                text if kind is Kind.JSON_SCHEMA else '{"type": "object"}',
                property_order=options.property_order,
                max_whitespace=options.max_whitespace,
                strict_mode=options.strict_mode,
                limits=limits,
            )
        case Kind.REGEX:
            return Grammar.from_regex(text, limits=limits)
        case Kind.CHOICE:
            return Grammar.from_type(_choice(text), limits=limits)
        case Kind.EBNF:
            return Grammar.from_ebnf(text, limits=limits)
        case Kind.LARK:
            return Grammar.from_lark(text, limits=limits)
        case Kind.STRUCTURAL_TAG:
            return Grammar.from_structural_tag(_with_options(text, options), limits=limits)


def wishes_of(params: Any) -> dict[str, Any]:
    """The JSON options of a request besides the schema, as fields of a format.

    Args:
        params: vLLM's `StructuredOutputsParams`.

    Raises:
        ValueError: An option cannot be enforced.
    """
    if params.whitespace_pattern is not None:
        raise ValueError(
            "whitespace_pattern cannot be enforced; leave it out, and bound whitespace with "
            "disable_any_whitespace or with max_whitespace in STENCILM_VLLM_OPTIONS"
        )
    wishes: dict[str, Any] = {}
    if params.disable_any_whitespace:
        wishes["max_whitespace"] = 0
    if params.disable_additional_properties:
        wishes["strict_mode"] = True
    return wishes


def tag_of_wishes(params: Any) -> str | None:
    """The structural tag of a request's schema with its additional options.

    Args:
        params: vLLM's `StructuredOutputsParams`.

    Returns:
        The tag as JSON; None if there are no options, or if it is not a JSON request.

    Raises:
        ValueError: An option cannot be enforced.
    """
    if not (wishes := wishes_of(params)) or (params.json is None and not params.json_object):
        return None
    schema = params.json if params.json is not None else {"type": "object"}
    if isinstance(schema, str):
        try:
            schema = read_json_exactly(schema)
        except RecursionError:
            raise ValueError("the schema is nested too deeply: flatten it") from None
    value = {"type": "json_schema", "json_schema": schema, **wishes}
    return write_json({"type": "structural_tag", "format": value})


def is_json(kind: Kind, text: str) -> bool:
    """Whether the whole text of a request is JSON.

    A request with options besides its schema is a structural tag.
    """
    if kind is not Kind.STRUCTURAL_TAG:
        return kind in (Kind.JSON_SCHEMA, Kind.JSON_OBJECT)
    try:
        tag = read_json(text)
    except (ValueError, RecursionError):
        return False
    whole = tag.get("format") if isinstance(tag, dict) else None
    return (
        isinstance(whole, dict)
        and whole.get("type") == "json_schema"
        and whole.get("style", "json") == "json"
    )


def _choice(text: str) -> Choice:
    try:
        texts = json.loads(text)
    except json.JSONDecodeError as error:
        raise GrammarSyntaxError(f"the choices are no JSON list: {error}", place="#") from None
    if not isinstance(texts, list) or not texts:
        raise GrammarSyntaxError("the choices must be a list of at least one string", place="#")
    for index, one in enumerate(texts):
        if not isinstance(one, str):
            raise GrammarSyntaxError(
                f"a choice is {shown_value(one):.80}, but must be a string", place=f"#/{index}"
            )
        try:
            checked_text("a choice", one)
        except GrammarSyntaxError as error:
            raise GrammarSyntaxError(error.message, place=f"#/{index}") from None
    return Choice(list(dict.fromkeys(texts)))  # a duplicate counts as one choice


_DEFAULTS = Options()


def _with_options(text: str, options: Options) -> str:
    """A structural tag with the options set at each JSON value that does not set them itself."""
    # Other formats have no options for JSON.
    written = ("property_order", "max_whitespace", "strict_mode")
    if all(getattr(options, name) == getattr(_DEFAULTS, name) for name in written):
        return text
    try:
        tag = read_json_exactly(text)
    except ValueError:
        return text  # Reading the tag reports the error.
    except RecursionError:
        raise LimitExceeded("the structural tag is nested too deeply; flatten it") from None
    if isinstance(tag, dict) and isinstance(tag.get("structures"), list):
        tag = {"type": "structural_tag", "format": _triggered(tag)}
    work: list[Any] = [tag]
    while work:
        value = work.pop()
        if isinstance(value, list):
            work.extend(value)
        elif isinstance(value, dict):
            if value.get("type") == "json_schema":
                _set_options(value, options)
            work.extend(inner for name, inner in value.items() if name != "json_schema")
    return write_json(tag)


def _set_options(value: dict[str, Any], options: Options) -> None:
    """Set the options in one format of a JSON value."""
    if options.property_order == "any" and value.get("style", "json") == "json":
        value["any_order"] = True
    if value.get("max_whitespace_cnt") is None and "max_whitespace" not in value:
        value.pop("max_whitespace_cnt", None)
        value["max_whitespace"] = options.max_whitespace
    if options.strict_mode:
        value.setdefault("strict_mode", True)


def _triggered(tag: dict[str, Any]) -> dict[str, Any]:
    """The older form of a structural tag as one format."""
    rest = {name: value for name, value in tag.items() if name not in ("type", "structures")}
    tags: list[Any] = []
    for item in tag["structures"]:
        if isinstance(item, dict) and "schema" in item:
            others = {name: value for name, value in item.items() if name != "schema"}
            content = {"type": "json_schema", "json_schema": item["schema"]}
            tags.append({"type": "tag", **others, "content": content})
        else:
            tags.append(item)
    return {"type": "triggered_tags", **rest, "tags": tags}
