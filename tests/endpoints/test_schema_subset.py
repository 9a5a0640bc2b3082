"""Schemas for strict modes: what is sent is taken, and what comes back is read."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import BaseModel, Field

import stencilm
from stencilm import Grammar
from stencilm.endpoints.capabilities import PRESETS
from stencilm.endpoints.requests import native_form, schema_of
from stencilm.endpoints.schema_subset import subset_schema, unwrapped
from stencilm.matching.texts import byte_matcher

pytest.importorskip("openai")

from endpoints.test_endpoints import always, endpoint, means

KEYWORDS = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"pattern", "format", "enum"},
    "number": {"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum"},
    "boolean": {"enum"},
    "null": {"enum"},
}
KEYWORDS["integer"] = KEYWORDS["number"]


def faults(schema: Any, root: Any = None, place: str = "#") -> Iterator[str]:
    """What OpenAI's strict mode refuses in a schema, by its documentation."""
    root = schema if root is None else root
    annotations = {"title", "description"} | ({"$defs"} if place == "#" else set())
    said = schema.keys() - annotations
    if place == "#" and schema.get("type") != "object":
        yield "#: the root is no object"
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        if schema.keys() != {"$ref"} or name not in root.get("$defs", {}):
            yield f"{place}: a reference"
        return
    if "anyOf" in schema:
        if said != {"anyOf"}:
            yield f"{place}: {said} beside anyOf"
        for number, one in enumerate(schema["anyOf"]):
            yield from faults(one, root, f"{place}/anyOf/{number}")
    else:
        types = schema.get("type")
        names = types if isinstance(types, list) else [types]
        known = set().union(*(KEYWORDS[name] for name in names)) | {"type"}
        if not said <= known:
            yield f"{place}: {said - known} is not permitted"
        if "object" in names:
            if schema["additionalProperties"] is not False:
                yield f"{place}: it is open"
            if set(schema["required"]) != set(schema["properties"]):
                yield f"{place}: not every member is required"
            for name, one in schema["properties"].items():
                yield from faults(one, root, f"{place}/properties/{name}")
        if "array" in names:
            yield from faults(schema["items"], root, f"{place}/items")
    for name, one in schema.get("$defs", {}).items():
        yield from faults(one, root, f"{place}/$defs/{name}")


class Tag(BaseModel):
    """A tag."""

    label: str = Field(max_length=5, description="What it says.")
    weight: float | None = None


class Tree(BaseModel):
    kind: Literal["leaf", "branch"] = "leaf"
    children: list[Tree] = []
    tag: Tag | None = Field(default=None, description="One tag.")


class Item(BaseModel):
    name: str
    age: int = 3
    nick: str | None = None
    colour: Literal["red", 3, True] = 3
    tags: list[Tag] = Field(default_factory=list, max_length=2)
    either: int | Tag = 1


class Circle(BaseModel):
    kind: Literal["circle"] = "circle"
    radius: int = 1


class Square(BaseModel):
    kind: Literal["square"]
    side: int


class Drawing(BaseModel):
    shape: Annotated[Circle | Square, Field(discriminator="kind")]
    hole: Circle | None = None


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


STRICT: list[Any] = [
    Item,
    Tree,
    Drawing,
    Annotated[Circle | Square, Field(discriminator="kind")],
    list[int],
    list[Item],
    int,
    bool,
    int | None,
    Item | Tag,
    stencilm.JsonSchema(object_of(a={"type": "string"})),
    stencilm.JsonSchema({"properties": {"a": {"type": ["integer", "null"]}}}),
    stencilm.JsonSchema(object_of(a={"type": ["array", "string"], "items": {"type": "integer"}})),
    stencilm.JsonSchema(object_of(a={"allOf": [{"type": "boolean", "default": True}]})),
    stencilm.JsonSchema({"$ref": "#/$defs/a", "$defs": {"a": object_of(b={"const": 1})}}),
    stencilm.JsonSchema(object_of(a={"type": "integer"}, b={"$ref": "#/properties/a"})),
    stencilm.JsonSchema({"properties": {"a": {"$ref": "#"}, "b": {"enum": [1]}}}),
    stencilm.JsonSchema({"type": "object", "additionalProperties": False}),
]


def sent(output_type: Any) -> dict[str, Any]:
    form = native_form(stencilm.Grammar.from_type(output_type), PRESETS["openai"])
    assert form is not None
    described: dict[str, Any] = form["response_format"]["json_schema"]
    return described


@pytest.mark.parametrize("output_type", STRICT, ids=str)
def test_what_is_sent_as_strict_is_taken(output_type: Any) -> None:
    described = sent(output_type)
    assert described["strict"] is True
    assert list(faults(described["schema"])) == []
    json.dumps(described)


