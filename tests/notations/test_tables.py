"""Tables of cases that Rust and Python read alike: what notations accept, reject and refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, StencilError, TokenizerInfo

TABLES = Path(__file__).resolve().parent.parent / "tables"
ERRORS = {
    "syntax": stencilm.GrammarSyntaxError,
    "unsupported": stencilm.UnsupportedFeature,
    "unsatisfiable": stencilm.Unsatisfiable,
    "limit": stencilm.LimitExceeded,
}
READERS: dict[str, Callable[[dict[str, Any]], Grammar]] = {
    "ebnf": lambda case: Grammar.from_ebnf(spelled(case["grammar"])),
    "regex": lambda case: Grammar.from_regex(spelled(case["grammar"])),
    "lark": lambda case: Grammar.from_lark(
        spelled(case["grammar"]),
        grammars={name: named(given) for name, given in case.get("grammars", {}).items()},
    ),
    # Patterns of JSON Schema, whose texts are strings.
    "pattern": lambda case: Grammar.from_json_schema(
        {"type": "string", "pattern": spelled(case["grammar"])}
    ),
}


def named(given: str | dict[str, str]) -> str | Grammar:
    """A grammar by name: a Lark text, or another grammar as EBNF."""
    return given if isinstance(given, str) else Grammar.from_ebnf(given["ebnf"])


def spelled(text: str | list[tuple[str, int]]) -> str:
    """A text of the table; a long one is a list of parts, each with how often it comes."""
    return text if isinstance(text, str) else "".join(part * times for part, times in text)


CASES = [
    pytest.param(notation, case, id=f"{notation}: {case['name']}")
    for notation in READERS
    for case in json.loads((TABLES / f"{notation}.json").read_text("utf-8"))["cases"]
]


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny"))


@pytest.mark.parametrize(("notation", "case"), CASES)
def test_case(compiler: GrammarCompiler, notation: str, case: dict[str, Any]) -> None:
    read = READERS[notation]
    if "error" in case:
        expected = case["error"]
        with pytest.raises(StencilError) as caught:
            read(case)
        assert type(caught.value) is ERRORS[expected["kind"]]
        assert expected["words"] and expected["words"] in str(caught.value)
        # A text that is too long is not read, so it has no places.
        if "bytes and at most" not in expected["words"]:
            assert caught.value.place == expected["place"]
        return
    grammar = read(case)
    again = Grammar.from_ebnf(str(grammar))
    assert str(again) == str(grammar)
    for form in (grammar, again):
        compiled = compiler.compile_grammar(form)
        for texts, inside in ((case.get("accept", ()), True), (case.get("reject", ()), False)):
            for text in texts:
                text = json.dumps(text, ensure_ascii=False) if notation == "pattern" else text
                matcher = GrammarMatcher(compiled)
                assert (matcher.accept_string(text) and matcher.is_completed()) is inside, text
