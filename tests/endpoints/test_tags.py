"""Structural tags are sent to the servers that take them, where they mean the same there."""

from __future__ import annotations

import json
from typing import Any

import pytest

import stencilm
from endpoints.scripted import fault
from endpoints.test_endpoints import endpoint, means
from stencilm import Grammar
from stencilm.endpoints.tags import native_tag

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def schema(**options: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": SCHEMA, **options}


def tag(begin: Any, content: Any, end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


ANY = {"type": "any_text"}
CALL = {"type": "triggered_tags", "triggers": ["<f"], "tags": [tag("<f>", schema(), "</f>")]}
SENT = schema(max_whitespace_cnt=64)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (schema(), SENT),
        (schema(style="qwen_xml"), {**schema(style="qwen_xml"), "max_whitespace_cnt": 64}),
        (schema(max_whitespace=3), schema(max_whitespace_cnt=3)),
        (CALL, {**CALL, "tags": [tag("<f>", SENT, "</f>")]}),
        (tag("<t>", {**ANY, "max_chars": 9}, ["</t>", "."]), None),
        ({"type": "repeat", "min": 0, "max": -1, "content": {**ANY, "excludes": ["x"]}}, None),
        ({"type": "dispatch", "rules": [["<x>", ANY]], "loop": False}, None),
        ({"type": "regex", "pattern": "[0-9]{2}"}, None),
        ({"type": "or", "elements": [{"type": "const_string", "value": "é\n"}, ANY]}, None),
        (
            {"type": "grammar", "grammar": "start: /[a-z]+/", "syntax": "lark"},
            {"type": "grammar", "grammar": "root ::= [a-z]+\n"},
        ),
    ],
)
def test_a_tag_is_sent_as_xgrammar_has_it(given: dict[str, Any], sent: Any) -> None:
    text = native_tag(Grammar.from_structural_tag(given))
    assert text is not None
    assert json.loads(text) == {"type": "structural_tag", "format": sent or given}


@pytest.mark.parametrize(
    "given",
    [
        schema(any_order=True),
        schema(any_whitespace=False),
        schema(strict_mode=True),
        schema(max_whitespace=None),
        schema(max_whitespace=0),
        schema(excludes=["<"]),
        schema(on_unsupported="relax"),
        schema(style="python"),
        tag({"type": "regex", "pattern": "a+"}, ANY, "b"),
        tag("a", ANY, {"type": "token", "token": 3}),
        tag("a", tag("b", schema(any_order=True), "c"), "d"),
        {"type": "token", "token": 3},
        {"type": "any_tokens"},
        {"type": "regex", "pattern": "a*?"},
    ],
)
def test_what_a_server_reads_otherwise_is_not_sent(given: dict[str, Any]) -> None:
    assert native_tag(Grammar.from_structural_tag(given)) is None


def test_other_grammars_are_no_tags() -> None:
    assert native_tag(Grammar.from_regex("a")) is None


@pytest.mark.parametrize("preset", ["vllm", "sglang"])
def test_special_tokens_are_in_the_text(preset: str) -> None:
    text = 'So: <f>{"a": 1}</f>'
    with endpoint(lambda body, number: text, preset) as (model, script):
        result = stencilm.guide(model, stencilm.StructuralTag.from_json(CALL), "p")
    assert (result.response, result.status, means(result)) == (text, "valid", ["native"])
    assert script.requests[0][1]["skip_special_tokens"] is False


@pytest.mark.parametrize("preset", ["vllm", "sglang"])
def test_a_server_that_refuses_tags_drafts(preset: str) -> None:
    text = 'So: <f>{"a": 1}</f>'

    def answer(body: dict[str, Any], number: int) -> Any:
        if "structured_outputs" in body or "response_format" in body:
            raise fault(400, "no structural tags here")
        last = body["messages"][-1]
        return text[len(last["content"]) :] if last["role"] == "assistant" else text

    with endpoint(answer, preset) as (model, script):
        assert model("p", stencilm.StructuralTag.from_json(CALL)) == text
        assert model("p", stencilm.StructuralTag.from_json(CALL)) == text
    refused = [("structured_outputs" in body or "response_format" in body) for _, body in
               script.requests]  # fmt: skip
    assert sum(refused) == 1


@pytest.mark.parametrize("preset", ["vllm", "sglang"])
def test_what_the_server_did_not_hold_is_corrected(preset: str) -> None:
    with endpoint(lambda body, number: 'So: <f>{"a": "x"}</f>', preset) as (model, _):
        result = stencilm.guide(
            model, stencilm.StructuralTag.from_json(CALL), "p", budget=stencilm.Budget(calls=3)
        )
    assert result.response.startswith("So: <f>{")
    assert '"x"' not in result.response
