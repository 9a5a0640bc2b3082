"""Hard and bad schemas: each ends in a grammar that decides rightly, or in one of our errors."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

import stencilm
from stencilm import (
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    GrammarSyntaxError,
    LimitExceeded,
    Limits,
    TokenizerInfo,
    Unsatisfiable,
    UnsupportedFeature,
)

INFO = TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
COMPILER = GrammarCompiler(INFO, cache_enabled=False)


jsonschema = pytest.importorskip("jsonschema")


def accepts(schema: Any, text: str, **options: Any) -> bool:
    matcher = GrammarMatcher(COMPILER.compile_json_schema(schema, **options))
    return matcher.accept_string(text) and matcher.is_completed()


def nested(levels: int, keyword: str, inside: Any) -> str:
    """The text of a schema with so many levels, made without recursion."""
    name = '{"a":' if keyword == "properties" else ""
    close = "}" if keyword == "properties" else ""
    return f'{{"{keyword}":{name}' * levels + json.dumps(inside) + f"{close}}}" * levels


def doubling(levels: int, under: str | None) -> dict[str, Any]:
    """Every level refers to the next one twice."""
    definitions: dict[str, Any] = {f"d{levels}": {"type": "integer"}}
    for level in range(levels):
        next_one: Any = {"$ref": f"#/$defs/d{level + 1}"}
        if under is not None:
            definitions[f"d{level}"] = {under: [next_one, next_one]}
        else:
            definitions[f"d{level}"] = {"properties": {"a": next_one, "b": next_one}}
    return {"$ref": "#/$defs/d0", "$defs": definitions}


def one_of(depth: int, wide: int) -> dict[str, Any]:
    if depth == 0:
        return {"type": "integer"}
    return {"oneOf": [{"properties": {f"k{n}": one_of(depth - 1, wide)}} for n in range(wide)]}


OVERLAPPING = {"anyOf": [{"properties": {f"k{n}": {"type": "integer"}}} for n in range(30)]}
MANY = {"properties": {f"key{n}": {"type": "integer"} for n in range(1_000)}}
WORDS = [f"word {n} of many" for n in range(20_000)]

WORKS: dict[str, tuple[Any, list[str], list[str]]] = {
    "a search in a pattern": ({"pattern": "(a+)+b"}, ['"aaab"'], ['"aaa"']),
    "counts in patterns": (
        {"pattern": "^(a{1000}){1000}$"},
        [],
        ['"aaa"'],
    ),
    "many values": ({"enum": WORDS}, [json.dumps(WORDS[-1])], ['"word"']),
    "many constants, of which one": (
        {"oneOf": [{"const": word} for word in WORDS[:2_000]]},
        [json.dumps(WORDS[1_999])],
        ['"word"'],
    ),
    "many kinds, of which one": (
        {
            "type": "object",
            "required": ["kind"],
            "oneOf": [{"properties": {"kind": {"const": n}}} for n in range(300)],
        },
        ['{"kind": 299}'],
        ['{"kind": 300}', "{}"],
    ),
    "overlapping alternatives": (OVERLAPPING, ['{"k0": 1}', '{"k0": ""}'], ["}"]),
    "many properties": (MANY, ['{"key3": 1, "key999": 2}'], ['{"key999": 1, "key3": 2}']),
    "great lengths": ({"type": "string", "maxLength": 10**9}, ['"abc"'], ["1"]),
    "great least lengths": ({"type": "string", "minLength": 10**6}, [], ['"abc"']),
    "great counts": ({"type": "array", "maxItems": 10**9}, ["[1, 2]"], ["1"]),
    "great least counts": ({"type": "array", "minItems": 10**5}, [], ["[1, 2]"]),
    "references that double": (doubling(28, None), ['{"a": {"b": 1}}'], ["["]),
    "references that double in place": (doubling(28, "allOf"), ["3"], ['"a"']),
    "great numbers": ({"minimum": 10**40}, ["1" + "0" * 40], ["9" * 40]),
    "the greatest numbers": ({"maximum": json.loads("1" + "0" * 400)}, ["1" * 400], ["2" * 401]),
    "unknown formats": ({"type": "string", "format": "zip"}, ['"x"'], ["1"]),
    "unknown keywords": ({"type": "null", "colour": 7}, ["null"], ["7"]),
    "a quote in a key": ({"required": ['a"\n\0']}, ['{"a\\"\\n\\u0000": 1}'], ["{}"]),
    "emoji in a constant": (
        {"const": "😀\0"},
        ['"😀\\u0000"', '"\\ud83d\\ude00\\u0000"'],
        ['"😀"'],
    ),
    "not a word": ({"pattern": "^(?!ab)[a-c]*$"}, ['"ba"'], ['"abc"']),
    "letters of all scripts": ({"pattern": "^\\p{L}+$"}, ['"aéж"'], ['"1"']),
    "words that are trimmed, and not too long": (
        {"pattern": "^(?!\\s).*(?<!\\s)$", "maxLength": 4_000},
        ['"a b"', '"a"', '""'],
        ['" a"', '"a "', '"\\n"'],
    ),
    "a first and a last character, and not too many": (
        {"pattern": "^(?!\\s)[\\s\\S]*\\S$", "minLength": 1, "maxLength": 4_000},
        ['"a b"', '"a\\nb"'],
        ['" a"', '"a "', '""'],
    ),
    "a word that is nowhere": (
        {"pattern": "^((?!foo).)*$", "maxLength": 200},
        ['"fo of"', '""'],
        ['"a foo"', '"foo"'],
    ),
    "keys with escapes of which there are not endlessly many": (
        {"propertyNames": {"pattern": "^.{1,2}$"}},
        ['{"\\u00e9": 1, "\\u00e9\\u00e9": 1, "\\u00e9\\u00e8": 1}'],
        ['{"é": 1, "\\u00e9": 1}'],
    ),
    "keys that run out": (
        {"propertyNames": {"pattern": "^[ab]$"}},
        ['{"a": 1, "b": 2}'],
        ['{"a": 1, "a": 2}', '{"c": 1}'],
    ),
}


@pytest.mark.parametrize("case", WORKS)
def test_hard_schemas_work(case: str) -> None:
    schema, valid, invalid = WORKS[case]
    for text in valid:
        assert accepts(schema, text), text
    for text in invalid:
        assert not accepts(schema, text), text


REFUSED: dict[str, tuple[Any, type[stencilm.StencilError], str]] = {
    "a contradiction in allOf": (
        {"allOf": [{"type": "string"}, {"type": "null"}]},
        Unsatisfiable,
        "null.*string",
    ),
    "crossed bounds": ({"type": "number", "minimum": 2, "maximum": 1}, Unsatisfiable, "2.*1"),
    "crossed lengths": (
        {"type": "string", "minLength": 2, "maxLength": 1},
        Unsatisfiable,
        "minLength 2.*maxLength 1",
    ),
    "false": (False, Unsatisfiable, "false"),
    "an empty enum": ({"enum": []}, Unsatisfiable, "enum"),
    "a step of zero": ({"multipleOf": 0}, GrammarSyntaxError, "multipleOf"),
    "a forbidden key that is required": (
        {"type": "object", "required": ["a"], "additionalProperties": False},
        Unsatisfiable,
        "required.*additionalProperties",
    ),
    "a reference to itself": ({"$ref": "#"}, Unsatisfiable, "cycle"),
    "required without an end": (
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        Unsatisfiable,
        "without an end",
    ),
    "a remote reference": (
        {"$ref": "https://a.example/b"},
        UnsupportedFeature,
        "never fetched|ever",
    ),
    "a file": ({"$ref": "file:///etc/passwd"}, UnsupportedFeature, "file:///etc/passwd"),
    "a dangling reference": ({"$ref": "#/$defs/a"}, GrammarSyntaxError, "a"),
    "a reference to no schema": (
        {"$ref": "#/minimum", "minimum": 1},
        GrammarSyntaxError,
        "a number",
    ),
    "a negative count": ({"minItems": -1}, GrammarSyntaxError, "minItems.*-1"),
    "an unknown type": ({"type": "strin"}, GrammarSyntaxError, "strin"),
    "a schema that is a number": ("3", GrammarSyntaxError, "a number"),
    "half a schema": ('{"type":', GrammarSyntaxError, "line 1, column 9"),
    "no schema": ("", GrammarSyntaxError, "line 1, column 1"),
    "a key twice": ('{"type":"null",\n"type":"null"}', GrammarSyntaxError, "line 2.*twice"),
    "half a character": ('{"const":"\\ud800"}', GrammarSyntaxError, "surrogate"),
    "a back-reference": ({"pattern": "(a)\\1"}, UnsupportedFeature, "pattern"),
    "a broken pattern": ({"type": "string", "pattern": "[abc"}, GrammarSyntaxError, "pattern"),
    "a long schema": ({"title": "x" * (11 << 20)}, LimitExceeded, "schema_bytes"),
    "deep items": (nested(60_000, "items", True), LimitExceeded, "deep|nest|level"),
    "great exponents": ('{"minimum":1e999999999999}', LimitExceeded, "minimum"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_schemas_are_refused_with_their_place(case: str) -> None:
    schema, error, words = REFUSED[case]
    with pytest.raises(error, match=words) as caught:
        Grammar.from_json_schema(schema)
    assert len(str(caught.value)) < 1_000
    # The next one is untouched.
    assert accepts({"type": "null"}, "null")


@pytest.mark.parametrize(
    "schema",
    [
        one_of(8, 3),
        nested(400, "properties", {"type": "null"}),
        {
            "$ref": "#/$defs/d0",
            "$defs": {
                **{f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(5_000)},
                "d5000": {"type": "null"},
            },
        },
        {"pattern": "(.*a.{20}){3}"},
    ],
    ids=["oneOf in oneOf", "deep properties", "a long chain of references", "a wide automaton"],
)
def test_large_schemas_work_or_name_the_limit(schema: Any) -> None:
    try:
        matcher = GrammarMatcher(COMPILER.compile_json_schema(schema))
    except LimitExceeded as error:
        assert error.place
    else:
        matcher.find_jump_forward_string()


ORDERED = {f"k{n}": {"type": ["integer", "string", "boolean"][n % 3]} for n in range(60)}


@pytest.mark.parametrize(
    ("schema", "begun", "options"),
    [
        ({"items": {"type": "number"}, "uniqueItems": True}, "[0, 1, 2.5,", {}),
        ({"items": {"type": "number"}, "uniqueItems": True}, "[0, 1e5,", {"spelling": "any"}),
        (
            {
                "properties": {**ORDERED, "some": {"type": "object", "minProperties": 3}},
                "required": [*ORDERED, "some"],
            },
            "{",
            {"property_order": "any"},
        ),
        (
            {
                "properties": {**ORDERED, "k0": {"oneOf": [{"type": "integer"}, {}]}},
                "required": [*ORDERED],
            },
            "{",
            {"property_order": "any"},
        ),
    ],
    ids=["numbers", "numbers in any spelling", "keys that must be new", "a value that is no other"],
)
def test_what_has_begun_can_be_ended(schema: Any, begun: str, options: Any) -> None:
    matcher = GrammarMatcher(COMPILER.compile_json_schema(schema, **options))
    assert matcher.accept_string(begun)
    text = begun + matcher.shortest_completion().decode()
    assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)), text


def test_a_deadline_ends_what_takes_too_long() -> None:
    definitions = {f"d{n}": {"pattern": f"{n}.*x{n % 7}[a-c]{{3}}.*y"} for n in range(12)}
    hard = {
        "type": "string",
        "allOf": [{"not": {"$ref": f"#/$defs/d{n}"}} for n in range(12)],
        "pattern": "^(.*[ab].*[xy]){9}$",
        "$defs": definitions,
    }
    hurried = GrammarCompiler(INFO, limits=Limits(milliseconds=1))
    with pytest.raises(LimitExceeded, match="more than 1 ms"):
        matcher = GrammarMatcher(hurried.compile_json_schema(hard))
        matcher.accept_string('"' + "abxyab" * 40)
    assert GrammarMatcher(hurried.compile_json_schema({"type": "null"})).accept_string("null")


def test_a_signal_ends_what_takes_too_long() -> None:
    class Cancelled(Exception):
        """What the handler raises."""

    def cancel(number: int, frame: object) -> None:
        raise Cancelled

    # Ten words and too little room for them, which is found out by trying.
    letters = "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    words = [{"pattern": letters[at : at + 4]} for at in range(0, 40, 4)]
    hard = {"type": "string", "allOf": words, "maxLength": 38}
    patient = GrammarCompiler(INFO, limits=Limits(milliseconds=600_000))
    before = signal.signal(signal.SIGALRM, cancel)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(Cancelled) as caught:
            patient.compile_json_schema(hard)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    # It came first, before the end of the work, which would be an error of its own.
    assert caught.value.__context__ is None
    assert GrammarMatcher(patient.compile_json_schema({"type": "null"})).accept_string("null")
