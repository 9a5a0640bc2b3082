"""Arguments in the styles of families: what belongs, and what does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stencilm
from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo
from stencilm.errors import StencilError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1},
        "unit": {"enum": ["C", "F", None]},
        "on": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "place": {
            "type": "object",
            "properties": {"x": {"type": "number"}, "name": {"type": "string", "maxLength": 3}},
            "required": ["x"],
            "additionalProperties": False,
        },
    },
    "required": ["city"],
    "additionalProperties": False,
}
OPEN: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "parts": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name"],
    "additionalProperties": False,
}
CHOICE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "v": {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^[a-z]+$"}]}
    },
    "required": ["v"],
    "additionalProperties": False,
}
QUOTE = '<|"|>'
# Style, schema, texts that belong, texts that do not.
CASES: list[tuple[str, dict[str, Any], list[str], list[str]]] = [
    (
        "python",
        SCHEMA,
        [
            "city='Rome'",
            'city="Rome", days=2',
            "city='Rome', unit=None, on=True",
            "city='it\\'s', tags=['a', \"b\"]",
            "city='R', tags=[], place={'x': 1.5, \"name\": 'abc'}",
            "city='東京 😀'",
        ],
        [
            "",
            "days=2",
            "city=Rome",
            "city='Rome', days=0",
            "city='Rome', on=true",
            "city='Rome', unit='K'",
            "city='Rome', tags=['a', 'b', 'c']",
            "city='R', place={'name': 'abc'}",
            "city='R', place={'x': 1, 'name': 'abcd'}",
            "city='R', other=1",
            "days=2, city='Rome'",
            "city='Rome",
        ],
    ),
    (
        "python",
        OPEN,
        ["", "a=1", "a=1, b='x'", "b=[1, {'c': None}]", "b=True, c={}"],
        ["a='x'", "1=2", "class=1", "a=1,"],
    ),
    ("python", TREE, ["name='a'", "name='a', parts=[{'name': 'b', 'parts': []}]"], ["parts=[]"]),
    ("python", CHOICE, ["v=1", "v='ab'", 'v="ab"'], ["v='AB'", "v=1.5", "v=None"]),
    (
        "gemma",
        SCHEMA,
        [
            f"city:{QUOTE}Rome{QUOTE}",
            f"city:{QUOTE}Rome{QUOTE},days:2",
            f"city:{QUOTE}a, {{b}} 'c' \"d\"{QUOTE},on:true",
            f"city:{QUOTE}R{QUOTE},tags:[{QUOTE}a{QUOTE},{QUOTE}b{QUOTE}]",
            f"city:{QUOTE}R{QUOTE},place:{{x:1,name:{QUOTE}abc{QUOTE}}}",
            f"city:{QUOTE}R{QUOTE},place:{{name:{QUOTE}abc{QUOTE},x:1}}",
            f"city:{QUOTE}R{QUOTE},unit:null",
        ],
        [
            "",
            "city:Rome",
            f"city:{QUOTE}Rome{QUOTE},days:0",
            f"days:2,city:{QUOTE}Rome{QUOTE}",
            f"city:{QUOTE}R{QUOTE},place:{{x:1,name:{QUOTE}abcd{QUOTE}}}",
            f"city:{QUOTE}R{QUOTE},on:True",
        ],
    ),
    (
        "gemma",
        OPEN,
        ["", "a:1", f"a:1,b:{QUOTE}x{QUOTE}", "b:[1,{c:null}]"],
        [f"a:{QUOTE}x{QUOTE}"],
    ),
    (
        "functiongemma",
        SCHEMA,
        ["city:<escape>Rome<escape>,days:2", "city:<escape>a<b<escape>"],
        ["city:Rome", "city:<escape>Rome"],
    ),
    (
        "parameter_xml",
        SCHEMA,
        [
            "<parameter=city>Rome</parameter>",
            "<parameter=city>\nRome\n</parameter>\n<parameter=on>True</parameter>",
            "<parameter=city>R</parameter><parameter=unit>None</parameter>",
        ],
        [
            "<parameter=days>2</parameter>",
            "<parameter=city>R</parameter><parameter=on>Yes</parameter>",
        ],
    ),
    (
        "gigachat_xml",
        SCHEMA,
        ['<｜GCML｜parameter name="city" string="true">R</｜GCML｜parameter>'],
        ['<｜GCML｜parameter name="city" string="false">R</｜GCML｜parameter>'],
    ),
    (
        "ifm_xml",
        SCHEMA,
        ["<ifm|arg_key>city</ifm|arg_key>\n<ifm|arg_value>R</ifm|arg_value>"],
        ["<ifm|arg_key>town</ifm|arg_key>\n<ifm|arg_value>R</ifm|arg_value>"],
    ),
    (
        "cohere_xml",
        SCHEMA,
        [
            '<cofl:value name="city" type="raw">Rome</cofl:value>',
            '<cofl:value name="city" type="raw">R</cofl:value><cofl:value name="tags" type="list">'
            '<cofl:value type="raw">a</cofl:value>\n  <cofl:value type="raw">b</cofl:value>'
            "</cofl:value>",
            '<cofl:value name="city" type="raw">R</cofl:value><cofl:value name="place" type="dict">'
            '<cofl:value name="x" type="json">1</cofl:value></cofl:value>',
            '<cofl:value name="city" type="raw">R</cofl:value><cofl:value name="place" type="json">'
            '{"x": 1}</cofl:value>',
        ],
        [
            '<cofl:value name="city" type="json">Rome</cofl:value>',
            '<cofl:value name="city" type="raw">R</cofl:value><cofl:value name="place" type="list">'
            "</cofl:value>",
            '<cofl:value name="city" type="raw">R</cofl:value><cofl:value name="place" type="dict">'
            "</cofl:value>",
        ],
    ),
    (
        "kimi_k3_xml",
        SCHEMA,
        ['<|open|>argument key="city" type="string"<|sep|>a < b<|close|>argument<|sep|>'],
        [
            f'<|open|>argument key="city" type="string"<|sep|>a{one}b<|close|>argument<|sep|>'
            for one in ("<|open|>", "<|sep|>", "<|end_of_msg|>")
        ],
    ),
]


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny"))


@pytest.mark.parametrize(("style", "schema", "belong", "others"), CASES)
def test_arguments(
    compiler: GrammarCompiler,
    style: str,
    schema: dict[str, Any],
    belong: list[str],
    others: list[str],
) -> None:
    tag = {"type": "json_schema", "style": style, "json_schema": schema}
    compiled = compiler.compile_structural_tag(tag)
    for text in (*belong, *others):
        matcher = GrammarMatcher(compiled)
        found = matcher.accept_string(text) and matcher.is_completed()
        assert found == (text in belong), text


@pytest.mark.parametrize("style", ["python", "gemma"])
@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}, "unique"),
        ({"type": "object", "patternProperties": {"^x": True}}, "patternProperties"),
        ({"type": "array"}, "no arguments"),
        ({"type": "object", "properties": {"a-b:": True}}, "a-b:"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}, "leads to no schema"),
        ({"required": ["a"], "additionalProperties": False}, "is required"),
    ],
)
def test_what_literals_cannot_hold_is_refused(
    style: str, schema: dict[str, Any], says: str
) -> None:
    tag = {"type": "json_schema", "style": style, "json_schema": schema}
    with pytest.raises(StencilError, match=says):
        stencilm.Grammar.from_structural_tag(tag)


COHERE = (
    '<cofl:tool_calls>\n<cofl:tool_call id="0" name="f">\n'
    '<cofl:value name="a&amp;b" type="raw">x &amp; y</cofl:value>\n'
    '<cofl:value name="d" type="dict">\n  <cofl:value name="on" type="json">true</cofl:value>\n'
    '  <cofl:value name="tags" type="list">\n    <cofl:value type="raw">m</cofl:value>\n'
    "  </cofl:value>\n</cofl:value>\n</cofl:tool_call>\n</cofl:tool_calls>"
)


def test_nested_values_of_cohere_are_read() -> None:
    tools = stencilm.tools("command_a_plus", [{"name": "f"}], reasoning=False)
    (call,) = tools.parse(COHERE).calls
    assert call.arguments == {"a&b": "x &amp; y", "d": {"on": True, "tags": ["m"]}}
    assert call.id == "0"
