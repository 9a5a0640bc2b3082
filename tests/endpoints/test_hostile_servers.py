"""Servers that send what no API sends: other types, no streams, streams without an end."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread, Timer
from typing import Any

import pytest

import stencilm
from endpoints.scripted import fault, served
from stencilm.endpoints import reading
from stencilm.endpoints.capabilities import PRESETS
from stencilm.endpoints.reading import ResponseFailed

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

Body = Callable[[], Iterator[bytes]]


@contextmanager
def serving(
    body: Body,
    kind: str = "text/event-stream",
    *,
    sized: bool = False,
    length: int | None = None,
) -> Iterator[str]:
    """The address of a server that answers everything so, and tells this length or none."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", kind)
            if sized or length is not None:
                told = sum(map(len, body())) if length is None else length
                self.send_header("content-length", str(told))
            self.end_headers()
            try:
                for part in body():
                    self.wfile.write(part)
            except (BrokenPipeError, ConnectionResetError):
                pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def model_at(
    address: str, preset: str = "compatible", *, stream: bool = True, retries: int = 0
) -> Any:
    capabilities = replace(PRESETS[preset], stream=stream)
    if preset == "anthropic":
        client = anthropic.Anthropic(base_url=address, api_key="k", max_retries=retries)
        return stencilm.from_anthropic(client, "m", capabilities=capabilities)
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=retries)
    return stencilm.from_openai(client, "m", capabilities=capabilities)


def events(*parts: Any) -> Body:
    """A stream of these events."""

    def body() -> Iterator[bytes]:
        for part in parts:
            name = f"event: {part['type']}\n" if isinstance(part, dict) and "type" in part else ""
            yield f"{name}data: {json.dumps(part)}\n\n".encode()

    return body


def chunk(content: Any, reason: Any = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": reason}
    return {"id": "x", "choices": [choice], **more}


def without_end(*parts: bytes) -> Body:
    """The first parts, and the last one again and again."""

    def body() -> Iterator[bytes]:
        yield from parts
        for _ in range(600):
            time.sleep(0.02)
            yield parts[-1]

    return body


CONTENT = {"prompt_tokens": "7", "completion_tokens": [5], "prompt_tokens_details": "x"}
CACHED = {"prompt_tokens": -7, "completion_tokens": 1.5, "prompt_tokens_details": {}}
WRITTEN = b'data: {"id": "x", "choices": [{"index": 0, "delta": {"content": "1"}}]}\n\n'
THOUGHT = WRITTEN.replace(b"content", b"reasoning_content")
SILENT = b'data: {"id": "x", "choices": []}\n\n'


@pytest.mark.parametrize("usage", [CONTENT, CACHED, {"cached_tokens": "x"}, [1], 3, "many", {}])
def test_a_usage_that_tells_no_numbers_is_none(usage: Any) -> None:
    cached = {"prompt_tokens_details": {"cached_tokens": "many"}}
    told = {**usage, **cached} if isinstance(usage, dict) else usage
    with serving(events(chunk("12", "stop"), {"id": "x", "choices": [], "usage": told})) as at:
        found = model_at(at).generate("How many?", int)
    assert (found.value, found.stats.cached_tokens, found.stats.is_estimate) == (12, 0, True)


def test_a_usage_of_anthropic_that_tells_no_numbers_is_none() -> None:
    usage = {"input_tokens": "7", "output_tokens": None, "cache_read_input_tokens": "x"}
    message = {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "usage": usage,
        "content": [{"type": "text", "text": "12"}], "stop_reason": "end_turn",
    }  # fmt: skip
    body = json.dumps(message).encode()
    with serving(lambda: iter([body]), "application/json") as at:
        found = model_at(at, "anthropic", stream=False).generate("How many?", int)
    assert (found.value, found.stats.cached_tokens, found.stats.is_estimate) == (12, 0, True)


@pytest.mark.parametrize("is_in_message", [False, True])
def test_a_block_may_begin_with_the_first_part_of_its_text(is_in_message: bool) -> None:
    first: list[Any] = [{"type": "text", "text": "1"}]
    thought = {"type": "thinking", "thinking": "Ten and", "signature": ""}
    message = {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": None,
        "content": first if is_in_message else [], "usage": {"input_tokens": 7, "output_tokens": 1},
    }  # fmt: skip
    block = {"type": "text", "text": ""} if is_in_message else first[0]
    parts = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": thought},
        {"type": "content_block_start", "index": 1, "content_block": block},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "text_delta", "text": "2"},
        },
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 2},
        },
        {"type": "message_stop"},
    ]
    with serving(events(*parts)) as at:
        found = model_at(at, "anthropic").generate("How many?", int)
    assert (found.value, found.reasoning) == (12, "Ten and")


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ({"id": "x", "choices": [None]}, "[null]"),
        ({"id": "x", "choices": [{"index": 0, "delta": "oh dear"}]}, "oh dear"),
        (chunk(5), '"content":5'),
        (chunk(["oh dear"]), "oh dear"),
        (chunk("12", 5), '"finish_reason":5'),
        (chunk("12", ["stop"]), '"finish_reason":["stop"]'),
    ],
)
def test_what_is_no_part_of_an_answer_is_shown(part: Any, shown: str) -> None:
    with (
        serving(events(part)) as address,
        pytest.raises(stencilm.EndpointError, match="is no part of an answer of its API") as caught,
    ):
        model_at(address)("How many?", int)
    assert isinstance(caught.value.__cause__, ResponseFailed)
    assert '"choices":[' in str(caught.value)
    assert str(shown) in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("text/html; charset=utf-8", "<html>Please log in</html>"),
        ("application/json", '{"error": {"message": "no such model"}}'),
        ("application/json", ""),
    ],
)
def test_an_answer_that_is_no_stream_is_told(kind: str, said: str) -> None:
    async def ask(address: str) -> None:
        client = openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        async with client:
            model = stencilm.from_openai(client, "m", capabilities="compatible")
            await model.acall("How many?", int)

    with serving(lambda: iter([said.encode()]), kind, sized=True) as address:
        for call in (
            lambda: model_at(address)("How many?", int),
            lambda: asyncio.run(ask(address)),
        ):
            with pytest.raises(stencilm.EndpointError, match="no stream of events") as caught:
                call()
            assert kind in str(caught.value)
            assert said in str(caught.value)


