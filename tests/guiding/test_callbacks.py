"""What functions of the caller raise comes through, whatever runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import stencilm
from stencilm.callbacks import awaited, guarded, passed_on, raised

COLOUR = stencilm.Choice(["red", "blue"])
STOPS = (StopIteration, StopAsyncIteration)


def raising(kind: type[BaseException]) -> Callable[..., Any]:
    def fails(*arguments: Any) -> str:
        raise kind("mine")

    return fails


def raising_later(kind: type[BaseException]) -> Callable[..., Any]:
    async def fails(prompt: str) -> str:
        raise kind("mine")

    return fails


def red(prompt: str) -> str:
    return "red"


WAYS: dict[str, tuple[str, Callable[[Any, type[BaseException]], Any]]] = {
    "generate": (
        "on_event",
        lambda model, kind: model.generate("x", COLOUR, on_event=raising(kind)),
    ),
    "whole texts": (
        "on_event",
        lambda model, kind: model.generate("x", COLOUR, on_event=raising(kind), sampling="smc"),
    ),
    "guide": (
        "on_event",
        lambda model, kind: stencilm.guide(red, COLOUR, "x", on_event=raising(kind)),
    ),
    "guide, local": (
        "on_event",
        lambda model, kind: stencilm.guide(model, COLOUR, "x", on_event=raising(kind)),
    ),
    "aguide": (
        "on_event",
        lambda model, kind: asyncio.run(_aguide(red, on_event=raising(kind))),
    ),
    "aguide, local": (
        "on_event",
        lambda model, kind: asyncio.run(_aguide(model, on_event=raising(kind))),
    ),
    "drafts": (
        "the draft function",
        lambda model, kind: stencilm.guide(raising(kind), COLOUR, "x"),
    ),
    "drafts in a thread": (
        "the draft function",
        lambda model, kind: asyncio.run(_aguide(raising(kind))),
    ),
    "awaited drafts": (
        "the draft function",
        lambda model, kind: asyncio.run(_aguide(raising_later(kind))),
    ),
    "reasoning": (
        "the draft function",
        lambda model, kind: stencilm.guide(raising(kind), COLOUR, "x", reasoning=True),
    ),
    "choosers": (
        "the target model",
        lambda model, kind: stencilm.choose_candidate(["a", "b"], "x", raising(kind)),
    ),
}


AS_IT_IS = ("drafts", "reasoning")
"""Where nothing lies between the function and the caller that such an exception would end."""


async def _aguide(model: Any, **options: Any) -> stencilm.Guided:
    guided = stencilm.aguide(model, COLOUR, "x", **options)
    return await asyncio.wait_for(guided, timeout=60)


@pytest.fixture(scope="module")
def model() -> stencilm.Model:
    return stencilm.load("tiny")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [*STOPS, GeneratorExit, LookupError])
def test_an_exception_of_a_callback_comes_through(
    model: stencilm.Model, way: str, kind: type[BaseException]
) -> None:
    called, run = WAYS[way]
    with pytest.raises(BaseException) as caught:
        run(model, kind)
    found: BaseException | None = caught.value
    if kind in STOPS and way not in AS_IT_IS:
        assert type(found) is RuntimeError
        assert str(found) == f"{called} raises {kind.__name__}"
        found = found.__cause__
    assert type(found) is kind and found.args == ("mine",)


def test_what_python_reports_is_what_was_raised() -> None:
    stop = StopIteration("mine")
    report = RuntimeError("coroutine raised StopIteration")
    report.__cause__ = stop
    other = RuntimeError("raised StopIteration, or so it seems")
    assert raised(report) is stop and raised(other) is other and raised(stop) is stop
    assert str(passed_on(report, "it")) == "it raises StopIteration"
    assert passed_on(report, "it").__cause__ is stop
    assert passed_on(other, "it") is other


def test_a_guarded_function_is_the_same_otherwise() -> None:
    def named(one: int, *, two: int) -> tuple[int, int]:
        return one, two

    async def later() -> int:
        return 7

    assert guarded(named, "it")(1, two=2) == (1, 2)
    assert asyncio.run(awaited(later(), "it")) == 7
