"""How a value is drawn in a notebook: by `views.notebook`, which is found by its name.

One idea: a value knows no view. It only says that it can be drawn; the view knows the kinds of
values, and is loaded when a notebook asks.
"""

from __future__ import annotations

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


def name_of(output_type: Any, most: int = 100) -> str:
    """What an output type is called, in a line."""
    name = getattr(output_type, "__name__", None)
    shown = name if isinstance(output_type, type) and isinstance(name, str) else repr(output_type)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
