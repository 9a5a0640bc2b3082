"""Token budgets of arrays of many different integers: masks near the end and far from it.

A random model writes arrays of at least `n` different integers from a range, under budgets from the
shortest completion to several times that.

    python -m bench.number_budgets
"""

from __future__ import annotations

import argparse
import json
import random
import time

import numpy as np

from stencilm import Grammar, GrammarCompiler, GrammarMatcher, LimitExceeded, TokenizerInfo
from stencilm.tokenizers.embedded import embedded_tokenizer

COUNTS = ((50, 100), (100, 150), (200, 250), (300, 400))
SHARES = (4.0, 1.5, 1.1, 1.03)
MOST_SECONDS = 30


def walk(matcher: GrammarMatcher, info: TokenizerInfo, seed: int) -> tuple[list[float], str]:
    """The seconds of each mask, and the outcome of the text."""
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    chance, seconds, text = random.Random(seed), list[float](), b""
    begun = time.perf_counter()
    while not matcher.is_terminated():
        started = time.perf_counter()
        if started - begun > MOST_SECONDS:
            return seconds, "not ended"
        try:
            matcher.fill_next_token_bitmask(mask)
        except LimitExceeded:
            return [*seconds, time.perf_counter() - started], "LimitExceeded"
        seconds.append(time.perf_counter() - started)
        tokens = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        pieces = {int(token): info.decoded_vocab[token] or b"" for token in tokens}
        # A model that only writes whitespace would spend its budget on it.
        token = chance.choice(
            [one for one, piece in pieces.items() if piece.strip()] or list(pieces)
        )
        matcher.accept_token(token)
        text += pieces[token] if token not in info.stop_token_ids else b""
    return seconds, f"{len(json.loads(text))} elements"


def main() -> None:
    """Prints a row for each array and budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    info = embedded_tokenizer()
    print(
        "| least | of | budget | masks | mean ms | worst ms | text |\n|---|---|---|---|---|---|---|"
    )
    for least, greatest in COUNTS:
        items = {"type": "integer", "minimum": 0, "maximum": greatest}
        schema = {"type": "array", "uniqueItems": True, "minItems": least, "items": items}
        compiled = GrammarCompiler(info).compile(Grammar.from_json_schema(schema))
        shortest = GrammarMatcher(compiled).tokens_to_end() or 0
        for share in SHARES:
            budget = int(share * shortest)
            seconds, end = walk(GrammarMatcher(compiled, token_budget=budget), info, seed)
            mean, worst = 1e3 * sum(seconds) / len(seconds), 1e3 * max(seconds)
            row = f"{least} | {greatest + 1} | {budget} | {len(seconds)} | {mean:.2f} | {worst:.1f}"
            print(f"| {row} | {end} |")


if __name__ == "__main__":
    main()
