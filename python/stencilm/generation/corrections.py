"""The log of corrections, extracted from a trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from stencilm.generation.trace import Corrected, Event, Rejected


class Correction(NamedTuple):
    """One place at which the grammar stepped in.

    Examples:
        >>> import stencilm
        >>> code = stencilm.Regex("[A-Z]{2}-[0-9]")
        >>> stencilm.guide(lambda prompt: "AB+1", code, "A code:").correction_log[0].rejected
        '+1'
    """

    position: int
    """The position in the response, in bytes."""
    rejected: str
    """The drafted text that was taken back; bytes that are not text are escaped."""
    candidates: tuple[str, ...]
    """What could have come there: texts, and patterns for sets of many; at most 16."""
    choice: str
    """The text that is there now."""
    means: str
    """How it was chosen; see `stencilm.generation.trace.Corrected`."""


def corrections(events: Iterable[Event]) -> Iterator[Correction]:
    """The corrections in a trace, each with the rejected text before it."""
    rejected: Rejected | None = None
    for event in events:
        if isinstance(event, Rejected):
            rejected = event
        elif isinstance(event, Corrected):
            yield Correction(
                position=0 if rejected is None else rejected.position,
                rejected="" if rejected is None else shown(rejected.text),
                candidates=event.candidates,
                choice=shown(event.text),
                means=event.means,
            )
            rejected = None


def shown(text: bytes) -> str:
    """Bytes as text; invalid UTF-8 is escaped."""
    return text.decode("utf-8", "backslashreplace")
