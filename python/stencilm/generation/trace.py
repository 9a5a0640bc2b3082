"""The events of a decode loop, one frozen value per step; loops record, views render.

One idea: an event is plain data, so a trace written as JSON reads back as the same events. A new
kind of event is one more subclass of `Event`; nothing else changes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Literal, get_args, get_type_hints

from stencilm.callbacks import guarded
from stencilm.errors import TraceError
from stencilm.shown import Shown, shown_value

FinishReason = Literal["stop", "length"]
Limit = Literal["max_tokens", "context"]

_KINDS: dict[str, type[Event]] = {}

# Numbers that JSON lacks, by the names under which they are written.
_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a loop; `kind` names the subclass in JSON."""

    kind: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        _KINDS[cls.kind] = cls

    def to_json(self) -> dict[str, Any]:
        """The event as JSON-ready values.

        Bytes that are UTF-8 become a string, others `{"hex": "e29c"}`: one token may hold a
        part of a character. Numbers that JSON does not have become "NaN", "Infinity" or
        "-Infinity": a model may give a token no probability at all.
        """
        values = {field.name: _to_json(getattr(self, field.name)) for field in fields(self)}
        return {"event": self.kind, **values}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Event:
        """Read an event that `to_json` wrote.

        Raises:
            TraceError: It is not the record of an event.
            TypeError: It is not a mapping.
        """
        if not isinstance(record, Mapping):
            raise TypeError(
                f"record is {shown_value(record):.60}, but must be a dict as `to_json` makes it"
            )
        values = dict(record)
        kind = values.pop("event", None)
        if not isinstance(kind, str) or kind not in _KINDS:
            known = ", ".join(sorted(_KINDS))
            raise TraceError(f"unknown trace event {kind!r}: known events are {known}")
        readers = _readers(kind)
        if set(values) != set(readers):
            found = sorted(map(str, values))
            raise TraceError(f"a {kind!r} event has fields {sorted(readers)}, not {found}")
        read = {}
        for name, reader in readers.items():
            try:
                read[name] = reader(values[name])
            except (TypeError, ValueError, KeyError):
                raise TraceError(
                    f"a {kind!r} event has {shown_value(values[name]):.60} as its {name}, which "
                    "is not what "
                    "`to_json` writes; write the trace again"
                ) from None
        return _KINDS[kind](**read)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt(Event):
    """The tokens that the model was given before it generated anything."""

    kind: ClassVar[str] = "prompt"
    token_ids: tuple[int, ...]
    text: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled(Event):
    """One token drawn from the model.

    `logprob` is the natural logarithm of the probability that the model itself gave the token:
    over its whole vocabulary, at temperature 1, before the mask. The sum over a trace is the
    model's own score of the text. `allowed` counts the tokens that the grammar let through at
    this step; None when there was no grammar, or no mask was needed.
    """

    kind: ClassVar[str] = "sampled"
    token_id: int
    text: bytes
    logprob: float
    allowed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoned(Event):
    """Tokens of the reasoning before the text.

    `logprob` is as for `Sampled`; None for tokens that were written for the model, such as its
    markers.
    """

    kind: ClassVar[str] = "reasoned"
    token_ids: tuple[int, ...]
    text: bytes
    logprob: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped(Event):
    """The end of the loop.

    `token_id` and `logprob` are those of the stop token that the model chose, None if only the end
    was possible. If `reason` is "length", `limit` says which limit cut the text.
    """

    kind: ClassVar[str] = "stopped"
    reason: FinishReason
    token_id: int | None
    logprob: float | None
    limit: Limit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced(Event):
    """Text that the grammar forced, read by the model in one pass and never drawn."""

    kind: ClassVar[str] = "forced"
    token_ids: tuple[int, ...]
    text: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Called(Event):
    """One call of a text function or an endpoint.

    `means` is how it was asked: "native", "completion", "continue", "prefill", "instruct",
    "re-ask", "logit_bias", "choice", "function", or "chooser" for the target model. Numbers of
    tokens are those of the endpoint, if it reports them; `error` is the message of the exception if
    the call failed.
    """

    kind: ClassVar[str] = "called"
    means: str
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    seconds: float
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted(Event):
    """Text that a text function or an endpoint wrote, and that fits."""

    kind: ClassVar[str] = "drafted"
    text: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected(Event):
    """Text that was drafted and taken back.

    `position` is where it was, in bytes of the response; `token_id` and `logprob` are those of the
    first token if tokens are known. A guess that the model did not confirm is not an error of the
    draft, and is not recorded here.
    """

    kind: ClassVar[str] = "rejected"
    text: bytes
    position: int
    token_id: int | None
    logprob: float | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack(Event):
    """Text at the end that was replaced, because all drafts together say something else.

    The `Corrected` after it is the replacement; `position` is where it was, in bytes.
    """

    kind: ClassVar[str] = "taken back"
    text: bytes
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected(Event):
    """The replacement of rejected text.

    `means` says who chose it: "mask" (one masked draw from the same logits), "chooser" (the target
    model), "logit_bias" and "choice" (the endpoint), "forced" (the only continuation), "nearest"
    (the candidate most like the rejected text), "shortest" (the beginning of the shortest
    completion), "skipped" (the draft continues after the rejected text), "reread" (the draft's
    contents in the grammar's form), "re-ask" (nothing yet: the endpoint was told what is wrong).
    """

    kind: ClassVar[str] = "corrected"
    text: bytes
    token_id: int | None
    logprob: float | None
    candidates: tuple[str, ...]
    means: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Healed(Event):
    """A token that spells the end of the earlier text again, and may extend beyond it.

    The first `healed` bytes of `text` were there before, in other tokens.
    """

    kind: ClassVar[str] = "healed"
    token_id: int
    text: bytes
    healed: int
    logprob: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Event):
    """A shortest completion, written because a budget ran out or a stop text came."""

    kind: ClassVar[str] = "closed"
    text: bytes
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Event):
    """The end of a guided text: "valid", "closed" or "truncated", and why it ended."""

    kind: ClassVar[str] = "ended"
    status: str
    reason: str


