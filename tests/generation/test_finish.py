"""Texts that are whole within `max_tokens`: every budget, in every loop."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher
from stencilm.generation.result import IncompleteOutput
from stencilm.generation.trace import Stopped


class Person(BaseModel):
    """What the tiny model is asked for."""

    name: str
    tags: list[str]


@pytest.fixture(scope="module")
def tiny() -> stencilm.Model:
    return stencilm.load("tiny")


@pytest.fixture(scope="module")
def compiled(tiny: stencilm.Model) -> stencilm.CompiledGrammar:
    return tiny.compile(Person)


def test_every_budget_from_the_shortest_on_gives_a_value(
    tiny: stencilm.Model, compiled: stencilm.CompiledGrammar
) -> None:
    shortest = GrammarMatcher(compiled).tokens_to_end()
    reasons = set()
    for max_tokens in range(shortest, shortest + 25):
        for seed in range(2):
            written = tiny.generate(
                "A person:", Person, max_tokens=max_tokens, temperature=1.5, seed=seed
            )
            assert len(written.token_ids) <= max_tokens
            json.loads(written.text)
            if written.error is not None:
                assert max_tokens <= shortest + 1
                assert "model chose nothing" in str(written.error)
                continue
            assert written.is_complete
            assert written.closed is (written.finish_reason == "length")
            reasons.add(written.finish_reason)
            if written.closed:
                (filled,) = written.filled
                assert filled.means == "closed"
                assert filled.end == len(written.text)
                assert written.text[filled.start :] == filled.text
                last = written.trace[-1]
                assert isinstance(last, Stopped)
                assert last.limit == "max_tokens"
    assert reasons == {"stop", "length"}


def test_what_stands_before_is_as_the_model_wrote_it(tiny: stencilm.Model) -> None:
    free = tiny.generate("A person:", Person)
    assert not free.closed
    for max_tokens in range(9, 16):
        closed = tiny.generate("A person:", Person, max_tokens=max_tokens)
        (filled,) = closed.filled
        assert free.text.startswith(closed.text[: filled.start])


@pytest.mark.parametrize("tp", [int, stencilm.Regex("[a-z ]+")], ids=str)
@pytest.mark.parametrize("options", [{}, {"temperature": 1.0, "seed": 3}], ids=str)
def test_a_text_that_the_model_would_go_on_with_is_closed(
    tiny: stencilm.Model, tp: Any, options: dict[str, Any]
) -> None:
    free = tiny.generate("A: ", tp, **options)
    assert free.finish_reason == "stop" and len(free.token_ids) > 2
    for max_tokens in range(1, len(free.token_ids)):
        cut = tiny.generate("A: ", tp, max_tokens=max_tokens, **options)
        assert (cut.finish_reason, cut.closed) == ("length", True)
        assert free.text.startswith(cut.text[: cut.filled[0].start])
        assert cut.filled[0].end == len(cut.text) and cut.value is not None
        last = cut.trace[-1]
        assert isinstance(last, Stopped) and last.limit == "max_tokens"
        (beside,) = tiny.generate_batch(["A: "], tp, max_tokens=max_tokens, **options)
        assert (beside.text, beside.closed, beside.filled) == (cut.text, True, cut.filled)
    # The model would end it there, too; a draw may have ended it against the first choice.
    whole = tiny.generate("A: ", tp, max_tokens=len(free.token_ids), **options)
    assert whole.text == free.text and whole.closed is (whole.finish_reason == "length")
    assert not whole.closed or options
    drafted = tiny.generate("A: ", tp, max_tokens=2, draft="lookup", **options)
    assert drafted.closed and len(drafted.token_ids) == 2


def test_cut_is_an_error_and_so_is_a_budget_that_no_text_fits(tiny: stencilm.Model) -> None:
    with pytest.raises(IncompleteOutput, match=r"max_tokens=12 cut the text of Person"):
        tiny("A person:", Person, max_tokens=12, finish="cut")
    with pytest.raises(IncompleteOutput, match=r"shortest text that was found takes \d+ tokens"):
        tiny("A person:", Person, max_tokens=3)
    assert isinstance(tiny("A person:", Person, max_tokens=12), Person)


def test_streams_batches_samples_and_beams_close_too(tiny: stencilm.Model) -> None:
    *_, last = tiny.stream("A person:", Person, max_tokens=12)
    assert isinstance(last, Person)
    assert all(isinstance(one, Person) for one in tiny.batch(["A:", "B:"], Person, max_tokens=12))
    for one in tiny.samples("A person:", Person, n=3, max_tokens=12, seed=1):
        assert isinstance(one, Person)
    assert tiny.beam_search("A person:", Person, beams=2, max_tokens=12)


def test_a_matcher_says_what_its_budget_takes(compiled: stencilm.CompiledGrammar) -> None:
    matcher = GrammarMatcher(compiled)
    shortest = matcher.tokens_to_end()
    assert (matcher.token_budget, matcher.token_budget_left) == (None, None)
    with pytest.raises(stencilm.MatcherError, match=rf"is {shortest - 1}, .* takes {shortest} tok"):
        GrammarMatcher(compiled, token_budget=shortest - 1)
    matcher = matcher.fork(token_budget=shortest)
    assert (matcher.token_budget, matcher.token_budget_left) == (shortest, shortest)
    info = compiled.tokenizer_info
    mask = np.zeros(-(-info.vocab_size // 32), dtype=np.int32)
    plain = mask.copy()
    matcher.fill_next_token_bitmask(mask)
    GrammarMatcher(compiled).fill_next_token_bitmask(plain)
    assert matcher.is_narrowed
    withheld = np.zeros(mask.size * 32, dtype=np.uint8)
    withheld[matcher.withheld_tokens()] = 1
    assert np.array_equal(np.packbits(withheld, bitorder="little").view(np.int32), plain & ~mask)
    allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
    assert matcher.num_allowed_tokens() == len(allowed)
    assert all(matcher.is_allowed(int(token)) for token in allowed)
    assert not any(matcher.is_allowed(int(token)) for token in matcher.withheld_tokens()[:50])
    with pytest.raises((TypeError, ValueError)):
        GrammarMatcher(compiled, token_budget=-1)


@pytest.mark.parametrize("canonical", [False, True])
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "uniqueItems": True},
        {"type": "array", "items": {}, "minItems": 2},
        {"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}},
        {"type": "string", "format": "date-time"},
        {"type": "object", "minProperties": 3},
    ],
)
def test_random_models_close_their_texts(
    tiny: stencilm.Model, schema: dict[str, object], canonical: bool
) -> None:
    info = tiny.tokenizer_info
    compiled = GrammarCompiler(info).compile(Grammar.from_json_schema(json.dumps(schema)))
    shortest = GrammarMatcher(compiled, canonical=canonical).tokens_to_end()
    mask = np.zeros(-(-info.vocab_size // 32), dtype=np.int32)
    for budget in [*range(shortest, shortest + 6), shortest + 12, shortest + 20]:
        draw = random.Random(budget)
        matcher = GrammarMatcher(compiled, token_budget=budget, canonical=canonical)
        tokens: list[int] = []
        while not matcher.is_terminated():
            matcher.fill_next_token_bitmask(mask)
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            tokens.append(int(draw.choice(list(allowed))))
            assert matcher.accept_token(tokens[-1])
        assert len(tokens) - 1 <= budget
        text = b"".join(info.decoded_vocab[token] or b"" for token in tokens[:-1])
        json.loads(text)
        if canonical:
            written = tiny.backend.encode(text.decode())
            assert tokens[:-1] == list(written[len(written) - len(tokens) + 1 :])


def test_the_loops_of_transformers_close_their_rows(
    tiny: stencilm.Model, compiled: stencilm.CompiledGrammar
) -> None:
    backend: Any = tiny.backend
    model, tokenizer = backend.model, backend.tokenizer
    inputs = tokenizer("A person:", return_tensors="pt")
    most = 12

    def written(**options: object) -> str:
        ids = model.generate(**inputs, max_new_tokens=most, do_sample=False, **options)
        new = ids[0, inputs["input_ids"].shape[1] :]
        assert len(new) <= most
        return str(tokenizer.decode(new, skip_special_tokens=True))

    processor = stencilm.LogitsProcessor(compiled, max_new_tokens=most)
    Person.model_validate_json(written(logits_processor=[processor]))
    Person.model_validate_json(written(custom_generate=stencilm.CustomGenerate(compiled)))
    cut = stencilm.CustomGenerate(compiled, finish="cut")
    with pytest.raises(ValueError):
        Person.model_validate_json(written(custom_generate=cut))
    with pytest.raises(ValueError, match="finish is 'any'"):
        stencilm.CustomGenerate(compiled, finish="any")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_new_tokens is 0"):
        stencilm.LogitsProcessor(compiled, max_new_tokens=0)


HOST = {"type": "string", "format": "hostname", "maxLength": 20}
ENTRY = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "name": HOST},
    "required": ["id", "name"],
}


@pytest.mark.parametrize("spare", [0, 3, 30])
@pytest.mark.parametrize("element", [HOST, ENTRY], ids=["names", "objects"])
def test_lists_of_distinct_host_names_end_within_their_budget(
    tiny: stencilm.Model, element: dict[str, Any], spare: int
) -> None:
    schema = {"type": "array", "items": element, "uniqueItems": True, "minItems": 4}
    compiled = tiny.compile(Grammar.from_json_schema(schema))
    info = tiny.tokenizer_info
    budget = GrammarMatcher(compiled).tokens_to_end() + spare
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    for seed in range(4):
        draw = random.Random(seed)
        matcher, tokens = GrammarMatcher(compiled, token_budget=budget), []
        while not matcher.is_terminated():
            matcher.fill_next_token_bitmask(mask)
            bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: info.vocab_size]
            tokens.append(draw.choice([int(token) for token in np.flatnonzero(bits)]))
            assert matcher.accept_token(tokens[-1])
        written = [token for token in tokens if token not in info.stop_token_ids]
        assert len(written) <= budget
        value = json.loads(info.decode_str(written))
        assert len(value) >= 4
        assert all(one != other for at, one in enumerate(value) for other in value[:at])


def test_a_budget_is_narrowed_within_a_format_of_very_many_places(tiny: stencilm.Model) -> None:
    items = {"type": "string", "format": "regex", "minLength": 1, "maxLength": 40}
    schema = {"type": "array", "items": items, "uniqueItems": True, "minItems": 2, "maxItems": 6}
    matcher = GrammarMatcher(tiny.compile(Grammar.from_json_schema(schema)))
    assert matcher.accept_string('[": clean')
    matcher = matcher.fork(token_budget=matcher.tokens_to_end() + 2)
    mask = np.zeros((tiny.tokenizer_info.vocab_size + 31) // 32, dtype=np.int32)
    assert matcher.fill_next_token_bitmask(mask)
    assert mask.any()


def test_host_names_beside_numbers_are_not_gone_through_one_by_one(tiny: stencilm.Model) -> None:
    name = {"type": "string", "format": "hostname", "maxLength": 40}
    items = {"anyOf": [name, {"type": "integer"}]}
    schema = {"type": "array", "items": items, "uniqueItems": True, "minItems": 2}
    compiler = GrammarCompiler(tiny.tokenizer_info, cache_enabled=False)
    matcher = GrammarMatcher(compiler.compile_json_schema(json.dumps(schema)))
    before = compiler.get_shared_size_bytes()
    assert matcher.tokens_to_end() == 5
    assert compiler.get_shared_size_bytes() - before < 20_000_000


@pytest.mark.parametrize("name", ["uuid", "email", "hostname"])
def test_what_is_left_of_a_budget_is_enough_for_a_fork(tiny: stencilm.Model, name: str) -> None:
    items = {"type": "string", "format": name, "maxLength": 40}
    schema = {"type": "array", "items": items, "uniqueItems": True, "minItems": 3}
    compiled = tiny.compile(Grammar.from_json_schema(schema))
    info = tiny.tokenizer_info
    budget = GrammarMatcher(compiled).tokens_to_end() + 4
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    for seed in range(4):
        draw = random.Random(seed)
        matcher = GrammarMatcher(compiled, token_budget=budget)
        while True:
            matcher.fill_next_token_bitmask(mask)
            bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: info.vocab_size]
            assert matcher.accept_token(draw.choice([int(token) for token in np.flatnonzero(bits)]))
            if matcher.is_terminated():
                break
            left = matcher.token_budget_left
            assert left is not None
            assert matcher.fork(token_budget=left).tokens_to_end() <= left


def mask_within(
    compiled: stencilm.CompiledGrammar, text: str, left: int
) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The mask after a text with so many tokens left."""
    token_ids = compiled.tokenizer_info.tokenize_bytes(text.encode())
    matcher = GrammarMatcher(compiled, token_budget=len(token_ids) + left)
    assert all(matcher.accept_token(token_id) for token_id in token_ids)
    words = -(-compiled.tokenizer_info.vocab_size // 32)
    bitmask = np.zeros((1, words), dtype=np.int32)
    matcher.fill_next_token_bitmask(bitmask)
    return bitmask


@pytest.mark.parametrize("left_before", [3, 5, 8])
def test_a_way_that_is_too_long_behind_one_text_may_fit_behind_another(
    tiny: stencilm.Model, left_before: int
) -> None:
    grammar = Grammar.from_type(dict[str, int], compact=True)
    compiler = GrammarCompiler(tiny.tokenizer_info, cache_enabled=False)
    for left in range(3, 9):
        alone = mask_within(compiler.compile_grammar(grammar), '{"b":1,"', left)
        compiled = compiler.compile_grammar(grammar)
        mask_within(compiled, '{"a":1,"', left_before)
        assert (mask_within(compiled, '{"b":1,"', left) == alone).all()


def test_a_declared_key_is_none_of_the_cheap_additional_ones(tiny: stencilm.Model) -> None:
    numbers = {"type": "array", "items": {"type": "integer"}, "minItems": 20}
    schema = {
        "type": "object",
        "properties": {"b": numbers},
        "additionalProperties": {"type": "integer"},
        "minProperties": 1,
    }
    compiled = tiny.compile(Grammar.from_json_schema(schema, compact=True))
    (quote,) = compiled.tokenizer_info.tokenize_bytes(b'"')
    for left in (10, 20, 30):
        mask = mask_within(compiled, '{"b', left)
        assert not mask[0, quote // 32] >> (quote % 32) & 1
    mask = mask_within(compiled, '{"b', 60)
    assert mask[0, quote // 32] >> (quote % 32) & 1
