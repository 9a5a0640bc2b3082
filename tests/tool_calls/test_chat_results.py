"""What tools return or raise, at once or later, and how a model is told of it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

import stencilm
from stencilm.errors import UnsupportedFeature
from stencilm.models import chat as conversations
from stencilm.models.chat import Chat
from stencilm.tool_calls.functions import tool_of
from tool_calls.conversations import (
    Scripted,
    awaited,
    chat,
    clock,
)


async def tide(port: str) -> str:
    """The tide in a port."""
    await asyncio.sleep(0)
    if port == "Atlantis":
        raise LookupError("no such port")
    return f"high in {port}"


def read(path: str) -> Awaitable[str]:
    """Reads a file."""

    async def reading() -> str:
        return f"all of {path}"

    return reading()


def test_asynchronous_tools_are_awaited() -> None:
    calls = '{"name": "tide", "arguments": {"port": "%s"}}, {"name": "clock", "arguments": {}}'
    calls += ', {"name": "read", "arguments": {"path": "a"}}'
    texts = ['{"turn": {"tool_calls": [' + calls + "]}}", '{"turn": {"answer": "high"}}']
    given = {"tools": [tide, clock, read]}
    found = awaited(Scripted([texts[0] % "Oslo", texts[1]]), "Oslo?", **given)
    assert found.value == "high"
    assert [result.value for result in found.results] == ["high in Oslo", "noon", "all of a"]
    found = awaited(Scripted([texts[0] % "Atlantis", texts[1]]), "Atlantis?", **given)
    assert isinstance(found.results[0].error, LookupError)
    with pytest.raises(LookupError, match="no such port"):
        awaited(Scripted([texts[0] % "Atlantis"]), "Atlantis?", **given, on_error="raise")


def stop() -> str:
    """Raises what ends generators."""
    raise StopIteration("no more")


@pytest.mark.parametrize("talk", [chat, awaited])
def test_whatever_a_function_raises_is_told(talk: Callable[..., Chat[Any]]) -> None:
    texts = ['{"turn": {"tool_calls": [{"name": "stop", "arguments": {}}]}}']
    texts.append('{"turn": {"answer": "none"}}')
    found = talk(Scripted(texts), "Go on.", tools=[stop])
    assert found.value == "none" and "no more" in json.dumps(found.messages)


class Unspeakable:
    """What has no text."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


