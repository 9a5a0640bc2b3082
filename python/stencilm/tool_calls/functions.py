"""Python functions as tools: schemas from hints and docstrings, calls with checked arguments."""

from __future__ import annotations

import asyncio
import inspect
import json
import operator
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from stencilm.callbacks import raised
from stencilm.errors import GrammarSyntaxError, LimitExceeded, UnsupportedFeature
from stencilm.grammars.complaints import complaint_of
from stencilm.grammars.json_reading import json_reader
from stencilm.grammars.json_values import write_json
from stencilm.grammars.python_types import (
    arguments_of,
    json_schema_of,
    without_arguments,
)
from stencilm.shown import shown_value
from stencilm.tool_calls.answers import ToolCall, written_arguments

ToolSource: TypeAlias = Callable[..., Any] | Mapping[str, Any]

_MOST_VALUES = 1 << 18
"""The most values of an iterator that a tool returns; others might never end."""

_SECTION = re.compile(
    r"^(args|arguments|parameters|params|returns?|raises|yields?|examples?|notes?|attributes)\s*:?\s*$",
    re.IGNORECASE,
)
_ARGUMENTS = re.compile(r"^(args|arguments|parameters|params)\s*:?\s*$", re.IGNORECASE)
_GOOGLE = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY = re.compile(r"^\*{0,2}(\w+)\s*(?::.*)?$")
_SPHINX = re.compile(r"^:param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$")


@dataclass(frozen=True, slots=True)
class CallableTool:
    """A tool, with the function that it calls; None for one that the caller runs.

    Attributes:
        definition: The tool in the form of OpenAI's chat completions.
        function: The function that runs it.
        arguments: Reads its arguments.
    """

    definition: dict[str, Any]
    function: Callable[..., Any] | None
    arguments: TypeAdapter[Any] | None

    @property
    def name(self) -> str:
        """The name of the tool."""
        name: str = self.definition["function"]["name"]
        return name

    def run(self, call: ToolCall) -> Any:
        """Call the function; iterators, which can only be read once, become lists.

        Raises:
            ValidationError: The arguments do not match its hints.
            LimitExceeded: It returns an iterator of too many values.
            Exception: The function raises it.
        """
        if self.function is None or self.arguments is None:
            raise TypeError(f"{self.name!r} has no function to run")
        value = self.function(**json_reader(self.arguments)(write_json(written_arguments(call))))
        if inspect.isawaitable(value):
            return value
        return _Values(self.name).all_listed(value)

    def outcome(self, call: ToolCall) -> tuple[Any, Exception | None]:
        """The result of the function, or its exception.

        Raises UnsupportedFeature if the result, or a part of it, would have to be awaited.
        """
        value, error = self._outcome(call)
        if found := _to_be_awaited(value):
            _close(found)
            raise _asynchronous(self.name)
        return value, error

    def _outcome(self, call: ToolCall) -> tuple[Any, Exception | None]:
        try:
            return self.run(call), None
        except Exception as error:
            return None, raised(error)

    async def aoutcome(self, call: ToolCall) -> tuple[Any, Exception | None]:
        """The same for an asynchronous function, which is awaited; any other runs in a thread."""
        if inspect.iscoroutinefunction(self.function):
            value, error = self._outcome(call)
        else:
            # A future cannot hold every exception, so the thread returns it.
            value, error = await asyncio.to_thread(self._outcome, call)
        try:
            if inspect.isawaitable(value):
                value = await value
            values = _Values(self.name)
            value = values.all_listed(value)
            if _to_be_awaited(value):
                value = await values.awaited(value)
        except Exception as failure:
            _close(_to_be_awaited(value))
            return None, raised(failure)
        return value, error


