"""Many sequences in one call: masks, patches of masks, and accepting tokens with the next masks.

    python -m bench.batches --rows 32 256 1024 --threads 1 2

Sequences are at random positions of valid instances of 64 grammars. In a warm call all masks are
cached; a cold one uses a new vocabulary. For each call the least time of all rounds counts, in
microseconds per row.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable

import numpy as np

from stencilm import (
    BatchGrammarMatcher,
    GrammarCompiler,
    GrammarMatcher,
    MaskPatches,
    MaskRows,
    StencilError,
    TokenizerInfo,
)

from .forced_tokens import SHARED, schemas

GRAMMARS = 64
COLUMNS = [
    "fill cold",
    "fill",
    "patches",
    "patches / fill",
    "patch by patch",
    "accept and fill",
    "accept, then fill",
]


def sequences(info: TokenizerInfo, seed: int, threads: int = 1) -> list[tuple[GrammarMatcher, int]]:
    """Matchers inside texts of different grammars, each with the next token.

    As on a running server, the vocabulary was already used by a batch with this many threads.
    """
    compiler, chooser = GrammarCompiler(info), random.Random(seed)
    first = GrammarMatcher(compiler.compile_regex("a"))
    mask = np.zeros((2, -(-info.vocab_size // 32)), dtype=np.int32)
    BatchGrammarMatcher(threads).batch_fill_next_token_bitmask([first, first.fork()], mask)
    found = []
    for _, schema, instances in schemas(4 * GRAMMARS):
        text = json.dumps(instances[0], ensure_ascii=False).encode()
        ids = info.tokenize_bytes(text)
        try:
            matcher = GrammarMatcher(compiler.compile_json_schema(schema), max_rollback_tokens=1)
        except StencilError:
            continue
        place = chooser.randrange(len(ids))
        if all(matcher.accept_token(token) for token in ids):
            matcher.reset()
            for token in ids[:place]:
                matcher.accept_token(token)
            found.append((matcher, ids[place]))
        if len(found) == GRAMMARS:
            break
    return found


def least(
    call: Callable[[], object], rounds: int, after: Callable[[], object] | None = None
) -> float:
    """The microseconds of the fastest of some calls."""
    best = float("inf")
    for _ in range(rounds):
        begun = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begun)
        if after is not None:
            after()
    return best * 1e6


class Calls:
    """The calls of one batch."""

    def __init__(
        self,
        info: TokenizerInfo,
        started: list[tuple[GrammarMatcher, int]],
        rows: int,
        threads: int,
    ) -> None:
        self.batch = BatchGrammarMatcher(threads)
        self.matchers = [started[row % len(started)][0].fork() for row in range(rows)]
        self.tokens = [started[row % len(started)][1] for row in range(rows)]
        self.mask = np.zeros((rows, -(-info.vocab_size // 32)), dtype=np.int32)
        self.patches = MaskPatches(rows)
        self.kept = MaskRows(info)

    def fill(self) -> None:
        self.batch.batch_fill_next_token_bitmask(self.matchers, self.mask)

    def find(self) -> None:
        self.patches.find(self.batch, self.matchers)

    def one_by_one(self) -> None:
        for matcher in self.matchers:
            matcher.find_mask_patch()

    def accept_and_fill(self) -> None:
        self.batch.batch_accept_and_fill(self.matchers, self.tokens, self.mask)

    def accept_then_fill(self) -> None:
        self.batch.batch_accept_token(self.matchers, self.tokens)
        self.fill()

    def back(self) -> None:
        self.batch.batch_rollback(self.matchers, [1] * len(self.matchers))

    def cold(self) -> float:
        """The microseconds of the first masks."""
        return least(self.fill, 1)

    def times(self, rounds: int) -> list[float]:
        """The microseconds of each call, warm."""
        self.fill()
        self.find()
        assert (self.kept.bitmask(self.patches) == self.mask).all(), "patches say what masks say"
        return [
            least(self.fill, rounds),
            least(self.find, rounds),
            least(self.one_by_one, rounds),
            least(self.accept_and_fill, rounds, self.back),
            least(self.accept_then_fill, rounds, self.back),
        ]


def main() -> None:
    """Prints a table with a line for each number of rows and threads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[32, 256, 1024])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tokenizer", default="llama3", choices=["llama3", "gpt2", "mistral-v1"])
    options = parser.parse_args()
    folder = SHARED / "tokenizers" / options.tokenizer
    info = TokenizerInfo.from_file(folder)
    started = sequences(info, 1)
    print(f"{len(started)} grammars; microseconds a row\n")
    print("| rows | threads | " + " | ".join(COLUMNS) + " |")
    print("|--:" * (2 + len(COLUMNS)) + "|")
    for rows in options.rows:
        for threads in options.threads:
            calls = Calls(info, started, rows, threads)
            times = calls.times(options.rounds)
            cold = min(
                Calls(fresh, sequences(fresh, 1, threads), rows, threads).cold()
                for fresh in (TokenizerInfo.from_file(folder) for _ in range(3))
            )
            filled, patched, *others = (time / rows for time in times)
            columns = [cold / rows, filled, patched, patched / filled, *others]
            print(
                f"| {rows} | {threads} | " + " | ".join(f"{value:.2f}" for value in columns) + " |"
            )


if __name__ == "__main__":
    main()
