"""Grammars in other notations: the same texts, or a refusal that names what is in the way."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from pydantic import BaseModel, Field

from endpoints.provider_rules import check_gbnf
from stencilm import Grammar, UnsupportedFeature
from stencilm.grammars.conversion import NOTATIONS
from stencilm.grammars.described import choices_of
from stencilm.matching.texts import byte_matcher


class Pet(BaseModel):
    name: str = Field(max_length=4)
    legs: int | None = None


class Owner(BaseModel):
    home: Literal["flat", 'a "house"'] = "flat"
    pets: list[Pet] = []
    names: dict[str, int] | None = None


class Closed(BaseModel):
    a: bool | None = None
    b: Pet
    c: Pet | None = None


READERS: dict[str, Callable[[str], Grammar]] = {
    "ebnf": Grammar.from_ebnf,
    "gbnf": Grammar.from_ebnf,
    "regex": Grammar.from_regex,
    "lark": Grammar.from_lark,
    "json-schema": Grammar.from_json_schema,
}
GRAMMARS: dict[str, tuple[Grammar, str]] = {  # and the notations that say them
    "regex": (Grammar.from_regex(r'[0-9]{2}-(a|bc)+?x*[^a-z\n/]\"\\'), "gbnf regex lark"),
    "controls": (
        Grammar.from_regex("[\\x00-\\x1f\\x7f-\\x9f]\\u2028?[\\]^-]é😀"), "gbnf regex lark",
    ),
    "classes": (Grammar.from_regex(r"\w\D\s?[^\W\d]"), "gbnf regex lark"),
    "any": (Grammar.from_regex("(?s).*"), "gbnf regex lark"),
    "empty": (Grammar.from_regex("a?|"), "gbnf regex lark"),
    "recursive": (Grammar.from_ebnf('root ::= "(" root ")" | [a-z]{2,} x\nx ::= "" | "é/"'),
                  "gbnf lark"),
    "left": (Grammar.from_ebnf('root ::= root "a" | "b"'), "lark"),
    "hidden left": (Grammar.from_ebnf('root ::= x root "a" | "b"\nx ::= "c"*'), "lark"),
    "names": (Grammar.from_ebnf('root ::= A.b a_b A-b\nA.b ::= "(" root? ")"\na_b ::= "[" root? "]"'
                                '\nA-b ::= "x" | "y" root'), "gbnf lark"),
    "capture": (Grammar.from_ebnf('root ::= x@("a" | "b") "c"'), "gbnf regex lark"),
    "and": (Grammar.from_regex("(?=a)[ab]+"), "regex"),
    "number": (Grammar.from_json_schema({"type": "number", "minimum": 0.5}), "json-schema lark"),
    "choice": (Grammar.from_type(Literal["a|b", "c\\", "(é)", "d\ne"]), "gbnf regex lark"),
    "list": (Grammar.from_type(list[int]), "gbnf regex lark json-schema"),
    "closed": (Grammar.from_type(Closed), "gbnf regex lark json-schema"),
    "open": (Grammar.from_type(Owner), "json-schema"),
    "keys": (
        Grammar.from_json_schema(
            {"type": "object", "properties": {"é": {"type": "null"}, 'q"\n': {"type": "null"}},
             "required": ["é"], "additionalProperties": False}
        ),
        "gbnf regex lark json-schema",
    ),
    "empty repeats": (
        Grammar.from_ebnf('root ::= (x | "-" | "")* "." ("a"? "b"{0,2})+ (y y){2,} "d"?{3,}'
                          '\nx ::= "(" x ")" | ""\ny ::= x{0,3} "c"{0,2} | "e"\nx.some ::= "f"'),
        "gbnf lark",
    ),
    "nested bounds": (Grammar.from_regex(r"([a-z]{1,63}\.){1,127}"), "gbnf regex lark"),
    "high bounds": (Grammar.from_regex("a{2500}(bc|d){0,2000}e{2000}"), "gbnf regex lark"),
    "tokens": (Grammar.from_ebnf('root ::= "a" <[7]>'), ""),
    "budget": (Grammar.from_ebnf("root ::= %max_tokens(3: [a-z]*)"), ""),
}  # fmt: skip


def walk(grammar: Grammar, rng: random.Random, most: int = 60) -> bytes:
    """A text of a grammar: random bytes, and then the shortest completion."""
    matcher = byte_matcher(grammar)
    mask = np.zeros((1, 9), dtype=np.int32)
    text = b""
    for _ in range(rng.randint(0, most)):
        matcher.fill_next_token_bitmask(mask, 0)
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")[:256])
        if not allowed.size:
            break
        printable = allowed[(allowed >= 32) & (allowed < 127)]
        some = printable if printable.size and rng.random() < 0.8 else allowed
        byte = int(some[rng.randrange(some.size)])
        matcher.accept_token(byte)
        text += bytes([byte])
    return text + matcher.shortest_completion()


@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize("name", GRAMMARS)
def test_the_texts_are_the_same(name: str, notation: Any) -> None:
    grammar, expressible = GRAMMARS[name]
    if notation != "ebnf" and notation not in expressible.split():
        with pytest.raises(UnsupportedFeature):
            grammar.converted(notation)
        return
    text = grammar.converted(notation)
    if notation == "gbnf":
        check_gbnf(text)
    back = READERS[notation](text)
    if str(back) == str(grammar):
        return
    rng = random.Random(name)
    for one, other in ((grammar, back), (back, grammar)):
        if one is back and notation == "json-schema":
            continue  # `1.0` is an integer there
        for _ in range(150):
            written = walk(one, rng)
            verdict = byte_matcher(other).longest_valid_prefix(written)
            assert verdict.status == "complete", (written, text)


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        ("(-|)*", 'root ::= "-"*'),
        ("(a?b*)+", 'root ::= ("a" | "b")*'),
        ("(a{0,3}){2,}c", 'root ::= "a"* "c"'),
        ("(a|b{0,2}|){3}", 'root ::= ("a" | "b"{0,2}){0,3}'),
        ("[a-z]{1999}", "root ::= [a-z]{1999}"),
        ("[a-z]{2000}", "root ::= [a-z]{1999} [a-z]"),
        ("[a-z]{0,2000}", "root ::= [a-z]{0,1999} [a-z]?"),
        ("[a-z]{0,2001}", "root ::= [a-z]{0,2001}"),
        ("[a-z]{4000,}", "root ::= [a-z]{1999} [a-z]{1999} [a-z]{2,}"),
        ("(a{0,9}b){9}", 'root ::= ("a"{0,9} "b"){9}'),
        ("(a{0,99}b){99}", 'root ::= repeated{99}\nrepeated ::= "a"{0,99} "b"'),
    ],
)
def test_repetitions_are_those_that_llama_cpp_reads(pattern: str, written: str) -> None:
    """None of what may be empty, no count from 2,000 up, and few rules in what is counted."""
    assert Grammar.from_regex(pattern).converted("gbnf") == f"{written}\n"


def test_rules_that_may_be_empty_are_repeated_by_their_pieces() -> None:
    grammar = Grammar.from_ebnf('root ::= x* y+\nx ::= "(" x ")" | ""\ny ::= x "a"? | "b"')
    assert grammar.converted("gbnf").splitlines() == [
        "root ::= x-some* y-some*",
        'x ::= "(" x ")" | ""',
        'y ::= x "a"? | "b"',
        'y-some ::= x-some | "a" | "b"',
        'x-some ::= "(" x ")"',
    ]


@pytest.mark.parametrize(
    ("name", "notation", "words"),
    [
        ("and", "gbnf", "an intersection"),
        ("number", "gbnf", "numbers between bounds"),
        ("open", "gbnf", "an object with members in any order"),
        ("tokens", "lark", "single tokens"),
        ("budget", "regex", "a budget of tokens"),
        ("left", "gbnf", "'root' may begin with itself"),
        ("hidden left", "gbnf", "'root' may begin with itself"),
        ("recursive", "regex", "recursive"),
        ("regex", "json-schema", "not made from a JSON Schema"),
    ],
)
def test_what_is_in_the_way_is_named(name: str, notation: Any, words: str) -> None:
    with pytest.raises(UnsupportedFeature, match=words):
        GRAMMARS[name][0].converted(notation)
    with pytest.raises(ValueError, match="must be one of ebnf, gbnf"):
        GRAMMARS[name][0].converted("bnf")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"notation is \[\], but must be one of"):
        GRAMMARS[name][0].converted([])  # type: ignore[arg-type]


def test_choices_are_known() -> None:
    assert choices_of(GRAMMARS["choice"][0]) == ["a|b", "c\\", "(é)", "d\ne"]
    assert choices_of(Grammar.from_type(Literal["", "a"])) == ["", "a"]
    for other in ("regex", "any", "empty", "list"):
        assert choices_of(GRAMMARS[other][0]) is None


def test_json_schemas_keep_their_text() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}}
    assert json.loads(Grammar.from_json_schema(schema).converted("json-schema")) == schema
