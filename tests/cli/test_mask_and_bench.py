"""`stencilm mask` and `stencilm bench`: what they print, and their exit codes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")

import stencilm
from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo
from stencilm.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: Any, capsys: Any) -> Run:
    """Calls the command line in a folder with two grammars."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n.json").write_text('{"type": "integer", "minimum": 10, "maximum": 99}')
    (tmp_path / "bad.ebnf").write_text('root ::= "a')

    def call(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


class TestMask:
    @pytest.mark.parametrize("text", ["", "a", "ab", "abc"])
    def test_the_allowed_tokens_are_listed(self, run: Run, text: str) -> None:
        info = TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
        matcher = GrammarMatcher(GrammarCompiler(info).compile_regex("(ab)*c"))
        matcher.accept_string(text)
        expected = [token for token in range(info.vocab_size) if matcher.is_allowed(token)]
        code, out, err = run("mask", "--regex", "(ab)*c", "--text", "-", "--json", stdin=text)
        assert (code, err) == (0, "")
        assert json.loads(out) == {"vocab_size": info.vocab_size, "token_ids": expected}
        code, out, _ = run("mask", "--regex", "(ab)*c", "--text", text)
        lines = out.splitlines()
        assert lines[0].startswith(f"{len(expected)} of ")
        assert [int(line.split()[0]) for line in lines[1:]] == expected

    def test_no_more_are_listed_than_asked_for(self, run: Run) -> None:
        _, out, _ = run("mask", "n.json", "--limit", "3")
        lines = out.splitlines()
        assert len(lines) == 5 and lines[-1].startswith("and ")
        _, out, _ = run("mask", "n.json", "--limit", "0")
        assert len(out.splitlines()) == 1

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (["n.json", "--text", "4x"], 1, "up to byte 1; 'x' cannot follow"),
            (["n.json", "--text", "4  x"], 1, "up to byte 1; '  x' cannot follow"),
            (["--regex", "日本", "--text", "日木"], 1, "up to byte 3; '木' cannot follow"),
            (["bad.ebnf"], 1, "line 1, column 10"),
            (["n.json", "--tokenizer", "none"], 1, "'none'"),
            ([], 2, "give one of"),
        ],
    )
    def test_wrong_calls(self, run: Run, arguments: list[str], code: int, words: str) -> None:
        found, out, err = run("mask", *arguments)
        assert (found, out) == (code, "")
        assert words in err


class TestBench:
    def test_as_json(self, run: Run) -> None:
        code, out, err = run("bench", "n.json", "--text", "42", "--rounds", "2", "--json")
        record = json.loads(out)
        assert (code, err) == (0, "")
        assert record["rounds"] == 2 and record["tokens"] >= 1
        assert list(record["microseconds"]) == ["compile", "first_mask", "mask_new", "mask_known"]
        for spread in record["microseconds"].values():
            assert 0 < spread["p50"] <= spread["p99"] <= spread["max"]

    def test_without_a_text_the_shortest_one_is_taken(self, run: Run) -> None:
        code, out, _ = run("bench", "--regex", "", "--rounds", "1")
        assert code == 0
        assert out.startswith("0 tokens, 1 rounds")
        assert len(out.splitlines()) == 6

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (["n.json", "--text", "4x"], 1, "cannot follow"),
            (["n.json", "--rounds", "0"], 2, "rounds"),
            (["bad.ebnf"], 1, "line 1, column 10"),
        ],
    )
    def test_wrong_calls(self, run: Run, arguments: list[str], code: int, words: str) -> None:
        found, out, err = run("bench", *arguments)
        assert (found, out) == (code, "")
        assert words in err