def test_an_answer_of_unknown_length_that_is_no_stream_is_told_by_its_type() -> None:
    with serving(lambda: iter([b"<html>Please log in</html>"]), "text/html") as address:
        with pytest.raises(stencilm.EndpointError, match="'text/html', and no stream of events"):
            model_at(address)("How many?", int)

        async def ask() -> None:
            async with openai.AsyncOpenAI(
                base_url=f"{address}/v1", api_key="k", max_retries=0
            ) as client:
                model = stencilm.from_openai(client, "m", capabilities="compatible")
                await model.acall("How many?", int)

        with pytest.raises(stencilm.EndpointError, match="'text/html', and no stream of events"):
            asyncio.run(ask())


@pytest.mark.parametrize("preset", ["compatible", "openai-responses", "anthropic"])
@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"error": {"message": "no such model"}}, "no such model"),
        ({"error": "no such model"}, "no such model"),
        ({"object": "error", "message": "no such model", "code": 404}, "no such model"),
        ({"type": "error", "error": {"message": "no such model"}}, "no such model"),
        ({"detail": "Not Found"}, '{"detail":"Not Found"}'),
    ],
)
def test_a_whole_answer_that_is_an_error_is_told(preset: str, said: Any, message: str) -> None:
    """It is nothing that a model wrote, so it is no refusal of one either."""
    body = json.dumps(said).encode()
    with serving(lambda: iter([body]), "application/json") as address:
        model = model_at(address, preset, stream=False)
        with pytest.raises(stencilm.EndpointError) as caught:
            model("How many?", int)
    assert caught.value.provider_message.strip("'").startswith(message)


def test_an_error_in_place_of_a_part_is_told() -> None:
    told = {"object": "error", "message": "out of memory", "code": 500}
    with (
        serving(events(chunk("[1, "), told)) as address,
        pytest.raises(stencilm.EndpointError, match="out of memory"),
    ):
        model_at(address)("How many?", list[int])


