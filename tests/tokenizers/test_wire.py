"""A serialised vocabulary comes back whole, or is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stencilm.errors import TokenizerError
from stencilm.tokenizers import TokenizerInfo, VocabType

from . import makers

SMALL = TokenizerInfo(
    ["a", None, "", " é", b"\xff", "</s>", "<\u0001｜>"],
    vocab_size=9,
    stop_token_ids=[5],
    special_token_ids=[6],
)
TEXT = SMALL.serialize_json()


@pytest.mark.parametrize("make", [lambda: SMALL, lambda: from_metaspace()])
def test_it_comes_back_whole(make: Any) -> None:
    info = make()
    again = TokenizerInfo.deserialize_json(info.serialize_json())
    assert again == info
    assert again.facts == info.facts
    assert again.decoded_vocab == info.decoded_vocab
    assert again.vocab_type is info.vocab_type
    assert again.dbg_tokens(range(info.vocab_size)) == info.dbg_tokens(range(info.vocab_size))
    assert again.serialize_json() == info.serialize_json()


def from_metaspace() -> TokenizerInfo:
    return TokenizerInfo.from_huggingface(makers.metaspace(), stop_token_ids=[2], vocab_size=704)


def test_what_comes_back_spells_but_does_not_encode() -> None:
    again = TokenizerInfo.deserialize_json(from_metaspace().serialize_json())
    assert again.decode_str(again.tokenize_bytes("hello wörld".encode())) == "hello wörld"
    with pytest.raises(TokenizerError, match="without a tokenizer"):
        again.encode("hello")


@given(st.integers(0, len(TEXT) - 1))
def test_cut_short_it_is_refused(length: int) -> None:
    with pytest.raises(TokenizerError):
        TokenizerInfo.deserialize_json(TEXT[:length])


@settings(max_examples=400)
@given(st.integers(0, 8 * len(TEXT.encode()) - 1))
def test_any_flipped_bit_is_noticed(bit: int) -> None:
    data = bytearray(TEXT.encode())
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(TokenizerError):
        TokenizerInfo.deserialize_json(data.decode("utf-8", "surrogateescape"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cut short"),
        ("null", "no stencilm.TokenizerInfo"),
        ("[]", "no stencilm.TokenizerInfo"),
        ('{"format":"other"}', "no stencilm.TokenizerInfo"),
        (TEXT.replace('"version":1', '"version":2'), "version 2 .* reads version 1"),
        (json.dumps({"format": "stencilm.TokenizerInfo", "version": 1}), "checksum"),
        (TEXT.replace('"vocab_size":9', '"vocab_size":8'), "checksum"),
        (TEXT + " ", "checksum"),
        ("[" * 100_000, "cut short"),
    ],
)
def test_other_texts_are_refused(text: str, said: str) -> None:
    with pytest.raises(TokenizerError, match=said):
        TokenizerInfo.deserialize_json(text)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(TokenizerError):
        TokenizerInfo.deserialize_json(None)  # type: ignore[arg-type]


def test_the_type_survives() -> None:
    info = TokenizerInfo(["Ġa", "b"], VocabType.BYTE_LEVEL)
    again = TokenizerInfo.deserialize_json(info.serialize_json())
    assert (again.vocab_type, again.facts.space_symbol) == (VocabType.BYTE_LEVEL, "Ġ")
