"""A serialised vocabulary comes back whole, or is refused."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import damage
from stencilm.errors import TokenizerError, UnsupportedFeature
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


@pytest.mark.parametrize("make", [lambda: SMALL, lambda: from_byte_level()])
def test_a_changed_text_with_a_checksum_of_its_own_is_refused_or_works(make: Any) -> None:
    """A checksum can be made to fit any text."""
    text = make().serialize_json()
    fields = json.loads(text)
    del fields["checksum"]
    for seed in range(200):
        damaged = damage.damaged_json(fields, random.Random(seed))
        body = json.dumps(damaged, separators=(",", ":"))[:-1]
        digest = hashlib.sha256(body.encode()).hexdigest()
        try:
            info = TokenizerInfo.deserialize_json(f'{body},"checksum":"{digest}"}}')
            with contextlib.suppress(UnsupportedFeature):
                info.learn_encoding()
            info.tokenize_partial(b"ab")
        except TokenizerError as error:
            assert str(error), seed


def from_byte_level() -> TokenizerInfo:
    return TokenizerInfo.from_huggingface(makers.byte_level(), stop_token_ids=[600])
