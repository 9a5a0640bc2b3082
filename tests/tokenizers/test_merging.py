"""What a tokenizer says of its merges: read, kept, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest

import stencilm
from stencilm import GrammarCompiler, GrammarMatcher
from stencilm.tokenizers import TokenizerInfo
from tokenizer_folders import FOLDERS, tokenizer_info

from . import makers


def test_tokenizers_without_known_merges_are_refused_by_name() -> None:
    unigram = TokenizerInfo.from_huggingface(makers.metaspace(model="unigram"))
    for info, reason in [
        (TokenizerInfo(["a", "b"]), "a list of tokens"),
        (unigram, "Metaspace"),
        (TokenizerInfo.from_tiktoken(makers.tiktoken_encoding()), "tokenizers library"),
    ]:
        compiled = GrammarCompiler(info).compile_regex("a+")
        with pytest.raises(
            stencilm.UnsupportedFeature, match=f"{reason}.*leave canonical=True out"
        ):
            GrammarMatcher(compiled, canonical=True)
        assert GrammarMatcher(compiled).accept_string("a")


@pytest.mark.parametrize("name", FOLDERS)
def test_an_encoding_is_kept_with_the_vocabulary(name: str) -> None:
    info = tokenizer_info(name)
    again = TokenizerInfo.deserialize_json(info.serialize_json())
    text = '{"name": "Zoë",\n    "n": [1, 234567]}  漢字'.encode()
    assert again.tokenize_bytes(text) == info.tokenize_bytes(text)
    compiled = GrammarCompiler(again).compile_regex('"name": [0-9]{1,5}')
    tokens = info.tokenize_bytes(b'"name": 12345')
    assert GrammarMatcher(compiled, canonical=True).validate_tokens(tokens) == len(tokens)


def byte_level(**changes: Any) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(makers.byte_level().to_str())
    for name, part in changes.items():
        setattr(tokenizer, name, part)
    return tokenizer


def test_parts_of_unknown_kinds_are_named() -> None:
    from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers

    split = pre_tokenizers.Split(Regex(r"\p{L}+"), "isolated")
    bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    added = byte_level()
    added.add_tokens([AddedToken("<think>", special=False)])
    cases = [
        (byte_level(normalizer=normalizers.Lowercase()), "Lowercase"),
        (byte_level(pre_tokenizer=pre_tokenizers.Sequence([split, bytes_only])), "leaves"),
        (byte_level(pre_tokenizer=pre_tokenizers.Sequence([split, split, bytes_only])), "Split"),
        (added, "<think>"),
    ]
    for tokenizer, reason in cases:
        info = TokenizerInfo.from_huggingface(tokenizer)
        with pytest.raises(stencilm.UnsupportedFeature, match=reason):
            info.learn_encoding()
        with pytest.raises(stencilm.UnsupportedFeature, match=reason):
            info.learn_encoding()  # the answer stays the same
