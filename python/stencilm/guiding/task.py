"""What all guided texts share: budgets, options, and the result with its log.

One idea: the loops only record events; the log of corrections and the renderings are derived from
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from time import perf_counter
from typing import Any, Literal, TypeAlias

from stencilm.characters import check_characters
from stencilm.generation.corrections import Correction, corrections
from stencilm.generation.result import Filled, LeftOut
from stencilm.generation.sampling import Sampling
from stencilm.generation.trace import Corrected, Trace
from stencilm.models.reasoning import Reasoning, checked_reasoning
from stencilm.shown import in_a_line, shown_value
from stencilm.whole_numbers import as_real, count, shown, truth

Status: TypeAlias = Literal["valid", "closed", "truncated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a guided text may cost; when a part is used up, the text is closed.

    Attributes:
        calls: Calls of text functions and endpoints, including failed ones; forward passes of local
            models.
        tokens: Tokens of output, including those taken back. For a text function that reports none,
            four bytes count as one token.
        seconds: Wall-clock time. A running text function is not interrupted. Endpoints get the
            remaining time as their timeout, and no answer, streamed or whole, is awaited longer
            than that, whatever the library does until it begins. Their error is raised if nothing
            was written by then. When the time is over, reading a long draft as JSON of another form
            stops, with what was read so far.
        cost: Money, in the unit of the endpoint's prices; None for no limit.

    Examples:
        >>> import stencilm
        >>> stencilm.Budget(calls=20, seconds=5).tokens
        4096
    """

    calls: int = 2_000
    tokens: int = 4_096
    seconds: float = 600.0
    cost: float | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "tokens"):
            number = count(f"the budget of {name}", getattr(self, name), least=1)
            object.__setattr__(self, name, number)
        for name in ("seconds", "cost"):
            value = getattr(self, name)
            if value is None and name == "cost":
                continue
            real = as_real(value)
            if real is None or math.isnan(real) or real <= 0:
                raise ValueError(f"the budget of {name} is {shown(value)}, but must be above 0")
            object.__setattr__(self, name, real)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a guided text cost.

    Attributes:
        calls: Calls of the text function or endpoint, or forward passes of a local model, including
            those of a target model.
        prompt_tokens: Input tokens of all calls together; for a local model, of the prompt.
        output_tokens: Tokens that were written or drawn, including discarded ones and excluding
            those of reasoning.
        reasoning_tokens: Tokens of reasoning before the text.
        discarded_tokens: Output tokens that were taken back.
        cached_tokens: Input tokens that were not computed again: read from the key-value cache, or
            counted as cached by the endpoint.
        forced_tokens: Tokens that a local model read in one pass and never drew.
        guessed_tokens: Tokens that a local model confirmed several at a time.
        cost: Money, if prices are known, else 0.
        is_estimate: Some of these numbers were estimated from lengths, because the text function or
            the endpoint reported none.

    Examples:
        >>> import stencilm
        >>> usage = stencilm.guide(lambda prompt: "yes", stencilm.Choice(["yes", "no"]), "?").usage
        >>> usage.calls, usage.to_json()["cost"]
        (1, 0.0)
    """

    calls: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    discarded_tokens: int = 0
    cached_tokens: int = 0
    forced_tokens: int = 0
    guessed_tokens: int = 0
    cost: float = 0.0
    is_estimate: bool = False

    def to_json(self) -> dict[str, Any]:
        """The numbers as JSON-ready values."""
        return asdict(self)


_COUNTS = tuple(count.name for count in fields(Usage) if count.name != "is_estimate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to draft and when to stop; `stencilm.guide` says what each means.

    Attributes:
        temperature: The temperature that was asked for; None where none was.
        has_budget: A budget was asked for.
        reasoning: Whether the model reasons before it writes.
    """

    max_grammar_corrections: int = 20
    stop_at: tuple[str, ...] = ()
    token_healing: bool = True
    token_lookahead: int = 20
    sampling: Sampling = field(default_factory=Sampling)
    budget: Budget = field(default_factory=Budget)
    seed_str: str = ""
    debug: bool = False
    temperature: float | None = None
    has_budget: bool = False
    reasoning: Reasoning = "auto"

    def __post_init__(self) -> None:
        truth("token_healing", self.token_healing)
        truth("debug", self.debug)
        for name, least in (("max_grammar_corrections", 0), ("token_lookahead", 1)):
            number = count(name, getattr(self, name), least=least, wish=f"an int from {least} up")
            object.__setattr__(self, name, number)
        if not isinstance(self.seed_str, str):
            raise TypeError(f"seed_str is {shown_value(self.seed_str):.60}, but must be a str")
        if not isinstance(self.budget, Budget):
            raise TypeError(
                f"budget is {shown_value(self.budget):.60}, but must be a Budget, such as "
                "Budget(calls=20)"
            )
        object.__setattr__(self, "reasoning", checked_reasoning(self.reasoning))
        for text in self.stop_at:
            if not isinstance(text, str) or not text:
                raise ValueError(
                    f"stop_at holds {shown_value(text):.80}, but must hold texts that are not empty"
                )
            check_characters(text, "a text of stop_at", "no model can write")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Guided:
    """A guided text.

    Attributes:
        response: The text, including the seed text and excluding the prompt.
        status: "valid": a whole text of the grammar, ended by the draft or the grammar, or whole
            when a budget or a stop text came. "closed": also a whole text, but a budget or a stop
            text came first and a shortest completion closed it, or nothing of what the model wrote
            is in it. "truncated": the beginning of a text, because every completion is too long.
        reason: Why it ended, in a few words.
        trace: What happened, step by step.
        usage: What it cost.
        process_time_seconds: Wall-clock time of the whole call.
        error: The last exception of the target model; or of the endpoint, if other means could
            replace the failed call, or if its answer broke off and was continued.
        seed: The seed of the sampling; None for a greedy text.
        filled: The stretches of the response that no model wrote, in order. Text that the grammar
            forces is not listed if nothing else was drafted there: every text has it.
        lost: All drafts, verbatim, if the response lacks a value that they said and `left_out` does
            not list; else "".
        left_out: The values in JSON drafts that the grammar does not accept in any form, and that
            the response therefore lacks; then whole documents beside the one that it says.
        is_written: A model wrote some of the response, or chose it.
        stop_text: The stop text that ended the draft; None if none did.
        was_cut: Neither the draft nor the grammar ended the text: a budget, a stop text or the
            number of corrections did. It may be whole nevertheless: "12" of "1234".
        reasoning: The reasoning, or the draft, that the model wrote before the text; None if there
            is none.

    Examples:
        >>> import stencilm
        >>> guided = stencilm.guide(lambda prompt: "AB+1", stencilm.Regex("[A-Z]{2}-1"), "A code:")
        >>> guided.response, guided.is_valid, guided.num_grammar_corrections
        ('AB-1', True, 1)
        >>> guided.correction_log[0].choice, guided.to_json()["status"]
        ('-1', 'valid')
        >>> "<html" in guided.html
        True
    """

    response: str
    status: Status
    reason: str
    trace: Trace
    usage: Usage
    process_time_seconds: float
    error: BaseException | None = None
    seed: int | None = None
    filled: tuple[Filled, ...] = ()
    lost: str = ""
    left_out: tuple[LeftOut, ...] = ()
    is_written: bool = True
    stop_text: str | None = None
    was_cut: bool = False
    reasoning: str | None = None

    @property
    def is_valid(self) -> bool:
        """The response is a whole text of the grammar."""
        return self.status != "truncated"

    @property
    def correction_log(self) -> list[Correction]:
        """Every correction, in order."""
        return list(corrections(self.trace))

    @property
    def num_grammar_corrections(self) -> int:
        """How often the grammar stepped in."""
        return sum(isinstance(event, Corrected) for event in self.trace)

    @property
    def html(self) -> str:
        """The trace drawn as a page that needs nothing else."""
        from stencilm.views.html import page

        return page(
            self.trace,
            text=self.response,
            tokens=self.usage.output_tokens,
            seconds=self.process_time_seconds,
        )

    def __repr__(self) -> str:
        """The response, and how it came, in a line."""
        count = self.num_grammar_corrections
        return (
            f"<{type(self).__name__}: {in_a_line(self.response)}, {self.status}, "
            f"{count} correction{'s' if count != 1 else ''}, {self.process_time_seconds:.2f} s>"
        )

    def _repr_html_(self) -> str:
        from stencilm.views.html import fragment

        return fragment(
            self.trace,
            text=self.response,
            tokens=self.usage.output_tokens,
            seconds=self.process_time_seconds,
        )

    def to_json(self, *, trace: bool = False) -> dict[str, Any]:
        """The result as JSON-ready values."""
        record: dict[str, Any] = {
            "response": self.response,
            "status": self.status,
            "reason": self.reason,
            "corrections": [correction._asdict() for correction in self.correction_log],
            "usage": self.usage.to_json(),
            "seconds": self.process_time_seconds,
            "error": None if self.error is None else str(self.error),
            "seed": self.seed,
            "filled": [filled._asdict() for filled in self.filled],
            "lost": self.lost,
            "left_out": [left_out._asdict() for left_out in self.left_out],
            "reasoning": self.reasoning,
        }
        return record | ({"trace": self.trace.to_json()} if trace else {})


