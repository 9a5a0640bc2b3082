"""The original's `BatchGrammarMatcher`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from stencilm.compat.arguments import check_kinds, check_temperatures, whole_numbers
from stencilm.compat.xgrammar.matching import GrammarMatcher
from stencilm.errors import StencilError
from stencilm.matching.matcher import BatchGrammarMatcher as _BatchGrammarMatcher
from stencilm.whole_numbers import as_whole


class BatchGrammarMatcher:
    """Calls the matchers of many sequences at once, on several threads.

    Args:
        max_threads: "auto" takes one per processor, at most 8.

    Raises:
        RuntimeError: `max_threads` is out of range.
    """

    def __init__(self, max_threads: int | Literal["auto"] = "auto") -> None:
        try:
            self._batch = _BatchGrammarMatcher(max_threads)
        except (TypeError, ValueError) as error:
            raise RuntimeError(str(error)) from error

    def batch_fill_next_token_bitmask(
        self,
        matchers: list[GrammarMatcher],
        bitmask: Any,
        indices: list[int] | None = None,
        debug_print: bool = False,
    ) -> None:
        """Fill one row of a bitmask for each matcher.

        Args:
            matchers: The matchers, each once.
            bitmask: int32 of shape (batch, words), in main memory.
            indices: The row of each matcher; by default its place in the list.
            debug_print: Does nothing.

        Raises:
            TypeError: `matchers` or `indices` holds something else.
            RuntimeError: Something does not fit, or a matcher has terminated; the rows of the
                others are filled.
        """
        given = _matchers(matchers)
        if indices is not None:
            indices = whole_numbers("indices", indices)
        try:
            self._batch.batch_fill_next_token_bitmask(
                [matcher._matcher for matcher in given], bitmask, indices
            )
        except StencilError as error:
            # At this point the arguments are valid, and the rows of the other matchers are filled.
            _without_stops(given, bitmask, indices)
            raise RuntimeError(str(error)) from error
        except (ValueError, TypeError, IndexError) as error:
            raise RuntimeError(str(error)) from error
        _without_stops(given, bitmask, indices)

    @staticmethod
    def batch_fill_temperature(
        matchers: list[GrammarMatcher], temperatures: Any, indices: list[int] | None = None
    ) -> None:
        """Write the temperature of each matcher into a float32 tensor, -1 if there is none.

        Raises:
            TypeError: `matchers` or `indices` holds something else.
            RuntimeError: The tensor, or the number of indices, does not fit.
        """
        given = _matchers(matchers)
        places = list(range(len(given))) if indices is None else whole_numbers("indices", indices)
        if len(places) != len(given):
            raise RuntimeError(
                f"there are {len(given)} matchers, but {len(places)} indices: give as many"
            )
        check_temperatures(temperatures, places)
        for place, matcher in zip(places, given, strict=True):
            value = matcher.temperature
            temperatures[place] = -1.0 if value is None else value

    @staticmethod
    def batch_accept_token(
        matchers: list[GrammarMatcher], tokens: list[int], debug_print: bool = False
    ) -> list[bool]:
        """Accept one token in each matcher; returns whether each fits.

        Raises:
            TypeError: `matchers` or `tokens` holds something else; then no matcher has changed.
            RuntimeError: There are not as many tokens as matchers.
        """
        given, ids = _matchers(matchers), whole_numbers("tokens", tokens)
        _check_numbers(given, ids, "tokens")
        return [matcher.accept_token(token) for matcher, token in zip(given, ids, strict=True)]

    @staticmethod
    def batch_accept_string(
        matchers: list[GrammarMatcher], strings: list[str | bytes], debug_print: bool = False
    ) -> list[bool]:
        """Accept one text in each matcher; returns whether each fits.

        Raises:
            TypeError: `matchers` or `strings` holds something else; then no matcher has changed.
            RuntimeError: There are not as many texts as matchers.
        """
        given = _matchers(matchers)
        texts = check_kinds("strings", strings, (str, bytes, bytearray), "str or bytes")
        _check_numbers(given, texts, "strings")
        return [matcher.accept_string(text) for matcher, text in zip(given, texts, strict=True)]

    @staticmethod
    def batch_rollback(matchers: list[GrammarMatcher], num_tokens: list[int] | int = 1) -> None:
        """Take back the last tokens of each matcher.

        Raises:
            TypeError: `matchers` or `num_tokens` holds something else; then no matcher has changed.
            RuntimeError: There are fewer tokens, or not as many numbers as matchers.
        """
        given = _matchers(matchers)
        is_one = as_whole(num_tokens) is not None
        counts = whole_numbers("num_tokens", [num_tokens] * len(given) if is_one else num_tokens)
        _check_numbers(given, counts, "num_tokens")
        for matcher, count in zip(given, counts, strict=True):
            matcher.rollback(count)


def _matchers(matchers: Any) -> list[GrammarMatcher]:
    return check_kinds("matchers", matchers, GrammarMatcher, "GrammarMatcher objects")


def _without_stops(matchers: list[GrammarMatcher], bitmask: Any, indices: list[int] | None) -> None:
    """Remove the stop tokens from the rows of texts that have terminated without one."""
    if not any(matcher._ends_by_itself for matcher in matchers):
        return
    rows = range(len(matchers)) if indices is None else indices
    for row, matcher in zip(rows, matchers, strict=True):
        matcher._without_stops(bitmask, row)


def _check_numbers(matchers: Sequence[Any], values: Sequence[Any], name: str) -> None:
    if len(matchers) != len(values):
        raise RuntimeError(
            f"there are {len(matchers)} matchers, but {len(values)} {name}: give as many of both"
        )
