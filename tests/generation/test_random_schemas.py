"""200 random schemas, each with a seed: every finished text is valid, and parses into its type.

A schema of the everyday subset is drawn together with the Python type that stands for it, so that
each text is judged twice, by `jsonschema` and by pydantic.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any, Literal, Union

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model

import stencilm
from stencilm.errors import StencilError

jsonschema = pytest.importorskip("jsonschema")
pytest.importorskip("torch")
pytest.importorskip("transformers")

PAIRS = 200
MAX_TOKENS = 256
NAMES = ["name", "age", "city", "tags", "in stock", "größe", 'a"b', "x"]
PATTERNS = ["^[a-z]{2,5}$", r"^\d{4}-\d{2}$", "^(red|green|blue)$", "^[A-Z][a-z]*$", "[0-9]x", "^$"]
WORDS = ["red", "green", "", 'say "hi"', "back\\slash", "naïve", "a"]

Drawn = tuple[dict[str, Any], Any]
"""A schema and the type of its values."""


@dataclass
class SchemaMaker:
    """Draws a schema and its type; `definitions` collects what `$ref` points at."""

    random: Random
    definitions: dict[str, Any] = field(default_factory=dict)

    def document(self) -> Drawn:
        schema, tp = self.draw(depth=3)
        return ({**schema, "$defs": self.definitions} if self.definitions else schema), tp

    def draw(self, depth: int) -> Drawn:
        simple = [self.string, self.integer, self.number, self.constant]
        nested = [self.object, self.object, self.array, self.any_of, self.reference, self.tree]
        if depth == 0:
            return self.random.choice(simple)()
        if self.random.random() < 0.4:
            return self.random.choice(simple)()
        return self.random.choice(nested)(depth - 1)

    def bounds(self, low: int, high: int) -> tuple[int | None, int | None]:
        first, second = sorted((self.random.randint(low, high), self.random.randint(low, high)))
        return self.random.choice([(first, second), (first, second), (first, None), (None, second)])

    def string(self) -> Drawn:
        schema: dict[str, Any] = {"type": "string"}
        shape = self.random.randrange(3)
        if shape == 0:
            schema["pattern"] = self.random.choice(PATTERNS)
            if schema["pattern"] in ("^[A-Z][a-z]*$", "[0-9]x"):
                schema["maxLength"] = self.random.randint(2, 9)
        else:
            shortest, longest = self.bounds(0, 12)
            schema |= given(minLength=shortest, maxLength=longest)
        return schema, Annotated[
            str,
            Field(
                min_length=schema.get("minLength"),
                max_length=schema.get("maxLength"),
                pattern=schema.get("pattern"),
            ),
        ]

    def integer(self) -> Drawn:
        low, high = self.bounds(-1500, 1500)
        schema = {"type": "integer", **given(minimum=low, maximum=high)}
        return schema, Annotated[int, Field(ge=low, le=high)]

    def number(self) -> Drawn:
        low, high = self.bounds(-40, 40)
        schema = {"type": "number", **given(minimum=low, maximum=high)}
        if low is not None and self.random.random() < 0.3:
            schema["exclusiveMinimum"] = schema.pop("minimum") - 1
            return schema, Annotated[float, Field(gt=low - 1, le=high)]
        return schema, Annotated[float, Field(ge=low, le=high)]

    def constant(self) -> Drawn:
        shape = self.random.randrange(4)
        if shape == 0:
            return {"type": "boolean"}, bool
        if shape == 1:
            return {"type": "null"}, None
        options = [*WORDS, 0, -7, 120, None]
        if shape == 2:
            chosen = self.random.sample(options, self.random.randint(1, 4))
            return {"enum": chosen}, Literal[tuple(chosen)]
        value = self.random.choice(options)
        return {"const": value}, Literal[value]

    def array(self, depth: int) -> Drawn:
        items, tp = self.draw(depth)
        fewest, most = self.bounds(0, 4)
        schema = {"type": "array", "items": items, **given(minItems=fewest, maxItems=most)}
        return schema, Annotated[list[tp], Field(min_length=fewest, max_length=most)]  # type: ignore[valid-type]

    def object(self, depth: int) -> Drawn:
        names = self.random.sample(NAMES, self.random.randint(0, 4))
        members = {name: self.draw(depth) for name in names}
        required = [name for name in names if self.random.random() < 0.7]
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: member for name, (member, _) in members.items()},
        }
        if required or self.random.random() < 0.5:
            schema["required"] = required
        extra = self.random.choice([False, False, False, None, {"type": "integer"}])
        schema |= given(additionalProperties=extra)
        fields: dict[str, Any] = {
            f"field_{number}": (tp, Field(... if name in required else None, alias=name))
            for number, (name, (_, tp)) in enumerate(members.items())
        }
        config = ConfigDict(extra="forbid" if extra is False else "allow")
        return schema, create_model("Object", __config__=config, **fields)

    def any_of(self, depth: int) -> Drawn:
        branches = [self.draw(depth) for _ in range(self.random.randint(2, 3))]
        return {"anyOf": [branch for branch, _ in branches]}, Union[  # noqa: UP007
            tuple(tp for _, tp in branches)
        ]

    def reference(self, depth: int) -> Drawn:
        schema, tp = self.draw(depth)
        name = self.new_name()
        self.definitions[name] = schema
        return {"$ref": f"#/$defs/{name}"}, tp

    def tree(self, depth: int) -> Drawn:
        """A recursive object: a value and a few more of the same, or one more or null."""
        value, tp = self.draw(0)
        name = self.new_name()
        again = {"$ref": f"#/$defs/{name}"}
        if self.random.random() < 0.5:
            link: dict[str, Any] = {"type": "array", "items": again, "maxItems": 2}
            link_type: Any = Annotated[list["Tree"], Field(max_length=2)]  # type: ignore[name-defined]  # noqa: F821
        else:
            link = {"anyOf": [{"type": "null"}, again]}
            link_type = Union["Tree", None]  # noqa: F821
        self.definitions[name] = {
            "type": "object",
            "properties": {"value": value, "next": link},
            "required": ["value", "next"],
            "additionalProperties": False,
        }
        tree: type[BaseModel] = create_model("Tree", value=(tp, ...), next=(link_type, ...))
        tree.model_rebuild(_types_namespace={"Tree": tree})
        return again, tree

    def new_name(self) -> str:
        return f"part{len(self.definitions)}"


def given(**keywords: Any) -> dict[str, Any]:
    """The keywords that have a value."""
    return {name: value for name, value in keywords.items() if value is not None}


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), "a key stands twice in one object"
    return dict(pairs)


@pytest.fixture(scope="module")
def model() -> stencilm.Model:
    return stencilm.load("tiny")


@pytest.mark.slow
def test_every_finished_text_is_valid_and_parses_into_its_type(model: stencilm.Model) -> None:
    finished, cut, problems = 0, 0, []
    for seed in range(PAIRS):
        schema, tp = SchemaMaker(Random(seed)).document()
        jsonschema.Draft202012Validator.check_schema(schema)
        try:
            generation = model.generate(
                "JSON:\n",
                stencilm.JsonSchema(schema),
                max_tokens=MAX_TOKENS,
                temperature=1.5,
                seed=seed,
            )
        except StencilError as error:
            problems.append((seed, schema, repr(error)))
            continue
        if generation.finish_reason == "length":
            cut += 1
            continue
        finished += 1
        try:
            value = json.loads(generation.text, object_pairs_hook=without_duplicates)
            jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)
            TypeAdapter(tp).validate_json(generation.text)
        except (AssertionError, ValueError, jsonschema.ValidationError) as error:
            problems.append((seed, schema, f"{generation.text!r}: {error}"))
    assert problems == []
    # Unbounded strings, lists and recursion are among the schemas, and 1.5 is hot: some run on.
    assert finished >= PAIRS * 3 // 4, f"{finished} finished, {cut} cut by {MAX_TOKENS} tokens"
