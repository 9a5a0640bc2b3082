"""Guesses: never what the grammar refuses, and only where they are likely to be right."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stencilm
from stencilm import Grammar, GrammarMatcher, TokenizerInfo
from stencilm.generation.guesses import Guesser
from stencilm.generation.lookup import Lookup, Odds
from stencilm.matching.texts import compiler_of

TEXTS = [*(bytes([byte]) for byte in range(256)), b'": "', b'", "', b"ab", b"cd", b"</s>"]
IDS = {text: number for number, text in enumerate(TEXTS)}
STOP = IDS[b"</s>"]
INFO = TokenizerInfo(TEXTS, stop_token_ids=[STOP])
PAIRS = 'root ::= "{\\"" pair ("\\", \\"" pair){3} "\\"}"\npair ::= [a-z]+ "\\": \\"" [a-z]*'


def matcher_of(grammar: Grammar) -> GrammarMatcher:
    return GrammarMatcher(compiler_of(INFO).compile_grammar(grammar))


def written(text: list[bytes], grammar: Grammar, limit: int = 20) -> tuple[Guesser, Any]:
    matcher, guesser = matcher_of(grammar), Guesser(INFO, [IDS[b">"]], limit)
    for token in text:
        guesser.guess(matcher, {STOP}, 99)
        assert matcher.accept_token(IDS[token])
        guesser.extend([IDS[token]])
    return guesser, matcher


@pytest.mark.parametrize(
    ("text", "guesses"),
    [
        # Forced text, also where its tokens would depend on what follows.
        ([], [b"{", b'"']),
        # A frame that the grammar knows, after a word that nobody knows.
        ([b"{", b'"', b"ab"], [b'": "']),
        # The last one is another frame.
        (
            [b"{", b'"', b"ab", b'": "', b"cd", b'", "', b"x", b'": "', b"cd", b'", "', b"y"],
            [b'": "'],
        ),
    ],
)
def test_frames_are_guessed_from_the_grammar(text: list[bytes], guesses: list[bytes]) -> None:
    guesser, matcher = written(text, Grammar.from_ebnf(PAIRS))
    found = [TEXTS[token] for token in guesser.guess(matcher, {STOP}, 99)]
    assert found[: len(guesses)] == guesses


def test_what_was_seldom_right_is_guessed_no_more() -> None:
    grammar = Grammar.from_regex('"[a-z]*": "x')
    guesser, matcher = written([b'"', *[b"q"] * 12], grammar)
    assert guesser.guess(matcher, {STOP}, 99) != [IDS[b'": "']]


def test_no_more_than_the_limit_and_the_room() -> None:
    for limit, room, length in ((3, 99, 3), (20, 2, 2), (20, 0, 0), (20, -1, 0)):
        guesser, matcher = written([], Grammar.from_regex("abcdefgh"), limit)
        assert len(guesser.guess(matcher, {STOP}, room)) == length


@given(st.data())
def test_guesses_are_allowed_and_change_nothing(data: Any) -> None:
    pattern = data.draw(st.sampled_from([PAIRS, 'root ::= ("ab" | "cd" [a-d]{2,4})* "!"']))
    matcher, guesser = matcher_of(Grammar.from_ebnf(pattern)), Guesser(INFO, [0, 1, 0], 6)
    for _ in range(data.draw(st.integers(0, 25))):
        if matcher.is_terminated():
            break
        before = matcher.num_accepted_tokens
        guesses = guesser.guess(matcher, {STOP}, 99)
        assert matcher.num_accepted_tokens == before
        assert matcher.validate_tokens(guesses) == len(guesses) <= 6
        assert STOP not in guesses
        ways = [token for token in range(len(TEXTS) - 1) if matcher.is_allowed(token)]
        if not ways:
            break
        token = data.draw(st.sampled_from(ways))
        assert matcher.accept_token(token)
        guesser.extend([token])


@given(st.lists(st.integers(0, 3), max_size=40), st.lists(st.integers(0, 3), max_size=3))
def test_a_lookup_tells_what_followed(tokens: list[int], guesses: list[int]) -> None:
    """What it tells stood after one of its shapes before, and its odds are odds."""
    found = Lookup(tokens).best(guesses)
    whole = [*tokens, *guesses]
    if found is None:
        return
    token, odds = found
    assert 0 < odds < 1
    places = range(1, len(tokens))
    assert any(
        tokens[place] == token and place > free and tokens[place - free - 1] == whole[-1 - free]
        for place in places
        for free in (0, 1, 2)
        if len(whole) > free
    )


def test_odds_are_those_of_the_kind_until_there_are_own_ones() -> None:
    odds = Odds()
    assert odds.of("new") == 0.5
    for _ in range(20):
        odds.learn("good", True)
        odds.learn("bad", False)
    assert odds.of("good") > 0.85 and odds.of("bad") < 0.15
    assert 0.4 < odds.of("other") < 0.6
    for _ in range(40):
        odds.learn("bad", True)
    assert odds.of("bad") > 0.8, "what was long ago counts less"


def test_the_embedded_model_confirms_frames() -> None:
    """Fewer passes than tokens, by guesses that were mostly right."""
    model = stencilm.load("tiny")
    pair = r'"\"" [a-zA-Z0-9_ ]{1,16} "\": \"" [a-zA-Z0-9_ .-]{0,24} "\""'
    grammar = Grammar.from_ebnf(
        f'root ::= "{{\\n  " pair (",\\n  " pair){{9}} "\\n}}"\npair ::= {pair}'
    )
    prompt = "Here is a JSON object, with 10 keys, using only string values:\n\n```json\n"
    result = stencilm.guide(model, grammar, prompt, max_grammar_corrections=99)
    usage = result.usage
    assert result.status == "valid" and usage.guessed_tokens > 8
    tokens = len(model.tokenizer_info.tokenize_bytes(result.response.encode()))
    assert usage.calls < 0.8 * tokens
