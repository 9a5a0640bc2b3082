"""Tokenizers of transformers."""

from __future__ import annotations

from typing import Any

from stencilm.compat.llguidance.tokenizer import LLTokenizer
from stencilm.tokenizers import TokenizerInfo


def from_tokenizer(
    hf_tokenizer: Any,
    n_vocab: int | None = None,
    eos_token: int | list[int] | None = None,
    slices: list[str] | None = None,
) -> LLTokenizer:
    """The tokenizer of a transformers tokenizer, fast or not.

    Args:
        hf_tokenizer: The tokenizer.
        n_vocab: The number of the model's logits, if it is larger.
        eos_token: The tokens that end a text; by default its own.
        slices: Accepted for compatibility.

    Raises:
        ValueError: It cannot be read.
    """
    if eos_token is None:
        eos_token = getattr(hf_tokenizer, "eos_token_id", None)
    return LLTokenizer._of(
        lambda given: TokenizerInfo.from_huggingface(hf_tokenizer, **given), n_vocab, eos_token
    )
