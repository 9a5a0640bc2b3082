"""Arguments written as literals: of Python, and of the notation of the Gemma models."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Generator
from typing import Any

from stencilm.characters import whole_characters
from stencilm.grammars.json_values import NumberTooLarge, read_json
from stencilm.tool_calls.reading import Malformed, Text

_PYTHON_STEP = re.compile(r"""[()\[\]{}"'\\,]""")
_NAME = re.compile(r"\s*([^\s=,()]+)\s*=\s*")
_MAYBE_NAME = re.compile(r"\s*[^\s=,()]*\s*")
_WORDS = {"true": True, "false": False, "null": None, "none": None}
_WHITESPACE = " \t\r\n"
"""What may separate the parts of Gemma's notation; any other character is part of a name."""
_MAX_DEPTH = 200


def read_python(text: Text, end: str) -> Generator[None, None, dict[str, Any]]:
    """Keyword arguments, up to the bracket that closes the call, which is not read.

    Raises:
        Malformed: They are not keyword arguments.
        CutShort: The text ends.
    """
    arguments: dict[str, Any] = {}
    while True:
        if not (yield from text.skip_whitespace()):
            yield from text.more()
        if text.buffer.startswith(end[:1], text.at):
            return arguments
        if arguments:
            yield from text.expect(",")
            yield from text.skip_whitespace()
            if text.buffer.startswith(end[:1], text.at):
                return arguments
        name = yield from _keyword(text)
        raw = yield from _python_value(text)
        arguments[name] = _literal(raw)


def _keyword(text: Text) -> Generator[None, None, str]:
    """The name of an argument, up to its value."""
    while True:
        match = _NAME.match(text.buffer, text.at)
        if match is not None and match.end() < len(text.buffer):
            text.at = match.end()
            return match[1]
        begun = _MAYBE_NAME.match(text.buffer, text.at)
        if match is None and begun is not None and begun.end() < len(text.buffer):
            raise Malformed(f"{text.buffer[text.at : begun.end() + 1][:40]!r} names no argument")
        yield from text.more()


def _python_value(text: Text) -> Generator[None, None, str]:
    """The text of a value, up to a comma or a bracket that closes its surroundings."""
    begin = text.at
    closing: list[str] = []
    while True:
        match = _PYTHON_STEP.search(text.buffer, text.at)
        if match is None:
            text.at = len(text.buffer)
            yield from text.more()
            continue
        text.at = match.start()
        if match[0] in "([{":
            closing.append(")]}"["([{".index(match[0])])
            if len(closing) > _MAX_DEPTH:
                raise Malformed("the arguments are nested too deeply")
        elif match[0] in ")]},":
            if not closing:
                return text.buffer[begin : text.at]
            if match[0] != "," and match[0] != closing.pop():
                raise Malformed(
                    f"the brackets of {text.buffer[begin : text.at + 1][:40]!r} do not match"
                )
        elif match[0] in "\"'":
            yield from _python_string(text, match[0])
            continue
        text.at += 1


def _python_string(text: Text, quote: str) -> Generator[None, None, None]:
    """Skip a string, in triple or single quotes."""
    while len(text.buffer) - text.at < 3 and text.buffer[text.at :] in (quote, quote * 2):
        yield from text.more()
    quotes = quote * 3 if text.buffer.startswith(quote * 3, text.at) else quote
    text.at += len(quotes)
    while not text.buffer.startswith(quotes, text.at):
        rest = len(text.buffer) - text.at
        if rest < len(quotes) or (text.buffer[text.at] == "\\" and rest < 2):
            yield from text.more()
            continue
        text.at += 2 if text.buffer[text.at] == "\\" else 1
    text.at += len(quotes)


def _literal(raw: str) -> Any:
    try:
        # Raw line breaks within a string are accepted.
        source = _one_line(raw.strip())
        return _value(ast.parse(source, mode="eval").body, source)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        shown = raw.strip()[:40]
        raise Malformed(f"the value {shown!r} is no literal of Python: {error}") from None


def _one_line(raw: str) -> str:
    """The same literal with the line breaks of its strings escaped."""
    if "\n" not in raw or '"""' in raw or "'''" in raw:
        return raw
    return raw.replace("\r", "\\r").replace("\n", "\\n") if raw[:1] in "\"'" else raw


