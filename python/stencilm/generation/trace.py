"""What a decode loop did, one frozen event a step; views draw traces, loops never draw.

One idea: an event is plain data, so a trace written as JSON reads back as the same events.
A new kind of event is one more subclass of `Event`; nothing else changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

FinishReason = Literal["stop", "length"]
Limit = Literal["max_tokens", "context"]

_KINDS: dict[str, type[Event]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened in a loop; `kind` names the subclass in JSON."""

    kind: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        _KINDS[cls.kind] = cls

    def to_json(self) -> dict[str, Any]:
        """The event as JSON-ready values.

        Bytes that are UTF-8 become a string, others `{"hex": "e29c"}`: one token may hold a
        part of a character.
        """
        values = {field.name: _to_json(getattr(self, field.name)) for field in fields(self)}
        return {"event": self.kind, **values}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Event:
        """The event that `to_json` wrote. Raises ValueError for any other record."""
        values = dict(record)
        kind = values.pop("event", None)
        if kind not in _KINDS:
            known = ", ".join(sorted(_KINDS))
            raise ValueError(f"unknown trace event {kind!r}: known events are {known}")
        types = _field_types(_KINDS[kind])
        if set(values) != set(types):
            raise ValueError(f"a {kind!r} event has fields {sorted(types)}, not {sorted(values)}")
        return _KINDS[kind](**{name: _from_json(values[name], types[name]) for name in types})


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt(Event):
    """The tokens that the model was given before it wrote anything."""

    kind: ClassVar[str] = "prompt"
    token_ids: tuple[int, ...]
    text: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled(Event):
    """One token drawn from the model.

    `logprob` is the natural logarithm of the probability that the model itself gave the token:
    over its whole vocabulary, at temperature 1, before the mask. The sum over a trace is the
    model's own score of the text. `allowed` counts the tokens that the grammar let through at
    this step; None when there was no grammar.
    """

    kind: ClassVar[str] = "sampled"
    token_id: int
    text: bytes
    logprob: float
    allowed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped(Event):
    """The end of the loop.

    `token_id` and `logprob` are those of the stop token that the model chose, None where nothing
    but the end was possible. `limit` says which limit cut the text where `reason` is "length".
    """

    kind: ClassVar[str] = "stopped"
    reason: FinishReason
    token_id: int | None
    logprob: float | None
    limit: Limit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced(Event):
    """Text that the grammar left no choice about, read by the model in one go and never drawn."""

    kind: ClassVar[str] = "forced"
    token_ids: tuple[int, ...]
    text: bytes


class Trace:
    """The events of one sequence, in order. A loop appends; everybody else reads."""

    __slots__ = ("_events",)

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events = list(events)

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
        return json.dumps(self.to_json(), ensure_ascii=False)

    @classmethod
    def loads(cls, text: str) -> Trace:
        """The trace that `dumps` wrote. Raises ValueError for text that is not a trace."""
        records = json.loads(text)
        if not isinstance(records, list) or not all(isinstance(item, dict) for item in records):
            raise ValueError("a trace is a JSON list of event objects")
        return cls(Event.from_json(record) for record in records)


def _field_types(kind: type[Event]) -> dict[str, Any]:
    return {field.name: field.type for field in fields(kind)}


def _to_json(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return {"hex": value.hex()}
    return list(value) if isinstance(value, tuple) else value


def _from_json(value: Any, declared: Any) -> Any:
    if declared in (bytes, "bytes"):  # the name, where annotations are not evaluated
        return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value.encode("utf-8")
    return tuple(value) if isinstance(value, list) else value
