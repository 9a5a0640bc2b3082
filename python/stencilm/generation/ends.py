"""Whether a text is over, the same for every loop."""

from __future__ import annotations

from collections.abc import Collection

from stencilm.matching.matcher import GrammarMatcher


def is_over(matcher: GrammarMatcher, stop_token_ids: Collection[int]) -> bool:
    """Whether only the end of the text can follow."""
    if matcher.is_terminated():
        return True
    if not matcher.is_completed():
        return False
    return matcher.num_allowed_tokens() == sum(map(matcher.is_allowed, stop_token_ids))
