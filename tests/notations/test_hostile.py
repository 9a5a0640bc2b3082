"""Hard inputs of notations work, or are refused by name; none of them hangs or crashes."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from stencilm import Grammar, LimitExceeded

FINE: dict[str, Callable[[], Grammar]] = {
    "nested groups": lambda: Grammar.from_lark("start: " + "(" * 30_000 + '"a"' + ")" * 30_000),
    "nested optional parts": lambda: Grammar.from_lark(
        "start: " + "[" * 30_000 + '"a"' + "]" * 30_000
    ),
    "a chain of rules": lambda: Grammar.from_lark(
        "start: r0\n" + "".join(f"r{n}: r{n + 1}\n" for n in range(50_000)) + 'r50000: "a"'
    ),
    "a chain of terminals": lambda: Grammar.from_lark(
        "start: R0\n" + "".join(f"R{n}: R{n + 1}\n" for n in range(40_000)) + 'R40000: "a"'
    ),
    "a chain of rules that may be empty": lambda: Grammar.from_lark(
        "start: r0\n" + "".join(f"r{n}: r{n + 1}\n" for n in range(50_000)) + 'r50000: "a"?'
    ),
    "a chain of terminals with look-ahead": lambda: Grammar.from_lark(
        'start: R0 "b"\n' + "".join(f"R{n}: R{n + 1}\n" for n in range(150)) + "R150: /a(?=b)/"
    ),
    "alternatives": lambda: Grammar.from_lark(
        "start: " + " | ".join(f'"w{n}"' for n in range(10_000))
    ),
    "templates that double": lambda: Grammar.from_lark(
        "start: " + "t{" * 40 + '"a"' + "}" * 40 + "\nt{x}: x x"
    ),
    "NUL": lambda: Grammar.from_lark('start: "a\0b" /\0/'),
    "complements of complements": lambda: Grammar.from_lark("start: A\nA: " + "~" * 9_999 + '"a"'),
    "a condition far down": lambda: Grammar.from_ebnf(
        "root ::= " + "(" * 20_000 + '"a" (= "b")' + ")" * 20_000 + ' "b"'
    ),
    "a condition over a long sequence": lambda: Grammar.from_ebnf(
        'root ::= "a" (= "b"* "c") ' + '"b"? ' * 2_000 + '"c"'
    ),
    "many triggers": lambda: Grammar.from_ebnf(
        "root ::= TagDispatch(" + ", ".join(f'("<t{n}>", a)' for n in range(400)) + ')\na ::= "1"'
    ),
    "many look-aheads": lambda: Grammar.from_regex("(?=.*a)" * 150 + ".*"),
    "runs of a long text": lambda: Grammar.from_lark(
        "start: %regex " + json.dumps({"substring_words": "some words of a text " * 500})
    ),
}
LIMITED: dict[str, Callable[[], Grammar]] = {
    "lazy terminals that double": lambda: Grammar.from_lark(
        "start: A0\n" + "".join(f"A{n}: A{n + 1} A{n + 1}\n" for n in range(30)) + "A30: /a*?b/"
    ),
    "nested grammars": lambda: Grammar.from_lark(
        "start: %lark { " * 100 + 'start: "a"' + "}" * 100
    ),
    "nested conditions": lambda: Grammar.from_lark(
        'start: p::1\np::_: "a" %if ' + "not(" * 1_000 + "true" + ")" * 1_000
    ),
    "nested look-ahead": lambda: Grammar.from_regex("(?=a" * 150 + ")" * 150 + ".*"),
    "look-ahead in many ways": lambda: Grammar.from_regex("(?:a(?=.)|b(?=.))" * 20),
}


@pytest.mark.parametrize("name", FINE)
def test_what_works(name: str) -> None:
    assert isinstance(FINE[name](), Grammar)


@pytest.mark.parametrize("name", LIMITED)
def test_what_is_too_much(name: str) -> None:
    with pytest.raises(LimitExceeded):
        LIMITED[name]()
