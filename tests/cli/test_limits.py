"""`--limits`: what a message says to raise can be raised in the shell."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")

from stencilm.cli import main

LONG = {"type": "integer", "minimum": 3, "maximum": 4, "description": "x" * (1 << 20)}
COMMANDS = {
    "check": ["check", "long.json"],
    "convert": ["convert", "long.json"],
    "explain": ["explain", "long.json"],
    "mask": ["mask", "long.json"],
    "bench": ["bench", "long.json", "--rounds", "1"],
    "trace": ["trace", "3", "--schema", "long.json"],
    "index": ["index", "--schema", "long.json"],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "long.json").write_text(json.dumps(LONG))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_option_that_the_message_names_helps(name: str, capsys: Any) -> None:
    arguments = COMMANDS[name]
    assert main(arguments) == 1
    found = re.search(r"raise it by (--limits schema_bytes=)NUMBER", capsys.readouterr().err)
    assert found is not None
    option, _, value = found.group(1).partition(" ")
    assert main([*arguments, option, f"{value}2_000_000"]) == 0
    assert main([*arguments, option, f"{value}2__000_000_"]) == 0
    assert main([*arguments, option, "search_steps=9,schema_bytes=2000000"]) == 0
    assert main([*arguments, option, "search_steps=9", option, "schema_bytes=2000000"]) == 0


def test_generate_takes_limits(capsys: Any) -> None:
    pytest.importorskip("transformers")
    arguments = ["generate", "--schema", "long.json", "--prompt", "A number: "]
    assert main(arguments) == 1
    assert "--limits schema_bytes=NUMBER" in capsys.readouterr().err
    for more in ([], ["--json"], ["--strategy", "guide"]):
        assert main([*arguments, "--limits", "schema_bytes=2000000", *more]) == 0
        out = capsys.readouterr().out
        assert (json.loads(out)["value"] if "--json" in more else int(out)) in (3, 4)


def test_the_message_in_json_names_the_option_too(capsys: Any) -> None:
    for command in ("check", "convert"):
        assert main([command, "long.json", "--json"]) == 1
        error = json.loads(capsys.readouterr().out)["error"]
        assert "--limits schema_bytes=NUMBER" in error["message"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("bytes=5", "--limits names 'bytes': give one of schema_bytes,"),
        ("schema_bytes", "write it as schema_bytes=NUMBER"),
        ("schema_bytes=-1", "write it as schema_bytes=NUMBER"),
        ("schema_bytes=many", "write it as schema_bytes=NUMBER"),
        ("schema_bytes=99999999999", "schema_bytes is 99999999999, but must be from 0 to"),
    ],
)
def test_what_is_no_limit_is_wrong_usage(value: str, message: str, capsys: Any) -> None:
    assert main(["check", "long.json", "--limits", value]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("schema_bytes=" + "9" * 5000, "--limits: schema_bytes is beyond 64 bits: write"),
        ("schema_bytes=-" + "9" * 5000, "write it as schema_bytes=NUMBER"),
        ("x" * 5000, "give one of schema_bytes"),
    ],
)
def test_what_is_absurd_is_not_told_in_whole(given: str, told: str, capsys: Any) -> None:
    assert main(["convert", "long.json", "--limits", given]) == 2
    err = capsys.readouterr().err
    assert told in err and len(err) < 500


@pytest.mark.parametrize("option", ["--to", "--from", "--type"])
def test_a_word_without_end_is_cut(option: str, capsys: Any) -> None:
    assert main(["convert", "long.json", option, "9" * 5000]) == 2
    assert len(capsys.readouterr().err) < 800


def test_an_audit_tells_where_a_schema_is_nested_too_deeply(capsys: Any, tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text('{"not":' * 3000 + "{}" + "}" * 3000)
    assert main(["audit", "--schemas", "deep.json"]) == 1
    err = capsys.readouterr().err
    assert "'deep.json' cannot be read as schemas: line 1, column 7002" in err
    assert "name inner parts in $defs" in err
