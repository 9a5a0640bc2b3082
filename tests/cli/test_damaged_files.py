"""Files and options that are damaged, hostile or no files: an exit code and one line, no traceback.

Commands run in this process, as `run` is what the program calls.
"""

from __future__ import annotations

import os
import random
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import damage
from stencilm.cli import inputs
from stencilm.cli.app import run

TEXTS: dict[str, str] = {
    "a.json": '{"type": "object", "properties": {"a": {"enum": [1, "x"]}}, "required": ["a"]}',
    "a.ebnf": 'root ::= "a" [0-9]{1,3} other | "b"\nother ::= "c"*\n',
    "a.gbnf": 'root ::= "a" [0-9]+\n',
    "a.lark": 'start: "a" NUMBER\nNUMBER: /[0-9]+/\n',
    "a.regex": "[a-z]{1,3}(b|c)+",
}
TAG = '{"type": "tag", "begin": "(", "content": {"type": "regex", "pattern": "a"}, "end": ")"}'
OPTIONS = ["--schema", "--ebnf", "--gbnf", "--lark", "--structural-tag"]
BYTES: dict[str, bytes] = {
    "empty": b"",
    "zeros": b"\x00" * 5000,
    "binary": bytes(range(256)) * 20,
    "nul": b'{"type": "str\x00ing"}',
    "mark": b"\xef\xbb\xbf" + b'{"type": "string"}',
    "utf-16": '{"type": "string"}'.encode("utf-16"),
    "utf-32": '{"type": "string"}'.encode("utf-32"),
    "latin-1": '{"const": "é"}'.encode("latin-1"),
    "surrogate": b'{"const": "\xed\xa0\x80"}',
    "escaped surrogate": rb'{"const": "\ud800"}',
    "deep lists": b"[" * 200_000,
    "deep schema": b'{"items":' * 50_000 + b"true" + b"}" * 50_000,
    "deep groups": b"root ::= " + b"(" * 50_000 + b'"a"' + b")" * 50_000,
    "one long line": b"a" * 3_000_000,
    "many lines": b"\n" * 1_500_000,
    "a long number": b'{"minimum": ' + b"9" * 50_000 + b"}",
    "a large exponent": b'{"maximum": 1e999999999}',
    "no end": b'{"type": "str',
}


def told(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code, and what was said of it: at most one line, and no traceback."""
    capfd.readouterr()
    code = run(arguments)
    said = capfd.readouterr().err
    assert code in (0, 1, 2), (arguments, code)
    assert "Traceback" not in said and "Error:" not in said.partition(":")[0]
    assert said.count("\n") <= 1 or code == 0, said
    assert code == 0 or said.strip() or code == 1, arguments
    assert len(said) < 4_000, said[:500]
    return code, said


@pytest.mark.parametrize("kind", BYTES)
def test_files_of_any_bytes(kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "grammar"
    file.write_bytes(BYTES[kind])
    for option in OPTIONS:
        told(["check", option, str(file), "--limits", "milliseconds=500"], capfd)
    told(["explain", "x", "--schema", str(file), "--limits", "milliseconds=500"], capfd)
    told(["mask", "x", "--schema", str(file), "-t", str(file)], capfd)
    told(["check", str(file)], capfd)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("seed", range(12))
def test_damaged_grammars(
    name: str, seed: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    file.write_bytes(damage.damaged_bytes(TEXTS[name].encode(), random.Random(seed)))
    told(["check", str(file), "--limits", "milliseconds=1000"], capfd)
    told(["convert", str(file), "--to", "gbnf", "--limits", "milliseconds=1000"], capfd)


@pytest.mark.parametrize("option", [*OPTIONS, "FILE", "--tokenizer"])
def test_what_is_no_file(option: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "nothing")
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    folder = tmp_path / "folder.json"
    folder.mkdir()
    names = [str(link), str(loop), str(folder), str(tmp_path / "none.json"), "", "\udcff.json"]
    names += ["a\x00b.json", "x" * 5000 + ".json", f"{folder}/x/y.json"]
    for name in names:
        given = [name] if option == "FILE" else [option, name]
        if option == "--tokenizer":
            file = tmp_path / "a.regex"
            file.write_text("a")
            given = [str(file), *given]
        code, said = told(
            [*(["mask", ""] if option == "--tokenizer" else ["check"]), *given], capfd
        )
        assert code and said.startswith("stencilm: "), (name, said)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_pipes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    code, said = told(["check", str(pipe)], capfd)
    assert code == 1 and "nobody writes into the pipe" in said
    opened = threading.Event()

    def write() -> None:
        with pipe.open("wb", buffering=0) as stream:
            opened.set()
            stream.write(b'{"type": ')
            stream.write(b'"integer"}')

    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # lets the writer begin
    writer = threading.Thread(target=write)
    writer.start()
    opened.wait(10)
    assert told(["check", str(pipe)], capfd) == (0, "")
    os.close(reader)
    writer.join(10)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads it all")
def test_files_that_may_not_be_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.json"
    file.write_text("{}")
    file.chmod(stat.S_IWUSR)
    assert told(["check", str(file)], capfd)[0] == 1


def test_files_without_end(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "MAX_BYTES", 1 << 16)
    file = tmp_path / "a.json"
    file.write_bytes(b" " * ((1 << 16) + 1))
    code, said = told(["check", str(file)], capfd)
    assert code == 1 and "has more than 65536 bytes" in said
    if Path("/dev/zero").exists():
        assert "has more than 65536 bytes" in told(["check", "--schema", "/dev/zero"], capfd)[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "\udcff"],
        ["check", "--schema", "\udcff"],
        ["check", "--type", "\udcff"],
        ["check", "--type", "a\x00:b"],
        ["check", "--regex", "\udcff"],
        ["check", "--from", "\udcff", "a"],
        ["explain", "\udcff", "--regex", "a"],
        ["mask", "\udcff", "--regex", "a"],
        ["trace", "\udcff", "--regex", "a"],
        ["check", "--regex", "a", "--limits", "\udcff"],
        ["check", "--regex", "a", "--limits", "milliseconds=\udcff"],
        ["generate", "\udcff", "--regex", "a"],
        ["audit", "--schemas", "\udcff"],
        ["audit", "--schemas", "/dev/null"],
        ["generate", "x", "--regex", "a", "--max-tokens", "99999999999999999999999"],
        ["generate", "x", "--regex", "a", "--max-tokens", "2.5"],
        ["generate", "x", "--regex", "a", "--temperature", "nan"],
        ["generate", "x", "--regex", "a", "--html", "/"],
        ["\udcff"],
    ],
    ids=ascii,
)
def test_arguments_that_are_no_texts(
    arguments: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert told(arguments, capfd)[0] in (1, 2)


def test_the_program_itself(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"\xff\xfe")
    made = subprocess.run(
        [sys.executable, "-m", "stencilm", "check", str(file)], capture_output=True, timeout=60
    )
    assert made.returncode == 1 and b"is not UTF-8 text" in made.stderr
    assert b"Traceback" not in made.stderr
