"""Guide any function from text to text: functions and endpoints, whose logits are not visible.

One idea: a matcher reads the draft and gives one of three verdicts. Complete: done. Viable: no
error, continue drafting. Dead at byte i: keep what fits, append one candidate, and continue
drafting after it. So every correction makes the text longer, and no draft can keep it from ending.
The loop yields requests and is sent the answers (`drafts.Ask`), so functions, coroutines and tests
can all drive it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from stencilm.characters import first_character, shared_length, whole_length
from stencilm.errors import EndpointError, MatcherError, ModelRefused
from stencilm.generation.ends import is_over
from stencilm.generation.result import MADE_UP
from stencilm.generation.trace import (
    Called,
    Closed,
    Corrected,
    Drafted,
    Ended,
    Event,
    Forced,
    Prompt,
    Rejected,
    TakenBack,
    Trace,
)
from stencilm.grammars.grammar import Grammar
from stencilm.guiding.backtrack import (
    MAX_CANDIDATES,
    behind_respelled,
    cut_place,
    cut_word,
    end_of_text,
    is_aside,
    is_respelled,
    nearest,
    readable,
    shown_candidate,
    shown_start,
)
from stencilm.guiding.drafts import (
    BYTES_FOR_A_TOKEN,
    Answer,
    Ask,
    AskKind,
    Consult,
    estimated_tokens,
    reasoned_tokens,
)
from stencilm.guiding.loose_json import begins_with_a_value
from stencilm.guiding.means import First, Means
from stencilm.guiding.overlaps import Overlap
from stencilm.guiding.reading import (
    fitting,
    forced_whitespace,
    said_again,
    start_of_text,
    takes_any_character,
    until_stop,
    without_repetition,
)
from stencilm.guiding.rereading import begins_again
from stencilm.guiding.rewriting import Reread, content
from stencilm.guiding.task import Account, Guided, Options, Status, filled_of
from stencilm.guiding.transcript import Anew, says
from stencilm.guiding.written import Written
from stencilm.matching.candidates import Candidate, Literal
from stencilm.matching.matcher import GrammarMatcher

Asking: TypeAlias = Generator[Event | Ask | Consult, Answer | None, Any]

MAX_UNFIT = 2
"""Answers in a row with nothing that fits before a model is held to have refused, and answers in a
row that broke off before its endpoint is held to have failed."""
MAX_HELD = 8
"""Drafts in a row that are noted, and not read, where the text has no place for them yet; more,
where they say little beside all that was said before."""
MIN_REPEATED = 48
"""Bytes of text that says the same again, at least twice in a row, before a drafter is held to
repeat itself."""
MAX_BIASED_TOKENS = 300
_LEAST_LOOKAHEAD = 4
_WHOLE_RUN = 65_000


class TextGuide:
    """One text being guided; `run` yields requests, `trace` records, `result` returns the text.

    Args:
        matcher: A fresh matcher of the grammar.
        grammar: The grammar, for endpoints that enforce it themselves.
        prompt: The drafter's prompt: text, or messages for an endpoint.
        options: How to draft and when to stop.
        means: What the drafter can do.
        vocab_size: The number of tokens of the matcher's vocabulary.
        has_chooser: A chooser is consulted about candidates before the drafter is asked.
        first: The request before the text; None for none.
    """

    def __init__(
        self,
        matcher: GrammarMatcher,
        grammar: Grammar,
        prompt: Any,
        *,
        options: Options,
        means: Means,
        vocab_size: int,
        has_chooser: bool = False,
        first: First | None = None,
    ) -> None:
        self.trace = Trace()
        self.account = Account(options.budget)
        seed = options.seed_str.encode()
        self._written = Written(matcher, grammar, seed, self.account.is_late)
        self._held = 0  # consecutive drafts that were noted but not read
        self._says_forced = False  # the last draft repeated a part of the forced text
        self._grammar = grammar
        self._prompt = prompt
        self._options = options
        self._means = means
        self._vocab_size = vocab_size
        self._has_chooser = has_chooser
        self._first = first
        self._reasoning: list[str] = []
        self._lookahead = options.token_lookahead
        self._refused: set[AskKind] = set()
        self._unfit = 0  # answers in a row of which nothing was kept
        self._words = ""  # what the last of them said
        self._failure: Exception | None = None  # of the last call of the drafter that failed
        self._broken = 0  # answers in a row that broke off
        self._error: Exception | None = None
        self._complaint: str | None = None
        self._complained_at = -1
        self._was_blank = False
        self._kept_last = b""  # the last draft that was kept as a whole
        self._repetitions = 0  # how many before it in a row said the same
        self._corrections = 0
        self._is_cut = False  # the last answer was, so that more of it may come
        self._stopped: str | None = None
        self._was_cut = False
        self._ended: Ended | None = None
        self._status: Status = "truncated"

    @property
    def response(self) -> str:
        """The text so far."""
        return self._written.text.decode("utf-8", "ignore")

    @property
    def start(self) -> GrammarMatcher:
        """A new matcher at the beginning."""
        return self._written.start.fork()

    def result(self) -> Guided:
        """The text with its trace; only after `run` has ended."""
        if self._ended is None:
            raise ValueError("the text is not finished: run to the end before asking for it")
        left_out = tuple(self._written.left_out)
        others, lost = self._written.transcript.untold(self.response, left_out, is_cut=self._is_cut)
        return Guided(
            response=self.response,
            status=self._status,
            reason=self._ended.reason,
            trace=self.trace,
            usage=self.account.usage,
            process_time_seconds=self.account.seconds,
            error=self._error,
            seed=self._options.sampling.seed,
            filled=filled_of(bytes(self._written.text), self._written.filled),
            is_written=self._written.kept > 0,
            lost=lost,
            left_out=(*left_out, *others),
            stop_text=self._stopped,
            was_cut=self._was_cut,
            reasoning="\n\n".join(self._reasoning) or None,
        )

    def run(self) -> Asking:
        """Events, and requests to be answered by `send`.

        Raises EndpointError if a call fails and no other form of it may work, or if answers break
        off one after another; and ModelRefused if a model that may refuse wrote nothing that fits.
        """
        prompt = self._prompt if isinstance(self._prompt, str) else repr(self._prompt)
        yield Prompt(token_ids=(), text=prompt.encode("utf-8", "replace"))
        if self._first is not None:
            yield from self._ask_first(self._first)
        seed = self._options.seed_str.encode()
        if seed:
            self._written.accept(seed)
            self._written.transcript.add(seed, is_drafted=False)
            yield Forced(token_ids=(), text=seed)
        wants_whole = self._means.whole and not seed
        while self._ended is None:
            # A drafter that answers as a whole starts at the beginning, until some text exists.
            is_at_start = wants_whole or (self._answers_as_a_whole() and not self._written.text)
            if not is_at_start and not self._written.is_held:
                yield from self._write_forced()
            if (
                is_over(self._written.matcher, self._written.matcher.stop_token_ids)
                and not self._written.is_held
            ):
                yield self._end("valid", "the grammar is complete")
                break
            reason = self.account.exhausted()
            if reason is not None:
                yield from self._close(reason)
                break
            answer = yield from self._ask("whole" if wants_whole else "draft")
            # A native request that an endpoint refuses may still work as a draft.
            wants_whole = False
            if self._has_failed(answer):
                continue
            kept = self._written.kept
            yield from self._read_marked(answer)
            self._check_broken(answer)
            fits = self._written.kept > kept or self._held or self._says_forced
            self._unfit = 0 if fits else self._unfit + 1
            self._words = answer.text or self._words
            if self._ended is None and self._means.may_refuse and self._unfit >= MAX_UNFIT:
                self._check_refusal()
                if self._unfit > MAX_UNFIT:
                    yield from self._close(f"nothing of {self._unfit} answers in a row fits")
        if self._status != "valid":
            self._check_refusal()

    def _ask_first(self, first: First) -> Generator[Event | Ask, Answer | None, None]:
        """Ask for the reasoning, or for a draft, and include it in the prompt from then on."""
        sampling = self._options.sampling
        given = yield Ask(
            kind=first.kind,
            prompt=first.steps.first(self._prompt),
            prefix="",
            max_tokens=first.max_tokens,
            grammar=first.grammar,
            timeout=max(0.001, self._options.budget.seconds - self.account.seconds),
            temperature=self._options.temperature,
            top_p=sampling.top_p,
            seed=sampling.seed,
            sampling=sampling,
        )
        assert given is not None, "invariant: a question is answered"
        # All of it precedes the text.
        asked = replace(given, reasoning=given.text, reasoning_tokens=given.output_tokens, text="")
        answer = yield from self._counted(asked)
        if not self._has_failed(answer) and given.text.strip():
            self._prompt = first.steps.then(self._prompt, given.text)

    def _has_failed(self, answer: Answer) -> bool:
        """Whether a call failed in a way that another request may replace; raises all other errors.

        A call that the time budget cut short only ends the text, if there is any.
        """
        if answer.error is None:
            return False
        self._failure = answer.error
        is_spent = self._written.kept > 0 and self.account.exhausted() is not None
        if not answer.is_unsupported and not is_spent:
            if isinstance(answer.error, EndpointError):
                answer.error.text = self.response
            raise answer.error
        return True

    def _check_broken(self, answer: Answer) -> None:
        """Raise if answers break off one after another, and not because the time is up."""
        error = answer.broke_off
        self._broken = 0 if error is None else self._broken + 1
        if error is None:
            return
        self._error = error
        if self._broken < MAX_UNFIT or self._ended is not None or self.account.exhausted():
            return
        if isinstance(error, EndpointError):
            error.text = self.response
        raise error

    def _check_refusal(self) -> None:
        """Raise if a model that may refuse was asked, and wrote nothing of this text."""
        if not self._means.may_refuse or self._written.kept:
            return
        if self._unfit == 0 and self._failure is not None:
            raise self._failure
        if self._unfit:
            raise ModelRefused.of("unfit" if self._words.strip() else "empty", self._words)

    def _answers_as_a_whole(self) -> bool:
        return self._means.may_refuse and not self._means.drafts_in_parts

    def _ask(self, kind: AskKind, **more: Any) -> Generator[Event | Ask, Answer | None, Answer]:
        budget = self._options.budget
        max_tokens = self.account.tokens_left()
        if kind == "draft" and self._means.drafts_in_parts:
            max_tokens = min(self._lookahead, max_tokens)
        sampling = self._options.sampling
        given = yield Ask(
            kind=kind,
            prompt=self._prompt,
            prefix=self.response,
            max_tokens=max(1, max_tokens),
            grammar=self._grammar,
            complaint=self._complaint,
            timeout=max(0.001, budget.seconds - self.account.seconds),
            stop=self._options.stop_at,
            fits=self._is_worth_reading,
            temperature=self._options.temperature,
            top_p=sampling.top_p,
            seed=sampling.seed,
            sampling=sampling,
            is_bounded=self._options.has_budget
            or (kind == "draft" and self._means.drafts_in_parts),
            refused=frozenset(self._refused),
            reasoning=self._options.reasoning,
            **more,
        )
        answer = yield from self._counted(given)
        if answer.is_unsupported:
            self._refused.add(kind)
        return answer

    def _consult(self, candidates: Sequence[Candidate]) -> Generator[Any, Answer | None, Answer]:
        """The chooser's choice of what comes next."""
        prompt = self._prompt if isinstance(self._prompt, str) else ""
        answer = yield Consult(tuple(candidates), prompt + self.response)
        assert answer is not None, "invariant: a question is answered"
        return (yield from self._counted(answer)) if answer.calls else answer

    def _counted(self, answer: Answer | None) -> Generator[Event, Any, Answer]:
        """Count the cost of an answer.

        Numbers that were not reported are estimated from lengths.
        """
        assert answer is not None, "invariant: a question is answered"
        estimated = answer.error is None and answer.output_tokens is None
        output = answer.output_tokens or 0
        if estimated:
            output = estimated_tokens(answer.text) + estimated_tokens(answer.reasoning)
        reasoned = reasoned_tokens(answer, output)
        if answer.reasoning.strip():
            self._reasoning.append(answer.reasoning.strip())
        given = answer.prompt_tokens or (estimated_tokens(f"{self._prompt}{self.response}"))
        self.account.is_estimate |= estimated or (
            answer.reasoning_tokens is None and bool(answer.reasoning)
        )
        self.account.add(
            calls=answer.calls,
            prompt_tokens=given,
            output_tokens=output - reasoned,
            reasoning_tokens=reasoned,
            cached_tokens=answer.cached_tokens,
            cost=answer.cost,
        )
        error = answer.error
        if error is not None:
            self._error = error
        yield Called(
            means=answer.means,
            prompt_tokens=given,
            output_tokens=output,
            cached_tokens=answer.cached_tokens,
            seconds=answer.seconds,
            error=None if error is None else f"{type(error).__name__}: {error}",
        )
        return answer

    def _read_marked(self, answer: Answer) -> Asking:
        """Read an answer, and mark its beginning where it may only say again what stands there.

        Who was asked in words to go on may begin a little before the end; a function is told where
        the text ends, and goes on there if it can.
        """
        # A text much longer than its tokens may be is not read to its end.
        longest = 64 + 16 * self._options.budget.tokens
        draft = answer.text[:longest].encode("utf-8", "replace")
        draft, stopped = until_stop(draft, self._options.stop_at)
        self._is_cut = answer.is_finished is False
        self._stopped = self._stopped or stopped
        is_empty = not draft
        start, again, without = len(self._written.text), Overlap(), None
        if self._written.text.startswith((b"{", b"[")):
            again = self._written.transcript.overlap(draft)
        if again.length or self._answers_as_a_whole():
            without = self._written.transcript.read_without(draft, again)
        heard, draft = draft, draft[again.length :]
        yield from self._read(answer, draft, stopped, is_empty=is_empty)
        self._written.transcript.hear(heard)
        if without is not None and says(bytes(self._written.text)) > says(without.text):
            end = min(start + again.doubtful, len(self._written.text))
            self._written.filled.append((start, end, "repeated"))

    def _read(self, answer: Answer, draft: bytes, stopped: str | None, *, is_empty: bool) -> Asking:
        """Take what fits from a draft, and correct what follows.

        Args:
            answer: The answer.
            draft: The part of it that is not a repetition.
            stopped: The stop text at which it ended.
            is_empty: It had no text at all.
        """
        written = self._written
        said, is_held = draft, written.is_held
        if written.owes_comma and begins_with_a_value(draft.decode("utf-8", "ignore")):
            draft = b"," + draft
        written.is_held = False
        may_hold = self._held < MAX_HELD or not written.transcript.has_grown
        if is_held and may_hold and stopped is None and written.transcript.hold(said):
            self._held += 1
            written.is_held, written.owes_comma = True, False
            yield self._rejected(said, "the text has no place for it yet")
            return
        self._held = 0
        self._says_forced = stopped is None and written.says_forced(draft)
        if self._says_forced:
            self._was_blank = False
            return
        whole, forced = draft, bytes(written.text[len(written.text) - written.forced :])
        draft = self._without_repetition(draft)
        # A draft that repeats the whole text starts at the beginning.
        is_part = len(forced) < len(written.text)
        if is_part and 0 < len(whole) - len(draft) == said_again(forced, whole):
            whole = draft
        # A draft that repeats the text and is cut again has not ended it.
        says_more = bool(draft) or (self._answers_as_a_whole() and not is_empty)
        verdict = written.matcher.longest_valid_prefix(draft)
        whitespace = forced_whitespace(written.matcher, draft) if verdict.status == "dead" else b""
        if whitespace:
            written.accept(whitespace)
            written.transcript.add(whitespace)
            yield Forced(token_ids=(), text=whitespace)
            verdict = written.matcher.longest_valid_prefix(draft)
        if self._corrections < self._options.max_grammar_corrections:
            otherwise = written.otherwise(
                said, whole, draft, is_held=is_held, is_finished=not self._is_cut
            )
            is_again = begins_again(bytes(written.text), whole, self.account.is_late)
            if isinstance(otherwise, Anew):
                yield from self._write_anew(said, otherwise)
                yield from self._after_whole(stopped, answer, otherwise.reread)
                return
            if otherwise is not None:
                self._adapt(answer, draft, len(draft))
                yield from self._write_reread(whole, otherwise, None if is_again else draft)
                yield from self._after_whole(stopped, answer, otherwise)
                return
            if verdict.status == "dead" and is_again:
                yield from self._correct(whole, "the draft begins again, and tells nothing new")
                return
        if verdict.status == "dead" and not written.has_draft:
            draft = yield from self._skip_to_text(draft)
            verdict = written.matcher.longest_valid_prefix(draft)
        self._adapt(answer, draft, verdict.valid_bytes)
        if verdict.status == "dead":
            yield from self._backtrack(draft)
            return
        if verdict.status == "viable" and (stopped is not None or answer.is_finished is not False):
            draft = draft[: end_of_text(written.matcher, draft)]
            verdict = written.matcher.longest_valid_prefix(draft)
        if self._repeats_itself(answer, draft):
            reason = "one draft after another says the same"
            self._discard(draft)
            yield self._rejected(draft, reason)
            yield from self._close(reason)
            return
        written.has_draft = written.has_draft or bool(draft.strip())
        if draft:
            written.keep(draft)
            yield Drafted(text=draft)
        if stopped is not None:
            yield from self._close(f"the stop text {stopped!r} came")
        elif verdict.status == "complete" and (answer.is_finished is not False or not says_more):
            yield self._end("valid", "the draft ended the text")
        elif is_empty or (self._was_blank and not draft.strip()):
            yield from self._correct(b"", "the draft ended before the text was complete")
        self._was_blank = not draft.strip()

    def _repeats_itself(self, answer: Answer, draft: bytes) -> bool:
        """Whether a drafter says the same again and again within a string that may end here.

        It takes no notice of the text so far, and would fill the string until the budget is spent.
        A draft that was cut at its greatest length proves nothing: a text may have such a part.
        """
        is_again = draft == self._kept_last
        self._kept_last, self._repetitions = draft, self._repetitions + 1 if is_again else 0
        if self._repetitions < MAX_UNFIT or self._repetitions * len(draft) < MIN_REPEATED:
            return False
        if answer.is_finished is False or not takes_any_character(self._written.matcher):
            return False
        end = self._written.shortest()[:1]  # else a character that only fills the string
        return bool(end) and not (end.isalnum() or end.isspace())

    def _write_anew(self, draft: bytes, anew: Anew) -> Generator[Event, None, None]:
        """Replace the text by another one."""
        self._corrections += 1
        old = bytes(self._written.text)
        start = shared_length(old, anew.text)
        if start < len(old):
            yield TakenBack(text=old[start:], position=start)
        yield self._rejected(draft, "JSON of another form than the grammar has")
        self._written.put_anew(anew, start)
        text = anew.text[start:]
        yield Corrected(text=text, token_id=None, logprob=None, candidates=(), means="reread")

    def _after_whole(
        self, stopped: str | None, answer: Answer, found: Reread
    ) -> Generator[Event, None, None]:
        """End the text if a draft that was read as JSON ends it."""
        if stopped is not None:
            yield from self._close(f"the stop text {stopped!r} came")
        elif found.is_complete and answer.is_finished is not False:
            yield self._end("valid", "the draft ended the text")

    def _write_reread(
        self, draft: bytes, found: Reread, more: bytes | None
    ) -> Generator[Event, None, None]:
        """Take the contents of a draft, but not its form.

        Args:
            draft: The draft.
            found: Its contents, in the grammar's form.
            more: The part of it after everything before; None if it repeats all of that.
        """
        self._corrections += 1
        lost = max(0, content(draft) - found.kept)
        self.account.add(discarded_tokens=-(-lost // BYTES_FOR_A_TOKEN))
        yield self._rejected(draft, "JSON of another form than the grammar has")
        self._written.accept(found.text)
        is_of_all = False
        if more is None:
            self._written.transcript.take(draft)
        else:
            is_of_all = self._written.transcript.add_draft(draft, more)
        self._written.after_reread(found, is_of_all=is_of_all)
        self._written.kept += found.kept
        yield Corrected(text=found.text, token_id=None, logprob=None, candidates=(), means="reread")

    def _adapt(self, answer: Answer, draft: bytes, valid: int) -> None:
        """Adapt the number of tokens to what was useful; double it if all of them were.

        If streaming ends answers early, a shorter draft would only cost more calls.
        """
        most = self._options.token_lookahead
        if valid == len(draft):
            self._lookahead = min(most, 2 * self._lookahead)
        elif not answer.is_cut:
            right = -(-valid // BYTES_FOR_A_TOKEN)
            self._lookahead = max(min(_LEAST_LOOKAHEAD, most), (self._lookahead + right) // 2)

    def _backtrack(self, draft: bytes) -> Asking:
        """Keep the part of a dead draft that fits, and append a candidate."""
        # Where a text ends, a blank that fits is no word for one that goes on.
        valid = end_of_text(self._written.matcher, draft)
        if (begun := self._written.unclear_from(draft, valid)) is not None:
            valid = min(valid, begun)
        matcher = self._written.matcher.fork()
        keep, candidates = cut_place(matcher, draft, valid)
        start = cut_word(draft, keep)
        if start is not None and self._written.takes_no_part(draft, start, keep):
            keep, candidates = cut_place(self._written.matcher.fork(), draft, start)
        kept, rest = draft[:keep], draft[keep:]
        if kept:
            self._written.keep(kept)
            self._written.has_draft = True
            yield Drafted(text=kept)
        if self._written.matcher.is_completed() and not self._may_go_on(rest, candidates):
            self._discard(rest)
            self._written.transcript.set_aside(rest, is_before=False)
            reason = "the text was complete before it"
            yield self._rejected(rest, reason)
            yield Corrected(text=b"", token_id=None, logprob=None, candidates=(), means="forced")
            yield self._end("valid", "the draft went on behind a complete text")
            return
        shown = draft[whole_length(draft[:valid]) :].decode("utf-8", "replace")[:20]
        yield from self._correct(rest, f"nothing of the grammar goes on with {shown!r}", candidates)

    def _may_go_on(self, rest: bytes, candidates: Sequence[Candidate]) -> bool:
        """Whether what came after a whole text is a slip, and not talk.

        Who is asked which of them comes next cannot say that none does, so nobody is asked.
        """
        return nearest(candidates, rest) is not None

    def _can_choose(self, candidates: Sequence[Candidate]) -> bool:
        """Whether the drafter can be asked which of these comes next."""
        if "choose" in self._refused:
            return False
        return self._is_choice(candidates) or bool(self._few_tokens())

    def _is_choice(self, candidates: Sequence[Candidate]) -> bool:
        are_known = all(isinstance(candidate, Literal) for candidate in candidates)
        return self._means.choose and are_known and len(candidates) > 1

    def _correct(
        self, rest: bytes, reason: str, candidates: Sequence[Candidate] | None = None
    ) -> Asking:
        """Put something in the place of rejected text that the grammar goes on with."""
        self._discard(rest)
        yield self._rejected(rest, reason)
        if self._corrections >= self._options.max_grammar_corrections:
            yield from self._close(f"{self._corrections} corrections were made")
            return
        self._corrections += 1
        if candidates is None:
            candidates = readable(self._written.matcher.candidates(MAX_CANDIDATES))
        shown = tuple(shown_candidate(candidate) for candidate in candidates)
        text, means = yield from self._chosen(rest, candidates)
        text = text[: fitting(self._written.matcher, text)]
        if not text and means != "re-ask":
            text, means = first_character(self._written.shortest()), "shortest"
        is_same = means == "nearest" and is_respelled(text, rest)
        is_filled = means in _FILLING and not (is_same and text.strip() in rest)
        if text and is_filled:
            self._written.fill(text, "respelled" if is_same else means)
            if is_same or not rest:
                self._written.transcript.add(text)
            else:
                self._written.transcript.forget()
            self._written.kept += content(text) if is_same else 0
        elif text:
            if means not in _FILLING:
                self._written.supersede(rest)
            self._written.keep(text)
        else:
            self._written.transcript.add_refused(rest)
        yield Corrected(text=text, token_id=None, logprob=None, candidates=shown, means=means)
        if is_same and self._is_ended(text, rest):
            yield self._end("valid", "the draft ended the text")
            return
        kept = f" Behind {self.response[-60:]!r} came {shown_start(rest)!r}." if rest else ""
        self._complaint = f"The last answer broke the format: {reason}.{kept}"
        if shown:
            self._complaint += f" What may come there: {', '.join(shown[:8])}."

    def _is_ended(self, text: bytes, rest: bytes) -> bool:
        """Whether a draft ends a text that it writes in another case; else it would say it again.

        It does where nothing of the grammar goes on with what follows there.
        """
        matcher = self._written.matcher
        if self._is_cut or not matcher.is_completed():
            return False
        behind = behind_respelled(text, rest) or b""
        spellings = (behind, behind.lower(), behind.upper())
        goes_on = any(
            spelling[: matcher.longest_valid_prefix(spelling).valid_bytes].strip()
            for spelling in spellings
        )
        candidates = readable(matcher.candidates(MAX_CANDIDATES))
        return is_aside(behind) or not (goes_on or nearest(candidates, behind))

    def _chosen(
        self, rest: bytes, candidates: Sequence[Candidate]
    ) -> Generator[Event | Ask | Consult, Answer | None, tuple[bytes, str]]:
        """What comes next, and who says so."""
        forced = self._written.matcher.find_jump_forward_string()
        options = tuple(c.text for c in candidates if isinstance(c, Literal))
        is_choice = self._is_choice(candidates)
        is_at_start = self._answers_as_a_whole() and not self._written.text and not is_choice
        if is_at_start and self._complaint is None:  # it may do better from the beginning
            return b"", "re-ask"
        if forced:
            # Who wrote a whole text in another case said more than what all texts begin with.
            said = (nearest(candidates, rest) or "").encode()
            is_whole = self._written.matcher.longest_valid_prefix(said).status == "complete"
            if said and is_whole and is_respelled(said, rest):
                return said, "nearest"
            return (forced.rstrip() or forced).encode(), "forced"
        can_ask = self.account.exhausted() is None
        if self._has_chooser and can_ask:
            answer = yield from self._consult(candidates)
            if answer.text:
                return answer.text.encode("utf-8", "replace"), "chooser"
            can_ask = self.account.exhausted() is None
        if can_ask and self._can_choose(candidates):
            tokens = self._few_tokens()
            answer = yield from self._ask("choose", options=options, allowed_tokens=tokens)
            if not self._has_failed(answer) and answer.text:
                return answer.text.encode("utf-8", "replace"), answer.means
        found = nearest(candidates, rest)
        if found is not None:
            return found.encode(), "nearest"
        if self._means.reads_complaints and self._complained_at != len(self._written.text):
            self._complained_at = len(self._written.text)
            return b"", "re-ask"
        closing = self._written.shortest()
        for option in options:
            if option and closing.startswith(option.encode()):
                return option.encode(), "shortest"
        return b"", "shortest"

    def _few_tokens(self) -> tuple[int, ...]:
        """The tokens that may come next, if the endpoint can be restricted to so many."""
        if not self._means.biases_tokens:
            return ()
        size = self._vocab_size
        mask = np.zeros((1, -(-size // 32)), dtype=np.int32)
        if not self._written.matcher.fill_next_token_bitmask(mask, 0):
            return ()
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        stops = set(self._written.matcher.stop_token_ids)
        tokens = tuple(int(token) for token in allowed if int(token) not in stops)
        return tokens if 0 < len(tokens) <= MAX_BIASED_TOKENS else ()

    def _write_forced(self) -> Generator[Event, None, None]:
        """Write forced text, without whitespace at its end.

        Models continue better after a word than after a space, which belongs to the next token.
        """
        text = self._written.matcher.find_jump_forward_string().encode()
        if len(text) < _WHOLE_RUN:  # more may be forced after a run of the greatest length
            text = text.rstrip(b" \t\r\n")
        if text and (self._written.text or not self._written.may_end_behind(text)):
            self._written.accept(text)
            self._written.transcript.add(text, is_drafted=False)
            self._written.forced = len(text)
            yield Forced(token_ids=(), text=text)

    def _skip_to_text(self, draft: bytes) -> Generator[Event, None, bytes]:
        """Skip talk before the text, as in `Sure! Here it is: {`."""
        start = start_of_text(self._written.talk_matcher, bytes(self._written.text), draft)
        if start == 0 or self._corrections >= self._options.max_grammar_corrections:
            return draft
        self._corrections += 1
        self._discard(draft[:start])
        so_far = bytes(self._written.text)
        self._written.transcript.set_aside(so_far + draft[:start], is_before=True)
        yield self._rejected(draft[:start], "talk before the text")
        yield Corrected(text=b"", token_id=None, logprob=None, candidates=(), means="skipped")
        return draft[start:]

    def _is_worth_reading(self, answer: str) -> bool:
        """False for the beginning of an answer that certainly does not fit, or is far too long."""
        if len(answer) > 64 + 16 * self._options.budget.tokens:
            return False
        if not self._written.has_draft:  # talk before the text can be skipped
            return True
        draft = answer.encode("utf-8", "replace")
        if self._written.text.startswith(draft):  # it may start again from the beginning
            return True
        # Members may come in another order, in a whole answer and in the rest of one that was cut;
        # only all of it can show what it says.
        if self._answers_as_a_whole() and self._written.may_say_in_other_order(draft):
            return True
        draft = self._without_repetition(draft)
        return self._written.matcher.longest_valid_prefix(draft).status != "dead"

    def _without_repetition(self, draft: bytes) -> bytes:
        written = bytes(self._written.text)
        again = self._answers_as_a_whole()  # It is asked in words to continue.
        return without_repetition(
            self._written.matcher, written, draft, begins_again=again, forced=self._written.forced
        )

    def _discard(self, text: bytes) -> None:
        self.account.add(discarded_tokens=estimated_tokens(text.decode("utf-8", "replace")))

    def _rejected(self, text: bytes, reason: str) -> Rejected:
        return Rejected(
            text=text, position=len(self._written.text), token_id=None, logprob=None, reason=reason
        )

    def _close(self, reason: str) -> Generator[Event, None, None]:
        """Complete the text in as few bytes as the grammar can."""
        self._was_cut = True
        may_correct = self._corrections < self._options.max_grammar_corrections
        held = self._written.held() if self._held and may_correct else None
        if held is not None:
            yield from self._write_anew(b"", held)
        try:
            text = self._written.matcher.shortest_completion()
        except MatcherError as error:
            yield self._end("truncated", f"{reason}, and {error}")
            return
        if text:
            self._written.fill(text, "closed")
            yield Closed(text=text, reason=reason)
        yield self._end("closed" if text else "valid", reason)

    def _end(self, status: Status, reason: str) -> Ended:
        self._written.transcript.settle(bytes(self._written.text))
        filled = self._written.filled
        # No drafter says either that a text of only forced bytes ends where it may continue.
        is_made_up = any(means in MADE_UP for _, _, means in filled) or (
            bool(filled) and not self._written.kept and bool(self._written.matcher.candidates(1))
        )
        if status == "valid" and is_made_up and not self._written.kept:
            status, reason = "closed", f"{reason}, with nothing that the model wrote"
        self._status = status
        self._ended = Ended(status=status, reason=reason)
        return self._ended


_FILLING = frozenset({"forced", "nearest", "shortest"})
"""Means of choosing a correction in which no model takes part."""
