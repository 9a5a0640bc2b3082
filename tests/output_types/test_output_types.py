"""Output types: what their texts look like, and that a text reads back as its value."""

# ruff: noqa: UP007, UP045 - the older spellings are part of what is tested

from __future__ import annotations

import datetime
import decimal
import enum
import functools
import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NotRequired,
    Optional,
    TypeVar,
    Union,
)

import pytest
from pydantic import BaseModel, ConfigDict, Field, OnErrorOmit, RootModel, create_model
from typing_extensions import TypedDict

import stencilm
from case_names import case_name
from stencilm.errors import UnsupportedFeature
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.output_types import Choice, JsonSchema, Regex, alternatives
from stencilm.grammars.outputs import resolve
from stencilm.grammars.python_types import json_schema_of
from stencilm.grammars.symbols import SymbolTable

from .random_texts import matcher

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    DARK_BLUE = "dark blue"


class Size(str, enum.Enum):
    SMALL = "small"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    WORD = "word"
    NUMBER = 1


@dataclass
class Point:
    x: int
    y: int = 0


class Address(TypedDict):
    street: str
    number: NotRequired[int]


class Pair(NamedTuple):
    left: int
    right: str


class Tree(BaseModel):
    name: str = Field(max_length=5)
    children: list[Tree] = Field(default=[], max_length=2)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool


