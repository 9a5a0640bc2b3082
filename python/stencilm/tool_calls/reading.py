"""A text that arrives in pieces, read by generators that wait for more of it.

One idea: a reader is written as if the whole text were there. If it needs more, it yields, and
continues with the same local state when more has arrived. So no reader needs a hand-written state
machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias

Reading: TypeAlias = Generator[None, None, "str"]
Waiting: TypeAlias = Generator[None, None, None]

_WHITESPACE = re.compile(r"\s*")
_TO_BRACKET = re.compile(r'["{}\[\]]')
_TO_QUOTE = re.compile(r'["\\]')
_SCALAR = re.compile(r"[^\s,\]}<:]*")
# The longest marker with a name in it; without this bound, a text without its end would be searched
# again and again.
LONGEST_HEADER = 2048
# With less text than this before the position, moving the rest is not worth it.
_MUCH = 1024


class Malformed(Exception):
    """The text is not what its beginning promised; the message says what was expected."""


class CutShort(Exception):
    """The text ends within the current part."""


class Text:
    """The text so far, and the position up to which it was read."""

    __slots__ = ("_differs", "at", "buffer", "ended")

    def __init__(self) -> None:
        self.buffer = ""
        self.at = 0
        self.ended = False
        # Where the text differs from the last literal that was expected.
        self._differs = 0

    def more(self) -> Waiting:
        """Wait for more text.

        Raises:
            CutShort: There is none.
        """
        if self.ended:
            raise CutShort
        yield

    def drop(self, before: int) -> None:
        """Forget the text before a position."""
        self.buffer = self.buffer[before:]
        self.at -= before

    def skip_whitespace(self) -> Generator[None, None, bool]:
        """Move to the next character that is not whitespace; False if the text ends first."""
        while True:
            match = _WHITESPACE.match(self.buffer, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.buffer):
                return True
            if self.ended:
                return False
            yield

    def comes(self, literal: str) -> Generator[None, None, bool]:
        """Move past a literal if it comes next, ignoring whitespace; returns whether it does."""
        at = self.at
        for character in literal:
            if character.isspace():
                continue
            if not (yield from self.skip_whitespace()) or self.buffer[self.at] != character:
                self._differs, self.at = self.at, at
                return False
            self.at += 1
        return True

    def expect(self, literal: str) -> Waiting:
        """Move past a literal, ignoring whitespace.

        Raises:
            Malformed: Something else comes.
            CutShort: The text ends.
        """
        at = self.at
        if not (yield from self.comes(literal)):
            rest, missing = self.buffer[at:].split(), literal.split()
            if self.ended and "".join(missing).startswith("".join(rest)):
                raise CutShort
            raise Malformed(f"{literal.strip()!r} is expected, not {self.other()!r}")

    def other(self) -> str:
        """The text in place of the last literal that was expected, up to the first difference.

        It does not depend on how much of the text has arrived.
        """
        return self.buffer[self.at : self._differs + 1].lstrip()

    def match(self, pattern: re.Pattern[str]) -> Generator[None, None, re.Match[str]]:
        """Wait for a pattern at the current position, and move past it.

        Raises:
            Malformed: It does not match within the length of a header.
            CutShort: The text ends.
        """
        while True:
            match = pattern.match(self.buffer, self.at, self.at + LONGEST_HEADER)
            if match is not None:
                self.at = match.end()
                return match
            if len(self.buffer) - self.at >= LONGEST_HEADER:
                raise Malformed(f"{self.buffer[self.at : self.at + 20]!r} begins no call")
            yield from self.more()

    def json_value(self, emit: Callable[[str], None] | None = None) -> Reading:
        """Read the text of one JSON value, which is passed to `emit` piece by piece.

        Raises:
            CutShort: The text ends.
        """
        if not (yield from self.skip_whitespace()):
            raise CutShort
        begin = done = self.at
        depth = 0
        in_string = False
        while True:
            if (
                depth == 0
                and not in_string
                and self.buffer[self.at : self.at + 1] not in tuple('"{[')
            ):
                yield from self._scalar()
                break
            match = (_TO_QUOTE if in_string else _TO_BRACKET).search(self.buffer, self.at)
            if match is None or (match[0] == "\\" and match.end() == len(self.buffer)):
                self.at = match.start() if match else len(self.buffer)
                if emit is not None and self.at > done:
                    emit(self.buffer[done : self.at])
                    done = self.at
                yield from self.more()
                continue
            self.at = match.end()
            if match[0] == "\\":
                self.at += 1
            elif match[0] == '"':
                in_string = not in_string
            else:
                depth += 1 if match[0] in "{[" else -1
            if depth == 0 and not in_string:
                break
        if emit is not None and self.at > done:
            emit(self.buffer[done : self.at])
        return self.buffer[begin : self.at]

    def _scalar(self) -> Waiting:
        begin = self.at
        while True:
            match = _SCALAR.match(self.buffer, self.at)  # only new text is searched
            self.at = match.end() if match else self.at
            if self.at < len(self.buffer) or self.ended:
                break
            yield
        if self.at == begin:
            found = self.buffer[begin : begin + 1]
            raise Malformed(f"a JSON value is expected, not {found!r}")

    def until(
        self,
        stops: Sequence[str],
        emit: Callable[[str], None] | None = None,
        *,
        keep: bool = True,
    ) -> Generator[None, None, tuple[str, str | None]]:
        """Read through the first of some stops; returns the text before it, and the stop found.

        The text before it is passed to `emit` piece by piece, once it is certain that no stop
        begins in it. If the text ends first, there is no stop. Without `keep`, text that was passed
        on is forgotten, so the cost of a long text is that of its new parts.
        """
        begin = done = looked = self.at
        pattern = re.compile("|".join(map(re.escape, sorted(stops, key=len, reverse=True))))
        longest = max(map(len, stops))
        while True:
            match = pattern.search(self.buffer, looked)
            if match is not None and not self.ended:
                # A longer stop may begin there, too.
                rest = self.buffer[match.start() : match.start() + longest]
                if any(len(stop) > len(rest) and stop.startswith(rest) for stop in stops):
                    looked = match.start()
                    if emit is not None and looked > done:
                        emit(self.buffer[done:looked])
                        done = looked
                    yield
                    continue
            if match is not None:
                before, stop = match.start(), match[0]
                self.at = match.end()
            elif self.ended:
                before, stop = len(self.buffer), None
                self.at = before
            else:
                before = len(self.buffer) - self._held(stops, longest, begin)
                looked = max(begin, len(self.buffer) - longest + 1)
            if emit is not None and before > done:
                emit(self.buffer[done:before])
                done = before
            if match is not None or self.ended:
                return self.buffer[begin:before], stop
            if not keep and done > _MUCH:
                self.at = done
                looked -= done
                self.drop(done)
                begin = done = 0
                looked = max(looked, 0)
            yield

    def _held(self, stops: Sequence[str], longest: int, begin: int) -> int:
        """The number of last characters that may begin a stop."""
        for length in range(min(longest - 1, len(self.buffer) - begin), 0, -1):
            tail = self.buffer[-length:]
            if any(stop.startswith(tail) for stop in stops):
                return length
        return 0
