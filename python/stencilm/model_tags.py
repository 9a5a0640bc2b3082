"""Structural tags for the tool calls of models: from tools and a choice to one tag.

One idea: what a family of models writes is a template, and the same few steps make a tag of every
template. What fits no template is a function of the same request, under a name of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias

from stencilm.errors import GrammarSyntaxError
from stencilm.grammar_sources import OnUnsupported
from stencilm.model_templates import TEMPLATES, ToolTemplate
from stencilm.structural_tag import (
    AnyTextFormat,
    ConstStringFormat,
    Format,
    JSONSchemaFormat,
    OptionalFormat,
    OrFormat,
    RegexFormat,
    SequenceFormat,
    StructuralTag,
    TagFormat,
    TagsWithSeparatorFormat,
    TriggeredTagsFormat,
    is_format,
)

Reasoning: TypeAlias = Literal["enabled", "disabled", "auto"]
ToolChoice: TypeAlias = Literal["auto", "required", "none"] | Mapping[str, Any]

_BLANKS = RegexFormat(pattern=r"[ \n]{0,8}")
_PLACEHOLDER = re.compile(r"\$(name|json_name|id|arguments)\b")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: what the model calls it, and the format of its arguments."""

    name: str
    arguments: JSONSchemaFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """What a tag is asked for.

    Attributes:
        tools: The tools that may be called.
        choice: Whether they must be; "named" for exactly one call of the only tool.
        parallel: Several calls may come.
        reasoning: Whether reasoning comes first.
        answer: What may come in place of calls and text; None for any text.
        exclude_markers: Markers of reasoning and calls do not come in text.
    """

    tools: tuple[Tool, ...]
    choice: Literal["auto", "required", "none", "named"]
    parallel: bool
    reasoning: Reasoning
    answer: Format | None
    exclude_markers: bool


Builder: TypeAlias = Callable[[ToolRequest], Format]

_REGISTRY: dict[str, ToolTemplate | Builder] = dict(TEMPLATES)
# The models that a function is meant for; a template has its own.
_MODELS: dict[str, tuple[str, ...]] = {}


