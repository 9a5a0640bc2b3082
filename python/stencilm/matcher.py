"""The matcher: where one sequence stands in its grammar.

One idea: the class adds nothing to the hot calls. They are inherited from the Rust core as they
are, so that accepting a token and filling a mask run no Python at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, cast

from stencilm import _core
from stencilm.compiler import CompiledGrammar


class GrammarMatcher(_core.Matcher):
    """One sequence's place in a compiled grammar: says which tokens may come next.

    Each sequence needs a matcher of its own; all share the compiled grammar. A call that is
    refused changes nothing.

    Args:
        compiled_grammar: What the sequence must fit.
        override_stop_tokens: The tokens that may end the text, in place of the vocabulary's own.
        terminate_without_stop_token: The sequence is over as soon as its text is complete.
        max_rollback_tokens: Kept for callers that know this option; rollback has no bound here.
    """

    __slots__ = ()

    def __new__(
        cls,
        compiled_grammar: CompiledGrammar,
        *,
        override_stop_tokens: int | Sequence[int] | None = None,
        terminate_without_stop_token: bool = False,
        max_rollback_tokens: int = 0,
    ) -> Self:
        """Stands before the first token."""
        if not isinstance(compiled_grammar, CompiledGrammar):
            raise TypeError(
                f"compiled_grammar is a {type(compiled_grammar).__name__}, but must be a "
                "CompiledGrammar: GrammarCompiler makes one of a grammar"
            )
        if max_rollback_tokens < 0:
            raise ValueError(
                f"max_rollback_tokens is {max_rollback_tokens}, but must be at least 0"
            )
        matcher = super().__new__(
            cls,
            compiled_grammar.core,
            override_stop_tokens=_stop_tokens(override_stop_tokens, compiled_grammar),
            terminate_without_stop_token=terminate_without_stop_token,
            max_rollback_tokens=max_rollback_tokens,
        )
        return cast("Self", matcher)

    def fork(self) -> Self:
        """A matcher at the same place, with the same history; each goes its own way from here."""
        return cast("Self", _core.Matcher.__new__(type(self), self))


def _stop_tokens(override: Any, compiled_grammar: CompiledGrammar) -> list[int] | None:
    if override is None:
        return None
    if hasattr(override, "__index__"):
        override = [override]
    vocab_size = compiled_grammar.tokenizer_info.vocab_size
    token_ids = []
    for token_id in override:
        if not hasattr(token_id, "__index__"):
            raise TypeError(f"override_stop_tokens holds {token_id!r}, but must hold token ids")
        if not 0 <= token_id.__index__() < vocab_size:
            raise ValueError(
                f"override_stop_tokens holds {token_id}, but the vocabulary of {vocab_size} tokens "
                f"has the ids 0 to {vocab_size - 1}"
            )
        token_ids.append(token_id.__index__())
    return token_ids
