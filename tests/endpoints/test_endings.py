"""How answers end: by the model, cut, broken off, in the middle of a character."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

import stencilm
from endpoints.scripted import UNCOUNTED, Fault, Script, fault, served
from stencilm.endpoints.capabilities import PRESETS
from stencilm.endpoints.reading import ResponseFailed

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

PROVIDERS = ("compatible", "vllm", "openai-responses", "anthropic")
UpTo50 = Annotated[int, Field(ge=0, le=50)]


@contextmanager
def endpoint(
    preset: str | stencilm.Capabilities, answer: Callable[[dict[str, Any], int], Any]
) -> Iterator[tuple[Any, Script]]:
    with served(answer) as (address, script):
        if preset == "anthropic":
            client = anthropic.Anthropic(base_url=address, api_key="k", max_retries=0)
            yield stencilm.from_anthropic(client, "m"), script
            return
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        yield stencilm.from_openai(client, "m", capabilities=preset), script


@pytest.mark.parametrize("output_type", [int, str, stencilm.Regex(r"[0-9]+")])
@pytest.mark.parametrize("preset", PROVIDERS)
def test_an_answer_that_breaks_off_again_and_again_is_an_error(
    preset: str, output_type: Any
) -> None:
    with (
        endpoint(preset, lambda body, number: ("12", "cut")) as (model, script),
        pytest.raises(stencilm.EndpointError, match="without a word why it ends") as caught,
    ):
        model("How many?", output_type)
    assert isinstance(caught.value.__cause__, ResponseFailed)
    assert caught.value.text.startswith("12")
    assert len(script.requests) == 2


@pytest.mark.parametrize("preset", PROVIDERS)
def test_an_answer_that_broke_off_once_is_gone_on_with(preset: str) -> None:
    def answer(body: dict[str, Any], number: int) -> Any:
        end = "end_turn" if preset == "anthropic" else "stop"
        return ("12", "cut") if number == 1 else ("34", end)

    with endpoint(preset, answer) as (model, script):
        found = model.generate("How many?", int)
    assert (found.value, found.finish_reason) == (1234, "stop")
    assert isinstance(found.guided.error, stencilm.EndpointError)
    assert len(script.requests) == 2


@pytest.mark.parametrize("reason", ["error", "abort", "insufficient_system_resource"])
@pytest.mark.parametrize("output_type", [int, str])
def test_an_answer_that_its_provider_ended_is_no_value(reason: str, output_type: Any) -> None:
    with (
        endpoint("compatible", lambda body, number: ("12", reason)) as (model, _),
        pytest.raises(stencilm.EndpointError, match=f"ended the answer with '{reason}'"),
    ):
        model("How many?", output_type)


@pytest.mark.parametrize(
    ("preset", "reason"),
    [
        ("compatible", "length"),
        ("compatible", "model_length"),
        ("anthropic", "max_tokens"),
        ("anthropic", "model_context_window_exceeded"),
    ],
)
def test_an_answer_that_is_cut_each_time_ends(preset: str, reason: str) -> None:
    with endpoint(preset, lambda body, number: ("12", reason)) as (model, script):
        found = model.generate("How many?", int)
        assert (found.text, found.value, found.finish_reason) == ("12", None, "length")
        assert isinstance(found.error, stencilm.IncompleteOutput)
        text = model.generate("How many?")
        assert (text.value, text.finish_reason) == ("12", "length")
    assert len(script.requests) == 8


@pytest.mark.parametrize(
    ("output_type", "first", "second", "value"),
    [
        (int, "12", "1234", 1234),
        (int, "12", "34", 1234),
        (str, "Hello wor", "Hello world", "Hello world"),
        (str, "Hello wor", "ld", "Hello world"),
    ],
)
@pytest.mark.parametrize("reason", ["cut", "length"])
def test_who_is_asked_to_go_on_may_begin_again(
    output_type: Any, first: str, second: str, value: Any, reason: str
) -> None:
    def answer(body: dict[str, Any], number: int) -> Any:
        return (first, reason) if number == 1 else second

    with endpoint("compatible", answer) as (model, _):
        assert model("Well?", output_type) == value


def test_an_answer_of_nothing_but_an_error_says_it() -> None:
    with (
        endpoint("compatible", lambda body, number: ("", "cut")) as (model, script),
        pytest.raises(stencilm.EndpointError, match="base URL"),
    ):
        model("How many?", int)
    assert len(script.requests) == 1
    refused = fault(200, "no credits")

    def answer(body: dict[str, Any], number: int) -> Any:
        raise refused

    capabilities = stencilm.Capabilities(stream=False)
    with (
        endpoint(capabilities, answer) as (model, _),
        pytest.raises(stencilm.EndpointError, match="no credits"),
    ):
        model("How many?", int)


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["a\ud83d", "\ude00b"], "a😀b"),
        (["\ud83d", "\ude00", "!"], "😀!"),
        (["a\ud83d", "b"], "a\ufffdb"),
        (["a", "b\ud83d"], "ab\ufffd"),
        (["\ude00"], "\ufffd"),
    ],
)
def test_halves_of_characters_are_put_together(pieces: list[str], text: str) -> None:
    deltas = [({"content": piece}, None) for piece in pieces]
    with endpoint("compatible", lambda body, number: [*deltas, ({}, "stop")]) as (model, _):
        assert model("Well?") == text
        assert [*model.stream("Well?")][-1] == text
        assert model("Well?", stencilm.Regex(".*")) == text
    assert stencilm.guide(lambda prompt: "".join(pieces), stencilm.Regex(".*"), "").response == text


@pytest.mark.parametrize("told", [{"finish_reason": "stop"}, {}])
def test_choices_may_say_less_than_openai_has_them_say(told: dict[str, str]) -> None:
    choice = {"message": {"role": "assistant", "content": "12"}, **told}
    body = {"status": 200, "body": {"id": "x", "choices": [choice]}}

    def answer(asked: dict[str, Any], number: int) -> Any:
        raise Fault(json.dumps(body))

    with endpoint(stencilm.Capabilities(stream=False), answer) as (model, _):
        if told:
            assert model("How many?", int) == 12
            return
        with pytest.raises(stencilm.EndpointError, match="without a word why it ends"):
            model("How many?", int)


def test_only_the_first_of_several_choices_is_read() -> None:
    deltas = [({"content": "1"}, None), ({"content": "9", "of_choice": 1}, None)]
    answer = [*deltas, ({"content": "2"}, "stop")]
    with endpoint("compatible", lambda body, number: answer) as (model, _):
        assert model("How many?", int) == 12


@pytest.mark.parametrize("end", UNCOUNTED)
@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_whose_cost_is_not_told_is_an_answer(end: str, stream: bool) -> None:
    with served(lambda body, number: ("12", end)) as (address, _):
        client = anthropic.Anthropic(base_url=address, api_key="k", max_retries=0)
        known = replace(PRESETS["anthropic"], stream=stream)
        found = stencilm.from_anthropic(client, "m", capabilities=known).generate("How many?", int)
    assert (found.value, found.stats.is_estimate) == (12, True)


@pytest.mark.parametrize("preset", PROVIDERS)
@pytest.mark.parametrize(
    ("draft", "output_type"),
    [
        ("123", UpTo50),
        ("It is -5.", UpTo50),
        ("12.5", int),
        ("yesterday", stencilm.Choice(["yes", "no"])),
        ("A-12345", stencilm.Regex("[A-Z]-[0-9]{4}")),
    ],
)
def test_a_part_of_a_word_or_a_number_is_no_value(
    preset: str, draft: str, output_type: Any
) -> None:
    with endpoint(preset, lambda body, number: (draft, "stop")) as (model, _):
        for call in (model, lambda *given: list(model.stream(*given))):
            with pytest.raises((stencilm.ModelRefused, stencilm.IncompleteOutput)):
                call("How many?", output_type)


def test_a_number_that_is_too_large_is_asked_for_again() -> None:
    given = ["123", "12"]
    with endpoint("compatible", lambda body, number: given[number - 1]) as (model, script):
        assert model("How many?", UpTo50) == 12
    assert len(script.requests) == 2


class Aged(BaseModel):
    name: str
    age: int


@pytest.mark.parametrize("finish", ["valid", None])
@pytest.mark.parametrize("preset", ["compatible", "openai-responses", "anthropic"])
def test_two_answers_that_contradict_each_other_are_no_value(
    preset: str, finish: str | None
) -> None:
    first, second = '{"name":"A",', '{"name":"B","age":1}'
    ends = {"anthropic": ("max_tokens", "end_turn")}.get(preset, ("length", "stop"))

    def answer(body: dict[str, Any], number: int) -> Any:
        return (first, ends[0]) if number == 1 else (second, ends[1])

    with endpoint(preset, answer) as (model, script):
        made = model.generate("Who?", Aged, finish=finish)
    assert made.value is None and len(script.requests) == 2
    assert made.guided.lost == first + second
    assert f"{first}{second}" in str(made.error) and "ask again" in str(made.error)


@pytest.mark.parametrize("preset", ["compatible", "openai-responses"])
def test_a_whole_answer_after_a_cut_one_that_it_agrees_with_is_the_value(preset: str) -> None:
    def answer(body: dict[str, Any], number: int) -> Any:
        return ('{"name":"B",', "length") if number == 1 else ('{"name":"B","age":1}', "stop")

    with endpoint(preset, answer) as (model, _):
        made = model.generate("Who?", Aged)
    assert (made.value, made.guided.lost) == (Aged(name="B", age=1), "")


class Thing(BaseModel):
    name: str
    size: int
    parts: list[str]
    note: str | None


NOTE = "It stands in the hall, gives a warm light, and was bought by an aunt of mine in Rome."
PARTS = ["a shade of linen, white with thin stripes", "one bulb, screwed in", "two metres of cable"]
SAID = json.dumps({"note": NOTE, "parts": PARTS, "size": 3, "name": "lamp"}, indent=2)


@pytest.mark.parametrize("place", range(20, len(SAID) - 3, 23))
@pytest.mark.parametrize("preset", ["compatible", "openai-responses"])
def test_the_rest_of_a_cut_answer_is_read_in_the_order_of_its_writer(
    preset: str, place: int
) -> None:
    """Its members have no place in the text yet, so that the rest of it does not fit."""
    parts = [SAID[:place], SAID[place:]]

    def answer(body: dict[str, Any], number: int) -> Any:
        return (parts[number - 1], "length" if number == 1 else "stop")

    with endpoint(preset, answer) as (model, script):
        made = model.generate("A lamp", Thing)
    assert (made.value, made.error) == (Thing(**json.loads(SAID)), None)
    assert len(script.requests) == 2


def test_talk_in_place_of_the_rest_is_not_read_to_its_end() -> None:
    talk = "I am sorry, but this is all that I can say about the thing for now. " * 50
    begun = SAID[: SAID.index('"parts"')]

    def answer(body: dict[str, Any], number: int) -> Any:
        return (begun, "length") if number == 1 else (talk, "stop")

    with (
        endpoint("compatible", answer) as (model, _),
        pytest.raises(stencilm.ModelRefused) as refused,
    ):
        model.generate("A lamp", Thing)
    assert len(refused.value.text) < 600
