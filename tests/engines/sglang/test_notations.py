"""How the texts of requests are read, without SGLang."""

from __future__ import annotations

import json

import pytest

from stencilm.integrations.sglang.notations import is_lark, with_schemas


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('root ::= "a"', False),
        ('start: "a"', True),
        ("?start: x\nx: /a/", True),
        ('%llguidance {}\nstart: "a"', True),
        ('root ::= "a: b"\n', False),
        ("nothing", False),
        ('start: "::="', True),
        ('start: "a" // x ::= y\n// x: ::=', True),
        ('root[lazy]\n  ::= "a"\nx: y', False),
        ("x-1 ::= [:]\nroot ::= x-1", False),
    ],
)
def test_lark_is_told_from_ebnf(text: str, expected: bool) -> None:
    assert is_lark(text) is expected


def test_a_schema_that_is_null_allows_everything_and_values_stay_as_they_are() -> None:
    value = {"type": "json_schema", "json_schema": None}
    kept = {
        "type": "json_schema",
        "json_schema": {"const": {"json_schema": None, "type": "json_schema"}},
    }
    tag = {"format": {"type": "or", "elements": [value, kept]}}
    found = json.loads(with_schemas(json.dumps(tag)))["format"]["elements"]
    assert found == [{"type": "json_schema", "json_schema": {}}, kept]
    older = {"structures": [{"begin": "<f>", "schema": None, "end": "</f>"}], "triggers": ["<f>"]}
    assert json.loads(with_schemas(json.dumps(older)))["structures"][0]["schema"] == {}
