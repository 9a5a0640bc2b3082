"""Escapes that one token begins and another ends: masks allow exactly what can be accepted."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import stencilm
from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo

PIECES = [
    *(b"\\u", b"0061", b"00", b"61", b"62", b"0062", b"00e9", b"00E9", b'": ', b'":', b'["', b'",'),
    *(b'", "', b'"]', b'9":', b'61":', b'0061": 1', b'e9"', b", ", b"\xc3\xa9"),
]
TOKENS = [*PIECES, *(bytes([byte]) for byte in range(256))]
STOP = len(TOKENS)
INFO = TokenizerInfo([*TOKENS, b"</s>"], stop_token_ids=[STOP])
COMPILER = GrammarCompiler(INFO)

# Keys and elements of which there are few, so that an escape may spell the last one that is left.
SCHEMAS: list[dict[str, Any]] = [
    {
        "type": "object",
        "properties": {"a": {"enum": [1]}},
        "additionalProperties": {"enum": [1]},
        "propertyNames": {"maxLength": 1},
    },
    {
        "type": "object",
        "additionalProperties": {"enum": [1]},
        "propertyNames": {"pattern": "^[abé]$"},
    },
    {
        "type": "object",
        "properties": {"é": {"enum": [1]}},
        "additionalProperties": {"enum": [1]},
        "propertyNames": {"pattern": "^[aé]{1,2}$"},
    },
    {"type": "array", "uniqueItems": True, "items": {"enum": ["é", "b", "éa"]}},
]


@pytest.mark.parametrize("spelling", ["natural", "any"])
@pytest.mark.parametrize("schema", SCHEMAS, ids=["length", "letters", "declared", "elements"])
def test_masks_allow_what_can_be_accepted(schema: dict[str, Any], spelling: Any) -> None:
    compiled = COMPILER.compile_json_schema(schema, any_whitespace=False, spelling=spelling)
    bitmask = stencilm.allocate_token_bitmask(1, INFO.vocab_size)
    for seed in range(60):
        drawn = random.Random(seed)
        matcher = GrammarMatcher(compiled)
        text = b""
        for _ in range(20):
            matcher.fill_next_token_bitmask(bitmask)
            bits = np.unpackbits(np.asarray(bitmask).view(np.uint8), bitorder="little")
            allowed = [token for token in range(STOP) if bits[token]]
            accepted = [token for token in range(STOP) if matcher.fork().accept_token(token)]
            assert allowed == accepted, (text, [TOKENS[t] for t in {*allowed} ^ {*accepted}])
            if not accepted:
                break
            pieces = [token for token in accepted if token < len(PIECES)]
            token = drawn.choice(pieces if pieces and drawn.random() < 0.7 else accepted)
            assert matcher.accept_token(token)
            text += TOKENS[token]
