"""The possible contents of an unfinished JSON text, by its type: members, elements, alternatives.

One idea: a type is analysed once. For each kind of JSON value it yields the possible holders:
containers to be filled, or none if nothing can be shown before the value is closed.
"""

from __future__ import annotations

import collections
import collections.abc as abstract
import dataclasses
import enum
import json
import types
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from stencilm.errors import UnsupportedFeature
from stencilm.generation.type_hints import (
    Withheld,
    hints_as_written,
    hints_of,
    is_read_by_parts,
    members_of,
    unwrapped,
    with_validators,
    wrapper_of,
)
from stencilm.grammars.json_reading import json_reader
from stencilm.grammars.json_values import read_json
from stencilm.grammars.python_types import type_adapter

MISSING: Any = object()
"""Stands for a part of which nothing can be shown yet."""

Kind = Literal["object", "array", "string"]

_UNREAD = (ValueError, RecursionError, UnsupportedFeature)
"""The errors of reading a part that its type refuses, or that cannot be read alone."""

_LISTS: dict[Any, Callable[[list[Any]], Any]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    collections.deque: collections.deque,
    abstract.Sequence: list,
    abstract.MutableSequence: list,
    abstract.Set: frozenset,
    abstract.MutableSet: set,
}
_MAPPINGS: dict[Any, Callable[[Any], Any]] = {
    dict: dict,
    abstract.Mapping: dict,
    abstract.MutableMapping: dict,
    collections.OrderedDict: collections.OrderedDict,
}


class Holder:
    """A holder of an open value of one kind: an object, an array or a string.

    Attributes:
        is_plain: A closed value consists of its parts, and need not be read again as a whole.
        is_uniform: All elements have the same shape.
        shows_open: The open part is shown in it.
    """

    is_plain: bool = True
    is_uniform: bool = False
    shows_open: bool = True

    def member(self, key: str) -> tuple[Any, Shape] | None:
        """The name and the shape of a member; None if there is no such member."""
        return None

    def element(self, number: int) -> Shape:
        """The shape of an element."""
        return ANYTHING

    def show(self, parts: Any) -> Any:
        """The value with the present parts: names and values, or elements.

        The value takes ownership of the parts.
        """
        return parts

    def close(self, parts: Any) -> Any:
        """The whole value; `MISSING` if it must be read as a whole."""
        return self.show(parts)


class _Anything(Holder):
    is_uniform = True

    def member(self, key: str) -> tuple[Any, Shape] | None:
        return key, ANYTHING


class _Mapping(Holder):
    def __init__(self, make: Callable[[Any], Any], keys: Shape, values: Shape) -> None:
        self._make, self._keys, self._values = make, keys, values

    def show(self, parts: Any) -> Any:
        return parts if self._make is dict else self._make(parts)

    def member(self, key: str) -> tuple[Any, Shape] | None:
        name = key if self._keys.is_text else self._keys.read_key(key)
        return (key if name is MISSING else name), self._values


class _List(Holder):
    is_uniform = True

    def __init__(self, make: Callable[[list[Any]], Any], element: Shape, is_plain: bool) -> None:
        self._make, self._element = make, element
        self.is_plain = is_plain
        # Elements of a set have no position, so an open element would look like a closed one.
        self.shows_open = make not in (set, frozenset)

    def element(self, number: int) -> Shape:
        return self._element

    def show(self, parts: Any) -> Any:
        if self._make is list:
            return parts
        try:
            return self._make(parts)
        except TypeError:  # an element of a set is not hashable, or not before it is finished
            return self._make([part for part in parts if _has_hash(part)])

    def close(self, parts: Any) -> Any:
        try:
            return self._make(parts)
        except TypeError:
            return MISSING


class _Tuple(Holder):
    def __init__(self, elements: list[Shape], is_plain: bool) -> None:
        self._elements = elements
        self.is_plain = is_plain

    def element(self, number: int) -> Shape:
        return self._elements[number] if number < len(self._elements) else ANYTHING

    def show(self, parts: Any) -> Any:
        return tuple(parts)


