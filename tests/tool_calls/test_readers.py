"""The tool parsers of released servers read the same calls from the same texts."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import stencilm
from stencilm.tool_calls.families import TEMPLATES
from stencilm.tool_calls.writer import write_calls
from tool_calls import checked
from tool_calls.requests import CALLS, SCHEMAS, TOOLS

READERS = Path(__file__).parent / "readers"
PACKAGES: dict[str, tuple[str, str, dict[str, str]]] = {
    "vllm": ("STENCILM_VLLM_PYTHON", "vllm_reader.py", checked.VLLM),
    "sglang": ("STENCILM_SGLANG_PYTHON", "sglang_reader.py", checked.SGLANG),
}


NAMES = {'a "b" & c': "x", "&quot;": "y", "a&copy=1": "z", "&amp;amp;": "<|&quot;"}


class Answers:
    """What the parsers of a package read from every text, asked once for all."""

    def __init__(self, package: str) -> None:
        variable, script, parsers = PACKAGES[package]
        python = os.environ.get(variable, "")
        if not python:
            pytest.skip(f"{variable} names no Python with {package}")
        cases: list[dict[str, Any]] = []
        keys: list[tuple[str, str]] = []
        for family, parser in parsers.items():
            markers = [*stencilm.tools(family, TOOLS).special_tokens]
            markers += checked.MORE_MARKERS.get(parser, [])
            markers = [one for one in markers if one not in checked.TEXTS.get(parser, [])]
            for kind, calls in CALLS.items():
                ids = [str(index) for index in range(len(calls))]
                for way in TEMPLATES[family].ways():
                    text = write_calls(way, calls, SCHEMAS, ids=ids)
                    keys.append((family, kind))
                    cases.append(
                        {"parser": parser, "markers": markers, "tools": TOOLS, "text": text}
                    )
        lines = "".join(json.dumps(case) + "\n" for case in cases)
        run = subprocess.run(
            [python, str(READERS / script)], input=lines, capture_output=True, text=True, check=True
        )
        answers = [json.loads(line[1:]) for line in run.stdout.splitlines() if line[:1] == "="]
        self.by_key: dict[tuple[str, str], list[tuple[str, Any]]] = {}
        for key, case, answer in zip(keys, cases, answers, strict=True):
            self.by_key.setdefault(key, []).append((case["text"], answer))

    def are_read(self, family: str, kind: str) -> bool:
        """Whether the calls are read as they are in one of the ways to write them."""
        expected = [[name, arguments] for name, arguments in CALLS[kind]]
        return any(answer.get("calls") == expected for _, answer in self.by_key[family, kind])


@pytest.fixture(scope="module", params=PACKAGES)
def answers(request: pytest.FixtureRequest) -> tuple[str, Answers]:
    return request.param, Answers(request.param)


def test_calls_are_read_alike(answers: tuple[str, Answers]) -> None:
    package, read = answers
    wrong = [
        f"{family}, {kind}: {read.by_key[family, kind]}"
        for family, kind in read.by_key
        if not read.are_read(family, kind) and (family, kind) not in checked.NOT_READ[package]
    ]
    assert not wrong, "\n".join(wrong)


def test_what_is_not_read_is_listed_with_reason(answers: tuple[str, Answers]) -> None:
    package, read = answers
    listed = checked.NOT_READ[package]
    assert [key for key in listed if read.are_read(*key)] == []


@pytest.mark.parametrize("package", [*PACKAGES])
def test_names_with_entities_are_read_alike(package: str) -> None:
    properties = {name: {"type": "string"} for name in NAMES}
    schema = {"type": "object", "properties": properties}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    known = stencilm.tools("kimi_k3", tools, reasoning=False)
    (way, *_) = TEMPLATES["kimi_k3"].ways()
    text = write_calls(way, [("f", NAMES)], {"f": schema}, ids=["0"])
    assert "&amp;amp;amp;" in text
    assert known.parse(text).calls[0].arguments == NAMES
    variable, script, _ = PACKAGES[package]
    if not (python := os.environ.get(variable, "")):
        pytest.skip(f"{variable} names no Python with {package}")
    case = {"parser": "kimi_k3", "markers": [*known.special_tokens], "tools": tools, "text": text}
    run = subprocess.run(
        [python, str(READERS / script)],
        input=json.dumps(case) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    (answer,) = (json.loads(line[1:]) for line in run.stdout.splitlines() if line[:1] == "=")
    assert answer.get("calls") == [["f", NAMES]]
