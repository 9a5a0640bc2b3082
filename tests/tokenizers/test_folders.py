"""Tokenizers on disk, with the settings beside them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import damage
from stencilm.compat.llguidance import LLTokenizer
from stencilm.errors import TokenizerError
from stencilm.tokenizers import TokenizerInfo
from stencilm.tokenizers.merge_prefixes import check_tokenizer_text

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
        (
            {"generation_config": {"eos_token_id": 999}},
            r"generation_config\.json declares the stop token 999, but ids lie between 0",
        ),
        ({"config": {"eos_token_id": [0, 999]}}, r"^config\.json declares the stop token 999"),
        ({"config": {"eos_token_id": "x"}}, r"config\.json: eos_token_id is 'x'"),
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


DAMAGED = ("byte_level", "byte_fallback", "unigram", "wordpiece", "sentencepiece")


def healthy_folder(folder: Path, kind: str) -> dict[str, bytes]:
    """The files of a folder with a tokenizer of a kind and its settings."""
    if kind == "sentencepiece":
        tokenizer = {"tokenizer.model": makers.sentencepiece_model()}
    else:
        makers_of: dict[str, Callable[[], Any]] = {
            "byte_level": makers.byte_level,
            "byte_fallback": makers.metaspace,
            "unigram": lambda: makers.metaspace(model="unigram", byte_fallback=False),
            "wordpiece": lambda: makers.wordpiece(cleanup=False),
        }
        made = makers_of[kind]()
        tokenizer = {"tokenizer.json": made.to_str().encode()}
    settings: dict[str, Any] = {
        "tokenizer_config": {
            "eos_token": None if kind == "wordpiece" else "<|stop|>",
            "added_tokens_decoder": {"700": {"content": "<|stop|>", "special": True}},
            "additional_special_tokens": ["hello"],
        },
        "config": {"vocab_size": 710, "eos_token_id": 3},
    }
    return tokenizer | {f"{name}.json": json.dumps(of).encode() for name, of in settings.items()}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_folder_is_refused_by_name_or_works(kind: str, tmp_path: Path) -> None:
    """Nothing but errors of ours, whatever the files hold."""
    files = healthy_folder(tmp_path, kind)
    for seed in range(60):
        draws = random.Random(seed)
        name = draws.choice([next(iter(files)), *files])  # mostly the tokenizer itself
        if name.endswith(".json") and draws.random() < 0.75:
            document = damage.damaged_json(json.loads(files[name]), draws)
            data = json.dumps(document).encode()
        else:
            data = damage.damaged_bytes(files[name], draws)
        for file, content in (files | {name: data}).items():
            (tmp_path / file).write_bytes(content)
        try:
            info = TokenizerInfo.from_file(tmp_path)
        except TokenizerError as error:
            assert str(error), seed
            continue
        assert TokenizerInfo.deserialize_json(info.serialize_json()) == info, seed
        assert info.decode_bytes(range(min(info.vocab_size, 99))) is not None


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "config.json"])
@pytest.mark.parametrize("what", ["folder", "link"])
def test_what_is_no_file_is_not_passed_by(name: str, what: str, tmp_path: Path) -> None:
    byte_level_folder(tmp_path)
    (tmp_path / name).unlink(missing_ok=True)
    if what == "folder":
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).symlink_to("nowhere")
    with pytest.raises(TokenizerError, match="fetch the file again, or remove it") as caught:
        TokenizerInfo.from_file(tmp_path)
    assert str(caught.value.place).endswith(name)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"config": {"vocab_size": 2**64}}, "vocab_size is beyond 64 bits; the most is"),
        ({"tokenizer_config": {"eos_token": "\ud800"}}, "lone surrogate"),
        ({"tokenizer_config": {"additional_special_tokens": ["a\ud800"]}}, "lone surrogate"),
        (
            {"tokenizer_config": {"added_tokens_decoder": {"601": {"content": "\udc00"}}}},
            "lone surrogate",
        ),
    ],
)
def test_settings_that_no_tokenizer_has_are_refused(
    settings: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(TokenizerError, match=said):
        TokenizerInfo.from_file(byte_level_folder(tmp_path, **settings))


def test_a_panic_of_the_tokenizers_library_is_an_error(tmp_path: Path) -> None:
    """It comes as a BaseException: the library cuts a merge by a prefix that is not there."""
    state = json.loads(makers.byte_level().to_str())
    state["model"]["continuing_subword_prefix"] = "abcdef"
    write(tmp_path, "tokenizer.json", json.dumps(state))
    with pytest.raises(TokenizerError, match="tokenizers library cannot read it"):
        TokenizerInfo.from_file(tmp_path)


@pytest.mark.parametrize("merge", [["a", "\u20ac"], "a \u20ac"])
@pytest.mark.parametrize("key", ["continuing_subword_prefix", "continuing\\u005fsubword_prefix"])
def test_a_merge_that_would_end_the_process_is_refused(
    merge: Any, key: str, tmp_path: Path
) -> None:
    """The library cuts the merge within a character, and aborts over the error's text."""
    state = json.loads(makers.byte_level().to_str())
    state["model"] |= {"continuing_subword_prefix": "#", "merges": [merge]}
    state["model"]["vocab"]["\u20ac"] = len(state["model"]["vocab"])
    text = json.dumps(state).replace("continuing_subword_prefix", key)
    write(tmp_path, "tokenizer.json", text)
    with pytest.raises(TokenizerError, match="takes 1 bytes off '\u20ac'") as caught:
        TokenizerInfo.from_file(tmp_path)
    assert caught.value.place == str(tmp_path / "tokenizer.json")
    with pytest.raises(ValueError, match="and so cuts a character"):
        LLTokenizer(text)


def test_prefixes_that_end_with_a_character_are_left_to_the_library(tmp_path: Path) -> None:
    state = json.loads(makers.byte_level().to_str())
    merges = [["a", "\u20ac"], ["a", "abc\u20ac"]]
    for prefix in ("", "\u20ac", "###"):
        model = state["model"] | {"continuing_subword_prefix": prefix, "merges": merges}
        check_tokenizer_text(json.dumps(state | {"model": model}).encode())
