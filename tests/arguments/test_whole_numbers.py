"""Numbers that callers give: whatever is none ends in one sentence with its name and its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, Regex, TokenIndex, TokenizerInfo
from stencilm.limits import BOUNDS

INFO = TokenizerInfo([b"a", b"b", b"ab", None], stop_token_ids=[3])
GRAMMAR = Grammar.from_regex("ab+")
COMPILED = GrammarCompiler(INFO).compile_grammar(GRAMMAR)
INDEX = TokenIndex.from_grammar(GRAMMAR, INFO)
MODEL = stencilm.load("tiny")
BITMASK = np.zeros((2, 1), dtype=np.int32)

Call = Callable[[Any], Any]


def text(**options: Any) -> Any:
    return MODEL.generate("x", Regex("[ab]{1,2}"), **options)


CALLS: dict[str, Call] = {
    **{name: lambda value, name=name: stencilm.Limits(**{name: value}) for name in BOUNDS},  # type: ignore[misc]
    "max_states": lambda value: TokenIndex.from_grammar(GRAMMAR, INFO, max_states=value),
    "max_bytes": lambda value: TokenIndex.from_grammar(GRAMMAR, INFO, max_bytes=value),
    "max_states of a drawing": lambda value: INDEX.to_dot(max_states=value),
    "index of an index": lambda value: INDEX.fill_bitmask(0, BITMASK, value),
    "state": INDEX.allowed_tokens,
    "index": lambda value: GrammarMatcher(COMPILED).fill_next_token_bitmask(BITMASK, value),
    "indices": lambda value: stencilm.BatchGrammarMatcher().batch_fill_next_token_bitmask(
        [GrammarMatcher(COMPILED)], BITMASK, [value]
    ),
    "max_rollback_tokens": lambda value: GrammarMatcher(COMPILED, max_rollback_tokens=value),
    "token_budget": lambda value: GrammarMatcher(COMPILED, token_budget=value),
    "override_stop_tokens": lambda value: GrammarMatcher(COMPILED, override_stop_tokens=value),
    "limit": lambda value: GrammarMatcher(COMPILED).candidates(value),
    "milliseconds of preparing": lambda value: COMPILED.prepare(milliseconds=value),
    "bytes": lambda value: COMPILED.prepare(milliseconds=0, bytes=value),
    "max_threads": lambda value: GrammarCompiler(INFO, max_threads=value),
    "cache_limit_bytes": lambda value: GrammarCompiler(INFO, cache_limit_bytes=value),
    "max_threads of a batch": lambda value: stencilm.BatchGrammarMatcher(value),
    "batch_size": lambda value: stencilm.allocate_token_bitmask(value, 4),
    "vocab_size": lambda value: TokenizerInfo([b"a"], vocab_size=value),
    "stop_token_ids": lambda value: TokenizerInfo([b"a"], stop_token_ids=[value]),
    "special_token_ids": lambda value: TokenizerInfo([b"a"], special_token_ids=[value]),
    "indent": lambda value: Grammar.from_json_schema({}, indent=value),
    "max_whitespace": lambda value: Grammar.from_json_schema({}, max_whitespace=value),
    "temperature": lambda value: text(temperature=value),
    "top_p": lambda value: text(top_p=value),
    "min_p": lambda value: text(min_p=value),
    "repetition_penalty": lambda value: text(repetition_penalty=value),
    "frequency_penalty": lambda value: text(frequency_penalty=value),
    "presence_penalty": lambda value: text(presence_penalty=value),
    "logit_bias": lambda value: text(logit_bias={1: value}),
    "max_tokens": lambda value: text(max_tokens=value),
    "seed": lambda value: text(seed=value),
}
VALUES = [-1, 1 << 31, 1 << 63, 1 << 80, -(1 << 80), 10**5000, -(10**5000), True, 1.5, "3", []]
VALUES += [float("nan"), np.int64(-3), np.bool_(True), np.float32(2), object()]
INTERNAL = ("cannot be interpreted", "too large to convert", "not iterable", "integer string")


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_such_number_is_told(name: str) -> None:
    for value in VALUES:
        try:
            CALLS[name](value)
        except (stencilm.StencilError, TypeError, ValueError, IndexError, MemoryError) as error:
            assert not any(words in str(error) for words in INTERNAL), error


def test_numbers_of_numpy_are_numbers() -> None:
    two = np.uint8(2)
    assert stencilm.Limits(milliseconds=two) == stencilm.Limits(milliseconds=2)  # type: ignore[arg-type]
    assert type(stencilm.Limits(milliseconds=two).milliseconds) is int  # type: ignore[arg-type]
    for name in ("max_threads", "cache_limit_bytes", "indent", "batch_size", "limit"):
        CALLS[name](two)


@pytest.mark.parametrize(
    ("name", "value", "kind", "words"),
    [
        ("max_states", 1 << 80, ValueError, f"max_states is beyond 64 bits, but .* {2**63 - 1}"),
        ("max_bytes", True, TypeError, "max_bytes is True, but must be an int"),
        ("index", 1 << 80, IndexError, f"row {1 << 80} is outside of a bitmask with 2 rows"),
        ("index", 1.5, TypeError, "a row of a bitmask is an int, not float 1.5"),
        ("indices", 10**5000, IndexError, "row int that is too long to be shown is outside"),
        ("max_rollback_tokens", 1 << 64, ValueError, f"max_rollback_tokens is {1 << 64}, but"),
        ("max_rollback_tokens", None, TypeError, "max_rollback_tokens is an int, not NoneType"),
        ("override_stop_tokens", 1.5, TypeError, "override_stop_tokens holds 1.5, but must hold"),
        ("milliseconds of preparing", "3", TypeError, "milliseconds is a number, not str '3'"),
        ("frequency_penalty", 10**5000, ValueError, "frequency_penalty is beyond 64 bits, but"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_words(name: str, value: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        CALLS[name](value)


def test_a_bitmask_for_which_there_is_no_memory() -> None:
    with pytest.raises(MemoryError, match="no memory for a bitmask of 4611686018427387904 rows"):
        stencilm.allocate_token_bitmask(1 << 62, 1 << 40)
