"""Conversations with tools: local models and models behind an API, written by scripts."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field, create_model, field_validator

import stencilm
from endpoints.scripted import served
from stencilm.errors import GrammarSyntaxError, UnsupportedFeature
from stencilm.generation.result import Generation, InvalidOutput
from stencilm.generation.stats import Stats
from stencilm.generation.trace import Trace
from stencilm.models import chat as conversations
from stencilm.models.chat import Chat, Talk
from stencilm.models.prompts import Conversation, chat_text
from stencilm.tool_calls.answers import written_arguments
from stencilm.tool_calls.functions import tool_of

STATS = Stats(
    prompt_tokens=0,
    tokens=0,
    forced_tokens=0,
    forward_passes=0,
    mask_seconds=0.0,
    model_seconds=0.0,
    sampling_seconds=0.0,
    seconds=0.0,
    seed=None,
)


class Scripted:
    """A model that writes what a script says, each text checked against its grammar."""

    def __init__(self, texts: Sequence[str], tokenizer: Any = None) -> None:
        self.texts = iter(texts)
        self.prompts: list[Any] = []
        self.compiler = stencilm.GrammarCompiler(
            stencilm.TokenizerInfo.from_file(stencilm.__path__[0] + "/tiny")
        )
        if tokenizer is not None:
            self.backend = type("Backend", (), {"tokenizer": tokenizer})()

    def generate(self, prompt: Any, output_type: Any = str, **_: Any) -> Generation[Any]:

        self.prompts.append(prompt)
        text = next(self.texts)
        compiled = self.compiler.compile(stencilm.Grammar.from_type(output_type))
        matcher = stencilm.GrammarMatcher(compiled)
        assert matcher.accept_string(text) and matcher.is_completed(), text
        return Generation(
            text=text,
            token_ids=(),
            finish_reason="stop",
            is_complete=True,
            trace=Trace(),
            stats=STATS,
        )

    async def agenerate(self, prompt: Any, output_type: Any = str, **_: Any) -> Generation[Any]:
        await asyncio.sleep(0)
        return self.generate(prompt, output_type)


def chat(model: Scripted, messages: Any, **wishes: Any) -> Chat[Any]:
    return conversations.chat(model, Talk(messages, **wishes))


def awaited(model: Scripted, messages: Any, **wishes: Any) -> Chat[Any]:
    return asyncio.run(conversations.achat(model, Talk(messages, **wishes)))


CHAT_TEMPLATE = (
    "{% if tools %}<|system|>{{ tools | tojson }}<|end|>{% endif %}"
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}"
    "{{ '<tool_call>\\n' ~ {'name': c.function.name, 'arguments': c.function.arguments} | tojson"
    " ~ '\\n</tool_call>' ~ ('' if loop.last else '\\n') }}{% endfor %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


class TemplateTokenizer:
    chat_template = CHAT_TEMPLATE
    name_or_path = "scripted"

    def apply_chat_template(self, messages: Any, *, tools: Any = None, **_: Any) -> str:
        from stencilm.chat_templates.renderer import Renderer

        return Renderer(CHAT_TEMPLATE).render(messages, tools=tools, add_generation_prompt=True)


def weather(city: str, day: date | None = None, unit: Literal["C", "F"] = "C") -> dict[str, Any]:
    """The weather of a city.

    Args:
        city: The name of the city.
        day: Which day;
            today where none is given.

    Returns:
        What it is like.
    """
    if city == "Atlantis":
        raise LookupError("no such city")
    return {"city": city, "day": None if day is None else day.isoformat(), "unit": unit}


def clock() -> str:
    """What time it is."""
    return "noon"


class Answer(BaseModel):
    city: str
    degrees: int = Field(ge=-90, le=60)


HERMES = '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>'
DAY = '{"city": "Rome", "day": "2026-05-01"}'
LOCAL = [
    HERMES % ("weather", DAY) + "\n" + HERMES % ("clock", "{}"),
    '{"city": "Rome", "degrees": 21}',
]
REMOTE = [
    '{"turn": {"tool_calls": [{"name": "weather", "arguments": '
    + DAY
    + '}, {"name": "clock", "arguments": {}}]}}',
    '{"turn": {"answer": {"city": "Rome", "degrees": 21}}}',
]


@pytest.fixture(params=["local", "remote"])
def model(request: pytest.FixtureRequest) -> Iterator[Scripted]:
    is_local = request.param == "local"
    yield Scripted(LOCAL if is_local else REMOTE, TemplateTokenizer() if is_local else None)


@pytest.mark.parametrize("talk", [chat, awaited])
def test_calls_are_run_until_there_is_an_answer(
    model: Scripted, talk: Callable[..., Chat[Any]]
) -> None:
    found = talk(model, "How is Rome?", tools=[weather, clock], output_type=Answer)
    assert found.value == Answer(city="Rome", degrees=21)
    assert [result.value for result in found.results] == [
        {"city": "Rome", "day": "2026-05-01", "unit": "C"},
        "noon",
    ]
    assert [result.call.id for result in found.results] == ["call_0", "call_1"]
    assert len(found.turns) == 2 and found.pending == ()
    told = json.dumps(found.messages)
    assert "noon" in told and "2026-05-01" in told
    assert all(turn.generation.text for turn in found.turns)


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


def test_a_local_model_is_told_of_the_tools_by_its_template() -> None:
    model = Scripted(LOCAL, TemplateTokenizer())
    found = chat(model, "How is Rome?", tools=[weather, clock], output_type=Answer)
    assert isinstance(model.prompts[0], Conversation)
    assert [tool["function"]["name"] for tool in model.prompts[0].tools] == ["weather", "clock"]
    roles = [message["role"] for message in found.messages]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"]
    assert found.messages[1]["tool_calls"][0]["function"]["arguments"]["city"] == "Rome"
    assert found.messages[2]["tool_call_id"] == "call_0"


def test_what_a_function_raises_is_told_or_raised() -> None:
    texts = [
        '{"turn": {"tool_calls": [{"name": "weather", "arguments": {"city": "Atlantis"}}]}}',
        '{"turn": {"answer": "It is under water."}}',
    ]
    found = chat(Scripted(texts), "How is Atlantis?", tools=[weather])
    assert found.value == "It is under water."
    assert isinstance(found.results[0].error, LookupError)
    assert "no such city" in found.messages[2]["content"]
    with pytest.raises(LookupError, match="no such city"):
        chat(Scripted(texts), "How is Atlantis?", tools=[weather], on_error="raise")


def test_the_loop_is_bounded() -> None:
    call = '{"turn": {"tool_calls": [{"name": "clock", "arguments": {}}]}}'
    found = chat(
        Scripted([call, call, '{"turn": {"answer": "noon"}}']), "When?", tools=[clock], max_rounds=2
    )
    assert found.value == "noon" and len(found.results) == 2
    with pytest.raises(AssertionError):
        # The grammar of the last turn holds no calls.
        chat(Scripted([call, call]), "When?", tools=[clock], max_rounds=1)


def test_choices() -> None:
    call = '{"turn": {"tool_calls": [{"name": "clock", "arguments": {}}]}}'
    answer = '{"turn": {"answer": "noon"}}'
    named = {"type": "function", "function": {"name": "clock"}}
    for choice in ("required", named):
        found = chat(Scripted([call, answer]), "When?", tools=[clock, weather], tool_choice=choice)
        assert found.value == "noon" and len(found.results) == 1
        with pytest.raises(AssertionError):
            chat(Scripted([answer]), "When?", tools=[clock, weather], tool_choice=choice)
    found = chat(Scripted([answer]), "When?", tools=[clock], tool_choice="none")
    assert found.value == "noon"
    with pytest.raises(GrammarSyntaxError, match="none of the tools"):
        chat(
            Scripted([answer]),
            "When?",
            tools=[clock],
            tool_choice={"type": "function", "name": "x"},
        )


def test_a_call_that_no_tool_can_be_is_refused() -> None:
    named = {"type": "function", "function": {"name": "clock"}}
    for choice, said in (("required", "there is no tool"), (named, "none of the tools")):
        with pytest.raises(GrammarSyntaxError, match=said):
            chat(Scripted([]), "When?", tools=[], tool_choice=choice)
    with pytest.raises(GrammarSyntaxError, match="tool_choice is 'always'"):
        chat(Scripted([]), "When?", tools=[], tool_choice="always")
    text = '{"turn": {"answer": "noon"}}'
    assert chat(Scripted([text]), "When?", tools=[], tool_choice="none").value == "noon"


@pytest.mark.parametrize("kind", ["custom", "web_search", None, 3])
def test_a_tool_that_is_no_function_is_refused(kind: Any) -> None:
    with pytest.raises(GrammarSyntaxError, match=rf"#/tools/0/type: .* type {kind!r}, and a"):
        chat(Scripted([]), "Hm?", tools=[{"type": kind, "name": "search"}])


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"pattern": r"(a)\1"}, "pattern: "),
        ({"$ref": "#/$defs/no"}, '$ref "#/$defs/no": nothing stands there'),
    ],
)
def test_a_schema_that_cannot_be_enforced_is_told_of_its_tool(
    schema: Any, said: str, is_async: bool
) -> None:
    parameters = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    bad = {"type": "function", "function": {"name": "bad", "parameters": parameters}}
    tools: list[Any] = [clock, bad]
    model = stencilm.load("tiny")
    with pytest.raises(stencilm.StencilError) as raised:
        asyncio.run(model.achat("?", tools)) if is_async else model.chat("?", tools)
    place = "#/tools/1/parameters/properties/a"
    assert str(raised.value).startswith(f"{place}: in the parameters of 'bad': {said}")


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "object", "properties": {"a": False}, "required": ["a"]}, ""),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, ""),
        ({"type": "object", "required": ["a"], "additionalProperties": False}, ""),
        (
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/N"}},
                "required": ["a"],
                "$defs": {"N": {"type": "array", "items": {"$ref": "#/$defs/N"}, "minItems": 1}},
            },
            "/$defs/N/items",
        ),
    ],
)
def test_a_tool_that_no_arguments_fit_is_refused_beside_others_too(
    schema: Any, place: str, is_async: bool, beside: bool
) -> None:
    bad = {"type": "function", "function": {"name": "bad", "parameters": schema}}
    tools: list[Any] = [clock, bad] if beside else [bad]
    model = stencilm.load("tiny")
    with pytest.raises(stencilm.Unsatisfiable) as raised:
        asyncio.run(model.achat("?", tools)) if is_async else model.chat("?", tools)
    place = f"#/tools/{len(tools) - 1}/parameters{place}"
    assert str(raised.value).startswith(f"{place}: in the parameters of 'bad': ")


def test_a_tool_that_no_arguments_fit_is_no_matter_where_it_may_not_be_called() -> None:
    schema = {"type": "object", "properties": {"a": False}, "required": ["a"]}
    bad = {"type": "function", "function": {"name": "bad", "parameters": schema}}
    text = '{"turn": {"answer": "Noon."}}'
    assert chat(Scripted([text]), "?", tools=[clock, bad], tool_choice="none").value == "Noon."


def test_a_tool_without_a_function_ends_the_conversation() -> None:
    tool = {"type": "function", "function": {"name": "ask", "parameters": {"type": "object"}}}
    text = '{"turn": {"tool_calls": [{"name": "ask", "arguments": {"a": [1]}}]}}'
    found = chat(Scripted([text]), "Hm?", tools=[tool])
    assert found.value is None
    assert [(call.name, call.arguments) for call in found.pending] == [("ask", {"a": [1]})]


@pytest.mark.parametrize("run", [chat, awaited])
def test_other_calls_beside_one_that_is_pending_are_run(run: Callable[..., Chat[Any]]) -> None:
    tool = {"type": "function", "function": {"name": "ask", "parameters": {"type": "object"}}}
    calls = [
        {"name": "ask", "arguments": {}},
        {"name": "weather", "arguments": {"city": "Rome"}},
    ]
    text = json.dumps({"turn": {"tool_calls": calls}})
    found = run(Scripted([text]), "Hm?", tools=[tool, weather])
    assert [(call.name, call.id) for call in found.pending] == [("ask", "call_0")]
    assert [(result.call.id, result.value["city"]) for result in found.results] == [
        ("call_1", "Rome")
    ]
    told = json.loads(found.messages[-1]["content"])["results"]
    assert [(one["id"], one["name"]) for one in told] == [("call_1", "weather")]


class Sky(str, Enum):
    CLEAR = "clear"


def sky() -> Sky:
    """The sky."""
    return Sky.CLEAR


def test_a_member_of_an_enum_of_texts_is_told_as_its_text() -> None:
    tokenizer = TemplateTokenizer()
    called = '<tool_call>\n{"name": "sky", "arguments": {}}\n</tool_call>'
    model = Scripted([called, "Clear."], tokenizer)
    found = chat(model, "The sky?", tools=[sky])
    assert found.results[0].value is Sky.CLEAR
    assert "<|tool|>clear<|end|>" in chat_text(tokenizer, model.prompts[1])
    assert type(found.messages[2]["content"]) is str


def even(number: int) -> int:
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number


def test_validators_refuse_and_the_model_is_told() -> None:
    kind = Annotated[int, AfterValidator(even)]
    texts = ['{"turn": {"answer": 3}}', '{"turn": {"answer": 4}}']
    found = chat(Scripted(texts), "A number?", output_type=kind)
    assert found.value == 4
    assert "3 is odd" in json.dumps(found.messages)
    with pytest.raises(InvalidOutput, match="3 is odd"):
        chat(Scripted(texts), "A number?", output_type=kind, max_rounds=0)


class Node(BaseModel):
    name: str
    children: list[Node] = []


def grow(tree: Node, others: list[Node]) -> int:
    """Counts."""
    return 1 + len(tree.children) + len(others)


def test_recursive_types_keep_their_definitions() -> None:
    text = (
        '{"turn": {"tool_calls": [{"name": "grow", "arguments": {"tree": {"name": "a", "children": '
        '[{"name": "b"}]}, "others": []}}]}}'
    )
    answer = '{"turn": {"answer": {"name": "root", "children": [{"name": "leaf"}]}}}'
    found = chat(Scripted([text, answer]), "Grow.", tools=[grow], output_type=Node)
    assert found.results[0].value == 2
    assert found.value == Node(name="root", children=[Node(name="leaf")])


class Item(BaseModel):
    a: Literal["of the tool"]


def other_item() -> type[BaseModel]:
    """Another type of the same name."""

    class Item(BaseModel):
        b: Literal["of the answer"]

    return create_model("Wanted", item=(Item, ...))


def answer(item: Item) -> str:
    """Has the name that the definitions of answers begin with."""
    return item.a


def test_definitions_of_one_name_are_kept_apart() -> None:
    texts = [
        '{"turn": {"tool_calls": [{"name": "answer", "arguments": {"item": {"a": "of the tool"}}}]'
        "}}",
        '{"turn": {"answer": {"item": {"b": "of the answer"}}}}',
    ]
    found = chat(Scripted(texts), "?", tools=[answer], output_type=other_item())
    assert (found.results[0].value, found.results[0].error) == ("of the tool", None)
    assert found.value is not None and found.value.item.b == "of the answer"
    wrong = '{"turn": {"tool_calls": [{"name": "answer", "arguments": {"item": {"b": "of the an'
    with pytest.raises(AssertionError, match="of the an"):
        chat(Scripted([wrong + 'swer"}}}]}}']), "?", tools=[answer], output_type=other_item())


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"properties": {"a": {"enum": [1]}, "b": {"$ref": "#/properties/a"}}}, {"a": 1, "b": 1}),
        ({"properties": {"a": {"const": {"$ref": "#"}}}}, {"a": {"$ref": "#"}}),
        (
            {
                "$id": "https://example.org/tool",
                "properties": {"a": {"$ref": "https://example.org/tool#/$defs/one"}},
                "$defs": {"one": {"const": 1}},
            },
            {"a": 1},
        ),
        (
            {
                "properties": {"a": {"$ref": "#/$defs/q"}, "b": {"$ref": "#/definitions/q"}},
                "$defs": {"q": {"const": 1}},
                "definitions": {"q": {"const": 2}},
            },
            {"a": 1, "b": 2},
        ),
        (
            {
                "properties": {"a": {"anyOf": [{"$ref": "#"}, {"const": 0}]}},
                "$defs": {"root": {"const": "r"}},
            },
            {"a": {"a": 0}},
        ),
        (
            {
                "properties": {"a": {"$ref": "#one"}},
                "$defs": {"q": {"$anchor": "one", "const": 1}},
            },
            {"a": 1},
        ),
        (
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "properties": {"a": {"$ref": "#/definitions/q", "maximum": 0}},
                "definitions": {"q": {"const": 1}},
            },
            {"a": 1},
        ),
        (
            {
                "properties": {"a": {"$dynamicRef": "#one"}},
                "$defs": {"q": {"$dynamicAnchor": "one", "const": 1}},
            },
            {"a": 1},
        ),
    ],
)
def test_schemas_of_tools_say_the_same_within_the_whole(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    names = ("one", "two", "three/of ~")[: 1 if "$id" in schema else 3]
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"} | schema}}
        for name in names
    ]
    calls = [{"name": name, "arguments": arguments} for name in names]
    text = json.dumps({"turn": {"tool_calls": calls}})
    found = chat(Scripted([text]), "?", tools=tools, output_type=Node)
    assert [call.arguments for call in found.pending] == [arguments] * len(tools)
    for name in arguments:
        wrong = json.dumps({"turn": {"tool_calls": [calls[0] | {"arguments": {name: "no"}}]}})
        with pytest.raises(AssertionError, match="no"):
            chat(Scripted([wrong]), "?", tools=tools, output_type=Node)


async def later() -> None:
    """Comes later."""


def by_place(a: int, /) -> None:
    """Takes it by place."""


def test_refusals() -> None:
    with pytest.raises(UnsupportedFeature, match="later"):
        chat(Scripted([]), "x", tools=[later])
    with pytest.raises(UnsupportedFeature, match="by_place"):
        chat(Scripted([]), "x", tools=[by_place])
    with pytest.raises(GrammarSyntaxError, match="'clock'"):
        chat(Scripted([]), "x", tools=[clock, clock])
    with pytest.raises(GrammarSyntaxError, match="3"):
        chat(Scripted([]), "x", tools=[3])
    with pytest.raises(ValueError, match="max_rounds"):
        chat(Scripted([]), "x", max_rounds=-1)
    with pytest.raises(ValueError, match="on_error"):
        chat(Scripted([]), "x", on_error="hide")
    with pytest.raises(TypeError, match="messages"):
        chat(Scripted([]), 3)


async def tide(port: str) -> str:
    """The tide in a port."""
    await asyncio.sleep(0)
    if port == "Atlantis":
        raise LookupError("no such port")
    return f"high in {port}"


def read(path: str) -> Awaitable[str]:
    """Reads a file."""

    async def reading() -> str:
        return f"all of {path}"

    return reading()


def test_asynchronous_tools_are_awaited() -> None:
    calls = '{"name": "tide", "arguments": {"port": "%s"}}, {"name": "clock", "arguments": {}}'
    calls += ', {"name": "read", "arguments": {"path": "a"}}'
    texts = ['{"turn": {"tool_calls": [' + calls + "]}}", '{"turn": {"answer": "high"}}']
    given = {"tools": [tide, clock, read]}
    found = awaited(Scripted([texts[0] % "Oslo", texts[1]]), "Oslo?", **given)
    assert found.value == "high"
    assert [result.value for result in found.results] == ["high in Oslo", "noon", "all of a"]
    found = awaited(Scripted([texts[0] % "Atlantis", texts[1]]), "Atlantis?", **given)
    assert isinstance(found.results[0].error, LookupError)
    with pytest.raises(LookupError, match="no such port"):
        awaited(Scripted([texts[0] % "Atlantis"]), "Atlantis?", **given, on_error="raise")


def stop() -> str:
    """Raises what ends generators."""
    raise StopIteration("no more")


@pytest.mark.parametrize("talk", [chat, awaited])
def test_whatever_a_function_raises_is_told(talk: Callable[..., Chat[Any]]) -> None:
    texts = ['{"turn": {"tool_calls": [{"name": "stop", "arguments": {}}]}}']
    texts.append('{"turn": {"answer": "none"}}')
    found = talk(Scripted(texts), "Go on.", tools=[stop])
    assert found.value == "none" and "no more" in json.dumps(found.messages)


class Unspeakable:
    """What has no text."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


