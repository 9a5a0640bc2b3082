"""Checks of every request: who may ask, how much, and what the browser may do with the answer.

One idea: the page belongs to the person at this machine. Another page, open in the same browser,
must be able neither to ask nor to read. Such a page is recognised by the Host header if its name
was rebound to this machine, by its Origin if it makes a cross-origin request, and by the content
type of the body if it sends a form.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BODY_BYTES = 1 << 20

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


def is_own_host(header: str, host: str) -> bool:
    """Whether a Host header may belong to a server that was started on `host`.

    Anyone can bind a name of their own to this machine's address, but not an address. So every
    address is accepted, but only two names: `localhost` and the given one.
    """
    name = urlsplit(f"//{header}").hostname if header else None
    if name is None:
        return False
    if name in ("localhost", host.lower()):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """Refuses requests from other pages, and adds headers that protect the answers."""

    def __init__(self, app: App, *, host: str) -> None:
        self._app = app
        self._host = host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        if scope["method"] == "POST":
            body = await _body(receive)
            if body is None:
                await _refuse(send, 413, f"a request may have {MOST_BODY_BYTES:,} bytes at most")
                return
            receive = _again(body, receive)

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                kept = [pair for pair in message["headers"] if pair[0].decode() not in HEADERS]
                message["headers"] = [*kept, *_encoded(HEADERS)]
            await send(message)

        await self._app(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
        host = headers.get("host", "")
        try:
            own = is_own_host(host, self._host)
        except ValueError:
            own = False
        if not own:
            return 403, f"the host {host!r:.80} is not this server's: open it by its address"
        if scope["method"] != "POST":
            return None
        origin = headers.get("origin")
        if origin is not None and origin != f"{scope['scheme']}://{host}":
            return 403, f"a page of {origin!r:.80} may not ask here"
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return 415, "a question must be JSON: send it as application/json"
        return None


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None if it is too long: then no more than the limit is read."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > MOST_BODY_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body that was already read."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def give() -> MutableMapping[str, Any]:
        return waiting.pop() if waiting else await receive()

    return give


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"ok": False, "refused": sentence}).encode()
    headers = [(b"content-type", b"application/json"), *_encoded(HEADERS)]
    headers.append((b"content-length", str(len(body)).encode()))
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]