@pytest.mark.parametrize("said", [{"message": "out of memory"}, {"detail": "out of memory"}])
@pytest.mark.parametrize(
    ("preset", "before"),
    [("compatible", []), ("compatible", [chunk("[1, ")]), ("openai-responses", [])],
)
def test_an_error_that_is_told_by_the_name_of_its_event_is_shown(
    preset: str, before: Any, said: Any
) -> None:
    """The library gives no names of events, so it looks like what keeps a connection open."""

    def body() -> Iterator[bytes]:
        yield from events(*before)()
        yield f"event: error\ndata: {json.dumps(said)}\n\n".encode()
        yield b"data: [DONE]\n\n"

    with (
        serving(body) as address,
        pytest.raises(stencilm.EndpointError, match="out of memory") as caught,
    ):
        model_at(address, preset)("How many?", list[int])
    assert caught.value.text == "[1, "[: 4 * len(before)]


def test_what_keeps_a_connection_open_is_no_error() -> None:
    with serving(events({"type": "ping"}, chunk("12"), {}, chunk("", "stop"))) as address:
        assert model_at(address)("How many?", int) == 12
    last = {"type": "response.completed", "response": responded("completed", SAID)}
    with serving(events({"type": "ping"}, delta("1"), {}, delta("2"), last)) as address:
        assert model_at(address, "openai-responses")("How many?", int) == 12


def responded(status: str, *content: Any) -> dict[str, Any]:
    """A response with these parts of a message."""
    message = {"type": "message", "id": "m", "role": "assistant", "content": [*content]}
    output = [message] if content else []
    return {"id": "r", "object": "response", "status": status, "output": output, "usage": None}


WHERE = {"item_id": "m", "output_index": 0}
SAID = {"type": "output_text", "text": "12", "annotations": []}
REFUSED = {"type": "refusal", "refusal": "I cannot."}


def done(kind: str, number: int = 0, **said: str) -> dict[str, Any]:
    return {"type": f"response.{kind}.done", **WHERE, "content_index": number, **said}


def delta(text: str, number: int = 0) -> dict[str, Any]:
    where = {**WHERE, "content_index": number}
    return {"type": "response.output_text.delta", "delta": text, **where}


@pytest.mark.parametrize(
    "parts",
    [
        [done("output_text", text="12")],
        [done("output_text", text="1"), done("output_text", 1, text="2")],
        [delta("1"), done("output_text", text="1"), done("output_text", 1, text="2")],
        [delta("1"), delta("2"), done("output_text", text="12")],
        [done("custom_tool_call_input", input="12")],
        [],  # the last event alone holds it
    ],
)
def test_what_a_response_says_in_whole_is_said_once(parts: list[Any]) -> None:
    last = {"type": "response.completed", "response": responded("completed", SAID)}
    with serving(events(*parts, last)) as address:
        found = model_at(address, "openai-responses").generate("How many?", int)
    assert (found.value, found.text, found.stats.forward_passes) == (12, "12", 1)


@pytest.mark.parametrize("parts", [[done("refusal", refusal="I cannot.")], []])
def test_a_refusal_that_comes_in_whole_is_one(parts: list[Any]) -> None:
    last = {"type": "response.completed", "response": responded("completed", REFUSED)}
    with (
        serving(events(*parts, last)) as address,
        pytest.raises(stencilm.ModelRefused, match="I cannot") as caught,
    ):
        model_at(address, "openai-responses")("How many?", int)
    assert caught.value.reason == "refusal"


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_response_that_is_not_written_yet_is_an_error(status: str) -> None:
    body = json.dumps(responded(status)).encode()
    with (
        serving(lambda: iter([body]), "application/json") as address,
        pytest.raises(stencilm.EndpointError, match=f"'{status}', and nothing is written yet"),
    ):
        model_at(address, "openai-responses", stream=False)("How many?", int)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_text_in_parts_beside_reasoning_is_read(name: str, stream: bool) -> None:
    said = {"content": [{"type": "text", "text": "12"}], name: "Ten and two"}
    choice = {"index": 0, "delta" if stream else "message": said, "finish_reason": "stop"}
    answer = {"id": "x", "choices": [choice]}
    body = events(answer) if stream else lambda: iter([json.dumps(answer).encode()])
    with serving(body, "text/event-stream" if stream else "application/json") as address:
        found = model_at(address, stream=stream).generate("How many?", str)
    assert (found.value, found.reasoning) == ("12", "Ten and two")


