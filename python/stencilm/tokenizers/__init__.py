"""Tokenizers: the bytes of each token of a model, read from a real tokenizer and tested at load.

A tokenizer library becomes a `Source` (bytes per id). The self-test compares the source with the
tokenizer that it came from, and `TokenizerInfo` freezes the result.
"""

from stencilm.tokenizers.facts import TokenizerFacts
from stencilm.tokenizers.info import TokenizerInfo
from stencilm.tokenizers.spelling import VocabType

__all__ = ["TokenizerFacts", "TokenizerInfo", "VocabType"]
