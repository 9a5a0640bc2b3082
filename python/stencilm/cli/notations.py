"""The grammar that every command takes: one of several options, or a file in any notation.

One idea: the options for a grammar are written once, and `takes_grammar` adds them to a command. So
all commands take the same ones, and a new notation is one line here.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stencilm.cli.failure import REFUSED, USAGE, Failure, sentence_of
from stencilm.cli.inputs import (
    STANDARD_INPUT,
    checked_text,
    read_limits,
    read_text,
    read_type,
    shown,
    without_line_break,
)
from stencilm.errors import StencilError
from stencilm.shown import shown_value
from stencilm.views.characters import json_text

if TYPE_CHECKING:
    from stencilm.grammars.grammar import Grammar
    from stencilm.grammars.sources import OnUnsupported
    from stencilm.limits import Limits

NOTATIONS = ("json-schema", "structural-tag", "ebnf", "gbnf", "lark", "regex")
_SUFFIXES = {
    ".json": "json-schema",
    ".ebnf": "ebnf",
    ".gbnf": "gbnf",
    ".lark": "lark",
    ".regex": "regex",
}
_FILES = ("schema", "structural_tag", "ebnf", "gbnf", "lark")
"""Options that name a file, by notation."""
_SIGNS = {
    "json-schema": re.compile(r"\s*\{"),
    "structural-tag": re.compile(r"\s*\{"),
    "ebnf": re.compile(r"::="),
    "gbnf": re.compile(r"::="),
    "lark": re.compile(r"^\s*[?!]*start\b[^\n:]*:", re.MULTILINE),
}
"""What every text of a notation has, and no sensible name of a file."""
_TEXTS = ("prompt", "text")
"""The name in commands of a text that may also come from standard input."""


def _limit_names() -> list[str]:
    from stencilm.limits import BOUNDS

    return [f"{name}=" for name in BOUNDS]


def _option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Grammar: one of these, or FILE", **more)


def _file(what: str) -> Any:
    return _option(metavar="FILE", help=f"{what}, or its text; - reads standard input.")


_OPTIONS: dict[str, tuple[Any, Any, Any]] = {
    "file": (
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="A grammar, or its text; its suffix names the notation; - reads standard input.",
        ),
        None,
    ),
    "source": (
        str | None,
        _option(
            "--from",
            metavar="NOTATION",
            help=f"The notation of FILE: {', '.join(NOTATIONS)}.",
            autocompletion=lambda: list(NOTATIONS),
        ),
        None,
    ),
    "schema": (str | None, _file("A JSON Schema"), None),
    "type_name": (
        str | None,
        _option("--type", metavar="MODULE:NAME", help="A Python type; file.py:Name works too."),
        None,
    ),
    "regex": (str | None, _option(metavar="PATTERN", help="A regular expression."), None),
    "ebnf": (str | None, _file("An EBNF grammar"), None),
    "gbnf": (str | None, _file("A GBNF grammar"), None),
    "lark": (str | None, _file("A Lark grammar"), None),
    "structural_tag": (str | None, _file("A structural tag as JSON"), None),
    "nullable": (
        bool,
        typer.Option("--nullable", help="Read nullable: true in a schema as OpenAPI 3.0 does."),
        False,
    ),
    "limits": (
        list[str] | None,
        typer.Option(
            "--limits",
            metavar="NAME=NUMBER",
            help="Raise a limit that was reached: schema_bytes=4000000; may be repeated.",
            autocompletion=_limit_names,
        ),
        None,
    ),
}
"""The parameters of every command with a grammar: type, declaration and default of each."""


@dataclass(frozen=True)
class GivenGrammar:
    """The grammar that the options of a command name.

    Attributes:
        notation: One of `NOTATIONS`, "type", or "text" if none is named.
        source: Its text, or the type itself.
        name: Its name in messages.
        nullable: Whether a schema is read as in OpenAPI 3.0.
        limits: Its limits; None for the defaults.
    """

    notation: str
    source: Any
    name: str
    nullable: bool
    limits: Limits | None

    def output_type(self, *, on_unsupported: OnUnsupported = "error") -> Any:
        """The grammar as an output type."""
        from stencilm.grammars.output_types import Ebnf, JsonSchema, Lark, Regex
        from stencilm.grammars.structural_tag import StructuralTag

        if self.notation == "text":
            return str
        if self.notation == "type":
            return self.source
        if self.notation == "json-schema":
            return JsonSchema(self.source, nullable=self.nullable, on_unsupported=on_unsupported)
        if self.notation == "structural-tag":
            return StructuralTag.from_json(self.source)
        if self.notation == "lark":
            return Lark(self.source)
        if self.notation == "regex":
            return Regex(self.source)
        return Ebnf(self.source)

    def grammar(self, *, on_unsupported: OnUnsupported = "error") -> Grammar:
        """Its grammar, within its limits."""
        from stencilm.grammars.grammar import Grammar
        from stencilm.limits import DEFAULT_LIMITS

        limits = self.limits or DEFAULT_LIMITS
        if self.notation == "json-schema":
            return Grammar.from_json_schema(
                self.source, nullable=self.nullable, on_unsupported=on_unsupported, limits=limits
            )
        if self.notation == "structural-tag":
            return Grammar.from_structural_tag(self.source, limits=limits)
        if self.notation == "lark":
            return Grammar.from_lark(self.source, limits=limits)
        if self.notation == "regex":
            return Grammar.from_regex(self.source, limits=limits)
        if self.notation in ("ebnf", "gbnf"):
            return Grammar.from_ebnf(self.source, limits=limits)
        return Grammar.from_type(self.output_type(), limits=self.limits)


def takes_grammar(command: Callable[..., int]) -> Callable[..., int]:
    """A command with all options for a grammar instead of its parameter `grammar`.

    If that parameter has the default None, the user may leave it out, for free text.
    """
    signature = inspect.signature(command, eval_str=True)
    optional = signature.parameters["grammar"].default is None
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[kind, declaration],
        )
        for name, (kind, declaration, default) in _OPTIONS.items()
    ]
    others = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, one in signature.parameters.items()
        if name != "grammar"
    ]
    # Arguments are positional: if a command has a text, it comes before the grammar.
    first = [one for one in others if _is_argument(one)]
    parameters = [*first, *added, *(one for one in others if one not in first)]

    def run(**given: Any) -> int:
        options = {name: given.pop(name) for name in _OPTIONS}
        texts = [name for name in _TEXTS if given.get(name) == STANDARD_INPUT]
        if texts and STANDARD_INPUT in options.values():
            raise Failure("a grammar and a text cannot both read standard input", USAGE)
        return command(**given, grammar=given_grammar(options, optional=optional))

    run.__name__ = command.__name__
    run.__doc__ = command.__doc__
    run.__module__ = command.__module__
    run.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": int}
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def reports_refusals(command: Callable[..., int]) -> Callable[..., int]:
    """A command that also prints as JSON why its grammar is refused, if it has `--json`.

    It goes around `takes_grammar`: a file that cannot be read is refused as well.
    """

    @functools.wraps(command)
    def run(**given: Any) -> int:
        try:
            return command(**given)
        except (StencilError, Failure) as error:
            if given["as_json"] and getattr(error, "exit_code", REFUSED) == REFUSED:
                place = getattr(error, "place", None)
                record = {
                    "kind": type(error).__name__, "message": sentence_of(error), "place": place,
                }  # fmt: skip
                print(json_text({"ok": False, "error": record}))
            raise

    return run


def _is_argument(parameter: inspect.Parameter) -> bool:
    declared = getattr(parameter.annotation, "__metadata__", ())
    return any(isinstance(one, typer.models.ArgumentInfo) for one in declared)


def given_grammar(options: dict[str, Any], *, optional: bool) -> GivenGrammar:
    """The grammar that an option names; Failure if there is none, or more than one."""
    names = {"file": "FILE", "schema": "--schema", "type_name": "--type", "regex": "--regex"}
    names |= {name: f"--{name.replace('_', '-')}" for name in _FILES if name not in names}
    given = [name for name in names if options[name] is not None]
    if len(given) > 1 or not (given or optional):
        found = " and ".join(names[name] for name in given) if given else "nothing"
        *most, last = names.values()
        raise Failure(f"give one of {', '.join(most)} and {last}, not {found}", USAGE)
    notation = options["source"]
    if notation is not None and notation not in NOTATIONS:
        raise Failure(
            f"--from is {shown_value(notation):.80}: give one of {', '.join(NOTATIONS)}", USAGE
        )
    if notation is not None and given != ["file"]:
        raise Failure("--from says how FILE is read: give a FILE, too", USAGE)
    limits = read_limits(options["limits"])
    kind, source, name = "text", None, "free text"
    if given:
        [option] = given
        value = options[option]
        if option == "regex":
            kind, source, name = "regex", value, "the regular expression"
        elif option == "type_name":
            kind, source, name = "type", read_type(value), value
        else:
            if option != "file":
                notation = "json-schema" if option == "schema" else option.replace("_", "-")
            is_text = is_inline(value, notation)
            name = names[option] if is_text else shown(value)
            kind, source = read_notation(value, notation, name if is_text else None)
    return GivenGrammar(kind, source, name, options["nullable"], limits)


def is_inline(given: str, notation: str | None) -> bool:
    """Whether what stands for a file is itself the text of a grammar.

    A file with that very name has precedence.
    """
    signs = [sign for one, sign in _SIGNS.items() if notation in (None, one)]
    return any(sign.search(given) for sign in signs) and not os.path.lexists(given)


def read_notation(file: str, notation: str | None, inline: str | None = None) -> tuple[str, str]:
    """The notation of a file and its text, or of a text itself, which messages call `inline`.

    Unless `notation` is given, the file's name decides, and for JSON its content; of a text, what
    it looks like.
    """
    text = checked_text(file) if inline else read_text(file)
    name = inline or shown(file)
    if notation is None:
        by_name = None if file == STANDARD_INPUT else _SUFFIXES.get(PurePath(file).suffix)
        if inline:
            by_name = next(one for one, sign in _SIGNS.items() if sign.search(text))
        _check_json(name, text, by_name)
        notation = by_name or "json-schema"
        if notation == "json-schema" and _is_tag(text):
            notation = "structural-tag"
    elif notation in ("json-schema", "structural-tag"):
        _check_json(name, text, notation)
    return notation, without_line_break(text) if notation == "regex" else text


def _check_json(name: str, text: str, notation: str | None) -> None:
    """Raise Failure with the location if a text is not JSON and its notation requires it."""
    if notation not in (None, "json-schema", "structural-tag"):
        return
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{name}:{error.lineno}:{error.colno}"
        others = ", ".join(name for name in NOTATIONS if name != "json-schema")
        hint = "" if notation else f"; give --from for another notation: {others}"
        raise Failure(f"{place}: this is not JSON: {error.msg}{hint}") from None
    except (ValueError, RecursionError):
        pass  # a huge number or deep nesting: the grammar has its own limits, which it names


def _is_tag(text: str) -> bool:
    from stencilm.grammars.json_values import read_json

    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict):
        return False
    # The older form may leave out its type; no schema has such lists.
    is_older = isinstance(value.get("structures"), list) and isinstance(value.get("triggers"), list)
    return is_older or value.get("type") == "structural_tag"
