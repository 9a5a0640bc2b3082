"""Whitespace in JSON as programs write it: python -m bench.whitespace

The valid texts of a folder like MaskBench's, written again as `json.dumps` writes them: the share
of whitespace in a text, in bytes and in tokens, the longest run, and the total per text. The
defaults of `max_whitespace` and `whitespace_budget` are based on these numbers.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from stencilm import TokenizerInfo

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STENCILM_SHARED", ROOT.parent / "shared"))
RECORD = Path(__file__).parent / "records" / "whitespace.md"
LAYOUTS: dict[str, dict[str, Any]] = {
    "compact": {"separators": (",", ":")},
    "`json.dumps`": {},
    "indent 2": {"indent": 2},
    "indent 4": {"indent": 4},
}
# A string, or a run of whitespace outside of them.
PIECES = re.compile(r'"(?:[^"\\]|\\.)*"|([ \t\r\n]+)')


def values(every: int) -> Iterator[Any]:
    """The valid objects and arrays of every n-th schema."""
    for file in sorted((SHARED / "maskbench").glob("*.jsonl.gz")):
        with gzip.open(file, "rt") as lines:
            for line in list(lines)[::every]:
                for test in json.loads(line)["tests"]:
                    if test["valid"] and isinstance(test["data"], (dict, list)):
                        yield test["data"]


def runs(text: str) -> list[int]:
    """The lengths of the runs of whitespace outside of strings."""
    return [len(found[1]) for found in PIECES.finditer(text) if found[1]]


def row(info: TokenizerInfo, name: str, given: list[Any], compact_tokens: int) -> str:
    """The result for one layout, as a row of the table."""
    written = [json.dumps(value, ensure_ascii=False, **LAYOUTS[name]) for value in given]
    found = [runs(text) for text in written]
    size = sum(len(text.encode()) for text in written)
    tokens = sum(len(info.tokenize_bytes(text.encode())) for text in written)
    longest = [max(lengths, default=0) for lengths in found]
    whole = [sum(lengths) for lengths in found]
    shares = [f"{sum(whole) / size:.0%}", f"{tokens / compact_tokens - 1:+.0%}"]
    of_runs = [f"{np.percentile(longest, at):.0f}" for at in (50, 99, 100)]
    of_texts = [f"{np.percentile(whole, at):,.0f}" for at in (10, 50, 90, 99, 100)]
    return "| " + " | ".join([name, *shares, *of_runs, *of_texts]) + " |"


def main() -> None:
    """Print the table, and write it if that was requested."""
    parser = argparse.ArgumentParser(prog="python -m bench.whitespace", description=__doc__)
    parser.add_argument("--tokenizer", default="llama3")
    parser.add_argument("--every", type=int, default=4, help="one of so many schemas")
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.name}")
    options = parser.parse_args()
    info = TokenizerInfo.from_file(SHARED / "tokenizers" / options.tokenizer)
    given = list(values(options.every))
    least = [json.dumps(value, ensure_ascii=False, separators=(",", ":")) for value in given]
    compact_tokens = sum(len(info.tokenize_bytes(text.encode())) for text in least)
    lines = [
        "# Whitespace of JSON",
        "",
        f"`python -m bench.whitespace --every {options.every}`: {len(given):,} valid texts of the "
        "MaskBench data that are objects",
        f"or arrays, as `json.dumps` writes them, tokens of {options.tokenizer}. The longest run",
        "of a text and the whitespace of a whole text are in bytes: percentiles over the texts.",
        "",
        "| layout | of the bytes | tokens | longest run, p50 | p99 | most "
        "| whole text, p10 | p50 | p90 | p99 | most |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        *(row(info, name, given, compact_tokens) for name in LAYOUTS),
    ]
    print("\n".join(lines))
    if options.record:
        RECORD.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
