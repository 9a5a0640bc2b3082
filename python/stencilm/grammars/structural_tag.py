"""Structural tags: free text and structure in one tree of formats, as typed values.

One idea: a format is a frozen value whose JSON form is the documented one, so a tag read from a
request, built here, or sent to another engine is the same thing. The meaning of a format is decided
where it is compiled; here only its shape is checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Tag,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from stencilm.errors import GrammarSyntaxError, LimitExceeded, StencilError
from stencilm.grammars.json_values import read_json_exactly, write_json
from stencilm.grammars.output_form import OutputForm
from stencilm.grammars.texts import schema_value
from stencilm.shown import shown_value
from stencilm.whole_numbers import is_truth, truth

Style: TypeAlias = Literal[
    "json",
    "qwen_xml",
    "minimax_xml",
    "minimax_m3_xml",
    "deepseek_xml",
    "deepseek_v4_1_xml",
    "glm_xml",
    "cohere_xml",
    "kimi_k3_xml",
    "parameter_xml",
    "step_xml",
    "gigachat_xml",
    "ifm_xml",
    "param_xml",
    "hunyuan_xml",
    "atem_xml",
    "rfl_xml",
    "python",
    "gemma",
    "functiongemma",
]


def _no_truth(value: Any) -> Any:
    if is_truth(value):
        raise PydanticCustomError(
            "no_integer", "Input is {value}, but must be an integer", {"value": str(value).lower()}
        )
    return value


# pydantic accepts booleans as integers.
Whole: TypeAlias = Annotated[int, BeforeValidator(_no_truth)]
Token: TypeAlias = Annotated[Whole, Tag("int")] | str


class _Value(BaseModel):
    """A frozen value that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __eq__(self, other: object) -> bool:
        """Whether both have the same JSON text: 1 differs from true in a schema, and order counts.

        Values that cannot be written are compared as Python compares them.
        """
        if type(other) is not type(self):
            return NotImplemented
        try:
            return _json(self) == _json(other)
        except StencilError:
            return super().__eq__(other)

    def __hash__(self) -> int:
        """Hash the JSON text, since schemas are dicts."""
        return hash(_json(self))


class ConstStringFormat(_Value):
    """Exactly this text."""

    type: Literal["const_string"] = "const_string"
    value: str


class _SchemaValue(_Value):
    """The fields of a format with a schema, whatever its style."""

    type: str
    json_schema: dict[str, Any] | bool
    any_order: bool = False
    any_whitespace: bool = True
    strict_mode: bool = False
    max_whitespace: Whole | None = 64
    on_unsupported: Literal["error", "relax"] = "error"
    excludes: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _one_bound(cls, fields: Any) -> Any:
        """Rename `max_whitespace_cnt` to `max_whitespace`."""
        if not isinstance(fields, Mapping) or "max_whitespace_cnt" not in fields:
            return fields
        own = {name: value for name, value in fields.items() if name != "max_whitespace_cnt"}
        most = fields["max_whitespace_cnt"]
        if most is not None:
            if "max_whitespace" in own:
                raise ValueError(
                    "max_whitespace and max_whitespace_cnt are two names of one bound; "
                    "give one of them"
                )
            own["max_whitespace"] = most
        return own


class JSONSchemaFormat(_SchemaValue):
    """A value that is valid under a schema, written in a style.

    Attributes:
        json_schema: The schema, as a dict or a bool.
        style: "json", or how a family of models writes the arguments of a call.
        any_order: Properties in any order; in some styles at most 32 of them.
        any_whitespace: Whitespace wherever it may stand.
        strict_mode: Close objects that do not say whether they are open.
        max_whitespace: The longest run of whitespace; None for no bound. It may also be given as
            `max_whitespace_cnt`, the name that engines use, where None leaves the default.
        excludes: Texts that must not come within a string or a name of the value, as they are
            written: in JSON between the quotes.
        on_unsupported: "error" refuses what cannot be enforced; "relax" leaves it out, of this
            format alone, and the report of the grammar says so.
    """

    type: Literal["json_schema"] = "json_schema"
    style: Style = "json"


class QwenXMLParameterFormat(_SchemaValue):
    """A `JSONSchemaFormat` in the style "qwen_xml", under an older name, with its other fields."""

    type: Literal["qwen_xml_parameter"] = "qwen_xml_parameter"


class GrammarFormat(_Value):
    """Text of a grammar: of an EBNF text from its rule `root`, of a Lark text from `start`."""

    type: Literal["grammar"] = "grammar"
    grammar: str
    syntax: Literal["ebnf", "lark"] = "ebnf"


