"""What the clients of all providers have in common: the library, its construction, its timeout."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from stencilm.endpoints.answer_time import AnswerTime
from stencilm.errors import ModelError
from stencilm.shown import in_a_line, shown_value

_SHORT = 1 << 16
"""Bytes of an answer that is read as a whole to tell what it says."""


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
    """Raise ValueError where there is no name, and TypeError where it is no text."""
    if not isinstance(model, str) and model is not None:
        raise TypeError(f"model is {shown_value(model):.60}, but must be the name of a model")
    if not model:
        raise ValueError(f"{function} needs the name of a model: {function}(client, 'name')")


def check_client(client: Any, resource: str, kinds: str) -> None:
    """Raise TypeError for what is no client: what only looks like one has what is used of it."""
    if not all(hasattr(client, name) for name in (resource, "max_retries", "with_options")):
        raise TypeError(f"client is {shown_value(client):.60}, but must be an {kinds}, or None")


def within(client: Any, timeout: float | None) -> Any:
    """The client with at most this many seconds for a call, its own retries included."""
    if timeout is None:
        return client
    timeout = timeout / (1 + client.max_retries)
    limit = getattr(client.timeout, "read", client.timeout)
    return client.with_options(timeout=min(timeout, limit or timeout))


def stop_asking(resource: Any, time: AnswerTime) -> None:
    """Have a client that was made by `within` try nothing again for which nobody waits any more.

    Nothing of the library's own ends its pauses between tries, which may be a minute long.
    """
    client: Any = getattr(resource, "_client", None)
    prepare = getattr(client, "_prepare_request", None)
    if prepare is None:
        return

    def prepare_if_awaited(request: Any) -> None:
        if time.is_over:
            raise TimeoutError("nobody waits for the answer any more")
        prepare(request)

    client._prepare_request = prepare_if_awaited


def whole(resource: Any, arguments: dict[str, Any], time: AnswerTime) -> Any:
    """An answer that is no stream, read within its time once it has begun.

    The library reads on for as long as something comes. So it is asked for the response before it
    is read, which may be closed. A connection that breaks within it is tried again, as the library
    does it otherwise.

    Raises:
        Exception: What the library raises; where the time is over, what reading a closed response
            raises.
    """
    streaming = getattr(resource, "with_streaming_response", None)
    if streaming is None:
        return time.begun(lambda: resource.create(**arguments, stream=False))
    tries_left = getattr(getattr(resource, "_client", None), "max_retries", 0)
    while True:
        response = time.begun(streaming.create(**arguments, stream=False).__enter__)
        with time.closing(response):  # which is all that its own way out does
            try:
                return response.parse()
            except Exception as error:
                if tries_left <= 0 or not _is_of_connection(error):
                    raise
        tries_left -= 1
        time.check()


def _is_of_connection(error: Exception) -> bool:
    """Whether an exception says that a response broke off, in the words of httpx or its kin."""
    return any(kind.__name__ == "TransportError" for kind in type(error).__mro__)


def unstreamed(stream: Any) -> Any:
    """The response after a stream that is short and says that it is no stream; else None.

    Its body may be read and reported by `no_stream`; the stream goes on giving what it would have.
    """
    response = getattr(stream, "response", None)
    headers = getattr(response, "headers", {})
    length = headers.get("content-length", "")
    is_short = length.isdecimal() and len(length) < 9 and int(length) <= _SHORT
    is_stream = "event-stream" in headers.get("content-type", "event-stream")
    return response if is_short and not is_stream else None


def no_stream(response: Any) -> str:
    """What a response is in place of a stream, and what it says."""
    kind = response.headers["content-type"]
    said = response.content.decode("utf-8", "replace")
    return f"the answer is {in_a_line(kind)}, and no stream of events: {in_a_line(said, 200)}"
