"""What stands for a file may be the text of a grammar itself; a file of that name goes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from stencilm.cli.app import run

TAG = '{"type": "tag", "begin": "(", "content": {"type": "regex", "pattern": "a"}, "end": ")"}'
WRAPPED = '{"type": "structural_tag", "format": ' + TAG + "}"
TEXTS = [
    (["--schema", '{"const": "a"}'], 'root ::= "\\"a\\""\n'),
    (["--schema", '\n {"const": "a"}'], 'root ::= "\\"a\\""\n'),
    (['{"const": "a"}'], 'root ::= "\\"a\\""\n'),
    (['{"const": "a"}', "--from", "json-schema"], 'root ::= "\\"a\\""\n'),
    (["--structural-tag", TAG], 'root ::= "(a)"\n'),
    ([WRAPPED], 'root ::= "(a)"\n'),
    (["--ebnf", 'root ::= "a"'], 'root ::= "a"\n'),
    (["--gbnf", 'root ::= "a"'], 'root ::= "a"\n'),
    (['root ::= "a.json"'], 'root ::= "a.json"\n'),
    (["--lark", 'start: "a"'], 'root ::= "a"\n'),
    (["--lark", '%import common.INT\n?start.2 : "a"'], 'root ::= "a"\n'),
    (['start: "a"'], 'root ::= "a"\n'),
]
WRONG = [
    (["--schema", '{"type": "integer",}'], "--schema:1:20: this is not JSON"),
    (['{"type": "integer"'], "FILE:1:19: this is not JSON"),
    (['{"type": "integre"}'], "integre"),
    (["--schema", 'start: "a"'], "there is no file"),
    (["--ebnf", '{"const": "a"}'], "there is no file"),
    (['{"const": "a"}', "--from", "lark"], "there is no file"),
    (['{"const": "\udcff"}'], "is not UTF-8 text"),
]


@pytest.mark.parametrize(("given", "printed"), TEXTS, ids=[" ".join(row[0]) for row in TEXTS])
def test_a_grammar_given_as_text(
    given: list[str], printed: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["convert", *given]) == 0
    assert capfd.readouterr().out == printed


@pytest.mark.parametrize(
    ("given", "told"), WRONG, ids=[f"{number}-{row[1]}" for number, row in enumerate(WRONG)]
)
def test_a_text_that_is_refused(
    given: list[str], told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", *given]) in (1, 2)
    said = capfd.readouterr().err
    assert told in said and said.count("\n") == 1


def test_a_file_goes_before_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = '{"const": "a"}'
    Path(name).write_text('{"const": "b"}')
    assert run(["convert", "--schema", name]) == 0
    assert capfd.readouterr().out == 'root ::= "\\"b\\""\n'


def test_a_schema_to_audit_given_as_text(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jsonschema")
    assert run(["audit", "--schemas", '{"const": 1}']) == 0
    assert "clean" in capfd.readouterr().out
    assert run(["audit", "--schemas", '{"const": 1']) == 1
    assert "--schemas:1:12: this is not JSON" in capfd.readouterr().err
