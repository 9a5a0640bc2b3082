"""The original's `GrammarMatcher`.

One idea: it is a matcher of this package whose methods have other arguments and other errors.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Self

from stencilm.compat.arguments import check_temperatures
from stencilm.compat.xgrammar.compiling import CompiledGrammar
from stencilm.compat.xgrammar.failures import translated
from stencilm.errors import StencilError
from stencilm.matching.matcher import GrammarMatcher as _GrammarMatcher
from stencilm.whole_numbers import truth


class GrammarMatcher:
    """The position of one sequence in a compiled grammar.

    Args:
        compiled_grammar: The grammar of the sequence.
        override_stop_tokens: The tokens that may end the text, instead of the vocabulary's own.
        terminate_without_stop_token: The sequence terminates as soon as its text is complete.
        max_rollback_tokens: Accepted for compatibility; rollback has no bound.
        default_temperature: The value of `temperature` if the grammar sets none.

    Raises:
        ValueError: `compiled_grammar` is not a CompiledGrammar.
        RuntimeError: A stop token is out of range, `override_stop_tokens` is empty, or
            `default_temperature` is negative or not finite.
    """

    def __init__(
        self,
        compiled_grammar: CompiledGrammar,
        *,
        override_stop_tokens: int | list[int] | None = None,
        terminate_without_stop_token: bool = False,
        max_rollback_tokens: int = -1,
        default_temperature: float | None = None,
    ) -> None:
        if not isinstance(compiled_grammar, CompiledGrammar):
            raise ValueError(
                f"compiled_grammar is a {type(compiled_grammar).__name__}, but must be a "
                "CompiledGrammar: a GrammarCompiler makes one"
            )
        if max_rollback_tokens != -1:
            warnings.warn(
                "max_rollback_tokens does nothing: rollback has no bound",
                DeprecationWarning,
                stacklevel=2,
            )
        with translated(also=(ValueError,)):
            self._matcher = _GrammarMatcher(
                compiled_grammar._compiled,
                override_stop_tokens=override_stop_tokens,
                terminate_without_stop_token=truth(
                    "terminate_without_stop_token", terminate_without_stop_token
                ),
            )
        if override_stop_tokens is not None and not self._matcher.stop_token_ids:
            raise RuntimeError(
                "override_stop_tokens is empty, so no text could end: give at least one id, or None"
            )
        self._info = compiled_grammar._info
        self._ends_by_itself = terminate_without_stop_token
        self._default_temperature = _temperature(default_temperature)
        self._bind()

    def _bind(self) -> None:
        # Bound once, because accepting a token and filling a mask happen for every token.
        self._accept = self._matcher.accept_token
        self._fill = (
            self._fill_to_the_end if self._ends_by_itself else self._matcher.fill_next_token_bitmask
        )

    def accept_token(self, token_id: int, *, debug_print: bool = False) -> bool:
        """Accept a token if it fits, and return whether it does; a refused token changes nothing.

        A token after the end, or out of range, is refused. `debug_print` has no effect.
        """
        return self._accept(token_id)

    def _fill_to_the_end(self, bitmask: Any, index: int) -> bool:
        """Fill a row for a text that terminates without a stop token, so none is allowed."""
        is_needed = self._matcher.fill_next_token_bitmask(bitmask, index)
        return self._without_stops(bitmask, index) or is_needed

    def _without_stops(self, bitmask: Any, index: int) -> bool:
        """Remove the stop tokens from a filled row; returns whether any was allowed."""
        # If they are allowed, the text is complete, and so it has terminated.
        if not self._ends_by_itself or not self._matcher.is_terminated():
            return False
        row = bitmask if len(bitmask.shape) == 1 else bitmask[index]
        for token_id in self._matcher.stop_token_ids:
            row[token_id // 32] &= ~(1 << token_id % 32) if token_id % 32 < 31 else 0x7FFFFFFF
        return True

    def accept_string(self, input_str: str | bytes, *, debug_print: bool = False) -> bool:
        """Accept a text if it fits, and return whether it does; for `rollback` it is one token.

        Raises:
            RuntimeError: The text has a lone surrogate.
        """
        with translated():
            return self._matcher.accept_string(input_str)

    def fill_next_token_bitmask(
        self, bitmask: Any, index: int = 0, *, debug_print: bool = False
    ) -> bool:
        """Write the tokens that may come next into a row of a bitmask.

        Args:
            bitmask: int32 of shape (batch, words) or (words,), in main memory.
            index: The row.
            debug_print: Has no effect.

        Returns:
            False if all tokens are allowed, so that nothing needs to be masked.

        Raises:
            RuntimeError: A stop token was accepted, the bitmask or the row does not fit, or the
                mask exceeds a limit.
        """
        try:
            return self._fill(bitmask, index)
        except (StencilError, ValueError, TypeError, IndexError) as error:
            raise RuntimeError(str(error)) from error

    def traverse_draft_tree(
        self,
        retrieve_next_token: Any,
        retrieve_next_sibling: Any,
        draft_tokens: Any,
        token_bitmask: Any,
        time_threshold: float = -1.0,
        temperatures: Any | None = None,
    ) -> bool:
        """Fill one row of the bitmask for every node of a tree of draft tokens.

        Args:
            retrieve_next_token: int64 of shape (nodes,): the first child of each node, -1 for none.
            retrieve_next_sibling: int64 of shape (nodes,): the next child of the same parent.
            draft_tokens: int64 of shape (nodes,): the tokens; that of the root is ignored.
            token_bitmask: A bitmask with one row for each node.
            time_threshold: Seconds after which the walk stops; no limit if it is negative.
            temperatures: float32 of shape (nodes,), filled with the temperature after each node:
                the grammar's, otherwise the default one, -1 if there is none.

        Returns:
            False if the time was over before all rows were filled.

        Raises:
            RuntimeError: An argument does not fit.
        """
        if temperatures is not None:
            check_temperatures(temperatures, range(len(draft_tokens)))
        try:
            done = self._matcher.traverse_draft_tree(
                retrieve_next_token,
                retrieve_next_sibling,
                draft_tokens,
                token_bitmask,
                time_threshold=time_threshold,
            )
            if temperatures is not None:
                found = self._matcher.draft_tree_temperatures(
                    retrieve_next_token, retrieve_next_sibling, draft_tokens
                )
                for node, value in enumerate(found):
                    own = self._default_temperature if value is None else value
                    temperatures[node] = -1.0 if own is None else own
        except (StencilError, ValueError, TypeError, IndexError) as error:
            raise RuntimeError(str(error)) from error
        return done

    def find_jump_forward_string(self) -> str:
        """The text that must come next; empty if there are several continuations.

        Raises:
            RuntimeError: A stop token was accepted.
        """
        if self._matcher.is_terminated() and not self._ends_by_itself:
            raise RuntimeError(
                "the matcher has terminated: a stop token was accepted and nothing can follow; "
                "call reset() or rollback()"
            )
        with translated():
            return self._matcher.find_jump_forward_string()

    def find_jump_forward_tokens(self) -> list[int]:
        """Tokens of the text that must come next, each the longest possible.

        The last one is left out if it begins a longer token. The model's tokenizer may spell the
        text differently; `stencilm.GrammarMatcher.find_jump_forward_tokens` only returns tokens of
        the tokenizer's own spelling. There are none if nothing can follow.
        """
        if self._matcher.is_terminated():
            return []
        with translated():
            forced = self._matcher._forced_bytes()
        return self._info._spelling(self._matcher.stop_token_ids).tokens(forced) if forced else []

    def rollback(self, num_tokens: int = 1) -> None:
        """Take back the last accepted tokens.

        Raises:
            RuntimeError: There are fewer, or the number is negative.
            TypeError: It is not an integer.
        """
        if num_tokens is None:  # the matcher itself counts that as one token
            raise TypeError("num_tokens is None, but must be an int")
        with translated():
            self._matcher.rollback(num_tokens)

    def get_captures(self, *, deduplicate: bool = True) -> list[tuple[str, bytes]]:
        """The captured texts by name, in the order in which they ended.

        Raises:
            RuntimeError: `deduplicate` is False: there are no events of unfinished matches here.
        """
        if not deduplicate:
            raise RuntimeError(
                "deduplicate=False asks for every place where a capture could have ended, which is "
                "not recorded here: leave it out"
            )
        return self._matcher.get_captures()

    def is_terminated(self) -> bool:
        """Whether nothing can follow: a stop token came, or the text terminates without one."""
        return self._matcher.is_terminated()

    def is_completed(self) -> bool:
        """Whether the text may end here."""
        return self._matcher.is_completed()

    def reset(self) -> None:
        """Go back to the beginning."""
        self._matcher.reset()

    def fork(self) -> Self:
        """A copy at the same position, with the same history; the two are independent."""
        made = type(self).__new__(type(self))
        made._matcher = self._matcher.fork()
        made._info = self._info
        made._ends_by_itself = self._ends_by_itself
        made._default_temperature = self._default_temperature
        made._bind()
        return made

    def __copy__(self) -> Self:
        """The same as `fork`."""
        return self.fork()

    def __deepcopy__(self, memo: object) -> Self:
        """The same as `fork`: what a matcher shares with others never changes."""
        return self.fork()

    @property
    def max_rollback_tokens(self) -> int:
        """-1: rollback has no bound."""
        return -1

    @property
    def temperature(self) -> float | None:
        """The temperature for the next token: the grammar's, otherwise the default one."""
        own = self._matcher.temperature
        return self._default_temperature if own is None else own

    @property
    def stop_token_ids(self) -> list[int]:
        """The tokens that may end the text."""
        return self._matcher.stop_token_ids

    def _debug_print_internal_state(self) -> str:
        return repr(self._matcher)


def _temperature(value: Any) -> float | None:
    """Check a default temperature; raises RuntimeError for an invalid one."""
    if value is None:
        return None
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise RuntimeError(
            f"default_temperature is {number}, but must be a finite number from 0 up, or None"
        )
    return number