class _NamedTuple(_Tuple):
    is_plain = False

    def __init__(self, tp: Any, members: dict[str, Any]) -> None:
        super().__init__([shape_of(members.get(name, Any)) for name in tp._fields], is_plain=False)
        self._type = tp

    def show(self, parts: Any) -> Any:
        width = len(self._elements)
        return tuple.__new__(self._type, [*parts, *[None] * width][:width])


class _Fields(Holder):
    """An object with named members."""

    def __init__(self, tp: Any, members: dict[str, Any], names: dict[str, str]) -> None:
        self.type = tp
        self._types = members
        self._names = names

    @cached_property
    def _shapes(self) -> dict[str, Shape]:
        return {name: shape_of(member) for name, member in self._types.items()}

    def member(self, key: str) -> tuple[Any, Shape] | None:
        name = self._names.get(key)
        return None if name is None else (name, self._shapes[name])


class _TypedDict(_Fields):
    def __init__(
        self, tp: Any, members: dict[str, Any], names: dict[str, str], required: list[str]
    ) -> None:
        super().__init__(tp, members, names)
        self._required = required
        self.is_plain = is_read_by_parts(tp)

    def show(self, parts: Any) -> Any:
        known = {name: value for name, value in parts.items() if name in self._types}
        return dict.fromkeys(self._required) | known

    def close(self, parts: Any) -> Any:
        return dict(parts)


class _Dataclass(_Fields):
    def __init__(self, tp: Any, members: dict[str, Any], names: dict[str, str]) -> None:
        super().__init__(tp, members, names)
        self.is_plain = is_read_by_parts(tp)

    def show(self, parts: Any) -> Any:
        made: Any = object.__new__(self.type)
        for name in self._types:
            object.__setattr__(made, name, parts.get(name))
        return made

    def close(self, parts: Any) -> Any:
        try:
            return self.type(**parts)
        except TypeError:
            return MISSING


class _PydanticModel(_Fields):
    def __init__(self, tp: Any, members: dict[str, Any], names: dict[str, str]) -> None:
        super().__init__(tp, members, names)
        self._extra = tp.model_config.get("extra") == "allow"
        self.is_plain = not self._extra and is_read_by_parts(tp)

    def member(self, key: str) -> tuple[Any, Shape] | None:
        known = super().member(key)
        return (key, ANYTHING) if known is None and self._extra else known

    def show(self, parts: Any) -> Any:
        own = {name: parts.get(name) for name in self._types}
        extra = {name: value for name, value in parts.items() if name not in own}
        if self._extra:
            return self._made(own, set(parts), extra)
        return self._made(own, parts.keys() & own.keys(), None)

    def close(self, parts: Any) -> Any:
        own = {}
        for name, described in self.type.model_fields.items():
            if name in parts:
                own[name] = parts[name]
            elif described.is_required():
                return MISSING
            else:
                own[name] = described.get_default(call_default_factory=True, validated_data=own)
        return self._made(own, set(parts), None)

    def _made(self, own: dict[str, Any], written: set[str], extra: dict[str, Any] | None) -> Any:
        made = self.type.__new__(self.type)
        object.__setattr__(made, "__dict__", own)
        object.__setattr__(made, "__pydantic_fields_set__", written)
        object.__setattr__(made, "__pydantic_extra__", extra)
        private = {
            name: attribute.get_default()
            for name, attribute in (self.type.__private_attributes__ or {}).items()
        }
        object.__setattr__(made, "__pydantic_private__", private or None)
        return made


class _Root(Holder):
    """A `RootModel`, which shows the holder of its root."""

    def __init__(self, tp: Any, inner: Holder) -> None:
        self._type, self._inner = tp, inner
        self.is_plain = inner.is_plain and is_read_by_parts(tp)
        self.is_uniform = inner.is_uniform
        self.shows_open = inner.shows_open

    def member(self, key: str) -> tuple[Any, Shape] | None:
        return self._inner.member(key)

    def element(self, number: int) -> Shape:
        return self._inner.element(number)

    def show(self, parts: Any) -> Any:
        return self._made(self._inner.show(parts))

    def close(self, parts: Any) -> Any:
        closed = self._inner.close(parts)
        return closed if closed is MISSING else self._made(closed)

    def _made(self, root: Any) -> Any:
        made = self._type.__new__(self._type)
        object.__setattr__(made, "__dict__", {"root": root})
        object.__setattr__(made, "__pydantic_fields_set__", {"root"})
        return made


