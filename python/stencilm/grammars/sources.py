"""The notations that grammars are made of, each with all its options as one hashable value.

One idea: a source is checked when it is made and built when it is needed, so a compiler's cache can
look it up before anything is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeAlias,
    TypedDict,
    Unpack,
    cast,
)

from stencilm import _core
from stencilm.grammars.symbols import (
    Symbols,
    SymbolTable,
    checked_symbols,
    rows,
    size_bytes,
    symbol_texts,
)
from stencilm.grammars.texts import (
    Schema,
    check_length,
    checked_mapping,
    checked_text,
    document_texts,
    json_text,
    schema_text,
)
from stencilm.limits import Limits
from stencilm.shown import in_a_line, is_word, shown_value
from stencilm.whole_numbers import truth, whole_number

if TYPE_CHECKING:
    from stencilm.grammars.grammar import Grammar
    from stencilm.grammars.structural_tag import Format, StructuralTag, StructuralTagItem

PropertyOrder: TypeAlias = Literal["declared", "any"]
Spelling: TypeAlias = Literal["natural", "digits", "any"]
Escapes: TypeAlias = Literal["any", "minimal"]
Formats: TypeAlias = Literal["enforced", "annotation"]
OnUnsupported: TypeAlias = Literal["error", "relax"]

DEFAULT_MAX_WHITESPACE = 64
_WHITESPACE = " \t\n\r"
_MAX_COUNT = 2**32 - 1


class Source(Protocol):
    """A notation with all its options: hashable, compared by value, and able to build."""

    @property
    def notation(self) -> str:
        """The name of the notation."""
        ...

    @property
    def size_bytes(self) -> int:
        """The approximate size of keeping it in memory."""

    def build(self, limits: Limits) -> _core.Grammar:
        """Build the grammar; raises LimitExceeded if it is too large."""


class SchemaOptions(TypedDict, total=False):
    """Options for reading a JSON Schema, accepted wherever a schema is.

    Attributes:
        any_whitespace: Allow whitespace wherever JSON does. If False, the only layout is that of
            `json.dumps` with `indent` and `separators`. Default True.
        compact: Allow no whitespace. Short for `any_whitespace=False, separators=(",", ":")`.
            Default False.
        indent: The number of spaces for each level; None for a single line. Has no effect
            if any_whitespace is True. Default None.
        separators: The text between items, and the text between a key and its value. None stands
            for (", ", ": "), or with an indent for (",", ": "). Has no effect if any_whitespace
            is True. Default None.
        strict_mode: Close objects and tuples that do not say whether they are open. If False,
            undeclared properties are allowed, as in the specification. Default False.
        max_whitespace: The longest run of whitespace, so that a model cannot get stuck in
            whitespace; None for no limit. Default 64.
        property_order: The order of known properties: "declared" for that of the schema, "any"
            for every order. Default "declared".
        spelling: "natural" spells keys, constants and patterns plainly. "digits" also spells
            integers without a point, as Python types do. "any" allows every text that a JSON
            reader reads as the same value. Default "natural".
        escapes: "minimal" writes strings as `json.dumps` does with `ensure_ascii=False`: quotes,
            backslashes and control characters are escaped, each in one way, and nothing else is.
            "any" allows the escapes that `spelling` allows. Default "any".
        formats: "enforced" checks strings against the standard formats. "annotation" ignores
            formats, which is the specification's default. Default "enforced".
        nullable: Read `nullable: true` as OpenAPI 3.0 does: null is allowed in addition to the
            type. If False, `nullable` is an annotation. Default False.
        on_unsupported: "error" refuses a schema with constraints that cannot be enforced, "relax"
            drops these and lists them in `Grammar.report`. Default "error".
    """

    any_whitespace: bool
    compact: bool
    indent: int | None
    separators: tuple[str, str] | None
    strict_mode: bool
    max_whitespace: int | None
    property_order: PropertyOrder
    spelling: Spelling
    escapes: Escapes
    formats: Formats
    nullable: bool
    on_unsupported: OnUnsupported


class _Read:
    """The core's form of the options: kept beside them, but not compared."""

    __slots__ = ("core",)
    core: _core.JsonSchemaOptions


