"""Conversations with calls of tools, in one provider's form, sent to another provider."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import stencilm
from endpoints.scripted import served
from stencilm.models.exact_numbers import for_messages

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

ASKED = {"role": "user", "content": "How is Rome?"}
OF_OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    ASKED,
    {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [
            {
                "id": "a",
                "type": "function",
                "function": {"name": "weather", "arguments": '{"city": "Rome"}'},
            },
            {"id": "b", "type": "function", "function": {"name": "now", "arguments": ""}},
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": "21 degrees"},
    {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "noon"}]},
    {"role": "user", "content": "In words?"},
]
OF_ANTHROPIC: list[dict[str, Any]] = [
    ASKED,
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Rome"}},
            {"type": "tool_use", "id": "b", "name": "now", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "21 degrees"},
            {
                "type": "tool_result",
                "tool_use_id": "b",
                "content": [{"type": "text", "text": "noon"}],
            },
            {"type": "text", "text": "In words?"},
        ],
    },
]


def sent(messages: Any, api: str) -> dict[str, Any]:
    """The body of the request for some messages."""
    with served(lambda body, number: "17") as (address, script):
        if api == "anthropic":
            client = anthropic.Anthropic(base_url=address, api_key="key", max_retries=0)
            model = stencilm.from_anthropic(client, "m", schema_in_prompt=False)
        else:
            client = openai.OpenAI(base_url=f"{address}/v1", api_key="key", max_retries=0)
            model = stencilm.from_openai(client, "m", capabilities=api, schema_in_prompt=False)
        assert model(messages, int) == 17
        return script.requests[0][1]


def test_calls_of_openai_go_to_anthropic_as_blocks() -> None:
    body = sent(OF_OPENAI, "anthropic")
    assert body["system"] == "Be brief."
    assert body["messages"] == [
        ASKED,
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Rome"}},
                {"type": "tool_use", "id": "b", "name": "now", "input": {}},
            ],
        },
        OF_ANTHROPIC[2],
    ]
    # Calls of tools that are not declared are an error of the API, and no more are wanted.
    assert [tool["name"] for tool in body["tools"]] == ["weather", "now"]
    assert body["tool_choice"] == {"type": "none"}


def test_calls_of_openai_go_to_the_responses_api_as_items() -> None:
    body = sent(OF_OPENAI, "openai-responses")
    assert body["input"] == [
        ASKED,
        {
            "type": "function_call",
            "call_id": "a",
            "name": "weather",
            "arguments": '{"city": "Rome"}',
        },
        {"type": "function_call", "call_id": "b", "name": "now", "arguments": ""},
        {"type": "function_call_output", "call_id": "a", "output": "21 degrees"},
        {
            "type": "function_call_output",
            "call_id": "b",
            "output": [{"type": "input_text", "text": "noon"}],
        },
        {"role": "user", "content": "In words?"},
    ]


def test_calls_of_anthropic_go_to_openai_as_calls() -> None:
    said = [{"type": "text", "text": "I look."}]
    calls = [
        {
            "id": "a",
            "type": "function",
            "function": {"name": "weather", "arguments": '{"city": "Rome"}'},
        },
        {"id": "b", "type": "function", "function": {"name": "now", "arguments": "{}"}},
    ]
    assert sent(OF_ANTHROPIC, "openai")["messages"] == [
        ASKED,
        {"role": "assistant", "content": said, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "21 degrees"},
        {"role": "tool", "tool_call_id": "b", "content": "noon"},
        {"role": "user", "content": [{"type": "text", "text": "In words?"}]},
    ]


def test_calls_of_anthropic_go_to_the_responses_api_as_items() -> None:
    given = sent(OF_ANTHROPIC, "openai-responses")["input"]
    assert [item.get("type", item.get("role")) for item in given] == [
        "user", "assistant", "function_call", "function_call", "function_call_output",
        "function_call_output", "user",
    ]  # fmt: skip
    assert given[1]["content"] == [{"type": "output_text", "text": "I look."}]


@pytest.mark.parametrize(("messages", "api"), [(OF_ANTHROPIC, "anthropic"), (OF_OPENAI, "openai")])
def test_a_form_of_its_own_is_sent_as_it_is(messages: list[Any], api: str) -> None:
    assert sent(messages, api)["messages"] == messages


def test_objects_of_the_libraries_are_read_as_dicts() -> None:
    block = anthropic.types.ToolUseBlock(id="a", name="now", input={}, type="tool_use")
    text = anthropic.types.TextBlock(type="text", text="I look.", citations=None)
    result = {"type": "tool_result", "tool_use_id": "a", "content": "noon"}
    messages = [
        ASKED,
        {"role": "assistant", "content": [text, block]},
        {"role": "user", "content": [result]},
    ]
    made = sent(messages, "openai")["messages"]
    assert made[1]["tool_calls"][0]["function"] == {"name": "now", "arguments": "{}"}
    assert made[2] == {"role": "tool", "tool_call_id": "a", "content": "noon"}
    call = openai.types.chat.ChatCompletionMessageToolCall.model_validate(
        {"id": "a", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    )
    messages = [
        ASKED,
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "noon"},
    ]
    assert sent(messages, "anthropic")["messages"][1]["content"] == [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "a", "name": "now", "input": {}},
    ]


def test_arguments_of_a_local_chat_keep_their_digits() -> None:
    """A local model's messages have the arguments as a dict."""
    number = "0.10000000000000000000000001"
    call = {"name": "pay", "arguments": for_messages({"sum": Decimal(number), "to": "Ann"})}
    messages = [
        ASKED,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"type": "function", "id": "call_0", "function": call}],
        },
        {"role": "tool", "name": "pay", "tool_call_id": "call_0", "content": "done"},
    ]
    made = sent(messages, "openai")["messages"][1]["tool_calls"][0]
    assert made["function"]["arguments"] == f'{{"sum": {number}, "to": "Ann"}}'