class SpeechlessError(Exception):
    """What cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def rows(count: int, fails_at: int = -1) -> Iterator[int]:
    for number in range(count):
        if number == fails_at:
            raise LookupError("the connection is gone")
        yield number


def nested() -> Any:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    return value


def raises() -> None:
    raise SpeechlessError


def circle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def within() -> dict[str, Any]:
    return {"all": (map(rows, (1, 2)), 1)}


class Changing:
    """Values that are others when they are looked at again."""

    def __init__(self) -> None:
        self.given: list[int] = [1]

    def of_today(self) -> list[int]:
        self.given.append(len(self.given) + 1)
        return self.given


def result_of(
    talk: Callable[..., Chat[Any]], function: Any, **more: Any
) -> conversations.ToolResult:
    name = getattr(function, "__name__", "function")
    texts = [json.dumps({"turn": {"tool_calls": [{"name": name, "arguments": {}}]}})]
    texts.append('{"turn": {"answer": "none"}}')
    found = talk(Scripted(texts), "Go on.", tools=[function], **more)
    (result,) = found.results
    # The same when it is read again, and what the model was told.
    assert json.loads(found.messages[-2]["content"])["results"][0]["result"] == result.text
    return result


@pytest.mark.parametrize("talk", [chat, awaited])
def test_an_iterator_is_read_once(talk: Callable[..., Chat[Any]]) -> None:
    for function in (lambda: rows(3), lambda: iter([0, 1, 2]), lambda: map(int, "012")):
        function.__name__ = "f"
        result = result_of(talk, function)
        assert (result.text, result.value) == ("[0,1,2]", [0, 1, 2])
    result = result_of(talk, within)
    assert result.value == {"all": ([[0], [0, 1]], 1)} and result.text == '{"all":[[[0],[0,1]],1]}'
    assert result_of(talk, circle).text == "[[...]]"
    changing = Changing()
    result = result_of(talk, changing.of_today)
    changing.of_today()
    assert result.text == "[1,2]"


@pytest.mark.parametrize("talk", [chat, awaited])
@pytest.mark.parametrize(
    ("function", "kind", "told"),
    [
        (lambda: rows(3, fails_at=1), LookupError, "LookupError: the connection is gone"),
        (lambda: itertools.count(), stencilm.LimitExceeded, "gave more than 262,144 values"),
        (lambda: {"a": map(itertools.count, [1])}, stencilm.LimitExceeded, "gave more than"),
        (Unspeakable, RuntimeError, "no words"),
        (lambda: [Unspeakable()], RuntimeError, "no words"),
        (nested, RecursionError, "RecursionError: "),
        (raises, SpeechlessError, "SpeechlessError"),
    ],
    ids=["fails", "endless", "endless-within", "unspeakable", "within", "nested", "speechless"],
)
def test_what_cannot_be_told_is_an_error_of_the_tool(
    talk: Callable[..., Chat[Any]], function: Any, kind: type[Exception], told: str
) -> None:
    def tool() -> Any:
        return function()

    result = result_of(talk, tool)
    assert isinstance(result.error, kind) and result.value is None
    assert told in json.loads(result.text)["error"]
    with pytest.raises(kind):
        result_of(talk, tool, on_error="raise")


def test_asynchronous_iterators_are_read() -> None:
    async def numbers() -> AsyncIterator[int]:
        for number in range(3):
            await asyncio.sleep(0)
            yield number

    async def later() -> Any:
        return numbers()

    for function in (numbers, later, lambda: numbers()):
        function.__name__ = "f"
        result = result_of(awaited, function)
        assert (result.text, result.value) == ("[0,1,2]", [0, 1, 2])
    with pytest.raises(UnsupportedFeature, match="is asynchronous: await"):
        tool_of(numbers)


@pytest.mark.filterwarnings("error")
def test_what_is_to_be_awaited_is_told_where_nothing_awaits_it() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1

    def file() -> Awaitable[str]:
        return read("x")

    def stream() -> AsyncIterator[int]:
        return numbers()

    for function in (file, stream):
        with pytest.raises(UnsupportedFeature, match=f"{function.__name__} is asynchronous"):
            result_of(chat, function)


async def _numbers(count: int, fails: bool = False) -> AsyncIterator[int]:
    for number in range(count):
        await asyncio.sleep(0)
        yield number
    if fails:
        raise LookupError("the connection is gone")


async def _later(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


async def _lists(count: int) -> AsyncIterator[Any]:
    for number in range(count):
        yield _numbers(number)


WITHIN: dict[str, tuple[Callable[[], Any], str]] = {
    "a list": (lambda: [_numbers(2), 5], "[[0,1],5]"),
    "a tuple": (lambda: (_numbers(2), rows(2)), "[[0,1],[0,1]]"),
    "a dict": (lambda: {"a": [{"b": _numbers(2)}]}, '{"a":[{"b":[0,1]}]}'),
    "an iterator": (lambda: iter([_numbers(1), _numbers(2)]), "[[0],[0,1]]"),
    "a coroutine": (lambda: [_later("x"), _later([rows(2)])], '["x",[[0,1]]]'),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", WITHIN)
def test_what_is_to_be_awaited_within_a_value(name: str) -> None:
    function, told = WITHIN[name]
    result = result_of(awaited, function)
    assert result.text == told and json.dumps(result.value, separators=(",", ":")) == told
    for on_error in ("tell", "raise"):
        with pytest.raises(UnsupportedFeature, match="is asynchronous: await"):
            result_of(chat, function, on_error=on_error)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda: _lists(3), "[[],[0],[0,1]]"),
        (lambda: _later(rows(3)), "[0,1,2]"),
        (lambda: _later([_numbers(1)]), "[[0]]"),
        (lambda: _later(_later(1)), "1"),
    ],
)
def test_what_awaited_values_hold_is_read(function: Callable[[], Any], told: str) -> None:
    result = result_of(awaited, function)
    assert result.text == told == json.dumps(result.value, separators=(",", ":"))


@pytest.mark.filterwarnings("error")
def test_asynchronous_iterators_within_a_value_that_fail_or_do_not_end() -> None:
    result = result_of(awaited, lambda: [_numbers(1, fails=True), _later(1)])
    assert isinstance(result.error, LookupError) and result.value is None
    result = result_of(awaited, lambda: {"a": [_numbers(1 << 19)]})
    assert isinstance(result.error, stencilm.LimitExceeded)


@pytest.mark.parametrize("depth", [600, 3_000])
def test_a_turn_that_is_nested_too_deeply_is_told(depth: int) -> None:
    def show(value: Any) -> str:
        return "shown"

    deep = "[" * depth + "]" * depth
    call = '{"turn": {"tool_calls": [{"name": "show", "arguments": {"value": ' + deep + "}}]}}"
    model = Scripted([call, '{"turn": {"answer": "done"}}'])
    try:
        found = chat(model, "Go on.", tools=[show])
    except InvalidOutput as error:
        assert "the turn cannot be read: maximum recursion" in str(error)
    else:  # Python 3.14 reads deeper than 3.11 does.
        assert sys.version_info >= (3, 12) and depth < 1_000
        assert json.dumps(found.results[0].call.arguments["value"]) == deep


def test_the_tiny_model_ends_with_a_valid_answer() -> None:
    model = stencilm.load("tiny")
    found = model.chat(
        "What time is it?", [clock], output_type=Answer, max_rounds=1, max_tokens=200, seed=1
    )
    assert isinstance(found.value, Answer)
    assert all(result.value == "noon" for result in found.results)
    again = asyncio.run(
        model.achat(
            "What time is it?", [clock], output_type=Answer, max_rounds=1, max_tokens=200, seed=1
        )
    )
    assert again.messages == found.messages


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_model_behind_an_api_calls_tools(provider: str) -> None:
    library = pytest.importorskip(provider)
    told: list[str] = []

    def answer(body: dict[str, Any], number: int) -> str:
        told.append(json.dumps(body))
        return REMOTE[number - 1]

    with served(answer) as (address, _):
        if provider == "openai":
            client = library.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
            model = stencilm.from_openai(client, "gpt-5.2")
        else:
            client = library.Anthropic(base_url=address, api_key="k", max_retries=0)
            model = stencilm.from_anthropic(client, "claude-sonnet-5")
        found = model.chat("How is Rome?", [weather, clock], output_type=Answer)
    assert found.value == Answer(city="Rome", degrees=21)
    assert [result.value for result in found.results][1] == "noon"
    assert all(turn.generation.guided is not None for turn in found.turns)
    assert "You can call these functions" in told[0] and "noon" in told[-1]


def stops(x: int = 1) -> int:
    """Stops."""
    raise StopIteration("mine")


async def stops_later(x: int = 1) -> int:
    """Stops."""
    raise StopIteration("mine")


def stops_within(x: int = 1) -> Iterator[int]:
    """Stops."""
    yield 1
    raise StopIteration("mine")


@pytest.mark.parametrize(
    ("tool", "talk"),
    [
        (stops, chat),
        (stops, awaited),
        (stops_within, chat),
        (stops_within, awaited),
        (stops_later, awaited),
    ],
)
def test_a_tool_that_raises_stop_iteration(tool: Any, talk: Any) -> None:
    call = {"turn": {"tool_calls": [{"name": tool.__name__, "arguments": {}}]}}
    texts = [json.dumps(call), '{"turn": {"answer": 1}}']
    found = talk(Scripted(texts), "?", tools=[tool], output_type=int)
    assert found.value == 1
    assert [result.text for result in found.results] == ['{"error": "StopIteration: mine"}']
    with pytest.raises(RuntimeError, match=f"the tool '{tool.__name__}' raises StopIter") as caught:
        talk(Scripted(texts), "?", tools=[tool], output_type=int, on_error="raise")
    assert isinstance(caught.value.__cause__, StopIteration)


class Trip(BaseModel):
    city: str
    days: int

    @field_validator("city")
    @classmethod
    def known(cls, value: str) -> str:
        if value == "Atlantis":
            raise ValueError("no such city")
        return value

    @field_validator("days")
    @classmethod
    def few(cls, value: int) -> int:
        if value > 30:
            raise ValueError("too many")
        return value


def test_a_refused_answer_is_told_in_a_line_for_each_fault(model: Scripted) -> None:
    is_local = hasattr(model, "backend")
    texts = ['{"city": "Atlantis", "days": 99}', '{"city": "Rome", "days": 3}']
    written = texts if is_local else [f'{{"turn": {{"answer": {text}}}}}' for text in texts]
    scripted = Scripted(written, TemplateTokenizer() if is_local else None)
    found = chat(scripted, "Where?", output_type=Trip)
    assert found.value == Trip(city="Rome", days=3)
    told = (
        "That was refused:\n"
        '- city: Value error, no such city (it is "Atlantis")\n'
        "- days: Value error, too many (it is 99)\n"
        "Answer again."
    )
    _, refused, complaint, _ = found.messages
    assert (refused["role"], refused["content"]) == ("assistant", written[0])
    assert (complaint["role"], complaint["content"]) == ("user", told)
    said = "; ".join(line.removeprefix("- ") for line in told.splitlines()[1:3])
    scripted = Scripted(written[:1], TemplateTokenizer() if is_local else None)
    with pytest.raises(InvalidOutput, match=re.escape(f"is refused by Trip: {said}")) as caught:
        chat(scripted, "Where?", output_type=Trip, max_rounds=0)
    assert caught.value.text == texts[0] and "\n" not in str(caught.value)


def test_each_fault_of_arguments_is_told_to_the_model() -> None:
    def book(trip: Trip) -> str:
        """Books a trip."""
        return "done"

    call = {"name": "book", "arguments": {"trip": {"city": "Atlantis", "days": 99}}}
    texts = [json.dumps({"turn": {"tool_calls": [call]}}), '{"turn": {"answer": "no"}}']
    (result,) = chat(Scripted(texts), "Book!", tools=[book]).results
    assert json.loads(result.text)["error"].splitlines() == [
        'trip/city: Value error, no such city (it is "Atlantis")',
        "trip/days: Value error, too many (it is 99)",
    ]


def test_a_second_turn_in_an_answer_is_told() -> None:
    """A model that goes on as if a call had been answered: only its first turn counts."""
    openai = pytest.importorskip("openai")
    answers = [
        '{"turn": {"tool_calls": [{"name": "clock", "arguments": {}}]}}\n{"turn": {"answer": 7}}',
        '{"turn": {"answer": 12}} or {"turn": {"answer": 13}}',
    ]
    with served(lambda body, number: answers[number - 1]) as (address, script):
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        found = stencilm.from_openai(client, "gpt-5.2").chat("When?", [clock], output_type=int)
    assert found.value == 12 and [result.value for result in found.results] == ["noon"]
    seconds = ['{"turn": {"answer": 7}}', '{"turn": {"answer": 13}}']
    assert found.left_out == tuple(stencilm.LeftOut("", text, False) for text in seconds)
    assert [turn.generation.left_out for turn in found.turns] == [(one,) for one in found.left_out]
    assert found.turns[0].generation.to_json()["left_out"][0]["text"] == seconds[0]
    assert "noon" in str(script.requests[1]) and "7}}" not in str(script.requests[1])


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_an_asynchronous_client_is_awaited(provider: str) -> None:
    library = pytest.importorskip(provider)

    def answer(_: dict[str, Any], number: int) -> str:
        return REMOTE[number - 1]

    async def talk(address: str) -> Chat[Any]:
        if provider == "openai":
            client = library.AsyncOpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
            model = stencilm.from_openai(client, "gpt-5.2")
        else:
            client = library.AsyncAnthropic(base_url=address, api_key="k", max_retries=0)
            model = stencilm.from_anthropic(client, "claude-sonnet-5")
        with pytest.raises(TypeError, match=r"model\.achat"):
            model.chat("How is Rome?", [clock])
        async with client:
            return await model.achat("How is Rome?", [weather, clock], output_type=Answer)

    with served(answer) as (address, _):
        found = asyncio.run(talk(address))
    assert found.value == Answer(city="Rome", degrees=21)
    assert [result.value for result in found.results][1] == "noon"


PEOPLE = stencilm.SymbolTable(["ada", "grace"])
OWNED = {
    "type": "object",
    "properties": {
        "owner": {"x-stencilm-symbols": "people"},
        "days": {"$ref": "https://example.org/days"},
    },
    "required": ["owner"],
}
DAYS = {"type": "integer", "minimum": 1}


@pytest.mark.parametrize("form", ["{}", '{{"turn": {{"answer": {}}}}}'])
def test_an_answer_has_its_tables_documents_and_options(form: str) -> None:
    output = stencilm.JsonSchema(
        OWNED,
        symbols={"people": PEOPLE},
        documents={"https://example.org/days": DAYS},
        strict_mode=True,
    )

    def asked(answer: str) -> Any:
        tokenizer = TemplateTokenizer() if form == "{}" else None
        model = Scripted([form.format(answer)], tokenizer)
        return chat(model, "Who?", tools=[clock], output_type=output).value

    for answer in ('{"owner": "ada"}', '{"owner": "grace", "days": 2}'):
        assert asked(answer) == json.loads(answer)
    for answer in (
        '{"owner": "eve"}',
        '{"owner": "ada", "days": 0}',
        '{"owner": "ada", "more": 1}',
    ):
        with pytest.raises(AssertionError, match="owner"):
            asked(answer)


class Bounded(BaseModel):
    a: Annotated[int, Field(ge=0, le=9)]
    b: bool


def bounded(a: Annotated[int, Field(ge=0, le=9)], b: bool) -> str:
    return f"{a} {b}"


@pytest.mark.parametrize("family", [None, "qwen"])
@pytest.mark.parametrize(
    "output_type", [Bounded, stencilm.JsonSchema(Bounded), stencilm.JsonSchema({"type": "array"})]
)
@pytest.mark.parametrize(
    ("layout", "written"),
    [
        ({"compact": True}, {"separators": (",", ":")}),
        ({"max_whitespace": 0}, {"separators": (",", ":")}),
        ({"indent": 1}, {"indent": 1}),
    ],
    ids=str,
)
def test_turns_have_the_layout_of_the_options(
    family: str | None, output_type: Any, layout: Any, written: Any
) -> None:
    model = stencilm.load("tiny")
    options: dict[str, Any] = {
        "output_type": output_type,
        "tool_choice": "required",
        "max_rounds": 1,
        "family": family,
        "temperature": 1.0,
        "seed": 1,
        **layout,
    }
    found = model.chat("Hi", [bounded], **options)
    assert found.results
    # In the format of a family, the calls have its own layout.
    for turn in found.turns[0 if family is None else -1 :]:
        text = turn.generation.text
        assert text == json.dumps(json.loads(text), ensure_ascii=False, **written)
    assert asyncio.run(model.achat("Hi", [bounded], **options)).messages == found.messages


LARGE = {"enum": [f"x{number:06}" for number in range(100_000)]}
WIDE = stencilm.Limits(schema_bytes=10_000_000)


@pytest.mark.parametrize("family", [None, "qwen"])
@pytest.mark.parametrize("place", ["call", "type", "model"])
def test_the_answer_has_the_limits_of_a_call(family: str | None, place: str) -> None:
    model = stencilm.load("tiny", limits=WIDE if place == "model" else stencilm.Limits())
    output_type = stencilm.JsonSchema(LARGE, limits=WIDE if place == "type" else None)
    options: dict[str, Any] = {"limits": WIDE} if place == "call" else {}
    options |= {"output_type": output_type, "max_rounds": 0, "family": family}
    found = model.chat("Hi", [bounded], **options)
    assert isinstance(found.value, str) and found.value in LARGE["enum"]


def test_narrow_limits_of_a_call_hold_for_the_answer() -> None:
    model = stencilm.load("tiny")
    narrow = stencilm.Limits(schema_bytes=10)
    with pytest.raises(stencilm.LimitExceeded, match="at most 10 are accepted"):
        model.chat("Hi", [bounded], output_type=Bounded, family="qwen", limits=narrow)
    with pytest.raises(TypeError, match="limits is a int"):
        model.chat("Hi", [bounded], limits=5)  # type: ignore[arg-type]
