"""The schemas by which the extension is optimised (`pgo/`) take the values drawn with them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pgo.schemas import Drawer
from stencilm import GrammarCompiler, GrammarMatcher
from tokenizer_folders import tokenizer_info

jsonschema = pytest.importorskip("jsonschema")


def is_valid(schema: dict[str, Any], value: Any) -> bool:
    validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    return bool(validator(schema).is_valid(value))


def test_a_schema_takes_its_value_in_any_order() -> None:
    compiler = GrammarCompiler(tokenizer_info("tiny"), cache_enabled=False)
    for seed in range(300):
        schema, value = Drawer(seed).document()
        assert is_valid(schema, value), seed
        compiled = compiler.compile_json_schema(schema, property_order="any")
        for text in (json.dumps(value), json.dumps(value, indent=2, ensure_ascii=False)):
            matcher = GrammarMatcher(compiled)
            assert matcher.accept_string(text), (seed, matcher.longest_valid_prefix(text))
            assert matcher.is_completed(), seed
