"""What a call asks a model to write: jobs, rounds of them, and the pieces in which texts arrive.

One idea: these are plain values, so that models of every kind take and return the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from stencilm.generation.result import Generation
from stencilm.generation.trace import Event
from stencilm.models.options import Drawing
from stencilm.models.protocol import Prompt

OnEvent: TypeAlias = Callable[[Event], None]
Check: TypeAlias = Callable[[], None]
"""Called between two steps; raises an exception to stop generating."""


def go_on() -> None:
    """A check that never raises."""


class Stop:
    """Stops generation in another thread at its next step."""

    is_wanted = False

    def check(self) -> None:
        """Raise RuntimeError at the first step after the task was cancelled."""
        if self.is_wanted:
            raise RuntimeError("the task that wanted these texts was cancelled")


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
