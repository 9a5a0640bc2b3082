"""From a guided text to its typed value, or to the reason why it has none.

One idea: a value is only what a model wrote. If the grammar filled in something that could have
been different, the text is valid, but the value is made up. So it is returned only on request.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stencilm.errors import ModelRefused
from stencilm.generation.result import Generation, IncompleteOutput
from stencilm.generation.stats import Stats
from stencilm.generation.trace import Called
from stencilm.generation.typed import Known, parsed
from stencilm.grammars.outputs import Output
from stencilm.guiding.task import Guided
from stencilm.shown import in_a_line


def generation_of(
    guided: Guided, output: Output, *, completed: bool, known: Known | None = None
) -> Generation[Any]:
    """A guided text as a generation, with its value, or with the reason why there is none.

    Args:
        guided: The text.
        output: Its output type.
        completed: Return the value even if the grammar completed what the model began.
        known: The value of a text that was read as it came.

    Raises:
        ModelRefused: Free text was requested, and there is none.
    """
    usage = guided.usage
    waited = sum(event.seconds for event in guided.trace if isinstance(event, Called))
    has_ended = guided.stop_text is not None or not (guided.was_cut or guided.status != "valid")
    generation: Generation[Any] = Generation(
        text=guided.response,
        token_ids=(),
        finish_reason="stop" if has_ended else "length",
        is_complete=guided.is_valid,
        trace=guided.trace,
        stats=Stats(
            prompt_tokens=usage.prompt_tokens,
            tokens=usage.output_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            forced_tokens=usage.forced_tokens,
            forward_passes=usage.calls,
            mask_seconds=max(0.0, guided.process_time_seconds - waited),
            model_seconds=waited,
            sampling_seconds=0.0,
            seconds=guided.process_time_seconds,
            seed=guided.seed,
            cached_tokens=usage.cached_tokens,
            cost=usage.cost,
            is_estimate=usage.is_estimate,
        ),
        stop_text=guided.stop_text,
        closed=guided.status == "closed",
        filled=guided.filled,
        left_out=guided.left_out,
        guided=guided,
        reasoning=guided.reasoning,
    )
    if output.accepts_cut_text:
        if not guided.response and not guided.is_written:
            raise ModelRefused.of("empty", "") from guided.error
        return parsed(generation, output, known)
    reason = unwritten(guided, completed=completed)
    if reason is None:
        return parsed(generation, output, known)
    said = ""
    if guided.lost:
        said = f"; all that it wrote is {in_a_line(guided.lost, 200)}, so ask again"
    error = IncompleteOutput(
        f"the text of {output.name} is not what the model wrote: {reason}{said}",
        text=guided.response,
    )
    error.__cause__ = guided.error
    return replace(generation, error=error)


def unwritten(guided: Guided, *, completed: bool = False) -> str | None:
    """Why a text is not what a model wrote; None if it is.

    With `completed`, a text that the grammar completed counts, if a model wrote some of it, and
    nothing that it lacks.
    """
    if not guided.is_valid:
        return f"it was cut: {guided.reason}"
    made_up = [filled for filled in guided.filled if filled.is_made_up]
    if completed and guided.is_written and not guided.lost:
        return None
    if made_up:
        first = made_up[0]
        if first.means == "repeated":
            return f"at character {first.start} it says {first.text!r} again, or once more"
        return (
            f"{guided.reason}, and the grammar filled in {first.text!r} at character {first.start}"
        )
    if guided.lost:
        return "values of it came where the grammar has no more place for them"
    missed = [left_out for left_out in guided.left_out if left_out.changes_value]
    if missed:
        one = missed[0]
        return f"{one.text} at {one.path} does not fit, and was left out"
    return guided.reason if guided.status == "closed" or guided.was_cut else None
