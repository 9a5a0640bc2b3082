"""Grammars as trees of what all notations share: texts, classes, sequences, choices, repetitions.

One idea: every grammar prints as EBNF, and the printed text is parsed back here. A construct that
other notations lack, such as an intersection or the counted members of an object, is refused by
name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from stencilm.errors import UnsupportedFeature

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Sorted, disjoint ranges of code points, both ends included."""


@dataclass(frozen=True, slots=True)
class Text:
    """A literal text."""

    text: str


@dataclass(frozen=True, slots=True)
class Class:
    """One character in any of these ranges."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Reference:
    """The texts of a rule."""

    name: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after the other; no parts are the empty text."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several parts."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part, `least` to `most` times; `most` is None for no upper bound."""

    body: Part
    least: int
    most: int | None


Part: TypeAlias = Text | Class | Reference | Sequence | Choice | Repeat

EMPTY = Sequence(())
ALL: Ranges = ((0, 0xD7FF), (0xE000, 0x10FFFF))
"""Every character: all code points except surrogates."""


@dataclass(frozen=True, slots=True)
class PlainGrammar:
    """Rules by name; texts start from `root`."""

    rules: dict[str, Part]
    root: str = "root"


def plain_grammar(printed: str) -> PlainGrammar:
    """Parse the printed form of a grammar into such a tree.

    Raises UnsupportedFeature, with the name of the construct, if the grammar contains any other
    one.
    """
    return _Reader(printed).read()


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0",
            "e": "\x1b"}  # fmt: skip
