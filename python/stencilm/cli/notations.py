"""A grammar in any notation, as commands are given it."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from stencilm.cli.failure import USAGE, Failure
from stencilm.cli.inputs import STANDARD_INPUT, read_schema, read_text, read_type, shown

if TYPE_CHECKING:
    from stencilm.grammars.grammar import Grammar
    from stencilm.limits import Limits

NOTATIONS = ("json-schema", "structural-tag", "ebnf", "lark", "regex")
_SUFFIXES = {
    ".json": "json-schema",
    ".ebnf": "ebnf",
    ".gbnf": "ebnf",
    ".lark": "lark",
    ".regex": "regex",
}


def read_notation(
    file: str | None, notation: str | None, type_name: str | None, regex: str | None
) -> tuple[str, Any]:
    """What was given: its notation and its text, or the type itself under the notation `type`.

    A file tells its notation by its name, and JSON by what it holds, unless `notation` is given.
    """
    given = [
        name
        for name, value in (("FILE", file), ("--type", type_name), ("--regex", regex))
        if value is not None
    ]
    if len(given) != 1:
        found = " and ".join(given) if given else "nothing"
        raise Failure(f"give one of FILE, --type and --regex, not {found}", USAGE)
    if notation is not None and notation not in NOTATIONS:
        raise Failure(f"--from is {notation!r}: give one of {', '.join(NOTATIONS)}", USAGE)
    if regex is not None:
        return "regex", regex
    if type_name is not None:
        return "type", read_type(type_name)
    assert file is not None
    if notation is None:
        notation = _SUFFIXES.get(PurePath(file).suffix)
        if notation is None or file == STANDARD_INPUT:
            names = ", ".join(NOTATIONS)
            raise Failure(
                f"{shown(file)} does not tell its notation: give one of {names} by --from", USAGE
            )
        text = read_schema(file) if notation == "json-schema" else read_text(file)
        return ("structural-tag" if _is_tag(text, notation) else notation), text
    return notation, read_text(file)


def _is_tag(text: str, notation: str) -> bool:
    if notation != "json-schema":
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict):
        return False
    # The older form may leave out its type; no schema has such lists.
    is_older = isinstance(value.get("structures"), list) and isinstance(value.get("triggers"), list)
    return is_older or value.get("type") == "structural_tag"


def grammar_of(notation: str, source: Any, limits: Limits | None) -> Grammar:
    """The grammar of what `read_notation` gave, within limits."""
    from stencilm.grammars.grammar import Grammar
    from stencilm.limits import DEFAULT_LIMITS

    if notation == "type":
        return Grammar.from_type(source, limits=limits)
    limits = limits or DEFAULT_LIMITS
    if notation == "json-schema":
        return Grammar.from_json_schema(source, limits=limits)
    if notation == "structural-tag":
        return Grammar.from_structural_tag(source, limits=limits)
    if notation == "lark":
        return Grammar.from_lark(source, limits=limits)
    if notation == "ebnf":
        return Grammar.from_ebnf(source, limits=limits)
    return Grammar.from_regex(source.removesuffix("\n"), limits=limits)
