"""How requests are read: the settings of a server, and the tags that vLLM's tool parsers make."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stencilm import Grammar, GrammarMatcher, StructuralTag, TokenizerInfo
from stencilm.errors import StencilError
from stencilm.integrations.vllm.requests import Kind, grammar_of, is_json, tag_of_wishes
from stencilm.integrations.vllm.settings import OPTIONS, SWITCH, Options, is_switched_on
from stencilm.matching.compiler import GrammarCompiler

SHARED = Path(os.environ.get("STENCILM_SHARED", Path(__file__).parents[4] / "shared"))
TAGS = SHARED / "cases" / "vllm_tags.json"
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    """One token for each byte, and one that stops."""
    vocabulary: list[str | bytes] = [bytes([byte]) for byte in range(256)]
    return GrammarCompiler(TokenizerInfo([*vocabulary, "<stop>"], stop_token_ids=[256]))


def fits(compiler: GrammarCompiler, grammar: Grammar, text: str) -> bool:
    matcher = GrammarMatcher(compiler.compile_grammar(grammar))
    return matcher.accept_string(text) and matcher.is_completed()


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, False), ("", False), ("0", False), ("off", False), ("1", True), (" On ", True)],
)
def test_the_switch(value: str | None, expected: bool) -> None:
    assert is_switched_on({} if value is None else {SWITCH: value}) is expected


def test_a_switch_that_says_neither_is_refused() -> None:
    with pytest.raises(ValueError, match=r"STENCILM_VLLM is 'maybe', but must be 1 \(on\) or 0"):
        is_switched_on({SWITCH: "maybe"})


def test_options_are_read() -> None:
    assert Options.from_environment({}) == Options()
    text = (
        '{"property_order": "any", "max_whitespace": null, "strict_mode": true, '
        '"whitespace_budget": 9}'
    )
    expected = Options(
        property_order="any", max_whitespace=None, strict_mode=True, whitespace_budget=9
    )
    assert Options.from_environment({OPTIONS: text}) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Invalid JSON"),
        ("[]", "is a JSON object"),
        ('{"property_order": "none"}', "#/property_order"),
        ('{"max_whitespace": -1}', "#/max_whitespace"),
        ('{"max_whitespace": true}', "#/max_whitespace"),
        ('{"milliseconds": 0}', "#/milliseconds"),
        ('{"whitespace_budget": -1}', "#/whitespace_budget"),
        ('{"maxwhitespace": 1}', "#/maxwhitespace.*that may have property_order, max_whitespace"),
    ],
)
def test_options_that_are_none_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options.from_environment({OPTIONS: text})


def forms(schema: Any) -> dict[str, tuple[Kind, str, str, str]]:
    """The ways to ask for a schema: the kind, the request, and what stands around the JSON."""
    value: dict[str, Any] = {"type": "json_schema", "json_schema": schema}
    dumped = {**value, "style": "json", "any_order": False, "max_whitespace_cnt": None}
    dumped["excludes"] = []
    older = {
        "type": "structural_tag",
        "structures": [{"begin": "<f>", "schema": schema, "end": "</f>"}],
        "triggers": ["<f>"],
    }
    return {
        "a schema": (Kind.JSON_SCHEMA, json.dumps(schema), "", ""),
        "a format": (Kind.STRUCTURAL_TAG, json.dumps(value), "", ""),
        "a format as engines write it": (Kind.STRUCTURAL_TAG, json.dumps(dumped), "", ""),
        "the older form": (Kind.STRUCTURAL_TAG, json.dumps(older), "<f>", "</f>"),
    }


@pytest.mark.parametrize("form", forms(SCHEMA))
def test_options_hold_in_every_form(compiler: GrammarCompiler, form: str) -> None:
    kind, request, begin, end = forms(SCHEMA)[form]

    def check(text: str, expected: bool, **options: Any) -> None:
        grammar = grammar_of(kind, request, Options(**options))
        assert fits(compiler, grammar, f"{begin}{text}{end}") is expected, (text, options)

    declared, other, open_ = '{"a":1,"b":2}', '{"b":2,"a":1}', '{"a":1,"b":2,"c":3}'
    check(declared, True)
    check(other, False)
    check(other, True, property_order="any")
    check(declared, True, property_order="any")
    check('{"a": 1,  "b":2}', True)
    check('{"a": 1, "b":2}', False, max_whitespace=0)
    check(declared, True, max_whitespace=0)
    check('{"a":1,' + " " * 65 + '"b":2}', False)
    check('{"a":1,' + " " * 65 + '"b":2}', True, max_whitespace=None)
    check(open_, True)
    check(open_, False, strict_mode=True)


def test_a_tag_s_own_bound_holds(compiler: GrammarCompiler) -> None:
    value = {"type": "json_schema", "json_schema": {"enum": [[1, 2]]}, "max_whitespace_cnt": 2}
    grammar = grammar_of(Kind.STRUCTURAL_TAG, json.dumps(value), Options(max_whitespace=0))
    assert fits(compiler, grammar, "[1,  2]") and not fits(compiler, grammar, "[1,   2]")


def test_options_leave_schemas_alone(compiler: GrammarCompiler) -> None:
    """A schema may describe values that look like formats."""
    schema = {"enum": [{"type": "json_schema", "json_schema": 1}]}
    value = {"type": "json_schema", "json_schema": schema}
    grammar = grammar_of(Kind.STRUCTURAL_TAG, json.dumps(value), Options(max_whitespace=0))
    assert fits(compiler, grammar, '{"type":"json_schema","json_schema":1}')


def test_options_change_no_error() -> None:
    """What is wrong with a tag is said alike with and without options."""
    for request in ("{", '{"type": "nope"}', '{"structures": [1], "triggers": ["<f>"]}'):
        messages = []
        for options in (Options(), Options(max_whitespace=1)):
            with pytest.raises(StencilError) as raised:
                grammar_of(Kind.STRUCTURAL_TAG, request, options)
            messages.append(raised.value.message)
        if "structures" not in request:
            assert messages[0] == messages[1]


@pytest.mark.skipif(not TAGS.exists(), reason="the shared cases are not here")
def test_the_tags_of_vllm_s_tool_parsers_compile_as_they_come() -> None:
    """Each is compiled as text, as a typed value, and with options that are not the default."""
    tags = json.loads(TAGS.read_text(encoding="utf-8"))
    assert len(tags) == 102
    for name, tag in tags.items():
        text = tag if isinstance(tag, str) else json.dumps(tag)
        grammar = grammar_of(Kind.STRUCTURAL_TAG, text, Options())
        assert str(Grammar.from_structural_tag(StructuralTag.from_json(text))) == str(grammar), name
        grammar_of(Kind.STRUCTURAL_TAG, text, Options(max_whitespace=1, strict_mode=True))


def test_options_leave_the_numbers_of_a_tag_as_they_are(compiler: GrammarCompiler) -> None:
    """A schema's numbers are decimals; read as floats, `1e400` would be written as Infinity."""
    text = (
        '{"type": "structural_tag", "format": {"type": "json_schema", "json_schema": '
        '{"type": "integer", "minimum": 1e400, "maximum": 100000000000000000000000001e374}}}'
    )
    for options in (Options(), Options(max_whitespace=0)):
        grammar = grammar_of(Kind.STRUCTURAL_TAG, text, options)
        assert not fits(compiler, grammar, "5")
        assert fits(compiler, grammar, "100000000000000000000000001" + "0" * 374)
        assert not fits(compiler, grammar, "100000000000000000000000002" + "0" * 374)


