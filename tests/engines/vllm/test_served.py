"""vLLM with the plug-in, over HTTP, as its users ask it."""

from __future__ import annotations

import concurrent.futures
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not here: tests/engines/vllm/install.sh")
jsonschema = pytest.importorskip("jsonschema")
pytest.importorskip("openai")

from engines.vllm.served import (  # noqa: E402
    CITY,
    PERSON,
    Asked,
    NotStarted,
    of_schema,
    served,
    structured,
    tools,
)
from engines.vllm.served_model import token_id  # noqa: E402


def valid(text: str | None, schema: Any = PERSON) -> Any:
    """The JSON value of a text, which must fit the schema."""
    value = json.loads(text or "")
    jsonschema.validate(value, schema)
    return value


def test_it_is_on(plain: Asked) -> None:
    """Both processes say so, with their versions."""
    plain.text(response_format=of_schema(PERSON))
    log = plain.server.logged()
    assert log.count("is in place in process") >= 2
    assert re.search(r"stencilm \S+ enforces structured outputs in process \d+", log)


# Kinds of requests.


def test_json_schema(plain: Asked) -> None:
    valid(plain.text(response_format=of_schema(PERSON)))


def test_json_schema_in_vllm_s_own_field(plain: Asked) -> None:
    valid(plain.text(extra_body=structured(json=PERSON)))
    valid(plain.text(extra_body=structured(json=json.dumps(PERSON))))


def test_json_object(plain: Asked) -> None:
    text = plain.text(response_format={"type": "json_object"}, max_tokens=200)
    assert isinstance(json.loads(text), dict)


def test_regex(plain: Asked) -> None:
    pattern = "[A-Z]{2}-[0-9]{4}"
    assert re.fullmatch(pattern, plain.text("A code:", extra_body=structured(regex=pattern)))


def test_choice(plain: Asked) -> None:
    choices = ["red", 'say "green"', "dark\nblue"]
    assert plain.text("A colour:", extra_body=structured(choice=choices)) in choices


def test_ebnf(plain: Asked) -> None:
    grammar = 'root ::= term ("+" term){1,3}\nterm ::= [0-9]{1,3}'
    text = plain.text("A sum:", extra_body=structured(grammar=grammar))
    assert re.fullmatch(r"[0-9]{1,3}(\+[0-9]{1,3}){1,3}", text)


def test_lark(plain: Asked) -> None:
    text = plain.text("Say:", extra_body=structured(grammar='start: "yes" | "no" "!"~1..3'))
    assert re.fullmatch("yes|no!{1,3}", text)


def test_structural_tag(plain: Asked) -> None:
    parts = [
        {"type": "const_string", "value": "<r>"},
        {"type": "json_schema", "json_schema": PERSON},
        {"type": "const_string", "value": "</r>"},
    ]
    tag = {"type": "structural_tag", "format": {"type": "sequence", "elements": parts}}
    text = plain.text(response_format=tag)
    assert text.startswith("<r>") and text.endswith("</r>")
    valid(text[3:-4])


def test_structural_tag_in_the_older_form(plain: Asked) -> None:
    tag = {
        "type": "structural_tag",
        "structures": [{"begin": "<f>", "schema": PERSON, "end": "</f>"}],
        "triggers": ["<f>"],
    }
    text = plain.text("Free:", response_format=tag, max_tokens=40)
    for inner in re.findall("<f>(.*?)</f>", text):
        valid(inner)


def test_a_token_of_the_vocabulary_in_a_tag(plain: Asked) -> None:
    parts = [{"type": "token", "token": "<|tool|>"}, {"type": "regex", "pattern": "[0-9]{2}"}]
    tag = {"type": "structural_tag", "format": {"type": "sequence", "elements": parts}}
    choice = plain.chat(
        response_format=tag, logprobs=True, extra_body={"skip_special_tokens": False}
    ).choices[0]
    assert re.fullmatch(r"<\|tool\|>[0-9]{2}", choice.message.content)


def check_wishes(asked: Asked) -> None:
    text = asked.text(extra_body=structured(json=PERSON, disable_any_whitespace=True))
    assert text == json.dumps(valid(text), separators=(",", ":"))
    closed = structured(
        json={"type": "object", "properties": {"a": {"enum": [1]}}},
        disable_additional_properties=True,
    )
    assert set(json.loads(asked.text(extra_body=closed))) <= {"a"}


def test_wishes_beside_a_schema(plain: Asked) -> None:
    check_wishes(plain)


