"""Texts that go on: the tokens that every continuation shares, and what is left over."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from stencilm.errors import TokenizerError
from stencilm.tokenizers import TokenizerInfo
from tokenizer_folders import FOLDERS, tokenizer_info

from . import makers

BYTES = [bytes([byte]) for byte in range(256)]
hf = TokenizerInfo.from_huggingface
VOCABULARIES: dict[str, Callable[[], TokenizerInfo]] = {
    "list": lambda: TokenizerInfo([*BYTES, "the", " the", "é", b"\xe2\x82", "  ", "he", "e,"]),
    "byte-level": lambda: hf(makers.byte_level()),
    "byte-level with a prefix": lambda: hf(makers.byte_level(add_prefix_space=True)),
    "metaspace": lambda: hf(makers.metaspace()),
    "unigram": lambda: hf(makers.metaspace(model="unigram")),
    "SentencePiece": lambda: TokenizerInfo.from_sentencepiece(makers.sentencepiece_processor()),
    "tiktoken": lambda: TokenizerInfo.from_tiktoken(makers.tiktoken_encoding()),
}
TEXT = st.one_of(
    st.text(alphabet=" \n\tthenama{}\":,.'s0123é漢🙂", max_size=24),
    st.lists(st.sampled_from(["the", " name", '":', '"', "  ", "\n", "12", "é"])).map("".join),
).map(str.encode)


@pytest.mark.parametrize("name", VOCABULARIES)
@settings(max_examples=200)
@given(before=TEXT, data=TEXT, after=TEXT, cut=st.integers(0, 40))
@example(before=b"", data=b"\n\n0", after=b"", cut=2)
@example(before=b"", data=b"  the", after=b"", cut=2)
@example(before=b"", data=b'  ":', after=b"", cut=2)
@example(before=b"  ", data=b"he", after=b"", cut=2)
def test_the_whole_text_begins_with_the_tokens(
    name: str, before: bytes, data: bytes, after: bytes, cut: int
) -> None:
    info = VOCABULARIES[name]()
    whole = info.tokenize_bytes(before + data + after)
    if name != "list":  # of a text that the tokenizer changes it has no tokens
        assume(set(whole) <= set(info.encode((before + data + after).decode())))
    # The text before, in whole tokens of the canonical ones; `data` may then be cut in a character.
    recent: list[int] = []
    for token_id in whole:
        if len(info.decode_bytes([*recent, token_id])) > len(before):
            break
        recent.append(token_id)
    known = (before + data)[: len(before + data) - min(cut, len(data)) // 2]
    known = known[len(info.decode_bytes(recent)) :]
    tokens, left = info.tokenize_partial(known, recent)
    assert info.decode_bytes(tokens) + left == known
    assert whole[len(recent) : len(recent) + len(tokens)] == tokens


@pytest.mark.parametrize("name", FOLDERS)
def test_the_whole_text_begins_with_the_tokens_of_real_tokenizers(name: str) -> None:
    info = tokenizer_info(name)
    text = (
        '{"name_of_the_person": "Zoë", "n": -12.5e+3,\n    "orderId" : [1234567, true], '
        '"漢字": "🙂🙂", "b":   "don\'t"}'
    ).encode()
    whole = info.tokenize_bytes(text)
    for count in range(len(whole)):
        start = len(info.decode_bytes(whole[:count]))
        for end in range(start, min(len(text), start + 30)):
            tokens, left = info.tokenize_partial(text[start:end], whole[:count])
            assert info.decode_bytes(tokens) + left == text[start:end]
            assert whole[count : count + len(tokens)] == tokens, (text[:start], text[start:end])


def test_what_defines_it() -> None:
    info = tokenizer_info("llama3")
    assert info.tokenize_partial(b"order") == ([], b"order")  # may become orderId
    recent = info.tokenize_bytes(b'{"')
    tokens, left = info.tokenize_partial(b'name_of_the_person"', recent)
    assert info.dbg_tokens(tokens) == "name‧_of‧_the‧_person"
    assert left == b'"'  # may become ":


@pytest.mark.parametrize("name", ["llama3", "gpt2", "mistral-v1", "tiny"])
def test_an_unfinished_character_is_left_over(name: str) -> None:
    info = tokenizer_info(name)
    text = "name: 漢".encode()
    for missing in (1, 2):
        tokens, left = info.tokenize_partial(text[:-missing])
        assert left.endswith(text[-3:-missing])
        assert info.decode_bytes(tokens) + left == text[:-missing]
    # A text may also begin within a character that the tokens before it have begun.
    recent = info.tokenize_bytes(text)
    cut = next(n for n in range(len(recent) + 1) if len(info.decode_bytes(recent[:n])) >= 6)
    rest = info.decode_bytes(recent[cut:])
    tokens, left = info.tokenize_partial(rest + b" x y", recent[:cut])
    assert info.decode_bytes(tokens) + left == rest + b" x y"


def test_tokens_that_the_tokenizer_would_not_write_do_not_matter() -> None:
    info = tokenizer_info("gpt2")
    letters = [info.tokenize_bytes(bytes([byte]))[0] for byte in b"na"]
    tokens, left = info.tokenize_partial(b"me of the people ", letters)
    assert info.decode_bytes(tokens) + left == b"me of the people "
    assert info.dbg_tokens(tokens) == "me‧ of‧ the‧ people"


def test_a_special_token_is_a_wall() -> None:
    info = tokenizer_info("llama3")
    stop = info.stop_token_ids[0]
    plain = info.tokenize_partial(b"the name of ")
    assert info.tokenize_partial(b"the name of ", [stop]) == plain
    assert info.tokenize_partial(b"the name of ", [*info.tokenize_bytes(b" "), stop]) == plain


def test_what_cannot_be_tokenized_is_left_over() -> None:
    assert TokenizerInfo(["ab", "a", "c"]).tokenize_partial(b"xab") == ([], b"xab")
    assert TokenizerInfo(["ab", "a", "c"]).tokenize_partial(b"") == ([], b"")
    info = tokenizer_info("gpt2")
    assert info.tokenize_partial(b"\xff\xfeabc") == ([], b"\xff\xfeabc")
    with pytest.raises(TokenizerError, match="outside of this vocabulary"):
        info.tokenize_partial(b"a", [60_000])


def test_a_tokenizer_that_stayed_behind_is_not_guessed() -> None:
    info = VOCABULARIES["unigram"]()
    again = TokenizerInfo.deserialize_json(info.serialize_json())
    assert info.tokenize_partial(b"the name of the ")[0]
    assert again.tokenize_partial(b"the name of the ") == ([], b"the name of the ")
    # Merges are kept with the text, so that the tokens of such a tokenizer need not be guessed.
    info = tokenizer_info("gpt2")
    again = TokenizerInfo.deserialize_json(info.serialize_json())
    text = b'{"name_of_the_person": "'
    assert again.tokenize_partial(text) == info.tokenize_partial(text) != ([], text)
    assert again.tokenize_bytes(text) == info.tokenize_bytes(text)
    assert again.serialize_json() == info.serialize_json()
    listed = TokenizerInfo.deserialize_json(TokenizerInfo(["ab", "c"]).serialize_json())
    assert listed.tokenize_partial(b"abcc") == ([0, 1, 1], b"")
