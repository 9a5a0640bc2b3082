"""The texts that the rows of a batch have written, each with its matcher.

One idea: a row is identified by its tokens, never by its number or by the previous call. From a
known text, a matcher rolls back to where the row differs and accepts the rest. So rows may step
forward and back by any number of tokens, be reordered, repeated and dropped.
"""

from __future__ import annotations

from array import array
from collections import ChainMap, OrderedDict, deque
from collections.abc import Iterable, Sequence
from copy import copy
from hashlib import blake2b
from typing import NamedTuple

from stencilm.errors import TokenizerError
from stencilm.matching.compiler import CompiledGrammar
from stencilm.matching.matcher import GrammarMatcher
from stencilm.matching.reasoning import (
    ReasoningFormat,
    ReasoningMatcher,
    begun,
    closing_after_reasoning,
)
from stencilm.shown import shown_value

_MOST_KEPT = 8
"""The number of sets of prompts with matchers, since a loop may alternate between several."""

_MOST_REMEMBERED = 1 << 16
"""The rows that are remembered without a matcher: more than any machine processes at once, and each
takes a few hundred bytes."""


class Written:
    """The text that one row has written after its prompt.

    Attributes:
        tokens: All of it, including refused tokens and the padding after the end.
        matcher: The matcher after the longest part that the grammar accepts.
    """

    __slots__ = ("matcher", "tokens")

    def __init__(self, tokens: list[int], matcher: GrammarMatcher | ReasoningMatcher) -> None:
        self.tokens = tokens
        self.matcher = matcher

    @property
    def is_over(self) -> bool:
        """Whether the text has ended; what follows is padding."""
        return self.matcher.is_terminated()

    @property
    def is_refused(self) -> bool:
        """Whether the grammar refuses one of the tokens."""
        return not self.is_over and self.matcher.num_accepted_tokens < len(self.tokens)

    def go_to(self, tokens: list[int]) -> None:
        """Move the matcher to another text: back to the common prefix, then forward."""
        taken = self.matcher.num_accepted_tokens
        kept = min(taken, common_length(self.tokens, tokens))
        if kept < taken:
            self.matcher.rollback(taken - kept)
        self.tokens = tokens  # first, because a limit may interrupt the loop
        for token_id in tokens[kept:]:
            if self.matcher.is_terminated() or not self.matcher.accept_token(token_id):
                break

    def fork(self) -> Written:
        """The same text with a matcher of its own."""
        return Written(self.tokens, self.matcher.fork())