@dataclass(frozen=True, slots=True)
class JsonSchemaOptions(_Read):
    """`SchemaOptions` with their defaults, checked and hashable; `compact` is written out.

    Raises TypeError and ValueError for what is not an option.
    """

    any_whitespace: bool = True
    indent: int | None = None
    separators: tuple[str, str] | None = None
    strict_mode: bool = False
    max_whitespace: int | None = DEFAULT_MAX_WHITESPACE
    property_order: PropertyOrder = "declared"
    spelling: Spelling = "natural"
    escapes: Escapes = "any"
    formats: Formats = "enforced"
    nullable: bool = False
    on_unsupported: OnUnsupported = "error"

    def __post_init__(self) -> None:
        """Check every option."""
        core = _core.JsonSchemaOptions(
            any_whitespace=truth("any_whitespace", self.any_whitespace),
            indent=_checked_count("indent", self.indent),
            separators=_checked_separators(self.separators),
            strict_mode=truth("strict_mode", self.strict_mode),
            max_whitespace=_checked_count("max_whitespace", self.max_whitespace),
            property_order=_checked_word("property_order", self.property_order, "declared", "any"),
            spelling=_checked_word("spelling", self.spelling, "natural", "digits", "any"),
            escapes=_checked_word("escapes", self.escapes, "any", "minimal"),
            formats=_checked_word("formats", self.formats, "enforced", "annotation"),
            nullable=truth("nullable", self.nullable),
            on_unsupported=_checked_word("on_unsupported", self.on_unsupported, "error", "relax"),
        )
        object.__setattr__(self, "core", core)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the options alone, because the core's part cannot be pickled."""
        return JsonSchemaOptions, tuple(getattr(self, each.name) for each in fields(self))


# Most schemas come with the same options, and checking them takes longer than looking them up.
# `typed`, because 1 is not a bool though it equals True.
_known_options = lru_cache(maxsize=64, typed=True)(JsonSchemaOptions)


def json_schema_options(**given: Unpack[SchemaOptions]) -> JsonSchemaOptions:
    """The options, with defaults for those not given; raises TypeError and ValueError."""
    options: dict[str, Any] = dict(given)
    if truth("compact", options.pop("compact", False)):
        for name, value in (("any_whitespace", False), ("indent", None), ("separators", None)):
            if options.setdefault(name, value) != value:
                raise ValueError(
                    f"compact=True and {name}={options[name]!r} exclude each other: "
                    "give one of them"
                )
        options["separators"] = (",", ":")
    if isinstance(options.get("separators"), list):
        options["separators"] = tuple(options["separators"])
    try:
        return _known_options(**options)
    except TypeError:  # an option is wrong, unknown or not hashable
        unknown = sorted(set(options) - set(SchemaOptions.__annotations__))
        if unknown:
            raise TypeError(
                f"{in_a_line(unknown[0])} is no option of a schema; these are: "
                f"{', '.join(SchemaOptions.__annotations__)}"
            ) from None
        return JsonSchemaOptions(**options)


@dataclass(frozen=True, slots=True)
class JsonSchemaSource:
    """A JSON Schema as text, with all options."""

    notation: ClassVar[str] = "JSON Schema"

    text: str
    options: JsonSchemaOptions
    documents: tuple[tuple[str, str], ...]

    @staticmethod
    def of(
        schema: Schema,
        *,
        documents: Mapping[str, Schema] | None = None,
        symbols: Mapping[str, SymbolTable] | None = None,
        **options: Unpack[SchemaOptions],
    ) -> JsonSchemaSource:
        """The source of `Grammar.from_json_schema`; raises TypeError and ValueError."""
        if isinstance(schema, type) and options.get("spelling", "natural") == "natural":
            options["spelling"] = "digits"  # what Python reads as an int
        return JsonSchemaSource(
            schema_text(schema, "schema"),
            json_schema_options(**options),
            (document_texts(documents) if documents is not None else ())
            + (symbol_texts(symbols) if symbols is not None else ()),
        )

    @property
    def size_bytes(self) -> int:
        """The approximate size of the texts."""
        return len(self.text) + sum(len(uri) + len(text) for uri, text in self.documents)

    def build(self, limits: Limits) -> _core.Grammar:
        """Build the grammar of the schema."""
        return _core.Grammar.from_json_schema(
            self.text, self.options.core, self.documents, limits.core
        )


