"""A person as a grammar of transformers' loops, and the rows of a processor step by step."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

import stencilm

torch = pytest.importorskip("torch")


class Person(BaseModel):
    name: str = Field(max_length=8)
    job: Literal["baker", "pilot"]


def walk(model: stencilm.Model, text: str) -> tuple[Any, list[int]]:
    info = model.tokenizer_info
    return stencilm.LogitsProcessor(model.compile(Person)), info.tokenize_bytes(text.encode())


def allowed(processor: stencilm.LogitsProcessor, *rows: list[int]) -> list[set[int]]:
    scores = torch.zeros((len(rows), 4608))
    kept = processor(torch.tensor(list(rows)), scores)
    return [set((row > -torch.inf).nonzero()[:, 0].tolist()) for row in kept]


def expected_after(model: stencilm.Model, tokens: list[int]) -> set[int]:
    matcher = stencilm.GrammarMatcher(model.compile(Person))
    for token_id in tokens:
        assert matcher.accept_token(token_id)
    bitmask = stencilm.allocate_token_bitmask(1, 4608)
    matcher.fill_next_token_bitmask(bitmask)
    words = bitmask.numpy().view("uint32")[0]
    return {i for i in range(4608) if words[i // 32] >> (i % 32) & 1}