def test_a_stream_under_another_name_is_read() -> None:
    with serving(events(chunk("12", "stop")), "application/json", sized=True) as address:
        assert model_at(address)("How many?", int) == 12


@pytest.mark.parametrize(
    "body",
    [
        without_end(b": processing\n\n"),
        without_end(THOUGHT),
        without_end(SILENT),
    ],
    ids=["comments", "reasoning", "nothing"],
)
def test_a_stream_without_an_end_ends_with_its_budget(body: Body) -> None:
    budget = stencilm.Budget(seconds=0.2)

    async def ask(address: str) -> None:
        client = openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        async with client:
            model = stencilm.from_openai(client, "m", capabilities="compatible")
            await model.acall("How many?", int, budget=budget)

    def calls(address: str) -> list[Callable[[], Any]]:
        model = model_at(address)
        return [
            lambda: model("How many?", int, budget=budget),
            lambda: list(model.stream("How many?", int, budget=budget)),
            lambda: asyncio.run(ask(address)),
        ]

    with serving(body) as address:
        for call in calls(address):
            with pytest.raises(stencilm.EndpointError, match="did not end within") as caught:
                call()
            assert isinstance(caught.value.__cause__, TimeoutError)


@pytest.mark.parametrize("preset", ["compatible", "openai-responses", "anthropic"])
def test_a_whole_answer_without_an_end_ends_with_its_budget(preset: str) -> None:
    before = set(threading.enumerate())
    with serving(without_end(b'{"id": "x",', b" "), "application/json") as address:
        model = model_at(address, preset, stream=False)
        with pytest.raises(stencilm.EndpointError, match="did not end within") as caught:
            model("How many?", int, budget=stencilm.Budget(seconds=0.2))
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert not [one for one in set(threading.enumerate()) - before if isinstance(one, Timer)]


@contextmanager
def slow_to_begin(how: str) -> Iterator[tuple[str, list[str]]]:
    """A server whose answers do not begin, and what happens there: asked, begun, left."""
    happened: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            happened.append("asked")
            self.rfile.read(int(self.headers["content-length"]))
            if how == "pause":
                self.send_response(429)
                self.send_header("retry-after", "2")
                self.end_headers()
                return
            drops = (b"HTTP/1.1 200 OK\r\n", b"x-a: b\r\n")
            if how == "error":
                drops = (b"HTTP/1.1 400 Bad\r\n\r\n", b" ")
            try:
                self.wfile.write(drops[0])
                for _ in range(200):
                    self.wfile.write(drops[1])
                    time.sleep(0.02)
                happened.append("begun")
                self.wfile.write(b"content-type: text/event-stream\r\n\r\n")
                for _ in range(500):
                    self.wfile.write(b": processing\n\n")
                    time.sleep(0.02)
            except (BrokenPipeError, ConnectionResetError):
                happened.append("left")

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", happened
        server.shutdown()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("how", "preset"),
    [
        ("header", "compatible"),
        ("header", "anthropic"),
        ("error", "openai-responses"),
        ("pause", "compatible"),
        ("pause", "anthropic"),
    ],
)
def test_an_answer_that_does_not_begin_ends_with_its_budget(
    how: str, preset: str, stream: bool
) -> None:
    with slow_to_begin(how) as (address, happened):
        model = model_at(address, preset, stream=stream, retries=int(how == "pause"))
        with pytest.raises(stencilm.EndpointError, match="did not end within") as caught:
            model("How many?", int, budget=stencilm.Budget(seconds=0.2))
        assert isinstance(caught.value.__cause__, TimeoutError)
        assert happened == ["asked"]
        if how == "header":  # what begins later is closed
            for _ in range(1_000):
                if "left" in happened:
                    break
                time.sleep(0.02)
            assert happened == ["asked", "begun", "left"]
        elif how == "pause":  # nothing is asked for nobody
            time.sleep(1.5)
            assert happened == ["asked"]


