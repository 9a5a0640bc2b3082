"""Drafts save forward passes, and change neither texts nor their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import BaseModel

import stencilm
from bench.faithful import RememberingModel, conditional, variation
from stencilm import Choice, Model, Regex, TokenizerError, TokenizerInfo
from stencilm.generation.batches import BranchingText
from stencilm.generation.drafts import DraftedSequence
from stencilm.generation.sampling import Sampling
from stencilm.models.embedded import EmbeddedModel
from stencilm.models.sequences import CachedSequence

PROMPT = "A colour: "


class Person(BaseModel):
    name: str
    age: int
    hobbies: list[str]


class People(BaseModel):
    people: list[Person]


class WrongModel:
    """Guesses that are allowed and seldom right: each token's logit is drawn anew."""

    context_size = None

    def __init__(self, info: TokenizerInfo) -> None:
        self.tokenizer_info = info
        self.random = np.random.Generator(np.random.PCG64(1))

    def encode(self, prompt: Any) -> list[int]:
        raise AssertionError("a draft model reads tokens")

    def start(self, prompt_ids: Sequence[int]) -> Any:
        return self

    num_tokens = 0

    def append(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        row = self.random.normal(size=self.tokenizer_info.vocab_size) * 100
        return row.astype(np.float32)

    def crop(self, num_tokens: int) -> None:
        pass


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(RememberingModel(stencilm.load("tiny").backend))


@pytest.fixture(scope="module")
def numpy_model() -> Model:
    return Model(EmbeddedModel())


def drafts(model: Model) -> list[Any]:
    return ["lookup", model, WrongModel(model.tokenizer_info)]


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("number", range(3))
def test_a_text_is_the_same_with_and_without(
    numpy_model: Model, temperature: float, number: int
) -> None:
    options: dict[str, Any] = {"temperature": temperature, "seed": 4, "max_tokens": 90}
    prompt = "Describe some persons as JSON.\n"
    alone = numpy_model.generate(prompt, People, **options)
    drafted = numpy_model.generate(prompt, People, draft=drafts(numpy_model)[number], **options)
    assert drafted.token_ids == alone.token_ids
    assert drafted.value == alone.value
    assert [type(event) for event in drafted.trace] == [type(event) for event in alone.trace]
    passes = drafted.stats.forward_passes + drafted.stats.saved_passes
    assert passes == alone.stats.forward_passes
    assert alone.stats.saved_passes == 0
    if number < 2 and temperature == 0:
        assert drafted.stats.forward_passes < 0.9 * alone.stats.forward_passes


def test_every_call_takes_a_draft(numpy_model: Model) -> None:
    prompts = ["A list: ", "Numbers: "]
    options: dict[str, Any] = {"seed": 2, "temperature": 0.7, "max_tokens": 40}
    expected = numpy_model.batch(prompts, list[int], **options)
    for draft in drafts(numpy_model):
        assert numpy_model.batch(prompts, list[int], draft=draft, **options) == expected
        assert numpy_model(prompts[0], list[int], draft=draft, **options) == expected[0]
        last = list(numpy_model.stream(prompts[0], list[int], draft=draft, **options))[-1]
        assert last == expected[0]
    reasoned = numpy_model.generate("A number: ", int, reasoning=8, draft="lookup", max_tokens=8)
    assert isinstance(reasoned.value, int)


@pytest.mark.parametrize("method", ["exact", "smc"])
@pytest.mark.parametrize("output_type", [Choice(["red", "green", "blue"]), Regex("(ab|ba){1,2}c?")])
@pytest.mark.parametrize("number", range(3))
def test_drafted_texts_have_the_probabilities_of_the_model(
    model: Model, method: Any, output_type: Any, number: int
) -> None:
    expected, total = conditional(model, output_type, Sampling(temperature=1.0), 8)
    drawn = model.generate_batch(
        [PROMPT] * 8_000,
        output_type,
        sampling=method,
        draft=drafts(model)[number],
        max_tokens=8,
        seed=3,
    )
    assert variation([one.text for one in drawn], expected) <= 0.02
    report = drawn[0].sampling
    assert report is not None
    assert report.grammar_probability == pytest.approx(total, rel=0.25)


@pytest.mark.parametrize("method", ["exact", "smc"])
def test_drafted_texts_of_one_draw_take_fewer_passes(model: Model, method: Any) -> None:
    output_type = Choice(["red", "green", "blue"])
    passes = {}
    for draft in (None, "lookup", model):
        found = [
            model.generate(
                PROMPT, output_type, sampling=method, draft=draft, seed=seed, max_tokens=8
            )
            for seed in range(4)
        ]
        passes[draft] = sum(one.stats.forward_passes for one in found)
    assert passes["lookup"] < passes[None]
    assert passes[model] < passes[None]


@pytest.mark.parametrize("method", ["exact", "smc"])
@pytest.mark.parametrize("draft", [None, "lookup"])
def test_each_prompt_of_a_batch_has_its_own_probabilities(
    model: Model, method: Any, draft: Any
) -> None:
    output_type = Literal["a", "b", "ab"]
    prompts = [PROMPT, "Yes or no? "]
    texts = model.generate_batch(
        prompts * 3_000, output_type, sampling=method, draft=draft, max_tokens=8, seed=5
    )
    shares = []
    for number, prompt in enumerate(prompts):
        expected, _ = conditional(model, output_type, Sampling(temperature=1.0), 8, prompt)
        shares.append(expected["a"])
        assert variation([one.text for one in texts[number::2]], expected) <= 0.03
    assert abs(shares[0] - shares[1]) > 0.1, "the prompts ask for different texts"


def test_particles_share_a_pass_where_the_model_runs_batches() -> None:
    pytest.importorskip("torch")
    model = stencilm.load("tiny")
    if not getattr(model.backend, "runs_batches", False):
        pytest.skip("tiny runs in NumPy here")
    output_type = Regex("(the |a )?(red|green|blue) (cat|dog)s?")
    prompt = "A colour and an animal: "
    tokens = passes = 0
    for seed in range(6):
        one = model.generate(prompt, output_type, sampling="smc", seed=seed, max_tokens=12)
        tokens += one.stats.tokens
        passes += one.stats.forward_passes
    assert passes <= 4 * tokens
    options: dict[str, Any] = {"sampling": "smc", "particles": 2_000, "max_tokens": 8, "seed": 2}
    for kind in (Choice(["red", "green", "blue"]), Regex("(ab|ba){1,2}c?"), Regex("x{1,6}")):
        expected, total = conditional(model, kind, Sampling(temperature=1.0), 8)
        drawn = model.generate_batch([PROMPT] * 2_000, kind, **options)
        assert variation([one.text for one in drawn], expected) <= 0.02
        report = drawn[0].sampling
        assert report is not None
        assert report.grammar_probability == pytest.approx(total, rel=0.25)


class DigestBatch:
    """Rows whose logits are a digest of all of their tokens."""

    def __init__(self, prompt: Sequence[int]) -> None:
        self.rows, self.passes = [list(prompt)], 0

    def append(self, token_ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        return self.append_last(token_ids, 1)[:, 0]

    def append_last(self, token_ids: Sequence[Sequence[int]], count: int) -> NDArray[np.float32]:
        self.passes += 1
        found = np.full((len(self.rows), count, 1), np.nan, np.float32)
        for row, (held, added) in enumerate(zip(self.rows, token_ids, strict=True)):
            held += added
            for back in range(min(count, len(added))):
                found[row, count - 1 - back] = digest(held[: len(held) - back])
            if not added:
                found[row, -1] = digest(held)
        return found

    def select(self, rows: Sequence[int]) -> None:
        self.rows = [list(self.rows[row]) for row in rows]


def digest(token_ids: Sequence[int]) -> int:
    return hash(tuple(token_ids)) % 10_000


@given(st.data())
def test_branching_texts_have_the_logits_of_each_alone(data: Any) -> None:
    batch = DigestBatch([7])
    branches = BranchingText(batch)
    texts: list[list[int]] = [[]]
    for _ in range(data.draw(st.integers(1, 6))):
        asked, counts = [], []
        for _ in range(data.draw(st.integers(1, 4))):
            begun = data.draw(st.sampled_from(texts))
            asked.append([*begun, *data.draw(st.lists(st.integers(0, 2), max_size=3))])
            counts.append(data.draw(st.integers(1, len(asked[-1]) + 1)))
        before = batch.passes
        found = branches.logits(asked, counts)
        assert batch.passes <= before + 1 and branches.passes == batch.passes
        for text, count, rows in zip(asked, counts, found, strict=True):
            ends = range(len(text) - count + 1, len(text) + 1)
            assert [float(row[0]) for row in rows] == [digest([7, *text[:end]]) for end in ends]
        texts = asked


def test_drafts_that_are_none_are_refused(numpy_model: Model) -> None:
    with pytest.raises(TypeError, match="draft is 'prompt', but must be 'lookup', or a local"):
        numpy_model(PROMPT, bool, draft="prompt")  # type: ignore[call-overload]
    other = WrongModel(TokenizerInfo([b"a", b"b", b"</s>"], stop_token_ids=[2]))
    with pytest.raises(TokenizerError, match="vocabulary of 3 tokens that spell other texts"):
        numpy_model(PROMPT, bool, draft=other)


class CountingModel:
    """The logits after tokens are one number: a digest of them."""

    context_size = 64

    def new_cache(self) -> None:
        return None

    def read(self, token_ids: Sequence[int], cache: Any, rows: int) -> NDArray[np.float32]:
        found = [
            hash(tuple(token_ids[:end])) % 1_000
            for end in range(len(token_ids) - rows + 1, len(token_ids) + 1)
        ]
        return np.array(found, dtype=np.float32)[:, None]


@given(st.data())
def test_a_drafted_sequence_is_the_sequence(data: Any) -> None:
    tokens = st.integers(0, 2)
    plain = CachedSequence(CountingModel(), [7])
    drafted = DraftedSequence(
        CachedSequence(CountingModel(), [7]),
        [7],
        lambda held: data.draw(st.lists(tokens, max_size=min(4, 64 - len(held)))),
    )
    for _ in range(data.draw(st.integers(1, 12))):
        if plain.num_tokens > 1 and data.draw(st.booleans()):
            kept = data.draw(st.integers(1, plain.num_tokens))
            plain.crop(kept)
            drafted.crop(kept)
        added = data.draw(st.lists(tokens, max_size=min(4, 64 - plain.num_tokens)))
        assert plain.append(added) == drafted.append(added)
        assert plain.num_tokens == drafted.num_tokens
