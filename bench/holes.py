"""The time of queries about texts with holes, and of masks within holes, on public schemas.

    python -m bench.holes --tokenizer ../shared/tokenizers/gpt2 [--cases 300] [--seed 1]

Schemas and valid documents are those of MaskBench, in their original layout. From each document
one, two or three ranges of up to 40 bytes are cut out at random positions. The following are timed,
in processor time of one thread:

- the first query about a schema, with everything that is prepared for it, and later ones;
- the grammar of the first hole;
- the same with compiling it and the first mask, after reading the text before the hole;
- the masks after each token of the text that was cut out.

Every cut text can be completed, so an answer of False is counted as wrong, and so is a mask that
refuses a token of the text that was cut out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from stencilm import (
    HOLE,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    StencilError,
    TokenizerInfo,
)

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STENCILM_SHARED", ROOT.parent / "shared"))
LONGEST_HOLE = 40


def cases(count: int, most_bytes: int, chosen: random.Random) -> Iterator[tuple[Any, bytes]]:
    """Schemas with a valid document each, drawn from all of MaskBench."""
    entries: list[str] = []
    for path in sorted((SHARED / "maskbench").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            entries.extend(lines)
    chosen.shuffle(entries)
    found = 0
    for line in entries:
        entry = json.loads(line)
        documents = [test["data"] for test in entry.get("tests", ()) if test.get("valid")]
        if not documents or found >= count:
            continue
        text = json.dumps(chosen.choice(documents), ensure_ascii=False).encode()
        if 8 <= len(text) <= most_bytes:
            found += 1
            yield entry["schema"], text


def cut(text: bytes, holes: int, chosen: random.Random) -> tuple[list[Any], bytes]:
    """The pieces of a text with holes, and the text of the first hole."""
    places = sorted(chosen.sample(range(1, len(text), 2), min(holes, len(text) // 2)))
    pieces: list[Any] = [text[: places[0]]]
    first = b""
    for index, start in enumerate(places):
        limit = places[index + 1] if index + 1 < len(places) else len(text)
        # Adjacent holes would be one hole.
        most = limit if limit == len(text) else limit - 1
        end = min(start + 1 + chosen.randrange(LONGEST_HOLE), most)
        first = text[start:end] if index == 0 else first
        pieces += [HOLE, text[end:limit]]
    return pieces, first


def timed(call: Any, *arguments: Any) -> tuple[float, Any]:
    """Milliseconds of the processor, and the result."""
    start = time.thread_time_ns()
    result = call(*arguments)
    return (time.thread_time_ns() - start) / 1e6, result


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--most-bytes", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slow", type=float, help="show cases that take so many ms")
    arguments = parser.parse_args()
    chosen = random.Random(arguments.seed)
    info = TokenizerInfo.from_file(arguments.tokenizer)
    compiler = GrammarCompiler(info)
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    times: dict[str, list[float]] = {}
    counts: Counter[str] = Counter()
    lengths: list[int] = []

    def keep(name: str, value: float, what: Any) -> None:
        times.setdefault(name, []).append(value)
        if arguments.slow is not None and value > arguments.slow:
            print(f"{value:.1f} ms: {name}: {str(what)[:300]}")

    for schema, text in cases(arguments.cases, arguments.most_bytes, chosen):
        try:
            grammar = Grammar.from_json_schema(schema)
            if not grammar.is_completable(text):
                counts["documents that the schema does not write so"] += 1
                continue
            grammar = Grammar.from_source(grammar.source, grammar.limits)
        except StencilError:
            counts["schemas that are refused"] += 1
            continue
        lengths.append(len(text))
        counts["schemas"] += 1
        for number in range(6):
            pieces, inside = cut(text, 1 + number % 3, chosen)
            holes = "one hole" if number % 3 == 0 else "several holes"
            try:
                took, answer = timed(grammar.is_completable, pieces)
                name = f"is_completable, {holes}" if number else "is_completable, first question"
                keep(name, took, (schema, pieces))
                counts["wrong answers"] += not answer
                took, filling = timed(grammar.fill, pieces)
                keep(f"fill, {holes}", took, (schema, pieces))

                def first_mask(filling: Grammar = filling) -> GrammarMatcher:
                    matcher = GrammarMatcher(compiler.compile(filling))
                    matcher.fill_next_token_bitmask(mask)
                    return matcher

                took, matcher = timed(first_mask)
                keep("compile and first mask in the hole", took, (schema, pieces))
                for token in info.tokenize_bytes(inside):
                    if not mask[token // 32] >> (token % 32) & 1:
                        # A token may extend beyond the end of the hole.
                        counts["masks that refuse what was cut out"] += 1
                        break
                    if not matcher.accept_token(token):
                        counts["masks that allow what is refused"] += 1
                        break
                    if matcher.is_terminated():
                        break
                    took, _ = timed(matcher.fill_next_token_bitmask, mask)
                    keep("later masks in the hole", took, (schema, pieces))
                else:
                    counts["holes that may not end where they did"] += not matcher.is_completed()
                counts["questions"] += 1
            except StencilError as error:
                counts[f"{type(error).__name__}: {str(error)[:60]}"] += 1
    print(f"documents: {len(lengths)}, median {statistics.median(lengths):.0f} bytes, ", end="")
    print(f"greatest {max(lengths)}\n")
    print("| milliseconds | number | p50 | p90 | p99 | max |\n|---|--:|--:|--:|--:|--:|")
    for name, values in times.items():
        shown = [float(np.percentile(values, at)) for at in (50, 90, 99)] + [max(values)]
        row = " | ".join(f"{value:.2f}" for value in shown)
        print(f"| {name} | {len(values)} | {row} |")
    print()
    for what, count in sorted(counts.items()):
        print(f"- {what}: {count}")


if __name__ == "__main__":
    main()
