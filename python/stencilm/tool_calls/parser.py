"""Calls, content and reasoning read back from what a model wrote, while it arrives.

One idea: the template that makes the grammar is read in reverse. White space between the parts of a
call and the order of the keys of a JSON call are ignored, so what models write without a grammar is
read, too.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Generator, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from stencilm.grammars.json_values import rounded, write_json
from stencilm.shown import shown_value
from stencilm.tool_calls.answers import (
    CallDelta,
    CallDone,
    ContentDelta,
    Delta,
    ParsedAnswer,
    ReasoningDelta,
    ToolCall,
)
from stencilm.tool_calls.argument_readers import MARKERS, parse_object, read_arguments
from stencilm.tool_calls.reading import LONGEST_HEADER, CutShort, Malformed, Text
from stencilm.tool_calls.request import Reasoning, Tool
from stencilm.tool_calls.template import PLACEHOLDER, ToolTemplate
from stencilm.whole_numbers import whole_number

if TYPE_CHECKING:
    from stencilm.tokenizers import TokenizerInfo

_JSON_STRING = r'"(?:[^"\\]|\\.)*"'
# The characters that delimit JSON strings, and those that strings may only contain as escapes.
_STRING_STEP = re.compile(r'\\.|["\x00-\x1f]', re.DOTALL)
_NAMED = r"[^\s<>\[\](){}]"  # a character of a name that is written without quotes
_UNQUOTED = re.compile(rf"\s*({_NAMED}*)")
# A name that may still be incomplete.
_MAYBE_NAME = re.compile(r"\s*(?:[^\W\d][\w.-]*\s*)?")
# Keys of the parts of JSON calls, in addition to those of the template.
_NAME_KEYS = frozenset({"name", "tool_name"})
_ARGUMENT_KEYS = frozenset({"arguments", "parameters", "args"})
_ID_KEYS = frozenset({"id", "tool_call_id", "call_id"})
_OTHER_KEYS = frozenset({"type"})


class _Shape:
    """One way to write a call, split for reading."""

    def __init__(self, way: ToolTemplate, *, may_be_object: bool = True) -> None:
        self.begin, self.end = way.section
        self.separator = way.separator
        self.style = way.style
        self.id_pattern = way.id_pattern
        self.prefix = self.suffix = ""
        self.name_keys: set[str] = set()
        self.argument_keys: set[str] = set()
        self.is_object = False
        begin, end = way.call.find("{"), way.call.rfind("}")
        is_json = self.style == "json"
        if may_be_object and is_json and begin >= 0 and "$name" not in way.call:
            inner = way.call[begin : end + 1]
            for place in ("json_name", "arguments"):
                inner = inner.replace(f"${place}", f'"{place}"')
            try:
                parts = json.loads(inner)
            except ValueError:
                parts = None
            held = [*parts.values()] if isinstance(parts, dict) else []
            if "json_name" in held and "arguments" in held:
                self.is_object = True
                self.name_keys = {key for key, part in parts.items() if part == "json_name"}
                self.argument_keys = {key for key, part in parts.items() if part == "arguments"}
                self.prefix, self.suffix = way.call[:begin], way.call[end + 1 :]
        if not self.is_object:
            self._take_apart(way.call)

    def _take_apart(self, call: str) -> None:
        """Split a header: a pattern up to the arguments, and what follows them."""
        header, _, self.suffix = call.partition("$arguments")
        pieces: list[str] = []
        done = 0
        for match in PLACEHOLDER.finditer(header):
            pieces.append(_loose(header[done : match.start()]))
            done = match.end()
            kind = match[1]
            if kind == "id":
                pieces.append(f"(?P<id>{self.id_pattern})")
            elif kind == "json_name":
                pieces.append(f"(?P<json_name>{_JSON_STRING})")
            else:
                pieces.append(
                    rf"\s*(?P<name>{_NAMED}+?)"
                    if "(?P<name>" not in "".join(pieces)
                    else "(?P=name)"
                )
        tail = header[done:]
        ends: list[str] = []
        pieces.append(_loose(tail))
        if not tail.strip():
            # The name ends where its arguments, or what follows them, begin.
            after = self.suffix.partition("$id")[0].strip()
            ends = [after] if after else []
            if self.style == "json":
                ends.append("{")
            elif self.style in MARKERS:
                ends.append(MARKERS[self.style].open)
            pieces.append(rf"\s*(?={'|'.join(map(re.escape, ends))})")
        self.header = re.compile(r"\s*" + "".join(pieces))
        found = [*PLACEHOLDER.finditer(header)]
        self._start = header[: found[0].start() if found else len(header)]
        self._behind_name: list[str] | None = None
        if found and found[0][1] == "name":
            behind = header[found[0].end() : found[1].start() if len(found) > 1 else len(header)]
            self._behind_name = [behind] if behind.strip() or len(found) > 1 else ends

    def differs(self, text: str, *, is_soft: bool) -> int | None:
        """The position from which a text cannot be this header; None while it still may be.

        Only the text before the first placeholder, and a name there with what follows it, are
        compared. If calls are `is_soft`, names consist of letters, digits and a few marks.
        """
        at, may_be = _go_over(text, 0, self._start)
        if not may_be:
            return at
        if self._behind_name is None:
            return None
        named = (_MAYBE_NAME if is_soft else _UNQUOTED).match(text, at)
        if named is None:
            return None
        # What follows a name may consist of characters that a name may have as well.
        ends = [named.end()] if is_soft else range(named.start(1) + 1, named.end() + 1)
        if not is_soft and named.end() == len(text):
            return None
        may_end = any(_go_over(text, end, each)[1] for end in ends for each in self._behind_name)
        return None if may_end else named.end()


def _go_over(text: str, at: int, literal: str) -> tuple[int, bool]:
    """How far a text matches a literal, without whitespace, and whether it may match all of it."""
    for character in "".join(literal.split()):
        while text[at : at + 1].isspace():
            at += 1
        if at == len(text):
            return at, True
        if text[at] != character:
            return at, False
        at += 1
    return at, True


def _loose(literal: str) -> str:
    """A literal as a pattern that ignores whitespace."""
    return r"\s*".join(re.escape(word) for word in [literal[:0], *literal.split()]) + (
        r"\s*" if literal[-1:].isspace() else ""
    )


class AnswerReader(Protocol):
    """Reads a text to its end, and passes its findings to the parser that it is made for."""

    def read(self, out: Output) -> Generator[None, None, None]:
        """Reads the whole text."""


class Output:
    """The findings so far, and those that have not been passed on yet."""

    def __init__(self, text: Text, tools: Sequence[Tool], first_id: int) -> None:
        self.text = text
        self.tools = {tool.name: tool for tool in tools}
        self.first_id = first_id
        self.deltas: list[Delta] = []
        self.content: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[ToolCall] = []
        self.problems: list[str] = []
        self.whitespace = ""
        self.is_fresh = True
        self.begun = -1
        self.is_open = False

    def say(self, text: str, *, reasoning: bool = False) -> None:
        """Add content or reasoning without whitespace at its beginning.

        That at its end is held back.
        """
        if self.is_fresh:
            text = text.lstrip()
        if not text:
            return
        self.is_fresh = False
        text = self.whitespace + text
        kept = text.rstrip()
        self.whitespace = text[len(kept) :]
        if kept:
            (self.reasoning if reasoning else self.content).append(kept)
            self.deltas.append(ReasoningDelta(kept) if reasoning else ContentDelta(kept))

    def section(self) -> None:
        """Something other than content comes, or came: whitespace around it is not content."""
        self.whitespace = ""
        self.is_fresh = True

    def separate(self) -> None:
        """Begin another part of the content."""
        if self.content and not self.content[-1].endswith("\n"):
            self.whitespace = "\n"
        self.is_fresh = True

    def begin_call(self, name: str, written_id: str | None) -> None:
        """Begin a call. The id is the model's if it wrote one."""
        # A call that turned out to be invalid keeps its number, because its first deltas were
        # passed on.
        self.begun += 1
        call_id = written_id or f"call_{self.first_id + self.begun}"
        self.is_open = True
        self.deltas.append(CallDelta(self.begun, name, call_id))
        self.current = (name, call_id)
        self.handed_on = ""
        self.in_string = False

    def more_arguments(self, part: str) -> None:
        """Add JSON text of the arguments, as the model wrote it.

        JSON within a JSON string waits for the end of the call, when it becomes the object inside.
        """
        self.handed_on = self.handed_on or part.lstrip()[:1]
        if part and self.handed_on == "{":
            self.deltas.append(CallDelta(self.begun, arguments=self._escaped(part)))

    def _escaped(self, part: str) -> str:
        """A part with raw line breaks and the like in strings escaped, as JSON requires.

        It does not end within an escape.
        """

        def step(match: re.Match[str]) -> str:
            if match[0] == '"':
                self.in_string = not self.in_string
            elif self.in_string and match[0][0] != "\\":
                return json.dumps(match[0])[1:-1]
            return match[0]

        return _STRING_STEP.sub(step, part)

    def end_call(self, arguments: dict[str, Any]) -> None:
        """Complete the call."""
        name, call_id = self.current
        # First the values that may be nested too deeply for Python, so that nothing is half done.
        call = ToolCall(name, rounded(arguments), call_id, exact=arguments)
        if self.handed_on != "{":
            text = write_json(arguments)
            self.deltas.append(CallDelta(self.begun, arguments=text))
        self.is_open = False
        self.calls.append(call)
        self.deltas.append(CallDone(self.begun, call))
        if self.tools and name not in self.tools:
            self.problems.append(f"the model called {name!r}, which is none of the tools")
        self.section()

    def schema(self, name: str) -> Any:
        """The schema of a tool's arguments; None for an unknown tool."""
        tool = self.tools.get(name)
        return tool.arguments.json_schema if tool is not None else None


