"""`LLInterpreter`, which this package does not have."""

from __future__ import annotations

from typing import NoReturn

from stencilm.compat.llguidance.limits import LLParserLimits
from stencilm.compat.llguidance.tokenizer import LLTokenizer


class LLInterpreter:
    """The original's older matcher, which can take back tokens and rewrite prompts.

    Raises:
        NotImplementedError: Always.
    """

    def __new__(
        cls,
        tokenizer: LLTokenizer,
        grammar: str,
        enable_backtrack: bool = True,
        enable_ff_tokens: bool = True,
        log_level: int = 1,
        limits: LLParserLimits | None = None,
    ) -> NoReturn:
        """Always raises."""
        raise NotImplementedError(
            "LLInterpreter is not offered here: use LLMatcher, with compute_ff_tokens() for forced "
            "tokens and rollback() to take tokens back"
        )
