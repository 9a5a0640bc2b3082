"""Typed values of unfinished texts: closed parts are validated, open parts are shown.

One idea: the reader scans each character once. It keeps the open containers, with their closed
parts as values. So a step costs only what is new, and showing a value copies no more than the open
containers. If these are large, a value is shown only as often as copying takes no longer than
everything else.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from time import perf_counter
from typing import Any

from stencilm.generation.partial_types import ANYTHING, MISSING, Holder, Kind, Shape, shape_of

__all__ = ["MISSING", "Pace", "PartialReader", "is_same", "partial_value"]


def partial_value(tp: Any, text: str) -> Any:
    """The value of the beginning of a JSON text; `MISSING` if there is none yet.

    Pydantic models and dataclasses are instances in which missing members are None, and lists hold
    the elements so far. An open string is shown as it is, an open number is not.
    """
    reader = PartialReader(tp)
    reader.feed(text)
    return reader.value()


class Pace:
    """Decides how often a growing value is shown: always while it is small, else half of the time.

    A returned value belongs to the caller, who may change it. So each one is a copy, and showing a
    list of n elements at every step would copy it n times.
    """

    def __init__(self) -> None:
        self._cost = 0.0
        self._shown_at = 0.0

    def affords(self, size: int) -> bool:
        """Whether a value of about `size` parts may be shown now."""
        return size <= _ALWAYS_SHOWN or perf_counter() - self._shown_at >= self._cost

    def shown(self, show: Callable[[], Any]) -> Any:
        """The result of `show`, whose duration is recorded."""
        started = perf_counter()
        value = show()
        self._shown_at = perf_counter()
        self._cost = self._shown_at - started
        return value


_ALWAYS_SHOWN = 4_096


class _Open:
    """An open container: its possible holders, and its closed parts."""

    __slots__ = (
        "closed", "holders", "is_whole", "key", "kind", "members", "name", "shape", "slices",
        "start",
    )  # fmt: skip

    def __init__(self, shape: Shape, kind: Kind, start: int) -> None:
        self.shape = shape
        self.kind = kind
        self.start = start
        self.holders = shape.holders(kind)
        self.closed: Any = {} if kind == "object" else []
        self.slices: dict[Any, tuple[int, int]] | None = {} if len(self.holders) > 1 else None
        self.is_whole = True  # no part was refused or is unknown to the type
        self.key: str | None = None
        self.name: Any = None
        self.members = ANYTHING

    @property
    def holder(self) -> Holder | None:
        """Its holder, once only one is possible."""
        return self.holders[0] if len(self.holders) == 1 else None

    @property
    def shows_open(self) -> bool:
        """Whether its open part is shown in it."""
        holder = self.holder
        return holder is not None and holder.shows_open

    def show(self, last: Any) -> Any:
        """The value, including the open part."""
        holder = self.holder
        if holder is None:
            return MISSING
        if not holder.shows_open:
            last = MISSING
        if self.kind == "object":
            parts = dict(self.closed)
            if last is not MISSING:
                parts[self.name] = last
            return holder.show(parts)
        return holder.show([*self.closed] if last is MISSING else [*self.closed, last])


_SPACE = re.compile(r"[ \t\n\r]*")
_WORD = re.compile(r"[-+.0-9A-Za-z]*")
_STRING = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_ESCAPE_CUT = re.compile(
    r"(?<!\\)(?:\\\\)*"  # pairs of backslashes are characters
    r"(?P<cut>\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?"
    r"|\\(?:u[0-9a-fA-F]{0,3})?)\Z"
)
_SCALARS = re.compile(
    r'(?:(?:-?[0-9][-+.0-9eE]*|true|false|null|"[^"\\\x00-\x1f]*")[ \t\n\r]*,[ \t\n\r]*)+'
)
_WORDS = ("true", "false", "null")
_LONGEST_WORD = max(map(len, _WORDS))
_CHARACTERS_FOR_A_PART = 64  # characters that are copied in the time of one part
_LONG = 64
"""From this many characters on, the scalars of an array are read together."""


class PartialReader:
    """Reads a JSON text piece by piece, and shows the value so far.

    Args:
        tp: The type of the text; `Any` for the data itself.
    """

    def __init__(self, tp: Any) -> None:
        self._shape = shape_of(tp)
        self._text = ""
        self._at = 0
        self._open: list[_Open] = []
        self._decided = 0  # how many of the outermost containers are shown
        self._string: int | None = None  # the position of an open string, at its quote
        self._scanned = 0  # the position up to which it, or an open word, was searched for its end
        self._decoded, self._decoded_to = "", 0
        self._done: Any = MISSING
        self._is_broken = False
        self._expects: str = "value"  # or "key", "colon", "comma", "end"
        self._version = 0
        self._shown = -1

    def feed(self, piece: str) -> None:
        """Append a piece to the text."""
        # Python extends a string in place if it has no other reference, and copies it otherwise.
        text, self._text = self._text, ""
        text += piece
        self._text = text
        del text
        while not self._is_broken and self._step():
            pass

    @property
    def text(self) -> str:
        """The text so far."""
        return self._text

    def has_changed(self) -> bool:
        """Whether `value` shows more than at the previous call."""
        changed = self._version != self._shown
        self._shown = self._version
        return changed

    @property
    def size(self) -> int:
        """About how many parts `value` copies."""
        string = 0 if self._string is None else self._scanned - self._string
        return sum(len(one.closed) for one in self._open) + string // _CHARACTERS_FOR_A_PART

    def whole(self, text: str) -> Any:
        """The value of the whole text; `MISSING` if the text is not complete or was not read.

        It is the value that was shown, so it need not be validated again.
        """
        is_whole = self._expects == "end" and not self._is_broken and self._text == text
        return self._done if is_whole and not text[self._at :].strip(" \t\n\r") else MISSING

    def value(self) -> Any:
        """The value so far, as a copy; `MISSING` if there is none."""
        if self._expects == "end":
            return self._done
        value = self._open_string()
        for one in reversed(self._open):
            value = one.show(value)
        return value

    # Each step reads one token; it returns False if it has to wait for more text.

    def _step(self) -> bool:
        if self._string is not None:
            return self._go_on_in_string()
        match = _SPACE.match(self._text, self._at)
        assert match is not None, "invariant: the pattern matches the empty text"
        self._at = match.end()
        if self._at == len(self._text):
            return False
        character = self._text[self._at]
        if self._expects == "end":
            return False
        if self._expects == "colon":
            self._at += 1
            self._expects = "value"
            return character == ":" or self._break()
        if character in "}]" and self._open and self._expects != "colon":
            return self._close_container()
        if self._expects == "comma":
            self._at += 1
            self._expects = "key" if self._open[-1].kind == "object" else "value"
            return character == "," or self._break()
        if character == '"':
            self._string, self._scanned = self._at, self._at + 1
            self._decoded, self._decoded_to = "", self._at + 1
            if self._expects == "value" and self._shows_open():
                self._changed()
            return True
        if self._expects == "key":
            return self._break()
        if character in "{[":
            kind: Kind = "object" if character == "{" else "array"
            self._open.append(_Open(self._next_shape(), kind, self._at))
            self._expects = "key" if kind == "object" else "value"
            self._at += 1
            self._changed()
            return True
        return self._read_word()

    def _break(self) -> bool:
        self._is_broken = True
        return False

    def _changed(self) -> None:
        # The contents of an undecided container are not shown, nor is the open element of a set. A
        # container that is decided stays so.
        while self._decided < len(self._open) and self._is_shown(self._decided):
            self._decided += 1
        if self._decided == len(self._open):
            self._version += 1

    def _is_shown(self, number: int) -> bool:
        """Whether a container is shown in its parent, which is shown."""
        is_decided = self._open[number].holder is not None
        return is_decided and (number == 0 or self._open[number - 1].shows_open)

    def _shows_open(self) -> bool:
        """Whether the open part of the innermost container is shown in it."""
        return not self._open or self._open[-1].shows_open

    def _next_shape(self) -> Shape:
        """The shape of the value that begins here."""
        if not self._open:
            return self._shape
        parent = self._open[-1]
        if parent.kind == "object":
            return parent.members
        holder = parent.holder
        return ANYTHING if holder is None else holder.element(len(parent.closed))

    def _read_word(self) -> bool:
        parent = self._open[-1] if self._open else None
        if parent is not None and parent.kind == "array" and self._read_many(parent):
            return True
        match = _WORD.match(self._text, max(self._at, self._scanned))
        assert match is not None, "invariant: the pattern matches the empty text"
        start, end = self._at, match.end()
        if end == start:
            return self._break()
        if end == len(self._text) and self._text[start : start + _LONGEST_WORD + 1] not in _WORDS:
            self._scanned = end
            return False  # it may continue
        self._at = end
        value = self._next_shape().read(self._text[start:end])
        self._put(value, start, end, is_news=value is not MISSING)
        return True

    def _read_many(self, parent: _Open) -> bool:
        """Read many scalars of an array at once, if much text has arrived at once."""
        holder = parent.holder
        if self._scanned > self._at:
            return False  # within a word whose end is still missing
        if len(self._text) - self._at < _LONG or holder is None or not holder.is_uniform:
            return False
        shape = holder.element(0)
        match = _SCALARS.match(self._text, self._at)
        if match is None:
            return False
        values = shape.read_all(f"[{match.group().rstrip().removesuffix(',')}]")
        if values is None:
            return False
        parent.closed += values
        self._at = match.end()
        self._changed()
        return True

    def _go_on_in_string(self) -> bool:
        assert self._string is not None, "invariant: a string is open"
        match = _STRING.match(self._text, self._scanned)
        assert match is not None, "invariant: the pattern matches the empty text"
        end = match.end()
        if end == len(self._text) or self._text[end] != '"':
            # The end of the text, or a backslash without the character after it.
            if (
                self._scanned < end
                and self._expects == "value"
                and self._shows_open()
                and len(self._next_shape().holders("string")) == 1
            ):
                self._changed()
            self._scanned = end
            return False
        has_grown = end > self._scanned
        start, self._scanned, self._at = self._string, end, end + 1
        before = self._open_string()
        self._string = None
        if self._expects == "key":
            self._read_key(start)
            return not self._is_broken
        value = self._next_shape().read(self._text[start : self._at])
        self._put(value, start, self._at, is_news=has_grown or not is_same(before, value))
        return True

    def _open_string(self) -> Any:
        """The open string as it is, if its type can show one."""
        if self._string is None or self._expects != "value" or not self._shows_open():
            return MISSING
        holders = self._next_shape().holders("string")
        if len(holders) != 1:
            return MISSING
        new = self._text[self._decoded_to : self._scanned]
        if cut := _ESCAPE_CUT.search(new):
            new = new[: cut.start("cut")]
        try:
            self._decoded += json.loads(f'"{new}"', strict=False)
            self._decoded_to += len(new)
        except ValueError:
            pass  # not a valid JSON string: shown up to the error
        return holders[0].show(self._decoded)

    def _read_key(self, start: int) -> None:
        parent = self._open[-1]
        try:
            key = json.loads(self._text[start : self._at], strict=False)
        except ValueError:
            self._break()
            return
        if len(parent.holders) > 1:
            self._narrow(parent, [one for one in parent.holders if one.member(key) is not None])
        holder = parent.holder
        member = None if holder is None else holder.member(key)
        parent.key = key
        parent.name, parent.members = (key, ANYTHING) if member is None else member
        parent.is_whole = parent.is_whole and (member is not None or holder is None)
        self._expects = "colon"

    def _narrow(self, parent: _Open, holders: list[Holder]) -> None:
        """Keep these holders.

        Parts read while several were possible are read again by the one left.
        """
        if not holders:
            return
        parent.holders = holders
        if len(holders) > 1 or parent.slices is None:
            return
        closed: Any = {} if parent.kind == "object" else []
        for key, (start, end) in parent.slices.items():
            text = self._text[start:end]
            if parent.kind == "object":
                name, shape = holders[0].member(key) or (key, ANYTHING)
                value = closed[name] = shape.read(text)
            else:
                value = holders[0].element(len(closed)).read(text)
                closed.append(value)
            parent.is_whole = parent.is_whole and value is not MISSING
        parent.is_whole = parent.is_whole and len(closed) == len(parent.slices)
        parent.closed = closed
        parent.slices = None
        self._changed()

    def _close_container(self) -> bool:
        one = self._open.pop()
        self._decided = min(self._decided, len(self._open))
        if (self._text[self._at] == "}") != (one.kind == "object"):
            return self._break()
        self._at += 1
        holder = one.holder
        before = one.show(MISSING) if self._shows_open() else MISSING
        value = MISSING
        if (
            holder is not None
            and one.is_whole
            and holder.is_plain
            and not (one.shape.has_rules or one.shape.is_union_of(one.kind))
        ):
            value = holder.close(one.closed)
        if value is MISSING:
            value = one.shape.read(self._text[one.start : self._at])
        self._put(value, one.start, self._at, is_news=not is_same(before, value))
        return True

    def _put(self, value: Any, start: int, end: int, *, is_news: bool) -> None:
        """Store a closed value."""
        if is_news:
            self._changed()
        if not self._open:
            self._done = value
            self._expects = "end"
            return
        parent = self._open[-1]
        self._expects = "comma"
        parent.is_whole = parent.is_whole and value is not MISSING
        if parent.kind == "object":
            if parent.slices is not None:
                parent.slices[parent.key] = (start, end)
                self._narrow_by_tag(parent, value)
                if parent.slices is None:
                    return
            if parent.name in parent.closed:  # two keys that are read as one
                parent.is_whole = False
            if value is not MISSING:
                parent.closed[parent.name] = value
        else:
            if parent.slices is not None:
                parent.slices[len(parent.closed)] = (start, end)
            if value is not MISSING or parent.slices is not None:
                parent.closed.append(value)

    def _narrow_by_tag(self, parent: _Open, value: Any) -> None:
        """Keep the holders that allow this value of a member which they restrict by `Literal`."""
        assert parent.key is not None, "invariant: a member has a key"
        left = []
        for holder in parent.holders:
            member = holder.member(parent.key)
            literals = None if member is None else member[1].literals
            if literals is None or value in literals:
                left.append(holder)
        self._narrow(parent, left)


def is_same(one: Any, other: Any) -> bool:
    """Whether two partial values show the same.

    No method of an instance is called, because missing members might make it fail.
    """
    waiting = [(one, other)]
    while waiting:
        one, other = waiting.pop()
        if one is other:  # so that parts that were compared before are not compared again
            continue
        if type(one) is not type(other):
            return False
        if isinstance(one, dict):
            if list(one) != list(other):
                return False
            waiting += [(one[key], other[key]) for key in one]
        elif isinstance(one, (list, tuple)):
            if len(one) != len(other):
                return False
            waiting += zip(one, other, strict=True)
        elif dataclasses.is_dataclass(one):
            for field in dataclasses.fields(one):
                name = field.name
                waiting.append((getattr(one, name, MISSING), getattr(other, name, MISSING)))
        elif hasattr(one, "__pydantic_fields_set__"):
            one_extra, other_extra = (
                getattr(each, "__pydantic_extra__", None) for each in (one, other)
            )
            waiting += [(vars(one), vars(other)), (one_extra, other_extra)]
        elif not bool(one == other):
            return False
    return True
