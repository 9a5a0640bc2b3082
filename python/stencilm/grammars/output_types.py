"""What a user may ask for as output, turned into a notation for the grammar and a way to read it.

One idea: an output type is a pair, the notation of its texts and the function from such a text to
the value. Python types go through pydantic for both halves, so what it can describe it can read.
Strings at the top level are written bare: `Literal["yes", "no"]` gives the text `yes`, not `"yes"`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeAlias,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from stencilm.errors import UnsupportedFeature
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.json_values import json_ready, read_json
from stencilm.grammars.output_form import OutputForm, V_co
from stencilm.grammars.sources import SchemaOptions, json_schema_options
from stencilm.grammars.symbols import SymbolTable
from stencilm.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from typing_extensions import TypeForm

Scalar: TypeAlias = str | int | float | bool

FREE_TEXT = "(?s).*"  # any text; the dot stands for one character, so the bytes are always UTF-8


@dataclass(frozen=True, slots=True)
class Regex(OutputForm[str]):
    r"""Text that matches a regular expression from its first character to its last.

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


@dataclass(frozen=True, slots=True, eq=False, init=False)
class JsonSchema(OutputForm[V_co]):
    """JSON that is valid under a schema, given as JSON text, a dict or a bool, or of a Python type.

    The value is what `json.loads` makes of the text, with integers of any length, and with a
    `decimal.Decimal` for a number beyond the range of a float; of a Python type, its own value. The
    options are those of `Grammar.from_json_schema`, with `documents` and `symbols`; where
    `spelling` is not given it is "digits" for a Python type. `limits`, here and in the types below,
    bound what the grammar and its masks may cost; where None those of the call or of the model do.

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
        """The notation as something that can be hashed, as a schema given as a dict cannot be."""
        values = {"schema": self.schema, "documents": self.documents}
        values["symbols"] = {name: table.names for name, table in self.symbols.items()}
        values["options"] = {name: self.options[name] for name in sorted(self.options)}  # type: ignore[literal-required]
        tp = None
        if self.is_of_type:
            tp = values["schema"]
            values["schema"] = repr(tp)  # Union[A, B] == Union[B, A], though they read apart
        return tp, json.dumps(values, default=dict), self.limits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JsonSchema) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True, slots=True, init=False)
class Choice(OutputForm[V_co]):
    """One of several options, written bare; the value is the option itself.

    A str option stands for its own text, a number or bool for its JSON text. Raises ValueError
    when there is no option, or when two options have the same text.

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
        if isinstance(options, str):
            raise ValueError(f"Choice needs a list of options, not the str {options!r}")
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
                raise ValueError(f"{option!r} cannot be an option: use str, int, float or bool")
            text = option if isinstance(option, str) else json.dumps(option)
            if text in found:
                raise ValueError(f"two options of a Choice have the text {text!r}")
            found[text] = option
        return found


@dataclass(frozen=True, slots=True)
class Output:
    """An output type made ready.

    Attributes:
        name: How messages call it.
        make: Makes the grammar of its texts within limits.
        parse: The value of a whole text; raises ValueError where the type refuses it.
        dump: A value in JSON-ready form.
        accepts_cut_text: Any prefix of a text is a text too, so a cut text still has a value.
        is_json: The value is read from JSON, by `json_type`; else the text itself is shown while it
            is written.
        json_type: The type that JSON is read by; `Any` for the data itself.
        limits: Those that the output type itself names.
    """

    name: str
    make: Callable[[Limits], Grammar]
    parse: Callable[[str], Any]
    dump: Callable[[Any], Any] = lambda value: value
    accepts_cut_text: bool = False
    is_json: bool = False
    json_type: Any = Any
    limits: Limits | None = None

    def grammar(self, limits: Limits | None = None) -> Grammar:
        """The grammar of its texts; raises StencilError where the type is refused.

        Args:
            limits: How large and how costly it may be; where None those of the output type, or the
                defaults.
        """
        return self.make(limits or self.limits or DEFAULT_LIMITS)


def _is_structural_tag(value: Any) -> bool:
    from stencilm.grammars.structural_tag import StructuralTag

    return isinstance(value, StructuralTag)


