"""The original's module name for members of `grammars` and `formats`."""

from stencilm.compat.xgrammar.formats import StructuralTagItem
from stencilm.compat.xgrammar.grammars import Grammar

__all__ = ["Grammar", "StructuralTagItem"]
