"""Random texts by the tokens of masks, each mask held against what is accepted.

All vocabularies are some tokens and, after them, the one that ends a text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from stencilm import CompiledGrammar, GrammarMatcher, allocate_token_bitmask


def allowed_tokens(matcher: GrammarMatcher, tokens: Sequence[bytes]) -> list[int]:
    """The tokens of a mask."""
    size = len(tokens) + 1
    mask = allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(mask)
    return [token for token in range(size) if mask[0][token // 32] >> (token % 32) & 1]


def exact_mask(matcher: GrammarMatcher, tokens: Sequence[bytes], text: bytes) -> list[int]:
    """The tokens of a mask, which are those that are accepted after a text, and some."""
    allowed = allowed_tokens(matcher, tokens)
    accepted = []
    for token in range(len(tokens) + 1):
        if matcher.accept_token(token):
            accepted.append(token)
            matcher.rollback(1)
    assert allowed == accepted and allowed, text
    return allowed


def walk(
    compiled: CompiledGrammar, tokens: Sequence[bytes], dice: random.Random
) -> Iterator[tuple[GrammarMatcher, bytes, bool]]:
    """Up to 24 random tokens, seldom blanks: the matcher, its text, whether that may end."""
    matcher, text = GrammarMatcher(compiled), b""
    for _ in range(24):
        allowed = exact_mask(matcher, tokens, text)
        yield matcher, text, len(tokens) in allowed
        going_on = [token for token in allowed if token < len(tokens)]
        if not going_on:
            break
        weights = [0.1 if not tokens[token].strip() else 1.0 for token in going_on]
        token = dice.choices(going_on, weights)[0]
        assert matcher.accept_token(token)
        text += tokens[token]
