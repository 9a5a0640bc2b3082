"""Reasoning that a provider does itself: what it is told, and what is given back of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

import stencilm
from endpoints.scripted import Script, Thought, served
from stencilm.endpoints.capabilities import PRESETS, known_of
from stencilm.endpoints.reasoning import reasoning_arguments

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

TYPE = stencilm.JsonSchema(
    {
        "type": "object",
        "properties": {"answer": {"type": "integer"}},
        "required": ["answer"],
        "additionalProperties": False,
    }
)
TEXT = json.dumps({"answer": 42})
THOUGHT = "Six times seven is forty-two, as everybody knows."

# What is sent for True, False, and 4,000 and 10,000 tokens; None for nothing.
SENT: list[tuple[str, str, Any, Any, Any, Any]] = [
    ("openai-reasoning", "gpt-5-mini",
     {"reasoning_effort": "medium"}, {"reasoning_effort": "minimal"},
     {"reasoning_effort": "low"}, {"reasoning_effort": "medium"}),
    ("openai-reasoning", "gpt-5.1",
     {"reasoning_effort": "medium"}, {"reasoning_effort": "none"},
     {"reasoning_effort": "low"}, {"reasoning_effort": "medium"}),
    ("openai-reasoning", "o3",
     {"reasoning_effort": "medium"}, {"reasoning_effort": "low"},
     {"reasoning_effort": "low"}, {"reasoning_effort": "medium"}),
    ("openai-responses", "gpt-5-mini",
     {"reasoning": {"effort": "medium", "summary": "auto"}}, {"reasoning": {"effort": "minimal"}},
     {"reasoning": {"effort": "low", "summary": "auto"}},
     {"reasoning": {"effort": "medium", "summary": "auto"}}),
    ("gemini", "gemini-3-flash",
     {"reasoning_effort": "medium"}, {"reasoning_effort": "minimal"},
     {"reasoning_effort": "low"}, {"reasoning_effort": "medium"}),
    ("deepseek", "deepseek-chat",
     {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}},
     {"thinking": {"type": "enabled"}}, {"thinking": {"type": "enabled"}}),
    ("openrouter", "anything",
     {"reasoning": {"enabled": True}}, {"reasoning": {"enabled": False}},
     {"reasoning": {"max_tokens": 4000}}, {"reasoning": {"max_tokens": 10000}}),
    ("groq", "openai/gpt-oss-20b",
     {"reasoning_effort": "medium"}, {"reasoning_effort": "low"},
     {"reasoning_effort": "low"}, {"reasoning_effort": "medium"}),
    ("vllm-reasoning", "qwen3",
     {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}},
     {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
     {"chat_template_kwargs": {"enable_thinking": True, "thinking": True},
      "thinking_token_budget": 4000},
     {"thinking_token_budget": 10000}),
    ("sglang-reasoning", "qwen3",
     {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}},
     {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
     {"custom_params": {"thinking_budget": 4000}}, {"custom_params": {"thinking_budget": 10000}}),
    ("anthropic", "claude-haiku-4-5",
     {"thinking": {"type": "enabled", "budget_tokens": 2048}}, {"thinking": {"type": "disabled"}},
     {"thinking": {"type": "enabled", "budget_tokens": 4000}},
     {"thinking": {"type": "enabled", "budget_tokens": 10000}}),
    ("anthropic", "claude-opus-4-6",
     {"thinking": {"type": "adaptive", "display": "summarized"}},
     {"thinking": {"type": "disabled"}},
     {"thinking": {"type": "adaptive", "display": "summarized"}, "effort": "low"},
     {"thinking": {"type": "adaptive", "display": "summarized"}, "effort": "medium"}),
    ("anthropic", "claude-mythos-5", {"thinking": {"type": "adaptive", "display": "summarized"}},
     None, {"effort": "low"}, {"effort": "medium"}),
]  # fmt: skip

FIELDS = {"reasoning", "reasoning_effort", "thinking", "chat_template_kwargs", "custom_params",
          "thinking_token_budget", "effort"}  # fmt: skip


@contextmanager
def endpoint(
    preset: Any, name: str, answer: Any = None, *, is_async: bool = False
) -> Iterator[tuple[Any, Script]]:
    if answer is None:
        answer = Thought.of(TEXT, THOUGHT)
    with served(lambda body, number: answer) as (address, script):
        if preset == "anthropic":
            kind: Any = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
            client = kind(base_url=address, api_key="k", max_retries=0)
            yield stencilm.from_anthropic(client, name), script
            return
        kind = openai.AsyncOpenAI if is_async else openai.OpenAI
        client = kind(base_url=f"{address}/v1", api_key="k", max_retries=0)
        yield stencilm.from_openai(client, name, capabilities=preset), script


def said(body: dict[str, Any]) -> dict[str, Any]:
    """What a request says of reasoning."""
    found = {field: body[field] for field in FIELDS if field in body}
    effort = body.get("output_config", {}).get("effort")
    return found | ({"effort": effort} if effort else {})


@pytest.mark.parametrize("row", SENT, ids=lambda row: f"{row[0]} {row[1]}")
def test_a_provider_is_told_in_its_own_way(row: tuple[str, str, Any, Any, Any, Any]) -> None:
    preset, name, *expected = row
    with endpoint(preset, name) as (model, script):
        for reasoning in (True, False, 4_000, 10_000):
            model("What is 6 x 7?", TYPE, reasoning=reasoning, max_tokens=50)
        model("What is 6 x 7?", TYPE, max_tokens=50)
    bodies = [body for _, body in script.requests]
    assert len(bodies) == 5  # nothing is asked twice
    assert not said(bodies[4])  # "auto" says nothing
    for body, wanted in zip(bodies[:4], expected, strict=True):
        told = said(body)
        assert (not told) is (wanted is None)
        for field, value in (wanted or {}).items():
            assert told[field] == value
    # The bound is that of the answer, so a provider that counts both is given room for both.
    bounds = [body.get("max_tokens", body.get("max_completion_tokens")) or
              body["max_output_tokens"] for body in bodies]  # fmt: skip
    assert bounds == [50 + 2_048, 50, 50 + 4_000, 50 + 10_000, 50]


def test_fields_of_ones_own_are_sent_beside_those_of_the_provider() -> None:
    """Both have members of the same objects, and a constraint is not lost for an option of it."""
    own = (
        ("chat_template_kwargs", {"style": "short", "thinking": False}),
        ("structured_outputs", {"disable_any_whitespace": True}),
        ("user", "me"),
    )
    known = replace(PRESETS["vllm-reasoning"], extra_body=own)
    with endpoint(known, "m") as (model, script):
        assert model("What is 6 x 7?", TYPE, reasoning=True) == {"answer": 42}
    ((_, body),) = script.requests
    assert body["chat_template_kwargs"] == {
        "style": "short", "thinking": True, "enable_thinking": True,
    }  # fmt: skip
    assert body["structured_outputs"] == {"json": TYPE.schema, "disable_any_whitespace": True}
    assert body["user"] == "me"
    assert known.extra_body[0][1] == {"style": "short", "thinking": False}


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize(
    ("preset", "name"),
    [
        ("openai-reasoning", "o3"),
        ("openai-responses", "gpt-5-mini"),
        ("deepseek", "deepseek-chat"),
        ("groq", "openai/gpt-oss-20b"),
        ("vllm", "m"),
        ("vllm-reasoning", "m"),
        ("anthropic", "claude-opus-4-6"),
    ],
)
def test_the_reasoning_is_given_back(preset: str, name: str, field: str, is_async: bool) -> None:
    answer = Thought.of(TEXT, THOUGHT, field)
    with endpoint(preset, name, answer, is_async=is_async) as (model, script):
        if is_async:
            found = asyncio.run(model.agenerate("What is 6 x 7?", TYPE))
        else:
            found = model.generate("What is 6 x 7?", TYPE)
    assert (found.value, found.text, found.reasoning) == ({"answer": 42}, TEXT, THOUGHT)
    assert found.guided.reasoning == THOUGHT
    stats = found.stats
    assert 0 < stats.reasoning_tokens < 5 and stats.tokens + stats.reasoning_tokens == 5
    assert len(script.requests) == 1


def test_parts_of_a_message_are_read_as_they_are() -> None:
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]},
        {"type": "text", "text": TEXT},
    ]
    with endpoint("mistral", "magistral", [({"content": content}, "stop")]) as (model, _):
        found = model.generate("What is 6 x 7?", TYPE)
    assert (found.value, found.reasoning) == ({"answer": 42}, THOUGHT)


def test_no_reasoning_is_none() -> None:
    with endpoint("openai", "m", TEXT) as (model, _):
        found = model.generate("What is 6 x 7?", TYPE)
    assert found.reasoning is None and found.stats.reasoning_tokens == 0


def test_a_stream_shows_the_answer_alone() -> None:
    for preset, name in (("deepseek", "m"), ("openai-responses", "gpt-5"), ("anthropic", "m")):
        with endpoint(preset, name) as (model, _):
            shown = list(model.stream("What is 6 x 7?", TYPE, reasoning=True))
        assert shown[-1] == {"answer": 42}
        assert all(isinstance(value, dict) for value in shown)


def test_a_budget_that_a_provider_refuses_is_an_error() -> None:
    refused = pytest.raises(stencilm.UnsupportedFeature, match="1,024 at least")
    with endpoint("anthropic", "claude-haiku-4-5") as (model, script), refused:
        model("What is 6 x 7?", TYPE, reasoning=500)
    assert not script.requests


def test_guide_takes_it_as_well() -> None:
    with endpoint("deepseek", "m") as (model, script):
        guided = stencilm.guide(model, TYPE, "What is 6 x 7?", reasoning=True)
    assert (guided.response, guided.reasoning) == (TEXT, THOUGHT)
    assert guided.to_json()["reasoning"] == THOUGHT
    assert script.requests[0][1]["thinking"] == {"type": "enabled"}
    assert guided.usage.reasoning_tokens + guided.usage.output_tokens == 5


def test_what_is_sent_depends_on_the_name() -> None:
    assert known_of("openai-responses", "gpt-4o").reasoning is None
    assert known_of("groq", "llama").reasoning is None
    assert known_of("vllm", "openai/gpt-oss-20b").reasoning == "effort"
    assert known_of("compatible", "openai/gpt-oss-20b").reasoning is None
    ways = {known.reasoning for known in PRESETS.values()}
    for way in ways:
        for reasoning in ("auto", "draft"):
            assert reasoning_arguments(way, "m", reasoning) == {}
