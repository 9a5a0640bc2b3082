"""A text that comes in pieces, read by generators that wait for more of it.

One idea: a reader is written as if the whole text were there. Where it needs more, it yields, and
goes on with the same local state when more has come, so no reader needs a hand-written state
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
# No marker with a name in it is longer; a text without its end is not looked through again and
# again.
LONGEST_HEADER = 2048
# Less than this is not worth moving the rest.
_MUCH = 1024


class Malformed(Exception):
    """The text is not what it began as; the message says what was expected."""


class CutShort(Exception):
    """The text ends within what is being read."""


class Text:
    """What has come of a text, and the place up to which it was read."""

    __slots__ = ("_differs", "at", "buffer", "ended")

    def __init__(self) -> None:
        self.buffer = ""
        self.at = 0
        self.ended = False
        # Where the last literal that did not come differs from the text.
        self._differs = 0

    def more(self) -> Waiting:
        """Waits for more.

        Raises:
            CutShort: There is none.
        """
        if self.ended:
            raise CutShort
        yield

    def drop(self, before: int) -> None:
        """Forgets what stands before a place."""
        self.buffer = self.buffer[before:]
        self.at -= before

    def skip_whitespace(self) -> Generator[None, None, bool]:
        """Goes to the next character that is no white space; False where the text ends first."""
        while True:
            match = _WHITESPACE.match(self.buffer, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.buffer):
                return True
            if self.ended:
                return False
            yield

    def comes(self, literal: str) -> Generator[None, None, bool]:
        """Whether a literal comes next, white space left aside in both; goes over it if it does."""
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
        """Goes over a literal, white space left aside.

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
        """What came in place of the last literal that did not come, up to where it differs.

        However much of the text has come, it is the same.
        """
        return self.buffer[self.at : self._differs + 1].lstrip()

    def match(self, pattern: re.Pattern[str]) -> Generator[None, None, re.Match[str]]:
        """Waits for a pattern from here on, and goes over it.

        Raises:
            Malformed: It does not come within the length of a header.
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
        """Reads the text of one JSON value, which goes to `emit` piece by piece.

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
            match = _SCALAR.match(self.buffer, self.at)  # only what is new is looked at
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
        """Reads up to the first of some texts and over it: what stands before it, and which it is.

        What comes before goes to `emit` piece by piece, once it is certain that no stop begins in
        it. Where the text ends first there is no stop. Without `keep` what was handed on is
        forgotten, so that a long text costs what is new in it.
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
        """How many of the last characters may begin a stop."""
        for length in range(min(longest - 1, len(self.buffer) - begin), 0, -1):
            tail = self.buffer[-length:]
            if any(stop.startswith(tail) for stop in stops):
                return length
        return 0
