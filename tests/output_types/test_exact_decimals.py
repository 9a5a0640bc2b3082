"""Numbers that a float does not hold: each digit of the text is in the value."""

from __future__ import annotations

import dataclasses
import random
from collections import OrderedDict, deque
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import pytest
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    RootModel,
    ValidationInfo,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from typing_extensions import TypedDict

from stencilm import JsonSchema
from stencilm.generation.partial import partial_value
from stencilm.grammars.outputs import resolve

from .random_texts import matcher, random_text

T = TypeVar("T")
BARE: Any = list
Price = Annotated[Decimal, Field(gt=0)]
WRITTEN = "0.12345678901234567890123"
EXACT = Decimal(WRITTEN)
ROUNDED = 0.12345678901234568


class Pair(NamedTuple):
    price: Price
    number: int = 1


class Item(BaseModel):
    price: Price
    discount: Price | None = None


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    price: Price


class Tree(BaseModel):
    price: Price
    parts: list[Tree]


class Extra(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Price]


class Root(RootModel[Price]):
    pass


class Aliased(BaseModel):
    price: Price = Field(alias="the price")


class Checked(BaseModel):
    price: Price

    @field_validator("price")
    @classmethod
    def same(cls, value: Decimal) -> Decimal:
        return value


class Sold(BaseModel):
    kind: Literal["sold"]
    price: Price


class Measured(BaseModel):
    kind: Literal["measured"]
    price: float
    weight: Price | None = None


@dataclasses.dataclass
class Row:
    price: Price


class Entry(TypedDict):
    price: Price


class Prepared(BaseModel):
    price: Price
    parts: list[Prepared] = []

    @model_validator(mode="before")
    @classmethod
    def prepare(cls, value: Any) -> Any:
        return {"parts": [], **value}

    @field_validator("price", mode="wrap")
    @classmethod
    def check(cls, value: Any, read: Any, info: ValidationInfo) -> Any:
        assert info.mode == "json"
        return read(value)


class Called(BaseModel):
    price: Price
    count: int | None = None

    def __init__(self, **members: Any) -> None:
        super().__init__(**members)


@pydantic_dataclass
class Whole:
    price: Price | float


class Box(BaseModel, Generic[T]):
    inner: T | float


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    price: Price


def decimals(value: Any) -> list[Decimal]:
    """The decimals of a value, wherever they are."""
    if isinstance(value, Decimal):
        return [value]
    if isinstance(value, BaseModel):
        inner = [*vars(value).values(), *(value.model_extra or {}).values()]
    elif dataclasses.is_dataclass(value) or isinstance(value, dict):
        inner = list((value if isinstance(value, dict) else vars(value)).values())
    else:
        inner = [] if isinstance(value, (str, int, float, type(None))) else list(value)
    return [one for part in inner for one in decimals(part)]


