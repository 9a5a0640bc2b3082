"""Tokenizers of real models: Llama-3, GPT-2, Mistral, and the embedded one."""

from __future__ import annotations

from typing import Any

import pytest

from stencilm.tokenizers import TokenizerInfo
from tokenizer_folders import FOLDERS, tokenizer_info

pytest.importorskip("tokenizers")

TEXTS = [
    '{"name": "Ada", "tags": ["x", "y"], "n": -12.5e+3, "ok": true, "none": null}',
    "  def f(x):\n\treturn x  # café 漢字 🙂\r\n\r\n",
    "e\u0301 \u00a0 \u3000 שלום \x00\x1b <|eot_id|> </s> <unk>",
    " ",
]
# name: width, stop tokens, special tokens, space symbol, prefix space, duplicates
KNOWN: dict[str, tuple[int, list[int], int, str, bool, int]] = {
    "llama3": (128_256, [128_009], 256, "Ġ", False, 0),
    "gpt2": (50_257, [50_256], 1, "Ġ", False, 0),
    "mistral-v1": (32_000, [2], 3, "▁", True, 125),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_known_of_a_real_tokenizer(name: str) -> None:
    info = tokenizer_info(name)
    facts = info.facts
    assert (
        info.vocab_size,
        info.stop_token_ids,
        facts.special_tokens,
        facts.space_symbol,
        info.add_prefix_space,
        facts.duplicates,
    ) == KNOWN[name]
    assert (facts.space, facts.missing_bytes, facts.lossy, facts.empty) == ("prefix", b"", (), 0)


@pytest.mark.parametrize("name", FOLDERS)
def test_texts_are_spelled_exactly(name: str) -> None:
    info = tokenizer_info(name)
    for text in TEXTS:
        ids = info.tokenize_bytes(text.encode())
        assert info.decode_bytes(ids) == text.encode()
        assert not set(ids) & set(info.special_token_ids)


@pytest.mark.parametrize("name", FOLDERS)
def test_every_token_decodes_as_its_tokenizer_says(name: str) -> None:
    info = tokenizer_info(name)
    tokenizer = backend(name)
    special = set(info.special_token_ids)
    # One by one, the slow way; what breaks a character or leads with a blank cannot be seen alone.
    for token_id, token in enumerate(info.decoded_vocab):
        text = token.decode("utf-8", "replace")
        if token_id in special or "\ufffd" in text or text[:1] in " \ufffd":
            continue
        assert tokenizer.decode([token_id], skip_special_tokens=False) == text


@pytest.mark.parametrize("name", FOLDERS)
def test_file_and_wrapper_agree(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    info = tokenizer_info(name)
    wrapper = transformers.AutoTokenizer.from_pretrained(str(FOLDERS[name]))
    assert TokenizerInfo.from_huggingface(wrapper, vocab_size=info.vocab_size) == info


def test_the_embedded_tokenizer_spells_all_bytes() -> None:
    info = tokenizer_info("tiny")
    assert info.facts.missing_bytes == b""
    assert info.facts.lossy == ()
    assert info.facts.has_stop_token


def backend(name: str) -> Any:
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(FOLDERS[name] / "tokenizer.json"))
