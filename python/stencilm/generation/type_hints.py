"""The types of a type's parts, as its author wrote them: unwrapped, resolved, substituted.

One idea: a part may be read by its own type only if pydantic reads it by that type, too. If a name
or a type variable is not known here, or a configuration changes how all parts are read, only the
whole can tell what the parts are.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from collections.abc import Mapping
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, get_args, get_origin

_WRAPPERS = ("Required", "NotRequired", "ReadOnly", "Final", "ClassVar")
# Settings that do not change the value of any part.
_HARMLESS = frozenset(
    {
        "alias_generator", "arbitrary_types_allowed", "defer_build", "extra",
        "field_title_generator", "frozen", "from_attributes", "hide_input_in_errors",
        "json_schema_extra", "json_schema_mode_override",
        "json_schema_serialization_defaults_required", "loc_by_alias", "model_title_generator",
        "populate_by_name", "protected_namespaces", "ser_json_bytes", "ser_json_inf_nan",
        "ser_json_temporal", "ser_json_timedelta", "serialize_by_alias", "title",
        "use_attribute_docstrings", "validate_by_alias", "validate_by_name",
    }
)  # fmt: skip


def unwrapped(tp: Any) -> tuple[Any, bool]:
    """A type without annotations and aliases, and whether these may change its values."""
    has_rules = False
    while True:
        if get_origin(tp) is Annotated:
            tp, *said = get_args(tp)
            has_rules = has_rules or any(not isinstance(one, str) for one in said)
        elif hasattr(tp, "__supertype__"):
            tp = tp.__supertype__
        elif isinstance(tp, getattr(typing, "TypeAliasType", ())) or (
            type(tp).__name__ == "TypeAliasType" and hasattr(tp, "__value__")
        ):
            value = _value_of_alias(tp)
            if not _is_known(value, ()):
                return tp, has_rules
            tp = value
        else:
            return tp, has_rules


def members_of(tp: Any) -> dict[str, Any] | None:
    """The types of the members of a pydantic model; None if one is not known."""
    if not tp.__pydantic_complete__:
        tp.model_rebuild(raise_errors=False)
    return _all_known(
        {
            name: with_validators(
                tp,
                name,
                Annotated[described.annotation, *described.metadata]
                if described.metadata
                else described.annotation,
            )
            for name, described in tp.model_fields.items()
        }
    )


class Withheld:
    """Marks a type whose closed values are known only with those of other members."""


def with_validators(tp: Any, name: str, hint: Any) -> Any:
    """The type of a member with the validators that its class has for it.

    One that asks for what else the object holds cannot run before the object is whole.
    """
    from pydantic import AfterValidator, BeforeValidator, PlainValidator, WrapValidator

    decorators = getattr(tp, "__pydantic_decorators__", None)
    if decorators is None:
        return hint
    kinds = {
        "after": AfterValidator,
        "before": BeforeValidator,
        "plain": PlainValidator,
        "wrap": WrapValidator,
    }
    found: list[Any] = [Withheld()] if decorators.validators else []
    for one in decorators.field_validators.values():
        if name in one.info.fields or "*" in one.info.fields:
            is_alone = _takes(one.func) == (2 if one.info.mode == "wrap" else 1)
            found.append(kinds[one.info.mode](one.func) if is_alone else Withheld())
    return Annotated[hint, *found] if found else hint


def _takes(function: Any) -> int | None:
    """How many arguments a function takes; None if that is not known."""
    try:
        return len(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None


def hints_of(tp: Any) -> dict[str, Any] | None:
    """The types of the members of any other class, with its type arguments substituted.

    Without wrappers that say whether members are required. None if one is not known.
    """
    origin = get_origin(tp) or tp
    variables = getattr(origin, "__parameters__", ())
    given = dict(zip(variables, get_args(tp), strict=False))
    hints = {}
    for name, hint in hints_as_written(origin).items():
        while wrapper_of(hint) in _WRAPPERS:
            (hint,) = get_args(hint)
        hints[name] = _substituted(hint, given)
    return _all_known(hints, () if given else variables)


def hints_as_written(tp: Any) -> dict[str, Any]:
    """The types of the members, with wrappers that say whether they are required."""
    try:
        return typing.get_type_hints(tp, include_extras=True)
    except (NameError, TypeError):  # names that are only known where the class is defined
        return dict(getattr(tp, "__annotations__", {}))


def wrapper_of(hint: Any) -> str | None:
    """The name of a wrapper, such as `NotRequired`."""
    return getattr(get_origin(hint), "_name", None)


def is_read_by_parts(tp: Any) -> bool:
    """Whether the value of a whole equals its parts, each read by its own type."""
    config = getattr(tp, "model_config", None) or getattr(tp, "__pydantic_config__", None) or {}
    if not _HARMLESS.issuperset(config):
        return False
    if hasattr(tp, "model_fields"):
        return _is_plain_model(tp)
    if dataclasses.is_dataclass(tp):
        return _is_plain_dataclass(tp)
    return True


def _is_plain_model(tp: Any) -> bool:
    from pydantic import BaseModel, RootModel

    decorators = tp.__pydantic_decorators__
    own_schema = getattr(tp.__get_pydantic_core_schema__, "__func__", None)
    return not (
        decorators.validators
        or decorators.field_validators
        or decorators.root_validators
        or decorators.model_validators
        or tp.__private_attributes__
        or tp.model_post_init is not BaseModel.model_post_init
        or tp.__init__ not in (BaseModel.__init__, RootModel.__init__)
        or own_schema is not BaseModel.__get_pydantic_core_schema__.__func__  # type: ignore[attr-defined]
        or any(described.validate_default for described in tp.model_fields.values())
    )


def _is_plain_dataclass(tp: Any) -> bool:
    from pydantic.fields import FieldInfo

    return not (
        hasattr(tp, "__pydantic_fields__")
        or hasattr(tp, "__post_init__")
        or not tp.__dataclass_params__.init
        # pydantic interprets such a default; the class itself does not.
        or any(isinstance(one.default, FieldInfo) for one in dataclasses.fields(tp))
    )


def _value_of_alias(alias: Any) -> Any:
    """The value of a type alias, with its names resolved."""
    value = alias.__value__
    module = sys.modules.get(getattr(alias, "__module__", None) or "")
    names = {**vars(module), alias.__name__: alias} if module else {alias.__name__: alias}
    holder = type("Holder", (), {"__annotations__": {"value": value}})
    try:
        return typing.get_type_hints(holder, names, include_extras=True)["value"]
    except (NameError, TypeError, SyntaxError):
        return value


def _substituted(hint: Any, given: Mapping[Any, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return given.get(hint, hint)
    variables = getattr(hint, "__parameters__", ())
    if not given or not variables or get_origin(hint) is None:
        return hint
    return hint[tuple(given.get(one, one) for one in variables)]


def _all_known(hints: dict[str, Any], variables: tuple[Any, ...] = ()) -> dict[str, Any] | None:
    return hints if all(_is_known(hint, variables) for hint in hints.values()) else None


def _is_known(hint: Any, variables: tuple[Any, ...]) -> bool:
    """Whether all names are resolved, and all type variables except these, which are Any."""
    if isinstance(hint, (str, ForwardRef)):
        return False
    if isinstance(hint, TypeVar):
        return hint in variables
    origin = get_origin(hint)
    if origin is Literal:
        return True
    arguments = get_args(hint)
    if origin is Annotated:
        arguments = arguments[:1]
    return all(_is_known(one, variables) for one in arguments if not isinstance(one, list))
