"""Tokenizers of transformers: fast and slow classes, wrappers of tiktoken and SentencePiece."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stencilm.errors import TokenizerError
from stencilm.tokenizers import TokenizerInfo, VocabType

from . import makers

transformers = pytest.importorskip("transformers")
hf = TokenizerInfo.from_huggingface
TEXT = 'Hello wörld, don\'t\n\t  {"a": 1} 漢🙂'


def fast(**options: Any) -> Any:
    return transformers.PreTrainedTokenizerFast(tokenizer_object=makers.byte_level(), **options)


def sentencepiece_file(folder: Path) -> str:
    file = folder / "tokenizer.model"
    file.write_bytes(makers.sentencepiece_model())
    return str(file)


def gpt_sw3(folder: Path) -> Any:
    """A slow class over SentencePiece, with special tokens of its own after the pieces."""
    return transformers.GPTSw3Tokenizer(sentencepiece_file(folder))


def sentencepiece_backend(folder: Path) -> Any:
    """The slow base class, whose decode writes byte tokens out by name."""
    module = pytest.importorskip("transformers.tokenization_utils_sentencepiece")
    return module.SentencePieceBackend(
        vocab_file=sentencepiece_file(folder), unk_token="<unk>", eos_token="</s>"
    )


def byt5(folder: Path) -> Any:
    """A slow class with one character for each byte."""
    return transformers.ByT5Tokenizer()


class SlowByteLevel(transformers.PreTrainedTokenizer):  # type: ignore[misc,name-defined]
    """GPT-2's slow class as it was: Python, with a byte_decoder."""

    def __init__(self, **options: Any) -> None:
        from stencilm.tokenizers.spelling import BYTE_LEVEL_ALPHABET

        self.inner = makers.byte_level()
        self.byte_decoder = dict(BYTE_LEVEL_ALPHABET)
        super().__init__(eos_token="<|end|>", **options)

    @property
    def vocab_size(self) -> int:
        return int(self.inner.get_vocab_size(with_added_tokens=False))

    def get_vocab(self) -> dict[str, int]:
        return dict(self.inner.get_vocab())

    def _tokenize(self, text: str, **options: Any) -> list[str]:
        return list(self.inner.encode(text).tokens)

    def _convert_token_to_id(self, token: str) -> int | None:
        found: int | None = self.inner.token_to_id(token)
        return found

    def _convert_id_to_token(self, index: int) -> str:
        return str(self.inner.id_to_token(index))

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        spelled = bytes(self.byte_decoder[char] for token in tokens for char in token)
        return spelled.decode("utf-8", "replace")


class OverTiktoken(transformers.PreTrainedTokenizer):  # type: ignore[misc,name-defined]
    """A remote class in the manner of Qwen and Kimi: tiktoken inside, bytes as vocabulary keys."""

    def __init__(self, **options: Any) -> None:
        self.inner = makers.tiktoken_encoding()
        self.names = {
            self.inner.encode_single_token(name): name for name in self.inner.special_tokens_set
        }
        super().__init__(eos_token="<|turn|>", **options)

    @property
    def vocab_size(self) -> int:
        return int(self.inner.n_vocab)

    def get_vocab(self) -> dict[Any, int]:
        return {name: token_id for token_id, name in self.names.items()}

    def tokenize(self, text: str, **options: Any) -> list[Any]:
        return [self._convert_id_to_token(one) for one in self.inner.encode_ordinary(text)]

    def _convert_token_to_id(self, token: Any) -> int:
        return int(self.inner.encode_single_token(token))

    def _convert_id_to_token(self, index: int) -> Any:
        return self.names.get(index) or self.inner.decode_single_token_bytes(index)

    def _decode(self, token_ids: Any, **options: Any) -> str:
        return str(self.inner.decode(list(token_ids)))


SLOW: dict[str, tuple[Callable[[Path], Any], VocabType]] = {
    "SentencePiece, own special tokens": (gpt_sw3, VocabType.BYTE_FALLBACK),
    "SentencePiece, bytes shown by name": (sentencepiece_backend, VocabType.BYTE_FALLBACK),
    "bytes as characters": (byt5, VocabType.RAW),
    "byte-level in Python": (lambda folder: SlowByteLevel(), VocabType.BYTE_LEVEL),
    "tiktoken inside": (lambda folder: OverTiktoken(), VocabType.RAW),
}


@pytest.mark.parametrize("kind", SLOW)
def test_slow_classes_spell_exactly(kind: str, tmp_path: Path) -> None:
    make, vocab_type = SLOW[kind]
    tokenizer = make(tmp_path)
    info = hf(tokenizer)
    assert info.vocab_type is vocab_type
    assert info.stop_token_ids == [tokenizer.eos_token_id]
    ids = info.tokenize_bytes(TEXT.encode())
    assert info.decode_str(ids) == TEXT
    assert info.facts.missing_bytes == b""
    assert not set(ids) & set(info.special_token_ids)


