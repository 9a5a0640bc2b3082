"""Bounds of every type, and around every type: what is written keeps them once it is read."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import ipaddress
import pathlib
import random
import re
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    AfterValidator,
    Base64Str,
    BaseModel,
    ByteSize,
    Field,
    FilePath,
    HttpUrl,
    IPvAnyAddress,
    Json,
    JsonValue,
    RootModel,
    Secret,
    SecretStr,
    Strict,
    StringConstraints,
    condecimal,
)
from typing_extensions import TypedDict

from stencilm.errors import UnsupportedFeature
from stencilm.grammars.outputs import resolve

from .random_texts import matcher, random_text

Decimal = decimal.Decimal


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Counted(BaseModel):
    kind: Literal["counted"]
    held: Json[int]


class Named(BaseModel):
    kind: Literal["named"]


class Members(TypedDict):
    a: int


def around(tp: Any, **bounds: Any) -> Any:
    return Annotated[tp, Field(**bounds)]


@pytest.mark.parametrize(
    ("tp", "fits", "does_not"),
    [
        (around(int | float, gt=0), ["1", "0.5"], ["0", "-1", "0.0", "0E4097"]),
        (around(int | float, gt=0, le=5, multiple_of=2), ["2", "4.0"], ["5", "0", "6", "1.5"]),
        (around(around(int | float, gt=0), lt=2), ["1", "0.5"], ["0", "2"]),
        (around(int | str, min_length=2), ['"ab"'], ["12", '"a"']),
        (around(list[int] | dict[str, int], max_length=1), ["[1]", '{"a": 1}'], ["[1, 2]"]),
        (around(int | Decimal, max_digits=2, decimal_places=1), ['"1.5"'], ['"1.55"', "1"]),
        (around(Level, gt=1), ["2"], ["1"]),
        (around(Literal[1, 2, 3, "a"], gt=1), ["2", "3"], ["1", '"a"']),
        (around(Literal["a", "bcd"] | None, min_length=2), ['"bcd"', "null"], ['"a"']),
        (around(str | int, pattern="^a"), ['"ab"'], ['"b"', "1"]),
        (around(Literal["ab", "b"], pattern="^a"), ['"ab"'], ['"b"']),
        (
            around(datetime.date | datetime.datetime, ge=datetime.date(2020, 1, 1)),
            ['"2020-01-01"'],
            ['"2019-12-31"'],
        ),
        (condecimal(gt=0, max_digits=5), ["12.345", "0.00001", "12345"], ["1.23456", "0.000001"]),
        (condecimal(gt=0, max_digits=2, decimal_places=5), ["0.06"], ["6e-5", "1"]),
        (around(float, multiple_of=0.1), ["0.3", "-4000000.7"], ["123456789.1", "0.25"]),
        (
            around(float, multiple_of=3),
            ["3", "-9007199254740990"],
            ["-4.499939281153911201387e+80"],
        ),
        (around(float, multiple_of=0.25), ["0.25", "1e15"], ["0.3"]),
        (around(tuple[int], max_length=2), ["[1]"], ["[]", "[1, 2]"]),
        (around(tuple[int, str], min_length=1), ['[1, "a"]'], ["[1]", '[1, "a", 2]']),
    ],
    ids=str,
)
def test_bounds_are_kept(tp: Any, fits: list[str], does_not: list[str]) -> None:
    output, start = resolve(tp), matcher(tp)
    for text in (*fits, *does_not):
        is_written = start.fork().longest_valid_prefix(text).status == "complete"
        assert is_written == (text in fits), text
    for text in fits:
        output.parse(text)
    for seed in range(40):
        output.parse(random_text(start, random.Random(seed)))


@pytest.mark.parametrize("step", [0.1, 0.01, 0.05, 0.7, 1e-5, 12345.6, 3, 2.5, 1000], ids=str)
def test_multiples_are_read_as_multiples_up_to_the_largest(step: float) -> None:
    tp = around(float, multiple_of=step)
    output, start, chance = resolve(tp), matcher(tp), random.Random(step)
    for size in range(1, 18):
        for _ in range(20):
            value = Decimal(repr(step)) * chance.randrange(10 ** (size - 1), 10**size)
            text = f"{value:f}"
            if start.fork().longest_valid_prefix(text).status == "complete":
                output.parse(text)


def test_what_a_function_makes_of_a_value_is_left_to_pydantic() -> None:
    tp = around(Annotated[int, AfterValidator(lambda value: -value)], gt=3)
    output, start = resolve(tp), matcher(tp)
    assert start.longest_valid_prefix("-4").status == "complete"
    assert output.parse("-4") == 4


@pytest.mark.parametrize(
    ("tp", "words"),
    [
        (around(Any, gt=3), "gt=3 is no bound on the text of what it stands around"),
        (around(str, gt="b"), "gt=b is no bound"),
        (around(bool, gt=0), "gt=0 is no bound"),
        (around(ipaddress.IPv4Address, gt=ipaddress.IPv4Address(1)), r"gt=0\.0\.0\.1 is no bound"),
        (around(RootModel[int], gt=3), "gt=3 is no bound"),
        (around(HttpUrl, max_length=30), "max_length=30 is no bound"),
        (around(Base64Str, min_length=2), "min_length=2 is no bound"),
        (around(Literal["a"], min_length=2), "min_length=2 is no bound"),
        (around(fractions.Fraction, gt=1), "gt of a Fraction is no bound on its text"),
        (around(around(int | float, multiple_of=4), multiple_of=6), "multiple_of=6 stands around"),
        (
            around(pathlib.Path, min_length=1),
            "min_length cannot be applied to Path, whose values",
        ),
        (
            around(pathlib.Path, pattern="a"),
            "pattern cannot be applied to Path, whose values are no texts",
        ),
        (
            around(ipaddress.IPv4Address, max_length=9),
            "max_length cannot be applied to IPv4Address, whose",
        ),
        (around(uuid.UUID, pattern="a"), "pattern cannot be applied to UUID, whose values"),
        (around(HttpUrl, pattern="a"), "pattern cannot be applied to AnyUrl, whose values are no"),
        (around(SecretStr, pattern="a"), "pattern cannot be applied to SecretStr"),
        (around(str, allow_inf_nan=False), "allow_inf_nan cannot be applied to str, whose values"),
        (around(Literal["a"], allow_inf_nan=False), "allow_inf_nan cannot be applied to str"),
        (
            Annotated[datetime.date, StringConstraints(to_lower=True)],
            "to_lower cannot be applied to date, whose values are no texts: leave it out",
        ),
        (
            Annotated[Decimal, StringConstraints(strip_whitespace=True)],
            "strip_whitespace cannot be applied to Decimal",
        ),
        (Annotated[ByteSize, StringConstraints(to_lower=True)], "cannot be applied to ByteSize"),
        (around(deque[int], allow_inf_nan=False), "cannot be applied to deque"),
        (around(int | str, ge="x"), "ge='x' is no bound of the type int: give a value of it"),
        (Annotated[int | float, Strict()], "Unable to apply constraint 'strict'"),
    ],
    ids=str,
)
def test_bounds_that_no_text_can_keep_are_refused(tp: Any, words: str) -> None:
    with pytest.raises(UnsupportedFeature, match=words):
        resolve(tp).grammar()


@pytest.mark.parametrize(
    "tp",
    [
        around(Secret[str], min_length=2),
        around(Secret[list[int]], max_length=2),
        around(JsonValue, max_length=2),
        around(JsonValue | int, min_length=1),
        around(pathlib.Path | str, max_length=2),
        around(ByteSize | str, min_length=1),
        around(Iterable[int] | str, max_length=2),
        around(Secret[str], pattern="^a"),
        around(Secret[str] | int, pattern="^a"),
        around(pathlib.Path | str, pattern="^a"),
        around(IPvAnyAddress, pattern="^a"),
        around(re.Pattern, pattern="^a"),
        around(Base64Str, pattern="^a"),
        *(
            around(tp, allow_inf_nan=False)
            for tp in (Any, JsonValue, Secret[int], IPvAnyAddress, Literal["a", 1], float | str)
        ),
        around(Members, allow_inf_nan=False),
    ],
    ids=str,
)
def test_constraints_that_pydantic_cannot_apply_are_refused(tp: Any) -> None:
    with pytest.raises(UnsupportedFeature, match="has no JSON form: "):
        resolve(tp).grammar()


@pytest.mark.parametrize(
    "tp",
    [
        Json[int] | int,
        FilePath | int,
        around(str, multiple_of=2) | JsonValue,
        Annotated[Counted | Named, Field(discriminator="kind")],
        list[Json[int] | int],
    ],
    ids=str,
)
def test_a_choice_that_no_schema_describes_is_not_left_out(tp: Any) -> None:
    with pytest.raises(UnsupportedFeature, match="has no JSON form: "):
        resolve(tp).grammar()


@pytest.mark.parametrize(
    "tp", [type[int] | int, Callable[[], int] | int, re.Pattern[bytes] | int], ids=str
)
def test_a_choice_that_nothing_is_read_as_is_left_out(tp: Any) -> None:
    assert resolve(tp).grammar() == resolve(int).grammar()
