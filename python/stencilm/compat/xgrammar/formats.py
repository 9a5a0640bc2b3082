"""Structural tags as values with the original's fields, and their conversion to this package.

One idea: a value is its JSON form. Like the original's, it may be changed until it is used; its
meaning is decided when it is compiled.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from stencilm.compat.arguments import check_kinds
from stencilm.compat.xgrammar.escapes import own_escapes
from stencilm.compat.xgrammar.failures import InvalidStructuralTagError
from stencilm.compat.xgrammar.schemas import any_dot, opened
from stencilm.errors import StencilError
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.structural_tag import StructuralTag as _StructuralTag
from stencilm.grammars.structural_tag import Style

_MOST = 2**31 - 1
_Budget = Annotated[int | None, Field(ge=0, le=_MOST)]


class ConstStringFormat(BaseModel):
    """Exactly this text."""

    type: Literal["const_string"] = "const_string"
    value: str


class JSONSchemaFormat(BaseModel):
    """A value that is valid under a schema, written in a style."""

    type: Literal["json_schema"] = "json_schema"
    json_schema: bool | dict[str, Any]
    style: Style = "json"
    any_order: bool = False
    max_whitespace_cnt: int | None = None
    excludes: list[str] = []


class AnyTextFormat(BaseModel):
    """Any text without these texts in it, of at most this many tokens and characters."""

    type: Literal["any_text"] = "any_text"
    excludes: list[str] = []
    max_tokens: _Budget = None
    max_chars: _Budget = None


class TokenFormat(BaseModel):
    """One token, by id or by name."""

    type: Literal["token"] = "token"
    token: int | str


class ExcludeTokenFormat(BaseModel):
    """One token that is none of these."""

    type: Literal["exclude_token"] = "exclude_token"
    exclude_tokens: list[int | str] = []


class AnyTokensFormat(BaseModel):
    """Tokens that are none of these, up to a number."""

    type: Literal["any_tokens"] = "any_tokens"
    exclude_tokens: list[int | str] = []
    max_tokens: _Budget = None


class GrammarFormat(BaseModel):
    """Text of a grammar in EBNF, or in Lark."""

    type: Literal["grammar"] = "grammar"
    grammar: str
    syntax: Literal["ebnf", "lark"] = "ebnf"


class RegexFormat(BaseModel):
    """Text that a regular expression matches as a whole."""

    type: Literal["regex"] = "regex"
    pattern: str


class SequenceFormat(BaseModel):
    """All elements, one after the other."""

    type: Literal["sequence"] = "sequence"
    elements: list[Format]


class OrFormat(BaseModel):
    """Any one of the elements."""

    type: Literal["or"] = "or"
    elements: list[Format]


class TagFormat(BaseModel):
    """The content between a beginning and an end."""

    type: Literal["tag"] = "tag"
    begin: str | TokenFormat | RegexFormat
    content: Format
    end: str | list[str | TokenFormat] | TokenFormat


class TriggeredTagsFormat(BaseModel):
    """Free text, in which a trigger leads to one of the tags that begin with it."""

    type: Literal["triggered_tags"] = "triggered_tags"
    triggers: list[str]
    tags: list[TagFormat]
    at_least_one: bool = False
    stop_after_first: bool = False
    excludes: list[str] = []


class TokenTriggeredTagsFormat(BaseModel):
    """Free tokens, of which some lead to the tags that begin with them."""

    type: Literal["token_triggered_tags"] = "token_triggered_tags"
    trigger_tokens: list[int | str]
    tags: list[TagFormat]
    exclude_tokens: list[int | str] = []
    at_least_one: bool = False
    stop_after_first: bool = False


class TagsWithSeparatorFormat(BaseModel):
    """Tags and nothing else, with a separator between each two."""

    type: Literal["tags_with_separator"] = "tags_with_separator"
    tags: list[TagFormat]
    separator: str
    at_least_one: bool = False
    stop_after_first: bool = False


class OptionalFormat(BaseModel):
    """The content, or nothing."""

    type: Literal["optional"] = "optional"
    content: Format


class PlusFormat(BaseModel):
    """The content, once or more."""

    type: Literal["plus"] = "plus"
    content: Format


class StarFormat(BaseModel):
    """The content, any number of times."""

    type: Literal["star"] = "star"
    content: Format


class RepeatFormat(BaseModel):
    """The content from `min` to `max` times; -1 is no bound."""

    type: Literal["repeat"] = "repeat"
    min: int
    max: int
    content: Format


class DispatchFormat(BaseModel):
    """Free text, in which every pattern is followed by its format; only once without `loop`."""

    type: Literal["dispatch"] = "dispatch"
    rules: list[tuple[str, Format]]
    loop: bool = True
    excludes: list[str] = []


class TokenDispatchFormat(BaseModel):
    """Free tokens, of which some are followed by a format; only once without `loop`."""

    type: Literal["token_dispatch"] = "token_dispatch"
    rules: list[tuple[int | str, Format]]
    loop: bool = True
    exclude_tokens: list[int | str] = []


class QwenXMLParameterFormat(BaseModel):
    """A `JSONSchemaFormat` in the style "qwen_xml", under an older name."""

    type: Literal["qwen_xml_parameter"] = "qwen_xml_parameter"
    json_schema: bool | dict[str, Any]


Format = Annotated[
    AnyTextFormat
    | ConstStringFormat
    | JSONSchemaFormat
    | GrammarFormat
    | RegexFormat
    | QwenXMLParameterFormat
    | OrFormat
    | SequenceFormat
    | TagFormat
    | TriggeredTagsFormat
    | TokenTriggeredTagsFormat
    | TagsWithSeparatorFormat
    | OptionalFormat
    | PlusFormat
    | StarFormat
    | TokenFormat
    | ExcludeTokenFormat
    | AnyTokensFormat
    | RepeatFormat
    | DispatchFormat
    | TokenDispatchFormat,
    Field(discriminator="type"),
]

for _format in (
    SequenceFormat,
    OrFormat,
    TagFormat,
    TriggeredTagsFormat,
    TokenTriggeredTagsFormat,
    TagsWithSeparatorFormat,
    OptionalFormat,
    PlusFormat,
    StarFormat,
    RepeatFormat,
    DispatchFormat,
    TokenDispatchFormat,
):
    _format.model_rebuild()


class StructuralTagItem(BaseModel):
    """One tag of the older form: a schema between a beginning and an end."""

    begin: str
    schema_: str | type[BaseModel] | dict[str, Any] = Field(alias="schema")
    end: str


class StructuralTag(BaseModel):
    """A whole structural tag."""

    type: Literal["structural_tag"] = "structural_tag"
    format: Format

    @staticmethod
    def from_legacy_structural_tag(
        tags: list[StructuralTagItem], triggers: list[str]
    ) -> StructuralTag:
        """Free text in which each trigger leads to the tags that begin with it.

        Raises:
            TypeError: `tags` is not a list of StructuralTagItem.
            ValueError: `triggers` is not a list of str.
        """
        tags = check_kinds("tags", tags, StructuralTagItem, "StructuralTagItem")
        return StructuralTag(
            format=TriggeredTagsFormat(
                triggers=triggers,
                tags=[
                    TagFormat(
                        begin=tag.begin,
                        content=JSONSchemaFormat(json_schema=_schema(tag.schema_)),
                        end=tag.end,
                    )
                    for tag in tags
                ],
            )
        )

    @staticmethod
    def from_json(json_str: str | dict[str, Any]) -> StructuralTag:
        """The tag of a JSON text or a dict.

        Raises:
            ValueError: It is neither, or not a structural tag.
        """
        if isinstance(json_str, str):
            return StructuralTag.model_validate_json(json_str)
        if isinstance(json_str, dict):
            return StructuralTag.model_validate(json_str)
        raise ValueError(
            f"json_str is a {type(json_str).__name__}, but must be a JSON text or a dict"
        )


def _schema(given: str | type[BaseModel] | dict[str, Any]) -> Any:
    if isinstance(given, str):
        return json.loads(given)
    return given if isinstance(given, dict) else given.model_json_schema()


def plain_tag(tag: Any) -> Any:
    """The JSON of a tag for this package, whose defaults for schemas differ.

    Raises:
        InvalidStructuralTagError: It is nested too deeply.
    """
    try:
        return _plain(tag)
    except RecursionError:
        raise InvalidStructuralTagError(
            "the structural tag is nested too deeply: flatten it"
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "regex" and isinstance(value.get("pattern"), str):
        return {**value, "pattern": _any_dot(value["pattern"])}
    if value.get("type") == "grammar" and isinstance(value.get("grammar"), str):
        is_ebnf = value.get("syntax", "ebnf") == "ebnf"
        return {**value, "grammar": own_escapes(value["grammar"])} if is_ebnf else value
    if value.get("type") not in ("json_schema", "qwen_xml_parameter"):
        return {name: _plain(field) for name, field in value.items()}
    made = {"strict_mode": True, **value}
    if made["type"] == "qwen_xml_parameter":
        made.update(type="json_schema", style="qwen_xml")
    if "json_schema" in made and made["strict_mode"]:
        made["json_schema"] = opened(made["json_schema"])
    made["max_whitespace"] = made.pop("max_whitespace_cnt", None)
    return made


def _any_dot(pattern: str) -> str:
    """The pattern with `.` for any character; one that is refused as it is, for its positions."""
    try:
        Grammar.from_regex(pattern)
    except StencilError:
        return pattern
    return any_dot(pattern)


def tag_of(tag: _StructuralTag) -> StructuralTag:
    """Convert a tag of this package to the original's value."""
    return StructuralTag.model_validate(_foreign(json.loads(tag.to_json())))


def _foreign(value: Any) -> Any:
    if isinstance(value, list):
        return [_foreign(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") != "json_schema":
        return {name: _foreign(field) for name, field in value.items()}
    made = dict(value)
    made["max_whitespace_cnt"] = made.pop("max_whitespace", None)
    return made
