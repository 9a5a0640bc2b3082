"""Tokenizers: what each token id of a model spells, read from real tokenizers and tested at load.

A tokenizer library becomes a `Source` (bytes per id), the self-test compares the source with the
tokenizer it came from, and `TokenizerInfo` freezes what passed.
"""

from stencilm.tokenizers.facts import TokenizerFacts
from stencilm.tokenizers.info import TokenizerInfo
from stencilm.tokenizers.spelling import VocabType

__all__ = ["TokenizerFacts", "TokenizerInfo", "VocabType"]
