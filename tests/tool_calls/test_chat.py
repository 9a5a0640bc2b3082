"""Conversations with tools: local models and models behind an API, written by scripts."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field, create_model, field_validator

import stencilm
from endpoints.scripted import served
from stencilm.errors import GrammarSyntaxError, UnsupportedFeature
from stencilm.generation.result import InvalidOutput
from stencilm.models.chat import Chat
from stencilm.models.prompts import Conversation, chat_text
from tool_calls.conversations import (
    LOCAL,
    REMOTE,
    Answer,
    Scripted,
    TemplateTokenizer,
    awaited,
    chat,
    clock,
    weather,
)


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
