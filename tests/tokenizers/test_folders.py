"""Tokenizers on disk, with the settings beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stencilm.errors import TokenizerError
from stencilm.tokenizers import TokenizerInfo

from . import makers


def byte_level_folder(folder: Path, **settings: Any) -> Path:
    """A folder with a tokenizer.json of 601 entries and some settings files."""
    makers.byte_level().save(str(folder / "tokenizer.json"))
    for name, content in settings.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_a_folder_and_its_file_are_the_same(tmp_path: Path) -> None:
    byte_level_folder(tmp_path, tokenizer_config={"eos_token": "<|end|>"})
    info = TokenizerInfo.from_file(tmp_path)
    assert info == TokenizerInfo.from_file(str(tmp_path / "tokenizer.json"))
    assert info == TokenizerInfo.from_huggingface(makers.byte_level(), stop_token_ids=[600])
    assert info.encode("hello") == makers.byte_level().encode("hello").ids


STOPS: dict[str, tuple[dict[str, Any], list[int]]] = {
    "nothing": ({}, []),
    "a name": ({"tokenizer_config": {"eos_token": "<|end|>"}}, [600]),
    "a described name": ({"tokenizer_config": {"eos_token": {"content": "<|end|>"}}}, [600]),
    "a map": ({"special_tokens_map": {"eos_token": "<|end|>"}}, [600]),
    "null": ({"tokenizer_config": {"eos_token": None}}, []),
    "a list for generation": ({"generation_config": {"eos_token_id": [7, 600]}}, [7, 600]),
    "both": (
        {
            "tokenizer_config": {"eos_token": "<|end|>"},
            "generation_config": {"eos_token_id": 7},
            "config": {"eos_token_id": 8},
        },
        [7, 600],
    ),
    "the model's own": ({"config": {"eos_token_id": 8}}, [8]),
    "an ordinary entry": ({"tokenizer_config": {"eos_token": "hello"}}, [-1]),
}


@pytest.mark.parametrize("case", STOPS)
def test_stop_tokens_come_from_the_settings(case: str, tmp_path: Path) -> None:
    settings, stop = STOPS[case]
    hello = makers.byte_level().token_to_id("hello")
    info = TokenizerInfo.from_file(byte_level_folder(tmp_path, **settings))
    assert info.stop_token_ids == [hello if token_id == -1 else token_id for token_id in stop]
    assert TokenizerInfo.from_file(tmp_path, stop_token_ids=[3]).stop_token_ids == [3]


def test_special_tokens_come_from_the_settings(tmp_path: Path) -> None:
    config = {
        "added_tokens_decoder": {
            "600": {"content": "<|end|>", "special": True},
            "605": {"content": "<|later|>", "special": True},
            "x": {"content": "ignored"},
        },
        "additional_special_tokens": ["hello", {"content": "<|absent|>"}],
        "pad_token": "<|later|>",
        "clean_up_tokenization_spaces": True,
    }
    info = TokenizerInfo.from_file(byte_level_folder(tmp_path, tokenizer_config=config))
    hello = makers.byte_level().token_to_id("hello")
    assert info.special_token_ids == [hello, 600, 605]
    assert (info.vocab_size, info.facts.holes, info.decoded_vocab[605]) == (606, 4, b"<|later|>")
    assert info.facts.cleans_up_spaces


@pytest.mark.parametrize(
    ("config", "width"),
    [
        ({"vocab_size": 640}, 640),
        ({"text_config": {"vocab_size": 640}}, 640),
        ({"vocab_size": 10}, 601),
        ({"vocab_size": "640"}, 601),
    ],
)
def test_the_width_comes_from_the_model(config: Any, width: int, tmp_path: Path) -> None:
    folder = byte_level_folder(tmp_path, config=config)
    assert TokenizerInfo.from_file(folder).vocab_size == width
    assert TokenizerInfo.from_file(folder, vocab_size=700).vocab_size == 700


def test_a_sentencepiece_folder_loads(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(makers.sentencepiece_model())
    plain = TokenizerInfo.from_sentencepiece(makers.sentencepiece_processor())
    assert TokenizerInfo.from_file(tmp_path) == plain
    assert TokenizerInfo.from_file(tmp_path / "tokenizer.model") == plain
    size = plain.vocab_size
    added = {str(size): {"content": "<|im_end|>", "special": True}}
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"added_tokens_decoder": added, "eos_token": "<|im_end|>"})
    )
    info = TokenizerInfo.from_file(tmp_path)
    assert (info.vocab_size, info.stop_token_ids) == (size + 1, [2, size])


def write(folder: Path, name: str, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize(
    ("files", "asked", "said"),
    [
        ({}, "absent", "no such file or folder"),
        ({}, ".", "holds no tokenizer.json .* only nothing"),
        ({"vocab.json": "{}", "merges.txt": ""}, ".", "only merges.txt, vocab.json; load it with"),
        ({"tokenizer.json": "{}"}, ".", "tokenizers library cannot read it"),
        ({"tokenizer.json": "no json"}, "tokenizer.json", "tokenizers library cannot read it"),
        ({"tokenizer.model": "IQ== 0\nIg== 1\n"}, ".", "from_tiktoken"),
        ({"other.txt": "x"}, "other.txt", "sentencepiece cannot read it"),
    ],
)
def test_what_is_no_tokenizer_is_refused(
    files: dict[str, str], asked: str, said: str, tmp_path: Path
) -> None:
    for name, content in files.items():
        write(tmp_path, name, content)
    with pytest.raises(TokenizerError, match=said) as caught:
        TokenizerInfo.from_file(tmp_path / asked)
    assert str(tmp_path) in str(caught.value.place)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"tokenizer_config": {"eos_token": "</nowhere>"}}, "'</nowhere>', which the vocabulary"),
        ({"tokenizer_config": [1]}, "no JSON object"),
        (
            {"tokenizer_config": {"added_tokens_decoder": {"9" * 12: {"content": "<x>"}}}},
            "the id 999999999999, but ids end",
        ),
        ({"generation_config": {"eos_token_id": "x"}}, "eos_token_id is 'x'"),
        ({"generation_config": {"eos_token_id": 999}}, "declares the stop token 999"),
    ],
)
def test_settings_that_contradict_are_refused(
    settings: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(TokenizerError, match=said):
        TokenizerInfo.from_file(byte_level_folder(tmp_path, **settings))


def test_broken_settings_are_named(tmp_path: Path) -> None:
    write(byte_level_folder(tmp_path), "tokenizer_config.json", "{")
    with pytest.raises(TokenizerError, match=r"tokenizer_config.json: it is no JSON"):
        TokenizerInfo.from_file(tmp_path)
