"""Masks on real tokenizers equal the slow twin's, also after rollback and in forks."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo
from tokenizer_folders import FOLDERS, tokenizer_info

Mask = npt.NDArray[np.int32]

# Pairs of state and token for which the mask and the slow twin were compared, by tokenizer.
COMPARED: Counter[str] = Counter()

_ATOMS = st.sampled_from(
    [
        "a",
        "b",
        "the ",
        "é",
        "[a-z]",
        "[0-9]",
        r"\d",
        r"\w",
        r"[^\"]",
        ".",
        " ",
        ",",
        '"',
        "日",
        "-",
        "[A-Za-z ]",
    ]
)


def _extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    counts = st.sampled_from(["*", "+", "?", "{2}", "{0,3}", "{1,40}", "{2,}", "{0,300}"])
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, counts).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    )


PATTERNS = st.recursive(_ATOMS, _extend, max_leaves=8)

SCHEMAS: list[dict[str, Any]] = [
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 20},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3},
        },
        "required": ["name", "age"],
    },
    {
        "$ref": "#/$defs/tree",
        "$defs": {
            "tree": {
                "type": "object",
                "properties": {
                    "value": {"type": "number"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
                },
                "required": ["value"],
                "additionalProperties": False,
            }
        },
    },
    {"type": "object", "additionalProperties": {"type": ["boolean", "null"]}},
    {"anyOf": [{"type": "string", "pattern": "^[a-z]+@[a-z]+$"}, {"const": {"a": [1, "x"]}}]},
    {},
]


def _mask(matcher: GrammarMatcher, info: TokenizerInfo) -> Mask:
    bitmask: Mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    matcher.fill_next_token_bitmask(bitmask)
    return bitmask


def _naive(matcher: GrammarMatcher, info: TokenizerInfo) -> Mask:
    bitmask: Mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    matcher._naive_bitmask(bitmask, 0)
    return bitmask


def _allowed(mask: Mask) -> np.ndarray[Any, np.dtype[np.intp]]:
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))


def _walk(grammar: Grammar, tokenizer: str, draw: Any, steps: int) -> bytes:
    """A random walk with rollbacks; returns the text if it ended complete, else an empty one.

    Asks for every mask in every way: the slow twin, after a rollback, in a fork, for single tokens,
    and by a second matcher of the same compiled grammar.
    """
    info = tokenizer_info(tokenizer)
    compiled = GrammarCompiler(info, cache_enabled=False).compile(grammar)
    matcher, second = GrammarMatcher(compiled), GrammarMatcher(compiled)
    accepted: list[int] = []
    masks: list[Mask] = []
    for _ in range(steps):
        mask = _mask(matcher, info)
        assert np.array_equal(mask, _naive(matcher, info)), accepted
        COMPARED[tokenizer] += info.vocab_size
        second.reset()
        assert all(map(second.accept_token, accepted))
        assert np.array_equal(mask, _mask(second, info)), accepted
        allowed = _allowed(mask)
        for token in [*allowed[:3], *draw.sample(range(info.vocab_size), 20)]:
            assert matcher.is_allowed(int(token)) is bool(np.isin(token, allowed)), (
                accepted,
                token,
            )
        del masks[len(accepted) :]
        masks.append(mask)
        if accepted and draw.random() < 0.2:
            back = draw.randint(1, len(accepted))
            matcher.rollback(back)
            del accepted[len(accepted) - back :]
            assert np.array_equal(_mask(matcher, info), masks[len(accepted)]), accepted
            continue
        if draw.random() < 0.1:
            fork = matcher.fork()
            assert np.array_equal(_mask(fork, info), mask)
            matcher = fork
        token = int(draw.choice(allowed))
        assert matcher.accept_token(token)
        if matcher.is_terminated():
            return info.decode_bytes(accepted)
        accepted.append(token)
    return b""


@pytest.mark.parametrize("tokenizer", FOLDERS)
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(pattern=PATTERNS, draw=st.randoms(use_true_random=False))
def test_regex_masks_equal_the_naive_ones(tokenizer: str, pattern: str, draw: Any) -> None:
    tokenizer_info(tokenizer)  # skips where it is absent
    note(pattern)
    text = _walk(Grammar.from_regex(pattern), tokenizer, draw, 8)
    if text:
        assume("\n" not in text.decode())
        # `re` reads \d and \w as Unicode classes unless told otherwise; ours are ASCII.
        assert re.fullmatch(pattern, text.decode(), re.ASCII), (pattern, text)


@pytest.mark.parametrize("tokenizer", FOLDERS)
@pytest.mark.parametrize("pattern", [r"\S+( \S+){0,9}", r"[^x]+y?", r"(a|[^a]b)*", r"[^日é]*日?"])
def test_texts_that_may_end_nearly_everywhere(tokenizer: str, pattern: str) -> None:
    info = tokenizer_info(tokenizer)
    matcher = GrammarMatcher(GrammarCompiler(info).compile(Grammar.from_regex(pattern)))
    for text in ("", "zb", "bb"):
        assert matcher.accept_string(text)
        mask = _mask(matcher, info)
        assert np.array_equal(mask, _naive(matcher, info)), text
        assert len(_allowed(mask)) > 20
        COMPARED[tokenizer] += info.vocab_size


@pytest.mark.parametrize("tokenizer", FOLDERS)
@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
@settings(max_examples=3, suppress_health_check=list(HealthCheck))
@given(draw=st.randoms(use_true_random=False))
def test_schema_masks_equal_the_naive_ones(
    tokenizer: str, schema: dict[str, Any], draw: Any
) -> None:
    _walk(Grammar.from_json_schema(schema), tokenizer, draw, 12)


@pytest.mark.parametrize("tokenizer", FOLDERS)
def test_enough_was_compared(tokenizer: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Stands after the tests that count, and is about them; prints what it finds."""
    info = tokenizer_info(tokenizer)
    if not COMPARED[tokenizer]:
        pytest.skip("the tests that compare were not chosen")
    with capfd.disabled():
        print(f"\n{tokenizer}: {COMPARED[tokenizer]:,} decisions compared")
    assert COMPARED[tokenizer] >= 80 * info.vocab_size