@pytest.mark.parametrize(
    ("tp", "text"),
    [
        (Price, "{}"),
        (JsonSchema(Price), "{}"),
        (Pair, "[{}, 1]"),
        (Item, '{{"price": {}, "discount": {}}}'),
        (Strict, '{{"price": {}}}'),
        (Tree, '{{"price": {}, "parts": [{{"price": {}, "parts": []}}]}}'),
        (Extra, '{{"a": {}}}'),
        (Root, "{}"),
        (Aliased, '{{"the price": {}}}'),
        (Checked, '{{"price": {}}}'),
        (Row, '{{"price": {}}}'),
        (Entry, '{{"price": {}}}'),
        (set[Price], "[{}]"),
        (deque[Price], "[{}]"),
        (tuple[Price, ...], "[{}, {}]"),
        (tuple[int, Price], "[1, {}]"),
        (Sequence[Price], "[{}]"),
        (dict[str, Price], '{{"1.23456789012345678\\"": {}}}'),
        (OrderedDict[str, Price], '{{"a": {}}}'),
        (Price | int | None, "{}"),
        (Annotated[Sold | Measured, Field(discriminator="kind")], '{{"kind":"sold","price":{}}}'),
        (Sold | Measured, '{{"kind": "measured", "price": 1.5, "weight": {}}}'),
        (Price | float, "{}"),
        (float | Price, "{}"),
        (list[str | Price], "[{}, {}]"),
        (list[float | Price | None], "[{}]"),
        (Price | Any, "{}"),
        (Row | Sold, '{{"price": {}}}'),
        (list[Row | Entry], '[{{"price": {}}}]'),
        (Annotated[Price, BeforeValidator(lambda value: value)], "{}"),
        (Annotated[Price | float, WrapValidator(lambda value, read: read(value))], "{}"),
        (Annotated[Any, PlainValidator(lambda value: Decimal(str(value)))], "{}"),
        (Prepared, '{{"price": {}, "parts": [{{"price": {}}}]}}'),
        (Called, '{{"price": {}}}'),
        (Whole, '{{"price": {}}}'),
        (list[Box[Price]], '[{{"inner": {}}}]'),
        (Price | list[Price] | dict[str, Price | str], '{{"a": {}, "b": {}}}'),
    ],
)
def test_every_digit_is_kept(tp: Any, text: str) -> None:
    written = text.format(WRITTEN, WRITTEN)
    output = resolve(tp)
    value = output.parse(written)
    assert decimals(value) == [EXACT] * text.count("{}")
    shown = partial_value(output.json_type, written + " ")
    assert decimals(shown) == decimals(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12345678901234567890.50", "12345678901234567890.5"),
        ("1.2345678901234567891E+5", "123456.78901234567891"),
        ("0.99999999999999999999", "0.99999999999999999999"),
        ("0.10000000000000000000000000000000", "0.1"),
        ("12345678901234567890", "12345678901234567890"),
    ],
)
def test_numbers_in_every_form(text: str, value: str) -> None:
    for tp in (Price, Price | int, list[Price]):
        read = resolve(tp).parse(f"[{text}]" if tp == list[Price] else text)
        assert str(read[0] if isinstance(read, list) else read) == value


@pytest.mark.parametrize(
    ("tp", "text", "value"),
    [
        (float, "{}", ROUNDED),
        (Any, "[{}]", [ROUNDED]),
        (tuple[Price, BARE], "[1, [{}]]", (Decimal(1), [ROUNDED])),
        (tuple[Price, list[Any]], "[1, [{}]]", (Decimal(1), [ROUNDED])),
        (tuple[Price, dict[str, Any]], '[1, {{"a": {}}}]', (Decimal(1), {"a": ROUNDED})),
        (Loose, '{{"price": 1, "other": {}}}',
         Loose.model_validate({"price": 1, "other": ROUNDED})),
        (Annotated[float | Price, Field(union_mode="left_to_right")], "{}", ROUNDED),
        (Annotated[Sold | Measured, Field(discriminator="kind")],
         '{{"kind": "measured", "price": {}}}', Measured(kind="measured", price=ROUNDED)),
        (dict[str, str | Price], '{{"a": "{}"}}', {"a": WRITTEN}),
        (tuple[Price, Any], "[1, {}]", (Decimal(1), ROUNDED)),
    ],
)  # fmt: skip
def test_what_may_be_no_decimal_is_read_as_before(tp: Any, text: str, value: Any) -> None:
    assert resolve(tp).parse(text.format(WRITTEN)) == value


def test_what_the_grammar_allows_is_read_whole() -> None:
    tp = Annotated[Decimal, Field(ge=-5, lt=100, max_digits=30, decimal_places=28)]
    start, chance, read = matcher(tp), random.Random(3), resolve(tp).parse
    for _ in range(300):
        text = random_text(start, chance)
        assert read(text) == Decimal(text), text


def test_a_text_that_is_no_json_is_refused_as_before() -> None:
    for text in (f"[{WRITTEN}", f'{WRITTEN} "', f"[{WRITTEN}, '\\", "1e", f"{WRITTEN} x"):
        with pytest.raises(ValueError, match="json"):
            resolve(list[Price]).parse(text)