@dataclass(frozen=True, slots=True)
class RegexSource:
    """A regular expression."""

    notation: ClassVar[str] = "regular expression"

    pattern: str

    @staticmethod
    def of(pattern: str) -> RegexSource:
        """The source of `Grammar.from_regex`; raises TypeError."""
        return RegexSource(checked_text("pattern", pattern))

    @property
    def size_bytes(self) -> int:
        """The approximate size of the pattern."""
        return len(self.pattern)

    def build(self, limits: Limits) -> _core.Grammar:
        """Build the grammar of the pattern."""
        check_length("the pattern", self.pattern, limits)
        return _core.Grammar.from_regex(self.pattern, limits.core)


@dataclass(frozen=True, slots=True)
class EbnfSource:
    """An EBNF text, its start rule, and the tables of names that it uses."""

    notation: ClassVar[str] = "EBNF"

    text: str
    root_rule_name: str
    symbols: Symbols = ()

    @staticmethod
    def of(
        text: str,
        root_rule_name: str = "root",
        symbols: Mapping[str, SymbolTable] | None = None,
    ) -> EbnfSource:
        """The source of `Grammar.from_ebnf`; raises TypeError."""
        return EbnfSource(
            checked_text("text", text),
            checked_text("root_rule_name", root_rule_name),
            checked_symbols(symbols),
        )

    @property
    def size_bytes(self) -> int:
        """The approximate size of the text and the names."""
        return len(self.text) + size_bytes(self.symbols)

    def build(self, limits: Limits) -> _core.Grammar:
        """Build the grammar of the text."""
        check_length("the text", self.text, limits)
        return _core.Grammar.from_ebnf(
            self.text, self.root_rule_name, rows(self.symbols), limits.core
        )


@dataclass(frozen=True, slots=True)
class LarkSource:
    """A Lark text, its start rule, and the grammars and tables that it uses by name."""

    notation: ClassVar[str] = "Lark"

    text: str
    start: str
    grammars: tuple[tuple[str, Source | str], ...]
    symbols: Symbols = ()

    @staticmethod
    def of(
        text: str,
        start: str = "start",
        grammars: Mapping[str, Grammar | str] | None = None,
        symbols: Mapping[str, SymbolTable] | None = None,
    ) -> LarkSource:
        """The source of `Grammar.from_lark`; raises TypeError."""
        named: list[tuple[str, Source | str]] = []
        for name, given in checked_mapping("grammars", grammars).items():
            checked_text("a key of grammars", name)
            source = getattr(given, "source", None)
            if isinstance(given, str):
                named.append((name, checked_text(f"grammars[{name!r}]", given)))
            elif source is not None:
                named.append((name, source))
            else:
                raise TypeError(
                    f"grammars[{name!r}] is a {type(given).__name__}, but must be a Grammar or a "
                    "Lark text"
                )
        return LarkSource(
            checked_text("text", text),
            checked_text("start", start),
            tuple(named),
            checked_symbols(symbols),
        )

    @property
    def size_bytes(self) -> int:
        """The approximate size of the texts."""
        parts = (
            len(given) if isinstance(given, str) else given.size_bytes for _, given in self.grammars
        )
        return len(self.text) + sum(parts) + size_bytes(self.symbols)

    def build(self, limits: Limits) -> _core.Grammar:
        """Build the grammar of the text."""
        check_length("the text", self.text, limits)
        named = [
            (name, given if isinstance(given, str) else given.build(limits))
            for name, given in self.grammars
        ]
        return _core.Grammar.from_lark(
            self.text, self.start, named, rows(self.symbols), limits.core
        )


@dataclass(frozen=True, slots=True)
class SerializedSource:
    """A text that `Grammar.serialize_json` wrote."""

    notation: ClassVar[str] = "saved grammar"

    text: str

    @property
    def size_bytes(self) -> int:
        """The approximate size of the text."""
        return len(self.text)

    def build(self, limits: Limits) -> _core.Grammar:
        """Restore the grammar that was written."""
        return _core.Grammar.deserialize_json(self.text, limits.core)


# How many schemas of the greatest length a structural tag may hold; the core has the same bound. It
# suffices for a thousand tools, each in several forms.
_PARTS_OF_TAG = 8


