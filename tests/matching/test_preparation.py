"""Masks found beforehand are the same masks, and finding them ends when it is to."""

from __future__ import annotations

import gc
import os
import pickle
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stencilm
from stencilm import (
    CancelToken,
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    Limits,
    OperationCancelled,
    Preparation,
    TokenizerInfo,
)

GRAMMARS: dict[str, Grammar] = {
    "object": Grammar.from_json_schema(
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "pattern": "^[a-z]+x"},
                "when": {"type": "string", "format": "date"},
                "tags": {"type": "array", "items": {"enum": ["red", "green"]}, "uniqueItems": True},
                "size": {"type": "number"},
            },
            "required": ["name"],
        }
    ),
    "closed": Grammar.from_json_schema(
        {
            "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}},
            "type": "object",
            "additionalProperties": False,
        }
    ),
    "any": Grammar.builtin_json_grammar(),
    "pattern": Grammar.from_regex(r"[0-9]{4}-[0-9]{2}(T[a-z]{3})?"),
    "rules": Grammar.from_ebnf('root ::= "(" root ")" | [a-z]+ | ""'),
    "budget": Grammar.from_lark('start: "<" think ">"\nthink[max_tokens=3]: /[a-z ]*/'),
    "token": Grammar.from_lark("start: <[5]> /[a-z]+/ | /[0-9]{3}/"),
}
# Its walk has no end: there are ever other places within places.
ENDLESS = Grammar.from_json_schema(
    {
        "type": "object",
        "properties": {f"key{number}": {"$ref": "#"} for number in range(50)},
        "additionalProperties": {"type": "array", "items": {"$ref": "#"}, "maxItems": 9},
    },
    property_order="any",
)


def tokenizer() -> TokenizerInfo:
    """One that knows nothing yet."""
    return TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")


