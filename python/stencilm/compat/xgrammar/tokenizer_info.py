"""Under the original's name: what `vocabularies` defines."""

from stencilm.compat.xgrammar.vocabularies import (
    TokenizerInfo,
    VocabType,
)

__all__ = [
    "TokenizerInfo",
    "VocabType",
]
