"""`stencilm mask`: the tokens that may come next in a text."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from stencilm.cli.failure import Failure
from stencilm.cli.grammars import EMBEDDED, new_compiler, read_tokenizer, what_fits
from stencilm.cli.inputs import read_prompt
from stencilm.cli.notations import GivenGrammar, takes_grammar
from stencilm.cli.options import Tokenizer, WrittenText

_MOST_SHOWN = 40


@takes_grammar
def mask(
    grammar: GivenGrammar,
    tokenizer: Tokenizer = EMBEDDED,
    text: WrittenText = "",
    limit: Annotated[
        int, typer.Option(min=0, help="The most tokens to list; --json lists all of them.")
    ] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """List the tokens that may come next in a text, by id.

    Exits with 1 if the text does not fit.
    """
    import numpy as np

    from stencilm.matching.matcher import GrammarMatcher

    written = read_prompt(text).encode()
    info = read_tokenizer(tokenizer)
    matcher = GrammarMatcher(new_compiler(info, grammar.limits).compile(grammar.grammar()))
    status, fits = what_fits(matcher, written)
    if status == "dead":
        rest = written[fits:].decode()[:_MOST_SHOWN]
        raise Failure(f"the text fits up to byte {fits}; {rest!r} cannot follow")
    matcher.accept_string(written)
    words = np.zeros((1, -(-info.vocab_size // 32)), dtype=np.int32)
    matcher.fill_next_token_bitmask(words)
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")[: info.vocab_size]
    token_ids = np.flatnonzero(bits).tolist()
    if as_json:
        print(json.dumps({"vocab_size": info.vocab_size, "token_ids": token_ids}))
        return 0
    print(f"{len(token_ids):,} of {info.vocab_size:,} tokens may come next")
    for token_id in token_ids[:limit]:
        print(f"{token_id:>8}  {info.dbg_tokens([token_id])!r}")
    if len(token_ids) > limit > 0:
        print(f"and {len(token_ids) - limit:,} more")
    return 0
