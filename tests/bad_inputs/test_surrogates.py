"""Halves of surrogate pairs, which Python's texts may hold: a clear error, or a whole character."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

import stencilm
from stencilm.models.chat import ToolResult

HALF = "a\ud800"


@pytest.fixture(scope="module")
def model() -> Any:
    return stencilm.load("tiny")


@pytest.mark.parametrize("stop", [HALF, ["ok", HALF]])
def test_stop_texts(model: Any, stop: Any) -> None:
    with pytest.raises(ValueError, match="surrogate '\\\\ud800' at character 1, which no model"):
        model("x", stop=stop)
    with pytest.raises(ValueError, match="surrogate '\\\\ud800' at character 1, which no model"):
        stencilm.guide(lambda prompt: "5", int, "x", stop_at=[HALF])


def test_messages() -> None:
    from stencilm.models.prompts import chat_text

    class Tokenizer:
        chat_template = "any"

        def apply_chat_template(self, messages: Any, **options: Any) -> str:
            return "".join(message["content"] for message in messages)

    assert chat_text(Tokenizer(), [{"role": "user", "content": "a"}]) == "a"
    with pytest.raises(ValueError, match="the prompt holds the lone surrogate"):
        chat_text(Tokenizer(), [{"role": "user", "content": HALF}])


@pytest.mark.parametrize(("value", "told"), [(HALF, "a\ufffd"), ("\ud83d\ude00", "😀")])
def test_what_tools_return(value: str, told: str) -> None:
    call = stencilm.ToolCall("f", {}, "call_0")
    assert ToolResult(call, value).text == told
    assert ToolResult(call, {"names": [value]}).text.encode()


@pytest.mark.parametrize(
    "output_type",
    [Literal["a\ud800", "b"], Annotated[str, Field(pattern="(")], Annotated[int, Field(gt="a")]],
)
def test_types_that_pydantic_cannot_build(model: Any, output_type: Any) -> None:
    with pytest.raises(stencilm.UnsupportedFeature, match="is not an output type: Error building"):
        model("x", output_type)
