"""A literal that is the name of a special token: said when the grammar meets such a vocabulary."""

from __future__ import annotations

import warnings

import pytest

from stencilm import Grammar, GrammarCompiler, TokenizerInfo

VOCABULARY = [*(bytes([byte]) for byte in range(128)), "<think>", "</s>"]
INFO = TokenizerInfo(VOCABULARY, special_token_ids=[128], stop_token_ids=[129])


@pytest.mark.parametrize(
    "grammar",
    [
        Grammar.from_ebnf('root ::= "<think>" [a-z]*'),
        Grammar.from_ebnf('root ::= [a-z]* "a<think>b"'),
        Grammar.from_lark('start: T "x"\nT: /[a-z]+/ "<think>"'),
        Grammar.from_regex("<think>[a-z]*"),
        Grammar.from_regex("[a-z]{3}(<think>|x)"),
    ],
    ids=["ebnf", "within a text", "lark", "regex", "among others"],
)
def test_a_name_as_text_is_told(grammar: Grammar) -> None:
    with pytest.warns(UserWarning, match="'<think>' as text, which is a special token"):
        GrammarCompiler(INFO).compile_grammar(grammar)


@pytest.mark.parametrize(
    "grammar",
    [
        Grammar.from_lark("start: <think> /[a-z]*/"),
        Grammar.from_lark('start: <think> /[a-z]*/ | "<think>"'),
        Grammar.from_ebnf("root ::= [a-z<>]*"),
        Grammar.from_ebnf('root ::= "<th" "ink"'),
        Grammar.from_json_schema({"const": "<think>"}),
        Grammar.from_structural_tag({"type": "const_string", "value": "<think>"}),
    ],
    ids=["a token", "both", "a class", "a part", "a schema", "a tag"],
)
def test_nothing_is_told_of_others(grammar: Grammar) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GrammarCompiler(INFO).compile_grammar(grammar)
