"""Typed values of texts that are not finished: what is closed is checked, what is open is shown.

One idea: a reader goes over each character once. It keeps the containers that are open, with what
is closed in them as values, so a step costs what is new, and showing a value copies no more than
the containers that are still open. Where these are long, a value is shown as often as copying takes
no longer than all else.
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
    """The value of the beginning of a JSON text; `MISSING` where there is none yet.

    Pydantic models and dataclasses come as instances in which what is not written yet is None, and
    lists as the elements so far. An open string is shown as it stands, an open number is not.
    """
    reader = PartialReader(tp)
    reader.feed(text)
    return reader.value()


class Pace:
    """How often a value is shown that grows: always while it is small, else half of the time.

    A value that was given away is its owner's, who may change it, so each one is a copy, and a
    list of n elements would be copied n times in all.
    """

    def __init__(self) -> None:
        self._cost = 0.0
        self._shown_at = 0.0

    def affords(self, size: int) -> bool:
        """Whether a value of about so many parts may be shown now."""
        return size <= _ALWAYS_SHOWN or perf_counter() - self._shown_at >= self._cost

    def shown(self, show: Callable[[], Any]) -> Any:
        """What `show` gives, whose time is remembered."""
        started = perf_counter()
        value = show()
        self._shown_at = perf_counter()
        self._cost = self._shown_at - started
        return value


_ALWAYS_SHOWN = 4_096


class _Open:
    """A container that is open: what may hold it, and what is closed in it."""

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
        self.is_whole = True  # no part was refused, or is none of the type's
        self.key: str | None = None
        self.name: Any = None
        self.members = ANYTHING

    @property
    def holder(self) -> Holder | None:
        """What holds it, once only one can."""
        return self.holders[0] if len(self.holders) == 1 else None

    @property
    def shows_open(self) -> bool:
        """Whether the part that is open is shown in it."""
        holder = self.holder
        return holder is not None and holder.shows_open

    def show(self, last: Any) -> Any:
        """The value, with the part that is open."""
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
    r"(?<!\\)(?:\\\\)*"  # an even number of backslashes are characters
    r"(?P<cut>\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?"
    r"|\\(?:u[0-9a-fA-F]{0,3})?)\Z"
)
_SCALARS = re.compile(
    r'(?:(?:-?[0-9][-+.0-9eE]*|true|false|null|"[^"\\\x00-\x1f]*")[ \t\n\r]*,[ \t\n\r]*)+'
)
_WORDS = ("true", "false", "null")
_LONGEST_WORD = max(map(len, _WORDS))
_CHARACTERS_FOR_A_PART = 64  # that are copied in the time of one
_LONG = 64
"""From this many characters, the scalars of an array are read together."""


class PartialReader:
    """Reads a JSON text piece by piece, and shows the value of what has come.

    Args:
        tp: The type of the text; `Any` for the data itself.
    """

    def __init__(self, tp: Any) -> None:
        self._shape = shape_of(tp)
        self._text = ""
        self._at = 0
        self._open: list[_Open] = []
        self._decided = 0  # how many of the outermost are shown
        self._string: int | None = None  # where an open string begins, its quote included
        self._scanned = 0  # to where it, or an open word, has been looked at for its end
        self._decoded, self._decoded_to = "", 0
        self._done: Any = MISSING
        self._is_broken = False
        self._expects: str = "value"  # or "key", "colon", "comma", "end"
        self._version = 0
        self._shown = -1

    def feed(self, piece: str) -> None:
        """The text goes on with this piece."""
        # Python lengthens a text in place where nobody else holds it, and copies it otherwise.
        text, self._text = self._text, ""
        text += piece
        self._text = text
        del text
        while not self._is_broken and self._step():
            pass

    @property
    def text(self) -> str:
        """What has come."""
        return self._text

    def has_changed(self) -> bool:
        """Whether `value` shows more than when this was last asked."""
        changed = self._version != self._shown
        self._shown = self._version
        return changed

    @property
    def size(self) -> int:
        """About how many parts `value` copies."""
        string = 0 if self._string is None else self._scanned - self._string
        return sum(len(one.closed) for one in self._open) + string // _CHARACTERS_FOR_A_PART

    def whole(self, text: str) -> Any:
        """The value of the whole text; `MISSING` where what has come is not all of it, or unread.

        It is the value that has been shown, so that nothing is checked again.
        """
        is_whole = self._expects == "end" and not self._is_broken and self._text == text
        return self._done if is_whole and not text[self._at :].strip(" \t\n\r") else MISSING

    def value(self) -> Any:
        """What has come of the text, as a value of its own; `MISSING` where that is nothing."""
        if self._expects == "end":
            return self._done
        value = self._open_string()
        for one in reversed(self._open):
            value = one.show(value)
        return value

    # Each step reads one token; False where it has to wait for more of the text.

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
        # What is within an undecided container is not shown, nor what is open in a set. One that is
        # decided stays so.
        while self._decided < len(self._open) and self._is_shown(self._decided):
            self._decided += 1
        if self._decided == len(self._open):
            self._version += 1

    def _is_shown(self, number: int) -> bool:
        """Whether a container is shown in one that is shown."""
        is_decided = self._open[number].holder is not None
        return is_decided and (number == 0 or self._open[number - 1].shows_open)

    def _shows_open(self) -> bool:
        """Whether what is open in the innermost container is shown there."""
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
            return False  # it may go on
        self._at = end
        value = self._next_shape().read(self._text[start:end])
        self._put(value, start, end, is_news=value is not MISSING)
        return True

    def _read_many(self, parent: _Open) -> bool:
        """Scalars of an array, many at once, where much of the text has come at once."""
        holder = parent.holder
        if self._scanned > self._at:
            return False  # within a word that has no end yet
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
            # The end of the text, or a backslash with nothing after it yet.
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
        """The open string as it stands, where the type shows one."""
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
            pass  # no JSON string: shown as far as it is one
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
        """Keep these alternatives; what was read before one was left is read again by its type."""
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
        """A value is closed."""
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
        """Keep the alternatives that allow this value of a member that they limit by `Literal`."""
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

    No method of an instance is asked, since what is not written yet may surprise it.
    """
    waiting = [(one, other)]
    while waiting:
        one, other = waiting.pop()
        if one is other:  # so that what was compared where it ended is not looked at again
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
