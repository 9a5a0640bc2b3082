"""Functions that raise StopIteration, and tasks that are cancelled: nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import stencilm

SELECT = stencilm.Regex("SELECT (name|age)")
TINY = stencilm.load("tiny")


def draft(prompt: str) -> str:
    return "SELECT salary"


async def async_draft(prompt: str) -> str:
    return "SELECT salary"


def stop(prompt: Any) -> Any:
    raise StopIteration("SELECT name")


async def async_stop(prompt: str) -> str:
    return str(stop(prompt))


def awaited(draft_model: Any, **options: Any) -> stencilm.Guided:
    async def main() -> stencilm.Guided:
        made: stencilm.Guided = await stencilm.aguide(draft_model, SELECT, "Query? ", **options)
        return made

    return asyncio.run(asyncio.wait_for(main(), 20))


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: stencilm.guide(stop, SELECT, "Query? "), StopIteration),
        (lambda: awaited(stop), RuntimeError),
        (lambda: awaited(async_stop), RuntimeError),
        (lambda: awaited(TINY, on_event=stop), RuntimeError),
        (lambda: awaited(draft, on_event=stop), RuntimeError),
    ],
)
def test_a_stop_iteration_comes_through(call: Callable[[], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert isinstance(error if kind is StopIteration else error.__cause__, StopIteration)


@pytest.mark.parametrize("draft_model", [draft, async_draft, TINY])
@pytest.mark.parametrize("target", [stop, async_stop])
def test_a_target_that_stops_has_not_chosen(draft_model: Any, target: Any) -> None:
    is_async = draft_model is async_draft or target is async_stop
    calls = [awaited] if is_async else [awaited, _guided]
    for call in calls:
        assert call(draft_model, target_model=target).response in ("SELECT name", "SELECT age")


def _guided(draft_model: Any, **options: Any) -> stencilm.Guided:
    return stencilm.guide(draft_model, SELECT, "Query? ", **options)


@pytest.mark.parametrize("draft_model", [draft, async_draft, TINY])
def test_a_cancelled_task_ends_the_call_of_the_target(draft_model: Any) -> None:
    async def main() -> list[str]:
        seen: list[str] = []
        begun = asyncio.Event()

        async def target(prompt: str) -> str:
            begun.set()
            try:
                await asyncio.sleep(20)
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise
            return "1"

        guided = stencilm.aguide(draft_model, SELECT, "Query? ", target)
        task = asyncio.ensure_future(guided)
        await asyncio.wait_for(begun.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.05)
        return [*seen]  # the end of the loop would cancel it, too

    assert asyncio.run(main()) == ["cancelled"]
