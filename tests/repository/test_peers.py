"""The benchmark beside peers: how a schema is judged, and what stands on the page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import stencilm
from bench.peer_worker import Refused, decide
from bench.peers import Worker, page

TINY = Path(stencilm.__file__).parent / "tiny"


class Fixed:
    """An engine that takes the tokens 1, 2 and 3 one after another."""

    def __init__(self, *, refuses: bool = False) -> None:
        self._refuses = refuses

    def compile(self, schema: str) -> str:
        if self._refuses:
            raise Refused("not this one")
        return schema

    def start(self, compiled: str) -> list[int]:
        return []

    def mask(self, matcher: list[int]) -> None:
        pass

    def accept(self, matcher: list[int], token_id: int) -> bool:
        matcher.append(token_id)
        return token_id == len(matcher) <= 3

    def may_end(self, matcher: list[int]) -> bool:
        return len(matcher) == 3


@pytest.mark.parametrize(
    ("texts", "status", "steps"),
    [
        ([([1, 2, 3], True), ([1, 3], False), ([1], False)], "passes", 6),
        ([([1, 2], True)], "too strict", 2),
        ([([1, 4], True)], "too strict", 2),
        ([([1, 2, 3], False)], "too loose", 3),
    ],
)
def test_texts_are_judged(texts: Any, status: str, steps: int) -> None:
    answer = decide(Fixed(), {"schema": "{}", "texts": texts})
    assert answer["status"] == status
    assert (len(answer["first"]), len(answer["steps"])) == (1, steps)


def test_a_refused_schema_is_no_wrong_one() -> None:
    answer = decide(Fixed(refuses=True), {"schema": "{}", "texts": []})
    assert answer == {"status": "refused", "why": "not this one"}


def test_an_engine_answers_from_a_process_of_its_own() -> None:
    info = stencilm.TokenizerInfo.from_file(TINY)
    worker = Worker("stencilm", Path(sys.executable), TINY, info)
    try:
        texts = [
            (info.tokenize_bytes(text), valid) for text, valid in ((b"12", True), (b"x", False))
        ]
        for _ in range(2):
            request = {"schema": json.dumps({"type": "integer"}), "texts": texts}
            answer = worker.ask(request, 120)
            assert answer["status"] == "passes", answer
        assert (
            worker.ask({"schema": '{"type": "integre"}', "texts": []}, 120)["status"] == "refused"
        )
        assert (
            worker.ask({"schema": "{}", "texts": [[["no token"], True]]}, 120)["status"] == "failed"
        )
        long = {"schema": "{}", "texts": [[info.tokenize_bytes(b"[1, 2]"), True]] * 20_000}
        assert worker.ask(long, 0.01)["status"] == "times out"
        assert worker.ask({"schema": "{}", "texts": []}, 120)["status"] == "passes"  # begun anew
    finally:
        worker.stop()


def test_the_page_has_the_status_of_every_schema() -> None:
    good = {"status": "passes", "first": [100.0], "steps": [1.0, 3.0]}
    results: dict[str, dict[str, Any]] = {
        "a": {"one": good, "two": good | {"first": [900.0], "steps": [5.0, 7.0]}},
        "b": {"one": good | {"first": [1e9]}, "two": {"status": "refused", "why": "no"}},
    }
    text = page(results, {"one": "1.0", "two": "2.5"}, command="run it", about="3 tokens")
    assert "|  | one 1.0 | two 2.5 |" in text
    assert "| passes | 2 | 1 |" in text and "| refused | 0 | 1 |" in text
    assert "Of the 1 schemas" in text and "1,000,000,000" not in text
    assert "| compile and first mask, p50 | 100 | 900 |" in text
    assert "| mask and token, mean | 2.0 | 6.0 |" in text
    assert "| `b` | passes | refused |" in text and "`run it`" in text
