"""Drawing a token: tables for the rules, a slow twin for the filters, frequencies for the draw."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stencilm.generation.sampling import Normaliser, Sampling, draw

NEVER = -np.inf
# In eighths, so that two logits are equal or well apart, whatever order sums are rounded in.
finite = st.integers(-400, 400).map(lambda eighths: eighths / 8)
rows = st.lists(finite | st.just(float(NEVER)), min_size=1, max_size=40)


def drawn(logits: Any, sampling: Sampling, seed: int = 0) -> int | None:
    random = np.random.Generator(np.random.PCG64(seed))
    return draw(np.array(logits, dtype=np.float32), sampling, random)


def kept_slowly(logits: list[float], sampling: Sampling) -> set[int]:
    """The tokens that top-k and then top-p leave, one by one and in plain Python."""
    order = sorted((i for i, x in enumerate(logits) if x > NEVER), key=lambda i: (-logits[i], i))
    order = order[: sampling.top_k]
    top = logits[order[0]]
    weights = [math.exp((logits[i] - top) / sampling.temperature) for i in order]
    kept, total = [], 0.0
    for token_id, weight in zip(order, weights, strict=True):
        kept.append(token_id)
        total += weight
        if total >= sampling.top_p * sum(weights) * (1 - 1e-9):
            break
    return set(kept)


@pytest.mark.parametrize(
    ("logits", "expected"),
    [
        ([0.0, 2.0, 1.0], 1),
        ([1.0, 3.0, 3.0], 1),  # the lowest id among equals
        ([NEVER, NEVER, -9.0], 2),
        ([NEVER, NEVER], None),
        ([np.inf, 0.0, np.inf], 0),
    ],
)
def test_greedy_takes_the_best(logits: list[float], expected: int | None) -> None:
    assert drawn(logits, Sampling(temperature=0)) == expected
    assert drawn(logits, Sampling(temperature=2.0, top_k=1)) == expected


@given(
    rows,
    st.floats(0.1, 3),
    st.floats(0.05, 1),
    st.none() | st.integers(1, 12),
    st.integers(0, 2**32),
)
def test_a_drawn_token_is_one_that_the_filters_keep(
    logits: list[float], temperature: float, top_p: float, top_k: int | None, seed: int
) -> None:
    sampling = Sampling(temperature=temperature, top_p=top_p, top_k=top_k)
    token_id = drawn(logits, sampling, seed)
    if token_id is None:
        assert all(x == NEVER for x in logits)
    else:
        # At the edge of the nucleus rounding may keep one token more or less than the slow twin.
        wider = Sampling(temperature=temperature, top_p=min(1, top_p * 1.0001), top_k=top_k)
        assert token_id in kept_slowly(logits, sampling) | kept_slowly(logits, wider)


@given(rows, st.integers(0, 2**32))
def test_the_same_seed_draws_the_same_token(logits: list[float], seed: int) -> None:
    sampling = Sampling(temperature=1.0, top_p=0.9)
    assert drawn(logits, sampling, seed) == drawn(logits, sampling, seed)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_frequencies_follow_the_probabilities(temperature: float) -> None:
    logits = np.array([1.0, NEVER, 0.0, -1.0], dtype=np.float32)
    random = np.random.Generator(np.random.PCG64(1))
    sampling = Sampling(temperature=temperature)
    count = 4000
    token_ids = np.array([draw(logits, sampling, random) for _ in range(count)], dtype=np.intp)
    found = np.bincount(token_ids, minlength=4) / count
    expected = np.exp(logits.astype(np.float64) / temperature)
    assert np.abs(found - expected / expected.sum()).max() < 0.03
    assert found[1] == 0


@pytest.mark.parametrize("temperature", [1e-300, 1e-30, 1e-5])
def test_a_tiny_temperature_is_greedy_without_overflow(temperature: float) -> None:
    assert drawn([3e38, 1.0, -3e38], Sampling(temperature=temperature)) == 0


def test_infinite_logits_win() -> None:
    assert {drawn([0.0, np.inf, np.inf], Sampling(temperature=1), seed) for seed in range(40)} == {
        1,
        2,
    }


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        drawn([0.0, np.nan], Sampling())


@given(st.lists(finite, min_size=1, max_size=30))
@settings(max_examples=50)
def test_log_probabilities_are_by_the_log_of_the_sum(logits: list[float]) -> None:
    row: NDArray[np.float32] = np.array([*logits, NEVER], dtype=np.float32)
    normaliser = math.log(sum(math.exp(float(x)) for x in row))
    expected = [float(x) - normaliser for x in row]
    assert Normaliser(row).logprobs(row).tolist() == pytest.approx(expected, abs=1e-4)
    assert [Normaliser(row).logprob(float(x)) for x in row] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("logits", "probabilities"),
    [
        ([np.inf, 0.0, np.inf, NEVER], [0.5, 0, 0.5, 0]),
        ([np.inf, NEVER], [1, 0]),
        ([3e38, 3e38, -3e38], [0.5, 0.5, 0]),
        ([-3e38, -3e38], [0.5, 0.5]),
    ],
)
def test_log_probabilities_of_logits_beyond_all(
    logits: list[float], probabilities: list[float]
) -> None:
    row: NDArray[np.float32] = np.array(logits, dtype=np.float32)
    assert np.exp(Normaliser(row).logprobs(row)).tolist() == pytest.approx(probabilities)
    each = [math.exp(Normaliser(row).logprob(float(x))) for x in row]
    assert each == pytest.approx(probabilities)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"temperature": -1}, "temperature"),
        ({"temperature": math.nan}, "temperature"),
        ({"temperature": math.inf}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_p": math.nan}, "top_p"),
        ({"top_k": 0}, "top_k"),
        ({"top_k": 2.5}, "top_k"),
        ({"min_p": -0.1}, "min_p"),
        ({"min_p": 1.5}, "min_p"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
        ({"frequency_penalty": math.nan}, "frequency_penalty"),
        ({"presence_penalty": math.inf}, "presence_penalty"),
        ({"logit_bias": [1]}, "logit_bias"),
        ({"seed": -1}, "seed"),
        ({"seed": 0.5}, "seed"),
    ],
)
def test_options_out_of_range_are_refused_by_name(options: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=rf"{word} is .*, but must be"):
        Sampling(**options)


def test_biases_are_given_by_token_ids() -> None:
    for wrong in ({"a": 1.0}, {1: math.inf}, {1: "much"}, {-1: 1.0}, {10**30: 1.0}):
        with pytest.raises(ValueError, match="must give finite numbers by token ids"):
            Sampling(logit_bias=wrong)  # type: ignore[arg-type]


def changed_slowly(
    logits: list[float], sampling: Sampling, prompt: list[int], written: list[int]
) -> list[float]:
    """Penalties and biases, one token at a time."""
    changed = []
    for token_id, logit in enumerate(logits):
        if token_id in prompt or token_id in written:
            penalty = sampling.repetition_penalty
            logit = logit / penalty if logit > 0 else logit * penalty
        count = written.count(token_id)
        logit -= sampling.frequency_penalty * count + sampling.presence_penalty * (count > 0)
        changed.append(logit + sampling.logit_bias.get(token_id, 0))
    return changed


@given(
    rows,
    st.lists(st.integers(0, 45), max_size=20),
    st.lists(st.integers(0, 45), max_size=20),
    st.sampled_from([0.5, 1.0, 1.25, 2.0]),
    st.sampled_from([-1.0, 0.0, 0.5]),
    st.sampled_from([-1.0, 0.0, 2.0]),
    st.dictionaries(st.integers(0, 45), st.integers(-80, 80).map(lambda n: n / 8), max_size=6),
)
def test_penalties_and_biases_follow_the_slow_twin(
    logits: list[float],
    prompt: list[int],
    written: list[int],
    repetition: float,
    frequency: float,
    presence: float,
    bias: dict[int, float],
) -> None:
    sampling = Sampling(
        repetition_penalty=repetition,
        frequency_penalty=frequency,
        presence_penalty=presence,
        logit_bias=bias,
    )
    row = np.array(logits, dtype=np.float32)
    random = np.random.Generator(np.random.PCG64(0))
    token_id = draw(row, sampling, random, prompt_ids=prompt, written=written)
    assert row.tolist() == logits  # the caller's row is as it was
    changed = changed_slowly(logits, sampling, prompt, written)
    allowed = [i for i, logit in enumerate(logits) if logit > NEVER]
    if not allowed:
        assert token_id is None
    else:
        assert token_id in allowed
        assert changed[token_id] == pytest.approx(max(changed[i] for i in allowed))


@given(rows, st.floats(0.1, 3), st.floats(0.01, 1), st.integers(0, 2**32))
def test_min_p_keeps_what_is_likely_enough(
    logits: list[float], temperature: float, min_p: float, seed: int
) -> None:
    token_id = drawn(logits, Sampling(temperature=temperature, min_p=min_p), seed)
    if token_id is not None:
        share = math.exp((logits[token_id] - max(logits)) / temperature)
        assert share >= min_p * (1 - 1e-9)
