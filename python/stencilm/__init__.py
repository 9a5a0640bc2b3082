"""Grammar-constrained generation: any language model writes text that fits a grammar.

There are three ways to one engine: `TokenizerInfo`, `GrammarCompiler` and `GrammarMatcher` for
authors of inference engines; `load` and `from_transformers` for typed objects from a model; and the
command line `stencilm`. Every name below is imported when it is first used, so importing this
package is cheap and needs no machine learning framework.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stencilm._core import __version__
    from stencilm.bitmask.arrays import (
        allocate_token_bitmask,
        apply_token_bitmask_inplace,
        bitmask_dtype,
        get_bitmask_shape,
        reset_token_bitmask,
    )
    from stencilm.bitmask.rows import MaskPatch, MaskPatches, MaskRows
    from stencilm.endpoints.anthropic import from_anthropic
    from stencilm.endpoints.api_model import ApiModel
    from stencilm.endpoints.capabilities import Capabilities, Prices
    from stencilm.endpoints.openai import from_openai
    from stencilm.errors import (
        BatchError,
        EndpointError,
        GrammarSyntaxError,
        LimitExceeded,
        MatcherError,
        ModelError,
        ModelRefused,
        OperationCancelled,
        StencilError,
        TokenizerError,
        TraceError,
        Unsatisfiable,
        UnsupportedFeature,
    )
    from stencilm.generation.corrections import Correction
    from stencilm.generation.result import (
        Filled,
        Generation,
        IncompleteOutput,
        InvalidOutput,
        LeftOut,
    )
    from stencilm.generation.sampling_report import SamplingReport
    from stencilm.grammars.grammar import Finding, Grammar, Report
    from stencilm.grammars.holes import HOLE
    from stencilm.grammars.output_types import Choice, Ebnf, JsonSchema, Lark, Regex
    from stencilm.grammars.sql import sql
    from stencilm.grammars.structural_tag import StructuralTag, StructuralTagItem
    from stencilm.grammars.symbols import SymbolTable
    from stencilm.guiding.api import aguide, guide
    from stencilm.guiding.choosers import choose_candidate
    from stencilm.guiding.parsers import load_parser, obtain_correction_pairs
    from stencilm.guiding.task import Budget, Guided, Usage
    from stencilm.integrations.transformers.continuous_batching import (
        ContinuousBatchingLogitsProcessor,
    )
    from stencilm.integrations.transformers.custom_generate import CustomGenerate
    from stencilm.integrations.transformers.logits_processor import LogitsProcessor
    from stencilm.limits import CancelToken, Limits
    from stencilm.matching.candidates import Literal, Pattern
    from stencilm.matching.compiler import CompiledGrammar, GrammarCompiler
    from stencilm.matching.index import TokenIndex
    from stencilm.matching.matcher import (
        BatchGrammarMatcher,
        GrammarMatcher,
        Verdict,
        traverse_draft_tree,
    )
    from stencilm.matching.preparation import Preparation
    from stencilm.matching.reasoning import ReasoningFormat
    from stencilm.models.model import Model, from_llama_cpp, from_mlx, from_transformers, load
    from stencilm.models.typed_model import TypedModel
    from stencilm.tokenizers import TokenizerInfo, VocabType
    from stencilm.tool_calls.answers import (
        CallDelta,
        CallDone,
        ContentDelta,
        ParsedAnswer,
        ReasoningDelta,
        ToolCall,
    )
    from stencilm.tool_calls.format import ToolFormat, tools
    from stencilm.tool_calls.parser import ToolCallParser
    from stencilm.tool_calls.reasoning import reasoning_format
    from stencilm.tool_calls.registry import (
        get_model_structural_tag,
        model_structural_tags,
        register_model_structural_tag,
    )
    from stencilm.tool_calls.template import ToolTemplate
__all__ = [
    "HOLE",
    "ApiModel",
    "BatchError",
    "BatchGrammarMatcher",
    "Budget",
    "CallDelta",
    "CallDone",
    "CancelToken",
    "Capabilities",
    "Choice",
    "CompiledGrammar",
    "ContentDelta",
    "ContinuousBatchingLogitsProcessor",
    "Correction",
    "CustomGenerate",
    "Ebnf",
    "EndpointError",
    "Filled",
    "Finding",
    "Generation",
    "Grammar",
    "GrammarCompiler",
    "GrammarMatcher",
    "GrammarSyntaxError",
    "Guided",
    "IncompleteOutput",
    "InvalidOutput",
    "JsonSchema",
    "Lark",
    "LeftOut",
    "LimitExceeded",
    "Limits",
    "Literal",
    "LogitsProcessor",
    "MaskPatch",
    "MaskPatches",
    "MaskRows",
    "MatcherError",
    "Model",
    "ModelError",
    "ModelRefused",
    "OperationCancelled",
    "ParsedAnswer",
    "Pattern",
    "Preparation",
    "Prices",
    "ReasoningDelta",
    "ReasoningFormat",
    "Regex",
    "Report",
    "SamplingReport",
    "StencilError",
    "StructuralTag",
    "StructuralTagItem",
    "SymbolTable",
    "TokenIndex",
    "TokenizerError",
    "TokenizerInfo",
    "ToolCall",
    "ToolCallParser",
    "ToolFormat",
    "ToolTemplate",
    "TraceError",
    "TypedModel",
    "Unsatisfiable",
    "UnsupportedFeature",
    "Usage",
    "Verdict",
    "VocabType",
    "__version__",
    "aguide",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "bitmask_dtype",
    "choose_candidate",
    "from_anthropic",
    "from_llama_cpp",
    "from_mlx",
    "from_openai",
    "from_transformers",
    "get_bitmask_shape",
    "get_model_structural_tag",
    "guide",
    "load",
    "load_parser",
    "model_structural_tags",
    "obtain_correction_pairs",
    "reasoning_format",
    "register_model_structural_tag",
    "reset_token_bitmask",
    "sql",
    "tools",
    "traverse_draft_tree",
]

_NAMES = {
    "_core": ("__version__",),
    "bitmask.arrays": (
        "allocate_token_bitmask",
        "apply_token_bitmask_inplace",
        "bitmask_dtype",
        "get_bitmask_shape",
        "reset_token_bitmask",
    ),
    "matching.candidates": ("Literal", "Pattern"),
    "matching.compiler": ("CompiledGrammar", "GrammarCompiler"),
    "integrations.transformers.continuous_batching": ("ContinuousBatchingLogitsProcessor",),
    "integrations.transformers.custom_generate": ("CustomGenerate",),
    "endpoints.anthropic": ("from_anthropic",),
    "endpoints.api_model": ("ApiModel",),
    "endpoints.capabilities": ("Capabilities", "Prices"),
    "endpoints.openai": ("from_openai",),
    "errors": (
        "BatchError",
        "EndpointError",
        "GrammarSyntaxError",
        "LimitExceeded",
        "MatcherError",
        "ModelError",
        "ModelRefused",
        "OperationCancelled",
        "StencilError",
        "TokenizerError",
        "TraceError",
        "Unsatisfiable",
        "UnsupportedFeature",
    ),
    "generation.corrections": ("Correction",),
    "generation.sampling_report": ("SamplingReport",),
    "generation.result": (
        "Filled",
        "Generation",
        "IncompleteOutput",
        "InvalidOutput",
        "LeftOut",
    ),
    "grammars.grammar": ("Finding", "Grammar", "Report"),
    "grammars.holes": ("HOLE",),
    "guiding.api": ("aguide", "guide"),
    "guiding.choosers": ("choose_candidate",),
    "guiding.parsers": ("load_parser", "obtain_correction_pairs"),
    "guiding.task": ("Budget", "Guided", "Usage"),
    "matching.index": ("TokenIndex",),
    "limits": ("CancelToken", "Limits"),
    "matching.preparation": ("Preparation",),
    "bitmask.rows": ("MaskPatch", "MaskPatches", "MaskRows"),
    "matching.matcher": ("BatchGrammarMatcher", "GrammarMatcher", "Verdict", "traverse_draft_tree"),
    "models.model": ("Model", "from_llama_cpp", "from_mlx", "from_transformers", "load"),
    "tool_calls.answers": (
        "CallDelta",
        "CallDone",
        "ContentDelta",
        "ParsedAnswer",
        "ReasoningDelta",
        "ToolCall",
    ),
    "tool_calls.format": ("ToolFormat", "tools"),
    "tool_calls.parser": ("ToolCallParser",),
    "tool_calls.reasoning": ("reasoning_format",),
    "matching.reasoning": ("ReasoningFormat",),
    "tool_calls.registry": (
        "get_model_structural_tag",
        "model_structural_tags",
        "register_model_structural_tag",
    ),
    "tool_calls.template": ("ToolTemplate",),
    "grammars.output_types": ("Choice", "Ebnf", "JsonSchema", "Lark", "Regex"),
    "integrations.transformers.logits_processor": ("LogitsProcessor",),
    "grammars.sql": ("sql",),
    "grammars.symbols": ("SymbolTable",),
    "grammars.structural_tag": ("StructuralTag", "StructuralTagItem"),
    "tokenizers": ("TokenizerInfo", "VocabType"),
    "models.typed_model": ("TypedModel",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}


_MODULES = ("audit", "ray")
"""Modules that are used by name: `stencilm.audit.audit`, `stencilm.ray.Generate`."""


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"stencilm.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'stencilm' has no attribute {name!r}")
    value: object = getattr(import_module(f"stencilm.{_HOMES[name]}"), name)
    globals()[name] = value  # stored, so that the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
