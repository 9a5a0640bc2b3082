"""A trace as segments of text, each with its role; every rendering is made of these."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

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
)

Part: TypeAlias = Literal[
    "prompt", "reasoning", "draft", "masked", "chosen", "removed", "healed", "forced", "closed"
]

LEGEND: dict[Part, str] = {
    "reasoning": "reasoning",
    "draft": "drafted freely",
    "masked": "chosen under the mask",
    "chosen": "chosen where the draft left the grammar",
    "removed": "removed",
    "healed": "spelled anew",
    "forced": "forced by the grammar",
    "closed": "closed by a shortest completion",
}


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of text.

    Attributes:
        part: Its role.
        text: Its bytes; a token may hold a part of a character.
        note: Facts for a reader, one per line.
        probability: The probability that the model itself gave the token, from 0 to 1; None if it
            gave none, or for several tokens.
    """

    part: Part
    text: bytes
    note: str
    probability: float | None = None


def segments(events: Iterable[Event]) -> list[Segment]:
    """The segments of a trace, in reading order."""
    found: list[Segment] = []
    calls = 0
    before_healing: int | None = None  # the number of segments before the first of these tokens
    for event in events:
        if isinstance(event, Called):
            calls += 1
        if not isinstance(event, Healed):
            before_healing = None
        else:
            before_healing = len(found) if before_healing is None else before_healing
            _take_back(found, event.healed, before_healing)
        if isinstance(event, TakenBack):
            _take_back(found, len(event.text), len(found))
        segment = _segment(event, calls)
        if segment is not None:
            found.append(segment)
    return found


def standing(found: Iterable[Segment]) -> str:
    """The text at the end, without the prompt and the reasoning."""
    left_out = ("prompt", "reasoning", "removed")
    return readable(b"".join(one.text for one in found if one.part not in left_out))


def written(events: Iterable[Event]) -> int:
    """The number of tokens in a trace, without those of the prompt."""
    count = 0
    for event in events:
        if isinstance(event, (Sampled, Healed)):
            count += 1
        elif isinstance(event, (Forced, Reasoned)):
            count += len(event.token_ids)
        elif isinstance(event, (Rejected, Corrected)):
            count += event.token_id is not None
        elif isinstance(event, Called):
            count += event.output_tokens
    return count


def outcome(events: Iterable[Event]) -> str | None:
    """How the text ended, in one line; None if it has not."""
    for event in events:
        if isinstance(event, Ended):
            return f"{event.status}: {event.reason}"
        if isinstance(event, Stopped):
            cut = f", cut by the limit of {event.limit}" if event.limit else ""
            return f"{event.reason}{cut}"
    return None


def readable(text: bytes) -> str:
    """Bytes as text; invalid UTF-8, such as half a character, is escaped."""
    return text.decode("utf-8", "backslashreplace")


def _segment(event: Event, calls: int) -> Segment | None:
    if isinstance(event, Prompt):
        return Segment("prompt", event.text, "the prompt")
    if isinstance(event, Reasoned):
        note = _lines("reasoning", _probability(event.logprob))
        return Segment("reasoning", event.text, note, _share(event.logprob))
    if isinstance(event, Sampled):
        note = _lines(_token(event.token_id, event.text), _probability(event.logprob))
        if event.allowed is None:
            return Segment("draft", event.text, note, _share(event.logprob))
        note = _lines(note, f"one of {event.allowed:,} allowed tokens")
        return Segment("masked", event.text, note, _share(event.logprob))
    if isinstance(event, Drafted):
        return Segment("draft", event.text, f"call {calls}")
    if isinstance(event, Forced):
        count = len(event.token_ids)
        note = "the grammar leaves no choice"
        return Segment("forced", event.text, _lines(note, f"{count} tokens" if count else None))
    if isinstance(event, Rejected):
        note = _lines(_token(event.token_id, event.text), _probability(event.logprob), event.reason)
        return Segment("removed", event.text, note)
    if isinstance(event, TakenBack):
        return Segment("removed", event.text, "all drafts together say something else")
    if isinstance(event, Corrected):
        shown = ", ".join(event.candidates[:8])
        note = _lines(
            _token(event.token_id, event.text),
            _probability(event.logprob),
            f"chosen by: {event.means}",
            f"candidates: {shown}" if shown else None,
        )
        return Segment("chosen", event.text, note, _share(event.logprob)) if event.text else None
    if isinstance(event, Healed):
        spelled = readable(event.text[: event.healed])
        note = _lines(
            _token(event.token_id, event.text),
            _probability(event.logprob),
            f"spells {spelled!r} anew",
        )
        return Segment("healed", event.text, note, _share(event.logprob))
    if isinstance(event, Closed):
        return Segment("closed", event.text, event.reason)
    return None


def _take_back(found: list[Segment], count: int, end: int) -> None:
    """Drop the last `count` bytes of the first `end` segments, not counting removed text."""
    for place in range(end - 1, -1, -1):
        if count == 0:
            return
        segment = found[place]
        if segment.part == "removed":
            continue
        cut = min(count, len(segment.text))
        # Bytes removed from the prompt were removed before it was recorded.
        if segment.part != "prompt":
            found[place] = replace(segment, text=segment.text[: len(segment.text) - cut])
        count -= cut


def _token(token_id: int | None, text: bytes) -> str | None:
    return None if token_id is None else f"token {token_id} {readable(text)!r}"


def _probability(logprob: float | None) -> str | None:
    share = _share(logprob)
    if logprob is None or share is None or not math.isfinite(logprob):
        return None
    return f"probability {share:.3g}"


def _share(logprob: float | None) -> float | None:
    return None if logprob is None or math.isnan(logprob) else math.exp(min(0.0, logprob))


def _lines(*facts: str | None) -> str:
    return "\n".join(fact for fact in facts if fact)


def parts_of(found: Iterable[Segment]) -> Iterator[Part]:
    """The parts that occur, in the order of the legend."""
    there = {segment.part for segment in found}
    return (part for part in LEGEND if part in there)