def test_wishes_without_a_plug_in_in_the_front_end(rust: Asked) -> None:
    """vLLM's Rust front end asks nobody, so the engine reads the whole request."""
    check_wishes(rust)
    assert rust.text(extra_body=structured(choice=["red", "blue green"])) in ("red", "blue green")
    status, message = rust.refusal(
        extra_body=structured(json={"type": "integer"}, whitespace_pattern=" *")
    )
    assert status == 400 and "whitespace_pattern cannot be enforced" in message
    unsatisfiable = structured(json={"type": "integer", "minimum": 12, "maximum": 7})
    status, message = rust.refusal(extra_body=unsatisfiable)
    assert status == 400 and "minimum 12 is above maximum 7" in message


# Tools.


def calls_of(message: Any, schema: Any = CITY) -> list[tuple[str, Any]]:
    return [
        (call.function.name, valid(call.function.arguments, schema)) for call in message.tool_calls
    ]


@pytest.mark.parametrize("strict", [True, False])
def test_required_tools(plain: Asked, strict: bool) -> None:
    """vLLM holds tools to their schema that are strict, others to any object."""
    answer = plain.chat("Weather in Rome?", tools=tools(strict), tool_choice="required")
    choice = answer.choices[0]
    # A small model may go on with more calls until there is no more room.
    if choice.finish_reason != "length":
        assert calls_of(choice.message, CITY if strict else {"type": "object"})


def test_one_required_tool(plain: Asked) -> None:
    answer = plain.chat(
        "Weather in Rome?", tools=tools(), tool_choice="required", parallel_tool_calls=False
    )
    assert len(calls_of(answer.choices[0].message)) == 1


def test_a_named_tool(plain: Asked) -> None:
    named = {"type": "function", "function": {"name": "time_in"}}
    answer = plain.chat("Weather in Rome?", tools=tools(), tool_choice=named)
    assert [name for name, _ in calls_of(answer.choices[0].message)] == ["time_in"]


def test_tools_as_the_model_likes(plain: Asked) -> None:
    """Text is free; a call that the model begins is a whole one."""
    bias = {str(token_id("<tool_call>")): 100}
    answer = plain.chat(
        "Weather?", tools=tools(), tool_choice="auto", max_tokens=60, logit_bias=bias
    )
    message = answer.choices[0].message
    for name, _ in calls_of(message) if message.tool_calls else []:
        assert name in ("weather", "time_in")
    plain.chat("Hello", tools=tools(), tool_choice="auto", max_tokens=20)


def test_tools_or_an_answer(plain: Asked) -> None:
    answer = plain.chat(
        "Weather?", tools=tools(), tool_choice="auto", response_format=of_schema(PERSON)
    )
    message = answer.choices[0].message
    assert message.tool_calls or valid(message.content)


# The other interfaces, and sampling.


def test_completions(plain: Asked) -> None:
    answer = plain.client.completions.create(
        model="tiny",
        prompt="Describe a person as JSON.\n",
        max_tokens=120,
        temperature=0,
        extra_body={"response_format": of_schema(PERSON)},
    )
    valid(answer.choices[0].text)


def test_responses(plain: Asked) -> None:
    answer = plain.client.responses.create(
        model="tiny",
        input="Describe a person as JSON.",
        max_output_tokens=120,
        temperature=0,
        text={"format": {"type": "json_schema", "name": "x", "schema": PERSON, "strict": True}},
    )
    valid(answer.output_text)


def test_a_stream(plain: Asked) -> None:
    events = plain.chat(response_format=of_schema(PERSON), stream=True)
    valid("".join(event.choices[0].delta.content or "" for event in events if event.choices))


def test_several_choices(plain: Asked) -> None:
    answer = plain.chat(response_format=of_schema(PERSON), n=4, temperature=0.9, seed=1)
    texts = {choice.message.content for choice in answer.choices}
    assert len(texts) > 1
    for text in texts:
        valid(text)


def test_logprobs(plain: Asked) -> None:
    answer = plain.chat(
        response_format=of_schema({"enum": ["red", "blue"]}), logprobs=True, top_logprobs=5
    )
    tokens = answer.choices[0].logprobs.content
    assert "".join(token.token for token in tokens).startswith('"')
    assert all(token.logprob > -50 for token in tokens)


def test_a_stop_string_ends_the_text(plain: Asked) -> None:
    answer = plain.chat(response_format=of_schema(PERSON), stop=['"age"'])
    assert answer.choices[0].finish_reason == "stop"
    assert '"age"' not in answer.choices[0].message.content


def test_min_tokens_over_the_end(plain: Asked) -> None:
    """A text that must end before so many tokens ends, or its request fails: no engine does."""
    body = {"min_tokens": 10, "temperature": 0}
    status, _ = plain.refusal(response_format=of_schema({"enum": ["a"]}), extra_body=body)
    assert status in (200, 400, 500)
    assert plain.server.answers()
    long = plain.text(response_format=of_schema(PERSON), extra_body={"min_tokens": 5})
    valid(long)


def test_max_tokens_cuts(plain: Asked) -> None:
    choice = plain.chat(response_format=of_schema(PERSON), max_tokens=5).choices[0]
    assert choice.finish_reason == "length" and choice.message.content.startswith("{")


