"""Which objects and arrays are open in a JSON text that grows.

One idea: what is settled is not read again. Each byte is looked at once, and what a reader of the
rest has to know is which brackets are open and where the last whole item before the end stands.
"""

from __future__ import annotations

import re

_MARK = re.compile(rb'["\[\]{},]')
_IN_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)


class Outline:
    """The open brackets of a text.

    Attributes:
        brackets: Those that are open, the outermost first.
        settled: To where the text is settled: after a bracket, or before the comma after an item,
            of the innermost one.
        is_begun: Whether items stand before that place in the innermost one.
        counts: How many items of each one stand before that place.
        names: The last name of a member in each one, as it is written; "" in an array.
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
        """A text with the same open brackets and nothing else but a name for each that needs it."""
        return self.brackets[:-1].replace("{", '{"":') + (self.brackets[-1:] or " ")

    def read(self, text: bytes | bytearray) -> None:
        """Read on in a text that begins with what was read before."""
        while self._read < len(text):
            if self._in_string:
                found = _IN_STRING.match(text, self._read)
                self._read = found.end() if found is not None else self._read
                if text[self._read : self._read + 1] != b'"':
                    return  # the text ends within it
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
            # After an object or array its item is counted already.
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
