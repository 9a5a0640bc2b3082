"""The token index: minimal, equal to the matcher's masks, kept and drawn."""

from __future__ import annotations

import contextlib
import random
import re
import shutil
from hashlib import sha256
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stencilm
from stencilm import (
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    TokenIndex,
    TokenizerError,
    TokenizerInfo,
)
from tokenizer_folders import tokenizer_info

# The table of the article "Coalescence" of Outlines, for a vocabulary of just these tokens.
ARTICLE: dict[int, dict[str, int]] = {
    0: {"{": 1, '{"': 2},
    1: {'"': 2},
    2: {"na": 4, "nam": 5, "name": 6, "n": 3},
    3: {"a": 4, "ame": 6, "am": 5},
    4: {"me": 6, "m": 5},
    5: {"e": 6},
    6: {'"': 7, '":': 8, '":"': 9},
    7: {":": 8, ':"': 9},
    8: {'"': 9},
    9: {"P": 11, "Paul": 14, "Pa": 12, "J": 10, "Jo": 26, "John": 14},
    10: {"o": 26, "oh": 27, "ohn": 14},
    11: {"au": 13, "a": 12, "aul": 14},
    12: {"ul": 14, "u": 13},
    13: {"l": 14},
    14: {'","': 17, '",': 16, '"': 15},
    15: {',"': 17, ",": 16},
    16: {'"': 17},
    17: {"age": 20, "a": 18, "ag": 19},
    18: {"g": 19, "ge": 20},
    19: {"e": 20},
    20: {'"': 21, '":': 22},
    21: {":": 22},
    22: {"20": 24, "2": 23, "3": 23, "30": 24},
    23: {"0": 24},
    24: {"}": 25},
    25: {},
    26: {"hn": 14, "h": 27},
    27: {"n": 14},
}
ARTICLE_REGEX = r'\{"name":"(John|Paul)","age":(20|30)\}'

# Few letters, so that random patterns and texts meet.
SMALL: list[str | None] = ["a", "b", "c", "ab", "ba", "aab", "cc", "abc", "ca", "ab", None, "</s>"]
LACKING: list[str | None] = ["ab", "ba", "aa", "c", "cab", "bb", "</s>"]
PATTERNS = st.recursive(
    st.sampled_from(["a", "b", "c", "ab", "[ab]", "[^a]", "."]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("(?:{0[0]}|{0[1]})".format),
        inner.map("(?:{})*".format),
        inner.map("(?:{})?".format),
        inner.map("(?:{}){{1,3}}".format),
    ),
    max_leaves=8,
)


def test_the_table_of_the_article_up_to_the_names_of_states() -> None:
    tokens = sorted({token for row in ARTICLE.values() for token in row})
    info = TokenizerInfo([*tokens, "</s>"], stop_token_ids=[len(tokens)])
    index = TokenIndex.from_regex(ARTICLE_REGEX, info)
    assert index.num_states == 28
    table = index.with_tokens()
    # Both automata are deterministic, so walking them together names every state or fails.
    names = {index.initial_state: 0}
    order = [index.initial_state]
    for state in order:  # grows while it is walked
        row, wanted = table.get(state, {}), ARTICLE[names[state]]
        assert row.keys() == wanted.keys()
        for token, target in row.items():
            if target not in names:
                names[target] = wanted[token]
                order.append(target)
            assert names[target] == wanted[token]
    assert sorted(names.values()) == list(ARTICLE)
    assert {names[state] for state in index.final_states} == {25}


def test_coalescing_the_article() -> None:
    tokens = sorted({token for row in ARTICLE.values() for token in row})
    info = TokenizerInfo([*tokens, "</s>"], stop_token_ids=[len(tokens)])
    index = TokenIndex.from_regex(ARTICLE_REGEX, info)
    shown = [
        (stretch.text, [tokens[token_id] for token_id in stretch.tokens], stretch.left_over)
        for stretch in index.coalesce()
    ]
    assert shown == [
        (b'{"name":"', ['{"', "name", '":"'], b""),
        (b'ohn","age":', ["ohn", '","', "age", '":'], b""),
        (b'aul","age":', ["aul", '","', "age", '":'], b""),
        (b"0}", ["0", "}"], b""),
    ]
    for stretch in index.coalesce():
        assert walk(index, stretch.state, stretch.tokens) == stretch.next_state
        assert info.decode_bytes(stretch.tokens) + stretch.left_over == stretch.text


def walk(index: TokenIndex, state: int, token_ids: list[int]) -> int | None:
    here: int | None = state
    for token_id in token_ids:
        assert here is not None
        here = index.next_state(here, token_id)
    return here


