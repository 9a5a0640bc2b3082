"""Texts that are nearly calls: no error, and the same answer however the text is cut.

Calls of every family are written, and then characters are put in, taken out and repeated.
"""

from __future__ import annotations

import copy
import json
import pickle
import random
import sys
from collections import defaultdict
from typing import Any

import pytest

import stencilm
from stencilm.tool_calls.answers import CallDelta, CallDone, ContentDelta, Delta, ReasoningDelta
from stencilm.tool_calls.families import TEMPLATES
from stencilm.tool_calls.writer import write_calls
from tool_calls.requests import CALLS, SCHEMAS, TOOLS

TEXTS = 25
# A tool with a schema, and one without.
GIVEN = [*TOOLS, {"type": "function", "function": {"name": "any"}}]
PIECES = [
    *"\"{}[](),:;\\\n\t '<>|=a0",
    *(
        "\x01",
        "😀",
        "\\u",
        "\\x",
        "NaN",
        "null",
        "True",
        "'''",
        '"""',
        "<think>",
        "</think>",
        "[[[[",
    ),
]


def written(family: str, rng: random.Random) -> str:
    calls = CALLS[rng.choice([*CALLS])]
    if family == "harmony":
        return "".join(
            f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>"
            f"{json.dumps(arguments)}<|call|>"
            for name, arguments in calls
        )
    way = rng.choice([*TEMPLATES[family].ways()])
    return write_calls(way, calls, SCHEMAS, ids=[str(number) for number in range(len(calls))])


def broken(family: str, rng: random.Random) -> str:
    """Calls, and now and then text around them, with a few changes."""
    text = rng.choice(["", "Hi ", "<think>x</think>", "x</think>"]) + written(family, rng)
    text += rng.choice(["", " bye", written(family, rng)])
    for _ in range(rng.randrange(5)):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(4):
            case 0:
                text = text[:at] + rng.choice(PIECES) + text[at:]
            case 1:
                text = text[:at] + text[at + rng.randrange(1, 6) :]
            case 2:
                begin = rng.randrange(len(text) + 1)
                text = text[:at] + text[begin : begin + rng.randrange(1, 30)] + text[at:]
            case _:
                text = text[:at] if rng.random() < 0.3 else text
    return text


def read(
    tools: stencilm.ToolFormat, text: str, length: int
) -> tuple[stencilm.ParsedAnswer, list[Delta]]:
    parser = tools.parser()
    deltas: list[Delta] = []
    for begin in range(0, len(text), length):
        deltas += parser.feed(text[begin : begin + length])
    deltas += parser.finish()
    return parser.answer, deltas


def add_up(answer: stencilm.ParsedAnswer, deltas: list[Delta], text: str) -> None:
    """Whether the deltas are the answer."""
    done = [delta for delta in deltas if isinstance(delta, CallDone)]
    assert [delta.call for delta in done] == [*answer.calls], text
    arguments: dict[int, str] = defaultdict(str)
    names: dict[int, str | None] = {}
    for delta in deltas:
        if isinstance(delta, CallDelta):
            arguments[delta.index] += delta.arguments
            names.setdefault(delta.index, delta.name)
    for delta in done:
        assert names[delta.index] == delta.call.name, text
        found = json.loads(arguments[delta.index])
        assert json.dumps(found) == json.dumps(dict(delta.call.arguments)), text
    said = "".join(
        delta.text for delta in deltas if isinstance(delta, (ContentDelta, ReasoningDelta))
    )
    # What turned out to be reasoning was handed on as content.
    assert sorted(said) == sorted(answer.content + answer.reasoning), text


@pytest.mark.parametrize("family", [*TEMPLATES, "harmony"])
def test_broken_texts_are_read_alike_however_they_are_cut(family: str) -> None:
    rng = random.Random(f"broken {family}")
    for reasoning in ("auto", "enabled", "disabled"):
        tools = stencilm.tools(family, GIVEN, reasoning=reasoning)
        for _ in range(TEXTS):
            text = broken(family, rng)
            answer, deltas = read(tools, text, len(text) or 1)
            add_up(answer, deltas, text)
            for length in (1, rng.randrange(2, 9)):
                again, deltas = read(tools, text, length)
                assert again == answer, text
                add_up(again, deltas, text)


