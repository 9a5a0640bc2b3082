"""The session after the playground: what it answers, without HTTP."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stencilm.cli.playground import _loader
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.holes import HOLE
from stencilm.grammars.sql import sql
from stencilm.grammars.symbols import SymbolTable
from stencilm.limits import Limits
from stencilm.matching.compiler import GrammarCompiler
from stencilm.matching.matcher import GrammarMatcher
from stencilm.playground.examples import EXAMPLES
from stencilm.playground.questions import NOTATIONS, BadQuestion
from stencilm.playground.session import Session, embedded_tokenizer
from stencilm.tokenizers import TokenizerInfo

WORDS = [b"no", b"n", b"o", b"yes", b"y", b"es", b"maybe", b"\xc3", b"\xa9", b"</s>"]


def words() -> TokenizerInfo:
    return TokenizerInfo(WORDS, stop_token_ids=[9])


@pytest.fixture(scope="module")
def session() -> Session:
    return Session({"words": words})


def state(**changes: Any) -> dict[str, Any]:
    usual = {"notation": "regex", "grammar": "yes|no|é", "tokenizer": "words", "text": ""}
    return {**usual, **changes}


@pytest.mark.parametrize(
    ("text", "status", "valid", "kinds"),
    [
        ("", "viable", 0, []),
        ("y", "viable", 1, ["chosen"]),
        ("yes", "complete", 3, ["chosen"]),
        ("nes", "dead", 1, ["chosen", "refused"]),
        ("yesno", "dead", 3, ["chosen", "refused"]),
        ("é", "complete", 1, ["chosen", "forced"]),
    ],
)
def test_a_text_is_read_token_by_token(
    session: Session, text: str, status: str, valid: int, kinds: list[str]
) -> None:
    answer = session.read(state(text=text))
    assert answer["ok"]
    assert (answer["status"], answer["valid_units"]) == (status, valid)
    assert [step["kind"] for step in answer["steps"]] == kinds
    assert answer["text"] == text
    assert all(step["mask_seconds"] > 0 for step in answer["steps"] if "allowed" in step)
    refused = [step for step in answer["steps"] if step["kind"] == "refused"]
    assert all("cannot come next" in step["why"] for step in refused)


def test_what_may_come_stands_behind_the_tokens_that_were_read(session: Session) -> None:
    at = session.read(state(text="yes", position=0))["at"]
    assert (at["position"], at["may_end"], at["allowed"]) == (0, False, 5)
    assert at["forced"] == {"value": ""}
    assert at["candidates"] == {"value": [{"text": "no"}, {"text": "yes"}, {"text": "é"}]}
    at = session.read(state(token_ids=[4, 5], position=1))["at"]
    assert (at["position"], at["allowed"]) == (1, 1)
    assert (at["forced"], at["completion"]) == ({"value": "es"}, {"value": "es"})
    at = session.read(state(token_ids=[3, 9]))["at"]
    assert at["terminated"] and "allowed" not in at


def test_half_a_character_is_a_text_too(session: Session) -> None:
    answer = session.read(state(token_ids=[7]))
    assert (answer["status"], answer["text"]) == ("viable", "\\xc3")
    assert answer["at"]["allowed"] == 1


def queries(script: str) -> Grammar:
    connection = sqlite3.connect(":memory:")
    connection.executescript(script)
    return sql(connection)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_masks_are_those_of_the_engine(session: Session, example: Any) -> None:
    record = state(**{**example._asdict(), "tokenizer": "tiny"})
    read = session.read(record)
    assert read["ok"], read
    position = read["at"]["position"]
    found = session.tokens(state(**record, count=500))
    info = embedded_tokenizer()
    readers: dict[str, Any] = {
        "json-schema": Grammar.from_json_schema,
        "regex": Grammar.from_regex,
        "ebnf": Grammar.from_ebnf,
        "lark": Grammar.from_lark,
        "structural-tag": Grammar.from_structural_tag,
        "sql": queries,
    }
    named = {name: SymbolTable(each) for name, each in json.loads(example.names or "{}").items()}
    options = {"symbols": named} if named else {}
    grammar = readers[example.notation](example.grammar, **options)
    if example.behind:
        grammar = grammar.fill([HOLE, example.behind])
    matcher = GrammarMatcher(GrammarCompiler(info).compile(grammar))
    for step in read["steps"][:position]:
        assert matcher.accept_token(step["id"])
    words = np.zeros((1, -(-info.vocab_size // 32)), dtype=np.int32)
    matcher._naive_bitmask(words, 0)
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")[: info.vocab_size]
    expected = np.flatnonzero(bits).tolist()
    assert read["at"]["allowed"] == found["allowed"] == len(expected)
    assert [token["id"] for token in found["tokens"]] == expected[:500]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": "{"}, "the names are no JSON"),
        ({"names": '{"people": "ada"}'}, "must be an object with a list for each table"),
        ({"names": '{"people": []}'}, "the names 'people'"),
        ({"names": '{"people": ["ada"], "people": ["eve"]}'}, "'people' stands there twice"),
        ({"names": '{"other": ["ada"]}'}, "people"),
        ({"names": '{"people": ["ada"]}', "behind": "Dear eve"}, "hole"),
        ({"notation": "sql", "grammar": "CREATE TABEL a (b)"}, "cannot be made"),
        ({"notation": "sql", "grammar": ""}, "no table"),
        ({"notation": "sql", "grammar": "ATTACH 'x.db' AS x"}, "not authorized"),
        ({"notation": "sql", "grammar": "PRAGMA writable_schema = 1"}, "not authorized"),
        (
            {
                "notation": "sql",
                "grammar": "CREATE TABLE a (b); INSERT INTO a WITH RECURSIVE r(n) AS "
                "(SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
            },
            "not authorized",
        ),
        (
            {
                "notation": "sql",
                "grammar": "CREATE TABLE a (b); INSERT INTO a VALUES (zeroblob(900000000))",
            },
            "too big",
        ),
        (
            {
                "notation": "sql",
                "grammar": "CREATE TABLE a (b); "
                + "INSERT INTO a SELECT 1 UNION ALL SELECT b FROM a; " * 12
                + "CREATE TABLE c AS SELECT count(*) FROM a, a AS b, a AS d",
            },
            "took more than",
        ),
        (
            {
                "notation": "sql",
                "grammar": "CREATE TABLE a (b); INSERT INTO a VALUES "
                f"({'a' * 40_000!r} LIKE '%{'a' * 20_000}b')",
            },
            "pattern too complex",
        ),
        (
            {
                "notation": "sql",
                "grammar": "CREATE TABLE a (b); CREATE TABLE c (d); INSERT INTO a VALUES (1), (2); "
                + "INSERT INTO a SELECT b FROM a; " * 7
                + "INSERT INTO c SELECT zeroblob(100000) FROM a, a AS b",
            },
            "is full",
        ),
        (
            {
                "notation": "sql",
                "grammar": "CREATE TABLE v0 (x); "
                + "".join(
                    f"CREATE VIEW v{number + 1} AS SELECT * FROM v{number}; "
                    for number in range(4_000)
                ),
            },
            "making and reading the tables took more than",
        ),
    ],
    ids=lambda value: f"{value!r:.80}",
)
def test_names_tables_and_holes_that_are_none_are_errors(
    session: Session, changes: dict[str, Any], message: str
) -> None:
    usual = {"notation": "ebnf", "grammar": 'root ::= "Dear " %symbols("people")'}
    answer = session.read(state(**{**usual, **changes}))
    assert not answer["ok"]
    assert message in answer["error"]["message"]


def test_a_tokenizer_that_is_gone_when_it_is_asked_for_is_an_error(tmp_path: Path) -> None:
    session = Session({"gone": _loader(str(tmp_path / "gone.json"))})
    answer = session.read(state(tokenizer="gone"))
    assert answer["error"]["kind"] == "TokenizerError"
    assert "there is no tokenizer file or folder" in answer["error"]["message"]


def test_every_notation_has_an_example() -> None:
    assert {example.notation for example in EXAMPLES} == set(NOTATIONS)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["no", "n", "yes", "y", "é-first"]),
        ({"which": "refused"}, ["o", "es", "maybe", "é-second", "</s>"]),
        ({"which": "all", "search": "es"}, ["yes", "es"]),
        ({"search": "es"}, ["yes"]),
        ({"which": "all", "search": "6"}, ["maybe"]),
        ({"which": "all", "search": "/s"}, ["</s>"]),
        ({"which": "all", "offset": 1, "count": 2}, ["n", "o"]),
        ({"search": "nothing like it"}, []),
    ],
)
def test_tokens_are_searched(session: Session, asked: dict[str, Any], found: list[str]) -> None:
    texts = [*WORDS]
    texts[7:9] = [b"\xc3\xa9-first", b"\xc3\xa9-second"]
    answer = session.tokens(state(**asked))
    assert [texts[token["id"]].decode() for token in answer["tokens"]] == found


def test_a_token_is_explained(session: Session) -> None:
    answer = session.explain(state(text="n", token_id=5))
    assert not answer["allowed"] and '"o"' in answer["why"]
    assert session.explain(state(text="n", token_id=2))["allowed"]
    with pytest.raises(BadQuestion, match="ids end at 9"):
        session.explain(state(token_id=10))


@pytest.mark.parametrize(
    ("changes", "kind", "position"),
    [
        ({"grammar": "a(b"}, "GrammarSyntaxError", (1, 2)),
        ({"notation": "ebnf", "grammar": 'root ::= "a"\n x ::='}, "GrammarSyntaxError", (2, 2)),
        (
            {"notation": "json-schema", "grammar": '{\n "minimum": 7,\n "maximum": 2, "type":'
                ' "integer"}'},
            "Unsatisfiable", (1, 1),
        ),
        ({"notation": "lark", "grammar": 'start: "a"\n | foo'}, "GrammarSyntaxError", (2, 4)),
    ],
)  # fmt: skip
def test_an_error_has_its_place(
    session: Session, changes: dict[str, Any], kind: str, position: tuple[int, int]
) -> None:
    answer = session.read(state(**changes))
    assert not answer["ok"]
    assert (answer["error"]["kind"], answer["error"]["position"]) == (kind, position)


def test_the_deepest_place_is_shown_that_a_sentence_names(session: Session) -> None:
    grammar = """{"required": ["a"], "type": "object", "properties": {
        "a": {"type": "integer", "minimum": 7, "maximum": 2}}}"""
    error = session.read(state(notation="json-schema", grammar=grammar))["error"]
    assert error["place"] == "#"
    assert grammar[slice(*error["stretch"])] == '{"type": "integer", "minimum": 7, "maximum": 2}'


def test_options_of_schemas_count(session: Session) -> None:
    schema = {"notation": "json-schema", "grammar": '{"properties": {"a": {"type": "null"}}}'}
    text = '{"b": 1}'
    assert session.read(state(**schema, tokenizer="tiny", text=text))["status"] == "complete"
    strict = session.read(state(**schema, tokenizer="tiny", text=text, strict=True))
    assert strict["status"] == "dead"
    compact = session.read(state(**schema, tokenizer="tiny", text=text, compact=True))
    assert compact["status"] == "dead"


def test_the_report_is_told(session: Session) -> None:
    grammar = '{"type": "integer", "minimum": 3, "title": "How many"}'
    answer = session.read(state(notation="json-schema", grammar=grammar, tokenizer="tiny"))
    report = answer["report"]
    assert {"type", "minimum"} <= {finding["keyword"] for finding in report["enforced"]}
    assert [finding["keyword"] for finding in report["annotations"]] == ["title"]


def test_a_hostile_grammar_ends() -> None:
    session = Session({"words": words}, limits=Limits(milliseconds=200))
    hostile = state(
        notation="lark",
        grammar="start: X & Y\nX: /(a|b)*a(a|b){60}/\nY: /(a|b)*b(a|b){61}/",
        text="ab" * 100,
        tokenizer="tiny",
    )
    answer = session.read(hostile)
    assert "ok" in answer
    assert session.read(state())["ok"]  # and the session goes on


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"notation": "yaml"}, "notation is 'yaml'"),
        ({"grammar": None}, "grammar must be a text"),
        ({"grammar": "a" * (257 << 10)}, "takes 262,144 at most"),
        ({"text": "a" * (17 << 10)}, "text has 17,408 bytes"),
        ({"text": "\ud800"}, "surrogate"),
        ({"tokenizer": "../../etc/passwd"}, "there is no tokenizer"),
        ({"token_ids": "1"}, "token_ids must be a list"),
        ({"token_ids": [True]}, "a token id is True"),
        ({"token_ids": [10]}, "token 10 is none"),
        ({"position": -1}, "position is -1"),
        ({"strict": 1}, "strict is 1"),
    ],
)
def test_bad_questions_are_refused(session: Session, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadQuestion, match=message):
        session.read(state(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_tokens": 10_000}, "max_tokens is 10000"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": -1}, "temperature is -1"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"prompt": 7}, "prompt must be a text"),
    ],
)
def test_bad_drawings_are_refused(session: Session, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadQuestion, match=message):
        session.generate(state(**changes))


def test_the_model_writes(session: Session) -> None:
    pytest.importorskip("transformers")
    asked = state(grammar="[a-z]{3}-no", prompt="A word: ", seed=3, temperature=0.8)
    answer = session.generate(asked)
    assert answer["ok"] and answer["problem"] is None
    assert answer["text"].endswith("-no") and len(answer["text"]) == 6
    drawn = "".join(part["text"] for part in answer["segments"] if part["part"] != "prompt")
    assert drawn == answer["text"]
    assert answer["segments"][0] == {"part": "prompt", "text": "A word: ", "note": "the prompt"}
    assert set(answer["legend"]) <= {"masked", "forced"}
    assert session.generate(asked)["text"] == answer["text"]
    cut = session.generate(state(grammar="[a-z]{300}", max_tokens=2))
    assert "max_tokens" in cut["outcome"] and cut["problem"]


@pytest.mark.parametrize("notation", [[], {}, [1], ["regex"]])
def test_a_notation_that_is_no_text_is_refused(session: Session, notation: Any) -> None:
    with pytest.raises(BadQuestion, match="notation is"):
        session.read({"notation": notation, "grammar": "a", "tokenizer": "tiny", "text": ""})


def test_a_table_without_a_name_is_an_error(session: Session) -> None:
    record = {"notation": "lark", "grammar": 'start: "a"', "tokenizer": "tiny", "text": ""}
    found = session.read({**record, "names": '{"": ["a"]}'})
    assert "without a name" in found["error"]["message"]
