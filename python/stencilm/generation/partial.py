"""Typed values of texts that are not finished: what is closed is checked, what is open is shown.

One idea: in a JSON text that breaks off, everything but the last part of each open container is
closed. So a walk down the last parts finds what may still change; the rest is read by its type.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, get_args, get_origin

from stencilm.output_types import type_adapter

MISSING: Any = object()
"""Stands for a part of which nothing can be shown yet."""


def partial_value(tp: Any, text: str) -> Any:
    """The value of the beginning of a JSON text; `MISSING` where there is none yet.

    Pydantic models and dataclasses come as instances that have the attributes written so far, and
    lists as the elements so far. An open string is shown as it stands, an open number is not.
    """
    from pydantic_core import from_json

    try:
        data = json.loads(text)
    except ValueError:
        pass
    else:
        return data if isinstance(data, (int, float)) and tp is Any else _closed(tp, data)
    if not text.strip():
        return MISSING
    try:
        data = from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return MISSING
    return _open(tp, data, text)


def _closed(tp: Any, data: Any) -> Any:
    """A closed part, read by its type; `MISSING` where the type refuses it."""
    try:
        return type_adapter(tp).validate_json(json.dumps(data))
    except ValueError:
        return MISSING


def _open(tp: Any, data: Any, text: str) -> Any:
    """A part that may still change."""
    if isinstance(data, dict):
        return _open_object(tp, data, text)
    if isinstance(data, list):
        (item,) = get_args(tp)[:1] if get_origin(tp) is list else (Any,)
        values = [_closed(item, value) for value in data[:-1]]
        values += [_open(item, value, text) for value in data[-1:]]
        return [value for value in values if value is not MISSING]
    if isinstance(data, str):
        return data if tp in (str, Any) or _base(tp) is str else MISSING
    return MISSING  # a number may go on; a word is closed when something follows it


def _open_object(tp: Any, data: dict[str, Any], text: str) -> Any:
    fields = _fields(tp)
    values = {}
    last = len(data) - 1
    for number, (key, value) in enumerate(data.items()):
        name, member = fields.get(key, (key, Any))
        found = _open(member, value, text) if number == last else _closed(member, value)
        if found is not MISSING:
            values[name] = found
    if hasattr(tp, "model_construct"):
        return _constructed(tp, values)
    if dataclasses.is_dataclass(tp) and isinstance(tp, type):
        made = object.__new__(tp)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made
    return values


def _constructed(tp: Any, values: dict[str, Any]) -> Any:
    """A pydantic instance that has these attributes and no defaults."""
    made = tp.__new__(tp)
    object.__setattr__(made, "__dict__", values)
    object.__setattr__(made, "__pydantic_fields_set__", set(values))
    object.__setattr__(made, "__pydantic_extra__", None)
    object.__setattr__(made, "__pydantic_private__", None)
    return made


def _fields(tp: Any) -> dict[str, tuple[str, Any]]:
    """The members of an object type: name in JSON, attribute and type."""
    fields = getattr(tp, "model_fields", None)
    if fields is not None:
        return {field.alias or name: (name, field.annotation) for name, field in fields.items()}
    hints = getattr(tp, "__annotations__", {})
    found = {name: (name, hint) for name, hint in hints.items() if not isinstance(hint, str)}
    return found if get_origin(tp) is not dict else {}


def _base(tp: Any) -> Any:
    """The type under `Annotated`."""
    return getattr(tp, "__origin__", tp)