def check_against_matcher(index: TokenIndex, grammar: Grammar, seed: int, walks: int = 4) -> None:
    """Random walks of both: equal masks at every step, and the same end."""
    info = index.tokenizer_info
    compiled = GrammarCompiler(info).compile_grammar(grammar)
    words = (info.vocab_size + 31) // 32
    ours, theirs = np.zeros(words, dtype=np.int32), np.zeros(words, dtype=np.int32)
    picks = random.Random(seed)
    for _ in range(walks):
        matcher, state = GrammarMatcher(compiled), index.initial_state
        for _ in range(12):
            assert (state in index.final_states) == matcher.is_completed()
            index.fill_bitmask(state, ours)
            try:
                matcher.fill_next_token_bitmask(theirs)
            except stencilm.MatcherError:
                assert not ours.any()
                break
            np.testing.assert_array_equal(ours, theirs)
            bits = np.unpackbits(ours.view(np.uint8), bitorder="little")
            assert index.allowed_tokens(state) == np.flatnonzero(bits).tolist()
            row = index.transitions[state]
            if not row:
                break
            token_id = picks.choice(list(row))
            assert matcher.accept_token(token_id)
            assert index.next_state(state, token_id) == row[token_id]
            state = row[token_id]
        refused = set(range(info.vocab_size)) - set(index.transitions[state])
        assert all(index.next_state(state, token_id) is None for token_id in refused)


def check_minimal(index: TokenIndex) -> None:
    """No two states agree: the slow way, by refining until nothing changes."""
    classes = {state: int(state in index.final_states) for state in index.transitions}
    while True:
        signatures = {
            state: (
                classes[state],
                tuple(sorted((token, classes[target]) for token, target in row.items())),
            )
            for state, row in index.transitions.items()
        }
        numbers = {signature: at for at, signature in enumerate(dict.fromkeys(signatures.values()))}
        refined = {state: numbers[signature] for state, signature in signatures.items()}
        if len(numbers) == len(set(classes.values())):
            break
        classes = refined
    assert len(numbers) == index.num_states


BYTES = TokenizerInfo([*(bytes([byte]) for byte in range(256)), "</s>"], stop_token_ids=[256])


def has_dead_end(pattern: str, vocabulary: list[str | None]) -> bool:
    """The slow way: every token, byte by byte, through the index of a vocabulary of bytes."""
    index = TokenIndex.from_regex(pattern, BYTES)
    moves: dict[int, set[int]] = {}
    order = [index.initial_state]
    for state in order:  # grows while it is walked
        moves[state] = set()
        for token in vocabulary[:-1]:
            target: int | None = state if token else None
            for byte in (token or "").encode():
                target = None if target is None else index.next_state(target, byte)
            if target is not None:
                moves[state].add(target)
                if target not in order:
                    order.append(target)
    ends = set(order) & index.final_states
    while more := {state for state in order if moves[state] & ends} - ends:
        ends |= more
    return ends != set(order)


@pytest.mark.parametrize(
    ("pattern", "tokens", "message"),
    [
        ("😈😍", ["😈", " ", "b"], 'after "😈" no tokens make up "😍"'),
        ("a(b|xc)", ["a", "b", "x"], 'after "ax" no tokens make up "c"'),
        ("(ab)*c", ["ab", "b"], 'after "" no tokens make up "c"'),
        ("é", [b"\xc3", "e"], 'after the bytes "\\\\xc3" no tokens make up the bytes "\\\\xa9"'),
        ("(a|b){80}c", ["a", "b"], r'after \.\.\."a{60}" no tokens make up "c"'),
    ],
)
def test_what_tokens_cannot_spell_is_named(
    pattern: str, tokens: list[str | bytes], message: str
) -> None:
    info = TokenizerInfo([*tokens, "</s>"], stop_token_ids=[len(tokens)])
    with pytest.raises(TokenizerError, match=message):
        TokenIndex.from_regex(pattern, info)


@pytest.mark.parametrize("vocabulary", [SMALL, LACKING])
@settings(max_examples=150)
@given(pattern=PATTERNS, seed=st.integers(0, 1000))
def test_it_is_minimal_and_allows_what_the_matcher_allows(
    vocabulary: list[str | None], pattern: str, seed: int
) -> None:
    info = TokenizerInfo(vocabulary, stop_token_ids=[len(vocabulary) - 1])
    try:
        index = TokenIndex.from_regex(pattern, info)
    except TokenizerError as error:
        assert has_dead_end(pattern, vocabulary)
        assert re.search(r'after (?:\.{3})?"\w*" no tokens make up ', str(error))
        return
    assert not has_dead_end(pattern, vocabulary)
    check_against_matcher(index, Grammar.from_regex(pattern), seed)
    check_minimal(index)
    again = TokenIndex.deserialize_json(index.serialize_json(), info)
    assert again == index and hash(again) == hash(index)


