"""The text of one SGLang request, and the tokens that may come next.

One idea: SGLang calls a grammar from the loop that serves all requests. There, any exception except
for a refused token would end the server; while it walks over drafts, even that one would. So a
grammar that cannot continue, because a limit was reached, remembers the reason, allows no token of
a text, and makes its own request fail at the next token.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import BaseGrammarObject, GrammarStats
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarObject
from sglang.srt.utils.common import is_pin_memory_available

import stencilm

logger = logging.getLogger("sglang.stencilm")

_BATCH = stencilm.BatchGrammarMatcher()


def allocate_mask(vocab_size: int, batch_size: int) -> torch.Tensor:
    """An int32 mask [batch_size, ceil(vocab_size / 32)] that allows everything."""
    shape = stencilm.get_bitmask_shape(batch_size, vocab_size)
    # From pinned memory, the copy to the device is asynchronous.
    return torch.full(shape, -1, dtype=torch.int32, pin_memory=is_pin_memory_available())


def move_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
    """The mask on a device."""
    return vocab_mask.to(device, non_blocking=True)


def apply_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
    """Set the logits of tokens that are not allowed to minus infinity."""
    stencilm.apply_token_bitmask_inplace(logits, vocab_mask)


class StencilmGrammar(BaseGrammarObject):  # type: ignore[misc]
    """The grammar of one request.

    Args:
        compiled: The compiled grammar.
        no_text: A token that is not part of any text, for rows of a grammar that cannot continue.
        stats: What SGLang reports about it.
        whitespace_budget: For a JSON grammar, the most bytes of whitespace between the parts of its
            text.
    """

    def __init__(
        self,
        compiled: stencilm.CompiledGrammar,
        no_text: int,
        stats: GrammarStats | None,
        whitespace_budget: int | None = None,
    ) -> None:
        super().__init__()
        self.grammar_stats = stats
        self._compiled = compiled
        self._no_text = no_text
        self._matcher = stencilm.GrammarMatcher(
            compiled,
            # Without a stop token, a text can only end where the grammar ends.
            terminate_without_stop_token=not compiled.tokenizer_info.stop_token_ids,
            whitespace_budget=whitespace_budget,
        )
        self._whitespace_budget = whitespace_budget
        # Tokens after the end: SGLang may go on for a step, and also rolls these back one by one.
        self._after_end = 0
        self._fault: str | None = None
        # Whether the matcher could not read the last token.
        self._is_unread = False

    @property
    def compiled(self) -> stencilm.CompiledGrammar:
        """The compiled grammar."""
        return self._compiled

    def accept_token(self, token: int) -> None:
        """Accept one token; tokens after the end change nothing.

        A token that the mask allows, but that is too costly to read, changes nothing either: the
        next token is refused.

        Raises:
            ValueError: The grammar refuses it, or could not continue before it.
        """
        if self._fault is not None:
            raise ValueError(self._fault)
        if self._matcher.is_terminated():
            self._after_end += 1
            return
        self.current_token = token  # disaggregated prefill and decode use it
        try:
            if self._matcher.accept_token(token):
                return
            reason = self._matcher.explain(token)
        except stencilm.LimitExceeded as error:
            # A walk over drafts assumes that tokens in the mask are accepted.
            self._set_fault(error)
            self._is_unread = True
            return
        except stencilm.StencilError as error:
            raise ValueError(str(error)) from error
        raise ValueError(f"the grammar refuses token {token}: {reason}")

    def rollback(self, k: int) -> None:
        """Roll back the last k tokens, including those after the end."""
        after_end = min(k, self._after_end)
        self._after_end -= after_end
        k -= after_end
        if k > 0:
            self._fault = None  # it occurred at a later position
            read = k - self._is_unread
            self._is_unread = False
            self._matcher.rollback(read)

    def is_terminated(self) -> bool:
        """Whether the text has ended."""
        return self._matcher.is_terminated()

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """See `allocate_mask`."""
        return allocate_mask(vocab_size, batch_size)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the whole of row `idx`."""
        if self._matcher.is_terminated():
            vocab_mask[idx] = -1  # masks after the end are ignored
            return
        if self._fault is not None:
            self._close(vocab_mask, idx)
            return
        try:
            if not self._matcher.fill_next_token_bitmask(vocab_mask, idx):
                vocab_mask[idx] = -1
        except stencilm.StencilError as error:
            self._cannot_go_on(error, vocab_mask, idx)

    @staticmethod
    def fill_vocab_mask_batched(entries: Sequence[Any], vocab_mask: torch.Tensor) -> None:
        """See `fill_rows`."""
        fill_rows(entries, vocab_mask)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allow everything in every row."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """See `move_mask`."""
        return move_mask(vocab_mask, device)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """See `apply_mask`."""
        apply_mask(logits, vocab_mask)

    def copy(self) -> StencilmGrammar:
        """The same grammar at its beginning, for another request or another try."""
        stats = self.grammar_stats
        if stats is not None:
            stats = dataclasses.replace(stats, is_cache_hit=True, tree_traversal_time=[])
        return StencilmGrammar(self._compiled, self._no_text, stats, self._whitespace_budget)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The tokens that must come next, in the tokenizer's own spelling; else None."""
        if self._fault is not None or self._matcher.is_terminated():
            return None
        try:
            tokens = self._matcher.find_jump_forward_tokens()
        except stencilm.StencilError:
            return None
        if not tokens:
            return None
        return tokens, self._compiled.tokenizer_info.decode_str(tokens)

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """The text of the result of `try_jump_forward`; there is no additional state."""
        return helper[1], -1

    def jump_and_retokenize(
        self, old_output_ids: list[int], new_output_ids: list[int], next_state: int
    ) -> None:
        """Replace the old tokens of the output by new ones with a common beginning.

        Raises:
            ValueError: The grammar refuses one of the new tokens.
        """
        same = 0
        for old, new in zip(old_output_ids, new_output_ids, strict=False):
            if old != new:
                break
            same += 1
        if same < len(old_output_ids):
            self.rollback(len(old_output_ids) - same)
        for token in new_output_ids[same:]:
            self.accept_token(token)

    def _cannot_go_on(
        self, error: stencilm.StencilError, vocab_mask: torch.Tensor, row: int
    ) -> None:
        self._set_fault(error)
        self._close(vocab_mask, row)

    def _set_fault(self, error: stencilm.StencilError) -> None:
        logger.warning("a request fails, because its text cannot be read on: %s", error)
        self._fault = str(error)

    def _close(self, vocab_mask: torch.Tensor, row: int) -> None:
        """Allow no token of a text."""
        # Not an empty mask, which sampling cannot handle, and no token that the model would
        # continue.
        vocab_mask[row] = 0
        word, bit = divmod(self._no_text, 32)
        vocab_mask[row, word] = -(1 << 31) if bit == 31 else 1 << bit

    def __repr__(self) -> str:
        """The state of the request."""
        return f"StencilmGrammar({self._matcher!r})"


