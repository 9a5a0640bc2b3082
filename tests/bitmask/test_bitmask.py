"""Bitmasks: every way of applying one equals a loop over bits, and a bad one writes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import stencilm
from stencilm import (
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    bitmask_dtype,
    get_bitmask_shape,
    reset_token_bitmask,
)

try:
    import torch
except ImportError:
    torch = None

try:
    import mlx.core as mx
except ImportError:
    mx = None

needs_mlx = pytest.mark.skipif(mx is None, reason="mlx is not installed")
needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")


def naive(
    logits: NDArray[Any], bitmask: NDArray[np.int32], vocab_size: int, rows: list[int]
) -> NDArray[Any]:
    """The slow twin: one bit at a time."""
    expected = logits.copy()
    for row in rows:
        for token in range(logits.shape[1]):
            word = int(bitmask[row, token // 32]) if token < vocab_size else 0
            if not word >> (token % 32) & 1:
                expected[row, token] = -np.inf
    return expected


def random_case(
    seed: int, rows: int, width: int, vocab_size: int
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    random = np.random.default_rng(seed)
    shape = get_bitmask_shape(rows, vocab_size)
    bitmask = random.integers(-(2**31), 2**31, shape, dtype=np.int64).astype(np.int32)
    return random.standard_normal((rows, width)), bitmask


CASES = st.tuples(
    st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 140), st.integers(0, 70)
).map(lambda case: (*random_case(case[0], case[1], case[2] + case[3], case[2]), case[2]))


@given(case=CASES, dtype=st.sampled_from([np.float16, np.float32, np.float64]), data=st.data())
def test_numpy_equals_the_slow_twin(case: Any, dtype: Any, data: st.DataObject) -> None:
    values, bitmask, vocab_size = case
    logits = values.astype(dtype)
    rows = list(range(len(logits)))
    if data.draw(st.booleans()):
        rows = data.draw(st.lists(st.sampled_from(rows)))
    expected = naive(logits, bitmask, vocab_size, rows)
    apply_token_bitmask_inplace(logits, bitmask, vocab_size=vocab_size, indices=rows)
    np.testing.assert_array_equal(logits, expected)


@needs_torch
@given(
    case=CASES,
    dtype=st.sampled_from(["float16", "bfloat16", "float32", "float64"]),
    backend=st.sampled_from(["auto", "cpu", "numpy", "torch"]),
    is_array=st.booleans(),
    rows=st.one_of(st.none(), st.lists(st.just(0), max_size=2)),
)
def test_torch_equals_numpy(
    case: Any, dtype: str, backend: Any, is_array: bool, rows: list[int] | None
) -> None:
    values, bitmask, vocab_size = case
    logits = torch.from_numpy(values).to(getattr(torch, dtype))
    expected = logits.double().numpy()
    words = bitmask if is_array else torch.from_numpy(bitmask)
    options: dict[str, Any] = {"vocab_size": vocab_size, "indices": rows}
    apply_token_bitmask_inplace(expected, bitmask, **options)
    apply_token_bitmask_inplace(logits, words, backend=backend, **options)
    np.testing.assert_array_equal(logits.double().numpy(), expected)


@needs_mlx
@given(
    case=CASES,
    dtype=st.sampled_from(["float16", "bfloat16", "float32"]),
    backend=st.sampled_from(["auto", "mlx"]),
    kind=st.sampled_from(["numpy", "torch", "mlx"]),
    rows=st.one_of(st.none(), st.lists(st.just(0), max_size=2)),
    is_one_row=st.booleans(),
)
def test_mlx_equals_numpy(
    case: Any, dtype: str, backend: Any, kind: str, rows: list[int] | None, is_one_row: bool
) -> None:
    values, bitmask, vocab_size = case
    if is_one_row:
        values, bitmask = values[0], bitmask[0]
    logits = mx.array(values.astype(np.float32)).astype(getattr(mx, dtype))
    held = logits
    expected = np.array(logits.astype(mx.float32))
    words = mx.array(bitmask) if kind == "mlx" else bitmask
    if kind == "torch" and torch is not None:
        words = torch.from_numpy(bitmask)
    options: dict[str, Any] = {"vocab_size": vocab_size, "indices": rows}
    apply_token_bitmask_inplace(expected, bitmask, **options)
    apply_token_bitmask_inplace(logits, words, backend=backend, **options)
    assert held.dtype == getattr(mx, dtype)
    np.testing.assert_array_equal(np.array(held.astype(mx.float32)), expected)


@needs_mlx
def test_an_mlx_array_is_written_in_place_and_refused_where_it_does_not_fit() -> None:
    logits, words = mx.zeros((2, 40)), np.zeros((2, 2), np.int32)
    row = logits[0]
    masks = mx.array(words)
    reset_token_bitmask(masks)
    assert np.array(masks).tolist() == [[-1, -1], [-1, -1]]
    refused: list[tuple[Any, Any, Any, type[Exception], str]] = [
        (logits, words, "numpy", ValueError, "'numpy' cannot reach logits in an MLX array"),
        (logits, words, "triton", ValueError, "'triton' cannot reach logits in an MLX array"),
        (np.zeros((2, 40)), words, "mlx", ValueError, "'mlx' needs logits in an MLX array"),
        (np.zeros((2, 40)), masks, "auto", ValueError, r"give it as np\.array\(bitmask\)"),
        (logits.astype(mx.int32), words, "auto", TypeError, "logits has dtype mlx.core.int32"),
        (logits, masks.astype(mx.uint32), "auto", TypeError, "bitmask has dtype mlx.core.uint32"),
        (logits[None], words, "auto", ValueError, r"logits has shape \(1, 2, 40\)"),
    ]
    for values, mask, backend, error, message in refused:
        with pytest.raises(error, match=message):
            apply_token_bitmask_inplace(values, mask, backend=backend)
    assert np.array(logits).max() == np.array(logits).min() == 0
    apply_token_bitmask_inplace(logits, words)
    assert np.array(logits).max() == -np.inf
    assert np.array(row).min() == 0  # cut out before, so a value of its own


GPUS = ["cuda"] if torch is not None and torch.cuda.is_available() else []


@pytest.mark.skipif(not GPUS, reason="there is no GPU")
def test_a_bitmask_for_a_gpu_is_pinned() -> None:
    logits = torch.zeros((3, 70), device="cuda")
    bitmask = allocate_token_bitmask(3, 70)
    assert bitmask.is_pinned() and bitmask.device.type == "cpu"
    bitmask[1] = 0
    apply_token_bitmask_inplace(logits, bitmask.to("cuda", non_blocking=True))
    assert torch.isneginf(logits).all(dim=1).tolist() == [False, True, False]


# The first call of each kind compiles a kernel.
@pytest.mark.skipif(not GPUS, reason="there is no GPU")
@given(
    case=CASES,
    dtype=st.sampled_from(["float16", "bfloat16", "float32", "float64"]),
    backend=st.sampled_from(["auto", "torch", "triton"]),
    rows=st.one_of(st.none(), st.lists(st.just(0), max_size=1)),
)
def test_a_gpu_equals_numpy(case: Any, dtype: str, backend: Any, rows: list[int] | None) -> None:
    if backend == "triton":
        pytest.importorskip("triton")
    values, bitmask, vocab_size = case
    expected = torch.from_numpy(values).to(getattr(torch, dtype)).double().numpy()
    logits = torch.from_numpy(values).to("cuda", getattr(torch, dtype))
    options: dict[str, Any] = {"vocab_size": vocab_size, "indices": rows}
    apply_token_bitmask_inplace(expected, bitmask, **options)
    words = torch.from_numpy(bitmask).to("cuda")
    apply_token_bitmask_inplace(logits, words, backend=backend, **options)
    np.testing.assert_array_equal(logits.double().cpu().numpy(), expected)


INTERPRETED = """
import numpy as np, torch
from stencilm import apply_token_bitmask_inplace
from stencilm.bitmask import triton as bitmask_triton
random = np.random.default_rng(0)
for rows, width, tokens, chosen in [
    (1, 1, 1, None), (3, 40, 40, None), (2, 64, 100, [1]), (4, 2100, 2101, [3, 0]), (2, 32, 40, [])
]:
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        words = random.integers(-(2**31), 2**31, (rows, -(-width // 32))).astype(np.int32)
        logits = torch.zeros((rows, tokens + 5), dtype=dtype)[:, :tokens]  # rows with a gap
        expected = np.zeros((rows, tokens))
        apply_token_bitmask_inplace(expected, words, vocab_size=width, indices=chosen)
        targets = None if chosen is None else torch.tensor(chosen, dtype=torch.int32)
        bitmask_triton.close(logits, torch.from_numpy(words), targets, width)
        np.testing.assert_array_equal(logits.double().numpy(), expected)
"""


@needs_torch
def test_the_kernel_in_tritons_interpreter_equals_numpy() -> None:
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETED], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_one_row_may_come_without_its_batch() -> None:
    for logits_shape, bitmask_shape in (((40,), (2,)), ((40,), (1, 2)), ((1, 40), (2,))):
        logits = np.zeros(logits_shape, np.float32)
        bitmask = np.zeros(bitmask_shape, np.int32)
        bitmask[..., 1] = 1
        apply_token_bitmask_inplace(logits, bitmask)
        assert np.flatnonzero(logits == 0).tolist() == [32]


def test_strides_are_followed() -> None:
    values, bitmask = random_case(0, 3, 50, 50)
    wide = np.repeat(values, 2, axis=1)
    wide_bitmask = np.repeat(bitmask, 2, axis=1)
    expected = naive(values, bitmask, 50, [0, 1, 2])
    apply_token_bitmask_inplace(wide[:, ::2], wide_bitmask[:, ::2])
    np.testing.assert_array_equal(wide[:, ::2], expected)
    np.testing.assert_array_equal(wide[:, 1::2], values)


def test_logits_wider_than_the_bitmask_are_closed_to_their_end() -> None:
    logits = np.zeros((1, 100), np.float32)
    apply_token_bitmask_inplace(logits, np.full((1, 2), -1, np.int32))
    assert np.flatnonzero(logits[0] == 0).tolist() == list(range(64))


@needs_torch
def test_gradients_are_left_to_torch() -> None:
    leaf = torch.zeros((1, 32), requires_grad=True)
    logits = leaf * 2
    bitmask = np.full((1, 1), 1, np.int32)
    apply_token_bitmask_inplace(logits, bitmask)
    logits[0, 0].backward()
    assert leaf.grad.tolist() == [[2.0] + [0.0] * 31]
    with pytest.raises(ValueError, match="requires_grad"):
        apply_token_bitmask_inplace(leaf * 2, bitmask, backend="numpy")


LOGITS = np.zeros((2, 40), np.float32)
BITMASK = np.zeros((2, 2), np.int32)
READ_ONLY = np.zeros((2, 40), np.float32)
READ_ONLY.flags.writeable = False

REFUSED: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
    ([0.0], BITMASK, {}, TypeError, "logits is a list"),
    (LOGITS, [1], {}, TypeError, "bitmask is a list, .*allocate_token_bitmask"),
    (LOGITS.astype(np.int64), BITMASK, {}, TypeError, "logits has dtype int64"),
    (LOGITS, BITMASK.astype(np.int64), {}, TypeError, "bitmask has dtype int64, .*int32"),
    (LOGITS, BITMASK.view(np.uint32), {}, TypeError, "bitmask has dtype uint32"),
    (LOGITS, BITMASK.astype(">i4"), {}, TypeError, "bitmask has dtype >i4"),
    (LOGITS[None], BITMASK, {}, ValueError, r"logits has shape \(1, 2, 40\)"),
    (LOGITS, BITMASK[None], {}, ValueError, r"bitmask has shape \(1, 2, 2\)"),
    (LOGITS[:, :0], BITMASK, {}, ValueError, "no tokens at all"),
    (LOGITS, BITMASK[:, :0], {}, ValueError, "no words at all"),
    (LOGITS, BITMASK[:1], {}, ValueError, "2 rows, the bitmask 1.*indices"),
    (LOGITS[:, :32], BITMASK, {}, ValueError, "64 bits, .*32 tokens only.*vocab_size=32"),
    (LOGITS, BITMASK, {"vocab_size": 41}, ValueError, "vocab_size is 41, .*from 1 to 40"),
    (LOGITS, BITMASK, {"vocab_size": 0}, ValueError, "vocab_size is 0"),
    (LOGITS, BITMASK[:, :1], {"vocab_size": 33}, ValueError, "vocab_size is 33, .*1 to 32"),
    (LOGITS, BITMASK, {"vocab_size": 40.0}, TypeError, "vocab_size is 40.0"),
    (LOGITS, BITMASK, {"indices": [0, 2]}, ValueError, "indices holds 2, .*from 0 to 1"),
    (LOGITS, BITMASK, {"indices": [-1]}, ValueError, "indices holds -1"),
    (LOGITS, BITMASK, {"indices": [0.0]}, TypeError, r"indices holds 0\.0"),
    (LOGITS, BITMASK, {"indices": 1}, TypeError, "indices is 1"),
    (LOGITS, BITMASK, {"indices": np.array(1)}, TypeError, r"indices is array\(1\)"),
    (LOGITS, BITMASK, {"backend": "cuda"}, ValueError, "backend is 'cuda'"),
    (LOGITS, BITMASK, {"backend": "torch"}, ValueError, "needs logits in a torch tensor"),
    (LOGITS, BITMASK, {"backend": "triton"}, ValueError, "'triton' needs logits in a torch"),
    (READ_ONLY, BITMASK, {}, ValueError, "logits is read-only"),
]


@pytest.mark.parametrize(("logits", "bitmask", "options", "error", "message"), REFUSED)
def test_what_does_not_fit_is_refused_before_a_byte_is_written(
    logits: Any, bitmask: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        apply_token_bitmask_inplace(logits, bitmask, **options)
    assert not np.any(LOGITS) and not np.any(READ_ONLY)


@needs_torch
@pytest.mark.filterwarnings("error")
def test_any_array_of_words_closes_a_tensor() -> None:
    """Torch knows neither negative strides nor read-only memory."""
    words = np.array([[1], [2]], np.int32)
    backward = words[::-1]
    words.flags.writeable = False
    for backend in ("auto", "torch"):
        for bitmask in (words, backward):
            logits = torch.zeros((2, 2))
            apply_token_bitmask_inplace(logits, bitmask, backend=backend)
            assert [row.argmax().item() for row in logits] == (bitmask[:, 0] - 1).tolist()


@needs_torch
def test_devices_must_agree() -> None:
    logits = torch.zeros((1, 32), device="meta")
    with pytest.raises(ValueError, match=r"on meta, the bitmask on cpu.*to\('meta'\)"):
        apply_token_bitmask_inplace(logits, np.zeros((1, 1), np.int32))
    with pytest.raises(TypeError, match=r"dtype torch\.int64"):
        apply_token_bitmask_inplace(torch.zeros((1, 32), dtype=torch.int64), BITMASK[:1, :1])


@pytest.mark.parametrize(
    ("batch_size", "vocab_size", "shape"),
    [(1, 1, (1, 1)), (3, 32, (3, 1)), (3, 33, (3, 2)), (1, 128_256, (1, 4008))],
)
def test_shape(batch_size: int, vocab_size: int, shape: tuple[int, int]) -> None:
    assert get_bitmask_shape(batch_size, vocab_size) == shape
    bitmask = np.asarray(allocate_token_bitmask(batch_size, vocab_size))
    assert (bitmask.shape, bitmask.dtype) == (shape, bitmask_dtype)
    assert np.all(bitmask == -1)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [((0, 5), ValueError), ((1, 0), ValueError), ((1, 2.5), TypeError), ((True, 5), TypeError)],
)
def test_sizes_that_make_no_bitmask(arguments: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="must be"):
        get_bitmask_shape(*arguments)


def test_reset() -> None:
    kinds: list[Any] = [np.zeros((2, 3), np.int32)]
    if torch is not None:
        kinds.append(torch.zeros((2, 3), dtype=torch.int32))
    for bitmask in kinds:
        reset_token_bitmask(bitmask)
        assert np.all(np.asarray(bitmask) == -1)
    with pytest.raises(TypeError, match="int32"):
        reset_token_bitmask(np.zeros(3))


@needs_torch
def test_a_bitmask_is_a_tensor_only_where_torch_is_already_in_use() -> None:
    program = (
        "import stencilm; print(type(stencilm.allocate_token_bitmask(1, 9)).__module__);"
        "import torch; print(type(stencilm.allocate_token_bitmask(1, 9)).__module__)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.split() == ["numpy", "torch"], run.stderr


@needs_torch
def test_a_bitmask_whose_rows_share_memory_is_refused_before_a_byte_is_written() -> None:
    """Also where one row is filled at a time: it would change the others."""
    info = stencilm.TokenizerInfo([b"a", b"b", b"</s>"] + [b"c"] * 61, stop_token_ids=[2])
    compiled = stencilm.GrammarCompiler(info).compile_regex("ab")
    matcher, index = stencilm.GrammarMatcher(compiled), stencilm.TokenIndex.from_regex("ab", info)
    batch, row = stencilm.BatchGrammarMatcher(), matcher.find_mask_patch().row
    tree = [np.array(one, dtype=np.int64) for one in ([1, -1], [-1, -1], [0, 1])]
    one_row = np.full(3, 7, dtype=np.int32)
    as_strided = np.lib.stride_tricks.as_strided
    for bitmask in (
        torch.from_numpy(one_row[:2]).expand(2, 2),
        torch.from_numpy(one_row).as_strided((2, 2), (1, 1)),
        as_strided(one_row, (2, 2), (0, 4)),
        as_strided(one_row, (2, 2), (4, 4)),
        as_strided(one_row[1:], (2, 2), (-4, 4)),
    ):
        fills: list[Callable[[], object]] = [
            partial(matcher.fill_next_token_bitmask, bitmask, 0),
            partial(batch.batch_fill_next_token_bitmask, [matcher], bitmask),
            partial(batch.batch_accept_and_fill, [matcher], [None], bitmask),
            partial(matcher.traverse_draft_tree, tree[0], tree[1], tree[2], bitmask),
            partial(index.fill_bitmask, index.initial_state, bitmask, 1),
            partial(info.core.fill_mask_row, row, bitmask, 1),
        ]
        for fill in fills:
            with pytest.raises(ValueError, match="rows of the bitmask share memory"):
                fill()
        assert one_row.tolist() == [7, 7, 7]
    # One row has nobody to share with.
    matcher.fill_next_token_bitmask(torch.from_numpy(one_row[:2]).expand(1, 2))


def test_logits_that_share_memory_are_refused() -> None:
    """Rows made by `expand` are one row: the mask of each would close what the others allow."""
    bitmask = np.array([[1, 0], [2, 0]], dtype=np.int32)
    row = np.zeros((1, 64), dtype=np.float32)
    beside = np.lib.stride_tricks.as_strided(np.zeros(65, dtype=np.float32), (2, 64), (4, 4))
    for logits in (beside, torch.from_numpy(row).expand(2, 64), torch.zeros(2, 1).expand(2, 64)):
        with pytest.raises(ValueError, match="share memory"):
            apply_token_bitmask_inplace(logits, bitmask)
        assert not np.isinf(np.asarray(logits)).any()
    with pytest.raises(TypeError, match="dense"):
        apply_token_bitmask_inplace(torch.zeros(2, 64).to_sparse(), bitmask)
    apply_token_bitmask_inplace(torch.zeros(1, 64).expand(1, 64), bitmask[:1])
