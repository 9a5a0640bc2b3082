"""The playground over HTTP: routes, headers, and who is refused."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
if not any(find_spec(name) for name in ("httpx", "httpx2")):
    pytest.skip("the test client needs httpx", allow_module_level=True)

from starlette.testclient import TestClient

from stencilm.cli import main
from stencilm.playground.guard import MOST_BODY_BYTES, is_own_host
from stencilm.playground.server import MOST_AT_ONCE, STATIC, create_app, listen
from stencilm.playground.session import Session

STATE = {"notation": "regex", "grammar": "yes|no", "tokenizer": "tiny", "text": "y"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(Session()), base_url="http://127.0.0.1:8642") as found:
        yield found


@pytest.mark.parametrize("path", ["/", "/app.js", "/style.css", "/icon.svg", "/api/start"])
def test_the_page_is_served_with_its_guards(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


def test_a_question_is_answered(client: TestClient) -> None:
    answer = client.post("/api/read", json=STATE).json()
    assert answer["ok"] and answer["at"]["forced"] == {"value": "es"}
    answer = client.post("/api/read", json={**STATE, "grammar": "("}).json()
    assert not answer["ok"] and answer["error"]["stretch"] == [0, 1]
    assert client.post("/api/tokens", json=STATE).json()["found"] > 0
    assert client.post("/api/explain", json={**STATE, "token_id": 5}).json()["why"]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8642", 200),
        ("localhost", 200),
        ("[::1]:8642", 200),
        ("evil.example", 403),
        ("evil.example:8642", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example", 403),
        ("user@evil.example", 403),
        ("", 403),
        ("[::1", 403),
    ],
)
def test_a_foreign_name_bound_to_this_machine_is_refused(
    client: TestClient, host: str, status: int
) -> None:
    assert client.get("/", headers={"host": host}).status_code == status
    assert client.post("/api/read", json=STATE, headers={"host": host}).status_code == status


def test_the_name_that_the_server_was_started_with_is_its_own() -> None:
    assert is_own_host("box.example:80", "box.example")
    assert is_own_host("BOX.example", "Box.Example")
    assert not is_own_host("other.example", "box.example")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://127.0.0.1:8642"}, 200),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_other_pages_may_not_ask(client: TestClient, headers: dict[str, str], status: int) -> None:
    assert client.post("/api/read", json=STATE, headers=headers).status_code == status


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b"\xff", 400),
        (b"[" * 200_000, 400),
        (b"{}", 400),
        (b" " * (MOST_BODY_BYTES + 1), 413),
    ],
)
def test_bad_bodies_are_refused(client: TestClient, body: bytes, status: int) -> None:
    answer = client.post("/api/read", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["refused"]


def test_no_other_file_is_served(client: TestClient) -> None:
    for path in ("/session.py", "/../session.py", "/static/app.js", "/%2e%2e/server.py"):
        assert client.get(path).status_code == 404
    assert client.get("/api/read").status_code == 405


def test_the_page_makes_no_markup_of_texts_and_loads_nothing_from_elsewhere() -> None:
    script = (STATIC / "app.js").read_text(encoding="utf-8")
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in script
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text and "https://" not in text, path
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert "style=" not in page and "<style" not in page and "onclick" not in page


def test_no_more_questions_are_worked_on_than_there_is_room_for() -> None:
    going = threading.Barrier(MOST_AT_ONCE + 1)
    released = threading.Event()

    class Slow(Session):
        def read(self, record: Any, cancel: Any = None) -> dict[str, Any]:
            going.wait(60)
            released.wait(60)
            return {"ok": True}

    with (
        TestClient(create_app(Slow()), base_url="http://127.0.0.1") as client,
        ThreadPoolExecutor(MOST_AT_ONCE) as pool,
    ):
        asked = [pool.submit(client.post, "/api/read", json=STATE) for _ in range(MOST_AT_ONCE)]
        going.wait(60)
        assert client.post("/api/read", json=STATE).status_code == 503
        assert client.get("/").status_code == 200
        released.set()
        assert [each.result(60).status_code for each in asked] == [200] * MOST_AT_ONCE


@pytest.mark.parametrize("path", ["read", "tokens", "explain", "generate"])
def test_questions_whose_askers_are_gone_are_ended(path: str) -> None:
    """They kept their places until they were answered."""
    long = STATE | {"grammar": "[a-z ]*", "text": "a " * 8_000, "token_id": 5, "max_tokens": 512}
    answers: list[dict[str, Any]] = []

    class Noted(Session):
        def _answered(self, *args: Any) -> dict[str, Any]:
            answers.append(super()._answered(*args))
            return answers[-1]

    app = create_app(Noted())

    async def ask(asked: dict[str, Any], gone_after: float) -> int:
        body = [{"type": "http.request", "body": json.dumps(asked).encode(), "more_body": False}]
        statuses = []

        async def receive() -> Any:
            if body:
                return body.pop()
            await asyncio.sleep(gone_after)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            statuses.append(message.get("status"))

        headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": f"/api/{path}", "headers": headers}
        more = {"scheme": "http", "query_string": b"", "root_path": "", "http_version": "1.1"}
        await app(scope | more, receive, send)
        return int(statuses[0])

    async def abandon() -> None:
        await asyncio.gather(*(ask(long, 0) for _ in range(MOST_AT_ONCE)))

    asyncio.run(abandon())
    assert len(answers) == MOST_AT_ONCE
    for answer in answers:
        problem = answer["problem"] if answer["ok"] else answer["error"]["message"]
        assert "nobody waits" in problem
    assert asyncio.run(ask(STATE | {"token_id": 5, "max_tokens": 1}, 3600)) == 200
    assert answers[-1]["ok"]


def test_a_taken_port_is_one_sentence(capsys: Any) -> None:
    with listen("127.0.0.1", 0) as taken:
        # Without this option a second socket may listen on the same port on some systems.
        assert taken.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        code = main(["playground", "--no-browser", "--port", str(taken.getsockname()[1])])
    assert code == 1
    assert "--port 0 takes a free port" in capsys.readouterr().err


def test_a_tokenizer_that_is_not_there_is_one_sentence(tmp_path: Path, capsys: Any) -> None:
    assert main(["playground", "--no-browser", "-t", str(tmp_path / "none")]) == 1
    assert "there is no tokenizer file" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="no signal ends a child politely there")
def test_the_command_serves_until_it_is_interrupted() -> None:
    pytest.importorskip("uvicorn")
    command = [sys.executable, "-m", "stencilm", "playground", "--no-browser", "--port", "0"]
    # What runs the tests in the background may have signals ignored, and its children with it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        server = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGINT, before)
    with server:
        assert server.stdout is not None and server.stderr is not None
        address = server.stdout.readline().split()[4].rstrip(";")
        with urllib.request.urlopen(address, timeout=60) as page:  # answered: it serves
            assert b"stencilm playground" in page.read()
        host = address.removeprefix("http://").rstrip("/")
        name, _, port = host.partition(":")
        with socket.create_connection((name, int(port))) as slow:
            # A question that never comes whole.
            head = f"POST /api/read HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json"
            slow.sendall(f"{head}\r\nContent-Length: 99\r\n\r\n{{".encode())
            with urllib.request.urlopen(address, timeout=60) as page:  # read after it
                assert page.status == 200
            server.send_signal(signal.SIGINT)
            assert server.wait(60) == 130
        errors = server.stderr.read()
    assert "Traceback" not in errors
