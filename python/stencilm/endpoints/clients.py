"""What the clients of all providers have in common: the library, making one, its timeout."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from stencilm.errors import ModelError


def library(name: str, service: str) -> Any:
    """The provider's library. Raises ModelError, with the extra that brings it, where it lacks."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ModelError(
            f"{service} needs the package {name!r}: pip install 'stencilm[{name}]'"
        ) from error


def made(kind: Any, error: type[Exception]) -> Any:
    """A client from the environment. Raises ModelError where it holds no key."""
    try:
        return kind()
    except error as reason:
        raise ModelError(f"cannot make a client of {kind.__name__}: {reason}") from reason


def check_model_name(model: str, function: str) -> None:
    """Raise ValueError where there is no name."""
    if not model:
        raise ValueError(f"{function} needs the name of a model: {function}(client, 'name')")


def within(client: Any, timeout: float | None) -> Any:
    """The client with at most this many seconds for a call, its own retries included."""
    if timeout is None:
        return client
    timeout = timeout / (1 + client.max_retries)
    limit = getattr(client.timeout, "read", client.timeout)
    return client.with_options(timeout=min(timeout, limit or timeout))
