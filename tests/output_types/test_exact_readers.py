"""The reader that loses nothing reads every other text as pydantic itself does."""

from __future__ import annotations

import copy
import dataclasses
import enum
import fractions
import json
import pickle
import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NotRequired, TypeVar

import pytest
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    RootModel,
    Tag,
    TypeAdapter,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from typing_extensions import TypedDict

from case_names import case_name
from stencilm import JsonSchema
from stencilm.grammars.exact_readers import exact_reader
from stencilm.grammars.outputs import resolve
from stencilm.grammars.python_types import type_adapter
from stencilm.grammars.written_numbers import Marks, WrittenNumber, reading

from .random_texts import matcher, random_text
from .test_texts_of_types import REGULAR

T = TypeVar("T")
LONG = "0.12345678901234567890123"


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    weight: float
    tricks: list[str | int] = []


class Node(BaseModel):
    value: int | str | None
    nodes: list[Node] = Field(default_factory=list, max_length=2)
    named: dict[str, Node] | None = None


class Prepared(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True, strict=True)
    name: str = Field(alias="the name")
    day: Literal[1, 2]
    _made: int = PrivateAttr(default=3)

    @field_validator("name", mode="before")
    @classmethod
    def strip(cls, value: Any, info: ValidationInfo) -> Any:
        return value.strip() + str(info.data)

    @model_validator(mode="after")
    def check(self) -> Prepared:
        object.__setattr__(self, "_made", self._made + 1)
        return self


class Called(BaseModel):
    x: int
    y: list[int] = []

    def __init__(self, **members: Any) -> None:
        super().__init__(**{**members, "y": [7]})

    def model_post_init(self, context: Any) -> None:
        self.y.append(self.x)


class Mixed(BaseModel):
    price: Annotated[Decimal, Field(gt=0)] | float

    def __init__(self, **members: Any) -> None:
        super().__init__(**members)


class Tenth(enum.Enum):
    TENTH = 0.1


class Extra(BaseModel):
    model_config = ConfigDict(extra="allow")
    x: int = Field(validation_alias=AliasChoices("x", "y"))


class Row(TypedDict, total=False):
    x: int
    y: NotRequired[str]


@pydantic_dataclass
class Point(Generic[T]):
    x: T
    y: float = dataclasses.field(default=1.0)


class Box(BaseModel, Generic[T]):
    inner: T


class Roots(RootModel[list[int | float]]):
    pass


def kind_of(value: Any) -> str:
    return "one" if isinstance(value, dict) else "many"


AWKWARD: list[Any] = [
    Annotated[Cat | Dog, Field(discriminator="kind")],
    Annotated[
        Annotated[Dog, Tag("one")] | Annotated[list[Dog], Tag("many")], Discriminator(kind_of)
    ],
    Dog | Cat,
    Node,
    Prepared,
    Called,
    list[Called | Cat],
    Extra,
    Row,
    Point[int],
    list[Point[float] | Box[int]],
    Box[Box[bool]],
    Roots,
    defaultdict[int, list[int]],
    deque[int | float],
    tuple[int, Any, *tuple[float, ...]],
    frozenset[float],
    dict[str, Any],
    list[float | bool | None],
]


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, and of the same types all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, BaseModel):
        names = ("__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__")
        return same(vars(one), vars(other)) and all(
            getattr(one, name) == getattr(other, name) for name in names
        )
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple, deque)):
        return len(one) == len(other) and all(map(same, one, other))
    if dataclasses.is_dataclass(one):
        return same(vars(one), vars(other))
    return bool(one == other)


