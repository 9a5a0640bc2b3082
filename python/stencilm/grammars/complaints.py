"""What a validator says of a value, for users and for the model that wrote the value.

One idea: a model corrects what it is told in a few words. So each fault is one line, with its place
and the value there, without the name of the class and links.
"""

from __future__ import annotations

from typing import Any

from stencilm.grammars.json_values import write_json
from stencilm.shown import shown_value


def first_complaint(error: BaseException) -> str:
    """The first complaint of a validator, on one line."""
    return _complaints(error)[0]


def complaint_of(error: BaseException) -> str:
    """What a validator said, in short lines: each fault with its place and the value there."""
    lines = _complaints(error, with_values=True)
    more = len(lines) - _MOST_COMPLAINTS
    return "\n".join([*lines[:_MOST_COMPLAINTS], *([f"and {more} more"] if more > 0 else [])])


def refusal(complaint: str, wish: str) -> str:
    """The message to a model about a text that was refused, and what it is asked for."""
    if "\n" not in complaint:
        return f"That was refused: {complaint}. {wish}"
    lines = "".join(f"\n- {line}" for line in complaint.splitlines())
    return f"That was refused:{lines}\n{wish}"


def _complaints(error: BaseException, *, with_values: bool = False) -> list[str]:
    errors = getattr(error, "errors", None)
    if callable(errors):  # pydantic
        found = []
        for one in errors(include_url=False, include_context=False):
            place = "/".join(str(part) for part in one["loc"])
            line = f"{place}: {one['msg']}" if place else str(one["msg"])
            if with_values:
                line = _cut(" ".join(line.split()), _LONGEST_COMPLAINT)
                # Nothing is there, or all that the model has just written.
                if place and one["type"] != "missing":
                    line = f"{line} (it is {_cut(_as_json(one['input']), _LONGEST_VALUE)})"
            found.append(line)
        return found
    return [str(error).splitlines()[0] if str(error) else type(error).__name__]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _as_json(value: Any) -> str:
    """A value as a model writes it; one that JSON cannot express, as Python does."""
    try:
        return write_json(value)
    except (TypeError, ValueError, RecursionError):
        return shown_value(value)


_MOST_COMPLAINTS = 8
_LONGEST_COMPLAINT = 200
_LONGEST_VALUE = 80
