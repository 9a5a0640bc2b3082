"""The original's module name for members of `tools`."""

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
