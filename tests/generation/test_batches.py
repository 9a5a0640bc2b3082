"""Beyond one greedy text: batches, samples, beams, streams, asyncio, and transformers' generate."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest
from pydantic import BaseModel, Field

import stencilm
from generation.small_models import (
    byte_tokenizer,
    random_llama,
    random_mamba,
    random_mistral,
    random_qwen2,
    torch,
)
from stencilm.generation import batches
from stencilm.generation.partial import MISSING, partial_value
from stencilm.models.transformers import TransformersRunner

PATTERN = "(ab|ba|[0-9]{2}){2,6}!"


class Person(BaseModel):
    name: str = Field(max_length=9)
    tags: list[str] = Field(max_length=2)
    age: int = Field(ge=0, le=99)


@pytest.fixture(scope="module")
def model() -> stencilm.Model:
    return stencilm.from_transformers(random_llama(), byte_tokenizer())


PROMPTS = ["a", "hello there", "x", "[1, 2"]


@pytest.mark.parametrize("make", [random_llama, random_mistral])
@pytest.mark.parametrize("options", [{}, {"temperature": 1.0, "seed": 3}])
def test_a_batch_writes_what_each_prompt_does_alone(make: Any, options: Any) -> None:
    model = stencilm.from_transformers(make(), byte_tokenizer())
    grammar = stencilm.Regex(PATTERN)
    seed = options.get("seed")
    alone = [
        model.generate(
            prompt, grammar, **options | ({} if seed is None else {"seed": seed + number})
        )
        for number, prompt in enumerate(PROMPTS)
    ]
    together = model.generate_batch(PROMPTS, grammar, **options)
    assert [g.text for g in together] == [g.text for g in alone]
    assert [g.stats.forward_passes for g in together] == [g.stats.forward_passes for g in alone]
    assert model.batch(PROMPTS, grammar, **options) == [g.value for g in alone]


@pytest.mark.parametrize("make", [random_llama, random_mistral, random_qwen2])
def test_rows_that_take_different_numbers_of_tokens_see_what_each_does_alone(make: Any) -> None:
    """A sliding window counts padding between tokens, so there must be none."""
    runner = TransformersRunner(make())
    if not runner.runs_batches:
        pytest.skip("this version of transformers does not keep what leaves the window")
    rows = [[5, 6, 7, 8, 9, 10], [11], [12, 13]]
    batch = runner.start_batch(rows)
    steps: list[list[list[int]]] = [
        [[], [], []],
        [[20], [21, 22, 23, 24, 25], [26, 27]],
        [[30], [31], [32]],
        [[], [41, 42], [43, 44, 45]],
        [[50, 51, 52, 53, 54, 55], [], [56]],
        [[60, 61], [62, 63], [64]],
    ]
    for step in steps:
        found = batch.append_last(step, 2)
        rows = [old + new for old, new in zip(rows, step, strict=True)]
        for row, new, logits in zip(rows, step, found, strict=True):
            alone = runner.forward([row], None, 2)[0]
            for back in range(1, min(2, len(new)) + 1):
                assert np.abs(logits[-back] - alone[-back]).max() < 1e-5
        batch.select([2, 0, 1])
        rows = [rows[2], rows[0], rows[1]]
    assert batch.num_tokens == [len(row) for row in rows]


def test_a_prompt_that_the_model_has_no_room_for_is_named(model: stencilm.Model) -> None:
    limit = model.backend.context_size
    assert limit is not None
    long = "a" * (limit + 10)
    for prompts, which in ((["a", long, "b"], "sequence 1"), ([long], "the sequence")):
        with pytest.raises(stencilm.ModelError, match=f"{which} would hold {limit + 10} tokens"):
            model.generate_batch(prompts, stencilm.Regex("[a-z]{3}"))


def test_a_batch_shares_forward_passes(model: stencilm.Model, monkeypatch: Any) -> None:
    backend: Any = model.backend
    run: list[tuple[int, int]] = []
    forward = backend.forward

    def counted(token_ids: Any, *more: Any, **options: Any) -> Any:
        run.append((len(token_ids), len(token_ids[0])))
        return forward(token_ids, *more, **options)

    monkeypatch.setattr(backend, "forward", counted)
    texts = model.batch(PROMPTS, stencilm.Regex("[a-z]{3}|[0-9]{9}"))
    assert run[0] == (4, len("hello there"))
    assert len(run) <= max(map(len, texts)) + 1
    run.clear()
    model.sample("hello", stencilm.Regex("[a-z]{3}"), n=5, seed=1)
    assert run[0] == (1, 5) and {rows for rows, _ in run[1:]} == {5}


def test_samples_differ_and_repeat_with_their_seed(model: stencilm.Model) -> None:
    grammar = stencilm.Regex("[a-z]{6}")
    values = model.sample("x", grammar, n=4, seed=1)
    assert len(set(values)) == 4
    assert values == model.sample("x", grammar, n=4, seed=1)
    assert values[2] == model("x", grammar, temperature=1.0, seed=3)
    with pytest.raises(ValueError, match="n is 0"):
        model.sample("x", grammar, n=0)


def test_beams_find_the_most_probable_texts(model: stencilm.Model) -> None:
    """The slow twin scores every text of a small grammar."""
    grammar = stencilm.Regex("[abc][abc][abc]")
    found = model.beam_search("x", grammar, beams=27, length_penalty=0)
    assert len(found) == 27 and len({text for text, _ in found}) == 27
    backend: Any = model.backend
    prompt = backend.encode("x")

    def score(text: str) -> float:
        total, ids = 0.0, list(prompt)
        for token in text.encode():
            token_id = model.tokenizer_info.decoded_vocab.index(bytes([token]))
            row = backend.start(ids).append([]).astype(np.float64)
            row = row[: model.tokenizer_info.vocab_size]
            total += row[token_id] - np.log(np.exp(row - row.max()).sum()) - row.max()
            ids.append(token_id)
        return total

    for text, logprob in found:
        assert logprob == pytest.approx(score(text), abs=1e-3)
    assert [p for _, p in found] == sorted((p for _, p in found), reverse=True)
    # More than there are texts, all of whose ways on are looked at.
    assert len(model.beam_search("x", grammar, beams=5000, length_penalty=1e308)) == len(found)
    assert [text for text, _ in model.beam_search("x", grammar, beams=1)] == [model("x", grammar)]
    with pytest.raises(ValueError, match="beams is 0"):
        model.beam_search("x", grammar, beams=0)


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (-np.inf, "probability of zero")])
@pytest.mark.parametrize("step", [0, 2])
def test_beams_need_logits_that_are_of_use(
    model: stencilm.Model, value: float, word: str, step: int, monkeypatch: Any
) -> None:
    backend: Any = model.backend
    forward, calls = backend.forward, []

    def spoiled(*given: Any, **options: Any) -> Any:
        logits = forward(*given, **options)
        calls.append(logits)
        if len(calls) > step:
            columns = 7 if np.isnan(value) else slice(None)  # a single NaN spoils all sums
            logits[..., columns] = value
        return logits

    monkeypatch.setattr(backend, "forward", spoiled)
    with pytest.raises(stencilm.ModelError, match=word):
        model.beam_search("x", stencilm.Regex("[abc][abc][abc]"), beams=3)


# Streams


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", MISSING),
        ("{", {}),
        ('{"na', {}),
        ('{"name": "An', {"name": "An"}),
        ('{"name": "Ann", "tags": [', {"name": "Ann", "tags": []}),
        ('{"name": "Ann", "tags": ["a", "b', {"name": "Ann", "tags": ["a", "b"]}),
        ('{"name": "Ann", "tags": ["a"], "age": 4', {"name": "Ann", "tags": ["a"]}),
        ('{"name": "Ann", "tags": [], "age": 42}', {"name": "Ann", "tags": [], "age": 42}),
    ],
)
def test_partial_values(text: str, shown: Any) -> None:
    value = partial_value(Person, text)
    assert value is MISSING if shown is MISSING else isinstance(value, Person)
    if shown is not MISSING:
        assert value.__dict__ == {"name": None, "tags": None, "age": None} | shown
        assert value.model_fields_set == set(shown)


def test_partial_values_of_other_types() -> None:
    assert partial_value(list[int], "[1, 2, 3") == [1, 2]
    assert vars(partial_value(Point, '{"x": 1, "name": 2')) == {"x": 1, "name": None}
    assert partial_value(Point, '{"x": 1, "name": "a"}') == Point(1, "a")
    assert partial_value(Any, '{"a": [1, {"b": "c') == {"a": [1, {"b": "c"}]}


@dataclasses.dataclass
class Point:
    x: int
    name: str = "origin"


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    ends: list[Point]
    above: Line | None = None


class Registered:
    known: ClassVar[list[type]] = []

    def __init_subclass__(cls) -> None:
        Registered.known.append(cls)


@dataclasses.dataclass
class Named(Registered, Point):
    at: Annotated[Point | int | None, "where"] = None


@pytest.mark.parametrize(
    ("tp", "text", "shown"),
    [
        (Point, '{"x": 1', "Point(x=None, name=None)"),
        (Point, '{"x": 1, "name": "a', "Point(x=1, name='a')"),
        (
            Line,
            '{"ends": [{"x": 1}, {"name": "b',
            "Line(ends=[Point(x=1, name='origin'), Point(x=None, name='b')], above=None)",
        ),
        (
            Line,
            '{"ends": [], "above": {"ends": [{"x"',
            "Line(ends=[], above=Line(ends=[Point(x=None, name=None)], above=None))",
        ),
        (Named, '{"at": {"name": "c', "Named(x=None, name=None, at=Point(x=None, name='c'))"),
        (Point | None, '{"x": 1, "name": "', "Point(x=1, name='')"),
        (Point | Line, '{"name": "', "Point(x=None, name='')"),
        (list[Point | None], '[null, {"name": "a', "[None, Point(x=None, name='a')]"),
        (dict[str, Point], '{"one": {"name": "a', "{'one': Point(x=None, name='a')}"),
    ],
)
def test_unfinished_instances_can_be_shown_and_compared(tp: Any, text: str, shown: str) -> None:
    value = partial_value(tp, text)
    assert repr(value) == shown
    assert value == partial_value(tp, text)
    before = partial_value(tp, text[:1])
    assert (value == before) == (repr(value) == repr(before))
    assert Registered.known == [Named]


@pytest.mark.parametrize("tp", [Point, Line, Named, list[Point], Point | None])
def test_streams_of_dataclasses(tp: Any) -> None:
    model = stencilm.load("tiny")
    values = list(model.stream("One: ", tp, max_tokens=300, seed=3, temperature=1.0))
    assert values[-1] == model("One: ", tp, max_tokens=300, seed=3, temperature=1.0)
    assert [repr(value) for value in values]


def test_a_stream_ends_with_the_value() -> None:
    model = stencilm.load("tiny")
    prompt = "Describe a person as JSON.\n"
    values = list(model.stream(prompt, Person))
    assert values[-1] == model(prompt, Person)
    assert len(values) > 3 and all(isinstance(value, Person) for value in values)
    names = [value.name for value in values if value.name is not None]
    assert all(values[-1].name.startswith(name) for name in names)
    texts = list(model.stream("Is it? ", stencilm.Regex("[a-z]{4}")))
    assert texts[-1].startswith(texts[0]) and len(texts[-1]) == 4


def test_closing_a_stream_stops_the_model(model: stencilm.Model, monkeypatch: Any) -> None:
    backend: Any = model.backend
    passes = []
    forward = backend.forward

    def counted(*arguments: Any, **options: Any) -> Any:
        passes.append(1)
        return forward(*arguments, **options)

    monkeypatch.setattr(backend, "forward", counted)
    stream = model.stream("x", stencilm.Regex("[ab]{50}"), max_tokens=50)
    for text in stream:
        if len(text) == 3:
            break
    stream.close()  # type: ignore[attr-defined]
    assert len(passes) == 3 and list(stream) == []


def test_asyncio() -> None:
    model = stencilm.load("tiny")
    prompt = "Describe a person as JSON.\n"

    async def main() -> None:
        generation, other = await asyncio.gather(
            model.agenerate(prompt, Person), model.agenerate(prompt, Person)
        )
        assert generation.value == other.value == model(prompt, Person)
        values = [value async for value in model.astream(prompt, Person)]
        assert values[-1] == generation.value

    asyncio.run(main())


def test_a_cancelled_task_stops_the_model(model: stencilm.Model, monkeypatch: Any) -> None:
    backend: Any = model.backend
    passes = []
    cancelled = threading.Event()
    forward = backend.forward

    def counted(*arguments: Any, **options: Any) -> Any:
        passes.append(1)
        if len(passes) == 3:
            # Else the model might be done before this thread is asked again.
            assert cancelled.wait(60)
        return forward(*arguments, **options)

    monkeypatch.setattr(backend, "forward", counted)

    async def main() -> int:
        task = asyncio.create_task(model.agenerate("x", stencilm.Regex("[ab]{50}"), max_tokens=50))
        while len(passes) < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        cancelled.set()
        await asyncio.sleep(0.1)
        stopped_at = len(passes)
        await asyncio.sleep(0.1)
        assert len(passes) == stopped_at
        return stopped_at

    assert asyncio.run(main()) < 50


# transformers' own loops


def generated(model: stencilm.Model, **options: Any) -> list[str]:
    """What `generate` of transformers writes after left-padded prompts."""
    backend: Any = model.backend
    tokenizer = backend.tokenizer
    tokenizer.pad_token, tokenizer.padding_side = "</s>", "left"
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    ids = backend.model.generate(
        **inputs, max_new_tokens=30, eos_token_id=257, pad_token_id=257, **options
    )
    return [
        tokenizer.decode(row, skip_special_tokens=True)
        for row in ids[:, inputs["input_ids"].shape[1] :]
    ]


def test_the_logits_processor_keeps_every_row_within_its_grammar(model: stencilm.Model) -> None:
    compiled = model.compile(stencilm.Regex(PATTERN))
    processor = stencilm.LogitsProcessor(compiled)
    greedy = generated(model, logits_processor=[processor], do_sample=False)
    assert greedy == model.batch(PROMPTS, stencilm.Regex(PATTERN))
    matches = stencilm.GrammarMatcher(compiled).longest_valid_prefix
    for options in (
        {"do_sample": True, "num_return_sequences": 3},
        {"do_sample": False, "num_beams": 4, "num_return_sequences": 4},
        {"do_sample": True, "num_beams": 3},
        {"do_sample": False},
    ):
        torch.manual_seed(0)
        texts = generated(model, logits_processor=[processor], **options)
        assert len(texts) == 4 * int(options.get("num_return_sequences", 1))
        assert {matches(text).status for text in texts} == {"complete"}, options


def test_each_prompt_may_have_its_own_grammar(model: stencilm.Model) -> None:
    patterns = ["a{3}", "[0-9]{2}", "(x|y)!", "b"]
    compiled = [model.compile(stencilm.Regex(pattern)) for pattern in patterns]
    for options in (
        {"logits_processor": [stencilm.LogitsProcessor(compiled)], "num_beams": 2},
        {"custom_generate": stencilm.CustomGenerate(compiled)},
    ):
        texts = generated(model, do_sample=False, **options)
        for one, text in zip(compiled, texts, strict=True):
            verdict = stencilm.GrammarMatcher(one).longest_valid_prefix(text)
            assert verdict.status == "complete", options


def test_custom_generate_writes_the_same_in_fewer_passes(model: stencilm.Model) -> None:
    pattern = 'name="[a-c]{3}" value="[0-9]{2}"'
    compiled = model.compile(stencilm.Regex(pattern))
    custom = stencilm.CustomGenerate(compiled)
    texts = generated(model, custom_generate=custom, do_sample=False)
    assert texts == generated(
        model, logits_processor=[stencilm.LogitsProcessor(compiled)], do_sample=False
    )
    assert custom.forward_passes <= 6 < min(map(len, texts))
    torch.manual_seed(1)
    sampled = generated(model, custom_generate=custom, do_sample=True, temperature=2.0)
    assert sampled != texts
    with pytest.raises(ValueError, match="LogitsProcessor"):
        generated(model, custom_generate=custom, num_beams=2)


def test_custom_generate_refuses_recurrent_models() -> None:
    """They read several tokens as a beginning, so what they wrote would not be theirs."""
    mamba, tokenizer = random_mamba(), byte_tokenizer()
    info = stencilm.TokenizerInfo.from_huggingface(tokenizer, vocab_size=264)
    compiled = stencilm.GrammarCompiler(info).compile_regex('name="[a-c]{3}"')
    ids = torch.tensor([[5, 6, 7]])
    options = {"attention_mask": torch.ones_like(ids), "do_sample": False, "max_new_tokens": 20}
    # Before transformers 5.17 `generate` gives it the model's state by name.
    import transformers

    is_newer = tuple(map(int, transformers.__version__.split(".")[:2])) >= (5, 17)
    named = "Mamba" if is_newer else "cache_params"
    with pytest.raises(ValueError, match=f"{named}.*LogitsProcessor"):
        mamba.generate(ids, custom_generate=stencilm.CustomGenerate(compiled), **options)
    processors = [stencilm.LogitsProcessor(compiled)]
    written = mamba.generate(ids, logits_processor=processors, **options)[0, 3:]
    assert info.decode_bytes(written[:10].tolist()).startswith(b'name="')


def test_processors_take_grammars_only() -> None:
    for kind in (stencilm.LogitsProcessor, stencilm.CustomGenerate):
        with pytest.raises(TypeError, match="CompiledGrammar"):
            kind("a")  # type: ignore[arg-type]


SCHEMA = {
    "type": "object",
    "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "string", "maxLength": 5}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


def test_streams_of_schemas_and_of_grammars_of_schemas_and_types(model: stencilm.Model) -> None:
    schema = stencilm.JsonSchema(SCHEMA, any_whitespace=False)
    values = list(model.stream("x", schema, max_tokens=80))
    assert values[0] == {"a": ""} and values[-1] == model("x", schema, max_tokens=80)
    assert [list(value) for value in values] == sorted(list(value) for value in values)
    plain = stencilm.Grammar.from_json_schema(SCHEMA, any_whitespace=False)
    for grammar in (plain, stencilm.Grammar.from_type(bool)):
        texts = list(model.stream("x", grammar, max_tokens=80))
        assert all(texts[-1].startswith(text) for text in texts)
        assert texts[-1] == model("x", grammar, max_tokens=80)

    async def main() -> list[Any]:
        return [value async for value in model.astream("x", schema, max_tokens=80)]

    assert asyncio.run(main()) == values


def test_formats_of_a_schema_may_be_annotations(model: stencilm.Model) -> None:
    schema = {"type": "string", "format": "date", "maxLength": 3}
    with pytest.raises(stencilm.Unsatisfiable):
        model.compile(stencilm.JsonSchema(schema))
    free = stencilm.JsonSchema(schema, formats="annotation")
    assert free != stencilm.JsonSchema(schema)
    assert len(model("x", free)) <= 3


@dataclasses.dataclass(frozen=True)
class Fixed:
    """A `Normaliser` whose sum is given."""

    log_sum: float

    def logprob(self, logit: float) -> float:
        return logit - self.log_sum

    def logprobs(self, logits: Any) -> Any:
        return logits - self.log_sum


def _slow_ways(
    logits: Any, logprobs: Any, normalisers: Any, beams: int
) -> list[tuple[float, int, int]]:
    """The twin of `_ways`: every way is put in order."""
    ways = []
    for place, (logprob, normaliser) in enumerate(zip(logprobs, normalisers, strict=True)):
        row = logits[place]
        for token_id in np.argsort(-row, kind="stable")[: 2 * beams]:
            if row[token_id] > -np.inf:
                way = logprob + normaliser.logprob(float(row[token_id]))
                ways.append((way, place, int(token_id)))
    return sorted(ways, key=lambda way: (-way[0], way[1], way[2]))


@pytest.mark.parametrize("seed", range(20))
def test_ways_of_beams_are_in_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_MORE_WAYS", 1)
    draws = np.random.default_rng(seed)
    rows, width, beams = (int(draws.integers(1, most)) for most in (30, 80, 30))
    # Few different values, so that many ways are as probable as others.
    logits = draws.integers(-3, 3, (rows, width)).astype(np.float32)
    logits[draws.random((rows, width)) < 0.3] = -np.inf
    logprobs = [float(value) for value in draws.integers(-2, 1, rows)]
    # Of whole numbers, so that sums of them are exact.
    normalisers: Any = [Fixed(float(value)) for value in draws.integers(1, 3, rows)]
    slow = _slow_ways(logits, logprobs, normalisers, beams)
    assert list(batches._ways(logits, logprobs, normalisers, beams)) == slow
