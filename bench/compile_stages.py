"""From a schema to its first mask, stage by stage, in one process and one thread.

    python bench/compile_stages.py SCHEMAS.jsonl TOKENIZER_FOLDER [ROUNDS]

A line of SCHEMAS is a JSON list of a name and the text of a schema. The time of a schema is the
least of all rounds, in CPU time of the thread, and every round compiles from nothing; lexemes and
their automata stay with the tokenizer, as in a server that compiles one request after the other.
"""

from __future__ import annotations

import gc
import json
import sys
from itertools import pairwise
from pathlib import Path
from time import thread_time_ns
from typing import Any

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo

STAGES = ("source and grammar", "compiled", "matcher", "first mask", "in all")


def main() -> None:
    schemas = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    info = TokenizerInfo.from_file(Path(sys.argv[2]))
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    compiler = GrammarCompiler(info, cache_enabled=False)
    mask = stencilm.allocate_token_bitmask(1, info.vocab_size)
    times: dict[str, list[int]] = {}
    sizes: list[int] = []
    gc.disable()
    for number in range(rounds):
        for name, schema in schemas:
            measured = stages(compiler, schema, mask)
            if measured is None:
                continue
            spent, held = measured
            spent.append(sum(spent))
            known = times.setdefault(name, spent)
            times[name] = [min(a, b) for a, b in zip(known, spent, strict=True)]
            if number == 0:
                sizes.append(held)
    print(f"{len(times)} of {len(schemas)} schemas; microseconds")
    print("| | p50 | p90 | p99 | max |\n|---|--:|--:|--:|--:|")
    for at, stage in enumerate(STAGES):
        print_row(stage, [each[at] / 1e3 for each in times.values()])
    print_row("memory held, KiB", [size / 1024 for size in sizes])
    slowest = sorted(times.items(), key=lambda item: -item[1][-1])[:20]
    for name, spent in slowest:
        print(name, *(f"{each / 1e3:.0f}" for each in spent))


def stages(compiler: GrammarCompiler, schema: str, mask: Any) -> tuple[list[int], int] | None:
    """Nanoseconds of the four stages, and the bytes in use; None for a schema that is refused."""
    marks = [thread_time_ns()]
    try:
        grammar = Grammar.from_json_schema(schema)
    except stencilm.StencilError:
        return None
    marks.append(thread_time_ns())
    compiled = compiler.compile(grammar)
    marks.append(thread_time_ns())
    matcher = GrammarMatcher(compiled)
    marks.append(thread_time_ns())
    matcher.fill_next_token_bitmask(mask, 0)
    marks.append(thread_time_ns())
    spent = [after - before for before, after in pairwise(marks)]
    return spent, compiled.memory_size_bytes


def print_row(label: str, values: list[float]) -> None:
    values.sort()
    cells = [
        values[min(len(values) - 1, int(part * len(values)))] for part in (0.5, 0.9, 0.99, 1.0)
    ]
    print(f"| {label} |", " | ".join(f"{cell:.0f}" for cell in cells), "|")


if __name__ == "__main__":
    main()
