"""The original's module name for members of `compiling`."""

from stencilm.compat.xgrammar.compiling import (
    CompiledGrammar,
    GrammarCompiler,
)

__all__ = [
    "CompiledGrammar",
    "GrammarCompiler",
]
