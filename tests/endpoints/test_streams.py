"""Partial values of answers as they come: talk before them, other orders, corrections, closing."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import stencilm
from endpoints.scripted import Fault, served
from stencilm import Capabilities
from stencilm.endpoints.capabilities import PRESETS
from stencilm.endpoints.schema_subset import Unwrapping, unwrapped
from stencilm.models.partials import Partials

openai = pytest.importorskip("openai")


class Person(BaseModel):
    name: str
    size: Literal["small", "large"]
    tags: list[str] = []
    note: str | None = None


ANN = {"name": "Ann", "size": "small", "tags": ["one", "two"], "note": None}
WHOLE = json.dumps(ANN)


def streamed(answers: Any, output_type: Any, preset: Any = "compatible", **options: Any) -> Any:
    """The partial values and the last one, from a plain client and from an asynchronous one."""
    given = answers if callable(answers) else lambda body, number: answers
    with served(given) as (address, _):
        at = f"{address}/v1"
        model = stencilm.from_openai(
            openai.OpenAI(base_url=at, api_key="k", max_retries=0), "m", capabilities=preset
        )
        found = list(model.stream("p", output_type, **options))
    with served(given) as (address, _):

        async def main() -> list[Any]:
            async with openai.AsyncOpenAI(
                base_url=f"{address}/v1", api_key="k", max_retries=0
            ) as client:
                model = stencilm.from_openai(client, "m", capabilities=preset)
                return [value async for value in model.astream("p", output_type, **options)]

        assert asyncio.run(main()) == found
    return found


@pytest.mark.parametrize(
    "answer",
    [
        WHOLE,
        f"```json\n{WHOLE}\n```",
        f"Sure! Here it is:\n\n{WHOLE}\nAnything else?",
        json.dumps(dict(reversed(ANN.items()))),
        WHOLE.replace("small", "Small"),
        json.dumps({name: ANN[name] for name in ("name", "size", "tags")}),
    ],
)
def test_partial_persons_come_whatever_stands_around_them(answer: str) -> None:
    *partial, last = streamed(answer, Person)
    assert last.model_dump() == ANN
    assert len(partial) > 3 and all(type(one) is Person for one in partial)
    assert any(one.name == "Ann" for one in partial)
    assert all(hasattr(one, "note") and hasattr(one, "tags") for one in partial)


def test_what_is_wrapped_is_shown_unwrapped() -> None:
    answer = json.dumps({"value": [ANN, ANN]})
    *partial, last = streamed(answer, list[Person], "openai")
    assert last == [Person.model_validate(ANN)] * 2
    lengths = [len(one) for one in partial]
    assert lengths == sorted(lengths) and {1, 2} <= set(lengths)
    text = 'one } two { \\" ' * 3
    *shown, whole = streamed(json.dumps({"value": text}), stencilm.JsonSchema(str), "openai")
    assert whole == text and all(text.startswith(part) for part in shown)


@pytest.mark.parametrize("value", [ANN, [1, [2, "}"], {"a": '\\"'}], 'x"}]\\', 17, None, "", {}])
def test_unwrapping_in_pieces_is_unwrapping(value: Any) -> None:
    for indent in (None, 2):
        text = json.dumps({"value": value}, indent=indent)
        rng = random.Random(1)
        for _ in range(20):
            cut = sorted(rng.sample(range(len(text) + 1), min(5, len(text))))
            pieces = [text[a:b] for a, b in zip([0, *cut], [*cut, len(text)], strict=True)]
            reader = Unwrapping()
            assert "".join(map(reader.feed, pieces)).strip() == unwrapped(text).strip()


def test_what_is_corrected_is_shown_anew() -> None:
    def answer(body: dict[str, Any], number: int) -> Any:
        last = str(body["messages"][-1]["content"])
        if "Answer with the number only" in last:
            return "1"
        return WHOLE.replace("small", "tiny") if number == 1 else WHOLE

    *partial, last = streamed(answer, Person)
    assert partial and last.size in ("small", "large")


def test_free_text_comes_as_it_is_written() -> None:
    text = "Once upon a time there was a stream."
    for preset in ("compatible", "openai", "vllm", "transformers"):
        *partial, last = streamed((text, "stop"), str, preset)
        assert last == text and len(partial) > 2
        assert all(text.startswith(part) for part in partial)
        lengths = [len(part) for part in partial]
        assert lengths == sorted(set(lengths))


def test_a_stream_that_is_closed_stops_the_answer() -> None:
    def answer(body: dict[str, Any], number: int) -> Any:
        return "word ", "endless"

    with served(answer) as (address, script):
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        model = stencilm.from_openai(client, "m", capabilities="compatible")
        stream: Any = model.stream("p", str)
        assert next(stream).startswith("word")
        stream.close()
        assert list(stream) == [] and len(script.requests) == 1


def test_an_awaited_stream_that_is_closed_stops_the_answer() -> None:
    async def main(address: str) -> None:
        async with openai.AsyncOpenAI(
            base_url=f"{address}/v1", api_key="k", max_retries=0
        ) as client:
            model = stencilm.from_openai(client, "m", capabilities="compatible")
            stream: Any = model.astream("p", str)
            assert (await anext(stream)).startswith("word")
            await stream.aclose()
            assert [value async for value in stream] == []
            task = asyncio.create_task(model.acall("p", str))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with served(lambda body, number: ("word ", "endless")) as (address, _):
        asyncio.run(main(address))


def test_without_streams_there_is_one_piece() -> None:
    capabilities = replace(PRESETS["openai"], stream=False)
    found = streamed(WHOLE, Person, capabilities)
    assert found[-1].model_dump() == ANN and len(found) <= 2


def test_errors_and_refusals_come_through() -> None:
    def failing(body: dict[str, Any], number: int) -> Any:
        raise Fault("500")

    with pytest.raises(stencilm.EndpointError):
        streamed(failing, Person)
    with pytest.raises(stencilm.ModelRefused):
        streamed("I'm sorry, but I cannot help with that.", Person)
    with pytest.raises(stencilm.IncompleteOutput):
        streamed((WHOLE[:20], "length"), Person, Capabilities(choice=False), max_tokens=5)


def test_options_are_checked_before_anything_is_sent() -> None:
    with served(lambda body, number: "17") as (address, script):
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        model: Any = stencilm.from_openai(client, "m", capabilities="openai")
        for options, error, words in (
            ({"max_token": 3}, TypeError, "'max_token' is no option: give some of .*max_tokens"),
            ({"stop": 3}, TypeError, "stop is 3"),
            ({"stop": [""]}, ValueError, "stop holds ''"),
            ({"max_tokens": 0}, ValueError, "max_tokens is 0"),
            ({"temperature": -1}, ValueError, "temperature is -1"),
            ({"budget": 3}, TypeError, "budget is 3"),
            ({"finish": "now"}, ValueError, "finish is 'now'"),
            ({"max_retries": True}, ValueError, "max_retries is True"),
        ):
            with pytest.raises(error, match=words):
                model("p", int, **options)
        with pytest.raises(TypeError, match="must be a str, or chat messages"):
            model(17, int)
        with pytest.raises(TypeError, match="must be a list of prompts"):
            model.batch("p", int)
        with pytest.raises(ValueError, match="n is 0"):
            model.samples("p", int, n=0)
        with pytest.raises(ValueError, match="concurrency is 0"):
            stencilm.from_openai(client, "m", concurrency=0)
        assert script.requests == []
        assert model.batch([], int) == []


def test_partials_begin_anew_where_all_is_taken_back() -> None:
    from stencilm.generation.partial import MISSING
    from stencilm.grammars.outputs import resolve

    shown = Partials(resolve(Person))
    assert shown.feed('{"name": "Bo').name == "Bo"
    assert shown.feed(None) is MISSING
    assert shown.feed('{"name": "Ann"').name == "Ann"
    assert shown.whole(WHOLE) is MISSING
    assert shown.feed(WHOLE[len('{"name": "Ann"') :]).model_dump() == ANN
    assert shown.whole(WHOLE).model_dump() == ANN
