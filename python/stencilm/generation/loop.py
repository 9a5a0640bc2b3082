"""The decode loop: mask, model, draw, accept, until the grammar or the model ends the text.

One idea: the grammar comes before the forward pass. Tokens that it forces are written without
asking the model, which reads them together with its next pass. If only stop tokens are allowed, the
text is done and the model is not asked again. So a text of n tokens costs at most n + 1 passes, and
a closed JSON object n minus the forced ones. The loop knows a model only by `LanguageModel` and a
grammar only by `TokenMatcher`; it records events and renders nothing.
"""

from __future__ import annotations

import codecs
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from stencilm.bitmask.arrays import apply_token_bitmask_inplace
from stencilm.errors import MatcherError, ModelError
from stencilm.generation.drafts import DraftedSequence, Drafter
from stencilm.generation.result import Filled, Generation
from stencilm.generation.sampling import Normaliser, Sampling, draw
from stencilm.generation.stats import Clock, Stats
from stencilm.generation.trace import (
    Event,
    FinishReason,
    Forced,
    Limit,
    Prompt,
    Reasoned,
    Sampled,
    Stopped,
    Trace,
)
from stencilm.matching.matcher import GrammarMatcher, closing_within
from stencilm.matching.reasoning import ReasoningMatcher
from stencilm.models.protocol import DraftSequence, LanguageModel, TokenSequence
from stencilm.tokenizers.joint import RECENT_TOKENS
from stencilm.whole_numbers import count

DEFAULT_MAX_TOKENS = 512


class TokenMatcher(Protocol):
    """The part of `GrammarMatcher` that the loop uses."""

    @property
    def stop_token_ids(self) -> Sequence[int]:
        """The tokens that end a text."""

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> bool:
        """Write the allowed tokens into a row; False if everything is allowed."""

    def accept_token(self, token_id: int) -> bool:
        """Accept one token; False if the grammar refuses it."""

    def find_jump_forward_tokens(self, recent_tokens: Sequence[int] | None = None) -> list[int]:
        """The tokens that must come next, in the tokenizer's spelling after the recent ones."""

    @property
    def temperature(self) -> float | None:
        """The grammar's temperature for the next token; None if it sets none."""

    def is_terminated(self) -> bool:
        """Whether the last token of the text was accepted."""

    def is_completed(self) -> bool:
        """Whether the text so far is a complete text of the grammar."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A request for the logits after these tokens, which the model has not read yet."""

    token_ids: tuple[int, ...]


