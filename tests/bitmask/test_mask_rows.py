"""Masks as rows and patches say what masks say, wherever the rows are kept."""

from __future__ import annotations

import copy
import os
import pickle
import random
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stencilm
from stencilm import (
    BatchError,
    BatchGrammarMatcher,
    GrammarCompiler,
    GrammarMatcher,
    MaskPatch,
    MaskPatches,
    MaskRows,
    TokenizerInfo,
    apply_token_bitmask_inplace,
)

SCHEMAS: list[dict[str, Any]] = [
    {"type": "array", "items": {"type": "string", "maxLength": 9}, "uniqueItems": True},
    {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 4},
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "pattern": "[a-z]+x"},
            "when": {"format": "date"},
        },
        "required": ["name"],
    },
    {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "string", "pattern": "^[A-Z]"}]},
]


@pytest.fixture(scope="module")
def info() -> TokenizerInfo:
    return TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")


def walks(info: TokenizerInfo, seed: int) -> list[GrammarMatcher]:
    """Matchers at random places of random texts."""
    compiler, chooser = GrammarCompiler(info), random.Random(seed)
    matchers = []
    for schema in SCHEMAS:
        matcher = GrammarMatcher(compiler.compile_json_schema(schema))
        mask = np.zeros((1, -(-info.vocab_size // 32)), dtype=np.int32)
        for _ in range(30):
            matchers.append(matcher.fork())
            matcher.fill_next_token_bitmask(mask)
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            matcher.accept_token(int(chooser.choice(allowed.tolist())))
            if matcher.is_terminated():
                break
    return matchers


def masks_of(info: TokenizerInfo, matchers: list[GrammarMatcher]) -> np.ndarray:
    masks = np.zeros((len(matchers), -(-info.vocab_size // 32)), dtype=np.int32)
    for index, matcher in enumerate(matchers):
        matcher.fill_next_token_bitmask(masks, index)
    return masks


@pytest.mark.parametrize("seed", range(4))
def test_a_patch_and_its_row_are_the_mask(info: TokenizerInfo, seed: int) -> None:
    matchers = walks(info, seed)
    row = np.zeros((2, -(-info.vocab_size // 32)), dtype=np.int32)
    for mask, matcher in zip(masks_of(info, matchers), matchers, strict=True):
        patch = matcher.find_mask_patch()
        info.fill_mask_row(patch.row, row, 1)
        bits = np.unpackbits(row[1].view(np.uint8), bitorder="little")
        bits[patch.flipped] ^= 1
        assert (np.packbits(bits, bitorder="little").view(np.int32) == mask).all()
        assert (np.diff(patch.flipped) > 0).all()
    assert not row[0].any()


def test_rows_on_a_device_make_the_masks_of_a_batch(info: TokenizerInfo) -> None:
    pytest.importorskip("torch")
    matchers = [matcher for seed in range(4) for matcher in walks(info, seed)]
    expected = masks_of(info, matchers)
    rows = MaskRows(info, "cpu")
    patches = [matcher.find_mask_patch() for matcher in matchers]
    for _ in range(2):
        assert (rows.bitmask(patches).numpy() == expected).all()
    assert len(rows) == len({patch.row for patch in patches}) < len(matchers) / 4
    assert np.median([len(patch.flipped) for patch in patches]) < 128


INTERPRETED = """
import numpy as np, torch
from stencilm.bitmask import triton as bitmask_triton
random = np.random.default_rng(0)
for sequences, words, most in [(5, 300, 70), (3, 256, 0), (1, 7, 33), (0, 5, 3), (4, 1100, 200)]:
    rows = random.integers(-(2**31), 2**31, (6, words)).astype(np.int32)
    rows[:, words // 3 : words // 2] = random.integers(-1, 1, (6, 1))
    places = random.integers(0, 6, sequences).astype(np.int32)
    targets = random.permutation(sequences + 2)[:sequences].astype(np.int32)
    tokens = [
        random.permutation(32 * words)[: random.integers(0, most + 1)].astype(np.int32)
        for _ in range(sequences)
    ]
    offsets = np.cumsum([0, *map(len, tokens)]).astype(np.int32)
    sent = torch.from_numpy(np.concatenate([places, offsets, *tokens]))
    patched = bitmask_triton.patched(torch.from_numpy(rows), sent, sequences)
    assert patched.shape == (sequences, words) and patched.dtype == torch.int32
    expected = np.zeros((sequences, 32 * words), bool)
    for row, place, flipped, bits in zip(patched.numpy(), places, tokens, expected):
        bits[:] = np.unpackbits(rows[place].view(np.uint8), bitorder="little")
        bits[flipped] ^= True
        assert (np.packbits(bits, bitorder="little").view(np.int32) == row).all()
    for tokens in (32 * words, 32 * words - 5, 32 * words + 70):
        logits = torch.zeros((sequences + 2, tokens + 3))[:, :tokens]
        width = min(tokens, 32 * words)
        bitmask_triton.close(logits, patched, torch.from_numpy(targets), width, is_spread=False)
        closed = np.zeros((sequences + 2, tokens), bool)
        closed[targets] = True
        closed[targets, :width] = ~expected[:, :width]
        assert (np.isneginf(logits.numpy()) == closed).all()
        assert (logits.numpy()[~closed] == 0).all()
"""


def test_the_kernel_in_tritons_interpreter_patches_rows() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETED], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_rows_on_a_gpu_make_the_masks_of_a_batch(info: TokenizerInfo) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    matchers = [matcher for seed in range(4) for matcher in walks(info, seed)]
    patches = MaskPatches(len(matchers))
    patches.find(BatchGrammarMatcher(), matchers)
    rows, expected = MaskRows(info, "cuda"), masks_of(info, matchers)
    assert (rows.bitmask(patches).cpu().numpy() == expected).all()
    chosen = np.random.default_rng(0).permutation(len(matchers) + 3)[: len(matchers)]
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for width in (info.vocab_size, info.vocab_size + 100):
            logits = torch.randn((len(matchers) + 3, width), device="cuda").to(dtype)
            closed = logits.float().cpu().numpy()
            rows.apply(logits, patches, indices=chosen)
            whole = np.full((len(closed), expected.shape[1]), -1, dtype=np.int32)
            whole[chosen] = expected
            size = min(width, 32 * expected.shape[1])
            apply_token_bitmask_inplace(closed, whole, vocab_size=size, indices=chosen)
            assert (logits.float().cpu().numpy() == closed).all()
    # What the kernel does not take is closed by others: logits with gaps within a row.
    logits = torch.zeros((len(matchers), 2 * info.vocab_size), device="cuda")[:, ::2]
    rows.apply(logits, patches)
    bits = np.unpackbits(expected.view(np.uint8), axis=1, bitorder="little")[:, : info.vocab_size]
    assert (np.isneginf(logits.cpu().numpy()) == (bits == 0)).all()
    for elsewhere in (np.zeros(logits.shape, np.float32), torch.zeros(logits.shape)):
        with pytest.raises(ValueError, match="the logits are on cpu"):
            rows.apply(elsewhere, patches, indices=list(range(len(matchers))))


def test_rows_close_logits(info: TokenizerInfo) -> None:
    matchers = walks(info, 3)
    expected = masks_of(info, matchers)
    bits = np.unpackbits(expected.view(np.uint8), axis=1, bitorder="little")[:, : info.vocab_size]
    patches = MaskPatches(len(matchers))
    patches.find(BatchGrammarMatcher(), matchers)
    chosen = list(range(len(matchers)))[::-1]
    for device in [None, "cpu"] if find_spec("torch") else [None]:
        rows = MaskRows(info, device)
        for indices in (None, chosen):
            logits = np.zeros((len(matchers), info.vocab_size), dtype=np.float32)
            shared = logits if device is None else import_module("torch").from_numpy(logits)
            rows.apply(shared, patches, indices=indices)
            closed = np.isneginf(logits if indices is None else logits[chosen])
            assert (closed == (bits == 0)).all()
        few = np.zeros((len(matchers) + 1, info.vocab_size), dtype=np.float32)
        for indices, error, message in (
            (None, ValueError, "but there are"),
            (chosen[1:], ValueError, "give as many of both"),
            ([0] * len(chosen), ValueError, "names a row twice"),
            ([len(few)] * len(chosen), ValueError, "use row numbers from 0"),
        ):
            with pytest.raises(error, match=message):
                rows.apply(few, patches, indices=indices)
        with pytest.raises(ValueError, match="must be"):
            rows.apply(few[0], patches)
        with pytest.raises(TypeError, match="logits is a list"):
            rows.apply(few.tolist(), patches)
        assert not few.any()


def test_the_row_used_longest_ago_makes_room(info: TokenizerInfo) -> None:
    pytest.importorskip("torch")
    matchers = walks(info, 7)
    expected = masks_of(info, matchers)
    rows = MaskRows(info, "cpu", max_rows=2)
    for index, matcher in enumerate(matchers):
        assert (rows.bitmask([matcher.find_mask_patch()]).numpy()[0] == expected[index]).all()
        assert len(rows) <= 2
    with pytest.raises(ValueError, match=r"do not fit in max_rows=2"):
        rows.bitmask([matcher.find_mask_patch() for matcher in matchers])
    with pytest.raises(ValueError, match="max_rows is 0"):
        MaskRows(info, "cpu", max_rows=0)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("device", [None, "cpu"])
def test_copies_keep_rows_of_their_own(info: TokenizerInfo, device: Any, how: Any) -> None:
    if device is not None:
        pytest.importorskip("torch")
    matchers = walks(info, 7)
    expected = masks_of(info, matchers)
    found = [matcher.find_mask_patch() for matcher in matchers]
    numbers = {patch.row: index for index, patch in enumerate(found)}
    first, second, third = list(numbers.values())[:3]
    rows = MaskRows(info, device, max_rows=3)
    rows.bitmask([found[first]])
    other = how(rows)
    for each, index in ((rows, second), (other, third), (rows, second), (other, third)):
        assert (np.asarray(each.bitmask([found[index]]))[0] == expected[index]).all()
    with pytest.raises(ValueError, match="max_rows=3"):
        other.bitmask(found)
    patches = MaskPatches(1)
    patches.find(BatchGrammarMatcher(1), matchers[first : first + 1])
    kept = how(patches)
    patches.find(BatchGrammarMatcher(1), matchers[second : second + 1])
    assert (np.asarray(other.bitmask(kept))[0] == expected[first]).all()


def test_rows_do_not_go_to_other_processes(info: TokenizerInfo) -> None:
    """Their numbers are those of this process: in another one they mean other masks."""
    with pytest.raises(TypeError, match="make one in the process that finds the patches"):
        pickle.dumps(MaskRows(info))


def test_patches_of_another_vocabulary_are_told(info: TokenizerInfo) -> None:
    small = TokenizerInfo([b"a", b"b", b"</s>"], stop_token_ids=[2])
    for device in (None, "cpu") if find_spec("torch") else (None,):
        rows = MaskRows(small, device)
        for flipped in ([3], [1, 4000], [-1]):
            patch = MaskPatch(0, np.array(flipped, dtype=np.int32))
            with pytest.raises(ValueError, match=r"token (3|4000|-1), .* vocabulary of 3 tokens"):
                rows.bitmask([patch])
        for wrong in (None, 5, [1], ["ab"]):
            with pytest.raises(TypeError, match=r"patches is .*MaskPatches"):
                rows.bitmask(wrong)  # type: ignore[arg-type]


def test_a_row_that_nobody_has_is_an_error(info: TokenizerInfo) -> None:
    bitmask = np.full((1, -(-info.vocab_size // 32)), 5, dtype=np.int32)
    for row in (-1, 2**31, 2**32 - 1):
        with pytest.raises(LookupError, match="ask a matcher for its patch again"):
            info.fill_mask_row(row, bitmask)
    assert (bitmask == 5).all()
    info.fill_mask_row(0, bitmask)
    assert not bitmask.any()


def test_a_patch_needs_a_sequence_that_goes_on(info: TokenizerInfo) -> None:
    matcher = GrammarMatcher(GrammarCompiler(info).compile_regex("a"))
    assert isinstance(matcher.find_mask_patch(), MaskPatch)
    matcher.accept_string("a")
    matcher.accept_token(info.stop_token_ids[0])
    with pytest.raises(stencilm.MatcherError):
        matcher.find_mask_patch()


@pytest.mark.parametrize("canonical", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_patches_of_a_batch_make_its_masks(
    info: TokenizerInfo, threads: int, canonical: bool
) -> None:
    matchers = [matcher for seed in range(4) for matcher in walks(info, seed)]
    if canonical:
        compiled = GrammarCompiler(info).compile_json_schema(SCHEMAS[0])
        matchers.append(GrammarMatcher(compiled, canonical=True))
    expected = masks_of(info, matchers)
    batch, patches, rows = BatchGrammarMatcher(threads), MaskPatches(len(matchers)), MaskRows(info)
    for count in (len(matchers), 3, 0, len(matchers)):
        patches.find(batch, matchers[:count])
        assert len(patches) == count
        bitmask = rows.bitmask(patches)
        assert bitmask.dtype == np.int32
        assert (bitmask == expected[:count]).all()


def test_patches_that_have_no_room_are_counted(info: TokenizerInfo) -> None:
    matchers = walks(info, 1)
    row_ids = np.zeros(len(matchers), dtype=np.int32)
    offsets = np.zeros(len(matchers) + 1, dtype=np.int32)
    flipped = np.full(1, 7, dtype=np.int32)
    batch = BatchGrammarMatcher()
    needed = batch.batch_find_mask_patches(matchers, row_ids, offsets, flipped)
    assert needed == offsets[-1] > 1
    assert flipped.tolist() == [7]
    with pytest.raises(ValueError, match="row_ids has room for 2 numbers"):
        batch.batch_find_mask_patches(matchers, row_ids[:2], offsets, flipped)
    with pytest.raises(TypeError, match="flipped is a list"):
        batch.batch_find_mask_patches(matchers, row_ids, offsets, [1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not contiguous"):
        batch.batch_find_mask_patches(
            matchers, row_ids, np.zeros(2 * len(offsets), np.int32)[::2], flipped
        )
    flipped.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        batch.batch_find_mask_patches(matchers, row_ids, offsets, flipped)
    with pytest.raises(ValueError, match="room for"):
        MaskPatches(1).find(batch, matchers)


def test_a_sequence_that_fails_has_an_empty_patch(info: TokenizerInfo) -> None:
    matchers = walks(info, 2)[:3]
    compiled = GrammarCompiler(info).compile_regex("a")
    ended = GrammarMatcher(compiled)
    assert ended.accept_string("a")
    assert ended.accept_token(ended.stop_token_ids[0])
    patches = MaskPatches(4)
    with pytest.raises(BatchError) as raised:
        patches.find(BatchGrammarMatcher(), [*matchers, ended])
    assert list(raised.value.errors) == [3]
    assert len(patches) == 0


def test_one_call_accepts_and_fills(info: TokenizerInfo) -> None:
    compiled = GrammarCompiler(info).compile_regex("ab?")
    first, second, ended, waiting = (GrammarMatcher(compiled) for _ in range(4))
    assert ended.accept_string("ab")
    matchers = [first, second, ended, waiting]
    letter = info.tokenize_bytes(b"a")[0]
    wrong = info.tokenize_bytes(b"}")[0]
    masks = np.zeros((4, -(-info.vocab_size // 32)), dtype=np.int32)
    stop = ended.stop_token_ids[0]
    told = BatchGrammarMatcher().batch_accept_and_fill(
        matchers, [letter, wrong, stop, None], masks, indices=[3, 2, 1, 0]
    )
    assert told == [(True, True), (False, True), (True, False), (True, True)]
    assert [matcher.num_accepted_tokens for matcher in matchers] == [1, 0, 2, 0]
    assert (masks[1] == -1).all()
    assert (masks[[3, 2, 0]] == masks_of(info, [first, second, waiting])).all()
    with pytest.raises(ValueError, match="there are 4 matchers, but 1 token_ids"):
        BatchGrammarMatcher().batch_accept_and_fill(matchers, [letter], masks)
