"""Grammars: a notation in, an immutable value out that knows no tokenizer.

One idea: a grammar is identified by its source, the notation with all its options. Grammars with
equal sources are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Unpack

from stencilm import _core
from stencilm.grammars.conversion import NotationName, converted
from stencilm.grammars.holes import HoleSource, Pieces, checked_pieces
from stencilm.grammars.output_form import OutputForm
from stencilm.grammars.output_types import Lark, laid_out, limits_of, source_of
from stencilm.grammars.sources import (
    CombinedSource,
    EbnfSource,
    JsonSchemaSource,
    LarkSource,
    RegexSource,
    SchemaOptions,
    SerializedSource,
    Source,
    StructuralTagSource,
    combine,
)
from stencilm.grammars.symbols import SymbolTable, rows
from stencilm.grammars.texts import Schema, check_length, checked_text
from stencilm.limits import DEFAULT_LIMITS, Limits, checked_limits, widest
from stencilm.shown import Shown, in_a_line, shown_value

if TYPE_CHECKING:
    from stencilm.grammars.structural_tag import Format, StructuralTag, StructuralTagItem


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one keyword of a schema.

    Attributes:
        keyword: The keyword, such as `maxLength`.
        place: The JSON pointer of the schema that holds it, such as `#/properties/name`.
        note: More details, or empty.

    Examples:
        >>> import stencilm
        >>> grammar = stencilm.Grammar.from_json_schema({"type": "integer", "title": "Age"})
        >>> grammar.report.annotations[0].keyword
        'title'
    """

    keyword: str
    place: str
    note: str


@dataclass(frozen=True, slots=True, repr=False)
class Report(Shown):
    """What became of every keyword of a schema, in the order of its text; empty for a pattern.

    Attributes:
        enforced: Enforced exactly.
        annotations: Not enforced, because the specification itself calls them annotations.
        relaxed: Not enforced, because `on_unsupported="relax"` asked for that.

    Examples:
        >>> import stencilm
        >>> grammar = stencilm.Grammar.from_json_schema({"type": "integer", "minimum": 3})
        >>> [finding.keyword for finding in grammar.report.enforced]
        ['type', 'minimum']
    """

    enforced: tuple[Finding, ...] = ()
    annotations: tuple[Finding, ...] = ()
    relaxed: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        """The number of keywords of each kind, in one line."""
        return (
            f"<{type(self).__name__}: {len(self.enforced)} enforced, "
            f"{len(self.annotations)} annotations, {len(self.relaxed)} relaxed>"
        )


