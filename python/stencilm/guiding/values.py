"""From a guided text to its typed value, or to the reason why it has none.

One idea: a value is only what a model wrote. Where the grammar filled in what might have been
otherwise, the text is valid and the value is made up, so it is given to nobody who did not ask.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from stencilm.errors import ModelRefused
from stencilm.generation.result import IncompleteOutput, InvalidOutput
from stencilm.guiding.task import Guided
from stencilm.output_types import resolve

Finish: TypeAlias = Literal["cut", "valid"]


def check_finish(finish: Finish) -> None:
    """Raise ValueError where `finish` is neither "cut" nor "valid"."""
    if finish not in ("cut", "valid"):
        raise ValueError(f"finish is {finish!r}, but must be 'cut' or 'valid'")


def value_of(guided: Guided, output_type: Any, finish: Finish = "cut") -> Any:
    """The value of a guided text.

    Args:
        guided: The text.
        output_type: What it was asked for as.
        finish: "valid" for the value also where the grammar completed what the model began.

    Raises:
        IncompleteOutput: The text was cut, or a part of it is none that a model wrote.
        InvalidOutput: The type's own validators refuse the text.
        ModelRefused: Free text was asked for, and there is none.
    """
    output = resolve(output_type)
    if output.accepts_cut_text and not guided.response and not guided.is_written:
        raise ModelRefused.of("empty", "") from guided.error
    if not output.accepts_cut_text:
        reason = unwritten(guided, completed=finish == "valid")
        if reason is not None:
            raise IncompleteOutput(
                f"the text of {output.name} is not what the model wrote: {reason}",
                text=guided.response,
            ) from guided.error
    try:
        return output.parse(guided.response)
    except (ValueError, RecursionError) as error:
        raise InvalidOutput(
            f"{output.name} refuses the text: {error}", text=guided.response
        ) from error


def unwritten(guided: Guided, *, completed: bool = False) -> str | None:
    """Why a text is not what a model wrote; None where it is.

    `completed` takes a text that the grammar completed, if a model wrote some of it.
    """
    if not guided.is_valid:
        return f"it was cut: {guided.reason}"
    made_up = [filled for filled in guided.filled if filled.is_made_up]
    if completed and guided.is_written:
        return None
    if made_up:
        first = made_up[0]
        return (
            f"{guided.reason}, and the grammar filled in {first.text!r} at character {first.start}"
        )
    return guided.reason if guided.status == "closed" else None
