"""Typed values of texts that are not finished: what is closed is checked, what is open is shown.

One idea: in a JSON text that breaks off, everything but the last part of each open container is
closed. So a walk down the last parts finds what may still change; the rest is read by its type.
"""

from __future__ import annotations

import dataclasses
import json
from functools import lru_cache
from types import MemberDescriptorType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

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
    tp = _alternative(tp, type(data))
    if isinstance(data, dict):
        return _open_object(tp, data, text)
    if isinstance(data, list):
        (item,) = get_args(tp)[:1] if get_origin(tp) is list else (Any,)
        values = [_closed(item, value) for value in data[:-1]]
        values += [_open(item, value, text) for value in data[-1:]]
        return [value for value in values if value is not MISSING]
    if isinstance(data, str):
        return data if tp in (str, Any) else MISSING
    return MISSING  # a number may go on; a word is closed when something follows it


def _open_object(tp: Any, data: dict[str, Any], text: str) -> Any:
    fields = _fields(tp)
    other = get_args(tp)[-1] if get_origin(tp) is dict else Any
    values = {}
    last = len(data) - 1
    for number, (key, value) in enumerate(data.items()):
        name, member = fields.get(key, (key, other))
        found = _open(member, value, text) if number == last else _closed(member, value)
        if found is not MISSING:
            values[name] = found
    if hasattr(tp, "model_construct"):
        return _constructed(tp, values)
    if dataclasses.is_dataclass(tp) and isinstance(tp, type):
        made: Any = object.__new__(_unfinished(tp))
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made
    return values


def is_same(one: Any, other: Any) -> bool:
    """Whether two partial values show the same.

    No method of an instance is asked, since it may miss the attributes that are not there yet.
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    if dataclasses.is_dataclass(one) or hasattr(one, "__pydantic_fields_set__"):
        return is_same(_written(one), _written(other))
    return bool(one == other)


def _written(value: Any) -> dict[str, Any]:
    """The attributes that an instance has itself: not the defaults of its class."""
    found = dict(getattr(value, "__dict__", {}))
    for name in getattr(value, "__dataclass_fields__", ()):
        has_slot = isinstance(getattr(type(value), name, None), MemberDescriptorType)
        if has_slot and hasattr(value, name):
            found[name] = getattr(value, name)
    return found


class _Unfinished:
    """A dataclass that lacks attributes: what is there can be shown and compared."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __init_subclass__(cls) -> None:
        """Keeps what a dataclass does with its subclasses from being done with this one."""

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in _written(self).items())
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return is_same(self, other)


@lru_cache(maxsize=256)
def _unfinished(tp: type) -> type:
    """The class of unfinished instances of a dataclass: a subclass of the same name."""
    names = {"__module__": tp.__module__, "__qualname__": tp.__qualname__}
    return type(tp)(tp.__name__, (_Unfinished, tp), names)


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
    try:
        hints = get_type_hints(tp, include_extras=True)
    except (NameError, TypeError):  # names that only the place of its definition knows, or no class
        hints = {}
    return {name: (name, hint) for name, hint in hints.items()}


def _alternative(tp: Any, kind: type) -> Any:
    """What a type says of data of this kind: under `Annotated`, and in a union where one fits."""
    while get_origin(tp) is Annotated:
        tp = get_args(tp)[0]
    if get_origin(tp) not in (Union, UnionType):
        return tp
    found = [_alternative(choice, kind) for choice in get_args(tp)]
    found = [choice for choice in found if _may_be(choice, kind)]
    return found[0] if len(found) == 1 else Any


def _may_be(tp: Any, kind: type) -> bool:
    if kind is dict:
        return get_origin(tp) is dict or bool(_fields(tp))
    return kind in (tp, get_origin(tp))