def test_members_required_beside_a_reference_are_required_there() -> None:
    schema = sent(Drawing)["schema"]
    found = {
        "anyOf" in one["properties"]["kind"]: {"$ref": f"#/$defs/{name}"}
        for name, one in schema["$defs"].items()
        if one["title"] == "Circle"
    }
    shape, hole = schema["properties"]["shape"], schema["properties"]["hole"]
    assert found[False] in shape["anyOf"]
    assert found[True] in hole["anyOf"]
    # In a mode in which members may be left out, too.
    form = native_form(Grammar.from_type(Drawing), PRESETS["anthropic"])
    assert form is not None
    definitions = json.loads(json.dumps(form))["output_config"]["format"]["schema"]["$defs"]
    assert [one["required"] for one in definitions.values() if one["title"] == "Circle"] == [
        [],
        ["kind"],
    ]
    # Where the target is no object, there are no words for it.
    text = json.dumps({"$ref": "#/$defs/a", "required": ["b"], "$defs": {"a": {"type": "array"}}})
    assert subset_schema(text, "openai") is None


def test_the_faults_are_found() -> None:
    for schema in (
        {"type": "array", "items": {"type": "integer"}},
        {"type": "object", "properties": {}, "required": [], "additionalProperties": True},
        {**object_of(a={"type": "string", "default": ""}), "additionalProperties": False},
        {**object_of(a={"type": "string"}), "additionalProperties": False, "required": []},
    ):
        assert list(faults(schema)), schema


@pytest.mark.parametrize(
    ("schema", "is_sent"),
    [
        ({"type": "object", "additionalProperties": {"type": "integer"}}, True),
        ({"type": "object"}, True),
        (object_of(a=True), True),
        (object_of(a={"type": "array", "prefixItems": [{"type": "integer"}]}), True),
        (object_of(a={"enum": [[1]]}), True),
        ({**object_of(a={"type": "integer"}), "patternProperties": {"^b": True}}, True),
        ({"type": "array"}, False),
        (True, False),
    ],
)
def test_what_strict_mode_cannot_say_is_not_strict(schema: Any, is_sent: bool) -> None:
    form = native_form(Grammar.from_json_schema(schema), PRESETS["openai"])
    if is_sent:
        assert form is not None
        described = form["response_format"]["json_schema"]
        assert (described["strict"], described["schema"]) == (False, schema)
    else:
        assert form is None
    assert native_form(Grammar.from_json_schema(schema), PRESETS["anthropic"]) is None


OPTIONAL_DAY = {
    "type": "object",
    "properties": {
        "day": {"type": "string", "format": "date", "nullable": True},
        "format": {"$ref": "#/$defs/nullable"},
    },
    "required": ["day", "format"],
    "additionalProperties": False,
    "$defs": {"nullable": {"type": ["integer", "string"], "nullable": True, "enum": [1, None]}},
}


@pytest.mark.parametrize("preset", ["openai", "azure", "anthropic", "vllm", "sglang", "gemini"])
def test_a_schema_is_sent_with_the_meaning_that_its_options_give_it(preset: str) -> None:
    """A server that enforces the schema would else refuse what the grammar accepts."""

    def sent(**options: Any) -> Any:
        grammar = Grammar.from_json_schema(OPTIONAL_DAY, **options)
        form = native_form(grammar, PRESETS[preset])
        assert form is not None
        found = json.dumps(form)
        assert '"format": {' in found  # the member of this name
        return found

    day = {"type": "string", "format": "date"}
    if preset == "azure":
        del day["format"]
    assert json.dumps(day)[1:-1] in sent().replace(', "nullable": true', "")
    assert '"type": ["string", "null"]' in sent(nullable=True)
    assert '"date"' not in sent(formats="annotation")
    both = sent(nullable=True, formats="annotation")
    assert '"type": ["string", "null"]' in both and "date" not in both


def test_only_schemas_are_changed_where_options_change_them() -> None:
    schema = {
        "type": "object",
        "properties": {"nullable": {"type": "integer"}, "format": {"const": {"format": "date"}}},
        "dependentRequired": {"format": ["nullable"]},
        "default": {"type": "x", "nullable": True},
    }
    grammar = Grammar.from_json_schema(schema, nullable=True, formats="annotation")
    assert schema_of(grammar) == schema


def test_what_is_left_to_checking_is_reported() -> None:
    with endpoint(always("{}"), "openai") as (model, _):
        assert model.left_to_checking(Item) == ("#/$defs/Tag/properties/label/maxLength",)
        assert model.left_to_checking(int) == ()
        assert model.left_to_checking(dict[str, int]) == ("#",)
        schema = object_of(a={"type": "string", "minLength": 2, "pattern": "^a(?=b)"})
        assert model.left_to_checking(stencilm.JsonSchema(schema | {"minProperties": 1})) == (
            "#/properties/a/minLength",
            "#/properties/a/pattern",
            "#/minProperties",
        )
    with endpoint(always('{"a": "x"}'), "openai") as (model, script):
        with pytest.raises((stencilm.IncompleteOutput, stencilm.ModelRefused)):
            model("p", stencilm.JsonSchema(object_of(a={"type": "string", "minLength": 2})))
        assert script.requests[0][1]["response_format"]["json_schema"]["strict"] is True


