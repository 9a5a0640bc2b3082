"""Numbers of calls in a conversation: a model is shown each digit that it wrote.

One idea: a chat template writes a number as Python does, which for a float is not what the model
wrote. So a number that no float holds is replaced by another one that occurs nowhere else, and that
one is replaced in the template's output.
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
    """The digits of a number that no float is near, or that Python does not print.

    To `json.dumps` it is a text; a chat template writes it as the number.
    """

    __slots__ = ()


def for_messages(value: Any) -> Any:
    """Arguments of a call as a message holds them: `json.dumps` takes them, and no digit is lost.

    A Decimal is a float whose text has its digits, or, where no float is near, a text.
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
    """Messages for a chat template, and what puts the digits into the text that it writes."""
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
    chance = random.SystemRandom()  # so that no message can hold a mark
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
