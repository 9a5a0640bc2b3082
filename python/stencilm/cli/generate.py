"""`stencilm generate`: one text that fits a grammar in any notation, or free text."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stencilm.cli.failure import USAGE, Failure
from stencilm.cli.guided import (
    STRATEGIES,
    chosen_strategy,
    endpoint,
    generate_guided,
    is_endpoint,
    shown_live,
    write_html,
)
from stencilm.cli.inputs import read_prompt, reported_by
from stencilm.cli.notations import GivenGrammar, takes_grammar
from stencilm.cli.outputs import STANDARD_OUTPUT, check_one_output, check_output
from stencilm.cli.view import print_text, progress, trace_lines
from stencilm.errors import StencilError
from stencilm.views.characters import json_text, visible
from stencilm.whole_numbers import written_number

if TYPE_CHECKING:
    from stencilm.models.typed_model import TypedModel


@takes_grammar
def generate(
    prompt: Annotated[
        str, typer.Option("--prompt", "-p", help="The prompt, or - to read standard input.")
    ],
    grammar: GivenGrammar | None = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help="tiny (embedded), a folder, a hub id, or openai:NAME or anthropic:NAME.",
        ),
    ] = "tiny",
    strategy: Annotated[
        str,
        typer.Option(
            metavar="auto|mask|guide",
            autocompletion=lambda: list(STRATEGIES),
            help="Mask each token, or draft freely and correct; auto does as model.generate.",
        ),
    ] = "auto",
    max_tokens: Annotated[
        int | None,
        typer.Option(help="The most tokens to write; for local models 512 by default."),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(help="0 takes the most probable token, the default of local models."),
    ] = None,
    top_p: Annotated[float, typer.Option(help="Keep tokens up to this total probability.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Keep this many tokens.")] = None,
    min_p: Annotated[
        float,
        typer.Option(help="Keep tokens with at least this fraction of the highest probability."),
    ] = 0.0,
    stop: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="A text that ends the output; may be repeated."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same text.")] = None,
    finish: Annotated[
        str | None,
        typer.Option(
            metavar="valid|cut",
            help="valid: the text is complete within max-tokens; cut: it is cut there. By "
            "default valid for local models, cut for endpoints.",
        ),
    ] = None,
    reasoning: Annotated[
        str,
        typer.Option(
            metavar="auto|true|false|draft|TOKENS",
            help="Let the model reason first, in at most TOKENS tokens, or write a draft.",
        ),
    ] = "auto",
    compact: Annotated[
        bool, typer.Option("--compact", help="Write no whitespace between the parts of JSON.")
    ] = False,
    indent: Annotated[
        int | None, typer.Option(help="Write JSON with this indent, one entry per line.")
    ] = None,
    max_whitespace: Annotated[
        int | None, typer.Option(help="The longest run of whitespace between the parts of JSON.")
    ] = None,
    escapes: Annotated[
        str,
        typer.Option(
            metavar="any|minimal", help="minimal: in strings, escape only what JSON requires."
        ),
    ] = "any",
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print text, value, finish reason and statistics as JSON."),
    ] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="Show each token: in the JSON, or on standard error.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Show the text in colours while it is written.")
    ] = False,
    html: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write an HTML page of what happened; - prints it instead of the text.",
        ),
    ] = None,
) -> int:
    """Write one text that fits a schema, a type or another grammar; without one, free text.

    A text that max-tokens cuts, or that the grammar had to fill in, is printed only with --json;
    the exit code is then 1.
    """
    assert grammar is not None, "free text is a grammar here, too"
    prompt_text = read_prompt(prompt)
    output_type = _with_layout(grammar.output_type(), compact, indent, max_whitespace, escapes)
    drawing: dict[str, Any] = {
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "min_p": min_p,
        "stop": stop or (),
        "seed": seed,
        "finish": finish,
        "reasoning": _reasoning(reasoning),
    }
    _check_options(drawing)
    check_one_output(json=as_json, html=html == STANDARD_OUTPUT)
    check_output(html)
    strategy = chosen_strategy(strategy, model)
    if strategy == "guide" and (top_k is not None or min_p or finish == "cut"):
        raise Failure(
            "--strategy guide takes no --top-k, no --min-p and no --finish cut: leave them out",
            USAGE,
        )
    _quiet_loading()
    from stencilm.generation.loop import DEFAULT_MAX_TOKENS
    from stencilm.grammars.outputs import resolve
    from stencilm.models.model import load

    bounds = grammar.limits
    # Refuse bad input before a model is loaded for it.
    made = resolve(output_type).grammar(bounds)
    if strategy == "guide":
        with reported_by(grammar.name):
            return generate_guided(
                model,
                prompt_text,
                output_type,
                grammar=None if bounds is None else made,
                max_tokens=max_tokens or DEFAULT_MAX_TOKENS,
                temperature=temperature,
                top_p=top_p,
                seed=seed,
                stop=stop or [],
                reasoning=drawing["reasoning"],
                live=live,
                as_json=as_json,
                trace=trace,
                html=html,
            )
    loaded: TypedModel = endpoint(model) if is_endpoint(model) else load(model)
    most = max_tokens or DEFAULT_MAX_TOKENS
    shown = shown_live(True, most) if live else progress(most)
    with reported_by(grammar.name), shown as show:
        generation = loaded.generate(
            prompt_text,
            output_type,
            limits=bounds,
            on_event=show,
            **drawing,
        )
    write_html(html, lambda: generation.html)
    error: StencilError | None = generation.error
    if as_json:
        value = None
        try:
            if error is None:
                value = loaded.dump(generation.value, output_type, limits=bounds)
        except StencilError as raised:
            error = raised
        result = {"error": None if error is None else str(error)}
        print(json_text(generation.to_json(value=value, trace=trace) | result))
    elif trace:
        for line in trace_lines(generation.trace):
            print(visible(line), file=sys.stderr)
    if error is not None:
        raise error
    if not as_json and html != STANDARD_OUTPUT:
        print_text(generation.text)
    return 0


def _with_layout(
    output_type: Any,
    compact: bool,
    indent: int | None,
    max_whitespace: int | None,
    escapes: str,
) -> Any:
    """The type with the layout of its JSON; Failure for an invalid option."""
    from stencilm.grammars.output_types import laid_out

    given: dict[str, Any] = {}
    if compact:
        given["compact"] = True
    if indent is not None:
        given |= {"any_whitespace": False, "indent": indent}
    if max_whitespace is not None:
        given["max_whitespace"] = max_whitespace
    if escapes != "any":
        given["escapes"] = escapes
    try:
        return laid_out(output_type, given)  # type: ignore[arg-type]
    except ValueError as error:
        raise Failure(str(error), USAGE) from error


def _reasoning(given: str) -> Any:
    """The value of the option for a call; an invalid word is refused with the other options."""
    if given.lower() in ("true", "false"):
        return given.lower() == "true"
    number = written_number(given)
    return given if number is None else number


def _check_options(drawing: dict[str, Any]) -> None:
    """Refuse values out of range as usage errors, before anything is loaded."""
    from stencilm.models.options import Options

    try:
        Options(**drawing)
    except ValueError as error:
        raise Failure(str(error), USAGE) from error


def _quiet_loading() -> None:
    """Hide the loader's bars and notices if standard error is not a terminal."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    if not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        os.environ.setdefault("TQDM_DISABLE", "1")
