"""300 random schemas and grammars, three qualities of drafts: valid always, or said not to be."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

import stencilm
from generation.test_random_schemas import SchemaMaker
from stencilm import Budget, Grammar
from stencilm.errors import StencilError
from stencilm.guiding.parsers import as_grammar
from stencilm.matching.texts import byte_matcher

CASES = 300
NOISE = '{}[]",:0123456789 abcxyz\n\\é~tfn-.eE'
BUDGET = Budget(calls=60, tokens=3_000, seconds=30)
MAX_CORRECTIONS = 12


def drawn_grammar(seed: int) -> Grammar:
    random = Random(seed)
    while True:
        try:
            if seed % 3:
                schema, _ = SchemaMaker(random).document()
                return Grammar.from_json_schema(schema)
            return Grammar.from_ebnf(drawn_rules(random))
        except StencilError:
            continue  # contradictory constraints; the next one


def drawn_rules(random: Random) -> str:
    """A few rules that may nest: sequences, alternatives, repetitions, words and classes."""
    names = ["root", "one", "two"]

    def part(depth: int) -> str:
        shape = random.randrange(6 if depth else 3)
        if shape == 0:
            return json.dumps(random.choice(["begin", "end", "(", ")", ", ", "SELECT ", "é", "x"]))
        if shape == 1:
            return random.choice(["[a-z]+", "[0-9]{1,4}", "[A-F0-9]", "[^\\n]{0,5} "])
        if shape == 2:
            return random.choice(names[1:]) if depth else '"."'
        parts = [part(depth - 1) for _ in range(random.randint(1, 3))]
        if shape == 3:
            return f"({' | '.join(parts)})"
        if shape == 4:
            return f"({' '.join(parts)}){random.choice(['?', '*', '+', '{1,3}'])}"
        return f"({' '.join(parts)})"

    return "\n".join(f"{name} ::= {part(2)} {part(2)} | {part(0)}" for name in names)


def drafter(quality: str, grammar: Grammar, seed: int) -> Any:
    """A function that writes on well, with faults, or anything at all."""
    random = Random(seed)

    def noise(length: int) -> str:
        return "".join(random.choice(NOISE) for _ in range(length))

    def draft(prefix: str, prompt: str, max_new_tokens: int) -> str:
        if quality == "hostile":
            return noise(random.choice([0, 1, 5, 40, 400]))
        matcher = byte_matcher(grammar)
        assert matcher.accept_string(prefix)
        text = ""
        for _ in range(max_new_tokens):
            ways = [byte for byte in range(256) if byte < 128 and matcher.is_allowed(byte)]
            if not ways or (matcher.is_completed() and random.random() < 0.3):
                break
            byte = random.choice(ways)
            text += chr(byte)
            matcher.accept_token(byte)
        if quality == "noisy" and text and random.random() < 0.5:
            place = random.randrange(len(text))
            text = text[:place] + noise(random.randint(1, 3)) + text[place:]
        return text

    return draft


@pytest.mark.parametrize("quality", ["good", "noisy", "hostile"])
def test_text_functions(quality: str) -> None:
    statuses: dict[str, int] = {}
    for seed in range(CASES):
        grammar = drawn_grammar(seed)
        result = stencilm.guide(
            drafter(quality, grammar, seed), grammar, "prompt",
            budget=BUDGET, max_grammar_corrections=MAX_CORRECTIONS,
        )  # fmt: skip
        hold(result, grammar, seed)
        statuses[result.status] = statuses.get(result.status, 0) + 1
        if quality == "good":
            assert (
                result.num_grammar_corrections == 0
                or not result.response.isascii()
                or ({c.means for c in result.correction_log} <= {"forced", "nearest", "shortest"})
            ), seed
    assert statuses.get("truncated", 0) == 0
    assert statuses["valid"] > (200 if quality == "good" else 0)


@pytest.mark.parametrize("quality", ["good", "noisy", "hostile"])
def test_local_models(quality: str) -> None:
    import numpy as np

    from generation.conftest import ByteModel

    for seed in range(CASES):
        grammar = drawn_grammar(seed)
        matcher = byte_matcher(grammar)

        def logits(token_ids: list[int], seed: int = seed, matcher: Any = matcher) -> Any:
            random = np.random.default_rng([seed, len(token_ids)])
            row = random.normal(size=257).astype(np.float32) * 2
            if quality != "hostile" and (quality == "good" or random.random() < 0.6):
                matcher.reset()
                if matcher.accept_string(bytes(token_ids[1:])):
                    row[[matcher.is_allowed(token) for token in range(257)]] += 20
            row[256] += 3
            return row

        result = stencilm.guide(
            ByteModel(logits), grammar, ">", token_healing=False,
            budget=BUDGET, max_grammar_corrections=MAX_CORRECTIONS,
        )  # fmt: skip
        hold(result, grammar, seed)
        if quality == "good":
            assert result.num_grammar_corrections == 0, seed


def hold(result: stencilm.Guided, grammar: Any, seed: int) -> None:
    wanted = "complete" if result.is_valid else "viable"
    verdict = byte_matcher(as_grammar(grammar)).longest_valid_prefix(result.response)
    assert verdict.status == wanted, (seed, result.status, result.response)
    assert result.num_grammar_corrections <= MAX_CORRECTIONS + 1, seed
    assert result.usage.calls <= BUDGET.calls, seed
