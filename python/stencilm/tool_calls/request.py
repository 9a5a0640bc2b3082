"""A caller's request: tools in the form of OpenAI, a choice, and what else may come."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from stencilm.errors import GrammarSyntaxError
from stencilm.grammars.json_values import write_json
from stencilm.grammars.sources import JsonSchemaOptions, OnUnsupported
from stencilm.grammars.structural_tag import (
    Format,
    JSONSchemaFormat,
    StructuralTag,
    Style,
    is_format,
)
from stencilm.shown import is_word, shown_value
from stencilm.whole_numbers import truth

Reasoning: TypeAlias = Literal["enabled", "disabled", "auto"]
ToolChoice: TypeAlias = Literal["auto", "required", "none"] | Mapping[str, Any]
Choice: TypeAlias = Literal["auto", "required", "none", "named"]

# The types of JSON Schema other than object.
_OTHER_TYPES = ("array", "string", "number", "integer", "boolean", "null")
# Names that may occur in calls without quotes: a reader must be able to tell where they end.
_BARE_NAME = re.compile(r"[^\s<>\[\](){}\x00-\x1f\x7f]{1,512}")
# The same for a call in Python.
_PYTHON_NAME = re.compile(r"[^\W\d][\w.-]{0,511}")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its name for the model, and the format of its arguments."""

    name: str
    arguments: JSONSchemaFormat
    kind: str = "function"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """The request for a tag.

    Attributes:
        tools: The tools that may be called.
        choice: Whether they must be called; "named" for exactly one call of the only tool.
        parallel: Whether there may be several calls.
        reasoning: Whether reasoning comes first.
        answer: What may come instead of calls and text; None for any text.
        exclude_markers: Markers of reasoning and calls cannot occur in text.
    """

    tools: tuple[Tool, ...]
    choice: Choice
    parallel: bool
    reasoning: Reasoning
    answer: Format | None
    exclude_markers: bool


def read_request(
    tools: Sequence[Mapping[str, Any]] | None,
    tool_choice: ToolChoice | None,
    reasoning: Reasoning | bool,
    *,
    style: Style,
    parallel: bool,
    answer: Format | Mapping[str, Any] | None,
    any_order: bool,
    strict_mode: bool,
    max_whitespace: int | None,
    on_unsupported: OnUnsupported,
    exclude_markers: bool,
    bare_names: bool = False,
) -> ToolRequest:
    """Read a caller's request; with `bare_names`, names in calls have no quotes.

    Raises:
        GrammarSyntaxError: Tools or a choice of another form.
        TypeError: An option of schemas is of another type.
        ValueError: An option of schemas has no such value.
    """

    def arguments(schema: Any) -> JSONSchemaFormat:
        return JSONSchemaFormat(
            json_schema=schema,
            style=style,
            any_order=any_order,
            strict_mode=strict_mode,
            max_whitespace=max_whitespace,
            on_unsupported=on_unsupported,
        )

    # Checked even if there is no tool with arguments to bound.
    JsonSchemaOptions(
        strict_mode=strict_mode, max_whitespace=max_whitespace, on_unsupported=on_unsupported
    )
    truth("any_order", any_order)
    truth("parallel", parallel)
    truth("exclude_special_tokens", exclude_markers)
    if tools is not None and (isinstance(tools, str) or not isinstance(tools, Sequence)):
        raise GrammarSyntaxError(
            f"tools is {shown_value(tools):.80}, but must be a sequence of tools"
        )
    # Strict mode would close an object that does not say whether it is open.
    anything = (
        {"type": "object", "additionalProperties": True} if strict_mode else {"type": "object"}
    )
    known = [_tool(index, tool, arguments, anything) for index, tool in enumerate(tools or ())]
    _check_names(known, (_PYTHON_NAME if style == "python" else _BARE_NAME) if bare_names else None)
    choice, chosen = _chosen(tool_choice, known)
    if isinstance(answer, Mapping):
        answer = StructuralTag.from_json(answer).format
    if answer is not None and not is_format(answer):
        raise TypeError(
            f"answer is {shown_value(answer):.80}, but must be a format, or a dict of one"
        )
    if not chosen and choice not in ("none", "auto"):
        raise GrammarSyntaxError("a call is asked for, but there is no tool: give tools")
    if not chosen:
        choice = "none"
    return ToolRequest(
        tools=tuple(chosen),
        choice=choice,
        parallel=parallel and choice not in ("named", "none"),
        reasoning=read_reasoning(reasoning),
        answer=answer,
        exclude_markers=exclude_markers,
    )


def read_reasoning(value: Reasoning | bool) -> Reasoning:
    """Check that it is one of the three words.

    Raises:
        GrammarSyntaxError: Another word.
    """
    if isinstance(value, bool):
        return "enabled" if value else "disabled"
    if not is_word(value, ("enabled", "disabled", "auto")):
        raise GrammarSyntaxError(
            f"reasoning is {shown_value(value):.80}: give enabled, disabled or auto"
        )
    return value


