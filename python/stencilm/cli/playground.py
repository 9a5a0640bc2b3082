"""`stencilm playground`: a local page to try grammars with texts and tokenizers."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stencilm.cli.failure import Failure
from stencilm.cli.grammars import EMBEDDED, read_tokenizer
from stencilm.errors import TokenizerError

if TYPE_CHECKING:
    from stencilm.tokenizers import TokenizerInfo

_DEFAULT_PORT = 8642


def playground(
    host: Annotated[
        str, typer.Option(help="The address to listen on; by default only this machine.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 takes any free port.")
    ] = _DEFAULT_PORT,
    tokenizer: Annotated[
        list[str] | None,
        typer.Option("--tokenizer", "-t", help="A tokenizer's file or folder; may be repeated."),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address of the page.")
    ] = False,
) -> int:
    """Serve a page to try grammars on: what may come next, why not, how a model writes.

    By default it listens on this machine only. Runs until interrupted.
    """
    loaders: dict[str, Callable[[], TokenizerInfo]] = {}
    for source in tokenizer or ():
        if source == EMBEDDED:
            continue
        if not source or not Path(source).exists():
            raise Failure(f"there is no tokenizer file or folder {source!r}")
        loaders[_name(source, loaders)] = _loader(source)
    try:
        from stencilm.playground.server import listen, serve
    except ImportError as error:
        raise Failure(
            f"the playground needs {error.name}: pip install 'stencilm[playground]'"
        ) from error
    from stencilm.playground.session import Session

    try:
        listening = listen(host, port)
    except OSError as error:
        reason = error.strerror or error
        raise Failure(
            f"cannot listen on {host}, port {port}: {reason}; --port 0 takes a free port"
        ) from error
    address = f"http://{_in_url(host)}:{listening.getsockname()[1]}/"
    print(f"the playground is at {address}; Ctrl-C ends it", flush=True)
    if not _is_loopback(host):
        typer.echo(
            f"stencilm: whoever reaches {host} may use it: it asks for no password", err=True
        )
    if not no_browser:
        import webbrowser

        webbrowser.open(address)  # the socket already listens, so the page waits for the server
    serve(Session(loaders), listening, host=host)
    return 0


def _name(source: str, taken: Any) -> str:
    """The shortest name of a tokenizer that distinguishes it from the others."""
    parts = [part for part in Path(source).parts if part != "tokenizer.json"] or [source]
    for count in range(1, len(parts) + 1):
        name = "/".join(parts[-count:])
        if name not in taken and name != EMBEDDED:
            return name
    return source


def _loader(source: str) -> Callable[[], TokenizerInfo]:
    def load() -> TokenizerInfo:
        """Reads it when the page first asks; it may be gone by then."""
        try:
            info: TokenizerInfo = read_tokenizer(source)
        except (Failure, OSError) as error:
            raise TokenizerError(str(error)) from error
        return info

    return load


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _in_url(host: str) -> str:
    if host in ("0.0.0.0", "::"):
        return "localhost"
    return f"[{host}]" if ":" in host else host
