"""From a text to its typed value, or to the reason why it has none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NoReturn, TypeAlias

import numpy as np

from stencilm.callbacks import passed_on
from stencilm.generation.partial_types import MISSING
from stencilm.generation.result import Generation, IncompleteOutput, InvalidOutput
from stencilm.generation.trace import Sampled, Stopped
from stencilm.grammars.complaints import complaint_of, first_complaint
from stencilm.grammars.outputs import Output
from stencilm.shown import shown_value

Known: TypeAlias = Callable[[str], Any]


def with_value(
    generation: Generation[Any],
    output: Output,
    max_tokens: int,
    known: Known | None = None,
    shortest: int | None = None,
) -> Generation[Any]:
    """The generation with its typed value, or with the reason why there is none.

    `shortest` is the number of tokens of a shortest text, if it is known.
    """
    stopped_short = generation.stop_text is not None and not generation.is_complete
    is_cut = (generation.finish_reason == "length" and not generation.closed) or stopped_short
    if is_cut and not output.accepts_cut_text:
        return replace(generation, error=_cut_short(generation, output, max_tokens, shortest))
    if generation.closed and not _has_choice(generation):
        return replace(generation, error=_unwritten(generation, output, max_tokens))
    return parsed(generation, output, known)


def parsed(
    generation: Generation[Any], output: Output, known: Known | None = None
) -> Generation[Any]:
    """The generation with the value of its text, or with the type's reason for refusing it.

    `known` returns the value of a text that was already read, otherwise `MISSING`.
    """
    try:
        value = MISSING if known is None else known(generation.text)
        if value is MISSING:
            value = output.parse(generation.text)
        return replace(generation, value=value)
    except (ValueError, RecursionError) as error:
        return replace(generation, error=invalid_output(generation.text, output, error))
    except BaseException as error:
        raise_with_text(error, generation.text, output)


def raise_with_text(error: BaseException, text: str, output: Output) -> NoReturn:
    """Raise an exception of the type's code, with the text in a note.

    Unlike a ValueError, it is not a judgement of the text, so it is passed on; without the note,
    the text would be lost.
    """
    note = f"the generated text is {text!r}"
    reported = passed_on(error, f"the code of {output.name}")
    reported.add_note(note)
    raise reported


def invalid_output(text: str, output: Output, error: BaseException) -> InvalidOutput:
    """The error for a text that the type's own validators refuse."""
    message = (
        f"{output.name} refuses the generated text {_shortened(text)}: {first_complaint(error)}"
    )
    made = InvalidOutput(message, text=text)
    made.complaint = complaint_of(error)
    made.__cause__ = error
    return made


def by_value(texts: Iterable[tuple[str, float]], output: Output) -> list[tuple[Any, float]]:
    """The values of texts with log probabilities, most probable first, each value once.

    Values that the type's own validators refuse are left out. Two values are the same if they are
    equal and written the same: 1 and True are different.
    """
    found: list[tuple[Any, float]] = []
    places: dict[str, list[int]] = {}
    for text, logprob in texts:
        try:
            value = output.parse(text)
        except (ValueError, RecursionError):
            continue
        except BaseException as error:
            raise_with_text(error, text, output)
        written_the_same = places.setdefault(shown_value(value), [])
        for place in written_the_same:
            other, other_logprob = found[place]
            if _is_equal(other, value):
                found[place] = (other, float(np.logaddexp(other_logprob, logprob)))
                break
        else:
            written_the_same.append(len(found))
            found.append((value, logprob))
    found.sort(key=lambda one: -one[1])
    return found


def _is_equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _has_choice(generation: Generation[Any]) -> bool:
    """Whether the model chose any token of the text among several."""
    return any(isinstance(event, Sampled) and event.allowed != 1 for event in generation.trace)


def _unwritten(generation: Generation[Any], output: Output, max_tokens: int) -> IncompleteOutput:
    last = generation.trace[-1]
    text = _shortened(generation.text)
    if isinstance(last, Stopped) and last.limit == "context":
        limit, way_out = "the rest of the model's context", "shorten the prompt"
    else:
        limit, way_out = f"max_tokens={max_tokens}", "raise max_tokens"
    message = (
        f"{limit} leaves room for a shortest text of {output.name} only, {text}, in which the "
        f"model chose nothing: {way_out}"
    )
    return IncompleteOutput(message, text=generation.text)


def _cut_short(
    generation: Generation[Any], output: Output, max_tokens: int, shortest: int | None
) -> IncompleteOutput:
    last = generation.trace[-1]
    text = _shortened(generation.text)
    if generation.stop_text is not None:
        message = (
            f"the stop text {generation.stop_text!r} cut the text of {output.name} at {text}: "
            "choose a stop text that comes only after a whole text"
        )
    elif isinstance(last, Stopped) and last.limit == "context":
        message = (
            f"the model's context is full and cut the text of {output.name} at {text}: "
            "shorten the prompt, or bound the type's strings and lists"
        )
    else:
        message = (
            f"max_tokens={max_tokens} cut the text of {output.name} at {text}: "
            "raise max_tokens, or bound the type's strings and lists"
        )
        if shortest is not None and shortest > max_tokens:
            message += f"; the shortest text that was found takes {shortest} tokens"
    return IncompleteOutput(message, text=generation.text)


def _shortened(text: str, limit: int = 60) -> str:
    return repr(text if len(text) <= limit else f"…{text[-limit:]}")
