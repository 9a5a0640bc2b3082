"""Readers of the arguments of one call, by the style in which a family writes them.

Each reads up to what follows the arguments, returns them by name, and passes on their JSON text
piece by piece.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from stencilm.grammars.json_values import read_json, write_json
from stencilm.tool_calls.fitting import read_value
from stencilm.tool_calls.literals import read_gemma, read_python
from stencilm.tool_calls.reading import Malformed, Text
from stencilm.tool_calls.schema_types import (
    item_schema,
    property_schema,
    types_of,
)

Emit: TypeAlias = Callable[[str], None]
Arguments: TypeAlias = Generator[None, None, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Markers:
    """The text around one argument, under the names of the grammar's table of styles.

    Attributes:
        open: Before the name.
        middle: From the name to the value; `{}` is the word for the type.
        close: After the value; `{}` is the name.
        string: The word for a string; None if strings are not distinguished from other values.
        wrapped: What may surround a value that contains characters of XML.
        own_lines: One line break before a value and one after it are not part of it.
        nested: Objects and arrays are written between markers, too; the name of an element.
        entities: Characters of names and their replacements, those of `&` first.
    """

    open: str
    middle: str
    close: str
    string: str | None = None
    wrapped: tuple[str, str] | None = None
    own_lines: bool = False
    nested: str | None = None
    entities: tuple[tuple[str, str], ...] = ()

    def written_name(self, name: str) -> str:
        """A name as it is written between markers."""
        for plain, entity in self.entities:
            name = name.replace(plain, entity)
        return name

    def read_name(self, text: str) -> str:
        """The name that was written so; unknown entities stay as they are."""
        for plain, entity in reversed(self.entities):
            text = text.replace(entity, plain)
        return text if self.entities else text.strip()


_ATTRIBUTE = (("&", "&amp;"), ('"', "&quot;"))

MARKERS: dict[str, Markers] = {
    "qwen_xml": Markers(open="<parameter=", middle=">", close="</parameter>", own_lines=True),
    "parameter_xml": Markers(open="<parameter=", middle=">", close="</parameter>"),
    "minimax_xml": Markers(open='<parameter name="', middle='">', close="</parameter>"),
    "param_xml": Markers(
        open='<param name="', middle='">', close="</param>", wrapped=("<![CDATA[", "]]>")
    ),
    "step_xml": Markers(
        open='<steptml:parameter name="', middle='">', close="</steptml:parameter>"
    ),
    "minimax_m3_xml": Markers(
        open="]<]minimax[>[<", middle=">", close="]<]minimax[>[</{}>", nested="item"
    ),
    "deepseek_xml": Markers(
        open='<｜DSML｜parameter name="',
        middle='" string="{}">',
        close="</｜DSML｜parameter>",
        string="true",
    ),
    "deepseek_v4_1_xml": Markers(
        open='<｜DSML｜ parameter name="',
        middle='" string="{}">',
        close="</｜DSML｜ parameter>",
        string="true",
    ),
    "gigachat_xml": Markers(
        open='<｜GCML｜parameter name="',
        middle='" string="{}">',
        close="</｜GCML｜parameter>",
        string="true",
    ),
    "glm_xml": Markers(open="<arg_key>", middle="</arg_key>\n<arg_value>", close="</arg_value>"),
    "hunyuan_xml": Markers(
        open="<arg_key:opensource>",
        middle="</arg_key:opensource>\n<arg_value:opensource>",
        close="</arg_value:opensource>",
    ),
    "atem_xml": Markers(open='<atem:parameter name="', middle='">', close="</atem:parameter>"),
    "rfl_xml": Markers(
        open='<rfl:parameter name="', middle='">', close="</rfl:parameter>", own_lines=True
    ),
    "ifm_xml": Markers(
        open="<ifm|arg_key>", middle="</ifm|arg_key>\n<ifm|arg_value>", close="</ifm|arg_value>"
    ),
    "cohere_xml": Markers(
        open='<cofl:value name="',
        middle='" type="{}">',
        close="</cofl:value>",
        string="raw",
        entities=(*_ATTRIBUTE, ("<", "&lt;"), (">", "&gt;")),
    ),
    "kimi_k3_xml": Markers(
        open='<|open|>argument key="',
        middle='" type="{}"<|sep|>',
        close="<|close|>argument<|sep|>",
        string="string",
        entities=_ATTRIBUTE,
    ),
}
# The beginning of a Cohere value without a name: an element of a list.
_COHERE_ELEMENT = '<cofl:value type="{}">'


def read_arguments(text: Text, style: str, schema: Any, end: str, emit: Emit) -> Arguments:
    """Read the arguments of one call, up to `end`.

    Raises:
        Malformed: They are not written in this style.
        CutShort: The text ends.
    """
    if style == "json":
        return _read_json(text, emit)
    if style in MARKERS:
        return _Marked(text, MARKERS[style], schema, emit, end).read()
    return _read_literals(text, style, end, emit)


def _read_json(text: Text, emit: Emit) -> Arguments:
    raw = yield from text.json_value(emit)
    return parse_object(raw)


def parse_object(raw: str) -> dict[str, Any]:
    """The arguments of a JSON text.

    Raises:
        Malformed: It is not a JSON object.
    """
    try:
        # Models write raw line breaks into strings.
        value = read_json(raw, strict=False, exact=True)
        if isinstance(value, str):
            # Arguments that were written as JSON within a JSON string.
            value = read_json(value, strict=False, exact=True)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the arguments {raw[:40]!r} are no JSON: {error}") from None
    if not isinstance(value, dict):
        raise Malformed(f"the arguments {raw[:40]!r} are no JSON object")
    return value


def _pattern(begin: str, middle: str) -> re.Pattern[str]:
    """The beginning of an argument, with its name and the word for its type."""
    before, slot, after = middle.partition("{}")
    parts = [re.escape(begin), "(?P<name>.*?)" if begin.endswith(('"', "=", ">", "<")) else ""]
    parts.append(r"\s*".join(map(re.escape, before.split("\n"))))
    if slot:
        parts += ["(?P<word>[a-z]*)", re.escape(after)]
    return re.compile("".join(parts), re.DOTALL)


class _Marked:
    """Reads arguments between markers."""

    def __init__(self, text: Text, markers: Markers, schema: Any, emit: Emit, end: str) -> None:
        self.text, self.markers, self.root, self.emit = text, markers, schema, emit
        self.end = end
        self.begin = _pattern(markers.open, markers.middle)

    def read(self) -> Arguments:
        arguments: dict[str, Any] = {}
        written = 0
        while (yield from self._begins(self.markers.open, or_end=True)):
            match = yield from self.text.match(self.begin)
            name = self.markers.read_name(match["name"])
            word = match.groupdict().get("word")
            self.emit(("{" if written == 0 else ", ") + json.dumps(name, ensure_ascii=False) + ": ")
            schema = property_schema(self.root, name, self.root)
            arguments[name] = yield from self._value(match["name"], word, schema, self.emit)
            written += 1
        self.emit("{}" if written == 0 else "}")
        return arguments

    def _begins(self, literal: str, *, or_end: bool = False) -> Generator[None, None, bool]:
        """Whether a marker comes next; does not move past it.

        A closing marker has a slash after its beginning. If the end of the call is possible here,
        the text may end after it.
        """
        if not (yield from self.text.skip_whitespace()):
            if or_end and not self.end:
                return False
            yield from self.text.more()
        while len(self.text.buffer) - self.text.at <= len(literal):
            rest = self.text.buffer[self.text.at :]
            if not literal.startswith(rest[: len(literal)]):
                return False
            if len(rest) == len(literal) and not literal.endswith("<"):
                return True
            if or_end and self.end and self.text.ended and rest.startswith(self.end):
                return False
            yield from self.text.more()
        after = self.text.at + len(literal)
        is_end = literal.endswith("<") and self.text.buffer[after] == "/"
        return self.text.buffer.startswith(literal, self.text.at) and not is_end

    def _value(
        self, name: str, word: str | None, schema: Any, emit: Emit | None
    ) -> Generator[None, None, Any]:
        """The value of an argument, up to and including the marker after it."""
        if self.markers.nested is not None:
            return (yield from self._nested(name, schema, emit))
        if word == "dict" or word == "list":
            return (yield from self._cohere(word, schema, emit))
        # An undeclared argument may have any type.
        types = types_of(schema, self.root)
        is_string = word == self.markers.string if word is not None else types == {"string"}
        plain = not self.markers.own_lines and self.markers.wrapped is None
        if is_string and plain and emit is not None:
            return (yield from self._string(emit))
        raw, stop = yield from self.text.until((self.markers.close,))
        if stop is None:
            yield from self.text.more()
        if self.markers.own_lines:
            raw = raw.removeprefix("\n").removesuffix("\n")
        if self.markers.wrapped is not None and raw.startswith(self.markers.wrapped[0]):
            begin, end = self.markers.wrapped
            raw = raw.removeprefix(begin).removesuffix(end)
        value: Any
        if word is None:
            # An undeclared argument is a string if it is not JSON.
            value = read_value(raw, schema, self.root)
        elif is_string:
            value = raw
        else:
            try:
                value = read_json(raw, strict=False, exact=True)
            except ValueError as error:
                raise Malformed(f"the value {raw[:40]!r} is no JSON: {error}") from None
        if emit is not None:
            emit(write_json(value))
        return value

    def _string(self, emit: Emit) -> Generator[None, None, str]:
        """A string, passed on while it arrives."""
        emit('"')
        raw, stop = yield from self.text.until(
            (self.markers.close,), lambda part: emit(json.dumps(part, ensure_ascii=False)[1:-1])
        )
        if stop is None:
            yield from self.text.more()
        emit('"')
        return raw

    def _cohere(self, word: str, schema: Any, emit: Emit | None) -> Generator[None, None, Any]:
        """A dict or a list whose parts are between markers."""
        value: Any = {} if word == "dict" else []
        opening = self.markers.open if word == "dict" else '<cofl:value type="'
        pattern = self.begin if word == "dict" else _pattern("<cofl:value type", '="{}">')
        while (yield from self._begins(opening)):
            match = yield from self.text.match(pattern)
            if isinstance(value, dict):
                name = self.markers.read_name(match["name"])
                of_part = property_schema(schema, name, self.root)
                value[name] = yield from self._value(name, match["word"], of_part, None)
            else:
                of_part = item_schema(schema, len(value), self.root)
                value.append((yield from self._value("", match["word"], of_part, None)))
        yield from self.text.expect(self.markers.close)
        if emit is not None:
            emit(write_json(value))
        return value

    def _nested(self, name: str, schema: Any, emit: Emit | None) -> Generator[None, None, Any]:
        """A value whose parts may be between markers with their own names."""
        close = self.markers.close.replace("{}", name)
        namespace = self.markers.open[:-1]
        raw, stop = yield from self.text.until((namespace,))
        if stop is None:
            yield from self.text.more()
        self.text.at -= len(namespace)
        types = types_of(schema, self.root)
        parts: list[tuple[str, Any]] = []
        if not (yield from self._begins(close)):
            while not (yield from self._begins(close)):
                match = yield from self.text.match(self.begin)
                inner = match["name"]
                is_item = (
                    inner == self.markers.nested
                    and "array" in types
                    and ("object" not in types or property_schema(schema, inner, self.root) is None)
                )
                of_part = (
                    item_schema(schema, len(parts), self.root)
                    if is_item
                    else property_schema(schema, inner, self.root)
                )
                parts.append((inner, (yield from self._value(inner, None, of_part, None))))
        yield from self.text.expect(close)
        value: Any
        if parts:
            is_array = all(inner == self.markers.nested for inner, _ in parts) and (
                ("array" in types and "object" not in types) or len(parts) > 1
            )
            value = [part for _, part in parts] if is_array else dict(parts)
        elif raw.strip() == "" and types & {"object", "array"} and "string" not in types:
            value = {} if "object" in types else []
        else:
            value = read_value(raw, schema, self.root)
        if emit is not None:
            emit(write_json(value))
        return value


def _read_literals(text: Text, style: str, end: str, emit: Emit) -> Arguments:
    if style == "python":
        arguments = yield from read_python(text, end)
    else:
        quote = "<escape>" if style == "functiongemma" else '<|"|>'
        arguments = yield from read_gemma(text, quote, end)
    emit(write_json(arguments))
    return arguments