def test_a_prefix_that_is_cached(plain: Asked) -> None:
    long = "Describe a person as JSON. " * 12
    texts = {plain.text(long, response_format=of_schema(PERSON)) for _ in range(3)}
    assert len(texts) == 1
    valid(texts.pop())


# What other backends drop or get wrong.

HARD: dict[str, Any] = {
    "uniqueItems": {
        "type": "array",
        "items": {"enum": ["a", "b", "c"]},
        "uniqueItems": True,
        "minItems": 3,
        "maxItems": 3,
    },
    "multipleOf": {"type": "integer", "multipleOf": 7, "minimum": 10, "maximum": 40},
    "not": {"type": "string", "enum": ["x", "y"], "not": {"const": "x"}},
    "allOf": {"allOf": [{"type": "string"}, {"enum": ["yes", "no"]}]},
    "pattern and maxLength": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
    "oneOf": {
        "oneOf": [
            {"type": "integer", "minimum": 5, "maximum": 20},
            {"type": "integer", "minimum": 10, "maximum": 30},
        ]
    },
    "patternProperties": {
        "type": "object",
        "patternProperties": {"^k[0-9]$": {"type": "integer", "maximum": 9, "minimum": 0}},
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 2,
    },
    "if": {
        "type": "object",
        "properties": {"k": {"enum": ["a", "b"]}, "v": {"type": "integer", "maximum": 99}},
        "required": ["k"],
        "additionalProperties": False,
        "if": {"properties": {"k": {"const": "a"}}},
        "then": {"required": ["v"]},
    },
}


@pytest.mark.parametrize("name", HARD)
def test_hard_schemas(plain: Asked, name: str) -> None:
    answer = plain.chat("A value as JSON:", response_format=of_schema(HARD[name]), max_tokens=60)
    choice = answer.choices[0]
    assert choice.finish_reason == "stop"
    valid(choice.message.content, HARD[name])


# Refusals.


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    inner = schema
    for _ in range(levels):
        inner.update(type="object", properties={"x": {}}, required=["x"])
        inner = inner["properties"]["x"]
    return schema


BAD: dict[str, dict[str, Any]] = {
    "no schema": {"response_format": of_schema({"type": "wat"})},
    "unsatisfiable": {
        "response_format": of_schema({"type": "integer", "minimum": 12, "maximum": 7})
    },
    "a reference to nowhere": {"response_format": of_schema({"$ref": "#/nowhere"})},
    "a bad pattern": {"response_format": of_schema({"type": "string", "pattern": "(["})},
    "a bad regex": {"extra_body": structured(regex="([")},
    "a back reference": {"extra_body": structured(regex=r"(a)\1")},
    "a rule that is nowhere": {"extra_body": structured(grammar="root ::= nowhere")},
    "no grammar": {"extra_body": structured(grammar="SELECT 1")},
    "bad lark": {"extra_body": structured(grammar="start: foo")},
    "a bad tag": {"response_format": {"type": "structural_tag", "format": {"type": "nope"}}},
    "an unknown token": {
        "response_format": {
            "type": "structural_tag",
            "format": {"type": "token", "token": "<|nowhere|>"},
        }
    },
    "an unknown token in lark": {"extra_body": structured(grammar="start: <|nowhere|>")},
    "no choices": {"extra_body": structured(choice=[])},
    "a pattern of whitespace": {
        "extra_body": structured(json={"type": "object"}, whitespace_pattern="[ ]?")
    },
    "too large": {"extra_body": structured(regex="a" * (1 << 20) + "b")},
    "a schema that is no JSON": {"extra_body": structured(json='{"type": ')},
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_request_is_refused(plain: Asked, name: str) -> None:
    status, message = plain.refusal(**BAD[name])
    assert status == 400, (status, message)
    if name not in ("no choices",):
        assert "stencilm" in message or "validation" in message
    assert plain.server.answers()


def test_the_refusal_says_where_and_why(plain: Asked) -> None:
    schema = {"properties": {"age": {"type": "integer", "minimum": 12, "maximum": 7}}}
    status, message = plain.refusal(
        response_format=of_schema({**schema, "type": "object", "required": ["age"]})
    )
    assert status == 400
    assert "#/properties/age" in message and "12" in message and "7" in message
    status, message = plain.refusal(**BAD["an unknown token"])
    assert status == 400 and "<|nowhere|>" in message


def test_deep_schemas_are_served_or_refused(plain: Asked) -> None:
    for levels in (50, 400):
        status, message = plain.refusal(response_format=of_schema(nested(levels)))
        assert status in (200, 400), message
    assert plain.server.answers()


def test_what_is_refused_leaves_the_others_alone(plain: Asked) -> None:
    def ask(index: int) -> tuple[int, str]:
        if index % 3 == 0:
            return plain.refusal(**list(BAD.values())[index % len(BAD)])
        return plain.refusal(response_format=of_schema(PERSON), max_tokens=120)

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, range(24)))
    for index, (status, text) in enumerate(answers):
        assert status == (400 if index % 3 == 0 else 200), text
        if status == 200:
            valid(text)


