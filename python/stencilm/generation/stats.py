"""The cost of a sequence: tokens, forward passes, and seconds by stage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any, Literal

from stencilm.shown import Shown

Stage = Literal["mask", "model", "sampling"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Stats(Shown):
    """The cost of one sequence. All times are seconds of wall clock.

    Attributes:
        prompt_tokens: Tokens of the prompt; for an endpoint, those of all requests together.
        tokens: Written tokens, without the stop token and without reasoning.
        reasoning_tokens: Tokens of the reasoning before the text, its markers included.
        forced_tokens: Those of them that the grammar left no choice about. Each saved a forward
            pass: it was read together with what followed it, or not at all.
        forward_passes: Calls of the model, the one over the prompt included; requests to an
            endpoint.
        mask_seconds: Finding forced tokens, filling and applying masks, and accepting tokens; for
            an endpoint, checking its answers.
        model_seconds: Waiting for logits, or for answers.
        sampling_seconds: Drawing tokens, and working out their probabilities.
        seconds: Everything from the first step to the last; compiling the grammar is not in it.
        seed: The seed of the draws, chosen for you where you gave none; None for a greedy text, and
            for an endpoint that was given none.
        cached_tokens: Those of them that an endpoint did not compute again.
        cost: Money, where the prices of an endpoint are known, else 0.
        saved_passes: Forward passes that a draft saved, because it guessed the tokens right.
        is_estimate: Numbers of tokens were counted from lengths, because an endpoint reported none.
    """

    prompt_tokens: int
    tokens: int
    forced_tokens: int
    forward_passes: int
    mask_seconds: float
    model_seconds: float
    sampling_seconds: float
    seconds: float
    seed: int | None
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    saved_passes: int = 0
    is_estimate: bool = False

    def __repr__(self) -> str:
        """The cost, in one line."""
        return (
            f"<{type(self).__name__}: {self.tokens:,} tokens, {self.forced_tokens:,} of them "
            f"forced, {self.forward_passes:,} forward passes, {self.seconds:.2f} s>"
        )

    def to_json(self) -> dict[str, Any]:
        """The statistics as JSON-ready values."""
        return asdict(self)


@dataclass(slots=True)
class Clock:
    """Adds up the seconds of each stage while a loop runs."""

    seconds: dict[Stage, float] = field(
        default_factory=lambda: {"mask": 0.0, "model": 0.0, "sampling": 0.0}
    )

    @contextmanager
    def stage(self, name: Stage) -> Iterator[None]:
        """Add the duration of the body to `name`, even if it raises."""
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += perf_counter() - start
