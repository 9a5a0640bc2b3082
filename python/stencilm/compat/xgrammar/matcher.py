"""The original's module name for members of `matching`, `batches` and `bitmasks`."""

from stencilm.compat.xgrammar.batches import BatchGrammarMatcher
from stencilm.compat.xgrammar.bitmasks import (
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    bitmask_dtype,
    get_bitmask_shape,
    reset_token_bitmask,
)
from stencilm.compat.xgrammar.matching import GrammarMatcher

__all__ = [
    "BatchGrammarMatcher",
    "GrammarMatcher",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "bitmask_dtype",
    "get_bitmask_shape",
    "reset_token_bitmask",
]
