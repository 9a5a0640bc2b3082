"""Integers of more digits than Python writes, wherever one may be, and what else has no `repr`."""

from __future__ import annotations

import datetime
import enum
import random
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

import stencilm
from stencilm import Choice, Grammar, JsonSchema
from stencilm.errors import GrammarSyntaxError, LimitExceeded, StencilError, UnsupportedFeature
from stencilm.grammars.json_values import read_json, write_json

LONG = 10**5_000
DIGITS = "1" + "0" * 5_000


class Silent:
    """What raises where it should show itself."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


class Odd(enum.Enum):
    ONE = 1

    def __repr__(self) -> str:
        raise RuntimeError("no words")


class WithDefault(BaseModel):
    count: int = LONG


@pytest.mark.parametrize(
    "keyword", ["const", "minimum", "exclusiveMaximum", "multipleOf", "minLength"]
)
def test_a_schema_of_them_is_refused_as_its_text_is(keyword: str) -> None:
    with pytest.raises(LimitExceeded) as told:
        Grammar.from_json_schema({keyword: LONG})
    with pytest.raises(LimitExceeded) as told_of_text:
        Grammar.from_json_schema(f'{{"{keyword}": {DIGITS}}}')
    assert told.value.place == told_of_text.value.place
    assert str(told.value) == str(told_of_text.value)
    model = stencilm.load("tiny")
    with pytest.raises(LimitExceeded):
        model("How many? ", JsonSchema({keyword: LONG}))


@pytest.mark.parametrize("keyword", ["default", "maxItems", "x-of-mine"])
def test_a_schema_is_what_its_text_is(keyword: str) -> None:
    given = {"type": ["boolean", "array"], "items": False, keyword: LONG}
    text = f'{{"type": ["boolean", "array"], "items": false, "{keyword}": {DIGITS}}}'
    assert Grammar.from_json_schema(given) == Grammar.from_json_schema(text)
    output = JsonSchema(given, compact=True)
    assert output == JsonSchema(dict(given), compact=True)
    assert output != JsonSchema({**given, keyword: LONG + 1}, compact=True)
    assert len({output, JsonSchema(dict(given), compact=True)}) == 1
    assert repr(output).startswith("JsonSchema(schema=<dict>")
    model = stencilm.load("tiny")
    for output_type in (output, JsonSchema(text, compact=True)):
        assert model("Is it? ", output_type, seed=1) in (True, False, [])
        chat = model.chat("Is it?", [], output_type=output_type, max_tokens=60, seed=1)
        assert chat.value in (True, False, [])
        assert stencilm.guide(model, output_type, "Is it? ").response in ("true", "false", "[]")


def test_exact_decimals_are_numbers_of_a_schema() -> None:
    bound = Decimal("0.1000000000000000000001")
    text = '{"maximum": 0.1000000000000000000001}'
    assert Grammar.from_json_schema({"maximum": bound}) == Grammar.from_json_schema(text)


CIRCLE: dict[str, Any] = {"default": LONG}
CIRCLE["not"] = CIRCLE
DEEP: dict[str, Any] = {}
for _ in range(100_000):
    DEEP = {"not": DEEP}


@pytest.mark.parametrize(
    ("schema", "kind", "told"),
    [
        (CIRCLE, GrammarSyntaxError, "Circular reference"),
        ({"const": datetime.date(2020, 1, 1)}, GrammarSyntaxError, "not JSON serializable"),
        ({"const": float("inf"), "default": LONG}, GrammarSyntaxError, "Out of range float"),
        (DEEP, LimitExceeded, "nested too deeply"),
    ],
    ids=["circle", "date", "infinity", "deep"],
)
def test_what_has_no_text_at_all(schema: Any, kind: type[StencilError], told: str) -> None:
    """It is told of where it is read; comparing and showing it says nothing of it."""
    output = JsonSchema(schema)
    assert output == output and hash(output) == hash(output) and repr(output)
    for read in (Grammar.from_json_schema, lambda schema: stencilm.load("tiny")("", output)):
        with pytest.raises(kind, match=told):
            read(schema)


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("count", [600, 601, 602, 1_199, 1_200, 1_800, 4_301, 7_777])
def test_they_are_read_and_written(count: int, sign: str) -> None:
    drawn = random.Random(count)
    others = "".join(drawn.choices("0123456789", k=count - 1))
    for text in (f"{sign}7{others}", f"{sign}1{'0' * (count - 1)}", f"{sign}{'9' * count}"):
        value = read_json(text)
        assert value == Decimal(text)
        assert write_json([value, Decimal(1)]) == f"[{text}, 1]"


def test_a_million_digits_take_seconds() -> None:
    text = "7" + "0123456789" * 100_000
    begin = time.monotonic()
    assert write_json({"n": read_json(text)}) == f'{{"n": {text}}}'
    assert time.monotonic() - begin < 10


def test_they_are_options_of_a_choice() -> None:
    choice = Choice([LONG, LONG + 1])
    assert choice.by_text() == {DIGITS: LONG, DIGITS[:-1] + "1": LONG + 1}
    assert repr(choice) == "Choice(options=(<int>, <int>))"
    assert repr(Choice(["a"])) == "Choice(options=('a',))"
    short = Choice([10**4_300, 7])
    assert stencilm.load("tiny")("", short, seed=1) in (10**4_300, 7)


@pytest.mark.parametrize(
    "output_type",
    [Literal[LONG], Annotated[int, Field(ge=LONG)], WithDefault],
    ids=["literal", "bound", "default"],
)
@pytest.mark.parametrize(
    "read", [Grammar.from_type, lambda tp: stencilm.load("tiny")("", tp)], ids=["grammar", "model"]
)
def test_a_type_of_them_is_refused(output_type: Any, read: Callable[[Any], Any]) -> None:
    with pytest.raises(UnsupportedFeature, match="4300 digits"):
        read(output_type)


def test_a_type_without_a_repr_is_read() -> None:
    model = stencilm.load("tiny")
    assert model("Is it? ", Odd, seed=1) is Odd.ONE
    ((value, probability),) = model.probabilities("Is it? ", Odd)
    assert value is Odd.ONE and probability == pytest.approx(1.0)
    assert list(model.stream("Is it? ", Odd, seed=1))[-1] is Odd.ONE
    shown_by_pydantic: Any
    for shown_by_pydantic in (Annotated[bool, Silent()], Literal[Odd.ONE]):
        with pytest.raises(UnsupportedFeature, match="no words"):
            model("Is it? ", shown_by_pydantic)


@pytest.mark.parametrize(
    "value", [LONG, [LONG], Silent(), [Silent()]], ids=["int", "list", "silent", "silents"]
)
def test_what_is_wrong_is_told_without_its_repr(value: Any) -> None:
    """What raises is the error of the call, and not that of a value in its message."""
    model, colour = stencilm.load("tiny"), Choice(["red"])
    several: Any = [value, [value]]
    calls: list[tuple[Any, Callable[[], Any]]] = [
        (TypeError, lambda: model(value, colour)),
        ((TypeError, ValueError), lambda: model("", colour, stop=value)),
        (TypeError, lambda: model("", colour, draft=value)),
        (TypeError, lambda: model.chat(value, [])),
        (ValueError, lambda: model("", colour, temperature=value)),
        (GrammarSyntaxError, lambda: model.chat("", [value])),
        (TypeError, lambda: stencilm.guide(model, colour, "", budget=value)),
        (ValueError, lambda: Choice(several)),
    ]
    for kind, call in calls:
        with pytest.raises(kind) as told:
            call()
        assert "4300 digits" not in str(told.value) and "no words" not in str(told.value)