class ToolCallParser:
    r"""Reads one answer of a model.

    Pass text to `feed` and tokens to `feed_tokens`; both return what was added. `finish` ends the
    answer.

    Examples:
        >>> import stencilm
        >>> weather = {
        ...     "type": "function",
        ...     "function": {
        ...         "name": "weather",
        ...         "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        ...     },
        ... }
        >>> tools = stencilm.tools("qwen_3", [weather], reasoning=False)
        >>> parser = tools.parser()
        >>> deltas = parser.feed("Let me look. <tool_call>")
        >>> deltas += parser.feed(
        ...     '\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
        ... )
        >>> deltas += parser.finish()
        >>> parser.answer.calls
        (ToolCall(name='weather', arguments={'city': 'Rome'}, id='call_0'),)

        Tokens instead of text:

        >>> info = stencilm.TokenizerInfo([b"He", b"llo", b"</s>"], stop_token_ids=[2])
        >>> parser = tools.parser(tokenizer_info=info)
        >>> parser.feed_tokens([0, 1, 2])
        [ContentDelta(text='Hello')]
    """

    def __init__(
        self,
        reader: AnswerReader,
        text: Text,
        tools: Sequence[Tool],
        *,
        tokenizer_info: TokenizerInfo | None = None,
        first_id: int = 0,
    ) -> None:
        if not isinstance(text, Text):
            raise TypeError(
                f"a ToolCallParser is not made of {shown_value(text):.60}: use the method parser() "
                "of stencilm.tools(...)"
            )
        self._text = text
        self._out = Output(text, tools, first_id)
        self._reading = reader.read(self._out)
        self._info = tokenizer_info
        self._decoded: list[bytes] | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._finished = False

    def __reduce__(self) -> NoReturn:
        # A copy would share the text with this parser, and take it away from it.
        raise TypeError(
            "a ToolCallParser can be neither copied nor pickled: make another one by "
            "tools.parser(), and feed it the text so far"
        )

    def feed(self, text: str) -> list[Delta]:
        """Adds text of the answer; returns what it adds.

        Raises:
            ValueError: The answer was finished.
            TypeError: `text` is not a str.
        """
        if not isinstance(text, str):
            raise TypeError(
                f"text is a {type(text).__name__}, but must be a str; tokens go to feed_tokens"
            )
        if self._finished:
            raise ValueError("the answer was finished: make another parser for another answer")
        self._text.buffer += text
        self._go_on()
        return self._taken()

    def feed_tokens(self, token_ids: Iterable[int]) -> list[Delta]:
        """Adds tokens of the answer; stop tokens add no text. Returns what they add.

        Raises:
            ValueError: The parser has no tokenizer, a token is not in its vocabulary, or the answer
                was finished.
            TypeError: A token is not an integer, or `token_ids` is not several.
        """
        if self._info is None:
            raise ValueError("the parser knows no tokenizer: give tokenizer_info to parser()")
        if self._decoded is None:
            self._decoded = self._info.decoded_vocab
        stops = {*self._info.stop_token_ids}
        spelled = bytearray()
        if not hasattr(token_ids, "__iter__"):
            raise TypeError(
                f"token_ids is a {type(token_ids).__name__}, but must be token ids, as in [1, 2]"
            )
        for given in token_ids:
            # A torch tensor equals its number, but has a different hash.
            token = whole_number("a token", given, least=0, most=len(self._decoded) - 1)
            if token not in stops:
                spelled += self._decoded[token]
        return self.feed(self._decoder.decode(bytes(spelled)))

    def finish(self) -> list[Delta]:
        """Ends the answer; returns what was held back until its end was certain."""
        if not self._finished:
            self._text.buffer += self._decoder.decode(b"", final=True)
            self._finished = self._text.ended = True
            self._go_on()
            if not self._out.calls and self._out.whitespace:
                self._out.content.append(self._out.whitespace)
                self._out.deltas.append(ContentDelta(self._out.whitespace))
        return self._taken()

    @property
    def answer(self) -> ParsedAnswer:
        """What was found so far."""
        return ParsedAnswer(
            content="".join(self._out.content),
            reasoning="".join(self._out.reasoning),
            calls=tuple(self._out.calls),
            problems=tuple(self._out.problems),
        )

    def _go_on(self) -> None:
        for _ in self._reading:
            break

    def _taken(self) -> list[Delta]:
        deltas, self._out.deltas = self._out.deltas, []
        return deltas


