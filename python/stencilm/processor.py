"""`LogitsProcessor`: a grammar for `generate` of transformers: batches, beams, left padding.

One idea: rows move. Beam search reorders, repeats and drops them, so a row is known by the tokens
that it has written, and never by its number; its matcher is that of its prefix, and one token on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stencilm.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace
from stencilm.compiler import CompiledGrammar
from stencilm.matcher import GrammarMatcher

_Key = tuple[int, tuple[int, ...]]
"""Which grammar, and the tokens written under it."""


class LogitsProcessor:
    """Masks logits so that each row of a batch stays within its grammar.

    For `model.generate(..., logits_processor=[LogitsProcessor(compiled)])` of transformers, and for
    whatever else calls `processor(input_ids, scores)`. What stands in `input_ids` at the first call
    is the prompt; padding on the left is part of it. It may be used for one `generate` after
    another, and begins anew when rows come that it has not met.

    Args:
        compiled: One grammar for all rows, or one for each prompt of the batch; beams and
            `num_return_sequences` repeat the prompts.
    """

    supports_continuous_batching = False

    def __init__(self, compiled: CompiledGrammar | Sequence[CompiledGrammar]) -> None:
        grammars = [compiled] if isinstance(compiled, CompiledGrammar) else list(compiled)
        if not grammars or not all(isinstance(one, CompiledGrammar) for one in grammars):
            raise TypeError("LogitsProcessor takes a CompiledGrammar, or one for each prompt")
        self._grammars = grammars
        self._vocab_size = grammars[0].tokenizer_info.vocab_size
        self._prompt_length = -1
        self._length = -1
        self._matchers: dict[_Key, GrammarMatcher | None] = {}

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores, with minus infinity where the grammar allows no token.

        A row that has ended is left as it is: transformers writes padding there.

        Raises:
            MatcherError: A row holds a token that its grammar refuses, so that something other than
                this processor chose it.
        """
        rows = input_ids.tolist()
        length = len(rows[0]) if rows else 0
        if not self._goes_on(rows, length):
            self._prompt_length = length
            self._matchers = {}
        self._length = length
        found: dict[_Key, GrammarMatcher | None] = {}
        keys = [self._key(number, row, len(rows)) for number, row in enumerate(rows)]
        for key in keys:
            if key not in found:
                found[key] = self._matcher(key)
        self._matchers = found
        return self._masked(scores, [found[key] for key in keys])

    def _goes_on(self, rows: list[list[int]], length: int) -> bool:
        """Whether all rows are known rows with one token more."""
        if length != self._length + 1 or not 0 <= self._prompt_length < length:
            return False
        before = (
            (grammar, written[:-1])
            for grammar, written in (
                self._key(number, row, len(rows)) for number, row in enumerate(rows)
            )
        )
        return all(key in self._matchers for key in before)

    def _key(self, number: int, row: list[int], rows: int) -> _Key:
        grammar = number * len(self._grammars) // rows
        return grammar, tuple(row[self._prompt_length :])

    def _matcher(self, key: _Key) -> GrammarMatcher | None:
        """The matcher behind these tokens; None for a row that has ended."""
        grammar, written = key
        if not written:
            return GrammarMatcher(self._grammars[grammar])
        earlier = self._matchers[grammar, written[:-1]]
        if earlier is None or earlier.is_terminated():
            return None
        matcher = earlier.fork()
        if not matcher.accept_token(written[-1]):
            # Beams without a way on are kept alive with any token and a score of minus infinity.
            return None
        return matcher

    def _masked(self, scores: Any, matchers: list[GrammarMatcher | None]) -> Any:
        indices = [
            number
            for number, matcher in enumerate(matchers)
            if matcher is not None and not matcher.is_terminated()
        ]
        if not indices:
            return scores
        bitmask = allocate_token_bitmask(len(matchers), self._vocab_size)
        for number in indices:
            matcher = matchers[number]
            assert matcher is not None
            if not matcher.fill_next_token_bitmask(bitmask, number):
                bitmask[number] = -1
        width = min(int(scores.shape[-1]), self._vocab_size)
        kept = scores.clone() if hasattr(scores, "clone") else np.array(scores)
        device = getattr(scores, "device", None)
        if device is not None and str(device) != "cpu":
            bitmask = bitmask.to(device)
        apply_token_bitmask_inplace(kept, bitmask, vocab_size=width, indices=indices)
        return kept
