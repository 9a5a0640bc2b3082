"""Servers of other projects with the embedded model, as processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

import stencilm

STARTING = 300
"""Seconds that a server may take to start: other work may share the machine."""

TEMPLATE = (
    "{% for m in messages %}{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}{% endif %}"
)


def chat_folder(place: Path) -> Path:
    """The embedded model with a template for chats, in a folder."""
    folder = place / "tiny"
    shutil.copytree(Path(stencilm.__file__).parent / "tiny", folder)
    settings = folder / "tokenizer_config.json"
    value = json.loads(settings.read_text(encoding="utf-8")) | {"chat_template": TEMPLATE}
    settings.write_text(json.dumps(value), encoding="utf-8")
    return folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: Sequence[str], port: int, log: Path) -> Iterator[str]:
    """The address of the API of a server that a command starts, until the block is left."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + STARTING
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(log.read_text(encoding="utf-8", errors="replace")[-4000:])
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        try:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        except ProcessLookupError:
            pass


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=10) as answer:
            return bool(answer.status == 200)
    except (OSError, HTTPException):  # another process may have taken the port meanwhile
        return False
