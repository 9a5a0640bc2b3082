"""Grammars as values: EBNF, printing, saving, joining, and compiling any of them."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import pytest

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, GrammarSyntaxError, TokenizerInfo


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny"))


def matches(compiler: GrammarCompiler, grammar: Grammar | str, text: str) -> bool:
    matcher = GrammarMatcher(compiler.compile_grammar(grammar))
    return matcher.accept_string(text) and matcher.is_completed()


def check(compiler: GrammarCompiler, grammar: Grammar, inside: str, outside: str) -> None:
    """The words of `inside` match, those of `outside` do not; so it stays printed and saved."""
    again = Grammar.from_ebnf(str(grammar))
    assert str(again) == str(grammar)
    for form in (grammar, again, Grammar.deserialize_json(grammar.serialize_json())):
        assert all(matches(compiler, form, word) for word in inside.split())
        assert not any(matches(compiler, form, word) for word in outside.split())


def test_ebnf(compiler: GrammarCompiler) -> None:
    text = 'sum ::= sum "+" item | item\nitem ::= [0-9]{1,3} | "(" sum ")"'
    grammar = Grammar.from_ebnf(text, root_rule_name="sum")
    check(compiler, grammar, "1 12+3 (1+2)+345 ((7))", "+ 1+ 1234 (1")
    assert grammar == Grammar.from_ebnf(text, root_rule_name="sum")
    assert grammar != Grammar.from_ebnf(str(grammar))


def test_the_compiler_takes_ebnf_text(compiler: GrammarCompiler) -> None:
    assert matches(compiler, 'root ::= "yes" | "no"', "yes")
    compiled = compiler.compile_grammar('a ::= "x"', root_rule_name="a")
    assert compiled is compiler.compile_grammar(Grammar.from_ebnf('a ::= "x"', root_rule_name="a"))


def test_objects_of_ebnf_are_those_of_json(compiler: GrammarCompiler) -> None:
    grammar = Grammar.from_ebnf(
        r"""root ::= %object { member "a": n; optional "b": n; others: n; }
        n ::= [0-9]+"""
    )
    check(compiler, grammar, '{"a":1} {"a":1,"b":2,"c":3}', '{} {"b":2} {"a":1,"c":2,"c":3}')


def test_joining(compiler: GrammarCompiler) -> None:
    a = Grammar.from_ebnf('root ::= "a" root | "b"')
    n = Grammar.from_regex("[0-9]+")
    check(compiler, a + n, "b1 aab22", "b 1 1b")
    check(compiler, a | n, "b aab 22", "b1 a")
    check(compiler, Grammar.concat(a, n, a), "b1b", "b1")
    assert a + n == Grammar.concat(a, n) != a | n
    with pytest.raises(TypeError):
        a + "b"  # type: ignore[operator]
    with pytest.raises(TypeError, match="union got a str"):
        Grammar.union(a, "b")  # type: ignore[arg-type]


def test_many_parts_are_one_flat_source() -> None:
    grammar = sum((Grammar.from_regex("a") for _ in range(2_000)), start=Grammar.concat())
    assert isinstance(hash(grammar), int)


@pytest.mark.parametrize(
    "grammar",
    [
        Grammar.from_json_schema({"enum": [1, "é"]}, max_whitespace=None, spelling="any"),
        Grammar.from_regex("[a-z]+") + Grammar.from_ebnf('root ::= "b"') | Grammar.from_regex("c"),
        Grammar.from_lark("start: @n", grammars={"n": Grammar.from_regex("x{3}")}),
        Grammar.from_structural_tag({"type": "any_text", "max_chars": 3}),
        Grammar.deserialize_json(Grammar.from_regex("a").serialize_json()),
        Grammar.from_type(list[int]),
    ],
)
def test_grammars_travel_between_processes(grammar: Grammar) -> None:
    again = pickle.loads(pickle.dumps(grammar))
    assert again == grammar and hash(again) == hash(grammar) and str(again) == str(grammar)
    assert copy.deepcopy([grammar])[0] is grammar


def test_a_saved_schema_keeps_its_report(compiler: GrammarCompiler) -> None:
    grammar = Grammar.from_json_schema({"type": "integer", "minimum": 3, "title": "t"})
    again = Grammar.deserialize_json(grammar.serialize_json())
    assert again.report == grammar.report
    check(compiler, grammar, "3 17", "2 -1")


def test_errors_have_line_and_column() -> None:
    with pytest.raises(GrammarSyntaxError) as caught:
        Grammar.from_ebnf('root ::= "a"\n  | x')
    assert caught.value.place == "line 2, column 5"
    with pytest.raises(GrammarSyntaxError):
        Grammar.deserialize_json("{}")
    with pytest.raises(TypeError):
        Grammar.from_ebnf(7)  # type: ignore[arg-type]


def test_long_texts_are_read_printed_and_saved(compiler: GrammarCompiler) -> None:
    """A text of more than 2,048 bytes is kept in pieces."""
    text = 'aé€😈"\\ab' * 900
    written = json.dumps(text, ensure_ascii=False)
    for grammar in (
        Grammar.from_json_schema({"const": text}),
        Grammar.from_regex("".join(f"\\{sign}" if sign == "\\" else sign for sign in written)),
        Grammar.from_ebnf(f"root ::= {json.dumps(written, ensure_ascii=False)}"),
        Grammar.from_lark(f"start: {json.dumps(written, ensure_ascii=False)}"),
    ):
        saved = Grammar.deserialize_json(grammar.serialize_json())
        assert saved.serialize_json() == grammar.serialize_json()
        printed = str(grammar)
        assert str(Grammar.from_ebnf(printed)) == printed
        for same in (grammar, saved, Grammar.from_ebnf(printed), Grammar.union(grammar, grammar)):
            matcher = GrammarMatcher(compiler.compile_grammar(same))
            assert not matcher.fork().accept_string(written[:5000] + "!")
            assert matcher.accept_string(written)
            assert matcher.is_completed()
