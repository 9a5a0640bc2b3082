"""Every kind of tokenizer in the field, trained small: what its tokens spell, what is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stencilm.tokenizers import TokenizerInfo, VocabType

from . import makers

hf = TokenizerInfo.from_huggingface
TEXTS = [
    "hello",
    " hello  world ",
    '{"name": "Ada\\n", "n": [-12.5e+3, true, null]}',
    "a\n\n\tb\r\n   c",
    "café naïve e\u0301 漢字 🙂👩\u200d👧 שלום",
    "\x00\x01\x7f\u00a0\u2003",
    "<unk> </s> <|end|> <0x41> ▁ Ġ ##",
    "",
]

# kind: how to load it, its type, whether it puts a space first, whether it has all bytes
KINDS: dict[str, tuple[Callable[[], TokenizerInfo], VocabType, bool, bool]] = {
    "byte-level": (lambda: hf(makers.byte_level()), VocabType.BYTE_LEVEL, False, True),
    "byte-level with a prefix": (
        lambda: hf(makers.byte_level(add_prefix_space=True)),
        VocabType.BYTE_LEVEL,
        True,
        True,
    ),
    "metaspace BPE with bytes": (
        lambda: hf(makers.metaspace()),
        VocabType.BYTE_FALLBACK,
        True,
        True,
    ),
    "metaspace BPE, prefix at the start only": (
        lambda: hf(makers.metaspace(scheme="first")),
        VocabType.BYTE_FALLBACK,
        True,
        True,
    ),
    "metaspace BPE, no prefix": (
        lambda: hf(makers.metaspace(scheme="never")),
        VocabType.BYTE_FALLBACK,
        False,
        True,
    ),
    "metaspace Unigram without bytes": (
        lambda: hf(makers.metaspace(model="unigram", byte_fallback=False)),
        VocabType.BYTE_FALLBACK,
        True,
        False,
    ),
    "SentencePiece BPE with bytes": (
        lambda: TokenizerInfo.from_sentencepiece(makers.sentencepiece_processor()),
        VocabType.BYTE_FALLBACK,
        True,
        True,
    ),
    "SentencePiece Unigram with bytes and NFKC": (
        lambda: TokenizerInfo.from_sentencepiece(
            makers.sentencepiece_processor(kind="unigram", normalised=True)
        ),
        VocabType.BYTE_FALLBACK,
        True,
        True,
    ),
    "SentencePiece Unigram without bytes": (
        lambda: TokenizerInfo.from_sentencepiece(
            makers.sentencepiece_processor(kind="unigram", byte_fallback=False)
        ),
        VocabType.BYTE_FALLBACK,
        True,
        False,
    ),
    "tiktoken": (
        lambda: TokenizerInfo.from_tiktoken(makers.tiktoken_encoding()),
        VocabType.RAW,
        False,
        True,
    ),
    "words": (lambda: hf(makers.wordpiece(cleanup=False)), VocabType.RAW, True, False),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_recognised(kind: str) -> None:
    load, vocab_type, prefixed, has_all_bytes = KINDS[kind]
    info = load()
    assert (info.vocab_type, info.add_prefix_space) == (vocab_type, prefixed)
    assert (info.facts.missing_bytes == b"") is has_all_bytes
    assert info.facts.space == "prefix"


@pytest.mark.parametrize("kind", [kind for kind, row in KINDS.items() if row[3]])
@pytest.mark.parametrize("text", TEXTS)
def test_text_is_spelled_exactly_and_without_a_prefix(kind: str, text: str) -> None:
    info = KINDS[kind][0]()
    ids = info.tokenize_bytes(text.encode())
    assert info.decode_bytes(ids) == text.encode()
    assert not set(ids) & set(info.special_token_ids)


@pytest.mark.parametrize("kind", KINDS)
def test_encoded_text_comes_back_with_its_prefix(kind: str) -> None:
    info = KINDS[kind][0]()
    if "upper case" in info.facts.lossy:
        assert info.decode_str(info.encode("hello world")).strip() == "hello world"
        return
    prefix = " " if info.add_prefix_space else ""
    assert info.decode_str(info.encode("Hello world")) == prefix + "Hello world"


def test_own_tokens_are_used_where_the_tokenizer_encodes() -> None:
    tokenizer = makers.metaspace()
    # What the tokenizer gives in the middle of a text is what it means by these bytes.
    middle = tokenizer.encode("x\nhello world", add_special_tokens=False).ids
    start = tokenizer.encode("x\n", add_special_tokens=False).ids
    assert hf(tokenizer).tokenize_bytes(b"hello world") == middle[len(start) :]


def test_a_tokenizer_is_left_as_it_was() -> None:
    tokenizer = makers.byte_level()
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=8)
    try:
        before = tokenizer.to_str()
        info = hf(tokenizer)
        assert info.decode_str(info.encode("hello hello hello hello")) == "hello hello hello hello"
        assert tokenizer.to_str() == before
    finally:
        tokenizer.no_truncation()
        tokenizer.no_padding()


def test_added_tokens_with_gaps_in_their_ids_keep_them() -> None:
    import json

    from tokenizers import Tokenizer

    state = json.loads(makers.byte_level().to_str())
    added = {"special": False, "single_word": False, "lstrip": False, "rstrip": False}
    for token_id, text in [(620, "<tool>"), (640, "<｜User｜>")]:
        entry = {"id": token_id, "content": text, "normalized": False, **added}
        state["added_tokens"].append(entry)
        state["model"]["vocab"][text] = token_id
    info = hf(Tokenizer.from_str(json.dumps(state)))
    assert info.encode("a<tool>b<｜User｜>")[1::2] == [620, 640]
    assert info.decoded_vocab[640] == "<｜User｜>".encode()
    assert info.facts.holes == 641 - 600 - 1 - 2


def test_tiktoken_holes_and_special_tokens_are_known() -> None:
    info = TokenizerInfo.from_tiktoken(makers.tiktoken_encoding())
    assert (info.facts.holes, info.stop_token_ids, info.special_token_ids) == (1, [601], [601, 602])
    assert info.decoded_vocab[600:] == [b"", b"<|endoftext|>", b"<|turn|>"]
    assert info.dbg_tokens([*info.encode("hello"), 600, 602]) == "hello‧<[600]>‧<|turn|>"


def test_sentencepiece_control_pieces_spell_nothing() -> None:
    processor = makers.sentencepiece_processor()
    info = TokenizerInfo.from_sentencepiece(processor)
    assert info.stop_token_ids == [processor.eos_id()]
    assert info.special_token_ids == [0, 1, 2]
    assert info.decode_bytes([0, 1, 2]) == b""
    user_defined = processor.piece_to_id("<sep>")
    assert info.decode_bytes([user_defined]) == b"<sep>"
