"""Unfinished texts that are no JSON: free ones, and those of a list of texts.

One idea: they have the interface of `PartialReader`, so that a stream of them is one of its kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stencilm.generation.partial_types import MISSING
from stencilm.grammars.outputs import Output

__all__ = ["ChoiceReader", "TextReader"]

_CHARACTERS_FOR_A_PART = 64  # of text: copying them takes as long as copying an element of a list


class TextReader:
    """Reads a free text, every part of which is one."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._length = 0
        self._has_grown = False

    def feed(self, piece: str) -> None:
        """Append a piece to the text."""
        self._texts.append(piece)
        self._length += len(piece)
        self._has_grown = self._has_grown or bool(piece)

    def has_changed(self) -> bool:
        """Whether `value` shows more than at the previous call."""
        has_grown, self._has_grown = self._has_grown, False
        return has_grown

    @property
    def size(self) -> int:
        """About how many parts `value` copies."""
        return self._length // _CHARACTERS_FOR_A_PART

    @property
    def text(self) -> str:
        """The text so far."""
        text = "".join(self._texts)
        self._texts = [text]
        return text

    def value(self) -> Any:
        """The value so far; `MISSING` if there is none."""
        return self.text

    def whole(self, text: str) -> Any:
        """The value of the whole text; `MISSING` if it was not read."""
        return MISSING


class ChoiceReader:
    """Reads one of several texts: there is no value before it is clear which one is written.

    A text that another one continues may still become that one, as an open number may.
    """

    size = 1
    """About how many parts `value` copies."""

    def __init__(self, output: Output, texts: Sequence[str]) -> None:
        self.text = ""
        self._parse = output.parse
        self._left = texts
        self._value: Any = MISSING
        self._is_new = False

    def feed(self, piece: str) -> None:
        """Append a piece to the text."""
        self.text += piece
        self._left = [text for text in self._left if text.startswith(self.text)]
        if self._value is MISSING and self._left == [self.text]:
            try:
                self._value = self._parse(self.text)
            except (ValueError, RecursionError):
                return  # the type refuses it, which the whole text tells
            self._is_new = True

    def has_changed(self) -> bool:
        """Whether `value` shows more than at the previous call."""
        is_new, self._is_new = self._is_new, False
        return is_new

    def value(self) -> Any:
        """The value so far; `MISSING` if there is none."""
        return self._value

    def whole(self, text: str) -> Any:
        """The value of the whole text; `MISSING` if it was not read."""
        return self._value if text == self.text else MISSING