class Shape:
    """A type, analysed once."""

    def __init__(self, tp: Any) -> None:
        self._declared = tp
        self._type, self.has_rules = unwrapped(tp)
        said = get_args(tp)[1:] if get_origin(tp) is Annotated else ()
        self._is_withheld = any(isinstance(one, Withheld) for one in said)

    @property
    def type(self) -> Any:
        """The type without wrappers around it."""
        return self._type

    @cached_property
    def is_anything(self) -> bool:
        """Whether every JSON value stands for itself."""
        return self._type in (Any, object) and not self.has_rules

    @cached_property
    def is_text(self) -> bool:
        """Whether a closed string stands for itself."""
        return self._type is str and not self.has_rules

    @cached_property
    def literals(self) -> tuple[Any, ...] | None:
        """The values that it is restricted to, if it is a `Literal`."""
        return get_args(self._type) if get_origin(self._type) is Literal else None

    def holders(self, kind: Kind) -> list[Holder]:
        """The possible holders of an open value of this kind; a union may have several."""
        known = self._holders.get(kind)
        if known is None:
            known = self._holders[kind] = list(self._found(kind))
        return known

    def is_union_of(self, kind: Kind) -> bool:
        """Whether several alternatives of a union are of this kind, so that it must choose one."""
        return len(self.holders(kind)) > 1

    def read(self, text: str) -> Any:
        """The value of a closed part, given as JSON; `MISSING` if the type refuses it."""
        if self._is_withheld:
            return MISSING
        try:
            if self.is_anything:
                return read_json(text)
            return self._read_json(text)
        except _UNREAD:
            return MISSING

    def read_all(self, text: str) -> list[Any] | None:
        """The values of a JSON array of such parts; None if one of them is refused."""
        if self._is_withheld:
            return None
        try:
            if self.is_anything:
                read: list[Any] = read_json(text)
            else:
                read = self._read_all_json(text)
            return read
        except _UNREAD:
            return None

    def read_key(self, key: str) -> Any:
        """The value of a key; `MISSING` if the type refuses it."""
        try:
            (name,) = self._adapter_of_keys.validate_json(json.dumps({key: None}))
        except _UNREAD:
            return MISSING
        return name

    @cached_property
    def _holders(self) -> dict[Kind, list[Holder]]:
        return {}

    @cached_property
    def _adapter(self) -> Any:
        return type_adapter(self._declared)

    @cached_property
    def _adapter_of_keys(self) -> Any:
        # Read alone, as a text, a union might choose another alternative.
        return type_adapter(dict[self._declared, None])  # type: ignore[name-defined]

    @cached_property
    def _read_json(self) -> Callable[[str], Any]:
        return json_reader(self._adapter)

    @cached_property
    def _read_all_json(self) -> Callable[[str], Any]:
        return json_reader(type_adapter(list[self._declared]))  # type: ignore[name-defined]

    def _found(self, kind: Kind) -> Iterator[Holder]:
        tp, is_plain = self._type, not self.has_rules
        origin = get_origin(tp)
        arguments = get_args(tp)
        if origin in (Union, types.UnionType):
            if kind == "string" and _may_read_text(arguments, is_plain):
                return
            for choice in arguments:
                yield from shape_of(choice).holders(kind)
        elif tp in (Any, object):
            yield _Anything()
        elif hasattr(tp, "__pydantic_root_model__") and tp.__pydantic_root_model__:
            members = members_of(tp)
            if members is not None:
                inner = shape_of(members["root"])
                yield from (_Root(tp, holder) for holder in inner.holders(kind))
        elif kind == "string":
            if tp is str:
                yield Holder()
        elif kind == "array":
            yield from _arrays(tp, origin, arguments, is_plain)
        elif (origin or tp) in _MAPPINGS:
            keys, values = arguments if len(arguments) == 2 else (str, Any)
            held = _Mapping(_MAPPINGS[origin or tp], shape_of(keys), shape_of(values))
            held.is_plain = is_plain
            yield held
        else:
            found = _fields_of(tp)
            if found is not None:
                found.is_plain = found.is_plain and is_plain
                yield found