def test_byte_names_in_the_own_decode_are_known(tmp_path: Path) -> None:
    assert hf(sentencepiece_backend(tmp_path)).facts.decode_shows_bytes
    assert not hf(gpt_sw3(tmp_path)).facts.decode_shows_bytes


def test_fast_and_bare_agree() -> None:
    bare = hf(makers.byte_level(), stop_token_ids=[600])
    assert hf(fast(eos_token="<|end|>")) == bare


def test_a_bare_tokenizer_declares_no_stop_token() -> None:
    info = hf(makers.byte_level())
    assert (info.stop_token_ids, info.facts.has_stop_token) == ([], False)
    assert info.special_token_ids == [600]


def test_every_declared_end_is_a_stop_token() -> None:
    tokenizer = fast(eos_token="<|end|>")
    several = type("Several", (type(tokenizer),), {"eos_token_id": [600, 5]})
    tokenizer.__class__ = several
    info = hf(tokenizer)
    assert info.stop_token_ids == [5, 600]
    assert info.decode_bytes([5]) == b""  # a stop token never spells text
    assert hf(tokenizer, stop_token_ids=7).stop_token_ids == [7]
    assert hf(tokenizer, stop_token_ids=[]).stop_token_ids == []


def test_special_tokens_of_the_wrapper_count() -> None:
    tokenizer = fast(eos_token="<|end|>", pad_token="hello")
    assert tokenizer.convert_tokens_to_ids("hello") in hf(tokenizer).special_token_ids


def test_padding_widens_the_vocabulary() -> None:
    info = hf(fast(), vocab_size=640)
    assert (info.vocab_size, info.facts.padding, len(info.decoded_vocab)) == (640, 39, 640)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"vocab_size": 600}, "vocab_size is 600, but the .* has ids up to 600"),
        ({"vocab_size": "601"}, "vocab_size is '601'"),
        ({"vocab_size": True}, "vocab_size is True"),
        ({"vocab_size": 1 << 30}, "the most is"),
        ({"stop_token_ids": [601]}, "stop token 601, but ids lie between 0 and 600"),
        ({"stop_token_ids": [-1]}, "stop token -1"),
        ({"stop_token_ids": ["x"]}, "holds 'x'"),
        ({"stop_token_ids": "x"}, "is 'x'"),
    ],
)
def test_wrong_ids_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(TokenizerError, match=said):
        hf(fast(), **options)


@pytest.mark.parametrize("given", [object(), "gpt2", None, 7, makers.tiktoken_encoding])
def test_what_is_no_tokenizer_is_refused(given: Any) -> None:
    with pytest.raises(TokenizerError, match="AutoTokenizer"):
        hf(given)


def test_other_libraries_are_pointed_to_their_door() -> None:
    with pytest.raises(TokenizerError, match="from_tiktoken"):
        hf(makers.tiktoken_encoding())
    with pytest.raises(TokenizerError, match="from_sentencepiece"):
        hf(makers.sentencepiece_processor())
    with pytest.raises(TokenizerError, match="from_huggingface"):
        TokenizerInfo.from_tiktoken(makers.byte_level())
    with pytest.raises(TokenizerError, match="SentencePieceProcessor"):
        TokenizerInfo.from_sentencepiece(makers.byte_level())


def test_a_remote_class_that_fails_is_named(tmp_path: Path) -> None:
    class Broken(SlowByteLevel):
        def _decode(self, *args: Any, **options: Any) -> str:
            raise RuntimeError("not today")

    with pytest.raises(TokenizerError, match=r"Broken\.decode.*not today"):
        hf(Broken())


def test_a_clean_up_of_blanks_is_known() -> None:
    assert hf(fast(clean_up_tokenization_spaces=True)).facts.cleans_up_spaces
    assert not hf(fast(clean_up_tokenization_spaces=False)).facts.cleans_up_spaces


@pytest.mark.parametrize(
    ("logits", "encodes"), [(640, True), (601, True), (600, True), (500, False)]
)
def test_a_model_may_lack_logits_of_some_tokens(logits: int, encodes: bool) -> None:
    """Llama 3.2 Vision has no logits for its `<|image|>`; such a tokenizer was refused."""
    whole = hf(fast())
    info = TokenizerInfo._of_model(fast(), logits)
    assert info.vocab_size == logits
    assert info.decoded_vocab[:601] == whole.decoded_vocab[:logits]
    assert info.special_token_ids == [one for one in whole.special_token_ids if one < logits]
    if encodes:
        assert info.encode(TEXT) == whole.encode(TEXT)
    else:  # the tokenizer would write tokens that are not there
        assert info.decode_bytes(info.tokenize_bytes(TEXT.encode())) == TEXT.encode()
    with pytest.raises(TokenizerError, match=f"{logits}, but ids lie between 0 and {logits - 1}"):
        TokenizerInfo._of_model(fast(), logits, [logits])
