"""Vocabularies given as lists: types, holes, doubles, empty and stop tokens, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from stencilm.errors import TokenizerError
from stencilm.tokenizers import TokenizerFacts, TokenizerInfo, VocabType

RAW, FALLBACK, LEVEL = VocabType.RAW, VocabType.BYTE_FALLBACK, VocabType.BYTE_LEVEL

SPELLED: list[tuple[VocabType, list[str | bytes | None], list[bytes]]] = [
    (RAW, ["a", " b", "é", b"\xff", "<0x41>"], [b"a", b" b", b"\xc3\xa9", b"\xff", b"<0x41>"]),
    (FALLBACK, ["▁a", "a▁▁b", "<0x0A>", "<0xfF>", "▁"], [b" a", b"a  b", b"\n", b"\xff", b" "]),
    (FALLBACK, ["▁", "<0x1>", "<0xZZ>", b"\xe2"], [b" ", b"<0x1>", b"<0xZZ>", b"\xe2"]),
    (
        LEVEL,
        ["Ġa", "Ċ", "Ã©", "ĀġÿĂ", b" raw"],
        [b" a", b"\n", b"\xc3\xa9", b"\0\x7f\xff\2", b" raw"],
    ),
]


@pytest.mark.parametrize(("vocab_type", "written", "spelled"), SPELLED)
def test_entries_spell_bytes(
    vocab_type: VocabType, written: list[str | bytes | None], spelled: list[bytes]
) -> None:
    info = TokenizerInfo(written, vocab_type)
    assert info.decoded_vocab == spelled
    assert info.vocab_type is vocab_type


def test_the_byte_level_alphabet_is_a_bijection() -> None:
    from stencilm.tokenizers.spelling import BYTE_LEVEL_ALPHABET

    assert sorted(BYTE_LEVEL_ALPHABET.values()) == list(range(256))
    # The two ends of each range of GPT-2's bytes_to_unicode.
    ends = {"!": 0x21, "~": 0x7E, "¡": 0xA1, "¬": 0xAC, "®": 0xAE, "ÿ": 0xFF, "Ā": 0, "Ń": 0xAD}
    assert {char: BYTE_LEVEL_ALPHABET[char] for char in ends} == ends


def test_gaps_doubles_and_empty_tokens_are_counted() -> None:
    info = TokenizerInfo(
        ["a", None, "", " a", "a", b"a", b"\xe2\x82", "</s>", "<s>"],
        vocab_size=12,
        stop_token_ids=[7, 10],
        special_token_ids=[8],
        add_prefix_space=True,
    )
    assert info.facts == TokenizerFacts(
        text_tokens=5,
        special_tokens=3,
        holes=1,
        padding=2,
        duplicates=2,
        empty=1,
        longest=2,
        not_utf8=1,
        missing_bytes=bytes(byte for byte in range(256) if byte != ord("a")),
        unspellable_bytes=bytes(byte for byte in range(256) if byte not in b"a \xe2\x82"),
        space="prefix",
        space_symbol=" ",
        adds_prefix_space=True,
        lossy=(),
        cleans_up_spaces=False,
        decode_shows_bytes=False,
        has_stop_token=True,
    )
    assert info.vocab_size == 12
    assert (info.stop_token_ids, info.special_token_ids) == ([7, 10], [7, 8, 10])
    assert info.decoded_vocab[7:] == [b"</s>", b"<s>", b"", b"<[10]>", b""]
    assert info.dbg_tokens([0, 3, 6, 1, 7, 11]) == "a‧ a‧\\xe2\\x82‧<[1]>‧</s>‧<[11]>"
    assert info.add_prefix_space


@pytest.mark.parametrize(
    ("tokens", "space"),
    [
        (["a", " a", " "], "prefix"),
        (["a", "a ", " "], "suffix"),
        (["a", " ", "  "], "separate"),
        (["a", "b"], "none"),
    ],
)
def test_how_a_space_is_spelled(tokens: list[str], space: str) -> None:
    assert TokenizerInfo(tokens).facts.space == space


def test_long_tokens_load() -> None:
    info = TokenizerInfo(["x" * 2000, "x", b"\xff" * 2000])
    assert (info.facts.longest, info.facts.not_utf8) == (2000, 1)
    assert info.tokenize_bytes(b"x" * 4001) == [0, 0, 1]


def test_no_stop_token_is_a_known_fact() -> None:
    assert not TokenizerInfo(["a"]).facts.has_stop_token


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "nothing": ([], {}, "no token .* spells text"),
    "only holes": ([None, "", b""], {}, "no token .* spells text"),
    "only stop tokens": (["</s>"], {"stop_token_ids": [0]}, "no token .* spells text"),
    "one string": ("abc", {}, "encoded_vocab is a str"),
    "a mapping": ({"a": 0}, {}, "encoded_vocab is a dict"),
    "a number": (["a", 5], {}, "token 1: the entry is 5"),
    "half a character": (["a", "\ud800"], {}, "token 1: .*lone surrogate"),
    "a wrong type": (["a"], {"vocab_type": "raw"}, "vocab_type is 'raw'"),
    "narrower than the list": (["a", "b"], {"vocab_size": 1}, "vocab_size is 1"),
    "a stop token out of range": (["a"], {"stop_token_ids": [1]}, "stop token 1"),
    "a negative stop token": (["a", "b"], {"stop_token_ids": -1}, "stop token -1"),
    "a special token out of range": (["a"], {"special_token_ids": [3]}, "special_token_ids has 3"),
    "a foreign character": (["Ġa", "▁b"], {"vocab_type": LEVEL}, "token 1: '▁b' holds '▁'"),
    "byte-level as raw": (["Ġa", "Ġb", "c"], {}, "give VocabType.BYTE_LEVEL"),
    "metaspace as raw": (["▁a", "▁b", "c"], {}, "give VocabType.BYTE_FALLBACK"),
    "byte-level as metaspace": (
        ["Ġa", "Ġb", "c"],
        {"vocab_type": FALLBACK},
        "give VocabType.BYTE_LEVEL",
    ),
    "a token too long": (["x" * 70_000], {}, "65,535"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_lists_are_refused(case: str) -> None:
    encoded, options, said = REFUSED[case]
    with pytest.raises(TokenizerError, match=said):
        TokenizerInfo(encoded, **options)


def test_ids_may_come_from_anything_that_holds_integers() -> None:
    import numpy as np

    for given in ([2], {2}, np.array([2]), (one for one in [2]), range(2, 3), np.int64(2)):
        info = TokenizerInfo(["a", "b", "</s>"], stop_token_ids=given)  # type: ignore[arg-type]
        assert info.stop_token_ids == info.special_token_ids == [2]
        assert info.decode_bytes(np.array([0, 2, 1])) == b"ab"


def test_the_value_is_frozen() -> None:
    info = TokenizerInfo(["a", " b"])
    with pytest.raises(AttributeError, match="immutable"):
        info.vocab_size = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        info.other = 3  # type: ignore[attr-defined, unused-ignore]


def test_equality_is_that_of_masks() -> None:
    import copy
    import pickle

    info = TokenizerInfo(["a", " b", "</s>"], stop_token_ids=[2])
    same = TokenizerInfo([b"a", "▁b", "</s>"], FALLBACK, stop_token_ids=2)
    assert info == same and hash(info) == hash(same) and len({info, same}) == 1
    assert info != TokenizerInfo(["a", " b", "</s>"])
    assert info != TokenizerInfo(["a", " b", "</s>"], stop_token_ids=[2], vocab_size=4)
    assert info != "a"
    assert copy.deepcopy(info) is info and copy.copy(info) is info
    assert pickle.loads(pickle.dumps(info)) == info


def test_the_core_holds_the_same_vocabulary() -> None:
    info = TokenizerInfo(["a", None, " b", "</s>"], stop_token_ids=[3], vocab_size=6)
    assert [info.core.token_bytes(token_id) or b"" for token_id in range(6)] == [
        b"a",
        b"",
        b" b",
        b"",
        b"",
        b"",
    ]
    assert info.fingerprint == info.core.fingerprint()
