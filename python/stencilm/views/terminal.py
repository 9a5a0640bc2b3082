"""A trace in a terminal: as it happens, or all at once.

One idea: a terminal has only one writer. If a text is shown while it is generated, the same writer
draws the bar below it, so that neither disturbs the other. If the output is not a terminal, only
the text is printed, without colours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stencilm.generation.trace import Called, Event, Forced, Healed, Prompt, Reasoned, Sampled
from stencilm.views.characters import visible
from stencilm.views.segments import LEGEND, Part, outcome, parts_of, readable, segments

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

STYLES: dict[Part, str] = {
    "prompt": "dim",
    "reasoning": "yellow",
    "draft": "green",
    "masked": "cyan",
    "chosen": "bold blue",
    "removed": "red strike",
    "healed": "yellow underline",
    "forced": "bright_black",
    "closed": "magenta italic",
}


def drawn(events: Iterable[Event], *, legend: bool = True) -> Text:
    """A trace as coloured text, with a legend and how it ended."""
    from rich.text import Text

    events = list(events)
    found = segments(events)
    text = Text()
    if legend:
        for part in parts_of(found):
            text.append(LEGEND[part], style=STYLES[part]).append("  ")
        text.append("\n\n")
    for segment in found:
        text.append(visible(readable(segment.text)), style=STYLES[segment.part])
    end = outcome(events)
    if end is not None:
        text.append(f"\n\n{visible(end)}", style="dim")
    return text


def printer(stream: Any = None) -> Callable[[Event], None]:
    """Print events as they happen, to standard error by default.

    A healed token is printed with what it adds; the text that it replaces is already on the screen.
    """
    from rich.console import Console

    console = Console(file=stream or sys.stderr, highlight=False, soft_wrap=True)

    def show(event: Event) -> None:
        if isinstance(event, Prompt):
            return
        if isinstance(event, Called):
            if event.error is not None:
                failed = visible(event.error, keep="")
                console.print(f"\n[call failed: {failed}]", style="red", markup=False)
            return
        for segment in segments([event]):
            if segment.part == "removed" and not console.is_terminal:
                continue  # without colours it would look like the remaining text
            text = segment.text[event.healed :] if isinstance(event, Healed) else segment.text
            shown = visible(readable(text))
            console.print(shown, style=STYLES[segment.part], end="", markup=False)
        end = outcome([event])
        if end is not None:
            console.print(f"\n{visible(end)}", style="dim", markup=False)

    return show


@contextmanager
def live(most: int, stream: Any = None) -> Iterator[Callable[[Event], None]]:
    """A context with a function that shows events as they happen, above a progress bar.

    While a text is longer than the screen, its end is shown; the whole text follows when it is
    done. If the output is not a terminal, it is `printer`.

    Args:
        most: The most tokens of the text.
        stream: The output; standard error by default.
    """
    from rich.console import Console

    console = Console(file=stream or sys.stderr, highlight=False)
    if not console.is_terminal:
        yield printer(stream)
        return
    from rich.live import Live
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("writing"), BarColumn(), MofNCompleteColumn(), TextColumn("tokens"))
    bar = Progress(*columns, console=console)
    task = bar.add_task("writing", total=most)
    events: list[Event] = []
    has_ended = False

    def show(event: Event) -> None:
        events.append(event)
        bar.advance(task, written(event))

    def view() -> RenderableType:
        text = drawn(_without_prompt(events), legend=False)
        return text if has_ended else _beside(text, bar, console)

    with Live(console=console, get_renderable=view, redirect_stdout=False):
        try:
            yield show
        finally:
            has_ended = True


def written(event: Event) -> int:
    """The number of tokens that an event added to the text."""
    if isinstance(event, Sampled):
        return 1
    return len(event.token_ids) if isinstance(event, (Forced, Reasoned)) else 0


def _without_prompt(events: Iterable[Event]) -> list[Event]:
    return [event for event in events if not isinstance(event, Prompt)]


def _beside(text: Text, bar: RenderableType, console: Console) -> RenderableType:
    """The last lines of a text that fit on the screen, and a bar below them."""
    from rich.console import Group

    room = max(1, console.height - 2)
    return Group(*list(text.wrap(console, console.width))[-room:], bar)
