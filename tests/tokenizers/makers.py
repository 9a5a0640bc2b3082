"""Small real tokenizers, trained here on text made here; one maker for each kind in the field."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

_WORDS = "the name of value string number hello world array object true false null".split()


def corpus() -> Iterator[str]:
    """Sentences, JSON, code and a little of everything that is not ASCII."""
    for turn in range(400):
        first, second = _WORDS[turn % len(_WORDS)], _WORDS[turn * 7 % len(_WORDS)]
        yield f"{first.title()} {second}, {second} and {first}: {turn}."
        yield f'{{"{first}": "{second} {turn}", "{second}": [{turn}, {turn * 3}.5, true]}}'
        yield f"def {first}_{second}(x):\n    return x + {turn}\n\n\tpass"
        yield "café naïve 漢字かな 🙂 Zoë"


@cache
def byte_level(*, add_prefix_space: bool = False) -> Any:
    """GPT-2's kind: `tokenizers.Tokenizer`, 600 entries, `<|end|>` last."""
    pytest.importorskip("tokenizers")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.add_special_tokens(["<|end|>"])
    return tokenizer


@cache
def metaspace(*, model: str = "bpe", byte_fallback: bool = True, scheme: str = "always") -> Any:
    """Llama-2's and T5's kind: `▁` for a space, byte tokens where asked for."""
    pytest.importorskip("tokenizers")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    special = ["<unk>", "<s>", "</s>"]
    if byte_fallback:
        special += [f"<0x{byte:02X}>" for byte in range(256)]
    if model == "bpe":
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=byte_fallback))
        trainer = trainers.BpeTrainer(
            vocab_size=700, special_tokens=special, limit_alphabet=60, show_progress=False
        )
    else:
        tokenizer = Tokenizer(models.Unigram())
        trainer = trainers.UnigramTrainer(
            vocab_size=500, special_tokens=special, unk_token="<unk>", show_progress=False
        )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Metaspace(prepend_scheme=scheme)]
        if not byte_fallback
        else [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1 if scheme != "never" else 0, 0),
        ]
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    return _only_special(tokenizer, ["<unk>", "<s>", "</s>"])


def _only_special(tokenizer: Any, names: list[str]) -> Any:
    """The trainer marks all its special tokens; byte tokens must be plain entries again."""
    import json

    pytest.importorskip("tokenizers")
    from tokenizers import Tokenizer

    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [one for one in state["added_tokens"] if one["content"] in names]
    return Tokenizer.from_str(json.dumps(state))


@cache
def wordpiece(*, cleanup: bool, lowercase: bool = False) -> Any:
    """BERT's kind: words joined by blanks, `##` for what goes on."""
    pytest.importorskip("tokenizers")
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    if lowercase:
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(cleanup=cleanup)
    trainer = trainers.WordPieceTrainer(
        vocab_size=500, special_tokens=["[UNK]", "[SEP]"], show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def letters(*, unknown: bool) -> Any:
    """A BPE without merges over a few letters; what it lacks it drops, or marks as unknown."""
    pytest.importorskip("tokenizers")
    from tokenizers import Tokenizer, decoders, models

    vocabulary = {char: token_id for token_id, char in enumerate("abcdefghijklmno {}")}
    if unknown:
        vocabulary["<unk>"] = len(vocabulary)
    model = models.BPE(vocabulary, [], unk_token="<unk>" if unknown else None)
    tokenizer = Tokenizer(model)
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


def words() -> Any:
    """WordLevel without an unknown token: it cannot encode anything but its words."""
    pytest.importorskip("tokenizers")
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"hello": 0, "world": 1, ",": 2}))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


@cache
def sentencepiece_model(
    *, kind: str = "bpe", byte_fallback: bool = True, normalised: bool = False
) -> bytes:
    """A serialised SentencePiece model: 3 control pieces, perhaps 256 byte pieces, 500 in all."""
    sentencepiece = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line for text in corpus() for line in text.split("\n")),
        model_writer=model,
        model_type=kind,
        vocab_size=500,
        byte_fallback=byte_fallback,
        character_coverage=0.995,
        normalization_rule_name="nmt_nfkc" if normalised else "identity",
        remove_extra_whitespaces=normalised,
        user_defined_symbols=["<sep>"],
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


def sentencepiece_processor(**options: Any) -> Any:
    sentencepiece = pytest.importorskip("sentencepiece")
    return sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(**options))


@cache
def tiktoken_encoding() -> Any:
    """A `tiktoken.Encoding` with the merges of `byte_level`, a hole, and two special tokens."""
    tiktoken = pytest.importorskip("tiktoken")
    from stencilm.tokenizers.spelling import Spelling

    written = [
        token
        for token, token_id in sorted(byte_level().get_vocab().items(), key=lambda kv: kv[1])
        if token != "<|end|>"
    ]
    spelled = Spelling(alphabet="byte_level").spell(written)
    count = len(spelled)
    return tiktoken.Encoding(
        "made-here",
        pat_str=r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        mergeable_ranks={token: rank for rank, token in enumerate(spelled)},
        special_tokens={"<|endoftext|>": count + 1, "<|turn|>": count + 2},
    )
