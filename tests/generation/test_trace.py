"""Traces are plain data: every event survives the way to JSON text and back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stencilm.generation.trace import Event, Prompt, Sampled, Stopped, Trace

token_ids = st.integers(0, 2**31)
logprobs = st.floats(allow_nan=False, max_value=0)
events = st.one_of(
    st.builds(Prompt, token_ids=st.lists(token_ids).map(tuple), text=st.binary()),
    st.builds(
        Sampled,
        token_id=token_ids,
        text=st.binary(),
        logprob=logprobs,
        allowed=st.none() | st.integers(1),
    ),
    st.builds(
        Stopped,
        reason=st.sampled_from(["stop", "length"]),
        token_id=st.none() | token_ids,
        logprob=st.none() | logprobs,
        limit=st.sampled_from([None, "max_tokens", "context"]),
    ),
)


@given(st.lists(events))
def test_a_trace_reads_back_as_it_was_written(recorded: list[Event]) -> None:
    trace = Trace(recorded)
    assert Trace.loads(trace.dumps()) == trace


def test_bytes_that_are_no_text_are_written_in_hexadecimal() -> None:
    event = Sampled(token_id=3, text=b"\xe2\x82", logprob=-0.5, allowed=None)
    assert event.to_json() == {
        "event": "sampled",
        "token_id": 3,
        "text": {"hex": "e282"},
        "logprob": -0.5,
        "allowed": None,
    }


@pytest.mark.parametrize(
    "record",
    [
        {"event": "conjured"},
        {"token_id": 1},
        {"event": "prompt", "token_ids": [1]},
        {"event": "prompt", "token_ids": [1], "text": "a", "colour": "red"},
        {"event": ["prompt"], "token_ids": [1], "text": "a"},
        {"event": "prompt", "token_ids": [1], "text": {"hex": 5}},
        {"event": "prompt", "token_ids": [1], "text": {"hexadecimal": "e2"}},
        {"event": "prompt", "token_ids": [1], "text": 5},
        {"event": "prompt", "token_ids": [1], "text": {"hexa": ""}},
        {"event": "prompt", "token_ids": [1], "text": "\ud800"},
        {"event": "prompt", "token_ids": ["1"], "text": "a"},
        {"event": "prompt", "token_ids": 10**5, "text": "a"},
        {"event": "ended", "status": None, "reason": "x"},
        {"event": []},
    ],
)
def test_a_record_of_no_event_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="event"):
        Event.from_json(record)


@pytest.mark.parametrize("text", ["{}", "[1]", json.dumps([{"event": "x"}]), "[" * 100_000])
def test_text_that_is_no_trace_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"event|nested"):
        Trace.loads(text)


def test_a_new_kind_of_event_needs_no_other_change() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Whispered(Event):
        kind: ClassVar[str] = "whispered"
        text: bytes

    assert Event.from_json(Whispered(text=b"hush").to_json()) == Whispered(text=b"hush")
