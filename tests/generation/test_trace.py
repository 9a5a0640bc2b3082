"""Traces are plain data: every event survives the way to JSON text and back."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stencilm.errors import TraceError
from stencilm.generation.trace import Corrected, Event, Prompt, Sampled, Stopped, Trace
from stencilm.views import html

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


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def test_logprobs_that_json_does_not_have_are_read_back() -> None:
    common: dict[str, Any] = {"token_id": None, "candidates": ("NaN",), "means": "Infinity"}
    trace = Trace(
        [
            Sampled(token_id=1, text=b"NaN", logprob=math.nan, allowed=None),
            Sampled(token_id=1, text=b"a", logprob=-math.inf, allowed=3),
            Corrected(text=b"-Infinity", logprob=math.inf, **common),
        ]
    )
    written = json.loads(trace.dumps(), parse_constant=_no_constant)
    assert [record["logprob"] for record in written] == ["NaN", "-Infinity", "Infinity"]
    read = Trace.loads(trace.dumps())
    assert repr(list(read)) == repr(list(trace))  # NaN is equal to nothing
    assert html.page(read) == html.page(trace)
    # Words are numbers where a number is declared, and in this spelling alone.
    for wrong in (trace.dumps().replace(": 1,", ': "NaN",'), trace.dumps().replace("-Inf", "-inf")):
        with pytest.raises(TraceError, match=r"as its (token_id|logprob), which is not what"):
            Trace.loads(wrong)


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
    with pytest.raises(ValueError, match="event") as caught:
        Event.from_json(record)
    assert isinstance(caught.value, TraceError)


WRITTEN = json.dumps([{"event": "prompt", "token_ids": [1], "text": "a"}])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "a trace is a JSON list of event objects"),
        ("[1]", "a trace is a JSON list of event objects"),
        (json.dumps([{"event": "x"}]), "event 0: unknown trace event 'x'"),
        ("[" * 100_000, "nests no deeper"),
        ("", "line 1, column 1: .* this is no JSON: Expecting value; .* write it again"),
        ("a trace", "line 1, column 1: a trace is a JSON list"),
        (f"{WRITTEN} {WRITTEN}", "line 1, column .*: a trace is a JSON list"),
        (WRITTEN.replace("1", "1" * 5000), "a trace is a JSON list of event objects: .*digits"),
        (WRITTEN.replace('"text"', '"text": "b", "text"'), "a name stands twice in an object"),
        (WRITTEN.replace("1", "[" * 500 + "]" * 500), "event 0: a 'prompt' event has"),
        ("\ufeff[]", "line 1, column 1: .*BOM"),
        (b"\xff", "a trace is a JSON list of event objects: "),
    ],
)
def test_text_that_is_no_trace_is_refused(text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        Trace.loads(text)


def test_a_text_cut_short_anywhere_is_no_trace() -> None:
    for end in range(len(WRITTEN)):
        with pytest.raises(TraceError, match="trace"):
            Trace.loads(WRITTEN[:end])


def test_what_is_no_text_or_record_is_named() -> None:
    wrong: Any
    for wrong in (None, 5, []):
        with pytest.raises(TypeError, match=r"text is a \w+, but must be the str of dumps\(\)"):
            Trace.loads(wrong)
        with pytest.raises(TypeError, match=r"record is .*, but must be a dict as `to_json`"):
            Event.from_json(wrong)


def test_a_new_kind_of_event_needs_no_other_change() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Whispered(Event):
        kind: ClassVar[str] = "whispered"
        text: bytes

    assert Event.from_json(Whispered(text=b"hush").to_json()) == Whispered(text=b"hush")
