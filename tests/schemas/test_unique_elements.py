"""Masks of arrays whose elements must differ: tokens that reach from a sign into an element."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo, allocate_token_bitmask

TOKENS = [bytes([byte]) for byte in b'[]{}:, "-.abe0123456789'] + [
    *(b" %d" % number for number in range(12)),
    *(b"%d" % number for number in range(10, 13)),
    *(b", 0", b", 1", b": 0", b": 1", b" [", b' "a', b' "', b" -1", b" [1", b"]]", b"}]", b'": '),
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
