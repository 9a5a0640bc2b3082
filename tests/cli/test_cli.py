"""The command line: what it prints, where it prints it, and its exit codes."""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")

from stencilm.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
NUMBER = '{"type": "integer", "title": "A number", "minimum": 10, "maximum": 99}'
PYTHON = """
from dataclasses import dataclass
from typing import Literal

@dataclass
class Light:
    colour: Literal["red", "green"]

class Outer:
    Inner = Literal["a", "b"]

class Broken:
    x: "no such type"
"""
MODELS = """
from typing import Literal
from pydantic import BaseModel, ConfigDict, Field, field_serializer

class Named(BaseModel):
    colour: Literal["red", "green"] = Field(alias="theColour")

class Unwritable(BaseModel):
    x: Literal[1, 2]

    @field_serializer("x")
    def of_x(self, x: int) -> str:
        return {1: "one"}[-x]

class Hooked:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> object:
        raise KeyError("x")

def said(schema: dict) -> None:
    raise KeyError("y")

class Said(BaseModel):
    model_config = ConfigDict(json_schema_extra=said)

class Divides(BaseModel):
    x: Literal[1, 2]

    def model_post_init(self, context: object) -> None:
        1 / 0
"""

Run = Callable[..., "Outcome"]


class Outcome:
    """What one call of the command line did."""

    def __init__(self, exit_code: int, captured: Any) -> None:
        self.exit_code = exit_code
        self.out: str = captured.out
        self.err: str = captured.err

    @property
    def sentence(self) -> str:
        """The one line on standard error, without the program's name."""
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("stencilm: ")
        return self.err.removeprefix("stencilm: ").rstrip("\n")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: Any, capsys: Any) -> Run:
    """Calls the command line in a folder with a few files, with a text as standard input."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    (tmp_path / "number.json").write_text(NUMBER)
    (tmp_path / "types_here.py").write_text(PYTHON)
    (tmp_path / "models_here.py").write_text(MODELS)
    (tmp_path / "cut.json").write_text('{"type": "object",\n "properties": ')
    (tmp_path / "bytes.json").write_bytes(b'{"title": "\xff"}')
    (tmp_path / "raises.py").write_text("1 / 0")

    def call(*arguments: str, stdin: str = "") -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        return Outcome(main(arguments), capsys.readouterr())

    return call


class TestGenerate:
    def test_text_that_fits_a_schema_goes_to_standard_output(self, run: Run) -> None:
        done = run("generate", "--schema", "number.json", "--prompt", "A number: ")
        assert (done.exit_code, done.err) == (0, "")
        assert 10 <= json.loads(done.out) <= 99

    def test_the_example_schema_is_finished(self, run: Run) -> None:
        schema = str(EXAMPLES / "person.schema.json")
        done = run("generate", "--schema", schema, "--prompt", "Describe a person as JSON.\n")
        assert done.exit_code == 0, done.err
        assert set(json.loads(done.out)) == {"name", "age", "job", "address", "hobbies"}

    def test_the_layout_and_the_reasoning(self, run: Run) -> None:
        schema = ["--schema", str(EXAMPLES / "person.schema.json")]
        asked = ["generate", *schema, "--prompt", "Describe a person as JSON.\n"]
        layout = ["--compact", "--escapes", "minimal"]
        done = run(*asked, *layout, "--reasoning", "8", "--json")
        assert done.exit_code == 0, done.err
        record = json.loads(done.out)
        value = json.loads(record["text"])
        compact = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        assert record["text"] == compact
        assert record["reasoning"] is not None and record["stats"]["reasoning_tokens"] <= 8
        for wrong, says in (
            (["--compact", "--indent", "2"], "exclude each other"),
            (["--escapes", "few"], "escapes is 'few'"),
            (["--reasoning", "maybe"], "reasoning is 'maybe'"),
        ):
            done = run(*asked, *wrong)
            assert done.exit_code == 2
            assert says in done.sentence

    def test_a_text_is_whole_within_its_tokens_or_cut(self, run: Run) -> None:
        schema = ["--schema", str(EXAMPLES / "person.schema.json"), "--max-whitespace", "2"]
        asked = ["generate", *schema, "--prompt", "Describe a person as JSON.\n", "--json"]
        whole = json.loads(run(*asked, "--max-tokens", "60", "--finish", "valid").out)
        assert set(whole["value"]) == {"name", "age", "job", "address", "hobbies"}
        assert whole["stats"]["tokens"] <= 60 and "   " not in whole["text"]
        done = run(*asked, "--max-tokens", "20", "--finish", "cut")
        cut = json.loads(done.out)
        assert (done.exit_code, cut["value"], cut["finish_reason"]) == (1, None, "length")
        done = run(*asked, "--finish", "all")
        assert done.exit_code == 2 and "finish is 'all'" in done.sentence

    @pytest.mark.parametrize(
        ("arguments", "texts"),
        [
            (["--regex", "yes|no"], {"yes", "no"}),
            (["--type", "bool"], {"true", "false"}),
            (["--type", "types_here:Outer.Inner"], {"a", "b"}),
            (["--type", "types_here.py:Outer.Inner"], {"a", "b"}),
        ],
    )
    def test_every_notation(self, run: Run, arguments: list[str], texts: set[str]) -> None:
        done = run("generate", *arguments, "--prompt", "Well?")
        assert (done.exit_code, done.err) == (0, "")
        assert done.out.strip() in texts

    def test_free_text_without_a_notation(self, run: Run) -> None:
        done = run("generate", "--prompt", "Once", "--max-tokens", "5")
        assert (done.exit_code, done.err) == (0, "")
        assert done.out.endswith("\n")

    def test_the_result_as_json(self, run: Run) -> None:
        done = run("generate", "--type", "types_here:Light", "--prompt", "Light: ", "--json")
        record = json.loads(done.out)
        assert done.exit_code == 0
        assert record["value"] == json.loads(record["text"])
        assert (record["finish_reason"], record["error"]) == ("stop", None)
        assert record["stats"]["tokens"] == len(record["token_ids"])
        assert "trace" not in record

    @pytest.mark.parametrize("strategy", ["mask", "guide"])
    def test_a_value_has_the_names_that_the_text_has(self, run: Run, strategy: str) -> None:
        call = ["generate", "--type", "models_here.py:Named", "-p", "Light: ", "--json"]
        done = run(*call, "--strategy", strategy)
        record = json.loads(done.out)
        assert (done.exit_code, done.err) == (0, "")
        assert [*record["value"]] == ["theColour"]
        assert record["value"] == json.loads(record.get("text") or record["response"])

    @pytest.mark.parametrize("strategy", ["mask", "guide"])
    def test_a_value_that_its_type_cannot_write(self, run: Run, strategy: str) -> None:
        call = ["generate", "--type", "models_here.py:Unwritable", "-p", "x", "--json"]
        done = run(*call, "--strategy", strategy)
        record = json.loads(done.out)
        assert done.exit_code == 1 and record["value"] is None
        assert record["error"].startswith("the value cannot be written as JSON by its type: ")
        assert done.sentence == record["error"]

    @pytest.mark.parametrize("strategy", ["mask", "guide"])
    def test_what_the_code_of_a_type_raises_is_told(self, run: Run, strategy: str) -> None:
        call = ["generate", "--type", "models_here.py:Divides", "-p", "x"]
        done = run(*call, "--strategy", strategy)
        assert (done.exit_code, done.out) == (1, "")
        told, _, text = done.sentence.partition("; the generated text is ")
        assert told == (
            "models_here.py:Divides cannot read the text, because its code raises "
            "ZeroDivisionError: division by zero"
        )
        assert json.loads(ast.literal_eval(text))["x"] in (1, 2)

    def test_the_trace_in_the_json(self, run: Run) -> None:
        done = run("generate", "--regex", "ab", "--prompt", "x", "--json", "--trace")
        events = json.loads(done.out)["trace"]
        assert events[0]["event"] == "prompt"
        assert events[-1]["event"] == "stopped"
        written = "".join(event["text"] for event in events if event["event"] == "forced")
        assert written == "ab"

    def test_the_trace_on_standard_error(self, run: Run) -> None:
        done = run("generate", "--regex", "ab", "--prompt", "x", "--trace")
        assert done.out == "ab\n"
        assert done.err.startswith("prompt")
        assert "stopped  stop" in done.err

    def test_a_cut_text_is_a_failure_that_says_the_way_out(self, run: Run) -> None:
        arguments = ("generate", "--regex", "[a-z]{90}", "--prompt", "x", "--max-tokens", "3")
        done = run(*arguments)
        assert (done.exit_code, done.out) == (1, "")
        assert "raise max_tokens" in done.sentence
        record = json.loads(run(*arguments, "--json").out)
        assert (record["finish_reason"], record["value"]) == ("length", None)
        assert record["text"] != ""
        assert "raise max_tokens" in record["error"]

    def test_the_prompt_and_the_schema_may_come_from_standard_input(self, run: Run) -> None:
        first = run("generate", "--regex", "[a-z]{5}", "--prompt", "Hello")
        second = run("generate", "--regex", "[a-z]{5}", "--prompt", "-", stdin="Hello\n")
        assert first.out == second.out
        third = run("generate", "--schema", "-", "--prompt", "x", stdin='{"const": "a"}')
        assert third.out == '"a"\n'

    def test_the_same_seed_gives_the_same_text(self, run: Run) -> None:
        def text(seed: int) -> str:
            arguments = ("--temperature", "1.5", "--seed", str(seed), "--regex", "[a-z]{12}")
            return run("generate", *arguments, "--prompt", "x").out

        assert text(1) == text(1)
        assert len({text(seed) for seed in range(4)}) > 1


class TestCheck:
    def test_a_schema_is_reported_keyword_by_keyword(self, run: Run) -> None:
        done = run("check", "number.json")
        assert (done.exit_code, done.err) == (0, "")
        assert done.out.startswith("number.json: accepted")
        assert any(line.split()[:1] == ["enforced"] and "minimum" in line for line in lines(done))
        assert any(line.split()[:1] == ["annotation"] and "title" in line for line in lines(done))

    def test_the_report_as_json(self, run: Run) -> None:
        record = json.loads(run("check", "number.json", "--json").out)
        assert record["ok"] is True
        assert {entry["keyword"] for entry in record["enforced"]} >= {"minimum", "maximum"}
        assert [entry["keyword"] for entry in record["annotations"]] == ["title"]
        assert record["relaxed"] == []

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--schema", "number.json"],
            ["-"],
            ["--regex", "[0-9]{3}-[a-z]+"],
            ["--type", "types_here:Light"],
            ["--type", "int"],
        ],
    )
    def test_every_input(self, run: Run, arguments: list[str]) -> None:
        done = run("check", *arguments, stdin=NUMBER)
        assert (done.exit_code, done.err) == (0, "")
        assert "accepted" in done.out

    def test_a_refusal_as_json_names_the_place(self, run: Run) -> None:
        schema = '{"type": "integer", "minimum": 5, "maximum": 1}'
        done = run("check", "-", "--json", stdin=schema)
        record = json.loads(done.out)
        assert (done.exit_code, record["ok"]) == (1, False)
        assert record["error"]["kind"] == "Unsatisfiable"
        assert record["error"]["place"].startswith("#")
        assert record["error"]["message"] == done.sentence


WRONG_INPUTS = [
    (["check", "missing.json"], "", 1, "there is no file 'missing.json'"),
    (["generate", "--schema", "missing.json", "-p", "x"], "", 1, "no file 'missing.json'"),
    (["check", "."], "", 1, "cannot read '.'"),
    (["generate", "--regex", "a", "-p", "x", "--html", "no/x.html"], "", 1, "no/x.html': No such"),
    (["mask", "--regex", "a", "--tokenizer", ""], "", 1, "no tokenizer file or folder ''"),
    (["check", "cut.json"], "", 1, "cut.json:2:16: this is not JSON"),
    (["generate", "--schema", "cut.json", "-p", "x"], "", 1, "cut.json:2:16: this is not JSON"),
    (["check", "-"], "", 1, "standard input:1:1: this is not JSON"),
    (["check", "bytes.json"], "", 1, "bytes.json is not UTF-8 text: byte 11"),
    (["check", "-"], '{"type": "integre"}', 1, "integre"),
    (["check", "-"], '{"$ref": "https://example.com/x.json"}', 1, "https://example.com/x.json"),
    (["check", "-"], '{"type": "string", "pattern": "(a)\\\\1"}', 1, "pattern"),
    (["check", "-"], '{"type": "integer", "minimum": 3, "maximum": 1}', 1, "maximum"),
    (["generate", "--schema", "-", "-p", "x"], "false", 1, "false"),
    (["check", "--regex", "[^\\s\\S]"], "", 1, "no text matches"),
    (["generate", "--regex", "[^\\s\\S]", "-p", "x"], "", 1, "no text matches"),
    (["check", "--regex", "(abc"], "", 1, "never closed"),
    (["check", "--regex", "(a)\\1"], "", 1, "\\1"),
    (["generate", "-p", "x", "--model", "./nowhere"], "", 1, "no model folder './nowhere'"),
    (["generate", "-p", "x", "--model", "no-such/model"], "", 1, "'no-such/model'"),
    (["check", "--type", "types_here:Nothing"], "", 1, "'types_here' has no 'Nothing'"),
    (["check", "--type", "nowhere_to_find:X"], "", 1, "cannot import 'nowhere_to_find'"),
    (["check", "--type", "raises.py:X"], "", 1, "ZeroDivisionError"),
    (["check", "--type", "models_here.py:Hooked"], "", 1, "is not an output type: KeyError: 'x'"),
    (["check", "--type", "models_here.py:Said"], "", 1, "Said has no JSON form: KeyError: 'y'"),
    (["generate", "-p", "x", "--regex", "a", "--reasoning", "9" * 5000], "", 2, "reasoning is"),
    (["explain", "--regex", "a", "--token", "9" * 5000], "", 1, "no token spells '9999"),
    (["check", "--regex", "a", "--limits", "schema_bytes=1__x"], "", 2, "schema_bytes=NUMBER"),
    (["check", "--regex", "a", "--limits", "schema_bytes=" + "9" * 5000], "", 2, "=NUMBER"),
    (["check", "--type", "absent.py:X"], "", 1, "there is no file 'absent.py'"),
    (["check", "--type", "Nothing"], "", 2, "'Nothing' names no type"),
    (["check"], "", 2, "--gbnf and --lark, not nothing"),
    (["check", "number.json", "--regex", "a"], "", 2, "not FILE and --regex"),
    (["generate", "--regex", "a", "--type", "int", "-p", "x"], "", 2, "not --type and --regex"),
    (["generate", "--schema", "-", "--prompt", "-"], "", 2, "cannot both read standard input"),
    (["generate", "--regex", "a"], "", 2, "--prompt"),
    (["generate", "-p", "x", "--temperature", "-1"], "", 2, "temperature is -1.0"),
    (["generate", "-p", "x", "--temperature", "hot"], "", 2, "--temperature"),
    (["generate", "-p", "x", "--top-p", "0"], "", 2, "top_p is 0.0"),
    (["generate", "-p", "x", "--top-k", "0"], "", 2, "top_k is 0"),
    (["generate", "-p", "x", "--max-tokens", "0"], "", 2, "max_tokens is 0"),
    (["generate", "-p", "x", "--colour", "red"], "", 2, "--colour"),
    (["generat"], "", 2, "generat"),
]


@pytest.mark.parametrize(
    ("arguments", "stdin", "exit_code", "words"),
    WRONG_INPUTS,
    ids=[f"{number}-{' '.join(row[0])}" for number, row in enumerate(WRONG_INPUTS)],
)
def test_wrong_inputs_end_with_one_sentence(
    run: Run, arguments: list[str], stdin: str, exit_code: int, words: str
) -> None:
    done = run(*arguments, stdin=stdin)
    assert words in done.sentence
    assert (done.exit_code, done.out) == (exit_code, "")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["generate", "--help"], ["check", "--help"]])
def test_help(run: Run, arguments: list[str]) -> None:
    done = run(*arguments)
    assert "Usage" in done.out + done.err
    assert done.exit_code in ((0, 2) if not arguments else (0,))


@pytest.mark.parametrize("arguments", [["check", "missing.json"], ["generate"], ["nonsense"]])
def test_a_process_of_its_own_shows_no_traceback(arguments: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stencilm", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert done.stderr.startswith("stencilm: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break with another error there")
def test_a_reader_that_leaves_early_is_no_problem(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stencilm", "check", "--regex", "a"]
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def lines(done: Outcome) -> list[str]:
    return done.out.splitlines()
