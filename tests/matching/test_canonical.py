"""Canonical masks against the tokenizer itself: just the tokens with which it goes on somewhere."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stencilm import Grammar, GrammarCompiler, GrammarMatcher, Limits, TokenizerInfo
from tokenizer_folders import FOLDERS, tokenizer_info


def own_tokens(info: TokenizerInfo, text: str) -> list[int]:
    """What the tokenizer's own library makes of a text."""
    tokens = info._state.encoder._asked(text.encode())
    assert tokens is not None
    return tokens


def allowed_tokens(matcher: GrammarMatcher, info: TokenizerInfo) -> set[int]:
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    matcher.fill_next_token_bitmask(mask)
    return set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist())


def expected_masks(info: TokenizerInfo, texts: list[str]) -> dict[tuple[int, ...], set[int]]:
    """The slow twin: for every beginning of an encoded text the tokens that follow it in some."""
    masks: dict[tuple[int, ...], set[int]] = {}
    for text in texts:
        tokens = [*own_tokens(info, text), info.stop_token_ids[0]]
        for at, token_id in enumerate(tokens):
            masks.setdefault(tuple(tokens[:at]), set()).add(token_id)
    return masks


def check(info: TokenizerInfo, parts: list[list[str]]) -> None:
    """All texts made of one choice of each part, and the masks after all their beginnings."""
    texts = sorted({"".join(choice) for choice in itertools.product(*parts)})
    literal = json.dumps  # strings of EBNF are written as those of JSON
    rule = " ".join("(" + " | ".join(map(literal, part)) + ")" for part in parts)
    grammar = GrammarCompiler(info).compile_grammar(Grammar.from_ebnf("root ::= " + rule))
    for tokens, expected in expected_masks(info, texts).items():
        matcher = GrammarMatcher(grammar, canonical=True)
        for token_id in tokens:
            assert matcher.accept_token(token_id)
        found = allowed_tokens(matcher, info) - set(info.stop_token_ids[1:])
        shown = [info.dbg_tokens([token_id]) for token_id in sorted(found ^ expected)]
        assert found == expected, (info.dbg_tokens(tokens), shown)
        # What is accepted is what the mask allows, in both directions.
        others = random.Random(len(tokens)).sample(range(info.vocab_size), 20)
        for token_id in {*expected, *others}:
            assert matcher.is_allowed(token_id) == (token_id in expected)
            assert matcher.fork().accept_token(token_id) == (token_id in expected)


PIECES = st.sampled_from(
    [
        *("", "a", "the", " the", "name", " ", "  ", "   ", "\n", "\n\n", " \n", "\t", "1", "12"),
        *("345", "'", "'s", "'re", "r", "ve", '"', '":', ": ", '",', "{", "}", "\\", ".", "..."),
        *(
            "é",
            "ê\u0301",
            "漢字",
            "🙂",
            "việc",
            " Việt",
            "được",
            "ing",
            "order",
            "Id",
            "Name",
            "ly",
        ),
        *("▁", "\u00a0", "\r\n", "_", "-", "=", "==", "#", "\u017f", "LL", "<s>", "//"),
    ]
)


# Some of the texts are names of special tokens, which are meant as texts here.
@pytest.mark.filterwarnings("ignore:the grammar spells")
@pytest.mark.parametrize("name", FOLDERS)
@settings(max_examples=25)
@given(parts=st.lists(st.lists(PIECES, min_size=1, max_size=4), min_size=1, max_size=6))
def test_masks_are_those_of_the_tokenizer(name: str, parts: list[list[str]]) -> None:
    if name == "mistral-v1":
        # A text with the mark for a space is read as another text.
        parts = [[piece for piece in part if piece != "▁"] or [""] for part in parts]
    check(tokenizer_info(name), parts)


def test_blanks_behind_a_line_break() -> None:
    # What is open there asks for a search among many tokens that begin with a blank.
    check(tokenizer_info("llama3"), [["\n"], ["  "], ["   "]])


