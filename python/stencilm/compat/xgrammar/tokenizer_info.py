"""The original's module name for members of `vocabularies`."""

from stencilm.compat.xgrammar.vocabularies import (
    TokenizerInfo,
    VocabType,
)

__all__ = [
    "TokenizerInfo",
    "VocabType",
]
