"""How the terminal shows a run: a progress bar while it runs, a trace afterwards."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stencilm.generation.trace import Event, Forced, Prompt, Reasoned, Sampled, Stopped, Trace
from stencilm.views.characters import visible


def print_text(text: str) -> None:
    """Print a result: as it is for a program, with its control characters escaped for a reader."""
    print(visible(text) if sys.stdout.isatty() else text)


@contextmanager
def progress(max_tokens: int) -> Iterator[Callable[[Event], None]]:
    """Yields a function that takes events and advances a progress bar on standard error.

    If standard error is not a terminal, nothing is drawn.
    """
    if not sys.stderr.isatty():
        yield lambda event: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from stencilm.views.terminal import written

    columns = (TextColumn("writing"), BarColumn(), MofNCompleteColumn(), TextColumn("tokens"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("writing", total=max_tokens)

        yield lambda event: bar.advance(task, written(event))


def trace_lines(trace: Trace) -> Iterator[str]:
    """One line for each event: the token's text, its probability, how many were allowed."""
    for event in trace:
        if isinstance(event, Prompt):
            yield f"prompt   {len(event.token_ids)} tokens"
        elif isinstance(event, Sampled):
            text = event.text.decode("utf-8", "backslashreplace")
            allowed = "all" if event.allowed is None else str(event.allowed)
            yield f"sampled  {text!r:<24} logprob {event.logprob:8.3f}  of {allowed} allowed"
        elif isinstance(event, Reasoned):
            text = event.text.decode("utf-8", "backslashreplace")
            yield f"reasoned {text!r:<24} {len(event.token_ids)} tokens"
        elif isinstance(event, Forced):
            text = event.text.decode("utf-8", "backslashreplace")
            yield f"forced   {text!r:<24} {len(event.token_ids)} tokens"
        elif isinstance(event, Stopped):
            cause = "" if event.limit is None else f" ({event.limit})"
            yield f"stopped  {event.reason}{cause}"
        else:
            yield f"{event.kind}  {event.to_json()}"