def filled_of(text: bytes, spans: Iterable[tuple[int, int, str]]) -> tuple[Filled, ...]:
    """Convert spans of a text in bytes to spans in characters.

    Adjacent ones of one kind are joined.
    """
    joined: list[tuple[int, int, str]] = []
    for start, end, means in spans:
        if joined and joined[-1][1:] == (start, means):
            joined[-1] = (joined[-1][0], end, means)
        elif end > start:
            joined.append((start, end, means))

    def characters(place: int) -> int:
        return len(text[:place].decode("utf-8", "ignore"))

    return tuple(
        Filled(characters(start), characters(end), text[start:end].decode("utf-8", "ignore"), means)
        for start, end, means in joined
    )


class Account:
    """Adds up the cost of a text while a loop runs, and reports when a budget has run out."""

    __slots__ = ("_counts", "_started", "budget", "is_estimate")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.is_estimate = False
        self._started = perf_counter()
        self._counts: dict[str, Any] = dict.fromkeys(_COUNTS, 0) | {"cost": 0.0}

    @property
    def usage(self) -> Usage:
        """The cost so far."""
        return Usage(**self._counts, is_estimate=self.is_estimate)

    @property
    def seconds(self) -> float:
        """Wall-clock time so far."""
        return perf_counter() - self._started

    def is_late(self) -> bool:
        """Whether the budget of seconds has run out."""
        return self.seconds >= self.budget.seconds

    def add(self, **counts: float) -> None:
        """Add these to the usage."""
        for name, number in counts.items():
            self._counts[name] += number

    def exhausted(self) -> str | None:
        """The budget that has run out; None if none has."""
        budget, counts = self.budget, self._counts
        if counts["calls"] >= budget.calls:
            return f"the budget of {budget.calls} calls is spent"
        if self.tokens_left() == 0:
            return f"the budget of {budget.tokens} tokens is spent"
        if budget.cost is not None and counts["cost"] >= budget.cost:
            return f"the budget of {budget.cost:g} is spent"
        if self.is_late():
            return f"the budget of {budget.seconds:g} seconds is spent"
        return None

    def tokens_left(self) -> int:
        """Tokens that may still be written."""
        spent: int = self._counts["output_tokens"] + self._counts["forced_tokens"]
        return max(0, self.budget.tokens - spent)
