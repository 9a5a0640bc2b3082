"""Budgets of tokens and temperatures: random walks through masks, counted by hand."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stencilm
from stencilm import (
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    GrammarSyntaxError,
    TokenIndex,
    TokenizerInfo,
    UnsupportedFeature,
    allocate_token_bitmask,
)
from stencilm.grammars.structural_tag import AnyTextFormat, StructuralTag, TagFormat

THINKING = {
    "ebnf": Grammar.from_ebnf(
        'root ::= "<t>" text "</t>" [0-9]\ntext[max_tokens=5] ::= [a-zA-Z .,é]*'
    ),
    "lark": Grammar.from_lark(
        'start: "<t>" text /[0-9]/\ntext[max_tokens=5, suffix="</t>"]: /[a-zA-Z .,é]*/'
    ),
    "structural tag": Grammar.from_structural_tag(
        {
            "type": "sequence",
            "elements": [
                {
                    "type": "tag",
                    "begin": "<t>",
                    "content": {"type": "any_text", "max_tokens": 5},
                    "end": "</t>",
                },
                {"type": "regex", "pattern": "[0-9]"},
            ],
        }
    ),
}


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny"))


def allowed(matcher: GrammarMatcher, size: int) -> list[int]:
    bitmask = np.asarray(allocate_token_bitmask(1, size))
    matcher.fill_next_token_bitmask(bitmask)
    bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")
    return [int(token) for token in np.flatnonzero(bits[:size])]


@pytest.mark.parametrize("notation", THINKING)
@pytest.mark.parametrize("seed", range(6))
def test_walks_stay_within_the_budget(compiler: GrammarCompiler, notation: str, seed: int) -> None:
    rng = random.Random(seed)
    info = compiler.tokenizer_info
    matcher = GrammarMatcher(compiler.compile_grammar(THINKING[notation]))
    text, counted, ends_at = b"", 0, None
    while not matcher.is_terminated() and len(text) < 400:
        tokens = allowed(matcher, info.vocab_size)
        back = rng.randrange(3)
        twin = matcher.fork()
        for _ in range(min(back, twin.num_accepted_tokens)):
            twin.rollback()
        # Letters go on within the text; with them alone only the budget ends it.
        letters = [token for token in tokens if info.decoded_vocab[token].strip(b" ").isalpha()]
        token = rng.choice(letters or tokens)
        inside = text.startswith(b"<t>") and b"</t>" not in text
        counted += inside and ends_at is None
        assert matcher.accept_token(token)
        if token in info.stop_token_ids:
            break
        text += info.decoded_vocab[token]
        if inside and counted == 5 and ends_at is None:
            ends_at = len(text)
    assert ends_at is not None
    decoded = text[:ends_at].decode(errors="replace")
    # After the last token of the budget comes what is left of a character, and the end.
    assert text[ends_at:].lstrip(bytes(range(0x80, 0xC0))).startswith(b"</t>"), (decoded, text)


def test_what_is_accepted_as_text_counts_as_no_token(compiler: GrammarCompiler) -> None:
    matcher = GrammarMatcher(compiler.compile_grammar(THINKING["ebnf"]))
    assert matcher.accept_string("<t>" + "many words " * 20)
    assert len(allowed(matcher, compiler.tokenizer_info.vocab_size)) > 50
    assert matcher.accept_string("</t>1") and matcher.is_completed()


def test_budgets_and_temperatures_are_printed_and_saved() -> None:
    grammar = Grammar.from_ebnf('root ::= a "b"\na[max_tokens=3, temperature=0.7] ::= [ac]*')
    printed = str(grammar)
    assert "%max_tokens(3: " in printed and "%temperature(0.7: " in printed
    assert str(Grammar.from_ebnf(printed)) == printed
    saved = grammar.serialize_json()
    assert str(Grammar.deserialize_json(saved)) == printed
    for damaged in (
        saved.replace("0.7", "-1"),
        saved.replace('"max_tokens":[3', '"max_tokens":[0'),
    ):
        assert damaged != saved
        with pytest.raises(GrammarSyntaxError):
            Grammar.deserialize_json(damaged)


def test_a_tag_with_a_budget_is_a_typed_value() -> None:
    content = AnyTextFormat(max_tokens=7)
    tag = StructuralTag(format=TagFormat(begin="<t>", content=content, end="</t>"))
    assert StructuralTag.from_json(tag.to_json()) == tag
    assert "%max_tokens(7: " in str(Grammar.from_structural_tag(tag))


@pytest.mark.parametrize(
    "ebnf", ['root[max_tokens=3] ::= root "a" | "b"', 'root[temperature=1] ::= root? "b"']
)
def test_a_part_that_begins_with_itself_is_refused(compiler: GrammarCompiler, ebnf: str) -> None:
    with pytest.raises(UnsupportedFeature, match="begins with itself"):
        compiler.compile_grammar(ebnf)


def test_there_is_no_index_of_a_grammar_with_budgets(compiler: GrammarCompiler) -> None:
    with pytest.raises(UnsupportedFeature, match="max_tokens"):
        TokenIndex.from_grammar(THINKING["ebnf"], compiler.tokenizer_info)


def test_temperatures_are_told(compiler: GrammarCompiler) -> None:
    grammar = Grammar.from_lark(
        'start: "a" b "c"\nb[temperature=0.25]: /[xyz]+/ c?\nc[temperature=2]: /[0-9]/'
    )
    matcher = GrammarMatcher(compiler.compile_grammar(grammar))
    told: list[Any] = [matcher.temperature]
    for letter in ("a", "x", "1", "c"):
        assert matcher.accept_string(letter)
        told.append(matcher.temperature)
    assert told == [None, 0.25, 2, None, None]
    matcher.rollback(3)
    assert matcher.temperature == 0.25
