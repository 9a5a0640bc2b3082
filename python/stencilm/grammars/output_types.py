"""The output types that a user may ask for, and the notation of their texts.

One idea: every output type is identified by a source, so the grammar of a type is the grammar of a
notation. `outputs` turns a text back into a value. Strings at the top level are written bare:
`Literal["yes", "no"]` gives the text `yes`, not `"yes"`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeAlias,
    Unpack,
    get_args,
    get_origin,
    overload,
)

from stencilm.errors import UnsupportedFeature
from stencilm.grammars.json_values import write_json
from stencilm.grammars.output_form import OutputForm, V_co
from stencilm.grammars.python_types import json_schema_of, type_adapter, type_to_read
from stencilm.grammars.sources import (
    EbnfSource,
    JsonSchemaSource,
    LarkSource,
    RegexSource,
    SchemaOptions,
    Source,
    StructuralTagSource,
    json_schema_options,
)
from stencilm.grammars.symbols import SymbolTable, checked_symbols
from stencilm.limits import Limits
from stencilm.shown import shown_value

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from stencilm.grammars.grammar import Grammar

Scalar: TypeAlias = str | int | float | bool

FREE_TEXT = "(?s).*"  # any text; the dot is one character, so the bytes are always UTF-8


@dataclass(frozen=True, slots=True)
class Regex(OutputForm[str]):
    r"""Text that matches a regular expression as a whole.

    The value is the text itself.

    Examples:
        >>> import stencilm
        >>> str(stencilm.Grammar.from_type(stencilm.Regex("[0-9]{3}")))
        'root ::= %lexeme([0-9]{3})\n'
    """

    pattern: str
    limits: Limits | None = field(default=None, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class Ebnf(OutputForm[str]):
    """Text of an EBNF grammar; the value is the text itself.

    Examples:
        >>> import stencilm
        >>> grammar = stencilm.Grammar.from_type(stencilm.Ebnf('root ::= "yes" | "no"'))
        >>> grammar == stencilm.Grammar.from_ebnf('root ::= "yes" | "no"')
        True
    """

    text: str
    root_rule_name: str = "root"
    symbols: Mapping[str, SymbolTable] = field(default_factory=dict, hash=False)
    limits: Limits | None = field(default=None, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class Lark(OutputForm[str]):
    """Text of a Lark grammar; the value is the text itself.

    The options are those of `Grammar.from_lark`.

    Examples:
        >>> import stencilm
        >>> grammar = stencilm.Grammar.from_type(stencilm.Lark('start: "yes" | "no"'))
        >>> grammar == stencilm.Grammar.from_lark('start: "yes" | "no"')
        True
    """

    text: str
    start: str = "start"
    grammars: Mapping[str, Grammar | str] = field(default_factory=dict, hash=False)
    symbols: Mapping[str, SymbolTable] = field(default_factory=dict, hash=False)
    limits: Limits | None = field(default=None, kw_only=True, repr=False)


class JsonSchemaArguments(SchemaOptions, total=False):
    """The options of `JsonSchema`: those of every schema, documents, tables of names, limits."""

    documents: Mapping[str, Any]
    symbols: Mapping[str, SymbolTable]
    limits: Limits | None


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class JsonSchema(OutputForm[V_co]):
    """JSON that is valid under a schema, given as JSON text, a dict or a bool, or of a Python type.

    The value is the result of `json.loads`, with integers of any length, and with a
    `decimal.Decimal` for a number beyond the range of a float; of a Python type, its own value. The
    options are those of `Grammar.from_json_schema`, with `documents` and `symbols`; the default of
    `spelling` is "digits" for a Python type. `limits`, here and in the types below, bound the cost
    of the grammar and its masks; None takes those of the call or of the model.

    Examples:
        >>> import stencilm
        >>> age = stencilm.JsonSchema({"type": "integer", "minimum": 0}, any_whitespace=False)
        >>> age.is_of_type, stencilm.JsonSchema(int).is_of_type
        (False, True)
    """

    schema: Any
    options: SchemaOptions
    documents: Mapping[str, Any]
    symbols: Mapping[str, SymbolTable]
    limits: Limits | None = field(repr=False)

    @overload
    def __init__(
        self: JsonSchema[Any],
        schema: str | Mapping[str, Any] | bool,
        **options: Unpack[JsonSchemaArguments],
    ) -> None: ...

    @overload
    def __init__(self, schema: TypeForm[V_co], **options: Unpack[JsonSchemaArguments]) -> None: ...

    def __init__(self, schema: Any, **options: Unpack[JsonSchemaArguments]) -> None:
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "documents", options.pop("documents", {}))
        object.__setattr__(self, "symbols", options.pop("symbols", {}))
        object.__setattr__(self, "limits", options.pop("limits", None))
        json_schema_options(**options)  # type: ignore[misc]  # checked here
        object.__setattr__(self, "options", options)

    @property
    def is_of_type(self) -> bool:
        """Whether it stands for a Python type, and not for a schema."""
        return not isinstance(self.schema, (str, Mapping, bool))

    def _key(self) -> tuple[Any, str, Limits | None]:
        """A hashable form of the notation: a schema given as a dict is not hashable."""
        values = {"schema": self.schema, "documents": self.documents}
        try:
            values["symbols"] = [(n, table.names) for n, table in checked_symbols(self.symbols)]
        except (TypeError, ValueError):
            return None, str(id(self)), self.limits  # reading them raises the error
        values["options"] = {name: self.options[name] for name in sorted(self.options)}  # type: ignore[literal-required]
        tp = None
        if self.is_of_type:
            tp = values["schema"]
            values["schema"] = repr(tp)  # Union[A, B] == Union[B, A], but they differ in reading
        return tp, self._text_of(values), self.limits

    def _text_of(self, values: dict[str, Any]) -> str:
        try:
            return json.dumps(values, default=dict)
        except (TypeError, ValueError, RecursionError):
            pass
        try:
            return write_json(values)
        except (TypeError, ValueError, RecursionError):
            return str(id(self))  # not a schema: equal only to itself; reading it raises

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JsonSchema) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        shown = ("schema", "options", "documents", "symbols")
        arguments = (f"{name}={shown_value(getattr(self, name))}" for name in shown)
        return f"JsonSchema({', '.join(arguments)})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Choice(OutputForm[V_co]):
    """One of several options, written without quotes; the value is the option itself.

    A str option is its own text, a number or bool its JSON text. Raises ValueError if there is no
    option, or if two options have the same text.

    Examples:
        >>> import stencilm
        >>> stencilm.Choice(["red", 3, True]).by_text()
        {'red': 'red', '3': 3, 'true': True}
    """

    options: tuple[Scalar, ...]
    limits: Limits | None = field(repr=False)

    @overload
    def __init__(
        self: Choice[str], options: Sequence[str], *, limits: Limits | None = ...
    ) -> None: ...

    @overload
    def __init__(
        self: Choice[bool], options: Sequence[bool], *, limits: Limits | None = ...
    ) -> None: ...

    @overload
    def __init__(
        self: Choice[int], options: Sequence[int], *, limits: Limits | None = ...
    ) -> None: ...

    @overload
    def __init__(
        self: Choice[float], options: Sequence[float], *, limits: Limits | None = ...
    ) -> None: ...

    @overload
    def __init__(
        self: Choice[Scalar], options: Sequence[Scalar], *, limits: Limits | None = ...
    ) -> None: ...

    def __init__(self, options: Sequence[Scalar], *, limits: Limits | None = None) -> None:
        if isinstance(options, (str, bytes, bytearray)):  # its parts are not options
            raise ValueError(
                f"Choice needs a list of options, not the {type(options).__name__} "
                f"{shown_value(options):.80}"
            )
        if not isinstance(options, Iterable):
            raise TypeError(f"options is {shown_value(options):.60}, but must be a list of options")
        object.__setattr__(self, "options", tuple(options))
        object.__setattr__(self, "limits", limits)
        self.by_text()

    def by_text(self) -> dict[str, Scalar]:
        """Each option under the text that stands for it."""
        if not self.options:
            raise ValueError("Choice needs at least one option")
        found: dict[str, Scalar] = {}
        for option in self.options:
            if not isinstance(option, (str, int, float)):
                raise ValueError(
                    f"{shown_value(option)} cannot be an option: use str, int, float or bool"
                )
            text = option if isinstance(option, str) else write_json(option)
            if text in found:
                raise ValueError(f"two options of a Choice have the text {text!r}")
            found[text] = option
        return found

    def __repr__(self) -> str:
        shown = ", ".join(map(shown_value, self.options))
        return f"Choice(options=({shown}{',' if len(self.options) == 1 else ''}))"


def alternatives(texts: Sequence[str]) -> str:
    """A regular expression that matches exactly these texts."""
    return f"(?:{'|'.join(_literal(text) for text in texts)})"


def source_of(output_type: Any) -> Source:
    """The source of the texts of an output type, for any type but a `Grammar`.

    Raises UnsupportedFeature for a value that is not an output type, and for a type without JSON
    form.
    """
    if isinstance(output_type, Regex):
        return RegexSource.of(output_type.pattern)
    if isinstance(output_type, JsonSchema):
        schema, options = output_type.schema, output_type.options
        if output_type.is_of_type:
            schema = json_schema_of(type_to_read(schema))
            options = {"spelling": "digits", **options}
        return JsonSchemaSource.of(
            schema, documents=output_type.documents, symbols=output_type.symbols, **options
        )
    if isinstance(output_type, Choice):
        return RegexSource.of(alternatives(list(output_type.by_text())))
    if isinstance(output_type, Ebnf):
        return EbnfSource.of(output_type.text, output_type.root_rule_name, output_type.symbols)
    if isinstance(output_type, Lark):
        return LarkSource.of(
            output_type.text, output_type.start, output_type.grammars, output_type.symbols
        )
    if is_structural_tag(output_type):
        return StructuralTagSource.of(output_type)
    check_is_no_notation(output_type)
    if output_type is str:
        return RegexSource.of(FREE_TEXT)
    tp = type_to_read(output_type)
    type_adapter(tp)  # raises an error here if it has no values
    texts = bare_texts(tp)
    if texts is not None:
        return RegexSource.of(alternatives(texts))
    return JsonSchemaSource.of(json_schema_of(tp), spelling="digits")


def check_is_no_notation(output_type: Any) -> None:
    """Refuse a notation that is not wrapped in an output type, such as a schema as a dict."""
    if isinstance(output_type, (str, Mapping)):
        shown = "a str" if isinstance(output_type, str) else "a dict"
        raise UnsupportedFeature(
            f"{shown} is not an output type: wrap it in Regex, JsonSchema, Choice, Ebnf or Lark"
        )
    if isinstance(output_type, (list, tuple, set, frozenset)):
        raise UnsupportedFeature(
            f"{shown_value(output_type):.60} is not an output type: wrap values to choose from "
            "in Choice, "
            "and write list[...] or tuple[...] for a type of lists"
        )
    if any(output_type is each for each in (Regex, JsonSchema, Choice, Ebnf, Lark)):
        name = output_type.__name__
        raise UnsupportedFeature(
            f"{name} is the class of a notation and not an output type: give one, {name}(...)"
        )


def limits_of(output_type: Any) -> Limits | None:
    """The limits that the output type itself sets."""
    if isinstance(output_type, (Regex, JsonSchema, Choice, Ebnf, Lark)):
        return output_type.limits
    return None


def laid_out(output_type: Any, options: SchemaOptions) -> Any:
    """An output type whose JSON is written with these options.

    Types that are not written as JSON, such as `str` and `Regex`, stay as they are. The options of
    a `JsonSchema` itself take precedence.
    """
    if not options:
        return output_type
    json_schema_options(**options)  # always check the options, whatever the type
    if isinstance(output_type, JsonSchema):
        both: Any = dict(options)
        if _LAYOUT & output_type.options.keys():
            both = {name: value for name, value in both.items() if name not in _LAYOUT}
        both |= output_type.options
        return JsonSchema(
            output_type.schema,
            documents=output_type.documents,
            symbols=output_type.symbols,
            limits=output_type.limits,
            **both,
        )
    if not _is_python_type(output_type):
        return output_type
    return JsonSchema(type_to_read(output_type), **options)


_LAYOUT = frozenset({"any_whitespace", "compact", "indent", "separators"})
"""Options that together determine how a text is laid out."""


def _is_python_type(output_type: Any) -> bool:
    """Whether it is a type that is written as JSON."""
    if output_type is str or isinstance(output_type, (OutputForm, str, Mapping)):
        return False
    return bare_texts(output_type) is None


def is_structural_tag(value: Any) -> bool:
    """Whether it is a structural tag; imports its file, and so pydantic, only if needed."""
    if not isinstance(value, OutputForm) or not hasattr(value, "to_json"):
        return False
    from stencilm.grammars.structural_tag import StructuralTag

    return isinstance(value, StructuralTag)


def bare_texts(tp: Any) -> list[str] | None:
    """The texts of a Literal or Enum whose values are all strings, else None."""
    values: tuple[Any, ...] = ()
    if get_origin(tp) is Literal:
        values = get_args(tp)
    elif isinstance(tp, type) and issubclass(tp, Enum):
        values = tuple(member.value for member in tp)
    # `type` and not `isinstance`: a str Enum member inside a Literal reads back as its member.
    if values and all(type(value) is str for value in values):
        return list(dict.fromkeys(values))
    return None


_SYNTAX = frozenset(r"\.+*?()|[]{}^$#&-~/")


def _literal(text: str) -> str:
    return "".join(f"\\{character}" if character in _SYNTAX else character for character in text)
