"""The messages that a conversation begins with, in the forms that users write them in."""

from __future__ import annotations

import json
from typing import Any

import pytest

import stencilm
from endpoints.scripted import served
from stencilm.models.prompts import text_messages, with_system_text, with_text

ANSWER = json.dumps({"turn": {"answer": "Hi."}})
SYSTEM = "Be nice."
PARTS = [{"type": "text", "text": SYSTEM}]


def half(number: int) -> float:
    """Half of a number."""
    return number / 2


def sent(preset: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The body of the request for the first turn."""
    with served(lambda body, number: ANSWER) as (address, script):
        if preset == "anthropic":
            anthropic = pytest.importorskip("anthropic")
            client = anthropic.Anthropic(base_url=address, api_key="k", max_retries=0)
            model = stencilm.from_anthropic(client, "m")
        else:
            openai = pytest.importorskip("openai")
            client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
            model = stencilm.from_openai(client, "m", capabilities=preset)
        assert model.chat(messages, [half]).value == "Hi."
    body: dict[str, Any] = script.requests[0][1]
    return body


@pytest.mark.parametrize("preset", ["compatible", "openai-responses", "anthropic"])
@pytest.mark.parametrize("content", [SYSTEM, PARTS, tuple(PARTS), None, "", []])
def test_tools_are_described_after_the_system_prompt(preset: str, content: Any) -> None:
    body = sent(
        preset, [{"role": "system", "content": content}, {"role": "user", "content": "Hello"}]
    )
    system = body.get("system") or body.get("instructions")
    if system is None:
        [first] = text_messages(body["messages"][:1])
        system = first["content"]
    before, _, behind = system.partition("You can call these functions:\n")
    assert before == (f"{SYSTEM}\n\n" if content else "")
    assert '"name": "half"' in behind


def test_the_newer_name_of_the_system_prompt_is_known_to_anthropic() -> None:
    said = {"role": "developer", "content": SYSTEM}
    body = sent("anthropic", [said, {"role": "user", "content": "Hello"}])
    assert body["system"].endswith(f"\n\n{SYSTEM}")
    assert body["messages"] == [{"role": "user", "content": "Hello"}]


def test_what_is_added_to_a_text_is_a_paragraph_of_its_own() -> None:
    for content in ("Hello", [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]):
        [message] = text_messages(with_text([{"role": "user", "content": content}], "As JSON."))
        assert message["content"] == "Hello\n\nAs JSON."
    picture = {"type": "image", "url": "https://example.org/cat.png"}
    [message] = with_text([{"role": "user", "content": [picture]}], "As JSON.")
    assert message["content"] == [picture, {"type": "text", "text": "As JSON."}]


def test_a_content_that_no_model_reads_is_left_to_its_check() -> None:
    message = {"role": "system", "content": 5}
    assert with_system_text([message], "As JSON.") == [message]
