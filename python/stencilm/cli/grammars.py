"""What commands do with a grammar: a tokenizer for it, and a compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stencilm.characters import whole_length
from stencilm.cli.failure import Failure

EMBEDDED = "tiny"


def new_compiler(info: Any, limits: Any, **options: Any) -> Any:
    """A compiler with limits; None for the defaults."""
    from stencilm.limits import DEFAULT_LIMITS
    from stencilm.matching.compiler import GrammarCompiler

    return GrammarCompiler(info, limits=limits or DEFAULT_LIMITS, **options)


def what_fits(matcher: Any, written: bytes) -> tuple[str, int]:
    """Whether a text fits, as `Verdict.status` says it, and how many of its bytes, in characters.

    A grammar may refuse a character at any of its bytes, but a part of one is no text to show, and
    nothing that could come instead of it would be known.
    """
    verdict = matcher.longest_valid_prefix(written)
    return verdict.status, whole_length(written[: verdict.valid_bytes])


def read_tokenizer(source: str) -> Any:
    """The tokenizer of a file or folder, or the embedded one."""
    from stencilm.tokenizers import TokenizerInfo
    from stencilm.tokenizers.embedded import embedded_tokenizer

    if source == EMBEDDED:
        return embedded_tokenizer()
    if not source or not Path(source).exists():
        raise Failure(f"there is no tokenizer file or folder {source!r}")
    return TokenizerInfo.from_file(source)
