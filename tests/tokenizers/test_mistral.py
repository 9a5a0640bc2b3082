"""Mistral's tokenizers: a tekken.json, and those that mistral-common loads."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from stencilm import GrammarCompiler, GrammarMatcher, TokenizerError, TokenizerInfo

pytest.importorskip("tiktoken")

MERGED = [b"he", b"ll", b"llo", b"hello", b'{"', b'":', b" {", b"\xc3\xa9"]
NAMES = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]"]


def tekken(**changes: Any) -> dict[str, Any]:
    """A small file: 256 bytes and a few merges after ten special tokens, and unused ranks."""
    tokens = [*(bytes([byte]) for byte in range(256)), *MERGED, b"xx", b"yy", b"zz"]
    data: dict[str, Any] = {
        "config": {
            "pattern": r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+",
            "num_vocab_tokens": len(tokens),
            "default_vocab_size": 10 + 256 + len(MERGED),
            "default_num_special_tokens": 10,
            "version": "v11",
        },
        "vocab": [
            {"rank": rank, "token_bytes": b64encode(token).decode(), "token_str": None}
            for rank, token in enumerate(tokens)
        ],
        "special_tokens": [
            {"rank": rank, "token_str": name, "is_control": True} for rank, name in enumerate(NAMES)
        ],
    }
    return data | changes


def written(folder: Path, data: Any, name: str = "tekken.json") -> Path:
    file = folder / name
    file.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return file


@pytest.mark.parametrize("name", ["tekken.json", "tokenizer.json"])
def test_a_tekken_file_is_read(tmp_path: Path, name: str) -> None:
    file = written(tmp_path, tekken(), name)
    for place in (file, tmp_path):
        info = TokenizerInfo.from_file(place)
        assert info.vocab_size == 10 + 256 + len(MERGED)
        assert info.stop_token_ids == [2]
        assert info.special_token_ids == list(range(10))
        assert info.decoded_vocab[10 + 256 :] == MERGED
        text = 'hello {"é": 1}😀'.encode()
        ids = info.tokenize_bytes(text)
        assert info.decode_bytes(ids) == text
        assert ids[0] == 10 + 256 + MERGED.index(b"hello")


def test_masks_and_special_tokens_have_the_ids_of_the_model(tmp_path: Path) -> None:
    info = TokenizerInfo.from_file(written(tmp_path, tekken()))
    matcher = GrammarMatcher(GrammarCompiler(info).compile_lark('start: <[5]> "hello" <[9]>'))
    assert [i for i in range(info.vocab_size) if matcher.is_allowed(i)] == [5]
    assert matcher.accept_token(5) and matcher.accept_token(10 + 256 + 3)
    assert [i for i in range(info.vocab_size) if matcher.is_allowed(i)] == [9]
    named = GrammarMatcher(GrammarCompiler(info).compile_grammar('root ::= %token("[TOOL_CALLS]")'))
    assert not named.accept_token(9) and named.accept_token(5)


def test_old_files_name_no_special_tokens(tmp_path: Path) -> None:
    config = tekken()["config"] | {"version": "v3"}
    data = tekken(config=config)
    del data["special_tokens"]
    info = TokenizerInfo.from_file(written(tmp_path, data))
    assert info.stop_token_ids == [2] and len(info.special_token_ids) == 10


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("{", "no tekken.json as Mistral writes them"),
        ({"vocab": []}, "lacks vocab or config"),
        (tekken(vocab=tekken()["vocab"][1:]), "the ranks are not 0 to 263, each once"),
        (tekken(vocab=[{"rank": 0, "token_bytes": "?"}]), "Error"),
        (tekken(config=tekken()["config"] | {"default_num_special_tokens": 999}), "999 special"),
        (tekken(config=tekken()["config"] | {"default_vocab_size": 10**9}), "of 1000000000"),
        (tekken(config=tekken()["config"] | {"pattern": "("}), "fetch the file again"),
        (tekken(special_tokens=[{"rank": 3, "token_str": "<SPECIAL_4>"}]), "have one name"),
        (tekken(special_tokens=[{"rank": 10, "token_str": "<x>"}]), "a rank of 10 or more"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, data: Any, message: str) -> None:
    file = written(tmp_path, data)
    with pytest.raises(TokenizerError, match=message) as caught:
        TokenizerInfo.from_file(file)
    assert caught.value.place == str(file)


def _files_of_mistral_common() -> list[Path]:
    try:
        import mistral_common
        from transformers.tokenization_mistral_common import MistralCommonBackend  # noqa: F401
    except ImportError:
        return []
    return sorted((Path(mistral_common.__file__).parent / "data").iterdir())


@pytest.mark.skipif(not _files_of_mistral_common(), reason="mistral-common is not installed")
def test_the_tokenizers_of_mistral_common_are_read_like_their_files() -> None:
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer
    from transformers.tokenization_mistral_common import MistralCommonBackend

    for file in _files_of_mistral_common():
        backend = MistralCommonBackend(tokenizer_path=str(file))
        info = TokenizerInfo.from_huggingface(backend)
        assert info.vocab_size == backend.vocab_size
        assert info.stop_token_ids == [backend.eos_token_id]
        text = '{"a": [1, "é😀"]}\n'
        ids = backend.encode(text, add_special_tokens=False)
        # SentencePiece puts a space before a text, which is no part of what tokens spell.
        assert info.decode_bytes(ids) == (" " * info.add_prefix_space + text).encode()
        from_file = TokenizerInfo.from_file(file)
        assert from_file.decoded_vocab == info.decoded_vocab
        plain = TokenizerInfo.from_huggingface(MistralTokenizer.from_file(str(file)))
        assert plain.decoded_vocab == info.decoded_vocab