class Home(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


class Box(BaseModel, Generic[T]):
    inside: T


@pytest.mark.parametrize(
    ("output_type", "text", "value"),
    [
        # strings at the top level are bare
        (str, 'any "text"\n', 'any "text"\n'),
        (Literal["yes", "no"], "yes", "yes"),
        (Colour, "dark blue", Colour.DARK_BLUE),
        (Regex("[0-9]{2}"), "42", "42"),
        (Choice(["a b", "c"]), "a b", "a b"),
        (Choice([1, 2.5, True, "x"]), "2.5", 2.5),
        (Choice([1, 2.5, True, "x"]), "true", True),
        # everything else is JSON
        (int, "-12", -12),
        (float, "2.5e3", 2500.0),
        (float, "2", 2.0),
        (bool, "true", True),
        (None, "null", None),
        (Level, "2", Level.HIGH),
        (Mixed, '"word"', Mixed.WORD),
        (Mixed, "1", Mixed.NUMBER),
        (Literal["a", 1], '"a"', "a"),
        (Literal[1, 2], "2", 2),
        (Literal[Size.SMALL], '"small"', Size.SMALL),
        (Optional[Literal["a"]], '"a"', "a"),
        (Annotated[str, Field(max_length=3)], '"abc"', "abc"),
        (list[int], "[1, 2]", [1, 2]),
        (list, '[1, "a"]', [1, "a"]),
        (set[int], "[1, 2]", {1, 2}),
        (dict[str, float], '{"a": 1}', {"a": 1.0}),
        (dict, '{"a": [1]}', {"a": [1]}),
        (tuple[int, str], '[1, "a"]', (1, "a")),
        (tuple[int, ...], "[1, 2]", (1, 2)),
        (Union[int, str], '"5"', "5"),
        (Union[int, str], "5", 5),
        (int | None, "null", None),
        (datetime.date, '"2024-02-29"', datetime.date(2024, 2, 29)),
        (datetime.timedelta, '"PT3S"', datetime.timedelta(seconds=3)),
        (uuid.UUID, f'"{uuid.UUID(int=7)}"', uuid.UUID(int=7)),
        (decimal.Decimal, '"0.10"', decimal.Decimal("0.10")),
        (Point, '{"x": 1}', Point(1, 0)),
        (Address, '{"street": "A", "number": 1}', {"street": "A", "number": 1}),
        (Pair, '[1, "b"]', Pair(1, "b")),
        (
            Tree,
            '{"name": "a", "children": [{"name": "b"}]}',
            Tree(name="a", children=[Tree(name="b")]),
        ),
        (Home, '{"pet": {"kind": "dog", "good": true}}', Home(pet=Dog(kind="dog", good=True))),
        (Box[int], '{"inside": 3}', Box[int](inside=3)),
        (RootModel[list[int]], "[1]", RootModel[list[int]]([1])),
        (JsonSchema({"type": "object"}), '{"a": 1}', {"a": 1}),
        (JsonSchema('{"type": "integer"}'), "7", 7),
        (JsonSchema(True), "null", None),
        (JsonSchema(True), f"-{'9' * 6000}", 1 - 10**6000),
        (JsonSchema(True), "-1.5e999", decimal.Decimal("-1.5e999")),
    ],
    ids=lambda value: "-10**6000" if isinstance(value, int) and value < -9 else str(value)[:40],
)
def test_a_text_reads_back_as_its_value(output_type: Any, text: str, value: Any) -> None:
    parsed = resolve(output_type).parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("output_type", "text"),
    [(int, "x"), (Point, '{"y": 1}'), (Colour, "green"), (JsonSchema(True), "{")],
    ids=str,
)
def test_a_text_that_is_no_value_is_a_value_error(output_type: Any, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        resolve(output_type).parse(text)


def test_large_numbers_are_dumped_as_json_takes_them() -> None:
    output = resolve(JsonSchema(True))
    text = json.dumps(output.dump(output.parse(f"[1e999, {'9' * 6000}, {'9' * 600}, 1.5]")))
    assert json.loads(text) == ["1E+999", "9" * 6000, 10**600 - 1, 1.5]
    with pytest.raises(ValueError, match="too large an exponent"):
        output.parse(f"1e{'9' * 30}")


@pytest.mark.parametrize(
    ("output_type", "value", "dumped"),
    [
        (Colour, Colour.RED, "red"),
        (Point, Point(1, 2), {"x": 1, "y": 2}),
        (tuple[int, str], (1, "a"), [1, "a"]),
        (datetime.date, datetime.date(2024, 1, 2), "2024-01-02"),
        (str, "a", "a"),
        (Choice([1, 2]), 2, 2),
    ],
    ids=str,
)
def test_values_have_a_json_form(output_type: Any, value: Any, dumped: Any) -> None:
    assert resolve(output_type).dump(value) == dumped


def function(x: int) -> int:
    return x


def scaled(x: int, factor: int, *, unit: str = "m") -> str:
    raise AssertionError("nobody asked for a call")


FIXED = functools.partial(scaled, unit="s")


def as_type(function: Any) -> Any:
    return function


@pytest.mark.parametrize(
    ("output_type", "text", "value"),
    [
        (JsonSchema(as_type(scaled)), '{"x": 1, "factor": 2}', {"x": 1, "factor": 2}),
        (functools.partial(scaled, 3), '{"factor": 2}', {"factor": 2}),
        (functools.partial(scaled, factor=3), '{"x": 2, "unit": "s"}', {"x": 2, "unit": "s"}),
        (
            JsonSchema(as_type(functools.partial(FIXED, factor=3))),
            '{"x": 2}',
            {"x": 2},
        ),
    ],
    ids=case_name,
)
def test_a_function_is_its_arguments_and_is_not_called(
    output_type: Any, text: str, value: Any
) -> None:
    assert resolve(output_type).parse(text) == value
    start = matcher(output_type)
    assert start.longest_valid_prefix(text).status == "complete"
    assert start.longest_valid_prefix('{"z').status == "dead"


@pytest.mark.parametrize(
    ("output_type", "words"),
    [
        ("[0-9]+", "a str is not an output type: wrap it in Regex"),
        ({"type": "object"}, "a dict is not an output type: wrap it in"),
        (5, "5 is not an output type"),
        (["a", "b"], "is not an output type: wrap values to choose from in Choice"),
        ((int,), "write list[...] or tuple[...] for a type of lists"),
        (Regex, "Regex is the class of a notation and not an output type: give one, Regex"),
        (JsonSchema, "JsonSchema is the class of a notation"),
        (divmod, "by its position only"),
        (re.compile("a"), "is not an output type"),
        (JsonSchema(Regex("a")), "is not an output type"),  # type: ignore[call-overload]
    ],
    ids=str,
)
def test_what_is_no_output_type_is_refused(output_type: Any, words: str) -> None:
    with pytest.raises(UnsupportedFeature, match=re.escape(words)) as caught:
        resolve(output_type)
    assert "\n" not in str(caught.value)


def test_a_type_without_a_json_form_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="has no JSON form"):
        json_schema_of(Callable[[int], int])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Choice([]), "at least one option"),
        (lambda: Choice("abc"), "a list of options"),
        (lambda: Choice(["1", 1]), "have the text '1'"),
        (lambda: Choice([["a"]]), "cannot be an option"),  # type: ignore[list-item]
        (lambda: Choice(5), "options is 5, but must be a list"),  # type: ignore[call-overload]
    ],
)
def test_choices_that_are_none_are_refused(make: Callable[[], Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        make()


@pytest.mark.parametrize("output_type", [Point, Address, Tree, Cat])
def test_objects_of_a_type_are_closed(output_type: Any) -> None:
    schema = json_schema_of(output_type)
    while "$ref" in schema:
        schema = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    assert schema["additionalProperties"] is False


def test_a_type_that_asks_for_extra_fields_gets_them() -> None:
    assert json_schema_of(Open)["additionalProperties"] is True


def test_tagged_unions_are_plain_alternatives() -> None:
    pet = json_schema_of(Home)["properties"]["pet"]
    assert len(pet["anyOf"]) == 2
    assert "oneOf" not in pet


def test_keys_that_are_integers_say_so() -> None:
    names = json_schema_of(dict[int, str])["propertyNames"]["pattern"]
    assert re.search(names, "-12") and not re.search(names, "a1")
    assert "propertyNames" not in json_schema_of(dict[str, int])


def test_a_decimal_is_a_string_of_digits_unless_it_has_bounds() -> None:
    pattern = json_schema_of(decimal.Decimal)["pattern"]
    for text in ["0", "-12.50", "0.1000000000000000055511"]:
        assert re.search(pattern, text)
        assert str(resolve(decimal.Decimal).parse(f'"{text}"')) == text
    for text in ["", "1e5", "01", ".5", "NaN", "5."]:
        assert not re.search(pattern, text)
    bounded = Annotated[decimal.Decimal, Field(ge=0)]
    assert json_schema_of(bounded) == {"type": "number", "minimum": 0}


TEXTS = ["a", "a|b", "[x]", "1.5 (ca.)", "C:\\dir", "$^", "a{2}", "über", "tab\there", "-~#&/", ""]


def test_alternatives_match_exactly_their_texts() -> None:
    pattern = re.compile(alternatives(TEXTS))
    for text in TEXTS:
        assert pattern.fullmatch(text), text
    for other in ["b", "x", "1x5 (ca.)", "aa", "a ", "A"]:
        assert not pattern.fullmatch(other), other


def test_equal_notations_are_equal_and_hashable() -> None:
    first, second = JsonSchema({"type": "object"}), JsonSchema({"type": "object"})
    assert first == second
    assert len({first, second}) == 1
    assert first != JsonSchema({"type": "object"}, strict_mode=True)
    assert Choice(["a"]) == Choice(("a",))
    assert len({Regex("a"), Regex("a")}) == 1


@pytest.mark.parametrize(
    "symbols", [3, ["a"], {"p": ["a"]}, {"p": "a"}, {"p": None}, {3: SymbolTable(["a"])}]
)
@pytest.mark.parametrize("schema", [{"type": "string"}, int])
def test_tables_that_are_none_are_refused_where_they_are_read(schema: Any, symbols: Any) -> None:
    output = JsonSchema(schema, symbols=symbols)
    assert output == output and hash(output) == hash(output) and repr(output)
    assert output != JsonSchema(schema) and output != JsonSchema(schema, symbols=symbols)
    for read in (Grammar.from_type, lambda output: stencilm.load("tiny")("", output)):
        with pytest.raises(TypeError, match="symbols"):
            read(output)


def test_notations_with_tables_are_equal() -> None:
    tables = {"p": SymbolTable(["a", "b"]), "q": SymbolTable(["c"])}
    output = JsonSchema(True, symbols=tables)
    again = JsonSchema(True, symbols=dict(reversed(tables.items())))
    assert output == again and hash(output) == hash(again)
    assert output != JsonSchema(True, symbols={**tables, "p": SymbolTable(["a"])})


def test_a_field_that_may_be_omitted_on_errors_is_written() -> None:
    Kept = create_model("Kept", count=(OnErrorOmit[int], ...))
    assert json_schema_of(Kept)["required"] == ["count"]
    assert resolve(Kept).parse('{"count": 1}').model_dump() == {"count": 1}
