"""A local HTTP endpoint that answers as a script says: texts, streams, errors, silence."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

UNCOUNTED: dict[str, Any] = {"no usage": None, "half a usage": {"input_tokens": None}}
"""Ends of answers whose cost a server does not tell, and what it says instead."""
USAGE: dict[str, Any] = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


class Fault(Exception):
    """What goes wrong: an HTTP status, "cut" streams, "silence"."""


class Thought(str):
    """An answer with what was thought before it, and the field of a chat in which that stands."""

    reasoning = ""
    field = "reasoning_content"

    @classmethod
    def of(cls, text: str, reasoning: str, field: str = "reasoning_content") -> Thought:
        thought = cls(text)
        thought.reasoning, thought.field = reasoning, field
        return thought


def parts_of(text: str) -> Iterator[str]:
    """A text in the pieces of a stream."""
    for start in range(0, len(text), 7):
        yield text[start : start + 7]


def fault(status: int, message: str) -> Fault:
    """An HTTP status with the words of a provider."""
    return Fault(json.dumps({"status": status, "body": {"error": {"message": message}}}))


def openai_chunk(
    text: str, reason: str | None, *, chat: bool, tool: bool = False
) -> dict[str, Any]:
    choice: dict[str, Any] = {"index": 0, "finish_reason": reason}
    choice |= {"delta": {"content": text}} if chat else {"text": text}
    if tool:
        call = {
            "index": 0,
            "id": "c",
            "type": "custom",
            "custom": {"name": "output", "input": text},
        }
        choice["delta"] = {"content": None, "tool_calls": [call]}
    kind = "chat.completion.chunk" if chat else "text_completion"
    return {"id": "x", "object": kind, "created": 1, "model": "m", "choices": [choice]}


def told(answer: Any) -> tuple[str, str, bool]:
    """The text of an answer, why it ends, and whether it is the input of a tool."""
    if isinstance(answer, dict):
        return answer["tool"], "tool_calls", True
    return (*answer, False) if isinstance(answer, tuple) else (answer, "stop", False)


class Script:
    """Answers of a server in turn, and the requests that it got."""

    def __init__(self, answer: Callable[[dict[str, Any], int], Any]) -> None:
        self.answer = answer
        self.requests: list[tuple[str, dict[str, Any]]] = []


def handler(script: Script) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def log_message(self, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            script.requests.append((self.path, body))
            try:
                answer = script.answer(body, len(script.requests))
            except Fault as fault:
                self.fail(str(fault))
                return
            try:
                if isinstance(answer, list):
                    self.deltas(answer, stream=bool(body.get("stream")))
                elif self.path.endswith("/messages"):
                    self.anthropic(body, answer)
                elif self.path.endswith("/responses"):
                    self.respond(body, answer)
                elif body.get("stream"):
                    self.stream(answer)
                else:
                    self.whole(answer)
            except (BrokenPipeError, ConnectionResetError):
                pass

        def fail(self, fault: str) -> None:
            if fault == "silence":
                time.sleep(3)
                return
            if fault.startswith("{"):
                told = json.loads(fault)
                self.send_response(told["status"])
                self.send_header("content-type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(told["body"]).encode())
                return
            self.send_response(int(fault))
            self.send_header("retry-after-ms", "5")
            self.end_headers()
            self.wfile.write(b'{"error": {"message": "no"}}')

        def deltas(self, answer: list[Any], *, stream: bool) -> None:
            """Parts of a message as they are: what a refusal or a filter looks like."""
            if stream:
                self.begin_stream()
                for delta, reason in answer:
                    chunk = openai_chunk("", reason, chat=True)
                    chunk["choices"][0]["index"] = delta.get("of_choice", 0)
                    chunk["choices"][0]["delta"] = delta
                    self.event(chunk)
                self.wfile.write(b"data: [DONE]\n\n")
                return
            message: dict[str, Any] = {"role": "assistant", "content": None}
            for delta, _ in answer:
                for name, text in delta.items():
                    message[name] = (message.get(name) or "") + text
            value = openai_chunk("", answer[-1][1], chat=True)
            del value["choices"][0]["delta"]
            value["choices"][0]["message"] = message
            self.reply({**value, "usage": USAGE})

        def whole(self, answer: Any) -> None:
            text, reason, tool = told(answer)
            chat = "chat" in self.path
            choice = openai_chunk(text, reason, chat=chat, tool=tool)
            if chat:
                message = {**choice["choices"][0].pop("delta"), "role": "assistant"}
                if isinstance(answer, Thought):
                    message[answer.field] = answer.reasoning
                choice["choices"][0]["message"] = message
            self.reply({**choice, "usage": USAGE})

        def reply(self, value: Any) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

        def stream(self, answer: Any) -> None:
            text, reason, tool = told(answer)
            chat = "chat" in self.path
            self.begin_stream()
            if reason == "endless":
                while True:
                    self.event(openai_chunk(text, None, chat=chat))
            for part in parts_of(answer.reasoning) if isinstance(answer, Thought) else ():
                chunk = openai_chunk("", None, chat=True)
                chunk["choices"][0]["delta"] = {answer.field: part}
                self.event(chunk)
            for part in parts_of(text):
                self.event(openai_chunk(part, None, chat=chat, tool=tool))
            if reason == "cut":
                return
            self.event(openai_chunk("", reason, chat=chat))
            self.event({**openai_chunk("", None, chat=chat), "choices": [], "usage": USAGE})
            self.wfile.write(b"data: [DONE]\n\n")

        def begin_stream(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()

        def event(self, value: Any, name: str | None = None) -> None:
            head = f"event: {name}\n" if name else ""
            self.wfile.write(f"{head}data: {json.dumps(value)}\n\n".encode())
            self.wfile.flush()

        def respond(self, body: dict[str, Any], answer: Any) -> None:
            text, reason, tool = told(answer)
            content = [{"type": "output_text", "text": text, "annotations": []}]
            item: dict[str, Any] = {
                "type": "message", "id": "i", "role": "assistant", "status": "completed",
                "content": content,
            }  # fmt: skip
            if tool:
                item = {
                    "type": "custom_tool_call", "id": "i", "call_id": "c", "name": "output",
                    "input": text,
                }  # fmt: skip
            if reason == "refusal":
                item["content"] = [{"type": "refusal", "refusal": text}]
            is_whole = reason not in ("length", "failed")
            details = None if is_whole else {"reason": "max_output_tokens"}
            usage = {
                "input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
                "input_tokens_details": {"cached_tokens": 4},
                "output_tokens_details": {"reasoning_tokens": 2},
            }  # fmt: skip
            thought = answer.reasoning if isinstance(answer, Thought) else ""
            summary = [{"type": "summary_text", "text": thought}]
            thinking = [{"type": "reasoning", "id": "t", "summary": summary}] if thought else []
            response = {
                "id": "r", "object": "response", "created_at": 1, "model": "m",
                "output": [*thinking, item],
                "status": "completed" if is_whole else "incomplete", "usage": usage,
                "incomplete_details": details, "error": None, "instructions": None,
                "metadata": {}, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
                "temperature": 1, "top_p": 1,
            }  # fmt: skip
            if reason == "failed":
                response |= {"status": "failed", "incomplete_details": None}
                response["error"] = {"code": "server_error", "message": text}
            if not body.get("stream"):
                self.reply(response)
                return
            self.begin_stream()
            kind = "response.custom_tool_call_input" if tool else "response.output_text"
            if reason == "refusal":
                kind = "response.refusal"
            for part in parts_of(thought):
                name = "response.reasoning_summary_text.delta"
                where = {"item_id": "t", "output_index": 0, "summary_index": 0}
                event = {"type": name, "delta": part, "sequence_number": 0, **where}
                self.event(event, name)
            place = {"item_id": "i", "output_index": 0, "content_index": 0, "logprobs": []}
            for number, start in enumerate(range(0, len(text), 7)):
                delta = {"type": f"{kind}.delta", "delta": text[start : start + 7], **place}
                self.event({**delta, "sequence_number": number}, f"{kind}.delta")
            if reason == "cut":
                return
            end = "response.completed" if is_whole else "response.incomplete"
            end = "response.failed" if reason == "failed" else end
            self.event({"type": end, "response": response, "sequence_number": 99}, end)

        def anthropic(self, body: dict[str, Any], answer: Any) -> None:
            text, reason = answer if isinstance(answer, tuple) else (answer, "end_turn")
            usage: Any = {"input_tokens": 7, "output_tokens": 5, "cache_read_input_tokens": 3}
            end_usage: Any = {"output_tokens": 5}
            if reason in UNCOUNTED:
                usage = end_usage = UNCOUNTED[reason]
                reason = "end_turn"
            thought = answer.reasoning if isinstance(answer, Thought) else ""
            block = {"type": "thinking", "thinking": thought, "signature": "s"}
            thinking = [block] if thought else []
            message = {
                "id": "x", "type": "message", "role": "assistant", "model": "m", "usage": usage,
                "content": [*thinking, {"type": "text", "text": text}], "stop_reason": reason,
                "stop_sequence": None,
            }  # fmt: skip
            if not body.get("stream"):
                self.reply(message)
                return
            self.begin_stream()
            start = message | {"content": [], "stop_reason": None}
            self.event({"type": "message_start", "message": start}, "message_start")
            for kind, field, written in (("thinking", "thinking", thought), ("text", "text", text)):
                if kind == "thinking" and not thought:
                    continue
                opened = {"type": kind, field: ""}
                begin = {"type": "content_block_start", "index": 0, "content_block": opened}
                self.event(begin, "content_block_start")
                for part in parts_of(written):
                    delta = {"type": f"{kind}_delta", field: part}
                    event = {"type": "content_block_delta", "index": 0, "delta": delta}
                    self.event(event, "content_block_delta")
            if reason == "cut":
                return
            end: dict[str, Any] = {"type": "message_delta", "usage": end_usage}
            end["delta"] = {"stop_reason": reason, "stop_sequence": None}
            self.event(end, "message_delta")
            self.event({"type": "message_stop"}, "message_stop")

    return Handler


@contextmanager
def served(answer: Callable[[dict[str, Any], int], Any]) -> Iterator[tuple[str, Script]]:
    """The address of a server with this script, for as long as the body runs."""
    script = Script(answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(script))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