def test_tokens_end_before_a_character_that_begins_a_piece(tmp_path: Path) -> None:
    """A token may end within a character that may begin a piece: then it is none of the text."""
    tokenizers = pytest.importorskip("tokenizers")
    symbols = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    space, first = "\u0120", "\u00c3"
    vocab = {symbol: number for number, symbol in enumerate([*symbols, space + first])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, [(space, first)]))
    cut = tokenizers.Regex(r" ?[^\s\p{L}]+|\p{L}+|\s+")
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Split(cut, "isolated"),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["</s>"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "</s>"}')
    info = TokenizerInfo.from_file(tmp_path)
    assert [len(own_tokens(info, text)) for text in (" \u00d7", " \u00e9")] == [2, 3]
    for parts in [[[" \u00e9"]] * 3, [[" \u00d7", " \u00e9"]] * 2, [[" \u00e9", " a"], [""]]]:
        check(info, parts)


@pytest.mark.parametrize("name", FOLDERS)
def test_tokens_of_many_characters(name: str) -> None:
    # GPT-2 has tokens for a line of dashes, which dozens of merges make.
    check(tokenizer_info(name), [["-" * 64, "=" * 64, "-" * 80, "ÃÂ" * 32], ["", "a"]])


@pytest.mark.parametrize("name", FOLDERS)
@settings(max_examples=40)
@given(pieces=st.lists(PIECES, max_size=14))
def test_the_core_encodes_as_the_tokenizer(name: str, pieces: list[str]) -> None:
    info = tokenizer_info(name)
    info.learn_encoding()
    text = "".join(pieces)
    expected = info._state.encoder._asked(text.encode())
    if expected is not None:  # a text with the mark for a space is read as another
        assert info.core.encode(text) == expected == info.tokenize_bytes(text.encode())


PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "tags": {"type": "array", "items": {"enum": ["north", "northern", "Việt"]}, "maxItems": 3},
        "age": {"type": "integer", "minimum": 0, "maximum": 12345},
        "mail": {"type": "string", "format": "email"},
    },
    "required": ["name", "tags", "age"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("name", FOLDERS)
def test_random_walks_write_what_the_tokenizer_would(name: str) -> None:
    info = tokenizer_info(name)
    schema = dict(PERSON)
    if name != "tiny":  # where masks are large the walks are shorter
        schema["properties"] = {key: schema["properties"][key] for key in schema["required"]}
    grammar = Grammar.from_json_schema(schema, any_whitespace=False)
    compiled = GrammarCompiler(info).compile_grammar(grammar)
    picks = random.Random(5)
    for _ in range(2):
        matcher = GrammarMatcher(compiled, canonical=True)
        tokens: list[int] = []
        while not matcher.is_terminated():
            allowed = sorted(allowed_tokens(matcher, info))
            stop = [token_id for token_id in allowed if token_id in info.stop_token_ids]
            # Ends early where it can, and else prefers tokens that bring the end nearer.
            likely = [token_id for token_id in allowed if b'"' in info.decode_bytes([token_id])]
            pool = stop or (likely if likely and picks.random() < 0.8 else allowed)
            token_id = picks.choice(pool)
            assert matcher.accept_token(token_id)
            tokens += [] if stop else [token_id]
            # The whole of it is a beginning of what the tokenizer writes, forced tokens too.
            forced = matcher.find_jump_forward_tokens()
            assert matcher.validate_tokens(forced) == len(forced)
        text = info.decode_bytes(tokens)
        assert own_tokens(info, text.decode()) == tokens
        assert set(json.loads(text)) >= {"name", "tags", "age"}


ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {"order": {"type": "string"}},
    "required": ["order"],
}
# Lexemes of one class of characters with bounds and patterns, numbers, and what follows them.
CODES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "codes": {"type": "array", "items": {"type": "integer"}},
        "id": {"type": "string", "pattern": "^[0-9]{6}$"},
        "note": {"type": "string", "pattern": "b", "maxLength": 90},
    },
    "required": ["codes"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (ORDER, '{"order": "two cups, é"'),
        (CODES, '{"codes": [12, 345], "id": "120034", "note": "ab'),
    ],
)
def test_what_is_accepted_does_not_depend_on_whether_a_mask_was_asked_for(
    name: str, schema: dict[str, Any], text: str
) -> None:
    info = tokenizer_info(name)
    compiled = GrammarCompiler(info).compile_json_schema(schema)
    matcher = GrammarMatcher(compiled, canonical=True)
    for token_id in own_tokens(info, text):
        unasked = matcher.fork()
        allowed = allowed_tokens(matcher, info)
        for other in [
            *random.Random(token_id).sample(sorted(allowed), min(40, len(allowed))),
            *range(0, 600, 7),
        ]:
            expected = other in allowed
            assert unasked.fork().accept_token(other) == expected, info.dbg_tokens([other])
            assert matcher.fork().accept_token(other) == expected
            assert matcher.is_allowed(other) == expected
        assert matcher.accept_token(token_id)


