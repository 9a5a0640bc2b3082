"""Texts at random that the grammar of a type allows, byte by byte."""

from __future__ import annotations

import random
from typing import Any

from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo
from stencilm.grammars.outputs import resolve

COMPILER = GrammarCompiler(
    TokenizerInfo([*(bytes([byte]) for byte in range(256)), None], stop_token_ids=[256])
)


def matcher(tp: Any) -> GrammarMatcher:
    return GrammarMatcher(COMPILER.compile_grammar(resolve(tp).grammar()))


def random_text(start: GrammarMatcher, chance: random.Random) -> str:
    """Some bytes at random, often the signs that divide a text, then the shortest end."""
    walk, written = start.fork(), b""
    for _ in range(chance.choice([0, 4, 12, 30])):
        allowed = [byte for byte in range(256) if walk.is_allowed(byte)]
        if not allowed or (walk.is_completed() and chance.random() < 0.3):
            break
        signs = [byte for byte in allowed if chr(byte) in '"}],:/.0123456789-+eTZ@']
        byte = chance.choice(signs if signs and chance.random() < 0.5 else allowed)
        assert walk.accept_token(byte)
        written += bytes([byte])
    return (written + walk.shortest_completion()).decode()
