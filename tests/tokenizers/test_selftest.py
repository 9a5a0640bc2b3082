"""Tokens that do not spell what they seem to: refused where masks would lie, else noted."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from stencilm.errors import TokenizerError
from stencilm.tokenizers import TokenizerInfo

from . import makers

hf = TokenizerInfo.from_huggingface


def changed(tokenizer: Any, **parts: Any) -> Any:
    """A copy of a tokenizer with some of its parts, as JSON, replaced."""
    from tokenizers import Tokenizer

    return Tokenizer.from_str(json.dumps(json.loads(tokenizer.to_str()) | parts))


def with_word_ends() -> Any:
    """OpenAI GPT's and CLIP's kind: `</w>` closes a word."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=300, end_of_word_suffix="</w>", show_progress=False)
    tokenizer.train_from_iterator(makers.corpus(), trainer)
    return tokenizer


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "word ends, decoder for them": (
        lambda: changed(with_word_ends(), decoder={"type": "BPEDecoder", "suffix": "</w>"}),
        "#/decoder: .*BPEDecoder",
    ),
    "word ends, byte-level decoder": (
        lambda: changed(with_word_ends(), decoder=BYTE_LEVEL | {"use_regex": True}),
        "encodes 'hello' as .* spell 'hello</w>'",
    ),
    "CTC": (
        lambda: changed(
            makers.byte_level(),
            decoder={
                "type": "CTC",
                "pad_token": "<pad>",
                "word_delimiter_token": "|",
                "cleanup": True,
            },
        ),
        "#/decoder: .*CTC",
    ),
    "byte-level without its decoder": (
        lambda: changed(makers.byte_level(), decoder=None),
        "encodes .* spell",
    ),
    "WordPiece that cleans blanks up": (
        lambda: makers.wordpiece(cleanup=True),
        "token .* between two .* but its vocabulary spells",
    ),
    "blanks stripped from every token": (
        lambda: changed(
            makers.metaspace(),
            decoder={
                "type": "Sequence",
                "decoders": [
                    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                    {"type": "ByteFallback"},
                    {"type": "Strip", "content": " ", "start": 1, "stop": 0},
                ],
            },
        ),
        "token .* between two",
    ),
    "decoder of another family": (
        lambda: changed(makers.metaspace(), decoder=BYTE_LEVEL | {"use_regex": True}),
        "encodes .* spell",
    ),
    "an empty vocabulary": (
        lambda: changed(
            makers.byte_level(),
            added_tokens=[],
            model={"type": "BPE", "vocab": {}, "merges": []},
        ),
        "has no tokens",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_tokens_that_do_not_spell_are_refused(case: str) -> None:
    make, said = REFUSED[case]
    with pytest.raises(TokenizerError, match=said):
        hf(make())


def test_a_wrapper_that_decodes_otherwise_is_refused() -> None:
    transformers = pytest.importorskip("transformers")

    class Shouting(transformers.PreTrainedTokenizerFast):  # type: ignore[misc,name-defined]
        def _decode(self, *args: Any, **options: Any) -> str:
            return str(super()._decode(*args, **options)).upper()

    with pytest.raises(TokenizerError, match="Shouting decodes this token"):
        hf(Shouting(tokenizer_object=makers.byte_level()))


def test_byte_tokens_that_spell_no_bytes_are_refused() -> None:
    # Alone, each broken byte looks right; only whole characters show that the bytes are mixed up.
    class MixedUp:
        def encode_ordinary(self, text: str) -> list[int]:
            return list(text.encode())

        def decode(self, ids: list[int], errors: str) -> str:
            return bytes(
                b ^ 1 if 0x80 <= b < 0xC0 else b for b in (self.table[i][0] for i in ids)
            ).decode("utf-8", errors)

        table = tuple(bytes([byte]) for byte in range(256))
        n_vocab = 256
        name = "mixed up"
        special_tokens_set: frozenset[str] = frozenset()
        eot_token = 0

        def decode_single_token_bytes(self, token_id: int) -> bytes:
            return self.table[token_id]

    with pytest.raises(TokenizerError, match="byte tokens"):
        TokenizerInfo.from_tiktoken(MixedUp())


NORMALISED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "lower case": ({"type": "Lowercase"}, ("upper case", "JSON", "accents")),
    "NFC": ({"type": "NFC"}, ("combining marks",)),
    "no accents": (
        {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]},
        ("accents", "combining marks"),
    ),
    "stripped": (
        {"type": "Strip", "strip_left": True, "strip_right": True},
        ("outer blanks",),
    ),
}


@pytest.mark.parametrize("case", NORMALISED)
def test_what_a_normaliser_loses_is_noted_and_worked_around(case: str) -> None:
    normalizer, lost = NORMALISED[case]
    info = hf(changed(makers.byte_level(), normalizer=normalizer))
    assert set(lost) <= set(info.facts.lossy)
    text = "  Ada, Zoë, cafe\u0301 "
    assert info.decode_str(info.tokenize_bytes(text.encode())) == text
    # Masks do not depend on it: the bytes of the tokens are those of the plain tokenizer.
    assert info == hf(makers.byte_level())


def test_a_vocabulary_without_bytes_tells_which_it_cannot_spell() -> None:
    info = hf(makers.metaspace(byte_fallback=False))
    assert 0 in info.facts.unspellable_bytes
    assert ord("e") not in info.facts.unspellable_bytes
    with pytest.raises(TokenizerError, match=r"byte 0: no token of this vocabulary goes on"):
        info.tokenize_bytes(b"\0")


@pytest.mark.parametrize("unknown", [False, True])
def test_characters_that_are_lacking_are_noted(unknown: bool) -> None:
    info = hf(makers.letters(unknown=unknown))
    assert "a plain word" not in info.facts.lossy
    assert "CJK" in info.facts.lossy
    assert info.special_token_ids == ([18] if unknown else [])
    assert info.decode_bytes(info.tokenize_bytes(b"hello {} ")) == b"hello {} "


def test_what_a_library_cannot_encode_is_noted() -> None:
    info = hf(makers.words())
    assert info.decode_str(info.encode("hello , world")) == " hello , world"
    assert info.add_prefix_space
    assert "JSON" in info.facts.lossy
    with pytest.raises(TokenizerError, match="cannot encode 'absent'"):
        info.encode("absent")
    with pytest.raises(TokenizerError, match="byte 0"):
        info.tokenize_bytes(b"absent")
    assert info.tokenize_bytes(b" hello world") == [0, 1]


def test_a_vocabulary_of_signs_is_tested_one_by_one() -> None:
    from tokenizers import Tokenizer, decoders, models

    tokenizer = Tokenizer(models.BPE({"{": 0, "}": 1, "[]": 2}, []))
    tokenizer.decoder = decoders.Fuse()
    assert hf(tokenizer).decoded_vocab == [b"{", b"}", b"[]"]
    tokenizer.decoder = decoders.Sequence([decoders.Fuse(), decoders.Strip("{", 1, 0)])
    with pytest.raises(TokenizerError, match=r"token 0: .* decodes this token to ''"):
        hf(tokenizer)
