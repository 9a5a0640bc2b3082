"""The embedded model: it loads anywhere, writes every type, and runs the examples."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import runpy
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from pydantic import BaseModel, Field, TypeAdapter

import stencilm

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

EXAMPLES = Path(__file__).parents[2] / "examples"
PERSON_KEYS = ["name", "age", "job", "address", "hobbies"]

Word = Annotated[str, Field(max_length=8)]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Pair(NamedTuple):
    left: int
    right: Word


class Tree(BaseModel):
    name: Word
    children: list[Tree] = Field(max_length=1)


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(ge=0, le=9)]


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]

TYPES: list[Any] = [
    int,
    float,
    bool,
    None,
    Colour,
    Literal["a", 1],
    Word,
    Annotated[list[int], Field(max_length=3)],
    tuple[bool, Word],
    int | None,
    int | Word,
    datetime.date,
    datetime.datetime,
    uuid.UUID,
    decimal.Decimal,
    Point,
    Pair,
    Tree,
    Pet,
    list[Pet],
]


@pytest.fixture(scope="module")
def model() -> stencilm.Model:
    return stencilm.load("tiny")


def test_it_computes_in_float32_on_the_cpu(model: stencilm.Model) -> None:
    weight = next(model.backend.model.parameters())  # type: ignore[attr-defined]
    assert (weight.dtype, weight.device.type) == (torch.float32, "cpu")


@pytest.mark.parametrize("output_type", TYPES, ids=str)
def test_every_type_comes_back_as_itself(model: stencilm.Model, output_type: Any) -> None:
    finished = 0
    for seed in (3, 4, 5):
        generation = model.generate(
            "JSON:\n", output_type, max_tokens=120, temperature=1.2, seed=seed
        )
        if generation.finish_reason == "stop":
            finished += 1
            assert generation.error is None
            again = TypeAdapter(output_type).validate_python(generation.value)
            assert again == generation.value
            json.dumps(model.dump(generation.value, output_type))
    assert finished > 0


def test_the_same_call_gives_the_same_text(model: stencilm.Model) -> None:
    texts = {model.generate("JSON:\n", Tree, temperature=1.0, seed=1).text for _ in range(2)}
    assert len(texts) == 1


@pytest.mark.parametrize("prompt", ["Describe a person.", "Describe a person as JSON.\n", "x"])
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_the_example_schema_finishes(model: stencilm.Model, prompt: str, seed: int | None) -> None:
    schema = stencilm.JsonSchema((EXAMPLES / "person.schema.json").read_text(encoding="utf-8"))
    person = model(prompt, schema, seed=seed, temperature=0.0 if seed is None else 1.0)
    assert list(person) == PERSON_KEYS


def test_the_example_program_prints_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "person.py"), run_name="__main__")
    first, _, rest = capsys.readouterr().out.partition("\n")
    assert first.startswith("Person called ")
    assert list(json.loads(rest)) == PERSON_KEYS
