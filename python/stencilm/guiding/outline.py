"""The objects and arrays that are open in a growing JSON text.

One idea: settled text is not read again. Each byte is scanned once. A reader of the rest only needs
the open brackets, and the position after the last complete item.
"""

from __future__ import annotations

import re

_MARK = re.compile(rb'["\[\]{},]')
_IN_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)


class Outline:
    """The open brackets of a text.

    Attributes:
        brackets: The open brackets, outermost first.
        settled: The position up to which the text is settled: after a bracket, or before the comma
            after an item of the innermost object or array.
        is_begun: Whether the innermost one has items before that position.
        counts: For each one, the number of items before that position.
        names: For each one, the last member's name as it is written; "" in an array.
    """

    def __init__(self) -> None:
        self.brackets = ""
        self.settled = 0
        self.is_begun = False
        self.counts: list[int] = []
        self.names: list[str] = []
        self._read = 0
        self._string = 0
        self._in_string = False
        self._owes_name = False
        self._is_behind_bracket = False

    @property
    def opening(self) -> str:
        """A text with the same open brackets, and otherwise only the names that it needs."""
        return self.brackets[:-1].replace("{", '{"":') + (self.brackets[-1:] or " ")

    def read(self, text: bytes | bytearray) -> None:
        """Continue reading a text that begins with what was read before."""
        while self._read < len(text):
            if self._in_string:
                found = _IN_STRING.match(text, self._read)
                self._read = found.end() if found is not None else self._read
                if text[self._read : self._read + 1] != b'"':
                    return  # the text ends within the string
                self._in_string = False
                self._read += 1
                if self._owes_name and self.brackets[-1:] == "{":
                    self.names[-1] = text[self._string : self._read].decode("utf-8", "replace")
                self._owes_name = False
                continue
            found = _MARK.search(text, self._read)
            if found is None:
                self._read = len(text)
                return
            self._read = found.end()
            self._take(text[found.start()], found.start())

    def _take(self, mark: int, at: int) -> None:
        if mark == 0x22:
            self._in_string, self._string = True, at
        elif mark == 0x2C:
            # An object or array was already counted when it was closed.
            if self.counts and not self._is_behind_bracket:
                self.counts[-1] += 1
            self.settled, self.is_begun = at, True
            self._is_behind_bracket, self._owes_name = False, True
        elif mark in b"[{":
            self.brackets += chr(mark)
            self.counts.append(0)
            self.names.append("")
            self.settled, self.is_begun = at + 1, False
            self._is_behind_bracket, self._owes_name = False, True
        else:
            self.brackets = self.brackets[:-1]
            del self.counts[-1:], self.names[-1:]
            if self.counts:
                self.counts[-1] += 1
            self.settled, self.is_begun = at + 1, True
            self._is_behind_bracket, self._owes_name = True, False
