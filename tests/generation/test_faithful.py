"""Whole texts come with the probabilities that the model gives to them."""

from __future__ import annotations

from typing import Any, Literal

import pytest

import stencilm
from bench.faithful import RememberingModel, conditional, noise, variation
from stencilm import Choice, LimitExceeded, Model, ModelError, Regex
from stencilm.generation import faithful
from stencilm.generation.sampling import Sampling
from stencilm.generation.trace import Sampled

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


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(RememberingModel(stencilm.load("tiny").backend))


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
    assert variation(texts, expected) <= max(most, 2 * noise(expected, TEXTS))
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


@pytest.mark.parametrize("method", ["exact", "smc"])
@pytest.mark.parametrize("kept", [300, 1_000])
def test_what_is_forgotten_costs_passes_and_is_no_error(
    model: Model, method: Any, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faithful, "_KEPT_BYTES", kept)
    expected, total = conditional(model, TYPES[4], Sampling(temperature=1.0), 8)
    options: dict[str, Any] = {"sampling": method, "max_tokens": 8, "seed": 13}
    drawn = model.generate_batch([PROMPT] * 2_000, TYPES[4], **options)
    assert variation([one.text for one in drawn], expected) <= 0.07
    report = drawn[0].sampling
    assert report is not None
    assert report.grammar_probability == pytest.approx(total, rel=0.3)
    monkeypatch.undo()
    others = model.generate_batch([PROMPT] * 2_000, TYPES[4], **options)
    assert others[0].sampling is not None
    assert others[0].sampling.forward_passes < report.forward_passes


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
        event.token_id for event in one.trace if isinstance(event, Sampled)
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
    with pytest.raises(
        LimitExceeded, match="particles is 2147483648, which take 137438953472 bytes"
    ):
        model(PROMPT, Literal["a"], sampling="smc", particles=2**31)
    biased = {token_id: 1e6 for token_id in model.backend.encode("zzz")[-1:]}
    with pytest.raises(ModelError, match="a probability of zero to every text"):
        model(PROMPT, Literal["a"], sampling="exact", top_k=2, logit_bias=biased, seed=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "give a temperature above 0"),
        ({"top_k": 1}, "top_k=1 leaves nothing to chance: give a greater top_k"),
        ({"stop": "x"}, "leave out `stop`"),
        ({"finish": "cut"}, "leave out `finish`"),
        ({"particles": 0}, "particles is 0, but must be at least 1"),
        ({"max_passes": 0}, "max_passes is 0, but must be at least 1"),
        ({"sampling": "best"}, "must be 'masked', 'exact' or 'smc'"),
    ],
    ids=repr,
)
def test_options_that_leave_nothing_to_draw_are_refused(
    model: Model, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        model(PROMPT, bool, **{"sampling": "exact", **options})