@pytest.mark.parametrize("name", ["tiny", "gpt2", "llama3", "mistral-v1"])
@pytest.mark.parametrize(
    "pattern",
    [
        ARTICLE_REGEX,
        r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
        r"[a-z0-9._]{1,20}@[a-z0-9]+\.(com|org)",
        r'"(\\["\\n]|[^"\\\x00-\x1f])*"',
        r"é|è|漢字",
    ],
)
def test_it_is_an_oracle_for_real_vocabularies(name: str, pattern: str) -> None:
    info = tokenizer_info(name)
    index = TokenIndex.from_regex(pattern, info)
    check_against_matcher(index, Grammar.from_regex(pattern), seed=7, walks=2)


def test_json_of_bounded_depth_is_regular() -> None:
    info = tokenizer_info("tiny")
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 3},
            "tags": {"type": "array", "items": {"enum": ["x", "yz"]}, "maxItems": 2},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    grammar = Grammar.from_json_schema(schema, any_whitespace=False)
    index = TokenIndex.from_grammar(grammar, info)
    check_against_matcher(index, grammar, seed=1)


def test_budgets_are_named() -> None:
    info = tokenizer_info("tiny")
    with pytest.raises(stencilm.LimitExceeded, match=r"more than 50 states.*raise max_states"):
        TokenIndex.from_regex("[a-z]{100}", info, max_states=50)
    with pytest.raises(stencilm.LimitExceeded, match=r"more than 100 bytes.*raise max_bytes"):
        TokenIndex.from_regex("[a-z]{9}", info, max_bytes=100)
    # Where it would be far too large a sample of the states tells so, and only there.
    words = "([a-z]{1,20} ){1,20}"
    with pytest.raises(stencilm.LimitExceeded, match="would take about") as caught:
        TokenIndex.from_regex(words, info, max_bytes=1 << 18)
    told = re.search(r"about (\d+) bytes.* its (\d+) states", str(caught.value))
    assert told is not None
    estimate, states = map(int, told.groups())
    with pytest.raises(stencilm.LimitExceeded, match="take more than"):
        TokenIndex.from_regex(words, info, max_bytes=estimate * 3 // 4)
    assert TokenIndex.from_regex(words, info, max_bytes=estimate * 5 // 4).num_states == states
    nested = Grammar.from_ebnf('root ::= "(" root ")" | "x"')
    with pytest.raises(stencilm.LimitExceeded, match="use a GrammarMatcher"):
        TokenIndex.from_grammar(nested, info, max_states=500)


def test_building_ends_in_time() -> None:
    info = tokenizer_info("tiny")
    with pytest.raises(stencilm.LimitExceeded, match=r"takes more than 0.1 s; .*max_seconds"):
        TokenIndex.from_regex("(?:[a-z]{1,200}[0-9]{1,200}x){1,200}", info, max_seconds=0.1)
    assert TokenIndex.from_regex("a", info, max_seconds=100.0).num_states == 2


def test_what_cannot_be_is_told_by_name() -> None:
    info = tokenizer_info("tiny")
    for name in ("max_states", "max_bytes"):
        wrong: dict[str, Any] = {name: -1}
        with pytest.raises(ValueError, match=f"{name} is -1, but must be at least 1"):
            TokenIndex.from_regex("a", info, **wrong)
        wrong = {name: "x"}
        with pytest.raises(TypeError, match=f"{name} is 'x', but must be an int"):
            TokenIndex.from_regex("a", info, **wrong)
    with pytest.raises(ValueError, match="max_seconds is 0, but must be above 0"):
        TokenIndex.from_regex("a", info, max_seconds=0)
    with pytest.raises(TypeError, match="max_seconds is 'x', but must be a number"):
        TokenIndex.from_regex("a", info, max_seconds="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="progress is 3, but must be a function"):
        TokenIndex.from_regex("a", info, progress=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="limits is a NoneType, but must be Limits"):
        TokenIndex.from_grammar(Grammar.from_regex("a"), info, limits=None)  # type: ignore[arg-type]
    index = TokenIndex.from_regex("a", info, max_states=9, max_bytes=1 << 20)
    with pytest.raises(ValueError, match="max_states is 0, but must be at least 1"):
        index.to_dot(max_states=0)
    with pytest.raises(TypeError, match=r"text is a bytes, but must be the str of serialize_json"):
        TokenIndex.deserialize_json(b"12", info)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"tokenizer_info is a str, but must be a TokenizerInfo"):
        TokenIndex.deserialize_json(index.serialize_json(), "gpt2")  # type: ignore[arg-type]


def test_long_runs_are_kept_in_pieces() -> None:
    # Far more than 256 tokens in a row lead to one state.
    info = tokenizer_info("tiny")
    index = TokenIndex.from_regex(r"[\x00-\x7f]*", info)
    allowed = set(index.allowed_tokens(0)) - set(info.stop_token_ids)
    assert len(allowed) > 1000
    assert all(index.next_state(0, token_id) == 0 for token_id in allowed)
    assert TokenIndex.deserialize_json(index.serialize_json(), info) == index
    check_against_matcher(index, Grammar.from_regex(r"[\x00-\x7f]*"), seed=2)


def test_single_tokens_are_refused() -> None:
    info = TokenizerInfo(["a", "<t>", "</s>"], stop_token_ids=[2], special_token_ids=[1])
    with pytest.raises(stencilm.UnsupportedFeature, match="single tokens"):
        TokenIndex.from_grammar(Grammar.from_ebnf('root ::= <t> "a"'), info)


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    info = tokenizer_info("tiny")
    TokenIndex.from_regex(
        "([a-z]{3,50} ){20}", info, progress=lambda done, known: told.append((done, known))
    )
    assert told and all(0 <= done <= known for done, known in told)


def test_a_state_that_is_none() -> None:
    index = TokenIndex.from_regex("ab", tokenizer_info("tiny"))
    mask = np.zeros((index.tokenizer_info.vocab_size + 31) // 32, dtype=np.int32)
    for state in (-1, index.num_states, 1 << 40):
        with pytest.raises(stencilm.MatcherError, match="is no state of this index"):
            index.next_state(state, 0)
        with pytest.raises(stencilm.MatcherError, match="is no state of this index"):
            index.fill_bitmask(state, mask)
        assert state not in index.transitions
    assert index.next_state(0, 1 << 40) is None


def test_what_is_damaged_or_foreign_is_refused() -> None:
    info = tokenizer_info("tiny")
    text = TokenIndex.from_regex("[ab]{2,5}", info).serialize_json()
    for damaged in ("", text[:-1], text[:40], text.replace("A", "B", 1), "{}", "[1]", "\ud800"):
        with pytest.raises(stencilm.MatcherError, match="write it again"):
            TokenIndex.deserialize_json(damaged, info)
    other = TokenizerInfo(["a", "b"])
    with pytest.raises(stencilm.TokenizerError, match="built for the tokenizer"):
        TokenIndex.deserialize_json(text, other)


def test_what_tokens_spell_and_where_they_lead_may_not_part() -> None:
    info = TokenizerInfo(SMALL, stop_token_ids=[11])
    good = TokenIndex.from_regex("ab(c|a)abc", info)
    assert good.coalesce()[0].text == b"ab"
    words = np.frombuffer(good._core.to_bytes(), dtype="<u4")
    refused = []
    for at in range(len(words)):
        for number in (0, 1, int(words[at]) + 1):
            forged = words.copy()
            forged[at] = number % 2**32
            try:
                core = stencilm._core.TokenIndex.from_bytes(forged.tobytes(), info.core)
                index = TokenIndex(core, info)
                assert index.to_dot(max_states=1)
                index.coalesce()
            except stencilm.MatcherError as error:
                refused.append(str(error))
    assert any("must come at state" in words for words in refused)
    assert any("a state is out of reach" in words for words in refused)


def test_stretches_that_go_on_alike_for_long_are_bounded() -> None:
    """A text of 400 KB can say that 20,000 states have 20,000 bytes of forced text each."""
    info = TokenizerInfo(SMALL, stop_token_ids=[11])
    length = 20_000
    columns = [int(byte == ord("a")) for byte in range(256)]
    table = [[2**32 - 1, state + 1] for state in range(length - 1)] + [[2**32 - 1] * 2]
    arrows = [[0, 1, state + 1] for state in range(length - 1)]
    words = [
        length,
        2,
        length,
        length - 1,
        *columns,
        *chain.from_iterable(table),
        *[0] * (length - 1),
        1,
    ]
    words += [*[0] * length, *range(length), length - 1, *chain.from_iterable(arrows)]
    forged = np.array(words, dtype="<u4").tobytes()
    index = TokenIndex(stencilm._core.TokenIndex.from_bytes(forged, info.core), info)
    with pytest.raises(stencilm.LimitExceeded, match=r"the 20000 stretches .* than 16777216 bytes"):
        index.coalesce()
    assert len(TokenIndex.from_regex("a{20000}", info).coalesce()[0].text) == 20_000


@settings(max_examples=200)
@given(data=st.data())
def test_no_bytes_do_harm(data: st.DataObject) -> None:
    info = TokenizerInfo(SMALL, stop_token_ids=[11])
    pattern = data.draw(st.sampled_from(["(ab|ba)*c?", "ab(c|a)abcabc"]))
    good = TokenIndex.from_regex(pattern, info)._core.to_bytes()
    at = data.draw(st.integers(0, len(good) // 4 - 1)) * 4
    number = data.draw(st.sampled_from([0, 1, 2, 255, 256, 2**31, 2**32 - 1]))
    changed = good[:at] + number.to_bytes(4, "little") + good[at + 4 :]
    try:
        core = stencilm._core.TokenIndex.from_bytes(changed, info.core)
    except stencilm.MatcherError:
        return
    index = TokenIndex(core, info)
    with contextlib.suppress(stencilm.MatcherError):  # where tokens lead elsewhere than their bytes
        index.coalesce()
    index.to_dot()
    index.to_dot(max_states=1)
    assert all(index.allowed_tokens(state) is not None for state in index.transitions)


def test_small_ones_are_drawn_state_by_state() -> None:
    info = TokenizerInfo(["a", 'b"\\', "\n", " ", "</s>"], stop_token_ids=[4])
    text = TokenIndex.from_regex('(a|b"\\\\)[ \n]?', info).to_dot()
    assert text.startswith("digraph index {")
    assert r'label="a\nb\"\\"' in text
    assert r'label="\\n\n␣"' in text
    assert "doublecircle" in text


def test_entities_of_html_are_drawn_as_they_are_spelled() -> None:
    info = TokenizerInfo(["&lt;", "<", "&#65;", "</s>"], stop_token_ids=[3])
    text = TokenIndex.from_regex("&lt;|<|&#65;", info).to_dot()
    assert r'label="<\n&amp;lt;\n&amp;#65;"' in text


def test_tokens_that_spell_the_same_are_one_line_of_a_label() -> None:
    info = TokenizerInfo(["a", "b", "a", "</s>"], stop_token_ids=[3])
    text = TokenIndex.from_regex("a|b", info).to_dot()
    assert r'label="a\nb"' in text


def test_tokens_that_look_alike_and_lead_apart_are_all_told() -> None:
    vocabulary = [b"\xc3", b"\xa9", rb"\xc3", b"b", b"</s>"]
    info = stencilm.TokenizerInfo(vocabulary, stop_token_ids=[4])
    index = TokenIndex.from_regex(r"é|\\xc3b", info)
    row = index.transitions[0]
    assert index.with_tokens()[0] == {"\\xc3": row[2], "<[0]>": row[0]}
    assert TokenIndex.from_regex("é", info).with_tokens()[0] == {"\\xc3": 1}


def test_large_ones_are_summed_up() -> None:
    index = TokenIndex.from_regex("[a-z]{200}", tokenizer_info("tiny"))
    text = index.to_dot()
    assert "201 states" in text
    assert r'0 [label="0' in text
    assert r"tokens\n1 states" not in text
    small = TokenIndex.from_regex("a", tokenizer_info("tiny")).to_dot(max_states=1)
    assert "2 states, 2 transitions, by" in small  # the letter, and its byte
    assert r'1 [label="1 token\n1 state\n1 final"' in small
    assert len(text.splitlines()) < 400
    assert len(index.to_dot(max_states=300).splitlines()) > 400


def test_svg_needs_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    index = TokenIndex.from_regex("ab", tokenizer_info("tiny"))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert index._repr_svg_() is None
    with pytest.raises(stencilm.StencilError, match="graphviz is not installed"):
        index.to_svg()


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
def test_svg_is_drawn() -> None:
    svg = TokenIndex.from_regex(ARTICLE_REGEX, tokenizer_info("tiny"))._repr_svg_()
    assert svg is not None and "<svg" in svg


def test_a_deep_text_with_a_right_checksum_is_refused() -> None:
    info = TokenizerInfo([b"a", b"</s>"], stop_token_ids=[1])
    body = '{"a":' + "[" * 200_000
    text = f'{body},"checksum":"{sha256(body.encode()).hexdigest()}"}}'
    with pytest.raises(stencilm.MatcherError, match="RecursionError"):
        TokenIndex.deserialize_json(text, info)
