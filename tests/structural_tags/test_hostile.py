"""Structural tags that are too deep, too large, or of no use: an error, never a crash."""

from __future__ import annotations

import decimal
import json
from typing import Any

import pytest

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, StructuralTag, TokenizerInfo
from stencilm.errors import (
    GrammarSyntaxError,
    LimitExceeded,
    StencilError,
    Unsatisfiable,
)
from stencilm.grammars.json_values import write_json
from stencilm.grammars.structural_tag import ConstStringFormat, JSONSchemaFormat, OptionalFormat


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    vocabulary: list[str | bytes] = [bytes([byte]) for byte in range(256)]
    vocabulary += ["<|tool|>", "<stop>"]
    info = TokenizerInfo(vocabulary, stop_token_ids=[257], special_token_ids=[256, 257])
    return GrammarCompiler(info)


def matches(compiler: GrammarCompiler, tag: Any, text: str) -> bool:
    matcher = GrammarMatcher(compiler.compile_structural_tag(tag))
    return matcher.accept_string(text) and matcher.is_completed()


def nested(depth: int) -> str:
    return (
        '{"type": "optional", "content": ' * depth
        + '{"type": "const_string", "value": "x"}'
        + "}" * depth
    )


def test_depth(compiler: GrammarCompiler) -> None:
    assert matches(compiler, nested(400), "x")
    assert matches(compiler, nested(400), "")
    with pytest.raises(LimitExceeded):
        Grammar.from_structural_tag(nested(100_000))
    for depth in (100, 400, 100_000):
        with_typed: StructuralTag | None = None
        try:
            with_typed = StructuralTag.from_json(nested(depth))
        except LimitExceeded as error:
            assert "nested too deeply" in str(error)
        if with_typed is not None:
            assert matches(compiler, with_typed, "x")


def test_nested_tags(compiler: GrammarCompiler) -> None:
    depth = 300
    tag: Any = {"type": "any_text"}
    for level in range(depth):
        tag = {"type": "tag", "begin": f"<{level}:", "content": tag, "end": f":{level}>"}
    begun = "".join(f"<{level}:" for level in reversed(range(depth)))
    ended = "".join(f":{level}>" for level in range(depth))
    assert matches(compiler, tag, begun + "text :" + ended)
    assert not matches(compiler, tag, begun + "text" + ended[:-1])


def test_many_rules(compiler: GrammarCompiler) -> None:
    rules = [[f"@{number}!", {"type": "const_string", "value": "."}] for number in range(500)]
    tag = {"type": "dispatch", "rules": rules}
    assert matches(compiler, tag, "see @432!. and @7!. here @")
    assert not matches(compiler, tag, "see @432!,")


def test_thousands_of_rules(compiler: GrammarCompiler) -> None:
    rules = [
        [f"<tool_{number}>", {"type": "const_string", "value": "."}] for number in range(5_000)
    ]
    for tag in ({"type": "dispatch", "rules": rules}, {"type": "dispatch", "rules": rules[::-1]}):
        assert matches(compiler, tag, "see <tool_432>. and <tool_7>. here <tool_")
        assert not matches(compiler, tag, "see <tool_4999>,")
    pairs = ", ".join(f'("<tool_{number}>", end)' for number in range(5_000))
    matcher = GrammarMatcher(
        compiler.compile_grammar(f'root ::= TagDispatch({pairs})\nend ::= "."')
    )
    assert matcher.accept_string("see <tool_432>. and <tool_") and matcher.is_completed()
    assert not matcher.accept_string("7>,")


def test_many_excludes(compiler: GrammarCompiler) -> None:
    tag = {"type": "any_text", "excludes": [f"w{number}." for number in range(2_000)]}
    assert matches(compiler, tag, "w w1 w19999 w2000.")
    assert not matches(compiler, tag, "and w1999.")


@pytest.mark.parametrize(
    "odd", ["\0", "a\0b", '"\\', "\n", "😀", "é" * 50, "]]>", "<<<", "a" * 256]
)
def test_odd_markers(compiler: GrammarCompiler, odd: str) -> None:
    tag = {"type": "tag", "begin": odd, "content": {"type": "any_text"}, "end": odd}
    assert matches(compiler, tag, f"{odd}text{odd}")
    assert matches(compiler, StructuralTag.from_json(tag), f"{odd}text{odd}")
    assert not matches(compiler, tag, f"{odd}text{odd}{odd}")
    assert not matches(compiler, tag, f"{odd}text")
    rules = {"type": "dispatch", "rules": [[odd, {"type": "const_string", "value": "!"}]]}
    assert matches(compiler, rules, f"text {odd}! text")
    assert not matches(compiler, rules, f"text {odd}text")


