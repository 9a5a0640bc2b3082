"""From a text to its typed value, or to the reason why it has none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stencilm.generation.result import Generation, IncompleteOutput, InvalidOutput
from stencilm.generation.trace import Stopped
from stencilm.output_types import Output


def with_value(generation: Generation[Any], output: Output, max_tokens: int) -> Generation[Any]:
    """The generation with its typed value, or with the reason why there is none."""
    if generation.finish_reason == "length" and not output.accepts_cut_text:
        return replace(generation, error=_cut(generation, output, max_tokens))
    try:
        return replace(generation, value=output.parse(generation.text))
    except (ValueError, RecursionError) as error:
        message = f"{output.name} refuses the generated text {_shortened(generation.text)}: "
        reason = InvalidOutput(message + _one_line(error), text=generation.text)
        return replace(generation, error=reason)


def _cut(generation: Generation[Any], output: Output, max_tokens: int) -> IncompleteOutput:
    last = generation.trace[-1]
    text = _shortened(generation.text)
    if isinstance(last, Stopped) and last.limit == "context":
        message = (
            f"the model's context is full and cut the text of {output.name} at {text}: "
            "shorten the prompt, or bound the type's strings and lists"
        )
    else:
        message = (
            f"max_tokens={max_tokens} cut the text of {output.name} at {text}: "
            "raise max_tokens, or bound the type's strings and lists"
        )
    return IncompleteOutput(message, text=generation.text)


def _shortened(text: str, limit: int = 60) -> str:
    return repr(text if len(text) <= limit else f"…{text[-limit:]}")


def _one_line(error: BaseException) -> str:
    """The first complaint of a validator on one line."""
    errors = getattr(error, "errors", None)
    if callable(errors):  # pydantic
        first = errors()[0]
        place = "/".join(str(part) for part in first["loc"])
        return f"{place}: {first['msg']}" if place else str(first["msg"])
    return str(error).splitlines()[0] if str(error) else type(error).__name__
