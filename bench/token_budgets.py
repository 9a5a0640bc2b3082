"""Token budgets on MaskBench: whether every text is complete within its budget, and the cost.

Random models write texts of the schemas under budgets from the shortest completion on. One draws
uniformly from the tokens of the mask. The other is an adversary: of a few such tokens, it takes the
one after which the end is furthest. A text is right if it is complete, valid JSON, and has no more
tokens than the budget. Then the cost: masks along a text far from the end of a budget, paired with
masks along the same text without one.

    python -m bench.token_budgets --schemas 500 --tokenizer llama3
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import json
import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import stencilm
from stencilm import CompiledGrammar, Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STENCILM_SHARED", ROOT.parent / "shared"))
GREATEST = 200
# The number of tokens of which the adversary takes the worst.
LOOKED_AT = 4
# The assumed distance to the end after a token from which no completion is found.
NO_WAY = 1_000_000
# The number of random tokens that are tried before the tokens of a mask are listed.
TRIES = 8


@dataclass
class Outcome:
    """The outcome of the texts of the schemas."""

    texts: int = 0
    steps: int = 0
    narrowed: list[float] = field(default_factory=list)
    seconds: float = 0.0
    schemas: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def schemas(sample: int) -> Iterator[tuple[str, str]]:
    """Schemas by a hash of their name, so that a larger sample contains the smaller one."""
    rows = []
    for file in sorted((SHARED / "maskbench").glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                rows.append((hashlib.sha256(row["id"].encode()).hexdigest(), row))
    rows.sort(key=lambda pair: pair[0])
    for _, row in rows[:sample]:
        yield row["id"], json.dumps(row["schema"], ensure_ascii=False)


class Choices:
    """The tokens of a mask, each drawn with the same probability."""

    def __init__(self, mask: NDArray[np.int32], vocab_size: int, draw: random.Random) -> None:
        self.bits = mask.view(np.uint8)
        self.vocab_size = vocab_size
        self.draw = draw
        self.listed: NDArray[np.int64] | None = None

    def token(self) -> int:
        """A random token. Most masks are dense, so a few tries are cheaper than a list."""
        for _ in range(TRIES if self.listed is None else 0):
            token = self.draw.randrange(self.vocab_size)
            if self.bits[token >> 3] >> (token & 7) & 1:
                return token
        if self.listed is None:
            # Bytes first: a sparse mask has few that are not 0. Bits of padding are never set.
            held = np.flatnonzero(self.bits)
            within = np.flatnonzero(np.unpackbits(self.bits[held], bitorder="little"))
            self.listed = held[within >> 3] * 8 + (within & 7)
        return int(self.listed[self.draw.randrange(len(self.listed))])


def write(
    matcher: GrammarMatcher,
    vocabulary: list[bytes],
    budget: int,
    draw: random.Random,
    worst: bool,
    narrowed: list[float],
) -> tuple[str | None, list[int]]:
    """A text of a random model: its error, if any, and its tokens.

    The milliseconds of each narrowed mask are added to `narrowed`.
    """
    mask = np.zeros((len(vocabulary) + 31) // 32, dtype=np.int32)
    tokens: list[int] = []
    stop = set(matcher.stop_token_ids)
    while True:
        start = time.perf_counter()
        try:
            matcher.fill_next_token_bitmask(mask)
        except stencilm.MatcherError as error:
            return str(error), tokens
        if matcher.is_narrowed:
            narrowed.append((time.perf_counter() - start) * 1e3)
        if not mask.any():
            return "a mask without a token", tokens
        choices = Choices(mask, len(vocabulary), draw)
        if worst:
            token = furthest(matcher, [choices.token() for _ in range(LOOKED_AT)])
        else:
            token = choices.token()
        if token in stop:
            break
        if len(tokens) == budget:
            return "more tokens than the budget", tokens
        if not matcher.accept_token(token):
            return f"token {token} of the mask was refused", tokens
        tokens.append(token)
    try:
        json.loads(b"".join(vocabulary[token] for token in tokens))
    except ValueError as error:
        return f"no JSON: {error}", tokens
    return None, tokens


def furthest(matcher: GrammarMatcher, tokens: list[int]) -> int:
    """The token after which the end is furthest; a stop token is the nearest."""

    def distance(token: int) -> int:
        if not matcher.accept_token(token) or matcher.is_terminated():
            return -1
        try:
            return matcher.tokens_to_end()
        except stencilm.MatcherError:
            return NO_WAY

    best, most = tokens[0], -2
    for token in tokens:
        before = matcher.num_accepted_tokens
        far = distance(token)
        matcher.rollback(matcher.num_accepted_tokens - before)
        if far > most:
            best, most = token, far
    return best


def check(
    name: str,
    compiled: CompiledGrammar,
    vocabulary: list[bytes],
    outcome: Outcome,
    options: dict[str, Any],
    stride: int,
) -> None:
    """Texts under all budgets, each with its own seed."""
    shortest = GrammarMatcher(compiled, **options).tokens_to_end()
    with contextlib.suppress(stencilm.StencilError):
        GrammarMatcher(compiled, token_budget=max(shortest - 1, 0), **options)
        if shortest:
            outcome.wrong.append(f"{name}: a budget below the shortest completion is no error")
    budgets = sorted({shortest, shortest + 1, *range(shortest, GREATEST + 1, stride)})
    for budget in budgets:
        for worst in (False, True):
            start = time.perf_counter()
            matcher = GrammarMatcher(compiled, token_budget=budget, **options)
            draw = random.Random(f"{name} {budget} {worst}")
            wrong, tokens = write(matcher, vocabulary, budget, draw, worst, outcome.narrowed)
            outcome.seconds += time.perf_counter() - start
            outcome.texts += 1
            outcome.steps += len(tokens)
            if wrong:
                outcome.wrong.append(
                    f"{name}, budget {budget}, shortest {shortest}, worst {worst}: {wrong}"
                )


def paired(compiled: CompiledGrammar, vocab_size: int, text: list[int], rounds: int) -> list[float]:
    """The additional microseconds of a mask far from the end of a budget, one number per round."""
    mask = np.zeros((vocab_size + 31) // 32, dtype=np.int32)
    differences = []
    for round_ in range(rounds):
        taken = {}
        for budget in (None, 100_000) if round_ % 2 else (100_000, None):
            matcher = GrammarMatcher(compiled, token_budget=budget)
            start = time.perf_counter()
            for token in text:
                matcher.fill_next_token_bitmask(mask)
                matcher.accept_token(token)
            taken[budget] = time.perf_counter() - start
        differences.append((taken[100_000] - taken[None]) / max(len(text), 1) * 1e6)
    return differences


def main() -> None:
    """Checks the texts, measures the masks, and prints both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schemas", type=int, default=500)
    parser.add_argument("--skip", type=int, default=0, help="so many schemas of these")
    parser.add_argument("--stride", type=int, default=1, help="every so-manieth budget")
    parser.add_argument("--tokenizer", default="llama3", choices=["llama3", "gpt2", "mistral-v1"])
    parser.add_argument("--canonical", action="store_true")
    parser.add_argument("--minutes", type=float, help="begin no schema after so many minutes")
    parser.add_argument("--show", action="store_true", help="print each schema")
    options = parser.parse_args()
    info = TokenizerInfo.from_file(SHARED / "tokenizers" / options.tokenizer)
    vocabulary = info.decoded_vocab
    compiler = GrammarCompiler(info)
    how = {"canonical": True} if options.canonical else {}
    outcome = Outcome()
    more: list[float] = []
    begun = time.perf_counter()
    for name, schema in list(schemas(options.schemas))[options.skip :]:
        start, seconds = time.perf_counter(), outcome.seconds
        if options.minutes is not None and start - begun > 60 * options.minutes:
            break
        try:
            compiled = compiler.compile(Grammar.from_json_schema(schema))
            shortest = GrammarMatcher(compiled, **how).tokens_to_end()
        except stencilm.StencilError as error:
            outcome.skipped[type(error).__name__] += 1
            continue
        if shortest > GREATEST:
            outcome.skipped["longer than 200 tokens"] += 1
            continue
        outcome.schemas += 1
        before = len(outcome.wrong)
        check(name, compiled, vocabulary, outcome, how, options.stride)
        if not options.canonical:
            matcher = GrammarMatcher(compiled, token_budget=GREATEST)
            _, text = write(matcher, vocabulary, GREATEST, random.Random(name), False, [])
            if text:
                more.append(statistics.median(paired(compiled, info.vocab_size, text, 7)))
        if options.show:
            took = time.perf_counter() - start
            print(
                f"{name}: shortest {shortest}, {outcome.seconds - seconds:.1f} of {took:.1f} s",
                flush=True,
            )
        for line in outcome.wrong[before:]:
            print(line, flush=True)
    print(f"schemas {outcome.schemas}, skipped {dict(outcome.skipped)}")
    narrowed = sorted(outcome.narrowed)
    print(f"texts {outcome.texts}, tokens {outcome.steps}, masks narrowed {len(narrowed)}")
    print(f"wrong {len(outcome.wrong)}, {outcome.seconds:.0f} s")
    if narrowed:
        parts = {f"p{part}": narrowed[int(len(narrowed) * part / 100)] for part in (50, 90, 99)}
        parts |= {"mean": statistics.fmean(narrowed), "greatest": narrowed[-1]}
        print("ms for a narrowed mask:", ", ".join(f"{k} {v:.2f}" for k, v in parts.items()))
    if more:
        print(
            f"a mask far from the end costs {statistics.median(more):+.2f} µs (median of schemas)"
        )


if __name__ == "__main__":
    main()
