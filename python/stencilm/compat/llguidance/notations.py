"""Grammars as texts (Lark, or JSON with a list of grammars), and conversions to them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict, get_args

from stencilm.errors import StencilError
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.json_values import read_json_exactly, write_json
from stencilm.grammars.sources import SchemaOptions
from stencilm.shown import shown_value

GrammarFormat = Literal[
    "lark",
    "gbnf",
    "ebnf",
    "cfg",
    "grammar",
    "json_schema",
    "json",
    "regex",
    "choice",
    "llguidance",
]

# Any run of JSON's whitespace, in the spellings that callers use.
_ANY_WHITESPACE = (None, r"[\x20\x0A\x0D\x09]+", r"[\x20\x0A\x0D\x09]*", r"[\n\t ]*", r"[ \n\t\r]*")
_OPTIONS = frozenset(
    {
        *("item_separator", "key_separator", "whitespace_pattern", "whitespace_flexible"),
        *("coerce_one_of", "lenient", "json_allowed_escapes"),
        "json_allow_general_unicode_escapes",
    }
)


class JsonCompileOptions(TypedDict, total=False):
    """How JSON is written: the original's options, for "x-guidance"."""

    item_separator: str | None
    key_separator: str | None
    whitespace_pattern: str | None
    whitespace_flexible: bool | None
    coerce_one_of: bool | None
    lenient: bool | None


def json_grammar(
    schema: str | dict[str, Any],
    defaults: Mapping[str, Any] | None,
    overrides: Mapping[str, Any] | None,
) -> str:
    """The text of a grammar for a JSON Schema.

    Raises:
        TypeError: It is not a schema, or the options are not a dict.
        ValueError: There are options, but it is not an object that could hold them; or it is nested
            too deeply, or holds itself.
    """
    if not isinstance(schema, (str, Mapping)):
        raise TypeError(f"schema is a {type(schema).__name__}, but must be a str or a dict")
    for name, value in (("defaults", defaults), ("overrides", overrides)):
        if value is not None and not isinstance(value, Mapping):
            raise TypeError(f"{name} is {shown_value(value):.60}, but must be a dict of options")
    if not defaults and not overrides:
        text = schema if isinstance(schema, str) else written(dict(schema))
        return f'{{"grammars": [{{"json_schema": {text}}}]}}'
    try:
        read = read_json_exactly(schema) if isinstance(schema, str) else dict(schema)
    except RecursionError:
        raise ValueError("the schema is nested too deeply: flatten it") from None
    if not isinstance(read, dict):
        raise ValueError(
            f"schema is {shown_value(read):.60}, "
            f"but must be an object where options are given: {{}} allows "
            "any value"
        )
    own = read.get("x-guidance") or {}
    read = {**read, "x-guidance": {**(defaults or {}), **own, **(overrides or {})}}
    return written({"grammars": [{"json_schema": read}]}, write_json)


def written(value: Any, write: Callable[[Any], str] = json.dumps) -> str:
    """The JSON of a schema, or of a value that holds one.

    Raises:
        TypeError: It holds what is no JSON.
        ValueError: It is nested too deeply, or holds itself.
    """
    try:
        return write(value)
    except RecursionError:
        raise ValueError("the schema is nested too deeply: flatten it") from None
    except (TypeError, ValueError) as error:  # what is no JSON, or a part that holds itself
        raise type(error)(
            f"schema cannot be written as JSON: {error}; give what json.loads returns"
        ) from error


def regex_grammar(regex: str) -> str:
    """The text of a grammar for a regular expression; raises TypeError if it is not a str."""
    return json.dumps({"grammars": [{"lark_grammar": f"start: /{regex_to_lark(regex)}/"}]})


def regex_to_lark(regex: str, use_ascii: str | None = None) -> str:
    """A regular expression as it stands between the slashes of Lark.

    Args:
        regex: The expression.
        use_ascii: Accepted for compatibility: classes of characters are those of
            `docs/regex.md`.

    Raises:
        TypeError: It is not a str.
    """
    if not isinstance(regex, str):
        raise TypeError(f"regex is a {type(regex).__name__}, but must be a str")
    written = re.sub(r"(?s)\\(.)|(/)|(\n)", _escaped, regex)
    return written or "(?:)"


