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

from stencilm.errors import GrammarSyntaxError, LimitExceeded, UnsupportedFeature
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
"""Values of an iterator that a tool returns: more comes of those without an end."""

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
        definition: The tool as OpenAI's chat completions take it.
        function: What runs it.
        arguments: Reads its arguments.
    """

    definition: dict[str, Any]
    function: Callable[..., Any] | None
    arguments: TypeAdapter[Any] | None

    @property
    def name(self) -> str:
        """What the model calls it."""
        name: str = self.definition["function"]["name"]
        return name

    def run(self, call: ToolCall) -> Any:
        """What the function returns, with lists for iterators, which can be read once.

        Raises:
            ValidationError: The arguments are not what its hints say.
            LimitExceeded: It returns an iterator of too many values.
            Exception: What the function raises.
        """
        if self.function is None or self.arguments is None:
            raise TypeError(f"{self.name!r} has no function to run")
        value = self.function(**json_reader(self.arguments)(write_json(written_arguments(call))))
        if inspect.isawaitable(value):
            return value
        return _Values(self.name).all_listed(value)

    def outcome(self, call: ToolCall) -> tuple[Any, Exception | None]:
        """What the function returns, or what it raises.

        Raises UnsupportedFeature where it returns what is to be awaited, or a list or dict of it.
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
            return None, error

    async def aoutcome(self, call: ToolCall) -> tuple[Any, Exception | None]:
        """The same of an asynchronous function, which is awaited; any other runs in a thread."""
        if inspect.iscoroutinefunction(self.function):
            value, error = self._outcome(call)
        else:
            # No future can hold every exception, so the thread returns what was raised.
            value, error = await asyncio.to_thread(self._outcome, call)
        try:
            if inspect.isawaitable(value):
                value = await value
            values = _Values(self.name)
            value = values.all_listed(value)
            if _to_be_awaited(value):
                value = await values.awaited(value)
        except Exception as raised:
            _close(_to_be_awaited(value))
            return None, raised
        return value, error


class _Values:
    """The values of the iterators that a function returns, so many in all."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._left = _MOST_VALUES

    def counted(self, value: Any) -> Any:
        """One more value.

        Raises LimitExceeded where there are too many.
        """
        self._left -= 1
        if self._left < 0:
            raise LimitExceeded(
                f"the function {self._name} gave more than {_MOST_VALUES:,} values: have it return "
                "a list of those that the model is to read"
            )
        return value

    def all_listed(self, value: Any) -> Any:
        """The same as `listed`; what is nested without an end, or nearly so, as it is."""
        try:
            return self.listed(value)
        except RecursionError:
            if isinstance(value, Iterator):
                raise
            return value

    async def awaited(self, value: Any) -> Any:
        """A listed value with what awaitables give, and with lists for asynchronous iterators."""
        if inspect.isawaitable(value):
            return await self.awaited(self.listed(await value))
        if isinstance(value, AsyncIterator):
            try:
                return [await self.awaited(self.listed(self.counted(each))) async for each in value]
            finally:  # what it holds open is no more needed, also where it has not ended
                if isinstance(value, AsyncGenerator):
                    await value.aclose()
        if type(value) in (list, tuple):
            return type(value)([await self.awaited(part) for part in value])
        if type(value) is dict:
            return {name: await self.awaited(member) for name, member in value.items()}
        return value

    def listed(self, value: Any) -> Any:
        """A value with lists for iterators, those within lists and dicts included."""
        if isinstance(value, Iterator):
            try:
                return [self.listed(self.counted(each)) for each in value]
            finally:  # what it holds open is no more needed, also where it has not ended
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
    """What is to be awaited in a value, or in lists and dicts within it."""
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
    """Python warns of coroutines that nobody awaits."""
    for each in awaitables:
        if inspect.iscoroutine(each):
            each.close()


def callable_tools(tools: Sequence[ToolSource], *, may_await: bool = False) -> list[CallableTool]:
    """Functions and tools in the form of OpenAI as one list.

    Raises:
        GrammarSyntaxError: Two have the same name, or one is neither.
        UnsupportedFeature: A function cannot be called by the names of its parameters, or is
            asynchronous where nothing awaits it.
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

    Its name is the tool's; the beginning of its docstring describes it, and what the docstring says
    of parameters, in the form of Google, NumPy or Sphinx, describes these.

    Raises:
        UnsupportedFeature: It cannot be called by the names of its parameters, or is asynchronous
            where nothing awaits it.
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
    # A class without a docstring would be described as its base, and an object as its class.
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
    """What a docstring says of a function, and of each of its parameters."""
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
    """What a tool returned, as the model is told it: a text as it is, anything else as JSON.

    Raises Exception where neither JSON nor Python's own words can be made of it.
    """
    if isinstance(value, str):
        return str.__str__(value)  # of an Enum of texts, str() would be the member's name
    try:
        return to_json(value).decode()
    except PydanticSerializationError:
        return str(value)


def error_text(error: Exception) -> str:
    """What went wrong, as the model is told it; the kind of an error that cannot be told."""
    try:
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            return json.dumps({"error": f"{place}: {first['msg']}" if place else first["msg"]})
        said = f"{type(error).__name__}: {error}"
    except Exception:  # whatever the text of somebody's error raises
        said = type(error).__name__
    return json.dumps({"error": said}, ensure_ascii=False)
