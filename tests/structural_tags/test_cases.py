"""What each format accepts and refuses; the same table is read by the tests of the engine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import stencilm
from stencilm import (
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    Limits,
    StructuralTag,
    TokenizerInfo,
)
from stencilm.errors import (
    GrammarSyntaxError,
    LimitExceeded,
    Unsatisfiable,
    UnsupportedFeature,
)
from stencilm.grammars.sources import StructuralTagSource
from stencilm.grammars.structural_tag import (
    AnyTextFormat,
    DispatchFormat,
    GrammarFormat,
    JSONSchemaFormat,
    QwenXMLParameterFormat,
    TagsWithSeparatorFormat,
    TriggeredTagsFormat,
)

TABLE = json.loads((Path(__file__).parent / "cases.json").read_text(encoding="utf-8"))
KINDS = {
    "syntax": GrammarSyntaxError,
    "unsupported": UnsupportedFeature,
    "unsatisfiable": Unsatisfiable,
    "limit": LimitExceeded,
}
SPECIAL = {"<|tool|>": 256, "<|end|>": 257, "<stop>": 258}


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    """One token for each byte, and three special ones of which the last one stops."""
    vocabulary: list[str | bytes] = [bytes([byte]) for byte in range(256)]
    vocabulary += SPECIAL
    info = TokenizerInfo(
        vocabulary, stop_token_ids=[SPECIAL["<stop>"]], special_token_ids=list(SPECIAL.values())
    )
    return GrammarCompiler(info)


def ids(text: str | list[Any]) -> list[int]:
    """A text of the table as token ids: texts by their bytes, tokens by their id or name."""
    found: list[int] = []
    for part in [text] if isinstance(text, str) else text:
        if isinstance(part, str):
            found += part.encode()
        else:
            found.append(SPECIAL.get(part["token"], part["token"]))
    return found


def matches(compiler: GrammarCompiler, grammar: Grammar, text: str | list[Any]) -> bool:
    """Whether a whole text belongs, with every mask on the way held against what is accepted."""
    matcher = GrammarMatcher(compiler.compile_grammar(grammar))
    for token in ids(text):
        if matcher.is_allowed(token) != matcher.accept_token(token):
            raise AssertionError(f"token {token} of {text!r}")
        if matcher.num_accepted_tokens == 0:
            return False
    accepted = matcher.num_accepted_tokens == len(ids(text))
    return accepted and matcher.is_completed()


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_case(compiler: GrammarCompiler, case: dict[str, Any]) -> None:
    grammar = Grammar.from_structural_tag(case["tag"])
    forms = [
        grammar,
        Grammar.from_ebnf(str(grammar)),
        Grammar.deserialize_json(grammar.serialize_json()),
        Grammar.from_structural_tag(StructuralTag.from_json(case["tag"])),
        Grammar.from_structural_tag(StructuralTag.from_json(case["tag"]).to_json()),
    ]
    for form in forms:
        for text in case["inside"]:
            assert matches(compiler, form, text), text
        for text in case["outside"]:
            assert not matches(compiler, form, text), text


@pytest.mark.parametrize("case", TABLE["refusals"], ids=lambda case: case["name"])
def test_refusal(case: dict[str, Any]) -> None:
    # A long tag is a list of parts, each with how often it comes.
    parts: list[tuple[str, int]] = case.get("text") or [(json.dumps(case["tag"]), 1)]
    limits = Limits(schema_bytes=case["schema_bytes"]) if "schema_bytes" in case else Limits()
    source = StructuralTagSource.of("".join(part * times for part, times in parts), None)
    with pytest.raises(KINDS[case["kind"]]) as caught:
        Grammar.from_source(source, limits)
    assert type(caught.value) is KINDS[case["kind"]]
    assert caught.value.place == case["place"]
    assert case["says"] and case["says"] in str(caught.value)


def test_a_typed_tag_is_its_json() -> None:
    for case in TABLE["cases"]:
        tag = StructuralTag.from_json(case["tag"])
        assert StructuralTag.from_json(tag.to_json()) == tag
        assert hash(StructuralTag.from_json(json.dumps(case["tag"]))) == hash(tag)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("[]", "#"),
        ("{", "line 1, column 2"),
        (
            '{"type": "tag", "begin": "a", "content": {"type": "x"}, "end": ""}',
            "#/content",
        ),
        ('{"type": "regex"}', "#/pattern"),
        ('{"type": "structural_tag"}', "#/format"),
        ('{"format": {"type": "json_schema", "json_schema": 3}}', "#/format/json_schema"),
        ('{"type": "json_schema", "json_schema": {}, "style": "x"}', "#/style"),
        (
            '{"type": "tag", "begin": {"type": "token", "token": true},'
            ' "content": {"type": "any_text"}, "end": ""}',
            "#/begin",
        ),
        (
            '{"type": "dispatch", "rules": [["a", {"type": "repeat", "min": "x"}]]}',
            "#/rules/0/1/min",
        ),
        ('{"type": "regex", "pattern": "a", "a/b~": 1}', "#/a~1b~0"),
        # The older form.
        ('{"structures": null, "triggers": []}', "#/structures"),
        ('{"structures": [1], "triggers": ["a"]}', "#/structures/0"),
        ('{"structures": [{"begin": "a", "end": "b"}], "triggers": []}', "#/structures/0/schema"),
        (
            '{"structures": [{"begin": "a", "schema": 3, "end": "b"}], "triggers": ["a"]}',
            "#/structures/0/schema",
        ),
        (
            '{"structures": [{"begin": "a", "schema": "{", "end": "b"}], "triggers": ["a"]}',
            "#/structures/0/schema",
        ),
        ('{"structures": []}', "#/triggers"),
        ('{"structures": [], "triggers": "a"}', "#/triggers"),
        ('{"structures": [], "triggers": ["a"], "stop": true}', "#/stop"),
    ],
)
def test_a_typed_tag_is_refused_at_its_place(value: str, place: str) -> None:
    with pytest.raises(GrammarSyntaxError) as caught:
        StructuralTag.from_json(value)
    assert caught.value.place == place


def test_equal_tags_have_one_json() -> None:
    """Python holds 1 for true, and dicts in another order for equal; their grammars are not."""
    schemas: list[dict[str, Any]] = [
        {"const": 1},
        {"const": 1.0},
        {"const": True},
        {"properties": {"a": {}, "b": {}}},
        {"properties": {"b": {}, "a": {}}},
    ]
    formats = [JSONSchemaFormat(json_schema=schema) for schema in schemas]
    tags = [StructuralTag(format=part) for part in formats]
    assert len({tag.to_json() for tag in tags}) == len(set(tags)) == len(set(formats)) == 5
    listed = JSONSchemaFormat(json_schema={"enum": ("a", "b")})
    again = StructuralTag.from_json(StructuralTag(format=listed).to_json()).format
    assert again == listed and hash(again) == hash(listed) and again != formats[0]


TYPED: dict[str, type[BaseModel]] = {
    "json_schema": JSONSchemaFormat,
    "qwen_xml_parameter": QwenXMLParameterFormat,
    "grammar": GrammarFormat,
    "any_text": AnyTextFormat,
    "triggered_tags": TriggeredTagsFormat,
    "tags_with_separator": TagsWithSeparatorFormat,
    "dispatch": DispatchFormat,
}


@pytest.mark.parametrize("name", TYPED)
def test_typed_values_have_the_fields_of_the_json(name: str) -> None:
    with pytest.raises(UnsupportedFeature) as refused:
        Grammar.from_structural_tag({"type": name, "json_schema": {}, "unknown": 1})
    [listed] = re.findall("only (.*); leave it out", str(refused.value))
    # The bound of whitespace has two names, of which values keep one.
    fields = {*listed.split(", "), "type"} - {"max_whitespace_cnt"}
    assert set(TYPED[name].model_fields) == fields


def test_a_format_alone_is_a_tag(compiler: GrammarCompiler) -> None:
    tag = StructuralTag.from_json({"type": "regex", "pattern": "[0-9]"})
    assert Grammar.from_structural_tag(tag.format) == Grammar.from_structural_tag(tag)
    assert compiler.compile_structural_tag(tag.format) is compiler.compile_structural_tag(tag)
    with pytest.raises(TypeError, match="tag is a int, but must be a StructuralTag, a format"):
        Grammar.from_structural_tag(3)  # type: ignore[arg-type]
    item = stencilm.StructuralTagItem(begin="<a>", schema={}, end="</a>")
    with pytest.raises(TypeError, match="a list of StructuralTagItem comes with triggers"):
        Grammar.from_structural_tag([item])


def test_importing_the_package_imports_no_tags() -> None:
    assert "StructuralTag" in dir(stencilm)
