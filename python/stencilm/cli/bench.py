"""`stencilm bench`: what a grammar costs, over a text and the tokens of a tokenizer."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer

from stencilm.cli.failure import Failure
from stencilm.cli.grammars import EMBEDDED, new_compiler, read_tokenizer
from stencilm.cli.inputs import read_prompt
from stencilm.cli.notations import GivenGrammar, takes_grammar
from stencilm.cli.options import Tokenizer


@takes_grammar
def bench(
    grammar: GivenGrammar,
    tokenizer: Tokenizer = EMBEDDED,
    text: Annotated[
        str | None,
        typer.Option(
            help="A text of the grammar, by default a shortest one; - reads standard input."
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="The number of rounds.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Measure what reading and compiling a grammar costs, and each mask along a text.

    Each round compiles again, and goes over the text twice: first with new masks, then with known
    ones. What grammars of one tokenizer share is new in the first round only. Exits with 1 if the
    text does not fit.
    """
    written = None if text is None else read_prompt(text)
    info = read_tokenizer(tokenizer)
    compiling: list[float] = []
    first: list[float] = []
    new: list[float] = []
    known: list[float] = []
    token_ids: list[int] = []
    for _ in range(rounds):
        begun = time.perf_counter()
        matcher = _matcher(grammar, info)
        compiling.append(time.perf_counter() - begun)
        if not token_ids:
            token_ids = _tokens(matcher, info, written)
            matcher = _matcher(grammar, info)
        masks = _walk(matcher, info, token_ids)
        first.append(compiling[-1] + masks[0])
        new += masks
        matcher.reset()
        known += _walk(matcher, info, token_ids)
    record = {
        "tokens": len(token_ids),
        "rounds": rounds,
        "microseconds": {
            "compile": _spread(compiling),
            "first_mask": _spread(first),
            "mask_new": _spread(new),
            "mask_known": _spread(known),
        },
    }
    if as_json:
        print(json.dumps(record))
    else:
        for line in _lines(record):
            print(line)
    return 0


def _matcher(grammar: GivenGrammar, info: Any) -> Any:
    from stencilm.matching.matcher import GrammarMatcher

    compiler = new_compiler(info, grammar.limits, cache_enabled=False)
    return GrammarMatcher(compiler.compile(grammar.grammar()))


def _tokens(matcher: Any, info: Any, text: str | None) -> list[int]:
    """The tokens of the text, in the tokenizer's spelling."""
    written = matcher.shortest_completion() if text is None else text.encode()
    token_ids: list[int] = info.tokenize_bytes(written)
    fitting = matcher.validate_tokens(token_ids)
    if fitting < len(token_ids):
        refused = info.dbg_tokens(token_ids[fitting : fitting + 1])
        raise Failure(f"the text fits up to token {fitting}; {refused!r} cannot follow")
    return token_ids


def _walk(matcher: Any, info: Any, token_ids: list[int]) -> list[float]:
    """The seconds for each mask along a text, and for the one after it if there are stop tokens."""
    import numpy as np

    bitmask = np.zeros((1, -(-info.vocab_size // 32)), dtype=np.int32)
    seconds = []
    behind = [None] if info.stop_token_ids else []
    for token_id in [*token_ids, *behind]:
        begun = time.perf_counter()
        matcher.fill_next_token_bitmask(bitmask)
        seconds.append(time.perf_counter() - begun)
        if token_id is not None:
            matcher.accept_token(token_id)
    return seconds


def _spread(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    last = len(ordered) - 1
    found = {"p50": ordered[last // 2], "p99": ordered[round(last * 0.99)], "max": ordered[-1]}
    return {name: round(value * 1e6, 2) for name, value in found.items()}


def _lines(record: dict[str, Any]) -> list[str]:
    names = {
        "compile": "read and compiled",
        "first_mask": "with the first mask",
        "mask_new": "masks, new",
        "mask_known": "masks, known",
    }
    lines = [f"{record['tokens']:,} tokens, {record['rounds']:,} rounds; microseconds"]
    lines.append(f"{'':<20}{'p50':>12}{'p99':>12}{'max':>12}")
    for key, name in names.items():
        spread = record["microseconds"][key]
        lines.append(f"{name:<20}" + "".join(f"{value:>12,.1f}" for value in spread.values()))
    return lines