def breaking(times: int) -> tuple[Body, list[int]]:
    """Answers of which the first break off in the middle."""
    message = {"index": 0, "message": {"content": "12"}, "finish_reason": "stop"}
    whole = json.dumps({"id": "x", "choices": [message]}).encode()
    asked: list[int] = []

    def body() -> Iterator[bytes]:
        asked.append(len(asked))
        yield whole[: 20 if len(asked) <= times else None]

    return body, asked


def test_a_whole_answer_that_breaks_off_is_asked_for_again() -> None:
    for times, retries in ((1, 1), (2, 2), (2, 1)):
        body, asked = breaking(times)
        length = sum(map(len, breaking(0)[0]()))
        with serving(body, "application/json", length=length) as address:
            client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=retries)
            capabilities = replace(PRESETS["compatible"], stream=False)
            model = stencilm.from_openai(client, "m", capabilities=capabilities)
            if times <= retries:
                assert model("How many?", int) == 12
                assert len(asked) == times + 1
            else:
                with pytest.raises(stencilm.EndpointError, match="gave no answer"):
                    model("How many?", int)


@pytest.mark.parametrize("last", [WRITTEN, SILENT, b": processing\n\n"])
def test_what_came_of_a_stream_without_an_end_is_kept(last: bytes) -> None:
    with serving(without_end(WRITTEN, last)) as address:
        model = model_at(address)
        found = model.generate("How many?", str, budget=stencilm.Budget(seconds=0.2))
    assert set(found.text) == {"1"}
    assert found.finish_reason == "length"


def test_an_answer_longer_than_any_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MOST_CHARACTERS", 20)
    thoughts = [json.loads(THOUGHT.removeprefix(b"data: ")) for _ in range(30)]
    with (
        serving(events(*thoughts, chunk("12", "stop"))) as address,
        pytest.raises(stencilm.EndpointError, match="longer than 20 characters"),
    ):
        model_at(address)("How many?", int)


def counting(answered: list[int], *, fails_at: int | None = None) -> Body:
    """Answers that are slow to come, one of which is none."""

    def body() -> Iterator[bytes]:
        answered.append(len(answered) + 1)
        if answered[-1] == fails_at:
            yield from events({"error": {"message": "no more"}})()
            return
        time.sleep(0.05)
        yield from events(chunk("12", "stop"))()

    return body


def test_a_batch_that_fails_asks_for_nothing_more() -> None:
    answered: list[int] = []

    async def main(address: str) -> None:
        client = openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        async with client:
            model = stencilm.from_openai(client, "m", capabilities="compatible", concurrency=2)
            with pytest.raises(stencilm.EndpointError, match="no more"):
                await model.abatch(["How many?"] * 30, int)
            assert asyncio.all_tasks() == {asyncio.current_task()}

    with serving(counting(answered, fails_at=2)) as address:
        asyncio.run(main(address))
    assert len(answered) < 30


def test_a_cancelled_batch_of_a_synchronous_client_asks_for_nothing_more() -> None:
    answered: list[int] = []

    async def main(address: str) -> None:
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        model = stencilm.from_openai(client, "m", capabilities="compatible", concurrency=2)
        task = asyncio.create_task(model.abatch(["How many?"] * 30, int))
        while not answered:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.get_running_loop().shutdown_default_executor()

    with serving(counting(answered)) as address:
        asyncio.run(main(address))
    assert len(answered) < 30


@pytest.mark.parametrize("is_async", [False, True])
def test_of_two_prompts_that_fail_the_first_one_raises(is_async: bool) -> None:
    """Also where its answer is the slower one: no result depends on the time."""

    def answer(body: dict[str, Any], number: int) -> Any:
        prompt = body["messages"][-1]["content"]
        time.sleep(0.2 if "one" in prompt else 0)
        raise fault(400, f"refused: {prompt[:3]}")

    async def main(address: str) -> list[int]:
        kind = openai.AsyncOpenAI if is_async else openai.OpenAI
        client = kind(base_url=f"{address}/v1", api_key="k", max_retries=0)
        model = stencilm.from_openai(client, "m", capabilities="compatible")
        found: list[int] = await model.abatch(["one", "two", "six"], int)
        return found

    with (
        served(answer) as (address, _),
        pytest.raises(stencilm.EndpointError, match="refused: one"),
    ):
        asyncio.run(main(address))
