"""Where a suffix begins that is a pattern, against Python's own regular expressions."""

from __future__ import annotations

import itertools
import re

import pytest

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo

# The body, its end, and the letters of the texts.
CASES = [
    ("[ab]*", "b+", "ab"),
    ("[abc]*", "ab|b", "abc"),
    ("[abc]*", "ab|bc|cab", "abc"),
    ("(a|b)*", "ba*b", "ab"),
    ("a*|b*", "a|ab", "ab"),
    ("(ab)*", "[ab]b|c", "abc"),
    ("[ab]*a", "a?b", "ab"),
    ("[^c]*", "b|bc", "abc"),
]


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(TokenizerInfo.from_file(stencilm.__path__[0] + "/tiny"))


def divided(body: str, end: str, text: str) -> tuple[str, str] | None:
    """The text as its body and its end; None where it is no shortest match of both."""

    def first(text: str) -> tuple[str, str] | None:
        for at in range(len(text) + 1):
            if re.fullmatch(body, text[:at]) and re.fullmatch(end, text[at:]):
                return text[:at], text[at:]
        return None

    if any(first(text[:length]) for length in range(len(text))):
        return None
    return first(text)


@pytest.mark.parametrize(("body", "end", "letters"), CASES)
def test_a_capture_ends_where_the_suffix_first_may_begin(
    compiler: GrammarCompiler, body: str, end: str, letters: str
) -> None:
    grammar = Grammar.from_lark(
        f'start[capture="body", suffix=/{end}/, stop_capture="end"]: /{body}/'
    )
    compiled = compiler.compile_grammar(grammar)
    found = 0
    for length in range(7):
        for letters_of in itertools.product(letters, repeat=length):
            text = "".join(letters_of)
            expected = divided(body, end, text)
            matcher = GrammarMatcher(compiled)
            belongs = matcher.accept_string(text) and matcher.is_completed()
            assert belongs == (expected is not None), text
            if expected is not None:
                captures = dict(matcher.get_captures())
                read = {name: bytes(part).decode() for name, part in captures.items()}
                assert (read["body"], read["end"]) == expected, text
                found += 1
    assert found > 0