def test_a_call_that_is_none_leaves_nothing_to_the_next_one() -> None:
    broken_call = '{"name": "weather_map", "arguments": {"x"(: 1}}'
    good = '{"name": "weather", "arguments": {"city": "Rome", "days": 2}}'
    tools = stencilm.tools("mistral", GIVEN, reasoning=False)
    answer = tools.parse(f"[TOOL_CALLS][{good}, {broken_call}][TOOL_CALLS][{good}]")
    assert [call.name for call in answer.calls] == ["weather", "weather"]
    assert answer.problems != ()


@pytest.mark.parametrize("family", [*TEMPLATES, "harmony"])
def test_a_mark_that_begins_no_call_is_text(family: str) -> None:
    """What follows it is passed on at once, and is not lost where the answer ends."""
    tools = stencilm.tools(family, GIVEN, reasoning=False)
    for trigger in tools.triggers:
        text = f"The {trigger} mark begins a call."
        answer, deltas = read(tools, text, 1)
        assert answer == tools.parse(text)
        assert "".join(answer.content.split()) == "".join(text.split())
        add_up(answer, deltas, text)
        if '"' in trigger or family == "harmony":
            continue  # what follows may be the rest of a string, or of a message
        parser = tools.parser()
        passed = [delta for delta in parser.feed(text) if isinstance(delta, ContentDelta)]
        assert passed[-1].text.endswith("call.")


@pytest.mark.parametrize(
    "name", ["a:b", "ns.fn:1", "a/b", "5x", "日本", "x,y", "f=1", "functions.x", "_", "a'b"]
)
@pytest.mark.parametrize("family", TEMPLATES)
def test_names_of_other_characters_are_read_as_they_arrive(family: str, name: str) -> None:
    """Also those that contain what follows a name in some families."""
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": name, "parameters": schema}}
    try:
        tools = stencilm.tools(family, [tool], reasoning=False)
    except stencilm.GrammarSyntaxError:
        return  # the family writes no such name
    call = (name, {"q": "v"})
    for way in TEMPLATES[family].ways():
        text = write_calls(way, [call, call], {name: schema}, ids=["0", "1"])
        answer, _ = read(tools, text, 1)
        assert [(one.name, dict(one.arguments)) for one in answer.calls] == [call, call]
        assert answer.problems == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[any("Rome")]', "'\"Rome\")' names no argument"),
        ('[any({"city": "Rome"})]', """'{"city": "' names no argument"""),
        ('[any(city="Rome", 5)]', "'5)' names no argument"),
        ("[any(city)]", "'city)' names no argument"),
    ],
)
@pytest.mark.parametrize("length", [1, 1000])
def test_arguments_of_python_have_names(text: str, problem: str, length: int) -> None:
    tools = stencilm.tools("llama_4_pythonic", GIVEN, reasoning=False)
    answer, _ = read(tools, f"{text} and so on", length)
    assert (answer.content, answer.calls) == (f"{text} and so on", ())
    assert answer.problems == (problem,)


@pytest.mark.parametrize(
    ("text", "content", "problem"),
    [
        ('{"city": "R"} or so<|call|>', "or so", "'or so' follows the arguments of 'any'"),
        (
            '{"city": "R"}{"days": 2}',
            '{"days": 2}',
            "'{\"days\": 2}' follows the arguments of 'any'",
        ),
        ("", "", "the text ends within a call of 'any'"),
        (" ", "", "the text ends within a call of 'any'"),
    ],
)
@pytest.mark.parametrize("length", [1, 1000])
def test_what_a_message_of_harmony_has_beside_a_call_is_told(
    text: str, content: str, problem: str, length: int
) -> None:
    tools = stencilm.tools("harmony", GIVEN, reasoning=False)
    whole = f"<|channel|>commentary to=functions.any <|constrain|>json<|message|>{text}"
    answer, _ = read(tools, whole, length)
    assert (answer.content, answer.problems) == (content, (problem,))
    assert [one.name for one in answer.calls] == ["any"] * bool(content)


