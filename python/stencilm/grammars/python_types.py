"""Python types as pydantic knows them: their JSON Schemas, their readers, their names.

pydantic is imported only when a type is used.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import lru_cache, partial
from types import FunctionType, SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Self,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from stencilm.errors import StencilError, UnsupportedFeature
from stencilm.foreign import said
from stencilm.shown import shown_value

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def json_schema_of(
    tp: Any, mode: Literal["validation", "serialization"] = "validation"
) -> dict[str, Any]:
    """The JSON Schema of a Python type, as pydantic describes it for validation.

    With `mode="serialization"`, the schema of what its values are written as, under their aliases.

    It differs from pydantic's own schema where that allows texts that pydantic does not read, or
    refuses texts that it writes:

    - Objects with declared fields are closed unless the type asks for extra ones, because reading
      would drop these; fields that a dataclass sets itself are left out.
    - Tagged unions are `anyOf`, because their tags already distinguish them; a tag is required even
      if it has a default.
    - A Decimal is a string of digits, which keeps each of them; it is a number only if it has
      bounds.
    - Dates, times, durations, URLs, networks and keys match what their types read.

    Raises UnsupportedFeature for a type that JSON cannot represent.
    """
    from pydantic.errors import PydanticUserError

    from stencilm.grammars.type_schemas import schema_generator

    adapter = type_adapter(tp)
    try:
        return adapter.json_schema(schema_generator=schema_generator(), mode=mode)
    except PydanticUserError as error:
        raise UnsupportedFeature(
            f"{type_name(tp)} has no JSON form: {_first_line(error)}"
        ) from error
    except StencilError:
        raise
    except Exception as error:  # the type's own hooks may raise anything
        raise UnsupportedFeature(f"{type_name(tp)} has no JSON form: {said(error)}") from error


def type_adapter(tp: Any) -> TypeAdapter[Any]:
    """pydantic's reader of a Python type, cached. Raises UnsupportedFeature if there is none."""
    try:
        # The text is part of the key: Union[A, B] == Union[B, A], though they are read differently.
        written = repr(tp)
        hash(tp)
    except Exception:  # the type is not hashable, or its repr fails
        return _new_adapter(tp)
    return _kept_adapter(tp, written)


@lru_cache(maxsize=512)
def _kept_adapter(tp: Any, written: str) -> TypeAdapter[Any]:
    return _new_adapter(tp)


def _new_adapter(tp: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticSchemaGenerationError
    from pydantic_core import SchemaError

    try:
        made = TypeAdapter(tp)
        if not getattr(made, "pydantic_complete", True):
            made.rebuild()  # names the unknown name
        return made
    except SchemaError as error:  # a pattern or a constant that pydantic cannot use
        raise UnsupportedFeature(
            f"{type_name(tp)} is not an output type: {' '.join(str(error).split())}"
        ) from error
    except PydanticSchemaGenerationError as error:
        # Its way out, arbitrary_types_allowed, leads to values that no text is read as.
        what = str(error).partition(". Set `arbitrary_types_allowed")[0].splitlines()[0]
        raise UnsupportedFeature(
            f"{type_name(tp)} is not an output type: {what}; use a model or a dataclass with its "
            "fields, or implement `__get_pydantic_core_schema__`"
        ) from error
    except (RuntimeError, TypeError, NameError, AttributeError) as error:  # PydanticUserError, too
        raise UnsupportedFeature(
            f"{type_name(tp)} is not an output type: {_first_line(error)}"
        ) from error
    except Exception as error:  # the type's own hooks may raise anything
        raise UnsupportedFeature(f"{type_name(tp)} is not an output type: {said(error)}") from error


def arguments_of(function: Callable[..., Any]) -> Any:
    """A type of dicts that hold the arguments of a function, by parameter name.

    Arguments with defaults may be left out. `*args` and `**kwargs` are left out, unless `Unpack`
    gives their names, and so are the arguments that a `functools.partial` already holds. A default
    that is a `Field` bounds its argument, and holds the default value. A parameter without an
    annotation takes any value. For a class or a callable object, its methods decide. Raises
    UnsupportedFeature for a function that cannot be called with keyword arguments, or whose
    parameters are not known.
    """
    from pydantic.fields import FieldInfo
    from typing_extensions import TypedDict as ExtendedTypedDict

    name, called, given = type_name(function), function, dict[str, Any]()
    while isinstance(called, partial):
        given, called = called.keywords | given, called.func
    try:
        parameters = inspect.signature(function).parameters.values()
        read = {one.name for one in parameters if one.kind is not one.VAR_POSITIONAL} - {*given}
        hints = _hints_of(called, read)
    except Exception as error:  # evaluating an annotation given as text may raise anything
        is_plain = isinstance(error, (TypeError, ValueError, NameError))
        reason = _first_line(error) if is_plain else said(error)
        raise UnsupportedFeature(
            f"the parameters of the function {name} are not known: {reason}"
        ) from error
    if inspect.isfunction(called) and hasattr(called, "registry") and hasattr(called, "dispatch"):
        raise UnsupportedFeature(
            f"the function {name} is chosen by the type of its first argument, which it takes by "
            "position only, and arguments are given by name: wrap it"
        )
    members: dict[str, Any] = {}
    for one in parameters:
        if one.kind is one.VAR_KEYWORD:
            members |= _unpacked(hints.get(one.name))
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) or one.name in given:
            continue
        if one.kind is one.POSITIONAL_ONLY:
            raise UnsupportedFeature(
                f"the function {name} takes {one.name!r} by its position only, and arguments are "
                "given by name: remove the '/' from its parameters, or wrap it"
            )
        tp = hints.get(one.name, Any if one.annotation is one.empty else one.annotation)
        if _has_self(tp):
            raise UnsupportedFeature(
                f"the function {name} has Self in the hint of {one.name!r}, and no name of a class "
                "to read: write the class itself"
            )
        if isinstance(one.default, FieldInfo):
            members[one.name] = Annotated[tp, one.default]
            continue
        members[one.name] = tp if one.default is one.empty else NotRequired[tp]
    made: Any = ExtendedTypedDict(name.rpartition(".")[2], members)  # type: ignore[misc]
    made.__doc__ = inspect.getdoc(called)
    return made