def test_a_marker_that_is_too_long(compiler: GrammarCompiler) -> None:
    long = "a" * 257
    with pytest.raises(LimitExceeded, match="257 bytes"):
        Grammar.from_structural_tag({"type": "any_text", "excludes": [long]})
    fixed = {"type": "const_string", "value": "!"}
    assert matches(
        compiler, {"type": "tag", "begin": long, "content": fixed, "end": long}, f"{long}!{long}"
    )


def test_counters(compiler: GrammarCompiler) -> None:
    most = 2**31 - 1
    tag = {
        "type": "repeat",
        "min": 0,
        "max": most,
        "content": {"type": "const_string", "value": "x"},
    }
    assert matches(compiler, tag, "x" * 1000)
    assert matches(compiler, {"type": "any_text", "max_chars": most}, "x" * 1000)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "3",
        '"tag"',
        '{"type": "regex", "pattern": "a", "pattern": "b"}',
        "{}",
    ],
)
def test_what_is_no_tag(text: str) -> None:
    with pytest.raises(GrammarSyntaxError) as caught:
        Grammar.from_structural_tag(text)
    assert caught.value.place


def test_size() -> None:
    with pytest.raises(LimitExceeded):
        Grammar.from_structural_tag({"type": "const_string", "value": "x" * (10 << 20)})
    # Each part is bounded as it is on its own, and all of them together by more.
    long = "x" * ((1 << 20) + 1)
    parts: list[dict[str, Any]] = [
        {"type": "regex", "pattern": long},
        {"type": "grammar", "grammar": f'root ::= "a" # {long}'},
        {"type": "grammar", "syntax": "lark", "grammar": f'start: "a" // {long}'},
        {"type": "json_schema", "json_schema": {"title": long}},
        {"type": "json_schema", "json_schema": {"title": long}, "style": "qwen_xml"},
    ]
    for part in parts:
        with pytest.raises(LimitExceeded, match="schema_bytes"):
            Grammar.from_structural_tag(part)
    wide = stencilm.Limits(schema_bytes=2 << 20)
    Grammar.from_structural_tag(parts[3], limits=wide)
    half = {"type": "json_schema", "json_schema": {"title": long[: 1 << 19]}}
    Grammar.from_structural_tag({"type": "sequence", "elements": [half] * 5})


@pytest.mark.parametrize("family", ["hermes", "mistral", "gpt-oss", "qwen_3_coder", "gemma_4"])
def test_a_thousand_tools_with_descriptions(compiler: GrammarCompiler, family: str) -> None:
    tools = [
        {
            "name": f"tool_{number}",
            "parameters": {
                "type": "object",
                "properties": {
                    f"p{number}": {"type": "integer", "description": f"{number} " * 100}
                },
            },
        }
        for number in range(1000)
    ]
    tag = stencilm.get_model_structural_tag(family, tools)
    assert len(tag.to_json()) > 1 << 19
    matcher = GrammarMatcher(compiler.compile_structural_tag(tag))
    assert matcher.fill_next_token_bitmask(
        stencilm.allocate_token_bitmask(1, compiler.tokenizer_info.vocab_size)
    )


@pytest.mark.parametrize(
    ("nothing", "place"),
    [
        (
            {"type": "json_schema", "json_schema": {"type": "integer", "minimum": 2, "maximum": 1}},
            "json_schema",
        ),
        ({"type": "grammar", "grammar": "root ::= root"}, "grammar"),
        ({"type": "regex", "pattern": "a[^\\s\\S]"}, "pattern"),
    ],
)
def test_what_matches_nothing(nothing: dict[str, Any], place: str) -> None:
    something = {"type": "const_string", "value": "x"}
    for tag, at in (
        (nothing, "#/format"),
        ({"type": "or", "elements": [something, nothing]}, "#/format/elements/1"),
        ({"type": "star", "content": nothing}, "#/format/content"),
        (
            {
                "type": "triggered_tags",
                "triggers": ["<"],
                "tags": [
                    {"begin": "<a>", "content": something, "end": "</a>"},
                    {"begin": "<b>", "content": nothing, "end": "</b>"},
                ],
            },
            "#/format/tags/1/content",
        ),
    ):
        with pytest.raises(Unsatisfiable, match=f"^{at}/{place}: "):
            Grammar.from_structural_tag({"type": "structural_tag", "format": tag})
    if place == "pattern":
        tag = {"type": "tag", "begin": nothing, "content": something, "end": ""}
        with pytest.raises(
            Unsatisfiable, match=r"^#/format/elements/1/begin/pattern: no text matches"
        ):
            Grammar.from_structural_tag(
                {"type": "structural_tag", "format": {"type": "or", "elements": [something, tag]}}
            )


