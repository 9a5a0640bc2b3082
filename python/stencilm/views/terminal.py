"""A trace in a terminal: as it happens, or all at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from stencilm.generation.trace import Called, Event, Healed, Prompt
from stencilm.views.characters import visible
from stencilm.views.segments import LEGEND, Part, outcome, parts_of, readable, segments

if TYPE_CHECKING:
    from rich.text import Text

STYLES: dict[Part, str] = {
    "prompt": "dim",
    "reasoning": "yellow",
    "draft": "green",
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
    """Prints events as they happen, to standard error where no stream is given.

    A healed token is printed with what it adds; what stood there before is on the screen already.
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
            text = segment.text[event.healed :] if isinstance(event, Healed) else segment.text
            shown = visible(readable(text))
            console.print(shown, style=STYLES[segment.part], end="", markup=False)
        end = outcome([event])
        if end is not None:
            console.print(f"\n{visible(end)}", style="dim", markup=False)

    return show
