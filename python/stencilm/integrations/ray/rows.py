"""From a row of a dataset to a prompt, and from an answer to columns.

One idea: anything that may fail for a single row is a value, so that it does not fail the job.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from stencilm.models.protocol import Prompt, checked_prompt
from stencilm.shown import shown_value

Row: TypeAlias = dict[str, Any]

PromptOfRow: TypeAlias = str | Callable[[Row], Prompt]
"""A format string over the columns, such as "Describe {name}.", or a function of the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of one row.

    Attributes:
        text: What the model wrote; empty if there was no generation.
        error: Why there is no value; None if there is one.
        prompt_tokens: Tokens of the prompt.
        tokens: Generated tokens.
        forced_tokens: Those of them that the grammar forced.
        seconds: The row's share of its batch's time.
    """

    text: str = ""
    error: str | None = None
    prompt_tokens: int = 0
    tokens: int = 0
    forced_tokens: int = 0
    seconds: float = 0.0


COUNTS = ("prompt_tokens", "tokens", "forced_tokens")


def failed(error: BaseException) -> Answer:
    """The answer of a row without a text."""
    return Answer(error=described(error))


def described(error: BaseException) -> str:
    """An error in one line, with its type."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def check_prompt(prompt: Any) -> PromptOfRow:
    """Check the prompt of `Generate`, including the columns that a format string names.

    Raises:
        TypeError: It is neither a text nor a function.
        ValueError: The text is not a format string, or names a field by number.
    """
    if callable(prompt):
        made: PromptOfRow = prompt
        return made
    if not isinstance(prompt, str):
        raise TypeError(
            f"prompt is {shown_value(prompt):.60}, but must be a text over the columns, such as "
            "'Describe {name}.', or a function that takes a row"
        )
    try:
        names = _fields(prompt)
    except ValueError as error:
        raise ValueError(
            f"prompt is no format string: {error}; a brace of the text itself is written twice, "
            "as in '{{'"
        ) from error
    for name in names:
        if not name or name[0].isdigit():
            raise ValueError(
                f"prompt has the field {{{name}}}, but fields are named by their columns, such as "
                "{text}; a brace of the text itself is written twice"
            )
    return prompt


def columns_of(prompt: PromptOfRow) -> set[str] | None:
    """The columns that a prompt uses; None if a function may read any."""
    if not isinstance(prompt, str):
        return None
    return {re.split(r"[.\[]", name)[0] for name in _fields(prompt)}


def _fields(text: str) -> list[str]:
    """The fields of a format string, including those nested in the format of another field.

    Raises:
        ValueError: It is not a format string.
    """
    found: list[str] = []
    for _, name, form, conversion in string.Formatter().parse(text):
        if name is None:
            continue
        if conversion not in (None, "r", "s", "a"):
            raise ValueError(f"a field is converted by !r, !s or !a, not by !{conversion}")
        found.append(name)
        if form:
            found += _fields(form)
    return found


def prompt_of(prompt: PromptOfRow, row: Row) -> Prompt:
    """The prompt of one row; raises any error in making it."""
    if not isinstance(prompt, str):
        return checked_prompt(prompt(row))
    try:
        return checked_prompt(string.Formatter().vformat(prompt, (), row))
    except KeyError as error:
        missing = sorted((columns_of(prompt) or set()) - set(row))
        if not missing:
            raise ValueError(f"the prompt names {error} within a column that lacks it") from None
        shown = ", ".join(map(repr, row))
        raise ValueError(
            f"the prompt names the column {missing[0]!r}, but the row has {shown}"
        ) from None


def plain(prompt: Prompt) -> Any:
    """A prompt as JSON-ready data."""
    if isinstance(prompt, str):
        return prompt
    messages: Sequence[Mapping[str, object]] = prompt
    return [dict(message) for message in messages]
