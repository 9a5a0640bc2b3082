"""`stencilm convert` and `stencilm explain`: what they print, and their exit codes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")

from stencilm import Grammar
from stencilm.cli import main

Run = Callable[..., tuple[int, str, str]]
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "triggered_tags",
        "triggers": ["<f="],
        "tags": [
            {
                "begin": "<f=a>",
                "content": {"type": "json_schema", "json_schema": True},
                "end": "</f>",
            }
        ],
    },
}
NUMBER = {"type": "integer", "minimum": 10, "maximum": 99}
LEGACY = {
    "type": "structural_tag",
    "structures": [{"begin": "<f=a>", "schema": {"type": "integer"}, "end": "</f>"}],
    "triggers": ["<f="],
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: Any, capsys: Any) -> Run:
    """Calls the command line in a folder with a file of every notation."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n.json").write_text(json.dumps(NUMBER))
    (tmp_path / "tag.json").write_text(json.dumps(TAG))
    (tmp_path / "old.json").write_text(json.dumps(LEGACY))
    untyped = {key: value for key, value in LEGACY.items() if key != "type"}
    (tmp_path / "older.json").write_text(json.dumps(untyped))
    (tmp_path / "n.ebnf").write_text('root ::= "a" root | "b"')
    (tmp_path / "n.lark").write_text('start: "yes" | "no"')
    (tmp_path / "n.regex").write_text("[0-9]{2}\n")
    (tmp_path / "bad.ebnf").write_text('root ::= "a')
    (tmp_path / "named_types.py").write_text("from typing import Literal\nA = Literal['x', 'y']")

    def call(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


class TestConvert:
    @pytest.mark.parametrize(
        ("arguments", "grammar"),
        [
            (["n.json"], Grammar.from_json_schema(NUMBER)),
            (["tag.json"], Grammar.from_structural_tag(TAG)),
            (["older.json"], Grammar.from_structural_tag(LEGACY)),
            (["n.ebnf"], Grammar.from_ebnf('root ::= "a" root | "b"')),
            (["n.lark"], Grammar.from_lark('start: "yes" | "no"')),
            (["n.regex"], Grammar.from_regex("[0-9]{2}")),
            (["--regex", "[0-9]{2}"], Grammar.from_regex("[0-9]{2}")),
            (["--type", "named_types:A"], Grammar.from_regex("x|y")),
        ],
    )  # fmt: skip
    def test_anything_becomes_ebnf(self, run: Run, arguments: list[str], grammar: Grammar) -> None:
        code, out, err = run("convert", *arguments)
        assert (code, err) == (0, "")
        assert out.removesuffix("\n") == str(grammar).removesuffix("\n")
        assert str(Grammar.from_ebnf(out)) == str(grammar)

    def test_standard_input_needs_a_notation(self, run: Run) -> None:
        code, out, _ = run("convert", "-", "--from", "lark", stdin='start: "a"')
        assert (code, out) == (0, 'root ::= "a"\n')
        code, out, err = run("convert", "-", stdin='start: "a"')
        assert (code, out) == (1, "")
        assert "standard input:1:1: this is not JSON" in err and "--from" in err

    @pytest.mark.parametrize(
        "name", ["n.json", "tag.json", "old.json", "n.ebnf", "n.lark", "n.regex"]
    )
    def test_a_structural_tag_means_the_same(self, run: Run, name: str) -> None:
        code, out, err = run("convert", name, "--to", "structural-tag")
        assert (code, err) == (0, "")
        tag = json.loads(out)
        assert tag["type"] == "structural_tag" and "format" in tag
        _, ebnf, _ = run("convert", name)
        assert str(Grammar.from_structural_tag(tag)) == str(Grammar.from_ebnf(ebnf))

    def test_a_type_is_a_structural_tag_too(self, run: Run) -> None:
        code, out, err = run("convert", "--type", "named_types:A", "--to", "structural-tag")
        assert (code, err) == (0, "")
        assert str(Grammar.from_structural_tag(out)) == str(Grammar.from_regex("x|y"))

    def test_as_json(self, run: Run) -> None:
        code, out, _ = run("convert", "n.regex", "--json")
        assert code == 0
        assert json.loads(out) == {
            "ok": True, "from": "regex", "to": "ebnf", "text": str(Grammar.from_regex("[0-9]{2}")),
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (["n.ebnf", "--to", "gbnf"], 'root ::= "a" root | "b"\n'),
            (["n.lark", "--to", "gbnf"], 'root ::= "no" | "yes"\n'),
            (["n.lark", "--to", "regex"], "no|yes\n"),
            (["n.regex", "--to", "lark"], "start: /[0-9]/ ~ 2\n"),
            (["n.regex", "--to", "regex"], "[0-9]{2}\n"),
            (["n.json", "--to", "json-schema"], json.dumps(NUMBER) + "\n"),
            (["--type", "named_types:A", "--to", "gbnf"], "root ::= [xy]\n"),
        ],
    )
    def test_other_notations(self, run: Run, arguments: list[str], text: str) -> None:
        code, out, err = run("convert", *arguments)
        assert (code, out, err) == (0, text, "")

    def test_what_a_notation_cannot_say(self, run: Run) -> None:
        for arguments in (["n.ebnf", "--to", "regex"], ["n.regex", "--to", "json-schema"]):
            code, out, err = run("convert", *arguments)
            assert (code, out) == (1, "") and err.startswith("stencilm: the grammar ")

    def test_a_refusal(self, run: Run) -> None:
        code, out, err = run("convert", "bad.ebnf", "--json")
        assert code == 1
        assert json.loads(out)["error"]["place"] == "line 1, column 10"
        assert "line 1, column 10" in err

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (["n.json", "--to", "bnf"], 2),
            (["n.json", "--from", "bnf"], 2),
            (["n.json", "--regex", "a"], 2),
            ([], 2),
            (["none.json"], 1),
        ],
    )
    def test_wrong_calls(self, run: Run, arguments: list[str], code: int) -> None:
        found, out, err = run("convert", *arguments)
        assert (found, out) == (code, "")
        assert err.startswith("stencilm: ")


