"""Arguments of the core: what stands for a list of numbers, and one sentence for what does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stencilm
from stencilm import BatchGrammarMatcher, GrammarCompiler, GrammarMatcher, TokenizerInfo, _core

INFO = TokenizerInfo([b"a", b"b", b"ab", b"c", b"</s>"], stop_token_ids=[4])
COMPILED = GrammarCompiler(INFO).compile_regex("ab+c?")
# As callers without types have it.
BATCH: Any = BatchGrammarMatcher(max_threads=1)

Call = Callable[[Any], Any]


def matcher(**options: Any) -> Any:
    return GrammarMatcher(COMPILED, **options)


def two() -> list[Any]:
    return [matcher(), matcher()]


def mask() -> Any:
    return np.zeros((2, 1), dtype=np.int32)


# Each takes [0, 1], in whatever form.
LISTS: dict[str, Call] = {
    "validate_tokens": lambda ids: matcher().validate_tokens(ids),
    "recent_tokens": lambda ids: matcher().find_jump_forward_tokens(ids),
    "override_stop_tokens": lambda ids: matcher(override_stop_tokens=ids).stop_token_ids,
    "batch_accept_token": lambda ids: BATCH.batch_accept_token(two(), ids),
    "token_ids": lambda ids: BATCH.batch_accept_and_fill(two(), ids, mask()),
    "indices": lambda rows: BATCH.batch_fill_next_token_bitmask(two(), mask(), rows),
    "indices of both": lambda rows: BATCH.batch_accept_and_fill(two(), [0, 0], mask(), rows),
    "counts": lambda counts: BATCH.batch_rollback([matcher(), accepted()], counts),
    "draft_tokens": lambda ids: matcher().traverse_draft_tree([1, -1], [-1, -1], ids, mask()),
    "decode_str": lambda ids: INFO.decode_str(ids),
    "stop_token_ids": lambda ids: TokenizerInfo([b"a", b"b", b"c"], stop_token_ids=ids),
}


def accepted() -> Any:
    made = matcher()
    assert made.accept_token(0)
    return made


def tensors() -> list[Any]:
    torch = pytest.importorskip("torch")
    return [torch.tensor([0, 1]), torch.tensor([0, 1], dtype=torch.int32)]


@pytest.mark.parametrize("name", LISTS)
def test_arrays_and_tensors_of_integers_are_lists_of_them(name: str) -> None:
    expected = LISTS[name]([0, 1])
    forms = [(0, 1), range(2), [np.int64(0), np.uint8(1)], np.arange(4)[:2]]
    forms = [*forms, *(np.array([0, 1], dtype=kind) for kind in ("i1", "u4", ">i4", "u8"))]
    for form in [*forms, *tensors()]:
        assert LISTS[name](form) == expected, form


class Wrong:
    """Numbers and lists that fail in their own way."""

    def __index__(self) -> int:
        raise ZeroDivisionError

    def __iter__(self) -> Any:
        raise ZeroDivisionError


NO_LISTS: list[Any] = [None, 1.5, "ab", {0: 1, 1: 2}, object(), 1j]
NO_LISTS += [np.array([0.0, 1.0]), np.array([False, True]), np.array([[0, 1]]), [0, "b"], [[0]]]
# None is none of these: the default, or only the mask.
NONE_MEANS = {"recent_tokens", "override_stop_tokens", "indices", "indices of both"}
INTERNAL = ("object is not an instance", "Can't extract", "cannot be interpreted", "argument '")


@pytest.mark.parametrize("name", LISTS)
def test_what_is_no_list_of_integers_is_told(name: str) -> None:
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor([0.0, 1.0]), torch.tensor([False, True]), torch.empty(2, device="meta")]
    tensors += [torch.tensor([0.0, 1.0], requires_grad=True), torch.zeros((1, 2))]
    for value in [*NO_LISTS, *tensors]:
        if value is None and name in {*NONE_MEANS, "stop_token_ids"}:
            continue
        with pytest.raises((TypeError, ValueError, stencilm.TokenizerError)) as caught:
            LISTS[name](value)
        assert not any(words in str(caught.value) for words in INTERNAL), value


@pytest.mark.parametrize("name", sorted(LISTS.keys() - {"draft_tokens"}))
def test_what_numbers_and_lists_raise_themselves_comes_through(name: str) -> None:
    with pytest.raises(ZeroDivisionError):
        LISTS[name](Wrong())
    with pytest.raises(ZeroDivisionError):
        LISTS[name]([Wrong(), Wrong()])


def test_sets_have_an_order_nowhere_and_name_stop_tokens() -> None:
    assert sorted(matcher(override_stop_tokens={0, 1}).stop_token_ids) == [0, 1]
    for name in LISTS.keys() - {"override_stop_tokens", "stop_token_ids"}:
        with pytest.raises((TypeError, ValueError)):
            LISTS[name]({0, 1})


def test_a_truth_of_torch_is_no_number() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="a token id is an int, not Tensor"):
        matcher().accept_token(torch.tensor(True))
    with pytest.raises(TypeError, match="limit is"):
        matcher().candidates(torch.tensor(True))
    assert matcher().accept_token(torch.tensor(0))


WORDS: dict[str, tuple[Call, str]] = {
    "matchers": (
        lambda value: BATCH.batch_temperature(value),
        "matchers is {}, but must be a list of GrammarMatchers",
    ),
    "matchers of patches": (
        lambda value: BATCH.batch_find_mask_patches(value, None, None, None),
        "matchers is {}, but must be a list of GrammarMatchers",
    ),
    "token_ids": (LISTS["token_ids"], "token_ids is {}, but must be a list of token ids"),
    "texts": (
        lambda value: BATCH.batch_accept_string(two(), value),
        "texts is {}, but must be a list of texts, str or bytes",
    ),
    "counts": (LISTS["counts"], "counts is {}, but must be a list of ints"),
    "indices": (LISTS["indices"], "indices is {}, but must be a list of rows of the bitmask"),
    "terminate": (
        lambda value: matcher(terminate_without_stop_token=value),
        "terminate_without_stop_token is {}, but must be True or False",
    ),
    "canonical": (
        lambda value: matcher(canonical=value),
        "canonical is {}, but must be True or False",
    ),
    "background": (
        lambda value: COMPILED.prepare(milliseconds=1, background=value),
        "background is {}, but must be True or False",
    ),
}


@pytest.mark.parametrize("name", WORDS)
def test_words(name: str) -> None:
    call, words = WORDS[name]
    for value in ("ab", 1, 1.5):
        with pytest.raises(TypeError, match=re.escape(words.format(repr(value)))):
            call(value)


def test_a_number_that_is_none() -> None:
    with pytest.raises(TypeError, match=r"max_bytes is an int, not float 1\.5"):
        matcher().shortest_completion(max_bytes=1.5)
    for value in (-1, 2**70):
        with pytest.raises(stencilm.MatcherError, match=f"max_bytes is int {value}; give a number"):
            matcher().shortest_completion(max_bytes=value)
    assert matcher().shortest_completion(max_bytes=np.int8(2)) == b"ab"
    for value in (-1, 0, 1025, 2**63, 2**70):
        with pytest.raises(ValueError, match=f"max_threads is {value}, but must be from 1 to 1024"):
            _core.BatchMatcher(value)


def test_stop_tokens_of_which_there_are_none() -> None:
    # No text could end: its mask was empty there.
    empty: list[Any] = [[], (), set(), np.array([], dtype=np.int64)]
    for stops in empty:
        with pytest.raises(ValueError, match="override_stop_tokens is empty, so no text could end"):
            matcher(override_stop_tokens=stops)
        made = matcher(override_stop_tokens=stops, terminate_without_stop_token=True)
        assert made.accept_string("abc") and made.is_terminated()
    for text in ("", "a"):
        with pytest.raises(TypeError, match=r"override_stop_tokens holds .*, but must hold token"):
            matcher(override_stop_tokens=text)


def test_numbers_of_numpy_are_no_bytes() -> None:
    # They have a buffer, which was read.
    for data in (np.float32(1), np.int64(1), np.array(1.5), np.zeros(2), 3, "a"):
        for call in (INFO.tokenize_bytes, INFO.tokenize_partial):
            with pytest.raises(TypeError, match=r"data is a \w+, but must be bytes"):
                call(data)  # type: ignore[arg-type]


def test_rows_belong_to_a_vocabulary() -> None:
    with pytest.raises(TypeError, match="tokenizer_info is a int, but must be a TokenizerInfo"):
        stencilm.MaskRows(3)  # type: ignore[arg-type]


def test_a_draft_tree_of_no_numbers_is_told_with_its_name() -> None:
    torch = pytest.importorskip("torch")
    for value in (torch.tensor([0.0, 1.0], requires_grad=True), [[0], [1, 2]]):
        with pytest.raises(ValueError, match=r"draft_tokens is .*, but must be a list of integers"):
            LISTS["draft_tokens"](value)
