"""Numbers in conversations that no float of Python holds: each digit is kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

import stencilm
from stencilm.models.chat import Chat
from stencilm.models.prompts import chat_text
from stencilm.tool_calls.answers import written_arguments
from tool_calls.conversations import (
    CHAT_TEMPLATE,
    HERMES,
    Scripted,
    TemplateTokenizer,
    chat,
    clock,
)

SCALE = {
    "type": "function",
    "function": {
        "name": "scale",
        "parameters": {"type": "object", "properties": {"x": {"type": "number"}}},
    },
}


@pytest.mark.parametrize("is_local", [True, False])
def test_numbers_that_python_has_no_float_for(is_local: bool) -> None:
    def text(number: str) -> str:
        arguments = f'{{"x": {number}}}'
        if is_local:
            return HERMES % ("scale", arguments)
        return f'{{"turn": {{"tool_calls": [{{"name": "scale", "arguments": {arguments}}}]}}}}'

    tokenizer = TemplateTokenizer() if is_local else None
    found = chat(Scripted([text("1e400")], tokenizer), "Scale.", tools=[SCALE])
    assert found.pending[0].arguments == {"x": Decimal("1e400")}
    assert json.dumps(found.messages)
    with pytest.raises(stencilm.InvalidOutput, match="1e99999999999999999999 has too large"):
        chat(Scripted([text("1e99999999999999999999")], tokenizer), "Scale.", tools=[SCALE])


HUGE = "1e99999999999999999999"
NESTED = "[" * 970 + "]" * 970


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize(
    "schema",
    [
        f'{{"type": "integer", "default": {HUGE}}}',
        f'{{"type": "integer", "examples": [-{HUGE.replace("e", "e-")}]}}',
        f'{{"$ref": "#/$defs/a", "$defs": {{"a": {{"type": "integer", "default": {HUGE}}}}}}}',
        f'{{"type": "integer", "default": {NESTED}}}',
    ],
)
def test_annotations_that_no_value_of_python_holds(schema: str, is_local: bool) -> None:
    output_type = stencilm.JsonSchema(schema)
    tokenizer = TemplateTokenizer() if is_local else None

    def asked(answer: str, depth: int = 0) -> Chat[Any]:
        if depth:  # far down there is less room for what is nested
            return asked(answer, depth - 1)
        text = answer if is_local else f'{{"turn": {{"answer": {answer}}}}}'
        return chat(Scripted([text], tokenizer), "?", tools=[clock], output_type=output_type)

    assert asked("3").value == 3
    assert asked("4", 300).value == 4
    with pytest.raises((AssertionError, stencilm.StencilError)):
        asked('"x"')


def test_an_answer_with_a_number_beyond_a_float() -> None:
    answer = '{"turn": {"answer": {"far": [1e400, true, "é"]}}}'
    found = chat(
        Scripted([answer]), "How far?", tools=[clock], output_type=stencilm.JsonSchema(True)
    )
    assert found.value == {"far": [Decimal("1e400"), True, "é"]}


@pytest.mark.parametrize("is_local", [True, False])
def test_functions_and_answers_have_every_digit(is_local: bool) -> None:
    number = "0.12345678901234567890123"
    paid = []

    def pay(amount: Annotated[Decimal, Field(gt=0)]) -> str:
        """Pay an amount."""
        paid.append(amount)
        return "done"

    arguments = f'{{"amount": {number}}}'
    call = f'{{"turn": {{"tool_calls": [{{"name": "pay", "arguments": {arguments}}}]}}}}'
    answer = f'{{"turn": {{"answer": {number}}}}}'
    texts = [HERMES % ("pay", arguments), number] if is_local else [call, answer]
    tokenizer = TemplateTokenizer() if is_local else None
    output_type = Annotated[Decimal, Field(gt=0)]
    found = chat(Scripted(texts, tokenizer), "Pay.", tools=[pay], output_type=output_type)
    assert paid == [Decimal(number)]
    assert found.value == Decimal(number)


NUMBERS = (
    "0.12345678901234567890123",
    "-12345678901234567890.5",
    "1E+400",
    "-2.5E-999",
    "7" * 5000,
    "12345678901234567890",
    "0.5",
)


def scale(x: Any = None) -> str:
    """Scale."""
    return "done"


def tokenizers(place: Path) -> Iterator[Any]:
    yield TemplateTokenizer()
    transformers = pytest.importorskip("transformers")
    shutil.copytree(Path(stencilm.__file__).parent / "tiny", place / "tiny")
    tokenizer = transformers.AutoTokenizer.from_pretrained(place / "tiny")
    tokenizer.chat_template = CHAT_TEMPLATE
    yield tokenizer


def test_a_model_is_told_each_digit_that_it_wrote(tmp_path: Path) -> None:
    arguments = json.dumps({"x": []}).replace("[]", f"[{', '.join(NUMBERS)}]")
    for tokenizer in tokenizers(tmp_path):
        model = Scripted([HERMES % ("scale", arguments), '"done"'], tokenizer)
        found = chat(model, "Scale.", tools=[scale], output_type=list[str] | str)
        assert json.loads(json.dumps(found.messages, allow_nan=False))
        for messages in (model.prompts[1], found.messages):
            text = chat_text(tokenizer, messages)
            assert HERMES % ("scale", arguments) in text
        again = chat(Scripted(['"done"'], tokenizer), found.messages, output_type=list[str] | str)
        assert again.messages[: len(found.messages)] == found.messages


def test_what_was_changed_is_told_as_it_was_changed() -> None:
    exact = {"x": Decimal("0.2000000000000000001")}
    call = stencilm.ToolCall("scale", {"x": 0.2}, "c", exact=exact)
    assert written_arguments(call) == exact
    assert written_arguments(replace(call, arguments={"x": 0.1})) == {"x": 0.1}
    called = [{"function": {"name": "scale", "arguments": exact}}]
    messages = [{"role": "user", "content": "x", "tool_calls": called}]
    assert '{"x": 0.2000000000000000001}' in chat_text(TemplateTokenizer(), messages)
