"""Matchers of texts, without a tokenizer: one token for each byte."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from stencilm.grammars.grammar import Grammar
from stencilm.matching.compiler import GrammarCompiler
from stencilm.matching.matcher import GrammarMatcher
from stencilm.tokenizers import TokenizerInfo


def byte_matcher(grammar: Grammar) -> GrammarMatcher:
    """A fresh matcher of a grammar over bytes."""
    return GrammarMatcher(compiler_of(byte_vocabulary()).compile_grammar(grammar))


@lru_cache(maxsize=1)
def byte_vocabulary() -> TokenizerInfo:
    """A token for each byte, and a stop token."""
    return TokenizerInfo([bytes([byte]) for byte in range(256)] + [b"</s>"], stop_token_ids=[256])


@lru_cache(maxsize=4)
def compiler_of(info: TokenizerInfo) -> GrammarCompiler:
    """The compiler of a vocabulary; the latest few are cached with their compiled grammars."""
    return GrammarCompiler(info)


def all_texts(grammar: Grammar, *, most: int) -> list[bytes] | None:
    """The texts of a grammar in byte order; None if there are more than `most`."""
    found: list[bytes] = []
    todo = [(b"", byte_matcher(grammar))]
    mask = np.zeros((1, -(-byte_vocabulary().vocab_size // 32)), dtype=np.int32)
    while todo:
        text, matcher = todo.pop()
        if matcher.is_completed():
            found.append(text)
        allowed = list(range(256))
        if matcher.fill_next_token_bitmask(mask, 0):
            bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[:256]
            allowed = np.flatnonzero(bits).tolist()
        for byte in reversed(allowed):
            longer = matcher.fork()
            longer.accept_token(byte)
            todo.append((text + bytes([byte]), longer))
        # Masks are exact, so each waiting prefix has at least one text.
        if len(found) + len(todo) > most or len(text) > _LONGEST:
            return None
    return found


_LONGEST = 1 << 16
