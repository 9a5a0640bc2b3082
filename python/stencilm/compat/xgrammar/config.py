"""The original's module name for members of `depth` and `saved`."""

from stencilm.compat.xgrammar.depth import (
    get_max_recursion_depth,
    max_recursion_depth,
    set_max_recursion_depth,
)
from stencilm.compat.xgrammar.saved import get_serialization_version

__all__ = [
    "get_max_recursion_depth",
    "get_serialization_version",
    "max_recursion_depth",
    "set_max_recursion_depth",
]
