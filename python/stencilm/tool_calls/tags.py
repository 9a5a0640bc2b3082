"""From a template and a request to the format of an answer.

One idea: the same few steps make a format from every template. A family that fits no template is a
function of the same request, registered under its name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, cast

from stencilm.grammars.structural_tag import (
    AnyTextFormat,
    ConstStringFormat,
    Format,
    OptionalFormat,
    OrFormat,
    RegexFormat,
    SequenceFormat,
    TagFormat,
    TagsWithSeparatorFormat,
    TriggeredTagsFormat,
)
from stencilm.tool_calls.request import Tool, ToolRequest
from stencilm.tool_calls.template import PLACEHOLDER, ToolTemplate

Builder: TypeAlias = Callable[[ToolRequest], Format]

BLANK_LINES = RegexFormat(pattern=r"[ \n]{0,8}")
_NAME = re.compile(r"\$(name|json_name)\b")


def template_format(template: ToolTemplate, request: ToolRequest) -> Format:
    """The format of the model's entire output."""
    answer = _answer(template, request)
    if template.end:
        end = OptionalFormat(content=ConstStringFormat(value=template.end))
        answer = SequenceFormat(elements=(answer, end))
    return with_reasoning(template, request, answer)


def _answer(template: ToolTemplate, request: ToolRequest) -> Format:
    """What follows the reasoning."""
    markers = _markers(template) if request.exclude_markers else ()
    text: Format = AnyTextFormat(excludes=(*markers, template.trigger))
    if request.choice == "none":
        return _response(template, request.answer or text)
    sections = _sections(template, request)
    calls = _either(sections)
    if request.choice in ("named", "required"):
        if template.response_first:
            # The family writes a text before its calls, even if it is empty.
            calls = SequenceFormat(
                elements=(OptionalFormat(content=_response(template, text)), calls)
            )
        return SequenceFormat(elements=(BLANK_LINES, calls)) if template.blank_lines else calls
    if request.answer is not None:
        return OrFormat(elements=(calls, _response(template, request.answer)))
    if template.response is not None:
        response = _response(template, text)
        if template.response_first:
            # The calls are written only once, because they are long.
            calls = SequenceFormat(elements=(OptionalFormat(content=response), calls))
        return OrFormat(elements=(calls, response))
    tags: list[TagFormat] = []
    for section in sections:
        # Calls without a section are independent of each other, with text between them.
        if isinstance(section, TagFormat):
            tags.append(_triggered(template.trigger, section))
        else:
            tags += section.tags
    return TriggeredTagsFormat(
        triggers=(template.trigger,),
        tags=tuple(tags),
        stop_after_first=not request.parallel or bool(template.section[0]),
        excludes=markers,
    )


def _sections(
    template: ToolTemplate, request: ToolRequest
) -> list[TagFormat | TagsWithSeparatorFormat]:
    """All calls with the text around them.

    There is one alternative per way to write calls: there are many tools, so the common part of all
    ways is written only once.
    """
    kinds: dict[tuple[tuple[str, str], str], list[str]] = {}
    for way in template.ways():
        kinds.setdefault((way.section, way.separator), []).append(way.call)
    around: dict[tuple[tuple[str, ...], str, str], list[str]] = {}
    for ((begin, end), separator), calls in kinds.items():
        around.setdefault((tuple(calls), separator, end), []).append(begin)
    sections: list[TagFormat | TagsWithSeparatorFormat] = []
    for (ways, separator, end), begins in around.items():
        only = TagsWithSeparatorFormat(
            tags=tuple(_calls(template, ways, request.tools)),
            separator=separator,
            at_least_one=True,
            stop_after_first=not request.parallel,
        )
        if begins == [""] and not end:
            sections.append(only)
        elif len(begins) == 1:
            sections.append(TagFormat(begin=begins[0], content=only, end=end))
        else:
            # All of them begin with the trigger.
            rests = (begin.removeprefix(template.trigger) for begin in begins)
            rest = OrFormat(elements=tuple(ConstStringFormat(value=rest) for rest in rests))
            content = SequenceFormat(elements=(rest, only))
            sections.append(TagFormat(begin=template.trigger, content=content, end=end))
    return sections


def _triggered(trigger: str, section: TagFormat) -> TagFormat:
    """The same section as a tag whose beginning contains the whole trigger.

    The trigger may reach into the first call, as far as all calls begin in the same way.
    """
    begin = cast("str", section.begin)
    if begin.startswith(trigger):
        return section
    lead = trigger.removeprefix(begin)
    calls = section.content
    assert isinstance(calls, TagsWithSeparatorFormat), "invariant: such a section has one beginning"
    first = tuple(
        TagFormat(
            begin=cast("str", call.begin).removeprefix(lead), content=call.content, end=call.end
        )
        for call in calls.tags
    )
    content: Format = first[0] if len(first) == 1 else OrFormat(elements=first)
    if not calls.stop_after_first:
        more = _sequence([calls.separator, calls])
        content = SequenceFormat(elements=(content, OptionalFormat(content=more)))
    return TagFormat(begin=trigger, content=content, end=section.end)