@pytest.mark.parametrize("tp", [*REGULAR, *AWKWARD], ids=case_name)
def test_every_text_is_read_as_by_pydantic(tp: Any) -> None:
    adapter = type_adapter(tp)
    reader, start = exact_reader(adapter.core_schema), matcher(tp)
    for seed in range(20):
        text = random_text(start, random.Random(seed))
        for given in (text, text[: len(text) // 2], text.replace("1", '"'), f"[{text}]"):
            marks = Marks(given, {})
            with reading(marks):
                read = outcome(reader.validate_json, given)
            by_pydantic = outcome(adapter.validate_json, given)
            assert (read is REFUSED) == (by_pydantic is REFUSED), given
            assert same(read, by_pydantic), given


REFUSED = object()


def outcome(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except (ValueError, TypeError):  # before 2.14 pydantic raises the latter for a Fraction
        return REFUSED


@pytest.mark.parametrize(
    ("tp", "text", "value"),
    [
        (JsonSchema(int, spelling="any"), "1234567890123456789.0", 1234567890123456789),
        (JsonSchema(int, spelling="any"), "-12345678901234567890e3", -12345678901234567890000),
        (JsonSchema(list[int], spelling="any"), "[1e25, 1E+1]", [10**25, 10]),
        (Any, "[1e400]", [Decimal("1e400")]),
        (list, "[1e400]", [Decimal("1e400")]),
        (JsonSchema(float | Decimal, spelling="any"), "1e400", Decimal("1e400")),
        (float | Annotated[Decimal, Field(gt=0)], "12345678901234567890", 12345678901234567890),
        (Annotated[Decimal, Field(gt=0)], f"{LONG}e-400", Decimal(f"{LONG}e-400")),
        (Literal[10**30, "a"] | Decimal, f"{10**30}", 10**30),
        # Bounds hold for what the model wrote.
        (Annotated[Decimal, Field(lt=1)], "0.99999999999999999999", 1 - Decimal("1e-20")),
        (Annotated[Decimal, Field(gt=1)], "1.00000000000000000001", 1 + Decimal("1e-20")),
    ],
    ids=str,
)
def test_no_number_is_rounded_or_infinite(tp: Any, text: str, value: Any) -> None:
    assert resolve(tp).parse(text) == value


@pytest.mark.parametrize(
    ("tp", "text", "message"),
    [
        (float, "1e400", "The number 1e400 is beyond what a float holds"),
        (list[float], f"[-{'9' * 400}]", "The number -9{56}[.]{3} is beyond what a float holds"),
        (float, f"{'9' * 400}.5", "beyond what a float holds"),
        (int, "1e5000", "finite number"),
        (int, LONG, "fractional part"),
        (Annotated[Decimal, Field(le=1)], "1.00000000000000000001", "less than or equal to 1"),
        (Annotated[Decimal, Field(gt=0)], f"1e{'9' * 20}", "number"),
        (Tenth, "0.10000000000000000001", "Input should be 0.1"),
        (bool, "1.00000000000000000001", "valid boolean"),
        (Mixed, f'{{"price": {LONG}}}', "Mixed has an __init__ of its own"),
    ],
    ids=str,
)
def test_what_cannot_be_known_is_refused(tp: Any, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resolve(tp).parse(text)


def test_numbers_of_one_float_are_told_apart() -> None:
    numbers = ["3.14159265358979323846", "3.141592653589793", "3.1415926535897932384"]
    read = resolve(list[float | Annotated[Decimal, Field(gt=0)]]).parse
    assert read(f"[{','.join(numbers)}]") == [
        Decimal(numbers[0]),
        3.141592653589793,
        Decimal(numbers[2]),
    ]


def test_what_is_read_later_is_read_at_once() -> None:
    read = resolve(Iterable[Annotated[Decimal, Field(gt=0)]]).parse
    assert list(read(f"[{LONG}]")) == [Decimal(LONG)]


def test_a_number_that_no_part_looks_at_is_no_other_number() -> None:
    class Ignoring(BaseModel):
        model_config = ConfigDict(extra="ignore")
        price: Annotated[Decimal, Field(gt=0)]

    read = resolve(list[Ignoring]).parse
    (value,) = read(f'[{{"price": {LONG}, "other": {LONG}1}}]')
    assert value.price == Decimal(LONG)


def test_functions_are_given_floats_that_know_their_digits() -> None:
    seen: list[Any] = []

    def look(value: Any) -> Any:
        seen.append(value)
        return value

    tp = Annotated[list[Annotated[Decimal, Field(gt=0)]], BeforeValidator(look)]
    assert resolve(tp).parse(f"[{LONG}, 1.5, 12345678901234567890]")[0] == Decimal(LONG)
    first, second, third = seen[0]
    assert isinstance(first, float) and first * 2 == float(LONG) * 2
    assert str(first) == f"{first}" == LONG
    assert type(second) is float and type(third) is int
    assert first == float(LONG) and hash(first) == hash(float(LONG))
    for copied in (copy.deepcopy(first), copy.copy(first), pickle.loads(pickle.dumps(first))):
        assert type(copied) is WrittenNumber and str(copied) == LONG
    assert json.dumps(first) == json.dumps(float(LONG))


def test_types_without_such_numbers_are_read_by_pydantic_alone() -> None:
    adapter: TypeAdapter[Any] = type_adapter(list[float])
    text = f"[{LONG}, 1.5]"
    assert resolve(list[float]).parse(text) == adapter.validate_json(text)


def test_fractions_are_exact_where_numbers_are_read_as_them() -> None:
    if type_adapter(fractions.Fraction).core_schema["type"] != "fraction":
        pytest.skip("before 2.14 pydantic reads a Fraction by a function")
    read = resolve(list[fractions.Fraction | float]).parse
    assert read(f"[{LONG}, 0.5]") == [fractions.Fraction(Decimal(LONG)), 0.5]
    with pytest.raises(ValueError, match=r"1e-9{9}"):
        resolve(fractions.Fraction).parse("1e-999999999")