def _value(node: ast.expr, source: str) -> Any:
    if isinstance(node, ast.Name) and node.id.lower() in _WORDS:
        return _WORDS[node.id.lower()]
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(part, source) for part in node.elts]
    if isinstance(node, ast.Dict):
        if None in node.keys:
            raise ValueError("`**` within a dict has no counterpart in JSON")
        keys = [_value(key, source) for key in node.keys if key is not None]
        values = [_value(part, source) for part in node.values]
        return {
            key if isinstance(key, str) else json.dumps(key): value
            for key, value in zip(keys, values, strict=True)
        }
    try:
        value = ast.literal_eval(node)
    except ValueError:
        value = node
    if not isinstance(value, (str, int, float, bool, type(None))):
        raise ValueError(f"{ast.unparse(node)} has no counterpart in JSON")
    if isinstance(value, float):
        value = _exact(value, ast.get_source_segment(source, node) or "")
    if isinstance(value, str):
        # The two escapes of a surrogate pair are one character, as in JSON.
        value = whole_characters(value)
    return value


def _exact(value: float, written: str) -> Any:
    """A number with all digits that were written; Python has more forms of floats than JSON."""
    try:
        return read_json(written, exact=True)
    except NumberTooLarge:
        raise
    except ValueError:
        if math.isfinite(value):
            return value
        raise


def read_gemma(text: Text, quote: str, end: str) -> Generator[None, None, dict[str, Any]]:
    """Arguments of the form `name:value`, up to the brace that closes them, which is not read.

    Raises:
        Malformed: They do not have this form.
        CutShort: The text ends.
    """
    begin = text.at
    depth = 0
    stops = (quote, "{", "}", "[", "]")
    while True:
        _, stop = yield from text.until(stops)
        if stop is None:
            yield from text.more()
        if stop == quote:
            _, closed = yield from text.until((quote,))
            if closed is None:
                yield from text.more()
        elif stop in ("{", "["):
            depth += 1
            if depth > _MAX_DEPTH:
                raise Malformed("the arguments are nested too deeply")
        elif depth == 0:
            text.at -= 1
            break
        else:
            depth -= 1
    reader = _Gemma(text.buffer[begin : text.at], quote)
    members: dict[str, Any] = reader.members("")
    return members


class _Gemma:
    """Reads a complete text in the notation."""

    def __init__(self, text: str, quote: str) -> None:
        self.text, self.quote, self.at = text, quote, 0

    def members(self, end: str) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while not self._ends(end):
            if members:
                self._expect(",")
            self._skip_whitespace()
            if self.text.startswith(self.quote, self.at):
                name = self._string()
            else:
                colon = self.text.find(":", self.at)
                if colon < 0:
                    raise Malformed(f"{self.text[self.at :][:40]!r} has no colon after a name")
                name, self.at = self.text[self.at : colon].strip(_WHITESPACE), colon
            self._expect(":")
            members[name] = self._value()
        return members

    def _elements(self) -> list[Any]:
        elements: list[Any] = []
        while not self._ends("]"):
            if elements:
                self._expect(",")
            elements.append(self._value())
        return elements

    def _value(self) -> Any:
        self._skip_whitespace()
        if self.text.startswith(self.quote, self.at):
            return self._string()
        if self.text.startswith("{", self.at):
            self.at += 1
            return self.members("}")
        if self.text.startswith("[", self.at):
            self.at += 1
            return self._elements()
        match = re.compile(r"[^,\]}]*").match(self.text, self.at)
        word = match[0].strip(_WHITESPACE) if match else ""
        self.at = match.end() if match else self.at
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        try:
            return read_json(word, exact=True)
        except NumberTooLarge as error:
            raise Malformed(str(error)) from None
        except ValueError:
            return word

    def _string(self) -> str:
        begin = self.at + len(self.quote)
        end = self.text.find(self.quote, begin)
        if end < 0:
            raise Malformed(f"the string {self.text[self.at :][:40]!r} does not end")
        self.at = end + len(self.quote)
        return self.text[begin:end]

    def _skip_whitespace(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _WHITESPACE:
            self.at += 1

    def _expect(self, literal: str) -> None:
        self._skip_whitespace()
        if not self.text.startswith(literal, self.at):
            raise Malformed(f"{literal!r} is expected, not {self.text[self.at :][:20]!r}")
        self.at += len(literal)

    def _ends(self, end: str) -> bool:
        self._skip_whitespace()
        if end == "":
            return self.at == len(self.text)
        if self.text.startswith(end, self.at):
            self.at += len(end)
            return True
        if self.at == len(self.text):
            raise Malformed(f"{end!r} is missing")
        return False
