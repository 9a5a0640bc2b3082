"""What is shown of a whole text is what pydantic reads, whatever the types of its parts say."""

from __future__ import annotations

import collections
import dataclasses
import json
import time
from collections import abc
from datetime import date
from enum import Enum
from typing import Annotated, Any, Generic, NotRequired, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel
from typing_extensions import NamedTuple, TypeAliasType, TypedDict

from stencilm.errors import UnsupportedFeature
from stencilm.generation.partial import MISSING, PartialReader, is_same, partial_value
from stencilm.grammars.python_types import type_adapter

Item = TypeVar("Item")


class Colour(Enum):
    RED = "red"


@dataclasses.dataclass
class Boxed(Generic[Item]):
    item: Item
    more: list[Item] = dataclasses.field(default_factory=list)
    within: Boxed[Item] | None = None


class BoxedDict(TypedDict, Generic[Item]):
    item: Item
    more: NotRequired[list[Item]]


class BoxedPair(NamedTuple, Generic[Item]):
    item: Item
    more: tuple[Item, ...] = ()


class OfDates(Boxed[date]):
    pass


class DictOfDates(BoxedDict[date]):
    name: str


class Stripped(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True, str_to_upper=True)
    name: str
    names: list[str] = []


class Later(BaseModel):
    names: list[Name]
    tags: list[Tag] = []


class Name(BaseModel):
    name: str


class Tag(NamedTuple):
    tag: date


class ByValue(BaseModel):
    model_config = ConfigDict(use_enum_values=True)
    colour: Colour


class Defaults(BaseModel):
    number: Annotated[float, Field(validate_default=True)] = "1.5"  # type: ignore[assignment]


class Doubling(BaseModel):
    number: int

    def __init__(self, **members: Any) -> None:
        super().__init__(**{name: 2 * value for name, value in members.items()})


class AlsoDoubling(Doubling):
    pass


@dataclasses.dataclass
class WithField:
    number: int = Field(3)
    numbers: list[int] = Field(default_factory=lambda: [1])  # noqa: RUF009


@dataclasses.dataclass(init=False)
class WithoutInit:
    number: int

    def __init__(self) -> None:
        raise RuntimeError("never called")


class StrippedDict(TypedDict):
    __pydantic_config__ = ConfigDict(str_strip_whitespace=True)  # type: ignore[misc]
    name: str


NESTED: Any = TypeAliasType("NESTED", int | list["NESTED"])  # type: ignore[misc]
DATES: Any = TypeAliasType("DATES", list[Item], type_params=(Item,))  # type: ignore[arg-type]

DAY, TEXT = "2024-05-06", " ab "


@pytest.mark.parametrize(
    ("tp", "value"),
    [
        (Boxed[date], {"item": DAY, "more": [DAY], "within": {"item": DAY}}),
        (list[Boxed[date]], [{"item": DAY}]),
        (BoxedDict[date], {"item": DAY, "more": [DAY]}),
        (BoxedPair[date], [DAY, [DAY]]),
        (OfDates, {"item": DAY, "more": [DAY]}),
        (DictOfDates, {"item": DAY, "name": "x"}),
        (list[DATES[date]], [[DAY], []]),
        (Boxed[Boxed[date]], {"item": {"item": DAY}, "more": []}),
        (Stripped, {"name": TEXT, "names": [TEXT]}),
        (list[Stripped], [{"name": TEXT}]),
        (dict[str, StrippedDict], {"a": {"name": TEXT}}),
        (Later, {"names": [{"name": "x"}], "tags": [[DAY]]}),
        (ByValue, {"colour": "red"}),
        (list[Defaults], [{}, {"number": 2}]),
        (Doubling, {"number": 1}),
        (list[AlsoDoubling], [{"number": 1}]),
        (list[WithField], [{}, {"number": 4}]),
        (WithoutInit, {"number": 1}),
        (NESTED, [1, [2, [3], []]]),
        (list[NESTED], [1, [2, [3]]]),
        (JsonValue, {"a": [1, "x", [None, True]]}),
        (list[JsonValue], ["a", {"b": [1]}]),
        (RootModel[list[JsonValue]], ["a", {"b": [1]}]),
        (collections.OrderedDict[str, int], {"b": 1, "a": 2}),
        (list[collections.OrderedDict[str, int]], [{}]),
        (abc.Set[int], [1, 2]),
        (abc.MutableSet[int], [1, 2]),
        (list[abc.Mapping[str, int]], [{"a": 1}]),
    ],
    ids=str,
)
def test_what_is_shown_last_is_what_is_read(tp: Any, value: Any) -> None:
    for indent in (None, 1):
        text = json.dumps(value, indent=indent)
        expected = type_adapter(tp).validate_json(text)
        for width in (1, 3, len(text)):
            reader = PartialReader(tp)
            for start in range(0, len(text), width):
                reader.feed(text[start : start + width])
                reader.value()
            for found in (reader.value(), reader.whole(text)):
                assert is_same(found, expected), found


