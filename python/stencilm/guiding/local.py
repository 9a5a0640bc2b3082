"""Guiding a model whose logits are at hand: it draws freely, and a refused token costs nothing.

One idea: every row of logits from a forward pass is used. A token is drawn from it without a mask;
if the grammar refuses it, the same row is masked and drawn from once more, so that a correction
costs no pass and has exactly the masked distribution. What need not be drawn (forced text) and what
can be guessed (runs that occurred before) is read by the model many tokens at a time; where it
draws something other than the guess, its key-value cache is cut there.

A draft is checked as it is written, because a check costs a microsecond and a forward pass
milliseconds: nothing is computed after a token that the grammar refuses.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stencilm.errors import MatcherError
from stencilm.generation.ends import is_over
from stencilm.generation.guesses import Guesser
from stencilm.generation.sampling import Normaliser
from stencilm.generation.trace import (
    Closed,
    Corrected,
    Ended,
    Event,
    Forced,
    Healed,
    Prompt,
    Rejected,
    Sampled,
    Trace,
)
from stencilm.guiding.backtrack import MAX_CANDIDATES, readable, shown_candidate
from stencilm.guiding.drafts import Answer, Consult
from stencilm.guiding.draws import Draws
from stencilm.guiding.healing import healer
from stencilm.guiding.reading import fitting
from stencilm.guiding.task import Account, Guided, Options, Status, filled_of
from stencilm.matching.matcher import GrammarMatcher
from stencilm.models.protocol import LanguageModel
from stencilm.models.reasoning import Reasoned
from stencilm.tokenizers.joint import RECENT_TOKENS

Steps: TypeAlias = Generator[Event | Consult, Answer | None, None]
Step: TypeAlias = Generator[Event | Consult, Answer | None, bool]


class LocalGuide:
    """One text being guided; `run` yields its events, and requests to a chooser.

    Args:
        model: A model; best if its sequences can check several tokens in one pass.
        matcher: A fresh matcher of the grammar after `healed`.
        prompt_ids: The tokens of the prompt and the seed that stay, at least one.
        healed: The text of the prompt's last tokens before they were taken back; the matcher begins
            with the part of it that belongs to the prompt.
        prompt_text: The prompt, for a chooser.
        options: How to draft and when to stop.
        has_chooser: A chooser decides instead of the mask.
        before: How many of the first bytes that the matcher accepts do not belong to the response.
        reasoned: What the model wrote before the text; it is part of the prompt's tokens.
    """

    def __init__(
        self,
        model: LanguageModel,
        matcher: GrammarMatcher,
        prompt_ids: Sequence[int],
        *,
        options: Options,
        prompt_text: str = "",
        has_chooser: bool = False,
        healed: bytes = b"",
        removed: Sequence[int] = (),
        before: int = 0,
        text: bytes = b"",
        reasoned: Reasoned | None = None,
    ) -> None:
        self.trace = Trace()
        self._model = model
        self._info = model.tokenizer_info
        self._matcher = matcher
        self._prompt_ids = list(prompt_ids)
        self._prompt_text = prompt_text
        self._options = options
        self._has_chooser = has_chooser
        self._before = before
        self._text = bytearray(text)
        self._token_ids: list[int] = []
        self._to_heal = healed
        self._taken_back = list(removed)
        self._draws = Draws(options.sampling, self._info.vocab_size)
        self._stop_token_ids = frozenset(matcher.stop_token_ids)
        self._account = Account(options.budget)
        self._reasoning: str | None = None
        if reasoned is not None:
            self._reasoning = reasoned.text
            self._account.add(calls=reasoned.passes, reasoning_tokens=reasoned.num_tokens)
        self._corrections = 0
        self._filled: list[tuple[int, int, str]] = []
        self._error: Exception | None = None
        self._stopped: str | None = None
        self._was_cut = False
        self._guesser = Guesser(model.tokenizer_info, prompt_ids, options.token_lookahead)
        self._sequence = model.start(self._prompt_ids)
        self._unread: list[int] = []
        self._ended: Ended | None = None

    def result(self) -> Guided:
        """The text with its trace. The generator of `run` must be at its end."""
        if self._ended is None:
            raise ValueError("the text is not finished: run it to the end before asking for it")
        return Guided(
            response=self.response,
            status=self._status,
            reason=self._ended.reason,
            trace=self.trace,
            usage=self._account.usage,
            process_time_seconds=self._account.seconds,
            error=self._error,
            seed=self._draws.seed,
            filled=filled_of(bytes(self._text[self._before :]), self._filled),
            is_written=self._account.usage.output_tokens > self._account.usage.discarded_tokens,
            stop_text=self._stopped,
            was_cut=self._was_cut,
            reasoning=self._reasoning,
        )

    @property
    def response(self) -> str:
        """The text so far, without the bytes of an incomplete character."""
        return bytes(self._text[self._before :]).decode("utf-8", "ignore")

    def run(self) -> Steps:
        """Yield events, which are then already in the trace, and requests, whose answers are sent.

        So no thread is blocked while a chooser decides.
        """
        steps = self._run()
        answer: Answer | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                return
            if not isinstance(step, Consult):
                self.trace.append(step)
            answer = yield step

    def _run(self) -> Steps:
        yield Prompt(
            token_ids=tuple(self._prompt_ids), text=self._info.decode_bytes(self._prompt_ids)
        )
        self._account.add(prompt_tokens=len(self._prompt_ids))
        while True:
            yield from self._read_forced()
            if self._is_over():
                yield self._end("valid", "the grammar is complete")
                return
            reason = self._account.exhausted() or self._full_context()
            if reason is not None:
                yield from self._close(reason)
                return
            guesses = self._guesses()
            rows = self._forward(guesses)
            finished = yield from self._use(rows, guesses)
            if finished:
                return

    def _use(self, rows: NDArray[np.float32], guesses: list[int]) -> Step:
        """Draw from each row as long as the guesses are right; True if the text has ended."""
        number = 0
        while number <= len(guesses):
            start = len(self._token_ids)
            if number > 0:
                yield from self._take_forced(guesses[number:])
                number += len(self._token_ids) - start
                if self._is_over():
                    self._forget_guesses(len(guesses) - number)
                    yield self._end("valid", "the grammar is complete")
                    return True
                if self._forced_tokens():
                    self._forget_guesses(len(guesses) - number)
                    return False
                start = len(self._token_ids)
            finished = yield from self._step(rows[number])
            if finished:
                return True
            written = self._token_ids[start:]
            if number == len(guesses) or written != [guesses[number]]:
                # The later guesses are wrong now.
                self._forget_guesses(len(guesses) - number)
                self._unread += written
                return False
            self._account.add(guessed_tokens=1)
            number += 1
        return False

    def _take_forced(self, guesses: list[int]) -> Generator[Event, None, None]:
        """Accept guesses that the grammar forces; the model has already read them."""
        for token_id in guesses:
            forced = self._forced_tokens()
            if forced[:1] != [token_id]:
                return
            self._accept(token_id)
            self._account.add(forced_tokens=1)
            yield Forced(token_ids=(token_id,), text=self._take(token_id))

    def _forget_guesses(self, count: int) -> None:
        """Crop wrong guesses from the sequence."""
        if count:
            self._account.add(discarded_tokens=count, output_tokens=count)
            self._sequence.crop(self._sequence.num_tokens - count)

    def _step(self, row: NDArray[np.float32]) -> Step:
        """Draw one token freely, or masked if that is refused; True if the text has ended."""
        normaliser = Normaliser(row)
        if self._to_heal:
            return (yield from self._heal(row, normaliser))
        token_id = self._draws.freely(row)
        self._account.add(output_tokens=1)
        if token_id is not None:
            logprob = normaliser.logprob(float(row[token_id]))
            if token_id in self._stop_token_ids and self._matcher.is_completed():
                yield self._end("valid", "the model ended the text")
                return True
            if token_id not in self._stop_token_ids and self._matcher.accept_token(token_id):
                text = self._take(token_id)
                yield Sampled(token_id=token_id, text=text, logprob=logprob, allowed=None)
                return (yield from self._stop_text(len(text)))
            yield self._refused(token_id, logprob)
        self._account.add(discarded_tokens=1)
        if self._corrections >= self._options.max_grammar_corrections:
            limit = self._options.max_grammar_corrections
            yield from self._close(f"{limit} corrections were made")
            return True
        self._corrections += 1
        if self._has_chooser and self._account.exhausted() is None:
            chosen = yield from self._choose()
            if chosen:
                return False
        return (yield from self._correct(row, normaliser))

    def _correct(self, row: NDArray[np.float32], normaliser: Normaliser) -> Step:
        """Draw once more from the same row, masked; True if the text has ended."""
        try:
            self._draws.mask(row, self._matcher)
        except MatcherError as error:
            yield from self._close(str(error))
            return True
        token_id = self._draws.of_allowed(row, self.response)
        self._account.add(output_tokens=1)
        logprob = normaliser.logprob(float(row[token_id]))
        if token_id in self._stop_token_ids and self._matcher.is_completed():
            yield Corrected(
                text=b"", token_id=token_id, logprob=logprob, candidates=(), means="mask"
            )
            yield self._end("valid", "the model ended the text")
            return True
        candidates = tuple(map(shown_candidate, self._matcher.candidates(MAX_CANDIDATES)))
        self._accept(token_id)
        text = self._take(token_id)
        yield Corrected(
            text=text, token_id=token_id, logprob=logprob, candidates=candidates, means="mask"
        )
        return (yield from self._stop_text(len(text)))

    def _heal(self, row: NDArray[np.float32], normaliser: Normaliser) -> Step:
        """Draw a token that spells what was taken back, and maybe more."""
        fits = healer(self._info).spelling(self._to_heal)
        fits[self._taken_back[:1]] = True
        self._draws.mask(row, self._matcher)
        row[: fits.size][~fits[: row.size]] = -np.inf
        token_id = self._draws.of_allowed(row, self.response)
        self._account.add(output_tokens=1)
        self._accept(token_id)
        text = self._info.decode_bytes([token_id])
        healed = min(len(text), len(self._to_heal))
        stays = token_id == self._taken_back[0]
        self._taken_back = self._taken_back[1:] if stays else []
        self._to_heal = self._to_heal[healed:]
        self._token_ids.append(token_id)
        self._guesser.extend([token_id])
        self._text += text[healed:]
        logprob = normaliser.logprob(float(row[token_id]))
        yield Healed(token_id=token_id, text=text, healed=healed, logprob=logprob)
        return (yield from self._stop_text(len(text) - healed))

    def _choose(self) -> Step:
        """Ask the chooser; False, with nothing changed, if its choice does not fit."""
        candidates = readable(self._matcher.candidates(MAX_CANDIDATES))
        answer = yield Consult(tuple(candidates), self._prompt_text + self.response)
        assert answer is not None, "invariant: a question is answered"
        self._account.add(calls=answer.calls, cost=answer.cost)
        if answer.error is not None:
            self._error = answer.error
        text = answer.text.encode("utf-8", "replace")
        text = text[: fitting(self._matcher, text)]
        token_ids = self._info.tokenize_bytes(text)
        if not token_ids or self._matcher.validate_tokens(token_ids) != len(token_ids):
            return False
        for token_id in token_ids:
            self._accept(token_id)
        shown = tuple(map(shown_candidate, candidates))
        self._text += text
        self._account.add(forced_tokens=len(token_ids))
        yield Corrected(text=text, token_id=None, logprob=None, candidates=shown, means="chooser")
        keep = len(token_ids)
        if self._options.token_healing:
            keep, self._to_heal = healer(self._info).split([self._last_token(), *token_ids])
            keep -= 1
            self._taken_back = token_ids[keep:]
            self._matcher.rollback(len(token_ids) - keep)
        self._token_ids += token_ids[:keep]
        self._guesser.extend(token_ids[:keep])
        return True

    def _read_forced(self) -> Iterator[Event]:
        """Accept forced tokens; the next pass reads them."""
        token_ids = self._forced_tokens()
        token_ids = token_ids[: max(0, min(self._room() - 1, self._account.tokens_left()))]
        if not token_ids:
            return
        text = b""
        for token_id in token_ids:
            self._accept(token_id)
            text += self._take(token_id)
        self._unread += token_ids
        self._account.add(forced_tokens=len(token_ids))
        yield Forced(token_ids=tuple(token_ids), text=text)

    def _forced_tokens(self) -> list[int]:
        if self._to_heal:
            return []
        recent = [*self._prompt_ids[-RECENT_TOKENS:], *self._token_ids[-RECENT_TOKENS:]][
            -RECENT_TOKENS:
        ]
        return self._matcher.find_jump_forward_tokens(recent)

    def _guesses(self) -> list[int]:
        """Tokens that may come next and that the grammar allows, to be checked in one pass."""
        if self._to_heal or not hasattr(self._sequence, "append_rows"):
            return []
        room = min(self._room() - 1, self._account.tokens_left() - 1)
        return self._guesser.guess(self._matcher, self._stop_token_ids, room)

    def _forward(self, guesses: list[int]) -> NDArray[np.float32]:
        """The logits after the text, and after each guess."""
        self._account.add(calls=1, cached_tokens=self._num_cached())
        unread, self._unread = self._unread, []
        if not guesses:
            rows = self._sequence.append(unread)[None, :]
        else:
            sequence: Any = self._sequence
            rows = sequence.append_rows([*unread, *guesses], len(guesses) + 1)
        rows[:, min(rows.shape[1], self._info.vocab_size) :] = -np.inf
        if self._options.debug:
            self._compare(rows)
        return np.asarray(rows)

    def _compare(self, rows: NDArray[np.float32]) -> None:
        """Compare the logits and the text with those of a sequence that was never cropped."""
        row = self._model.start([*self._prompt_ids, *self._token_ids]).append([])
        width = min(row.size, self._info.vocab_size)
        if not np.allclose(row[:width], rows[0, :width], atol=1e-2, rtol=1e-2):
            difference = float(np.abs(row[:width] - rows[0, :width]).max())
            raise AssertionError(
                f"invariant: logits after a cut are those of a fresh pass, but differ by "
                f"{difference:g} after {self.response[-40:]!r}"
            )

    def _num_cached(self) -> int:
        return int(getattr(self._sequence, "num_cached", 0))

    def _refused(self, token_id: int, logprob: float) -> Rejected:
        return Rejected(
            text=self._info.decode_bytes([token_id]),
            position=len(self._text) - self._before,
            token_id=token_id,
            logprob=logprob,
            reason=self._matcher.explain(token_id),
        )

    def _accept(self, token_id: int) -> None:
        if not self._matcher.accept_token(token_id):
            raise AssertionError(
                f"invariant: token {token_id} was allowed after {self.response[-40:]!r}"
            )

    def _take(self, token_id: int) -> bytes:
        """Record an accepted token."""
        text = self._info.decode_bytes([token_id])
        self._token_ids.append(token_id)
        self._guesser.extend([token_id])
        self._text += text
        return text

    def _last_token(self) -> int:
        return self._token_ids[-1] if self._token_ids else self._prompt_ids[-1]

    def _is_over(self) -> bool:
        return not self._to_heal and is_over(self._matcher, self._stop_token_ids)

    def _stop_text(self, length: int) -> Step:
        """End at a stop text that the last `length` bytes completed.

        Returns whether there is one.
        """
        for stop in self._options.stop_at:
            wanted = stop.encode()
            start = max(self._before, len(self._text) - length - len(wanted) + 1)
            at = self._text.find(wanted, start)
            if at < 0:
                continue
            self._stopped = stop
            yield from self._cut(at)
            yield from self._close(f"the stop text {stop!r} came")
            return True
        return False

    def _cut(self, length: int) -> Iterator[Event]:
        """Take back all text after its first `length` bytes: whole tokens, then single bytes."""
        removed = bytes(self._text[length:])
        kept = bytes(self._text[:length])
        self._to_heal = b""
        del self._text[length:]
        self._matcher.reset()
        if not self._matcher.accept_string(kept):
            raise AssertionError("invariant: the beginning of an accepted text is accepted")
        yield Rejected(
            text=removed,
            position=length - self._before,
            token_id=None,
            logprob=None,
            reason="a stop text",
        )

    def _close(self, reason: str) -> Iterator[Event]:
        """Complete the text in as few bytes as the grammar can."""
        self._was_cut = True
        if self._to_heal:  # the text has these bytes, but not the matcher
            self._matcher.accept_string(self._to_heal)
            self._to_heal = b""
        try:
            text = self._matcher.shortest_completion()
        except MatcherError as error:
            yield self._end("truncated", f"{reason}, and {error}")
            return
        if text:
            start = len(self._text) - self._before
            self._filled.append((start, start + len(text), "closed"))
            self._text += text
            yield Closed(text=text, reason=reason)
        yield self._end("closed" if text else "valid", reason)

    def _end(self, status: Status, reason: str) -> Ended:
        self._status: Status = status
        self._ended = Ended(status=status, reason=reason)
        return self._ended

    def _room(self) -> int:
        """How many more tokens the model's context can hold."""
        size = self._model.context_size
        return 1 << 30 if size is None else size - self._sequence.num_tokens - len(self._unread)

    def _full_context(self) -> str | None:
        return "the model's context is full" if self._token_ids and self._room() < 0 else None
