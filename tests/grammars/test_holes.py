"""Texts with holes: which can be completed, and what may be written into the first hole."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import random
import re
from typing import Any

import numpy as np
import pytest

import stencilm
from stencilm import (
    HOLE,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    GrammarSyntaxError,
    LimitExceeded,
    Limits,
    TokenIndex,
    TokenizerInfo,
    Unsatisfiable,
    UnsupportedFeature,
)

BYTES = [bytes([byte]) for byte in range(256)]
VOCABULARY = [*BYTES, b'", "', b'": ', b"12", b"true", b"ab", b"}}", b'"a"']

EXPRESSION = r"""
start: sum
sum: product ("+" product)*
product: factor ("*" factor)*
factor: /[a-c]+/ | "(" sum ")"
"""
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "age"],
}


@pytest.fixture(scope="module")
def info() -> TokenizerInfo:
    return TokenizerInfo([*VOCABULARY, b"</s>"], stop_token_ids=[len(VOCABULARY)])


def schema(value: Any, **options: Any) -> Grammar:
    return Grammar.from_json_schema(value, any_whitespace=False, **options)


def json_is(**options: Any) -> Grammar:
    return schema(PERSON, **options)


CASES: list[tuple[str, Grammar, list[Any], bool]] = [
    ("no hole", json_is(), ['{"name": "x", "age": 1}'], True),
    ("no hole, not whole", json_is(), ['{"name": "x"'], False),
    ("a beginning", json_is(), ['{"name": "x"', HOLE], True),
    ("an end", json_is(), [HOLE, ', "age": 1}'], True),
    ("only a hole", json_is(), [HOLE], True),
    ("nothing", json_is(), [], False),
    ("within a key", json_is(), ['{"na', HOLE, '": "x", "age": 1}'], True),
    ("within a value", json_is(), ['{"name": "', HOLE, '", "age": 1}'], True),
    ("two values", json_is(), ['{"name": "', HOLE, '", "age": ', HOLE, "}"], True),
    ("a required member is missing", json_is(), ['{"name": "x"', HOLE, '"b": 1, "c": 2}'], True),
    ("no room for it", json_is(), ['{"name": "x"}', HOLE], False),
    ("out of order", json_is(), ['{"age": 1, ', HOLE, '"name": "x"}'], False),
    ("in any order", json_is(property_order="any"), ['{"age": 1, ', HOLE, '"name": "x"}'], True),
    ("a member twice", json_is(property_order="any"), ['{"age": 1', HOLE, '"age": 2}'], True),
    ("truly twice", json_is(property_order="any"), ['{"age": 1, ', HOLE, ', "age": 2}'], False),
    ("others twice", json_is(), ['{"name": "x", "age": 1, "z": 1, ', HOLE, ', "z": 2}'], False),
    (
        "in another object",
        json_is(),
        ['{"name": "x", "age": 1, "y": {"z": 1, ', HOLE, ', "z": 2}}'],
        True,
    ),
    ("by an escape", json_is(), ['{"name": "x", "age": 1, "z": 1, ', HOLE, '"\\u007a": 2}'], True),
    ("other others", json_is(), ['{"name": "x", "age": 1, "z": 1, ', HOLE, ', "y": 2}'], True),
    ("closed", json_is(strict_mode=True), ['{"name": "x", ', HOLE, '"b": 1}'], False),
    ("bytes", json_is(), [b'{"name": "\xc3', HOLE, b'", "age": 1}'], True),
    ("bytes of no character", json_is(), [b'{"name": "\xff', HOLE, b'", "age": 1}'], False),
    ("brackets", Grammar.from_lark(EXPRESSION), ["(a+", HOLE, ")*b"], True),
    ("brackets that open in a hole", Grammar.from_lark(EXPRESSION), ["a", HOLE, ")"], True),
    ("no brackets", Grammar.from_lark(EXPRESSION), ["a)", HOLE], False),
    ("brackets in holes", Grammar.from_lark(EXPRESSION), ["(a", HOLE, "+b))", HOLE], True),
    ("a pattern", Grammar.from_regex("(ab)*c"), ["ab", HOLE, "bc"], True),
    ("a pattern, wrong", Grammar.from_regex("(ab)*c"), ["ab", HOLE, "ac"], False),
    ("counts", Grammar.from_regex("a{3,5}"), ["aa", HOLE, "aaaa"], False),
    ("numbers", schema({"type": "integer", "multipleOf": 7}), ["1", HOLE, "5"], True),
    ("bounds", schema({"type": "integer", "minimum": 200, "maximum": 240}), ["2", HOLE, "7"], True),
    ("out of bounds", schema({"type": "integer", "maximum": 240}), ["3", HOLE, "77"], False),
    ("array lengths", schema({"type": "array", "maxItems": 3}), ["[1, 2", HOLE, "3, 4]"], True),
    ("too long", schema({"type": "array", "maxItems": 3}), ["[1, 2, ", HOLE, ", 3, 4]"], False),
    ("contains", schema({"contains": {"const": 5}, "type": "array"}), ["[1", HOLE, "3]"], True),
    ("unique", schema({"type": "array", "uniqueItems": True}), ["[1, 2]", HOLE], True),
    ("not unique", schema({"type": "array", "uniqueItems": True}), ["[1, 1]", HOLE], False),
]


@pytest.mark.parametrize(
    ("grammar", "pieces", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_which_texts_can_be_completed(grammar: Grammar, pieces: list[Any], expected: bool) -> None:
    assert grammar.is_completable(pieces) is expected
    if HOLE not in pieces:
        return
    if not expected:
        with pytest.raises(Unsatisfiable):
            grammar.fill(pieces)
        return
    # What fills one hole after the other makes a text of the grammar.
    filled = list(pieces)
    compiler = GrammarCompiler(TokenizerInfo(BYTES, stop_token_ids=[0]))
    while HOLE in filled:
        matcher = GrammarMatcher(compiler.compile(grammar.fill(filled)))
        filled[filled.index(HOLE)] = matcher.shortest_completion()
        assert grammar.is_completable(filled)


def test_a_text_alone_is_one_piece() -> None:
    digits = Grammar.from_regex("[0-9]+")
    assert digits.is_completable("12")
    assert digits.is_completable(b"12")
    assert not digits.is_completable("")
    assert digits.is_completable(["1", "2"])
    assert digits.fill(["1", HOLE, HOLE, "", HOLE, "2"]) == digits.fill([b"1", HOLE, b"2"])


@pytest.mark.parametrize(
    ("pieces", "error"),
    [(HOLE, TypeError), (3, TypeError), ([3], TypeError), (["\ud800"], GrammarSyntaxError)],
)
def test_what_are_no_pieces(pieces: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Grammar.from_regex("a*").is_completable(pieces)


def test_a_text_without_a_hole_is_not_filled() -> None:
    with pytest.raises(GrammarSyntaxError, match="HOLE"):
        Grammar.from_regex("a*").fill(["a"])


def masks(matcher: GrammarMatcher, info: TokenizerInfo) -> set[int]:
    mask = np.full((info.vocab_size + 31) // 32, -1, dtype=np.int32)
    matcher.fill_next_token_bitmask(mask)
    return {token for token in range(info.vocab_size) if mask[token // 32] >> (token % 32) & 1}


@pytest.mark.parametrize(
    ("grammar", "pieces"),
    [
        (json_is(), ['{"name": "x", ', HOLE, "}"]),
        (json_is(), ['{"name": "x", "age": 1', HOLE, '": 12, "z": 3}']),
        (json_is(), ['{"name": "x", "age": 1, "ab": {"a": 1, "ab', HOLE, 'b": true}, "aa": 3}']),
        (json_is(property_order="any"), ['{"tags": ["', HOLE, '"a"], "age": 12', HOLE, "}"]),
        (json_is(strict_mode=True), ["{", HOLE, '"age": ', HOLE, "}"]),
        (schema(True), ['{"a": [', HOLE, ', {"ab": 12}], "b": ', HOLE, "}"]),
        (Grammar.from_lark(EXPRESSION), ["(a", HOLE, ")*b"]),
        (schema({"type": "array", "maxItems": 3, "minItems": 2}), ["[12, ", HOLE, "2]"]),
    ],
)
def test_masks_are_those_of_questions(
    grammar: Grammar, pieces: list[Any], info: TokenizerInfo
) -> None:
    at = pieces.index(HOLE)
    matcher = GrammarMatcher(GrammarCompiler(info).compile(grammar.fill(pieces)))
    inside = b""
    for step in range(4):
        allowed = masks(matcher, info)
        expected = {
            token
            for token, text in enumerate(VOCABULARY)
            if grammar.is_completable([*pieces[:at], inside + text, *pieces[at:]])
        }
        assert allowed - {len(VOCABULARY)} == expected
        ends = grammar.is_completable([*pieces[:at], inside, *pieces[at + 1 :]])
        assert (len(VOCABULARY) in allowed) == matcher.is_completed() == ends
        token = max(
            expected, key=lambda token: (len(VOCABULARY[token]) * 7 + token * (step + 3)) % 11
        )
        assert matcher.accept_token(token)
        inside += VOCABULARY[token]


def test_brute_force_on_all_short_texts() -> None:
    texts = ["".join(letters) for n in range(5) for letters in itertools.product("ab,", repeat=n)]
    for pattern, ebnf in [
        ("a(,a)*b?", 'root ::= "a" rest "b"?\nrest ::= "" | ",a" rest'),
        ("(a|b,)*", 'root ::= "" | root ("a" | "b,")'),
        ("(ab?){1,2},?", 'root ::= ("a" "b"?){1,2} ","?'),
    ]:
        members = {text for text in texts if re.fullmatch(pattern, text)}
        for grammar in (Grammar.from_regex(pattern), Grammar.from_ebnf(ebnf)):
            for before, behind in itertools.product([t for t in texts if len(t) < 3], repeat=2):
                known = any(
                    text.startswith(before)
                    and text.endswith(behind)
                    and len(text) >= len(before + behind)
                    for text in members
                )
                longer = any(re.fullmatch(pattern, before + inside + behind) for inside in texts)
                assert grammar.is_completable([before, HOLE, behind]) == (known or longer), (
                    before,
                    behind,
                )


def test_it_is_a_grammar_like_any_other(info: TokenizerInfo) -> None:
    pieces: list[Any] = ['{"name": "x", "age": 1, "y": "', HOLE, '", "z": 2}']
    grammar = json_is()
    hole = grammar.fill(pieces)
    assert (
        hole
        == grammar.fill(pieces)
        != grammar.fill(['{"name": "xy", "age": 1, "y": "', *pieces[1:]])
    )
    assert len({hole, grammar.fill(pieces)}) == 1
    assert pickle.loads(pickle.dumps(hole)) == copy.deepcopy(hole) == hole
    assert pickle.loads(pickle.dumps(HOLE)) is HOLE is copy.deepcopy(HOLE)
    assert repr(HOLE) == "HOLE"
    assert hole.notation == "text with holes"
    for again in (Grammar.from_ebnf(str(hole)), Grammar.deserialize_json(hole.serialize_json())):
        assert again.is_completable('a", "x": "')
        assert not again.is_completable('a", "z": "')
    assert str(Grammar.from_ebnf(str(hole))) == str(hole)
    compiler = GrammarCompiler(info)
    assert compiler.compile(hole) is compiler.compile(grammar.fill(pieces))
    with pytest.raises(UnsupportedFeature, match="hole"):
        hole + hole
    with pytest.raises(UnsupportedFeature):
        hole.converted("gbnf")
    index = TokenIndex.from_grammar(Grammar.from_regex("(ab)*c").fill(["a", HOLE, "c"]), info)
    assert index.allowed_tokens(index.initial_state)


def test_a_hole_of_a_hole() -> None:
    grammar = Grammar.from_lark(EXPRESSION)
    hole = grammar.fill(["(a", HOLE, ")"])
    assert hole.fill(["+b)*(", HOLE]).is_completable("c")
    within = json_is().fill(['{"name": "x", "age": 1, "z": {"y": ', HOLE, "}}"])
    assert within.is_completable('[1], "x": 2')
    with pytest.raises(UnsupportedFeature, match="pieces"):
        within.fill(["[1, ", HOLE, "2]"])


def test_captures_and_rollback_know_what_stands_before(info: TokenizerInfo) -> None:
    grammar = Grammar.from_lark('start: "a" word "c"\nword[capture]: /[ab]+/')
    hole = grammar.fill(["aab", HOLE, "c"])
    matcher = GrammarMatcher(GrammarCompiler(info).compile(hole), max_rollback_tokens=10)
    assert matcher.accept_token(ord("b"))
    assert matcher.accept_token(ord("a"))
    matcher.rollback(2)
    assert matcher.accept_token(ord("a"))
    assert matcher.is_completed()
    assert matcher.get_captures() == [("word", b"aba")]
    matcher.reset()
    assert matcher.is_completed()
    assert matcher.get_captures() == [("word", b"ab")]


def test_what_depends_on_unique_elements_is_refused() -> None:
    grammar = schema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True})
    with pytest.raises(UnsupportedFeature, match="uniqueItems"):
        grammar.is_completable(["[1, 2", HOLE])
    with pytest.raises(UnsupportedFeature, match="uniqueItems"):
        grammar.fill(["[1, ", HOLE, ", 2]"])
    both = schema({"properties": {"a": {"type": "array", "uniqueItems": True}}, "type": "object"})
    # Where no such array is around the hole, nothing hangs on it.
    hole = both.fill(['{"a": [1, 2], "b": [', HOLE, "]}"])
    assert hole.is_completable("1, 1")


def test_limits_end_what_takes_too_long() -> None:
    lists = Grammar.from_ebnf('root ::= root root | "a"')
    text = "a" * 20_000
    with pytest.raises(LimitExceeded):
        Grammar.from_source(lists.source, Limits(milliseconds=300)).is_completable(
            [text, HOLE, text]
        )


def test_long_texts_take_time_in_proportion() -> None:
    grammar = Grammar.from_json_schema(True)
    document = json.dumps([{"id": number, "name": f"n{number}"} for number in range(3_000)])
    half = len(document) // 2
    assert len(document) > 80_000
    assert grammar.is_completable([document[:half], HOLE, document[half + 7 :]])
    assert grammar.fill([document[:half], HOLE, document[half + 7 :]]).is_completable(
        document[half : half + 7]
    )


def test_models_fill_holes() -> None:
    model = stencilm.load("tiny")
    pieces: list[Any] = ['{"name": "', HOLE, '", "age": ', HOLE, "}"]
    for _ in range(2):
        at = pieces.index(HOLE)
        pieces[at] = model("A person: ", json_is().fill(pieces), max_tokens=30, seed=1)
    person = json.loads("".join(pieces))
    assert isinstance(person["name"], str)
    assert isinstance(person["age"], int)


def matches(pieces: list[Any], text: str) -> re.Match[str] | None:
    """The text as the pieces with something in each hole, the first in a group."""
    parts = [re.escape(piece) if isinstance(piece, str) else "(.*)" for piece in pieces]
    return re.fullmatch("".join(parts), text, re.DOTALL)


@pytest.mark.parametrize("order", ["declared", "any"])
def test_members_with_cut_keys_against_all_objects(info: TokenizerInfo, order: str) -> None:
    """Keys that a hole may make any of several, required and counted, are told apart exactly."""
    draw = random.Random(3)
    names = ["aa", "ab", "ba", "bb", "c"]
    compiler = GrammarCompiler(info)
    answered = 0
    for _ in range(150):
        required = [name for name in names if draw.random() < 0.3]
        counts = {"minProperties": draw.randint(0, 3)} if draw.random() < 0.3 else {}
        if draw.random() < 0.3:
            counts["maxProperties"] = draw.randint(max(1, counts.get("minProperties", 0)), 5)
        least, most = counts.get("minProperties", 0), counts.get("maxProperties", 5)
        subsets = [
            chosen
            for count in range(least, most + 1)
            for chosen in itertools.combinations(names, count)
            if set(required) <= set(chosen)
        ]
        if order == "any":
            subsets = [listed for chosen in subsets for listed in itertools.permutations(chosen)]
        texts = ["{" + ", ".join(f'"{name}": 1' for name in chosen) + "}" for chosen in subsets]
        if not texts:
            continue
        value = {
            "properties": {name: {"const": 1} for name in names},
            "required": required,
            "additionalProperties": False,
            **counts,
        }
        grammar = schema({"type": "object", **value}, property_order=order)
        for _ in range(4):
            text = draw.choice(texts)
            cuts = sorted(draw.sample(range(len(text) + 1), min(2 * draw.randint(1, 3), len(text))))
            ends = [0, *cuts, len(text)] if len(cuts) % 2 == 0 else [0, *cuts[:-1], len(text)]
            pieces: list[Any] = []
            for start, end in zip(ends[::2], ends[1::2], strict=True):
                pieces += [text[start:end], HOLE]
            pieces.pop()
            if draw.random() < 0.4:  # another text, which may not fit
                pieces[-1] = draw.choice(texts)[-len(pieces[-1]) :] if pieces[-1] else ""
            found = [match for match in (matches(pieces, text) for text in texts) if match]
            try:
                assert grammar.is_completable(pieces) == bool(found), (value, pieces)
                if not found:
                    continue
                matcher = GrammarMatcher(compiler.compile(grammar.fill(pieces)))
            except UnsupportedFeature:
                continue
            answered += 1
            fills = {match[1] for match in found}
            for fill in {*fills, *(fill[:-1] for fill in fills), '"c": 1', ', "ab": 1', "a", "b"}:
                expected = any(matches([pieces[0], fill, *pieces[2:]], text) for text in texts)
                fits = matcher.accept_string(fill) and matcher.is_completed()
                assert fits == expected, (value, pieces, fill)
                matcher.reset()
    assert answered > 200


def test_counts_that_several_holes_share() -> None:
    """What is counted is one interval after a hole, whatever the bounds."""
    grammar = schema({"type": "string", "minLength": 5, "maxLength": 12})
    # None of these letters can be part of an escape.
    pieces: list[Any] = ['"xyz', HOLE, "ghi", HOLE, "jkl", HOLE, 'mop"']
    assert grammar.is_completable(pieces)
    assert not grammar.is_completable([*pieces[:-1], 'mopq"'])
    long = schema({"type": "string", "maxLength": 300})
    assert long.is_completable(['"x', HOLE, "y", HOLE, "z" * 290, HOLE, '"'])
    assert not long.is_completable(['"x', HOLE, "y", HOLE, "z" * 300, HOLE, '"'])
    assert not long.is_completable(['"' + "a" * 150, HOLE, "y" * 151, HOLE, '"'])


def test_a_later_hole_behind_a_key_makes_no_key_new() -> None:
    """A key that ends where a hole begins is what it was, whatever stands in the hole."""
    value = {
        "type": "object",
        "properties": {"b": {"const": "ab"}},
        "required": ["b"],
        "additionalProperties": {"const": 1},
    }
    grammar = schema(value, property_order="any")
    assert grammar.is_completable(['{"b": "ab", "": 1, "ab"', HOLE, '": 1}'])
    assert not grammar.is_completable(['{"b": "ab", "": 1, "b"', HOLE, '": 1}'])
    compiler = GrammarCompiler(TokenizerInfo(BYTES, stop_token_ids=[0]))
    matcher = GrammarMatcher(compiler.compile(grammar.fill([HOLE, 'b"', HOLE, '": 1}'])))
    assert matcher.accept_string('{"b": "ab", "": 1, "')
    assert not matcher.is_completed()
    matcher.reset()
    assert matcher.accept_string('{"b": "ab", "": 1, "a')
    assert matcher.is_completed()


def test_an_owed_value_is_before_a_later_hole_or_in_it() -> None:
    """One of a class of members must have a value: in the text before, or in a later hole."""
    grammar = Grammar.from_ebnf(
        r"""root ::= %object {
          empty = "{}"; open = "{"; colon = ":"; item = ","; close = "}"; order = any;
          member "a": "1";
          member "c": "1";
          taken "a" "c";
          others = "\"" [a-z]+ "\"" : "1";
          some : "\"z\"";
          taken "a" "c";
          others = "\"b" [a-z]* "\"" : "1";
          some : "12";
        }"""
    )
    filling = grammar.fill([HOLE, ":1,", HOLE, 'z"}'])
    for text, expected in [
        ('{"bx":12,"c"', True),
        ('{"a":1,"bx":12,"c"', True),
        ('{"x":1,"c"', True),
        ('{"c"', True),
        ('{"x":12,"c"', False),
        ('{"bx":12,"by":12,"c"', False),
    ]:
        assert grammar.is_completable([text, ":1,", HOLE, 'z"}']) == expected
        assert filling.is_completable(text) == expected


@pytest.mark.parametrize("text", ["root ::= <[70]>", "root ::= part\npart ::= <[70]>"])
def test_a_grammar_that_is_one_token(text: str, info: TokenizerInfo) -> None:
    grammar = Grammar.from_ebnf(text)
    assert grammar.is_completable([HOLE]) and grammar.is_completable([HOLE, HOLE])
    filled = GrammarMatcher(GrammarCompiler(info).compile_grammar(grammar.fill([HOLE])))
    assert filled.is_allowed(70) and not filled.is_allowed(71)
    around: list[list[Any]] = [["F", HOLE], [HOLE, "F"], ["F"], [HOLE, "F", HOLE]]
    for pieces in around:  # bytes of the text are no token
        assert not grammar.is_completable(pieces), pieces
        if HOLE in pieces:
            with pytest.raises(Unsatisfiable):
                grammar.fill(pieces)