class Rows:
    """The rows that come from one set of prompts."""

    def __init__(
        self,
        prompts: list[list[int]],
        grammars: Sequence[CompiledGrammar],
        reasoning: tuple[ReasoningFormat | None, int],
        max_new_tokens: int | None = None,
        whitespace_budget: int | None = None,
    ) -> None:
        self._prompts = prompts
        self._start = len(prompts[0])
        self._grammar_of = [
            grammars[number * len(grammars) // len(prompts)] for number in range(len(prompts))
        ]
        self._texts: list[Written] = []
        self._texts_of: list[int] = []
        for number, prompt in enumerate(prompts):
            # Rows with the same prompt and grammar begin with the same text.
            same = next(
                (
                    earlier
                    for earlier in range(number)
                    if prompts[earlier] == prompt
                    and self._grammar_of[earlier] is self._grammar_of[number]
                ),
                None,
            )
            if same is None:
                self._texts_of.append(len(self._texts))
                compiled = self._grammar_of[number]
                answer = new_matcher(compiled, whitespace_budget)
                matcher = begun(answer, compiled.tokenizer_info, *reasoning, prompt)
                if max_new_tokens is not None:
                    matcher = closing_after_reasoning(matcher, max_new_tokens)
                self._texts.append(Written([], matcher))
            else:
                self._texts_of.append(self._texts_of[same])
        self._family = list(self._texts_of)

    def family(self, number: int) -> list[int]:
        """The rows with the same prompt and grammar, between which beams may move."""
        return [other for other, one in enumerate(self._family) if one == self._family[number]]

    def begins(self, rows: list[list[int]]) -> bool:
        """Whether these rows begin with the prompts."""
        return len(rows) == len(self._prompts) and all(
            row[: self._start] == prompt for row, prompt in zip(rows, self._prompts, strict=True)
        )

    def steps(self, rows: list[list[int]]) -> int:
        """The most tokens in a row beyond its known text."""
        return max(
            len(row) - self._start - self._nearest(number, row[self._start :])[1]
            for number, row in enumerate(rows)
        )

    def go_to(self, rows: list[list[int]]) -> list[Written]:
        """The texts of these rows; equal rows share one."""
        wanted: dict[tuple[int, tuple[int, ...]], int] = {}
        sources: list[int] = []
        texts_of: list[int] = []
        for number, row in enumerate(rows):
            tokens = row[self._start :]
            key = (self._family[number], tuple(tokens))
            if key not in wanted:
                wanted[key] = len(sources)
                sources.append(self._nearest(number, tokens)[0])
            texts_of.append(wanted[key])
        # The last row that extends a text moves it; earlier ones take copies.
        left = [sources.count(text) for text in range(len(self._texts))]
        found = []
        for (_, tokens_wanted), source in zip(wanted, sources, strict=True):
            left[source] -= 1
            text = self._texts[source] if left[source] == 0 else self._texts[source].fork()
            found.append((text, list(tokens_wanted)))
        for text, tokens in found:
            text.go_to(tokens)
        self._texts = [text for text, _ in found]
        self._texts_of = texts_of
        return [self._texts[text] for text in texts_of]

    def fork(self) -> Rows:
        """The same rows with matchers of their own."""
        made = copy(self)
        made._texts = [text.fork() for text in self._texts]
        return made

    def latest(self) -> list[list[int]]:
        """The rows of the last call."""
        return [
            prompt + self._texts[text].tokens
            for prompt, text in zip(self._prompts, self._texts_of, strict=True)
        ]

    @property
    def start(self) -> int:
        """The number of tokens in the prompts."""
        return self._start

    def _nearest(self, number: int, tokens: list[int]) -> tuple[int, int]:
        """The known text with this row's prompt that shares the most tokens, and how many."""
        best, most = self._texts_of[number], -1
        for text in dict.fromkeys([best, *(self._texts_of[one] for one in self.family(number))]):
            shared = common_length(self._texts[text].tokens, tokens)
            if shared > most:
                best, most = text, shared
        return best, most


class RowStates:
    """The rows of successive calls: the prompts that they come from, and their texts.

    Only the latest sets of prompts keep their matchers. The rows of other sets are remembered as
    they were last; a row that continues from there is read again from the end of its prompt.
    """

    def __init__(
        self,
        grammars: Sequence[CompiledGrammar],
        reasoning: tuple[ReasoningFormat | None, int] = (None, 0),
        max_new_tokens: int | None = None,
        whitespace_budget: int | None = None,
    ) -> None:
        self.grammars = grammars
        self._reasoning = reasoning
        self.max_new_tokens = max_new_tokens
        self.whitespace_budget = whitespace_budget
        self._known: deque[Rows] = deque()
        # Rows without a matcher, by their digest.
        self._remembered: OrderedDict[bytes, _Origin] = OrderedDict()

    def forget(self) -> None:
        """Treat the next rows as new prompts."""
        self._known.clear()
        self._remembered.clear()

    def go_to(self, rows: list[list[int]]) -> tuple[Rows, list[Written]]:
        """The rows' texts; rows that continue nothing known are new prompts.

        Raises:
            ValueError: The grammars cannot be distributed among these rows.
        """
        for known in self._known:
            is_latest = known is self._known[0]
            if not known.begins(rows):
                continue
            steps = known.steps(rows)
            if steps > 1 and not is_latest:
                continue
            # Several steps at once are tried on a copy, because it may be a new prompt.
            gone_on = known if steps <= 1 else known.fork()
            written = gone_on.go_to(rows)
            if steps > 1 and any(one.is_refused or has_more(one) for one in written):
                # No loop writes several refused tokens without showing them: it is a new prompt
                # that begins like the previous text.
                continue
            self._known.remove(known)
            self._known.appendleft(gone_on)
            return gone_on, written
        if len(rows) % len(self.grammars):
            raise ValueError(
                f"{len(rows)} rows cannot be shared out among {len(self.grammars)} grammars: give "
                "one grammar for all, or one for each prompt of the batch"
            )
        start = self._start_of(rows)
        new, written = self._begun(rows, start)
        if start < len(rows[0]) and all(one.is_refused for one in written):
            # New prompts, one token longer than the rows of the last call.
            new, written = self._begun(rows, len(rows[0]))
        self._known.appendleft(new)
        while len(self._known) > _MOST_KEPT:
            self._remembered |= _origins(self._known.pop())
        while len(self._remembered) > _MOST_REMEMBERED:
            self._remembered.popitem(last=False)
        return new, written

    def _begun(self, rows: list[list[int]], start: int) -> tuple[Rows, list[Written]]:
        """A set whose prompts have so many tokens, gone to these rows."""
        bounds = (self.max_new_tokens, self.whitespace_budget)
        new = Rows([row[:start] for row in rows], self.grammars, self._reasoning, *bounds)
        return new, new.go_to(rows)

    def _start_of(self, rows: list[list[int]]) -> int:
        """How long the prompts of rows are that no set goes on with as it is.

        They are prompts as a whole, unless each of them is one that was shown before, or goes a
        step on from it: then its set has lost its matchers, or lost rows.

        Raises:
            ValueError: The set has lost rows, and several grammars, so that it cannot be told
                which row has which.
        """
        kept: dict[bytes, _Origin] = {}
        for known in reversed(self._known):
            kept |= _origins(known)
        origins = ChainMap(kept, self._remembered)
        for steps in (1, 0):
            found = {origins.get(_digest(row[: len(row) - steps])) for row in rows}
            starts = {None if one is None else one.start for one in found}
            if len(starts) == 1 and (start := starts.pop()) is not None:
                if start == len(rows[0]):  # prompts as they are, in a batch of any size
                    return start
                if len(self.grammars) > 1 and found != {_Origin(start, len(rows))}:
                    raise ValueError(
                        f"these {len(rows)} rows are no whole batch, so it cannot be told which of "
                        f"the {len(self.grammars)} grammars each has: show all rows of a batch at "
                        "every step, or use a processor for each grammar"
                    )
                return start
        return len(rows[0])


class _Origin(NamedTuple):
    """The set that a row comes from: its number of rows, and the length of its prompts."""

    start: int
    rows: int


def _origins(known: Rows) -> dict[bytes, _Origin]:
    """Of each row of a set, by its digest."""
    latest = known.latest()
    return {_digest(row): _Origin(known.start, len(latest)) for row in latest}


def _digest(row: list[int]) -> bytes:
    return blake2b(array("q", row).tobytes(), digest_size=16).digest()


def has_more(written: Written) -> bool:
    """Whether there are tokens after the end of the text."""
    return written.is_over and written.matcher.num_accepted_tokens < len(written.tokens)


def common_length(left: Sequence[int], right: Sequence[int]) -> int:
    """The length of the common prefix of two texts."""
    most = min(len(left), len(right))
    if left[:most] == right[:most]:
        return most
    low, high = 0, most  # left[:low] is equal, left[:high] is not
    while high - low > 1:
        middle = (low + high) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle
    return low


def new_matcher(compiled: CompiledGrammar, whitespace_budget: int | None = None) -> GrammarMatcher:
    """A matcher at the beginning; without stop tokens, a text only ends where the grammar ends."""
    return GrammarMatcher(
        compiled,
        terminate_without_stop_token=not compiled.tokenizer_info.stop_token_ids,
        whitespace_budget=whitespace_budget,
    )


def checked_grammars(
    owner: str, compiled: CompiledGrammar | Iterable[CompiledGrammar]
) -> list[CompiledGrammar]:
    """The grammars as a list, all of the same vocabulary.

    Raises:
        TypeError: Something else was given.
        TokenizerError: They were compiled for different vocabularies.
    """
    if isinstance(compiled, CompiledGrammar):
        grammars = [compiled]
    else:
        grammars = list(compiled) if isinstance(compiled, Iterable) else []
    if not grammars or not all(isinstance(one, CompiledGrammar) for one in grammars):
        raise TypeError(
            f"{owner} takes a CompiledGrammar, or one for each prompt; compiled is "
            f"{shown_value(compiled):.60}"
        )
    info = grammars[0].tokenizer_info
    for number, one in enumerate(grammars):
        if one.tokenizer_info != info:
            raise TokenizerError(
                f"grammar {number} was compiled for {one.tokenizer_info!r}, and grammar 0 for "
                f"{info!r}: one model has one vocabulary, so compile all with one GrammarCompiler"
            )
    return grammars
