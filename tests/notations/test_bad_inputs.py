"""Hard and malformed texts in every notation: they work, or end with an error that has a place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo
from stencilm.errors import (
    GrammarSyntaxError,
    LimitExceeded,
    StencilError,
    Unsatisfiable,
    UnsupportedFeature,
)

REGEX, EBNF, LARK = Grammar.from_regex, Grammar.from_ebnf, Grammar.from_lark

# Notation, text, a text that belongs, one that does not.
WORKS: list[tuple[Callable[..., Grammar], str, str, str]] = [
    (REGEX, "(a+)+b", "a" * 3_000 + "b", "a" * 3_000 + "c"),
    (REGEX, "(a|aa)*b", "a" * 3_000 + "b", "a" * 3_000),
    (REGEX, "(x+x+)+y", "x" * 3_000 + "y", "x" * 3_000),
    (REGEX, ".*a.{25}", "ba" + "b" * 25, "b" * 40),
    (REGEX, "(.*a.{20}){3}", ("a" + "b" * 20) * 3, "b" * 90),
    (REGEX, "a{10000}", "a" * 10_000, "a" * 9_999),
    (REGEX, "(a{1000}){10}", "a" * 10_000, "a" * 9_999),
    (REGEX, "([a-z]{1,2000},){4}", "a,bc," + "d" * 2_000 + ",e,", "a,b,c,"),
    (REGEX, "x" * 100_000, "x" * 100_000, "x" * 99_999),
    (REGEX, "\0a\0", "\0a\0", "a"),
    (EBNF, 'root ::= "a\0b" [\0] /\0/', "a\0b\0\0", "a"),
    (LARK, 'start: "a\0b" /\0/', "a\0b\0", "a"),
    (REGEX, r"\bword\b", "word", "words"),
    (REGEX, r"(?=.*b)[a-c]+", "acb", "aca"),
    (REGEX, "", "", "a"),
    (REGEX, "(?:)|()", "", "a"),
    (EBNF, 'root ::= ""', "", "a"),
    (REGEX, r"\p{L}+(?i)é\d(?s).", "ñÉ7\n", "ñÉx\n"),
    (REGEX, "|".join(f"w{number}" for number in range(5_000)), "w4999", "w5000"),
    (EBNF, "root ::= " + " | ".join(f'"w{n}" [a-c]' for n in range(10_000)), "w9999c", "w9999d"),
    (EBNF, 'root ::= root "a" | "a"', "a" * 50, "b"),
    (EBNF, 'root ::= b "a" | "a"\nb ::= root "b"', "abaaba"[:3], "ab"),
    (EBNF, 'root ::= e root "a" | "a"\ne ::= "e"?', "eaa", "e"),
    (EBNF, 'root ::= root root | "a"', "a" * 40, "b"),
    (EBNF, 'root ::= (("a"*)*)*', "aaa", "b"),
    (EBNF, 'root ::= ("")* "x"', "x", ""),
    (EBNF, 'root ::= root | "a"', "a", "aa"),
]

# Notation, text, the error, its place; what has no text at all has none.
REFUSED: list[tuple[Callable[..., Grammar], str, type[StencilError], str | None]] = [
    (REGEX, r"(a)\1", UnsupportedFeature, "offset 3"),
    (REGEX, "*a", GrammarSyntaxError, "offset 0"),
    (REGEX, "[abc", GrammarSyntaxError, "offset 0"),
    (REGEX, "(abc", GrammarSyntaxError, "offset 0"),
    (REGEX, "[z-a]", GrammarSyntaxError, "offset 1"),
    (REGEX, "a{5,2}", GrammarSyntaxError, "offset 1"),
    (REGEX, "a{100000000000000000000}", GrammarSyntaxError, "offset 2"),
    (REGEX, r"\uD800", GrammarSyntaxError, "offset 0"),
    (REGEX, r"[^\s\S]", Unsatisfiable, "offset 0"),
    (REGEX, "x" * 2_000_000, LimitExceeded, None),
    (EBNF, '"' * 2_000_000, LimitExceeded, None),
    (EBNF, "root ::= root", Unsatisfiable, "line 1, column 1"),
    (EBNF, 'root ::= "a" root', Unsatisfiable, "line 1, column 1"),
    (EBNF, "root ::= a\na ::= b\nb ::= a", Unsatisfiable, "line 1, column 1"),
    (LARK, 'start: "a" start', Unsatisfiable, "line 1, column 1"),
    (EBNF, "root ::= a", GrammarSyntaxError, "line 1, column 10"),
    (EBNF, 'root ::= "a"\nroot ::= "b"', GrammarSyntaxError, "line 2, column 1"),
    (EBNF, 'a ::= "b"', GrammarSyntaxError, "line 1, column 1"),
    (EBNF, "", GrammarSyntaxError, "line 1, column 1"),
    (EBNF, 'root ::= "a', GrammarSyntaxError, "line 1, column 10"),
    (LARK, "start: a", GrammarSyntaxError, "line 1, column 8"),
    (LARK, 'start: "a"\nstart: "b"', GrammarSyntaxError, "line 2, column 1"),
    (LARK, 'a: "b"', GrammarSyntaxError, "line 1, column 1"),
    (LARK, "", GrammarSyntaxError, "line 1, column 1"),
    (LARK, 'start: "a', GrammarSyntaxError, "line 1, column 8"),
    (LARK, "start: /a", GrammarSyntaxError, "line 1, column 8"),
]


def name(case: tuple[Callable[..., Grammar], str, object, object]) -> str:
    return f"{case[0].__name__}: {case[1][:30]!r}"


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny"))


def accepts(matcher: GrammarMatcher, text: str) -> bool:
    return matcher.accept_string(text) and matcher.is_completed()


@pytest.mark.parametrize("case", WORKS, ids=name)
def test_what_works(
    compiler: GrammarCompiler, case: tuple[Callable[..., Grammar], str, str, str]
) -> None:
    notation, text, inside, outside = case
    compiled = compiler.compile_grammar(notation(text))
    assert accepts(GrammarMatcher(compiled), inside)
    assert not accepts(GrammarMatcher(compiled), outside)
    GrammarMatcher(compiled).num_allowed_tokens()


@pytest.mark.parametrize("case", REFUSED, ids=name)
def test_what_is_refused(
    case: tuple[Callable[..., Grammar], str, type[StencilError], str | None],
) -> None:
    notation, text, kind, place = case
    with pytest.raises(kind) as caught:
        notation(text)
    assert type(caught.value) is kind
    assert caught.value.place == place
    assert len(str(caught.value)) > 20


def test_nesting_works_or_is_refused() -> None:
    for notation, text in (
        (REGEX, "(" * 20_000 + "a" + ")" * 20_000),
        (EBNF, "root ::= " + "(" * 30_000 + '"a"' + ")" * 30_000),
        (EBNF, "".join(f"r{n} ::= r{n + 1}\n" for n in range(50_000)) + 'r50000 ::= "a"'),
    ):
        try:
            notation(text) if "r0" not in text else Grammar.from_ebnf(text, root_rule_name="r0")
        except LimitExceeded as error:
            assert error.place
