"""The original's `LLExecutor`: the masks of many matchers in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stencilm.compat.arguments import check_kinds, whole_numbers
from stencilm.compat.llguidance.matcher import LLMatcher, memory
from stencilm.shown import shown_value
from stencilm.whole_numbers import as_whole, whole_number


class LLExecutor:
    """Calls many matchers at once.

    Args:
        num_threads: Accepted for compatibility: masks take microseconds here, and are computed one
            after another.

    Raises:
        TypeError: `num_threads` is not an integer.
        ValueError: It is negative.
    """

    def __init__(self, num_threads: int | None = None) -> None:
        if num_threads is not None:
            whole_number("num_threads", num_threads, least=0, otherwise=" or None")

    def unsafe_compute_mask_ptr(
        self,
        interpreters: list[tuple[LLMatcher, int]],
        trg_ptr: int,
        one_mask_bytes: int,
        trg_batch_size: int,
    ) -> None:
        """Write the mask of each matcher to its row of the caller's memory, which is not checked.

        Args:
            interpreters: The matchers, each with the number of its row.
            trg_ptr: The address of 32-bit words.
            one_mask_bytes: The size of a row, in bytes.
            trg_batch_size: The number of rows.

        Raises:
            ValueError: The address is 0 or not a multiple of 4, a row is out of range, or the size
                is not that of a mask.
        """
        given = _entries(interpreters, (LLMatcher, int))
        self.fill(given, _rows(given, trg_ptr, one_mask_bytes, trg_batch_size))

    def unsafe_compute_mask_ptr_with_draft_token(
        self,
        interpreters: list[tuple[LLMatcher, int, list[int]]],
        trg_ptr: int,
        one_mask_bytes: int,
        trg_batch_size: int,
    ) -> None:
        """Write masks, each followed by those after the draft tokens that fit.

        Args:
            interpreters: The matchers, each with the number of its row and its draft tokens.
            trg_ptr: As above.
            one_mask_bytes: As above.
            trg_batch_size: As above.

        Raises:
            ValueError: As above; also if the masks after drafts do not fit into the rows.
        """
        given = _entries(interpreters, (LLMatcher, int, list))
        self.fill_with_drafts(given, _rows(given, trg_ptr, one_mask_bytes, trg_batch_size))

    def fill(self, matchers: list[tuple[LLMatcher, int]], rows: NDArray[np.int32]) -> None:
        """Write the mask of each matcher to its row."""
        matchers = _entries(matchers, (LLMatcher, int))
        _check(rows, [(row, 1) for _, row in matchers])
        for matcher, row in matchers:
            matcher.fill_row(rows[row])

    def fill_with_drafts(
        self, matchers: list[tuple[LLMatcher, int, list[int]]], rows: NDArray[np.int32]
    ) -> None:
        """Write masks, each followed by those after the draft tokens that fit."""
        matchers = _entries(matchers, (LLMatcher, int, list))
        _check(rows, [(row, 1 + len(drafts)) for _, row, drafts in matchers])
        for matcher, row, drafts in matchers:
            matcher.fill_drafts(rows[row:], drafts)

    def consume_token_par(self, matchers_and_tokens: list[tuple[LLMatcher, int]]) -> list[bool]:
        """Consume one token in each matcher; returns whether each fits.

        Raises:
            TypeError: They are not such pairs; then no matcher has changed.
        """
        given = _entries(matchers_and_tokens, (LLMatcher, int))
        return [matcher.consume_token(token) for matcher, token in given]


def checked_matcher(matcher: Any) -> LLMatcher:
    """The argument, if it is an LLMatcher; raises TypeError otherwise."""
    if not isinstance(matcher, LLMatcher):
        raise TypeError(f"interp is {shown_value(matcher):.60}, but must be an LLMatcher")
    return matcher


def _entries(entries: Any, kinds: tuple[type, ...]) -> list[Any]:
    """Tuples of values of these kinds; integers of NumPy and torch become ints.

    Raises TypeError for anything else.
    """
    names = ", ".join(kind.__name__ for kind in kinds)
    wanted = f"tuples ({names})"
    held = check_kinds("matchers", entries, (tuple, list), wanted)
    made = []
    for place, entry in enumerate(held):
        read = [_read(value, kind) for value, kind in zip(entry, kinds, strict=False)]
        if len(entry) != len(kinds) or None in read:
            raise TypeError(f"matchers has {entry!r:.60} at {place}, but must hold {wanted}")
        made.append(tuple(read))
    return made


def _read(value: Any, kind: type) -> Any:
    """The value as this kind, or None if it is of another; lists are those of draft tokens."""
    if kind is int:
        return as_whole(value)
    if kind is list:
        return whole_numbers("draft_tokens", value)
    return value if isinstance(value, kind) else None


def _rows(entries: list[Any], address: int, one_mask_bytes: int, count: int) -> NDArray[np.int32]:
    return memory((matcher for matcher, *_ in entries), address, one_mask_bytes, count)


def _check(rows: NDArray[np.int32], places: list[tuple[int, int]]) -> None:
    for row, count in places:
        if not 0 <= row <= len(rows) - count:
            raise ValueError(f"{count} masks from row {row} on do not fit into {len(rows)} rows")
