"""What commands do with a grammar: a tokenizer for it, and a compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stencilm.cli.failure import Failure

EMBEDDED = "tiny"


def new_compiler(info: Any, limits: Any, **options: Any) -> Any:
    """A compiler with limits; None for the defaults."""
    from stencilm.limits import DEFAULT_LIMITS
    from stencilm.matching.compiler import GrammarCompiler

    return GrammarCompiler(info, limits=limits or DEFAULT_LIMITS, **options)


def read_tokenizer(source: str) -> Any:
    """The tokenizer of a file or folder, or the embedded one."""
    from stencilm.tokenizers import TokenizerInfo
    from stencilm.tokenizers.embedded import embedded_tokenizer

    if source == EMBEDDED:
        return embedded_tokenizer()
    if not source or not Path(source).exists():
        raise Failure(f"there is no tokenizer file or folder {source!r}")
    return TokenizerInfo.from_file(source)
