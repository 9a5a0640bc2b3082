"""vLLM's server as a process of its own, and the ways in which the tests ask it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STARTING = 600
"""Seconds that a server may take to start: it compiles, and other work may share the machine."""

ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
}
ARGUMENTS = (
    *("--served-model-name", "tiny", "--max-model-len", "512", "--max-num-seqs", "32"),
    *("--enforce-eager", "--dtype", "float32", "--host", "127.0.0.1"),
)


class NotStarted(Exception):
    """The server ended before it answered; holds what it wrote."""


@dataclass(frozen=True)
class Server:
    """A server that answers."""

    port: int
    log: Path

    @property
    def url(self) -> str:
        """Where the API begins."""
        return f"http://127.0.0.1:{self.port}/v1"

    def logged(self) -> str:
        """What its processes have written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def answers(self) -> bool:
        """Whether its engine lives."""
        return _answers(self.port)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(
    model: Path, log: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """A server of the model in a folder, until the block is left.

    With `VLLM_USE_RUST_FRONTEND` in the environment, requests come through vLLM's Rust front end.

    Raises:
        NotStarted: It ended, or took too long.
    """
    port = _free_port()
    variables = {**os.environ, **ENVIRONMENT, "STENCILM_VLLM": "1", **(environment or {})}
    if "VLLM_USE_RUST_FRONTEND" in variables:
        command = ["-m", "vllm.entrypoints.cli.main", "serve", str(model)]
    else:
        command = ["-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    command = [sys.executable, *command, *ARGUMENTS, "--port", str(port), *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=variables, start_new_session=True
        )
    try:
        deadline = time.monotonic() + STARTING
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise NotStarted(log.read_text(encoding="utf-8", errors="replace"))
            time.sleep(0.5)
        yield Server(port, log)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "job": {"enum": ["baker", "pilot"]},
    },
    "required": ["name", "age", "job"],
    "additionalProperties": False,
}
CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}},
    "required": ["city"],
    "additionalProperties": False,
}


def tools(strict: bool = True) -> list[dict[str, Any]]:
    """Two tools of one argument."""
    more = {"strict": True} if strict else {}
    return [
        {"type": "function", "function": {"name": name, "parameters": CITY, **more}}
        for name in ("weather", "time_in")
    ]


def of_schema(schema: Any) -> dict[str, Any]:
    """A `response_format` that asks for a schema."""
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}


class Asked:
    """A client of one server."""

    def __init__(self, server: Server) -> None:
        """Connects nothing yet."""
        from openai import OpenAI

        self.server = server
        self.client = OpenAI(base_url=server.url, api_key="none", timeout=300, max_retries=0)

    def chat(self, prompt: str = "Describe a person as JSON.", **fields: Any) -> Any:
        """What the chat completions API answers; greedy and without reasoning by default."""
        fields = {"max_tokens": 120, "temperature": 0, **fields}
        body = {"chat_template_kwargs": {"enable_thinking": False}, **fields.pop("extra_body", {})}
        messages: Any = [{"role": "user", "content": prompt}]
        return self.client.chat.completions.create(
            model="tiny", messages=messages, extra_body=body, **fields
        )

    def text(self, prompt: str = "Describe a person as JSON.", **fields: Any) -> str:
        """The text of the one choice."""
        return self.chat(prompt, **fields).choices[0].message.content or ""

    def refusal(self, **fields: Any) -> tuple[int, str]:
        """The status and the message of an answer that is an error; 200 and the text of another."""
        from openai import APIStatusError

        try:
            return 200, self.text(**{"max_tokens": 20, **fields})
        except APIStatusError as error:
            body: Any = error.body
            message = body.get("message", "") if isinstance(body, dict) else str(body)
            return error.status_code, message or str(error)


def structured(**fields: Any) -> dict[str, Any]:
    """vLLM's own way to ask, as the extra body of a request."""
    return {"structured_outputs": fields}


def drafting(tokens: int = 3) -> Sequence[str]:
    """The arguments for drafts out of the text before."""
    config = {
        "method": "ngram",
        "num_speculative_tokens": tokens,
        "prompt_lookup_max": 4,
        "prompt_lookup_min": 1,
    }
    return ("--speculative-config", json.dumps(config))
