"""`Writer`: rounds of texts, until the validators of their type refuse none.

One idea: the rounds are a generator that yields what to write and receives what was written, so
that plain calls and awaited ones are two short loops around it.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from stencilm.generation.result import Generation, InvalidOutput
from stencilm.generation.typed import Known
from stencilm.grammars.complaints import refusal
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.outputs import Output
from stencilm.in_thread import in_thread
from stencilm.limits import Limits, checked_limits
from stencilm.models.jobs import Check, Job, OnEvent, Piece, Round, Stop, go_on
from stencilm.models.options import Drawing, given_options, laid_out_with
from stencilm.models.prompts import Conversation
from stencilm.models.protocol import Prompt
from stencilm.models.reasoning import (
    Reasoning,
    TwoSteps,
    budget_of,
    checked_reasoning,
    with_first,
)
from stencilm.renewed_lock import RenewedLock
from stencilm.shown import name_of
from stencilm.whole_numbers import count

DEFAULT_MAX_RETRIES = 1
_MAX_CACHED_TYPES = 64


class Writer(ABC):
    """What writes texts of a type, and asks again where validators refuse one.

    Subclasses implement how a text is written: `_pieces`, `_compile`, and, where they can do better
    than a thread for each step, `_apieces`, `_write_all` and `_awrite_all`.
    """

    def __init__(self) -> None:
        # The most recently used last.
        self._ready: dict[Any, tuple[Output, Any]] = {}
        self._lock = RenewedLock()

    # Public interface

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the model."""

    # Interface for subclasses

    @abstractmethod
    def _pieces(
        self,
        job: Job,
        output_type: Any,
        options: Drawing,
        on_event: OnEvent | None,
        known: Known | None = None,
    ) -> Iterator[Piece]:
        """Generate a text: yields its parts, then its `Generation` with the value.

        `known` receives the value of the text if the parts were already read.
        """

    @abstractmethod
    def _compile(self, output_type: Any, limits: Limits | None) -> tuple[Output, Any]:
        """The reader of a type, and this model's form of its grammar; called once for each type."""

    def _apieces(
        self, job: Job, output_type: Any, options: Drawing, known: Known | None = None
    ) -> AsyncGenerator[Piece, None]:
        """`_pieces`, awaited."""
        return _stepped(self._pieces(job, output_type, options, None, known))

    def _write_all(
        self, jobs: Sequence[Job], output_type: Any, options: Drawing, check: Check = go_on
    ) -> list[Generation[Any]]:
        """Generate several texts; an exception of `check` between two steps stops all of them."""
        return [self._write(job, output_type, options, lambda _: check()) for job in jobs]

    async def _awrite_all(
        self, jobs: Sequence[Job], output_type: Any, options: Drawing
    ) -> list[Generation[Any]]:
        """`_write_all`, awaited: if the task is cancelled, the current step is the last."""
        stop = Stop()
        try:
            return await in_thread(self._write_all, jobs, output_type, options, stop.check)
        except asyncio.CancelledError:
            stop.is_wanted = True
            raise

    def _again(self, prompt: Prompt, refused: Generation[Any]) -> Prompt | None:
        """The prompt that asks again for a text that the type's validators refused.

        None if the model's context has no room for it.
        """
        messages = [
            *as_messages(prompt),
            {"role": "assistant", "content": refused.text},
            {"role": "user", "content": complaint_of(refused)},
        ]
        return (
            Conversation(messages, prompt.tools) if isinstance(prompt, Conversation) else messages
        )

    def _sampled(self, n: int, options: Drawing) -> Drawing:
        """The options of `samples`."""
        return {"temperature": 1.0, **options}

    # Implementation

    def _run(
        self,
        prompts: Sequence[Prompt],
        output_type: Any,
        options: Drawing,
        on_event: OnEvent | None = None,
    ) -> list[Generation[Any]]:
        attempts = self._attempts(prompts, output_type, options)
        asked = next(attempts)
        while True:
            jobs = asked.jobs
            if len(jobs) == 1:
                written = [self._write(jobs[0], asked.output_type, asked.options, on_event)]
            else:
                written = self._write_all(jobs, asked.output_type, asked.options)
            try:
                asked = attempts.send(written)
            except StopIteration as end:
                return _generations(end)

    async def _arun(
        self, prompts: Sequence[Prompt], output_type: Any, options: Drawing
    ) -> list[Generation[Any]]:
        attempts = self._attempts(prompts, output_type, options)
        asked = next(attempts)
        while True:
            jobs = asked.jobs
            if len(jobs) == 1:
                written = [await self._awrite(jobs[0], asked.output_type, asked.options)]
            else:
                written = await self._awrite_all(jobs, asked.output_type, asked.options)
            try:
                asked = attempts.send(written)
            except StopIteration as end:
                return _generations(end)

    def _write(
        self, job: Job, output_type: Any, options: Drawing, on_event: OnEvent | None
    ) -> Generation[Any]:
        for piece in self._pieces(job, output_type, options, on_event):
            if isinstance(piece, Generation):
                return piece
        raise AssertionError("invariant: the last piece of a text is its result")

    async def _awrite(self, job: Job, output_type: Any, options: Drawing) -> Generation[Any]:
        async with aclosing(self._apieces(job, output_type, options)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Generation):
                    return piece
        raise AssertionError("invariant: the last piece of a text is its result")

    def _attempts(
        self, prompts: Sequence[Prompt], output_type: Any, options: Drawing
    ) -> Generator[Round, list[Generation[Any]], list[Generation[Any]]]:
        """Rounds of texts to generate, until no validator refuses any or `max_retries` are used up.

        The first round holds the texts that precede the answers, if there are any.
        """
        options = given_options(options)
        retries = count(
            "max_retries",
            options.get("max_retries", DEFAULT_MAX_RETRIES),
            least=0,
            wish="an int from 0 up",
        )
        output_type, options = laid_out_with(output_type, options)
        jobs = [Job(number, prompt) for number, prompt in enumerate(prompts)]
        asked = self._asked_first(jobs, options)
        first: list[Generation[Any]] = []
        if asked is not None:
            steps, round_before = asked
            first = yield round_before
            jobs = [
                Job(job.number, steps.then(job.prompt, text.text), text)
                for job, text in zip(jobs, first, strict=True)
            ]
            options = {**options, "reasoning": self._after_a_draft}
        done = self._signed((yield Round(jobs, output_type, options)), output_type)
        for _ in range(retries):
            again = []
            for job in jobs:
                if isinstance(done[job.number].error, InvalidOutput):
                    prompt = self._again(job.prompt, done[job.number])
                    if prompt is not None:
                        again.append(Job(job.number, prompt))
            if not again:
                break
            written = self._signed((yield Round(again, output_type, options)), output_type)
            for job, generation in zip(again, written, strict=True):
                jobs[job.number] = job
                earlier = done[job.number]
                before = (*earlier.refused, replace(earlier, refused=()))
                done[job.number] = replace(generation, refused=before)
        if not first:
            return done
        return [
            with_first(*both, adds_prompts=self._counts_requests)
            for both in zip(done, first, strict=True)
        ]

    def _asked_first(self, jobs: list[Job], options: Drawing) -> tuple[TwoSteps, Round] | None:
        """The texts that precede the answers; None if there are none."""
        reasoning = checked_reasoning(options.get("reasoning", "auto"))
        is_draft = reasoning == "draft"
        if not jobs or (not is_draft and (self._has_markers or reasoning == "auto")):
            return None
        steps = TwoSteps(is_draft, self._continues_texts)
        first: Drawing = {**options, "stop": (), "reasoning": "auto" if is_draft else False}
        for name in ("limits", "finish"):
            first.pop(name, None)  # type: ignore[misc]
        asked = [Job(job.number, steps.first(job.prompt)) for job in jobs]
        if not is_draft:
            budget = min(self._room_to_reason(job.prompt, budget_of(reasoning)) for job in asked)
            if not budget:
                return None
            first["max_tokens"] = budget
        return steps, Round(asked, str, first, is_first=True)

    _limits: Limits | None = None
    """The limits of grammars of which neither the call nor the type says any."""

    _counts_requests = False
    """Whether the prompt tokens of a text are those of all that is sent for it."""

    _after_a_draft: Reasoning = False
    """Whether it reasons between the first text and the answer."""

    def _signed(self, written: list[Generation[Any]], output_type: Any) -> list[Generation[Any]]:
        """Texts with the names of the model and the type added to their traces."""
        for generation in written:
            generation.trace.model = self.name
            generation.trace.grammar = None if output_type is str else name_of(output_type)
        return written

    _continues_texts = False
    """Whether a prompt that is a text is continued."""

    @property
    def _has_markers(self) -> bool:
        """Whether it reasons in its own markers, within the text."""
        return False

    def _room_to_reason(self, prompt: Prompt, budget: int) -> int:
        """The most tokens of reasoning after a prompt that leave room for an answer."""
        return budget

    def _prepare(self, output_type: Any, limits: Limits | None = None) -> tuple[Output, Any]:
        """The reader of a type and the result of `_compile`.

        Those of the latest types are cached.
        """
        if limits is not None:
            checked_limits(limits)
        # The repr is part of the key, because 1 == True and Union[A, B] == Union[B, A], though they
        # are read differently. Neither contains a grammar's limits.
        own = output_type.limits if isinstance(output_type, Grammar) else None
        try:
            key = (output_type, repr(output_type), limits or own)
            hash(key)
        except Exception:  # it is not hashable, or its repr fails
            return self._compile(output_type, limits)
        if self._lock.is_mine:  # A signal handler interrupted a holder of the lock.
            return self._compile(output_type, limits)
        with self._lock.held:
            known = self._ready.pop(key, None)
            if known is not None:
                self._ready[key] = known
                return known
        ready = self._compile(output_type, limits)
        with self._lock.held:
            self._ready[key] = ready
            while len(self._ready) > _MAX_CACHED_TYPES:
                del self._ready[next(iter(self._ready))]
        return ready


def as_messages(prompt: Prompt) -> list[dict[str, Any]]:
    """A prompt as chat messages."""
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    return [dict(message) for message in prompt]


def complaint_of(refused: Generation[Any]) -> str:
    """The message to the model about a text that the type's validators refused."""
    error = refused.error
    said = error.complaint if isinstance(error, InvalidOutput) else str(error)
    return refusal(said, "Write the whole of it again, corrected.")


def _generations(end: StopIteration) -> list[Generation[Any]]:
    done: list[Generation[Any]] = end.value
    return done


async def _stepped(steps: Iterator[Piece]) -> AsyncGenerator[Piece, None]:
    """Run each step in a thread; if the task is cancelled, the current step is the last.

    A step that still waits for a thread never runs, and nothing is left in the event loop.
    """
    end = object()
    while True:
        step: Any = await in_thread(next, steps, end)
        if step is end:
            return
        yield step
