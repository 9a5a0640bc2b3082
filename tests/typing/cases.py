"""What type checkers know of values; nothing here is run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union, assert_type

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

import stencilm
from stencilm import Choice, Ebnf, Generation, Grammar, JsonSchema, Lark, Regex, TypedModel


class Person(BaseModel):
    name: str


@dataclass
class Point:
    x: int


class Pair(NamedTuple):
    left: int
    right: str


class Entry(TypedDict):
    key: str


class Colour(Enum):
    RED = "red"


def search(query: str, limit: int = 3) -> None: ...


Short = Annotated[str, Field(max_length=3)]


def values(model: TypedModel, anything: Any) -> None:
    assert_type(model("p"), str)
    assert_type(model("p", max_tokens=3), str)
    assert_type(model("p", str), str)
    assert_type(model("p", int), int)
    assert_type(model("p", Person), Person)
    assert_type(model("p", Point), Point)
    assert_type(model("p", Pair), Pair)
    assert_type(model("p", Entry), Entry)
    assert_type(model("p", Colour), Colour)
    assert_type(model("p", list[Person]), list[Person])
    assert_type(model("p", dict[str, tuple[int, ...]]), dict[str, tuple[int, ...]])
    assert_type(model("p", Literal["a", "b"]), Literal["a", "b"])
    assert_type(model("p", Person | None), Person | None)
    assert_type(model("p", Optional[Person]), Person | None)  # noqa: UP045
    assert_type(model("p", Union[Person, Point]), Person | Point)  # noqa: UP007
    assert_type(model("p", Annotated[int, Field(ge=0)]), int)
    assert_type(model("p", Short), str)
    assert_type(model("p", Regex("a")), str)
    assert_type(model("p", Ebnf('root ::= "a"')), str)
    assert_type(model("p", Lark('start: "a"')), str)
    assert_type(model("p", Grammar.from_regex("a")), str)
    assert_type(model("p", Choice(["a", "b"])), str)
    assert_type(model("p", Choice([1, 2])), int)
    assert_type(model("p", Choice([True, False])), bool)
    assert_type(model("p", JsonSchema({"type": "integer"})), Any)
    assert_type(model("p", JsonSchema('{"type": "integer"}')), Any)
    assert_type(model("p", JsonSchema(Person, indent=2)), Person)
    assert_type(model("p", JsonSchema(list[int], any_whitespace=False)), list[int])
    assert_type(model("p", search), dict[str, Any])
    assert_type(model("p", anything), Any)


def calls(model: TypedModel) -> None:
    assert_type(model.generate("p", Person), Generation[Person])
    assert_type(model.generate("p", Person).value, Person | None)
    assert_type(model.generate("p"), Generation[str])
    assert_type(model.generate("p", Choice(["a"]), on_event=print), Generation[str])
    assert_type(model.generate("p", search).value, dict[str, Any] | None)
    assert_type(model.batch(["p"], Person), list[Person])
    assert_type(model.batch(["p"], Literal["a", "b"]), list[Literal["a", "b"]])
    assert_type(model.batch(["p"], Person | None), list[Person | None])
    assert_type(model.generate_batch(["p"], int), list[Generation[int]])
    assert_type(model.samples("p", Person, n=3), list[Person])
    assert_type(model.samples("p", Regex("a"), n=3), list[str])
    assert_type(model.stream("p", Person), Iterator[Person])
    assert_type(model.stream("p", Literal["a", "b"]), Iterator[Literal["a", "b"]])
    assert_type(model.stream("p", search), Iterator[dict[str, Any]])


async def awaited(model: TypedModel) -> None:
    assert_type(await model.acall("p"), str)
    assert_type(await model.acall("p", Person | Point), Person | Point)
    assert_type(await model.agenerate("p", Person), Generation[Person])
    assert_type((await model.agenerate("p", Choice(["a"]))).value, str | None)
    assert_type(await model.abatch(["p"], Person), list[Person])
    assert_type(model.astream("p", Person), AsyncIterator[Person])
    async for person in model.astream("p", Optional[Person]):  # noqa: UP045
        assert_type(person, Person | None)


def doors() -> None:
    local = stencilm.load("tiny")
    assert_type(local("p", Person), Person)
    assert_type(local.beam_search("p", Literal["a", "b"]), list[tuple[Literal["a", "b"], float]])
    assert_type(local.probabilities("p", Choice([1, 2])), list[tuple[int, float]])
    assert_type(local.probabilities("p", bool), list[tuple[bool, float]])
    assert_type(stencilm.from_openai(None, "m")("p", Person), Person)
    assert_type(stencilm.from_anthropic(None, "m")("p", int | str), int | str)
    local("p", Person, max_token=3)  # type: ignore[call-overload]  # pyright: ignore
