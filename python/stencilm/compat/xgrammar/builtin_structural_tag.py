"""Under the original's name: what `tool_tags` defines."""

from stencilm.compat.xgrammar.tool_tags import (
    get_builtin_structural_tag,
    get_model_structural_tag,
    normalize_tool_choice,
    register_model_structural_tag,
)

__all__ = [
    "get_builtin_structural_tag",
    "get_model_structural_tag",
    "normalize_tool_choice",
    "register_model_structural_tag",
]
