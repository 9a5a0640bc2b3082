"""Choices of long texts are read in pieces, and are the same choices."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import stencilm
from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo

INFO = TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
COMPILER = GrammarCompiler(INFO, cache_enabled=False)
RANDOM = Random(3)
Wrap = Callable[[dict[str, Any]], dict[str, Any]]


def drawn(count: int) -> str:
    return "".join(RANDOM.choices('abcé"\\ x/', k=count))


SHORT, LONG = drawn(300), drawn(3_000)
CHOICES = {
    "apart": ["a", "b", drawn(5_000), drawn(2_500)],
    "one begins like another": [SHORT + "x", SHORT + drawn(4_000), SHORT + "y" + drawn(3_000), ""],
    "one goes on behind another": [LONG, LONG + "a", LONG + drawn(3_000), LONG[:2_900] + "zz"],
    "short and long": ["a", "a" + drawn(4_000), "ab", "ab" + drawn(5_000)],
}
PLACES: dict[str, tuple[Wrap, str]] = {
    "alone": (lambda choice: choice, "%s"),
    "member": (lambda choice: {"type": "object", "properties": {"k": choice}}, '{"k": %s}'),
    "element": (lambda choice: {"type": "array", "items": choice}, "[%s, %s]"),
}


def is_accepted(compiled: stencilm.CompiledGrammar, text: str) -> bool:
    matcher = GrammarMatcher(compiled)
    return matcher.accept_string(text) and matcher.is_completed()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_of_long_texts_has_these_and_no_others(name: str, place: str) -> None:
    texts = CHOICES[name]
    wrap, written = PLACES[place]
    compiled = COMPILER.compile_json_schema(wrap({"enum": texts}))
    for text in [*texts, drawn(2_500), texts[-1] + "a", texts[0] + "q", texts[2][:-1]]:
        spelled = json.dumps(text, ensure_ascii=False)
        whole = written.replace("%s", spelled)
        assert is_accepted(compiled, whole) == (text in texts), text[:20]
    whole = written.replace("%s", json.dumps(max(texts, key=len), ensure_ascii=False))
    mask = np.zeros((1, (INFO.vocab_size + 31) // 32), np.int32)
    for at in range(0, len(whole), len(whole) // 5):
        matcher = GrammarMatcher(compiled)
        assert matcher.accept_string(whole[:at])
        matcher.fill_next_token_bitmask(mask)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: INFO.vocab_size]
        accepted = [bool(matcher.fork().accept_token(token)) for token in range(INFO.vocab_size)]
        assert [bool(bit) for bit in bits] == accepted
