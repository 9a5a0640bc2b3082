"""SGLang serves the embedded model with `--grammar-backend stencilm`, asked with `openai`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sglang", reason="SGLang is not installed: tests/engines/sglang/install.sh")
jsonschema = pytest.importorskip("jsonschema")
openai = pytest.importorskip("openai")
from engines.sglang.served import NotStarted, Server, served  # noqa: E402
from engines.vllm.served_model import NEW_TOKENS, token_id, write  # noqa: E402

pytestmark = pytest.mark.slow

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "job": {"enum": ["baker", "pilot"]},
    },
    "required": ["name", "age", "job"],
    "additionalProperties": False,
}
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 12}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    write(path)
    # Marks that the engine's parsers look for in the text, so they must not be left out of it.
    tokenizer = path / "tokenizer.json"
    value = json.loads(tokenizer.read_text(encoding="utf-8"))
    for token in value["added_tokens"]:
        token["special"] &= token["content"] not in NEW_TOKENS
    tokenizer.write_text(json.dumps(value), encoding="utf-8")
    names = path / "special_tokens_map.json"
    known = json.loads(names.read_text(encoding="utf-8"))
    del known["additional_special_tokens"]
    names.write_text(json.dumps(known), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("log") / "server.log"
    with served(
        folder, log, "--reasoning-parser", "qwen3", "--tool-call-parser", "qwen25"
    ) as found:
        yield found


@pytest.fixture(scope="module")
def client(server: Server) -> Any:
    return openai.OpenAI(base_url=server.url, api_key="none", timeout=300, max_retries=0)


def asked(client: Any, message: str = "Describe a person as JSON.", **options: Any) -> Any:
    """A chat; without reasoning unless the options say so."""
    options = {"max_tokens": 120, "temperature": 0, **options}
    body = options.setdefault("extra_body", {})
    body.setdefault("chat_template_kwargs", {"enable_thinking": False})
    messages = [{"role": "user", "content": message}]
    return client.chat.completions.create(model="tiny", messages=messages, **options)


def text_of(answer: Any) -> str:
    text = answer.choices[0].message.content
    assert isinstance(text, str), answer
    return text


def schema(value: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": value, "strict": True}}


def test_it_is_on(server: Server) -> None:
    assert re.search("stencilm .* is the grammar backend", server.logged())


def test_a_schema(client: Any) -> None:
    jsonschema.validate(json.loads(text_of(asked(client, response_format=schema(PERSON)))), PERSON)


@pytest.mark.parametrize(
    "hard",
    [
        {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3},
        {"type": "integer", "multipleOf": 7, "minimum": 50, "maximum": 60},
        {"type": "array", "contains": {"const": "x"}, "items": {"enum": ["x", "y"]}, "maxItems": 2},
        {"not": {"type": ["object", "array", "string", "null", "boolean"]}, "maximum": 3},
        {
            "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}},
            "dependentRequired": {"a": ["b"]},
            "required": ["a"],
            "additionalProperties": False,
        },
    ],
    ids=lambda value: next(iter(value.keys() - {"type", "items"})),
)
def test_schemas_that_other_backends_refuse(client: Any, hard: Any) -> None:
    value = json.loads(text_of(asked(client, response_format=schema(hard), max_tokens=200)))
    jsonschema.validate(value, hard)


def test_any_json(client: Any) -> None:
    answer = asked(client, response_format={"type": "json_object"}, max_tokens=300)
    if answer.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(text_of(answer)), dict | list | str | int | float | None)
    assert text_of(answer).lstrip()[0] in '{["-0123456789tfn'


def test_a_regular_expression(client: Any) -> None:
    text = text_of(asked(client, "A code:", extra_body={"regex": "[A-Z]{2}-[0-9]{4}"}))
    assert re.fullmatch("[A-Z]{2}-[0-9]{4}", text)


@pytest.mark.parametrize(
    "grammar",
    ['root ::= "(" [0-9]{2} ("+" [0-9]{2}){2} ")"', 'start: "(" /[0-9]{2}/ ("+" /[0-9]{2}/)~2 ")"'],
    ids=["EBNF", "Lark"],
)
def test_a_grammar(client: Any, grammar: str) -> None:
    text = text_of(asked(client, "A sum:", extra_body={"ebnf": grammar}))
    assert re.fullmatch(r"\(\d\d\+\d\d\+\d\d\)", text)


def test_structural_tags_of_both_forms(client: Any) -> None:
    content = {"type": "json_schema", "json_schema": PERSON}
    new = {
        "type": "structural_tag",
        "format": {"type": "tag", "begin": "<p>", "content": content, "end": "</p>"},
    }
    text = text_of(asked(client, response_format=new))
    jsonschema.validate(json.loads(text.removeprefix("<p>").removesuffix("</p>")), PERSON)
    old = {
        "type": "structural_tag",
        "structures": [{"begin": "<p>", "schema": PERSON, "end": "</p>"}],
        "triggers": ["<p>"],
        "at_least_one": True,
    }
    text = text_of(asked(client, response_format=old))
    found = re.match("<p>(.*?)</p>", text, re.DOTALL)
    assert found, text
    jsonschema.validate(json.loads(found[1]), PERSON)


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "weather"}}]
)
def test_a_tool_is_called_as_its_schema_says(client: Any, choice: Any) -> None:
    answer = asked(client, tools=[WEATHER], tool_choice=choice)
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "weather"
    jsonschema.validate(json.loads(call.function.arguments), WEATHER["function"]["parameters"])


def test_reasoning_is_free_and_the_answer_is_not(client: Any) -> None:
    body = {"chat_template_kwargs": {"enable_thinking": True}}
    # The model never ends its reasoning, so a bias does, which gives `</think>` at once.
    answer = asked(
        client,
        response_format=schema(PERSON),
        logit_bias={str(token_id("</think>")): 100.0},
        extra_body=body,
    )
    jsonschema.validate(json.loads(text_of(answer)), PERSON)
    # Without it nothing but reasoning comes: the grammar waits.
    message = (
        asked(client, response_format=schema(PERSON), max_tokens=12, extra_body=body)
        .choices[0]
        .message
    )
    assert message.reasoning_content and not message.content


def test_a_stream_gives_the_same_text(client: Any) -> None:
    whole = text_of(asked(client, response_format=schema(PERSON)))
    parts = asked(client, response_format=schema(PERSON), stream=True)
    streamed = "".join(part.choices[0].delta.content or "" for part in parts if part.choices)
    assert streamed == whole


def test_several_texts_of_one_request(client: Any) -> None:
    answer = asked(client, response_format=schema(PERSON), n=4, temperature=1.0, seed=1)
    assert len(answer.choices) == 4
    for choice in answer.choices:
        jsonschema.validate(json.loads(choice.message.content), PERSON)


def test_completions(client: Any) -> None:
    answer = client.completions.create(
        model="tiny",
        prompt="A person: ",
        max_tokens=120,
        temperature=0,
        extra_body={"json_schema": json.dumps(PERSON)},
    )
    jsonschema.validate(json.loads(answer.choices[0].text), PERSON)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"response_format": schema({"type": "integer", "minimum": 12, "maximum": 7})}, "12 is above"),
    ({"response_format": schema({"type": "nothing"})}, "nothing"),
    ({"response_format": schema({"$ref": "#/missing"})}, "missing"),
    ({"response_format": schema({"pattern": "(["})}, r"pattern|class"),
    ({"extra_body": {"regex": "(["}}, "never closed"),
    ({"extra_body": {"regex": r"(a)\1"}}, "."),
    ({"extra_body": {"ebnf": "root ::= missing"}}, "missing"),
    ({"extra_body": {"ebnf": "start: missing"}}, "missing"),
    (
        {
            "response_format": {
                "type": "structural_tag",
                "format": {"type": "token", "token": 10**6},
            }
        },
        ".",
    ),
]


@pytest.mark.parametrize(("options", "words"), BAD, ids=[str(number) for number in range(len(BAD))])
def test_what_cannot_be_enforced_is_a_bad_request(
    client: Any, server: Server, options: dict[str, Any], words: str
) -> None:
    for _ in range(2):  # the second is answered from the cache
        with pytest.raises(openai.BadRequestError, match=words):
            asked(client, **options)
    assert server.answers()


def test_sixteen_at_once_and_bad_ones_among_them(client: Any, server: Server) -> None:
    schemas = [{**PERSON, "title": f"person {number}"} for number in range(16)]

    def ask(number: int) -> bool:
        if number % 4 == 3:
            with pytest.raises(openai.BadRequestError):
                asked(client, response_format=schema({"enum": [], "title": str(number)}))
        else:
            text = text_of(asked(client, response_format=schema(schemas[number])))
            jsonschema.validate(json.loads(text), PERSON)
        return True

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(16)))
    assert server.answers()


def test_a_server_with_a_pattern_for_whitespace_does_not_start(
    folder: Path, tmp_path: Path
) -> None:
    with (
        pytest.raises(NotStarted, match="--constrained-json-whitespace-pattern is not enforced"),
        served(folder, tmp_path / "server.log", "--constrained-json-whitespace-pattern", "[ ]?"),
    ):
        pass


@pytest.fixture(scope="module")
def drafting(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    log = tmp_path_factory.mktemp("drafting") / "server.log"
    drafts = ["--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "4"]
    try:
        with served(folder, log, *drafts) as found:
            yield openai.OpenAI(base_url=found.url, api_key="none", timeout=300, max_retries=0)
    except NotStarted as error:
        pytest.skip(f"this SGLang drafts on GPUs only: {str(error)[-300:]}")


def test_drafted_tokens_stay_within_the_grammar(drafting: Any) -> None:
    for _ in range(2):  # the second time there is something to draft from
        text = text_of(asked(drafting, response_format=schema(PERSON)))
        jsonschema.validate(json.loads(text), PERSON)
