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


@cache
def tokenizer_info(name: str) -> TokenizerInfo:
    """The tokenizer of this name; skips the test where its files are absent."""
    folder = FOLDERS[name]
    if not (folder / "tokenizer.json").exists():
        pytest.skip(f"tokenizer {name} is not at hand ({folder})")
    return TokenizerInfo.from_file(folder)
