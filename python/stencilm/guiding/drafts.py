"""What drafts text: plain functions, endpoints, and the questions that they are asked.

One idea: the loop over texts asks and is answered, and never calls anything itself. So the same
loop runs with functions and coroutines, and a test can answer by hand.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from stencilm.characters import whole_characters
from stencilm.generation.sampling import Sampling
from stencilm.grammars.grammar import Grammar
from stencilm.in_thread import in_thread
from stencilm.matching.candidates import Candidate
from stencilm.models.reasoning import Reasoning

AskKind: TypeAlias = Literal["whole", "draft", "choose"]

BYTES_FOR_A_TOKEN = 4


def estimated_tokens(text: str) -> int:
    """How many tokens a text may have, where nobody counts them."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_FOR_A_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question to whatever drafts.

    Attributes:
        kind: "whole": the whole text, under a grammar that the endpoint enforces itself. "draft":
            what comes after `prefix`. "choose": one of `options` after `prefix`.
        prompt: What the text is about.
        prefix: The text so far.
        max_tokens: The most tokens to write.
        grammar: What the text must fit.
        options: What may be chosen from.
        allowed_tokens: Tokens of the endpoint's vocabulary that may come next, where they are few.
        complaint: What was wrong with the last answer, for an endpoint that can read it.
        timeout: Seconds that are left.
        stop: Texts that end the answer.
        fits: Says of the beginning of an answer whether it is worth reading on.
        temperature: How to draw; None where nobody asked for a temperature.
        top_p: How to draw.
        seed: How to draw, where the endpoint takes a seed.
        sampling: How else to draw: penalties, biases and the like.
        is_bounded: Somebody asked for `max_tokens`; else it is our own bound.
        refused: Kinds of questions that the endpoint refused for this text as unsupported.
        reasoning: Whether, and how much, a model reasons before a text that begins here, where the
            endpoint is told.
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
    """What came back.

    Attributes:
        text: The text; for "draft" what comes after the prefix, without it.
        means: How the endpoint was asked; see `stencilm.generation.trace.Called`.
        is_finished: The drafter ended the text itself; None where it does not say.
        prompt_tokens: As the endpoint counts them; None where it does not.
        output_tokens: As above.
        cached_tokens: Tokens of the prompt that the endpoint did not compute again.
        cost: Money, where prices are known; that of estimated tokens where they are not counted.
        seconds: How long it took.
        is_cut: It was not read to its end, because it was dead; so a shorter one would save little.
        calls: How many calls it took.
        error: Why there is no text.
        broke_off: Why the text came only as far as it did; what came is kept.
        is_unsupported: The error says that the endpoint takes no questions of this form; another
            form may do.
        reasoning: What the model wrote before the text to reason, where the endpoint shows it.
        reasoning_tokens: Tokens of that, which are among those of the output.
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
    """A question to the chooser, who is no drafter: which of these comes after a prefix."""

    candidates: tuple[Candidate, ...]
    prefix: str


@runtime_checkable
class Drafter(Protocol):
    """Whatever answers questions."""

    def can(self, kind: AskKind, grammar: Grammar) -> bool:
        """Whether it answers questions of this kind about this grammar."""

    @property
    def reads_complaints(self) -> bool:
        """Whether it can be told what was wrong."""

    def answer(self, ask: Ask) -> Answer:
        """The answer; a call of an endpoint that fails is an answer with an error."""

    async def answer_async(self, ask: Ask) -> Answer:
        """The same, awaited."""


@runtime_checkable
class StreamingDrafter(Drafter, Protocol):
    """A drafter whose answers may be seen while they come."""

    def parts(self, ask: Ask) -> Iterator[str | Answer]:
        """The text of an answer as it comes, and the answer last."""

    def parts_async(self, ask: Ask) -> AsyncGenerator[str | Answer, None]:
        """The same, awaited."""


class FunctionDrafter:
    """A plain function: `fn(prompt) -> str` or `fn(prefix, prompt, max_new_tokens) -> str`.

    The first is called with the prompt and the text so far as one text; the second with both apart.
    Coroutine functions are awaited. What a function raises comes through. Raises TypeError for a
    function that takes neither.
    """

    reads_complaints = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._takes_prefix = _takes_prefix(function)
        self.is_async = is_coroutine_function(function)

    def can(self, kind: AskKind, grammar: Grammar) -> bool:
        """Functions draft, and nothing else."""
        return kind == "draft"

    def answer(self, ask: Ask) -> Answer:
        """Call the function."""
        if self.is_async:
            raise TypeError("the draft function is a coroutine function: await stencilm.aguide")
        started = perf_counter()
        given = self._call(ask)
        if inspect.iscoroutine(given):
            given.close()  # which nobody awaits
            raise TypeError("the draft function gives a coroutine: await stencilm.aguide")
        return self._answered(given, started)

    async def answer_async(self, ask: Ask) -> Answer:
        """Await the coroutine function; a plain one runs in a thread of its own."""
        started = perf_counter()
        given = self._call(ask) if self.is_async else await in_thread(self._call, ask)
        if inspect.isawaitable(given):  # also of a plain function around a coroutine function
            given = await given
        return self._answered(given, started)

    def _answered(self, text: Any, started: float) -> Answer:
        # A function that is told how much to write may have more to say; silence is its end.
        is_finished = False if self._takes_prefix and text else None
        return Answer(
            text=_checked(text), is_finished=is_finished, seconds=perf_counter() - started
        )

    def _call(self, ask: Ask) -> Any:
        if self._takes_prefix:
            return self._function(ask.prefix, ask.prompt, ask.max_tokens)
        return self._function(f"{ask.prompt}{ask.prefix}")


def is_coroutine_function(function: Any) -> bool:
    """Whether calling it gives something to await; an object with such a call counts as well."""
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