def test_a_picture_in_a_result_has_the_form_of_the_provider() -> None:
    url = "https://example.org/cat.png"
    picture = {"type": "image_url", "image_url": {"url": url}}
    messages = [*OF_OPENAI[:4], {"role": "tool", "tool_call_id": "b", "content": [picture]}]
    made = sent(messages, "anthropic")["messages"][-1]["content"][-1]["content"]
    assert made == [{"type": "image", "source": {"type": "url", "url": url}}]
    made = sent(messages, "openai-responses")["input"][-1]["output"]
    assert made == [{"type": "input_image", "image_url": url}]


CALL = {"id": "a", "function": {"name": "now", "arguments": "{}"}}
FAULTS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a result of no call": (
        [{"role": "tool", "content": "noon"}],
        "must have the 'tool_call_id' of its call",
    ),
    "a call without an id": (
        [{"role": "assistant", "tool_calls": [{"function": CALL["function"]}]}],
        "must have an 'id'",
    ),
    "a call of nothing": (
        [{"role": "assistant", "tool_calls": [{"id": "a", "function": {}}]}],
        "must have the 'name' of its 'function'",
    ),
    "calls that are no list": ([{"role": "assistant", "tool_calls": CALL}], "calls in a list"),
    "a block without an id": (
        [{"role": "user", "content": [{"type": "tool_result", "content": "noon"}]}],
        "must have its 'tool_use_id'",
    ),
}


@pytest.mark.parametrize("api", ["anthropic", "openai", "openai-responses"])
@pytest.mark.parametrize("name", FAULTS)
def test_a_call_that_no_provider_takes_is_an_error_before_the_request(name: str, api: str) -> None:
    messages, said = FAULTS[name]
    with pytest.raises(TypeError, match=said):
        sent([ASKED, *messages], api)


@pytest.mark.parametrize("arguments", ["{", "[1]", "17", '{"at": NaN}', '{"at": 1e400}'])
def test_arguments_that_are_no_object_are_an_error_for_anthropic(arguments: str) -> None:
    call = {"id": "a", "function": {"name": "now", "arguments": arguments}}
    messages = [ASKED, {"role": "assistant", "tool_calls": [call]}]
    with pytest.raises(stencilm.UnsupportedFeature, match="the call 'a' of 'now'"):
        sent(messages, "anthropic")
    assert sent(messages, "openai")["messages"][1]["tool_calls"][0]["function"] == call["function"]


@pytest.mark.parametrize(
    ("part", "api"),
    [
        ({"type": "document", "source": {}}, "openai"),
        ({"type": "document", "source": {}}, "openai-responses"),
        ({"type": "file", "file": {}}, "anthropic"),
        ({"type": "input_audio", "input_audio": {}}, "anthropic"),
    ],
    ids=["a document to chat", "a document to responses", "a file", "sound"],
)
def test_parts_that_only_others_take_are_an_error(part: dict[str, Any], api: str) -> None:
    with pytest.raises(stencilm.UnsupportedFeature, match=f"the type {part['type']!r}"):
        sent([{"role": "user", "content": [part]}], api)
