"""Bytes to tokens and back: exact for every vocabulary and every input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stencilm.errors import TokenizerError
from stencilm.tokenizers import TokenizerInfo
from stencilm.tokenizers.segment import Segmenter

from . import makers

BYTES = [bytes([byte]) for byte in range(256)]
hf = TokenizerInfo.from_huggingface
VOCABULARIES: dict[str, Callable[[], TokenizerInfo]] = {
    "list": lambda: TokenizerInfo([*BYTES, "the", " the", "é", b"\xe2\x82", "  "]),
    "byte-level": lambda: hf(makers.byte_level()),
    "byte-level with a prefix": lambda: hf(makers.byte_level(add_prefix_space=True)),
    "metaspace": lambda: hf(makers.metaspace()),
    "SentencePiece": lambda: TokenizerInfo.from_sentencepiece(makers.sentencepiece_processor()),
    "SentencePiece with NFKC": lambda: TokenizerInfo.from_sentencepiece(
        makers.sentencepiece_processor(normalised=True)
    ),
    "tiktoken": lambda: TokenizerInfo.from_tiktoken(makers.tiktoken_encoding()),
}
MIXED = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=30).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.text(alphabet=" \n\tthe{}\":,.'s▁é", max_size=40).map(str.encode),
    st.lists(st.sampled_from([b"the", b"\xe2", b"\x82\xac", b" ", b"\xed\xa0\x80"])).map(b"".join),
)


@pytest.mark.parametrize("name", VOCABULARIES)
@settings(max_examples=150)
@given(data=MIXED)
def test_any_bytes_are_spelled_exactly(name: str, data: bytes) -> None:
    info = VOCABULARIES[name]()
    assert info.decode_bytes(info.tokenize_bytes(data)) == data


@settings(max_examples=300)
@given(
    tokens=st.lists(st.binary(max_size=4), min_size=1, max_size=12),
    data=st.lists(st.integers(0, 3)).map(bytes),
)
def test_the_shortest_spelling_is_found(tokens: list[bytes], data: bytes) -> None:
    tokens = [bytes(byte % 4 for byte in token) for token in tokens]
    segmenter = Segmenter(tokens)
    fewest = shortest(tokens, data)
    if fewest is None:
        with pytest.raises(TokenizerError):
            segmenter.segment(data)
    else:
        ids = segmenter.segment(data)
        assert b"".join(tokens[token_id] for token_id in ids) == data
        assert len(ids) == fewest


def shortest(tokens: list[bytes], data: bytes) -> int | None:
    """The slow twin: widen the set of reachable ends, one token at a time."""
    reached, count = {0}, 0
    seen = set(reached)
    while len(data) not in reached:
        reached = {
            end + len(token)
            for end in reached
            for token in tokens
            if token and data.startswith(token, end)
        } - seen
        seen |= reached
        count += 1
        if not reached:
            return None
    return count


def test_ties_go_to_the_longest_first_token_and_the_smallest_id() -> None:
    assert Segmenter([b"a", b"ab", b"abc", b"bc", b"c", b"abc"]).segment(b"abc") == [2]
    assert Segmenter([b"a", b"bc", b"ab", b"c"]).segment(b"abc") == [2, 3]


def test_a_refusal_names_the_byte() -> None:
    with pytest.raises(TokenizerError) as caught:
        TokenizerInfo(["ab", "a", "c"]).tokenize_bytes(b"abcabxab")
    assert caught.value.place == "byte 5"


def test_long_texts_take_linear_time() -> None:
    info = TokenizerInfo([*BYTES, "ab" * 1000, "ab"])
    ids = info.tokenize_bytes(b"ab" * 50_000 + b"\xff" * 50_000)
    assert len(ids) == 50 + 50_000


def test_special_names_in_a_text_are_text() -> None:
    info = hf(makers.byte_level())
    assert info.decode_str(info.encode("a<|end|>b")) == "a<|end|>b"
    assert not set(info.encode("a<|end|>b")) & set(info.special_token_ids)


def test_an_unfinished_character_shows_as_one_mark() -> None:
    info = TokenizerInfo([*BYTES])
    assert info.decode_str("né 🙂".encode()[:-1]) == "né \ufffd"
    assert info.decode_str(b"\xff\xffa") == "\ufffd\ufffda"


@pytest.mark.parametrize("token_id", [-1, 256, 1 << 40])
def test_ids_out_of_range_are_refused(token_id: int) -> None:
    info = TokenizerInfo([*BYTES])
    for call in (info.decode_bytes, info.decode_str, info.dbg_tokens):
        with pytest.raises(TokenizerError, match="outside of this vocabulary"):
            call([0, token_id])


@pytest.mark.parametrize("ids", [None, 3, "ab", [1.5], [None]])
def test_what_is_no_list_of_ids_is_told_by_name(ids: Any) -> None:
    info = TokenizerInfo([*BYTES])
    for call in (info.decode_bytes, info.decode_str, info.dbg_tokens):
        with pytest.raises(TypeError, match=r"ids is .*, but must be token ids"):
            call(ids)
    if ids is not None:
        with pytest.raises(TypeError, match=r"recent_tokens is .*, but must be token ids"):
            info.tokenize_partial(b"a", ids)


def test_recent_tokens_may_be_an_array() -> None:
    info = hf(makers.byte_level())
    for text in (b"{", b"{\n\n", b"a b"):
        recent = info.tokenize_bytes(text)
        for data in (b"name", b"\n x"):
            told = info.tokenize_partial(data, recent)
            assert info.tokenize_partial(data, np.array(recent)) == told
            assert info.tokenize_partial(data, iter(recent)) == told


def test_half_a_character_is_not_encoded() -> None:
    with pytest.raises(TokenizerError, match="character 1: "):
        hf(makers.byte_level()).encode("a\ud83d")


def test_a_list_cannot_encode() -> None:
    with pytest.raises(TokenizerError, match="tokenize_bytes"):
        TokenizerInfo(["a"]).encode("a")


def test_text_is_not_taken_for_bytes() -> None:
    with pytest.raises(TypeError, match="data is a str, but must be bytes"):
        TokenizerInfo(["a"]).tokenize_bytes("a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="data is a str, but must be bytes"):
        TokenizerInfo(["a"]).tokenize_partial("a")  # type: ignore[arg-type]
    assert TokenizerInfo(["a"]).tokenize_bytes(bytearray(b"aa")) == [0, 0]
