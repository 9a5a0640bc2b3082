"""Matchers of texts, for which no tokenizer is known: one token for each byte."""

from __future__ import annotations

from functools import lru_cache

from stencilm.compiler import GrammarCompiler
from stencilm.grammar import Grammar
from stencilm.matcher import GrammarMatcher
from stencilm.tokenizers import TokenizerInfo


def byte_matcher(grammar: Grammar) -> GrammarMatcher:
    """A fresh matcher of a grammar over bytes."""
    return GrammarMatcher(compiler_of(byte_vocabulary()).compile_grammar(grammar))


@lru_cache(maxsize=1)
def byte_vocabulary() -> TokenizerInfo:
    """A token for each byte, and one that stops."""
    return TokenizerInfo([bytes([byte]) for byte in range(256)] + [b"</s>"], stop_token_ids=[256])


@lru_cache(maxsize=4)
def compiler_of(info: TokenizerInfo) -> GrammarCompiler:
    """The compiler of a vocabulary; the latest few are kept with what they compiled."""
    return GrammarCompiler(info)