@pytest.mark.parametrize("tokenizer", FOLDERS)
def test_a_real_text_is_allowed_token_by_token(tokenizer: str) -> None:
    info = tokenizer_info(tokenizer)
    compiled = GrammarCompiler(info).compile(Grammar.from_json_schema(SCHEMAS[0]))
    matcher = GrammarMatcher(compiled)
    text = '{"name": "Zoë 😀 O\\"Hara", "age": 42, "tags": ["red", "blue"], "more": {"a": [1.5e3]}}'
    for token in info.tokenize_bytes(text.encode()):
        assert matcher.is_allowed(token)
        assert token in _allowed(_mask(matcher, info))
        assert matcher.accept_token(token)
    assert matcher.is_completed()
    mask = _allowed(_mask(matcher, info))
    assert sorted(mask) == sorted(info.stop_token_ids)


def test_numpy_and_torch_masks_are_the_same() -> None:
    torch = pytest.importorskip("torch")
    info = tokenizer_info("tiny")
    matcher = GrammarMatcher(GrammarCompiler(info).compile(Grammar.from_regex("[a-z ]+")))
    expected = _mask(matcher, info)
    tensor = stencilm.allocate_token_bitmask(3, info.vocab_size)
    assert isinstance(tensor, torch.Tensor)
    tensor.fill_(-1)
    assert matcher.fill_next_token_bitmask(tensor, 1) is True
    assert np.array_equal(tensor[1].numpy(), expected)
    assert (tensor[0] == -1).all() and (tensor[2] == -1).all()
    wide = torch.zeros((2, expected.size * 2), dtype=torch.int32)
    with pytest.raises(ValueError, match="does not fit"):
        matcher.fill_next_token_bitmask(wide)
    matcher.fill_next_token_bitmask(wide[:, : expected.size], 1)
    assert np.array_equal(wide[1, : expected.size].numpy(), expected)
    assert not wide[0].any() and not wide[1, expected.size :].any()


def test_wrong_bitmasks_are_refused_before_a_byte_is_written() -> None:
    torch = pytest.importorskip("torch")
    info = tokenizer_info("tiny")
    matcher = GrammarMatcher(GrammarCompiler(info).compile(Grammar.from_regex("[a-z ]+")))
    words = (info.vocab_size + 31) // 32
    read_only = np.zeros(words, dtype=np.int32)
    read_only.setflags(write=False)
    cases: list[tuple[Any, int, type[Exception] | tuple[type[Exception], ...]]] = [
        (np.zeros(words, dtype=np.int64), 0, TypeError),
        (np.zeros(words, dtype=np.float32), 0, TypeError),
        (np.zeros((2, words + 1), dtype=np.int32), 0, ValueError),
        (np.zeros((2, 2, words), dtype=np.int32), 0, ValueError),
        (np.zeros((2, words), dtype=np.int32), 2, IndexError),
        (np.zeros((words, 2), dtype=np.int32).T, 0, ValueError),
        (read_only, 0, ValueError),
        (np.zeros(4, [("pad", "i1"), ("mask", "<i4", words)])["mask"], 0, (TypeError, ValueError)),
        (np.zeros((3, words * 4 + 4), np.uint8)[:, 2:-2].view("<i4"), 1, (TypeError, ValueError)),
        (np.zeros(4, [("mask", "<i4", words), ("pad", "i1")])["mask"], 1, (TypeError, ValueError)),
        (np.zeros(words, [("mask", "<i4"), ("pad", "i1")])["mask"], 0, ValueError),
        (torch.zeros(words, dtype=torch.int64), 0, TypeError),
        (torch.zeros((2, words), dtype=torch.int32), 5, IndexError),
        ([0] * words, 0, TypeError),
        (None, 0, TypeError),
    ]
    for bitmask, index, error in cases:
        with pytest.raises(error):
            matcher.fill_next_token_bitmask(bitmask, index)
        if hasattr(bitmask, "any"):
            assert not bitmask.any()
    nowhere = torch.zeros(words, dtype=torch.int32, device="meta")
    with pytest.raises(TypeError, match=r"cannot be shared .* give an int32 numpy array"):
        matcher.fill_next_token_bitmask(nowhere)


