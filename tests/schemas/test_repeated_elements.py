"""Masks of arrays of which two elements must be equal, as a negated `uniqueItems` asks for."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from schemas.walks import allowed_tokens, exact_mask, walk
from stencilm import (
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    TokenizerInfo,
    Unsatisfiable,
    UnsupportedFeature,
    allocate_token_bitmask,
)
from tokenizer_folders import tokenizer_info

TOKENS = [bytes([byte]) for byte in b'[]{}:, "-.abe0123456789\n\\'] + [
    *(b" %d" % number for number in range(5)),
    *(b", 0", b", 1", b": 0", b" [", b' "a', b' "', b" -1", b" [1", b"]]", b"}]", b'": ', b"0]"),
    *(b"true", b"false", b"null", b".5", b".0", b'",', b'"]', b"1, 2", b"1, 1]", b", 1]", b",1]"),
    *(b'a"]', b', "a"]', b"1]}", b"1}]", b" ]", b"\n]", b"\n  ", b",\n", b"u0061", b"e0"),
]
INFO = TokenizerInfo([*TOKENS, b"</s>"], stop_token_ids=[len(TOKENS)])

REPEATED: dict[str, Any] = {"not": {"uniqueItems": True}}


def objects(value: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"a": value, "b": {"type": "null"}},
        "required": ["a"],
        "additionalProperties": False,
    }


ELEMENTS: list[dict[str, Any]] = [
    {"type": "integer"},
    {"type": "integer", "minimum": 0, "maximum": 200},
    {"type": "number"},
    {"type": "string"},
    {"type": "string", "maxLength": 2},
    {"enum": ["a", 1, None, [1], {"a": 1}]},
    objects({"type": "integer"}),
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "array", "items": {"type": "integer"}},
    {"type": "array", "items": {"type": "integer"}, **REPEATED},
    {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    {"type": ["integer", "string", "null"]},
    {"anyOf": [objects({"type": "boolean"}), {"type": "integer"}]},
    {},
]
COUNTED: list[dict[str, Any]] = [
    {"const": 1},
    {"type": "string"},
    {"minimum": 5},
    {"minItems": 1},
    {"not": {"type": "integer"}},
]


def repeated(dice: random.Random) -> dict[str, Any]:
    """One of the ways to say that two elements are equal."""
    of_others = {"type": ["array", "object"]}
    return dice.choice(
        [
            REPEATED,
            REPEATED,
            {"oneOf": [{"uniqueItems": True}, of_others]},
            {"if": {"uniqueItems": True}, "then": False},
            {
                "if": {"uniqueItems": False, "minItems": 1},
                "then": REPEATED,
                "else": {"items": False},
            },
            {"if": {"uniqueItems": True}, "then": {"maxItems": 1}, "else": {"minItems": 3}},
            {"not": {"uniqueItems": True, "minItems": 2}},
            {"anyOf": [REPEATED, {"minItems": 4}]},
        ]
    )


def random_schema(dice: random.Random) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": dice.choice(ELEMENTS), **repeated(dice)}
    if dice.random() < 0.3:
        schema["prefixItems"] = [dice.choice(ELEMENTS) for _ in range(dice.randint(1, 3))]
    if dice.random() < 0.3:
        schema["minItems"] = dice.randint(0, 4)
    if dice.random() < 0.15:
        schema["maxItems"] = dice.randint(0, 4)
    if dice.random() < 0.3:
        rule: dict[str, Any] = {"contains": dice.choice(COUNTED), "minContains": dice.randint(0, 2)}
        if dice.random() < 0.4:
            rule["maxContains"] = dice.randint(max(1, rule["minContains"]), 3)
        schema["allOf"] = [rule]
    if dice.random() < 0.2:
        return {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return schema


def element(dice: random.Random) -> Any:
    kinds: list[Any] = [
        dice.randint(0, 2),
        dice.randint(0, 12),
        dice.randint(0, 6) / 2,
        dice.choice(["", "a", "b", "ab", "\n", "é"]),
        dice.choice([True, False, None]),
        dice.choice([{"a": 1}, {"a": 1.0}, {"a": True}, {"a": 2, "b": None}]),
        [dice.randint(0, 1) for _ in range(dice.randint(0, 3))],
    ]
    return dice.choice(kinds)


def array(dice: random.Random) -> list[Any]:
    elements = [element(dice) for _ in range(dice.randint(0, 5))]
    if elements and dice.random() < 0.6:
        elements.insert(dice.randint(0, len(elements)), dice.choice(elements))
    return elements


@pytest.mark.parametrize("seed", range(8))
def test_repeated_elements_are_those_of_the_validator(seed: int) -> None:
    dice = random.Random(seed)
    compiler = GrammarCompiler(INFO)
    decided = 0
    while decided < 12:
        schema = random_schema(dice)
        validator = Draft202012Validator(schema)
        values: list[Any] = [array(dice) for _ in range(60)]
        if schema["type"] == "object":
            values = [{"a": value} for value in values]
        options: dict[str, Any] = dice.choice(
            [
                {},
                {"any_whitespace": False},
                {"indent": 2, "any_whitespace": False},
                {"property_order": "any"},
            ]
        )
        try:
            compiled = compiler.compile_json_schema(json.dumps(schema), **options)
        except Unsatisfiable:
            assert not any(map(validator.is_valid, values)), schema
            continue
        except UnsupportedFeature:
            assert {"maxItems", "prefixItems", "allOf"} & (
                schema.keys() | schema.get("properties", {}).get("a", {}).keys()
            )
            continue
        decided += 1
        for value in values:
            matcher = GrammarMatcher(compiled)
            text = json.dumps(value, indent=options.get("indent"), ensure_ascii=False)
            fits = matcher.accept_string(text) and matcher.is_completed()
            assert fits == validator.is_valid(value), (schema, value)
        for walker, begun, may_end in walk(compiled, TOKENS, dice):
            completed = begun + walker.shortest_completion()
            assert validator.is_valid(json.loads(completed)), (schema, completed)
            assert not may_end or validator.is_valid(json.loads(begun)), (schema, begun)


def test_an_array_ends_only_with_two_equal_elements() -> None:
    schema = {"type": "array", "items": {"type": "integer"}, **REPEATED}
    compiled = GrammarCompiler(INFO).compile_json_schema(json.dumps(schema), any_whitespace=False)
    for text, fits in [
        ("[]", False),
        ("[1]", False),
        ("[1, 2]", False),
        ("[1, 1]", True),
        ("[12, 3, 1, 12]", True),
        ("[1, 1.0]", True),
        ("[0, -0]", True),
    ]:
        matcher = GrammarMatcher(compiled)
        assert (matcher.accept_string(text) and matcher.is_completed()) == fits, text
    for text, rest in [("", "[0, 0]"), ("[7", ", 7]"), ("[12, 3, 1", "2]"), ("[5, 5", "]")]:
        matcher = GrammarMatcher(compiled)
        assert matcher.accept_string(text)
        assert matcher.shortest_completion() == rest.encode(), text


def test_what_was_met_goes_with_rollback_and_stays_in_forks() -> None:
    schema = {"type": "array", "items": {"type": "string"}, **REPEATED}
    compiled = GrammarCompiler(INFO).compile_json_schema(json.dumps(schema), any_whitespace=False)
    matcher = GrammarMatcher(compiled)
    for byte in b'["a", "b", "a"':
        assert matcher.accept_token(TOKENS.index(bytes([byte])))
    end = TOKENS.index(b"]")
    fork = matcher.fork()
    assert end in exact_mask(fork, TOKENS, b"")
    matcher.rollback(3)
    assert end not in exact_mask(matcher, TOKENS, b"")
    for byte in b'"e"':
        assert matcher.accept_token(TOKENS.index(bytes([byte])))
    assert end not in exact_mask(matcher, TOKENS, b"")
    assert end in exact_mask(fork, TOKENS, b"")
    assert fork.accept_token(end) and fork.is_completed()


@pytest.mark.parametrize("budget", [6, 9, 14])
@pytest.mark.parametrize("seed", range(3))
def test_budgets_leave_room_for_two_equal_elements(seed: int, budget: int) -> None:
    dice = random.Random(seed)
    compiler = GrammarCompiler(INFO)
    for items in ({"type": "integer"}, {"type": "string"}, {"type": ["array", "null"]}, {}):
        schema = {"type": "array", "items": items, **REPEATED}
        validator = Draft202012Validator(schema)
        compiled = compiler.compile_json_schema(json.dumps(schema), any_whitespace=False)
        for _ in range(6):
            matcher, text = GrammarMatcher(compiled, token_budget=budget), b""
            for _ in range(budget + 1):
                allowed = allowed_tokens(matcher, TOKENS)
                assert allowed, (items, text)
                going_on = [token for token in allowed if token < len(TOKENS)]
                if not going_on:
                    break
                token = dice.choice(going_on)
                assert matcher.accept_token(token)
                text += TOKENS[token]
            assert matcher.is_completed(), (items, text)
            assert validator.is_valid(json.loads(text)), (items, text)


def test_masks_of_a_real_vocabulary() -> None:
    info = tokenizer_info("llama3")
    vocabulary = info.decoded_vocab
    closing = [token for token, spelled in enumerate(vocabulary) if b"]" in spelled]
    compiler = GrammarCompiler(info)
    mask = allocate_token_bitmask(1, info.vocab_size)
    dice = random.Random(1)
    for items, value in [
        ({"type": "integer"}, [12, 7, 12]),
        ({"type": "string"}, ["a", "bc", "a"]),
        (objects({"type": "integer"}), [{"a": 1}, {"a": 10}, {"a": 1}]),
        ({}, [[1, 2], [1, 2]]),
    ]:
        schema = {"type": "array", "items": items, **REPEATED}
        compiled = compiler.compile_json_schema(json.dumps(schema))
        text = json.dumps(value)
        for end in range(len(text)):
            matcher = GrammarMatcher(compiled)
            assert matcher.accept_string(text[:end])
            matcher.fill_next_token_bitmask(mask)
            others = [dice.randrange(info.vocab_size) for _ in range(200)]
            for token in dice.sample(closing, 200) + others:
                is_allowed = bool(mask[0][token // 32] >> (token % 32) & 1)
                is_accepted = matcher.accept_token(token)
                if is_accepted:
                    matcher.rollback(1)
                assert is_allowed == is_accepted, (text[:end], vocabulary[token])


def test_a_greatest_number_of_elements_is_refused() -> None:
    integers = {"type": "array", "items": {"type": "integer"}, **REPEATED}
    for schema, message in [
        ({**integers, "maxItems": 5}, "greatest number"),
        ({**integers, "prefixItems": [{}, {}], "items": False}, "greatest number"),
        (
            {
                **integers,
                "contains": {"minimum": 3},
                "maxContains": 1,
                "prefixItems": [{"const": 5}],
            },
            "how many elements",
        ),
    ]:
        with pytest.raises(UnsupportedFeature, match=message):
            Grammar.from_json_schema(schema)
    with pytest.raises(Unsatisfiable):
        Grammar.from_json_schema({**integers, "maxItems": 1})


@pytest.mark.parametrize(
    "dead",
    [
        {"type": "string", "pattern": "^a$", "minLength": 2},
        {"$ref": "#/$defs/endless"},
    ],
)
def test_elements_that_turn_out_to_be_impossible_are_a_greatest_number(
    dead: dict[str, Any],
) -> None:
    endless = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/endless"}}
    array = {"type": "array", "prefixItems": [{}, {}], "items": dead, **REPEATED}
    schema = {"$defs": {"endless": endless}, "properties": {"a": array}}
    with pytest.raises(UnsupportedFeature, match="greatest number") as caught:
        Grammar.from_json_schema(schema)
    assert str(caught.value).startswith("#/properties/a/not: uniqueItems")
    relaxed = Grammar.from_json_schema(schema, on_unsupported="relax")
    assert [finding.place for finding in relaxed.report.relaxed] == ["#/properties/a/not"]
    compiled = GrammarCompiler(INFO).compile_grammar(relaxed)
    for text, fits in [("[0, 0]", True), ("[0, 1]", True), ("[0]", False), ("[0, 0, 0]", False)]:
        matcher = GrammarMatcher(compiled)
        accepted = matcher.accept_string('{"a": ' + text + "}") and matcher.is_completed()
        assert accepted == fits, text