def _field_hints(called: Any) -> dict[str, Any]:
    """The hints of the fields of a pydantic class with their bounds, under all their names.

    A class that defines its own constructor may take other arguments.
    """
    from pydantic.fields import Field

    fields = getattr(called, "__pydantic_fields__", {}) if isinstance(called, type) else {}
    if fields and not _is_made(called.__init__, called):
        return {}
    found: dict[str, Any] = {}
    for name, field in fields.items():
        known: Any = field.rebuild_annotation()
        hint: Any = Annotated[known, Field(description=field.description)]
        names = (name, field.alias, field.validation_alias)
        found |= {each: hint for each in names if isinstance(each, str)}
    return found


def _hints_of(called: Any, read: Collection[str]) -> dict[str, Any]:
    """The hints of a callable; those of a class are on its constructor, if it has one.

    A constructor that was generated from a class's attributes has no module in which its hints
    could be evaluated. The hints of the attributes are evaluated instead, each in its own module.
    """
    if inspect.isroutine(called) or hasattr(called, "__wrapped__"):
        return _hints_in(called, read)
    if get_origin(called) is not None:
        raise TypeError(f"{shown_value(called)} is a type: give its class")
    if not isinstance(called, type):
        return _hints_in(type(called).__call__, read)
    hints = get_type_hints(called, include_extras=True) | _field_hints(called)
    for name in ("__new__", "__init__"):
        owner = next(each for each in called.__mro__ if name in vars(each))
        method = getattr(called, name)
        if inspect.isfunction(method) and not _is_made(method, owner):
            hints |= _hints_in(method, read)
    return hints


def _hints_in(method: Any, read: Collection[str]) -> dict[str, Any]:
    """The hints of a function; only the hints of parameters in `read` must be resolvable.

    Others often name types that are imported only for type checkers: the type of the result, or of
    an argument that is already given.
    """
    try:
        return get_type_hints(method, include_extras=True)
    except NameError:
        hints = getattr(method, "__annotations__", {})
        needed = {name: hint for name, hint in hints.items() if name in read}
        if len(needed) == len(hints):
            raise
        module = getattr(inspect.unwrap(method), "__globals__", {})
        return get_type_hints(SimpleNamespace(__annotations__=needed), module, include_extras=True)


def _is_made(method: FunctionType, owner: type) -> bool:
    """Whether a constructor was generated from the attributes of its class."""
    if method.__globals__.get("__name__", "").partition(".")[0] == "pydantic":
        return True
    if method.__code__.co_filename.startswith("<attrs"):
        return True
    made_by_dataclass = vars(owner).get("__dataclass_params__")
    if made_by_dataclass is not None and method.__name__ == "__init__":
        return bool(made_by_dataclass.init)
    return "_field_defaults" in vars(owner)  # a named tuple


def _has_self(hint: Any) -> bool:
    """Whether a hint contains `Self`: the hint alone does not tell which class that is."""
    return hint is Self or any(map(_has_self, get_args(hint)))


def _unpacked(hint: Any) -> dict[str, Any]:
    """The arguments that `**kwargs: Unpack[T]` takes, by the names of the TypedDict."""
    from typing_extensions import Unpack as ExtendedUnpack

    if get_origin(hint) not in (Unpack, ExtendedUnpack):
        return {}
    (tp,) = get_args(hint)
    found = {}
    for name, member in get_type_hints(tp, include_extras=True).items():
        said = get_origin(member)  # a TypedDict does not see through hints given as texts
        inner = get_args(member)[0] if said in (Required, NotRequired) else member
        is_required = name in tp.__required_keys__ if inner is member else said is Required
        found[name] = inner if is_required else NotRequired[inner]
    return found


def is_function(tp: Any) -> bool:
    """Whether it is a function, or a `functools.partial`."""
    return inspect.isroutine(tp) or isinstance(tp, partial)


def type_to_read(tp: Any) -> Any:
    """The type that pydantic reads: for a function, its arguments, since pydantic would call it."""
    return arguments_of(tp) if is_function(tp) else tp


def without_arguments(function: Any) -> Any:
    """The function in a `functools.partial`; any other value unchanged."""
    while isinstance(function, partial):
        function = function.func
    return function


def type_name(tp: Any) -> str:
    """A short name of a type for messages."""
    tp = without_arguments(tp)
    is_plain = isinstance(tp, type) or inspect.isroutine(tp)
    return str(tp.__name__) if is_plain and not get_args(tp) else shown_value(tp)


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