def test_a_text_that_asks_for_too_much_does_not_spoil_the_next() -> None:
    info = TokenizerInfo([b"x", b"x" * 4096, b"</s>"], stop_token_ids=[2])
    compiled = GrammarCompiler(info).compile_regex("x{0,600000}")
    other = GrammarMatcher(GrammarCompiler(info).compile_regex("x{3}"))
    greedy = GrammarMatcher(compiled)
    with pytest.raises(stencilm.LimitExceeded, match="states"):
        while greedy.accept_token(1):
            pass
    assert greedy.num_accepted_tokens > 50
    assert other.accept_string("xxx") and other.is_completed()
    fresh = GrammarMatcher(compiled)
    assert fresh.accept_token(1) and fresh.is_completed()
    assert fresh.num_allowed_tokens() == 3


def test_misuse_of_numbers_is_an_error_with_a_way_out() -> None:
    info = TokenizerInfo([b"ab", b"</s>"], stop_token_ids=[1])
    matcher = GrammarMatcher(GrammarCompiler(info).compile_regex("(ab)+"))
    bitmask = np.zeros((2, 1), dtype=np.int32)
    with pytest.raises(stencilm.MatcherError, match="from 0 up"):
        matcher.rollback(-1)
    with pytest.raises(stencilm.MatcherError, match="only 0 were accepted"):
        matcher.rollback()
    with pytest.raises(IndexError, match="count from 0"):
        matcher.fill_next_token_bitmask(bitmask, -1)
    with pytest.raises(TypeError, match="byte order"):
        matcher.fill_next_token_bitmask(bitmask.astype(">i4"))
    assert not any(map(matcher.accept_token, [-1, 2, 2**40, 1]))
    assert matcher.num_accepted_tokens == 0 and not bitmask.any()


def test_one_compiled_grammar_serves_many_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    info = tokenizer_info("tiny")
    compiled = GrammarCompiler(info).compile(Grammar.from_json_schema(SCHEMAS[0]))
    text = info.tokenize_bytes(b'{"name": "Ada", "age": 36, "tags": ["red"]}')

    def masks(_: int) -> list[bytes]:
        matcher = GrammarMatcher(compiled)
        result = []
        for token in text:
            result.append(_mask(matcher, info).tobytes())
            assert matcher.accept_token(token)
        return result

    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(masks, range(32))
    assert all(other == first for other in others)


@pytest.mark.parametrize("tokenizer", FOLDERS)
@pytest.mark.parametrize("order", ["declared", "any"])
def test_keys_are_compared_as_values_not_as_texts(tokenizer: str, order: Any) -> None:
    info = tokenizer_info(tokenizer)
    schema = {
        "properties": {"name": {"type": "integer"}, "na\n": {}, "gone": False, "é": {}},
        "type": "object",
    }
    grammar = Grammar.from_json_schema(schema, property_order=order)
    compiled = GrammarCompiler(info).compile(grammar)
    accepted = [
        '{"x": 1}',
        '{"name": 1, "x": 2, "y": 3}',
        '{"nam": 1, "names": 2}',
        '{"é": 1, "e": 2}',
    ]
    refused = [
        '{"n\\u0061me": 1}',
        '{"name": 1, "\\u006e\\u0061me": 2}',
        '{"gone": 1}',
        '{"\\u0067one": 1}',
        '{"gon\\u0065": 1}',
        '{"x": 1, "x": 2}',
        '{"x": 1, "\\u0078": 2}',
        '{"a\\/b": 1, "a/b": 2}',
        '{"x": 1, "y": 2, "x": 3}',
        '{"na\\u000a": 1, "na\\n": 2}',
        '{"\\u00e9": 1, "é": 2}',
    ]
    for text in accepted + refused:
        matcher = GrammarMatcher(compiled)
        assert matcher.accept_string(text) is (text in accepted), text
        for cut in range(1, len(text), 1 if tokenizer in ("tiny", "gpt2") else 4):
            matcher.reset()
            if matcher.accept_string(text[:cut]):
                assert np.array_equal(_mask(matcher, info), _naive(matcher, info)), text[:cut]