def register_model_structural_tag(
    name: str, template: ToolTemplate | Builder, *, models: Sequence[str] = ()
) -> None:
    """Makes a family of models known under a name, or replaces what was known under it.

    Args:
        name: For `get_model_structural_tag`.
        template: How it writes calls, or a function that makes a format of a `ToolRequest`.
        models: Names of models that a function is meant for, with `*` for any characters; a
            template has its own.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"name is {name!r}, but must be a str of at least one character")
    if isinstance(models, str) or not all(isinstance(model, str) for model in models):
        raise TypeError(f"models is {models!r}, but must be a sequence of str")
    if isinstance(template, ToolTemplate) and models:
        raise ValueError("models is for a function: a ToolTemplate has its own")
    if isinstance(template, ToolTemplate):
        for part in ("$arguments", "$name" if "$name" in template.call else "$json_name"):
            if template.call.count(part) != 1:
                raise ValueError(f"the call {template.call!r} must hold {part} exactly once")
        if not (template.section[0] + template.call).startswith(template.trigger):
            raise ValueError(f"the trigger {template.trigger!r} begins neither section nor call")
    elif not callable(template):
        raise TypeError(f"template is a {type(template).__name__}: give a ToolTemplate or function")
    _REGISTRY[name] = template
    _MODELS[name] = tuple(models)


def model_structural_tags() -> dict[str, tuple[str, ...]]:
    """The names that are known, each with patterns of the models that it is meant for."""
    return {
        name: template.models if isinstance(template, ToolTemplate) else _MODELS[name]
        for name, template in _REGISTRY.items()
    }


def get_model_structural_tag(
    model: str,
    tools: Sequence[Mapping[str, Any]] | None = None,
    tool_choice: ToolChoice | None = "auto",
    reasoning: Reasoning | bool = "enabled",
    *,
    parallel_tool_calls: bool = True,
    answer: Format | Mapping[str, Any] | None = None,
    any_order: bool = False,
    strict_mode: bool = False,
    max_whitespace: int | None = 64,
    exclude_special_tokens: bool = True,
    on_unsupported: OnUnsupported = "error",
) -> StructuralTag:
    """The structural tag of what a model may write when it has these tools.

    Args:
        model: A name of `model_structural_tags`, or a model such as "Qwen/Qwen3-8B".
        tools: As OpenAI's chat completions take them: functions, or tools of other types by
            `name` and `parameters`. A function that is not `strict` may have any arguments.
        tool_choice: "auto" (text, calls or both), "required" (calls and nothing else), "none"
            (text and no calls), a function by name, a tool by type, or `allowed_tools`.
        reasoning: Whether reasoning comes first; "auto" where the model may leave it out. True
            and False are the first two. Without effect for models that do not reason.
        parallel_tool_calls: Several calls may come.
        answer: A format. Where given the model either calls tools or gives this answer, which
            makes structured output and tools one request.
        any_order: Arguments in any order; only for styles of JSON.
        strict_mode: Arguments that a schema does not declare are forbidden.
        max_whitespace: The longest run of blanks within arguments.
        exclude_special_tokens: Markers of reasoning and of calls do not come in text.
        on_unsupported: "error" refuses a grammar with a tool whose parameters cannot be enforced,
            by the beginning of its calls; "relax" leaves out what cannot, for that tool alone, and
            the report of the grammar says so.

    Raises:
        GrammarSyntaxError: An unknown model, or tools or a choice of another form.
    """
    template = _REGISTRY[_known_name(model)]
    style = template.style if isinstance(template, ToolTemplate) else "json"

    def arguments(schema: Any) -> JSONSchemaFormat:
        return JSONSchemaFormat(
            json_schema=schema,
            style=style,
            any_order=any_order,
            strict_mode=strict_mode,
            max_whitespace=max_whitespace,
            on_unsupported=on_unsupported,
        )

    if tools is not None and (isinstance(tools, str) or not isinstance(tools, Sequence)):
        raise GrammarSyntaxError(f"tools is {tools!r}, but must be a sequence of tools")
    # Strict mode would close an object that says nothing.
    anything = (
        {"type": "object", "additionalProperties": True} if strict_mode else {"type": "object"}
    )
    known = [_tool(index, tool, arguments, anything) for index, tool in enumerate(tools or ())]
    choice, chosen = _chosen(tool_choice, known)
    if isinstance(answer, Mapping):
        answer = StructuralTag.from_json(answer).format
    if answer is not None and not is_format(answer):
        raise TypeError(f"answer is {answer!r}, but must be a format, or a dict of one")
    request = ToolRequest(
        tools=tuple(chosen),
        choice=choice,
        parallel=parallel_tool_calls and choice != "named",
        reasoning=_reasoning(reasoning),
        answer=answer,
        exclude_markers=exclude_special_tokens,
    )
    if not request.tools and choice != "none":
        if choice != "auto":
            raise GrammarSyntaxError("a call is asked for, but there is no tool: give tools")
        request = ToolRequest(
            tools=(),
            choice="none",
            parallel=False,
            reasoning=request.reasoning,
            answer=request.answer,
            exclude_markers=request.exclude_markers,
        )
    if isinstance(template, ToolTemplate):
        return StructuralTag(format=_from_template(template)(request))
    made = template(request)
    if not is_format(made):
        raise TypeError(f"the function known as {model!r} must return a format, not {made!r}")
    return StructuralTag(format=made)


def _known_name(model: str) -> str:
    if not isinstance(model, str):
        raise TypeError(f"model is a {type(model).__name__}, but must be a str")
    if model in _REGISTRY:
        return model
    last = model.rsplit("/", 1)[-1].lower()
    # A model that others were made from is named behind their family: "Hermes-3-Llama-3.1-8B".
    found = [
        (-last.find(pattern.strip("*").partition("*")[0]), len(pattern), name)
        for name, patterns in model_structural_tags().items()
        for pattern in patterns
        if fnmatchcase(last, pattern)
    ]
    if not found:
        names = ", ".join(_REGISTRY)
        raise GrammarSyntaxError(
            f"no tool calls are known for the model {model!r}: give one of {names}, or register it"
        )
    return max(found)[2]


def _reasoning(value: Reasoning | bool) -> Reasoning:
    if isinstance(value, bool):
        return "enabled" if value else "disabled"
    if value not in ("enabled", "disabled", "auto"):
        raise GrammarSyntaxError(f"reasoning is {value!r}: give enabled, disabled or auto")
    return value


def _tool(
    index: int, tool: Mapping[str, Any], arguments: Callable[[Any], Any], anything: dict[str, Any]
) -> tuple[str, Tool]:
    """A tool with its type; one without a schema takes anything."""
    place = f"#/tools/{index}"
    if not isinstance(tool, Mapping):
        raise GrammarSyntaxError(f"a tool is a dict, not a {type(tool).__name__}", place=place)
    kind = tool.get("type", "function")
    if kind == "custom":
        raise GrammarSyntaxError(
            "a custom tool takes text, and calls have arguments in JSON: give a function",
            place=f"{place}/type",
        )
    entry = tool.get("function", tool) if kind == "function" else tool
    if not isinstance(entry, Mapping):
        raise GrammarSyntaxError(f"function is {entry!r}, but must be a dict", place=place)
    for other in ("input_schema", "inputSchema"):
        if other in entry:
            raise GrammarSyntaxError(
                f"the schema of a tool's arguments is its parameters, not its {other}: rename it",
                place=f"{place}/{other}",
            )
    name = entry.get("name") if kind == "function" else entry.get("name", kind)
    if not isinstance(name, str) or not name:
        raise GrammarSyntaxError(f"the tool has the name {name!r}: give it one", place=place)
    parameters = entry.get("parameters")
    if parameters is None or entry.get("strict") is False:
        parameters = anything
    if not isinstance(parameters, (Mapping, bool)):
        raise GrammarSyntaxError("parameters are a schema: a dict or a bool", place=place)
    schema = parameters if isinstance(parameters, bool) else dict(parameters)
    return kind, Tool(name, arguments(schema))


def _chosen(
    choice: ToolChoice | None, tools: list[tuple[str, Tool]]
) -> tuple[Literal["auto", "required", "none", "named"], list[Tool]]:
    everything = [tool for _, tool in tools]
    if choice is None or choice == "auto":
        return "auto", everything
    if choice == "required":
        return "required", everything
    if choice == "none":
        return "none", []
    if isinstance(choice, Mapping):
        if choice.get("type") == "allowed_tools":
            # Chat completions have mode and tools one level below, responses beside the type.
            allowed = choice.get("allowed_tools", choice)
            entries = allowed.get("tools") if isinstance(allowed, Mapping) else None
            if isinstance(entries, str) or not isinstance(entries, Sequence):
                raise GrammarSyntaxError(
                    f"allowed_tools is {allowed!r}: give a dict with mode and a list of tools"
                )
            mode = allowed.get("mode", "auto")
            if mode not in ("auto", "required"):
                raise GrammarSyntaxError(
                    f"the mode of allowed_tools is {mode!r}: give auto or required"
                )
            return mode, [ref for entry in entries for ref in _referred(entry, tools)]
        found = _referred(choice, tools)
        if len(found) == 1:
            return "named", found
    raise GrammarSyntaxError(
        f"tool_choice is {choice!r}: give auto, required, none, or one of the tools by name or type"
    )


def _referred(choice: Mapping[str, Any], tools: list[tuple[str, Tool]]) -> list[Tool]:
    function = choice.get("function", choice) if isinstance(choice, Mapping) else None
    if not isinstance(function, Mapping):
        raise GrammarSyntaxError(f"a tool is chosen by a dict with its name, not by {choice!r}")
    kind, name = choice.get("type", "function"), function.get("name")
    if kind == "function":
        found = [tool for other, tool in tools if other == "function" and tool.name == name]
    else:
        found = [tool for other, tool in tools if other == kind]
    if not found:
        raise GrammarSyntaxError(f"tool_choice names {name or kind!r}, which is none of the tools")
    return found


def _from_template(template: ToolTemplate) -> Builder:
    def make(request: ToolRequest) -> Format:
        answer = _answer(template, request)
        if template.end:
            end = OptionalFormat(content=ConstStringFormat(value=template.end))
            answer = SequenceFormat(elements=(answer, end))
        return with_reasoning(template, request, answer)

    return make


def _answer(template: ToolTemplate, request: ToolRequest) -> Format:
    """What follows the reasoning."""
    markers = _markers(template) if request.exclude_markers else ()
    if request.choice == "none":
        text = AnyTextFormat(excludes=(*markers, template.trigger))
        return _response(template, request.answer or text)
    calls = [_call(template, tool) for tool in request.tools]
    if request.choice == "named":
        return _section(template, calls[0])
    only = TagsWithSeparatorFormat(
        tags=tuple(calls),
        separator=template.separator,
        at_least_one=True,
        stop_after_first=not request.parallel,
    )
    if request.choice == "required":
        return _section(template, only)
    if request.answer is not None:
        answer = _response(template, request.answer)
        return OrFormat(elements=(_section(template, only), answer))
    if template.response is not None:
        response = _response(template, AnyTextFormat(excludes=(*markers, template.trigger)))
        section = _section(template, only)
        if template.response_first:
            response = SequenceFormat(elements=(response, OptionalFormat(content=section)))
        return OrFormat(elements=(section, response))
    begin, end = template.section
    tags = (TagFormat(begin=begin, content=only, end=end),) if begin else tuple(calls)
    return TriggeredTagsFormat(
        triggers=(template.trigger,),
        tags=tags,
        stop_after_first=not request.parallel or bool(begin),
        excludes=markers,
    )


def _markers(template: ToolTemplate) -> tuple[str, ...]:
    return () if template.think is None else template.think


def _response(template: ToolTemplate, text: Format) -> Format:
    if template.response is None:
        return text
    begin, end = template.response
    return TagFormat(begin=begin, content=text, end=end)


def _section(template: ToolTemplate, calls: Format) -> Format:
    begin, end = template.section
    return TagFormat(begin=begin, content=calls, end=end) if begin or end else calls


def _call(template: ToolTemplate, tool: Tool) -> TagFormat:
    """A call of a tool: text up to the first part that is not fixed, and from the last one on."""
    parts: list[Format] = []
    text = ""
    done = 0
    begin: str | None = None
    for match in _PLACEHOLDER.finditer(template.call):
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
    """An answer, behind reasoning where the template has it and the request wants it."""
    if template.think is None or request.reasoning == "disabled":
        return answer
    begin, end = template.think
    block: Format = TagFormat(begin=begin, content=AnyTextFormat(), end=end)
    if template.think_prefilled:
        # Whether the prompt ended with the beginning is not known here, so both may come.
        within = TagFormat(begin="", content=AnyTextFormat(), end=end)
        block = OrFormat(elements=(within, block))
    free = isinstance(answer, (TriggeredTagsFormat, AnyTextFormat))
    parts: tuple[Format, ...] = (block,) if free else (block, _BLANKS)
    if request.reasoning == "enabled":
        return SequenceFormat(elements=(*parts, answer))
    before = OptionalFormat(content=SequenceFormat(elements=parts))
    return SequenceFormat(elements=(before, answer))


def _harmony(request: ToolRequest) -> Format:
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


register_model_structural_tag("harmony", _harmony, models=("*gpt-oss*",))