def test_undoing_and_forking_keep_the_place() -> None:
    info = tokenizer_info("tiny")
    compiled = GrammarCompiler(info).compile_regex('"(north|northern)": [0-9]{1,5}')
    matcher = GrammarMatcher(compiled, canonical=True)
    tokens = own_tokens(info, '"northern": 12345')
    masks = []
    for token_id in tokens:
        masks.append(allowed_tokens(matcher, info))
        assert matcher.accept_token(token_id)
    assert allowed_tokens(matcher.fork(), info) == set(info.stop_token_ids)
    for mask in reversed(masks):
        matcher.rollback(1)
        assert allowed_tokens(matcher.fork(), info) == mask == allowed_tokens(matcher, info)
    # A text has no tokens: what follows it is written as if it began a text.
    assert matcher.accept_string('"nor')
    assert allowed_tokens(matcher, info) >= {own_tokens(info, "thern")[0]}


def test_what_is_known_of_a_lexeme_outlives_its_lexicon() -> None:
    # Every grammar gets a new lexicon, which takes over the row of strings and numbers automata
    # anew.
    patterns = {f"k{length}": {"pattern": f"^[a-z]{{{length}}}$"} for length in range(1, 9)}
    many: dict[str, Any] = {"type": "object", "properties": {**patterns, "z": {"type": "string"}}}
    found: list[list[set[int]]] = []
    for befores in ([], [(many, '{"k1": "a", "k2": "bc", "k3": "abc", "z": "ab')]):
        info = TokenizerInfo.from_file(FOLDERS["tiny"])
        compiler = GrammarCompiler(info, limits=Limits(lexicon_bytes=0))
        masks: list[set[int]] = []
        for schema, text in [*befores, ({"type": "string"}, '"b1 cé, {d} \\"e a   f\'s !?')]:
            matcher = GrammarMatcher(compiler.compile_json_schema(schema), canonical=True)
            masks = []
            for token_id in own_tokens(info, text):
                masks.append(allowed_tokens(matcher, info))
                assert matcher.accept_token(token_id)
        found.append(masks)
    assert found[0] == found[1]


