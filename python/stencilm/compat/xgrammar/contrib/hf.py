"""The original's `LogitsProcessor` for `generate` of transformers."""

from __future__ import annotations

from typing import Any

import transformers

from stencilm.compat.xgrammar.bitmasks import allocate_token_bitmask, apply_token_bitmask_inplace
from stencilm.compat.xgrammar.compiling import CompiledGrammar
from stencilm.compat.xgrammar.matching import GrammarMatcher


class LogitsProcessor(transformers.LogitsProcessor):  # type: ignore[misc]
    """Masks the logits of a batch of sequences, during one call of `generate`.

    Args:
        compiled_grammar: One grammar for all sequences, or a list with one for each.

    Raises:
        ValueError: `compiled_grammar` is something else.
    """

    def __init__(self, compiled_grammar: CompiledGrammar | list[CompiledGrammar]) -> None:
        self.matchers: list[GrammarMatcher] = []
        self.compiled_grammars = (
            compiled_grammar if isinstance(compiled_grammar, list) else [compiled_grammar]
        )
        if not self.compiled_grammars or not all(
            isinstance(one, CompiledGrammar) for one in self.compiled_grammars
        ):
            raise ValueError(
                "compiled_grammar must be a CompiledGrammar, or a list with one for each sequence: "
                "a GrammarCompiler makes them"
            )
        self.full_vocab_size = self.compiled_grammars[0].tokenizer_info.vocab_size
        self.token_bitmask: Any = None
        self.prefilled = False
        self.batch_size = 0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores, with minus infinity for tokens that the grammars do not allow.

        Args:
            input_ids: int64 of shape (batch, tokens); the last token is the sampled one.
            scores: floating point of shape (batch, vocabulary).

        Raises:
            RuntimeError: The number of sequences has changed.
            AssertionError: The number of grammars differs from that of sequences, or a sampled
                token does not fit.
        """
        if not self.matchers:
            self._begin(input_ids.shape[0])
        if input_ids.shape[0] != self.batch_size:
            raise RuntimeError(
                f"input_ids has {input_ids.shape[0]} rows, but the first call had "
                f"{self.batch_size}: make a LogitsProcessor for each generate()"
            )
        for row, matcher in enumerate(self.matchers):
            if self.prefilled and not matcher.is_terminated():
                token = input_ids[row, -1].item()
                if not matcher.accept_token(token):
                    raise AssertionError(f"row {row} has the token {token}, which does not fit")
            if not matcher.is_terminated():
                matcher.fill_next_token_bitmask(self.token_bitmask, row)
        self.prefilled = True
        device = scores.device
        kept = scores if device.type in ("cuda", "cpu") else scores.cpu()
        apply_token_bitmask_inplace(kept, self.token_bitmask.to(kept.device))
        return kept.to(device)

    def _begin(self, batch_size: int) -> None:
        self.batch_size = batch_size
        if len(self.compiled_grammars) == 1:
            self.compiled_grammars = self.compiled_grammars * batch_size
        if len(self.compiled_grammars) != batch_size:
            raise AssertionError(
                f"there are {len(self.compiled_grammars)} grammars, but {batch_size} sequences: "
                "give one grammar, or as many"
            )
        self.matchers = [GrammarMatcher(compiled) for compiled in self.compiled_grammars]
        self.token_bitmask = allocate_token_bitmask(batch_size, self.full_vocab_size)
