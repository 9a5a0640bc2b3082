"""Masks of the educational twin in plain Python equal the engine's."""

from __future__ import annotations

import doctest
import json
import random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo, _educational

# Pieces that cross the borders of keys, values, escapes and characters, and single bytes of some.
PIECES = [
    *(
        b'{"',
        b'"}',
        b'": ',
        b'", "',
        b'"a',
        b'a"',
        b"}]",
        b"]}",
        b"[[",
        b"}, {",
        b": ",
        b", ",
        b"ab",
        b"ba",
    ),
    *(
        b"aaa",
        b"12",
        b"-1",
        b"00",
        b"true",
        b"tr",
        b"ue",
        b"fal",
        b"se",
        b"null",
        b"nu",
        b"\\u",
        b"\\n",
    ),
    *(
        b"d8",
        b"D83D",
        b"dc00",
        b"00e9",
        "é".encode(),
        b"\xf0\x9f",
        b"\x98\x80",
        b"\xed\xa0",
        b"a\xc3",
    ),
]
TOKENS = [*PIECES, *(bytes([byte]) for byte in range(256))]
STOP = len(TOKENS)
TOKENIZER = TokenizerInfo([*TOKENS, b"</s>"], stop_token_ids=[STOP])
COMPILER = GrammarCompiler(TOKENIZER)

ATOMS = st.sampled_from(["a", "b", "é", "x", "[ab]", "[^a]", r"\d", r"\w", ".", "[0-9_]", r"\."])


def _larger_pattern(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    counts = st.sampled_from(["*", "+", "?", "{2}", "{0,3}", "{1,}", "{2,4}"])
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
        st.tuples(inner, counts).map(lambda pair: f"({pair[0]}){pair[1]}"),
    )


PATTERNS = st.recursive(ATOMS, _larger_pattern, max_leaves=6)

LEAVES = st.one_of(
    st.sampled_from(["string", "integer", "boolean", "null"]).map(lambda name: {"type": name}),
    st.lists(st.sampled_from(["a", "ab", "", None, True]), min_size=1, max_size=3).map(
        lambda values: {"enum": values}
    ),
    st.just({"$ref": "#/$defs/tree"}),
)


def _larger_schema(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    bounds = st.sampled_from([{}, {"minItems": 1}, {"minItems": 2, "maxItems": 3}, {"maxItems": 0}])
    arrays = st.tuples(inner, bounds).map(
        lambda pair: {"type": "array", "items": pair[0], **pair[1]}
    )
    objects = st.tuples(
        st.dictionaries(st.sampled_from(["a", "b", "ab"]), inner, max_size=3),
        st.sets(st.sampled_from(["a", "b", "ab"])),
    ).map(
        lambda pair: {
            "type": "object",
            "properties": pair[0],
            "required": sorted(pair[1] & set(pair[0])),
        }
    )
    return st.one_of(
        arrays, objects, st.lists(inner, min_size=1, max_size=3).map(lambda ones: {"anyOf": ones})
    )


TREE = {"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}
SCHEMAS = st.recursive(LEAVES, _larger_schema, max_leaves=5).map(
    lambda schema: {**schema, "$defs": {"tree": TREE}}
)


def _hold_equal(expr: _educational.Expr, grammar: Grammar, seed: int) -> None:
    """Walks both at random, comparing all masks on the way."""
    drawn = random.Random(seed)
    matcher = GrammarMatcher(COMPILER.compile(grammar))
    bitmask = stencilm.allocate_token_bitmask(1, TOKENIZER.vocab_size)
    text = b""
    for _ in range(16):
        matcher.fill_next_token_bitmask(bitmask)
        bits = np.unpackbits(np.asarray(bitmask).view(np.uint8), bitorder="little")
        theirs = [bool(bit) for bit in bits[: len(TOKENS) + 1]]
        ours = [*_educational.mask(expr, text, TOKENS), _educational.is_complete(expr, text)]
        differ = [i for i, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1]]
        assert not differ, (
            text,
            [[*TOKENS, b"</s>"][i] for i in differ],
            [ours[i] for i in differ],
        )
        allowed = [token for token in range(STOP) if ours[token]]
        pieces = [token for token in allowed if token < len(PIECES)]
        if not allowed:
            return
        token = drawn.choice(pieces if pieces and drawn.random() < 0.7 else allowed)
        assert matcher.accept_token(token)
        text += TOKENS[token]


@settings(max_examples=60)
@given(PATTERNS, st.integers(0, 2**32))
def test_masks_of_patterns_equal_the_engines(pattern: str, seed: int) -> None:
    _hold_equal(_educational.regex(pattern), Grammar.from_regex(pattern), seed)


@settings(max_examples=60)
@given(SCHEMAS, st.integers(0, 2**32))
def test_masks_of_schemas_equal_the_engines(schema: dict[str, Any], seed: int) -> None:
    try:
        grammar = Grammar.from_json_schema(
            json.dumps(schema), any_whitespace=False, strict_mode=True, spelling="digits"
        )
    except stencilm.Unsatisfiable:
        assert _educational.is_empty(_educational.json_schema(schema))
        return
    _hold_equal(_educational.json_schema(schema), grammar, seed)


def test_the_example_of_the_module_holds() -> None:
    assert doctest.testmod(_educational).failed == 0


def test_it_is_plain_python_of_at_most_300_lines() -> None:
    with open(_educational.__file__, encoding="utf-8") as file:
        source = file.read()
    assert len(source.splitlines()) <= 300
    assert "_core" not in source and "import stencilm" not in source