def test_many_at_once(plain: Asked) -> None:
    schemas: list[Any] = [
        PERSON,
        {"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 2, "maxItems": 5},
        {"enum": ["red", "blue"]},
        None,
    ]

    def ask(index: int) -> None:
        schema = schemas[index % len(schemas)]
        if schema is None:
            plain.chat("Hello", max_tokens=20)
        else:
            valid(plain.text(response_format=of_schema(schema)), schema)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(ask, range(32)))


# Reasoning, drafts and options.


def test_json_in_any_order_and_compact(thinking: Asked) -> None:
    text = thinking.text(response_format=of_schema(PERSON))
    assert text == json.dumps(valid(text), separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("seed", range(6))
def test_reasoning_comes_first(thinking: Asked, seed: int) -> None:
    """The grammar begins after the end of reasoning, wherever among the drafts that comes."""
    answer = thinking.chat(
        "Describe a person as JSON.",
        response_format=of_schema(PERSON),
        max_tokens=300,
        temperature=0.8 if seed else 0,
        seed=seed,
        extra_body={"chat_template_kwargs": {"enable_thinking": True}},
    )
    message = answer.choices[0].message
    assert message.reasoning
    # A model may end within its reasoning, or not come to an end of it.
    if message.content and answer.choices[0].finish_reason != "length":
        valid(message.content)


def test_some_reasoning_comes_to_its_end(thinking: Asked) -> None:
    """The prompt holds what the reasoning may be, so that its end comes after drafts."""
    example = '{"name": "Ann Kowalski", "age": 32, "city": "Dhaka", "job": "surgeon"}'
    ended = 0
    for seed in range(6):
        choice = thinking.chat(
            f"{example} {example}\nDescribe a person as JSON.",
            response_format=of_schema(PERSON),
            max_tokens=300,
            temperature=0.3 if seed else 0,
            seed=seed,
            extra_body={"chat_template_kwargs": {"enable_thinking": True}},
        ).choices[0]
        if choice.message.content and choice.finish_reason != "length":
            assert choice.message.reasoning
            valid(choice.message.content)
            ended += 1
    assert ended


def test_drafts_are_made_and_their_texts_fit(thinking: Asked) -> None:
    """The prompt holds what may come, and what may not."""
    example = json.dumps({"name": "Ann", "age": 200, "job": "baker", "more": 1})
    for seed in range(4):
        text = thinking.text(
            f"{example} {example} {example}\nDescribe a person as JSON.",
            response_format=of_schema(PERSON),
            temperature=0.7,
            seed=seed,
        )
        valid(text)
    import urllib.request

    metrics = urllib.request.urlopen(
        f"http://127.0.0.1:{thinking.server.port}/metrics", timeout=30
    ).read()
    drafted = re.findall(rb"^vllm:spec_decode_num_draft_tokens_total\S* ([0-9.e+]+)", metrics, re.M)
    assert drafted and sum(map(float, drafted)) > 0


def test_drafts_over_the_end(thinking: Asked) -> None:
    """Short texts, again and again: drafts run over the end of the text."""
    word = {"enum": ["red"]}
    prompt = '"red" ' * 20
    texts = [thinking.text(prompt, response_format=of_schema(word)) for _ in range(3)]
    assert texts == ['"red"'] * 3


def test_many_drafts_at_once(thinking: Asked) -> None:
    def ask(seed: int) -> None:
        schema = PERSON if seed % 2 else {"type": "array", "items": {"enum": [1, 22, 333]}}
        schema = {**schema, "maxItems": 4}
        text = thinking.text(
            "[1, 22, 333] " * 5, response_format=of_schema(schema), temperature=0.9, seed=seed
        )
        valid(text, schema)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(16)))


# Servers that do not start.


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        ((), {"STENCILM_VLLM": "maybe"}, "STENCILM_VLLM is 'maybe'"),
        ((), {"STENCILM_VLLM_OPTIONS": '{"key_order": "any"}'}, "key_order"),
        (
            ("--structured-outputs-config.backend", "guidance"),
            {},
            "the server was started with the structured-outputs backend 'guidance'",
        ),
    ],
)
def test_a_server_with_a_bad_setting_does_not_start(
    model_folder: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    environment: dict[str, str],
    message: str,
) -> None:
    with (
        pytest.raises(NotStarted, match=re.escape(message)),
        served(model_folder, tmp_path / "log", *arguments, environment=environment),
    ):
        pass
