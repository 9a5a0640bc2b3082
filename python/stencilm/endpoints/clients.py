"""What the clients of all providers share: the library, the constructor, the timeout."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from stencilm.endpoints.answer_time import AnswerTime
from stencilm.errors import ModelError
from stencilm.shown import in_a_line, shown_value

_SHORT = 1 << 16
"""The largest answer that is read as a whole to quote it in an error, in bytes."""


def library(name: str, service: str) -> Any:
    """Import the provider's library. Raises ModelError, with the extra that installs it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ModelError(
            f"{service} needs the package {name!r}: pip install 'stencilm[{name}]'"
        ) from error


def made(kind: Any, error: type[Exception]) -> Any:
    """Make a client from the environment. Raises ModelError if there is no key."""
    try:
        return kind()
    except error as reason:
        raise ModelError(f"cannot make a client of {kind.__name__}: {reason}") from reason


def check_model_name(model: str, function: str) -> None:
    """Raise ValueError if the name is empty, and TypeError if it is not a str."""
    if not isinstance(model, str) and model is not None:
        raise TypeError(f"model is {shown_value(model):.60}, but must be the name of a model")
    if not model:
        raise ValueError(f"{function} needs the name of a model: {function}(client, 'name')")


def check_client(client: Any, resource: str, kinds: str) -> None:
    """Raise TypeError for a value that is not a client.

    An object with the same attributes is one.
    """
    if not all(hasattr(client, name) for name in (resource, "max_retries", "with_options")):
        raise TypeError(f"client is {shown_value(client):.60}, but must be an {kinds}, or None")


def within(client: Any, timeout: float | None) -> Any:
    """The client with a limit of this many seconds per call, including its own retries."""
    if timeout is None:
        return client
    timeout = timeout / (1 + client.max_retries)
    limit = getattr(client.timeout, "read", client.timeout)
    return client.with_options(timeout=min(timeout, limit or timeout))


def stop_asking(resource: Any, time: AnswerTime) -> None:
    """Stop a client that was made by `within` from trying again when the time is over.

    The library itself has no way to end its pauses between tries, which may take a minute.
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
    """Read an answer that is not a stream, within its time once it has begun.

    The library reads on as long as something arrives. So it is asked for the response before the
    body is read, which can be closed. If the connection breaks while reading, the call is tried
    again, as the library otherwise does itself.

    Raises:
        Exception: The library raises it; if the time is over, the error of reading a closed
            response.
    """
    streaming = getattr(resource, "with_streaming_response", None)
    if streaming is None:
        return time.begun(lambda: resource.create(**arguments, stream=False))
    tries_left = getattr(getattr(resource, "_client", None), "max_retries", 0)
    while True:
        response = time.begun(streaming.create(**arguments, stream=False).__enter__)
        with time.closing(response):  # leaving the library's own context would only do the same
            try:
                return response.parse()
            except Exception as error:
                if tries_left <= 0 or not _is_of_connection(error):
                    raise
        tries_left -= 1
        time.check()


def _is_of_connection(error: Exception) -> bool:
    """Whether an exception means that a response broke off, by httpx or a similar library."""
    return any(kind.__name__ == "TransportError" for kind in type(error).__mro__)


def unstreamed(stream: Any) -> Any:
    """The response behind a stream if it is short and declares that it is not a stream; else None.

    Its body may be read and reported by `no_stream`; the stream itself still works.
    """
    response = getattr(stream, "response", None)
    length = getattr(response, "headers", {}).get("content-length", "")
    is_short = length.isdecimal() and len(length) < 9 and int(length) <= _SHORT
    return response if is_short and no_stream_of(stream) else None


def no_stream_of(stream: Any) -> str:
    """That a stream declares to be something else, and what; empty if it does not."""
    headers = getattr(getattr(stream, "response", None), "headers", {})
    kind = headers.get("content-type", "event-stream")
    return (
        ""
        if "event-stream" in kind
        else f"the answer is {in_a_line(kind)}, and no stream of events"
    )


def no_stream(response: Any) -> str:
    """The content type and the text of a response that is not a stream."""
    kind = response.headers["content-type"]
    said = response.content.decode("utf-8", "replace")
    return f"the answer is {in_a_line(kind)}, and no stream of events: {in_a_line(said, 200)}"
