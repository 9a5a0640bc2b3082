"""Reasoning and drafts of models behind an API: asked for first, and told in the question after."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from typing import Any

import pytest

import stencilm
from endpoints import scripted
from endpoints.scripted import served
from stencilm.models.reasoning import with_first

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
def test_a_model_is_asked_twice(
    reasoning: Any, is_async: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(scripted.USAGE, "prompt_tokens_details", {"cached_tokens": 4})
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
    assert (found.stats.prompt_tokens, found.stats.cached_tokens) == (2 * 10, 2 * 4)
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


@pytest.mark.parametrize("is_async", [True, False])
def test_the_first_of_two_requests_is_within_the_budget(is_async: bool) -> None:
    """So is what both take together."""

    def slow(body: dict[str, Any], number: int) -> Any:
        time.sleep(0.3)
        return answer(body, number)

    budget = stencilm.Budget(seconds=0.1)

    async def ask(address: str) -> None:
        client = openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        async with client:
            model = stencilm.from_openai(client, "m", capabilities="compatible")
            await model.agenerate("What is 6 x 7?", TYPE, reasoning=True, budget=budget)

    with served(slow) as (address, script), pytest.raises(stencilm.EndpointError) as caught:
        if is_async:
            asyncio.run(ask(address))
        else:
            client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
            model = stencilm.from_openai(client, "m", capabilities="compatible")
            model("What is 6 x 7?", TYPE, reasoning=True, budget=budget)
    assert isinstance(caught.value.__cause__, openai.APITimeoutError)
    assert len(script.requests) == 1


def test_the_answer_has_what_the_reasoning_left_of_the_budget() -> None:
    texts: list[tuple[float, int, float | None]] = []
    with served(answer) as (address, _):
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        prices = stencilm.Prices(prompt=1e4, output=1e4)
        model = stencilm.from_openai(client, "m", capabilities="openai", prices=prices)
        made = model._text

        def noted(job: Any, *rest: Any) -> Any:
            text = made(job, *rest)
            budget = text.loop.account.budget
            texts.append((budget.seconds, budget.calls, budget.cost))
            return text

        model._text = noted  # type: ignore[assignment, method-assign]
        whole = stencilm.Budget(calls=5, seconds=60, cost=9.0)
        found = model.generate("What is 6 x 7?", TYPE, reasoning=True, budget=whole)
    assert found.value == {"answer": 42}
    (seconds, calls, cost), after = texts
    assert (seconds, calls, cost) == (60, 5, 9.0)
    assert after[0] < 60 and after[1] == 4 and after[2] is not None and after[2] < 9.0


@pytest.mark.parametrize("counted", [0, 1, 2])
def test_numbers_of_which_one_request_has_none_are_estimated(counted: int) -> None:
    """The requests up to this number report their tokens."""

    def reported(body: dict[str, Any], number: int) -> Any:
        text = answer(body, number)
        return text if number <= counted else [({"content": text}, "stop")]

    capabilities = stencilm.Capabilities(native=("json_schema",), stream_usage=True)
    with served(reported) as (address, _):
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        model = stencilm.from_openai(client, "m", capabilities=capabilities)
        found = model.generate("What is 6 x 7?", TYPE, reasoning=True)
    assert (found.value, found.stats.is_estimate) == ({"answer": 42}, counted < 2)
    saved = [replace(found, stats=replace(found.stats, saved_passes=n)) for n in (2, 3)]
    assert with_first(*saved).stats.saved_passes == 5
