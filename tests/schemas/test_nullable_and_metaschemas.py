"""What schemas take from elsewhere: `nullable` of OpenAPI 3.0, and the published meta-schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, JsonSchema, TokenizerInfo

INFO = TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
COMPILER = GrammarCompiler(INFO, cache_enabled=False)
NULLABLE = {"type": "string", "nullable": True, "maxLength": 2}


def accepts(grammar: Grammar | stencilm.CompiledGrammar, value: Any) -> bool:
    compiled = COMPILER.compile(grammar) if isinstance(grammar, Grammar) else grammar
    matcher = GrammarMatcher(compiled)
    return matcher.accept_string(json.dumps(value)) and matcher.is_completed()


@pytest.mark.parametrize("nullable", [False, True])
def test_nullable_is_read_where_asked_for(nullable: bool) -> None:
    grammars: list[Grammar | stencilm.CompiledGrammar] = [
        Grammar.from_json_schema(NULLABLE, nullable=nullable),
        COMPILER.compile_json_schema(NULLABLE, nullable=nullable),
        COMPILER.compile_json_schema(json.dumps(NULLABLE), nullable=nullable),
        stencilm.Grammar.from_type(JsonSchema(NULLABLE, nullable=nullable)),
    ]
    for grammar in grammars:
        assert accepts(grammar, None) is nullable
        assert accepts(grammar, "ab")
        assert not accepts(grammar, "abc")
    report = Grammar.from_json_schema(NULLABLE, nullable=nullable).report
    fates = report.enforced if nullable else report.annotations
    assert "nullable" in [finding.keyword for finding in fates]


def test_grammars_differ_by_nullable() -> None:
    assert Grammar.from_json_schema(NULLABLE) != Grammar.from_json_schema(NULLABLE, nullable=True)
    assert JsonSchema(NULLABLE) != JsonSchema(NULLABLE, nullable=True)
    with pytest.raises(TypeError, match="nullable"):
        Grammar.from_json_schema(NULLABLE, nullable="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "uri",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ],
)
def test_metaschemas_decide_as_jsonschema_does(uri: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.validators.validator_for({"$schema": uri})
    meta = validator(validator.META_SCHEMA)
    compiled = COMPILER.compile_json_schema(
        {"$ref": uri}, property_order="any", formats="annotation"
    )
    for schema in [
        {"type": "integer", "minimum": 3},
        {"type": "int"},
        {"properties": {"a": {"minLength": -1}}},
        {"properties": {"a": {"minLength": 1}}, "required": ["a"]},
        {"required": ["a", "a"]},
        {"items": [{"type": "null"}]},
        {"exclusiveMinimum": True, "minimum": 1},
        {"exclusiveMinimum": 1},
        {"allOf": []},
        {"not": {"anyOf": [{"enum": [1]}, {"multipleOf": 0}]}},
        {"title": 3},
    ]:
        assert accepts(compiled, schema) == meta.is_valid(schema), schema