def test_what_is_read_lazily_is_what_pydantic_makes() -> None:
    tp: Any = abc.Iterable[int]
    assert list(partial_value(tp, "[1, 2]")) == [1, 2]
    assert partial_value(tp, "[1") is MISSING


@pytest.mark.parametrize("tp", [set, frozenset, set[Any], frozenset[tuple[Any, ...]]], ids=str)
def test_what_has_no_hash_is_left_out_of_a_set(tp: Any) -> None:
    text = '[1, {"a": 2}, [3], "x"'
    for end in range(len(text) + 1):
        value = partial_value(tp, text[:end])
        assert value is MISSING or isinstance(value, (set, frozenset))
    assert partial_value(tp, text + "]") is MISSING


@dataclasses.dataclass(frozen=True)
class Point:
    name: str
    other: str = "x"


@pytest.mark.parametrize(
    ("tp", "text"),
    [
        (set[str], '["ab", "abc", "ab"]'),
        (frozenset[str], '["", "ab"]'),
        (abc.Set[str], '["ab"]'),
        (set[str] | None, '["ab"]'),
        (RootModel[set[str]], '["ab", "b"]'),
        (set[Any], '["ab", 12]'),
        (set[tuple[str, str]], '[["ab", "c"], ["d", "e"]]'),
        (set[frozenset[str]], '[["ab", "c"], []]'),
        (set[Point], '[{"name": "ab", "other": "c"}, {"name": "d"}]'),
        (dict[str, set[str]], '{"a": ["bc", "d"], "e": ["f"]}'),
    ],
    ids=str,
)
def test_no_beginning_of_an_element_is_in_a_set(tp: Any, text: str) -> None:
    whole = type_adapter(tp).validate_json(text)

    def elements(value: Any) -> set[Any]:
        value = value.root if isinstance(value, RootModel) else value
        return set().union(*value.values()) if isinstance(value, dict) else set(value)

    reader, seen = PartialReader(tp), list[Any]()
    for character in text:
        reader.feed(character)
        has_changed, value = reader.has_changed(), reader.value()
        if value is MISSING:
            continue
        assert elements(value) <= elements(whole), value
        assert has_changed or is_same(value, seen[-1])
        seen.append(value)
    assert seen[-1] == whole and len({len(elements(value)) for value in seen}) > 1


@pytest.mark.parametrize(
    ("tp", "text", "is_shown"),
    [
        (date | str, "2020-01-02", False),
        (str | date, "2020-01-02", True),
        (bytes | str, "ab", False),
        (list[int] | bytes | str, "ab", False),
        (int | str, "12", True),
        (Annotated[int | str, Field(union_mode="left_to_right")], "12", False),
        (Colour | str, "red", True),
    ],
    ids=str,
)
def test_a_text_that_may_be_another_value_is_not_shown_open(
    tp: Any, text: str, is_shown: bool
) -> None:
    assert partial_value(tp, f'"{text}') == (text if is_shown else MISSING)
    assert type_adapter(tp).validate_json(f'"{text}"') == partial_value(tp, f'"{text}"')


def test_a_type_with_an_unknown_name_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match=r"Nowhere"):
        type_adapter(list["Nowhere"])  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize("opening", ["", "[", '{"a": ', "[0, "])
def test_a_long_number_is_looked_at_once(opening: str) -> None:
    reader = PartialReader(Any)
    begin = time.monotonic()
    for piece in (f"{opening}1.", *["0123456789" * 50] * 2_000, "7 "):
        reader.feed(piece)
    assert time.monotonic() - begin < 5
    value = reader.value()
    held = value if not opening else value["a"] if opening[0] == "{" else value[-1]
    assert held == float("1." + "0123456789" * 10)