def _escaped(match: re.Match[str]) -> str:
    if match[2]:
        return r"\/"
    return r"\n" if match[3] else match[0]


def lark_grammar(lark: str) -> str:
    """The text itself; raises TypeError if it is not a str."""
    if not isinstance(lark, str):
        raise TypeError(f"lark is a {type(lark).__name__}, but must be a str")
    return lark


def is_lark_syntax(text: str) -> bool:
    """Whether a text looks like Lark: it has a rule `start`, or a line with `%llguidance`."""
    return (
        isinstance(text, str)
        and re.search(r"^\s*(?:start\s*:|%llguidance\b)", text, re.MULTILINE) is not None
    )


def grammar_from(format: GrammarFormat, text: str) -> str:
    """The text of a grammar in another notation.

    Args:
        format: The notation: "lark"; "gbnf", "ebnf", "cfg" or "grammar" for GBNF, or for a text
            that looks like Lark; "json_schema" or "json"; "regex"; "choice" for a list of texts, or
            its JSON; "llguidance" for a text that needs no conversion.
        text: The grammar.

    Raises:
        TypeError: Lark that is not a str.
        ValueError: An unknown notation, or a text that cannot be converted.
    """
    if format in ("lark", "llguidance"):
        return lark_grammar(text) if format == "lark" else text
    if format in ("gbnf", "ebnf", "cfg", "grammar"):
        if is_lark_syntax(text):
            return text
        try:
            return Grammar.from_ebnf(text).converted("lark")
        except StencilError as error:
            raise ValueError(f"the grammar cannot be converted to Lark: {error}") from error
    if format in ("json_schema", "json"):
        return json_grammar(text, None, None)
    if format == "regex":
        return regex_grammar(text)
    if format == "choice":
        texts = json.loads(text) if isinstance(text, str) else text
        if not isinstance(texts, (list, tuple)) or not all(isinstance(one, str) for one in texts):
            raise ValueError(f"the choice is {shown_value(texts):.60}, but must be a list of texts")
        return "start: " + " | ".join(json.dumps(each) for each in texts)
    raise ValueError(
        f"format is {shown_value(format):.80}, "
        f"but must be one of {', '.join(get_args(GrammarFormat))}"
    )


