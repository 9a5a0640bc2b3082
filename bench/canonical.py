"""The cost of canonical masks compared with plain ones, on MaskBench instances.

Two matchers, a plain and a canonical one, each with a compiler of its own, walk in turn along the
canonical tokens of every valid instance. Then they do it once more, with everything cached. Times
are the thread's processor time. With `--rounds`, everything is repeated with a new tokenizer, and
for each mask the least time counts. The first grammars of a tokenizer compute what all of them
share, so the ratio of the second half of the schemas is shown next to that of all. Both compilers
share the lexeme masks, and the plain matcher comes first, so computing them counts for the plain
masks. The time of `info.learn_encoding()` is shown separately. Canonical texts are never refused:
masks that lack the next token are counted.

    python bench/canonical.py --tokenizer llama3 --sample 60 --rounds 3
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from forced_tokens import SHARED, schemas

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo


def timed(seconds: list[float], call: Callable[[], object]) -> object:
    """The result of a call; its time is recorded."""
    start = time.thread_time()
    answer = call()
    seconds.append(time.thread_time() - start)
    return answer


def line(name: str, seconds: list[float]) -> str:
    """One row of the table."""
    points = [float(np.mean(seconds)), *np.percentile(seconds, [50, 90, 99])]
    return f"| {name} | " + " | ".join(f"{1e6 * point:,.1f}" for point in points) + " |"


@dataclass
class Walks:
    """The times of two walks along all instances, by kind."""

    taken: list[dict[str, list[float]]] = field(default_factory=lambda: [{}, {}])
    # The number of times in the first half of the schemas.
    half: list[dict[str, int]] = field(default_factory=lambda: [{}, {}])
    refused: int = 0
    # Seconds for learning the encoding.
    learned: float = 0.0

    def least(self, other: Walks) -> None:
        """Keep the smaller of each two times."""
        for mine, theirs in zip(self.taken, other.taken, strict=True):
            for name, seconds in mine.items():
                pairs = zip(seconds, theirs[name], strict=True)
                mine[name] = [min(pair) for pair in pairs]
        self.learned = min(self.learned, other.learned)
        self.refused += other.refused


def walk(tokenizer: str, sample: int) -> Walks:
    """Walk along all instances twice, with a new tokenizer."""
    walks = Walks()
    info = TokenizerInfo.from_file(SHARED / "tokenizers" / tokenizer)
    start = time.thread_time()
    info.learn_encoding()
    walks.learned = time.thread_time() - start
    compilers = GrammarCompiler(info), GrammarCompiler(info)
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    for number, (_, schema, instances) in enumerate(schemas(sample)):
        if 2 * number <= sample:
            walks.half = [
                {name: len(spent) for name, spent in seconds.items()} for seconds in walks.taken
            ]
        try:
            grammar = Grammar.from_json_schema(schema)
            plain, canonical = (compiler.compile(grammar) for compiler in compilers)
        except stencilm.StencilError:
            continue
        for instance in instances[:3]:
            ids = info.tokenize_bytes(json.dumps(instance, ensure_ascii=False).encode())
            for seconds in walks.taken:
                matchers = {
                    "plain": GrammarMatcher(plain),
                    "canonical": GrammarMatcher(canonical, canonical=True),
                }
                for token_id in ids:
                    fits = {}
                    for name, matcher in matchers.items():
                        masks = seconds.setdefault(f"{name} mask", [])
                        accepts = seconds.setdefault(f"{name} accept", [])
                        timed(masks, partial(matcher.fill_next_token_bitmask, mask))
                        allowed = bool(mask[token_id // 32] >> token_id % 32 & 1)
                        accepted = timed(accepts, partial(matcher.accept_token, token_id))
                        fits[name] = allowed and bool(accepted)
                    walks.refused += fits["plain"] and not fits["canonical"]
                    if not all(fits.values()):
                        break
    return walks


def main() -> None:
    """Print a table for each of the two walks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=60, help="schemas")
    parser.add_argument("--rounds", type=int, default=1, help="the least time of so many counts")
    parser.add_argument("--tokenizer", default="llama3", choices=["llama3", "gpt2", "mistral-v1"])
    options = parser.parse_args()
    clock = min(-time.thread_time() + time.thread_time() for _ in range(1000))
    walks = walk(options.tokenizer, options.sample)
    for _ in range(1, options.rounds):
        walks.least(walk(options.tokenizer, options.sample))
    print(f"learning the encoding: {walks.learned:.2f} s, not in what follows")
    titles = ("first walk", "second walk")
    for title, seconds, start in zip(titles, walks.taken, walks.half, strict=True):
        num_masks = len(seconds["plain mask"])
        print(
            f"\n{title}; {options.tokenizer}, {num_masks:,} masks, the least of {options.rounds}; "
            f"microseconds, {1e6 * clock:.1f} of them the clock's own"
        )
        print("| | mean | p50 | p90 | p99 |\n|---|--:|--:|--:|--:|")
        for name, spent in seconds.items():
            print(line(name, spent))
        names = ("canonical mask", "plain mask")
        whole = [sum(seconds[name]) for name in names]
        later = [sum(seconds[name][start.get(name, 0) :]) for name in names]
        print(
            f"mean of canonical masks to that of plain ones: {whole[0] / whole[1]:.1f}; "
            f"in the second half of the schemas {later[0] / later[1]:.1f}"
        )
    print(f"\ncanonical tokens refused: {walks.refused}")


if __name__ == "__main__":
    main()
