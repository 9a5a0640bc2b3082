"""The key-value cache after any walk of appends and crops: logits as those of a fresh pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from generation.small_models import (
    byte_tokenizer,
    random_llama,
    random_mamba,
    random_mistral,
    torch,
)
from stencilm.models.kv_cache import records_past

CASES = [
    (random_llama, None),
    (random_llama, 48),
    (random_mistral, None),
    (random_mistral, 48),
    (random_mamba, None),
]
# Where transformers' windows cannot keep their past, what a cut leaves of them is read again.
NEVER_RECOMPUTED = [case for case in CASES[:3] if case[0] is not random_mistral or records_past()]


def started(make: Any, static_cache: int | None) -> Any:
    from stencilm.models.transformers import TransformersModel

    backend = TransformersModel(make(), byte_tokenizer(), static_cache=static_cache)
    return backend, backend.start([1, 2, 3])


def full_pass(model: Any, token_ids: list[int]) -> Any:
    """The slow twin: the whole sequence at once, without a cache."""
    with torch.no_grad():
        return model(input_ids=torch.tensor([token_ids]), use_cache=False).logits[0].numpy()


@pytest.mark.parametrize(("make", "static_cache"), CASES)
@pytest.mark.parametrize("seed", range(3))
def test_random_walks_give_the_logits_of_a_fresh_pass(
    make: Any, static_cache: int | None, seed: int
) -> None:
    backend, sequence = started(make, static_cache)
    random = np.random.default_rng(seed)
    token_ids = [1, 2, 3]
    for _ in range(25):
        if random.random() < 0.4:
            token_ids = token_ids[: int(random.integers(1, len(token_ids) + 1))]
            sequence.crop(len(token_ids))
        new = [int(token) for token in random.integers(0, 256, int(random.integers(0, 6)))]
        new = new[: 48 - len(token_ids)]
        token_ids += new
        rows = int(random.integers(1, min(len(new) + 1, len(token_ids)) + 1))
        logits = sequence.append_rows(new, rows)
        assert (logits.dtype, logits.shape) == (np.float32, (rows, 264))
        np.testing.assert_allclose(logits, full_pass(backend.model, token_ids)[-rows:], atol=2e-5)


@pytest.mark.parametrize(("make", "static_cache"), NEVER_RECOMPUTED)
def test_what_a_crop_leaves_is_not_computed_again(
    make: Any, static_cache: int | None, monkeypatch: Any
) -> None:
    backend, sequence = started(make, static_cache)
    run: list[int] = []
    forward = backend.forward

    def counted(token_ids: Any, *more: Any) -> Any:
        run.append(len(token_ids[0]))
        return forward(token_ids, *more)

    monkeypatch.setattr(backend, "forward", counted)
    sequence.append([4, 5, 6, 7, 8, 9])
    sequence.crop(5)
    sequence.append([10])
    sequence.crop(3)
    assert sequence.num_cached == 3
    sequence.append([11, 12])
    assert run == [9, 1, 2]


@pytest.mark.parametrize(
    ("make", "static_cache", "refuses", "expected"),
    [
        (random_llama, None, False, True),
        (random_llama, None, True, False),  # it wants a mask of another shape
        (random_llama, 48, False, None),  # its mask is as wide as its buffer
        (random_mistral, None, False, None),  # its window needs another mask than full attention
    ],
)
def test_small_models_get_a_mask_where_they_read_it(
    make: Any, static_cache: int | None, refuses: bool, expected: Any, monkeypatch: Any
) -> None:
    backend, sequence = started(make, static_cache)
    given: list[bool] = []
    run = backend._run

    def watched(token_ids: Any, cache: Any, rows: int, more: Any) -> Any:
        if more and refuses:
            raise ValueError("a mask has two dimensions")
        given.append(bool(more))
        return run(token_ids, cache, rows, more)

    monkeypatch.setattr(backend, "_run", watched)
    sequence.append([4, 5])
    for _ in range(2):
        logits = sequence.append_rows([6, 7], 2)
    assert backend._takes_own_masks is expected
    assert given[-1] is bool(expected)
    tokens = [1, 2, 3, 4, 5, 6, 7, 6, 7]
    np.testing.assert_allclose(logits, full_pass(backend.model, tokens)[-2:], atol=2e-5)


def test_a_static_cache_bounds_the_sequence() -> None:
    from stencilm.errors import ModelError

    backend, sequence = started(random_llama, 5)
    assert backend.context_size == 5
    sequence.append([4, 5])
    with pytest.raises(ModelError, match="at most 5"):
        sequence.append([6])


@pytest.mark.parametrize("rows", [0, 5])
def test_rows_must_be_there(rows: int) -> None:
    _, sequence = started(random_llama, None)
    with pytest.raises(ValueError, match=f"rows is {rows}"):
        sequence.append_rows([4], rows)
    assert sequence.num_tokens == 3


def test_the_size_of_a_static_cache_is_checked() -> None:
    with pytest.raises(ValueError, match="static_cache is 0"):
        started(random_llama, 0)
