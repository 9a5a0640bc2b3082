"""The commands that show a grammar over tokens: `index` and `trace`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stencilm import TokenIndex, TokenizerInfo

REGEX = r'\{"name":"(John|Paul)"\}'
TINY = Path(__file__).resolve().parents[2] / "python" / "stencilm" / "tiny"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    from stencilm.cli.app import run as run_app

    code = run_app(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_an_index_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "index", "--regex", "a[bc]?")
    assert (code, err) == (0, "")
    assert out.startswith("3 states (2 final), ")
    assert "'a': 1" in out and "*" in out


@pytest.mark.parametrize(("form", "start"), [("dot", "digraph index {"), ("saved", "{")])
def test_an_index_is_drawn_and_kept(
    capsys: pytest.CaptureFixture[str], form: str, start: str
) -> None:
    code, out, _ = run(capsys, "index", "--regex", REGEX, "--format", form)
    assert code == 0 and out.startswith(start)
    if form == "saved":
        info = TokenizerInfo.from_file(TINY)
        assert TokenIndex.deserialize_json(out.strip(), info) == TokenIndex.from_regex(REGEX, info)


def test_an_index_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads(run(capsys, "index", "--regex", "ab", "--format", "json")[1])
    assert (record["initial_state"], len(record["table"])) == (0, record["states"])
    out = run(capsys, "index", "--regex", REGEX, "--format", "json", "--coalesce")[1]
    stretch: dict[str, Any] = json.loads(out)["stretches"][0]
    assert (stretch["state"], stretch["text"]) == (0, '{"name":"')
    assert run(capsys, "index", "--regex", REGEX, "--coalesce")[1].startswith("   0 -> ")


def test_a_large_index_is_not_listed(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "index", "--regex", "[a-z]{80}")[1]
    assert "are not listed" in out and len(out.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["index"], 2, "give one of"),
        (["index", "--regex", "a", "--ebnf", "x"], 2, "give one of"),
        (["index", "--regex", "a", "--max-states", "0"], 2, "at least 1"),
        (["index", "--regex", "a{90}", "--max-states", "9"], 1, "max_states"),
        (["index", "--regex", "a", "--format", "dot", "--coalesce"], 2, "--coalesce"),
        (["index", "--regex", "a", "-t", "/no/such/folder"], 1, "no tokenizer"),
        (["trace", "x"], 2, "give one of"),
        (["trace", "-", "--schema", "-"], 2, "standard input"),
    ],
)
def test_what_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, word: str
) -> None:
    got, out, err = run(capsys, *arguments)
    assert (got, out) == (code, "")
    assert word in err


def test_a_text_is_traced(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "trace", '{"name":"Paul"}', "--regex", REGEX)
    lines = out.splitlines()
    assert code == 0
    assert {line.split()[0] for line in lines[:-1]} == {"sampled", "forced"}
    assert lines[-1].startswith("complete; ")
    assert "\x1b[" not in out
    assert "\x1b[" in run(capsys, "trace", '{"name":"Paul"}', "--regex", REGEX, "--color")[1]


def test_a_text_that_does_not_fit_is_traced_up_to_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = run(capsys, "trace", '{"name":"Ringo"}', "--regex", REGEX, "--json")
    record = json.loads(out)
    assert (code, record["status"]) == (1, "refused")
    assert record["steps"][-1]["kind"] == "refused"
    assert "cannot come next" in record["steps"][-1]["reason"]
    code, out, _ = run(capsys, "trace", '{"name":"P', "--regex", REGEX)
    assert code == 1
    assert "unfinished: 'aul\"}' must follow" in out
    code, out, _ = run(capsys, "trace", "abc", "--regex", "ab")
    assert code == 1 and out.splitlines()[-1].startswith("refused")


def test_other_notations(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    grammar = tmp_path / "grammar.ebnf"
    grammar.write_text('root ::= "(" root ")" | "x"')
    assert run(capsys, "trace", "((x))", "--ebnf", str(grammar))[0] == 0
    schema = tmp_path / "schema.json"
    schema.write_text('{"enum": ["a", "b"]}')
    assert run(capsys, "trace", '"b"', "--schema", str(schema))[0] == 0
    assert run(capsys, "index", "--type", "bool", "--tokenizer", str(TINY))[0] == 0
