"""A structural tag for servers: in the form of xgrammar, without anything specific to stencilm.

One idea: a tag is sent only if its JSON has the same meaning there. Formats that a server would
read differently, or not at all, and those that cannot be checked in a text, such as a single token,
are not sent.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from stencilm.endpoints.plain_grammars import plain_gbnf, plain_regex
from stencilm.errors import StencilError, UnsupportedFeature
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.json_values import write_json
from stencilm.grammars.sources import StructuralTagSource
from stencilm.grammars.structural_tag import (
    AnyTokensFormat,
    ExcludeTokenFormat,
    GrammarFormat,
    JSONSchemaFormat,
    RegexFormat,
    StructuralTag,
    TagFormat,
    TokenDispatchFormat,
    TokenFormat,
    TokenTriggeredTagsFormat,
    is_format,
)

_STYLES = (
    "json",
    "qwen_xml",
    "minimax_xml",
    "minimax_m3_xml",
    "deepseek_xml",
    "deepseek_v4_1_xml",
    "glm_xml",
    "cohere_xml",
    "kimi_k3_xml",
)
"""The styles of arguments that xgrammar also has."""

_OF_TOKENS = (
    AnyTokensFormat,
    ExcludeTokenFormat,
    TokenDispatchFormat,
    TokenFormat,
    TokenTriggeredTagsFormat,
)


def native_tag(grammar: Grammar) -> str | None:
    """The JSON text of a tag grammar for a server; None if it cannot be sent."""
    source = grammar.source
    return _native(source.text) if isinstance(source, StructuralTagSource) else None


@lru_cache(maxsize=16)
def _native(text: str) -> str | None:
    try:
        tag = StructuralTag.from_json(text)
        return write_json({"type": "structural_tag", "format": _said(tag.format)})
    except (StencilError, RecursionError):
        return None


def _said(value: Any) -> Any:
    """A format, or the value of one of its fields, in a server's form.

    Raises UnsupportedFeature.
    """
    if isinstance(value, tuple):
        return [_said(each) for each in value]
    if not is_format(value):
        return value
    is_ours = isinstance(value, TagFormat) and isinstance(value.begin, RegexFormat)
    if is_ours or isinstance(value, _OF_TOKENS):
        raise UnsupportedFeature(f"a server takes no {value.type!r} like this one")
    if isinstance(value, JSONSchemaFormat):
        return _said_schema(value)
    if isinstance(value, GrammarFormat):
        is_lark = value.syntax == "lark"
        read = Grammar.from_lark if is_lark else Grammar.from_ebnf
        return {"type": "grammar", "grammar": _known(plain_gbnf(read(value.grammar)))}
    if isinstance(value, RegexFormat):
        return {"type": "regex", "pattern": _known(plain_regex(Grammar.from_regex(value.pattern)))}
    fields = type(value).model_fields
    given = {name: getattr(value, name) for name in fields}
    said = {name: _said(one) for name, one in given.items() if one != fields[name].default}
    return {"type": value.type, **said}


def _said_schema(value: JSONSchemaFormat) -> dict[str, Any]:
    """JSON in a tag. A server has a fixed layout, and treats the order and excludes differently."""
    shape = JSONSchemaFormat(json_schema=value.json_schema, style=value.style)
    is_usual = value.model_copy(update={"max_whitespace": shape.max_whitespace}) == shape
    # A bound of 0 is an error there.
    if not is_usual or not value.max_whitespace or value.style not in _STYLES:
        raise UnsupportedFeature("a server takes no JSON with these options")
    said: dict[str, Any] = {"type": "json_schema", "json_schema": value.json_schema}
    if value.style != "json":
        said["style"] = value.style
    # A server has no bound by default, so send ours.
    return said | {"max_whitespace_cnt": value.max_whitespace}


def _known(text: str | None) -> str:
    if text is None:
        raise UnsupportedFeature("what a format holds cannot be said to a server")
    return text
