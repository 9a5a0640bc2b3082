"""The interface of every model: typed values, texts, streams, batches, asyncio.

One idea: a model only defines how one text is generated and streamed (`_pieces`). Values, retries
after a validator refuses a text, partial values, batches and awaited calls are built on that here,
once for all models.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, overload

from stencilm.generation.partial import MISSING, Pace, PartialReader
from stencilm.generation.partial_texts import ChoiceReader, TextReader
from stencilm.generation.result import Generation, InvalidOutput
from stencilm.generation.trace import Event, checked_listener
from stencilm.generation.typed import Known, raise_with_text
from stencilm.grammars.complaints import refusal
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.json_values import finite_json
from stencilm.grammars.output_form import OutputForm
from stencilm.grammars.outputs import Output
from stencilm.in_thread import in_thread
from stencilm.limits import Limits, checked_limits
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
from stencilm.shown import name_of, shown_value
from stencilm.whole_numbers import count

if TYPE_CHECKING:
    from typing_extensions import TypeForm, TypeVar

    from stencilm.models.chat import Chat

    T = TypeVar("T", default=str)
else:
    from typing import TypeVar

    T = TypeVar("T")

OnEvent: TypeAlias = Callable[[Event], None]
Check: TypeAlias = Callable[[], None]
"""Called between two steps; raises an exception to stop generating."""


def go_on() -> None:
    """A check that never raises."""


class _Stop:
    """Stops generation in another thread at its next step."""

    is_wanted = False

    def check(self) -> None:
        if self.is_wanted:
            raise RuntimeError("the task that wanted these texts was cancelled")


DEFAULT_MAX_RETRIES = 1
_MAX_CACHED_TYPES = 64
_MOST_TEXTS = 1 << 20


@dataclass(frozen=True, slots=True)
class Job:
    """A text to generate.

    Attributes:
        number: The index of its prompt in the call; its seed is `seed + number`.
        prompt: Its prompt.
        first: The text that was requested before it; None if there was none.
    """

    number: int
    prompt: Prompt
    first: Generation[Any] | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """Texts that are generated at the same time.

    Attributes:
        jobs: The texts.
        output_type: Their type.
        options: Their options.
        is_first: They precede the answers: reasoning, or drafts.
    """

    jobs: list[Job]
    output_type: Any
    options: Drawing
    is_first: bool = False


Piece: TypeAlias = str | Generation[Any] | None
"""A part of a text as it is generated; None if all parts are taken back; the result is last."""


class TypedModel(ABC):
    """A language model whose outputs have a type, wherever it runs.

    Subclasses implement how a text is written: `_pieces`, `_compile`, and, where they can do better
    than a thread for each step, `_apieces`, `_write_all` and `_awrite_all`.

    Examples:
        >>> import asyncio
        >>> from typing import Literal
        >>> import stencilm
        >>> model = stencilm.load("tiny")  # any other model has the same calls
        >>> model.name, model
        ('tiny', <Model: tiny>)
        >>> Colour = Literal["red", "blue"]
        >>> colours = ("red", "blue")
        >>> model("A colour:", Colour) in colours
        True
        >>> model.generate("A colour:", Colour, temperature=0.8, seed=1).value in colours
        True
        >>> len(model.batch(["One:", "Two:"], Colour)), len(model.generate_batch(["One:"], Colour))
        (2, 1)
        >>> (
        ...     len(model.samples("A colour:", Colour, n=3)),
        ...     len(model.sample("A colour:", Colour, n=2)),
        ... )
        (3, 2)
        >>> list(model.stream("A colour:", Colour))[-1] in colours
        True
        >>> async def asynchronously() -> bool:
        ...     one = await model.acall("A colour:", Colour)
        ...     two = (await model.agenerate("A colour:", Colour)).value
        ...     more = await model.abatch(["One:", "Two:"], Colour)
        ...     last = [part async for part in model.astream("A colour:", Colour)][-1]
        ...     return {one, two, last, *more} <= set(colours)
        >>> asyncio.run(asynchronously())
        True
    """

    def __init__(self) -> None:
        # The most recently used last.
        self._ready: dict[Any, tuple[Output, Any]] = {}
        self._lock = RenewedLock()

    # Public interface

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, prompt: Prompt, output_type: TypeForm[T] = ..., **options: Unpack[Drawing]
    ) -> T: ...

    @overload
    def __call__(
        self, prompt: Prompt, output_type: OutputForm[T], **options: Unpack[Drawing]
    ) -> T: ...

    @overload
    def __call__(
        self, prompt: Prompt, output_type: Callable[..., object], **options: Unpack[Drawing]
    ) -> dict[str, Any]: ...

    def __call__(self, prompt: Prompt, output_type: Any = str, **options: Unpack[Drawing]) -> Any:
        """A value of `output_type`, written by the model; never an invalid one.

        Args:
            prompt: Text, or chat messages. A message may have parts, such as images, if the model
                takes them.
            output_type: A Python type, a function, `Regex`, `JsonSchema`, `Choice`, `Ebnf`, `Lark`,
                or a `Grammar`. For a function, the value is a dict of its arguments.
            options: Those of `Drawing`.

        Raises:
            IncompleteOutput: `max_tokens`, another budget or the model's context cut the text. Only
                a plain `str` is returned as far as it came.
            InvalidOutput: The type's own validators refuse the text, after `max_retries`.
            StencilError: No grammar can be made of the type (UnsupportedFeature, Unsatisfiable,
                LimitExceeded), or the model cannot be run (ModelError).
            EndpointError: The endpoint cannot be reached, or answered with an error.
            ModelRefused: The model behind an endpoint refused, was filtered, or wrote nothing that
                fits.
            ValueError: An option is out of range, or the model takes no such option.
        """
        return _value(self.generate(prompt, output_type, **options))

    @overload
    def generate(  # type: ignore[overload-overlap]
        self,
        prompt: Prompt,
        output_type: TypeForm[T] = ...,
        *,
        on_event: OnEvent | None = ...,
        **options: Unpack[Drawing],
    ) -> Generation[T]: ...

    @overload
    def generate(
        self,
        prompt: Prompt,
        output_type: OutputForm[T],
        *,
        on_event: OnEvent | None = ...,
        **options: Unpack[Drawing],
    ) -> Generation[T]: ...

    @overload
    def generate(
        self,
        prompt: Prompt,
        output_type: Callable[..., object],
        *,
        on_event: OnEvent | None = ...,
        **options: Unpack[Drawing],
    ) -> Generation[dict[str, Any]]: ...

    def generate(
        self,
        prompt: Prompt,
        output_type: Any = str,
        *,
        on_event: OnEvent | None = None,
        **options: Unpack[Drawing],
    ) -> Generation[Any]:
        """The text with its value, trace and statistics.

        The arguments and errors are those of `__call__`, with one exception: for a text that was
        cut, or that the type's own validators refuse, `value` is None and `error` holds the reason.
        `on_event` is called with each event of the trace as it happens.
        """
        return self._run([prompt], output_type, options, checked_listener(on_event))[0]

    @overload
    def batch(  # type: ignore[overload-overlap]
        self, prompts: Sequence[Prompt], output_type: TypeForm[T] = ..., **options: Unpack[Drawing]
    ) -> list[T]: ...

    @overload
    def batch(
        self, prompts: Sequence[Prompt], output_type: OutputForm[T], **options: Unpack[Drawing]
    ) -> list[T]: ...

    @overload
    def batch(
        self,
        prompts: Sequence[Prompt],
        output_type: Callable[..., object],
        **options: Unpack[Drawing],
    ) -> list[dict[str, Any]]: ...

    def batch(
        self, prompts: Sequence[Prompt], output_type: Any = str, **options: Unpack[Drawing]
    ) -> list[Any]:
        """One value for each prompt, in order.

        A model that runs batches, such as one of transformers, writes all of them at once: each
        forward pass advances every unfinished text by one step. An endpoint gets several requests
        at once. Prompt number i draws with `seed + i`, so that equal prompts may differ. The first
        prompt that fails raises, as `__call__` does.
        """
        return [_value(one) for one in self.generate_batch(prompts, output_type, **options)]

    @overload
    def generate_batch(  # type: ignore[overload-overlap]
        self, prompts: Sequence[Prompt], output_type: TypeForm[T] = ..., **options: Unpack[Drawing]
    ) -> list[Generation[T]]: ...

    @overload
    def generate_batch(
        self, prompts: Sequence[Prompt], output_type: OutputForm[T], **options: Unpack[Drawing]
    ) -> list[Generation[T]]: ...

    @overload
    def generate_batch(
        self,
        prompts: Sequence[Prompt],
        output_type: Callable[..., object],
        **options: Unpack[Drawing],
    ) -> list[Generation[dict[str, Any]]]: ...

    def generate_batch(
        self, prompts: Sequence[Prompt], output_type: Any = str, **options: Unpack[Drawing]
    ) -> list[Generation[Any]]:
        """`generate` for several prompts at once; the arguments are those of `batch`."""
        return self._run(_checked_prompts(prompts), output_type, options)

    @overload
    def samples(  # type: ignore[overload-overlap]
        self, prompt: Prompt, output_type: TypeForm[T] = ..., *, n: int, **options: Unpack[Drawing]
    ) -> list[T]: ...

    @overload
    def samples(
        self, prompt: Prompt, output_type: OutputForm[T], *, n: int, **options: Unpack[Drawing]
    ) -> list[T]: ...

    @overload
    def samples(
        self,
        prompt: Prompt,
        output_type: Callable[..., object],
        *,
        n: int,
        **options: Unpack[Drawing],
    ) -> list[dict[str, Any]]: ...

    def samples(
        self, prompt: Prompt, output_type: Any = str, *, n: int, **options: Unpack[Drawing]
    ) -> list[Any]:
        """`n` values for one prompt: a batch of the same prompt.

        The default temperature is 1, except for an endpoint that takes none.
        """
        options = self._sampled(_checked_number(n), given_options(options))
        return self.batch([prompt] * n, output_type, **options)

    @overload
    def stream(  # type: ignore[overload-overlap]
        self, prompt: Prompt, output_type: TypeForm[T] = ..., **options: Unpack[Drawing]
    ) -> Iterator[T]: ...

    @overload
    def stream(
        self, prompt: Prompt, output_type: OutputForm[T], **options: Unpack[Drawing]
    ) -> Iterator[T]: ...

    @overload
    def stream(
        self, prompt: Prompt, output_type: Callable[..., object], **options: Unpack[Drawing]
    ) -> Iterator[dict[str, Any]]: ...

    def stream(
        self, prompt: Prompt, output_type: Any = str, **options: Unpack[Drawing]
    ) -> Iterator[Any]:
        """Partial values while the text is written, and the whole one last.

        Pydantic models and dataclasses are instances in which what is not written yet is None;
        lists and dicts hold what there is so far. Only finished parts are validated; an open string
        is shown as it grows, an open number is not. A `Literal`, an Enum and a `Choice` have no
        value before it is clear which one is written. `JsonSchema` gives the data so far; free
        texts and those of a `Grammar` are given as far as they are written. A step costs only what
        is new in it, however long the text is: a value with many thousand parts to copy is skipped
        if copying would take longer than everything else. Closing the iterator stops the model.
        Options and errors are those of `__call__`. If validators refuse the text and it is written
        again, partial values start again.
        """
        attempts = self._attempts([prompt], output_type, options)
        asked = next(attempts)
        while True:
            shown = Partials(self._prepare(asked.output_type, asked.options.get("limits"))[0])
            written: list[Generation[Any]] = []
            for piece in self._pieces(
                asked.jobs[0], asked.output_type, asked.options, None, shown.whole
            ):
                if isinstance(piece, Generation):
                    written.append(piece)
                elif not asked.is_first and (value := shown.feed(piece)) is not MISSING:
                    yield value
            try:
                asked = attempts.send(written)
            except StopIteration as end:
                yield _value(end.value[0])
                return

    @overload
    async def acall(  # type: ignore[overload-overlap]
        self, prompt: Prompt, output_type: TypeForm[T] = ..., **options: Unpack[Drawing]
    ) -> T: ...

    @overload
    async def acall(
        self, prompt: Prompt, output_type: OutputForm[T], **options: Unpack[Drawing]
    ) -> T: ...

    @overload
    async def acall(
        self, prompt: Prompt, output_type: Callable[..., object], **options: Unpack[Drawing]
    ) -> dict[str, Any]: ...

    async def acall(
        self, prompt: Prompt, output_type: Any = str, **options: Unpack[Drawing]
    ) -> Any:
        """`__call__`, awaited."""
        return _value(await self.agenerate(prompt, output_type, **options))

    @overload
    async def agenerate(  # type: ignore[overload-overlap]
        self, prompt: Prompt, output_type: TypeForm[T] = ..., **options: Unpack[Drawing]
    ) -> Generation[T]: ...

    @overload
    async def agenerate(
        self, prompt: Prompt, output_type: OutputForm[T], **options: Unpack[Drawing]
    ) -> Generation[T]: ...

    @overload
    async def agenerate(
        self, prompt: Prompt, output_type: Callable[..., object], **options: Unpack[Drawing]
    ) -> Generation[dict[str, Any]]: ...

    async def agenerate(
        self, prompt: Prompt, output_type: Any = str, **options: Unpack[Drawing]
    ) -> Generation[Any]:
        """`generate`, awaited: an asynchronous client is awaited, everything else runs in a thread.

        A cancelled task stops a local model before its next step, and the call of an asynchronous
        client.
        """
        return (await self._arun([prompt], output_type, options))[0]

    @overload
    async def abatch(  # type: ignore[overload-overlap]
        self, prompts: Sequence[Prompt], output_type: TypeForm[T] = ..., **options: Unpack[Drawing]
    ) -> list[T]: ...

    @overload
    async def abatch(
        self, prompts: Sequence[Prompt], output_type: OutputForm[T], **options: Unpack[Drawing]
    ) -> list[T]: ...

    @overload
    async def abatch(
        self,
        prompts: Sequence[Prompt],
        output_type: Callable[..., object],
        **options: Unpack[Drawing],
    ) -> list[dict[str, Any]]: ...

    async def abatch(
        self, prompts: Sequence[Prompt], output_type: Any = str, **options: Unpack[Drawing]
    ) -> list[Any]:
        """`batch`, awaited."""
        return [
            _value(one) for one in await self._arun(_checked_prompts(prompts), output_type, options)
        ]

    @overload
    def astream(  # type: ignore[overload-overlap]
        self, prompt: Prompt, output_type: TypeForm[T] = ..., **options: Unpack[Drawing]
    ) -> AsyncIterator[T]: ...

    @overload
    def astream(
        self, prompt: Prompt, output_type: OutputForm[T], **options: Unpack[Drawing]
    ) -> AsyncIterator[T]: ...

    @overload
    def astream(
        self, prompt: Prompt, output_type: Callable[..., object], **options: Unpack[Drawing]
    ) -> AsyncIterator[dict[str, Any]]: ...

    async def astream(
        self, prompt: Prompt, output_type: Any = str, **options: Unpack[Drawing]
    ) -> AsyncIterator[Any]:
        """`stream`, awaited."""
        attempts = self._attempts([prompt], output_type, options)
        asked = next(attempts)
        while True:
            shown = Partials(self._prepare(asked.output_type, asked.options.get("limits"))[0])
            written: list[Generation[Any]] = []
            pieces = self._apieces(asked.jobs[0], asked.output_type, asked.options, shown.whole)
            async with aclosing(pieces):
                async for piece in pieces:
                    if isinstance(piece, Generation):
                        written.append(piece)
                    elif not asked.is_first and (value := shown.feed(piece)) is not MISSING:
                        yield value
            try:
                asked = attempts.send(written)
            except StopIteration as end:
                yield _value(end.value[0])
                return

    def sample(self, prompt: Prompt, output_type: Any = str, **options: Any) -> list[Any]:
        """The earlier name of `samples`."""
        values: list[Any] = self.samples(prompt, output_type, **options)
        return values

    def dump(self, value: Any, output_type: Any, *, limits: Limits | None = None) -> Any:
        """A value of `output_type` as JSON-ready data."""
        return finite_json(self._prepare(output_type, limits)[0].dump(value))

    def chat(
        self,
        messages: Prompt,
        tools: Sequence[Callable[..., Any] | Mapping[str, Any]] = (),
        *,
        tool_choice: Any = "auto",
        output_type: Any = str,
        parallel: bool = True,
        max_rounds: int = 8,
        on_error: Literal["tell", "raise"] = "tell",
        family: Any = None,
        **options: Unpack[Drawing],
    ) -> Chat[Any]:
        """A conversation in which the model calls tools, until it gives a typed answer.

        Each turn is calls of tools or an answer; the model can write nothing else. Calls are run,
        the model is told their results, and writes the next turn. A local model whose chat template
        writes tool calls writes them in the format of its family (see `stencilm.tools`); any other
        model, and one behind an API, writes one JSON object.

        Args:
            messages: Text, or chat messages.
            tools: Python functions, whose schemas come from their hints and docstrings, and dicts
                in the form of OpenAI's chat completions. A call of a dict ends the conversation:
                run it, and continue with its result.
            tool_choice: For the first turn: "auto", "required", "none", a function by name, or
                `allowed_tools`; later turns are free.
            output_type: The type of the answer, as for `__call__`: a text, a type of JSON, or
                `Regex`.
            parallel: Allow several calls in one turn. They are run one after the other.
            max_rounds: The most turns with calls; the turn after them is an answer.
            on_error: "tell": an exception that a function raises is reported to the model. "raise":
                it is raised.
            family: A family of tool calls by name, if the chat template does not tell it.
            options: Those of `Drawing`, for every turn.

        Returns:
            A `Chat`: the typed `value`, the `turns` with their traces, calls and results, and all
            `messages`.

        Raises:
            UnsupportedFeature: A function cannot be called by the names of its parameters, or the
                output type cannot be combined with tools.
            GrammarSyntaxError: Two tools have the same name, or `tool_choice` names none of them.
            InvalidOutput: The type's own validators refuse the last answer.
            IncompleteOutput: `max_tokens` cut a turn.
        """
        from stencilm.models.chat import Talk, chat

        talk = Talk(
            messages, tools, tool_choice, output_type, parallel, max_rounds, on_error, family
        )
        return chat(self, talk, options)

    async def achat(
        self,
        messages: Prompt,
        tools: Sequence[Callable[..., Any] | Mapping[str, Any]] = (),
        *,
        tool_choice: Any = "auto",
        output_type: Any = str,
        parallel: bool = True,
        max_rounds: int = 8,
        on_error: Literal["tell", "raise"] = "tell",
        family: Any = None,
        **options: Unpack[Drawing],
    ) -> Chat[Any]:
        """`chat`, awaited, for local models and for asynchronous clients of endpoints.

        Tools may also be asynchronous functions, which are awaited; others run in a thread. The
        calls of a turn are run one after the other. A task that is cancelled stops between two
        steps of the model, or within a function that is awaited.

        Args:
            messages: As in `chat`; so are the other arguments.
            tools: Python functions, asynchronous or not, and dicts.
            tool_choice: For the first turn.
            output_type: The type of the answer.
            parallel: Allow several calls in one turn.
            max_rounds: The most turns with calls.
            on_error: Whether an exception of a function is reported to the model, or raised.
            family: A family of tool calls by name.
            options: Those of `Drawing`, for every turn.

        Returns:
            As `chat`.

        Raises:
            UnsupportedFeature: A function cannot be called by the names of its parameters, or the
                output type cannot be combined with tools.
            GrammarSyntaxError: Two tools have the same name, or `tool_choice` names none of them.
            InvalidOutput: The type's own validators refuse the last answer.
            IncompleteOutput: `max_tokens` cut a turn.
        """
        from stencilm.models.chat import Talk, achat

        talk = Talk(
            messages, tools, tool_choice, output_type, parallel, max_rounds, on_error, family
        )
        return await achat(self, talk, options)

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
        stop = _Stop()
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

    @property
    def name(self) -> str:
        """The name of the model."""
        return type(self).__name__

    def _facts(self) -> dict[str, str | None]:
        """Facts about the model for display."""
        return {}

    def __repr__(self) -> str:
        """The model's name, in one line."""
        return f"<{type(self).__name__}: {self.name}>"

    def _repr_html_(self) -> str:
        from stencilm.views.notebook import model_card

        return model_card(self.name, self._facts())

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


