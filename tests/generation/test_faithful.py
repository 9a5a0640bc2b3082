"""Whole texts come with the probabilities that the model gives to them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import stencilm
from stencilm import Choice, GrammarMatcher, LimitExceeded, Model, ModelError, Regex
from stencilm.generation.sampling import Sampling, weights_of
from stencilm.models.protocol import Prompt

PROMPT = "A colour: "
TYPES: list[Any] = [
    Choice(["red", "green", "blue"]),
    Literal["a", "b", "ab"],
    bool,
    Regex("(yes|no|maybe)!?"),
    Regex("[ab]{1,3}"),
    Regex("x{1,6}"),
    Regex("[0-4]"),
    Literal["one", "two", "three", "four"],
]
TEXTS = 20_000


class RememberingModel:
    """A model that is asked once for each prefix."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.tokenizer_info = model.tokenizer_info
        self.context_size = model.context_size
        self.known: dict[tuple[int, ...], NDArray[np.float32]] = {}

    def encode(self, prompt: Prompt) -> list[int]:
        ids: list[int] = self.model.encode(prompt)
        return ids

    def start(self, prompt_ids: Sequence[int]) -> RememberingSequence:
        return RememberingSequence(self, prompt_ids)


class RememberingSequence:
    """Its sequence."""

    def __init__(self, owner: RememberingModel, prompt_ids: Sequence[int]) -> None:
        self.owner = owner
        self.token_ids = list(prompt_ids)
        self.read = len(self.token_ids)
        self.sequence = owner.model.start(prompt_ids)
        self.holds = list(prompt_ids)

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)

    def crop(self, num_tokens: int) -> None:
        del self.token_ids[num_tokens:]

    def append(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        self.token_ids += token_ids
        key = tuple(self.token_ids)
        if key not in self.owner.known:
            shared = 0
            while shared < min(len(key), len(self.holds)) and key[shared] == self.holds[shared]:
                shared += 1
            self.sequence.crop(shared)
            self.owner.known[key] = self.sequence.append(key[shared:])
            self.holds = list(key)
        return self.owner.known[key].copy()


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(RememberingModel(stencilm.load("tiny").backend))


def conditional(
    model: Model, output_type: Any, sampling: Sampling, max_tokens: int
) -> tuple[dict[str, float], float]:
    """The probability of each text given that it is one of the grammar, and that of the grammar.

    By brute force: every sequence of tokens that the grammar accepts, with its end.
    """
    matcher = GrammarMatcher(model.compile(output_type))
    info = model.tokenizer_info
    prompt_ids = model.backend.encode(PROMPT)
    mask = np.zeros((1, -(-info.vocab_size // 32)), np.int32)
    found: dict[str, float] = {}

    def walk(token_ids: list[int], probability: float) -> None:
        matcher.fill_next_token_bitmask(mask)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: info.vocab_size]
        logits = model.backend.start(prompt_ids).append(token_ids)[: info.vocab_size]
        ids, weights = weights_of(logits, sampling)
        weights = weights / weights.sum()
        for token_id, weight in zip(ids, weights, strict=True):
            if not bits[token_id]:
                continue
            if token_id in info.stop_token_ids:
                text = info.decode_str(token_ids)
                found[text] = found.get(text, 0.0) + probability * weight
            elif len(token_ids) < max_tokens:
                assert matcher.accept_token(int(token_id))
                walk([*token_ids, int(token_id)], probability * weight)
                matcher.rollback(1)
        matcher.fill_next_token_bitmask(mask)

    walk([], 1.0)
    total = sum(found.values())
    return {text: probability / total for text, probability in found.items()}, total


def variation(texts: list[str], expected: dict[str, float]) -> float:
    """The total variation between drawn texts and what is expected."""
    counts = Counter(texts)
    assert counts.keys() <= expected.keys()
    return 0.5 * sum(abs(counts[text] / len(texts) - share) for text, share in expected.items())


@pytest.mark.parametrize("output_type", TYPES, ids=repr)
@pytest.mark.parametrize(("method", "most"), [("exact", 0.01), ("smc", 0.05)])
def test_texts_have_the_probabilities_of_the_model(
    model: Model, output_type: Any, method: Any, most: float
) -> None:
    expected, total = conditional(model, output_type, Sampling(temperature=1.0), 8)
    drawn = model.generate_batch(
        [PROMPT] * TEXTS, output_type, sampling=method, temperature=1.0, max_tokens=8, seed=3
    )
    texts = [one.text for one in drawn]
    noise = 0.4 * sum(math.sqrt(share * (1 - share) / TEXTS) for share in expected.values())
    assert variation(texts, expected) <= max(most, 2 * noise)
    report = drawn[0].sampling
    assert report is not None
    assert report.texts == TEXTS
    assert report.grammar_probability == pytest.approx(total, rel=0.25)
    passes = sum(one.stats.forward_passes for one in drawn)
    assert passes == report.forward_passes < 4 * sum(one.stats.tokens for one in drawn)


def test_masked_texts_have_other_probabilities(model: Model) -> None:
    expected, _ = conditional(model, TYPES[0], Sampling(temperature=1.0), 8)
    drawn = model.generate_batch([PROMPT] * 300, TYPES[0], temperature=1.0, max_tokens=8, seed=3)
    assert variation([one.text for one in drawn], expected) > 0.1
    assert drawn[0].sampling is None


@pytest.mark.parametrize("method", ["exact", "smc"])
@pytest.mark.parametrize(
    "options",
    [{"temperature": 0.6}, {"top_k": 2_000}, {"min_p": 1e-9, "temperature": 1.5}],
    ids=repr,
)
def test_the_options_of_a_draw_make_another_model(
    model: Model, method: Any, options: dict[str, Any]
) -> None:
    sampling = Sampling(**{"temperature": 1.0, **options})
    expected, _ = conditional(model, TYPES[4], sampling, 3)
    texts = model.samples(
        PROMPT, TYPES[4], n=4_000, sampling=method, max_tokens=3, seed=5, **options
    )
    assert variation(texts, expected) <= 0.06


@pytest.mark.parametrize("method", ["exact", "smc"])
def test_texts_end_within_max_tokens(model: Model, method: Any) -> None:
    letters = Regex("[ab]*")
    expected, _ = conditional(model, letters, Sampling(temperature=1.0), 2)
    drawn = model.generate_batch([PROMPT] * 2_000, letters, sampling=method, max_tokens=2, seed=7)
    assert max(one.stats.tokens for one in drawn) <= 2
    assert all(one.finish_reason == "stop" and one.is_complete for one in drawn)
    assert variation([one.text for one in drawn], expected) <= 0.06


def test_one_text_at_a_time_is_exact_too(model: Model) -> None:
    expected, _ = conditional(model, TYPES[1], Sampling(temperature=1.0), 8)
    texts = [
        model(PROMPT, TYPES[1], sampling="exact", seed=seed, max_tokens=8) for seed in range(400)
    ]
    assert variation(texts, expected) <= 0.07


@pytest.mark.parametrize("method", ["exact", "smc"])
def test_every_call_takes_the_option(model: Model, method: Any) -> None:
    options: dict[str, Any] = {"sampling": method, "seed": 11, "max_tokens": 8}
    one = model.generate(PROMPT, bool, **options)
    assert isinstance(one.value, bool)
    assert one.token_ids == tuple(
        event.token_id
        for event in one.trace
        if isinstance(event, stencilm.generation.trace.Sampled)
    )
    assert model.generate(PROMPT, bool, **options).text == one.text
    assert list(model.stream(PROMPT, bool, **options))[-1] == one.value
    both = model.batch(["Yes or no? ", PROMPT], bool, **options)
    assert all(isinstance(value, bool) for value in both)
    events: list[Any] = []
    model.generate(PROMPT, bool, on_event=events.append, **options)
    assert events == list(one.trace)


def test_values_are_typed_and_have_their_limits(model: Model) -> None:
    with pytest.raises(LimitExceeded, match="raise `max_passes`, or use sampling='smc'"):
        model(PROMPT, Regex("[a-z]{40}"), sampling="exact", max_passes=3, seed=1)
    biased = {token_id: 1e6 for token_id in model.backend.encode("zzz")[-1:]}
    with pytest.raises(ModelError, match="a probability of zero to every text"):
        model(PROMPT, Literal["a"], sampling="exact", top_k=2, logit_bias=biased, seed=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "give a temperature above 0"),
        ({"stop": "x"}, "leave out `stop`"),
        ({"finish": "cut"}, "leave out `finish`"),
        ({"particles": 0}, "particles is 0, but must be at least 1"),
        ({"max_passes": None}, "max_passes is None, but must be at least 1"),
        ({"sampling": "best"}, "must be 'masked', 'exact' or 'smc'"),
    ],
    ids=repr,
)
def test_options_that_leave_nothing_to_draw_are_refused(
    model: Model, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        model(PROMPT, bool, **{"sampling": "exact", **options})
