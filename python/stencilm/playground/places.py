"""From the location that an error names to a range of the editor's text.

One idea: an error's location is text for people (`line 2, column 6`, `offset 5`,
`#/properties/age`). An editor needs a range, in UTF-16 units, which browsers use.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE = re.compile(r"line (\d+), column (\d+)")
_OFFSET = re.compile(r"(?:offset|byte) (\d+)")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_SCALAR = re.compile(r"[^\s,:{}\[\]\"]+")
_POINTER = re.compile(r"#/[^\s,:;]+")
_WORD = re.compile(r"\w+|[^\w\s]|\s")


class Stretch(NamedTuple):
    """A range of a text, in UTF-16 units."""

    start: int
    end: int


class Position(NamedTuple):
    """A position in an editor's terms, both numbers counted from 1."""

    line: int
    column: int


def find_place(text: str, place: str | None) -> Stretch | None:
    """The range of `text` that `place` names; None if it names none.

    It is never empty unless the text is: a position after the end means the last character.
    """
    if place is None or not text:
        return None
    found = _LINE.search(place)
    if found:
        lines = text.split("\n")
        line = min(int(found[1]), len(lines)) - 1
        before = sum(len(each) + 1 for each in lines[:line])
        return _word_at(text, before + min(int(found[2]) - 1, len(lines[line])))
    found = _OFFSET.match(place)
    if found:
        encoded = text.encode()
        return _word_at(text, len(encoded[: int(found[1])].decode(errors="ignore")))
    if "#" in place:
        span = _pointer_span(text, place.partition("#")[2])
        return None if span is None else _units(text, *span)
    return None


def nearest_place(place: str | None, message: str) -> str | None:
    """The place of an error, or the deepest place within it that its sentence names.

    That a schema has no value is reported for the whole, with the reason in a part: `#: required
    names "age", but no value is possible there: at #/properties/age, ...`.
    """
    if place is None or not place.startswith("#"):
        return place
    found: list[str] = _POINTER.findall(message)
    within = [each for each in found if each.startswith(place)]
    return max([place, *within], key=lambda each: each.count("/"))


def position_of(text: str, stretch: Stretch) -> Position:
    """Line and column, in characters, of the start of a range."""
    before = text.encode("utf-16-le")[: stretch.start * 2].decode("utf-16-le", "ignore")
    return Position(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def utf16_length(text: str) -> int:
    """The length of a text in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def _word_at(text: str, at: int) -> Stretch:
    at = min(at, len(text))
    word = _WORD.match(text, at)
    if word is None or (word.group() == "\n" and at > 0):
        # After the last character of the text or the line, show that character.
        return _units(text, max(at - 1, 0), max(at, 1))
    return _units(text, at, word.end())


def _units(text: str, start: int, end: int) -> Stretch:
    first = utf16_length(text[:start])
    return Stretch(first, first + utf16_length(text[start:end]))


def _pointer_span(text: str, pointer: str) -> tuple[int, int] | None:
    """The range of the value that a JSON pointer names, or of the nearest one around it.

    None if there is no value at all.

    A scanner with an explicit stack, because the author of the text decides how deep it is nested.
    """
    wanted = [_unescape(part) for part in pointer.split("/")[1:]]
    best: tuple[int, int, int] | None = None  # depth, start, end
    path: list[str | int | None] = []
    opened: list[int] = []
    matched: list[bool] = []  # of each open container: its path is a prefix of the wanted one
    at = 0

    def is_wanted() -> bool:
        depth = len(path)
        if depth > len(wanted) or (matched and not matched[-1]):
            return False
        return depth == 0 or str(path[-1]) == wanted[depth - 1]

    def found(start: int, end: int, depth: int) -> None:
        nonlocal best
        if best is None or depth > best[0]:
            best = depth, start, end

    while at < len(text):
        character = text[at]
        if character in "{[":
            matched.append(is_wanted())
            opened.append(at)
            path.append(0 if character == "[" else None)
            at += 1
        elif character in "}]":
            at += 1
            if opened:
                path.pop()
                start = opened.pop()
                if matched.pop():
                    found(start, at, len(path))
        elif character == ",":
            if path:
                last = path[-1]
                path[-1] = last + 1 if isinstance(last, int) else None
            at += 1
        elif character == '"':
            end = _STRING.match(text, at).end()  # type: ignore[union-attr]
            if path and path[-1] is None and _is_key(text, end):
                path[-1] = _decoded(text[at:end])
            elif is_wanted():
                found(at, end, len(path))
            at = end
        elif character.isspace() or character == ":":
            at += 1
        else:
            scalar = _SCALAR.match(text, at)
            end = at + 1 if scalar is None else scalar.end()
            if is_wanted():
                found(at, end, len(path))
            at = end
    return None if best is None else best[1:]


def _is_key(text: str, end: int) -> bool:
    while end < len(text) and text[end].isspace():
        end += 1
    return text[end : end + 1] == ":"


def _decoded(string: str) -> str:
    import json

    try:
        return str(json.loads(string))
    except ValueError:
        return string.strip('"')


def _unescape(part: str) -> str:
    from urllib.parse import unquote

    return unquote(part).replace("~1", "/").replace("~0", "~")
