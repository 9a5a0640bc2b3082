"""Functions that raise StopIteration, and tasks that are cancelled: nobody waits for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import stencilm
from stencilm.guiding import api
from stencilm.matching.texts import compiler_of

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


@pytest.mark.parametrize("draft_model", [draft, async_draft, TINY])
def test_many_texts_do_not_wait_for_each_other(draft_model: Any) -> None:
    """More texts than threads, whose targets all need the event loop and one thread more."""

    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(2))
        asked = 0
        all_asked = asyncio.Event()

        async def target(prompt: str) -> str:
            nonlocal asked
            asked += 1
            if asked == 8:
                all_asked.set()
            await all_asked.wait()
            return await asyncio.to_thread(lambda: "2")

        calls = [stencilm.aguide(draft_model, SELECT, "Query? ", target) for _ in range(8)]
        return [guided.correction_log[0].means for guided in await asyncio.gather(*calls)]

    assert asyncio.run(asyncio.wait_for(main(), 60)) == ["chooser"] * 8


def test_what_a_plain_function_gives_to_be_awaited_is_awaited() -> None:
    def plainly_drafting(prompt: str) -> Any:
        return async_draft(prompt)

    def plainly_choosing(prompt: str) -> Any:
        return chosen()

    async def chosen() -> str:
        return "2"

    for draft_model in (draft, plainly_drafting, TINY):
        guided = awaited(draft_model, target_model=plainly_choosing)
        assert guided.correction_log[0].means == "chooser" and guided.error is None
    with pytest.raises(TypeError, match=r"the draft function gives a coroutine: await"):
        _guided(plainly_drafting)
    for draft_model in (draft, TINY):
        error = _guided(draft_model, target_model=plainly_choosing).error
        assert isinstance(error, TypeError) and "gives a coroutine: await" in str(error)


def test_the_event_loop_goes_on_while_a_grammar_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[threading.Thread] = []

    def noted(*arguments: Any) -> Any:
        threads.append(threading.current_thread())
        return compiler_of(*arguments)

    monkeypatch.setattr(api, "compiler_of", noted)
    for draft_model in (draft, async_draft, TINY):
        awaited(draft_model)
    assert len(threads) == 3 and threading.main_thread() not in threads
