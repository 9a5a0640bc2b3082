"""One program, unchanged, on every kind of model; awaited and not, in one piece and as it comes."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stencilm
from endpoints.scripted import Fault, Script, served
from endpoints.serving import NEEDED, transformers_server

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "anywhere.py"
WHO = {"name": "Ann", "age": 30, "hobbies": ["chess"]}

spec = importlib.util.spec_from_file_location("anywhere", EXAMPLE)
assert spec is not None and spec.loader is not None
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)


def check(model: Any, *, is_async: bool = False, expected: Any = None) -> None:
    """Run the program in every way that the model's client allows."""
    found = [asyncio.run(program.people_awaited(model))]
    if not is_async:
        found.append(program.people(model))
    for people in found:
        assert len(people) == 5
        assert all(type(person) is program.Person for person in people)
        if expected is not None:
            assert all(person.model_dump() == expected for person in people)


def test_the_program_is_short() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 50


def test_on_the_embedded_model() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    check(stencilm.load("tiny"))


def test_on_the_server_of_transformers(tmp_path: Path) -> None:
    for package in NEEDED:
        pytest.importorskip(package)
    openai = pytest.importorskip("openai")
    with transformers_server(tmp_path) as (address, folder):
        for kind in (openai.OpenAI, openai.AsyncOpenAI):
            client = kind(base_url=address, api_key="none", max_retries=1, timeout=300)
            model = stencilm.from_openai(client, str(folder), capabilities="transformers")
            check(model, is_async=kind is openai.AsyncOpenAI)


def strict(answer: Callable[[dict[str, Any]], str]) -> Callable[[dict[str, Any], int], Any]:
    """A provider that takes a schema, and answers nothing without one."""

    def scripted(body: dict[str, Any], number: int) -> Any:
        form = body.get("response_format") or body.get("output_config") or body.get("text")
        if form is None:
            raise Fault("400")
        return answer(body)

    return scripted


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("preset", ["openai", "openai-responses", "openai-reasoning"])
def test_on_openai(preset: str, is_async: bool) -> None:
    openai = pytest.importorskip("openai")
    with served(strict(lambda body: json.dumps(WHO))) as (address, script):
        kind = openai.AsyncOpenAI if is_async else openai.OpenAI
        client = kind(base_url=f"{address}/v1", api_key="k", max_retries=0)
        model = stencilm.from_openai(client, "m", capabilities=preset)
        check(model, is_async=is_async, expected=WHO)
    assert_nothing_unasked(script, {"max_completion_tokens", "max_output_tokens"})


@pytest.mark.parametrize("is_async", [True, False])
def test_on_anthropic(is_async: bool) -> None:
    anthropic = pytest.importorskip("anthropic")
    with served(strict(lambda body: json.dumps(WHO))) as (address, script):
        kind = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
        client = kind(base_url=address, api_key="k", max_retries=0)
        model = stencilm.from_anthropic(client, "m")
        check(model, is_async=is_async, expected=WHO)
    assert_nothing_unasked(script, {"max_tokens"})


def assert_nothing_unasked(script: Script, bound: set[str]) -> None:
    known = {"model", "messages", "input", "stream", "stream_options", "response_format", "text",
             "output_config", *bound}  # fmt: skip
    assert len(script.requests) in (5, 10)
    for _, body in script.requests:
        assert set(body) <= known, set(body) - known
        assert [body[name] for name in bound if name in body] == [200]
