"""Batches and draft trees give what single calls give, and lose nothing when a sequence fails."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stencilm import (
    BatchError,
    BatchGrammarMatcher,
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    MatcherError,
    TokenizerInfo,
    VocabType,
    traverse_draft_tree,
)
from tokenizer_folders import FOLDERS, tokenizer_info

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def compiled(name: str = "tiny") -> CompiledGrammar:
    return GrammarCompiler(tokenizer_info(name)).compile_json_schema(SCHEMA)


def words(info: TokenizerInfo) -> int:
    return -(-info.vocab_size // 32)


@pytest.mark.parametrize("threads", [1, 3, "auto"])
@pytest.mark.parametrize("name", FOLDERS)
def test_a_batch_equals_single_calls(name: str, threads: Any) -> None:
    grammar = compiled(name)
    info = grammar.tokenizer_info
    texts = ["", "{", '{"a', '{"a": "x', '{"a": "x"', '{"a": "x"}', '{"a": "x", "b": [1', "nope"]
    matchers = [GrammarMatcher(grammar) for _ in texts]
    alone = [GrammarMatcher(grammar) for _ in texts]
    batch = BatchGrammarMatcher(max_threads=threads)
    accepted = [matcher.accept_string(text) for matcher, text in zip(alone, texts, strict=True)]
    assert batch.batch_accept_string(matchers, texts) == accepted

    masks = np.full((len(texts) + 2, words(info)), 7, dtype=np.int32)
    expected = masks.copy()
    rows = [9, 0, 3, 1, 2, 8, 5, 7]
    needed = [m.fill_next_token_bitmask(expected, row) for m, row in zip(alone, rows, strict=True)]
    assert batch.batch_fill_next_token_bitmask(matchers, masks, rows) == needed
    assert np.array_equal(masks, expected)

    tokens = [int(np.flatnonzero(allowed_bits(expected[row]))[0]) for row in rows]
    tokens[3] = 10**30
    single = [m.accept_token(token) for m, token in zip(alone, tokens, strict=True)]
    assert batch.batch_accept_token(matchers, tokens) == single
    counts = [matcher.num_accepted_tokens for matcher in matchers]
    batch.batch_rollback(matchers, counts)
    assert [matcher.num_accepted_tokens for matcher in matchers] == [0] * len(texts)


def test_what_accepts_may_be_called_of_the_class() -> None:
    matchers: list[Any] = [GrammarMatcher(compiled()) for _ in range(3)]
    of_class: Any = BatchGrammarMatcher  # as engines call it that know static methods
    assert of_class.batch_accept_string(matchers, ["{", "x", '{"a"']) == [True, False, True]
    stop = matchers[0].stop_token_ids[0]
    assert of_class.batch_accept_token(matchers=matchers, token_ids=[stop] * 3) == [False] * 3
    assert [matcher.num_accepted_tokens for matcher in matchers] == [1, 0, 1]


def allowed_bits(row: NDArray[np.int32]) -> NDArray[np.uint8]:
    return np.unpackbits(row.view(np.uint8), bitorder="little")


def test_one_failing_sequence_loses_no_other() -> None:
    grammar = compiled()
    info = grammar.tokenizer_info
    matchers = [GrammarMatcher(grammar) for _ in range(3)]
    assert matchers[1].accept_string('{"a":""}') and matchers[1].accept_token(
        info.stop_token_ids[0]
    )
    masks = np.full((3, words(info)), 7, dtype=np.int32)
    with pytest.raises(BatchError, match="1 of 3 sequences failed") as error:
        BatchGrammarMatcher(2).batch_fill_next_token_bitmask(matchers, masks)
    assert error.value.results == [True, None, True]
    assert list(error.value.errors) == [1] and error.value.place == "sequence 1"
    assert "terminated" in str(error.value.errors[1])
    assert isinstance(error.value, MatcherError)
    assert not masks[1].any() and np.array_equal(masks[0], masks[2]) and masks[0].any()
    with pytest.raises(BatchError) as error:
        BatchGrammarMatcher(2).batch_rollback(matchers, [0, 1, 1])
    assert list(error.value.errors) == [2] and not matchers[1].is_terminated()


def test_what_would_race_is_refused() -> None:
    grammar = compiled()
    batch = BatchGrammarMatcher(2)
    matcher, other = GrammarMatcher(grammar), GrammarMatcher(grammar)
    masks = np.full((3, words(grammar.tokenizer_info)), 7, dtype=np.int32)
    with pytest.raises(ValueError, match="matchers 0 and 2 of the batch are the same"):
        batch.batch_fill_next_token_bitmask([matcher, other, matcher], masks)
    with pytest.raises(ValueError, match="row 1 of the bitmask is named twice"):
        batch.batch_fill_next_token_bitmask([matcher, other], masks, [1, 1])
    with pytest.raises(IndexError, match="row 3 is outside of a bitmask with 3 rows; count from 0"):
        batch.batch_fill_next_token_bitmask([matcher, other], masks, [0, 3])
    with pytest.raises(IndexError, match="row -1"):
        batch.batch_fill_next_token_bitmask([matcher], masks, [-1])
    with pytest.raises(ValueError, match="2 matchers, but 1 indices"):
        batch.batch_fill_next_token_bitmask([matcher, other], masks, [0])
    shared = np.lib.stride_tricks.as_strided(masks, strides=(0, 4))
    with pytest.raises(ValueError, match="share memory"):
        batch.batch_fill_next_token_bitmask([matcher, other], shared)
    with pytest.raises(TypeError, match=r"matchers\[1\] is a int 5, not a GrammarMatcher"):
        batch.batch_accept_token([matcher, 5], [1, 2])  # type: ignore[list-item]
    assert (masks == 7).all()
    assert batch.batch_fill_next_token_bitmask([], masks) == []


def test_matchers_of_different_vocabularies_cannot_share_a_bitmask() -> None:
    small = TokenizerInfo(["a", "b", "</s>"], VocabType.RAW, stop_token_ids=[2])
    other = GrammarMatcher(GrammarCompiler(small).compile_regex("a*"))
    masks = np.zeros((2, words(tokenizer_info("tiny"))), dtype=np.int32)
    with pytest.raises(ValueError, match="vocabulary of another size"):
        BatchGrammarMatcher(2).batch_fill_next_token_bitmask(
            [GrammarMatcher(compiled()), other], masks
        )


def test_threads() -> None:
    assert 1 <= BatchGrammarMatcher().max_threads <= 8
    assert repr(BatchGrammarMatcher(3)) == "BatchGrammarMatcher(max_threads=3)"
    bad: Any
    for bad in (0, -1, 10**9):
        with pytest.raises(ValueError, match=f"max_threads is {bad}"):
            BatchGrammarMatcher(bad)
    for bad in ("many", 1.5, True):
        with pytest.raises(TypeError, match="must be an int or 'auto'"):
            BatchGrammarMatcher(bad)


@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own() -> None:
    grammar = compiled()
    batch = BatchGrammarMatcher(2)
    matchers = [GrammarMatcher(grammar) for _ in range(4)]
    assert batch.batch_accept_string(matchers, ["{"] * 4) == [True] * 4
    child = os.fork()
    if child == 0:
        done = batch.batch_accept_string(matchers, [' "a"'] * 4) == [True] * 4
        os._exit(0 if done else 1)
    assert os.waitpid(child, 0)[1] == 0


# 0 -> 1 -> 2, and 3 beside 1, which is refused.
NEXT, SIBLING = [1, 2, -1, -1], [-1, 3, -1, -1]


@pytest.mark.parametrize("kind", ["list", "int64", "int32", "torch"])
def test_a_draft_tree_gives_a_row_for_every_node(kind: str) -> None:
    grammar = compiled()
    info = grammar.tokenizer_info
    tokens = [0, info.decoded_vocab.index(b"{"), info.decoded_vocab.index(b'"'), info.vocab_size]
    tree: Any = [NEXT, SIBLING, tokens]
    if kind == "torch":
        torch = pytest.importorskip("torch")
        tree = [torch.tensor(part) for part in tree]
    elif kind != "list":
        tree = [np.array(part, dtype=kind) for part in tree]
    matcher = GrammarMatcher(grammar)
    masks = np.full((4, words(info)), 7, dtype=np.int32)
    first_child, sibling, drafted = tree
    assert matcher.traverse_draft_tree(first_child, sibling, drafted, masks) is True
    expected = np.zeros_like(masks)
    probe = GrammarMatcher(grammar)
    for node in range(3):
        assert node == 0 or probe.accept_token(tokens[node])
        probe.fill_next_token_bitmask(expected, node)
    assert np.array_equal(masks, expected)
    assert matcher.num_accepted_tokens == 0
    masks.fill(7)
    assert traverse_draft_tree(first_child, sibling, drafted, matcher, masks) is True
    assert np.array_equal(masks, expected)


def test_a_deep_draft_tree_does_not_recurse_and_can_stop_early() -> None:
    info = TokenizerInfo(["a", "</s>"], VocabType.RAW, stop_token_ids=[1])
    matcher = GrammarMatcher(GrammarCompiler(info).compile_regex("a*"))
    nodes = 50_000
    masks = np.full((nodes, 1), 7, dtype=np.int32)
    tree = (np.append(np.arange(1, nodes), -1), np.full(nodes, -1), np.zeros(nodes, dtype=np.int64))
    assert matcher.traverse_draft_tree(*tree, masks)
    assert (masks == 3).all()
    assert not matcher.traverse_draft_tree(*tree, masks, time_threshold=1e-9)
    assert masks[0] == 3 and masks[-1] == 0
    assert matcher.num_accepted_tokens == 0
    assert matcher.traverse_draft_tree(*tree, masks, root_position=nodes - 1)


def test_temperatures_of_a_batch_and_of_a_draft_tree() -> None:
    info = TokenizerInfo(["a", "b", ".", "</s>"], VocabType.RAW, stop_token_ids=[3])
    text = 'root ::= hot cold "."\nhot[temperature=1.5] ::= "a"+\ncold[temperature=0] ::= "b"*'
    compiled = GrammarCompiler(info).compile_grammar(text)
    matchers = [GrammarMatcher(compiled) for _ in range(4)]
    for matcher, written in zip(matchers, ("", "a", "ab", "a."), strict=True):
        assert matcher.accept_string(written)
    expected = [matcher.temperature for matcher in matchers]
    assert expected == [1.5, 1.5, 0.0, None]
    assert BatchGrammarMatcher(max_threads=2).batch_temperature(matchers) == expected
    # Below the root "a", then "b" or a refused "."; below "b" the end of the text.
    tree: Any = ([1, 3, -1, -1], [-1, 2, -1, -1], [0, 1, 3, 2])
    matcher = matchers[1]
    before = matcher.num_accepted_tokens
    assert matcher.draft_tree_temperatures(*tree) == [1.5, 0.0, None, None]
    assert matcher.draft_tree_temperatures(*tree, root_position=3) == [None, None, None, 1.5]
    assert matcher.num_accepted_tokens == before
    with pytest.raises(ValueError, match="1 entries in retrieve_next_token"):
        matcher.draft_tree_temperatures([1], [-1, -1], [0, 0])


LARK = """start: (a | "(" b ")")* "."
a[temperature=0.75]: /[xy]+/ b?
b[temperature=2]: "b"
%ignore / /
"""
TAG = {
    "type": "sequence",
    "elements": [
        {"type": "grammar", "grammar": 'root[temperature=0.5] ::= "x" "b"?'},
        {"type": "star", "content": {"type": "grammar", "grammar": 'root[temperature=1] ::= "b"'}},
        {"type": "const_string", "value": "."},
    ],
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("grammar", [Grammar.from_lark(LARK), Grammar.from_structural_tag(TAG)])
def test_temperatures_are_those_of_the_path_to_a_node(grammar: Grammar, seed: int) -> None:
    info = TokenizerInfo([*"xyb(). ", "xb", "</s>"], VocabType.RAW, stop_token_ids=[8])
    compiled = GrammarCompiler(info).compile(grammar)
    random = np.random.default_rng(seed)
    matchers = [GrammarMatcher(compiled) for _ in range(6)]
    for matcher in matchers:
        for token in random.integers(0, 9, 6):
            matcher.accept_token(int(token))
    assert BatchGrammarMatcher().batch_temperature(matchers) == [
        one.temperature for one in matchers
    ]
    for matcher in matchers:
        if matcher.is_terminated():
            continue
        # Node 0 is the root; each other one hangs below an earlier one.
        tokens = [0, *(int(token) for token in random.integers(0, 9, 12))]
        parents = [-1, *(int(random.integers(0, node)) for node in range(1, 13))]
        child, sibling = [-1] * 13, [-1] * 13
        for node in range(12, 0, -1):
            sibling[node], child[parents[node]] = child[parents[node]], node
        expected: list[float | None] = []
        forks: list[GrammarMatcher | None] = []
        for node, parent in enumerate(parents):
            before = matcher if node == 0 else forks[parent]
            fork = None if before is None else before.fork()
            if fork is not None and node > 0 and not fork.accept_token(tokens[node]):
                fork = None
            forks.append(fork)
            expected.append(None if fork is None else fork.temperature)
        assert matcher.draft_tree_temperatures(child, sibling, tokens) == expected


def test_what_is_no_draft_tree_is_refused() -> None:
    grammar = compiled()
    matcher = GrammarMatcher(grammar)
    masks = np.zeros((2, words(grammar.tokenizer_info)), dtype=np.int32)
    for tree, message in [
        (([1, 0], [-1, -1], [0, 0]), "node 0 of the draft tree is reached twice"),
        (([1], [-1, -1], [0, 0]), "1 entries in retrieve_next_token"),
        (([5, -1], [-1, -1], [0, 0]), r"retrieve_next_token\[0\] is 5"),
        (([1.5, -1], [-1, -1], [0, 0]), "retrieve_next_token has shape"),
        (([-1], [-1], [0]), "2 rows, but the draft tree 1 nodes"),
        (([[1, -1]], [-1, -1], [0, 0]), "must be a list of integers"),
    ]:
        with pytest.raises(ValueError, match=message):
            matcher.traverse_draft_tree(*tree, masks)