class SpeechlessError(Exception):
    """What cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def rows(count: int, fails_at: int = -1) -> Iterator[int]:
    for number in range(count):
        if number == fails_at:
            raise LookupError("the connection is gone")
        yield number


def nested() -> Any:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    return value


def raises() -> None:
    raise SpeechlessError


def circle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def within() -> dict[str, Any]:
    return {"all": (map(rows, (1, 2)), 1)}


class Changing:
    """Values that are others when they are looked at again."""

    def __init__(self) -> None:
        self.given: list[int] = [1]

    def of_today(self) -> list[int]:
        self.given.append(len(self.given) + 1)
        return self.given


def result_of(
    talk: Callable[..., Chat[Any]], function: Any, **more: Any
) -> conversations.ToolResult:
    name = getattr(function, "__name__", "function")
    texts = [json.dumps({"turn": {"tool_calls": [{"name": name, "arguments": {}}]}})]
    texts.append('{"turn": {"answer": "none"}}')
    found = talk(Scripted(texts), "Go on.", tools=[function], **more)
    (result,) = found.results
    # The same when it is read again, and what the model was told.
    assert json.loads(found.messages[-2]["content"])["results"][0]["result"] == result.text
    return result


@pytest.mark.parametrize("talk", [chat, awaited])
def test_an_iterator_is_read_once(talk: Callable[..., Chat[Any]]) -> None:
    for function in (lambda: rows(3), lambda: iter([0, 1, 2]), lambda: map(int, "012")):
        function.__name__ = "f"
        result = result_of(talk, function)
        assert (result.text, result.value) == ("[0,1,2]", [0, 1, 2])
    result = result_of(talk, within)
    assert result.value == {"all": ([[0], [0, 1]], 1)} and result.text == '{"all":[[[0],[0,1]],1]}'
    assert result_of(talk, circle).text == "[[...]]"
    changing = Changing()
    result = result_of(talk, changing.of_today)
    changing.of_today()
    assert result.text == "[1,2]"


@pytest.mark.parametrize("talk", [chat, awaited])
@pytest.mark.parametrize(
    ("function", "kind", "told"),
    [
        (lambda: rows(3, fails_at=1), LookupError, "LookupError: the connection is gone"),
        (lambda: itertools.count(), stencilm.LimitExceeded, "gave more than 262,144 values"),
        (lambda: {"a": map(itertools.count, [1])}, stencilm.LimitExceeded, "gave more than"),
        (Unspeakable, RuntimeError, "no words"),
        (lambda: [Unspeakable()], RuntimeError, "no words"),
        (nested, RecursionError, "RecursionError: "),
        (raises, SpeechlessError, "SpeechlessError"),
    ],
    ids=["fails", "endless", "endless-within", "unspeakable", "within", "nested", "speechless"],
)
def test_what_cannot_be_told_is_an_error_of_the_tool(
    talk: Callable[..., Chat[Any]], function: Any, kind: type[Exception], told: str
) -> None:
    def tool() -> Any:
        return function()

    result = result_of(talk, tool)
    assert isinstance(result.error, kind) and result.value is None
    assert told in json.loads(result.text)["error"]
    with pytest.raises(kind):
        result_of(talk, tool, on_error="raise")


def test_asynchronous_iterators_are_read() -> None:
    async def numbers() -> AsyncIterator[int]:
        for number in range(3):
            await asyncio.sleep(0)
            yield number

    async def later() -> Any:
        return numbers()

    for function in (numbers, later, lambda: numbers()):
        function.__name__ = "f"
        result = result_of(awaited, function)
        assert (result.text, result.value) == ("[0,1,2]", [0, 1, 2])
    with pytest.raises(UnsupportedFeature, match="is asynchronous: await"):
        tool_of(numbers)


@pytest.mark.filterwarnings("error")
def test_what_is_to_be_awaited_is_told_where_nothing_awaits_it() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1

    def file() -> Awaitable[str]:
        return read("x")

    def stream() -> AsyncIterator[int]:
        return numbers()

    for function in (file, stream):
        with pytest.raises(UnsupportedFeature, match=f"{function.__name__} is asynchronous"):
            result_of(chat, function)


async def _numbers(count: int, fails: bool = False) -> AsyncIterator[int]:
    for number in range(count):
        await asyncio.sleep(0)
        yield number
    if fails:
        raise LookupError("the connection is gone")


async def _later(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


async def _lists(count: int) -> AsyncIterator[Any]:
    for number in range(count):
        yield _numbers(number)


WITHIN: dict[str, tuple[Callable[[], Any], str]] = {
    "a list": (lambda: [_numbers(2), 5], "[[0,1],5]"),
    "a tuple": (lambda: (_numbers(2), rows(2)), "[[0,1],[0,1]]"),
    "a dict": (lambda: {"a": [{"b": _numbers(2)}]}, '{"a":[{"b":[0,1]}]}'),
    "an iterator": (lambda: iter([_numbers(1), _numbers(2)]), "[[0],[0,1]]"),
    "a coroutine": (lambda: [_later("x"), _later([rows(2)])], '["x",[[0,1]]]'),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", WITHIN)
def test_what_is_to_be_awaited_within_a_value(name: str) -> None:
    function, told = WITHIN[name]
    result = result_of(awaited, function)
    assert result.text == told and json.dumps(result.value, separators=(",", ":")) == told
    for on_error in ("tell", "raise"):
        with pytest.raises(UnsupportedFeature, match="is asynchronous: await"):
            result_of(chat, function, on_error=on_error)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda: _lists(3), "[[],[0],[0,1]]"),
        (lambda: _later(rows(3)), "[0,1,2]"),
        (lambda: _later([_numbers(1)]), "[[0]]"),
        (lambda: _later(_later(1)), "1"),
    ],
)
def test_what_awaited_values_hold_is_read(function: Callable[[], Any], told: str) -> None:
    result = result_of(awaited, function)
    assert result.text == told == json.dumps(result.value, separators=(",", ":"))


@pytest.mark.filterwarnings("error")
def test_asynchronous_iterators_within_a_value_that_fail_or_do_not_end() -> None:
    result = result_of(awaited, lambda: [_numbers(1, fails=True), _later(1)])
    assert isinstance(result.error, LookupError) and result.value is None
    result = result_of(awaited, lambda: {"a": [_numbers(1 << 19)]})
    assert isinstance(result.error, stencilm.LimitExceeded)


def stops(x: int = 1) -> int:
    """Stops."""
    raise StopIteration("mine")


async def stops_later(x: int = 1) -> int:
    """Stops."""
    raise StopIteration("mine")


def stops_within(x: int = 1) -> Iterator[int]:
    """Stops."""
    yield 1
    raise StopIteration("mine")


@pytest.mark.parametrize(
    ("tool", "talk"),
    [
        (stops, chat),
        (stops, awaited),
        (stops_within, chat),
        (stops_within, awaited),
        (stops_later, awaited),
    ],
)
def test_a_tool_that_raises_stop_iteration(tool: Any, talk: Any) -> None:
    call = {"turn": {"tool_calls": [{"name": tool.__name__, "arguments": {}}]}}
    texts = [json.dumps(call), '{"turn": {"answer": 1}}']
    found = talk(Scripted(texts), "?", tools=[tool], output_type=int)
    assert found.value == 1
    assert [result.text for result in found.results] == ['{"error": "StopIteration: mine"}']
    with pytest.raises(RuntimeError, match=f"the tool '{tool.__name__}' raises StopIter") as caught:
        talk(Scripted(texts), "?", tools=[tool], output_type=int, on_error="raise")
    assert isinstance(caught.value.__cause__, StopIteration)