def resolve(output_type: Any) -> Output:
    """The notation and the reader of an output type.

    Raises UnsupportedFeature for what is not an output type; a type that pydantic or the grammar
    cannot express is refused when `grammar` is called.
    """
    if isinstance(output_type, Grammar):
        return Output(
            name="Grammar", make=lambda _: output_type, parse=str, limits=output_type.limits
        )
    if isinstance(output_type, Regex):
        return Output(
            name=f"Regex({output_type.pattern!r})",
            make=lambda limits: Grammar.from_regex(output_type.pattern, limits=limits),
            parse=str,
            limits=output_type.limits,
        )
    if isinstance(output_type, JsonSchema) and output_type.is_of_type:
        adapter = type_adapter(output_type.schema)
        return Output(
            name=type_name(output_type.schema),
            make=lambda limits: _schema_grammar(output_type, limits),
            parse=adapter.validate_json,
            dump=lambda value: adapter.dump_python(value, mode="json"),
            is_json=True,
            json_type=output_type.schema,
            limits=output_type.limits,
        )
    if isinstance(output_type, JsonSchema):
        return Output(
            name="JsonSchema",
            make=lambda limits: _schema_grammar(output_type, limits),
            parse=read_json,
            dump=json_ready,
            is_json=True,
            limits=output_type.limits,
        )
    if hasattr(output_type, "to_json") and _is_structural_tag(output_type):
        return Output(
            name="StructuralTag",
            make=lambda limits: Grammar.from_structural_tag(output_type, limits=limits),
            parse=str,
        )
    if isinstance(output_type, Choice):
        options = output_type.by_text()
        return Output(
            name="Choice",
            make=lambda limits: Grammar.from_regex(alternatives(list(options)), limits=limits),
            parse=options.__getitem__,
            limits=output_type.limits,
        )
    if isinstance(output_type, Ebnf):
        return Output(
            name="Ebnf",
            make=lambda limits: Grammar.from_ebnf(
                output_type.text,
                root_rule_name=output_type.root_rule_name,
                symbols=output_type.symbols,
                limits=limits,
            ),
            parse=str,
            limits=output_type.limits,
        )
    if isinstance(output_type, Lark):
        return Output(
            name="Lark",
            make=lambda limits: Grammar.from_lark(
                output_type.text,
                start=output_type.start,
                grammars=output_type.grammars,
                symbols=output_type.symbols,
                limits=limits,
            ),
            parse=str,
            limits=output_type.limits,
        )
    if isinstance(output_type, (str, Mapping)):
        shown = "a str" if isinstance(output_type, str) else "a dict"
        raise UnsupportedFeature(
            f"{shown} is not an output type: wrap it in Regex, JsonSchema, Choice, Ebnf or Lark"
        )
    return _resolve_type(output_type)


def grammar_of(output_type: Any, limits: Limits | None = None) -> Grammar:
    """The grammar of an output type's texts, as `Model` uses it."""
    return resolve(output_type).grammar(limits)


def json_schema_of(tp: Any) -> dict[str, Any]:
    """The JSON Schema of a Python type, as pydantic describes it for validation.

    It differs from pydantic's own text where that allows what pydantic does not read, or refuses
    what it writes: objects with declared fields are closed unless the type asks for extra ones,
    because reading would drop them; tagged unions are `anyOf`, because their tags already tell them
    apart; a Decimal is a string of digits, which keeps each of them, and a number only where it has
    bounds; dates and times, durations, URLs, networks and keys are what their types read.
    Raises UnsupportedFeature for a type that JSON cannot carry.
    """
    from pydantic.errors import PydanticUserError

    from stencilm.grammars.type_schemas import schema_generator

    adapter = type_adapter(tp)
    try:
        return adapter.json_schema(schema_generator=schema_generator())
    except PydanticUserError as error:
        raise UnsupportedFeature(
            f"{type_name(tp)} has no JSON form: {_first_line(error)}"
        ) from error


def type_adapter(tp: Any) -> TypeAdapter[Any]:
    """pydantic's reader of a Python type, kept. Raises UnsupportedFeature where it has none."""
    try:
        # With its text, because Union[A, B] == Union[B, A], though they read apart.
        return _kept_adapter(tp, repr(tp))
    except TypeError:  # a type that cannot be hashed
        return _new_adapter(tp)


@lru_cache(maxsize=512)
def _kept_adapter(tp: Any, written: str) -> TypeAdapter[Any]:
    return _new_adapter(tp)


