"""`stencilm convert`: the same grammar in another notation."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stencilm.cli.failure import USAGE, Failure, sentence_of
from stencilm.cli.inputs import read_limits
from stencilm.cli.notations import grammar_of, read_notation
from stencilm.cli.options import GrammarFile, GrammarLimits, Notation, Pattern, TypeName
from stencilm.cli.view import print_text
from stencilm.errors import StencilError
from stencilm.views.characters import json_text


def convert(
    file: GrammarFile = None,
    source: Notation = None,
    target: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="NOTATION",
            help="ebnf, gbnf, regex, lark, json-schema or structural-tag.",
        ),
    ] = "ebnf",
    type_name: TypeName = None,
    regex: Pattern = None,
    limits: GrammarLimits = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object with the text.")
    ] = False,
) -> int:
    """Print a grammar in another notation; plain GBNF is what llama.cpp reads.

    Exits with 1 when the grammar is refused, or cannot be said in that notation.
    """
    from stencilm.grammars.conversion import NOTATIONS, converted

    known = (*NOTATIONS, "structural-tag")
    if target not in known:
        raise Failure(f"--to is {target!r}: give one of {', '.join(known)}", USAGE)
    bounds = read_limits(limits)
    notation, given = read_notation(file, source, type_name, regex)
    try:
        grammar = grammar_of(notation, given, bounds)  # refuses what is wrong, whatever it becomes
        if target == "structural-tag":
            text = _structural_tag(notation, given, grammar)
        else:
            text = converted(grammar, target)  # type: ignore[arg-type]  # it is one of them
    except (StencilError, Failure) as error:
        if as_json:
            place = getattr(error, "place", None)
            record = {"kind": type(error).__name__, "message": sentence_of(error), "place": place}
            print(json_text({"ok": False, "error": record}))
        raise
    if as_json:
        record = {"ok": True, "from": notation, "to": target, "text": text}
        print(json_text(record))
    else:
        print_text(text.removesuffix("\n"))
    return 0


def _structural_tag(notation: str, given: Any, grammar: Any) -> str:
    from stencilm.grammars.sources import schema_value
    from stencilm.grammars.structural_tag import (
        GrammarFormat,
        JSONSchemaFormat,
        RegexFormat,
        StructuralTag,
    )

    if notation == "structural-tag":
        return StructuralTag.from_json(given).to_json()
    if notation == "json-schema":
        return StructuralTag(format=JSONSchemaFormat(json_schema=schema_value(given))).to_json()
    if notation == "regex":
        return StructuralTag(format=RegexFormat(pattern=given.removesuffix("\n"))).to_json()
    if notation == "ebnf":
        return StructuralTag(format=GrammarFormat(grammar=given)).to_json()
    # What is no format of its own is one as EBNF.
    return StructuralTag(format=GrammarFormat(grammar=str(grammar))).to_json()
