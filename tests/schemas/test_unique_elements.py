"""Masks of arrays whose elements must differ, also where they are counted."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from schemas.walks import walk
from stencilm import (
    GrammarCompiler,
    GrammarMatcher,
    TokenizerInfo,
    Unsatisfiable,
    UnsupportedFeature,
    allocate_token_bitmask,
)

TOKENS = [bytes([byte]) for byte in b'[]{}:, "-.abe0123456789'] + [
    *(b" %d" % number for number in range(12)),
    *(b"%d" % number for number in range(10, 13)),
    *(b", 0", b", 1", b": 0", b": 1", b" [", b' "a', b' "', b" -1", b" [1", b"]]", b"}]", b'": '),
    *(b"true", b"false", b"null", b".5", b".0", b'",', b'"]', b"1, 2"),
]
INFO = TokenizerInfo([*TOKENS, b"</s>"], stop_token_ids=[len(TOKENS)])

INTEGERS: dict[str, Any] = {"type": "integer"}


def pairs(value: Any) -> dict[str, Any]:
    return {"type": "array", "items": value, "minItems": 2}


def objects(value: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"a": value},
        "required": ["a"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "options",
    [{"any_whitespace": False}, {}, {"any_whitespace": False, "separators": (",", ":")}],
    ids=["one blank", "any", "none"],
)
@pytest.mark.parametrize(
    ("items", "value"),
    [
        ({}, ["a", 0, 12, 1]),
        (INTEGERS, [12, 0, 1, -1]),
        ({"type": "number"}, [0, 1, 11]),
        ({"enum": [0, 5, 7, 10]}, [5, 0, 10, 7]),
        (objects(INTEGERS), [{"a": 1}, {"a": 0}, {"a": 11}]),
        (pairs(INTEGERS), [[1, 2], [1, 0], [0, 1]]),
    ],
    ids=["anything", "integers", "numbers", "values", "objects", "arrays"],
)
def test_masks_allow_what_is_accepted(
    items: dict[str, Any], value: list[Any], options: dict[str, Any]
) -> None:
    schema = {"type": "array", "uniqueItems": True, "items": items}
    compiled = GrammarCompiler(INFO).compile_json_schema(json.dumps(schema), **options)
    text = json.dumps(value, separators=options.get("separators"))
    mask = allocate_token_bitmask(1, INFO.vocab_size)
    for end in range(len(text)):
        matcher = GrammarMatcher(compiled)
        assert matcher.accept_string(text[:end])
        matcher.fill_next_token_bitmask(mask)
        allowed = [
            token for token in range(len(TOKENS)) if mask[0][token // 32] >> (token % 32) & 1
        ]
        accepted = []
        for token in range(len(TOKENS)):
            if matcher.accept_token(token):
                accepted.append(token)
                matcher.rollback(1)
        assert allowed == accepted, text[:end]


def integers(least: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


# What elements may be, and what some of them must be: each may run out.
ELEMENTS: list[dict[str, Any]] = [
    integers(0, 12),
    {"type": "number", "minimum": 0, "maximum": 6, "multipleOf": 0.5},
    {"enum": [*range(8), "a", "b", "aa", "ab", None, True]},
    {"type": "string", "pattern": "^[ab]{1,3}$"},
    {"type": "string", "maxLength": 1},
    {"type": ["boolean", "null"]},
    objects({"type": "boolean"}),
    {"anyOf": [objects(integers(0, 3)), integers(0, 9)]},
    {"type": "array", "items": integers(0, 2), "maxItems": 2},
    {"type": ["integer", "string"]},
    {},
]
COUNTED: list[dict[str, Any]] = [
    integers(0, 3),
    {"minimum": 5},
    {"type": "string"},
    {"const": 1},
    {"enum": [0, 1, 2]},
    {"maxLength": 1},
    {"properties": {"a": {"const": True}}},
    {"minItems": 1},
    {"not": {"type": "integer"}},
]


def counted_schema(dice: random.Random) -> dict[str, Any]:
    """A schema of arrays whose elements differ and are counted, or stand at places of their own."""
    schema: dict[str, Any] = {"type": "array", "uniqueItems": True, "items": dice.choice(ELEMENTS)}
    if dice.random() < 0.3:
        schema["prefixItems"] = [dice.choice(ELEMENTS) for _ in range(dice.randint(1, 2))]
    rules = []
    for _ in range(dice.choice([0, 1, 1, 2] if "prefixItems" in schema else [1, 1, 2])):
        least = dice.randint(0, 3)
        rule = {"contains": dice.choice(COUNTED), "minContains": least}
        if dice.random() < 0.5:
            rule["maxContains"] = dice.randint(max(1, least), 4)
        rules.append(rule)
    schema["allOf"] = rules
    if not rules:
        del schema["allOf"]
    if dice.random() < 0.4:
        schema["minItems"] = dice.randint(0, 4)
    if dice.random() < 0.4:
        schema["maxItems"] = dice.randint(max(1, schema.get("minItems", 1)), 6)
    return schema


def element(dice: random.Random) -> Any:
    kinds: list[Any] = [
        dice.randint(0, 12),
        dice.randint(0, 3),
        dice.randint(0, 12) / 2,
        dice.choice(["", "a", "b", "aa", "ab", "abb"]),
        dice.choice([True, False, None]),
        {"a": dice.choice([True, False, 1, 7])},
        [dice.randint(0, 3) for _ in range(dice.randint(0, 2))],
    ]
    return dice.choice(kinds)


@pytest.mark.parametrize("seed", range(8))
def test_counted_elements_that_differ_are_those_of_the_validator(seed: int) -> None:
    dice = random.Random(seed)
    compiler = GrammarCompiler(INFO)
    decided = 0
    while decided < 12:
        schema = counted_schema(dice)
        validator = Draft202012Validator(schema)
        arrays = [[element(dice) for _ in range(dice.randint(0, 5))] for _ in range(60)]
        options: dict[str, Any] = dice.choice(
            [{}, {"any_whitespace": False}, {"any_whitespace": False, "property_order": "any"}]
        )
        try:
            compiled = compiler.compile_json_schema(json.dumps(schema), **options)
        except Unsatisfiable:
            assert not any(map(validator.is_valid, arrays)), schema
            continue
        except UnsupportedFeature:
            continue
        decided += 1
        for array in arrays:
            matcher = GrammarMatcher(compiled)
            fits = matcher.accept_string(json.dumps(array)) and matcher.is_completed()
            assert fits == validator.is_valid(array), (schema, array)
        for _, begun, may_end in walk(compiled, TOKENS, dice):
            assert not may_end or validator.is_valid(json.loads(begun)), (schema, begun)


def test_what_counters_need_is_not_used_up() -> None:
    schema = {
        "type": "array",
        "uniqueItems": True,
        "items": integers(0, 40),
        "contains": {"minimum": 39},
        "minContains": 2,
        "maxItems": 3,
    }
    compiled = GrammarCompiler(INFO).compile_json_schema(json.dumps(schema), any_whitespace=False)
    for text, is_open in [("[1, ", True), ("[1, 2", False), ("[39, 40", True), ("[39, 3, 4", True)]:
        assert GrammarMatcher(compiled).accept_string(text) == is_open, text
    matcher = GrammarMatcher(compiled)
    assert matcher.accept_string("[39, 3, ")
    assert matcher.shortest_completion() == b"40]"


@pytest.mark.parametrize("name", ["time", "date-time"])
@pytest.mark.parametrize("spelling", ["natural", "any"])
def test_there_is_always_another_time(name: str, spelling: Any) -> None:
    """A fraction may have any number of digits, which lies deep in a format of many places."""
    schema = {
        "type": "array",
        "items": {"type": "string", "format": name},
        "uniqueItems": True,
        "minItems": 4,
    }
    compiled = GrammarCompiler(INFO).compile_json_schema(json.dumps(schema), spelling=spelling)
    matcher = GrammarMatcher(compiled)
    value = json.loads(matcher.shortest_completion())
    assert len(set(value)) == 4
    matcher.accept_string(json.dumps(value[:3])[:-1] + ', "')
    assert json.loads(json.dumps(value[:3])[:-1] + ', "' + matcher.shortest_completion().decode())
