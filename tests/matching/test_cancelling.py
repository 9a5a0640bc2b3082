"""A token ends what was given it, from any thread, and spoils nothing."""

from __future__ import annotations

import copy
import json
import pickle
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stencilm
from stencilm import (
    BatchError,
    BatchGrammarMatcher,
    CancelToken,
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    LimitExceeded,
    Limits,
    OperationCancelled,
    TokenIndex,
    TokenizerInfo,
)
from stencilm.grammars.output_types import JsonSchema
from stencilm.limits import widest

INFO = TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
WORDS = -(-INFO.vocab_size // 32)


def cancelled() -> Limits:
    token = CancelToken()
    token.cancel()
    return Limits(cancel=token)


TAG = {"type": "structural_tag", "format": {"type": "const_string", "value": "a"}}
READ: dict[str, Callable[[GrammarCompiler, Limits], Any]] = {
    "a schema": lambda made, limits: made.compile_json_schema(SCHEMA),
    "a schema, read": lambda made, limits: Grammar.from_json_schema(SCHEMA, limits=limits),
    "a pattern": lambda made, limits: made.compile_regex("[a-z]+"),
    "EBNF": lambda made, limits: made.compile_grammar('root ::= "a"'),
    "Lark": lambda made, limits: made.compile_lark('start: "a"'),
    "a structural tag": lambda made, limits: made.compile_structural_tag(TAG),
    "a type": lambda made, limits: Grammar.from_type(list[int], limits=limits),
    "a grammar": lambda made, limits: made.compile(Grammar.from_regex("a")),
    "a saved grammar": lambda made, limits: CompiledGrammar.deserialize_json(
        GrammarCompiler(INFO).compile_regex("a").serialize_json(), INFO, limits=limits
    ),
}


@pytest.mark.parametrize("case", READ)
def test_nothing_begins_with_a_cancelled_token(case: str) -> None:
    limits = cancelled()
    with pytest.raises(OperationCancelled, match="cancelled by its token; give another token"):
        READ[case](GrammarCompiler(INFO, limits=limits), limits)
    # Who is not cancelled does not notice.
    READ[case](GrammarCompiler(INFO), Limits())


def test_a_matcher_stands_where_it_stood() -> None:
    token = CancelToken()
    compiled = GrammarCompiler(INFO, limits=Limits(cancel=token)).compile_json_schema(SCHEMA)
    matcher, mask = GrammarMatcher(compiled), np.zeros((1, WORDS), dtype=np.int32)
    assert matcher.accept_string('{"')
    token.cancel()
    token.cancel()
    calls: list[Callable[[], Any]] = [
        lambda: matcher.fill_next_token_bitmask(mask),
        lambda: matcher.accept_string("a"),
        lambda: matcher.accept_token(INFO.tokenize_bytes(b"a")[0]),
        lambda: matcher.find_jump_forward_string(),
        lambda: matcher.shortest_completion(),
        lambda: matcher.candidates(),
        lambda: matcher.find_mask_patch(),
        lambda: compiled.prepare(),
        lambda: GrammarMatcher(compiled),
    ]
    for call in calls:
        with pytest.raises(OperationCancelled):
            call()
    assert matcher.num_accepted_tokens == 1
    matcher.rollback(1)
    batch = BatchGrammarMatcher()
    alive = GrammarMatcher(GrammarCompiler(INFO).compile_json_schema(SCHEMA))
    with pytest.raises(BatchError) as raised:
        batch.batch_fill_next_token_bitmask([matcher, alive], np.zeros((2, WORDS), np.int32))
    assert isinstance(raised.value.errors[0], OperationCancelled)
    assert list(raised.value.errors) == [0]


def ended_after(call: Callable[[Limits], Any], seconds: float) -> float:
    """How long a call goes on after another thread has cancelled it, in seconds."""
    token = CancelToken()
    at = [0.0]

    def cancel() -> None:
        time.sleep(seconds)
        at[0] = time.perf_counter()
        token.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(OperationCancelled):
        call(Limits(milliseconds=600_000, cancel=token, schema_bytes=4 << 20))
    ended = time.perf_counter()
    canceller.join()
    return ended - at[0]


def slow_mask(limits: Limits) -> None:
    """Masks of a text that derives ever more expressions."""
    compiled = GrammarCompiler(INFO, limits=limits).compile_regex(".*[abc].{40}[xyz].*[uvw].{30}")
    matcher, mask = GrammarMatcher(compiled), np.zeros((1, WORDS), dtype=np.int32)
    while True:
        matcher.fill_next_token_bitmask(mask)
        matcher.accept_string("abcxyzuvw")


def slow_index(limits: Limits) -> None:
    pattern = "(?:[a-z]{1,200}[0-9]{1,200}x){1,200}"
    TokenIndex.from_regex(pattern, INFO, max_states=1 << 20, max_bytes=1 << 32, limits=limits)


def slow_batch(limits: Limits) -> None:
    compiled = GrammarCompiler(INFO, limits=limits).compile_regex(".*[abc].{40}[xyz].*[uvw].{30}")
    matchers = [GrammarMatcher(compiled) for _ in range(3)]
    try:
        while True:
            BatchGrammarMatcher(2).batch_accept_string(matchers, ["abcxyzuvw"] * 3)
            BatchGrammarMatcher(2).batch_fill_next_token_bitmask(
                matchers, np.zeros((3, WORDS), dtype=np.int32)
            )
    except BatchError as error:
        raise next(iter(error.errors.values())) from None


def slow_schema(limits: Limits) -> None:
    names = [f"key{number}" for number in range(30_000)]
    schema = {
        "allOf": [
            {"properties": {name: {"enum": [name, number]} for number, name in enumerate(names)}},
            {"properties": {name: {"not": {"const": name}} for name in names}},
        ]
    }
    text = json.dumps(schema)
    while True:
        GrammarCompiler(INFO, limits=limits).compile_json_schema(text)


@pytest.mark.parametrize("call", [slow_mask, slow_batch, slow_schema, slow_index])
@pytest.mark.parametrize("on_main_thread", [True, False])
def test_what_is_under_way_ends(call: Callable[[Limits], None], on_main_thread: bool) -> None:
    # Far more than the 50 ms that are promised: machines that run tests are loaded.
    if on_main_thread:
        assert ended_after(call, 0.1) < 5
        return
    took: list[float] = []
    other = threading.Thread(target=lambda: took.append(ended_after(call, 0.1)))
    other.start()
    other.join()
    assert took[0] < 5


def test_a_token_is_a_limit_like_others() -> None:
    token, other = CancelToken(), CancelToken()
    limits = Limits(cancel=token)
    assert limits != Limits() and limits == Limits(cancel=token) != Limits(cancel=other)
    assert copy.copy(limits) == copy.deepcopy(limits) == limits
    assert hash(limits) == hash(Limits(cancel=token))
    assert JsonSchema({}, limits=limits) != JsonSchema({}, limits=Limits())
    assert widest([Limits(), limits, Limits(cancel=other)]).cancel is token
    assert repr(token) == "<CancelToken>" and not token.is_cancelled
    with pytest.raises(TypeError, match="a CancelToken cannot be pickled"):
        pickle.dumps(limits)
    with pytest.raises(TypeError, match="cancel is 5, but must be a CancelToken"):
        Limits(cancel=5)  # type: ignore[arg-type]
    assert issubclass(OperationCancelled, LimitExceeded)
