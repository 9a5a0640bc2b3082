r"""Patterns of Python types, in a dialect that schemas and pydantic read alike.

One idea: `\W`, `\D`, `\S` and classes that exclude `\w` match less in pydantic than in a schema,
because there `\w` and `\d` include letters and digits of all scripts. They are replaced by what
both dialects agree on, so that pydantic accepts every text of the grammar. `\w` and `\d` stay
ASCII, as in a schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# The word characters of Rust and of Python, and those that a later Unicode may add.
_WORD = r"\p{L}\p{M}\p{N}\p{Pc}\p{Alphabetic}\p{Join_Control}\p{Cn}"
_DIGITS = r"\p{Nd}\p{Cn}"
# White space in only one of the dialects.
_DOUBTFUL = r"\x1C-\x1F\x85"
_SPACES = r"\t-\r \xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000"

# By the letter of an escape: its replacement, then its replacement within a negated class.
_ALONE = {
    "s": f"[{_SPACES}]",
    "S": rf"[^\s{_DOUBTFUL}]",
    "D": f"[^{_DIGITS}]",
    "W": f"[^{_WORD}]",
}
_LEFT_OUT = {"w": _WORD, "d": _DIGITS, "s": rf"\s{_DOUBTFUL}", "S": r"\S\uFEFF"}
_ALONE_IN_ASCII = {"s": r"[\t-\r ]"}
_LEFT_OUT_IN_ASCII = {"S": r"\S\uFEFF\xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000"}

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-\/:-@\[-`\{-~",
    "space": r"\t-\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_POSIX_CLASS = re.compile(r"\[:(\w+):\]")
_SETS = ("&&", "--", "~~")


class OtherMeaning(ValueError):
    """A pattern uses something that means something else in a schema; the message names it."""


def schema_pattern(pattern: str | re.Pattern[str], *, is_python: bool) -> str:
    """Convert a pattern to the dialect of schemas; pydantic's pattern matches all of its texts.

    Args:
        pattern: The type's pattern. Python matches one that is compiled.
        is_python: Whether pydantic lets Python match texts; otherwise Rust does.

    Raises:
        OtherMeaning: It uses something that schemas lack, such as sets of classes.
    """
    if isinstance(pattern, str):
        return _Reader(pattern, is_python, is_ascii=False).whole()
    if pattern.flags & re.VERBOSE:
        raise OtherMeaning("re.VERBOSE leaves blanks out, and a schema does not")
    flags = "".join(sign for sign, flag in _FLAGS.items() if pattern.flags & flag)
    found = _Reader(pattern.pattern, True, is_ascii=bool(pattern.flags & re.ASCII)).whole()
    has_own = re.match(rf"\(\?[a-zA-Z]*[{flags}]", found) is not None if flags else True
    return found if has_own else f"(?{flags}){found}"


_FLAGS = {"i": re.IGNORECASE, "s": re.DOTALL}


class _Reader:
    """Converts a pattern in one pass."""

    def __init__(self, text: str, is_python: bool, *, is_ascii: bool) -> None:
        self.text, self.is_python, self.at = text, is_python, 0
        self.alone: Mapping[str, str] = _ALONE_IN_ASCII if is_ascii else _ALONE
        self.left_out: Mapping[str, str] = _LEFT_OUT_IN_ASCII if is_ascii else _LEFT_OUT

    def whole(self) -> str:
        parts: list[str] = []
        while self.at < len(self.text):
            sign = self.text[self.at]
            if sign == "\\":
                letter = self._escape()
                parts.append(self.alone.get(letter, "\\" + letter))
            elif sign == "[":
                parts.append(self._class())
            else:
                self.at += 1
                parts.append(sign)
        return "".join(parts)

    def _escape(self) -> str:
        letter = self.text[self.at + 1 : self.at + 2]
        self.at += 1 + len(letter)
        is_boundary = letter in ("<", ">") and letter != ""
        has_side = letter == "b" and re.match(r"\{[a-z]", self.text[self.at :]) is not None
        if not self.is_python and (is_boundary or has_side):
            raise OtherMeaning(f"`\\{letter}` is a side of a word there, and none in a schema")
        return letter

    def _class(self) -> str:
        """Convert the character class at the current position."""
        self.at += 1
        is_left_out = self.text.startswith("^", self.at)
        self.at += is_left_out
        parts: list[str] = []
        if self.text.startswith("]", self.at):
            parts.append(r"\]")
            self.at += 1
        while self.at < len(self.text) and self.text[self.at] != "]":
            parts.append(self._member())
        self.at += 1
        letters = {part[1] for part in parts if part in _KINDS}
        if is_left_out:
            return f"[^{_joined(parts, self.left_out)}]"
        if any(letter.swapcase() in letters for letter in letters):
            return f"[{_joined(parts, {})}]"  # all characters
        apart = [each for each in sorted(letters) if each.isupper() and each in self.alone]
        spaces = {each: self.alone[each][1:-1] for each in letters & {"s"}}
        rest = _joined(parts, spaces | dict.fromkeys(apart, ""))
        alternatives = [
            *([f"[{rest}]"] if rest or not apart else []),
            *(self.alone[one] for one in apart),
        ]
        return alternatives[0] if len(alternatives) == 1 else f"(?:{'|'.join(alternatives)})"

    def _member(self) -> str:
        """A character of a class, or an escape."""
        sign = self.text[self.at]
        if sign == "\\":
            return "\\" + self._escape()
        if sign == "[" and not self.is_python:
            return self._named()
        if not self.is_python and self.text.startswith(_SETS, self.at):
            raise OtherMeaning(f"`{sign * 2}` joins classes there, and not in a schema")
        self.at += 1
        return r"\[" if sign == "[" else sign

    def _named(self) -> str:
        """A POSIX class within a class."""
        named = _POSIX_CLASS.match(self.text, self.at)
        if named is None or named[1] not in _POSIX:
            raise OtherMeaning("`[` begins a class within a class there, and not in a schema")
        self.at = named.end()
        return _POSIX[named[1]]


_KINDS = frozenset({r"\s", r"\S", r"\d", r"\D", r"\w", r"\W"})


def _joined(parts: list[str], written: Mapping[str, str]) -> str:
    """The members of a class, with escapes written as in `escapes`."""
    changed = {kind for kind in _KINDS if kind in parts and kind[1] in written}
    if not changed:
        return "".join(parts)
    last = len(parts) - 1
    # A hyphen next to an escape is a literal; it must stay one next to the replacement.
    return "".join(
        written.get(part[1], part)
        if part in changed
        else r"\-"
        if part == "-" and (at in (0, last) or {parts[at - 1], parts[at + 1]} & _KINDS)
        else part
        for at, part in enumerate(parts)
    )
