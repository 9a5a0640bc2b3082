"""Under the original's name: what `grammars` and `formats` define."""

from stencilm.compat.xgrammar.formats import StructuralTagItem
from stencilm.compat.xgrammar.grammars import Grammar

__all__ = ["Grammar", "StructuralTagItem"]
