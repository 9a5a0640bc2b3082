"""The interface of xgrammar 0.2 over this engine: `import stencilm.compat.xgrammar as xgr`.

One idea: every public item has the original's name, signature, result and error class. Modules that
are named as in the original only re-export definitions, so a module that is imported under the
names of both packages holds the same classes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from stencilm.compat.xgrammar import exception, structural_tag, testing
from stencilm.compat.xgrammar.batches import BatchGrammarMatcher
from stencilm.compat.xgrammar.bitmasks import (
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    bitmask_dtype,
    get_bitmask_shape,
    reset_token_bitmask,
)
from stencilm.compat.xgrammar.compiling import CompiledGrammar, GrammarCompiler
from stencilm.compat.xgrammar.depth import (
    get_max_recursion_depth,
    max_recursion_depth,
    set_max_recursion_depth,
)
from stencilm.compat.xgrammar.failures import (
    DeserializeFormatError,
    DeserializeVersionError,
    InvalidJSONError,
    InvalidStructuralTagError,
)
from stencilm.compat.xgrammar.formats import StructuralTag, StructuralTagItem
from stencilm.compat.xgrammar.grammars import Grammar
from stencilm.compat.xgrammar.matching import GrammarMatcher
from stencilm.compat.xgrammar.saved import get_serialization_version
from stencilm.compat.xgrammar.tool_tags import (
    get_builtin_structural_tag,
    get_model_structural_tag,
    normalize_tool_choice,
    register_model_structural_tag,
)
from stencilm.compat.xgrammar.vocabularies import TokenizerInfo, VocabType

if TYPE_CHECKING:
    from stencilm.compat.xgrammar.contrib import hf

__all__ = [
    "BatchGrammarMatcher",
    "CompiledGrammar",
    "DeserializeFormatError",
    "DeserializeVersionError",
    "Grammar",
    "GrammarCompiler",
    "GrammarMatcher",
    "InvalidJSONError",
    "InvalidStructuralTagError",
    "StructuralTag",
    "StructuralTagItem",
    "TokenizerInfo",
    "VocabType",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "bitmask_dtype",
    "exception",
    "get_bitmask_shape",
    "get_builtin_structural_tag",
    "get_max_recursion_depth",
    "get_model_structural_tag",
    "get_serialization_version",
    "hf",
    "max_recursion_depth",
    "normalize_tool_choice",
    "register_model_structural_tag",
    "reset_token_bitmask",
    "set_max_recursion_depth",
    "structural_tag",
    "testing",
]


def __getattr__(name: str) -> object:
    if name == "hf":  # needs transformers, which masking alone does not
        return import_module("stencilm.compat.xgrammar.contrib.hf")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