class Decoding:
    """One sequence being generated: an iterator of trace events, one or more for each step.

    Streaming and views build on this; `generate` runs it to its end. `matcher` is a fresh matcher,
    or None for free text. Tokens that a `ReasoningMatcher` takes as reasoning belong neither to the
    text nor to `max_tokens`. With `fast_forward`, forced tokens are not drawn. The first of the
    texts in `stop` that occurs ends the text, and is not part of it. With `closes`, masks narrow
    near the end of `max_tokens` and of the model's context, so that the text is complete within
    them, unless even the shortest known text takes more. A `drafter` guesses the next tokens, which
    the model reads ahead if its sequences support that. Iterating raises MatcherError if the
    grammar has no continuation, and ModelError if the model's logits cannot be used; both concern
    this sequence alone.
    """

    def __init__(
        self,
        model: LanguageModel,
        matcher: TokenMatcher | None,
        prompt_ids: Sequence[int],
        *,
        sampling: Sampling | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        fast_forward: bool = True,
        stop: Sequence[str] = (),
        closes: bool = False,
        drafter: Drafter | None = None,
    ) -> None:
        max_tokens = count("max_tokens", max_tokens, least=1)
        self.trace = Trace()
        self.token_ids: list[int] = []
        self.text = b""
        self.finish_reason: FinishReason | None = None
        self.stop_text: str | None = None
        self._stops = [text.encode() for text in stop]
        self._reasoning = matcher if isinstance(matcher, ReasoningMatcher) else None
        answer: Any = matcher if self._reasoning is None else self._reasoning.answer
        # The matcher has read beyond a stop text, so a second one checks the text before it.
        self._start: Any = answer.fork() if self._stops and answer is not None else None
        self._model = model
        self._matcher = matcher
        self._prompt_ids = list(prompt_ids)
        self._sampling = Sampling() if sampling is None else sampling
        self._max_tokens = max_tokens
        self._seed = _seed_of(self._sampling)
        self._random = np.random.Generator(np.random.PCG64(self._seed))
        self._vocab_size = model.tokenizer_info.vocab_size
        self._sampling.check_tokens(self._vocab_size)
        self._mask = np.zeros((1, -(-self._vocab_size // 32)), dtype=np.int32)
        stop_owner = model.tokenizer_info if matcher is None else matcher
        self._stop_token_ids = frozenset(stop_owner.stop_token_ids)
        self._clock = Clock()
        self._fast_forward = fast_forward and matcher is not None
        self._num_reasoned = 0
        self._forward_passes = 0
        self._forced_tokens = 0
        self._seconds = 0.0
        self._steps = self._run()
        self._sequence: TokenSequence | None = None
        self._drafter = drafter
        # Position in the text, in bytes, from which the budget has overruled the model; None if the
        # model has been free since.
        self._closing: int | None = None
        self.shortest: int | None = None
        self._has_budget = self._is_narrowed = self._is_at_end = False
        if closes and matcher is not None:
            self._matcher = self._within_limits(cast("GrammarMatcher | ReasoningMatcher", matcher))
            if isinstance(self._matcher, ReasoningMatcher):
                self._reasoning = self._matcher

    def _within_limits(
        self, matcher: GrammarMatcher | ReasoningMatcher
    ) -> GrammarMatcher | ReasoningMatcher:
        """The matcher with the budget of this text, if it knows a text that short."""
        room = self._max_tokens
        if self._model.context_size is not None:
            before = len(self._prompt_ids)
            if isinstance(matcher, ReasoningMatcher):
                before += matcher.most_reasoning_tokens
            room = min(room, max(1, self._model.context_size + 1 - before))
        bounded, self.shortest = closing_within(matcher, room)
        self._has_budget = bounded is not matcher
        return bounded

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        step = self.step(None)
        while isinstance(step, Pass):
            start = perf_counter()
            if self._sequence is None:
                self._sequence = self._new_sequence()
            with self._clock.stage("model"):
                logits = self._sequence.append(step.token_ids)
            self._seconds += perf_counter() - start
            step = self.step(logits)
        return step

    def _new_sequence(self) -> TokenSequence:
        sequence = self._model.start(self._prompt_ids)
        if self._drafter is None or not isinstance(sequence, DraftSequence):
            return sequence
        return DraftedSequence(sequence, self._prompt_ids, self._guesses)

    def _guesses(self, token_ids: Sequence[int]) -> list[int]:
        """Tokens that may follow the prompt and the text; none while the model reasons."""
        matcher = self._matcher
        if isinstance(matcher, ReasoningMatcher):
            matcher = None if matcher.is_reasoning else matcher.answer
        if matcher is None or self._drafter is None:
            return []
        # The last token needs no guess: its row of logits already exists.
        room = self._max_tokens - len(self.token_ids) - 1
        if self._model.context_size is not None:
            room = min(room, self._model.context_size - len(token_ids))
        return self._drafter.guess(
            token_ids, cast("GrammarMatcher", matcher), self._stop_token_ids, max(room, 0)
        )

    @property
    def has_draft(self) -> bool:
        """Whether tokens are guessed, which needs a sequence of its own."""
        return self._drafter is not None

    def step(self, logits: NDArray[np.float32] | None) -> Event | Pass:
        """The next event, or a request for a forward pass, to be answered with logits.

        For drivers that run many texts in one pass; iterating runs the passes itself. Raises
        StopIteration at the end.
        """
        start = perf_counter()
        try:
            step = self._steps.send(logits)
        finally:
            self._seconds += perf_counter() - start
        if isinstance(step, Event):
            self.trace.append(step)
        return step

    @property
    def prompt_ids(self) -> list[int]:
        """The tokens of the prompt."""
        return self._prompt_ids

    @property
    def stats(self) -> Stats:
        """The cost so far."""
        seconds = self._clock.seconds
        saved = self._sequence.saved_passes if isinstance(self._sequence, DraftedSequence) else 0
        return Stats(
            prompt_tokens=len(self._prompt_ids),
            tokens=len(self.token_ids),
            reasoning_tokens=len(self._reasoning_ids),
            forced_tokens=self._forced_tokens,
            forward_passes=self._forward_passes - saved,
            saved_passes=saved,
            mask_seconds=seconds["mask"],
            model_seconds=seconds["model"],
            sampling_seconds=seconds["sampling"],
            seconds=self._seconds,
            seed=self._seed,
        )

    @property
    def safe_length(self) -> int:
        """How many bytes of the text can no longer become part of a stop text."""
        if self.finish_reason is not None or not self._stops:
            return len(self.text)
        longest = max(map(len, self._stops)) - 1
        for length in range(min(longest, len(self.text)), 0, -1):
            tail = self.text[-length:]
            if any(stop.startswith(tail) for stop in self._stops):
                return len(self.text) - length
        return len(self.text)

    def result(self) -> Generation[Any]:
        """The text with its trace, without a typed value. The iterator must be at its end."""
        if self.finish_reason is None:
            raise ValueError("the text is not finished: iterate to the end before asking for it")
        closed = self.finish_reason == "length" and self._closing is not None
        ended = self.finish_reason == "stop" or closed
        # `final=False` leaves out the bytes of a character that a limit cut in two.
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(self.text, final=ended)
        filled: tuple[Filled, ...] = ()
        if closed:
            start = len(self.text[: self._closing].decode("utf-8", "ignore"))
            filled = (Filled(start, len(text), text[start:], "closed"),)
        return Generation(
            text=text,
            token_ids=tuple(self.token_ids),
            finish_reason=self.finish_reason,
            is_complete=self._is_complete(),
            trace=self.trace,
            stats=self.stats,
            stop_text=self.stop_text,
            reasoning=None if self._reasoning is None else self._reasoning.reasoning,
            closed=closed,
            filled=filled,
        )

    def _is_complete(self) -> bool:
        if self._matcher is None:
            return True
        if self.stop_text is None:
            return self.finish_reason == "stop" or self._matcher.is_completed()
        start = self._start.fork()
        return bool(start.accept_string(self.text) and start.is_completed())

    def _reaches_stop(self, new: int) -> bool:
        """Whether a stop text ends within the last `new` bytes; cuts the text before it."""
        if not self._stops or not new:
            return False
        begin = max(0, len(self.text) - new - max(map(len, self._stops)) + 1)
        found = [(self.text.find(stop, begin), stop) for stop in self._stops]
        places = sorted(place for place in found if place[0] >= 0)
        if not places:
            return False
        self.text, self.stop_text = self.text[: places[0][0]], places[0][1].decode()
        return True

    def _run(self) -> Generator[Event | Pass, NDArray[np.float32] | None, None]:
        tokenizer_info = self._model.tokenizer_info
        yield Prompt(
            token_ids=tuple(self._prompt_ids), text=tokenizer_info.decode_bytes(self._prompt_ids)
        )
        unseen: list[int] = []  # tokens that the model has not read yet, besides the prompt
        while True:
            while forced := self._force():
                unseen = unseen + forced
                text = tokenizer_info.decode_bytes(forced)
                if self._has_reasoned():
                    yield Reasoned(token_ids=tuple(forced), text=text, logprob=None)
                    continue
                self._forced_tokens += len(forced)
                self.token_ids += forced
                self.text += text
                is_stopped = self._reaches_stop(len(text))
                yield Forced(token_ids=tuple(forced), text=text)
                if is_stopped:
                    yield self._stop("stop")
                    return
            with self._clock.stage("mask"):
                allowed, is_masked = self._fill_mask()
            if allowed == 0:
                yield self._ended()
                return
            limit = None if self._is_at_end else self._reached_limit()
            if limit is not None:
                yield self._stop("length", limit=limit)
                return
            logits = yield Pass(tuple(unseen))
            assert logits is not None, "invariant: a wish for logits is answered with some"
            self._forward_passes += 1
            token_id, logprob = self._choose(logits, is_masked)
            with self._clock.stage("mask"):
                is_end = self._accept(token_id)
            if is_end:
                yield self._ended(token_id=token_id, logprob=logprob)
                return
            text = tokenizer_info.decode_bytes([token_id])
            unseen = [token_id]
            if self._has_reasoned():
                yield Reasoned(token_ids=(token_id,), text=text, logprob=logprob)
                continue
            self.token_ids.append(token_id)
            self.text += text
            is_stopped = self._reaches_stop(len(text))
            yield Sampled(token_id=token_id, text=text, logprob=logprob, allowed=allowed)
            if is_stopped:
                yield self._stop("stop")
                return

    def _ended(self, *, token_id: int | None = None, logprob: float | None = None) -> Stopped:
        """The end of a complete text.

        If a budget has overruled the model, a limit is the reason.
        """
        if self._closing is None:
            return self._stop("stop", token_id=token_id, logprob=logprob)
        size = self._model.context_size
        is_context = size is not None and size + 1 - len(self._prompt_ids) < self._max_tokens
        limit: Limit = "context" if is_context else "max_tokens"
        return self._stop("length", token_id=token_id, logprob=logprob, limit=limit)

    def _stop(
        self,
        reason: FinishReason,
        *,
        token_id: int | None = None,
        logprob: float | None = None,
        limit: Limit | None = None,
    ) -> Stopped:
        self.finish_reason = reason
        return Stopped(reason=reason, token_id=token_id, logprob=logprob, limit=limit)

    def _has_reasoned(self) -> bool:
        """Whether the last accepted tokens are reasoning, not text."""
        if self._reasoning is None:
            return False
        before, self._num_reasoned = self._num_reasoned, len(self._reasoning_ids)
        return before < self._num_reasoned

    @property
    def _reasoning_ids(self) -> Sequence[int]:
        return () if self._reasoning is None else self._reasoning.reasoning_token_ids

    @property
    def _num_tokens(self) -> int:
        return len(self._prompt_ids) + len(self._reasoning_ids) + len(self.token_ids)

    def _reached_limit(self) -> Limit | None:
        if len(self.token_ids) >= self._max_tokens:
            return "max_tokens"
        context_size = self._model.context_size
        # If the prompt alone is too long, nothing was generated, and the model raises the error.
        has_begun = bool(self.token_ids or self._reasoning_ids)
        if has_begun and context_size is not None and self._num_tokens > context_size:
            return "context"
        return None

    def _force(self) -> list[int]:
        """Accept the tokens that must come next and fit the limits; none if the model decides."""
        if not self._fast_forward or self._matcher is None:
            return []
        room = self._max_tokens - len(self.token_ids)
        if self._model.context_size is not None:
            # The last token of a full context predicts one more, as `_reached_limit` allows.
            room = min(room, self._model.context_size + 1 - self._num_tokens)
        if room <= 0:
            return []
        with self._clock.stage("mask"):
            # The prompt counts as well: its end and the text may be tokenized together.
            recent = self.token_ids[-RECENT_TOKENS:]
            if len(recent) < RECENT_TOKENS:
                before = [*self._prompt_ids[-RECENT_TOKENS:], *self._reasoning_ids]
                recent = before[len(recent) - RECENT_TOKENS :] + recent
            forced = self._matcher.find_jump_forward_tokens(recent)[:room]
            for token_id in forced:
                self._accept(token_id)
        return forced

    def _fill_mask(self) -> tuple[int | None, bool]:
        """How many tokens may come next, and whether the mask must be applied.

        0 means that the text has ended; None means "no grammar". Raises MatcherError if the grammar
        is not complete but allows no token.
        """
        matcher = self._matcher
        if matcher is None:
            return None, False
        if matcher.is_terminated():
            return 0, False
        if not matcher.fill_next_token_bitmask(self._mask, 0):
            self._closing = None
            return self._vocab_size, False
        bits = np.unpackbits(self._mask.view(np.uint8), bitorder="little")[: self._vocab_size]
        allowed = int(np.count_nonzero(bits))
        if allowed == 0:
            raise MatcherError(
                f"no token of this vocabulary can follow {_tail(self.text)}: the grammar needs "
                "bytes that the tokenizer cannot spell here"
            )
        self._is_narrowed = self._has_budget and cast("GrammarMatcher", matcher).is_narrowed
        if allowed > 1 and not self._is_narrowed:
            self._closing = None  # The budget has room for whatever the grammar allows.
        if allowed <= len(self._stop_token_ids):
            token_ids = [int(token_id) for token_id in np.flatnonzero(bits)]
            if self._stop_token_ids.issuperset(token_ids) and not self._asks_for_end():
                # Only the end can follow, so the matcher ends without asking the model.
                self._accept(token_ids[0])
                return 0, False
        return allowed, True

    def _asks_for_end(self) -> bool:
        """Whether to ask the model although only the end may come: it might have continued.

        That is so if only the budget removed the other tokens. If the context is full, the model
        cannot be asked, and the text counts as closed.
        """
        if not self._is_narrowed or self._closing is not None:
            return False
        size = self._model.context_size
        if size is not None and self._num_tokens > size:
            self._closing = len(self.text)
            return False
        self._is_at_end = True
        return True

    def _choose(self, logits: NDArray[np.float32], is_masked: bool) -> tuple[int, float]:
        """Draw the next token; returns its id and its log probability under the model alone."""
        width = min(logits.size, self._vocab_size)
        with self._clock.stage("sampling"):
            logits[width:] = -np.inf  # padding beyond the vocabulary is not a token
            normaliser = Normaliser(logits)
        overruled = False
        if is_masked:
            with self._clock.stage("mask"):
                overruled = self._is_narrowed and self._is_overruled(logits[:width])
                apply_token_bitmask_inplace(logits[None, :], self._mask, vocab_size=width)
        with self._clock.stage("sampling"):
            sampling = self._sampling_here()
            try:
                token_id = draw(
                    logits,
                    sampling,
                    self._random,
                    prompt_ids=(
                        [*self._prompt_ids, *self._reasoning_ids]
                        if self._num_reasoned and sampling.changes_scores
                        else self._prompt_ids
                    ),
                    written=self.token_ids,
                )
            except ValueError as error:
                raise ModelError(f"after {_tail(self.text)}, {error}") from error
            if token_id is None:
                raise ModelError(
                    f"after {_tail(self.text)}, the model gives a probability of zero to every "
                    "token that the grammar allows"
                )
            if overruled and self._closing is None:
                self._closing = len(self.text)
            return token_id, normaliser.logprob(float(logits[token_id]))

    def _is_overruled(self, logits: NDArray[np.float32]) -> bool:
        """Whether the budget excluded the grammar's most probable token."""
        withheld = cast("GrammarMatcher", self._matcher).withheld_tokens()
        withheld = withheld[withheld < logits.size]
        bits = np.unpackbits(self._mask.view(np.uint8), bitorder="little")[: logits.size]
        return bool(logits[withheld].max(initial=-np.inf) > logits[bits == 1].max(initial=-np.inf))

    def _sampling_here(self) -> Sampling:
        """The sampling of the next token: the grammar's temperature overrides that of the call."""
        temperature = None if self._matcher is None else self._matcher.temperature
        if temperature is None:
            return self._sampling
        sampling = replace(self._sampling, temperature=temperature)
        if self._seed is None and not sampling.is_greedy:
            # A greedy call needs no seed until the grammar sets a temperature.
            self._seed = _seed_of(sampling)
            self._random = np.random.Generator(np.random.PCG64(self._seed))
        return sampling

    def _accept(self, token_id: int) -> bool:
        """Advance the matcher; returns whether the token ended the text."""
        if self._matcher is None:
            return token_id in self._stop_token_ids
        if not self._matcher.accept_token(token_id):
            raise AssertionError(
                f"invariant: token {token_id} was allowed by the mask after {_tail(self.text)}"
            )
        return token_id in self._stop_token_ids and self._matcher.is_terminated()


def generate(
    model: LanguageModel,
    matcher: TokenMatcher | None,
    prompt_ids: Sequence[int],
    *,
    sampling: Sampling | None = None,
    max_tokens: int = DEFAULT_MAX_TOKENS,
    fast_forward: bool = True,
) -> Generation[Any]:
    """Generate one text from its first token to its last; see `Decoding` for errors."""
    decoding = Decoding(
        model,
        matcher,
        prompt_ids,
        sampling=sampling,
        max_tokens=max_tokens,
        fast_forward=fast_forward,
    )
    for _ in decoding:
        pass
    return decoding.result()


def _seed_of(sampling: Sampling) -> int | None:
    """The seed of the draws; a new one is recorded, so that the text can be reproduced."""
    if sampling.is_greedy or sampling.seed is not None:
        return sampling.seed
    return int(np.random.SeedSequence().generate_state(1)[0])


def _tail(text: bytes, limit: int = 40) -> str:
    """The end of the text, short enough for an error message."""
    shown = text[-limit:].decode("utf-8", "backslashreplace")
    return f"{'…' if len(text) > limit else ''}{shown!r}" if text else "the prompt"