@pytest.mark.parametrize("key", ["na\nme", "na\\xme", "na\\ume", "\x01"])
def test_a_key_that_is_no_string_makes_no_call(key: str) -> None:
    text = f'<tool_call>\n{{"{key}": "clock", "arguments": {{}}}}\n</tool_call>'
    answer = stencilm.tools("hermes", GIVEN).parse(text)
    assert answer.content == text
    assert answer.calls == ()
    assert answer.problems != ()


@pytest.mark.parametrize(
    "arguments",
    [
        '{"city": "Rome\nat\tnight\x01", "days": 2}',
        '"{\\"city\\": \\"Rome\\"}"',
        ' "{\\"city\\": \\"Rome\\"}"',
    ],
)
@pytest.mark.parametrize("length", [1, 4, 1000])
@pytest.mark.parametrize(
    ("family", "call"),
    [
        ("hermes", '<tool_call>{"name": "weather", "arguments": ARGUMENTS}</tool_call>'),
        ("hermes", '<tool_call>{"arguments": ARGUMENTS, "name": "weather"}</tool_call>'),
        ("deepseek_v3_1", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>"
         "ARGUMENTS<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
    ],
)  # fmt: skip
def test_arguments_are_handed_on_as_one_object(
    family: str, call: str, length: int, arguments: str
) -> None:
    text = call.replace("ARGUMENTS", arguments)
    answer, deltas = read(stencilm.tools(family, GIVEN, reasoning=False), text, length)
    assert len(answer.calls) == 1
    add_up(answer, deltas, text)


def test_code_is_handed_on_as_an_object() -> None:
    text = "<|channel|>analysis to=python code<|message|>print(1)<|call|>"
    answer, deltas = read(stencilm.tools("harmony", GIVEN), text, 3)
    assert answer.calls[0].arguments == {"code": "print(1)"}
    add_up(answer, deltas, text)


def test_a_parser_is_not_copied() -> None:
    """A copy would read on in the text of the first one."""
    parser = stencilm.tools("qwen_3", [], reasoning=False).parser()
    parser.feed("Hello")
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="neither copied nor pickled: make another one"):
            copied(parser)


# A call in a style of each kind, whose one argument is this JSON.
DEEP_CALLS = {
    "hermes": '<tool_call>{"name": "f", "arguments": {"x": DEEP}}</tool_call>',
    "mistral": '[TOOL_CALLS][{"name": "f", "arguments": {"x": DEEP}}]',
    "qwen3-coder": (
        "<tool_call>\n<function=f>\n<parameter=x>\nDEEP\n</parameter>\n</function>\n</tool_call>"
    ),
    "glm-4.5": ("<tool_call>f\n<arg_key>x</arg_key>\n<arg_value>DEEP</arg_value>\n</tool_call>"),
    "pythonic": "[f(x=DEEP)]",
    "harmony": (
        '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"x": DEEP}<|call|>'
    ),
}


def depth_of(value: Any) -> int:
    """How many lists are one within the other."""
    depth = 1
    while value:
        (value,) = value
        depth += 1
    return depth


# Python 3.14 reads deeper than 3.11 does.
@pytest.mark.parametrize("depth", [600, 900, 1_500, 50_000])
@pytest.mark.parametrize("family", DEEP_CALLS)
def test_arguments_that_are_nested_too_deeply_are_a_problem(family: str, depth: int) -> None:
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"x": {}}}}
    known = stencilm.tools(family, [{"type": "function", "function": tool}])
    shallow = known.parse(DEEP_CALLS[family].replace("DEEP", "[[]]"))
    assert [call.arguments for call in shallow.calls] == [{"x": [[]]}]
    found = known.parse(DEEP_CALLS[family].replace("DEEP", "[" * depth + "]" * depth))
    if found.calls and sys.version_info >= (3, 12) and depth < 1_000:
        (call,) = found.calls
        assert depth_of(call.arguments["x"]) == depth and not found.problems
    else:
        assert found.calls == () and found.problems
