"""Values of JSON texts that are still being written."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable
from datetime import date
from enum import Enum
from itertools import pairwise
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypeVar

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    RootModel,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass as pydantic_dataclass
from typing_extensions import TypedDict

from stencilm.generation import partial
from stencilm.generation.partial import MISSING, PartialReader, is_same, partial_value
from stencilm.grammars.outputs import resolve
from stencilm.models.partials import Partials

CALLS: Counter[Any] = Counter()


def counted(value: Any) -> Any:
    CALLS[repr(value)] += 1
    return value


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str
    friends: list[Cat] = []


class Owner(BaseModel):
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]]
    best: Cat | Dog | None = None


class Names(RootModel[list[str]]):
    pass


class Table(RootModel[dict[str, Names]]):
    pass


class Aliased(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)
    first_name: str
    last_name: str = Field(alias="surname")
    any_of: int = Field(validation_alias=AliasChoices("one", "other", AliasPath("deep", 0)))
    _secret: int = PrivateAttr(default=7)


@pydantic_dataclass
class Spelled:
    full_name: str = Field(alias="fullName")
    size: int = 1


class Movie(TypedDict):
    title: str
    year: int
    tags: NotRequired[list[str]]


class Place(NamedTuple):
    x: int
    y: int
    label: str = "here"


class Colour(Enum):
    RED = "red"


class Checked(BaseModel):
    small: int
    large: int

    @field_validator("small")
    @classmethod
    def doubled(cls, value: int) -> int:
        return value * 2

    @model_validator(mode="after")
    def in_order(self) -> Checked:
        if self.small > self.large:
            raise ValueError("not in order")
        return self


class Holder(BaseModel):
    inner: Checked | None = None
    day: date | None = None
    colour: Colour = Colour.RED


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    known: int


Item = TypeVar("Item")


class Box(BaseModel, Generic[Item]):
    item: Item
    others: tuple[Item, ...] = ()


@dataclasses.dataclass
class Tree:
    name: str
    children: list[Tree] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Ordered:
    low: int
    high: int
    width: int = dataclasses.field(default=0, init=False)

    def __post_init__(self) -> None:
        self.width = self.high - self.low


SHOWN: list[tuple[Any, str, Any]] = [
    (Names, '["a", "b', Names(["a", "b"])),
    (Table, '{"x": ["a"], "y": [', Table({"x": Names(["a"]), "y": Names([])})),
    (RootModel[str], '"ab', RootModel[str]("ab")),
    (tuple[int, str], '[1, "a', (1, "a")),
    (tuple[int, ...], "[1, 2, 3", (1, 2)),
    (set[int], "[1, 2, 2, 3", {1, 2}),
    (frozenset[str], '["a"', frozenset(["a"])),
    (list[tuple[int, str]], '[[1, "a"], [2', [(1, "a"), ()]),
    (dict[int, list[float]], '{"1": [0.5, 2', {1: [0.5]}),
    (dict[str, Any], '{"a": {"b": [1, {"c": "d', {"a": {"b": [1, {"c": "d"}]}}),
    (Place, '[1, 2, "a', Place(1, 2, "a")),
    (Place, "[1, 2", Place(1, None, None)),  # type: ignore[arg-type]
    (Movie, '{"title": "A', {"title": "A", "year": None}),
    (Movie, '{"title": "A", "year": 1, "tags": ["x', {"title": "A", "year": 1, "tags": ["x"]}),
    (int, "12", MISSING),
    (bool, "tr", MISSING),
    (bool, "true", True),
    (str | int, '"a', "a"),
    (date, '"2020-01-0', MISSING),
    (list[date], '["2020-01-02", "20', [date(2020, 1, 2)]),
    (list[Colour], '["red", "re', [Colour.RED]),
    (Any, '{"a": [1, 2', {"a": [1]}),
    (Any, '"\\ud83d', ""),
    (Any, '"\\ud83d\\ude0', ""),
    (Any, '"\\ud83d\\ude00', "😀"),
    (Any, '"a\\', "a"),
    (Any, '"a\\n\\u00e', "a\n"),
    (Any, '"a\\\\u12', "a\\u12"),
    (Any, " ", MISSING),
    (Tree, '{"name": "a", "children": [{"name": "b', Tree("a", [Tree("b", None)])),  # type: ignore[arg-type]
    (list[Ordered], '[{"low": 1, "high": 3}, {"low": 1', None),
]


@pytest.mark.parametrize(("tp", "text", "shown"), SHOWN)
def test_what_is_shown(tp: Any, text: str, shown: Any) -> None:
    value = partial_value(tp, text)
    if tp == list[Ordered]:
        assert value[0] == Ordered(1, 3) and value[0].width == 2
        assert (value[1].low, value[1].high) == (None, None)
    elif shown is MISSING:
        assert value is MISSING
    else:
        assert is_same(value, shown), value


def test_aliases_of_every_kind() -> None:
    text = '{"firstName": "A", "surname": "B", "other": 3, "x'
    value = partial_value(Aliased, text)
    assert (value.first_name, value.last_name, value.any_of) == ("A", "B", 3)
    assert value._secret == 7
    assert partial_value(Aliased, '{"one": 3, "firstName": "A').first_name == "A"
    value = partial_value(Spelled, '{"fullName": "A')
    assert (value.full_name, value.size) == ("A", None)
    value = partial_value(list[Spelled], '[{"fullName": "A", "size": 2}, {')
    assert value[0] == Spelled(fullName="A", size=2)


def test_unions_show_what_is_decided() -> None:
    assert partial_value(Owner, '{"pets": [{"kind": "c').pets == []
    value = partial_value(Owner, '{"pets": [{"kind": "cat"')
    assert type(value.pets[0]) is Cat and value.pets[0].lives is None
    value = partial_value(Owner, '{"pets": [{"kind": "cat"}, {"name": "R')
    assert value.pets[0] == Cat(kind="cat") and type(value.pets[1]) is Dog
    assert value.pets[1].name == "R" and value.best is None
    value = partial_value(
        Owner, '{"pets": [], "best": {"kind": "dog", "name": "R", "friends": [{"kind": "cat"}'
    )
    assert type(value.best) is Dog and value.best.friends == [Cat(kind="cat")]
    assert partial_value(list[int] | list[str], '["a"') is MISSING
    assert partial_value(list[int] | list[str], '["a"]') == ["a"]


def test_closed_parts_are_checked_as_a_whole() -> None:
    text = '{"inner": {"small": 1, "large": 5}, "day": "2020-0'
    value = partial_value(Holder, text)
    assert value.inner == Checked(small=1, large=5) and value.day is None
    assert value.colour is None
    refused = partial_value(Holder, '{"inner": {"small": 9, "large": 5}, "day": "2020-01-02"')
    assert refused.inner is None and refused.day == date(2020, 1, 2)
    assert partial_value(Open, '{"known": 1, "more": "x').more == "x"
    value = partial_value(Box[int], '{"item": 1, "others": [2, 3')
    assert (value.item, value.others) == (1, (2,))


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    size: int
    tags: list[str] = []
    other: int = 0

    @field_validator("name")
    @classmethod
    def titled(cls, value: str) -> str:
        return value.title()

    @field_validator("size", "tags")
    @classmethod
    def not_many(cls, value: Any) -> Any:
        if value == 9 or value == ["no"]:
            raise ValueError("too many")
        return value

    @field_validator("size", mode="wrap")
    @classmethod
    def halved(cls, value: Any, read: Callable[[Any], int]) -> int:
        return read(value) // 2

    @field_validator("other")
    @classmethod
    def above_size(cls, value: int, info: ValidationInfo) -> int:
        if value < info.data["size"]:
            raise ValueError("too few")
        return value


@pydantic_dataclass
class StrictLine:
    size: int
    more: str = ""

    @field_validator("size")
    @classmethod
    def small(cls, value: int) -> int:
        if value > 5:
            raise ValueError("too large")
        return -value


def test_closed_members_are_checked_by_the_validators_of_their_class() -> None:
    def shown(text: str) -> tuple[Any, ...]:
        value = partial_value(Strict, text)
        return value.name, value.size, value.tags, value.other

    assert shown('{"name": "ann s') == ("ann s", None, None, None)  # it is open
    assert shown('{"name": "ann smith"') == ("Ann Smith", None, None, None)
    assert shown('{"name": "a", "size": 9,') == ("A", None, None, None)
    assert shown('{"name": "a", "size": 8,') == ("A", 4, None, None)
    assert shown('{"name": "a", "size": 8, "tags": ["no"') == ("A", 4, ["no"], None)
    assert shown('{"name": "a", "size": 8, "tags": ["no"]') == ("A", 4, None, None)
    # What needs the other members is known with the whole.
    assert shown('{"name": "a", "size": 8, "other": 7,') == ("A", 4, None, None)
    assert shown('{"name": "a", "size": 8, "other": 7}') == ("A", 4, [], 7)
    assert partial_value(Strict, '{"name": "a", "size": 8, "other": 1}') is MISSING
    (line,) = partial_value(list[StrictLine], '[{"size": 4, "more": "x')
    assert (line.size, line.more) == (-4, "x")
    assert partial_value(StrictLine, '{"size": 7, "more": "x').size is None


@pytest.mark.parametrize(
    ("tp", "value"),
    [
        (Owner, {"pets": [{"kind": "cat", "lives": 1}, {"kind": "dog", "name": "é😀\n"}]}),
        (Table, {"a": ["x", "y"], "b": []}),
        (Holder, {"inner": {"small": 1, "large": 2}, "day": "2020-01-02", "colour": "red"}),
        (Tree, {"name": "a", "children": [{"name": "b", "children": []}, {"name": "c"}]}),
        (Movie, {"title": "a", "year": 3, "tags": ["x"]}),
        (list[Place], [[1, 2, "x"], [3, 4]]),
        (dict[str, list[int]], {"a": list(range(50)), "b": []}),
        (Any, [None, True, 1.5, {"a": None}, [[]]]),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_pieces_of_any_size_lead_to_the_same(tp: Any, value: Any, indent: int | None) -> None:
    from pydantic import TypeAdapter

    text = json.dumps(value, indent=indent)
    whole = TypeAdapter(tp).validate_json(text)
    assert partial_value(tp, text) == whole
    for size in (1, 2, 3, 7):
        reader, shown = PartialReader(tp), MISSING
        for start in range(0, len(text), size):
            reader.feed(text[start : start + size])
            now = reader.value()
            assert is_same(now, partial_value(tp, text[: start + size])), text[: start + size]
            if not reader.has_changed():
                assert is_same(now, shown), text[: start + size]
            shown = now
        assert reader.value() == whole


def test_earlier_values_do_not_change() -> None:
    reader, seen = PartialReader(list[list[int]]), []
    for piece in ("[", "[1", ", 2", ", 3], [4,", "5]]"):
        reader.feed(piece)
        seen.append(reader.value())
    assert seen == [[], [[]], [[1]], [[1, 2, 3], [4]], [[1, 2, 3], [4, 5]]]


class Line(BaseModel):
    text: Annotated[str, AfterValidator(counted)]
    numbers: list[Annotated[int, AfterValidator(counted)]]


class Page(BaseModel):
    lines: list[Line]


def test_no_part_is_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    from stencilm.grammars.python_types import type_adapter

    made: Counter[str] = Counter()

    def adapter(tp: Any) -> Any:
        made[repr(tp)] += 1
        return type_adapter(tp)

    monkeypatch.setattr("stencilm.generation.partial_types.type_adapter", adapter)
    CALLS.clear()
    page = {
        "lines": [
            {"text": f"line {number}", "numbers": [1000 + 10 * number + k for k in range(5)]}
            for number in range(40)
        ]
    }
    text = json.dumps(page)
    reader = PartialReader(Page)
    for character in text:
        reader.feed(character)
        reader.value()
    assert len(CALLS) == 40 + 200 and set(CALLS.values()) == {1}
    assert not made or max(made.values()) == 1
    assert reader.value() == Page.model_validate(page)


@pytest.mark.parametrize("depth", [900, 20_000])
def test_a_text_that_is_nested_deeply_is_shown(depth: int) -> None:
    reader = PartialReader(Any)
    reader.feed("[" * depth)
    assert reader.has_changed()
    reader.feed("]" * (depth - 1))
    assert not reader.has_changed()
    value = reader.value()
    for _ in range(depth - 1):
        (value,) = value
    assert value == []


def sizes_shown(tp: Any, text: str, step: int = 5) -> list[int]:
    """How long the values are that a stream shows of a text in small pieces."""
    partials = Partials(resolve(tp))
    pieces = (text[at : at + step] for at in range(0, len(text), step))
    return [len(value) for piece in pieces if (value := partials.feed(piece)) is not MISSING]


@pytest.mark.parametrize("tp", [list[int], Any, list[dict[str, int]]])
def test_each_step_of_a_list_of_some_thousand_elements_is_shown(tp: Any) -> None:
    element = {"a": 1} if tp == list[dict[str, int]] else 12345
    sizes = sizes_shown(tp, json.dumps([element] * 3000))
    assert set(sizes) >= set(range(1, 3001))


class _Clock:
    now = 0

    def read(self) -> float:
        return float(self.now)


@pytest.mark.parametrize(
    ("tp", "text"),
    [
        (list[int], json.dumps([12345] * 60_000)),
        (Any, json.dumps([[1, 2, 3]] * 40_000)),
        (dict[str, int], json.dumps({f"k{n}": n for n in range(30_000)})),
        (list[str], json.dumps(["a" * 400_000])),
        (str, "a" * 400_000),
    ],
)
def test_a_long_value_is_not_copied_at_each_step(
    tp: Any, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that counts the pieces: a copy takes as long as to read a hundred of them."""
    clock = _Clock()
    monkeypatch.setattr(partial, "perf_counter", clock.read)
    partials = Partials(resolve(tp))
    shown_after: list[int] = []
    show = partials._pace.shown

    def slow_show(value: Callable[[], Any]) -> Any:
        def copied() -> Any:
            clock.now += 100
            return value()

        shown_after.append(clock.now)
        return show(copied)

    monkeypatch.setattr(partials._pace, "shown", slow_show)
    sizes = []
    pieces = [text[at : at + 50] for at in range(0, len(text), 50)]
    for piece in pieces:
        clock.now += 1
        if (value := partials.feed(piece)) is not MISSING:
            sizes.append(len(value))
    assert sizes == sorted(sizes)
    assert len(sizes) < len(pieces)
    # Later ones are as far apart as a copy takes, and as much again for what comes in between; the
    # last one is whole.
    assert all(after - before >= 200 for before, after in pairwise(shown_after[-4:-1]))


def test_what_a_reader_does_to_a_value_changes_no_later_one() -> None:
    partials = Partials(resolve(list[int]))
    text = json.dumps(list(range(6000)))
    for at in range(0, len(text), 7):
        value = partials.feed(text[at : at + 7])
        if value is not MISSING:
            assert value == list(range(len(value)))
            value.reverse()
            value.append(-1)
