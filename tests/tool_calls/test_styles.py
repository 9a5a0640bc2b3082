"""Arguments in the styles of families: what belongs, and what does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stencilm
from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo
from stencilm.errors import StencilError
from stencilm.tool_calls.writer import write_arguments

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
CLOSED: dict[str, Any] = {"additionalProperties": False}
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
        ({"type": "array"}, "no arguments"),
        ({"type": "object", "properties": {"a-b:": True}}, "a-b:"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}, "nothing stands there"),
        ({"required": ["a"], "additionalProperties": False}, "no value is possible"),
        ({"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]}, "required"),
    ],
)
def test_what_literals_cannot_hold_is_refused(
    style: str, schema: dict[str, Any], says: str
) -> None:
    tag = {"type": "json_schema", "style": style, "json_schema": schema}
    with pytest.raises(StencilError, match=says):
        stencilm.Grammar.from_structural_tag(tag)


EXCLUDING: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "b": {"type": "array", "items": {"type": "string"}},
        "c": {"enum": ["x<y", "z"]},
        "d": {"type": "string", "pattern": "^<[xy]$"},
        "m<y": {"type": "integer"},
    },
}
# How an argument is written, with a string in JSON and as it is.
WRITTEN = {
    "qwen_xml": ("<parameter={0}>\n{1}\n</parameter>", "{0}"),
    "minimax_xml": ('<parameter name="{0}">{1}</parameter>', "{0}"),
    "glm_xml": ("<arg_key>{0}</arg_key><arg_value>{1}</arg_value>", "{0}"),
    "kimi_k3_xml": (
        '<|open|>argument key="{0}" type="string"<|sep|>{1}<|close|>argument<|sep|>',
        "{0}",
    ),
    "minimax_m3_xml": ("]<]minimax[>[<{0}>{1}]<]minimax[>[</{0}>", "{0}"),
    "python": ("{0}={1}", "'{0}'"),
    "gemma": ("{0}:{1}", QUOTE + "{0}" + QUOTE),
}


@pytest.mark.parametrize("style", [*WRITTEN])
def test_excluded_texts_come_in_no_string_and_no_name(
    compiler: GrammarCompiler, style: str
) -> None:
    schema = EXCLUDING
    if style in ("python", "gemma"):
        known = schema["properties"]
        schema = {**schema, "properties": {name: known[name] for name in ("a", "b", "c", "d")}}
    tag = {"type": "json_schema", "style": style, "json_schema": schema, "excludes": ["<y", "!!"]}
    compiled = compiler.compile_structural_tag(tag)
    argument, string = WRITTEN[style]

    def fits(name: str, value: str) -> bool:
        matcher = GrammarMatcher(compiled)
        text = argument.format(name, string.format(value))
        return matcher.accept_string(text) and matcher.is_completed()

    assert fits("a", "one <x two!")
    assert not fits("a", "one <y two") and not fits("a", "one!!")
    assert fits("c", "z") and not fits("c", "x<y")
    assert fits("d", "<x") and not fits("d", "<y")
    if style != "minimax_m3_xml":
        assert fits("other", "o") and not fits("other", "o!!")
    if style not in ("minimax_m3_xml", "python", "gemma"):
        assert not fits("o!!", "o")


@pytest.mark.parametrize("style", ["qwen_xml", "glm_xml"])
def test_excluded_texts_come_in_no_json_but_with_escapes(
    compiler: GrammarCompiler, style: str
) -> None:
    tag = {"type": "json_schema", "style": style, "json_schema": EXCLUDING, "excludes": ["<y"]}
    compiled = compiler.compile_structural_tag(tag)
    for value, belongs in [('["<x"]', True), ('["<y"]', False), ('["\\u003cy"]', True)]:
        matcher = GrammarMatcher(compiled)
        found = matcher.accept_string(WRITTEN[style][0].format("b", value))
        assert (found and matcher.is_completed()) == belongs, value


@pytest.mark.parametrize("style", ["qwen_xml", "python", "gemma"])
def test_a_name_that_is_excluded_and_required_leaves_nothing(style: str) -> None:
    schema = {"type": "object", "properties": {"a_y": {"type": "string"}}, "required": ["a_y"]}
    tag = {"type": "json_schema", "style": style, "json_schema": schema, "excludes": ["_y"]}
    with pytest.raises(stencilm.Unsatisfiable):
        stencilm.Grammar.from_structural_tag(tag)


@pytest.mark.parametrize("style", ["json", "qwen_xml", "python", "gemma"])
def test_keys_that_must_not_be_count_for_none(style: str) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "propertyNames": {"enum": ["b"]},
        "additionalProperties": False,
    }
    cases: list[tuple[dict[str, Any], str]] = [
        ({"minProperties": 2}, "above the 1 keys that may be there"),
        ({"required": ["a"]}, 'the key "a" is asked for, and no key of this name is allowed'),
    ]
    for asked, says in cases:
        tag = {"type": "json_schema", "style": style, "json_schema": {**schema, **asked}}
        with pytest.raises(stencilm.Unsatisfiable, match=says):
            stencilm.Grammar.from_structural_tag(tag)


LOOSE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        "b": {"type": ["object", "null"], "minProperties": 1},
        "c d:": {"type": "string"},
    },
    "required": ["c d:"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("style", ["python", "gemma"])
def test_what_literals_cannot_hold_is_left_out_and_reported(
    compiler: GrammarCompiler, style: str
) -> None:
    tag = {"type": "json_schema", "style": style, "json_schema": LOOSE}
    with pytest.raises(stencilm.UnsupportedFeature):
        stencilm.Grammar.from_structural_tag(tag)
    tag["on_unsupported"] = "relax"
    report = stencilm.Grammar.from_structural_tag(tag).report
    relaxed = {(found.keyword, found.place.rpartition("/")[2]) for found in report.relaxed}
    # Strings of Gemma are not those of JSON, by which elements are told apart.
    told_apart = style == "python"
    assert relaxed == {("properties", "c d:")} | (set() if told_apart else {("uniqueItems", "a")})
    compiled = compiler.compile_structural_tag(tag)
    sign = "=" if style == "python" else ":"
    comma = ", " if style == "python" else ","
    for text, belongs in [
        (f"a{sign}[1{comma}1]", not told_apart),
        (f"a{sign}[1{comma}2]", True),
        (f"a{sign}[1]{comma}b{sign}{{}}", False),
        (f"a{sign}[1]{comma}b{sign}" + ("{'x': 1}" if told_apart else "{x:1}"), True),
        (f"a{sign}['x']", False),
        ("", True),
    ]:
        matcher = GrammarMatcher(compiled)
        assert (matcher.accept_string(text) and matcher.is_completed()) == belongs, text


@pytest.mark.parametrize("style", ["python", "gemma"])
def test_one_tool_that_cannot_be_held_leaves_the_others_as_they_are(style: str) -> None:
    family = "llama_4_pythonic" if style == "python" else "gemma_4"
    good = {"name": "good", "parameters": {"type": "object", "properties": {"n": {"minimum": 3}}}}
    bad = {"name": "bad", "parameters": LOOSE}
    with pytest.raises(stencilm.UnsupportedFeature, match="bad"):
        stencilm.Grammar.from_structural_tag(stencilm.get_model_structural_tag(family, [good, bad]))
    tag = stencilm.get_model_structural_tag(family, [good, bad], on_unsupported="relax")
    relaxed = stencilm.Grammar.from_structural_tag(tag).report.relaxed
    expected = {"properties"} if style == "python" else {"uniqueItems", "properties"}
    assert {found.keyword for found in relaxed} == expected


def test_objects_and_arrays_that_are_given_are_literals(compiler: GrammarCompiler) -> None:
    values = [1, [1, {"k": True}], {"x": None}, "s"]
    schema = {
        "type": "object",
        "properties": {"v": {"enum": values, "type": ["array", "object", "integer"]}},
        "required": ["v"],
    }
    tag = {"type": "json_schema", "style": "python", "json_schema": schema}
    compiled = compiler.compile_structural_tag(tag)
    for text, belongs in [
        ("v=1", True),
        ("v=[1, {'k': True}]", True),
        ('v={"x": None}', True),
        ("v='s'", False),
        ("v=[1]", False),
        ("v={}", False),
    ]:
        matcher = GrammarMatcher(compiled)
        assert (matcher.accept_string(text) and matcher.is_completed()) == belongs, text


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


HOLDS: list[tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]] = [
    (
        {
            "anyOf": [
                {"properties": {"a": {"type": "integer"}}, "required": ["a"], **CLOSED},
                {"properties": {"b": {"type": "string"}}, "required": ["b"], **CLOSED},
            ]
        },
        [{"a": 1}, {"b": "it's"}],
        [{}, {"a": "s"}, {"a": 1, "b": "s"}],
    ),
    (
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                {"properties": {"a": {"minimum": 3}}},
            ]
        },
        [{"a": 3}],
        [{}, {"a": 2}],
    ),
    ({"const": {"a": [1, {"k": None}]}}, [{"a": [1, {"k": None}]}], [{}, {"a": [1]}]),
    ({"enum": [{"a": 1}, {"b": "x"}, 3]}, [{"a": 1}, {"b": "x"}], [{"a": 2}]),
    (
        {"type": "object", "patternProperties": {"^x_": {"type": "integer"}}, **CLOSED},
        [{}, {"x_a": 1, "x_b": 2}],
        [{"a": 1}, {"x_a": "s"}],
    ),
    (
        {
            "type": "object",
            "propertyNames": {"maxLength": 2},
            "additionalProperties": {"type": "integer"},
            "minProperties": 1,
            "maxProperties": 2,
        },
        [{"ab": 1}, {"a": 1, "b": 2}],
        [{}, {"abc": 1}, {"a": 1, "b": 2, "c": 3}],
    ),
    (
        {
            "type": "object",
            "properties": {"k": {"enum": ["a", "b"]}, "v": {"type": "integer"}},
            "required": ["k"],
            "if": {"properties": {"k": {"const": "a"}}},
            "then": {"required": ["v"]},
            **CLOSED,
        },
        [{"k": "b"}, {"k": "a", "v": 1}],
        [{"k": "a"}],
    ),
    (
        {
            "type": "object",
            "properties": {
                "v": {
                    "type": "array",
                    "prefixItems": [{"type": "integer"}],
                    "items": {"type": "string"},
                    "contains": {"const": "s"},
                    "minItems": 2,
                }
            },
            "required": ["v"],
        },
        [{"v": [1, "s"]}, {"v": [1, "t", "s"]}],
        [{"v": [1]}, {"v": [1, "t"]}, {"v": ["s", "s"]}],
    ),
]


@pytest.mark.parametrize("style", ["python", "gemma", "functiongemma"])
@pytest.mark.parametrize(("schema", "belong", "others"), HOLDS)
def test_literals_hold_what_json_holds(
    compiler: GrammarCompiler,
    style: Any,
    schema: dict[str, Any],
    belong: list[dict[str, Any]],
    others: list[dict[str, Any]],
) -> None:
    tag = {"type": "json_schema", "style": style, "json_schema": schema}
    compiled = compiler.compile_structural_tag(tag)
    for arguments in (*belong, *others):
        text = write_arguments(style, arguments)
        matcher = GrammarMatcher(compiled)
        found = matcher.accept_string(text) and matcher.is_completed()
        assert found == (arguments in belong), text


def test_elements_that_differ_in_python(compiler: GrammarCompiler) -> None:
    schema = {
        "type": "object",
        "properties": {"v": {"type": "array", "uniqueItems": True}, "w": {"type": "string"}},
    }
    tag = {"type": "json_schema", "style": "python", "json_schema": schema}
    compiled = compiler.compile_structural_tag(tag)
    for text, belongs in [
        ('v=["a", "b"]', True),
        ('v=["a", "a"]', False),
        ("v=[True, False, None, 1, [], {}]", True),
        ("v=[True, True]", False),
        ('v=[{"a": True}, {"a": True}]', False),
        # In one way, so that they are told apart; elsewhere in both.
        ("v=['a', \"a\"]", False),
        ("v=['a']", False),
        ("w='a'", True),
    ]:
        matcher = GrammarMatcher(compiled)
        assert (matcher.accept_string(text) and matcher.is_completed()) == belongs, text


@pytest.mark.parametrize("style", ["qwen_xml", "python"])
def test_a_name_that_fails_is_none_of_those_that_are_listed(
    compiler: GrammarCompiler, style: str
) -> None:
    # What is negated holds of an object with no other names, unless `a` has another value.
    names = {"propertyNames": {"enum": ["a", "x_1"]}}
    schema = {
        "type": "object",
        "properties": {"x_1": True, "a": {"type": "integer"}},
        **CLOSED,
        **names,
        "not": {"properties": {"a": {"enum": [1]}}, **names},
    }
    tag = {"type": "json_schema", "style": style, "json_schema": schema}
    compiled = compiler.compile_structural_tag(tag)
    one, both = {
        "qwen_xml": (
            "<parameter=x_1>1</parameter>",
            "<parameter=x_1>1</parameter><parameter=a>2</parameter>",
        ),
        "python": ("x_1=1", "x_1=1, a=2"),
    }[style]
    for text, belongs in [(one, False), (both, True)]:
        matcher = GrammarMatcher(compiled)
        assert (matcher.accept_string(text) and matcher.is_completed()) == belongs, text
