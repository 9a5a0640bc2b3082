"""Under the original's name: what `tools` defines."""

from stencilm.compat.xgrammar.tools import (
    AllowedToolChoiceParam,
    AllowedToolRef,
    AllowedToolsParam,
    BuiltinToolChoiceParam,
    BuiltinToolParam,
    FunctionDefinition,
    FunctionToolParam,
    NamedToolChoiceFunction,
    NamedToolChoiceParam,
    ToolChoiceOptionParam,
    ToolParam,
)

__all__ = [
    "AllowedToolChoiceParam",
    "AllowedToolRef",
    "AllowedToolsParam",
    "BuiltinToolChoiceParam",
    "BuiltinToolParam",
    "FunctionDefinition",
    "FunctionToolParam",
    "NamedToolChoiceFunction",
    "NamedToolChoiceParam",
    "ToolChoiceOptionParam",
    "ToolParam",
]
