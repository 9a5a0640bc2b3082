"""Every public argument that is a number, with whatever a caller may give in its place.

One idea: an int of NumPy is an int everywhere, and what is no number, or one that cannot be, ends
in one sentence that names the argument; never in what Python says of a number that it cannot hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import stencilm
from stencilm import (
    BatchGrammarMatcher,
    Budget,
    Choice,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    MaskRows,
    Regex,
    TokenIndex,
    TokenizerInfo,
)
from stencilm.generation.sampling import Sampling
from stencilm.limits import BOUNDS, Limits
from stencilm.models.chat import Talk
from stencilm.models.options import options_of
from stencilm.ray import Generate

INFO = TokenizerInfo([b"a", b"b", b"ab", None], stop_token_ids=[3])
GRAMMAR = Grammar.from_regex("ab+")
COMPILER = GrammarCompiler(INFO)
COMPILED = COMPILER.compile_grammar(GRAMMAR)
INDEX = TokenIndex.from_grammar(GRAMMAR, INFO)
BITMASK = np.zeros((8, 1), dtype=np.int32)
MODEL = stencilm.load("tiny")
SHORT = Regex("[ab]{1,2}")

Call = Callable[[Any], Any]


def text(**options: Any) -> Any:
    return MODEL.generate("x", SHORT, **options)


def matcher(**options: Any) -> GrammarMatcher:
    return GrammarMatcher(COMPILED, **options)


def option(name: str, **more: Any) -> Call:
    def call(value: Any) -> Any:
        given: Any = {**more, name: value}
        return options_of(given)

    return call


def processor(**options: Any) -> Any:
    pytest.importorskip("transformers")
    return stencilm.LogitsProcessor(COMPILED, **options)


def tree(**options: Any) -> Any:
    return matcher().traverse_draft_tree([-1], [-1], [0], BITMASK[:1], **options)


def database(value: Any) -> Any:
    import sqlite3

    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE users (id INTEGER)")
    return stencilm.sql(connection, max_depth=value)


def guided(**options: Any) -> Any:
    return stencilm.guide(lambda prompt: "ab", SHORT, "x", **options)


tag_of_a = {"type": "regex", "pattern": "a"}


def tag(**members: Any) -> Any:
    return stencilm.StructuralTag.from_json({"type": "structural_tag", "format": members})


class _Single(Mapping[Any, float]):
    """A bias for one token, which need not have a hash."""

    def __init__(self, key: Any) -> None:
        self.key = key

    def __iter__(self) -> Iterator[Any]:
        return iter([self.key])

    def __len__(self) -> int:
        return 1

    def __getitem__(self, key: Any) -> float:
        return 1.0


# By the name that an error must have, with what tells calls of one argument apart after a space.
CALLS: dict[str, Call] = {
    **{name: lambda value, name=name: Limits(**{name: value}) for name in BOUNDS},  # type: ignore[misc]
    "max_tokens of a text": lambda value: text(max_tokens=value),
    "temperature of a text": lambda value: text(temperature=value, seed=1),
    "top_p of a text": lambda value: text(top_p=value, temperature=1.0),
    "top_k of a text": lambda value: text(top_k=value, temperature=1.0),
    "min_p of a text": lambda value: text(min_p=value, temperature=1.0),
    "repetition_penalty of a text": lambda value: text(repetition_penalty=value),
    "frequency_penalty of a text": lambda value: text(frequency_penalty=value),
    "presence_penalty of a text": lambda value: text(presence_penalty=value),
    "logit_bias of a text": lambda value: text(logit_bias={1: value}),
    "logit_bias by token": lambda value: text(logit_bias=_Single(value)),
    "seed of a text": lambda value: text(seed=value, temperature=1.0),
    "whitespace_budget of a text": lambda value: MODEL.generate(
        "x", list[bool], whitespace_budget=value, max_tokens=9
    ),
    "reasoning of a text": lambda value: text(reasoning=value),
    "max_retries": lambda value: text(max_retries=value),
    "max_whitespace of a text": lambda value: MODEL.generate(
        "x", list[bool], max_whitespace=value, max_tokens=9
    ),
    "indent of a text": lambda value: MODEL.generate("x", list[bool], indent=value, max_tokens=9),
    "max_tokens": option("max_tokens"),
    "particles": option("particles", sampling="smc"),
    "max_passes": option("max_passes", sampling="exact"),
    "particles of a text": lambda value: text(
        particles=value, sampling="smc", max_tokens=3, seed=1
    ),
    "max_passes of a text": lambda value: text(
        max_passes=value, sampling="exact", max_tokens=3, seed=1
    ),
    "n": lambda value: MODEL.samples("x", Choice(["a"]), n=value),
    "n of exact": lambda value: MODEL.samples(
        "x", SHORT, n=value, sampling="exact", max_tokens=3, seed=1
    ),
    "beams": lambda value: MODEL.beam_search("x", Choice(["a"]), beams=value),
    "max_tokens of beams": lambda value: MODEL.beam_search("x", SHORT, max_tokens=value),
    "length_penalty": lambda value: MODEL.beam_search("x", SHORT, length_penalty=value),
    "whitespace_budget of beams": lambda value: MODEL.beam_search(
        "x", list[bool], beams=2, whitespace_budget=value, max_tokens=5
    ),
    "reasoning": lambda value: MODEL.probabilities("x", Choice(["a"]), reasoning=value),
    "max_rounds": lambda value: Talk("x", max_rounds=value),
    **{
        name: lambda value, name=name: Sampling(**{name: value})  # type: ignore[misc]
        for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed")
    },
    "calls": lambda value: Budget(calls=value),
    "tokens": lambda value: Budget(tokens=value),
    "seconds": lambda value: Budget(seconds=value),
    "cost": lambda value: Budget(cost=value),
    "max_grammar_corrections": lambda value: guided(max_grammar_corrections=value),
    "token_lookahead": lambda value: guided(token_lookahead=value),
    "top_p of guide": lambda value: guided(top_p=value),
    "temperature of guide": lambda value: guided(temperature=value),
    "seed of guide": lambda value: guided(seed=value),
    "token_budget": lambda value: matcher(token_budget=value),
    "max_rollback_tokens": lambda value: matcher(max_rollback_tokens=value),
    "override_stop_tokens": lambda value: matcher(override_stop_tokens=value),
    "whitespace_budget": lambda value: matcher(whitespace_budget=value),
    "token_budget of a fork": lambda value: matcher().fork(token_budget=value),
    "limit": lambda value: matcher().candidates(value),
    "max_tokens of forced drafts": lambda value: matcher().forced_draft_tokens(max_tokens=value),
    "recent_tokens": lambda value: matcher().find_jump_forward_tokens([value]),
    "token": lambda value: matcher().accept_token(value),
    "token of validating": lambda value: matcher().validate_tokens([value]),
    "token of explaining": lambda value: matcher().explain(value),
    "token that is allowed": lambda value: matcher().is_allowed(value),
    "tokens of rolling back": lambda value: matcher().rollback(value),
    "row": lambda value: matcher().fill_next_token_bitmask(BITMASK, value),
    "time_threshold": lambda value: tree(time_threshold=value),
    "root_position": lambda value: tree(root_position=value),
    "token of a batch": lambda value: BatchGrammarMatcher().batch_accept_token(
        [matcher()], [value]
    ),
    "row of a batch": lambda value: BatchGrammarMatcher().batch_fill_next_token_bitmask(
        [matcher()], BITMASK, [value]
    ),
    "max_threads of a batch": BatchGrammarMatcher,
    "max_threads": lambda value: GrammarCompiler(INFO, max_threads=value),
    "cache_limit_bytes": lambda value: GrammarCompiler(INFO, cache_limit_bytes=value),
    "milliseconds of preparing": lambda value: COMPILED.prepare(milliseconds=value),
    "bytes": lambda value: COMPILED.prepare(milliseconds=0, bytes=value),
    "timeout": lambda value: COMPILED.prepare(milliseconds=0).wait(value),
    "max_states": lambda value: TokenIndex.from_grammar(GRAMMAR, INFO, max_states=value),
    "max_bytes": lambda value: TokenIndex.from_grammar(GRAMMAR, INFO, max_bytes=value),
    "max_seconds": lambda value: TokenIndex.from_grammar(GRAMMAR, INFO, max_seconds=value),
    "max_states of a drawing": lambda value: INDEX.to_dot(max_states=value),
    "state": INDEX.allowed_tokens,
    "state of a step": lambda value: INDEX.next_state(value, 0),
    "token of a step": lambda value: INDEX.next_state(0, value),
    "state of a mask": lambda value: INDEX.fill_bitmask(value, BITMASK, 0),
    "row of an index": lambda value: INDEX.fill_bitmask(0, BITMASK, value),
    "batch_size": lambda value: stencilm.allocate_token_bitmask(value, 4),
    "vocab_size of a bitmask": lambda value: stencilm.allocate_token_bitmask(1, value),
    "batch_size of a shape": lambda value: stencilm.get_bitmask_shape(value, 4),
    "vocab_size of logits": lambda value: stencilm.apply_token_bitmask_inplace(
        np.zeros((1, 4), dtype=np.float32), BITMASK[:1], vocab_size=value
    ),
    "indices": lambda value: stencilm.apply_token_bitmask_inplace(
        np.zeros((8, 4), dtype=np.float32), BITMASK, indices=[value]
    ),
    "batch_size of patches": stencilm.MaskPatches,
    "max_rows": lambda value: MaskRows(INFO, max_rows=value),
    "vocab_size": lambda value: TokenizerInfo([b"a"], vocab_size=value),
    "stop_token_ids": lambda value: TokenizerInfo([b"a"] * 8, stop_token_ids=[value]),
    "special_token_ids": lambda value: TokenizerInfo([b"a"] * 8, special_token_ids=[value]),
    "token of decoding": lambda value: INFO.decode_bytes([value]),
    "token shown": lambda value: INFO.dbg_tokens([value]),
    "row of a vocabulary": lambda value: INFO.fill_mask_row(value, BITMASK, 0),
    "indent": lambda value: Grammar.from_json_schema({}, indent=value),
    "max_whitespace": lambda value: Grammar.from_json_schema({}, max_whitespace=value),
    "max_depth": database,
    "first_id": lambda value: stencilm.tools("llama", []).parse("a", first_id=value),
    "max_whitespace of tools": lambda value: stencilm.tools("llama", [], max_whitespace=value),
    "max_new_tokens": lambda value: processor(max_new_tokens=value),
    "reasoning of rows": lambda value: processor(reasoning_budget=value),
    "whitespace_budget of rows": lambda value: processor(whitespace_budget=value),
    "max_tokens of a tag": lambda value: tag(type="any_text", max_tokens=value),
    "max_chars of a tag": lambda value: tag(type="any_text", max_chars=value),
    "min of a tag": lambda value: tag(type="repeat", min=value, max=3, content=tag_of_a),
    "token of a tag": lambda value: tag(type="token", token=value),
    "exclude_tokens of a tag": lambda value: tag(type="exclude_token", exclude_tokens=[value]),
    "prompt": lambda value: stencilm.Prices(prompt=value, output=1.0),
    "output": lambda value: stencilm.Prices(prompt=1.0, output=value),
    "cached": lambda value: stencilm.Prices(prompt=1.0, output=1.0, cached=value),
}
for _name in ("max_tokens", "temperature", "top_p", "top_k", "whitespace_budget", "seed"):
    CALLS[f"{_name} of Ray"] = lambda value, name=_name: Generate(  # type: ignore[misc]
        "tiny", bool, "{x}", **{name: value}
    )

VALUES: list[Any] = [True, None, 2.5, 2.0, math.nan, math.inf, -math.inf, -1, 0, "3", [], object()]
VALUES += [2**31, 2**63, 2**64, 2**70, -(2**70), 10**400, 10**5000, 1e308, -1e-320]
VALUES += [np.int64(3), np.uint8(2), np.float32(0.5), np.float64(math.nan), np.bool_(True)]
VALUES += [np.array([3]), 2**40]

# What Python, NumPy or PyO3 says, which tells the caller nothing of the argument.
INTERNAL = (
    "cannot be interpreted as",
    "too large to convert",
    "not iterable",
    "integer string",
    "int too",
    "object has no attribute",
    "not supported between",
    "unsupported operand",
    "only length-1 arrays",
    "truth value of",
    "C long",
)


@pytest.mark.parametrize("name", CALLS)
def test_a_number_is_taken_or_told(name: str) -> None:
    if "Ray" in name:
        pytest.importorskip("pyarrow")
    for value in VALUES:
        try:
            CALLS[name](value)
        except MemoryError as error:
            # A bitmask of so many rows has a right to be made where there is memory for it.
            assert re.search("no memory for .* batch_size", str(error)), (name, error)
            assert name.startswith(("batch_size", "vocab_size of a bitmask"))
        except (stencilm.StencilError, TypeError, ValueError, LookupError) as error:
            said = str(error)
            assert not any(words in said for words in INTERNAL), (value, error)
            assert name.split(" ")[0] in said, (value, error)


@pytest.mark.parametrize("name", [name for name in CALLS if not name.startswith("reasoning")])
def test_true_is_no_number(name: str) -> None:
    """Python counts with it; whoever gives it means something else."""
    if "Ray" in name:
        pytest.importorskip("pyarrow")
    for value in (True, False, np.bool_(True)):
        with pytest.raises((stencilm.StencilError, TypeError, ValueError)) as caught:
            CALLS[name](value)
        assert name.split(" ")[0] in str(caught.value), value


# What takes three, as an int of NumPy, and does with it what an int does.
NOT_THREE = {"row", "token", "state", "recent_tokens", "override_stop_tokens", "root_position"}


@pytest.mark.parametrize("name", CALLS)
def test_integers_of_numpy_are_integers(name: str) -> None:
    if "Ray" in name:
        pytest.importorskip("pyarrow")

    def outcome(value: Any) -> str:
        try:
            CALLS[name](value)
        except (stencilm.StencilError, TypeError, ValueError, LookupError) as error:
            return f"{type(error).__name__}: {error}"
        return "taken"

    assert outcome(np.int64(3)) == outcome(3)
    assert outcome(np.int64(0)) == outcome(0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (option("max_tokens"), "max_tokens is {}, but must be at least 1 and an integer"),
        (option("particles"), "particles is {}, but must be at least 1 and an integer"),
        (option("top_k"), "top_k is {}, but must be at least 1 and an integer, or None"),
        (CALLS["n"], "n is {}, but must be at least 1 and an integer"),
        (CALLS["beams"], "beams is {}, but must be at least 1 and an integer"),
        (CALLS["max_retries"], "max_retries is {}, but must be an int from 0 up"),
        (CALLS["whitespace_budget of a text"], "is {}, but must be at least 0 and an integer, or"),
    ],
)
def test_what_is_no_integer_is_told_so(call: Call, words: str) -> None:
    for value in (2.5, 2.0, True, "3"):
        with pytest.raises(ValueError, match=words.format(value if value != "3" else "'3'")):
            call(value)


def test_more_than_can_be() -> None:
    with pytest.raises(ValueError, match="n is 2147483648, but must be from 1 to 1048576"):
        CALLS["n"](2**31)
    with pytest.raises(ValueError, match="beams is beyond 64 bits, but must be from 1 to 1048576"):
        CALLS["beams"](2**70)


def test_options_are_plain_numbers() -> None:
    """What goes to providers and to other processes is written as JSON."""
    given: Any = {
        "max_tokens": np.int64(3),
        "temperature": np.float32(0.5),
        "top_k": np.int32(4),
        "seed": np.uint8(5),
        "logit_bias": {np.int64(1): np.float32(2)},
        "reasoning": np.int64(6),
    }
    options = options_of(given)
    found: list[Any] = [options.max_tokens, options.temperature, options.top_k, options.seed]
    found += [options.reasoning, *options.logit_bias.items()]
    assert found == [3, 0.5, 4, 5, 6, (1, 2.0)]
    assert [type(one) for one in found] == [int, float, int, int, int, tuple]