class Trace(Shown):
    """The events of one sequence, in order. A loop appends; everything else reads.

    Attributes:
        model: The name of the model; None if it has none.
        grammar: A short description of the grammar; None for free text.
    """

    __slots__ = ("_events", "grammar", "model")

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events = list(events)
        self.model: str | None = None
        self.grammar: str | None = None

    def append(self, event: Event) -> None:
        """Record one more event."""
        self._events.append(event)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def __getitem__(self, position: int) -> Event:
        return self._events[position]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and self._events == other._events

    __hash__ = None  # type: ignore[assignment]  # a trace grows

    def __repr__(self) -> str:
        return f"Trace({len(self._events)} events)"

    def to_json(self) -> list[dict[str, Any]]:
        """The events as a list of JSON-ready objects."""
        return [event.to_json() for event in self._events]

    def dumps(self) -> str:
        """The trace as JSON text; `Trace.loads` reads it back."""
        return json.dumps(self.to_json(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def loads(cls, text: str) -> Trace:
        """Read a trace that `dumps` wrote.

        Raises:
            TraceError: The text is not a trace, was cut short, or was changed.
            TypeError: `text` is not a str.
        """
        if not isinstance(text, (str, bytes, bytearray)):
            raise TypeError(f"text is a {type(text).__name__}, but must be the str of dumps()")
        try:
            records = json.loads(text, object_pairs_hook=_members)
        except RecursionError:
            raise TraceError(
                "a trace is a JSON list of event objects, and nests no deeper"
            ) from None
        except json.JSONDecodeError as error:
            raise TraceError(
                f"a trace is a JSON list of event objects, and this is no JSON: {error.msg}; it "
                "was cut short or changed, so write it again",
                place=f"line {error.lineno}, column {error.colno}",
            ) from None
        except ValueError as error:  # a number or a text that Python cannot read
            raise TraceError(f"a trace is a JSON list of event objects: {error}") from None
        if not isinstance(records, list) or not all(isinstance(item, dict) for item in records):
            raise TraceError("a trace is a JSON list of event objects")
        return cls(map(_event, range(len(records)), records))


def checked_listener(on_event: Any) -> Any:
    """A listener for events that passes its exceptions on, or None.

    Raises TypeError for anything else.
    """
    if on_event is None:
        return None
    if not callable(on_event):
        raise TypeError(
            f"on_event is {shown_value(on_event):.60}, but must be a function of an event, or None"
        )
    return guarded(on_event, "on_event")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name stands twice in an object")
    return members


def _event(number: int, record: Mapping[str, Any]) -> Event:
    try:
        return Event.from_json(record)
    except TraceError as error:
        raise TraceError(error.message, place=f"event {number}") from None


@cache
def _readers(kind: str) -> dict[str, Callable[[Any], Any]]:
    """Functions that read the fields of an event; each refuses values of another type."""
    from pydantic import TypeAdapter

    def reader(declared: Any) -> Callable[[Any], Any]:
        if declared is bytes:
            return _bytes_from_json
        adapter = TypeAdapter(declared)
        # The name of a number becomes that number only if the field is declared as a number.
        names = _NUMBERS if declared is float or float in get_args(declared) else {}
        return lambda value: adapter.validate_python(_from_json(value, names), strict=True)

    hints = get_type_hints(_KINDS[kind])
    return {field.name: reader(hints[field.name]) for field in fields(_KINDS[kind])}


def _to_json(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return {"hex": value.hex()}
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return list(value) if isinstance(value, tuple) else value


def _from_json(value: Any, names: Mapping[str, float]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    return tuple(value) if isinstance(value, list) else value


def _bytes_from_json(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8")
    return bytes.fromhex(value["hex"])
