"""A real OpenAI-compatible endpoint: transformers' own server with the embedded model."""

from __future__ import annotations

import json
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from urllib.request import urlopen

import stencilm

NEEDED = ("accelerate", "fastapi", "uvicorn", "torch", "transformers")
TEMPLATE = (
    "{% for m in messages %}{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}{% endif %}"
)


@contextmanager
def transformers_server(place: Path) -> Iterator[tuple[str, Path]]:
    """The address of a server, and the folder within `place` that names its model."""
    from transformers.cli.serve import Serve

    folder = place / "tiny"
    shutil.copytree(Path(stencilm.__file__).parent / "tiny", folder)
    settings = folder / "tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"chat_template": TEMPLATE}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Older ones leave the reasoning in the text, newer ones are asked to look for it.
    reasoning = {"reasoning": "auto"} if "reasoning" in signature(Serve).parameters else {}
    serve = Serve(
        force_model=str(folder), host="127.0.0.1", port=port, device="cpu", dtype="float32",
        non_blocking=True, log_level="error", **reasoning,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            urlopen(f"{address}/health", timeout=1).read()
            break
        except OSError:
            time.sleep(0.1)
    else:
        raise AssertionError("the server does not answer")
    try:
        yield f"{address}/v1", folder
    finally:
        serve.server.should_exit = True
        serve._thread.join(30)
