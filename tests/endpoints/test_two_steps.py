"""Reasoning and drafts of models behind an API: asked for first, and told in the question after."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import stencilm
from endpoints.scripted import served

openai = pytest.importorskip("openai")

TYPE = stencilm.JsonSchema(
    {
        "type": "object",
        "properties": {"answer": {"type": "integer"}},
        "required": ["answer"],
        "additionalProperties": False,
    }
)


def answer(body: dict[str, Any], number: int) -> Any:
    if "response_format" in body:
        return json.dumps({"answer": 42})
    return "Six times seven is 42."


@pytest.mark.parametrize("reasoning", [True, 30, "draft"])
@pytest.mark.parametrize("is_async", [True, False])
def test_a_model_is_asked_twice(reasoning: Any, is_async: bool) -> None:
    with served(answer) as (address, script):
        kind = openai.AsyncOpenAI if is_async else openai.OpenAI
        client = kind(base_url=f"{address}/v1", api_key="k", max_retries=0)
        model = stencilm.from_openai(client, "m", capabilities="openai")
        options: dict[str, Any] = {"reasoning": reasoning, "max_tokens": 50}
        if is_async:
            found = asyncio.run(model.agenerate("What is 6 x 7?", TYPE, **options))
        else:
            found = model.generate("What is 6 x 7?", TYPE, **options)
    assert found.value == {"answer": 42}
    assert found.reasoning == "Six times seven is 42."
    assert found.stats.reasoning_tokens == 5
    (_, first), (_, second) = script.requests
    assert "response_format" not in first and "response_format" in second
    expected = {True: 2048, 30: 30, "draft": 50}[reasoning]
    assert first["max_completion_tokens"] == expected
    assert second["max_completion_tokens"] == 50
    assert first["messages"][0]["content"].startswith("What is 6 x 7?")
    assert ("step by step" in first["messages"][0]["content"]) == (reasoning != "draft")
    roles = [message["role"] for message in second["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert second["messages"][1]["content"] == "Six times seven is 42."


@pytest.mark.parametrize("reasoning", ["auto", False])
def test_nobody_asks_twice_unasked(reasoning: Any) -> None:
    with served(answer) as (address, script):
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        model = stencilm.from_openai(client, "m", capabilities="openai")
        assert model("What is 6 x 7?", TYPE, reasoning=reasoning) == {"answer": 42}
        values = list(model.stream("What is 6 x 7?", TYPE, reasoning=reasoning))
        assert values[-1] == {"answer": 42}
    assert len(script.requests) == 2


def test_streams_show_the_answer_alone() -> None:
    with served(answer) as (address, script):
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        model = stencilm.from_openai(client, "m", capabilities="openai")
        shown = list(model.stream("What is 6 x 7?", TYPE, reasoning=True))
        assert all(isinstance(value, dict) for value in shown) and shown[-1] == {"answer": 42}
        assert model.batch(["6 x 7?", "7 x 6?"], TYPE, reasoning=20) == [{"answer": 42}] * 2
    assert len(script.requests) == 6
