"""The tokenizer of the embedded model, saved so that no package for reading tokenizers is needed.

`python -m stencilm.tokenizers.embedded` generates the file from the tokenizer.json next to it; a
test reports when the file is out of date.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from stencilm.tokenizers.info import TokenizerInfo

FOLDER = Path(__file__).parents[1] / "tiny"
SAVED = FOLDER / "vocabulary.json"


@cache
def embedded_tokenizer() -> TokenizerInfo:
    """The vocabulary of `tiny`, with its merges."""
    return TokenizerInfo.deserialize_json(SAVED.read_text(encoding="utf-8"))


def saved() -> str:
    """The text that the file must hold."""
    info = TokenizerInfo.from_file(FOLDER)
    info.learn_encoding()
    return info.serialize_json()


if __name__ == "__main__":
    SAVED.write_text(saved(), encoding="utf-8")