def _may_read_text(choices: tuple[Any, ...], is_plain: bool) -> bool:
    """Whether a union may read a closed string as something other than text, as in `date | str`.

    The first alternative that reads it wins, except that a union without rules of its own prefers
    texts to numbers, to members of an `Enum`, and to values of a `Literal`.
    """
    for choice in choices:
        shape = shape_of(choice)
        tp = shape.type
        if tp is str or get_origin(tp) in (Union, types.UnionType):
            return False
        is_below = shape.literals is not None or tp in (int, float, bool, None, type(None))
        is_below = is_below or (isinstance(tp, type) and issubclass(tp, enum.Enum))
        if not ((is_below and is_plain) or shape.holders("object") or shape.holders("array")):
            return True
    return False


def _has_hash(value: Any) -> bool:
    try:
        hash(value)
    except Exception:  # a user's method may raise anything
        return False
    return True


def _arrays(tp: Any, origin: Any, arguments: tuple[Any, ...], is_plain: bool) -> Iterator[Holder]:
    kind = origin or tp
    if kind is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            yield _List(tuple, shape_of(arguments[0]), is_plain)
        elif arguments:
            yield _Tuple([shape_of(each) for each in arguments], is_plain)
        else:
            yield _List(tuple, ANYTHING, is_plain)
    elif isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        members = hints_of(tp)
        if members is not None:
            yield _NamedTuple(kind, members)
    elif kind in _LISTS:
        yield _List(_LISTS[kind], shape_of(arguments[0]) if arguments else ANYTHING, is_plain)


def _fields_of(tp: Any) -> _Fields | None:
    """The members of an object type; None for another type, or if one of them is not known."""
    origin = get_origin(tp) or tp
    if hasattr(tp, "model_fields") and hasattr(tp, "__pydantic_validator__"):
        members = members_of(tp)
        return None if members is None else _PydanticModel(tp, members, _names(tp, members))
    if dataclasses.is_dataclass(origin) and isinstance(origin, type):
        hints = hints_of(tp)
        if hints is None:
            return None
        members = {
            one.name: with_validators(origin, one.name, hints.get(one.name, Any))
            for one in dataclasses.fields(origin)
        }
        return _Dataclass(origin, members, _names(tp, members))
    if isinstance(origin, type) and hasattr(origin, "__required_keys__"):
        members = hints_of(tp)
        if members is None:
            return None
        written = hints_as_written(origin)
        required = [
            name
            for name in members
            if name in origin.__required_keys__ and wrapper_of(written[name]) != "NotRequired"
        ]
        return _TypedDict(origin, members, _names(tp, members), required)
    return None


def _names(tp: Any, members: dict[str, Any]) -> dict[str, str]:
    """The attribute of each key that pydantic reads, wherever the alias comes from."""
    names = {name: name for name in members}
    try:
        schema: Any = type_adapter(tp).core_schema
    except UnsupportedFeature:
        return names
    definitions = {}
    while schema["type"] not in ("model-fields", "dataclass-args", "typed-dict"):
        if schema["type"] == "definitions":
            definitions = {one["ref"]: one for one in schema["definitions"]}
            schema = schema["schema"]
        elif schema["type"] == "definition-ref":
            schema = definitions[schema["schema_ref"]]
        elif "schema" in schema:
            schema = schema["schema"]
        else:
            return names
    described = schema["fields"]
    listed = (
        [(one["name"], one) for one in described]
        if isinstance(described, list)
        else described.items()
    )
    for name, one in listed:
        alias = one.get("validation_alias")
        for path in [alias] if isinstance(alias, str) else alias or []:
            if isinstance(path, str):
                names[path] = name
            elif len(path) == 1 and isinstance(path[0], str):
                names[path[0]] = name
    return names


@lru_cache(maxsize=1024)
def _cached_shape(tp: Any, written: str) -> Shape:
    return Shape(tp)


def shape_of(tp: Any) -> Shape:
    """The shape of a type."""
    try:
        # The text is part of the key: Union[A, B] == Union[B, A], though they are read differently.
        written = repr(tp)
        hash(tp)
    except Exception:  # the type is not hashable, or its repr fails
        return Shape(tp)
    return _cached_shape(tp, written)


ANYTHING = Shape(Any)