class WaitingGrammar(ReasonerGrammarObject):  # type: ignore[misc]
    """The engine's wrapper that waits for the end of reasoning, with batches filled in one call."""

    @staticmethod
    def fill_vocab_mask_batched(entries: Sequence[Any], vocab_mask: torch.Tensor) -> None:
        """See `fill_rows`."""
        fill_rows(entries, vocab_mask)

    def copy(self) -> WaitingGrammar:
        """A copy for another request."""
        made: WaitingGrammar = super().copy()
        made.__class__ = WaitingGrammar  # the engine creates its own class there
        return made


def fill_rows(entries: Sequence[Any], vocab_mask: torch.Tensor) -> None:
    """Write the rows of several requests, on several threads and without Python's lock.

    Args:
        entries: The `grammar` and the `row` of each request.
        vocab_mask: int32 [rows, ceil(vocab_size / 32)]; rows without an entry are not changed.
    """
    ours, rows = [], []
    for entry in entries:
        grammar = _written_now(entry.grammar)
        if grammar is not None and grammar._fault is None and not grammar.is_terminated():
            ours.append(grammar)
            rows.append(entry.row)
        else:
            entry.grammar.fill_vocab_mask(vocab_mask, entry.row)
    if not ours:
        return
    matchers = [grammar._matcher for grammar in ours]
    try:
        need_masks = _BATCH.batch_fill_next_token_bitmask(matchers, vocab_mask, rows)
    except stencilm.BatchError as error:
        need_masks = error.results
        for place, one in error.errors.items():
            ours[place]._cannot_go_on(one, vocab_mask, rows[place])
    for row, is_needed in zip(rows, need_masks, strict=True):
        if is_needed is False:
            vocab_mask[row] = -1


def _written_now(grammar: Any) -> StencilmGrammar | None:
    """The grammar that alone decides a request's next token; None if more than that decides."""
    if isinstance(grammar, WaitingGrammar):
        if not grammar._is_generation() or grammar.reasoning_in_grammar:
            return None
        grammar = grammar.grammar
    return grammar if isinstance(grammar, StencilmGrammar) else None


def no_text_token(info: stencilm.TokenizerInfo) -> int:
    """A token that is not part of any text and does not end one, if the vocabulary has one."""
    stops = set(info.stop_token_ids)
    special = set(info.special_token_ids)
    decoded = info.decoded_vocab
    for token_id in range(info.vocab_size - 1, -1, -1):
        is_hole = token_id >= len(decoded) or not decoded[token_id]
        if token_id not in stops and (is_hole or token_id in special):
            return token_id
    return info.vocab_size - 1
