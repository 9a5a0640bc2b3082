"""Where the tokenizers of the tests are: the embedded one always, others where they are at hand."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from stencilm import TokenizerInfo

_ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STENCILM_SHARED", _ROOT.parent / "shared"))

FOLDERS = {
    "tiny": _ROOT / "python" / "stencilm" / "tiny",
    "gpt2": SHARED / "tokenizers" / "gpt2",
    "mistral-v1": SHARED / "tokenizers" / "mistral-v1",
    "llama3": SHARED / "tokenizers" / "llama3",
}


ORIGINS = {
    "gpt2": "openai-community/gpt2",
    "mistral-v1": "mistralai/Mistral-7B-v0.1",
    "llama3": "meta-llama/Meta-Llama-3-8B",
}
"""The models on the Hugging Face hub that have these tokenizers."""


def missing(name: str) -> str:
    """Why a test is skipped, and what brings the tokenizer."""
    return (
        f"there is no {FOLDERS[name] / 'tokenizer.json'}: it is that of {ORIGINS.get(name, name)} "
        "on the Hugging Face hub; STENCILM_SHARED may name another folder for `tokenizers`"
    )


@cache
def tokenizer_info(name: str) -> TokenizerInfo:
    """The tokenizer of this name; skips the test where its files are absent."""
    folder = FOLDERS[name]
    if not (folder / "tokenizer.json").exists():
        pytest.skip(missing(name))
    return TokenizerInfo.from_file(folder)
