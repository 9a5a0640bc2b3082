"""What callers give as tools: arguments are objects, and what is no tool is refused by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stencilm
from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo
from stencilm.errors import GrammarSyntaxError
from stencilm.models import chat as conversations
from stencilm.models.chat import Talk
from stencilm.tool_calls.families import TEMPLATES
from stencilm.tool_calls.writer import write_calls
from tool_calls.conversations import Scripted


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny"))


def tool(parameters: Any = None, name: str = "f") -> dict[str, Any]:
    function = {"name": name}
    if parameters is not None:
        function["parameters"] = parameters
    return {"type": "function", "function": function}


NODE: dict[str, Any] = {
    "type": "object",
    "properties": {"next": {"$ref": "#/$defs/node"}},
    "additionalProperties": False,
}
# Parameters that also describe other values, arguments that belong, and some that do not.
PARAMETERS: list[tuple[Any, list[str], list[str]]] = [
    ({}, ["{}", '{"a": 1}'], ["1", "[]", "null"]),
    (True, ["{}", '{"a": 1}'], ["1", "[]"]),
    ({"properties": {"a": {"type": "integer"}}}, ['{"a": 1}'], ["[]", "1", '{"a": "s"}']),
    ({"type": ["object", "null"]}, ["{}"], ["null"]),
    ({"anyOf": [{"properties": {"a": {"type": "integer"}}}, {"type": "array"}]}, ["{}"], ["[]"]),
    ({"$ref": "#/$defs/node", "$defs": {"node": NODE}}, ["{}", '{"next": {}}'], ['{"a": 1}']),
    (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$ref": "#/definitions/any",
            "definitions": {"any": {"minProperties": 1}},
        },
        ['{"a": 1}'],
        ["{}", "1"],
    ),
]


@pytest.mark.parametrize(("parameters", "belong", "others"), PARAMETERS)
def test_arguments_are_objects(parameters: Any, belong: list[str], others: list[str]) -> None:
    info = TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
    tools = stencilm.tools("hermes", [tool(parameters)], "required", reasoning=False)
    compiled = GrammarCompiler(info).compile_structural_tag(tools.tag)
    call = '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>'
    for arguments in (*belong, *others):
        text = call % arguments
        matcher = GrammarMatcher(compiled)
        found = matcher.accept_string(text) and matcher.is_completed()
        assert found == (arguments in belong), arguments
        if found:
            assert tools.parse(text).problems == ()


@pytest.mark.parametrize(("parameters", "belong", "others"), PARAMETERS)
def test_arguments_are_objects_in_one_json_object(
    parameters: Any, belong: list[str], others: list[str]
) -> None:
    def asked(arguments: str) -> Any:
        text = f'{{"turn": {{"tool_calls": [{{"name": "f", "arguments": {arguments}}}]}}}}'
        return conversations.chat(Scripted([text]), Talk("Go", tools=[tool(parameters)])).pending

    for arguments in belong:
        assert asked(arguments)[0].name == "f"
    for arguments in others:
        with pytest.raises(AssertionError, match="turn"):
            asked(arguments)


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        (["f"], "a tool is a dict, not a str"),
        ([tool(name="f"), tool(name="f")], "two tools have the name 'f'"),
        ([tool({"type": "array"})], "parameters of 'f' describe 'array'"),
        ([tool({"type": "boolean"})], "parameters of 'f' describe 'boolean'"),
        ([tool({"type": ["null", "string"]})], r"describe \['null', 'string'\]"),
        ([tool([])], "parameters of 'f' are a list"),
        ([tool({"default": {1, 2}})], "parameters of 'f' cannot be written"),
        ([tool({"default": float("nan")})], "parameters of 'f' cannot be written"),
        ([{"type": 5, "name": "f"}], "the type 5"),
        ([tool(name="")], "the name ''"),
    ],
)
@pytest.mark.parametrize("family", ["hermes", "qwen_3_coder", "harmony"])
def test_what_is_no_tool_is_refused(family: str, tools: Any, says: str) -> None:
    with pytest.raises(GrammarSyntaxError, match=says):
        stencilm.tools(family, tools)
    with pytest.raises(GrammarSyntaxError, match=says):
        stencilm.get_model_structural_tag(family, tools)


@pytest.mark.parametrize(
    ("option", "value", "kind"),
    [
        ("any_order", None, TypeError),
        ("any_order", "yes", TypeError),
        ("strict_mode", None, TypeError),
        ("on_unsupported", "drop", ValueError),
        ("max_whitespace", "3", TypeError),
    ],
)
def test_options_of_schemas_are_told_by_name(
    option: str, value: Any, kind: type[Exception]
) -> None:
    wrong: dict[str, Any] = {option: value}
    for given in ([], [tool(name="f")]):
        for call in (stencilm.tools, stencilm.get_model_structural_tag):
            with pytest.raises(kind, match=f"^{option} is {value!r}, but must be"):
                call("hermes", given, **wrong)


def test_what_a_parser_is_given_is_told_by_name() -> None:
    tools = stencilm.tools("qwen_3", [tool(name="f")])
    for prompt in (True, b"<think>"):
        with pytest.raises(TypeError, match=r"prompt is a \w+, but must be a str or None"):
            tools.parse("x", prompt=prompt)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tokenizer_info is a str, but must be a TokenizerInfo"):
        tools.parser(tokenizer_info="qwen")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a b", "a\nb", "a>b", "f(", "<tool_call>", "x" * 3000])
def test_names_that_no_reader_could_find(name: str) -> None:
    for family in ("qwen_3_coder", "kimi", "llama_4_pythonic", "harmony"):
        with pytest.raises(GrammarSyntaxError, match="without quotes"):
            stencilm.tools(family, [tool(name=name)])
    # Within JSON any name can be written and read.
    tools = stencilm.tools("hermes", [tool({}, name)], "required", reasoning=False)
    matcher = GrammarMatcher(
        GrammarCompiler(
            TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
        ).compile_structural_tag(tools.tag)
    )
    text = matcher.shortest_completion()
    assert tools.parse(text.decode()).calls[0].name == name


def test_a_function_and_a_built_in_tool_may_have_one_name() -> None:
    tools = stencilm.tools("harmony", [tool(name="python"), {"type": "python"}])
    text = "<|channel|>analysis to=python code<|message|>1<|call|>"
    assert tools.parse(text).calls[0].arguments == {"code": "1"}


GOOD: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 3}},
    "required": ["n"],
    "additionalProperties": False,
}
# A pattern that is not regular.
BAD: dict[str, Any] = {
    "type": "object",
    "properties": {"s": {"type": "string", "pattern": r"(a)\1"}},
    "required": ["s"],
}


@pytest.mark.parametrize("family", [*TEMPLATES, "harmony"])
def test_one_tool_that_cannot_be_held(compiler: GrammarCompiler, family: str) -> None:
    given = [tool(GOOD, "good"), tool(BAD, "bad_one")]
    with pytest.raises(stencilm.StencilError, match="bad_one"):
        _ = stencilm.tools(family, given).grammar
    tools = stencilm.tools(family, given, "required", reasoning=False, on_unsupported="relax")
    assert {finding.keyword for finding in tools.grammar.report.relaxed} == {"pattern"}
    if family == "harmony":
        return
    compiled = compiler.compile_structural_tag(tools.tag)
    for arguments, belongs in [({"n": 3}, True), ({"n": 2}, False)]:
        text = write_calls(TEMPLATES[family], [("good", arguments)], {"good": GOOD}, ids=["0"])
        matcher = GrammarMatcher(compiled)
        assert (matcher.accept_string(text) and matcher.is_completed()) == belongs, text
