"""CPU seconds of loading a vocabulary, next to loading its tokenizer and to other libraries.

Every figure is the first call in a fresh interpreter, as on a server. All threads count.
`from_file` includes loading the tokenizer itself; packages that are not installed are left out.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def bare(folder: str) -> Any:
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))


def wrapped(folder: str) -> Any:
    from transformers import PreTrainedTokenizerFast

    # The class that the folders name; AutoTokenizer would also read settings.
    return PreTrainedTokenizerFast.from_pretrained(folder)


def spent(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def own_load(folder: str) -> float:
    import tokenizers  # noqa: F401 - the import is not the load

    return spent(lambda: bare(folder))


def from_bare(folder: str) -> float:
    from stencilm import TokenizerInfo

    tokenizer = bare(folder)
    return spent(lambda: TokenizerInfo.from_huggingface(tokenizer))


def from_wrapped(folder: str) -> float:
    from stencilm import TokenizerInfo

    tokenizer = wrapped(folder)
    return spent(lambda: TokenizerInfo.from_huggingface(tokenizer))


def from_file(folder: str) -> float:
    import tokenizers  # noqa: F401
    from stencilm import TokenizerInfo

    return spent(lambda: TokenizerInfo.from_file(folder))


def deserialize(folder: str) -> float:
    from stencilm import TokenizerInfo

    text = TokenizerInfo.from_file(folder).serialize_json()
    return spent(lambda: TokenizerInfo.deserialize_json(text))


def llguidance(folder: str) -> float:
    import llguidance.hf

    tokenizer = wrapped(folder)
    return spent(lambda: llguidance.hf.from_tokenizer(tokenizer))


def xgrammar(folder: str) -> float:
    import xgrammar

    tokenizer = wrapped(folder)
    return spent(lambda: xgrammar.TokenizerInfo.from_huggingface(tokenizer))


# What is timed, and the packages that it needs.
MEASURES: dict[Callable[[str], float], tuple[str, tuple[str, ...]]] = {
    own_load: ("tokenizers: load tokenizer.json", ("tokenizers",)),
    from_bare: ("stencilm: from_huggingface, bare Tokenizer", ("tokenizers",)),
    from_wrapped: ("stencilm: from_huggingface, transformers", ("transformers",)),
    from_file: ("stencilm: from_file, own load included", ("tokenizers",)),
    deserialize: ("stencilm: deserialize_json", ("tokenizers",)),
    llguidance: ("llguidance: hf.from_tokenizer", ("transformers", "llguidance")),
    xgrammar: ("xgrammar: TokenizerInfo.from_huggingface", ("transformers", "xgrammar")),
}


def in_fresh_interpreter(measure: Callable[[str], float], folder: str) -> float:
    command = [sys.executable, "-m", "bench.loading", folder, measure.__name__]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(answer.split()[-1])


def times(folder: str, name: str) -> dict[str, float]:
    """CPU seconds of every measure whose packages are installed, each in a fresh interpreter."""
    return {
        f"{name}: {title}, s": in_fresh_interpreter(measure, folder)
        for measure, (title, packages) in MEASURES.items()
        if all(find_spec(package) for package in packages)
    }


if __name__ == "__main__":
    folder, wanted = sys.argv[1:]
    print(next(measure for measure in MEASURES if measure.__name__ == wanted)(folder))
