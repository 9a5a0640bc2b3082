"""What all commands have in common: options for a grammar, exit codes, examples, completion."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")

from stencilm.cli import main
from stencilm.cli.app import _COMMANDS
from stencilm.cli.examples import EXAMPLES
from stencilm.cli.notations import _OPTIONS
from stencilm.generation.trace import Forced, Prompt, Rejected, Sampled, Stopped

ROOT = Path(__file__).parents[2]
TAG = {"type": "structural_tag", "format": {"type": "regex", "pattern": "ab"}}
FILES = {
    "schema": ("a.json", '{"const": "ab"}'),
    "structural-tag": ("tag.json", json.dumps(TAG)),
    "ebnf": ("a.ebnf", 'root ::= "ab"'),
    "gbnf": ("a.gbnf", 'root ::= "ab"'),
    "lark": ("a.lark", 'start: "ab"'),
}
WAYS = {
    **{f"--{name}": [f"--{name}", file] for name, (file, _) in FILES.items()},
    **{file: [file] for file, _ in FILES.values()},
    **{f"--{name} -": [f"--{name}", "-"] for name in FILES},
    "a.regex": ["a.regex"],
    "--regex": ["--regex", "ab"],
    "--type": ["--type", "named_here.py:Word"],
    "--from lark": ["--from", "lark", "a.txt"],
    "--from gbnf -": ["--from", "gbnf", "-"],
    "-": ["-"],
}
"""The ways to name the grammar of one text, `ab`; a schema has it in quotes."""
CALLS = {
    "generate": ["-p", "x"],
    "check": [],
    "convert": [],
    "explain": [],
    "mask": [],
    "trace": None,
    "index": [],
    "bench": ["--rounds", "1"],
}
NOT_WRITTEN = "stencilm: cannot write to standard output: it is closed\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Run:
    monkeypatch.chdir(tmp_path)
    for file, text in FILES.values():
        (tmp_path / file).write_text(text)
    (tmp_path / "a.regex").write_text("ab\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(3)")
    (tmp_path / "a.txt").write_text('start: "ab"')
    (tmp_path / "named_here.py").write_text("from typing import Literal\nWord = Literal['ab']")

    def call(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("command", [name for name in CALLS if name != "generate"])
def test_every_command_takes_every_notation(command: str, way: str, run: Run) -> None:
    given = WAYS[way]
    notation = given[0].removeprefix("--") if given[-1] == "-" else ""
    stdin = {"from": 'root ::= "ab"', "-": '{"const": "ab"}'}.get(notation) or (
        FILES[notation][1] if notation in FILES else ""
    )
    is_schema = "a.json" in given or "schema" in notation or given == ["-"]
    text = '"ab"' if is_schema else "ab"
    more = CALLS[command]
    code, out, err = run(command, *([text] if more is None else more), *given, stdin=stdin)
    assert (code, err) == (0, "")
    assert out


@pytest.mark.parametrize("way", ["--lark", "a.ebnf", "--structural-tag", "--regex", "tag.json"])
def test_generate_takes_every_notation(way: str, run: Run) -> None:
    pytest.importorskip("transformers")
    assert run("generate", "-p", "x", *WAYS[way]) == (0, "ab\n", "")


def test_all_commands_with_a_grammar_have_the_same_options() -> None:
    for command in _COMMANDS:
        parameters = inspect.signature(command).parameters
        if command.__name__ in ("audit", "playground"):
            continue
        assert set(_OPTIONS) <= set(parameters), command.__name__
        for name, (kind, declaration, default) in _OPTIONS.items():
            annotation = parameters[name].annotation
            assert (annotation.__origin__, annotation.__metadata__) == (kind, (declaration,))
            assert parameters[name].default == default


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        # 2: the call is wrong, whatever files hold.
        (["check", "a.json", "--lark", "a.lark"], 2, "not FILE and --lark"),
        (["check"], 2, "not nothing"),
        (["check", "--lark", "a.lark", "--from", "ebnf"], 2, "--from says how FILE is read"),
        (["explain", "-", "--text", "-"], 2, "cannot both read standard input"),
        (["trace", "-", "--ebnf", "-"], 2, "cannot both read standard input"),
        (["check", "--type", "Nothing"], 2, "names no type"),
        (["index", "a.regex", "--max-states", "0"], 2, "max_states is 0, but must be at least 1"),
        (["index", "a.regex", "--max-states", "9" * 30], 2, "max_states is beyond 64 bits"),
        (["audit", "--schemas", "a.json", "--seed", "-1"], 2, "'--seed'"),
        (["audit", "--schemas", "a.json", "-e", "a.py:A", "-e", "a.py:A"], 2, "names one twice"),
        (["check", "--schema", "none", "--schema", "a.json"], 2, "--schema is given 2 times"),
        (["check", "--regex", "a", "--regex", "a"], 2, "--regex is given 2 times: give it once"),
        (["generate", "-p", "x", "--prompt", "y"], 2, "--prompt is given 2 times"),
        (["explain", "a.lark", "-t", "none", "-t", "tiny"], 2, "--tokenizer is given 2 times"),
        (["audit", "--schemas", "none", "--schemas", "a.json"], 2, "--schemas is given 2 times"),
        (["playground", "--port", "0", "--port", "1"], 2, "--port is given 2 times"),
        # 1: what is named is not there, or does not do.
        (["check", "none.lark"], 1, "there is no file"),
        (["check", "--type", "named_here.py:None_"], 1, "has no 'None_'"),
        (["check", "--type", "exits.py:X"], 1, "cannot import 'exits.py': SystemExit: 3"),
        (["check", "--structural-tag", "a.lark"], 1, "a.lark:1:1: this is not JSON"),
        (["check", "a.txt"], 1, "give --from for another notation"),
        (["explain", "a.lark", "--token", "not one token"], 1, "no token spells"),
        (["explain", "a.lark", "--token", "\N{ARABIC-INDIC DIGIT THREE}"], 1, "no token spells"),
        (["mask", "a.lark", "--text", "x"], 1, "cannot follow"),
    ],
)
def test_exit_codes_have_one_rule(arguments: list[str], code: int, words: str, run: Run) -> None:
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert err.count("\n") == 1 and words in err


def test_what_may_be_repeated_is_taken_more_than_once(run: Run) -> None:
    limits = ["--limits", "schema_bytes=2000000", "--limits", "milliseconds=5000"]
    assert run("check", "a.json", "--json", "--json", *limits)[0] == 0
    tokens = ["--token", "a", "--token", "b"]
    assert run("explain", "a.lark", "--text", "ab", *tokens)[0] == 0


@pytest.mark.parametrize("command", ["check", "convert"])
@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("cut.json", b"{", "cut.json:1:2: this is not JSON"),
        ("latin.json", b"\xff", "latin.json is not UTF-8 text"),
        ("none.json", None, "there is no file"),
        ("a.lark", b"start: x", "`x` is used but not defined"),
    ],
)
def test_a_refusal_is_reported_as_json(
    command: str, file: str, content: bytes | None, words: str, run: Run
) -> None:
    if content is not None:
        Path(file).write_bytes(content)
    code, out, err = run(command, file, "--json")
    record = json.loads(out)
    assert (code, record["ok"]) == (1, False)
    assert words in record["error"]["message"] and words in err


# Examples and completion


@pytest.mark.parametrize(
    "call", [call for name, calls in EXAMPLES.items() if name != "playground" for call in calls]
)
def test_the_examples_of_the_help_run(
    call: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    program, *arguments = shlex.split(call)
    if arguments[0] == "generate":
        pytest.importorskip("transformers")
    monkeypatch.chdir(ROOT)
    assert program == "stencilm"
    assert main(arguments) == 0, capsys.readouterr().err


def test_the_help_shows_the_examples(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert set(EXAMPLES) == {command.__name__ for command in _COMMANDS}
    for name, calls in EXAMPLES.items():
        assert main([name, "--help"]) == 0
        out = capsys.readouterr().out
        assert all(call in out for call in calls), out


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("stencilm ge", {"generate"}),
        ("stencilm check --from ", {"json-schema", "gbnf", "lark"}),
        ("stencilm generate --strategy ", {"mask", "guide"}),
        ("stencilm convert --to g", {"gbnf"}),
        ("stencilm check --limits ", {"milliseconds=", "schema_bytes="}),
    ],
)
def test_a_shell_completes(words: str, found: set[str]) -> None:
    environment = os.environ | {
        "_STENCILM_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    command = [sys.executable, "-c", "from stencilm.cli import main; main([])"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert found <= set(done.stdout.split()), done.stderr


# The text while it is written


EVENTS = [
    Prompt(token_ids=(1,), text=b"secret"),
    *(Sampled(token_id=7, text=b"word ", logprob=-0.5, allowed=3) for _ in range(400)),
    Rejected(text=b"no", position=9, token_id=5, logprob=-1.0, reason="no"),
    Forced(token_ids=(3, 4), text=b"end"),
    Stopped(reason="stop", token_id=1, logprob=-0.1, limit=None),
]


def test_a_live_text_has_its_bar_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from stencilm.views.terminal import live

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "12")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    with live(402, terminal) as show:
        for event in EVENTS:
            show(event)
    written = terminal.getvalue()
    assert "secret" not in written and "\x1b[" in written
    # What is left on the screen is the whole text, without a bar.
    assert "writing" not in written.rpartition("word word")[2]
    last = written.rpartition("writing")[2]
    assert last.count("word") == 400 and "end" in last


def test_a_live_text_is_plain_where_no_terminal_reads() -> None:
    from stencilm.views.terminal import live

    stream = io.StringIO()
    with live(402, stream) as show:
        for event in EVENTS:
            show(event)
    assert stream.getvalue() == "word " * 400 + "end\nstop\n"  # without what was removed


@pytest.mark.parametrize("name", ["types", "json", "inspect", "numpy"])
def test_a_file_of_a_type_hides_no_module(name: str, tmp_path: Path, run: Run) -> None:
    (tmp_path / f"{name}.py").write_text(
        "from __future__ import annotations\n"
        "from pydantic import BaseModel\n"
        "class Word(BaseModel):\n    next: Word | None\n"
    )
    module = importlib.import_module(name)
    code, out, _ = run("check", "--type", f"{tmp_path}/{name}.py:Word")
    assert (code, out.splitlines()[0][-1]) == (0, ")")
    assert sys.modules[name] is module


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_last_line_break_of_standard_input_is_no_part_of_a_text(end: str, run: Run) -> None:
    code, out, _ = run("explain", "--regex", "ab", "--text", "-", "--json", stdin=f"ab{end}")
    assert (code, json.loads(out)["status"]) == (0, "complete")
    code, out, _ = run(
        "explain", "-", "--from", "regex", "--text", "ab", "--json", stdin=f"ab{end}"
    )
    assert (code, json.loads(out)["status"]) == (0, "complete")


@pytest.mark.parametrize(
    "call",
    [
        ("explain", "--regex", ".*", "--text", "a\udcff"),
        ("explain", "--regex", ".*", "--token", "a\udcff"),
        ("mask", "--regex", ".*", "--text", "a\udcff"),
        ("trace", "a\udcff", "--regex", ".*"),
        ("bench", "--regex", ".*", "--rounds", "1", "--text", "a\udcff"),
        ("generate", "-p", "a\udcff", "--regex", "a"),
        ("generate", "-p", "x", "--stop", "a\udcff", "--regex", "a"),
    ],
)
def test_bytes_that_are_no_text_are_wrong_usage(call: tuple[str, ...], run: Run) -> None:
    code, out, err = run(*call)
    assert (code, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    ("call", "code", "err"),
    [
        ("check --regex a >&-", 1, NOT_WRITTEN),
        ("check --regex a --json >&-", 1, NOT_WRITTEN),
        ("mask --regex a >&-", 1, NOT_WRITTEN),
        ("check --help >&-", 1, NOT_WRITTEN),
        ("--version >&-", 1, NOT_WRITTEN),
        ("check --regex a >&- 2>&-", 1, ""),
        ("check --regex '(' >&- 2>&-", 1, ""),
        ("check - <&-", 1, "stencilm: standard input is closed, and nothing can be read from it\n"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="a shell of Unix closes the streams")
def test_closed_streams(call: str, code: int, err: str) -> None:
    done = subprocess.run(
        f"{shlex.quote(sys.executable)} -m stencilm {call}", shell=True, capture_output=True
    )
    assert (done.returncode, done.stderr.decode()) == (code, err)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("call", ["check --regex a", "--help", "--version", "check --help"])
def test_a_full_device_is_told(call: str) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "stencilm", *call.split()]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    said = "stencilm: cannot write to standard output: No space left on device\n"
    assert (done.returncode, done.stderr.decode()) == (1, said)


def test_an_interruption_while_commands_are_read_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(arguments: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("stencilm.cli.app.run", interrupted)
    assert main(["check"]) == 130
    assert capsys.readouterr().err == "stencilm: interrupted\n"


def test_an_interrupted_command_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", type("Input", (), {"buffer": Interrupted()})())
    assert main(["check", "-"]) == 130
    assert capsys.readouterr().err == "stencilm: interrupted\n"
