"""The interface of every model: typed values, texts, streams, batches, asyncio.

One idea: a model only defines how one text is generated and streamed (`_pieces`). Everything else
is built on that once for all models: retries after a validator refuses a text in `writer`; values,
partial values, batches and awaited calls here.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from stencilm.generation.partial import MISSING
from stencilm.generation.result import Generation
from stencilm.generation.trace import checked_listener
from stencilm.grammars.json_values import finite_json
from stencilm.grammars.output_form import OutputForm
from stencilm.limits import Limits
from stencilm.models.jobs import OnEvent
from stencilm.models.options import Drawing, given_options
from stencilm.models.partials import Partials
from stencilm.models.protocol import Prompt
from stencilm.models.writer import Writer
from stencilm.shown import shown_value
from stencilm.whole_numbers import count

if TYPE_CHECKING:
    from typing_extensions import TypeForm, TypeVar

    from stencilm.models.chat import Chat

    T = TypeVar("T", default=str)
else:
    from typing import TypeVar

    T = TypeVar("T")

_MOST_TEXTS = 1 << 20


class TypedModel(Writer):
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
