"""The original's logits processor for mlx-lm."""

from __future__ import annotations

from typing import Any

from stencilm.bitmask.arrays import apply_token_bitmask_inplace
from stencilm.compat.xgrammar.bitmasks import allocate_token_bitmask
from stencilm.compat.xgrammar.compiling import CompiledGrammar
from stencilm.compat.xgrammar.matching import GrammarMatcher


class XGrammarLogitsProcessor:
    """Masks the logits of one sequence; for `logits_processors` of mlx-lm.

    Args:
        grammar: What the text must fit.
        max_rollback_tokens: Accepted for compatibility.
    """

    def __init__(self, grammar: CompiledGrammar, max_rollback_tokens: int = 16) -> None:
        self.matcher = GrammarMatcher(grammar)
        self.vocab_size = grammar.tokenizer_info.vocab_size
        self.bitmask = allocate_token_bitmask(1, self.vocab_size)

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """The logits, an MLX array of shape (1, vocabulary), masked.

        The last token is passed to the matcher; if it does not fit, a new text begins.
        """
        last = tokens[-1].item()
        if self.matcher.is_terminated() or not self.matcher.accept_token(last):
            self.matcher.reset()
            self.matcher.accept_token(last)
        if not self.matcher.is_terminated():
            self.matcher.fill_next_token_bitmask(self.bitmask)
            apply_token_bitmask_inplace(
                logits, self.bitmask, vocab_size=min(self.vocab_size, logits.shape[-1])
            )
        return logits
