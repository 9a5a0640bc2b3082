"""Names that arguments declare, and references to them, in the styles of models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stencilm
from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo
from stencilm.errors import UnsupportedFeature
from stencilm.tool_calls.families import TEMPLATES
from stencilm.tool_calls.writer import write_arguments

NAMED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "table": {"type": "string", "x-stencilm-declares": "tables"},
        "alias": {"type": "string", "x-stencilm-declares": "tables", "pattern": "^[a-z]{1,3}$"},
        "source": {"type": "string", "x-stencilm-refers": "tables"},
        "days": {"type": "integer"},
    },
    "required": ["table", "source"],
    "additionalProperties": False,
}
STYLES = sorted({way.style for known in TEMPLATES.values() for way in known.ways()})


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny"))


@pytest.mark.parametrize("style", STYLES)
def test_references_are_to_names_that_were_declared(compiler: GrammarCompiler, style: Any) -> None:
    tag = {"type": "json_schema", "style": style, "json_schema": NAMED}
    compiled = compiler.compile_structural_tag(tag)
    cases: list[tuple[dict[str, Any], bool]] = [
        ({"table": "users", "source": "users"}, True),
        ({"table": "a < b", "source": "a < b", "days": 2}, True),
        ({"table": "東京", "alias": "t", "source": "t"}, True),
        ({"table": "users", "alias": "u", "source": "users"}, True),
        ({"table": "users", "source": "user"}, False),
        ({"table": "users", "source": "users2"}, False),
        ({"table": "users", "alias": "LONG", "source": "users"}, False),
        ({"source": "users", "table": "users"}, False),
    ]
    for arguments, belongs in cases:
        text = write_arguments(style, arguments, NAMED)
        matcher = GrammarMatcher(compiled)
        assert (matcher.accept_string(text) and matcher.is_completed()) == belongs, text


@pytest.mark.parametrize("style", ["qwen_xml", "deepseek_xml"])
def test_names_are_written_alike(style: str) -> None:
    schema = {
        "type": "object",
        "properties": {
            "table": {"type": "string", "x-stencilm-declares": "tables"},
            # Within a value, strings are those of JSON.
            "joins": {
                "type": "array",
                "items": {"type": "string", "x-stencilm-refers": "tables"},
            },
        },
        "additionalProperties": False,
    }
    tag = {"type": "json_schema", "style": style, "json_schema": schema}
    with pytest.raises(UnsupportedFeature, match="JSON strings at one place"):
        stencilm.Grammar.from_structural_tag(tag)
    relaxed = stencilm.Grammar.from_structural_tag({**tag, "on_unsupported": "relax"}).report
    assert [finding.keyword for finding in relaxed.relaxed] == ["x-stencilm-refers"]
