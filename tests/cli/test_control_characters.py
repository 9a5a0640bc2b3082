"""What a schema, a text or a model says is shown, and obeyed by no terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")

from stencilm.cli import main

ESCAPES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
KEY = "k\x1b[31m\x9b\u202e"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    good = {"type": "object", "properties": {KEY: {"enum": [KEY], "title": KEY}}}
    bad = {"properties": {KEY: {"type": KEY}}}
    (tmp_path / "good.json").write_text(json.dumps(good))
    (tmp_path / "bad.json").write_text(json.dumps(bad))


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "good.json"],
        ["check", "good.json", "--json"],
        ["check", "bad.json"],
        ["check", "bad.json", "--json"],
        ["check", "no\x1b[31mfile.json"],
        ["convert", "good.json", "--json"],
        ["explain", "--regex", "x\x9b[\x1b\x9b]{2}|\u202ey", "--text", ""],
        ["explain", "--regex", "x\x9b[\x1b\x9b]{2}|\u202ey", "--text", "", "--json"],
        ["explain", "--regex", "ab", "--text", "a\x1b[31m"],
        ["trace", "a\x1b[31m", "--regex", "ab", "--no-color"],
        ["trace", "a\x9b[31m", "--regex", "ab", "--json"],
        ["mask", "--regex", "ab", "--text", "a\x1b[31m"],
        ["index", "--regex", "[\x1b\x9b]a"],
        ["index", "--regex", "[\x1b\x9b]a", "--coalesce"],
    ],
)
def test_output_holds_no_control_characters(arguments: list[str], capsys: Any) -> None:
    assert main(arguments) in (0, 1)
    captured = capsys.readouterr()
    assert captured.out or captured.err
    assert not ESCAPES.search(captured.out), captured.out
    assert not ESCAPES.search(captured.err), captured.err


def test_a_result_is_exact_for_programs_and_safe_for_readers(
    capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stencilm.cli.view import print_text

    print_text("a\x1b[31m")
    assert capsys.readouterr().out == "a\x1b[31m\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_text("a\x1b[31m")
    assert capsys.readouterr().out == "a\\x1b[31m\n"
