"""Functions as tools: their schemas, their descriptions, and calls of them."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Self, Unpack

import pydantic.dataclasses
import pytest
from pydantic import BaseModel, Field, ValidationError
from typing_extensions import TypedDict

import stencilm
from stencilm.tool_calls.functions import read_docstring, tool_of
from tool_calls.conversations import weather
from tool_calls.test_chat import Node


def test_arguments_that_are_given_already_are_none_of_a_tool() -> None:
    tool = tool_of(functools.partial(weather, unit="F"))
    definition = tool.definition["function"]
    assert definition["name"] == "weather"
    assert definition["description"] == "The weather of a city."
    assert definition["parameters"]["properties"].keys() == {"city", "day"}


def test_a_schema_of_hints_and_docstring() -> None:
    definition = tool_of(weather).definition["function"]
    assert definition["name"] == "weather"
    assert definition["description"] == "The weather of a city."
    schema = definition["parameters"]
    assert schema["required"] == ["city"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["city"] == {
        "type": "string",
        "description": "The name of the city.",
    }
    assert schema["properties"]["day"]["description"] == "Which day; today where none is given."
    assert schema["properties"]["unit"]["enum"] == ["C", "F"]


TAGS: Any = Field(default_factory=list, max_length=1)


def with_fields(
    city: str = Field("Rome", description="Its name.", min_length=2),
    days: int = Field(..., ge=1),
    tags: list[str] = TAGS,
) -> tuple[str, int, list[str]]:
    """Defaults as pydantic and FastAPI take them."""
    return city, days, tags


def test_defaults_that_are_fields() -> None:
    tool = tool_of(with_fields)
    schema = tool.definition["function"]["parameters"]
    assert schema["required"] == ["days"]
    assert schema["properties"]["city"]["description"] == "Its name."
    assert schema["properties"]["city"]["minLength"] == 2
    assert schema["properties"]["days"]["minimum"] == 1
    assert schema["properties"]["tags"]["maxItems"] == 1
    assert tool.run(stencilm.ToolCall("with_fields", {"days": 2}, "")) == ("Rome", 2, [])
    _, error = tool.outcome(stencilm.ToolCall("with_fields", {"days": 0}, ""))
    assert "greater than or equal to 1" in str(error)
    taken = stencilm.load("tiny")("JSON: ", with_fields, seed=1)
    assert with_fields(**taken) == (taken["city"], taken["days"], taken["tags"])


class Wind(TypedDict):
    knots: int
    gusts: NotRequired[bool]


def sail(boat: str, **wind: Unpack[Wind]) -> tuple[str, Wind]:
    """Sails."""
    return boat, wind


def test_named_arguments_that_are_known_by_a_typed_dict() -> None:
    tool = tool_of(sail)
    schema = tool.definition["function"]["parameters"]
    assert schema["properties"].keys() == {"boat", "knots", "gusts"}
    assert schema["required"] == ["boat", "knots"]
    call = stencilm.ToolCall("sail", {"boat": "Ida", "knots": 9}, "")
    assert tool.run(call) == ("Ida", {"knots": 9})


class Sized(BaseModel):
    size: int = Field(alias="Size", description="In metres.", le=9)
    data: Annotated[bool, Field(description="Any.")] = True


@pydantic.dataclasses.dataclass
class Checked:
    args: int = Field(le=9)


@dataclasses.dataclass
class Plain:
    a: int
    sized: Sized | None = None


@dataclasses.dataclass(init=False)
class Unmade:
    a: str

    def __init__(self, a: int) -> None:
        self.a = str(a)


class Pair(NamedTuple):
    a: int
    b: bool = True


class Door:
    a: str

    def __init__(self, a: int) -> None:
        self.a = str(a)

    def __call__(self, height: int, kind: Literal["in", "out"] = "in") -> int:
        """Opens it.

        Args:
            height: In metres.
        """
        return height

    def beside(self, other: Self) -> None:
        """Stands beside another one."""


class Made:
    def __new__(cls, a: int) -> Made:
        return super().__new__(cls)


def signed(**given: Any) -> Any:
    return given


def keyword(name: str, kind: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)


signed.__signature__ = inspect.Signature([keyword("a", int)])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("function", "name", "kinds", "taken", "refused"),
    [
        (Door, "Door", {"a": "integer"}, {"a": 2}, {"a": "x"}),
        (Made, "Made", {"a": "integer"}, {"a": 2}, {"a": "x"}),
        (Unmade, "Unmade", {"a": "integer"}, {"a": 2}, {"a": "x"}),
        (Plain, "Plain", {"a": "integer", "sized": None}, {"a": 2}, {"a": "x"}),
        (Pair, "Pair", {"a": "integer", "b": "boolean"}, {"a": 2}, {"a": "x"}),
        (Sized, "Sized", {"Size": "integer", "data": "boolean"}, {"Size": 9}, {"Size": 10}),
        (Checked, "Checked", {"args": "integer"}, {"args": 9}, {"args": 10}),
        (Door(1), "Door", {"height": "integer", "kind": "string"}, {"height": 2}, {"height": "x"}),
        (functools.partial(Door(1), kind="out"), "Door", {"height": "integer"}, {"height": 2}, {}),
        (functools.lru_cache(weather), "weather", None, {"city": "Rome"}, {"city": 1}),
        (signed, "signed", {"a": "integer"}, {"a": 2}, {"a": "x"}),
    ],
)
def test_arguments_of_what_can_be_called_are_those_of_its_hints(
    function: Any, name: str, kinds: Any, taken: dict[str, Any], refused: dict[str, Any]
) -> None:
    tool = tool_of(function)
    definition = tool.definition["function"]
    properties = definition["parameters"]["properties"]
    assert definition["name"] == name
    if kinds is not None:
        assert {name: one.get("type") for name, one in properties.items()} == kinds
    tool.run(stencilm.ToolCall(name, taken, ""))
    with pytest.raises(ValidationError):
        tool.run(stencilm.ToolCall(name, refused, ""))


def test_the_words_of_what_can_be_called_are_those_of_its_methods_and_fields() -> None:
    sized = tool_of(Sized).definition["function"]["parameters"]["properties"]
    assert sized["Size"] == {"type": "integer", "maximum": 9, "description": "In metres."}
    assert sized["data"]["description"] == "Any."
    door = tool_of(Door(1)).definition["function"]
    assert door["description"] == "Opens it."
    assert door["parameters"]["properties"]["height"]["description"] == "In metres."


class Shelf:
    def find(self, title: str, *rest: OnlyForCheckers) -> OnlyForCheckers:  # type: ignore[name-defined]  # noqa: F821
        return title

    def __call__(self, title: str) -> OnlyForCheckers:  # type: ignore[name-defined]  # noqa: F821
        return title


def borrowed(shelf: OnlyForCheckers, title: str) -> str:  # type: ignore[name-defined]  # noqa: F821
    return f"{shelf}: {title}"


@pytest.mark.parametrize(
    "function",
    [
        Shelf().find,
        Shelf(),
        functools.partial(borrowed, "top"),
        functools.partial(borrowed, shelf="top"),
    ],
)
def test_hints_of_what_is_not_read_need_not_be_known(function: Any) -> None:
    """As of what is imported for type checkers alone: the result, and arguments given already."""
    tool = tool_of(function)
    parameters = tool.definition["function"]["parameters"]
    assert parameters["properties"] == {"title": {"type": "string"}}
    call = stencilm.ToolCall(tool.name, {"title": "Ulysses"}, "")
    assert tool.run(call) in ("Ulysses", "top: Ulysses")
    with pytest.raises(stencilm.UnsupportedFeature, match="'OnlyForCheckers' is not defined"):
        tool_of(borrowed)


def elsewhere(a: functools.nothing) -> None: ...  # type: ignore[name-defined]


def divided(a: int) -> None: ...


divided.__annotations__["a"] = "1 / 0"


@functools.singledispatch
def chosen(a: int) -> int:
    return a


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (elsewhere, "functools.*has no attribute 'nothing'"),
        (divided, "division by zero"),
        (chosen, "chosen by the type of its first argument.*wrap it"),
        (Door(1).beside, "Self in the hint of 'other'.*write the class itself"),
        (list[int], "list.int."),
        (Callable[[int], int], "Callable"),
    ],
)
def test_functions_whose_arguments_cannot_be_told_are_refused(function: Any, words: str) -> None:
    with pytest.raises(stencilm.UnsupportedFeature, match=words):
        tool_of(function)


def test_a_generator_that_does_not_end_is_closed() -> None:
    closed = []

    def endless() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.append("plain")

    async def awaited() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.append("asynchronous")

    call = stencilm.ToolCall("endless", {}, "")
    _, error = tool_of(endless).outcome(call)
    assert isinstance(error, stencilm.LimitExceeded)
    assert closed == ["plain"]

    async def main() -> list[str]:
        _, error = await tool_of(awaited, may_await=True).aoutcome(call)
        assert isinstance(error, stencilm.LimitExceeded)
        return [*closed]

    assert asyncio.run(main()) == ["plain", "asynchronous"]


class Described(Node):
    """Has words of its own."""


def test_a_class_is_not_described_as_its_base() -> None:
    assert "description" not in tool_of(Node).definition["function"]
    assert tool_of(Described).definition["function"]["description"] == "Has words of its own."


@pytest.mark.parametrize(
    "docstring",
    [
        "Does it.\n\nArgs:\n    a: The first\n        of two.\n    b (int): The second.\n\n"
        "Returns:\n    c: No.",
        "Does it.\n\nParameters\n----------\na : str\n    The first\n    of two.\nb\n"
        "    The second.\n\nReturns\n-------\nint\n    No.",
        "Does it.\n\n:param a: The first\n    of two.\n:param int b: The second.\n:returns: No.",
    ],
)
def test_docstrings_of_three_forms(docstring: str) -> None:
    assert read_docstring(docstring) == ("Does it.", {"a": "The first of two.", "b": "The second."})
