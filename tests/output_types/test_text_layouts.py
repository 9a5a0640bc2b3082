"""How JSON is laid out and spelled: the same options for schemas, types and calls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import pytest
from pydantic import Field

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, JsonSchema, TokenizerInfo


@dataclass
class Item:
    name: Annotated[str, Field(max_length=8)]
    size: Annotated[int, Field(ge=0, le=99)]


Items: TypeAlias = Annotated[list[Item], Field(max_length=2)]


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "size": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["name", "size"],
    "additionalProperties": False,
}
BYTES = TokenizerInfo([*(bytes([byte]) for byte in range(256)), "</s>"], stop_token_ids=[256])


def takes(grammar: Grammar, text: str) -> bool:
    matcher = GrammarMatcher(GrammarCompiler(BYTES).compile(grammar))
    return bool(matcher.accept_string(text) and matcher.is_completed())


VALUE = {"name": "a/é\n", "size": 3}
COMPACT = json.dumps(VALUE, separators=(",", ":"), ensure_ascii=False)
INDENTED = json.dumps(VALUE, indent=2, ensure_ascii=False)
SPACED = json.dumps(VALUE, ensure_ascii=False)
ESCAPED = r'{"name": "\u0061\/\u00e9\u000a", "size": 3}'


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ({}, [COMPACT, INDENTED, SPACED, ESCAPED]),
        ({"compact": True}, [COMPACT]),
        ({"any_whitespace": False, "indent": 2}, [INDENTED]),
        ({"any_whitespace": False}, [SPACED, ESCAPED]),
        ({"max_whitespace": 1}, [COMPACT, SPACED, ESCAPED]),
        ({"escapes": "minimal"}, [COMPACT, INDENTED, SPACED]),
        ({"escapes": "minimal", "compact": True, "spelling": "any"}, [COMPACT]),
    ],
)
def test_schemas_and_types_take_the_same_options(options: Any, texts: list[str]) -> None:
    for grammar in (
        Grammar.from_json_schema(SCHEMA, **options),
        Grammar.from_type(Item, **options),
        Grammar.from_type(JsonSchema(Item, **options)),
        Grammar.from_type(JsonSchema(SCHEMA), **options),
    ):
        for text in (COMPACT, INDENTED, SPACED, ESCAPED):
            assert takes(grammar, text) == (text in texts), (text, grammar.source)


def test_integers_of_types_are_digits() -> None:
    for text, of_type, of_schema in (
        ("34", True, True),
        ("-3", True, True),
        ("-0", False, True),
        ("34.0", False, True),
        ("3e1", False, False),
        ("9" * 4300, True, True),
    ):
        assert takes(Grammar.from_type(int), text) == of_type, text
        assert takes(Grammar.from_json_schema({"type": "integer"}), text) == of_schema, text


def test_minimal_escapes_hold_everywhere() -> None:
    for schema, plain, escaped in (
        ({}, '{"a/": ["b"]}', r'{"a\/": ["b"]}'),
        ({}, '{"a/": ["b"]}', r'{"a/": ["\u0062"]}'),
        ({"type": "object"}, '{"é": 1}', r'{"\u00e9": 1}'),
        ({"type": "string", "pattern": "^é+$"}, '"éé"', r'"é\u00e9"'),
        ({"enum": ["a/é"]}, '"a/é"', r'"a/\u00e9"'),
        ({"type": "string", "format": "uri"}, '"http://a.b/c"', r'"http:\/\/a.b/c"'),
        ({"type": "string", "maxLength": 2}, '"é/"', r'"\u00e9/"'),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            '["é"]',
            r'["\u00e9"]',
        ),
    ):
        grammar = Grammar.from_json_schema(schema, escapes="minimal")
        assert takes(grammar, plain) and not takes(grammar, escaped), schema
        for character in ("\n", "\t", '"', "\\", "\x00", "\x1f", "\x7f", "\u2028", "😀"):
            text = json.dumps(character, ensure_ascii=False)
            anything = Grammar.from_json_schema({}, escapes="minimal")
            assert takes(anything, text), text


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"compact": True, "indent": 2}, ValueError, "compact=True and indent=2 exclude"),
        ({"compact": True, "any_whitespace": True}, ValueError, "any_whitespace=True exclude"),
        ({"compact": "yes"}, TypeError, "compact is 'yes'"),
        ({"escapes": "few"}, ValueError, "escapes is 'few'"),
        ({"layout": 1}, TypeError, "'layout' is no option of a schema"),
    ],
)
def test_options_that_are_none(options: Any, error: Any, says: str) -> None:
    for make in (
        lambda: Grammar.from_json_schema(SCHEMA, **options),
        lambda: Grammar.from_type(Item, **options),
        lambda: Grammar.from_type(str, **options),
        lambda: JsonSchema(Item, **options),
    ):
        with pytest.raises(error, match=says):
            make()


def test_output_types_are_equal_by_their_options() -> None:
    assert JsonSchema(SCHEMA, compact=True) == JsonSchema(dict(SCHEMA), compact=True)
    assert JsonSchema(SCHEMA, compact=True) != JsonSchema(SCHEMA)
    assert hash(JsonSchema(Item, indent=2)) == hash(JsonSchema(Item, indent=2))
    assert "compact" in repr(JsonSchema(Item, compact=True))


@pytest.mark.parametrize("output_type", [Item, JsonSchema(SCHEMA), Items])
def test_calls_take_the_layout(output_type: Any) -> None:
    pytest.importorskip("transformers")
    model = stencilm.load("tiny")
    options: dict[str, Any] = {"max_tokens": 120, "temperature": 1.0, "seed": 2}
    tight = model.generate("Things:\n", output_type, compact=True, escapes="minimal", **options)
    value = json.loads(tight.text)
    assert tight.text == json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    lines = model.generate("Things:\n", output_type, indent=2, escapes="minimal", **options)
    assert lines.text == json.dumps(json.loads(lines.text), indent=2, ensure_ascii=False)


def test_a_layout_changes_nothing_about_bare_texts() -> None:
    pytest.importorskip("transformers")
    model = stencilm.load("tiny")
    assert model("Yes or no: ", Literal["yes", "no"], compact=True) in ("yes", "no")
    assert isinstance(model("Once ", str, indent=2, max_tokens=5), str)


def test_forty_objects_without_a_blank() -> None:
    """Random tokens, so that what may be a blank is one often."""
    import numpy as np

    schema = {"type": "array", "items": {**SCHEMA, "properties": {
        "name": {"enum": ["bolt", "nut"]}, "size": {"type": "integer", "maximum": 99, "minimum": 0}
    }}, "minItems": 40, "maxItems": 40}  # fmt: skip
    mask = np.zeros((1, 9), dtype=np.int32)
    counts = {}
    for compact in (False, True):
        random = np.random.default_rng(0)
        grammar = Grammar.from_json_schema(schema, compact=compact)
        matcher = GrammarMatcher(GrammarCompiler(BYTES).compile(grammar))
        text = b""
        while not matcher.is_terminated():
            matcher.fill_next_token_bitmask(mask)
            bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[:257]
            token_id = int(random.choice(np.flatnonzero(bits)))
            assert matcher.accept_token(token_id)
            text += BYTES.decode_bytes([token_id])
        assert len(json.loads(text)) == 40
        counts[compact] = sum(byte in b" \t\n\r" for byte in text)
    assert counts[True] == 0 < counts[False]