def _tool(
    index: int,
    tool: Mapping[str, Any],
    arguments: Callable[[Any], JSONSchemaFormat],
    anything: dict[str, Any],
) -> Tool:
    """A tool; one without a schema accepts any arguments."""
    place = f"#/tools/{index}"
    if not isinstance(tool, Mapping):
        raise GrammarSyntaxError(f"a tool is a dict, not a {type(tool).__name__}", place=place)
    kind = tool.get("type", "function")
    if not isinstance(kind, str):
        raise GrammarSyntaxError(
            f"the tool has the type {kind!r}, but must have a str such as 'function'",
            place=f"{place}/type",
        )
    if kind == "custom":
        raise GrammarSyntaxError(
            "a custom tool takes text, and calls have arguments in JSON: give a function",
            place=f"{place}/type",
        )
    entry = tool.get("function", tool) if kind == "function" else tool
    if not isinstance(entry, Mapping):
        raise GrammarSyntaxError(
            f"function is {shown_value(entry):.80}, but must be a dict", place=place
        )
    for other in ("input_schema", "inputSchema"):
        if other in entry:
            raise GrammarSyntaxError(
                f"the schema of a tool's arguments is its parameters, not its {other}: rename it",
                place=f"{place}/{other}",
            )
    name = entry.get("name") if kind == "function" else entry.get("name", kind)
    if not isinstance(name, str) or not name:
        raise GrammarSyntaxError(
            f"the tool has the name {shown_value(name):.80}: give it one", place=place
        )
    parameters = entry.get("parameters")
    if parameters is None or entry.get("strict") is False:
        parameters = anything
    return Tool(name, arguments(schema_of_arguments(name, parameters, f"{place}/parameters")), kind)


def schema_of_arguments(name: str, parameters: Any, place: str) -> dict[str, Any] | bool:
    """The schema of a tool's parameters restricted to objects, since arguments are an object.

    Raises:
        GrammarSyntaxError: It is not a schema, or allows no object.
    """
    if not isinstance(parameters, (Mapping, bool)):
        raise GrammarSyntaxError(
            f"the parameters of {name!r} are a {type(parameters).__name__}, but must be a schema: "
            "a dict or a bool",
            place=place,
        )
    if isinstance(parameters, bool):
        return {"type": "object"} if parameters else False
    try:
        write_json(parameters, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise GrammarSyntaxError(
            f"the parameters of {name!r} cannot be written as a schema in JSON: {error}",
            place=place,
        ) from None
    schema = dict(parameters)
    declared = schema.get("type")
    kinds = declared if isinstance(declared, list) else [declared]
    if declared is not None and "object" not in kinds:
        if not kinds or any(kind not in _OTHER_TYPES for kind in kinds):
            # Not a type of JSON Schema; reading the schema reports the error.
            return schema
        raise GrammarSyntaxError(
            f"the arguments of a call are an object, and the parameters of {name!r} describe "
            f'{declared!r}: give a schema of "type": "object"',
            place=f"{place}/type",
        )
    schema["type"] = "object"
    if "$ref" in schema:
        # Before draft 2019-09, keywords beside a reference are ignored.
        parts = schema.get("allOf")
        schema["allOf"] = [*(parts if isinstance(parts, list) else ()), {"$ref": schema["$ref"]}]
        del schema["$ref"]
    return schema


def _check_names(tools: Sequence[Tool], bare_name: re.Pattern[str] | None) -> None:
    """Refuse names with which a reader could not tell which tool is meant."""
    known: set[tuple[bool, str]] = set()
    for index, tool in enumerate(tools):
        place = f"#/tools/{index}"
        if (tool.kind == "function", tool.name) in known:
            raise GrammarSyntaxError(
                f"two tools have the name {tool.name!r}: rename one", place=place
            )
        known.add((tool.kind == "function", tool.name))
        if bare_name is not None and not bare_name.fullmatch(tool.name):
            raise GrammarSyntaxError(
                f"the tool has the name {shown_value(tool.name):.60}, which stands in the calls "
                "of this model "
                "without quotes: give it one of letters, digits, _, - and ., and a letter first",
                place=place,
            )


def _chosen(choice: ToolChoice | None, tools: list[Tool]) -> tuple[Choice, list[Tool]]:
    if choice is None or is_word(choice, ["auto"]):
        return "auto", tools
    if is_word(choice, ["required"]):
        return "required", tools
    if is_word(choice, ["none"]):
        return "none", []
    if isinstance(choice, Mapping):
        if choice.get("type") == "allowed_tools":
            # In chat completions, mode and tools are one level below the type; in responses, beside
            # it.
            allowed = choice.get("allowed_tools", choice)
            entries = allowed.get("tools") if isinstance(allowed, Mapping) else None
            if isinstance(entries, str) or not isinstance(entries, Sequence):
                raise GrammarSyntaxError(
                    f"allowed_tools is {shown_value(allowed):.80}: "
                    f"give a dict with mode and a list of tools"
                )
            mode = allowed.get("mode", "auto")
            if not is_word(mode, ("auto", "required")):
                raise GrammarSyntaxError(
                    f"the mode of allowed_tools is {shown_value(mode):.80}: give auto or required"
                )
            return mode, [ref for entry in entries for ref in _referred(entry, tools)]
        found = _referred(choice, tools)
        if len(found) == 1:
            return "named", found
    raise GrammarSyntaxError(
        f"tool_choice is {shown_value(choice):.80}: "
        f"give auto, required, none, or one of the tools by name or type"
    )


def _referred(choice: Mapping[str, Any], tools: list[Tool]) -> list[Tool]:
    function = choice.get("function", choice) if isinstance(choice, Mapping) else None
    if not isinstance(function, Mapping):
        raise GrammarSyntaxError(f"a tool is chosen by a dict with its name, not by {choice!r}")
    kind, name = choice.get("type", "function"), function.get("name")
    if kind == "function":
        found = [tool for tool in tools if tool.kind == "function" and tool.name == name]
    else:
        found = [tool for tool in tools if tool.kind == kind]
    if not found:
        raise GrammarSyntaxError(f"tool_choice names {name or kind!r}, which is none of the tools")
    return found