class Partials:
    """The partial values of a text that arrives in pieces."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._start()

    def _start(self) -> None:
        self._reader: PartialReader | ChoiceReader | TextReader
        if self._output.is_json:
            self._reader = PartialReader(self._output.json_type)
        elif self._output.texts is not None:
            self._reader = ChoiceReader(self._output, self._output.texts)
        else:
            self._reader = TextReader()
        self._pace = Pace()
        self._is_new = False  # new text has arrived since the last value was shown

    def feed(self, piece: str | None) -> Any:
        """The value to show after one more piece; `MISSING` if there is nothing new.

        New parts of a very long value wait for a later piece.
        """
        if piece is None:
            self._start()
            return MISSING
        try:
            self._reader.feed(piece)
            self._is_new = self._reader.has_changed() or self._is_new
            return self._shown(self._reader.size, self._reader.value)
        except BaseException as error:
            raise_with_text(error, self._reader.text, self._output)

    def _shown(self, size: int, show: Callable[[], Any]) -> Any:
        if not self._is_new or not self._pace.affords(size):
            return MISSING
        self._is_new = False
        return self._pace.shown(show)

    def whole(self, text: str) -> Any:
        """The value of the whole text if it was already read, else `MISSING`."""
        return self._reader.whole(text)


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


def _value(generation: Generation[Any]) -> Any:
    if generation.error is not None:
        raise generation.error
    return generation.value


def _checked_prompts(prompts: Any) -> Sequence[Prompt]:
    if isinstance(prompts, str):
        raise TypeError(
            f"prompts is the text {shown_value(prompts):.60}, but must be a list of prompts"
        )
    if not isinstance(prompts, Iterable) or isinstance(prompts, Mapping):
        raise TypeError(f"prompts is {shown_value(prompts):.60}, but must be a list of prompts")
    checked: Sequence[Prompt] = list(prompts)
    return checked


def _checked_number(n: Any) -> int:
    return count("n", n, least=1, most=_MOST_TEXTS)


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
