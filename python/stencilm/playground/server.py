"""The playground as an ASGI application, and a server for it.

One idea: five routes that only translate. A query arrives as JSON, the session answers it in a
separate thread, and the answer is sent as JSON. If the client disconnects, the query is dropped.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

import stencilm
from stencilm.limits import CancelToken
from stencilm.playground.examples import EXAMPLES
from stencilm.playground.guard import App, Guard
from stencilm.playground.questions import MOST_GENERATED, NOTATIONS, BadQuestion
from stencilm.playground.session import Answer, Session

STATIC = Path(__file__).parent / "static"
_FILES = {
    "/": ("index.html", "text/html"),
    "/app.js": ("app.js", "text/javascript"),
    "/style.css": ("style.css", "text/css"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
MOST_AT_ONCE = 4


def create_app(session: Session, *, host: str = "127.0.0.1") -> App:
    """The application.

    Args:
        session: Answers the queries.
        host: The name that the server listens on, which is accepted in the Host header.
    """
    room = threading.BoundedSemaphore(MOST_AT_ONCE)

    def answering(
        answer: Callable[[dict[str, Any], CancelToken], Answer],
    ) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            try:
                record = json.loads(await request.body())
            except (ValueError, RecursionError):
                return _refused(400, "the question is not JSON")
            if not isinstance(record, dict):
                return _refused(400, "the question must be a JSON object")
            if not room.acquire(blocking=False):
                return _refused(503, "too many questions at once: ask again in a moment")
            cancel = CancelToken()
            watching = asyncio.create_task(_cancel_when_gone(request, cancel))
            try:
                return JSONResponse(await run_in_threadpool(answer, record, cancel))
            except BadQuestion as error:
                return _refused(400, str(error))
            finally:
                watching.cancel()
                room.release()

        return endpoint

    def start(request: Request) -> Response:
        del request
        return JSONResponse(
            {
                "version": stencilm.__version__,
                "tokenizers": session.tokenizers,
                "notations": NOTATIONS,
                "examples": [example._asdict() for example in EXAMPLES],
                "most_generated": MOST_GENERATED,
            }
        )

    routes = [Route(path, _file(*file)) for path, file in _FILES.items()]
    routes.append(Route("/api/start", start))
    for name in ("read", "tokens", "explain", "generate"):
        endpoint = answering(getattr(session, name))
        routes.append(Route(f"/api/{name}", endpoint, methods=["POST"]))
    return Guard(Starlette(routes=routes), host=host)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises OSError if the port is taken or the host is not one of this machine.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except OSError:
        found.close()
        raise
    return found


def serve(session: Session, listening: socket.socket, *, host: str) -> None:
    """Serve the playground until the process is interrupted."""
    import uvicorn

    config = uvicorn.Config(
        create_app(session, host=host),
        log_level="warning",
        ws="none",
        server_header=False,
        # A request that never completes must not prevent Ctrl-C from stopping the server.
        timeout_graceful_shutdown=1,
    )
    # Giving it up at that point is not an error to display.
    logging.getLogger("uvicorn.error").addFilter(_is_no_end_of_a_request)
    uvicorn.Server(config).run(sockets=[listening])


def _is_no_end_of_a_request(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], asyncio.CancelledError)


async def _cancel_when_gone(request: Request, cancel: CancelToken) -> None:
    """Stop the work on a query whose client has disconnected, so that others can use its slot."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    cancel.cancel()


def _refused(status: int, sentence: str) -> Response:
    return JSONResponse({"ok": False, "refused": sentence}, status_code=status)


def _file(name: str, media_type: str) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        del request
        return FileResponse(STATIC / name, media_type=media_type)

    return endpoint