class RegexFormat(_Value):
    """Text that a regular expression matches as a whole."""

    type: Literal["regex"] = "regex"
    pattern: str


class AnyTextFormat(_Value):
    """Any text in which none of `excludes` comes, of at most `max_chars` characters.

    With `max_tokens` it ends as soon as so many tokens have begun within it.
    """

    type: Literal["any_text"] = "any_text"
    excludes: tuple[str, ...] = ()
    max_tokens: Whole | None = None
    max_chars: Whole | None = None


class TokenFormat(_Value):
    """One token, by id or by name."""

    type: Literal["token"] = "token"
    token: Token


class ExcludeTokenFormat(_Value):
    """One token that is none of these."""

    type: Literal["exclude_token"] = "exclude_token"
    exclude_tokens: tuple[Token, ...] = ()


class AnyTokensFormat(_Value):
    """Tokens that are none of these, at most `max_tokens` of them."""

    type: Literal["any_tokens"] = "any_tokens"
    exclude_tokens: tuple[Token, ...] = ()
    max_tokens: Whole | None = None


class SequenceFormat(_Value):
    """All elements, one after the other."""

    type: Literal["sequence"] = "sequence"
    elements: tuple[Format, ...]


class OrFormat(_Value):
    """Any one of the elements."""

    type: Literal["or"] = "or"
    elements: tuple[Format, ...]


class OptionalFormat(_Value):
    """The content, or nothing."""

    type: Literal["optional"] = "optional"
    content: Format


class PlusFormat(_Value):
    """The content, once or more."""

    type: Literal["plus"] = "plus"
    content: Format


class StarFormat(_Value):
    """The content, any number of times."""

    type: Literal["star"] = "star"
    content: Format


class RepeatFormat(_Value):
    """The content from `min` to `max` times; -1 is no bound."""

    type: Literal["repeat"] = "repeat"
    min: Whole
    max: Whole
    content: Format


class TagFormat(_Value):
    """The content between a beginning and an end."""

    type: Literal["tag"] = "tag"
    begin: str | TokenFormat | RegexFormat
    content: Format
    end: str | tuple[str | TokenFormat, ...] | TokenFormat


class TriggeredTagsFormat(_Value):
    """Free text, in which a trigger leads to one of the tags that begin with it.

    Attributes:
        triggers: The texts that lead to a tag.
        tags: Each begins with exactly one of the triggers.
        at_least_one: A tag is required, and comes before all text.
        stop_after_first: Nothing comes after the first tag.
        excludes: What the free text must not hold.
    """

    type: Literal["triggered_tags"] = "triggered_tags"
    triggers: tuple[str, ...]
    tags: tuple[TagFormat, ...]
    at_least_one: bool = False
    stop_after_first: bool = False
    excludes: tuple[str, ...] = ()


class TokenTriggeredTagsFormat(_Value):
    """Free tokens, of which some lead to the tags that begin with them."""

    type: Literal["token_triggered_tags"] = "token_triggered_tags"
    trigger_tokens: tuple[Token, ...]
    tags: tuple[TagFormat, ...]
    exclude_tokens: tuple[Token, ...] = ()
    at_least_one: bool = False
    stop_after_first: bool = False


class TagsWithSeparatorFormat(_Value):
    """Tags and nothing else, with a separator between each two."""

    type: Literal["tags_with_separator"] = "tags_with_separator"
    tags: tuple[TagFormat, ...]
    separator: str
    at_least_one: bool = False
    stop_after_first: bool = False