@pytest.mark.parametrize("name", FOLDERS)
def test_what_other_grammars_have_read_changes_no_mask(name: str) -> None:
    # They share what is known of lexemes, and only that: where a text is bounded, what follows it
    # tells whether a full stop may be its last character, and a key that is taken ends nowhere.
    tokenizer_info(name)  # skips where it is not at hand
    short = {"type": "string", "maxLength": 3}
    named = {"properties": {"example": {"type": "integer"}}}
    string = {"properties": {"a": {"type": "string"}}, "additionalProperties": False}
    cases: list[tuple[dict[str, Any], object]] = [
        (short, "US."),
        ({"properties": {"a": short}, "additionalProperties": False}, {"a": "US."}),
        ({"type": "array", "items": short}, ["US.", "x=", "a"]),
        (
            {"properties": {"a": {"type": "array", "uniqueItems": True, "items": named}}},
            {"a": [{"example": 1}]},
        ),
        ({"properties": {"o": string}, "additionalProperties": False}, {"o": {"a": "example"}}),
    ]

    def masks(
        compiler: GrammarCompiler, schema: dict[str, Any], instance: object
    ) -> list[set[int]]:
        matcher = GrammarMatcher(compiler.compile_json_schema(schema), canonical=True)
        found: list[set[int]] = []
        for token_id in own_tokens(compiler.tokenizer_info, json.dumps(instance)):
            found.append(allowed_tokens(matcher, compiler.tokenizer_info))
            assert matcher.accept_token(token_id)
        return found

    def compiler() -> GrammarCompiler:
        return GrammarCompiler(TokenizerInfo.from_file(FOLDERS[name]))

    alone = [masks(compiler(), *case) for case in cases]
    for order in (1, -1):
        shared = compiler()
        assert [masks(shared, *case) for case in cases[::order]] == alone[::order]


@pytest.mark.parametrize("name", FOLDERS)
def test_unique_elements_change_nothing_elsewhere(name: str) -> None:
    info = tokenizer_info(name)
    compiler = GrammarCompiler(info)

    def masks(unique: bool, canonical: bool) -> list[set[int]]:
        words = {"type": "array", "uniqueItems": unique, "items": {"type": "string"}}
        schema = {
            "properties": {
                "apple": {"type": "string"},
                "size": {"type": "integer"},
                "words": words,
            },
            "required": ["apple", "size"],
            "additionalProperties": False,
        }
        grammar = compiler.compile_json_schema(schema)
        matcher = GrammarMatcher(grammar, canonical=canonical)
        found: list[set[int]] = []
        # A first element differs from all before it, too.
        for token_id in own_tokens(info, '{"apple": "r\\u00e9d", "size": 12, "words": ["first'):
            found.append(allowed_tokens(matcher, info))
            assert matcher.accept_token(token_id)
        return found

    # A token such as `","",` holds a repeat itself.
    both = zip(masks(False, True), masks(True, False), strict=True)
    assert masks(True, True) == [canonical & unique for canonical, unique in both]


def test_single_tokens_are_walls() -> None:
    info = TokenizerInfo.from_file(FOLDERS["tiny"])
    special = next(i for i in info.special_token_ids if i not in info.stop_token_ids)
    grammar = Grammar.from_ebnf(f'root ::= "na" <[{special}]> "me"')
    matcher = GrammarMatcher(GrammarCompiler(info).compile_grammar(grammar), canonical=True)
    for token_id in [*own_tokens(info, "na"), special, *own_tokens(info, "me")]:
        assert token_id in allowed_tokens(matcher, info)
        assert matcher.accept_token(token_id)
    assert matcher.is_completed()


@pytest.mark.parametrize("stop", [b" ", b"\n", b"th"])
def test_what_ends_texts_may_be_part_of_other_tokens(stop: bytes) -> None:
    """Merges go through such a token, though no mask allows it."""
    folder = FOLDERS["tiny"]
    stop_id = TokenizerInfo.from_file(folder).decoded_vocab.index(stop)
    info = TokenizerInfo.from_file(folder, stop_token_ids=[stop_id])
    info.learn_encoding()
    compiled = GrammarCompiler(info).compile_regex(r"(the )?[a-z ]{4,9}")
    matcher = GrammarMatcher(compiled, canonical=True)
    assert TokenizerInfo.deserialize_json(info.serialize_json()) == info
    for text in ("these", "a thing", "the other"):
        tokens = info.encode(text)
        held = matcher.fork()
        assert all(held.accept_token(token) for token in tokens) == (stop_id not in tokens), text