def _new_adapter(tp: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        return TypeAdapter(tp)
    except (PydanticUserError, TypeError, NameError) as error:
        raise UnsupportedFeature(
            f"{type_name(tp)} is not an output type: {_first_line(error)}"
        ) from error


def arguments_of(function: Callable[..., Any]) -> Any:
    """A type of dicts that hold the arguments of a function, by the names of its parameters.

    Arguments that have defaults may be left out; `*args` and `**kwargs` are. A parameter without an
    annotation takes any value. Raises UnsupportedFeature for a function that cannot be called by
    names, or whose parameters are not known.
    """
    from typing import NotRequired

    from typing_extensions import TypedDict as ExtendedTypedDict

    name = type_name(function)
    try:
        parameters = inspect.signature(function).parameters.values()
        hints = get_type_hints(function, include_extras=True)
    except (TypeError, ValueError, NameError) as error:
        raise UnsupportedFeature(
            f"the parameters of the function {name} are not known: {_first_line(error)}"
        ) from error
    members: dict[str, Any] = {}
    for one in parameters:
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        if one.kind is one.POSITIONAL_ONLY:
            raise UnsupportedFeature(
                f"the function {name} takes {one.name!r} by its position only, and arguments are "
                "given by name: remove the '/' from its parameters, or wrap it"
            )
        tp = hints.get(one.name, Any)
        members[one.name] = tp if one.default is one.empty else NotRequired[tp]
    made: Any = ExtendedTypedDict(name.rpartition(".")[2], members)  # type: ignore[misc]
    made.__doc__ = inspect.getdoc(function)
    return made


def alternatives(texts: Sequence[str]) -> str:
    """A regular expression that matches exactly these texts."""
    return f"(?:{'|'.join(_literal(text) for text in texts)})"


def type_name(tp: Any) -> str:
    """A short name of a type for messages."""
    is_plain = isinstance(tp, type) or inspect.isroutine(tp)
    return str(tp.__name__) if is_plain and not get_args(tp) else str(tp)


def _resolve_type(tp: Any) -> Output:
    if tp is str:
        return Output(
            name="str",
            make=lambda limits: Grammar.from_regex(FREE_TEXT, limits=limits),
            parse=str,
            accepts_cut_text=True,
        )
    if inspect.isroutine(tp):
        # pydantic would call the function with what the model wrote, which nobody asked for.
        return replace(_resolve_type(arguments_of(tp)), name=type_name(tp))
    adapter = type_adapter(tp)
    texts = _bare_texts(tp)
    if texts is not None:
        return Output(
            name=type_name(tp),
            make=lambda limits: Grammar.from_regex(alternatives(texts), limits=limits),
            parse=adapter.validate_python,
            dump=lambda value: adapter.dump_python(value, mode="json"),
        )
    return Output(
        name=type_name(tp),
        make=lambda limits: Grammar.from_json_schema(
            json_schema_of(tp), spelling="digits", limits=limits
        ),
        parse=adapter.validate_json,
        dump=lambda value: adapter.dump_python(value, mode="json"),
        is_json=True,
        json_type=tp,
    )


def _schema_grammar(output_type: JsonSchema[Any], limits: Limits) -> Grammar:
    schema, options = output_type.schema, output_type.options
    if output_type.is_of_type:
        schema, options = json_schema_of(schema), {"spelling": "digits", **options}
    return Grammar.from_json_schema(
        schema,
        documents=output_type.documents,
        symbols=output_type.symbols,
        limits=limits,
        **options,
    )


def laid_out(output_type: Any, options: SchemaOptions) -> Any:
    """An output type whose JSON is written as these options say.

    What is not written as JSON, such as `str` and `Regex`, stays as it is, and what a `JsonSchema`
    says itself goes before the options.
    """
    if not options:
        return output_type
    json_schema_options(**options)  # checked, whatever the type is
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
    made: Any = arguments_of(output_type) if inspect.isroutine(output_type) else output_type
    return JsonSchema(made, **options)


_LAYOUT = frozenset({"any_whitespace", "compact", "indent", "separators"})
"""Options that say together how a text is laid out."""


def _is_python_type(output_type: Any) -> bool:
    """Whether it is a type that is written as JSON."""
    if output_type is str or isinstance(output_type, (OutputForm, str, Mapping)):
        return False
    return not _is_structural_tag(output_type) and _bare_texts(output_type) is None


def _bare_texts(tp: Any) -> list[str] | None:
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


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
