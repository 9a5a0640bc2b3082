"""Random schemas of arguments, between markers and as literals, against a JSON Schema validator."""

from __future__ import annotations

import contextlib
import json
import random
from typing import Any, ClassVar

import jsonschema
import numpy as np
import pytest

from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo, allocate_token_bitmask
from stencilm.errors import StencilError, Unsatisfiable, UnsupportedFeature
from stencilm.tool_calls.writer import write_arguments

NAMES = ["a", "b", "c", "x-1", 'd"<']
VALUES: list[Any] = ["", "s", "</p", "1", 1, 2, True, None, [1], ["</parameter>"], {"a": 1}, {}]
SCALARS: list[dict[str, Any] | bool] = [
    {"type": "string"},
    {"type": "integer"},
    {"enum": ["s", 1, [1]]},
    {"type": ["string", "null"], "maxLength": 1},
    {"type": "array", "items": {"type": ["integer", "string"]}},
    {"not": {"type": "string"}},
    {"const": "s"},
    True,
    {"type": "object", "properties": {"a": {"type": "integer"}}},
]
# The text of an argument: what stands before the name, between name and value, and after it.
STYLES = {
    "qwen_xml": ("<parameter=", ">", "</parameter>"),
    "glm_xml": ("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>"),
    "deepseek_xml": ('<｜DSML｜parameter name="', '" string="{}">', "</｜DSML｜parameter>"),
    "kimi_k3_xml": (
        '<|open|>argument key="',
        '" type="{}"<|sep|>',
        "<|close|>argument<|sep|>",
    ),
}
TYPES = {bool: "boolean", int: "number", str: "string", list: "array", dict: "object"}


def escaped(value: Any) -> str:
    """A value as JSON that does not hold what would end it."""
    return json.dumps(value).replace("</parameter>", "\\u003c/parameter>")