def test_options_hide_no_name_that_stands_twice() -> None:
    text = (
        '{"type": "structural_tag", "format": {"type": "json_schema", "json_schema": '
        '{"type": "integer", "type": "string"}}}'
    )
    for options in (Options(), Options(max_whitespace=0)):
        with pytest.raises(StencilError, match='"type" stands twice'):
            grammar_of(Kind.STRUCTURAL_TAG, text, options)


def asked(**fields: Any) -> Any:
    """As much of vLLM's `StructuredOutputsParams` as says what JSON is asked for."""
    none = {"json": None, "json_object": None, "whitespace_pattern": None}
    wishes = {"disable_any_whitespace": False, "disable_additional_properties": False}
    return SimpleNamespace(**{**none, **wishes, **fields})


def test_what_is_wished_beside_a_schema_is_a_tag(compiler: GrammarCompiler) -> None:
    open_schema = {"properties": {"a": {"type": "integer"}}, "type": "object"}
    for schema in (open_schema, json.dumps(open_schema)):
        assert tag_of_wishes(asked(json=schema)) is None
        compact = tag_of_wishes(asked(json=schema, disable_any_whitespace=True))
        closed = tag_of_wishes(asked(json=schema, disable_additional_properties=True))
        assert compact is not None and closed is not None
        grammar = grammar_of(Kind.STRUCTURAL_TAG, compact, Options())
        assert fits(compiler, grammar, '{"a":1,"b":2}')
        assert not fits(compiler, grammar, '{"a": 1}')
        grammar = grammar_of(Kind.STRUCTURAL_TAG, closed, Options())
        assert fits(compiler, grammar, '{"a": 1}') and not fits(compiler, grammar, '{"b": 1}')
    tag = tag_of_wishes(asked(json_object=True, disable_any_whitespace=True))
    assert tag is not None
    grammar = grammar_of(Kind.STRUCTURAL_TAG, tag, Options())
    assert fits(compiler, grammar, '{"b":[]}') and not fits(compiler, grammar, "[]")
    # Of what is no JSON nothing is wished.
    assert tag_of_wishes(asked(regex="a", disable_any_whitespace=True)) is None
    with pytest.raises(ValueError, match="whitespace_pattern cannot be enforced; leave it out"):
        tag_of_wishes(asked(json=True, whitespace_pattern=" *"))
    nested = f'{{"default": {"[" * 100_000 + "]" * 100_000}}}'
    with pytest.raises(ValueError, match="nested too deeply"):
        tag_of_wishes(asked(json=nested, disable_any_whitespace=True))