def _either(formats: list[TagFormat | TagsWithSeparatorFormat]) -> Format:
    return formats[0] if len(formats) == 1 else OrFormat(elements=tuple(formats))


def _markers(template: ToolTemplate) -> tuple[str, ...]:
    return () if template.think is None else tuple(part.strip() for part in template.think)


def _response(template: ToolTemplate, text: Format) -> Format:
    if template.response is None:
        return text
    begin, end = template.response
    block: Format = TagFormat(begin=begin, content=text, end=end)
    if not template.response_prefilled:
        return block
    # It is not known here whether the prompt ended with the beginning, so both are allowed.
    return OrFormat(elements=(TagFormat(begin="", content=text, end=end), block))


def _calls(
    template: ToolTemplate, ways: Sequence[str], tools: Sequence[Tool]
) -> Iterator[TagFormat]:
    """The calls of all tools, in these ways.

    Ways that differ only after the arguments are merged.
    """
    tails: dict[str, list[str]] = {}
    for way in ways:
        head, _, tail = way.partition("$arguments")
        tails.setdefault(head, []).append(tail)
    for head, ends in tails.items():
        begin, id_first, rest = head.partition("$id")
        if id_first and _NAME.search(rest):
            # An id before the name is the same for all tools.
            named = tuple(_call(template, rest, ends, tool) for tool in tools)
            either: Format = named[0] if len(named) == 1 else OrFormat(elements=named)
            content = SequenceFormat(elements=(RegexFormat(pattern=template.id_pattern), either))
            yield TagFormat(begin=begin, content=content, end="")
        else:
            yield from (_call(template, head, ends, tool) for tool in tools)


def _call(template: ToolTemplate, head: str, tails: Sequence[str], tool: Tool) -> TagFormat:
    """A call of a tool, with the text before its arguments and the possible texts after them."""
    begin, *before = _pieces(template, head, tool)
    after = [_pieces(template, tail, tool) for tail in tails]
    content: list[str | Format] = [*before, tool.arguments]
    end: str | Format = ""
    if len(after) == 1:
        *middle, end = after[0]
        content += middle
    else:
        content.append(OrFormat(elements=tuple(_sequence(pieces) for pieces in after)))
    return TagFormat(begin=cast("str", begin), content=_sequence(content), end=cast("str", end))


def _pieces(template: ToolTemplate, text: str, tool: Tool) -> list[str | Format]:
    """A part of a call for a tool: a text and, for each id, its format and another text."""
    pieces: list[str | Format] = []
    fixed = ""
    done = 0
    for match in PLACEHOLDER.finditer(text):
        fixed += text[done : match.start()]
        done = match.end()
        if match[1] == "id":
            pieces += [fixed, RegexFormat(pattern=template.id_pattern)]
            fixed = ""
        else:
            quoted = match[1] == "json_name"
            fixed += json.dumps(tool.name, ensure_ascii=False) if quoted else tool.name
    return [*pieces, fixed + text[done:]]


def _sequence(pieces: Sequence[str | Format]) -> Format:
    """Texts and formats in sequence."""
    elements = tuple(
        ConstStringFormat(value=piece) if isinstance(piece, str) else piece
        for piece in pieces
        if piece != ""
    )
    return elements[0] if len(elements) == 1 else SequenceFormat(elements=elements)


def with_reasoning(template: ToolTemplate, request: ToolRequest, answer: Format) -> Format:
    """An answer, preceded by reasoning if the template has it and the request wants it."""
    if template.think is None or request.reasoning == "disabled":
        return answer
    begin, end = template.think
    block: Format = TagFormat(begin=begin, content=AnyTextFormat(), end=end)
    if template.think_prefilled:
        # It is not known here whether the prompt ended with the beginning, so both are allowed.
        within = TagFormat(begin="", content=AnyTextFormat(), end=end)
        block = OrFormat(elements=(within, block))
    free = isinstance(answer, (TriggeredTagsFormat, AnyTextFormat))
    parts: tuple[Format, ...] = (block,) if free else (block, BLANK_LINES)
    if request.reasoning == "enabled":
        return SequenceFormat(elements=(*parts, answer))
    before = OptionalFormat(content=SequenceFormat(elements=parts))
    return SequenceFormat(elements=(before, answer))
