"""tiktoken encodings."""

from __future__ import annotations

from typing import Any

from stencilm.compat.llguidance.tokenizer import LLTokenizer
from stencilm.tokenizers import TokenizerInfo


def lltokenizer_from_encoding(
    encoding: Any,
    *,
    n_vocab: int | None = None,
    eos_token: int | list[int] | None = None,
    slices: list[str] | None = None,
) -> LLTokenizer:
    """The tokenizer of a `tiktoken.Encoding`.

    Args:
        encoding: The encoding.
        n_vocab: The number of the model's logits, where it is larger.
        eos_token: The tokens that end a text; by default `encoding.eot_token`.
        slices: Accepted for compatibility.

    Raises:
        ValueError: It cannot be read.
    """
    return LLTokenizer._of(
        lambda given: TokenizerInfo.from_tiktoken(encoding, **given),
        n_vocab,
        getattr(encoding, "eot_token", None) if eos_token is None else eos_token,
    )
