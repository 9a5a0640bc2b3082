"""The original's `LLMatcher`: a matcher that raises no errors, but stays in an error state.

One idea: this package's matcher decides what fits; this file decides when a text counts as stopped.
A text that is complete and has no continuation stops by itself, and then the token that ends it
changes nothing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stencilm.compat.arguments import whole_numbers
from stencilm.compat.llguidance.limits import LLParserLimits
from stencilm.compat.llguidance.notations import (
    json_grammar,
    lark_grammar,
    read_grammar,
    regex_grammar,
)
from stencilm.compat.llguidance.tokenizer import LLTokenizer
from stencilm.errors import LimitExceeded, StencilError
from stencilm.matching.compiler import GrammarCompiler
from stencilm.matching.matcher import GrammarMatcher
from stencilm.shown import shown_value
from stencilm.whole_numbers import MOST, as_whole, whole_number

StopReason = Literal[
    "NotStopped",
    "MaxTokensTotal",
    "MaxTokensParser",
    "ParserTooComplex",
    "LexerTooComplex",
    "NoExtension",
    "NoExtensionBias",
    "EndOfSentence",
    "InternalError",
]
_ALLOWED = 200


class LLMatcher:
    """The position of one sequence in a grammar.

    Invalid grammars and tokens raise nothing: see `is_error`.

    Args:
        tokenizer: The vocabulary.
        grammar: Lark, or the result of one of the `grammar_from_...` methods.
        log_level: Accepted for compatibility: nothing is logged.
        limits: Accepted for compatibility.

    Raises:
        TypeError: `tokenizer` is not an LLTokenizer, or `limits` is not an LLParserLimits.
    """

    def __init__(
        self,
        tokenizer: LLTokenizer,
        grammar: str,
        *,
        log_level: int | None = None,
        limits: LLParserLimits | None = None,
    ) -> None:
        self._tokenizer = _tokenizer(tokenizer)
        _check_limits(limits)
        self._matcher: GrammarMatcher | None = None
        self._error = ""
        self._reason: StopReason = "NotStopped"
        self._warnings: list[str] = []
        try:
            read = read_grammar(grammar)
            self._warnings = [_warning(finding) for finding in read.report.relaxed]
            compiler = GrammarCompiler(tokenizer._info, cache_enabled=False)
            self._matcher = GrammarMatcher(compiler.compile_grammar(read))
            self._look_for_end()
        except (StencilError, ValueError) as error:
            self._fail(error)

    @staticmethod
    def validate_grammar(
        grammar: str,
        tokenizer: LLTokenizer | None = None,
        *,
        limits: LLParserLimits | None = None,
    ) -> str:
        """The error of a grammar; empty if there is none."""
        is_error, messages = LLMatcher.validate_grammar_with_warnings(
            grammar, tokenizer, limits=limits
        )
        return messages[0] if is_error else ""

    @staticmethod
    def validate_grammar_with_warnings(
        grammar: str,
        tokenizer: LLTokenizer | None = None,
        *,
        limits: LLParserLimits | None = None,
    ) -> tuple[bool, list[str]]:
        """Whether a grammar is invalid, with its error, or else with its unenforced parts."""
        info = None if tokenizer is None else _tokenizer(tokenizer)._info
        _check_limits(limits)
        try:
            read = read_grammar(grammar)
            if info is not None:
                GrammarCompiler(info, cache_enabled=False).compile_grammar(read)
        except (StencilError, ValueError) as error:
            return True, [str(error)]
        return False, [_warning(finding) for finding in read.report.relaxed]

    @staticmethod
    def grammar_from_json_schema(
        schema: str | dict[str, Any],
        defaults: Mapping[str, Any] | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> str:
        """The text of a grammar for a JSON Schema.

        Args:
            schema: The schema, as text or a dict; it is not checked here.
            defaults: Options that the schema's "x-guidance" overrides.
            overrides: Options that override it.

        Raises:
            ValueError: There are options, but the schema is not a JSON object.
        """
        return json_grammar(schema, defaults, overrides)

    @staticmethod
    def grammar_from_lark(lark: str) -> str:
        """The text itself; it is not checked here."""
        return lark_grammar(lark)

    @staticmethod
    def grammar_from_regex(regex: str) -> str:
        """The text of a grammar for a regular expression; it is not checked here."""
        return regex_grammar(regex)

    def is_error(self) -> bool:
        """Whether it is in the error state, which it never leaves."""
        return bool(self._error)

    def get_error(self) -> str:
        """The error; empty if there is none."""
        return self._error

    def get_grammar_warnings(self) -> list[str]:
        """The parts of the grammar that are not enforced, because it asks for leniency."""
        return list(self._warnings)

    def deep_copy(self) -> LLMatcher:
        """A copy at the same position; the two are independent."""
        made = LLMatcher.__new__(LLMatcher)
        made.__dict__.update(self.__dict__)
        made._matcher = None if self._matcher is None else self._matcher.fork()
        return made

    def __copy__(self) -> LLMatcher:
        """The same as `deep_copy`."""
        return self.deep_copy()

    def __deepcopy__(self, memo: object) -> LLMatcher:
        """The same as `deep_copy`: what a matcher shares with others never changes."""
        return self.deep_copy()

    def is_accepting(self) -> bool:
        """Whether the text may end here."""
        return not self._error and self._at().is_completed()

    def is_stopped(self) -> bool:
        """Whether only the end of the text can follow; also true in the error state."""
        return self._reason != "NotStopped"

    def stop_reason(self) -> StopReason:
        """Why it is stopped."""
        return self._reason

    def rollback(self, num_tokens: int) -> bool:
        """Take back the last consumed tokens; more than were consumed are an error.

        A token that ended a text which had already stopped was not counted.

        Raises:
            OverflowError: The number is negative.
            TypeError: It is not an integer.
        """
        if as_whole(num_tokens) is None:
            raise TypeError(f"num_tokens is {shown_value(num_tokens):.60}, but must be an int")
        if num_tokens < 0:
            raise OverflowError(f"num_tokens is {num_tokens}, but must be at least 0")
        if self._error:
            return False
        try:
            self._at().rollback(num_tokens)
            self._reason = "NotStopped"
            self._look_for_end()
        except StencilError as error:
            self._fail(error)
        return not self._error

    def reset(self) -> bool:
        """Go back to the beginning; the error state remains."""
        return self.rollback(self._matcher.num_accepted_tokens) if self._matcher else False

    def compute_ff_tokens(self) -> list[int]:
        """The tokens that must come next, in the tokenizer's own spelling."""
        if self.is_stopped():
            return []
        ahead, found = self._at().fork(), []
        try:
            while not ahead.is_completed() and (step := self._forced(ahead)):
                taken = ahead.validate_tokens(step)
                for token in step[:taken]:
                    ahead.accept_token(token)
                found += step[:taken]
                if taken < len(step):
                    break
        except StencilError:
            pass  # the part that is already known is correct
        return found

    def _forced(self, matcher: GrammarMatcher) -> list[int]:
        if self._tokenizer._encode is None:
            return matcher.find_jump_forward_tokens()
        forced = matcher._forced_bytes()
        if forced:
            return self._tokenizer.tokenize_partial(forced)[0]
        single = matcher._forced_token()
        return [] if single is None else [single]

    def compute_ff_bytes(self) -> bytes:
        """The bytes that must come next."""
        return b"" if self.is_stopped() else self._at()._forced_bytes()

    def try_consume_tokens(self, tokens: list[int]) -> int:
        """Consume tokens while they fit and the text is not stopped; returns how many did."""
        tokens = whole_numbers("tokens", tokens)
        for number, token in enumerate(tokens):
            if self.is_stopped() or not self._fits(token) or not self._consume(token):
                return number
        return len(tokens)

    def consume_token(self, sampled_token: int) -> bool:
        """Consume a token; one that does not fit is an error, and returns False.

        Raises:
            TypeError: It is not an integer.
        """
        if as_whole(sampled_token) is None:
            raise TypeError(
                f"sampled_token is {shown_value(sampled_token):.60}, but must be an int"
            )
        if self._error:
            return False
        if self.is_stopped():
            if sampled_token in self._tokenizer.eos_tokens:
                return True
            self._fail(ValueError("the text is stopped: only a token that ends it may follow"))
            return False
        return self._consume(sampled_token)

    def consume_tokens(self, tokens: list[int]) -> bool:
        """Consume tokens; one that does not fit is an error, and returns False.

        If the text is stopped, a token that ends it may follow, and ends it.
        """
        for token in whole_numbers("tokens", tokens):
            if self._reason == "EndOfSentence" and token in self._tokenizer.eos_tokens:
                continue
            if self.is_stopped() and token not in self._tokenizer.eos_tokens:
                self._fail(ValueError("the text is stopped: no more tokens may follow"))
            if self._error or not self._consume(token):
                return False
        return not self._error

    def validate_tokens(self, tokens: list[int]) -> int:
        """How many of the tokens fit, one after another; changes nothing."""
        tokens = whole_numbers("tokens", tokens)
        return 0 if self.is_stopped() else self._at().validate_tokens(tokens)

    def compute_bitmask(self) -> bytes:
        """The mask: one bit for each token, in words of 32 bits."""
        row = np.zeros(_words(self._tokenizer), dtype=np.int32)
        self.fill_row(row)
        return row.tobytes()

    def compute_logit_bias(self) -> bytes:
        """The mask: one byte for each token, 200 if it is allowed, otherwise 0."""
        bits = np.unpackbits(np.frombuffer(self.compute_bitmask(), np.uint8), bitorder="little")
        return (bits[: self._tokenizer.vocab_size] * np.uint8(_ALLOWED)).tobytes()

    def fill_row(self, row: NDArray[np.int32]) -> None:
        """Write the mask into a row of int32 words; words beyond the vocabulary become 0.

        Raises:
            ValueError: The row is too short.
        """
        words = _words(self._tokenizer)
        if len(row) < words:
            raise ValueError(
                f"the mask has room for {len(row)} words, but {self._tokenizer.vocab_size} tokens "
                f"take {words}"
            )
        row[words:] = 0
        if not self.is_stopped():
            try:
                if not self._at().fill_next_token_bitmask(row[:words]):
                    row[:words] = _all_tokens(self._tokenizer)
                return
            except StencilError as error:
                self._fail(error)
        row[:] = 0
        for token in self._tokenizer.eos_tokens:
            row.view(np.uint32)[token // 32] |= np.uint32(1 << token % 32)

    def unsafe_compute_mask_ptr(self, trg_ptr: int, trg_bytes: int) -> None:
        """Write the mask to the caller's memory, which is not checked.

        Args:
            trg_ptr: The address of 32-bit words.
            trg_bytes: The size of the mask, in bytes.

        Raises:
            ValueError: The address is 0 or not a multiple of 4, or the size is not that of a mask.
        """
        self.fill_row(memory([self], trg_ptr, trg_bytes, 1)[0])

    def unsafe_compute_mask_ptr_with_draft_token(
        self, trg_ptr: int, trg_bytes: int, draft_tokens: list[int]
    ) -> None:
        """Write the mask, then one after each draft token that fits.

        Args:
            trg_ptr: The address of 32-bit words: room for one mask more than there are drafts.
            trg_bytes: The size of one mask, not that of all of them.
            draft_tokens: The draft tokens.

        Raises:
            TypeError: A draft token is not an integer.
            ValueError: The address is 0 or not a multiple of 4, or the size is not that of a mask.
        """
        drafts = whole_numbers("draft_tokens", draft_tokens)
        self.fill_drafts(memory([self], trg_ptr, trg_bytes, 1 + len(drafts)), drafts)

    def fill_drafts(self, rows: NDArray[np.int32], draft_tokens: list[int]) -> None:
        """Write the mask into the first row, then one after each draft token that fits."""
        if len(rows) <= len(draft_tokens):
            raise ValueError(
                f"there is room for {len(rows)} masks, but {len(draft_tokens)} draft tokens take "
                f"{1 + len(draft_tokens)}"
            )
        self.fill_row(rows[0])
        ahead = self.deep_copy()
        for row, token in zip(rows[1:], draft_tokens, strict=False):
            if ahead.try_consume_tokens([token]) == 0:
                return
            ahead.fill_row(row)

    def get_capture(self, name: str) -> bytes | None:
        """The last captured text of a name; None if there is none.

        Raises:
            TypeError: The name is not a str.
        """
        if not isinstance(name, str):
            raise TypeError(f"name is {shown_value(name):.60}, but must be a str")
        found = [text for each, text in self.get_captures() if each == name]
        return found[-1] if found else None

    def get_captures(self) -> list[tuple[str, bytes]]:
        """The captured texts by name, in the order in which they ended."""
        return [] if self._matcher is None else self._matcher.get_captures()

    def _at(self) -> GrammarMatcher:
        assert self._matcher is not None, "a matcher without a grammar is in error"
        return self._matcher

    def _fits(self, token: int) -> bool:
        return self._at().validate_tokens([token]) == 1

    def _consume(self, token: int) -> bool:
        try:
            if not self._at().accept_token(token):
                shown = (
                    self._tokenizer.dbg_tokens([token])
                    if 0 <= token < self._tokenizer.vocab_size
                    else "out of range"
                )
                raise ValueError(f"token {token} does not fit the grammar: {shown}")
            self._look_for_end()
        except (StencilError, ValueError) as error:
            self._fail(error)
        return not self._error

    def _look_for_end(self) -> None:
        """Stop a text that has ended, or that is complete and has no continuation."""
        matcher = self._at()
        if matcher.is_terminated():
            self._reason = "EndOfSentence"
        elif matcher.is_completed() and matcher.num_allowed_tokens() <= len(matcher.stop_token_ids):
            self._reason = "NoExtension"

    def _fail(self, error: Exception) -> None:
        self._error = str(error) or type(error).__name__
        self._reason = "ParserTooComplex" if isinstance(error, LimitExceeded) else "InternalError"


def _tokenizer(value: Any) -> LLTokenizer:
    if not isinstance(value, LLTokenizer):
        raise TypeError(f"tokenizer is a {type(value).__name__}, but must be an LLTokenizer")
    return value


def _check_limits(limits: Any) -> None:
    if limits is not None and not isinstance(limits, LLParserLimits):
        raise TypeError(
            f"limits is {shown_value(limits):.60}, but must be an LLParserLimits or None"
        )


def memory(
    matchers: Iterable[LLMatcher], address: int, mask_size: int, masks: int
) -> NDArray[np.int32]:
    """Consecutive masks at an address, which the caller guarantees to be valid.

    Raises:
        TypeError: The address, the size or the number is not an integer.
        ValueError: The address is 0 or not a multiple of 4, the number is below 1, or the size is
            not that of one mask of each matcher: with another stride, other memory would be
            overwritten.
    """
    address = whole_number("the pointer", address, least=0)
    size = whole_number("the size", mask_size, least=-MOST)
    masks = whole_number("trg_batch_size", masks, least=1)
    if address == 0:
        raise ValueError("the pointer is null")
    if address % 4:
        raise ValueError(f"the pointer is {address}, but must be a multiple of 4")
    for matcher in matchers:
        words = _words(matcher._tokenizer)
        if size != 4 * words:
            raise ValueError(
                f"the size is {size} bytes, but must be {4 * words}, that of one mask of "
                f"{matcher._tokenizer.vocab_size} tokens"
            )
    if size <= 0 or size % 4 or size * masks > MOST:
        raise ValueError(f"{masks} masks of {size} bytes are no whole number of 32-bit words")
    memory = (ctypes.c_int32 * (size // 4 * masks)).from_address(address)
    return np.ctypeslib.as_array(memory).reshape(masks, size // 4)


def _words(tokenizer: LLTokenizer) -> int:
    return -(-tokenizer.vocab_size // 32)


def _all_tokens(tokenizer: LLTokenizer) -> NDArray[np.int32]:
    bits = np.zeros(_words(tokenizer) * 32, dtype=np.uint8)
    bits[: tokenizer.vocab_size] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def _warning(finding: Any) -> str:
    return f"{finding.place}: {finding.keyword} is not enforced. {finding.note}".rstrip(" .")
