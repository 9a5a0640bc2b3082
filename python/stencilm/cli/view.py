"""How the terminal shows a run: a progress bar while it runs, a trace afterwards."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stencilm.generation.trace import (
    Called,
    Closed,
    Corrected,
    Drafted,
    Ended,
    Event,
    Forced,
    Healed,
    Prompt,
    Reasoned,
    Rejected,
    Sampled,
    Stopped,
    TakenBack,
    Trace,
)
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
    """One line for each event: what it is, its text, and what else it says."""
    for event in trace:
        if isinstance(event, Prompt):
            yield f"prompt   {len(event.token_ids)} tokens"
            continue
        text = event.text if isinstance(event, _WITH_TEXT) else b""
        shown = repr(text.decode("utf-8", "backslashreplace")) if text else ""
        parts = [f"{event.kind:<8}", f"{shown:<24}" if shown else "", _rest(event)]
        yield " ".join(filter(None, parts)).rstrip()


_WITH_TEXT = (
    Sampled, Reasoned, Forced, Drafted, Rejected, TakenBack, Corrected, Healed, Closed
)  # fmt: skip


def _rest(event: Event) -> str:
    """What an event says beside its text."""
    if isinstance(event, Sampled):
        allowed = "all" if event.allowed is None else str(event.allowed)
        return f"logprob {event.logprob:8.3f}  of {allowed} allowed"
    if isinstance(event, (Reasoned, Forced)):
        return f"{len(event.token_ids)} tokens"
    if isinstance(event, Healed):
        return f"logprob {event.logprob:8.3f}  in place of {event.healed} bytes"
    if isinstance(event, Called):
        failure = "" if event.error is None else f", failed: {event.error}"
        tokens = f"{event.prompt_tokens} tokens given, {event.output_tokens} written"
        return f"{event.means}: {tokens}, {event.seconds:.2f} s{failure}"
    if isinstance(event, Corrected):
        named = ", ".join(event.candidates[:_MOST_CANDIDATES])
        return f"{event.means}, of {named}" if named else event.means
    if isinstance(event, (Rejected, Closed)):
        return event.reason
    if isinstance(event, Stopped):
        return event.reason if event.limit is None else f"{event.reason} ({event.limit})"
    return f"{event.status}: {event.reason}" if isinstance(event, Ended) else ""


_MOST_CANDIDATES = 8
