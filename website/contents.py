"""What is where on the site: the menu, and the groups of the reference. Data, and nothing else."""

from __future__ import annotations

from typing import NamedTuple

COMING_FROM = "docs/coming-from"
FOLDERS = ("docs/cookbook",)
"""Folders all pages of which are in the menu, in the order of their names."""

NAVIGATION: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Start",
        (
            "README.md",
            "docs/tutorial.md",
            "docs/choosing.md",
            "docs/benchmark.md",
            "docs/playground.md",
            "docs/command-line.md",
            "docs/compat.md",
            "docs/index.md",
        ),
    ),
    ("Cookbook", ("docs/cookbook",)),
    (
        "Models",
        (
            "docs/models.md",
            "docs/loops.md",
            "docs/faithful-sampling.md",
            "docs/endpoints.md",
            "docs/guide.md",
            "docs/tool-calls.md",
            "docs/llama-cpp.md",
            "docs/mlx.md",
            "docs/ray.md",
        ),
    ),
    (
        "Engines",
        (
            "docs/engine.md",
            "docs/engines.md",
            "docs/vllm.md",
            "docs/sglang.md",
            "docs/servers.md",
            "docs/tokenizers.md",
            "docs/forced-text.md",
            "docs/holes.md",
            "docs/canonical.md",
            "docs/token-index.md",
            "docs/audit.md",
        ),
    ),
    (
        "Grammars",
        (
            "docs/json-schema.md",
            "docs/regex.md",
            "docs/ebnf.md",
            "docs/lark.md",
            "docs/names.md",
            "docs/structural-tags.md",
        ),
    ),
    (
        "How it works",
        (
            "docs/how-it-works.md",
            "docs/architecture.md",
            "docs/parsing.md",
            "docs/masks.md",
            "docs/locks.md",
            "docs/glossary.md",
            "CONTRIBUTING.md",
            "RELEASING.md",
            "CHANGELOG.md",
        ),
    ),
)
"""The sections of the menu and their pages."""


class Group(NamedTuple):
    """A page of the reference."""

    page: str
    title: str
    about: str
    names: tuple[str, ...]


REFERENCE: tuple[Group, ...] = (
    Group(
        "models",
        "Models",
        "Loading models, and their results.",
        (
            "load", "from_transformers", "from_llama_cpp", "from_mlx", "from_openai",
            "from_anthropic", "Model", "ApiModel", "TypedModel", "Capabilities", "Prices",
            "Generation", "Filled", "LeftOut",
        ),
    ),
    Group(
        "output-types",
        "Output types",
        "Output types besides Python types.",
        ("Choice", "JsonSchema", "Regex", "Ebnf", "Lark", "StructuralTag", "StructuralTagItem"),
    ),
    Group(
        "grammars",
        "Grammars",
        "Sets of texts, in any notation.",
        ("Grammar", "SymbolTable", "sql", "Report", "Finding", "Limits", "CancelToken"),
    ),
    Group(
        "matching",
        "Matching",
        "Compiling a grammar for a vocabulary, and matching.",
        (
            "TokenizerInfo", "VocabType", "GrammarCompiler", "CompiledGrammar", "GrammarMatcher",
            "BatchGrammarMatcher", "Preparation", "Verdict", "Literal", "Pattern", "TokenIndex",
            "traverse_draft_tree",
        ),
    ),
    Group(
        "bitmasks",
        "Bitmasks",
        "Making bitmasks, and applying them to logits.",
        (
            "allocate_token_bitmask", "apply_token_bitmask_inplace", "reset_token_bitmask",
            "get_bitmask_shape", "bitmask_dtype", "MaskRows", "MaskPatch", "MaskPatches",
        ),
    ),
    Group(
        "guide",
        "Guide",
        "Drafts of any text function, corrected where they leave the grammar.",
        (
            "guide", "aguide", "load_parser", "obtain_correction_pairs", "choose_candidate",
            "Guided", "Correction", "Budget", "Usage",
        ),
    ),
    Group(
        "tool-calls",
        "Tool calls",
        "Grammars and parsers of the tool calls of model families.",
        (
            "tools", "ToolFormat", "ToolTemplate", "ToolCallParser", "ToolCall", "ParsedAnswer",
            "ContentDelta", "ReasoningDelta", "CallDelta", "CallDone", "get_model_structural_tag",
            "model_structural_tags", "register_model_structural_tag",
        ),
    ),
    Group(
        "transformers",
        "transformers",
        "Grammars in the loops of transformers.",
        ("LogitsProcessor", "ContinuousBatchingLogitsProcessor", "CustomGenerate"),
    ),
    Group(
        "errors",
        "Errors",
        "All error classes; each message has a value, a location and a way out.",
        (
            "StencilError", "GrammarSyntaxError", "UnsupportedFeature", "Unsatisfiable",
            "LimitExceeded", "TokenizerError", "MatcherError", "BatchError", "ModelError",
            "EndpointError", "ModelRefused", "IncompleteOutput", "InvalidOutput",
        ),
    ),
)  # fmt: skip
"""Every public name, once."""
