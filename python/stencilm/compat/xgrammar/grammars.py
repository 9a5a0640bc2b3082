"""The original's `Grammar`, and conversions of the arguments of its methods."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from stencilm.compat.arguments import check_kinds
from stencilm.compat.xgrammar.escapes import read_ebnf
from stencilm.compat.xgrammar.failures import (
    DeserializeFormatError,
    InvalidJSONError,
    InvalidStructuralTagError,
    translated,
)
from stencilm.compat.xgrammar.formats import StructuralTag, StructuralTagItem, plain_tag
from stencilm.compat.xgrammar.saved import load, save
from stencilm.compat.xgrammar.schemas import any_dot, opened
from stencilm.errors import StencilError
from stencilm.grammars.grammar import Grammar as _Grammar
from stencilm.grammars.json_values import read_json_exactly, write_json
from stencilm.grammars.sources import SchemaOptions
from stencilm.whole_numbers import whole_number

if TYPE_CHECKING:
    from stencilm.compat.xgrammar.vocabularies import TokenizerInfo

ANY_JSON: dict[str, Any] = {"type": ["object", "array"]}

Schema = str | type[BaseModel] | dict[str, Any]


class Grammar:
    """A set of texts; made by a `from_...` method.

    Every method that reads a notation raises RuntimeError if the text is not well-formed, cannot be
    enforced, matches nothing, or exceeds a limit.
    """

    _grammar: _Grammar

    def __str__(self) -> str:
        """The grammar as EBNF; `from_ebnf` reads it as the same set of texts."""
        return str(self._grammar)

    def __eq__(self, other: object) -> bool:
        """Identity: two grammars of the same text are not equal."""
        return self is other

    __hash__ = None  # type: ignore[assignment]  # as in the original

    @staticmethod
    def from_ebnf(ebnf_string: str, *, root_rule_name: str = "root") -> Grammar:
        """The texts of an EBNF grammar."""
        with read_ebnf(ebnf_string) as text:
            return Grammar._of(_Grammar.from_ebnf(text, root_rule_name=root_rule_name))

    @staticmethod
    def from_json_schema(
        schema: Schema,
        *,
        any_whitespace: bool = True,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        strict_mode: bool = True,
        max_whitespace_cnt: int | None = None,
        print_converted_ebnf: bool = False,
        any_order: bool = False,
    ) -> Grammar:
        """The JSON texts that are valid under a schema.

        Args:
            schema: JSON text, a dict or a pydantic model.
            any_whitespace: Whitespace wherever JSON allows it; otherwise the layout of
                `json.dumps`.
            indent: For that layout.
            separators: For that layout.
            strict_mode: Only properties and elements that the schema names.
            max_whitespace_cnt: The longest run of whitespace, at least 1; None for no bound.
            print_converted_ebnf: Print the grammar.
            any_order: Properties in any order.
        """
        text, options = read_schema(
            schema,
            any_whitespace,
            indent,
            separators,
            strict_mode,
            max_whitespace_cnt,
            any_order,
        )
        with translated(also=(ValueError,)):  # of indent and separators
            made = Grammar._of(_Grammar.from_json_schema(text, **options))
        if print_converted_ebnf:
            print(made)
        return made

    @staticmethod
    def from_regex(regex_string: str, *, print_converted_ebnf: bool = False) -> Grammar:
        """The texts that a regular expression matches from their first character to their last."""
        with translated():
            made = Grammar._of(read_regex(regex_string))
        if print_converted_ebnf:
            print(made)
        return made

    @staticmethod
    def from_lark(
        lark_string: str,
        *,
        tokenizer_info: TokenizerInfo | None = None,
        named_grammars: dict[str, Grammar | str] | None = None,
    ) -> Grammar:
        """The texts of a Lark grammar.

        Args:
            lark_string: The grammar; texts start from its rule `start`.
            tokenizer_info: Accepted for compatibility. Names of special tokens are
                looked up when the grammar is compiled.
            named_grammars: Grammars, or Lark texts, that the text uses as `@name`.
        """
        with translated():
            return Grammar._of(_Grammar.from_lark(lark_string, grammars=read_named(named_grammars)))

    @staticmethod
    def from_structural_tag(*args: Any, **kwargs: Any) -> Grammar:
        """The texts of a structural tag.

        Args:
            *args: A structural tag: a `StructuralTag`, its JSON text or a dict. Or, in the older
                form, a list of `StructuralTagItem` and a list of triggers.
            **kwargs: The same as `structural_tag`, or as `tags` and `triggers`.

        Raises:
            InvalidJSONError: The text is not JSON.
            InvalidStructuralTagError: It is not a structural tag, or cannot be enforced.
            TypeError: The arguments are none of these.
        """
        tag = read_tag(args, kwargs)
        with translated(InvalidStructuralTagError):
            return Grammar._of(_Grammar.from_structural_tag(tag))

    @staticmethod
    def builtin_json_grammar() -> Grammar:
        """Any object and any array of JSON."""
        with translated():
            return Grammar._of(_Grammar.from_json_schema(ANY_JSON, max_whitespace=None))

    @staticmethod
    def concat(*grammars: Grammar) -> Grammar:
        """The texts of the grammars, one after the other; raises TypeError for any other value."""
        with translated():
            return Grammar._of(_Grammar.concat(*_inner(grammars)))

    @staticmethod
    def union(*grammars: Grammar) -> Grammar:
        """The texts of any of the grammars; raises TypeError for any other value."""
        with translated():
            return Grammar._of(_Grammar.union(*_inner(grammars)))

    def serialize_json(self) -> str:
        """JSON text for `deserialize_json` of this package."""
        return save("Grammar", {"value": self._grammar.serialize_json()})

    @staticmethod
    def deserialize_json(json_string: str) -> Grammar:
        """Read what `serialize_json` wrote.

        Raises:
            InvalidJSONError: The text is not JSON.
            DeserializeVersionError: Another version, or another package, wrote it.
            DeserializeFormatError: It is damaged, or not a grammar.
        """
        with translated(DeserializeFormatError):
            return Grammar._of(
                _Grammar.deserialize_json(str(load("Grammar", json_string)["value"]))
            )

    @classmethod
    def _of(cls, grammar: _Grammar) -> Grammar:
        made = cls.__new__(cls)
        made._grammar = grammar
        return made


def _inner(grammars: tuple[Any, ...]) -> list[_Grammar]:
    held = check_kinds(
        "grammars", grammars, Grammar, "Grammar objects: Grammar.from_ebnf reads EBNF"
    )
    return [grammar._grammar for grammar in held]


def read_schema(
    schema: Any,
    any_whitespace: bool,
    indent: int | None,
    separators: tuple[str, str] | None,
    strict_mode: bool,
    max_whitespace_cnt: int | None,
    any_order: bool,
) -> tuple[str, SchemaOptions]:
    """The text of a schema, and this package's options for it.

    Raises:
        ValueError: `schema` is something else than JSON text, a dict or a model.
        TypeError: A dict holds what is not JSON, or `max_whitespace_cnt` is not an integer.
        RuntimeError: It is not JSON, or `max_whitespace_cnt` is less than 1.
    """
    if max_whitespace_cnt is not None:
        with translated(also=(ValueError,)):
            max_whitespace_cnt = whole_number(
                "max_whitespace_cnt", max_whitespace_cnt, least=1, otherwise=" or None"
            )
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        schema = schema.model_json_schema()
    if isinstance(schema, str):
        text = schema
        if strict_mode:
            # If it is not JSON, the reader of the text reports the error.
            with suppress(ValueError, RecursionError):
                text = write_json(opened(read_json_exactly(schema)))
    elif isinstance(schema, dict):
        try:
            text = json.dumps(opened(schema) if strict_mode else schema)
        except RecursionError:
            raise RuntimeError("the schema is nested too deeply: flatten it") from None
        except TypeError as error:
            raise TypeError(
                f"schema cannot be written as JSON: {error}; give what json.loads returns"
            ) from error
    else:
        raise ValueError(
            f"schema is a {type(schema).__name__}, but must be JSON text, a dict or a pydantic "
            "model"
        )
    options: SchemaOptions = {
        "any_whitespace": any_whitespace,
        "indent": indent,
        "separators": separators,
        "strict_mode": strict_mode,
        "max_whitespace": max_whitespace_cnt,
        "property_order": "any" if any_order else "declared",
        "spelling": "digits",
    }
    return text, options


def read_regex(pattern: str) -> _Grammar:
    """The grammar of a pattern in which `.` is any character, including line breaks.

    Raises:
        TypeError: It is not a str.
    """
    if not isinstance(pattern, str):
        raise TypeError(f"pattern is a {type(pattern).__name__}, but must be a str")
    try:
        return _Grammar.from_regex(any_dot(pattern))
    except StencilError:
        _Grammar.from_regex(pattern)  # reports the position within the caller's pattern
        raise


def read_named(named: dict[str, Grammar | str] | None) -> dict[str, _Grammar | str]:
    """The grammars by name.

    Raises:
        TypeError: They are not a dict of grammars and texts.
    """
    if named is None:
        return {}
    if not isinstance(named, dict):
        raise TypeError(f"named_grammars is a {type(named).__name__}, but must be a dict")
    found: dict[str, _Grammar | str] = {}
    for name, grammar in named.items():
        if not isinstance(name, str):
            raise TypeError(f"named_grammars has the name {name!r}, but names must be str")
        if isinstance(grammar, Grammar):
            found[name] = grammar._grammar
        elif isinstance(grammar, str):
            found[name] = grammar
        else:
            raise TypeError(
                f"named_grammars has a {type(grammar).__name__} as {name!r}, but must hold "
                "Grammar objects or Lark texts"
            )
    return found


def read_tag(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | str:
    """The arguments of `from_structural_tag` as this package's structural tag.

    Raises:
        InvalidJSONError: A text is not JSON.
        InvalidStructuralTagError: It is not an object.
        TypeError: The arguments are of another form.
    """
    if len(args) == 2 and isinstance(args[0], list) and isinstance(args[1], list):
        tag: Any = _legacy(args[0], args[1])
    elif len(args) == 1:
        tag = args[0]
        if not isinstance(tag, (str, dict, StructuralTag)):
            raise TypeError(
                f"structural_tag is a {type(tag).__name__}, but must be a StructuralTag, its JSON "
                "text or a dict"
            )
    elif "structural_tag" in kwargs:
        tag = kwargs["structural_tag"]
        if not isinstance(tag, (str, dict, StructuralTag)):
            raise ValueError(
                f"structural_tag is a {type(tag).__name__}, but must be a StructuralTag, its JSON "
                "text or a dict"
            )
    elif "tags" in kwargs and "triggers" in kwargs:
        tag = _legacy(kwargs["tags"], kwargs["triggers"])
    else:
        raise TypeError("give one structural tag, or a list of tags and a list of triggers")
    if isinstance(tag, StructuralTag):
        tag = tag.model_dump(mode="json")
    is_text = isinstance(tag, str)
    if is_text:
        try:
            tag = read_json_exactly(tag)
        except (ValueError, RecursionError) as error:
            raise InvalidJSONError(f"the structural tag is no JSON: {error}") from error
    if not isinstance(tag, dict) or not isinstance(tag.get("format"), dict):
        raise InvalidStructuralTagError(
            "a structural tag is an object with a format, such as "
            '{"type": "structural_tag", "format": {"type": "any_text"}}'
        )
    read: dict[str, Any] = plain_tag(tag)
    return write_json(read) if is_text else read


def _legacy(tags: list[StructuralTagItem], triggers: list[str]) -> StructuralTag:
    return StructuralTag.from_legacy_structural_tag(tags, triggers)
