"""Random schemas over all keywords, held against the package jsonschema.

Instances are decided as it decides them, and random walks through masks end in valid instances.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import stencilm
from stencilm import CompiledGrammar, GrammarCompiler, GrammarMatcher, TokenizerInfo
from stencilm.errors import StencilError, Unsatisfiable

jsonschema = pytest.importorskip("jsonschema")

INFO = TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
COMPILER = GrammarCompiler(INFO, cache_enabled=False)
# More for a long run: STENCILM_SCHEMAS=100000 pytest tests/schemas/test_differential.py
SCHEMAS = int(os.environ.get("STENCILM_SCHEMAS", "350"))
KEYS = ["a", "b", "ab", "c"]
PATTERNS = ["^a", "b$", "^[ab]$", "^[a-c]{2}$", "^.{1,2}$", "c"]
AROUND = ["^((?!ab)[a-c])*$", "^(?!b)[a-c]*(?<!a)$", "^(?=[ab]*c)[a-c]{1,3}$"]
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    1.0,
    2,
    2.5,
    -3,
    "",
    "a",
    "ab",
    "cab",
    [],
    {},
    [1],
    {"a": 1},
]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]


class Maker:
    """Draws schemas and values."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def schema(self, depth: int) -> Any:
        pick = self.random
        if pick.random() < 0.08:
            return pick.random() < 0.7
        keywords = [self.type, self.number, self.string, self.listed]
        if depth > 0:
            keywords += [
                self.array,
                self.array,
                self.object,
                self.object,
                self.object,
                self.combined,
            ]
        made: dict[str, Any] = {}
        for _ in range(pick.randint(1, 3)):
            made |= pick.choice(keywords)(depth - 1)
        return made

    def root(self) -> Any:
        """A schema, or one in several resources in which a dynamic reference finds its target."""
        pick = self.random
        kind = pick.random()
        if kind < 0.75:
            return self.schema(3)
        if kind < 0.85:
            return {"oneOf": self.told_apart(2)}
        again = {"$dynamicRef": pick.choice(["#node", "tree#node"])}
        tree = {
            "$id": "tree",
            "$dynamicAnchor" if pick.random() < 0.8 else "$anchor": "node",
            "properties": {"a": again, "b": self.schema(0)},
            "items": again,
        }
        outer = {
            "$id": "https://example.org/outer",
            "$ref": "tree",
            "$defs": {"tree": tree},
            pick.choice(["allOf", "anyOf"]): [self.schema(1), self.schema(1)],
        }
        if pick.random() < 0.7:
            outer["$dynamicAnchor"] = "node"
        return outer

    def type(self, depth: int) -> dict[str, Any]:
        names = self.random.sample(TYPES, self.random.randint(1, 3))
        return {"type": names[0] if len(names) == 1 else names}

    def number(self, depth: int) -> dict[str, Any]:
        if self.random.random() < 0.3:
            # jsonschema reckons with integers exactly.
            return {"multipleOf": self.random.choice([1, 2, 3])}
        keyword = self.random.choice(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"])
        return {keyword: self.random.choice([1, 2, 0.5, 3])}

    def string(self, depth: int) -> dict[str, Any]:
        return self.random.choice(
            [
                {"minLength": self.random.randint(0, 2)},
                {"maxLength": self.random.randint(0, 3)},
                {"pattern": self.random.choice(PATTERNS)},
                {"pattern": self.random.choice(AROUND), "maxLength": self.random.randint(1, 999)},
            ]
        )

    def listed(self, depth: int) -> dict[str, Any]:
        if self.random.random() < 0.5:
            return {"const": self.random.choice(VALUES)}
        return {"enum": self.random.sample(VALUES, self.random.randint(1, 5))}

    def array(self, depth: int) -> dict[str, Any]:
        inner = self.schema
        ways: list[Callable[[], dict[str, Any]]] = [
            lambda: {"items": inner(depth)},
            lambda: {"prefixItems": [inner(depth) for _ in range(self.random.randint(1, 2))]},
            lambda: {"contains": inner(depth), "minContains": self.random.randint(0, 2)},
            lambda: {"contains": inner(depth), "maxContains": self.random.randint(0, 2)},
            lambda: {"uniqueItems": True},
            lambda: {"uniqueItems": True, "type": "array", "items": self.listed(0), "minItems": 1},
            lambda: {"uniqueItems": True, "items": self.object(1), "maxItems": 4},
            lambda: {"minItems": self.random.randint(0, 2)},
            lambda: {"maxItems": self.random.randint(0, 3)},
            lambda: {"prefixItems": [inner(depth)], "unevaluatedItems": inner(depth)},
        ]
        return self.random.choice(ways)()

    def object(self, depth: int) -> dict[str, Any]:
        inner, pick = self.schema, self.random
        ways: list[Callable[[], dict[str, Any]]] = [
            lambda: {"properties": {key: inner(depth) for key in pick.sample(KEYS, 2)}},
            lambda: {"required": pick.sample(KEYS, pick.randint(1, 2))},
            lambda: {"additionalProperties": inner(depth)},
            lambda: {"patternProperties": {pick.choice(PATTERNS): inner(depth)}},
            lambda: {"propertyNames": {"pattern": pick.choice(PATTERNS)}},
            lambda: {"minProperties": pick.randint(0, 2)},
            lambda: {"maxProperties": pick.randint(0, 3)},
            lambda: {"dependentRequired": {pick.choice(KEYS): [pick.choice(KEYS)]}},
            lambda: {"dependentSchemas": {pick.choice(KEYS): inner(depth)}},
            lambda: {"properties": {"a": inner(depth)}, "unevaluatedProperties": inner(0)},
        ]
        return self.random.choice(ways)()

    def combined(self, depth: int) -> dict[str, Any]:
        inner = self.schema
        ways: list[Callable[[], dict[str, Any]]] = [
            lambda: {"allOf": [inner(depth), inner(depth)]},
            lambda: {"anyOf": [inner(depth), inner(depth)]},
            lambda: {"oneOf": [inner(depth), inner(depth)]},
            lambda: {"not": inner(depth)},
            lambda: {"oneOf": self.told_apart(depth)},
            lambda: {"if": inner(depth), "then": inner(depth), "else": inner(depth)},
        ]
        return self.random.choice(ways)()

    def told_apart(self, depth: int) -> list[Any]:
        """Branches of objects told apart by the values of one member, some within branches."""
        pick = self.random
        branches: list[Any] = []
        for _ in range(pick.randint(2, 3)):
            if depth > 0 and pick.random() < 0.3:
                branches.append({"oneOf": self.told_apart(depth - 1)})
                continue
            kind = {"enum": pick.sample(["a", "ab", 1, True], pick.randint(1, 2))}
            branch: dict[str, Any] = {"properties": {"a": kind, "b": self.type(0)}}
            branch |= pick.choice([{}, {}, {"required": ["a"]}, {"additionalProperties": False}])
            branches.append(branch)
        return [*branches, True] if pick.random() < 0.3 else branches

    def value(self, depth: int) -> Any:
        pick = self.random
        if depth == 0 or pick.random() < 0.4:
            return pick.choice(VALUES)
        if pick.random() < 0.4:
            return [self.value(depth - 1) for _ in range(pick.randint(0, 3))]
        keys = pick.sample([*KEYS, "bc", "x"], pick.randint(0, 3))
        return {key: self.value(depth - 1) for key in keys}


def compiled(schema: Any, **options: Any) -> CompiledGrammar | None:
    """None where no value is valid; other refusals are answered by skipping the schema."""
    try:
        return COMPILER.compile_json_schema(schema, property_order="any", **options)
    except Unsatisfiable:
        return None


def walk(matcher: GrammarMatcher, random: Random, most: int) -> str:
    """Random tokens, each as likely as another, and then a way to the end."""
    mask = np.zeros((INFO.vocab_size + 31) // 32, dtype=np.int32)
    tokens: list[int] = []
    while not matcher.is_terminated() and len(tokens) < most:
        matcher.fill_next_token_bitmask(mask)
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        assert len(allowed), "a mask without tokens"
        token = int(random.choice(allowed.tolist()))
        assert matcher.accept_token(token), "the mask allows what is refused"
        tokens.append(token)
    text = INFO.decode_bytes([token for token in tokens if token not in INFO.stop_token_ids])
    if not matcher.is_terminated():
        text += matcher.shortest_completion()
    return text.decode()


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), "a key stands twice in one object"
    return dict(pairs)


@pytest.mark.parametrize("spelling", ["natural", "any"])
def test_instances_are_decided_as_jsonschema_does_and_walks_end_valid(spelling: str) -> None:
    decided, walked, refused = 0, 0, 0
    for seed in range(SCHEMAS):
        maker = Maker(seed)
        schema = maker.root()
        validator = jsonschema.Draft202012Validator(schema)
        try:
            grammar = compiled(schema, spelling=spelling)
        except StencilError:
            refused += 1
            continue
        for _ in range(12):
            value = maker.value(3)
            valid = validator.is_valid(value)
            text = json.dumps(value, separators=(",", ":") if maker.random.random() < 0.5 else None)
            accepted = False
            if grammar is not None:
                matcher = GrammarMatcher(grammar)
                accepted = matcher.accept_string(text) and matcher.is_completed()
            # 1.0 is an integer that the natural spelling has, too.
            assert accepted == valid, f"seed {seed}: {json.dumps(schema)}\n{text}"
            decided += 1
        for _ in range(2 if grammar is not None else 0):
            assert grammar is not None
            try:
                text = walk(GrammarMatcher(grammar), maker.random, 60)
            except stencilm.LimitExceeded:
                continue
            try:
                value = json.loads(text, object_pairs_hook=without_duplicates, parse_float=exact)
            except Beyond:
                continue
            assert validator.is_valid(value), f"seed {seed}: {json.dumps(schema)}\n{text}"
            walked += 1
    print(f"{decided} instances decided, {walked} walks, {refused} of {SCHEMAS} schemas refused")
    assert refused < SCHEMAS // 5


class Beyond(Exception):
    """A number that jsonschema cannot reckon with."""


def exact(text: str) -> Fraction | int:
    """A number as it is meant: what is an integer is one."""
    if len(text.lower().partition("e")[2].lstrip("+-0")) > 3:
        raise Beyond
    number = Fraction(text)
    return int(number) if number.denominator == 1 else number


SHARED = Path(os.environ.get("STENCILM_SHARED", Path(__file__).parents[3] / "shared"))
DRAFTS = {
    "draft-04": "Draft4Validator",
    "draft-06": "Draft6Validator",
    "2019-09": "Draft201909Validator",
}


def public_schemas(every: int) -> list[tuple[str, Any]]:
    """Every so-many-th schema of MaskBench, with its name."""
    rows = []
    for file in sorted((SHARED / "maskbench").glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            rows += [json.loads(line) for line in lines]
    return [(row["id"], row["schema"]) for row in rows[::every]]


def validator_of(schema: Any) -> Any:
    """The validator of the draft that the schema names."""
    named = str(schema.get("$schema", "2020-12")) if isinstance(schema, dict) else "2020-12"
    found = [name for draft, name in DRAFTS.items() if draft in named]
    fallback = "Draft7Validator" if "draft-07" in named else "Draft202012Validator"
    return getattr(jsonschema, found[0] if found else fallback)(schema)


@pytest.mark.skipif(not (SHARED / "maskbench").is_dir(), reason="the public schemas are not here")
def test_walks_under_public_schemas_end_in_valid_instances() -> None:
    walked = 0
    for name, schema in public_schemas(every=max(1, 12_000 // SCHEMAS)):
        try:
            grammar = compiled(schema)
        except StencilError:
            continue
        for seed in range(2 if grammar is not None else 0):
            assert grammar is not None
            try:
                text = walk(GrammarMatcher(grammar), Random(f"{name} {seed}"), 80)
                value = json.loads(text, object_pairs_hook=without_duplicates, parse_float=exact)
                # The numbers of the schema are exact, too: 299.97 is no float.
                meant = json.loads(json.dumps(schema), parse_float=exact)
                valid = validator_of(meant).is_valid(value)
            except (stencilm.LimitExceeded, stencilm.MatcherError, Beyond, re.error):
                # A pattern that Python does not read, or a number beyond what jsonschema can.
                continue
            assert valid, f"{name}, walk {seed}:\n{text}"
            walked += 1
    print(f"{walked} walks under public schemas")
    assert walked > 20