class TemplateReader:
    """Reads the answers of a template."""

    def __init__(
        self, template: ToolTemplate, text: Text, *, reasoning: Reasoning, prompt: str | None
    ) -> None:
        self.template, self.text = template, text
        self.shapes = [_Shape(way) for way in template.ways()]
        if not all(shape.is_object for shape in self.shapes):
            self.shapes = [_Shape(way, may_be_object=False) for way in template.ways()]
        self.sections: list[tuple[str, str]] = []
        for shape in self.shapes:
            section = ("".join(shape.begin.split()), "".join(shape.end.split()))
            if section not in self.sections:
                self.sections.append(section)
        first = self.shapes[0]
        trigger = template.trigger.strip()
        # JSON and Python lists begin with a character that text may contain as well.
        self.is_soft = trigger[:1] in "{[" and not re.match(r"\[[A-Z_]+\]", trigger)
        self.trigger = trigger[:1] if self.is_soft else trigger
        self.needs_known = self.is_soft
        self.object_prefix = next((shape.prefix for shape in self.shapes if shape.is_object), "")
        self.is_object = first.is_object
        self.name_keys = _NAME_KEYS.union(*(shape.name_keys for shape in self.shapes))
        self.argument_keys = _ARGUMENT_KEYS.union(*(shape.argument_keys for shape in self.shapes))
        self.begins_within = self._begins_within(reasoning, prompt)
        self.in_response = False
        if prompt is not None and template.response is not None:
            self.in_response = prompt.rstrip().endswith(template.response[0].strip())

    def _begins_within(self, reasoning: Reasoning, prompt: str | None) -> bool:
        """Whether the text begins within the reasoning."""
        if self.template.think is None:
            return False
        if prompt is not None:
            return prompt.rstrip().endswith(self.template.think[0].strip())
        return self.template.think_prefilled and reasoning == "enabled"

    def read(self, out: Output) -> Generator[None, None, None]:
        """Reads the whole answer."""
        think = tuple(part.strip() for part in self.template.think or ())
        response = tuple(part.strip() for part in self.template.response or ())
        end = self.template.end
        try:
            if self.begins_within:
                yield from self.text.comes(think[0])
                yield from self._think(out, think[1])
            stops = [self.trigger, *think, *response, *([end] if end.strip() else [])]
            while True:
                _, stop = yield from self.text.until(stops, out.say, keep=False)
                if stop is None:
                    return
                if stop == self.trigger:
                    yield from self._calls(out)
                elif self.in_response and stop == response[1]:
                    self.in_response = False
                    out.section()
                elif think and stop == think[0]:
                    out.section()
                    yield from self._think(out, think[1])
                elif think and stop == think[1]:
                    # The prompt contained the beginning without our knowing: so far, the text was
                    # reasoning.
                    out.reasoning += out.content
                    out.content.clear()
                    out.section()
                elif response and stop == response[0]:
                    self.in_response = True
                    out.section()
                    out.separate()
                else:
                    out.section()
                self._forget(out)
        except CutShort:
            if out.is_open:
                out.problems.append(f"the text ends within a call of {out.current[0]!r}")

    def _forget(self, out: Output) -> None:
        if self.text.at > 1 << 16:
            self.text.drop(self.text.at)

    def _think(self, out: Output, end: str) -> Generator[None, None, None]:
        out.is_fresh = True
        say = partial(out.say, reasoning=True)
        yield from self.text.until((end,), say, keep=False)
        out.section()

    def _calls(self, out: Output) -> Generator[None, None, None]:
        """Read one section of calls, after its trigger; if it is not one, it is text."""
        begin = self.text.at - len(self.trigger)
        known = len(out.calls)
        whitespace, fresh = out.whitespace, out.is_fresh
        self.text.at = begin
        try:
            yield from self._section(out)
        except (Malformed, CutShort, RecursionError) as error:
            reason = "the arguments are nested too deeply"
            if not isinstance(error, RecursionError):
                reason = str(error)
            if isinstance(error, CutShort) and (not self.is_soft or out.is_open):
                if not out.is_open:
                    out.problems.append("the text ends within a call")
                raise
            # Deltas of an invalid call must not become a part of the next one.
            is_begun, out.is_open = out.is_open, False
            if len(out.calls) > known:
                out.problems.append(reason)
                return
            if is_begun or not self.is_soft:
                out.problems.append(reason)
            out.whitespace, out.is_fresh = whitespace, fresh
            self.text.at = begin + len(self.trigger)
            out.say(self.trigger)

    def _section(self, out: Output) -> Generator[None, None, None]:
        end = ""
        is_section = False
        for opening, closing in self.sections:
            is_section = bool(opening)
            end = closing
            if (yield from self.text.comes(opening)):
                break
        else:
            raise Malformed(f"{self.sections[0][0]!r} is expected")
        separator = "".join(self.shapes[0].separator.split())
        first = True
        while True:
            if not first or is_section:
                if end and (yield from self._next_is(end)):
                    yield from self.text.expect(end)
                    return
                if not first and is_section and not (yield from self.text.skip_whitespace()):
                    return
                if not first and separator and not (yield from self.text.comes(separator)):
                    if end:
                        raise Malformed(f"{end!r} is expected, not {self.text.other()!r}")
                    return
            yield from self._call(out)
            first = False
            if not is_section:
                # The next call has a trigger of its own; the text between two calls is not content.
                if separator and (yield from self._next_is(separator)):
                    yield from self.text.expect(separator)
                return

    def _next_is(self, literal: str) -> Generator[None, None, bool]:
        at = self.text.at
        found = yield from self.text.comes(literal)
        self.text.at = at
        return found

    def _call(self, out: Output) -> Generator[None, None, None]:
        if self.is_object:
            written = yield from self._literal(self.object_prefix)
            yield from self._object(out, written)
            yield from self._literal(self.shapes[0].suffix)
            return
        shape, match = yield from self._header()
        written = match.groupdict().get("json_name")
        name = match["name"] if written is None else self._string(written)
        if self.needs_known and out.tools and name not in out.tools:
            raise Malformed(f"{name!r} is none of the tools")
        self._begin(out, name, match.groupdict().get("id"))
        arguments = yield from read_arguments(
            self.text, shape.style, out.schema(name), shape.suffix.strip(), out.more_arguments
        )
        yield from self._end_of(shape)
        out.end_call(arguments)

    def _end_of(self, shape: _Shape) -> Generator[None, None, None]:
        """Read the end of a call with this beginning; equal beginnings may have several ends."""
        of_pattern = (way for way in self.shapes if way.header.pattern == shape.header.pattern)
        for way in of_pattern:
            if way is not shape and way.suffix and (yield from self.text.comes(way.suffix)):
                return
        yield from self._literal(shape.suffix)

    def _literal(self, literal: str) -> Generator[None, None, str | None]:
        """Read a part of a call that may contain an id; returns the id."""
        before, has_id, after = literal.partition("$id")
        yield from self.text.expect(before)
        if not has_id:
            return None
        # An id ends where what follows it begins.
        pattern = re.compile(rf"\s*(?P<id>{self.template.id_pattern}){_loose(after)}")
        while True:
            text, at = self.text, self.text.at
            match = pattern.match(text.buffer, at, at + LONGEST_HEADER)
            if match is not None and (after.strip() or match.end() < len(text.buffer)):
                break
            if match is not None and text.ended:
                break
            if len(text.buffer) - at >= LONGEST_HEADER:
                raise Malformed(f"{text.buffer[at : at + 20]!r} is no id of a call")
            yield from text.more()
        self.text.at = match.end()
        return match["id"]

    def _header(self) -> Generator[None, None, tuple[_Shape, re.Match[str]]]:
        """The first of the possible headers that matches."""
        while True:
            for shape in self.shapes:
                at = self.text.at
                match = shape.header.match(self.text.buffer, at, at + LONGEST_HEADER)
                if match is not None and self._is_named(match):
                    self.text.at = match.end()
                    return shape, match
            rest = self.text.buffer[self.text.at : self.text.at + LONGEST_HEADER]
            differ = [shape.differs(rest, is_soft=self.is_soft) for shape in self.shapes]
            if None not in differ:
                raise Malformed(f"{rest[: (differ[0] or 0) + 1][:20]!r} begins no call")
            if len(rest) >= LONGEST_HEADER:
                raise Malformed(f"{rest[:20]!r} begins no call")
            yield from self.text.more()

    def _is_named(self, match: re.Match[str]) -> bool:
        """Whether a header has a name that could not be distinguished from text before it."""
        name = match.groupdict().get("name")
        if not self.is_soft or name is None:
            return True
        named = _MAYBE_NAME.match(name)
        return named is not None and named.end() == len(name)

    def _begin(self, out: Output, name: str, written: str | None) -> None:
        if written is not None and self.template.id_format is not None:
            written = self.template.id_format.replace("$name", name).replace("$id", written)
        out.begin_call(name, written)

    def _object(self, out: Output, written: str | None) -> Generator[None, None, None]:
        """Read a call that is one JSON object, with keys in any order, after an optional id."""
        text = self.text
        yield from text.expect("{")
        name: str | None = None
        raw: str | None = None
        early: list[str] = []
        seen = False
        while True:
            if (yield from text.comes("}")):
                break
            if seen:
                yield from text.expect(",")
            seen = True
            if not (yield from text.skip_whitespace()):
                raise CutShort
            if text.buffer[text.at] != '"':
                raise Malformed(f"a key is expected, not {text.buffer[text.at]!r}")
            key = self._string((yield from text.json_value()))
            yield from text.expect(":")
            if (key in self.name_keys and name is not None) or (
                key in self.argument_keys and raw is not None
            ):
                raise Malformed(f"a call has no second {key!r}")
            if key in self.name_keys:
                name = self._string((yield from text.json_value()))
                if self.needs_known and out.tools and name not in out.tools:
                    raise Malformed(f"{name!r} is none of the tools")
            elif key in self.argument_keys:
                if name is not None and not out.is_open:
                    self._begin(out, name, written)
                    raw = yield from text.json_value(out.more_arguments)
                else:
                    raw = yield from text.json_value(early.append)
            elif key in _ID_KEYS:
                written = self._string((yield from text.json_value()))
            elif key in _OTHER_KEYS:
                yield from text.json_value()
            else:
                raise Malformed(f"a call has no key {key!r}")
        if name is None:
            raise Malformed("a call has a name")
        arguments = parse_object(raw) if raw is not None else {}
        if not out.is_open:
            self._begin(out, name, written)
            out.more_arguments("".join(early))
        out.end_call(arguments)

    @staticmethod
    def _string(raw: str) -> str:
        try:
            value = json.loads(raw)
        except ValueError:
            value = None
        if not isinstance(value, str):
            raise Malformed(f"a string is expected, not {raw[:20]!r}")
        return value
