"""`stencilm generate --strategy guide`: the same text, drafted freely and corrected."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from stencilm.cli.failure import USAGE, Failure
from stencilm.cli.outputs import STANDARD_OUTPUT, write_output
from stencilm.cli.view import print_text, trace_lines
from stencilm.errors import StencilError
from stencilm.generation.trace import Event
from stencilm.shown import shown_value
from stencilm.views.characters import json_text, visible

if TYPE_CHECKING:
    from stencilm.endpoints.api_model import ApiModel

STRATEGIES = ("auto", "mask", "guide")
_ENDPOINTS = ("openai:", "anthropic:")


def is_endpoint(model: str) -> bool:
    """Whether this names a model behind an API."""
    return model.startswith(_ENDPOINTS)


def chosen_strategy(strategy: str, model: str) -> str:
    """`auto` leaves the choice to the model: masks if its logits are at hand."""
    if strategy not in STRATEGIES:
        raise Failure(
            f"--strategy is {shown_value(strategy):.80}, "
            f"but must be one of {', '.join(STRATEGIES)}",
            USAGE,
        )
    if strategy == "mask" and is_endpoint(model):
        raise Failure(f"{model} shows no logits to mask: use --strategy guide", USAGE)
    return strategy


def shown_live(wanted: bool, most: int) -> AbstractContextManager[Callable[[Event], None] | None]:
    """Shows the text while it is written, if wanted or if standard error is a terminal."""
    if not wanted and not sys.stderr.isatty():
        return nullcontext()
    from stencilm.views.terminal import live

    return live(most)


def write_html(path: str | None, drawn: Callable[[], str]) -> None:
    """Write a drawing to a file, or to standard output for "-"."""
    if path is not None:
        write_output(path, drawn())


def generate_guided(
    model: str,
    prompt: str,
    output_type: Any,
    *,
    grammar: Any,
    max_tokens: int,
    temperature: float | None,
    top_p: float,
    seed: int | None,
    stop: list[str],
    reasoning: Any,
    live: bool,
    as_json: bool,
    trace: bool,
    html: str | None,
) -> int:
    """Run `guide`, and print the text; Failure if it is not what the model wrote.

    `grammar` is the grammar of the output type if limits were given for it.
    """
    from stencilm.grammars.outputs import resolve
    from stencilm.guiding.api import guide
    from stencilm.guiding.task import Budget
    from stencilm.guiding.values import generation_of, unwritten
    from stencilm.models.model import load

    loaded = endpoint(model) if is_endpoint(model) else load(model)
    with shown_live(live, max_tokens) as show:
        guided = guide(
            loaded,
            output_type if grammar is None else grammar,
            prompt,
            temperature=temperature,
            top_p=top_p,
            seed=seed,
            stop_at=stop,
            reasoning=reasoning,
            max_grammar_corrections=max_tokens,
            budget=Budget(tokens=max_tokens),
            on_event=show,
        )
    write_html(html, lambda: guided.html)
    output = resolve(output_type)
    reason = None if output.accepts_cut_text and guided.response else unwritten(guided)
    read = generation_of(guided, output, completed=True) if reason is None else None
    # Errors of the type's own validators or serializers.
    error: StencilError | None = None if read is None else read.error
    if as_json:
        value = None
        try:
            if read is not None and error is None:
                value = output.dump(read.value)
        except StencilError as raised:
            error = raised
        record = guided.to_json(trace=trace) | {"value": value}
        if error is not None:
            record["error"] = str(error)
        print(json_text(record))
    elif trace:
        for line in trace_lines(guided.trace):
            print(visible(line), file=sys.stderr)
    if reason is not None:
        raise Failure(f"the text is not what the model wrote: {reason}") from guided.error
    if error is not None:
        raise error
    if not as_json and html != STANDARD_OUTPUT:
        print_text(guided.response)
    return 0


def endpoint(model: str) -> ApiModel:
    """The model behind an API of this name, with a client from the environment."""
    provider, _, name = model.partition(":")
    if not name:
        raise Failure(f"{model!r} names no model: write {model}NAME", USAGE)
    if provider == "openai":
        from stencilm.endpoints.openai import from_openai

        return from_openai(None, name)
    from stencilm.endpoints.anthropic import from_anthropic

    return from_anthropic(None, name)