class TestExplain:
    def test_a_text_that_goes_on(self, run: Run) -> None:
        code, out, err = run("explain", "n.json", "--text", "4", "--json", "--token", "x")
        record = json.loads(out)
        assert (code, err) == (0, "")
        assert (record["status"], record["may_end"], record["rest"]) == ("viable", False, "")
        assert record["shortest_completion"] is not None
        assert len(record["shortest_completion"]) == 1
        [token] = record["tokens"]
        assert token["text"] == "x" and not token["allowed"] and token["why"]
        assert 0 < record["allowed_tokens"] < record["vocab_size"]

    def test_a_text_that_does_not_fit(self, run: Run) -> None:
        code, out, err = run("explain", "--regex", "abc|abd", "--text", "abx", "--json")
        record = json.loads(out)
        assert (code, err) == (1, "")
        assert (record["status"], record["valid_text"], record["rest"]) == ("dead", "ab", "x")
        assert record["next"]

    def test_a_text_does_not_fit_from_a_character_on(self, run: Run) -> None:
        """All but the last byte of 木 begins 本, but half a character is no text."""
        code, out, _ = run("explain", "--regex", "日本", "--text", "日木", "--json")
        record = json.loads(out)
        assert code == 1
        assert (record["status"], record["valid_text"], record["rest"]) == ("dead", "日", "木")
        assert record["next"] == [{"text": "本"}]
        assert (record["forced"], record["shortest_completion"]) == ("本", "本")

    def test_forced_text(self, run: Run) -> None:
        code, out, _ = run("explain", "--regex", "abcd", "--text", "a")
        assert code == 0
        assert "must go on with: 'bcd'" in out

    def test_for_people(self, run: Run) -> None:
        code, out, _ = run("explain", "tag.json", "--text", "-", "--token", "0", stdin="Hi <f=a>")
        assert code == 0
        assert out.splitlines()[0] == "the text fits so far, and must go on"
        assert "token 0 " in out

    def test_a_finished_text(self, run: Run) -> None:
        code, out, _ = run("explain", "n.lark", "--text", "yes")
        assert (code, out.splitlines()[0]) == (0, "the text fits, and may end here")

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (["n.json", "--tokenizer", "none"], 1),
            (["n.json", "--token", "not one token"], 1),
            (["bad.ebnf"], 1),
            ([], 2),
        ],
    )
    def test_wrong_calls(self, run: Run, arguments: list[str], code: int) -> None:
        found, _, err = run("explain", *arguments)
        assert found == code
        assert err.startswith("stencilm: ")
