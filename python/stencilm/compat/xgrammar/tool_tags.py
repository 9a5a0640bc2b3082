"""Structural tags of model families, under the original's names and with its choices of tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeVar

from pydantic import BaseModel, TypeAdapter

from stencilm.compat.xgrammar.formats import StructuralTag, tag_of
from stencilm.compat.xgrammar.marker_tokens import with_marker_tokens
from stencilm.compat.xgrammar.tools import (
    AllowedToolChoiceParam,
    BuiltinToolChoiceParam,
    BuiltinToolParam,
    FunctionToolParam,
    NamedToolChoiceParam,
    ToolChoiceOptionParam,
    ToolParam,
)
from stencilm.shown import is_word, shown_value
from stencilm.tool_calls.registry import get_model_structural_tag as _get_model_structural_tag
from stencilm.tool_calls.registry import model_structural_tags

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Choice = Literal["auto", "required", "forced"]
_TOOL: TypeAdapter[Any] = TypeAdapter(ToolParam)
_CHOICE: TypeAdapter[Any] = TypeAdapter(ToolChoiceOptionParam)
_REGISTERED: dict[str, Callable[..., StructuralTag]] = {}
_QWEN = ("<think>", "</think>", "<tool_call>", "</tool_call>")
_ARGUMENTS = ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
# Families whose tokenizers have each of these markers as one token.
_MARKERS: dict[str, tuple[str, ...]] = {
    "glm_4_7": (*_QWEN, *_ARGUMENTS),
    "qwen_3": _QWEN,
    "qwen_3_5": _QWEN,
    "qwen_3_coder": _QWEN,
}


def register_model_structural_tag(
    name: str, *, marker_tokens: list[str] | None = None
) -> Callable[[_Function], _Function]:
    """A decorator that registers a function for `get_model_structural_tag` under a name.

    The function receives the functions, the server's tools, the choice and the reasoning mode, and
    by keyword `any_order`, `exclude_special_tokens`, `max_whitespace_cnt` and
    `parallel_tool_calls`; it returns a `StructuralTag`.

    Args:
        name: The name.
        marker_tokens: The markers that are one token each, for `token_markers=True`.
    """

    def register(function: _Function) -> _Function:
        _REGISTERED[name] = function
        _MARKERS.pop(name, None)
        if marker_tokens is not None:
            _MARKERS[name] = tuple(marker_tokens)
        return function

    return register


def get_model_structural_tag(
    model: str,
    tools: list[ToolParam | dict[str, Any]] | None = None,
    tool_choice: ToolChoiceOptionParam | dict[str, Any] | None = "auto",
    reasoning: bool | Literal["enabled", "disabled", "auto"] = "enabled",
    force_reasoning: bool = False,
    any_order: bool = False,
    exclude_special_tokens: bool = True,
    max_whitespace_cnt: int | None = None,
    parallel_tool_calls: bool = True,
    token_markers: bool = False,
) -> StructuralTag:
    """The structural tag of a model's output with these tools.

    Args:
        model: The name of a family, such as "qwen_3".
        tools: The tools.
        tool_choice: "auto", "required", "none", one tool, or some of them.
        reasoning: Whether reasoning comes first; "auto" if the model may leave it out.
        force_reasoning: Accepted for compatibility.
        any_order: Arguments in any order.
        exclude_special_tokens: Markers of reasoning and of calls cannot occur in text.
        max_whitespace_cnt: The longest run of whitespace within arguments; None for no bound.
        parallel_tool_calls: Whether there may be several calls.
        token_markers: Markers such as `<tool_call>` must be their own tokens, for parsers that
            recognise them by id. Only for families with known or registered markers.

    Raises:
        ValueError: An unknown family, one without known markers if they are requested, or tools or
            a choice of another form.
    """
    known = [*_REGISTERED, *(name for name in model_structural_tags() if name not in _REGISTERED)]
    if model not in known:
        raise ValueError(
            f"model is {shown_value(model):.80}, but must be one of {', '.join(known)}"
        )
    if not isinstance(token_markers, bool):
        raise ValueError(f"token_markers is {shown_value(token_markers):.80}, but must be a bool")
    if token_markers and model not in _MARKERS:
        raise ValueError(
            f"token_markers is True, but the markers of {model!r} are not known, only those of "
            f"{', '.join(_MARKERS)}: leave it out, or register the family with marker_tokens"
        )
    functions, builtins, choice = normalize_tool_choice(tools, tool_choice)
    if isinstance(reasoning, bool):
        reasoning = "enabled" if reasoning else "disabled"
    if not is_word(reasoning, ("enabled", "disabled", "auto")):
        raise ValueError(
            f"reasoning is {shown_value(reasoning):.80}, "
            f"but must be a bool, 'enabled', 'disabled' or 'auto'"
        )
    if not isinstance(parallel_tool_calls, bool):
        raise ValueError(
            f"parallel_tool_calls is {shown_value(parallel_tool_calls):.80}, but must be a bool"
        )
    made = _REGISTERED.get(model) or of_family(model)
    tag = made(
        functions,
        builtins,
        choice,
        reasoning,
        any_order=any_order,
        exclude_special_tokens=exclude_special_tokens,
        max_whitespace_cnt=max_whitespace_cnt,
        parallel_tool_calls=parallel_tool_calls,
    )
    return with_marker_tokens(tag, _MARKERS[model]) if token_markers else tag


get_builtin_structural_tag = get_model_structural_tag


class OfFamily(Protocol):
    """The function of a family; takes the result of `normalize_tool_choice`."""

    def __call__(
        self,
        tools: list[FunctionToolParam] | None = None,
        builtin_tools: list[BuiltinToolParam] | None = None,
        tool_choice: _Choice = "auto",
        reasoning: Literal["enabled", "disabled", "auto"] = "enabled",
        any_order: bool = False,
        exclude_special_tokens: bool = True,
        max_whitespace_cnt: int | None = None,
        parallel_tool_calls: bool = True,
        **kwargs: Any,
    ) -> StructuralTag:
        """The structural tag of a model's output with these tools."""


