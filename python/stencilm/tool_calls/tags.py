"""From a template and a request to the format of an answer.

One idea: the same few steps make a format of every template. What fits no template is a function of
the same request, under a name of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeAlias

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


def template_format(template: ToolTemplate, request: ToolRequest) -> Format:
    """The format of everything that the model writes."""
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
            # The family writes a text before its calls, be it empty.
            calls = SequenceFormat(
                elements=(OptionalFormat(content=_response(template, text)), calls)
            )
        return SequenceFormat(elements=(BLANK_LINES, calls)) if template.blank_lines else calls
    if request.answer is not None:
        return OrFormat(elements=(calls, _response(template, request.answer)))
    if template.response is not None:
        response = _response(template, text)
        if template.response_first:
            response = SequenceFormat(elements=(response, OptionalFormat(content=calls)))
        return OrFormat(elements=(calls, response))
    tags: list[TagFormat] = []
    for section in sections:
        # Calls without a section around them stand each for itself, with text between them.
        tags += [section] if isinstance(section, TagFormat) else section.tags
    return TriggeredTagsFormat(
        triggers=(template.trigger,),
        tags=tuple(tags),
        stop_after_first=not request.parallel or bool(template.section[0]),
        excludes=markers,
    )


def _sections(
    template: ToolTemplate, request: ToolRequest
) -> list[TagFormat | TagsWithSeparatorFormat]:
    """All calls with what stands around them, once for each way to write that."""
    kinds: dict[tuple[tuple[str, str], str], list[TagFormat]] = {}
    for way in template.ways():
        calls = kinds.setdefault((way.section, way.separator), [])
        calls.extend(call(way, tool) for tool in request.tools)
    sections: list[TagFormat | TagsWithSeparatorFormat] = []
    for ((begin, end), separator), calls in kinds.items():
        only = TagsWithSeparatorFormat(
            tags=tuple(calls),
            separator=separator,
            at_least_one=True,
            stop_after_first=not request.parallel,
        )
        sections.append(TagFormat(begin=begin, content=only, end=end) if begin or end else only)
    return sections


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
    # Whether the prompt ended with the beginning is not known here, so both may come.
    return OrFormat(elements=(TagFormat(begin="", content=text, end=end), block))


def call(template: ToolTemplate, tool: Tool) -> TagFormat:
    """A call of a tool: text up to the first part that is not fixed, and from the last one on."""
    parts: list[Format] = []
    text = ""
    done = 0
    begin: str | None = None
    for match in PLACEHOLDER.finditer(template.call):
        text += template.call[done : match.start()]
        done = match.end()
        if match[1] == "name":
            text += tool.name
        elif match[1] == "json_name":
            text += json.dumps(tool.name, ensure_ascii=False)
        else:
            if begin is None:
                begin = text
            elif text:
                parts.append(ConstStringFormat(value=text))
            text = ""
            is_id = match[1] == "id"
            parts.append(RegexFormat(pattern=template.id_pattern) if is_id else tool.arguments)
    content = parts[0] if len(parts) == 1 else SequenceFormat(elements=tuple(parts))
    return TagFormat(begin=begin or "", content=content, end=text + template.call[done:])


def with_reasoning(template: ToolTemplate, request: ToolRequest, answer: Format) -> Format:
    """An answer, after reasoning where the template has it and the request wants it."""
    if template.think is None or request.reasoning == "disabled":
        return answer
    begin, end = template.think
    block: Format = TagFormat(begin=begin, content=AnyTextFormat(), end=end)
    if template.think_prefilled:
        # Whether the prompt ended with the beginning is not known here, so both may come.
        within = TagFormat(begin="", content=AnyTextFormat(), end=end)
        block = OrFormat(elements=(within, block))
    free = isinstance(answer, (TriggeredTagsFormat, AnyTextFormat))
    parts: tuple[Format, ...] = (block,) if free else (block, BLANK_LINES)
    if request.reasoning == "enabled":
        return SequenceFormat(elements=(*parts, answer))
    before = OptionalFormat(content=SequenceFormat(elements=parts))
    return SequenceFormat(elements=(before, answer))
