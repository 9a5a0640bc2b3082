"""Numbers of calls in a conversation: the model is shown every digit that it wrote.

One idea: a chat template writes numbers as Python does, which for a float may differ from the
model's digits. So a number that no float represents is replaced by another one that occurs nowhere
else, and this one is replaced again in the template's output.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from stencilm.grammars.json_values import json_ready
from stencilm.grammars.written_numbers import WrittenNumber

M = TypeVar("M")


class NumberText(str):
    """The digits of a number that is not close to a float, or that Python does not print.

    `json.dumps` writes it as a string; a chat template writes it as the number.
    """

    __slots__ = ()


def for_messages(value: Any) -> Any:
    """Arguments of a call for a message: `json.dumps` accepts them, and no digit is lost.

    A Decimal becomes a float whose text has its digits or, if no float is close, a text.
    """
    match value:
        case dict():
            return {name: for_messages(one) for name, one in value.items()}
        case list():
            return [for_messages(one) for one in value]
        case Decimal():
            number = WrittenNumber(str(value))
            return NumberText(value) if number.is_beyond_floats else number
    ready = json_ready(value)
    return ready if type(ready) is type(value) else NumberText(ready)


def with_marks(messages: M) -> tuple[M, Callable[[str], str]]:
    """Messages for a chat template, and a function that restores the digits in its output."""
    texts: dict[str, str] = {}

    def mark(value: Any) -> Any:
        match value:
            case Mapping():
                return {name: mark(one) for name, one in value.items()}
            case list() | tuple():
                return [mark(one) for one in value]
            case NumberText() | WrittenNumber() | Decimal():
                number = float(f"{chance.randrange(10**14, 10**15)}e-300")
                texts[repr(number)] = str(value)
                return number
        return value

    if not _has_numbers(messages):
        return messages, str
    chance = random.SystemRandom()  # chosen so that no message can contain a mark
    marked = mark(messages)
    found = re.compile("|".join(map(re.escape, texts)))
    return marked, lambda text: found.sub(lambda one: texts[one[0]], text)


def _has_numbers(messages: Any) -> bool:
    todo = [messages]
    while todo:
        value = todo.pop()
        match value:
            case NumberText() | WrittenNumber() | Decimal():
                return True
            case Mapping():
                todo += value.values()
            case list() | tuple():
                todo += value
    return False
