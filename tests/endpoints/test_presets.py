"""Every preset against a server that keeps to its provider's rules as this project reads them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

import stencilm
from endpoints.provider_rules import RULES, SOURCES
from endpoints.scripted import Fault, Script, served
from stencilm import EndpointError, ModelRefused
from stencilm.endpoints.capabilities import PRESETS, preset_at
from stencilm.endpoints.requests import native_form

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")


class Pet(BaseModel):
    name: str = Field(max_length=10)
    legs: int | None = None


class Owner(BaseModel):
    name: str = Field(pattern="^[A-Z][a-z]+$", min_length=2)
    age: int = Field(ge=0, le=120)
    pets: list[Pet] = Field(default=[], max_length=3)
    home: Literal["flat", "house"]


OWNER = {
    "name": "Ann",
    "age": 30,
    "pets": [{"name": "Rex", "legs": 4}, {"name": "Tweety", "legs": None}],
    "home": "flat",
}
CALLS = stencilm.StructuralTag.from_json(
    {
        "type": "triggered_tags",
        "triggers": ["<call="],
        "tags": [
            {
                "type": "tag",
                "begin": "<call=pet>",
                "content": {"type": "json_schema", "json_schema": Pet.model_json_schema()},
                "end": "</call>",
            }
        ],
    }
)
CALLED = 'Wait: <call=pet>{"name": "Rex", "legs": 4}</call>'
TARGETS: list[tuple[str, Any, str, Any]] = [
    ("model", Owner, json.dumps(OWNER), Owner.model_validate(OWNER)),
    ("list", list[int], "[3, 5]", [3, 5]),
    ("scalar", int, "17", 17),
    ("mapping", dict[str, int], '{"a": 1, "b": 2}', {"a": 1, "b": 2}),
    ("choice", Literal["approve", "re|ject"], "re|ject", "re|ject"),
    ("pattern", stencilm.Regex("[0-9]{4}-[0-9]{2}"), "2024-07", "2024-07"),
    (
        "grammar",
        stencilm.Ebnf('root ::= "(" root ")" | [a-z]{1,9}'),
        "((abc))",
        "((abc))",
    ),
    ("text", str, "Once upon a time.", "Once upon a time."),
    ("tags", CALLS, CALLED, CALLED),
]


@dataclass
class Oracle:
    """A model that knows the text, behind a provider that keeps to its rules."""

    preset: str
    text: str

    def __post_init__(self) -> None:
        self.faults: list[str] = []

    def __call__(self, path: str, body: dict[str, Any]) -> Any:
        try:
            RULES[self.preset](path, body)
        except Fault as fault:
            self.faults.append(str(fault))
            raise
        if "prompt" in body:  # a raw text, gone on with
            return self.rest_of(body["prompt"])
        last = (body.get("messages") or body["input"])[-1]
        if last["role"] == "assistant":
            return self.rest_of(last["content"])
        form = body.get("response_format") or body.get("text", {}).get("format") or {}
        schema = form.get("json_schema", form).get("schema", {})
        if list(schema.get("properties", {})) == ["value"]:
            return f'{{"value": {self.text}}}'
        return {"tool": self.text} if "tools" in body else self.text

    def rest_of(self, given: str) -> tuple[str, str]:
        """What comes after a beginning, at most some characters at once."""
        length = max(
            (n for n in range(len(self.text) + 1) if given.endswith(self.text[:n])), default=0
        )
        rest = self.text[length:]
        return (rest[:60], "stop" if len(rest) <= 60 else "length")


@contextmanager
def provider(
    preset: str, answer: Callable[[str, dict[str, Any]], Any], **options: Any
) -> Iterator[tuple[Any, Script]]:
    def scripted(body: dict[str, Any], number: int) -> Any:
        return answer(script.requests[number - 1][0], body)

    is_async = options.pop("is_async", False)
    with served(scripted) as (address, script):
        given: dict[str, Any] = {"api_key": "k", "max_retries": 0}
        if preset.startswith("anthropic"):
            kind: Any = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
            client = kind(base_url=address, **given)
            yield stencilm.from_anthropic(client, "m", capabilities=preset, **options), script
            return
        if preset.startswith("azure"):
            kind = openai.AsyncAzureOpenAI if is_async else openai.AzureOpenAI
            client = kind(azure_endpoint=address, api_version="2024-10-21", **given)
        else:
            kind = openai.AsyncOpenAI if is_async else openai.OpenAI
            at = f"{address}/beta" if preset == "deepseek-beta" else f"{address}/v1"
            client = kind(base_url=at, **given)
        yield stencilm.from_openai(client, "m", capabilities=preset, **options), script


def test_every_preset_has_rules_and_their_source_is_told() -> None:
    assert set(RULES) == set(PRESETS)
    variants = {"anthropic-prefill", "deepseek-beta", "vllm-reasoning", "sglang-reasoning"}
    assert set(SOURCES) == set(PRESETS) - variants - {"transformers", "compatible"}
    told = (Path(__file__).resolve().parents[2] / "docs" / "endpoints.md").read_text("utf-8")
    assert [url for url in SOURCES.values() if f"({url})" not in told] == []


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    ("name", "output_type", "text", "value"), TARGETS, ids=lambda v: str(v)[:9]
)
def test_no_rule_is_broken_and_values_are_read(
    preset: str, name: str, output_type: Any, text: str, value: Any
) -> None:
    oracle = Oracle(preset, text)
    with provider(preset, oracle) as (model, script):
        generation = model.generate("Who?", output_type, max_tokens=300)
        assert model("Who?", output_type) == value
        *partial, last = model.stream("Who?", output_type)
    assert oracle.faults == []
    assert (generation.value, generation.finish_reason) == (value, "stop"), generation
    assert generation.text == text and not generation.filled
    assert last == value and bool(partial) is (name != "scalar")  # an open number is not shown
    if name == "model":
        assert all(isinstance(one, Owner) for one in partial)
    native = PRESETS[preset].native
    if "structured_outputs" in native or "guided_grammar" in native or name == "text":
        assert len(script.requests) == 3  # all of it natively, in one call each


NATIVE = {  # the fields that carry the wish, by preset and target
    "openai": {"model": "response_format", "list": "response_format", "choice": "tools",
               "pattern": "tools", "scalar": "response_format", "mapping": "response_format"},
    "openai-responses": {"model": "text", "list": "text", "choice": "tools", "pattern": "tools"},
    "azure": {"model": "response_format", "list": "response_format", "scalar": "response_format"},
    "azure-reasoning": {"model": "response_format", "list": "response_format"},
    "anthropic": {"model": "output_config", "list": "output_config", "scalar": "output_config"},
    "gemini": {"model": "response_format", "list": "response_format"},
    "mistral": {"model": "response_format", "mapping": "response_format"},
    "deepseek": {"model": "response_format", "mapping": "response_format"},
    "groq": {"model": "response_format"},
    "openrouter": {"model": "provider"},
    "together": {"model": "response_format", "pattern": "response_format"},
    "ollama": {"model": "response_format", "scalar": "response_format"},
    "lmstudio": {"model": "response_format"},
    "vllm": dict.fromkeys(
        ("model", "list", "scalar", "mapping", "choice", "pattern", "grammar", "tags"),
        "structured_outputs",
    ),
    "sglang": {"model": "response_format", "choice": "regex", "pattern": "regex",
               "grammar": "ebnf", "tags": "response_format"},
    "llama.cpp": {"model": "json_schema", "choice": "grammar", "pattern": "grammar",
                  "grammar": "grammar"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("preset", "name", "carrier"),
    [(preset, name, field) for preset in NATIVE for name, field in NATIVE[preset].items()],
)
def test_the_provider_is_asked_in_its_own_language(preset: str, name: str, carrier: str) -> None:
    _, output_type, text, _ = next(target for target in TARGETS if target[0] == name)
    with provider(preset, Oracle(preset, text)) as (model, script):
        model("Who?", output_type)
    assert carrier in script.requests[0][1]
    said = json.dumps(script.requests[0][1].get("messages") or script.requests[0][1]["input"])
    # Where nothing native carries the schema, the prompt does.
    assert ("JSON Schema" in said) is (preset in ("deepseek", "together") and name != "pattern")


@pytest.mark.parametrize("preset", ["compatible", "deepseek", "anthropic-prefill"])
def test_what_nothing_native_carries_is_in_the_prompt(preset: str) -> None:
    words = {"model": "JSON Schema", "choice": "exactly one of these", "pattern": "[0-9]{4}",
             "grammar": "root ::="}  # fmt: skip
    for name, said in words.items():
        _, output_type, text, value = next(target for target in TARGETS if target[0] == name)
        with provider(preset, Oracle(preset, text)) as (model, script):
            assert model("Who?", output_type) == value
        first = script.requests[0][1]["messages"][0]["content"]
        assert first.startswith("Who?\n\n") and said in first
        with provider(preset, Oracle(preset, text), schema_in_prompt=False) as (model, script):
            assert model("Who?", output_type) == value
            assert script.requests[0][1]["messages"][0]["content"] == "Who?"


def test_the_schema_is_in_the_prompt_by_choice() -> None:
    for preset in ("openai", "anthropic", "vllm", "llama.cpp"):
        with provider(preset, Oracle(preset, TARGETS[0][2]), schema_in_prompt=True) as (model, _s):
            model([{"role": "system", "content": "s"}, {"role": "user", "content": "Who?"}], Owner)
        said = _s.requests[0][1]["messages"][-1]["content"]
        assert said.startswith("Who?") and "JSON Schema" in said


@pytest.mark.parametrize(
    ("pattern", "is_sent"),
    [
        (r"a\x00b", False),
        (r"(a|\x00)x|\x00", False),
        (r'["\]]\x00', False),
        (r"\\\x00", False),
        (r"[\x00-\x1f]+", True),
        (r"[^a]b", True),
        (r"a\\x00", True),
        (r'"\[\\', True),
    ],
)
def test_llama_cpp_is_sent_no_grammar_that_needs_nul(pattern: str, is_sent: bool) -> None:
    """It writes none, and ends where nothing else may come."""
    form = native_form(stencilm.Grammar.from_regex(pattern), PRESETS["llama.cpp"])
    assert (form is not None) == is_sent, form


OPTIONS: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 5,
    "min_p": 0.1,
    "repetition_penalty": 1.1,
    "frequency_penalty": 0.2,
    "presence_penalty": 0.3,
    "logit_bias": {7: -5.0},
    "stop": ["@@"],
    "seed": 3,
}


@pytest.mark.parametrize("preset", PRESETS)
def test_options_are_sent_or_refused(preset: str) -> None:
    known = PRESETS[preset]
    taken: set[str] = {*known.options}
    taken |= {"temperature", "top_p"} if known.temperature else set()
    for name in ("seed", "stop", "logit_bias"):
        taken |= {name} if getattr(known, name) else set()
    names = {"seed": known.seed_name, "stop": "stop"}
    if preset.startswith("anthropic"):
        names["stop"] = "stop_sequences"
    for name, value in OPTIONS.items():
        oracle = Oracle(preset, "Once.")
        with provider(preset, oracle) as (model, script):
            if name not in taken:
                with pytest.raises(ValueError, match=f"takes no {name}"):
                    model("Who?", str, **{name: value})
                assert script.requests == []
                continue
            model("Who?", str, **{name: value})
        assert oracle.faults == []
        sent = script.requests[0][1][names.get(name, name)]
        assert sent == ({"7": -5.0} if name == "logit_bias" else value)


PICTURE = "data:image/png;base64,iVBORw0KGgo="
LINK = "https://example.org/cat.png"


@pytest.mark.parametrize("preset", ["openai", "openai-responses", "anthropic", "gemini"])
@pytest.mark.parametrize("form", ["openai", "anthropic", "url"])
@pytest.mark.parametrize("url", [PICTURE, LINK])
def test_pictures_are_passed_on(preset: str, form: str, url: str) -> None:
    part: dict[str, Any] = {"type": "image_url", "image_url": {"url": url}}
    if form == "anthropic":
        source: dict[str, Any] = {"type": "url", "url": url}
        if url is PICTURE:
            source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
        part = {"type": "image", "source": source}
    elif form == "url":
        part = {"type": "image", "url": url}
    text = {"type": "text", "text": "What is this?"}
    oracle = Oracle(preset, "17")
    with provider(preset, oracle) as (model, script):
        assert model([{"role": "user", "content": [text, part]}], int) == 17
    assert oracle.faults == []
    body = script.requests[0][1]
    (message,) = body.get("messages") or body["input"]
    sent = message["content"][1]
    if preset == "anthropic":
        kind = {"type": "url", "url": url}
        if url is PICTURE:
            kind = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
        assert sent == {"type": "image", "source": kind}
    elif preset == "openai-responses":
        assert sent == {"type": "input_image", "image_url": url}
        assert message["content"][0] == {"type": "input_text", "text": "What is this?"}
    else:
        assert sent == {"type": "image_url", "image_url": {"url": url}}


@pytest.mark.parametrize(
    "given",
    [
        {"native": "json_schema"},
        {"native": ("json-schema",)},
        {"native": None},
        {"options": ("seed",)},
        {"continuation": "prefixes"},
        {"schema_subset": "OpenAI"},
        {"reasoning": True},
        {"max_tokens": None},
        {"seed_name": "Seed"},
        {"extra_body": 5},
    ],
)
def test_capabilities_have_words_that_are_known(given: dict[str, Any]) -> None:
    """Another word would be sent as something else, or fail in the middle of a call."""
    [(name, value)] = given.items()
    with pytest.raises(ValueError, match=re.escape(f"{name} is {value!r}, but must be")):
        stencilm.Capabilities(**given)


def test_capabilities_may_be_lists_and_dicts() -> None:
    given: Any = {"native": ["ebnf"], "extra_body": {"a": 1}}
    made = stencilm.Capabilities(**given)
    assert made == stencilm.Capabilities(native=("ebnf",), extra_body=(("a", 1),))


def said(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


@pytest.mark.parametrize("preset", ["openai", "openai-responses", "anthropic"])
def test_parts_in_a_tuple_are_sent_as_those_in_a_list(preset: str) -> None:
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image", "url": LINK}]
    sent = []
    for content in (parts, tuple(parts)):
        oracle = Oracle(preset, "17")
        with provider(preset, oracle) as (model, script):
            assert model([said(content)], int) == 17
        sent.append(script.requests[0][1])
    assert sent[0] == sent[1]


@pytest.mark.parametrize("preset", ["openai", "openai-responses", "anthropic"])
@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"content": "Hello"}, "must have a 'role', such as 'user'"),
        ({"role": 5, "content": "Hello"}, "must have a 'role'"),
        (said(5), "the content of a message is 5, but must be a str, or a list of parts"),
        (said({"text": "Hello"}), "the content of a message is {'text': 'Hello'}, but"),
        (said([{"type": "text"}]), "must have its 'text' as a str"),
        (said([{"type": "text", "text": None}]), "must have its 'text' as a str"),
        (said([{"type": "image_url"}]), "must have the 'url' of its 'image_url'"),
        (said([{"type": "image_url", "image_url": {"url": 5}}]), "must have the 'url' of its"),
        (said([{"type": "image", "source": {"type": "base64"}}]), "the 'media_type' of its"),
    ],
)
def test_messages_that_lack_something_are_not_sent(preset: str, message: Any, words: str) -> None:
    with provider(preset, Oracle(preset, "17")) as (model, script):
        with pytest.raises(TypeError, match=words):
            model([message], int)
        with pytest.raises(TypeError, match=words):
            stencilm.guide(model, int, [message])
        assert script.requests == []


@pytest.mark.parametrize("preset", ["openai", "openai-responses", "anthropic"])
@pytest.mark.parametrize(
    ("prompt", "kind", "words"),
    [
        (None, TypeError, "the prompt is None, but must be a str, or chat messages"),
        (["Hello"], TypeError, "the prompt is .*, but must be a str, or chat messages"),
        ("a\ud800", ValueError, "surrogate '.*' at character 1, which no request can hold"),
        ([said("\udfff")], ValueError, "surrogate '.*' at character 0, which no request"),
        ([said([{"type": "text", "text": "\ud800"}])], ValueError, "which no request can hold"),
    ],
    ids=ascii,
)
def test_prompts_that_cannot_be_sent_are_told(
    preset: str, prompt: Any, kind: type[Exception], words: str
) -> None:
    with provider(preset, Oracle(preset, "17")) as (model, script):
        for call in (model, model.generate, lambda *given: list(model.stream(*given))):
            with pytest.raises(kind, match=words):
                call(prompt, int)
        with pytest.raises(kind, match=words):
            stencilm.guide(model, int, prompt)
        assert script.requests == []


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("is_async", [True, False])
def test_validators_are_told_to_the_model(preset: str, is_async: bool) -> None:
    def answer(path: str, body: dict[str, Any]) -> Any:
        told = "must be even" in json.dumps(body)
        return Oracle(preset, '{"number": 4}' if told else '{"number": 3}')(path, body)

    with provider(preset, answer, is_async=is_async) as (model, _):
        run = asyncio.run

        async def awaited(**options: Any) -> Any:
            return await model.agenerate("A number?", Even, **options)

        if is_async:
            generation = run(awaited())
        else:
            generation = model.generate("A number?", Even)
            assert model("A number?", Even) == Even(number=4)
            assert [*model.stream("A number?", Even)][-1] == Even(number=4)
            assert model.batch(["A number?"] * 3, Even) == [Even(number=4)] * 3
            refused = model.generate("A number?", Even, max_retries=0)
            assert refused.value is None and refused.refused == ()
            with pytest.raises(stencilm.InvalidOutput, match="must be even"):
                model("A number?", Even, max_retries=0)
    assert generation.value == Even(number=4)
    (earlier,) = generation.refused
    assert earlier.text == '{"number": 3}' and "must be even" in str(earlier.error)


@pytest.mark.parametrize("preset", ["openai", "openai-responses", "anthropic", "vllm"])
def test_batches_are_asked_for_at_once(preset: str) -> None:
    from threading import Barrier

    together = Barrier(4, timeout=30)

    def answer(path: str, body: dict[str, Any]) -> Any:
        together.wait()
        return Oracle(preset, "17")(path, body)

    with provider(preset, answer) as (model, _):
        assert model.samples("How many?", int, n=4) == [17] * 4
    with provider(preset, answer, is_async=True) as (model, _):
        assert asyncio.run(model.abatch(["How many?"] * 4, int)) == [17] * 4
        with pytest.raises(TypeError, match="asynchronous"):
            model("How many?", int)


@pytest.mark.parametrize("preset", ["openai-responses"])
@pytest.mark.parametrize("stream", [True, False])
def test_what_responses_say_is_read(preset: str, stream: bool) -> None:
    from dataclasses import replace

    known = replace(PRESETS[preset], stream=stream)
    answers: list[Any] = ["17", ("I cannot.", "refusal"), ("1", "length")]
    with served(lambda body, number: answers[min(number, 3) - 1]) as (address, _):
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        model = stencilm.from_openai(client, "m", capabilities=known)
        generation = model.generate("How many?", stencilm.Regex("[0-9]+"))
        assert generation.value == "17"
        stats = generation.stats
        assert (stats.prompt_tokens, stats.tokens, stats.cached_tokens) == (10, 3, 4)
        assert stats.reasoning_tokens == 2
        assert (stats.forward_passes, stats.is_estimate) == (1, False)
        with pytest.raises(ModelRefused, match="I cannot"):
            model("How many?", str)
        text = model.generate("Go on", str, max_tokens=5)
        assert text.text.startswith("1") and text.finish_reason == "length"
        cut = model.generate("How many?", stencilm.Regex("[0-9]+"), max_tokens=5)
        assert (cut.value, cut.finish_reason) == (None, "length")
        assert isinstance(cut.error, stencilm.IncompleteOutput)
    with served(lambda body, number: ("The server is overloaded.", "failed")) as (address, _):
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        model = stencilm.from_openai(client, "m", capabilities=known)
        if not stream:  # what was written before a stream failed is an answer that is not finished
            with pytest.raises(EndpointError, match="The server is overloaded") as caught:
                model("How many?", int)
            assert caught.value.status is None


@pytest.mark.parametrize(
    ("address", "name", "preset"),
    [
        ("https://api.openai.com/v1/", "gpt-4.1", "openai"),
        ("https://api.openai.com/v1/", "o4-mini", "openai-reasoning"),
        ("https://api.openai.com/v1/", "gpt-5-mini", "openai-reasoning"),
        ("https://api.openai.com/v1/", "gpt-5-chat-latest", "openai"),
        ("https://mine.openai.azure.com/openai/", "deployed", "azure"),
        ("https://mine.openai.azure.com/openai/v1/", "gpt-5-mini", "azure-reasoning"),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "gemini-3", "gemini"),
        ("https://api.mistral.ai/v1", "mistral-small", "mistral"),
        ("https://api.deepseek.com", "deepseek-chat", "deepseek"),
        ("https://api.deepseek.com/beta", "deepseek-chat", "deepseek-beta"),
        ("https://api.groq.com/openai/v1", "llama", "groq"),
        ("https://openrouter.ai/api/v1", "openai/o3", "openrouter"),
        ("https://api.together.xyz/v1", "llama", "together"),
        ("http://localhost:11434/v1", "llama", "ollama"),
        ("http://127.0.0.1:1234/v1", "llama", "lmstudio"),
        ("http://127.0.0.1:8000/v1", "llama", "openai"),
    ],
)
def test_addresses_tell_presets(address: str, name: str, preset: str) -> None:
    assert preset_at(address, name) == preset


@pytest.mark.parametrize("given", [[], {"native": True}, 3, "nobody"])
def test_capabilities_that_are_none_are_told_by_name(given: Any) -> None:
    client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1:1")
    with pytest.raises(ValueError, match=r"^capabilities is .*, but must be a Capabilities or"):
        stencilm.from_openai(client, "name", capabilities=given)


def test_errors_come_through_every_call() -> None:
    def answer(path: str, body: dict[str, Any]) -> Any:
        raise Fault("401")

    with provider("openai", answer) as (model, _):
        for call in (
            lambda: model("p", int),
            lambda: list(model.stream("p", int)),
            lambda: model.batch(["p", "p"], int),
            lambda: model.samples("p", int, n=2),
            lambda: asyncio.run(model.acall("p", int)),
            lambda: asyncio.run(model.abatch(["p"], int)),
        ):
            with pytest.raises(EndpointError):
                call()
