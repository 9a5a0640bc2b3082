"""`stencilm convert`: the same grammar in another notation."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stencilm.cli.failure import USAGE, Failure
from stencilm.cli.notations import GivenGrammar, reports_refusals, takes_grammar
from stencilm.cli.view import print_text
from stencilm.shown import shown_value
from stencilm.views.characters import json_text


def _targets() -> list[str]:
    from stencilm.grammars.conversion import NOTATIONS

    return [*NOTATIONS, "structural-tag"]


@reports_refusals
@takes_grammar
def convert(
    grammar: GivenGrammar,
    target: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="NOTATION",
            help="ebnf, gbnf, regex, lark, json-schema or structural-tag.",
            autocompletion=_targets,
        ),
    ] = "ebnf",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object with the text.")
    ] = False,
) -> int:
    """Print a grammar in another notation; plain GBNF is what llama.cpp reads.

    Exits with 1 if the grammar is refused, or cannot be expressed in that notation.
    """
    if target not in _targets():
        raise Failure(
            f"--to is {shown_value(target):.80}: give one of {', '.join(_targets())}", USAGE
        )
    made = grammar.grammar()  # raises the errors of the grammar, whatever the target
    if target == "structural-tag":
        text = _structural_tag(grammar.notation, grammar.source, made)
    else:
        text = made.converted(target)  # type: ignore[arg-type]  # it is one of them
    if as_json:
        record = {"ok": True, "from": grammar.notation, "to": target, "text": text}
        print(json_text(record))
    else:
        print_text(text.removesuffix("\n"))
    return 0


def _structural_tag(notation: str, given: Any, grammar: Any) -> str:
    from stencilm.grammars.structural_tag import (
        GrammarFormat,
        JSONSchemaFormat,
        RegexFormat,
        StructuralTag,
    )
    from stencilm.grammars.texts import schema_value

    if notation == "structural-tag":
        return StructuralTag.from_json(given).to_json()
    if notation == "json-schema":
        return StructuralTag(format=JSONSchemaFormat(json_schema=schema_value(given))).to_json()
    if notation == "regex":
        return StructuralTag(format=RegexFormat(pattern=given)).to_json()
    if notation in ("ebnf", "gbnf"):
        return StructuralTag(format=GrammarFormat(grammar=given)).to_json()
    # A source without a format of its own becomes EBNF.
    return StructuralTag(format=GrammarFormat(grammar=str(grammar))).to_json()
