"""Arguments without a mark of their type: what the grammar allows is read as what the schema does.

A text such as `1.5` is a string where an integer or a string may stand.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import stencilm
from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo
from stencilm.tool_calls.families import TEMPLATES
from stencilm.tool_calls.writer import write_calls

DEFINITIONS = {
    "R": {
        "type": "object",
        "properties": {"v": {"type": "string"}, "next": {"$ref": "#/$defs/R"}},
        "required": ["v"],
        "additionalProperties": False,
    }
}
PAIR = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
KEYED = {
    "type": "object",
    "properties": {"k": {"type": "integer"}},
    "required": ["k"],
    "additionalProperties": False,
}
SCHEMAS: dict[str, Any] = {
    "string or integer": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    "types": {"type": ["string", "integer"]},
    "enum": {"enum": ["1", 2, "true", None, ["2"]]},
    "const": {"anyOf": [{"const": 5}, {"type": "string"}]},
    "within": {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 5, "maximum": 9}]},
    "object": {"anyOf": [{"type": "string"}, KEYED]},
    "array": {"oneOf": [{"type": "string"}, PAIR]},
    "all of": {"allOf": [{"type": ["string", "number"]}, {"exclusiveMinimum": 5}]},
    "reference": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/R"}]},
    "no string": {"not": {"type": "string"}},
    "none of": {"not": {"enum": [1, 2]}},
    "short": {"anyOf": [{"type": "string", "maxLength": 1}, {"type": "integer"}]},
}
TEXTS = [
    *("1", "1.5", "2", "true", "null", "6", "10", "5", "1.0", "123", "1e999999999", "x", ""),
    *('{"k": 1}', '{"k": "x"}', "{}", "[1]", "[1, 2]", '[1, "x"]', '["2"]'),
    *('{"v": "a"}', '{"v": 1}', '{"v": "a", "next": {"v": "b"}}', '{"v": "a", "next": {}}'),
]


def tool(schema: Any) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {"p": schema},
        "required": ["p"],
        "$defs": DEFINITIONS,
    }
    return {"type": "function", "function": {"name": "f", "parameters": parameters}}


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny"))


@pytest.mark.parametrize("family", ["qwen_3_coder", "glm_4_5", "minimax_m3", "minicpm_5"])
@pytest.mark.parametrize("kind", SCHEMAS)
def test_what_is_allowed_is_read_as_it_is_allowed(
    compiler: GrammarCompiler, family: str, kind: str
) -> None:
    given = tool(SCHEMAS[kind])
    schema = given["function"]["parameters"]
    tools = stencilm.tools(family, [given], "required", reasoning=False)
    compiled = compiler.compile_structural_tag(tools.tag)
    allowed = 0
    for value in TEXTS:
        text = write_calls(TEMPLATES[family], [("f", {"p": value})], {"f": schema}, ids=["0"])
        matcher = GrammarMatcher(compiled)
        if not (matcher.accept_string(text) and matcher.is_completed()):
            continue
        allowed += 1
        answer = tools.parse(text)
        assert answer.problems == (), value
        arguments = dict(answer.calls[0].arguments)
        jsonschema.validate(json.loads(json.dumps(arguments, default=float)), schema)
    assert allowed


@pytest.mark.parametrize("blank", ["\xa0", "\x85", "\u2028", "\u3000"])
def test_a_blank_of_no_json_makes_a_text(blank: str) -> None:
    for schema in ({}, {"type": ["string", "number", "null"]}):
        tools = stencilm.tools("glm_4_5", [tool(schema)], "required")
        for value in (f"1.5{blank}", f"{blank}null", f"{blank}[]"):
            text = f"<tool_call>f\n<arg_key>p</arg_key>\n<arg_value>{value}</arg_value>\n"
            assert tools.parse(text + "</tool_call>").calls[0].arguments == {"p": value}
    tools = stencilm.tools("glm_4_5", [tool({"type": "integer"})], "required")
    text = f"<tool_call>f\n<arg_key>p</arg_key>\n<arg_value>{blank}7</arg_value>\n</tool_call>"
    assert tools.parse(text).calls[0].arguments == {"p": 7}


@pytest.mark.parametrize("family", ["qwen_3_coder", "glm_4_5", "minimax_m3", "minicpm_5"])
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "string", "pattern": '^"'}, {"type": "integer"}]},
        {"enum": ['"x y"', "x y", '"\\n"', 1]},
        {},
    ],
)
@pytest.mark.parametrize("value", ['"x y"', '"\\n"'])
def test_quotes_around_a_raw_string_are_part_of_it(
    compiler: GrammarCompiler, family: str, schema: Any, value: str
) -> None:
    given = tool(schema)
    parameters = given["function"]["parameters"]
    tools = stencilm.tools(family, [given], "required", reasoning=False)
    text = write_calls(TEMPLATES[family], [("f", {"p": value})], {"f": parameters}, ids=["0"])
    matcher = GrammarMatcher(compiler.compile_structural_tag(tools.tag))
    assert matcher.accept_string(text) and matcher.is_completed()
    assert tools.parse(text).calls[0].arguments == {"p": value}


def test_a_number_without_a_value_is_no_text_where_none_may_stand() -> None:
    tools = stencilm.tools("glm_4_5", [tool({"not": {"type": "string"}})], "required")
    text = "<tool_call>f\n<arg_key>p</arg_key>\n<arg_value>1e99999999999999999999</arg_value>\n"
    answer = tools.parse(text + "</tool_call>")
    assert answer.calls == () and "too large an exponent" in answer.problems[0]


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
def test_schemas_that_are_named_twice_by_each_other_cost_little(keyword: str) -> None:
    levels = 28
    definitions: dict[str, Any] = {
        f"d{level}": {keyword: [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(levels)
    }
    definitions[f"d{levels}"] = {"type": ["integer", "string"]}
    parameters = {"$ref": "#/$defs/names", "$defs": definitions}
    definitions["names"] = {"properties": {"p": {"$ref": "#/$defs/d0"}}}
    given = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    tools = stencilm.tools("glm_4_5", [given], "required")
    text = "<tool_call>f\n<arg_key>p</arg_key>\n<arg_value>1.5</arg_value>\n</tool_call>"
    began = time.process_time()
    answer = tools.parse(text)
    assert time.process_time() - began < 0.5
    assert answer.calls[0].arguments == {"p": "1.5"}
