"""Forced text as tokens: the model's own tokenization, healed at the end."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo
from tokenizer_folders import FOLDERS, tokenizer_info

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {"orderId": {"type": "string"}, "orderName": {"type": "string"}},
    "required": [],
    "additionalProperties": False,
}
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name_of_the_person": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name_of_the_person", "age"],
    "additionalProperties": False,
}
EVENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "kind_of_event": {"const": "état d\u2019urgence"},
        "created_at": {"enum": ["yesterday evening", "yesterday morning"]},
        "nested": {
            "type": "object",
            "properties": {"values": {"type": "array", "items": {"type": "integer"}}},
            "required": ["values"],
            "additionalProperties": False,
        },
    },
    "required": ["kind_of_event", "created_at", "nested"],
    "additionalProperties": False,
}


def matcher_at(info: TokenizerInfo, schema: dict[str, Any], text: bytes) -> GrammarMatcher:
    matcher = GrammarMatcher(GrammarCompiler(info).compile_json_schema(schema))
    for token_id in info.tokenize_bytes(text):
        assert matcher.accept_token(token_id)
    return matcher


def test_a_text_that_may_go_on_as_a_longer_token_is_not_forced() -> None:
    info = tokenizer_info("llama3")
    matcher = matcher_at(info, ORDER, b'{"')
    assert matcher.find_jump_forward_string() == "order"
    assert matcher.find_jump_forward_tokens() == []
    # The whole of it stays forced: what begins with it is what the masks allow.
    allowed = allowed_tokens(matcher, info)
    assert {b"o", b"or", b"ord", b"order", b"orderId"} <= allowed
    assert all(b"orderId".startswith(token) for token in allowed)


def test_the_tokens_that_every_continuation_shares_are_forced() -> None:
    info = tokenizer_info("llama3")
    matcher = matcher_at(info, PERSON, b'{"')
    assert matcher.find_jump_forward_string() == 'name_of_the_person"'
    tokens = matcher.find_jump_forward_tokens()
    assert info.dbg_tokens(tokens) == "name‧_of‧_the‧_person"
    assert matcher.num_accepted_tokens == 1
    for token_id in tokens:
        assert matcher.accept_token(token_id)
    # The left-over quote may be a part of a longer token.
    assert matcher.find_jump_forward_string() == '"'
    assert matcher.find_jump_forward_tokens() == []
    assert {b'"', b'":', b'":"'} <= allowed_tokens(matcher, info)


@pytest.mark.parametrize(
    ("style", "text", "tokens"),
    [
        # A blank or a colon may follow the quote, and `":` is a token: four, as of the text alone.
        ({}, 'name_of_the_person"', "name‧_of‧_the‧_person"),
        # A colon and a blank must follow, and no longer token begins so: `":` is certain, too.
        ({"any_whitespace": False}, 'name_of_the_person": "', 'name‧_of‧_the‧_person‧":'),
        # A colon and a quote must follow, which are one token, but longer ones begin with them.
        (
            {"any_whitespace": False, "separators": (",", ":")},
            'name_of_the_person":"',
            "name‧_of‧_the‧_person",
        ),
    ],
)
def test_white_space_decides_which_tokens_are_shared(
    style: dict[str, Any], text: str, tokens: str
) -> None:
    info = tokenizer_info("llama3")
    compiled = GrammarCompiler(info).compile_json_schema(PERSON, **style)
    matcher = GrammarMatcher(compiled)
    for token_id in info.tokenize_bytes(b'{"'):
        assert matcher.accept_token(token_id)
    assert matcher.find_jump_forward_string() == text
    assert info.dbg_tokens(matcher.find_jump_forward_tokens()) == tokens
    # Without a grammar anything may follow, so the quote is left whatever the style.
    recent = info.tokenize_bytes(b'{"')
    alone, left = info.tokenize_partial(b'name_of_the_person"', recent)
    assert (info.dbg_tokens(alone), left) == ("name‧_of‧_the‧_person", b'"')


def allowed_tokens(matcher: GrammarMatcher, info: TokenizerInfo) -> set[bytes]:
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    matcher.fill_next_token_bitmask(mask)
    vocabulary = info.decoded_vocab
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    return {vocabulary[token_id] for token_id in np.flatnonzero(bits)}


def test_recent_tokens_may_be_those_of_a_prompt() -> None:
    info = tokenizer_info("llama3")
    grammar = GrammarCompiler(info).compile_regex(" name of (the|a) person")
    matcher = GrammarMatcher(grammar)
    prompt = info.tokenize_bytes(b"Give me the")
    assert info.dbg_tokens(matcher.find_jump_forward_tokens(prompt)) == " name‧ of"
    # A prompt that ends in a blank and a text that begins with one have a token in common.
    blank = info.tokenize_bytes(b"Give me the ")
    forced = matcher.find_jump_forward_tokens(blank)
    assert info.decode_bytes(forced) in (b"", b" name of")


def test_recent_tokens_that_are_none_are_told_by_name() -> None:
    info = TokenizerInfo([*(bytes([byte]) for byte in range(256))])
    matcher = GrammarMatcher(GrammarCompiler(info).compile_regex("ab"))
    told = matcher.find_jump_forward_tokens([1, 2])
    assert matcher.find_jump_forward_tokens(np.array([1, 2])) == told  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"recent_tokens is 3, but must be token ids"):
        matcher.find_jump_forward_tokens(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"recent_tokens holds 'b', but must hold token ids"):
        matcher.find_jump_forward_tokens({1, "b"})  # type: ignore[arg-type]


def test_strings_end_what_is_known_of_recent_tokens() -> None:
    info = tokenizer_info("llama3")
    by_tokens = matcher_at(info, PERSON, b'{"')
    by_string = GrammarMatcher(GrammarCompiler(info).compile_json_schema(PERSON))
    assert by_string.accept_string('{"')
    assert by_string.find_jump_forward_tokens() == by_tokens.find_jump_forward_tokens()
    assert by_tokens._recent_tokens(8) == info.tokenize_bytes(b'{"')
    assert by_string._recent_tokens(8) == []
    by_tokens.rollback(by_tokens.num_accepted_tokens)
    assert by_tokens._recent_tokens(8) == []


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("style", [{}, {"any_whitespace": False}, {"indent": 2}])
def test_a_canonical_text_goes_through_forced_tokens(name: str, style: dict[str, Any]) -> None:
    info = tokenizer_info(name)
    value = {
        "kind_of_event": "état d\u2019urgence",
        "created_at": "yesterday morning",
        "nested": {"values": [1, 234567]},
    }
    layout: Any = style if "indent" in style else {}
    schema_style = {"any_whitespace": False, **style} if style else {}
    grammar = Grammar.from_json_schema(EVENT, **schema_style)
    compiled = GrammarCompiler(info).compile_grammar(grammar)
    token_ids = info.tokenize_bytes(json.dumps(value, ensure_ascii=False, **layout).encode())
    matcher = GrammarMatcher(compiled)
    at, forced_tokens = 0, 0
    while at < len(token_ids):
        forced = matcher.find_jump_forward_tokens()
        assert token_ids[at : at + len(forced)] == forced
        draft = matcher.forced_draft_tokens()
        assert matcher.validate_tokens(draft) == len(draft) >= len(forced)
        for token_id in forced or token_ids[at : at + 1]:
            assert matcher.accept_token(token_id)
        at += max(1, len(forced))
        forced_tokens += len(forced)
    assert matcher.is_completed()
    assert matcher.find_jump_forward_tokens() == []
    assert forced_tokens > 0


def test_a_fork_forces_what_its_origin_forces() -> None:
    matcher = matcher_at(tokenizer_info("tiny"), PERSON, b'{"')
    forced = matcher.find_jump_forward_tokens()
    assert forced and matcher.fork().find_jump_forward_tokens() == forced


def test_raw_vocabularies_have_forced_tokens_too() -> None:
    info = TokenizerInfo(["a", "b", "ab", "abc", "c", "d", "bd", "</s>"], stop_token_ids=[7])
    matcher = GrammarMatcher(GrammarCompiler(info).compile_regex("ab(c|d)d"))
    assert matcher.find_jump_forward_string() == "ab"
    # After "ab" may come "d"; "abc" and "a", "bd" would span the end.
    assert matcher.find_jump_forward_tokens() == []
    assert matcher.accept_string("abc")
    assert matcher.find_jump_forward_tokens() == [5]
    assert matcher.forced_draft_tokens(max_tokens=0) == []
    with pytest.raises(ValueError, match="max_tokens is -1"):
        matcher.forced_draft_tokens(max_tokens=-1)


def test_bytes_that_no_token_spells_force_nothing() -> None:
    info = TokenizerInfo(["a", "b", "ab"])
    matcher = GrammarMatcher(
        GrammarCompiler(info).compile_regex("xab"), terminate_without_stop_token=True
    )
    assert matcher.find_jump_forward_string() == "xab"
    assert matcher.find_jump_forward_tokens() == []
    assert matcher.forced_draft_tokens() == []


def test_a_single_token_that_the_grammar_names_is_forced() -> None:
    info = TokenizerInfo(["a", "b", "<tool>", "</s>"], stop_token_ids=[3], special_token_ids=[2])
    compiled = GrammarCompiler(info).compile_grammar(Grammar.from_ebnf('root ::= <tool> "ab" [ab]'))
    matcher = GrammarMatcher(compiled)
    assert matcher.find_jump_forward_tokens() == [2] == matcher.forced_draft_tokens()
    assert matcher.accept_token(2)
    assert matcher.find_jump_forward_tokens() == [0, 1]
