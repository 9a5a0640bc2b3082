"""Display of values in a notebook, by `views.notebook`, which is looked up by name.

One idea: a value does not know its view. It only declares that it can be displayed. The view knows
the kinds of values, and is loaded when a notebook asks.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from importlib import import_module
from typing import Any


class Shown:
    """A value that a notebook displays as more than its `repr`."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        drawn: str = import_module("stencilm.views.notebook").html(self)
        return drawn


def in_a_line(text: str, most: int = 60) -> str:
    """The beginning of a text in quotes, with an ellipsis if it continues."""
    return repr(text if len(text) <= most else f"{text[: most - 1]}…")


def in_short(text: str) -> str:
    """Shorten a sentence that quotes a value of any length.

    In a long sentence, each long word is cut first, such as an endless name. If it is still too
    long, its middle is left out: the value is at the beginning, the way out at the end.
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
    """The `repr` of a value, or the name of its type if that fails, as for a very long integer.

    An error in `repr` comes from the caller's value or type, and must not hide the message that is
    being written.
    """
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def is_word(value: Any, words: Collection[str]) -> bool:
    """Whether it is one of some words; an array, which compares elementwise, is none."""
    return isinstance(value, str) and value in words


def name_of(output_type: Any, most: int = 100) -> str:
    """The name of an output type, in one line."""
    name = getattr(output_type, "__name__", None)
    is_named = isinstance(output_type, type) and isinstance(name, str)
    shown = str(name) if is_named else shown_value(output_type)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
