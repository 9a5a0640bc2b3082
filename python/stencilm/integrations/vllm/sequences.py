"""One request in the engine: vLLM's calls over a matcher.

One idea: no error in a grammar may leave a call, because it would end the engine, and all other
requests with it. A request whose matcher fails is made to end: its masks allow only stop tokens,
and the next token is refused, which vLLM answers with an error for this request alone. Nothing of
vLLM is imported here.
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
        compiled: What the text must fit.
        stop_token_ids: The tokens that may end the text; where None or empty, those of the
            vocabulary.
        whitespace_budget: Of a grammar of JSON: the most bytes of whitespace between the parts of
            the text.
    """

    __slots__ = ("_ahead", "_failure", "_left", "_matcher", "_vocab_size")

    def __init__(
        self,
        compiled: CompiledGrammar,
        stop_token_ids: Sequence[int] | set[int] | None = None,
        *,
        whitespace_budget: int | None = None,
    ) -> None:
        """Stands at the beginning of the text.

        Raises:
            ValueError: A stop token is not in the vocabulary.
        """
        stops = sorted(stop_token_ids) if stop_token_ids else None
        self._vocab_size = compiled.tokenizer_info.vocab_size
        last = self._vocab_size - 1
        if stops and (wrong := [one for one in stops if not 0 <= one <= last]):
            raise ValueError(
                f"stop_token_ids has {wrong[0]}, but the model's tokens have the ids 0 to {last}: "
                "leave it out, or name a text in stop"
            )
        self._matcher = GrammarMatcher(
            compiled, override_stop_tokens=stops, whitespace_budget=whitespace_budget
        )
        self._failure: StencilError | None = None
        self._left: Callable[[], int] | None = None
        self._ahead: Callable[[], int] = int

    def close_within(self, left: Callable[[], int], ahead: Callable[[], int] = int) -> None:
        """Has the text be whole within the tokens that are left at its first mask.

        Args:
            left: How many tokens the request may still have after those that are written for
                certain, such as its reasoning.
            ahead: How many drafts stand between those and the mask that is asked for; 0 where none
                is told.
        """
        self._left, self._ahead = left, ahead

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Goes over these tokens; what comes after the end of the text is not looked at.

        Returns:
            False where a token does not fit or the matcher has failed; vLLM then ends the request
            with an error.
        """
        if self._failure is not None:
            return False
        try:
            for token in tokens:
                if not self._matcher.accept_token(token):
                    # After the end nothing counts, and a negative id pads a rejected draft.
                    if token < 0 or self._matcher.is_terminated():
                        return True
                    logger.error("stencilm: token %d of request %s does not fit", token, request_id)
                    return False
        except StencilError as error:
            self._fail(error)
            return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The longest beginning of these tokens that may come; nothing changes."""
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
        """How many of these tokens the masks let through, which budgets narrow.

        vLLM does not rely on the masks alone: a draft that is offered may be taken.
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
        """Takes back the last tokens that were accepted, also over the end of the text."""
        if num_tokens <= 0:
            return
        # What failed stood after the tokens that are taken back.
        self._failure = None
        try:
            self._matcher.rollback(num_tokens)
        except StencilError as error:
            self._fail(error)

    def fill_bitmask(self, bitmask: Any, idx: int) -> None:
        """Writes the whole of row `idx` of an int32 bitmask: the tokens that may come next."""
        self._begin()
        try:
            if self._failure is None:
                # It writes the row also where it says that every token may come.
                self._matcher.fill_next_token_bitmask(bitmask, idx)
        except StencilError as error:
            self._fail(error)
        if self._failure is not None:
            self._allow_only_the_end(bitmask, idx)

    def is_terminated(self) -> bool:
        """Whether the text has ended with a stop token."""
        return self._matcher.is_terminated()

    def reset(self) -> None:
        """Back to the beginning of the text."""
        self._failure = None
        self._matcher.reset()

    def _begin(self) -> None:
        """Sets the budget of the text, anew until no draft stands before the mask."""
        if self._left is None or self._failure is not None:
            return
        ahead = self._ahead()
        left = self._left() - ahead
        if ahead == 0:
            # Where drafts of reasoning are refused, it goes on, and the text begins later.
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
    """Fills the rows of several requests in one call, on several threads and without the GIL.

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
    """How many tokens a request of vLLM may still have."""
    room: int = min(request.max_tokens, max_model_len - request.num_prompt_tokens)
    return room - int(request.num_output_tokens)