@dataclass(frozen=True, slots=True)
class StructuralTagSource:
    """A structural tag as JSON text."""

    notation: ClassVar[str] = "structural tag"

    text: str

    @staticmethod
    def of(
        tag: StructuralTag | Format | Mapping[str, Any] | str | Sequence[StructuralTagItem],
        triggers: Sequence[str] | None = None,
    ) -> StructuralTagSource:
        """The source of `Grammar.from_structural_tag`; raises TypeError and GrammarSyntaxError."""
        if triggers is not None:
            from stencilm.grammars.structural_tag import StructuralTag, StructuralTagItem

            is_list = isinstance(tag, Iterable) and not isinstance(
                tag, (str, Mapping, StructuralTag)
            )
            items = list(cast("Iterable[StructuralTagItem]", tag)) if is_list else []
            if not is_list or not all(isinstance(item, StructuralTagItem) for item in items):
                raise TypeError("with triggers, tag must be a list of StructuralTagItem")
            older = StructuralTag.from_legacy_structural_tag(items, triggers)
            return StructuralTagSource(checked_text("tag", older.to_json()))
        if isinstance(tag, str):
            return StructuralTagSource(checked_text("tag", tag))
        if isinstance(tag, Mapping):
            return StructuralTagSource(json_text(dict(tag), "tag"))
        from stencilm.grammars.structural_tag import StructuralTag, is_format

        if is_format(tag):
            tag = StructuralTag(format=cast("Format", tag))
        if not isinstance(tag, StructuralTag):
            way_out = "; a list of StructuralTagItem comes with triggers" * isinstance(tag, list)
            raise TypeError(
                f"tag is a {type(tag).__name__}, but must be a StructuralTag, a format, a dict or "
                f"JSON text{way_out}"
            )
        return StructuralTagSource(checked_text("tag", tag.to_json()))

    @property
    def size_bytes(self) -> int:
        """The approximate size of the text."""
        return len(self.text)

    def build(self, limits: Limits) -> _core.Grammar:
        """Build the grammar of the tag."""
        # The core checks the size of each schema in it.
        check_length("the structural tag", self.text, limits, parts=_PARTS_OF_TAG)
        return _core.Grammar.from_structural_tag(self.text, limits.core)


@dataclass(frozen=True, slots=True)
class CombinedSource:
    """A concatenation or a union of grammars."""

    notation: ClassVar[str] = "several grammars"

    how: Literal["concat", "union"]
    parts: tuple[Source, ...]

    @staticmethod
    def of(how: Literal["concat", "union"], sources: Iterable[Source]) -> CombinedSource:
        """Combine these grammars; parts that were combined in the same way are flattened."""
        parts: list[Source] = []
        for source in sources:
            if isinstance(source, CombinedSource) and source.how == how:
                parts.extend(source.parts)
            else:
                parts.append(source)
        return CombinedSource(how, tuple(parts))

    @property
    def size_bytes(self) -> int:
        """The approximate size of the parts."""
        return sum(part.size_bytes for part in self.parts)

    def build(self, limits: Limits) -> _core.Grammar:
        """Build the grammar from all parts."""
        return combine(self.how, [part.build(limits) for part in self.parts], limits)


def combine(
    how: Literal["concat", "union"], parts: list[_core.Grammar], limits: Limits
) -> _core.Grammar:
    """Combine grammars that are already built."""
    join = _core.Grammar.concat if how == "concat" else _core.Grammar.union
    return join(parts, limits.core)


def _checked_count(name: str, value: Any) -> int | None:
    if value is None:
        return None
    return whole_number(name, value, least=0, most=_MAX_COUNT, otherwise=" or None")


def _checked_word(name: str, value: Any, *words: str) -> str:
    if not is_word(value, words):
        raise ValueError(
            f"{name} is {shown_value(value):.80}, but must be {' or '.join(map(repr, words))}"
        )
    return str(value)


def _checked_separators(value: Any) -> tuple[str, str] | None:
    if value is None:
        return None
    if not (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(part, str) for part in value)
    ):
        raise TypeError(
            f"separators is {shown_value(value):.80}, but must be two strings such as (',', ': ')"
        )
    between_items, after_key = value
    for part, mark in ((between_items, ","), (after_key, ":")):
        if part.strip(_WHITESPACE) != mark:
            raise ValueError(
                f"separators holds {shown_value(part):.80}, "
                f"but must hold {mark!r} there, with blanks around it "
                "at most"
            )
    return between_items, after_key
