"""Masks of grammars as people write them: python -m bench.notations

The grammars and a text of each are in `bench/written`. A text is read token by token, with a mask
before every token, by a plain and by a canonical matcher. First the grammar is the first one with
its lexemes, in a process of its own; then it is compiled again, so that the vocabulary knows their
masks, but no mask of the grammar is cached. Times are CPU time; only what was measured in one run
can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench import clock
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo

SHARED = Path(os.environ.get("STENCILM_SHARED", Path(__file__).resolve().parents[2] / "shared"))
FOLDER = Path(__file__).parent / "written"
READERS: dict[str, Callable[[str], Grammar]] = {
    ".ebnf": Grammar.from_ebnf,
    ".lark": Grammar.from_lark,
    ".regex": lambda text: Grammar.from_regex(text.rstrip("\n")),
}
WRITTEN = {path.stem: path for path in sorted(FOLDER.iterdir()) if path.suffix in READERS}


def grammar_of(path: Path) -> Grammar:
    """The grammar of a file."""
    return READERS[path.suffix](path.read_text("utf-8"))


def text_of(path: Path) -> str:
    """The text that belongs to the grammar of a file."""
    return path.with_suffix(".txt").read_text("utf-8")


def mask_times(info: TokenizerInfo, written: Path, *, canonical: bool) -> list[float]:
    """Microseconds of each mask along the text of a grammar.

    Raises ValueError where a token of the text is refused.
    """
    compiler = GrammarCompiler(info, cache_enabled=False)
    compiled = compiler.compile_grammar(grammar_of(written))
    matcher = GrammarMatcher(compiled, canonical=canonical)
    mask = np.full((1, (info.vocab_size + 31) // 32), -1, dtype=np.int32)
    times = []
    for token in [*info.tokenize_bytes(text_of(written).encode()), None]:
        times.append(clock.timed(matcher.fill_next_token_bitmask, mask)[0])
        if token is not None and not matcher.accept_token(token):
            raise ValueError(f"{written.name}: token {len(times)} of its text, {token}, is refused")
    return times


def measured(tokenizer: str, name: str) -> dict[str, list[float]]:
    """The times of one grammar, which must be the first one of this process."""
    info = TokenizerInfo.from_file(SHARED / "tokenizers" / tokenizer)
    found = {}
    for kind in ("plain", "canonical"):
        for when in ("first", "then"):
            found[f"{when}, {kind}"] = mask_times(
                info, WRITTEN[name], canonical=kind == "canonical"
            )
    return found


def row(tokenizer: str, name: str) -> str:
    """The results for one grammar, as a row of the table."""
    command = [sys.executable, "-m", "bench.notations", "--tokenizer", tokenizer, "--only", name]
    made = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True)
    found: dict[str, list[float]] = json.loads(made.stdout)
    cells = [f"{statistics.fmean(times):,.0f} ({max(times):,.0f})" for times in found.values()]
    return " | ".join(
        [f"| {name}, {WRITTEN[name].suffix[1:]}", str(len(found["first, plain"])), *cells]
    )


def main() -> None:
    """Print the table, or the times of one grammar."""
    parser = argparse.ArgumentParser(prog="python -m bench.notations", description=__doc__)
    parser.add_argument("--tokenizer", default="llama3")
    parser.add_argument("--only", choices=list(WRITTEN), action="append", help="a grammar")
    parser.add_argument("--json", action="store_true", help="the times of the one grammar alone")
    options = parser.parse_args()
    names = options.only or list(WRITTEN)
    if options.json:
        print(json.dumps(measured(options.tokenizer, names[0])))
        return
    print(
        f"Microseconds of CPU time, tokens of {options.tokenizer}: the mean of all masks along a "
        "text, and the greatest.\n\n"
        "| grammar | masks | first, plain | then, plain | first, canonical | then, canonical |\n"
        "|---|--:|--:|--:|--:|--:|"
    )
    for name in names:
        print(row(options.tokenizer, name), "|", flush=True)


if __name__ == "__main__":
    main()