class DispatchFormat(_Value):
    """Free text, in which every pattern is followed by its format; only once without `loop`."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    type: Literal["dispatch"] = "dispatch"
    rules: tuple[tuple[str, Format], ...]
    loop: bool = True
    excludes: tuple[str, ...] = ()


class TokenDispatchFormat(_Value):
    """Free tokens, of which some are followed by a format; only once without `loop`."""

    type: Literal["token_dispatch"] = "token_dispatch"
    rules: tuple[tuple[Token, Format], ...]
    loop: bool = True
    exclude_tokens: tuple[Token, ...] = ()


Format: TypeAlias = Annotated[
    ConstStringFormat
    | JSONSchemaFormat
    | QwenXMLParameterFormat
    | GrammarFormat
    | RegexFormat
    | AnyTextFormat
    | TokenFormat
    | ExcludeTokenFormat
    | AnyTokensFormat
    | SequenceFormat
    | OrFormat
    | OptionalFormat
    | PlusFormat
    | StarFormat
    | RepeatFormat
    | TagFormat
    | TriggeredTagsFormat
    | TokenTriggeredTagsFormat
    | TagsWithSeparatorFormat
    | DispatchFormat
    | TokenDispatchFormat,
    Field(discriminator="type"),
]


def is_format(value: object) -> bool:
    """Whether a value is one of the formats."""
    return type(value) in get_args(get_args(Format)[0])


for _format in (
    SequenceFormat,
    OrFormat,
    OptionalFormat,
    PlusFormat,
    StarFormat,
    RepeatFormat,
    TagFormat,
    TriggeredTagsFormat,
    TokenTriggeredTagsFormat,
    TagsWithSeparatorFormat,
    DispatchFormat,
    TokenDispatchFormat,
):
    _format.model_rebuild()


class StructuralTagItem(_Value):
    """One tag of the older form: a schema between a beginning and an end.

    Examples:
        >>> import stencilm
        >>> item = stencilm.StructuralTagItem(begin="<f>", schema={"type": "integer"}, end="</f>")
        >>> item.tag().begin
        '<f>'
    """

    begin: str
    schema_: Any = Field(alias="schema")
    end: str

    def tag(self) -> TagFormat:
        """The same as a format."""
        content = JSONSchemaFormat(json_schema=schema_value(self.schema_))
        return TagFormat(begin=self.begin, content=content, end=self.end)


_TOO_DEEP = "the structural tag is nested too deeply: flatten it"


class StructuralTag(_Value, OutputForm[str]):
    """A whole structural tag; also an output type, whose value is the text.

    Attributes:
        format: The format of the text.

    Examples:
        >>> import stencilm
        >>> tag = stencilm.StructuralTag.from_json({"type": "const_string", "value": "yes"})
        >>> stencilm.StructuralTag.from_json(tag.to_json()) == tag
        True
        >>> item = stencilm.StructuralTagItem(begin="<f>", schema={"type": "integer"}, end="</f>")
        >>> older = stencilm.StructuralTag.from_legacy_structural_tag([item], ["<f>"])
        >>> older.format.triggers
        ('<f>',)
    """

    type: Literal["structural_tag"] = "structural_tag"
    format: Format

    @staticmethod
    def from_json(text: str | Mapping[str, Any]) -> StructuralTag:
        """The tag of a JSON text or a dict: the whole, a format alone, or the older form.

        Raises:
            GrammarSyntaxError: It is not a structural tag; has the JSON pointer.
            LimitExceeded: It is nested too deeply.
        """
        try:
            value = read_json_exactly(text) if isinstance(text, str) else text
            if not isinstance(value, Mapping):
                raise GrammarSyntaxError(
                    f"a structural tag is a JSON object, not {type(value).__name__}", place="#"
                )
            if "structures" in value:
                return _OlderForm.model_validate(value).tag()
            if value.get("type", "structural_tag") == "structural_tag":
                return StructuralTag.model_validate(_with_types(value))
            whole = {"type": "structural_tag", "format": value}
            return StructuralTag.model_validate(_with_types(whole))
        except json.JSONDecodeError as error:
            place = f"line {error.lineno}, column {error.colno}"
            raise GrammarSyntaxError(
                f"a structural tag is JSON: {error.msg}", place=place
            ) from None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            if first["type"].startswith("recursion"):
                raise LimitExceeded(_TOO_DEEP) from None
            steps = first["loc"]
            if value.get("type", "structural_tag") != "structural_tag":
                steps = steps[1:]  # a format alone: drop "format" from the pointer
            is_missing = first["type"] == "missing"
            place = _place(steps, value, is_missing=is_missing)
            raise GrammarSyntaxError(first["msg"], place=place) from None
        except GrammarSyntaxError:
            raise
        except ValueError as error:
            raise GrammarSyntaxError(f"a structural tag is JSON: {error}") from None
        except RecursionError:
            raise LimitExceeded(_TOO_DEEP) from None

    @staticmethod
    def from_legacy_structural_tag(
        tags: Sequence[StructuralTagItem],
        triggers: Sequence[str],
        *,
        at_least_one: bool = False,
        stop_after_first: bool = False,
    ) -> StructuralTag:
        """Free text in which each trigger leads to the tags that begin with it.

        Args:
            tags: The tags, each of which begins with exactly one of the triggers.
            triggers: The texts that lead to a tag.
            at_least_one: A tag is required, and comes before all text.
            stop_after_first: Nothing comes after the first tag.

        Raises:
            TypeError: The tags are not a list of StructuralTagItem, the triggers are not several
                texts, or an option is neither True nor False.
        """
        items = list(tags) if isinstance(tags, Iterable) else [tags]
        for item in items:
            if not isinstance(item, StructuralTagItem):
                raise TypeError(
                    f"tags has {shown_value(item):.60}, but must be a list of StructuralTagItem"
                )
        if isinstance(triggers, (str, bytes)) or not isinstance(triggers, Iterable):
            raise TypeError(f"triggers is {shown_value(triggers):.60}, but must be a list of texts")
        texts = tuple(triggers)
        for trigger in texts:
            if not isinstance(trigger, str):
                raise TypeError(
                    f"triggers has {shown_value(trigger):.60}, but must be a list of texts"
                )
        formats = tuple(item.tag() for item in items)
        return StructuralTag(
            format=TriggeredTagsFormat(
                triggers=texts,
                tags=formats,
                at_least_one=truth("at_least_one", at_least_one),
                stop_after_first=truth("stop_after_first", stop_after_first),
            )
        )

    def to_json(self) -> str:
        """The tag as JSON text, without default values.

        Raises:
            GrammarSyntaxError: A schema in it has a value that JSON lacks.
            LimitExceeded: It is nested too deeply.
        """
        return _json(self)


class _OlderForm(_Value):
    """The older form of a structural tag, as it is in JSON."""

    type: Literal["structural_tag"] = "structural_tag"
    structures: tuple[StructuralTagItem, ...]
    triggers: tuple[str, ...]
    at_least_one: bool = False
    stop_after_first: bool = False

    def tag(self) -> StructuralTag:
        """The same tag in the current form."""
        for index, item in enumerate(self.structures):
            try:
                schema_value(item.schema_)
            except (TypeError, GrammarSyntaxError) as error:
                place = f"#/structures/{index}/schema"
                raise GrammarSyntaxError(str(error), place=place) from None
        return StructuralTag.from_legacy_structural_tag(
            self.structures,
            self.triggers,
            at_least_one=self.at_least_one,
            stop_after_first=self.stop_after_first,
        )


def _json(value: _Value) -> str:
    """The JSON text of a tag or of a part of one; raises GrammarSyntaxError and LimitExceeded."""
    try:
        return write_json(_plain(value), allow_nan=False)
    except RecursionError:
        raise LimitExceeded(_TOO_DEEP) from None
    except (TypeError, ValueError) as error:
        raise GrammarSyntaxError(f"the structural tag cannot be written as JSON: {error}") from None


def _plain(value: Any) -> Any:
    """A value as JSON-ready data, without fields that have their default, except `type`."""
    if isinstance(value, BaseModel):
        defaults = _defaults(type(value))
        # Read past pydantic's descriptors, because a tag may have thousands of values.
        return {
            name: _plain(field)
            for name, field in value.__dict__.items()
            if name == "type" or field != defaults[name]
        }
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


@cache
def _defaults(kind: type[BaseModel]) -> dict[str, Any]:
    return {name: field.default for name, field in kind.model_fields.items()}


def _with_types(value: Any) -> Any:
    """The same value with `"type": "tag"` added where the elements of `tags` leave it out."""
    if isinstance(value, Mapping):
        filled = {key: _with_types(item) for key, item in value.items() if key != "json_schema"}
        if "json_schema" in value:
            filled["json_schema"] = value["json_schema"]
        if "begin" in filled and "content" in filled:
            filled.setdefault("type", "tag")
        return filled
    if isinstance(value, (list, tuple)):
        return [_with_types(item) for item in value]
    return value


def _place(steps: Sequence[int | str], value: Any, *, is_missing: bool) -> str:
    """The JSON pointer of the place that pydantic reports, or of a field that is missing there.

    Between the steps of the path, pydantic names the alternatives that it tried: a format by its
    type, others by their classes. These are skipped.
    """
    place, is_new = "#", True
    for index, step in enumerate(steps):
        is_kind = is_new and isinstance(value, Mapping) and value.get("type") == step
        is_new = False
        if is_kind:
            continue
        may_lack = is_missing and index == len(steps) - 1
        if isinstance(value, Mapping) and (step in value or may_lack):
            value = value.get(step)
        elif isinstance(value, (list, tuple)) and isinstance(step, int):
            value = value[step] if step < len(value) else None
        else:
            continue
        place += "/" + str(step).replace("~", "~0").replace("/", "~1")
        is_new = True
    return place
