"""The servers of this folder's tests, each started once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.vllm import served_model
from engines.vllm.served import Asked, drafting, served


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded model as vLLM serves it."""
    folder = tmp_path_factory.mktemp("model")
    served_model.write(folder)
    return folder


@pytest.fixture(scope="session")
def plain(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """A server with tools, asynchronous scheduling and prefix caching."""
    pytest.importorskip("vllm", reason="vLLM is not here: tests/engines/vllm/install.sh")
    log = tmp_path_factory.mktemp("plain") / "log"
    tools = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
    with served(
        model_folder, log, *tools, "--async-scheduling", "--enable-prefix-caching"
    ) as server:
        yield Asked(server)


@pytest.fixture(scope="session")
def thinking(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """A server with reasoning and drafts, whose JSON is compact and in any order."""
    pytest.importorskip("vllm", reason="vLLM is not here: tests/engines/vllm/install.sh")
    log = tmp_path_factory.mktemp("thinking") / "log"
    arguments = ("--reasoning-parser", "qwen3", *drafting())
    options = '{"property_order": "any", "max_whitespace": 0}'
    environment = {"STENCILM_VLLM_OPTIONS": options}
    with served(model_folder, log, *arguments, environment=environment) as server:
        yield Asked(server)


@pytest.fixture(scope="session")
def rust(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """A server whose front end asks no plug-in."""
    vllm = pytest.importorskip("vllm", reason="vLLM is not here: tests/engines/vllm/install.sh")
    if not Path(vllm.__file__).with_name("vllm-rs").exists():
        pytest.skip("this vLLM has no Rust front end")
    log = tmp_path_factory.mktemp("rust") / "log"
    with served(model_folder, log, environment={"VLLM_USE_RUST_FRONTEND": "1"}) as server:
        yield Asked(server)
