"""Drafters: plain functions, endpoints, and the requests that they answer.

One idea: the loop over texts yields requests and is sent the answers, and never calls anything
itself. So the same loop works with functions and coroutines, and tests can answer by hand.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from stencilm.callbacks import awaited, guarded
from stencilm.characters import whole_characters
from stencilm.generation.sampling import Sampling
from stencilm.grammars.grammar import Grammar
from stencilm.in_thread import in_thread
from stencilm.matching.candidates import Candidate
from stencilm.models.reasoning import Reasoning

AskKind: TypeAlias = Literal["whole", "draft", "choose"]

BYTES_FOR_A_TOKEN = 4


def reasoned_tokens(answer: Answer, output: int) -> int:
    """The number of tokens of an answer that are reasoning; estimated if it is not reported."""
    if answer.reasoning_tokens is not None:
        return min(answer.reasoning_tokens, output)
    written = len(answer.reasoning) + len(answer.text)
    return round(output * len(answer.reasoning) / written) if answer.reasoning else 0


def estimated_tokens(text: str) -> int:
    """An estimate of the number of tokens in a text, if they are not counted."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_FOR_A_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request to a drafter.

    Attributes:
        kind: "whole": the whole text, under a grammar that the endpoint enforces itself. "draft":
            the text after `prefix`. "choose": one of `options` after `prefix`.
        prompt: The prompt.
        prefix: The text so far.
        max_tokens: The most tokens to write.
        grammar: The grammar of the text.
        options: The options to choose from.
        allowed_tokens: Tokens of the endpoint's vocabulary that may come next, if there are few.
        complaint: What was wrong with the last answer, for an endpoint that can read it.
        timeout: The remaining seconds.
        stop: Texts that end the answer.
        fits: Whether the beginning of an answer is worth reading on.
        temperature: For sampling; None if no temperature was requested.
        top_p: For sampling.
        seed: For sampling, if the endpoint takes a seed.
        sampling: Other sampling options: penalties, biases and the like.
        is_bounded: `max_tokens` was requested by the caller; otherwise it is our own bound.
        refused: Kinds of requests that the endpoint refused as unsupported for this text.
        reasoning: Whether, and how much, a model reasons before a text that begins here, if the
            endpoint can be told.
    """

    kind: AskKind
    prompt: Any
    prefix: str
    max_tokens: int
    grammar: Grammar
    options: tuple[str, ...] = ()
    allowed_tokens: tuple[int, ...] = ()
    complaint: str | None = None
    timeout: float | None = None
    stop: tuple[str, ...] = ()
    fits: Callable[[str], bool] = field(default=lambda text: True, repr=False)
    temperature: float | None = None
    top_p: float = 1.0
    seed: int | None = None
    sampling: Sampling = field(default_factory=Sampling)
    is_bounded: bool = True
    refused: frozenset[AskKind] = frozenset()
    reasoning: Reasoning = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a request.

    Attributes:
        text: The text; for "draft", only the part after the prefix.
        means: How the endpoint was asked; see `stencilm.generation.trace.Called`.
        is_finished: The drafter ended the text itself; None if it does not say.
        prompt_tokens: As counted by the endpoint; None if it does not.
        output_tokens: As above.
        cached_tokens: Tokens of the prompt that the endpoint did not compute again.
        cost: Money, if prices are known; estimated if tokens are not counted.
        seconds: Its duration.
        is_cut: It was not read to its end, because it no longer fitted; so a shorter one would save
            little.
        calls: The number of calls.
        error: Why there is no text.
        broke_off: Why the text is incomplete; the part that came is kept.
        is_unsupported: The error says that the endpoint does not support requests of this form;
            another form may work.
        reasoning: The model's reasoning before the text, if the endpoint shows it.
        reasoning_tokens: Its tokens, which are included in those of the output.
    """

    text: str = ""
    means: str = "function"
    is_finished: bool | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    is_cut: bool = False
    calls: int = 1
    error: Exception | None = None
    broke_off: Exception | None = None
    is_unsupported: bool = False
    reasoning: str = ""
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Consult:
    """A request to the chooser, which is not a drafter: which of these comes after a prefix."""

    candidates: tuple[Candidate, ...]
    prefix: str


