"""What the validator is asked of the beginning of a text, and that its answers are proofs."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from random import Random
from typing import Any

import pytest

pytest.importorskip("jsonschema")

from schemas.test_differential import Maker
from stencilm.audit.json_prefix import (
    NotJson,
    OpenArray,
    OpenNumber,
    OpenObject,
    OpenString,
    Unclear,
    Unwritten,
    parse_json,
)
from stencilm.audit.judge import Judge, Unjudged
from stencilm.audit.texts import OrderSearch, changed, split, without_formats

# Prefixes of JSON


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"", Unwritten),
        (b" -", OpenNumber),
        (b"1.5e", OpenNumber),
        (b'"a\\u00', OpenString),
        (b"[1, ", OpenArray),
        (b'{"a": 1, "b', OpenObject),
    ],
)
def test_what_is_not_closed_is_open(text: bytes, value: type) -> None:
    assert type(parse_json(text)) is value
    with pytest.raises(NotJson):
        parse_json(text, whole=True)


def test_an_open_value_has_what_is_written_of_it() -> None:
    assert parse_json(b'"a\\u00e9\\ud83d') == "aé"
    assert parse_json(b"[1, [2, tr") == [1, [2, True]]
    assert len(parse_json(b"[1, ")) == 2
    found = parse_json(b'{"a": [], "b": {"c')
    assert found == {"a": [], "b": {}} and type(found["a"]) is list
    assert found["b"].is_within_key and not found.is_within_key


def test_complete_texts_are_read_as_the_standard_library_does() -> None:
    random = Random(5)
    texts = [
        '{"a":[1,2.5e3,-0],"b\\u00e9":null}', '[true,false,{"x":{}}]', '"a\\n\\ud83d\\ude00"',
        "-1.5E+2", "[[],[{}]]", ' {"a" : "é"} ',
    ]  # fmt: skip
    alphabet = '{}[],:"\\u0aE e1-.+tfn'
    compared = 0
    for _ in range(20_000):
        characters = list(random.choice(texts))
        for _ in range(random.randrange(4)):
            place = random.randrange(len(characters) + 1)
            characters[place : place + random.randrange(2)] = random.choice(alphabet)
        text = "".join(characters)
        try:
            expected: Any = json.loads(
                text, parse_constant=lambda name: 1 / 0, parse_float=Fraction
            )
        except (ValueError, ZeroDivisionError):
            expected = NotJson
        try:
            found = parse_json(text.encode(), whole=True)
        except NotJson:
            found = NotJson
        except Unclear:
            continue
        assert found == expected, text
        for end in range(len(text) if expected is not NotJson else 0):
            parse_json(text[:end].encode())
        compared += 1
    assert compared > 15_000


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '"\\ud800"', "1e999", "0.12345678901234567"])
def test_what_readers_disagree_about_is_unclear(text: str) -> None:
    with pytest.raises(Unclear):
        parse_json(text.encode(), whole=True)


# Violations

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "e": {"enum": ["abc", "abd", 7]},
        "l": {"items": {"type": "number"}, "maxItems": 2, "uniqueItems": True},
        "o": {"oneOf": [{"const": 1}, {"type": "object", "required": ["x"]}]},
        "s": {"maxLength": 3, "pattern": "^[a-z]+$", "type": "string"},
        "n": {"not": {"type": "array"}},
        "c": {"contains": {"const": 1}, "minContains": 1, "maxContains": 2},
        "m": {"maxProperties": 1},
    },
    "required": ["a"],
    "additionalProperties": False,
}
VIOLATIONS = {
    # Each text up to the mark is not a violation, and up to the character after it is one.
    '{"a": |"': "type",
    '{"b|"': "additionalProperties",
    '{"a": 1.5|,': "type",
    '{"e": "a|c': "enum",
    '{"e": |{': "enum",
    '{"l": [1, 2|,': "maxItems",
    '{"l": [1, 1|]': "uniqueItems",
    '{"l": [1, |t': "type",
    '{"o": |[': "oneOf",
    '{"o": {|}': "oneOf",
    '{"s": "abc|d': "maxLength",
    '{"s": "1|"': "pattern",
    '{"n": [|]': "not",
    '{"c": [1, 1, 1|]': "maxContains",
    '{"c": [|]': "contains",
    '{"m": {"a": 1|,': "maxProperties",
    "{|}": "required",
    "|[": "type",
}


@pytest.mark.parametrize("marked", VIOLATIONS)
def test_a_violation_is_told_as_soon_as_nothing_mends_it(marked: str) -> None:
    judge = Judge(json.dumps(SCHEMA))
    before, after = marked.split("|")
    if not before.endswith("1.5"):  # a digit may follow, but not make it an integer
        assert judge.violation(before.encode()) is None
    why = judge.violation((before + after).encode())
    assert why is not None and f": {VIOLATIONS[marked]} " in why


@pytest.mark.parametrize("seed", range(150))
def test_no_beginning_of_a_valid_text_is_a_violation(seed: int) -> None:
    maker = Maker(seed)
    try:
        judge = Judge(json.dumps(maker.root()))
    except Unjudged:
        return
    for _ in range(15):
        text = json.dumps(maker.value(3), ensure_ascii=bool(maker.random.randrange(2))).encode()
        try:
            status = judge.verdict(text).status
            for end in range(len(text) + 1):
                found = judge.violation(text[:end])
                assert found is None or status != "valid", (judge.schema, text[:end], found)
            if status == "invalid" and text[-1:] in b'"}]':
                assert judge.violation(text) is not None
        except Unjudged:
            continue


def test_drafts_are_those_that_are_named_or_agree() -> None:
    def status(schema: Any, text: str) -> str:
        return Judge(json.dumps(schema)).verdict(text.encode()).status

    draft_4 = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}
    assert (status(draft_4, "1.0"), status({"type": "integer"}, "1.0")) == ("invalid", "valid")
    # A list in `items` is draft 7; `$ref` hides its siblings there, and not in 2020-12.
    assert status({"items": [{"type": "null"}]}, "[1]") == "invalid"
    siblings = {"$ref": "#/definitions/a", "minimum": 3, "definitions": {"a": {"type": "integer"}}}
    assert status(siblings, "1") == "unjudged"
    assert status(siblings | {"$schema": draft_4["$schema"]}, "1") == "valid"
    assert status({"format": "date"}, '"no date"') == "valid"
    within = {"properties": {"a": draft_4}}
    assert status(within | {"$schema": draft_4["$schema"]}, '{"a": 1.0}') == "invalid"
    with pytest.raises(Unjudged, match="a draft of its own"):
        status(within, "1")
    assert status({"const": {"$schema": draft_4["$schema"]}}, "{}") == "invalid"


@pytest.mark.parametrize(
    ("pattern", "text"), [("^\\w$", "é"), ("^.$", "\u2028"), ("^a\\Z", "a"), ("\\p{L}", "a")]
)
def test_patterns_that_python_reads_otherwise_are_not_judged(pattern: str, text: str) -> None:
    judge = Judge(json.dumps({"pattern": pattern}))
    assert judge.verdict(json.dumps(text).encode()).status == "unjudged"


def test_a_match_without_an_end_is_ended() -> None:
    judge = Judge(json.dumps({"pattern": "^(a+)+$"}), seconds=0.2)
    slow = json.dumps("a" * 40 + "b").encode()
    assert judge.verdict(slow).status == "unjudged"
    assert "time" in judge.verdict(b"1").why


# Texts


def test_a_text_is_split_in_many_ways() -> None:
    ids = {b"a": 0, b"b": 1, b"ab": 2, b"aba": 3}
    texts = {value: key for key, value in ids.items()}
    found = {tuple(split(b"abab", ids, 3, Random(seed)) or ()) for seed in range(50)}
    assert len(found) > 3
    assert {b"".join(texts[one] for one in tokens) for tokens in found} == {b"abab"}
    assert split(b"abc", ids, 3, Random(0)) is None


def test_a_changed_value_is_another_one() -> None:
    value = {"a": [1, 2, {"b": "c"}], "d": None}
    found = [changed(value, Random(seed)) for seed in range(60)]
    assert value == {"a": [1, 2, {"b": "c"}], "d": None}
    assert len({json.dumps(one) for one in found}) > 20


def test_orders_are_searched_from_where_they_are_refused() -> None:
    value = {"a": 1, "b": {"c": 2, "d": 3}, "e": 4}
    wanted = '{"e": 4, "b": {"d": 3, "c": 2}, "a": 1}'
    search = OrderSearch(value, {})
    for _ in range(12):
        text = search.text()
        if text == wanted:
            return
        same = re.match(f"(?:{'|'.join(re.escape(wanted[:n]) for n in range(40, 0, -1))})", text)
        assert same is not None and search.refused(same.end())
    raise AssertionError("the order was not found")


def test_only_the_keyword_format_is_left_out() -> None:
    schema = {
        "format": "date",
        "properties": {"format": {"format": "time"}},
        "const": {"format": 1},
    }
    assert without_formats(schema) == {"properties": {"format": {}}, "const": {"format": 1}}