def read_grammar(text: str) -> Grammar:
    """The grammar of such a text.

    Raises:
        StencilError: It is not well-formed, or cannot be enforced.
        ValueError: Its JSON is not a list of grammars, or has an unsupported option.
    """
    if not isinstance(text, str):
        raise ValueError(f"the grammar is a {type(text).__name__}, but must be a str")
    if not text.strip():
        raise ValueError("the grammar is empty: give Lark, or JSON with grammars")
    if not text.lstrip().startswith("{"):
        return Grammar.from_lark(text)
    try:
        read = read_json_exactly(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the grammar begins with {{ but is no JSON: {error}") from error
    listed = read.get("grammars")
    if not isinstance(listed, list) or not listed or not all(isinstance(e, dict) for e in listed):
        raise ValueError(
            'the grammar is JSON without its list "grammars": a JSON Schema becomes one with '
            "LLMatcher.grammar_from_json_schema"
        )
    if read.get("max_tokens") is not None:
        raise ValueError(
            "max_tokens of a whole grammar is not enforced here: bound the number of tokens where "
            "they are sampled, or give a rule max_tokens"
        )
    try:
        return _Listed(listed).build(0, ())
    except RecursionError:
        raise ValueError("the grammar is nested too deeply: flatten it") from None


class _Listed:
    """Grammars that use each other by name."""

    def __init__(self, listed: list[dict[str, Any]]) -> None:
        self._listed = listed
        names = [entry.get("name") for entry in listed]
        self._places = {name: i for i, name in enumerate(names) if name and isinstance(name, str)}

    def build(self, place: int, within: tuple[int, ...]) -> Grammar:
        """Build the grammar at an index; `within` holds the indices that are being built."""
        entry = self._listed[place]
        if entry.get("json_schema") is not None:
            return _json(entry["json_schema"])
        text = entry.get("lark_grammar")
        if not isinstance(text, str):
            raise ValueError(f"grammar {place} has no json_schema and no lark_grammar")
        if place in within:
            raise ValueError(f"grammar {place} uses itself by @name: write the recursion in rules")
        used = [name for name in _used_names(text) if name in self._places]
        return Grammar.from_lark(
            text,
            grammars={name: self.build(self._places[name], (*within, place)) for name in used},
        )


# Texts, comments and patterns of Lark are matched as well, because an "@" in them names nothing.
_NAME_OR_TEXT = re.compile(
    r"""
    "(?:\\.|[^"\\\n])*"
    | (?://|\#)[^\n]*
    | /(?:\\.|[^/\\\n])+/
    | @(?P<name>(?:[A-Za-z0-9_]|-(?!>))+)
    """,
    re.VERBOSE,
)


def _used_names(lark: str) -> list[str]:
    """The names of other grammars that a Lark text uses as `@name`, each once."""
    found = (match["name"] for match in _NAME_OR_TEXT.finditer(lark))
    return list(dict.fromkeys(name for name in found if name))


def _json(schema: Any) -> Grammar:
    options: dict[str, Any] = {}
    if isinstance(schema, dict):
        schema = dict(schema)
        options = schema.pop("x-guidance", None) or {}
    unknown = options.keys() - _OPTIONS
    if unknown:
        raise ValueError(f"x-guidance has {sorted(unknown)}, but may have {sorted(_OPTIONS)}")
    if options.get("whitespace_pattern") not in _ANY_WHITESPACE:
        raise ValueError(
            f"whitespace_pattern {options['whitespace_pattern']!r} is not enforced here: leave it "
            "out for any blanks, or set whitespace_flexible to false for none"
        )
    if options.get("json_allowed_escapes") is not None:
        raise ValueError("json_allowed_escapes is not enforced here: leave it out")
    flexible = options.get("whitespace_flexible")
    read: SchemaOptions = {
        "any_whitespace": flexible is None or bool(flexible),
        "separators": (options.get("item_separator") or ",", options.get("key_separator") or ":"),
        "max_whitespace": None,
        "spelling": "digits",
        "on_unsupported": "relax" if options.get("lenient") else "error",
    }
    return Grammar.from_json_schema(write_json(schema), **read)


class JsonCompiler:
    """Converts JSON Schemas to texts of grammars.

    Args:
        separators: Between items, and between a key and its value; (", ", ": ") by default.
        whitespace_flexible: Whitespace wherever JSON allows it.
        coerce_one_of: Accepted for compatibility: `oneOf` is enforced.
        whitespace_pattern: As for `LLMatcher.grammar_from_json_schema`.
        json_allowed_escapes: Not supported.
        json_allow_general_unicode_escapes: Accepted for compatibility: they are allowed.
    """

    def __init__(
        self,
        separators: tuple[str, str] | None = None,
        whitespace_flexible: bool = False,
        coerce_one_of: bool = False,
        whitespace_pattern: str | None = None,
        json_allowed_escapes: str | None = None,
        json_allow_general_unicode_escapes: bool = False,
    ) -> None:
        item, key = separators or (", ", ": ")
        self._options = {
            "item_separator": item,
            "key_separator": key,
            "whitespace_flexible": whitespace_flexible,
            "whitespace_pattern": whitespace_pattern,
            "coerce_one_of": coerce_one_of,
            "json_allowed_escapes": json_allowed_escapes,
        }

    def compile(self, schema: str, check: bool = True) -> str:
        """The text of the grammar.

        Raises:
            ValueError: It cannot be enforced; only with `check`.
        """
        return _checked(json_grammar(schema, None, self._options), check)


class LarkCompiler:
    """Converts Lark to texts of grammars."""

    def compile(self, lark: str, check: bool = True) -> str:
        """The text itself.

        Raises:
            TypeError: It is not a str.
            ValueError: It is not well-formed or cannot be enforced; only with `check`.
        """
        return _checked(lark_grammar(lark), check)


class RegexCompiler:
    """Converts regular expressions to texts of grammars."""

    def compile(self, regex: str, check: bool = True) -> str:
        """The text of the grammar.

        Raises:
            ValueError: It is not well-formed or cannot be enforced; only with `check`.
        """
        return _checked(regex_grammar(regex), check)


def _checked(text: str, check: bool) -> str:
    if check:
        try:
            read_grammar(text)
        except StencilError as error:
            raise ValueError(str(error)) from error
    return text
