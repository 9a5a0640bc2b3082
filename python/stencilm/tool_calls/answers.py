"""The results of a parser: calls, content and reasoning, as a whole and as deltas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from stencilm.grammars.json_values import rounded, write_json


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool.

    Attributes:
        name: The tool.
        arguments: Its arguments by name, as JSON values; a number beyond the range of a float is a
            `decimal.Decimal`.
        id: What the tool's answer refers to: the id that the model wrote before the arguments, or
            "call_" and a number. The first delta has it, so an id after the arguments comes too
            late.
        exact: The arguments with all digits of their numbers, as `decimal.Decimal` where no float
            holds them. A function is called with these, unless `arguments` were changed. None if
            `arguments` are already exact.

    Examples:
        >>> import stencilm
        >>> stencilm.ToolCall("weather", {"city": "Rome"}, "call_0").arguments["city"]
        'Rome'
    """

    name: str
    arguments: Mapping[str, Any]
    id: str
    exact: Mapping[str, Any] | None = field(default=None, repr=False, compare=False, kw_only=True)


def written_arguments(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call with all digits of their numbers, as the model wrote them.

    Arguments that were changed later are returned as they are.
    """
    arguments = dict(call.arguments)
    if call.exact is None:
        return arguments
    exact = dict(call.exact)
    return exact if write_json(rounded(exact)) == write_json(arguments) else arguments


@dataclass(frozen=True, slots=True)
class ContentDelta:
    """More of the text outside calls.

    Examples:
        >>> import stencilm
        >>> parser = stencilm.tools("qwen_3", [], reasoning=False).parser()
        >>> parser.feed("Hello.")
        [ContentDelta(text='Hello.')]
    """

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    r"""More of the reasoning.

    Examples:
        >>> import stencilm
        >>> parser = stencilm.tools("qwen_3", []).parser()
        >>> parser.feed("<think>\nHm")
        [ReasoningDelta(text='Hm')]
    """

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    r"""More of a call.

    The first delta of a call has its name and id; the texts of all are its arguments as one JSON
    object.

    Attributes:
        index: Which call of the answer, from 0.
        name: The tool; only in the first delta.
        id: The id; only in the first delta.
        arguments: More of the JSON text.

    Examples:
        >>> import stencilm
        >>> weather = {
        ...     "type": "function",
        ...     "function": {
        ...         "name": "weather",
        ...         "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        ...     },
        ... }

        >>> parser = stencilm.tools("qwen_3", [weather], reasoning=False).parser()
        >>> deltas = parser.feed('<tool_call>\n{"name": "weather", "arguments": {"city')
        >>> deltas[0].name, deltas[0].id
        ('weather', 'call_0')
    """

    index: int
    name: str | None = None
    id: str | None = None
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class CallDone:
    r"""A call is complete.

    Examples:
        >>> import stencilm
        >>> weather = {
        ...     "type": "function",
        ...     "function": {
        ...         "name": "weather",
        ...         "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        ...     },
        ... }

        >>> parser = stencilm.tools("qwen_3", [weather], reasoning=False).parser()
        >>> call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
        >>> deltas = parser.feed(call) + parser.finish()
        >>> deltas[-1].call.name
        'weather'
    """

    index: int
    call: ToolCall


Delta: TypeAlias = ContentDelta | ReasoningDelta | CallDelta | CallDone


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedAnswer:
    """A whole answer.

    Attributes:
        content: The text outside calls, without the whitespace around calls.
        reasoning: The reasoning, without the whitespace around it.
        calls: The calls, in the order of the text.
        problems: What could not be read, calls of unknown tools, and calls that are cut off; each a
            sentence.

    Examples:
        >>> import stencilm
        >>> answer = stencilm.tools("qwen_3", [], reasoning=False).parse("Hello.")
        >>> answer.content, answer.calls, answer.problems
        ('Hello.', (), ())
    """

    content: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    problems: tuple[str, ...] = field(default=())
