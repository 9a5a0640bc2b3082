"""Grammars as people write them, over real vocabularies: masks are what the grammar reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.notations import WRITTEN, grammar_of, text_of
from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo
from tokenizer_folders import tokenizer_info


def tokens_in_mask(matcher: GrammarMatcher, info: TokenizerInfo) -> np.ndarray:
    mask = np.full((1, (info.vocab_size + 31) // 32), -1, dtype=np.int32)
    matcher.fill_next_token_bitmask(mask)
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    return bits[: info.vocab_size].astype(bool)


@pytest.mark.parametrize("tokenizer", ["tiny", "llama3"])
@pytest.mark.parametrize("written", WRITTEN.values(), ids=lambda path: path.name)
def test_masks_have_the_tokens_that_are_read(written: Path, tokenizer: str) -> None:
    """Of some tokens in and outside of each mask, exactly the former are accepted."""
    info = tokenizer_info(tokenizer)
    compiled = GrammarCompiler(info).compile_grammar(grammar_of(written))
    plain, canonical = GrammarMatcher(compiled), GrammarMatcher(compiled, canonical=True)
    draw = np.random.default_rng(7)
    stops = set(info.stop_token_ids)
    for token in info.tokenize_bytes(text_of(written).encode()):
        allowed = tokens_in_mask(plain, info)
        within = tokens_in_mask(canonical, info)
        assert allowed[token] and within[token]
        assert not (within & ~allowed).any()
        for candidates in (np.flatnonzero(allowed), np.flatnonzero(~allowed)):
            for one in draw.choice(candidates, min(20, len(candidates)), replace=False):
                if int(one) not in stops:
                    assert plain.fork().accept_token(int(one)) == allowed[one], one
        assert plain.accept_token(token) and canonical.accept_token(token)
    assert plain.is_completed()
