"""Engines that are broken in a known way are found out, and stencilm is not."""

from __future__ import annotations

import doctest
import gzip
import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from browser import LOOKS, chromium, console_errors, set_look

pytest.importorskip("jsonschema")

import stencilm
from audit import toy_engines
from stencilm import TokenizerInfo
from stencilm.audit import Finding, Report, SchemaCase, audit, find_engine, read_schemas, run
from stencilm.audit import engines as given
from stencilm.cli import main

SHARED = Path(os.environ.get("STENCILM_SHARED", Path(__file__).parents[3] / "shared"))
LIST = {"type": "array", "items": {"enum": [1, 22, "abc"]}, "maxItems": 2}
OBJECT = {
    "type": "object",
    "properties": {"first": {"type": "integer"}, "second": {"type": "boolean"}},
    "required": ["first", "second"],
    "additionalProperties": False,
}
NUMBER = {"type": "integer", "minimum": 0, "maximum": 9}
WORD = {"enum": ["hello", "string"]}
BACKWARDS = '{"second": true, "first": 5}'


def report_of(engine: Any, schema: Any, *instances: str, **options: Any) -> Report:
    case = SchemaCase("the schema", json.dumps(schema), instances)
    return audit([case], engines=[engine], **options)


def replay(finding: Finding, folder: Path) -> str:
    """What the program of a finding prints last."""
    file = folder / "replay.py"
    file.write_text(finding.script)
    path = os.pathsep.join(one for one in sys.path if one)
    done = subprocess.run(
        [sys.executable, str(file)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


TOYS = {
    # engine, schema, instances: the kind of the error, words of the reason, what a replay says
    "violation": (toy_engines.AllowsMore, LIST, ["[1, 1, 1]"], "maxItems 2", "allowed: True"),
    "refused": (toy_engines.AllowsLess, NUMBER, ["9"], "validator takes", "allowed: False"),
    "not JSON": (toy_engines.EndsTooEarly, LIST, ["[1, 22]"], "not JSON", "allowed: True"),
    "dead end": (toy_engines.StopsShort, OBJECT, [], "nothing", "any token allowed: False"),
    "broken mask": (toy_engines.RefusesWhatItAllows, OBJECT, [], "is refused", ""),
}


@pytest.mark.parametrize("kind", TOYS)
def test_broken_engines_are_found_out(kind: str, tmp_path: Path) -> None:
    engine, schema, instances, words, said = TOYS[kind]
    report = report_of(engine, schema, *instances)
    found = [finding for finding in report.errors if finding.kind == kind]
    assert found, report.to_json()
    assert words in found[0].why
    name = f"{engine.__module__}:{engine.__name__}"
    assert report.outcomes["the schema"][name].status == "errors"
    assert report.statuses(name)["errors"] == 1 and report.kinds(name)[kind] == 1
    finding = found[0]
    assert said in replay(finding, tmp_path)
    assert len(finding.script.splitlines()) <= 16


def test_a_violation_is_found_at_the_first_token_that_proves_it() -> None:
    report = report_of(toy_engines.AllowsMore, LIST, "[1, 1, 1]")
    for finding in report.errors:
        assert finding.text.count(",") + finding.token_text.count(",") == 2
        assert "," in finding.token_text


def test_everything_is_too_much() -> None:
    report = report_of(toy_engines.AllowsEverything, OBJECT)
    assert {finding.kind for finding in report.errors} >= {"not JSON"}


NOTES = {
    "writing": (given.DeclaredOrder, OBJECT, BACKWARDS, "taken is"),
    "tokens": (toy_engines.Canonical, WORD, '"hello"', "tokenizer's own"),
    "format": (given.Stencilm, {"type": "string", "format": "email"}, '"no mail"', "without"),
}


@pytest.mark.parametrize("kind", NOTES)
def test_narrower_engines_are_told_from_wrong_ones(kind: str) -> None:
    engine, schema, instance, words = NOTES[kind]
    report = report_of(engine, schema, instance)
    assert report.errors == []
    found = [finding for finding in report.findings if finding.kind == kind]
    assert found and words in found[0].why
    assert found[0].witness is not None and not found[0].is_error


def test_any_order_of_keys_is_looked_for_before_a_refusal_is_an_error() -> None:
    """The order in which a schema lists keys is not the one that is taken: `enum` has it."""
    schema = {"enum": [{"z": 1, "y": {"q": 1, "p": 2}, "a": 3}]}
    report = report_of("stencilm-declared", schema, '{"a": 3, "y": {"p": 2, "q": 1}, "z": 1}')
    assert report.errors == []
    assert [finding.kind for finding in report.findings] == ["writing"]


STATUSES = {
    "crash": (toy_engines.Dies, 20.0),
    "time out": (toy_engines.Hangs, 1.0),
    "failure": (toy_engines.Raises, 20.0),
    "refused": (toy_engines.Refuses, 20.0),
}


@pytest.mark.parametrize("status", STATUSES)
def test_an_engine_that_fails_does_not_end_the_audit(status: str) -> None:
    engine, seconds = STATUSES[status]
    cases = [SchemaCase(name, json.dumps(OBJECT)) for name in ("one", "two")]
    report = audit(cases, engines=[engine, "stencilm"], time_limit=seconds)
    name = next(iter(report.engines))
    assert report.statuses(name) == {status: 2}
    assert report.statuses("stencilm") == {"clean": 2}
    assert report.outcomes["one"][name].why


def test_masks_that_are_too_short_are_told() -> None:
    report = audit([OBJECT], engines=[toy_engines.Shortens], time_limit=5.0)
    (outcome,) = report.outcomes["schema 0"].values()
    assert outcome.status == "failure"
    assert "the mask has 2 words, and " in outcome.findings[0].why


def test_what_an_engine_writes_beside_python_is_no_answer() -> None:
    cases = [SchemaCase(name, json.dumps(LIST)) for name in ("one", "two")]
    report = audit(cases, engines=[toy_engines.Chatters])
    assert next(iter(report.outcomes.values())).keys() == report.engines.keys()
    assert report.statuses(next(iter(report.engines))) == {"clean": 2}


def test_the_end_of_a_crashed_engine_is_what_it_said_last() -> None:
    report = audit([OBJECT], engines=[toy_engines.Dies])
    assert "RuntimeWarning" not in report.outcomes["schema 0"][next(iter(report.engines))].why


def test_a_validator_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that had no texts to read has not been found clean."""
    ask = run._Process.ask

    def fails_to_prepare(process: Any, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        if process.name == "-":
            return {"status": "crash", "why": "SIGSEGV", "findings": []}
        return ask(process, request, seconds)

    monkeypatch.setattr(run._Process, "ask", fails_to_prepare)
    outcome = audit([LIST]).outcomes["schema 0"]["stencilm"]
    assert outcome.status == "unjudged" and "SIGSEGV" in outcome.why
    assert outcome.counts["walks"] > 0


def test_an_interrupt_ends_all_processes() -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        audit(
            [LIST, OBJECT],
            engines=[toy_engines.HangsAtObjects, "stencilm"],
            jobs=2,
            time_limit=60.0,
            progress=interrupt,
        )
    assert time.monotonic() - begun < 50


def test_the_memory_of_an_engine_is_watched() -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("the system does not tell how much memory a process holds")
    report = report_of(toy_engines.Grows, OBJECT, memory_limit=450 << 20)
    assert report.outcomes["the schema"]["audit.toy_engines:Grows"].status == "memory"


UNJUDGED = [
    {"$ref": "https://example.org/elsewhere"},
    {"$schema": "http://json-schema.org/draft-03/schema#"},
    {"$schema": "http://json-schema.org/draft-07/schema#", "type": "thing"},
    {"$schema": "https://example.org/own-dialect"},
]


@pytest.mark.parametrize("schema", UNJUDGED)
def test_what_the_validator_cannot_judge_is_said(schema: Any) -> None:
    outcome = report_of("stencilm", schema).outcomes["the schema"]["stencilm"]
    assert outcome.status in ("unjudged", "refused") and outcome.why
    assert not outcome.findings


SCHEMAS: list[Any] = [
    LIST,
    OBJECT,
    NUMBER,
    WORD,
    True,
    {"type": "string", "pattern": "^a+b?$", "maxLength": 4},
    {"oneOf": [{"type": "integer"}, {"type": "number", "multipleOf": 0.5}]},
    {"type": "array", "uniqueItems": True, "items": {"enum": [1, 2, 3]}, "minItems": 2},
    {"type": "object", "patternProperties": {"^a": {"type": "null"}}, "minProperties": 1},
    {"type": "object", "propertyNames": {"maxLength": 2}, "maxProperties": 2},
    {"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"type": "boolean"}},
    {"type": "array", "contains": {"const": 1}, "maxContains": 1, "maxItems": 3},
    {"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": False},
    {"type": "object", "dependentRequired": {"a": ["b"]}, "required": ["a"]},
    {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True},
]


@pytest.mark.parametrize("engine", ["stencilm", "stencilm-declared"])
def test_stencilm_has_no_errors(engine: str) -> None:
    report = audit(SCHEMAS, engines=[engine], seed=3)
    assert report.errors == []
    assert set(report.statuses(engine)) == {"clean"}
    counts = report.counts(engine)
    assert counts["walks"] == 6 * len(SCHEMAS)
    assert counts["valid"] > 60 and counts["invalid"] > 30 and counts["judged"] > 600


@pytest.mark.skipif(not (SHARED / "maskbench").is_dir(), reason="the public schemas are not here")
def test_stencilm_has_no_errors_under_public_schemas() -> None:
    report = audit(SHARED / "maskbench", sample=25, seed=1)
    assert report.errors == []
    assert report.statuses("stencilm")["clean"] >= 15


@pytest.mark.parametrize("peer", ["xgrammar", "llguidance", "outlines-core", "glrmask"])
def test_peers_are_asked(peer: str, tmp_path: Path) -> None:
    if find_spec(peer.replace("-", "_")) is None:
        pytest.skip(f"{peer} is not installed: pip install {peer}")
    report = audit([OBJECT, LIST], engines=[peer], time_limit=60.0)
    assert report.engines[peer]
    assert report.counts(peer)["masks"] > 20
    for finding in report.findings:
        assert "any token allowed: True" in replay(finding, tmp_path)


def test_a_replay_reads_the_tokenizer_where_the_fault_needs_it(tmp_path: Path) -> None:
    report = report_of(toy_engines.Canonical, WORD, '"hello"')
    found = [finding for finding in report.findings if finding.needs_tokenizer]
    assert found
    for finding in found:
        assert "decoded_vocab" in finding.script
        assert "allowed: False" in replay(finding, tmp_path)


# What is audited


def test_schemas_come_from_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.json").write_text('{"type": "integer"}')
    row = {"id": "of a line", "schema": LIST, "tests": [{"valid": True, "data": [1]}]}
    with gzip.open(tmp_path / "b.jsonl.gz", "wt") as file:
        file.write(json.dumps(row) + "\n")
    (tmp_path / "notes.txt").write_text("no schema")
    found = read_schemas(tmp_path)
    assert [case.name for case in found] == ["of a line", str(Path("below", "a.json"))]
    assert found[0].instances == ("[1]",)
    assert [case.name for case in read_schemas(tmp_path / "below" / "a.json")] == ["a.json"]


def test_a_file_that_cannot_be_read_says_where(tmp_path: Path) -> None:
    good = json.dumps({"id": "a", "schema": True}).encode()
    long = b'{"id": "a", "schema": {"const": [1e400, %b]}}' % (b"7" * 5_000)
    bad = {
        b"[1]": "line 2 is no object with id and schema",
        b'{"id": 1}': "line 2 is no object with id and schema",
        b'{"id": 1, "schema": {}, "tests": 5}': "line 2: tests is no list",
        b'{"id": 1, "schema": {}, "tests": [{}]}': "line 2: tests is no list",
        b'{"id": 1, "schema": {"const": NaN}}': "line 2: NaN is no JSON number",
        b"[" * 100_000: "line 2: column 1002: the schema is nested more than 1000 deep",
        b"\xff": "utf-8",
    }
    file = tmp_path / "a.jsonl"
    for line, said in bad.items():
        file.write_bytes(good + b"\n" + line + b"\n")
        with pytest.raises(ValueError, match=f"a.jsonl' cannot be read as schemas: .*{said}"):
            read_schemas(file)
    packed = tmp_path / "b.jsonl.gz"
    for data in (b"no gzip", gzip.compress(good * 99)[:-9], gzip.compress(good)[:12] + b"\xff" * 9):
        packed.write_bytes(data)
        with pytest.raises(ValueError, match=r"b.jsonl.gz' cannot be read as schemas"):
            read_schemas(packed)
    file.write_bytes(long)
    assert read_schemas(file)[0].schema == '{"const": [1E+400, %s]}' % ("7" * 5_000)


def test_a_larger_sample_has_the_smaller_one() -> None:
    cases = [SchemaCase(str(number), "true") for number in range(50)]
    names = [
        set(audit(cases, sample=count, engines=[toy_engines.Refuses]).outcomes) for count in (5, 9)
    ]
    assert len(names[0]) == 5 and len(names[1]) == 9 and names[0] < names[1]


def test_the_same_seed_gives_the_same_findings() -> None:
    reports = [
        audit([LIST, OBJECT], engines=["stencilm-declared"], seed=5, jobs=jobs) for jobs in (1, 2)
    ]
    rows = [report.to_json()["schemas"] for report in reports]
    assert rows[0] == rows[1]


def test_a_tokenizer_at_hand_will_do() -> None:
    info = TokenizerInfo([*(bytes([b]) for b in range(256)), b"</s>"], stop_token_ids=[256])
    report = audit([LIST], tokenizer=info)
    assert report.errors == [] and report.options["tokenizer"] == "given"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"schemas": "nowhere"}, "no file or folder 'nowhere'"),
        ({"engines": ["none"]}, "there is no engine 'none'"),
        ({"engines": []}, "at least one"),
        ({"engines": ["nothing.py:Engine"]}, "there is no file"),
        ({"tokenizer": "nowhere"}, "no tokenizer file or folder"),
        ({"tokenizer": ""}, "no tokenizer file or folder ''"),
        ({"jobs": 0}, "must be positive"),
    ],
)
def test_bad_options_say_what_is_wrong(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        audit(**{"schemas": [True], **options})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"schemas": {"type": "integer"}}, r"schemas is a dict, .* a schema alone is \[schema\]"),
        ({"schemas": 5}, "schemas is a int, but must be a list"),
        ({"schemas": [True, {"const": object()}]}, "schema 1 cannot be written as JSON"),
        ({"engines": "stencilm"}, "engines is 'stencilm', but must be a list"),
        ({"engines": None}, "engines is None, but must be a list"),
        ({"engines": [5]}, "an engine is 5, but must be a name or a class"),
    ],
)
def test_what_is_of_another_type_is_told_by_name(options: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        audit(**{"schemas": [True], **options})
    calls: tuple[Any, ...] = (find_engine, read_schemas)
    for call in calls:
        with pytest.raises(TypeError, match="is None, but must be"):
            call(None)


def test_no_limit_of_time_is_none_that_judges_nothing() -> None:
    report = audit([{"type": "integer"}], time_limit=float("inf"))
    assert report.outcomes["schema 0"]["stencilm"].status == "clean"


def test_an_engine_that_does_not_start_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("class Engine:\n    def __init__(self, tokenizer):\n        raise OSError(9)\n")
    with pytest.raises(RuntimeError, match=r"does not start: crash: .*OSError"):
        audit([True], engines=[f"{file}:Engine"])


# What comes of it


def test_the_shell_prints_a_table_and_writes_all_of_it(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "list.json").write_text(json.dumps(LIST))
    file = Path(toy_engines.__file__)
    names = {name: tmp_path / name for name in ("out.json", "out.html", "scripts")}
    call = ["audit", "--schemas", str(tmp_path / "list.json"), "--engine", f"{file}:AllowsMore"]
    call += ["--engine", "stencilm", "--json", str(names["out.json"])]
    call += ["--html", str(names["out.html"]), "--scripts", str(names["scripts"])]
    assert main(call) == 1
    out = capsys.readouterr().out
    assert "violation" in out and "maxItems 2" in out
    written = json.loads(names["out.json"].read_text())
    assert written["schemas"]["list.json"]["stencilm"]["status"] == "clean"
    assert "<title>Audit of masks</title>" in names["out.html"].read_text()
    scripts = sorted(names["scripts"].iterdir())
    assert len(scripts) == sum(
        len(outcome["findings"]) for outcome in written["schemas"]["list.json"].values()
    )
    assert main(["audit", "--schemas", str(tmp_path / "list.json")]) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "--schemas"),
        (["--schemas", "x", "--jobs", "0"], 2, "--jobs"),
        (["--schemas", "nowhere"], 1, "there is no file or folder"),
        (["--schemas", __file__], 1, "cannot be read as schemas"),
        (["--schemas", "examples", "--engine", "none"], 1, "there is no engine 'none'"),
    ],
)
def test_the_shell_has_the_exit_codes_of_all_commands(
    arguments: list[str], code: int, words: str, capsys: Any
) -> None:
    assert main(["audit", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == "" and words in captured.err


def hostile() -> Report:
    """A report in which every text is an attack on the page."""
    schema = {"type": "array", "maxItems": 1, "description": "<script>alert(1)</script>\x1b[2J"}
    case = SchemaCase("<img src=x onerror=alert(2)>", json.dumps(schema), ('["<b>", 2, 3]',))
    return audit([case], engines=[toy_engines.AllowsMore, toy_engines.Raises])


def test_the_page_is_escaped_and_readable(tmp_path: Path) -> None:
    report = hostile()
    assert report.errors
    page = report.to_html()
    assert "<img" not in page and "<script" not in page and "<b>" not in page
    assert "\x1b" not in page
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    with chromium() as driver:
        driver.get(file.as_uri())
        for look in LOOKS:
            set_look(driver, look)
            width = driver.execute_script("return document.documentElement.scrollWidth")
            assert width <= look.width, look.name
            assert "violation" in driver.find_element("tag name", "article").text
        assert console_errors(driver) == []


@pytest.mark.parametrize("name", stencilm.audit.__all__)
def test_public_names_have_docstrings_whose_examples_run(name: str) -> None:
    value = getattr(stencilm.audit, name)
    assert value.__doc__
    found = doctest.DocTestFinder(recurse=False).find(value, value.__name__, globs={})
    for test in found:
        assert doctest.DocTestRunner().run(test).failed == 0