@pytest.mark.parametrize("compact", [False, True])
def test_the_engine_reads_what_is_wished(compact: bool) -> None:
    """Also where the front end was none of vLLM's Python; a request is not changed."""
    pytest.importorskip("vllm", reason="vLLM is not here: tests/engines/vllm/install.sh")
    from vllm.sampling_params import StructuredOutputsParams
    from vllm.v1.structured_output.backend_types import StructuredOutputOptions
    from vllm.v1.structured_output.request import StructuredOutputRequest

    from stencilm.integrations.vllm.plugin import install

    install()
    params = StructuredOutputsParams(json={"type": "object"}, disable_any_whitespace=compact)
    kind, _ = StructuredOutputRequest(params=params).structured_output_key
    options = StructuredOutputOptions
    assert kind is (options.STRUCTURAL_TAG if compact else options.JSON)
    assert params.json == {"type": "object"} and params.structural_tag is None


def test_which_texts_are_json_as_a_whole() -> None:
    def tag(**value: Any) -> str:
        return json.dumps({"type": "structural_tag", "format": value})

    assert is_json(Kind.JSON_SCHEMA, "{}") and is_json(Kind.JSON_OBJECT, "")
    assert not is_json(Kind.REGEX, "a") and not is_json(Kind.STRUCTURAL_TAG, "[")
    # As the front end writes `disable_additional_properties` of a request.
    assert is_json(Kind.STRUCTURAL_TAG, tag(type="json_schema", json_schema={}, strict_mode=True))
    assert not is_json(Kind.STRUCTURAL_TAG, tag(type="any_text"))
    styled = tag(type="json_schema", json_schema={}, style="qwen_xml")
    assert not is_json(Kind.STRUCTURAL_TAG, styled)