@pytest.mark.parametrize("token", [258, 2**31 - 1, "<|tools|>"])
def test_tokens_that_a_vocabulary_has_not(compiler: GrammarCompiler, token: Any) -> None:
    for tag in (
        {"type": "token", "token": token},
        {"type": "any_tokens", "exclude_tokens": [token]},
        {"type": "any_tokens", "exclude_tokens": [token, "<|tool|>"]},
    ):
        grammar = Grammar.from_structural_tag(tag)
        with pytest.raises(StencilError) as caught:
            compiler.compile_grammar(grammar)
        assert str(token) in str(caught.value)


def test_errors_are_for_their_request_only(compiler: GrammarCompiler) -> None:
    for wrong in (nested(100_000), "{", '{"type": "token", "token": 9999}'):
        with pytest.raises(StencilError):
            compiler.compile_structural_tag(wrong)
        assert matches(compiler, {"type": "const_string", "value": "x"}, "x")


def test_wrong_python_values() -> None:
    for value in (3, None, b"{}", [1], object()):
        with pytest.raises(TypeError):
            Grammar.from_structural_tag(value)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Grammar.from_structural_tag("x", triggers=["a"])
    with pytest.raises(GrammarSyntaxError):
        Grammar.from_structural_tag({"type": "const_string", "value": object()})
    with pytest.raises(GrammarSyntaxError):
        Grammar.from_structural_tag({"type": "const_string", "value": "\ud800"})


def test_a_typed_tag_too_deep_to_be_written() -> None:
    """Its text is what it is hashed by, and what a cache of types asks for first."""
    deep: Any = ConstStringFormat(value="x")
    for _ in range(3_000):
        deep = OptionalFormat.model_construct(type="optional", content=deep)
    tag = StructuralTag.model_construct(type="structural_tag", format=deep)
    for read in (hash, StructuralTag.to_json, Grammar.from_structural_tag):
        with pytest.raises(LimitExceeded, match="nested too deeply"):
            read(tag)


@pytest.mark.parametrize(
    ("constant", "told"),
    [
        (object(), "Object of type object is not JSON serializable"),
        ({1, 2}, "Object of type set is not JSON serializable"),
        ({(1, 2): 3}, "not tuple"),
        ([{(1, 2): 10**5_000}], "not tuple"),
        (float("nan"), "Out of range float values"),
        ([10**5_000, float("inf")], "Out of range float values"),
        (decimal.Decimal("NaN"), "NaN is no JSON number"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_schema_that_has_no_json(constant: Any, told: str) -> None:
    """A typed tag is told of it as a dict is, and nothing is written in its place."""
    part = JSONSchemaFormat(json_schema={"const": constant})
    for read in (Grammar.from_structural_tag, lambda tag: tag.to_json()):
        with pytest.raises(GrammarSyntaxError, match=told):
            read(StructuralTag(format=part))
    assert part == part
    names = {True: 1, None: 10**5_000, 2: 3, 0.5: 4}
    written = json.loads(write_json(names), parse_int=str)
    assert written == {"true": "1", "null": "1" + "0" * 5_000, "2": "3", "0.5": "4"}


def test_triggers_that_are_no_texts() -> None:
    item = stencilm.StructuralTagItem(begin="<f>", schema={"type": "integer"}, end="</f>")
    make = StructuralTag.from_legacy_structural_tag
    wrong: Any
    for wrong, said in ([1], "triggers has 1"), ([None], "triggers has None"), (b"a", "is b'a'"):
        for read in (make, Grammar.from_structural_tag):
            with pytest.raises(TypeError, match=f"{said}, but must be a list of texts"):
                read([item], wrong)
    with pytest.raises(GrammarSyntaxError, match="lone surrogate"):
        Grammar.from_structural_tag([item], ["\ud800"])


def test_equal_parts_are_one(compiler: GrammarCompiler) -> None:
    """A tag may say the same schema or grammar hundreds of times, in other places."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    first, second = (
        {"type": "json_schema", "json_schema": schema, "excludes": [left_out]}
        for left_out in ("!!", "??")
    )
    inner = {"type": "grammar", "grammar": 'root ::= "<" (root | [0-9]) ">"'}
    lark = {**inner, "grammar": 'start: "<" (start | /[0-9]/) ">"', "syntax": "lark"}
    for part in (first, inner, lark):
        rules = [
            str(Grammar.from_structural_tag({"type": "sequence", "elements": [part] * number}))
            for number in (2, 200)
        ]
        assert rules[0].count("::=") == rules[1].count("::=")
    both = {"type": "sequence", "elements": [first, second, first]}
    assert matches(compiler, both, '{"a": "??"}{"a": "!!"}{"a": "??"}')
    assert not matches(compiler, both, '{"a": "??"}{"a": "??"}{"a": "??"}')
    assert not matches(compiler, both, '{"a": "??"}{"a": "!!"}{"a": "!!"}')
