"""`stencilm index`: a regular grammar as an explicit automaton over the tokens of a tokenizer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

import typer

from stencilm.cli.failure import USAGE, Failure
from stencilm.cli.grammars import EMBEDDED, read_tokenizer
from stencilm.cli.notations import GivenGrammar, takes_grammar
from stencilm.cli.options import Tokenizer
from stencilm.views.characters import json_text, visible
from stencilm.whole_numbers import whole_number

_MAX_LISTED = 60
_MAX_TOKENS = 12


class Format(StrEnum):
    """What is printed."""

    text = "text"
    json = "json"
    dot = "dot"
    svg = "svg"
    saved = "saved"


@takes_grammar
def index(
    grammar: GivenGrammar,
    tokenizer: Tokenizer = EMBEDDED,
    output: Annotated[
        Format,
        typer.Option(
            "--format",
            "-f",
            help="text, json, dot, svg (drawn by Graphviz), or saved for loading it later.",
        ),
    ] = Format.text,
    coalesce: Annotated[
        bool, typer.Option("--coalesce", help="List the stretches where every continuation agrees.")
    ] = False,
    max_states: Annotated[int, typer.Option(help="The most states of the automaton.")] = 100_000,
) -> int:
    """Build the automaton over tokens of a regular grammar: list, draw or save it.

    Exits with 1 if the grammar nests, or has more than max-states states.
    """
    try:
        whole_number("max_states", max_states, least=1)
    except ValueError as error:
        raise Failure(str(error), USAGE) from error
    if coalesce and output not in (Format.text, Format.json):
        raise Failure("--coalesce prints text or json", USAGE)
    from stencilm.limits import DEFAULT_LIMITS
    from stencilm.matching.index import TokenIndex

    made = grammar.grammar()
    info = read_tokenizer(tokenizer)
    with _progress() as show:
        built = TokenIndex.from_grammar(
            made,
            info,
            max_states=max_states,
            progress=show,
            limits=grammar.limits or DEFAULT_LIMITS,
        )
    if output is Format.dot:
        print(built.to_dot(), end="")
    elif output is Format.svg:
        print(built.to_svg(), end="")
    elif output is Format.saved:
        print(built.serialize_json())
    elif output is Format.json:
        print(json_text(_record(built, coalesce)))
    else:
        for line in _stretches(built) if coalesce else _lines(built):
            print(visible(line))
    return 0


def _record(built: Any, coalesce: bool) -> dict[str, Any]:
    record: dict[str, Any] = {
        "states": built.num_states,
        "transitions": built.num_transitions,
        "bytes": built.memory_size_bytes,
        "initial_state": built.initial_state,
        "final_states": sorted(built.final_states),
    }
    if not coalesce:
        table = {str(state): dict(row) for state, row in built.transitions.items()}
        return record | {"table": table}
    stretches = [
        {
            "state": stretch.state,
            "text": stretch.text.decode("utf-8", "backslashreplace"),
            "tokens": stretch.tokens,
            "next_state": stretch.next_state,
            "left_over": stretch.left_over.decode("utf-8", "backslashreplace"),
        }
        for stretch in built.coalesce()
    ]
    return record | {"stretches": stretches}


def _lines(built: Any) -> Iterator[str]:
    finals = built.final_states
    yield (
        f"{built.num_states:,} states ({len(finals):,} final), {built.num_transitions:,} "
        f"transitions, {built.memory_size_bytes:,} bytes"
    )
    if built.num_states > _MAX_LISTED:
        yield f"more than {_MAX_LISTED} states are not listed; --format json has all of them"
        return
    table = built.with_tokens()
    for state in range(built.num_states):
        row = table.get(state, {})
        shown = [f"{text!r}: {target}" for text, target in list(row.items())[:_MAX_TOKENS]]
        if len(row) > _MAX_TOKENS:
            shown.append(f"and {len(row) - _MAX_TOKENS:,} more")
        mark = "*" if state in finals else " "
        yield f"{state:>4}{mark} {', '.join(shown)}".rstrip()


def _stretches(built: Any) -> Iterator[str]:
    for stretch in built.coalesce():
        text = stretch.text.decode("utf-8", "backslashreplace")
        tokens = built.tokenizer_info.dbg_tokens(stretch.tokens)
        left = stretch.left_over.decode("utf-8", "backslashreplace")
        rest = f"  left over {left!r}" if left else ""
        yield f"{stretch.state:>4} -> {stretch.next_state:<4} {text!r}  as  {tokens}{rest}"


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, known: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("building"), BarColumn(), MofNCompleteColumn(), TextColumn("states"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("building", total=None)
        yield lambda done, known: bar.update(task, completed=done, total=known)
