"""The messages of gpt-oss: each has a channel and may have a recipient."""

from __future__ import annotations

from stencilm.structural_tag import (
    AnyTextFormat,
    Format,
    OptionalFormat,
    OrFormat,
    SequenceFormat,
    TagFormat,
)
from stencilm.tool_calls.request import ToolRequest


def harmony_format(request: ToolRequest) -> Format:
    """Messages of gpt-oss: analysis and preambles first, then a call or the final answer."""
    turn = "<|end|><|start|>assistant"
    before: list[Format] = []
    analysis = TagFormat(begin="<|channel|>analysis<|message|>", content=AnyTextFormat(), end=turn)
    if request.reasoning == "enabled":
        before.append(analysis)
    elif request.reasoning == "auto":
        before.append(OptionalFormat(content=analysis))
    last: list[Format] = []
    # The last token stops in most setups, and then no text holds it.
    ends = ("<|call|>", "")
    for tool in request.tools:
        for begin in (
            f"<|channel|>commentary to=functions.{tool.name} <|constrain|>json<|message|>",
            f" to=functions.{tool.name}<|channel|>commentary <|constrain|>json<|message|>",
        ):
            last.append(TagFormat(begin=begin, content=tool.arguments, end=ends))
    if request.choice in ("auto", "none"):
        preamble = TagFormat(
            begin="<|channel|>commentary<|message|>", content=AnyTextFormat(), end=turn
        )
        if request.choice == "auto" and request.answer is None:
            before.append(OptionalFormat(content=preamble))
        text = request.answer or AnyTextFormat(excludes=("<|start|>", "<|channel|>"))
        final = TagFormat(begin="<|channel|>final<|message|>", content=text, end=("<|return|>", ""))
        last.append(final)
    return SequenceFormat(elements=(*before, OrFormat(elements=tuple(last))))