@dataclass(frozen=True, repr=False)
class Grammar(Shown, OutputForm[str]):
    r"""A set of texts, from any notation; immutable, and shareable between threads.

    Make one with a `from_...` method. Grammars are equal if their sources are: the same notation
    with the same options.

    Attributes:
        source: The notation with its options.
        core: The grammar in the Rust core.
        limits: The limits within which it was made. A `GrammarCompiler` has its own limits for its
            matchers.

    Examples:
        >>> import stencilm
        >>> from stencilm import Grammar
        >>> Grammar.from_json_schema({"type": "integer"}) == Grammar.from_json_schema(
        ...     '{"type": "integer"}'
        ... )
        True
        >>> digits = Grammar.from_regex("[0-9]+")
        >>> word = Grammar.from_ebnf('root ::= "yes" | "no"')
        >>> same = Grammar.from_lark('start: "yes" | "no"')
        >>> colour = Grammar.from_type(stencilm.Choice(["red", "blue"]))
        >>> tag = Grammar.from_structural_tag({"type": "const_string", "value": "yes"})
        >>> Grammar.concat(word, digits) == word + digits, Grammar.union(word, tag) == (word | tag)
        (True, True)
        >>> digits.converted("gbnf")
        'root ::= [0-9]+\n'
        >>> str(Grammar.deserialize_json(word.serialize_json())) == str(word)
        True
        >>> Grammar.builtin_json_grammar() == Grammar.from_json_schema(True)
        True
        >>> Grammar.from_source(word.source) == word, word.report.enforced
        (True, ())
        >>> digits, digits.notation
        (<Grammar: regular expression '[0-9]+'>, 'regular expression')
    """

    source: Source
    core: _core.Grammar = field(compare=False, repr=False)
    limits: Limits = field(default=DEFAULT_LIMITS, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check that `core` is a grammar of the core."""
        if not isinstance(self.core, _core.Grammar):
            raise TypeError(
                f"a Grammar is not made of {shown_value(self.source):.60}: use one of its methods "
                "from_json_schema, from_regex, from_ebnf, from_lark, from_structural_tag, from_type"
            )

    @staticmethod
    def from_json_schema(
        schema: Schema,
        *,
        documents: Mapping[str, Schema] | None = None,
        symbols: Mapping[str, SymbolTable] | None = None,
        limits: Limits = DEFAULT_LIMITS,
        **options: Unpack[SchemaOptions],
    ) -> Grammar:
        """The JSON texts that are valid under a schema.

        Args:
            schema: JSON text, a dict, a bool, or a Python type such as a pydantic model.
            documents: Other schemas that a `$ref` may name, each under its URI. Nothing is ever
                fetched.
            symbols: Tables of names, by the name that `"x-stencilm-symbols"` gives.
            limits: How large and how costly the grammar may be.
            **options: How the schema is read and its instances are written: any of
                `SchemaOptions`, such as `any_whitespace=False`, `strict_mode=True` or
                `property_order="any"`.

        Raises:
            GrammarSyntaxError: The text is not JSON, or the JSON is not a schema.
            UnsupportedFeature: A keyword cannot be enforced, or a Python type has no JSON form.
            Unsatisfiable: No value is valid.
            LimitExceeded: The schema is too large or too deep.
        """
        return Grammar.from_source(
            JsonSchemaSource.of(schema, documents=documents, symbols=symbols, **options),
            limits,
        )

    @staticmethod
    def from_type(
        tp: Any, *, limits: Limits | None = None, **options: Unpack[SchemaOptions]
    ) -> Grammar:
        """The texts of a Python type, as a model called with that type writes them.

        Takes pydantic models, dataclasses, TypedDict, Literal, Enum, int, list[...], Union and
        everything else that pydantic describes, and this package's own output types. Strings at the
        top level are written without quotes: `Literal["yes", "no"]` gives `yes`, not `"yes"`.

        Args:
            tp: The type.
            limits: How large and how costly the grammar may be; None for those of the output type,
                or the defaults.
            **options: How JSON is written: any of `SchemaOptions`, such as `compact=True` or
                `escapes="minimal"`. Integers are digits by default (`spelling`). Options have no
                effect on a type whose texts are not JSON.

        Raises:
            UnsupportedFeature: It is not an output type.
            Unsatisfiable: It has no value.
            LimitExceeded: It is too large or too deep.
        """
        output_type = laid_out(tp, options)
        if limits is not None:
            checked_limits(limits)
        if isinstance(output_type, Grammar):
            return output_type
        within = limits or limits_of(output_type) or DEFAULT_LIMITS
        if isinstance(output_type, Lark):  # its grammars are built already
            return Grammar.from_lark(
                output_type.text,
                start=output_type.start,
                grammars=output_type.grammars,
                symbols=output_type.symbols,
                limits=within,
            )
        return Grammar.from_source(source_of(output_type), within)

    @staticmethod
    def from_regex(pattern: str, *, limits: Limits = DEFAULT_LIMITS) -> Grammar:
        """The texts that a regular expression matches as a whole.

        Args:
            pattern: The regular expression.
            limits: How large and how costly the grammar may be.

        Raises:
            GrammarSyntaxError: The pattern is not well-formed; has the offset.
            UnsupportedFeature: It needs something that a finite automaton cannot do, such as a
                back-reference.
            LimitExceeded: It is too long or too costly.
        """
        return Grammar.from_source(RegexSource.of(pattern), limits)

    @staticmethod
    def from_ebnf(
        text: str,
        *,
        root_rule_name: str = "root",
        symbols: Mapping[str, SymbolTable] | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Grammar:
        """The texts of an EBNF grammar: GBNF with extensions, as `docs/ebnf.md` describes it.

        Args:
            text: The rules, such as `root ::= "yes" | "no"`.
            root_rule_name: The start rule.
            symbols: Tables of names, by the name that `%symbols("...")` gives.
            limits: How large and how costly the grammar may be.

        Raises:
            GrammarSyntaxError: The text is not well-formed, or a rule or a table is missing; has
                line and column.
            UnsupportedFeature: A pattern needs something that a finite automaton cannot do, or an
                object may run out of other keys.
            Unsatisfiable: No text matches.
            LimitExceeded: The text is too long or too costly.
        """
        return Grammar.from_source(EbnfSource.of(text, root_rule_name, symbols), limits)

    @staticmethod
    def from_lark(
        text: str,
        *,
        start: str = "start",
        grammars: Mapping[str, Grammar | str] | None = None,
        symbols: Mapping[str, SymbolTable] | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Grammar:
        """The texts of a Lark grammar, with the dialect that `docs/lark.md` describes.

        Args:
            text: The rules and terminals, such as `start: "yes" | "no"`.
            start: The start rule.
            grammars: Other grammars, or Lark texts, by the names under which this one uses them:
                as `@name`, as the terminal that `%declare` announces, or, for Lark texts, as a
                module to import from.
            symbols: Tables of names, by the name that `%symbols("...")` gives.
            limits: How large and how costly the grammar may be.

        Raises:
            GrammarSyntaxError: The text is not well-formed, or a name is missing; has line and
                column.
            UnsupportedFeature: Something cannot be enforced exactly, such as a declared name.
            Unsatisfiable: No text matches.
            LimitExceeded: The text is too long or too costly.
        """
        source = LarkSource.of(text, start, grammars, symbols)
        # The grammars are built already; building from the source would build them again.
        named = [
            (name, given.core if isinstance(given, Grammar) else given)
            for name, given in (grammars or {}).items()
        ]
        core = checked_limits(limits).core
        check_length("the text", source.text, limits)
        made = _core.Grammar.from_lark(source.text, source.start, named, rows(source.symbols), core)
        return Grammar(source, made, limits)

    @staticmethod
    def from_structural_tag(
        tag: StructuralTag | Format | Mapping[str, Any] | str | Sequence[StructuralTagItem],
        triggers: Sequence[str] | None = None,
        *,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Grammar:
        """The texts of a structural tag, as `docs/structural-tags.md` describes it.

        Args:
            tag: A `StructuralTag` or a single format, or its JSON as text or a dict. With triggers,
                the older form: a list of `StructuralTagItem`.
            triggers: The texts that lead to the items; only with the older form.
            limits: How large and how costly the grammar may be.

        Raises:
            GrammarSyntaxError: It is not a structural tag; has the JSON pointer.
            UnsupportedFeature: A part cannot be enforced.
            Unsatisfiable: No text matches.
            LimitExceeded: It is too large.
        """
        return Grammar.from_source(StructuralTagSource.of(tag, triggers), limits)

    @staticmethod
    def concat(*grammars: Grammar) -> Grammar:
        """The texts of the grammars one after the other; `g1 + g2` for two of them."""
        return Grammar._combined("concat", grammars)

    @staticmethod
    def union(*grammars: Grammar) -> Grammar:
        """The texts of any of the grammars, at least one; `g1 | g2` for two of them."""
        return Grammar._combined("union", grammars)

    def __add__(self, other: Grammar) -> Grammar:
        """The texts of this grammar followed by those of another."""
        return Grammar.concat(self, other) if isinstance(other, Grammar) else NotImplemented

    def __or__(self, other: Grammar) -> Grammar:
        """The texts of either grammar."""
        return Grammar.union(self, other) if isinstance(other, Grammar) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the source alone, because the core's part cannot be pickled."""
        return Grammar.from_source, (self.source, self.limits)

    def __deepcopy__(self, memo: dict[int, Any]) -> Grammar:
        """Return the same object, because it is immutable."""
        return self

    def is_completable(self, pieces: Pieces) -> bool:
        """Whether something can be written into the holes of a text so that it fits the grammar.

        A hole is any text, including the empty one, and the texts in all holes must fit together.
        The answer is exact. A text without holes is completable if the grammar matches it; `[text,
        HOLE]` asks whether it is a prefix of a valid text. No tokenizer is needed.

        Args:
            pieces: Texts, as str or as UTF-8 bytes, and `HOLE` wherever text is missing.

        Returns:
            Whether the holes can be filled.

        Raises:
            TypeError: A piece is neither text nor `HOLE`.
            UnsupportedFeature: The answer depends on what cannot be decided, such as which values
                of an array with `uniqueItems` are in a hole; says what, and what to do.
            LimitExceeded: It takes too long, or too much memory.

        Examples:
            >>> from stencilm import HOLE, Grammar
            >>> grammar = Grammar.from_json_schema({"type": "array", "items": {"type": "integer"}})
            >>> grammar.is_completable(["[1, ", HOLE, "3]"])
            True
            >>> grammar.is_completable(["[1, ", HOLE, '"three"]'])
            False
            >>> grammar.is_completable(["[", HOLE, "2, ", HOLE]), grammar.is_completable("[1, 2]")
            (True, True)
        """
        return self.core.is_completable(checked_pieces(pieces), self.limits.core)

    def fill(self, pieces: Pieces) -> Grammar:
        """The grammar of what may be written into the first hole of a text.

        It is an ordinary grammar: compile it for masks, or pass it to a model. It matches the texts
        that may be written into the hole so that the holes after it can still be filled; a hole at
        the end of the pieces is filled to the end of a text. Adjacent holes are one hole. After
        filling the hole, put the text in its place among the pieces, and ask for the next one.

        Args:
            pieces: Texts, as str or as the bytes of UTF-8, and `HOLE` wherever text is missing, at
                least once.

        Returns:
            The grammar of the first hole. Equal grammars and pieces give equal ones.

        Raises:
            TypeError: A piece is neither text nor `HOLE`.
            GrammarSyntaxError: No piece is a hole.
            Unsatisfiable: Nothing can be written into the holes.
            UnsupportedFeature: What may be written into the hole cannot be expressed as a grammar;
                says why, and what to do.
            LimitExceeded: It takes too long, or too much memory.

        Examples:
            >>> from stencilm import HOLE, Grammar
            >>> grammar = Grammar.from_ebnf('root ::= "let " [a-z]+ " = " [0-9]+ ";"')
            >>> name = grammar.fill(["let ", HOLE, "z = ", HOLE])
            >>> name.is_completable("xy"), name.is_completable("x1")
            (True, False)
            >>> value = grammar.fill(["let xyz = ", HOLE])
            >>> value.is_completable("12;"), value.is_completable("12")
            (True, False)
        """
        checked = checked_pieces(pieces)
        source = HoleSource(self.source, checked)
        return Grammar(source, self.core.fill(checked, self.limits.core), self.limits)

    def converted(self, notation: NotationName) -> str:
        """Its text in another notation.

        Args:
            notation: "ebnf", as it prints; "gbnf" for what llama.cpp and others read; "regex";
                "lark"; or "json-schema".

        Raises:
            UnsupportedFeature: The notation cannot express it; names the obstacle.
            ValueError: There is no such notation.
        """
        return converted(self.source, self.core, notation)

    @property
    def notation(self) -> str:
        """The name of the notation that it was read from, such as "JSON Schema"."""
        return self.source.notation

    def __repr__(self) -> str:
        """The notation and the beginning of the text, in one line."""
        text = getattr(self.source, "text", None) or getattr(self.source, "pattern", None)
        of = "" if text is None else f" {in_a_line(text)}"
        return f"<{type(self).__name__}: {self.notation}{of}>"

    def __str__(self) -> str:
        """The grammar as EBNF; `from_ebnf` reads it as the same set of texts."""
        return self.core.to_ebnf()

    def serialize_json(self) -> str:
        """The grammar and its report as JSON text, for `deserialize_json`."""
        return self.core.serialize_json()

    @staticmethod
    def deserialize_json(text: str, *, limits: Limits = DEFAULT_LIMITS) -> Grammar:
        """The grammar that `serialize_json` wrote; the text is checked, and none of it is run.

        Args:
            text: The text.
            limits: How long reading may take.

        Raises:
            GrammarSyntaxError: The text is damaged, or of another format or version.
            LimitExceeded: The text is too large, or reading it took too long.
        """
        return Grammar.from_source(SerializedSource(checked_text("text", text)), limits)

    @staticmethod
    def _combined(how: Literal["concat", "union"], grammars: tuple[Grammar, ...]) -> Grammar:
        for grammar in grammars:
            if not isinstance(grammar, Grammar):
                raise TypeError(
                    f"{how} got a {type(grammar).__name__}, but takes grammars: make one with "
                    "Grammar.from_ebnf or another from_ method"
                )
        source = CombinedSource.of(how, (grammar.source for grammar in grammars))
        # The parts are built already; building from the source would build them again.
        limits = widest(grammar.limits for grammar in grammars) if grammars else DEFAULT_LIMITS
        return Grammar(source, combine(how, [grammar.core for grammar in grammars], limits), limits)

    @staticmethod
    def builtin_json_grammar() -> Grammar:
        """Any JSON text: what the schema `true` allows, with all defaults."""
        return Grammar.from_source(JsonSchemaSource.of(True))

    @staticmethod
    def from_source(source: Source, limits: Limits = DEFAULT_LIMITS) -> Grammar:
        """The grammar of a notation with its options; raises TypeError for anything else."""
        if not callable(getattr(source, "build", None)):
            raise TypeError(
                f"source is {shown_value(source):.60}, but must be the source of a grammar"
            )
        return Grammar(source, source.build(checked_limits(limits)), limits)

    @cached_property
    def report(self) -> Report:
        """What became of every keyword of the schema."""
        return Report(*(tuple(Finding(*entry) for entry in group) for group in self.core.report()))