class Case:
    """A random schema of arguments, and texts of arguments."""

    styles: ClassVar[list[str]] = [*STYLES]
    values: ClassVar[list[Any]] = VALUES
    scalars: ClassVar[list[dict[str, Any] | bool]] = SCALARS
    # What the names of a pattern begin with, and names that are listed.
    prefix: ClassVar[str] = "x-"
    listed: ClassVar[list[str]] = ["a", "b", "x-1"]

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.style = self.chance.choice(self.styles)
        self.names = self.known_names()
        self.any_order = self.chance.random() < 0.5
        self.schema = self.object(2)
        self.tag = {
            "type": "json_schema",
            "style": self.style,
            "any_order": self.any_order,
            "json_schema": self.schema,
        }

    def known_names(self) -> list[str]:
        # A name with marks can be written where none of them ends it.
        return NAMES if self.style in ("qwen_xml", "glm_xml") else NAMES[:-1]

    def some(self, items: list[Any]) -> list[Any]:
        return self.chance.sample(items, self.chance.randrange(len(items)))

    def value(self) -> Any:
        return self.chance.choice(self.scalars) if self.chance.random() < 0.9 else {"$ref": "#"}

    def object(self, depth: int) -> dict[str, Any]:
        chance = self.chance
        made: dict[str, Any] = {"type": "object"}
        made["properties"] = {name: self.value() for name in self.some(self.names)}
        if chance.random() < 0.6:
            made["required"] = self.some(self.names)
        if chance.random() < 0.6:
            made["additionalProperties"] = chance.choice([False, False, {"type": "integer"}])
        if chance.random() < 0.3:
            made["patternProperties"] = {"^" + self.prefix: chance.choice(self.scalars)}
        if chance.random() < 0.3:
            made["propertyNames"] = chance.choice([{"maxLength": 1}, {"enum": self.listed}])
        if chance.random() < 0.3:
            made["minProperties"] = chance.randrange(3)
        if chance.random() < 0.3:
            made["maxProperties"] = chance.randrange(1, 4)
        if depth and chance.random() < 0.3:
            keyword = chance.choice(["anyOf", "allOf", "oneOf"])
            made[keyword] = [self.object(depth - 1) for _ in range(2)]
        if depth and chance.random() < 0.15:
            made["not"] = self.object(0)
        if depth and chance.random() < 0.1:
            return {"enum": [self.arguments() for _ in range(3)] + [3]}
        return made

    def arguments(self) -> dict[str, Any]:
        names = self.some([*self.names, "other"])
        return {name: self.chance.choice(self.values) for name in names}

    def written(self, arguments: dict[str, Any]) -> str:
        """Arguments as a model writes them; JSON with `<` escaped where it would end the value."""
        before, between, behind = STYLES[self.style]
        text = ""
        for name, value in arguments.items():
            is_text = isinstance(value, str)
            raw = value if is_text else escaped(value)
            word = ("true" if is_text else "false") if self.style == "deepseek_xml" else ""
            if self.style == "kimi_k3_xml":
                word = "null" if value is None else TYPES[type(value)]
            text += before + name + between.replace("{}", word) + raw + behind
        return text

    def is_valid(self, arguments: dict[str, Any]) -> bool:
        return bool(jsonschema.Draft202012Validator(self.schema).is_valid(arguments))

    def readings(self, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        """All that a text may mean: without a word for the type, JSON is a string, too."""
        readings: list[dict[str, Any]] = [{}]
        for name, value in arguments.items():
            values = [value]
            if self.style in ("qwen_xml", "glm_xml"):
                if isinstance(value, str):
                    with contextlib.suppress(ValueError):
                        values.append(json.loads(value))
                else:
                    # As it is written, which only matters where strings are constrained.
                    values.append(escaped(value))
            readings = [{**reading, name: value} for reading in readings for value in values]
        return readings

    def in_order(self, arguments: dict[str, Any]) -> bool | None:
        """Whether the order is that of the schema; None where several schemas have a say in it."""
        if self.any_order:
            return True
        if not {"anyOf", "allOf", "oneOf", "not", "enum"}.isdisjoint(self.schema):
            return None
        named = [*self.schema["properties"], *self.schema.get("required", [])]
        declared = list(dict.fromkeys(named))
        places = [declared.index(name) if name in declared else len(declared) for name in arguments]
        return places == sorted(places)


class Literals(Case):
    """The same as literals of a notation."""

    styles: ClassVar[list[str]] = ["python", "gemma"]
    values: ClassVar[list[Any]] = [
        *["", "s", "it's", 'a "b"', "1", 1, 2, True, None, [1], [1, 1], ["s", True], ["s", "s"]],
        *[
            [True, True],
            [{"a": 1}, {"a": 1}],
            {"a": 1},
            {"x_2": "t"},
            {},
            [1, "s", None],
            [[1], [1]],
        ],
    ]
    scalars: ClassVar[list[dict[str, Any] | bool]] = [
        {"type": "string"},
        {"type": "integer"},
        {"enum": ["s", 1, [1], {"a": 1}, None]},
        {"type": ["string", "null"], "maxLength": 4},
        {"type": "array", "items": {"type": ["integer", "string", "boolean"]}},
        {"type": "array", "uniqueItems": True},
        {"type": "array", "contains": {"const": "s"}, "maxContains": 1},
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 1},
        {"not": {"type": ["string", "array"]}},
        {"allOf": [{"type": "object"}, {"patternProperties": {"^x_": {"type": "integer"}}}]},
        {"type": "object", "minProperties": 1, "propertyNames": {"pattern": "^a"}},
        True,
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
    ]
    prefix: ClassVar[str] = "x_"
    listed: ClassVar[list[str]] = ["a", "b", "x_1"]

    def known_names(self) -> list[str]:
        return ["c", "a", "b", "x_1"]

    def written(self, arguments: dict[str, Any]) -> str:
        return write_arguments(self.style, arguments)

    def readings(self, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        return [arguments]

    def in_order(self, arguments: dict[str, Any]) -> bool | None:
        in_order = super().in_order(arguments)
        if in_order is False and self.style == "gemma":
            # Known names may also come sorted.
            named = {*self.schema["properties"], *self.schema.get("required", [])}
            known = [name for name in arguments if name in named]
            if [*arguments][: len(known)] == known == sorted(known):
                return None
        return in_order


@pytest.fixture(scope="module")
def info() -> TokenizerInfo:
    pieces = ["<parameter=", "</parameter>", "a>", '="', "<arg_key>a", '">s<', "]</", "{}"]
    every: list[str | bytes] = [*(bytes([byte]) for byte in range(256)), *pieces, "</s>"]
    return TokenizerInfo(every, stop_token_ids=[len(every) - 1])


@pytest.mark.parametrize("block", range(6))
@pytest.mark.parametrize("kind", [Case, Literals])
def test_random_arguments(info: TokenizerInfo, kind: type[Case], block: int) -> None:
    compiler = GrammarCompiler(info)
    compared = accepted = 0
    for seed in range(block * 15, block * 15 + 15):
        case = kind(seed)
        samples = [case.arguments() for _ in range(20)]
        try:
            compiled = compiler.compile_structural_tag(case.tag)
        except Unsatisfiable:
            assert not any(map(case.is_valid, samples)), case.tag
            continue
        except UnsupportedFeature:
            continue
        compared += 1
        for arguments in samples:
            in_order = case.in_order(arguments)
            expected = any(map(case.is_valid, case.readings(arguments)))
            if in_order is None and expected:
                continue
            matcher = GrammarMatcher(compiled)
            text = case.written(arguments)
            found = matcher.accept_string(text) and matcher.is_completed()
            assert found == (expected and in_order), (seed, case.tag, arguments, text)
            accepted += found
        walk(case, GrammarMatcher(compiled, max_rollback_tokens=4), info)
    assert compared > 4
    assert accepted > 2


def walk(case: Case, matcher: GrammarMatcher, info: TokenizerInfo) -> None:
    """Masks along a text are what single tokens say, and lead to an end."""
    mask = np.asarray(allocate_token_bitmask(1, info.vocab_size))
    for _ in range(12):
        matcher.fill_next_token_bitmask(mask)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: info.vocab_size]
        allowed = set(map(int, np.flatnonzero(bits)))
        told = {token for token in range(info.vocab_size) if matcher.is_allowed(token)}
        assert allowed == told, case.tag
        others = sorted(allowed - set(info.stop_token_ids))
        if not others:
            break
        assert matcher.accept_token(case.chance.choice(others))
    try:
        rest = matcher.shortest_completion()
    except StencilError:
        return
    assert matcher.accept_string(rest) and matcher.is_completed(), case.tag
