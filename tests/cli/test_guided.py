"""`stencilm generate --strategy`: guided texts on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")
pytest.importorskip("transformers")

from endpoints.scripted import fault, served
from stencilm.cli import main

DIGITS = ["generate", "-p", "Number: ", "--regex", "[0-9]{3}"]


def run(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_guide_prints_a_valid_text_and_draws_it(capsys: Any, tmp_path: Path) -> None:
    html = tmp_path / "trace.html"
    code, out, err = run(capsys, *DIGITS, "--strategy", "guide", "--live", "--html", str(html))
    assert code == 0 and len(out) == 4 and out.strip().isdigit()
    assert "valid: " in err
    assert "stencilm-text" in html.read_text(encoding="utf-8")


def test_the_strategies_agree_and_report(capsys: Any, tmp_path: Path) -> None:
    html = tmp_path / "trace.html"
    masked = run(capsys, *DIGITS, "--strategy", "mask", "--live", "--html", str(html))
    assert (masked[0], len(masked[1])) == (0, 4) and masked[1].strip() in masked[2]
    assert html.is_file()
    assert run(capsys, *DIGITS) == run(capsys, *DIGITS, "--strategy", "auto")
    code, out, _ = run(capsys, *DIGITS, "--strategy", "guide", "--json", "--trace")
    record = json.loads(out)
    assert code == 0 and record["status"] == "valid"
    assert record["value"] == record["response"]
    assert record["usage"]["calls"] >= 1 and record["trace"][0]["event"] == "prompt"


@pytest.fixture
def answers(monkeypatch: Any) -> Iterator[Any]:
    """What the endpoint of `openai:m` answers: a list that a test may change."""
    pytest.importorskip("openai")
    given: list[Any] = [""]

    def answer(body: dict[str, Any], number: int) -> Any:
        if isinstance(given[0], Exception):
            raise given[0]
        return given[0] if number == 1 else given[-1]

    with served(answer) as (address, _):
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
        yield given


REFUSAL = [({"refusal": "I cannot help."}, "stop")]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([fault(401, "Incorrect key.")], ["HTTP 401", "Incorrect key.", "API key"]),
        ([REFUSAL], ["refused", "I cannot help."]),
        ([""], ["wrote nothing"]),
        (["I'm sorry, but I cannot."], ["nothing that the model wrote fits", "I'm sorry"]),
        ([("12", "length"), ("", "stop")], ["filled in", "at character 2"]),
    ],
)
def test_what_no_model_wrote_is_not_printed(
    given: list[Any], words: list[str], answers: list[Any], capsys: Any
) -> None:
    answers[:] = given
    code, out, err = run(capsys, *DIGITS, "-m", "openai:m")
    assert (code, out) == (1, "")
    assert all(word in err for word in words), err
    code, out, err = run(capsys, *DIGITS, "-m", "openai:m", "--json")
    assert code == 1 and (not out or json.loads(out)["value"] is None)


def test_guide_fails_where_it_made_the_text_up(answers: list[Any], capsys: Any) -> None:
    answers[:] = [("12", "length"), ("", "stop")]
    code, out, err = run(capsys, *DIGITS, "-m", "openai:m", "--strategy", "guide")
    assert (code, out) == (1, "")
    assert "is not what the model wrote" in err and "filled in" in err


def test_the_trace_of_an_endpoint_has_a_line_for_each_event(
    answers: list[Any], capsys: Any
) -> None:
    answers[:] = [("Sure: 12", "stop"), "407"]
    code, out, err = run(capsys, *DIGITS, "-m", "openai:m", "--trace")
    assert (code, out) == (0, "407\n")
    kinds = [line.split()[0] for line in err.splitlines()]
    assert kinds[0] == "prompt" and kinds[-1] == "ended" and kinds.count("called") == 2
    assert "{'event'" not in err and "re-ask, of /[0-9]{3}/" in err
    assert "drafted  '407'" in err


def test_an_endpoint_is_printed(answers: list[Any], capsys: Any) -> None:
    answers[:] = [{"tool": "123"}]
    assert run(capsys, *DIGITS, "-m", "openai:m")[:2] == (0, "123\n")
    code, out, _ = run(capsys, *DIGITS, "-m", "openai:m", "--json", "--stop", "@@")
    record = json.loads(out)
    assert (code, record["value"], record["finish_reason"]) == (0, "123", "stop")
    assert (record["closed"], record["filled"], record["refused"]) == (False, [], [])
    assert (record["stats"]["tokens"], record["stats"]["is_estimate"]) == (5, False)
    code, out, err = run(capsys, *DIGITS, "-m", "openai:m", "--top-k", "3")
    assert (code, out) == (1, "") and "this endpoint takes no top_k" in err


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        (["--strategy", "hope"], 2, "must be one of auto, mask, guide"),
        (["--strategy", "guide", "--top-k", "3"], 2, "takes no --top-k"),
        (["--strategy", "guide", "--finish", "cut"], 2, "no --finish cut"),
        (["--strategy", "mask", "-m", "openai:gpt"], 2, "shows no logits"),
        (["-m", "openai:gpt"], 1, "OPENAI_API_KEY"),
    ],
)
def test_refusals(options: list[str], code: int, word: str, capsys: Any, monkeypatch: Any) -> None:
    if "openai:gpt" in options:
        pytest.importorskip("openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    found, _, err = run(capsys, *DIGITS, *options)
    assert (found, word in err) == (code, True), err


@pytest.mark.parametrize("strategy", ["guide", "auto"])
def test_what_validators_refuse_is_not_printed(strategy: str, capsys: Any, tmp_path: Path) -> None:
    (tmp_path / "picky.py").write_text(
        "from typing import Annotated, Literal\n"
        "from pydantic import AfterValidator\n"
        "def never(value):\n    raise ValueError('never good')\n"
        "Never = Annotated[Literal[1, 2], AfterValidator(never)]\n"
    )
    call = ["generate", "-p", "x", "--type", f"{tmp_path}/picky.py:Never", "--strategy", strategy]
    code, out, err = run(capsys, *call)
    assert (code, out) == (1, "") and "never good" in err
    code, out, err = run(capsys, *call, "--json")
    record = json.loads(out)
    assert code == 1 and record["value"] is None and "never good" in record["error"]


@pytest.mark.parametrize("strategy", ["guide", "auto"])
def test_numbers_that_json_does_not_have_are_null(
    strategy: str, capsys: Any, tmp_path: Path
) -> None:
    (tmp_path / "endless.py").write_text(
        "from typing import Literal\n"
        "from pydantic import BaseModel, computed_field\n"
        "class Endless(BaseModel):\n"
        "    a: Literal[1]\n"
        "    @computed_field\n"
        "    def b(self) -> list[float]:\n"
        "        return [float('nan'), float('-inf'), 0.5]\n"
    )
    call = ["generate", "-p", "x", "--type", f"{tmp_path}/endless.py:Endless", "--json"]
    code, out, _ = run(capsys, *call, "--strategy", strategy)
    assert code == 0 and json.loads(out)["value"] == {"a": 1, "b": [None, None, 0.5]}


def test_a_page_that_cannot_be_written_is_told_before_anything_is_asked(
    capsys: Any, tmp_path: Path, answers: Any
) -> None:
    answers[0] = AssertionError("nothing is asked")
    for strategy in ("guide", "auto"):
        for place in (tmp_path, tmp_path / "none" / "x.html"):
            call = [*DIGITS, "--model", "openai:m", "--strategy", strategy, "--html", str(place)]
            code, out, err = run(capsys, *call)
            assert (code, out) == (1, "") and str(place) in err
    assert not [*tmp_path.iterdir()]


def test_an_endpoint_without_a_name_is_wrong_usage(capsys: Any) -> None:
    for provider in ("openai:", "anthropic:"):
        code, _, err = run(capsys, *DIGITS, "--model", provider)
        assert (code, f"{provider}NAME" in err) == (2, True)


@pytest.mark.parametrize("strategy", ["mask", "guide"])
def test_a_dash_prints_the_page(
    capsys: Any, tmp_path: Path, monkeypatch: Any, strategy: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, *DIGITS, "--strategy", strategy, "--html", "-")
    assert code == 0 and out.startswith("<!doctype html>") and out.endswith("</html>\n")
    assert list(tmp_path.iterdir()) == []
    code, out, err = run(capsys, *DIGITS, "--html", "-", "--json")
    assert (code, out) == (2, "") and "--json and --html cannot both" in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_told_with_the_name_of_the_file(capsys: Any) -> None:
    code, _, err = run(capsys, *DIGITS, "--html", "/dev/full")
    assert (code, err) == (1, "stencilm: '/dev/full': No space left on device\n")
    command = [sys.executable, "-m", "stencilm", "convert", "--regex", "a"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert ended.stderr == "stencilm: cannot write to standard output: No space left on device\n"