def masks(compiled: CompiledGrammar, seed: int) -> list[bytes]:
    """The masks along random walks."""
    info, chooser = compiled.tokenizer_info, random.Random(seed)
    mask = np.zeros((1, -(-info.vocab_size // 32)), dtype=np.int32)
    found = []
    for _ in range(4):
        matcher = GrammarMatcher(compiled)
        for _ in range(40):
            matcher.fill_next_token_bitmask(mask)
            found.append(mask.tobytes())
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            matcher.accept_token(int(chooser.choice(allowed.tolist())))
            if matcher.is_terminated():
                break
    return found


@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize("name", GRAMMARS)
def test_masks_are_the_same(name: str, background: bool) -> None:
    plain = GrammarCompiler(tokenizer()).compile(GRAMMARS[name])
    prepared = GrammarCompiler(tokenizer()).compile(GRAMMARS[name])
    preparation = prepared.prepare(milliseconds=60, background=background)
    assert preparation.wait()
    assert preparation.done and preparation.ended_by in ("complete", "time", "bytes")
    assert preparation.masks > 0
    for seed in range(3):
        assert masks(prepared, seed) == masks(plain, seed)


def test_masks_are_the_same_while_they_are_prepared() -> None:
    plain = GrammarCompiler(tokenizer()).compile(GRAMMARS["object"])
    prepared = GrammarCompiler(tokenizer()).compile(GRAMMARS["object"])
    preparation = prepared.prepare(milliseconds=10_000)
    for seed in range(6):
        assert masks(prepared, seed) == masks(plain, seed)
    preparation.cancel()
    assert preparation.wait()


def test_all_likely_masks_of_a_small_grammar_are_found_once() -> None:
    compiled = GrammarCompiler(tokenizer()).compile(GRAMMARS["closed"])
    first = compiled.prepare(milliseconds=60_000, background=False)
    assert first.ended_by == "complete"
    assert first.bytes > 0 and first.milliseconds > 0
    second = compiled.prepare(milliseconds=60_000, background=False)
    assert (second.ended_by, second.masks) == ("complete", 0)
    assert "0 masks" in repr(second) and "complete" in repr(second)


def test_a_place_that_is_likely_is_known() -> None:
    compiled = GrammarCompiler(tokenizer()).compile(GRAMMARS["closed"])
    compiled.prepare(milliseconds=60_000, background=False)
    before = compiled.memory_size_bytes
    matcher = GrammarMatcher(compiled)
    mask = np.zeros((1, -(-compiled.tokenizer_info.vocab_size // 32)), dtype=np.int32)
    matcher.fill_next_token_bitmask(mask)
    assert compiled.memory_size_bytes == before


def test_cancelling_ends_it() -> None:
    compiled = GrammarCompiler(tokenizer()).compile(ENDLESS)
    preparations = [compiled.prepare(milliseconds=600_000) for _ in range(3)]
    assert not preparations[0].wait(0.01)
    assert not preparations[-1].done and preparations[-1].ended_by is None
    for preparation in preparations:
        preparation.cancel()
    assert all(preparation.wait(60) for preparation in preparations)
    assert {preparation.ended_by for preparation in preparations} <= {"cancelled", "bytes"}
    assert preparations[-1].ended_by == "cancelled"


def test_the_token_of_the_limits_ends_it() -> None:
    token = CancelToken()
    compiler = GrammarCompiler(tokenizer(), limits=Limits(cancel=token))
    compiled = compiler.compile(ENDLESS)
    preparation = compiled.prepare(milliseconds=600_000)
    token.cancel()
    assert preparation.wait(60)
    assert preparation.ended_by in ("cancelled", "bytes")
    with pytest.raises(OperationCancelled):
        compiled.prepare()


def test_it_ends_with_the_grammar() -> None:
    compiler = GrammarCompiler(tokenizer(), cache_enabled=False)
    compiled = compiler.compile(ENDLESS)
    preparation = compiled.prepare(milliseconds=600_000)
    del compiled
    gc.collect()
    assert preparation.wait(60)
    assert preparation.ended_by in ("dropped", "bytes")


@pytest.mark.parametrize("budget", [0, 20_000, 200_000])
def test_it_holds_no_more_than_it_may(budget: int) -> None:
    compiler = GrammarCompiler(tokenizer())
    compiled = compiler.compile(GRAMMARS["object"])

    def held() -> int:
        return compiled.memory_size_bytes + compiler.get_shared_size_bytes()

    before = held()
    preparation = compiled.prepare(milliseconds=600_000, bytes=budget, background=False)
    assert preparation.ended_by == "bytes"
    # What the first mask adds cannot be known before it is there.
    first = GrammarCompiler(tokenizer()).compile(GRAMMARS["object"])
    alone = first.prepare(milliseconds=600_000, bytes=0, background=False).bytes
    assert held() - before <= max(budget, alone) + 65_536


def test_time_ends_it() -> None:
    compiled = GrammarCompiler(tokenizer()).compile(ENDLESS)
    preparation = compiled.prepare(milliseconds=0, background=False)
    assert (preparation.ended_by, preparation.masks) == ("time", 0)


def test_threads_may_prepare_at_once() -> None:
    compiled = GrammarCompiler(tokenizer()).compile(GRAMMARS["object"])
    expected = masks(GrammarCompiler(tokenizer()).compile(GRAMMARS["object"]), 5)
    found: list[list[bytes]] = []

    def work(background: bool) -> None:
        compiled.prepare(milliseconds=20, background=background)
        found.append(masks(compiled, 5))

    threads = [threading.Thread(target=work, args=(index % 2 == 0,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_has_no_work_under_way() -> None:
    compiled = GrammarCompiler(tokenizer()).compile(ENDLESS)
    preparation = compiled.prepare(milliseconds=600_000)
    preparation.wait(0.005)
    child = os.fork()
    if child == 0:
        fine = preparation.wait(5) and preparation.ended_by == "cancelled"
        again = compiled.prepare(milliseconds=1)
        os._exit(0 if fine and again.wait(30) and again.ended_by == "time" else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    preparation.cancel()
    assert preparation.wait(60)


def test_what_makes_no_sense_is_refused() -> None:
    compiled = GrammarCompiler(tokenizer()).compile(GRAMMARS["closed"])
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"milliseconds": -1}, ValueError, "milliseconds is -1"),
        ({"milliseconds": float("nan")}, ValueError, "must be a number from 0 up"),
        ({"milliseconds": float("inf")}, ValueError, "must be a number from 0 up"),
        ({"milliseconds": "5"}, TypeError, "milliseconds is a number, not str .5."),
        ({"bytes": -1}, ValueError, "bytes is -1"),
        ({"bytes": 0.5}, TypeError, "bytes is an int"),
    ]
    for options, error, message in wrong:
        with pytest.raises(error, match=message):
            compiled.prepare(**options)
    preparation = compiled.prepare()
    assert isinstance(preparation, Preparation)
    with pytest.raises(ValueError, match="timeout is inf"):
        preparation.wait(float("inf"))
    with pytest.raises(TypeError, match="a Preparation cannot be pickled"):
        pickle.dumps(preparation)