def written(schema: dict[str, Any], rng: random.Random) -> str:
    """A random text of a schema, as an endpoint in strict mode would write one."""
    matcher = byte_matcher(Grammar.from_json_schema(schema, max_whitespace=1))
    text = b""
    for _ in range(rng.randrange(120)):
        mask = np.zeros((1, 9), dtype=np.int32)
        matcher.fill_next_token_bitmask(mask)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
        allowed = [int(token) for token in np.flatnonzero(bits) if 32 <= token < 127]
        if not allowed:
            break
        byte = rng.choice(allowed)
        matcher.accept_token(byte)
        text += bytes([byte])
    return (text + matcher.shortest_completion()).decode()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "output_type", [Item, Tree, Drawing, list[int], list[Item], int, Item | Tag]
)
def test_whatever_strict_mode_writes_is_read(output_type: Any, stream: bool) -> None:
    rng = random.Random(3)
    schema = sent(output_type)["schema"]
    is_wrapped = list(schema["properties"]) == ["value"]
    for _ in range(12):
        answer = written(schema, rng)
        value = json.loads(answer)["value"] if is_wrapped else json.loads(answer)
        with endpoint(always(answer), replace(PRESETS["openai"], stream=stream)) as (model, _):
            result = model.generate("p", output_type)
        if "weight" in answer or "label" in answer:
            continue  # bounds that strict mode does not say
        how = (result.finish_reason, result.filled, means(result))
        assert how == ("stop", (), ["native"]), answer
        assert without_nulls(json.loads(result.text)) == without_nulls(value)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


def test_values_are_those_of_the_type() -> None:
    answer = '{"name":"Ann","age":null,"nick":null,"colour":null,"tags":null,"either":null}'
    with endpoint(always(answer), "openai") as (model, _):
        assert model("p", Item) == Item(name="Ann")
    with endpoint(always('{"value": [1, 2]}'), "openai") as (model, _):
        assert model("p", list[int]) == [1, 2]
    with endpoint(always('{"value":7}'), "openai") as (model, _):
        assert model("p", int) == 7


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ('{"value": [1, {"value": 2}]} ', '[1, {"value": 2}]'),
        ('\n{ "value" : "a\\"}"}', '"a\\"}"'),
        ('{"value": [1, 2', "[1, 2"),
        ("[1]", "[1]"),
        ("I cannot.", "I cannot."),
        ("", ""),
    ],
)
def test_answers_are_unwrapped(text: str, inner: str) -> None:
    assert unwrapped(text) == inner


def test_anthropic_is_sent_its_own_subset() -> None:
    schema = json.dumps(schema_of(stencilm.Grammar.from_type(Item)))
    made = subset_schema(schema, "anthropic")
    assert made is not None and not made.is_wrapped
    assert made.schema["required"] == ["name"]
    assert "maxItems" not in json.dumps(made.schema) and "default" not in json.dumps(made.schema)
    assert "#/properties/tags/maxItems" in made.left_out
    assert (
        subset_schema(json.dumps(schema_of(stencilm.Grammar.from_type(Tree))), "anthropic") is None
    )


def test_azure_is_sent_no_bounds() -> None:
    schema = object_of(
        a={"type": "string", "pattern": "^a+$", "format": "date"},
        b={"type": "integer", "minimum": 1, "multipleOf": 2},
        c={"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 3},
    )
    made = subset_schema(json.dumps(schema), "azure")
    assert made is not None
    assert made.schema["properties"] == {
        "a": {"type": "string"},
        "b": {"type": "integer"},
        "c": {"type": "array", "items": {"type": "number"}},
    }
    places = ("a/pattern", "a/format", "b/minimum", "b/multipleOf", "c/minItems", "c/maxItems")
    assert set(made.left_out) == {f"#/properties/{place}" for place in places}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        schema = object_of(a=schema)
    return schema


@pytest.mark.parametrize(("subset", "most"), [("openai", 10), ("azure", 5)])
def test_an_object_around_the_root_is_a_level_too(subset: Any, most: int) -> None:
    for levels, is_list, is_sent in (
        (most, False, True),
        (most + 1, False, False),
        (most - 1, True, True),
        (most, True, False),
    ):
        schema = nested(levels)
        schema = {"type": "array", "items": schema} if is_list else schema
        assert (subset_schema(json.dumps(schema), subset) is not None) is is_sent, levels


def test_hostile_schemas_are_bounded() -> None:
    deep: Any = {"type": "string"}
    for _ in range(300):
        deep = {"type": "array", "items": deep}
    many = object_of(**{f"p{number}": {"type": "integer"} for number in range(5_001)})
    itself = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    nothing = {"$ref": "#/$defs/b"}
    long = object_of(a={"enum": [f"{number:0100}" for number in range(300)]})
    for schema in (deep, many, itself, nothing, long, object_of(a={"$ref": "other.json"})):
        assert subset_schema(json.dumps(schema), "openai") is None
    for place in ("²", "9" * 5_000):  # digits to Python, and yet no number
        schema = object_of(a={"$ref": f"#/required/{place}"})
        assert subset_schema(json.dumps(schema), "openai") is None
    wide = object_of(**{f"p{number}": {"type": "integer"} for number in range(101)})
    assert subset_schema(json.dumps(wide), "azure") is None
    assert subset_schema(json.dumps(wide), "openai") is not None
