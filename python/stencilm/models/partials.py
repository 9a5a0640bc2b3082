"""`Partials`: the values of a text that arrives in pieces.

One idea: a reader per kind of text takes each piece once, and a value is shown only if something
new can be seen in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stencilm.generation.partial import MISSING, Pace, PartialReader
from stencilm.generation.partial_texts import ChoiceReader, TextReader
from stencilm.generation.typed import raise_with_text
from stencilm.grammars.outputs import Output


class Partials:
    """The partial values of a text that arrives in pieces."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._start()

    def _start(self) -> None:
        self._reader: PartialReader | ChoiceReader | TextReader
        if self._output.is_json:
            self._reader = PartialReader(self._output.json_type)
        elif self._output.texts is not None:
            self._reader = ChoiceReader(self._output, self._output.texts)
        else:
            self._reader = TextReader()
        self._pace = Pace()
        self._is_new = False  # new text has arrived since the last value was shown

    def feed(self, piece: str | None) -> Any:
        """The value to show after one more piece; `MISSING` if there is nothing new.

        New parts of a very long value wait for a later piece.
        """
        if piece is None:
            self._start()
            return MISSING
        try:
            self._reader.feed(piece)
            self._is_new = self._reader.has_changed() or self._is_new
            return self._shown(self._reader.size, self._reader.value)
        except BaseException as error:
            raise_with_text(error, self._reader.text, self._output)

    def _shown(self, size: int, show: Callable[[], Any]) -> Any:
        if not self._is_new or not self._pace.affords(size):
            return MISSING
        self._is_new = False
        return self._pace.shown(show)

    def whole(self, text: str) -> Any:
        """The value of the whole text if it was already read, else `MISSING`."""
        return self._reader.whole(text)
