"""Under the original's name: what `compiling` defines."""

from stencilm.compat.xgrammar.compiling import (
    CompiledGrammar,
    GrammarCompiler,
)

__all__ = [
    "CompiledGrammar",
    "GrammarCompiler",
]
