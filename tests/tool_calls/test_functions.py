"""Functions as tools: their schemas, their descriptions, and calls of them."""

from __future__ import annotations

import functools
from typing import Any, NotRequired, Unpack

import pytest
from pydantic import Field
from typing_extensions import TypedDict

import stencilm
from stencilm.tool_calls.functions import read_docstring, tool_of
from tool_calls.test_chat import Node, weather


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
