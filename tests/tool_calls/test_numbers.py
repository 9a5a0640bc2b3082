"""Numbers in the arguments of calls: as the model wrote them, or said to be none."""

from __future__ import annotations

import dataclasses
import json
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import Field

import stencilm
from stencilm.tool_calls.answers import CallDelta
from stencilm.tool_calls.families import TEMPLATES
from stencilm.tool_calls.functions import tool_of
from stencilm.tool_calls.writer import write_calls

SCHEMA = {
    "type": "object",
    "properties": {"x": {"type": "number"}, "any": {}},
    "required": ["x"],
}
TOOL = {"type": "function", "function": {"name": "scale", "parameters": SCHEMA}}

JSON_CALL = '<tool_call>\n{"name": "scale", "arguments": %s}\n</tool_call>'
CALLS = {
    "hermes": JSON_CALL % '{"x": %s}',
    "qwen_3_coder": "<tool_call>\n<function=scale>\n<parameter=x>\n%s\n</parameter>\n</function>\n"
    "</tool_call>",
    "llama_4_pythonic": "[scale(x=%s)]",
    "functiongemma": "<start_function_call>call:scale{x:%s}<end_function_call>",
}


def parsed(family: str, text: str) -> Any:
    return stencilm.tools(family, [TOOL], reasoning=False).parse(text)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "[NaN]"])
def test_words_that_are_no_json_numbers(word: str) -> None:
    """`json.loads` would read them as floats, which no JSON has and no grammar lets through."""
    for text in (
        JSON_CALL % f'{{"x": {word}}}',
        JSON_CALL % json.dumps(f'{{"x": {word}}}'),  # JSON within a string
    ):
        answer = parsed("hermes", text)
        assert answer.calls == ()
        assert len(answer.problems) == 1 and word.strip("[]") in answer.problems[0]
        assert answer.content == text
    (call,) = parsed("qwen_3_coder", CALLS["qwen_3_coder"] % word).calls
    assert call.arguments == {"x": word}  # a word as any other
    answer = parsed("llama_4_pythonic", CALLS["llama_4_pythonic"] % word)
    assert answer.calls == () and "no counterpart in JSON" in answer.problems[0]


@pytest.mark.parametrize("number", ["1e400", "-2.5E+999"])
@pytest.mark.parametrize("family", CALLS)
def test_numbers_beyond_a_float_are_what_was_written(family: str, number: str) -> None:
    tools = stencilm.tools(family, [TOOL], reasoning=False)
    text = CALLS[family] % number
    parser = tools.parser()
    deltas = [*parser.feed(text), *parser.finish()]
    (call,) = parser.answer.calls
    assert call.arguments == {"x": Decimal(number)} and parser.answer.problems == ()
    handed_on = "".join(one.arguments for one in deltas if isinstance(one, CallDelta))
    assert json.loads(handed_on, parse_float=Decimal) == call.arguments
    again = write_calls(TEMPLATES[family], [(call.name, call.arguments)], {"scale": SCHEMA})
    assert tools.parse(again).calls[0].arguments == call.arguments


def test_integers_of_any_length() -> None:
    digits = "7" * 5_000
    (call,) = parsed("hermes", CALLS["hermes"] % digits).calls
    assert call.arguments == {"x": 7 * (10**5_000 - 1) // 9}
    run = stencilm.ToolCall("scale", call.arguments, "call_0")
    assert run.arguments["x"] % 10 == 7


@pytest.mark.parametrize("family", CALLS)
def test_an_exponent_that_no_number_has_is_named(family: str) -> None:
    answer = parsed(family, CALLS[family] % "1e99999999999999999999")
    assert answer.calls == ()
    assert "1e99999999999999999999 has too large an exponent" in answer.problems[0]


def test_a_dict_that_unpacks_another_is_no_literal() -> None:
    answer = parsed("llama_4_pythonic", '[scale(x={**{"a": 1}})]')
    assert answer.calls == () and "`**`" in answer.problems[0]


EXACT = "0.12345678901234567890123"


@pytest.mark.parametrize("family", CALLS)
def test_functions_are_given_every_digit(family: str) -> None:
    given = []

    def scale(x: Annotated[Decimal, Field(gt=0)]) -> str:
        """Scale.

        Args:
            x: By how much.
        """
        given.append(x)
        return "done"

    tool = tool_of(scale)
    tools = stencilm.tools(family, [tool.definition], reasoning=False)
    parser = tools.parser()
    text = CALLS[family] % EXACT
    deltas = [*parser.feed(text), *parser.finish()]
    (call,) = parser.answer.calls
    assert call.arguments == {"x": float(EXACT)}
    assert call.exact == {"x": Decimal(EXACT)}
    assert tool.outcome(call) == ("done", None)
    assert given == [Decimal(EXACT)]
    written = "".join(delta.arguments for delta in deltas if isinstance(delta, CallDelta))
    assert json.loads(written, parse_float=Decimal) == {"x": Decimal(EXACT)}
    tool.run(stencilm.ToolCall("scale", {"x": 0.5}, "call_0"))
    assert given[1:] == [Decimal("0.5")]
    # Whoever changes the arguments wants those.
    tool.run(dataclasses.replace(call, arguments={"x": 0.25}))
    assert isinstance(call.arguments, dict)
    call.arguments["x"] = 0.75
    tool.run(call)
    assert given[2:] == [Decimal("0.25"), Decimal("0.75")]
