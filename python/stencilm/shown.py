"""How a value is drawn in a notebook: by `views.notebook`, which is found by its name.

One idea: a value knows no view. It only says that it can be drawn; the view knows the kinds of
values, and is loaded when a notebook asks.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from importlib import import_module
from typing import Any


class Shown:
    """A value that a notebook shows as more than its `repr`."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        drawn: str = import_module("stencilm.views.notebook").html(self)
        return drawn


def in_a_line(text: str, most: int = 60) -> str:
    """The beginning of a text in quotes, with a sign where it goes on."""
    return repr(text if len(text) <= most else f"{text[: most - 1]}…")


def in_short(text: str) -> str:
    """A sentence that quotes what somebody gave, however long that is.

    Of a long one each long word is cut first, as a name without end is one, and what is still too
    long in the middle: it begins with the value, and ends with the way out.
    """
    if len(text) <= _MOST_OF_SENTENCE:
        return text
    text = _LONG_WORD.sub(r"\1…\2", text)
    if len(text) <= _MOST_OF_SENTENCE:
        return text
    return f"{text[: _MOST_OF_SENTENCE - _MOST_OF_END - 3]} … {text[-_MOST_OF_END:]}"


_MOST_OF_SENTENCE = 2_000
_MOST_OF_END = 600
_LONG_WORD = re.compile(r"(\S{100})\S{100,}(\S{20})")


def shown_value(value: Any) -> str:
    """Its `repr`; of what has none, as an integer of more than 4,300 digits, the name of its type.

    What raises in `repr` is somebody's value or type, and what is to be said is something else.
    """
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def is_word(value: Any, words: Collection[str]) -> bool:
    """Whether it is one of some words; what compares as something else, as an array, is none."""
    return isinstance(value, str) and value in words


def name_of(output_type: Any, most: int = 100) -> str:
    """What an output type is called, in a line."""
    name = getattr(output_type, "__name__", None)
    is_named = isinstance(output_type, type) and isinstance(name, str)
    shown = str(name) if is_named else shown_value(output_type)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
