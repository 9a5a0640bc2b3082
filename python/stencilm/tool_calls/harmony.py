"""The messages of gpt-oss: each has a channel and may have a recipient.

A message is `<|channel|>`, its channel, ` to=` and its recipient where it has one, a word for its
type, `<|message|>` and its text, and ends with `<|end|>`, `<|call|>` or `<|return|>`; the next one
begins
with `<|start|>assistant`. The recipient may stand before the channel, as the chat template has it.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING

from stencilm.grammars.structural_tag import (
    AnyTextFormat,
    ConstStringFormat,
    Format,
    OptionalFormat,
    OrFormat,
    SequenceFormat,
    TagFormat,
)
from stencilm.tool_calls.argument_readers import parse_object
from stencilm.tool_calls.reading import CutShort, Malformed, Text
from stencilm.tool_calls.request import Tool, ToolRequest

if TYPE_CHECKING:
    from stencilm.tool_calls.parser import Output

MARKERS = (
    "<|start|>",
    "<|channel|>",
    "<|constrain|>",
    "<|message|>",
    "<|end|>",
    "<|call|>",
    "<|return|>",
)
_TURN = "<|end|><|start|>assistant"
# The words for the type of a call's text: first that of the model's guide, then that of its chat
# template.
_TYPES = (" <|constrain|>json<|message|>", " json<|message|>", "<|message|>")
_BUILTIN_TYPES = (" code<|message|>", *_TYPES)
_ENDS = ("<|end|>", "<|call|>", "<|return|>", "<|start|>")
_RECIPIENT = re.compile(r"to=(\S+?)(?=<\||\s|$)")
_CHANNEL = re.compile(r"<\|channel\|>(\w+)")


def harmony_format(request: ToolRequest) -> Format:
    """First analysis and a preamble, then a call or the final answer."""
    before: list[Format] = []
    analysis = TagFormat(begin="<|channel|>analysis<|message|>", content=AnyTextFormat(), end=_TURN)
    if request.reasoning == "enabled":
        before.append(analysis)
    elif request.reasoning == "auto":
        before.append(OptionalFormat(content=analysis))
    last: list[Format] = []
    for tool in request.tools:
        last += _calls(tool)
    if request.choice in ("auto", "none"):
        preamble = TagFormat(
            begin="<|channel|>commentary<|message|>", content=AnyTextFormat(), end=_TURN
        )
        if request.choice == "auto" and request.answer is None:
            before.append(OptionalFormat(content=preamble))
        text = request.answer or AnyTextFormat(excludes=("<|start|>", "<|channel|>"))
        final = TagFormat(begin="<|channel|>final<|message|>", content=text, end=("<|return|>", ""))
        last.append(final)
    return SequenceFormat(elements=(*before, OrFormat(elements=tuple(last))))


def _calls(tool: Tool) -> list[Format]:
    """A call with its recipient after the channel, or before it."""
    is_function = tool.kind == "function"
    recipient = f"functions.{tool.name}" if is_function else tool.name
    types = OrFormat(
        elements=tuple(
            ConstStringFormat(value=text) for text in (_TYPES if is_function else _BUILTIN_TYPES)
        )
    )
    # The text of a call in Python is not JSON.
    text: Format = AnyTextFormat() if not is_function and tool.name == "python" else tool.arguments
    content = SequenceFormat(elements=(types, text))
    # The built-in tools are called in the analysis channel.
    channels = ("commentary",) if is_function else ("analysis", "commentary")
    # The last token is a stop token in most setups, and then it is not part of the text.
    ends = ("<|call|>", "")
    return [
        TagFormat(begin=begin, content=content, end=ends)
        for channel in channels
        for begin in (
            f"<|channel|>{channel} to={recipient}",
            f" to={recipient}<|channel|>{channel}",
        )
    ]


class HarmonyReader:
    """Reads the messages of an answer."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def read(self, out: Output) -> Generator[None, None, None]:
        """Reads the whole answer."""
        text = self.text
        try:
            while True:
                if (yield from text.comes("<|start|>")):
                    yield from text.comes("assistant")
                header, stop = yield from text.until(("<|message|>", *_ENDS))
                if stop != "<|message|>":
                    # A text without a header is itself the answer.
                    out.say(header)
                    if stop is None:
                        return
                    continue
                channel = _CHANNEL.search(header)
                recipient = _RECIPIENT.search(header)
                if recipient is not None:
                    yield from self._call(out, recipient[1])
                    continue
                is_reasoning = channel is not None and channel[1] == "analysis"
                if not is_reasoning and out.content:
                    out.separate()
                else:
                    out.section()
                say = partial(out.say, reasoning=is_reasoning)
                _, stop = yield from text.until(_ENDS, say, keep=False)
                out.section()
                if stop is None:
                    return
                if stop == "<|start|>":
                    text.at -= len(stop)
        except CutShort:
            if out.is_open:
                out.problems.append(f"the text ends within a call of {out.current[0]!r}")

    def _call(self, out: Output, recipient: str) -> Generator[None, None, None]:
        name = recipient.removeprefix("functions.")
        text = self.text
        begin = text.at
        if not (yield from text.skip_whitespace()):
            out.problems.append(f"the text ends within a call of {name!r}")
            raise CutShort
        if text.buffer[text.at] != "{":
            # Code for the built-in Python tool.
            code, stop = yield from text.until(_ENDS)
            if recipient.startswith("functions.") or stop is None:
                out.problems.append(f"the arguments {code[:40]!r} of {name!r} are no JSON")
                out.say(code)
                return
            out.begin_call(name, None)
            out.end_call({"code": code})
            return
        out.begin_call(name, None)
        raw = yield from text.json_value(out.more_arguments)
        try:
            out.end_call(parse_object(raw))
        except (Malformed, RecursionError) as error:
            is_deep = isinstance(error, RecursionError)
            out.is_open = False
            out.problems.append("the arguments are nested too deeply" if is_deep else str(error))
            text.at = begin
            yield from text.until(_ENDS, out.say)
            return
        rest, _ = yield from text.until(_ENDS)
        if rest.strip():
            out.problems.append(f"{rest.strip()[:40]!r} follows the arguments of {name!r}")
            out.say(rest)
            out.section()