_TOKEN = re.compile(
    r"""
    \s+
    | (?P<text>"(?:[^"\\]|\\.)*")
    | (?P<class>\[(?:[^\]\\]|\\.)*\])
    | (?P<lexeme>%lexeme\()
    | (?P<object>%object\s*\{)
    | (?P<special>%[a-z_]+|<[|\[]|<\w|!<|\(=|[&~])
    | (?P<rule>[\w-][\w.-]*(?=\s*::=))
    | (?P<name>[\w-][\w.-]*)
    | (?P<count>\{\d+(?:,\d*)?\})
    | (?P<sign>::=|[()|*+?.;:=@}])
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))|(.)", re.S)
_NAMES = {
    "&": "an intersection (&)",
    "~": "a complement (~)",
    "%number": "numbers between bounds",
    "%language": "a language that a program tells",
    "%array": "an array that counts or compares its elements",
    "%not": "a complement (%not)",
    "%bytes": "bytes that are no text",
    "%max_tokens": "a budget of tokens",
    "%temperature": "a temperature",
    "(=": "a condition on what follows",
}


@dataclass(slots=True)
class _Reader:
    """Parses the printed form of a grammar, and no other EBNF."""

    text: str
    tokens: list[tuple[str, str]] = field(default_factory=list)
    at: int = 0
    rules: dict[str, Part] = field(default_factory=dict)
    made: int = 0

    def read(self) -> PlainGrammar:
        self.tokens = list(self._scan())
        while self._kind() != "end":
            name = self._take("rule")
            self._take("sign", "::=")
            self.rules[name] = self._choice()
        used = {"root"}
        todo = ["root"]
        while todo:
            new = set(references(self.rules[todo.pop()])) - used
            used |= new
            todo += new
        return PlainGrammar({name: part for name, part in self.rules.items() if name in used})

    def _scan(self) -> Iterator[tuple[str, str]]:
        place = 0
        while place < len(self.text):
            match = _TOKEN.match(self.text, place)
            if match is None:
                raise AssertionError(f"invariant: {self.text[place : place + 20]!r} is EBNF")
            place = match.end()
            if match.lastgroup == "special":
                self._refuse(match.group())
            if match.lastgroup is not None:
                yield match.lastgroup, match.group()
        yield "end", ""

    def _kind(self) -> str:
        return self.tokens[self.at][0]

    def _is(self, sign: str) -> bool:
        return self.tokens[self.at] == ("sign", sign)

    def _take(self, kind: str, text: str | None = None) -> str:
        found, value = self.tokens[self.at]
        if found != kind or (text is not None and value != text):
            self._refuse(value)
        self.at += 1
        return value

    def _refuse(self, token: str) -> NoReturn:
        if token.startswith(("<", "!<", "%token", "%other_tokens", "%if_token")):
            what = "single tokens"
        else:
            what = _NAMES.get(token, f"{token!r}")
        raise UnsupportedFeature(f"the grammar holds {what}, for which the notation has no words")

    def _choice(self) -> Part:
        parts = [self._sequence()]
        while self._is("|"):
            self.at += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Part:
        parts: list[Part] = []
        while self._kind() not in ("end", "rule") and not any(map(self._is, ("|", ")", ";", ":"))):
            parts.append(self._repeated())
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeated(self) -> Part:
        part = self._single()
        while True:
            kind, value = self.tokens[self.at]
            if kind == "count":
                least, comma, most = value[1:-1].partition(",")
                bounds = (int(least), int(most) if most else None if comma else int(least))
            elif kind == "sign" and value in _REPEATS:
                bounds = _REPEATS[value]
            else:
                return part
            self.at += 1
            part = Repeat(part, *bounds)

    def _single(self) -> Part:
        kind, value = self.tokens[self.at]
        self.at += 1
        if kind in ("text", "name") and self._is("@"):  # a capture does not change the texts
            self.at += 1
            self._take("sign", "(")
            return self._closed()
        if kind == "text":
            return Text("".join(_characters(value[1:-1])))
        if kind == "class":
            return Class(_ranges(value[1:-1]))
        if kind == "name":
            return Reference(value)
        if kind == "lexeme" or value == "(":
            return self._closed()
        if kind == "object":
            return self._object()
        if value == ".":
            return Class(ALL)
        self._refuse(value)

    def _closed(self) -> Part:
        part = self._choice()
        self._take("sign", ")")
        return part

    def _object(self) -> Part:
        signs: dict[str, Part] = {}
        members: list[tuple[Part, Part, bool]] = []
        while not self._is("}"):
            entry = self._take("name")
            if entry in _SIGNS:
                self._take("sign", "=")
                signs[entry] = self._choice()
            elif entry in ("member", "optional"):
                name = "".join(_characters(self._take("text")[1:-1]))
                key: Part = Text(json.dumps(name, ensure_ascii=False))
                if self._is("="):
                    self.at += 1
                    key = self._choice()
                self._take("sign", ":")
                members.append((key, self._choice(), entry == "member"))
            else:
                raise UnsupportedFeature(
                    f"the grammar holds an object with {_ENTRIES.get(entry, entry)}, for which the "
                    "notation has no words: declare its members, and close it "
                    '("additionalProperties": false)'
                )
            self._take("sign", ";")
        self.at += 1
        return self._members(signs, members)

    def _members(self, signs: dict[str, Part], members: list[tuple[Part, Part, bool]]) -> Part:
        """Ordered members. Built backwards: `after` follows a member, `first` follows none."""
        after: Part = signs["close"]
        first: Part | None = None  # the rest, if no member has been written
        for key, value, is_required in reversed(members):
            member = Sequence((key, signs["colon"], value))
            from_here = Sequence((member, self._shared(after)))
            later = Sequence((signs["item"], from_here))
            if is_required:
                first, after = from_here, later
            else:
                first = from_here if first is None else Choice((from_here, first))
                after = Choice((later, after))
            first = self._shared(first)
            after = self._shared(after)
        may_be_empty = not any(is_required for _, _, is_required in members)
        alternatives = [signs["empty"]] if may_be_empty else []
        if first is not None:
            alternatives.append(Sequence((signs["open"], first)))
        return alternatives[0] if len(alternatives) == 1 else Choice(tuple(alternatives))

    def _shared(self, part: Part) -> Part:
        """Put a part into a rule of its own, so that using it twice does not write it twice."""
        if isinstance(part, Reference):
            return part
        self.made += 1
        name = f"object.{self.made}"
        self.rules[name] = part
        return Reference(name)


_REPEATS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_SIGNS = frozenset({"empty", "open", "colon", "item", "close"})
_ENTRIES = {
    "others": "members that are not declared",
    "some": "members that are not declared",
    "taken": "members that are not declared",
    "order": "members in any order",
    "mixed": "members in any order",
    "count": "a number of members",
}


def _characters(body: str) -> Iterator[str]:
    for match in _ESCAPE.finditer(body):
        braces, four, two, letter, plain = match.groups()
        if plain is not None:
            yield plain
        elif letter is not None:
            yield _ESCAPES.get(letter, letter)
        else:
            yield chr(int(braces or four or two, 16))


def _ranges(body: str) -> Ranges:
    is_negated = body.startswith("^")
    marks: list[int | None] = []  # None stands for the hyphen of a range
    for match in _ESCAPE.finditer(body[is_negated:]):
        if match.group() == "-" and marks:
            marks.append(None)
        else:
            marks.extend(map(ord, _characters(match.group())))
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(marks):
        low = marks[at]
        assert low is not None, "invariant: a range has two ends"
        high = low
        if at + 2 < len(marks) and marks[at + 1] is None:
            end = marks[at + 2]
            assert end is not None, "invariant: a range has two ends"
            high = end
            at += 2
        found.append((low, high))
        at += 1
    return without(found) if is_negated else tuple(sorted(found))


def without(ranges: list[tuple[int, int]]) -> Ranges:
    """All characters except those in these ranges."""
    left: list[tuple[int, int]] = []
    for start, end in ALL:
        for low, high in sorted(ranges):
            if low > end or high < start:
                continue
            if low > start:
                left.append((start, low - 1))
            start = max(start, high + 1)
        if start <= end:
            left.append((start, end))
    return tuple(left)


def references(part: Part) -> Iterator[str]:
    """The names of the rules that a part uses."""
    todo: list[Part] = [part]
    while todo:
        here = todo.pop()
        if isinstance(here, Reference):
            yield here.name
        elif isinstance(here, Repeat):
            todo.append(here.body)
        elif isinstance(here, (Sequence, Choice)):
            todo += here.parts
