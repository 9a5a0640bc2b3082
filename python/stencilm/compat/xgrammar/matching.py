"""`GrammarMatcher` as the original has it.

One idea: it is a matcher of this package, whose calls have other arguments and other errors.
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
    """One sequence's place in a compiled grammar.

    Args:
        compiled_grammar: What the sequence must fit.
        override_stop_tokens: The tokens that may end the text, in place of the vocabulary's own.
        terminate_without_stop_token: The sequence is over as soon as its text is complete.
        max_rollback_tokens: Kept for callers that know this option; rollback has no bound.
        default_temperature: What `temperature` says where the grammar says nothing.

    Raises:
        ValueError: `compiled_grammar` is no CompiledGrammar.
        RuntimeError: A stop token is out of range, there is none in `override_stop_tokens`, or
            `default_temperature` is below 0 or no finite number.
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
        # Looked up once: accepting a token and filling a mask are called for every token.
        self._accept = self._matcher.accept_token
        self._fill = (
            self._fill_to_the_end if self._ends_by_itself else self._matcher.fill_next_token_bitmask
        )

    def accept_token(self, token_id: int, *, debug_print: bool = False) -> bool:
        """Whether a token fits, and if so, move past it; a refused token changes nothing.

        A token after the end, or out of range, is refused. `debug_print` does nothing.
        """
        return self._accept(token_id)

    def _fill_to_the_end(self, bitmask: Any, index: int) -> bool:
        """Fill a row for a text that ends by itself, where no stop token may come."""
        is_needed = self._matcher.fill_next_token_bitmask(bitmask, index)
        return self._without_stops(bitmask, index) or is_needed

    def _without_stops(self, bitmask: Any, index: int) -> bool:
        """Take the stop tokens from a row that was filled; whether any was to be taken."""
        # They are allowed where the text is complete, and there it has ended.
        if not self._ends_by_itself or not self._matcher.is_terminated():
            return False
        row = bitmask if len(bitmask.shape) == 1 else bitmask[index]
        for token_id in self._matcher.stop_token_ids:
            row[token_id // 32] &= ~(1 << token_id % 32) if token_id % 32 < 31 else 0x7FFFFFFF
        return True

    def accept_string(self, input_str: str | bytes, *, debug_print: bool = False) -> bool:
        """Whether a text fits, and if so, move past it; for `rollback` it is one token.

        Raises:
            RuntimeError: The text holds half of a surrogate pair.
        """
        with translated():
            return self._matcher.accept_string(input_str)

    def fill_next_token_bitmask(
        self, bitmask: Any, index: int = 0, *, debug_print: bool = False
    ) -> bool:
        """Write which tokens may come next into a row of a bitmask.

        Args:
            bitmask: int32 of shape (batch, words) or (words,), in main memory.
            index: The row.
            debug_print: Does nothing.

        Returns:
            False where all tokens may come, so that nothing needs to be masked.

        Raises:
            RuntimeError: A stop token was accepted, the bitmask or the row does not fit, or the
                mask is past a limit.
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
            draft_tokens: int64 of shape (nodes,): the tokens; that of the root is not looked at.
            token_bitmask: A bitmask with one row for each node.
            time_threshold: Seconds after which the walk stops; no limit where it is negative.
            temperatures: float32 of shape (nodes,), filled with the temperature after each node:
                the grammar's, else the default one, -1 where there is none.

        Returns:
            False where the time was over before all rows were filled.

        Raises:
            RuntimeError: Something does not fit.
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
        """The text that must come next; empty where several may.

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
        """Tokens for what must come next, the longest that fits each time.

        The last one is left out where it begins a longer token. The model's tokenizer may spell
        the text otherwise; `stencilm.GrammarMatcher.find_jump_forward_tokens` gives tokens only
        where it does not. There are none where nothing can follow.
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
            TypeError: It is no integer.
        """
        if num_tokens is None:  # for the matcher itself that is one token
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
        """Whether nothing can follow: a stop token came, or the text is to end by itself."""
        return self._matcher.is_terminated()

    def is_completed(self) -> bool:
        """Whether the text may end here."""
        return self._matcher.is_completed()

    def reset(self) -> None:
        """Go back to the beginning."""
        self._matcher.reset()

    def fork(self) -> Self:
        """A matcher at the same place, with the same history; each goes its own way."""
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
        """The temperature for the next token: the grammar's, else the default one."""
        own = self._matcher.temperature
        return self._default_temperature if own is None else own

    @property
    def stop_token_ids(self) -> list[int]:
        """The tokens that may end the text."""
        return self._matcher.stop_token_ids

    def _debug_print_internal_state(self) -> str:
        return repr(self._matcher)


def _temperature(value: Any) -> float | None:
    """A default temperature; raises RuntimeError for what none can be."""
    if value is None:
        return None
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise RuntimeError(
            f"default_temperature is {number}, but must be a finite number from 0 up, or None"
        )
    return number