def of_family(model: str, usually: Literal["enabled", "auto"] = "enabled") -> OfFamily:
    """The function that the original has for each family.

    Args:
        model: The name of the family.
        usually: Whether reasoning comes first by default.
    """

    def tag(
        tools: list[FunctionToolParam] | None = None,
        builtin_tools: list[BuiltinToolParam] | None = None,
        tool_choice: _Choice = "auto",
        reasoning: Literal["enabled", "disabled", "auto"] = usually,
        any_order: bool = False,
        exclude_special_tokens: bool = True,
        max_whitespace_cnt: int | None = None,
        parallel_tool_calls: bool = True,
        **kwargs: Any,
    ) -> StructuralTag:
        """The structural tag of a model's output with these tools."""
        functions, builtins = tools or [], builtin_tools or []
        given = [tool.model_dump(exclude_none=True) for tool in (*functions, *builtins)]
        return tag_of(
            _get_model_structural_tag(
                model,
                given,
                _own_choice(functions, builtins, tool_choice),
                reasoning,
                max_whitespace=max_whitespace_cnt,
                any_order=any_order,
                exclude_special_tokens=exclude_special_tokens,
                parallel_tool_calls=parallel_tool_calls,
            )
        )

    return tag


def _own_choice(
    functions: list[FunctionToolParam], builtins: list[BuiltinToolParam], choice: _Choice
) -> Any:
    if choice != "forced":
        return choice
    if functions:
        return {"type": "function", "function": {"name": functions[0].function.name}}
    return {"type": builtins[0].type}


def normalize_tool_choice(
    tools: list[ToolParam | dict[str, Any]] | None = None,
    tool_choice: ToolChoiceOptionParam | dict[str, Any] | None = "auto",
) -> tuple[list[FunctionToolParam], list[BuiltinToolParam], _Choice]:
    """Apply a choice to the tools.

    Returns:
        The remaining functions, the remaining tools of the server, and "auto", "required", or
        "forced" for one tool.

    Raises:
        ValueError: A tool or the choice has another form, or names a missing tool.
    """
    if tools is not None and not isinstance(tools, list):
        raise ValueError(f"tools is a {type(tools).__name__}, but must be a list")
    read = [_read_by_type(tool, {"function": FunctionToolParam}, _TOOL) for tool in tools or []]
    functions = [tool for tool in read if isinstance(tool, FunctionToolParam)]
    builtins = [tool for tool in read if isinstance(tool, BuiltinToolParam)]
    kinds: dict[str, type[BaseModel]] = {
        "function": NamedToolChoiceParam,
        "allowed_tools": AllowedToolChoiceParam,
    }
    chosen: Any = "auto" if tool_choice is None else _read_by_type(tool_choice, kinds, _CHOICE)
    choice: _Choice = "forced"
    if isinstance(chosen, AllowedToolChoiceParam):
        functions, builtins = _allowed(functions, builtins, chosen)
        choice = chosen.allowed_tools.mode
    elif isinstance(chosen, NamedToolChoiceParam):
        name = chosen.function.name
        functions = [tool for tool in functions if tool.function.name == name][:1]
        builtins = []
        if not functions:
            raise ValueError(f"tool_choice names the function {name!r}, which is not in tools")
    elif isinstance(chosen, BuiltinToolChoiceParam):
        functions = []
        builtins = [tool for tool in builtins if tool.type == chosen.type]
        if len(builtins) != 1:
            raise ValueError(
                f"tool_choice names the type {chosen.type!r}, which {len(builtins)} tools have: "
                "exactly one must"
            )
    elif chosen == "none":
        functions, builtins, choice = [], [], "auto"
    else:
        choice = chosen
    if choice == "required" and not functions and not builtins:
        raise ValueError("tool_choice is 'required', but there are no tools to call")
    return functions, builtins, choice


def _read_by_type(
    given: Any, kinds: dict[str, type[BaseModel]], otherwise: TypeAdapter[Any]
) -> Any:
    """A tool or a choice, read as what its type says if it has the field of that type.

    Otherwise a function with one wrong field would be taken for a tool of the server that is called
    "function", because that has no required field but the type. Raises ValueError.
    """
    if isinstance(given, Mapping):
        for name, kind in kinds.items():
            if name in given and given.get("type", name) == name:
                return kind.model_validate(given)
    return otherwise.validate_python(given)


def _allowed(
    functions: list[FunctionToolParam],
    builtins: list[BuiltinToolParam],
    chosen: AllowedToolChoiceParam,
) -> tuple[list[FunctionToolParam], list[BuiltinToolParam]]:
    names, types = set(), set()
    for tool in chosen.allowed_tools.tools:
        if tool.type != "function":
            types.add(tool.type)
        elif tool.function is None:
            raise ValueError("allowed_tools has a function without its 'function'")
        else:
            names.add(tool.function.name)
    missing = names - {tool.function.name for tool in functions}
    missing |= types - {tool.type for tool in builtins}
    if missing:
        raise ValueError(f"allowed_tools names {sorted(missing)}, which are not in tools")
    return (
        [tool for tool in functions if tool.function.name in names],
        [tool for tool in builtins if tool.type in types],
    )
