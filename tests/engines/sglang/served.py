"""SGLang's server as a process of its own, on processors."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

STARTING = 600
"""Seconds that a server may take to start: other work may share the machine."""

ARGUMENTS = (
    "--served-model-name tiny --host 127.0.0.1 --device cpu --grammar-backend stencilm "
    "--attention-backend torch_native --sampling-backend pytorch --mem-fraction-static 0.1 "
    "--max-total-tokens 8192 --context-length 1024 --max-running-requests 32 "
    "--disable-overlap-schedule --disable-radix-cache --skip-server-warmup --disable-cuda-graph"
).split()


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
        """Whether it lives."""
        return _answers(self.port)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=20) as answer:
            return bool(answer.status == 200)
    except (OSError, HTTPException):  # another process may have taken the port meanwhile
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(model: Path, log: Path, *arguments: str) -> Iterator[Server]:
    """A server of the model in a folder, until the block is left.

    Raises:
        NotStarted: It ended, or took too long.
    """
    port = _free_port()
    command = [sys.executable, "-m", "sglang.launch_server", "--model-path", str(model)]
    command += [*ARGUMENTS, "--port", str(port), *arguments]
    stand_ins = str(Path(__file__).with_name("without_gpu"))
    path = os.pathsep.join(part for part in (os.environ.get("PYTHONPATH"), stand_ins) if part)
    variables = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=variables,
            cwd=log.parent,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + STARTING
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise NotStarted(log.read_text(encoding="utf-8", errors="replace"))
            time.sleep(1)
        yield Server(port, log)
    finally:
        try:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        except ProcessLookupError:
            pass
