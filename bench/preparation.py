"""The cost of masks with and without a preparation.

    python -m bench.preparation --sample 200 --seed 3 --milliseconds 5

Each schema is compiled twice, with two tokenizers in the same state; one of the two grammars is
prepared first. Then both walk along the same valid instances, mask by mask in turn. A first mask is
the first one of a grammar, with a new matcher. Cold masks are all masks of the first walk along
each instance, each with the `accept_token` after it. With `--beside` the masks are requested while
the preparation is running, which shows its cost for users that do not wait for its end.
"""

from __future__ import annotations

import argparse
import json
import random
import time

import numpy as np

from stencilm import Grammar, GrammarCompiler, GrammarMatcher, StencilError, TokenizerInfo

from .forced_tokens import SHARED, schemas

PERCENTILES = (50, 90, 99, 99.9)


def table(times: dict[str, list[float]]) -> None:
    """Print a line for each kind of mask."""
    names = [*(f"p{percentile:g}" for percentile in PERCENTILES), "maximum", "mean"]
    print("| | masks | " + " | ".join(names) + " |\n|---|" + "--:|" * (len(names) + 1))
    for kind, values in times.items():
        figures = [float(np.percentile(values, percentile)) for percentile in PERCENTILES]
        figures += [max(values), float(np.mean(values))]
        shown = " | ".join(f"{figure:,.1f}" for figure in figures)
        print(f"| {kind} | {len(values):,} | {shown} |")


def main() -> None:
    """Prints a table of microseconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=200, help="schemas")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--milliseconds", type=float, default=5)
    parser.add_argument("--tokenizer", default="llama3")
    parser.add_argument("--beside", action="store_true", help="do not wait for its end")
    options = parser.parse_args()
    everything = [(schema, instances[:3]) for _, schema, instances in schemas(1 << 30)]
    sample = random.Random(options.seed).sample(everything, options.sample)
    infos = [TokenizerInfo.from_file(SHARED / "tokenizers" / options.tokenizer) for _ in range(2)]
    compilers = [GrammarCompiler(info, cache_enabled=False) for info in infos]
    mask = np.zeros((1, -(-infos[0].vocab_size // 32)), dtype=np.int32)
    names = ("without", "prepared")
    times: dict[str, list[float]] = {f"first, {name}": [] for name in names}
    times |= {f"cold, {name}": [] for name in names}
    ends: dict[str | None, int] = {}
    prepared = found = 0
    milliseconds = 0.0
    clock = time.perf_counter_ns if options.beside else time.thread_time_ns
    for number, (schema, instances) in enumerate(sample):
        try:
            grammar = Grammar.from_json_schema(schema, property_order="any")
            both = [compiler.compile(grammar) for compiler in compilers]
        except StencilError:
            continue
        preparation = both[1].prepare(milliseconds=options.milliseconds, background=options.beside)
        for place, instance in enumerate(instances):
            ids = infos[0].tokenize_bytes(json.dumps(instance, ensure_ascii=False).encode())
            matchers = [GrammarMatcher(compiled) for compiled in both]
            for index, token in enumerate(ids):
                fits = True
                for which in (0, 1) if (number + index) % 2 else (1, 0):
                    begun = clock()
                    matchers[which].fill_next_token_bitmask(mask)
                    filled = clock()
                    fits = matchers[which].accept_token(token) and fits
                    ended = clock()
                    times[f"cold, {names[which]}"].append((ended - begun) / 1e3)
                    if place == index == 0:
                        times[f"first, {names[which]}"].append((filled - begun) / 1e3)
                if not fits:
                    break
        preparation.wait()
        ends[preparation.ended_by] = ends.get(preparation.ended_by, 0) + 1
        prepared += 1
        found += preparation.masks
        milliseconds += preparation.milliseconds
    print(
        f"{options.tokenizer}, {prepared} schemas, seed {options.seed}, microseconds; "
        f"{found / prepared:.0f} masks prepared for each in {milliseconds / prepared:.1f} ms; "
        f"ended by {ends}\n"
    )
    table(times)


if __name__ == "__main__":
    main()
