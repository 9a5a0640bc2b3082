"""Masks of arrays with unique elements against accepting every token: texts that repeat each other.

The vocabulary is small and full of quotes and escapes, so that strings are begun as others were,
spelled otherwise, and ended in the middle of a token.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from stencilm import GrammarCompiler, GrammarMatcher, MatcherError, TokenizerInfo, VocabType

PIECES = [
    *(b'"', b"a", b"ab", b"b", b"n", b"t", b"u", b"f", b"0", b"1", b"61", b"00", b".", b"/", b" "),
    *(b"\\", b"\\n", b"\\t", b"\\b", b"\\/", b'\\"', b"\\\\", b"\\u", b"\\u0061", b"\\u000a"),
    *(b"\\u002f", b"000a", b"0061", b"D83D", b"DE00", b"a\\", b"a\\n", b'a\\"', b'\\n"', b'\\/"'),
    *(b",", b'",', b'","', b'", "', b'a","', b'","a"', b'"a"', b'"a","', b'a"', b'b"', b'n"'),
    *(b"[", b"]", b'["', b'"]', b"{", b"}", b'{"', b'"}', b'":', b'":"', b'":1}', b'":"a"}'),
    *("é".encode(), b"\xc3", b"\xa9", b"e", b"0e", b"e1", b".0", b"10"),
]
STOP = len(PIECES)

SCHEMAS = [
    '{"type": "array", "uniqueItems": true}',
    '{"type": "array", "uniqueItems": true, "items": {"type": "string"}}',
    '{"type": "array", "uniqueItems": true, "items": {"enum": ["a", "ab", "a\\n", "/", "é"]}}',
    """{"type": "array", "uniqueItems": true,
        "items": {"enum": ["a", "ab", "aba", "abb", "b", "ba", "n", "n1", "f0", "f00", "t"]}}""",
    """{"type": "array", "uniqueItems": true, "minItems": 3,
        "items": {"type": "string", "pattern": "^[ab]{1,2}$"}}""",
    """{"type": "array", "uniqueItems": true, "items": {"type": "array", "uniqueItems": true,
        "items": {"enum": ["a", "ab", "aba"]}}}""",
    '{"type": "array", "uniqueItems": true, "items": {"type": "string", "pattern": "^a"}}',
    '{"type": "array", "uniqueItems": true, "items": {"additionalProperties": {"type": "string"}}}',
    '{"type": "array", "uniqueItems": true, "items": {"type": ["string", "integer"]}}',
    """{"type": "array", "uniqueItems": true, "items": {"type": "array", "uniqueItems": true,
        "items": {"type": "string", "maxLength": 2}}}""",
    '{"type": "array", "uniqueItems": true, "items": {"type": "object", "maxProperties": 1}}',
    """{"type": "array", "uniqueItems": true,
        "items": {"type": "object", "minProperties": 1, "maxProperties": 2}}""",
    """{"type": "array", "uniqueItems": true,
        "items": {"type": "integer", "minimum": 0, "maximum": 111}}""",
    """{"type": "array", "uniqueItems": true, "items": {"anyOf": [{"enum": ["a", "b"]},
        {"type": "number", "multipleOf": 0.5, "minimum": 0, "maximum": 1}]}}""",
    '{"type": "array", "uniqueItems": true, "items": {"type": "number"}}',
    """{"type": "array", "uniqueItems": true, "items": {"enum": ["a", "ab", 1, 10, 0]},
        "contains": {"type": "integer"}, "minContains": 2}""",
    """{"type": "array", "uniqueItems": true, "minItems": 3,
        "prefixItems": [{"enum": ["a", 1]}, {"enum": [1, 10]}], "items": {"enum": [10, "b"]}}""",
]


@pytest.mark.parametrize("seed", range(len(SCHEMAS)))
def test_masks_are_what_accepting_tells(seed: int) -> None:
    info = TokenizerInfo([*PIECES, b"<stop>"], VocabType.RAW, stop_token_ids=[STOP])
    compiled = GrammarCompiler(info).compile_json_schema(SCHEMAS[seed])
    chosen = random.Random(seed)
    bitmask = np.zeros(-(-info.vocab_size // 32), dtype=np.int32)
    masks = 0
    for _ in range(100):
        matcher, text = GrammarMatcher(compiled), b""
        while not matcher.is_terminated() and len(text) < 60:
            try:
                matcher.fill_next_token_bitmask(bitmask)
            except MatcherError:
                break  # no token of so few spells the rest of an escape
            masks += 1
            allowed = [i for i in range(STOP + 1) if bitmask[i // 32] >> (i % 32) & 1]
            accepted = [i for i in range(STOP + 1) if matcher.fork().accept_token(i)]
            assert allowed == accepted, text
            token = chosen.choice([i for i in allowed if i != STOP] or [STOP])
            assert matcher.accept_token(token)
            text += PIECES[token] if token != STOP else b""
    assert masks > 500


def test_numbers_are_used_up_one_by_one() -> None:
    info = TokenizerInfo(
        [*(str(number).encode() for number in range(1000)), b",", b"[", b"]", None],
        VocabType.RAW,
        stop_token_ids=[1003],
    )
    schema = """{"type": "array", "uniqueItems": true,
        "items": {"type": "integer", "minimum": 0, "maximum": 999}}"""
    matcher = GrammarMatcher(GrammarCompiler(info).compile_json_schema(schema))
    bitmask = np.zeros(-(-info.vocab_size // 32), dtype=np.int32)
    left = set(range(1000))
    chosen = random.Random(1)
    assert matcher.accept_string("[")
    while left:
        matcher.fill_next_token_bitmask(bitmask)
        allowed = {i for i in range(1000) if bitmask[i // 32] >> (i % 32) & 1}
        assert allowed == {n for n in range(1000) if any(str(m).startswith(str(n)) for m in left)}
        many = sorted(left)
        for number in chosen.sample(many, min(len(many), 130)):
            left.remove(number)
            assert matcher.accept_string(f"{number}{',' if left else ''}")
    matcher.fill_next_token_bitmask(bitmask)
    assert [i for i in range(1003) if bitmask[i // 32] >> (i % 32) & 1] == [1002]
