"""One request in the engine: vLLM's calls, translated to a matcher.

One idea: no error of a grammar may leave a call, because it would end the engine, and all other
requests with it. A request whose matcher fails is made to end: its masks allow only stop tokens,
and the next token is refused, so that vLLM returns an error for this request alone. Nothing of vLLM
is imported here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from stencilm.bitmask.arrays import allocate_token_bitmask
from stencilm.errors import BatchError, StencilError
from stencilm.matching.compiler import CompiledGrammar
from stencilm.matching.matcher import BatchGrammarMatcher, GrammarMatcher, closing_within

logger = logging.getLogger("vllm.stencilm")


class RequestSequence:
    """The tokens of one request and what may follow them: vLLM's `StructuredOutputGrammar`.

    Args:
        compiled: The compiled grammar.
        stop_token_ids: The tokens that may end the text; None or empty for those of the vocabulary.
        whitespace_budget: For a JSON grammar, the most bytes of whitespace between the parts of the
            text.
    """

    __slots__ = ("_ahead", "_failure", "_left", "_matcher", "_vocab_size")

    def __init__(
        self,
        compiled: CompiledGrammar,
        stop_token_ids: Sequence[int] | set[int] | None = None,
        *,
        whitespace_budget: int | None = None,
    ) -> None:
        """Start at the beginning of the text.

        Raises:
            ValueError: A stop token is not in the vocabulary, or there is none.
        """
        stops = sorted(stop_token_ids) if stop_token_ids else None
        self._vocab_size = compiled.tokenizer_info.vocab_size
        last = self._vocab_size - 1
        if stops and (wrong := [one for one in stops if not 0 <= one <= last]):
            raise ValueError(
                f"stop_token_ids has {wrong[0]}, but the model's tokens have the ids 0 to {last}: "
                "leave it out, or name a text in stop"
            )
        if not (stops or compiled.tokenizer_info.stop_token_ids):
            # At the end of the text, no token could be sampled.
            raise ValueError(
                "the model's tokenizer has no token that ends a text: name one in stop_token_ids"
            )
        self._matcher = GrammarMatcher(
            compiled, override_stop_tokens=stops, whitespace_budget=whitespace_budget
        )
        self._failure: StencilError | None = None
        self._left: Callable[[], int] | None = None
        self._ahead: Callable[[], int] = int

    def close_within(self, left: Callable[[], int], ahead: Callable[[], int] = int) -> None:
        """Complete the text within the tokens that are left at its first mask.

        Args:
            left: Returns how many tokens the request may still have after those that are final,
                such as its reasoning.
            ahead: Returns how many draft tokens come between those and the requested mask; 0 if
                that is not known.
        """
        self._left, self._ahead = left, ahead

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Accept these tokens; tokens after the end of the text are ignored.

        Returns:
            False if a token does not fit or the matcher has failed; vLLM then ends the request with
            an error.
        """
        if self._failure is not None:
            return False
        try:
            for token in tokens:
                if not self._matcher.accept_token(token):
                    # Tokens after the end do not count, and a negative id pads a rejected draft.
                    if token < 0 or self._matcher.is_terminated():
                        return True
                    logger.error("stencilm: token %d of request %s does not fit", token, request_id)
                    return False
        except StencilError as error:
            self._fail(error)
            return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The longest prefix of these tokens that may come; nothing changes."""
        if self._failure is not None:
            return []
        try:
            budgets = self._matcher.token_budget, self._matcher.whitespace_budget
            if budgets == (None, None):
                return tokens[: self._matcher.validate_tokens(tokens)]
            return tokens[: self._count_within_masks(tokens)]
        except StencilError as error:
            self._fail(error)
            return []

    def _count_within_masks(self, tokens: list[int]) -> int:
        """How many of these tokens the masks allow, which budgets narrow.

        vLLM does not rely only on the masks: a draft that passes this check may be accepted.
        """
        matcher, count = self._matcher, 0
        row = allocate_token_bitmask(1, self._vocab_size)
        try:
            for token in tokens:
                if not 0 <= token < self._vocab_size or matcher.is_terminated():
                    break
                matcher.fill_next_token_bitmask(row)
                is_allowed = int(row[0, token // 32]) >> token % 32 & 1
                if not is_allowed or not matcher.accept_token(token):
                    break
                count += 1
        finally:
            matcher.rollback(count)
        return count

    def rollback(self, num_tokens: int) -> None:
        """Roll back the last accepted tokens, also beyond the end of the text."""
        if num_tokens <= 0:
            return
        # The failure occurred after the tokens that are rolled back.
        self._failure = None
        try:
            self._matcher.rollback(num_tokens)
        except StencilError as error:
            self._fail(error)

    def fill_bitmask(self, bitmask: Any, idx: int) -> None:
        """Write the whole of row `idx` of an int32 bitmask: the tokens that may come next."""
        self._begin()
        try:
            if self._failure is None:
                # The row is written even if the call returns that every token is allowed.
                self._matcher.fill_next_token_bitmask(bitmask, idx)
        except StencilError as error:
            self._fail(error)
        if self._failure is not None:
            self._allow_only_the_end(bitmask, idx)

    def is_terminated(self) -> bool:
        """Whether the text has ended with a stop token."""
        return self._matcher.is_terminated()

    def reset(self) -> None:
        """Go back to the beginning of the text."""
        self._failure = None
        self._matcher.reset()

    def _begin(self) -> None:
        """Set the budget of the text; repeated until no draft precedes the mask."""
        if self._left is None or self._failure is not None:
            return
        ahead = self._ahead()
        left = self._left() - ahead
        if ahead == 0:
            # If drafts of reasoning are rejected, the reasoning goes on, and the text begins later.
            self._left, self._ahead = None, int
        try:
            self._matcher, _ = closing_within(self._matcher, max(left, 0))
        except StencilError as error:
            self._fail(error)

    def _fail(self, error: StencilError) -> None:
        logger.error("stencilm: the request cannot go on and ends: %s", error)
        self._failure = error

    def _allow_only_the_end(self, bitmask: Any, idx: int) -> None:
        row = bitmask[idx]
        row[:] = 0
        for token in self._matcher.stop_token_ids:
            bit = 1 << (token % 32)
            # Bit 31 is the sign of an int32.
            row[token // 32] |= bit - (1 << 32) if bit == 1 << 31 else bit


def fill_bitmasks(
    batch: Sequence[tuple[RequestSequence, int]], bitmask: Any, workers: BatchGrammarMatcher
) -> None:
    """Fill the rows of several requests in one call, on several threads and without the GIL.

    Args:
        batch: The requests, none of which has terminated, each with its row.
        bitmask: int32, of shape (rows, words).
        workers: The threads.
    """
    for sequence, _ in batch:
        sequence._begin()
    whole = [(sequence, row) for sequence, row in batch if sequence._failure is None]
    for sequence, row in batch:
        if sequence._failure is not None:
            sequence._allow_only_the_end(bitmask, row)
    try:
        workers.batch_fill_next_token_bitmask(
            [sequence._matcher for sequence, _ in whole], bitmask, [row for _, row in whole]
        )
    except BatchError as error:
        for index, failure in error.errors.items():
            sequence, row = whole[index]
            sequence._fail(failure)
            sequence._allow_only_the_end(bitmask, row)


def tokens_left(request: Any, max_model_len: int) -> int:
    """How many tokens a vLLM request may still have."""
    room: int = min(request.max_tokens, max_model_len - request.num_prompt_tokens)
    return room - int(request.num_output_tokens)