@runtime_checkable
class Drafter(Protocol):
    """Answers requests."""

    def can(self, kind: AskKind, grammar: Grammar) -> bool:
        """Whether it answers requests of this kind about this grammar."""

    @property
    def reads_complaints(self) -> bool:
        """Whether it can be told what was wrong."""

    def answer(self, ask: Ask) -> Answer:
        """The answer; a failed call of an endpoint becomes an answer with an error."""

    async def answer_async(self, ask: Ask) -> Answer:
        """The same, awaited."""


@runtime_checkable
class StreamingDrafter(Drafter, Protocol):
    """A drafter whose answers can be read while they arrive."""

    def parts(self, ask: Ask) -> Iterator[str | Answer]:
        """The text of an answer as it arrives, and the answer last."""

    def parts_async(self, ask: Ask) -> AsyncGenerator[str | Answer, None]:
        """The same, awaited."""


class FunctionDrafter:
    """A plain function: `fn(prompt) -> str` or `fn(prefix, prompt, max_new_tokens) -> str`.

    The first form gets the prompt and the text so far as one text, the second gets them separately.
    Coroutine functions are awaited. Exceptions of a function are passed on. Raises TypeError for a
    function that takes neither.
    """

    reads_complaints = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._takes_prefix = _takes_prefix(function)
        self.is_async = is_coroutine_function(function)

    def can(self, kind: AskKind, grammar: Grammar) -> bool:
        """Functions only draft."""
        return kind == "draft"

    def answer(self, ask: Ask) -> Answer:
        """Call the function."""
        if self.is_async:
            raise TypeError("the draft function is a coroutine function: await stencilm.aguide")
        started = perf_counter()
        given = self._call(ask)
        if inspect.iscoroutine(given):
            given.close()  # which is never awaited
            raise TypeError("the draft function gives a coroutine: await stencilm.aguide")
        return self._answered(given, started)

    async def answer_async(self, ask: Ask) -> Answer:
        """Await the coroutine function; a plain one runs in a thread of its own."""
        started = perf_counter()
        call = guarded(self._call, "the draft function")
        given = call(ask) if self.is_async else await in_thread(call, ask)
        if inspect.isawaitable(given):  # also if a plain function wraps a coroutine function
            given = await awaited(given, "the draft function")
        return self._answered(given, started)

    def _answered(self, text: Any, started: float) -> Answer:
        # A function that is told how much to write may have more to say; an empty answer is its
        # end.
        is_finished = False if self._takes_prefix and text else None
        return Answer(
            text=_checked(text), is_finished=is_finished, seconds=perf_counter() - started
        )

    def _call(self, ask: Ask) -> Any:
        if self._takes_prefix:
            return self._function(ask.prefix, ask.prompt, ask.max_tokens)
        return self._function(f"{ask.prompt}{ask.prefix}")


def is_coroutine_function(function: Any) -> bool:
    """Whether calling it returns an awaitable; objects with such a `__call__` count as well."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - the method itself is looked at
    )


def _takes_prefix(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind("prompt")
        return False
    except TypeError:
        pass
    except ValueError:  # a builtin without a signature
        return False
    try:
        inspect.signature(function).bind("prefix", "prompt", 1)
        return True
    except TypeError:
        raise TypeError(
            f"the draft function {function!r} must take (prompt) or (prefix, prompt, "
            "max_new_tokens)"
        ) from None


def _checked(text: Any) -> str:
    if not isinstance(text, str):
        raise TypeError(
            f"the draft function gave {type(text).__name__} {repr(text)[:60]}, but must give a str"
        )
    return whole_characters(text)