class _Values:
    """Counts the values of all iterators in a result."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._left = _MOST_VALUES

    def counted(self, value: Any) -> Any:
        """Count one more value.

        Raises LimitExceeded if there are too many.
        """
        self._left -= 1
        if self._left < 0:
            raise LimitExceeded(
                f"the function {self._name} gave more than {_MOST_VALUES:,} values: have it return "
                "a list of those that the model is to read"
            )
        return value

    def all_listed(self, value: Any) -> Any:
        """The same as `listed`, but a value that is nested too deeply is returned as it is."""
        try:
            return self.listed(value)
        except RecursionError:
            if isinstance(value, Iterator):
                raise
            return value

    async def awaited(self, value: Any) -> Any:
        """A listed value with awaitables awaited, and lists for asynchronous iterators."""
        if inspect.isawaitable(value):
            return await self.awaited(self.listed(await value))
        if isinstance(value, AsyncIterator):
            try:
                return [await self.awaited(self.listed(self.counted(each))) async for each in value]
            finally:  # its resources are no longer needed, even if it has not ended
                if isinstance(value, AsyncGenerator):
                    await value.aclose()
        if type(value) in (list, tuple):
            return type(value)([await self.awaited(part) for part in value])
        if type(value) is dict:
            return {name: await self.awaited(member) for name, member in value.items()}
        return value

    def listed(self, value: Any) -> Any:
        """A value in which iterators, also within lists and dicts, become lists."""
        if isinstance(value, Iterator):
            try:
                return [self.listed(self.counted(each)) for each in value]
            finally:  # its resources are no longer needed, even if it has not ended
                if isinstance(value, Generator):
                    value.close()
        if type(value) in (list, tuple):
            parts = [self.listed(part) for part in value]
            is_same = all(map(operator.is_, parts, value))
            return value if is_same else type(value)(parts)
        if type(value) is dict:
            members = {name: self.listed(member) for name, member in value.items()}
            return value if all(map(operator.is_, members.values(), value.values())) else members
        return value


def _to_be_awaited(value: Any) -> list[Any]:
    """The awaitables in a value, or in lists and dicts within it."""
    found = []
    seen = set()
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if type(part) in (list, tuple, dict):
            if id(part) not in seen:
                seen.add(id(part))
                waiting += part.values() if type(part) is dict else part
        elif isinstance(part, AsyncIterator) or inspect.isawaitable(part):
            found.append(part)
    return found


def _close(awaitables: Iterable[Any]) -> None:
    """Close coroutines, because Python warns about those that are never awaited."""
    for each in awaitables:
        if inspect.iscoroutine(each):
            each.close()


def callable_tools(tools: Sequence[ToolSource], *, may_await: bool = False) -> list[CallableTool]:
    """Functions and tools in the form of OpenAI, as one list.

    Raises:
        GrammarSyntaxError: Two have the same name, or one is neither.
        UnsupportedFeature: A function cannot be called with keyword arguments, or is asynchronous
            although nothing awaits it.
    """
    if isinstance(tools, (str, Mapping)) or not isinstance(tools, Sequence):
        raise GrammarSyntaxError(
            f"tools is {shown_value(tools):.60}, but must be a list of functions or dicts"
        )
    found: dict[str, CallableTool] = {}
    for number, source in enumerate(tools):
        if isinstance(source, Mapping):
            function = source.get("function", source)
            if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
                raise GrammarSyntaxError(
                    "a tool is a function with a name", place=f"#/tools/{number}"
                )
            kind = source.get("type", "function")
            if kind != "function":
                raise GrammarSyntaxError(
                    f"the tool has the type {kind!r}, and a conversation calls functions alone: "
                    "give a tool of the type 'function'",
                    place=f"#/tools/{number}/type",
                )
            definition = {"type": "function", "function": dict(function)}
            tool = CallableTool(definition, None, None)
        elif callable(source):
            tool = tool_of(source, may_await=may_await)
        else:
            raise GrammarSyntaxError(
                f"a tool is a function or a dict, not {shown_value(source):.60}",
                place=f"#/tools/{number}",
            )
        if tool.name in found:
            raise GrammarSyntaxError(
                f"two tools have the name {tool.name!r}: rename one", place=f"#/tools/{number}"
            )
        found[tool.name] = tool
    return [*found.values()]


def tool_of(function: Callable[..., Any], *, may_await: bool = False) -> CallableTool:
    """A function as a tool.

    Its name becomes the tool's name, and the beginning of its docstring the description.
    Descriptions of parameters are taken from a docstring in the form of Google, NumPy or Sphinx.

    Raises:
        UnsupportedFeature: It cannot be called with keyword arguments, or is asynchronous although
            nothing awaits it.
    """
    if not may_await and (
        inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    ):
        raise _asynchronous(getattr(without_arguments(function), "__name__", "of a tool"))
    kind = arguments_of(function)
    schema = json_schema_of(kind)
    schema.pop("title", None)
    schema.pop("description", None)
    schema["additionalProperties"] = False
    named = without_arguments(function)
    # A class without a docstring would inherit that of its base, and an object that of its class.
    if inspect.isroutine(named) or hasattr(named, "__wrapped__"):
        said = inspect.getdoc(named) or ""
    else:
        called = named if isinstance(named, type) else type(named).__call__
        said = inspect.cleandoc(called.__doc__ or named.__doc__ or "")
    description, of_parameters = read_docstring(said)
    properties = schema.setdefault("properties", {})
    for name, text in of_parameters.items():
        known = properties.get(name)
        if isinstance(known, dict):
            known.setdefault("description", text)
    for known in properties.values():
        if isinstance(known, dict):
            known.pop("title", None)
    definition: dict[str, Any] = {"name": getattr(named, "__name__", type(named).__name__)}
    if description:
        definition["description"] = description
    definition["parameters"] = schema
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    return CallableTool({"type": "function", "function": definition}, function, adapter)


def _asynchronous(name: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"the function {name} is asynchronous: await model.achat, or wrap it in one that runs it"
    )


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description of a function in its docstring, and those of its parameters."""
    description: list[str] = []
    parameters: dict[str, list[str]] = {}
    current: list[str] | None = None
    within = seen = is_numpy = False
    width: int | None = None
    lines = text.expandtabs().splitlines()
    for number, line in enumerate(lines):
        plain = line.strip()
        sphinx = _SPHINX.match(plain)
        if sphinx:
            seen = True
            current = parameters.setdefault(sphinx[1], [sphinx[2]])
            continue
        if re.fullmatch(r"-{3,}", plain):
            continue
        underlined = number + 1 < len(lines) and bool(
            re.fullmatch(r"\s*-{3,}\s*", lines[number + 1])
        )
        if _SECTION.match(plain) and (plain.endswith(":") or underlined):
            seen, within, current, width = True, bool(_ARGUMENTS.match(plain)), None, None
            is_numpy = underlined
            continue
        if plain.startswith(":"):
            seen, current = True, None
            continue
        if not seen:
            description.append(plain)
            continue
        indent = len(line) - len(line.lstrip())
        if within and plain:
            width = indent if width is None else width
            google, numpy = _GOOGLE.match(plain), _NUMPY.match(plain)
            if indent <= width and google and not is_numpy:
                current = parameters.setdefault(google[1], [google[2]])
            elif indent <= width and numpy and is_numpy:
                current = parameters.setdefault(numpy[1], [])
            elif current is not None:
                current.append(plain)
        elif current is not None and plain:
            current.append(plain)
    whole = re.sub(r"\n{2,}", "\n\n", "\n".join(description)).strip()
    return whole, {name: " ".join(parts).strip() for name, parts in parameters.items()}


def result_text(value: Any) -> str:
    """A tool's result as text for the model: a text as it is, anything else as JSON.

    Raises an exception if neither JSON nor `str` works.
    """
    if isinstance(value, str):
        return str.__str__(value)  # for an Enum of strings, str() would be the member's name
    try:
        return to_json(value).decode()
    except PydanticSerializationError:
        return str(value)


def error_text(error: Exception) -> str:
    """An error as text for the model; only its type if it has no text."""
    try:
        if isinstance(error, ValidationError):
            return json.dumps({"error": complaint_of(error)}, ensure_ascii=False)
        said = f"{type(error).__name__}: {error}"
    except Exception:  # the `__str__` of a user's error may raise anything
        said = type(error).__name__
    return json.dumps({"error": said}, ensure_ascii=False)
