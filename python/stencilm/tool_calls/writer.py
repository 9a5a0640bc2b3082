"""Calls written in a family's format: the inverse of the parser."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stencilm.grammars.json_values import write_json
from stencilm.tool_calls.argument_readers import MARKERS, Markers
from stencilm.tool_calls.schema_types import property_schema, type_of
from stencilm.tool_calls.template import PLACEHOLDER, ToolTemplate


def write_calls(
    template: ToolTemplate,
    calls: Sequence[tuple[str, Mapping[str, Any]]],
    schemas: Mapping[str, Any] | None = None,
    *,
    ids: Sequence[str] | None = None,
) -> str:
    """All calls of an answer with the text around them."""
    begin, end = template.section
    written = [
        write_call(
            template,
            name,
            arguments,
            (schemas or {}).get(name),
            ids[index] if ids is not None else str(index),
        )
        for index, (name, arguments) in enumerate(calls)
    ]
    return begin + template.separator.join(written) + end


def write_call(
    template: ToolTemplate, name: str, arguments: Mapping[str, Any], schema: Any, call_id: str
) -> str:
    """One call."""
    parts = {
        "name": name,
        "json_name": json.dumps(name, ensure_ascii=False),
        "id": call_id,
        "arguments": write_arguments(template.style, arguments, schema, one_line=template.one_line),
    }
    return PLACEHOLDER.sub(lambda match: parts[match[1]], template.call)


def write_arguments(
    style: str, arguments: Mapping[str, Any], schema: Any = None, *, one_line: bool = False
) -> str:
    """The arguments in a style, on one line or each on a separate line."""
    if style == "json":
        return write_json(arguments)
    if style == "python":
        return ", ".join(f"{name}={_python(value)}" for name, value in arguments.items())
    if style in ("gemma", "functiongemma"):
        quote = '<|"|>' if style == "gemma" else "<escape>"
        return ",".join(f"{name}:{_gemma(value, quote)}" for name, value in arguments.items())
    if not one_line:
        return _marked(MARKERS[style], arguments, schema)
    # The line breaks of the style, not those of values.
    markers = replace(MARKERS[style], middle=MARKERS[style].middle.replace("\n", ""))
    return _marked(markers, arguments, schema, line="")


def _python(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ", ".join(map(_python, value)) + "]"
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{_python(key)}: {_python(part)}" for key, part in value.items()) + "}"
        )
    return repr(value) if value is None or isinstance(value, bool) else write_json(value)


def _gemma(value: Any, quote: str) -> str:
    if isinstance(value, str):
        return quote + value + quote
    if isinstance(value, list):
        return "[" + ",".join(_gemma(part, quote) for part in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_gemma(part, quote)}" for key, part in value.items()) + "}"
    return write_json(value)


def _marked(markers: Markers, arguments: Mapping[str, Any], schema: Any, line: str = "\n") -> str:
    written = ""
    for name, value in arguments.items():
        shown = markers.written_name(name)
        if markers.open.startswith(("<|open|>", "]<]")):
            line = ""
        if markers.nested is not None:
            written += _nested(markers, name, value)
            continue
        word = ""
        if markers.string is not None:
            word = _word(markers, value, property_schema(schema, name, schema))
        text = value if isinstance(value, str) else write_json(value)
        if markers.own_lines:
            text = f"\n{text}\n"
        written += (
            markers.open + shown + markers.middle.replace("{}", word) + text + markers.close + line
        )
    return written


def _word(markers: Markers, value: Any, schema: Any) -> str:
    if isinstance(value, str):
        return markers.string or ""
    if markers.string == "true":
        return "false"
    return "json" if markers.string == "raw" else type_of(value)


def _nested(markers: Markers, name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        text = "".join(_nested(markers, key, part) for key, part in value.items())
    elif isinstance(value, list):
        text = "".join(_nested(markers, markers.nested or "", part) for part in value)
    else:
        text = value if isinstance(value, str) else write_json(value)
    return markers.open + name + markers.middle + text + markers.close.replace("{}", name)
