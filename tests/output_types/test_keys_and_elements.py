"""Keys of dicts and elements of sets: none is lost when it is read, and all keep their bounds."""

from __future__ import annotations

import collections
import contextlib
import datetime
import decimal
import enum
import fractions
import ipaddress
import json
import math
import pathlib
import random
import re
import uuid
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from pydantic import (
    AfterValidator,
    AnyUrl,
    Base64Bytes,
    Base64UrlBytes,
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    FileUrl,
    FtpUrl,
    HttpUrl,
    IPvAnyAddress,
    IPvAnyInterface,
    IPvAnyNetwork,
    NatsDsn,
    PositiveFloat,
    PostgresDsn,
    RedisDsn,
    RootModel,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    condecimal,
)
from typing_extensions import TypeAliasType

from case_names import case_name
from stencilm.errors import UnsupportedFeature
from stencilm.grammars.decimal_patterns import decimal_patterns
from stencilm.grammars.float_patterns import float_patterns
from stencilm.grammars.outputs import resolve

from .random_texts import matcher, random_text

Decimal = decimal.Decimal
RATIO = TypeAliasType("RATIO", float)


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)
    name: str
    day: datetime.date


class WithDefault(BaseModel):
    model_config = ConfigDict(frozen=True)
    number: int = 0


class Loose(BaseModel):
    number: int


class FrozenRoot(RootModel[int]):
    model_config = ConfigDict(frozen=True)


class Pair(NamedTuple):
    name: str
    number: int


@dataclass(frozen=True)
class Point:
    x: int
    y: int


class Plain(enum.Enum):
    ONE = 1


def _unchanged(value: Any) -> Any:
    return value


KEYS: list[Any] = [
    float,
    RATIO,
    float | None,
    float | int,
    Annotated[float, Field(ge=1.5, lt=30)],
    Annotated[float, Field(gt=-1e-7)],
    Annotated[float, Field(ge=0.1, le=0.3)],
    Annotated[float, AfterValidator(_unchanged)],
    Annotated[int, AfterValidator(_unchanged)],
    Decimal,
    Annotated[Decimal, Field(ge=1, lt=Decimal("1.75"))],
    Annotated[Decimal, Field(gt=-3, max_digits=4, decimal_places=2)],
    uuid.UUID,
    datetime.datetime,
    datetime.time,
    datetime.timedelta,
    Annotated[str, StringConstraints(strip_whitespace=True)],
    bool | str,
    list[int] | int,
    FrozenRoot,
]


# Of these a key is written in one of several ways, but how many there are is not counted.
OF_MANY_SPELLINGS: list[Any] = [
    AnyUrl,
    HttpUrl,
    FileUrl,
    FtpUrl,
    PostgresDsn,
    RedisDsn,
    NatsDsn,
    ipaddress.IPv4Address,
    ipaddress.IPv4Network,
    ipaddress.IPv4Interface,
    ipaddress.IPv6Address,
    ipaddress.IPv6Network,
    ipaddress.IPv6Interface,
    IPvAnyAddress,
    IPvAnyNetwork,
    IPvAnyInterface,
    pathlib.Path,
    pathlib.PurePosixPath,
    pathlib.PureWindowsPath,
    ByteSize,
    Base64Bytes,
    Base64UrlBytes,
    Annotated[str, StringConstraints(to_lower=True)],
    Annotated[str, StringConstraints(to_upper=True, strip_whitespace=True)],
    ipaddress.IPv6Address | None,
]


@pytest.mark.parametrize("key", [*KEYS, *OF_MANY_SPELLINGS], ids=case_name)
def test_every_key_is_read_and_none_is_lost(key: Any) -> None:
    for tp in (dict[key, int], collections.Counter[key]):
        output, start = resolve(tp), matcher(tp)
        for seed in range(25):
            text = random_text(start, random.Random(seed))
            read = output.parse(text)
            if key != float | int:  # 1 and 1.0 are one key
                assert len(read) == len(json.loads(text)), text


@pytest.mark.parametrize("key", [key for key in KEYS if key != float | int], ids=case_name)
def test_so_many_keys_are_so_many(key: Any) -> None:
    tp: Any = Annotated[dict[key, int], Field(min_length=2)]
    output, start = resolve(tp), matcher(tp)
    for seed in range(15):
        output.parse(random_text(start, random.Random(seed)))


@pytest.mark.parametrize(
    "element",
    [
        int,
        str,
        int | str,
        Decimal,
        uuid.UUID,
        datetime.date,
        datetime.datetime,
        datetime.timedelta,
        Literal["a", "b", 3],
        condecimal(gt=0, max_digits=4, decimal_places=2),
        tuple[str, int],
        Frozen,
        Pair,
        Point,
        FrozenRoot,
    ],
    ids=str,
)
def test_so_many_elements_are_so_many(element: Any) -> None:
    for made in (set, frozenset):
        tp: Any = Annotated[made[element], Field(min_length=2)]
        output, start = resolve(tp), matcher(tp)
        for seed in range(15):
            assert len(output.parse(random_text(start, random.Random(seed)))) >= 2


@pytest.mark.parametrize("element", [float, fractions.Fraction, Any], ids=str)
def test_a_set_of_any_number_keeps_what_is_equal_once(element: Any) -> None:
    output, start = resolve(set[element]), matcher(set[element])
    for seed in range(25):
        output.parse(random_text(start, random.Random(seed)))


@pytest.mark.parametrize(
    ("tp", "words"),
    [
        (dict[Annotated[int, Field(multiple_of=3)], int], "multiple_of=3 of a key cannot be kept"),
        (dict[Annotated[float, Field(multiple_of=0.5)], int], r"multiple_of=0\.5 of a key"),
        (dict[Plain, int], "no key of an object as a Plain: use a list of pairs"),
        (dict[Literal[1, 2], int], "no key of an object as a literal"),
        (dict[list[int], int], "no key of an object as a list"),
        (dict[frozenset[int], int], "no key of an object as a frozenset"),
        (dict[Frozen, int], "no key of an object as a Frozen"),
        (dict[RootModel[str], int], "no key of an object as a RootModel"),
        (dict[fractions.Fraction, int], "a key that is a fraction can be written in several"),
        (dict[complex, int], "a key that is a complex can be written in several ways"),
        (dict[list[int] | tuple[int], int], "no key of an object as a list"),
        (Annotated[dict[HttpUrl, int], Field(min_length=2)], "min_length=2 counts keys of a dict"),
        (Annotated[dict[float | int, int], Field(min_length=2)], "min_length=2 counts keys"),
        (set[list[int]], "no set can hold a value of list, which has no hash: use a list"),
        (set[Loose], "no set can hold a value of Loose"),
        (set[tuple[int, Any]], "no set can hold a value of any"),
        (frozenset[int | dict[str, int]], "no set can hold a value of dict"),
        (Annotated[set[float], Field(min_length=2)], "min_length=2 counts elements of a set"),
        (Annotated[set[bool | int], Field(min_length=2)], "min_length=2 counts elements"),
        (Annotated[set[Literal[1, True]], Field(min_length=2)], "min_length=2 counts elements"),
        (Annotated[set[Any], Field(min_length=3)], "min_length=3 counts elements"),
        (Annotated[set[ByteSize], Field(min_length=2)], "min_length=2 counts elements"),
        (Annotated[set[WithDefault], Field(min_length=2)], "min_length=2 counts elements"),
        (Annotated[set[frozenset[int]], Field(min_length=2)], "min_length=2 counts elements"),
        (Annotated[set[tuple[float, int]], Field(min_length=2)], "min_length=2 counts elements"),
    ],
    ids=str,
)
def test_what_cannot_be_kept_is_refused(tp: Any, words: str) -> None:
    with pytest.raises(UnsupportedFeature, match=words):
        resolve(tp).grammar()


@pytest.mark.parametrize(
    ("tp", "around"), [(Hashable, "{}"), (list[Hashable], "[{}]"), (set[Hashable], "[{}]")], ids=str
)
def test_what_must_have_a_hash_is_no_list(tp: Any, around: str) -> None:
    start, adapter = matcher(tp), TypeAdapter(tp)
    for held in ("1", "1.5", '"a"', "null", "true", "[1]", "[]", "{}", '{"a": 1}'):
        text = around.format(held)
        is_written = start.fork().longest_valid_prefix(text).status == "complete"
        is_read = True
        try:
            adapter.validate_json(text)
        except ValidationError:
            is_read = False
        assert is_written == is_read == (held[0] not in "[{"), text


@pytest.mark.parametrize(
    ("tp", "fits", "does_not"),
    [
        (float, ["1.0", "0.1", "-2.5", "1e+16", "1e-05", "0.0001"], ["1", "1.50", "1e5", "-0.0"]),
        (Decimal, ["1", "1.5", "-0.001"], ["1.0", "1.50", "-0", "01"]),
        (uuid.UUID, ["c0ffee00-0000-4000-8000-000000000000"], []),
        (uuid.UUID, [], ["C0FFEE00-0000-4000-8000-000000000000"]),
        (datetime.datetime, ["2024-01-02T03:04:05.500000Z", "2024-01-02T03:04:05"], []),
        (datetime.datetime, [], ["2024-01-02T03:04:05.5Z", "2024-01-02T03:04:05+01:00"]),
        (datetime.timedelta, ["PT0S", "P1DT20H3M0.5S", "-PT10H"], ["PT60M", "P1W", "P0D", "PT24H"]),
        (Annotated[int | str, Field()], ["7", "x"], []),
    ],
    ids=str,
)
def test_keys_are_written_in_one_way(tp: Any, fits: list[str], does_not: list[str]) -> None:
    start = matcher(dict[tp, int])
    for key in (*fits, *does_not):
        text = json.dumps({key: 1})
        is_written = start.fork().longest_valid_prefix(text).status == "complete"
        assert is_written == (key in fits), key


SPELLINGS: list[tuple[Any, list[str]]] = [
    (HttpUrl, ["http://a.de/", "http://A.de/", "http://a.de", "HTTP://a.de/", "http://a.de:80/"]),
    (HttpUrl, ["http://a.de/b", "http://a.de/./b", "http://a.de/c/../b", "http://a.de/%2e/b"]),
    (HttpUrl, ["http://127.0.0.1/", "http://127.1/", "http://0x7f.0.0.1/", "http://2130706433/"]),
    (HttpUrl, ["http://u@a.de/", "http://u:@a.de/"]),
    (AnyUrl, ["file:///a", "file://localhost/a"]),
    (RedisDsn, ["redis://a:6379/0", "redis://a/0", "redis://a"]),
    (PostgresDsn, ["postgres://u:p@a:5432/db", "postgres://u:p@a:05432/db"]),
    (ipaddress.IPv6Address, ["0:0:0:0:0:0:0:1", "::1", "0::1", "::0001", "::0.0.0.1"]),
    (ipaddress.IPv6Address, ["a:b:0:0:0:0:0:1", "A:b::1", "a:B::1", "a:b:0::1"]),
    (ipaddress.IPv6Network, ["::/0", "0::/0", "0:0:0:0:0:0:0:0/0"]),
    (ipaddress.IPv6Network, ["a:b::/40", "a:b:0::/40", "A:b::/40", "a:b:0:0:0:0:0:0/40"]),
    (ipaddress.IPv6Network, ["0:0:0:0:0:0:0:1/128", "::1/128", "0::1/128", "::1"]),
    (ipaddress.IPv4Network, ["1.2.3.4/32", "1.2.3.4", "1.2.3.4/255.255.255.255"]),
    (ipaddress.IPv6Interface, ["0:0:0:0:0:0:0:1/128", "::1/128", "::1"]),
    (pathlib.PurePosixPath, ["a/b", "a//b", "a/./b", "./a/b", "a/b/", "a/b/."]),
    (pathlib.PurePosixPath, [".", "", "./", "./."]),
    (pathlib.PurePosixPath, ["/", "/."]),
    (pathlib.PureWindowsPath, ["a/b", "a\\b", "A/b", "a/B"]),
    (ByteSize, ["1000", "1000B", "1KB", "1kb", "1.0KB", "01000", "1000.0"]),
    (Base64Bytes, ["QQ==", "QR==", "Qf=="]),
    (Annotated[str, StringConstraints(to_lower=True)], ["aé", "Aé", "aÉ"]),
    (Annotated[str, StringConstraints(to_upper=True)], ["SS", "ß", "ss", "Ss"]),
]


@pytest.mark.parametrize(("key", "texts"), SPELLINGS, ids=str)
def test_one_of_many_spellings_is_written(key: Any, texts: list[str]) -> None:
    """The first of them, and what is read from the others is equal, or they are not read."""
    start = matcher(dict[key, int])
    written = [
        text
        for text in texts
        if start.fork().longest_valid_prefix(json.dumps({text: 1})).status == "complete"
    ]
    assert written == texts[:1]
    value = TypeAdapter(key).validate_python(texts[0])
    for text in texts:
        with contextlib.suppress(ValidationError):
            assert TypeAdapter(key).validate_python(text) == value


KEEPS = {
    "ge": lambda one, other: one >= other,
    "gt": lambda one, other: one > other,
    "le": lambda one, other: one <= other,
    "lt": lambda one, other: one < other,
}


def _matches(patterns: list[str], text: str) -> bool:
    return all(re.search(pattern.replace("$", r"\Z"), text) for pattern in patterns)


def _some_float(chance: random.Random) -> float:
    digits, exponent = chance.randrange(10 ** chance.randrange(1, 16)), chance.randrange(-30, 20)
    near = float(f"{chance.choice('+-')}{digits}e{exponent}")
    return chance.choice([near, near, 0.0, 1e15, 1e16, 1e-4, 1e-5, 1e308, -1e-307, 100.0])


@pytest.mark.parametrize("seed", range(20))
def test_floats_between_bounds(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(20):
        bounds = {name: _some_float(chance) for name in chance.sample(sorted(KEEPS), 2)}
        patterns = float_patterns(bounds)
        tried = [_some_float(chance) for _ in range(10)]
        for bound in bounds.values():
            tried += [bound, math.nextafter(bound, 1e309), bound * (1 - 1e-14), bound * 1.1]
        for value in tried:
            short = len(Decimal(repr(value)).normalize().as_tuple().digits) <= 15
            fits = all(KEEPS[name](value, bound) for name, bound in bounds.items())
            written = repr(value) if value else "0.0"
            if math.isfinite(value) and (not value or abs(value) >= 1e-307):
                assert _matches(patterns, written) == (fits and short), (bounds, value)


def _some_decimal(chance: random.Random) -> Decimal:
    digits = Decimal(chance.randrange(10 ** chance.choice([1, 2, 4, 20])))
    return digits.scaleb(-chance.choice([0, 1, 2, 5])) * chance.choice([1, -1])


@pytest.mark.parametrize("seed", range(20))
def test_decimals_between_bounds(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(30):
        bounds = {name: _some_decimal(chance) for name in chance.sample(sorted(KEEPS), 2)}
        patterns = decimal_patterns(bounds)
        tried = [_some_decimal(chance) for _ in range(10)]
        for bound in bounds.values():
            tried += [bound, bound + 1, bound - Decimal("0.001"), bound * 10, -bound]
        for value in tried:
            text = f"{value:f}"
            text = text.rstrip("0").rstrip(".") if "." in text else text
            fits = all(KEEPS[name](value, bound) for name, bound in bounds.items())
            assert _matches(patterns, "0" if not value else text) == fits, (bounds, value)


@pytest.mark.parametrize(
    ("tp", "fits", "does_not"),
    [
        # What is read as the bound itself does not keep it.
        (Annotated[float, Field(lt=1)], ["0.9999999999999999", "-7"], ["0." + "9" * 20, "1"]),
        (Annotated[float, Field(gt=1)], ["1.0000000000000003", "2"], ["1." + "0" * 20 + "1", "1"]),
        (PositiveFloat, ["1e-300", "0.1"], ["0." + "0" * 400 + "1", "0"]),
        (Annotated[float, Field(ge=2, gt=3)], ["3.5"], ["3", "2"]),
        (condecimal(lt=1), ["0.5"], ["0." + "9" * 20]),
        (condecimal(le=Decimal("0.1234567890123456789")), ["0.1"], ["0.1234567890123456789"]),
        (condecimal(gt=0, decimal_places=1), ["0.1"], ["0", "0.0"]),
        (condecimal(multiple_of=3), ["3", "-999999999999999"], ["1.71967632961346e+27"]),
    ],
    ids=str,
)
def test_bounds_are_kept_by_what_is_read(tp: Any, fits: list[str], does_not: list[str]) -> None:
    output, start = resolve(tp), matcher(tp)
    for text in (*fits, *does_not):
        is_written = start.fork().longest_valid_prefix(text).status == "complete"
        assert is_written == (text in fits), text
    for text in fits:
        output.parse(text)


@pytest.mark.parametrize("bound", [{"ge": math.nan}, {"gt": 1.7976931348623157e308}], ids=str)
def test_bounds_that_no_number_keeps_are_refused(bound: Any) -> None:
    with pytest.raises(UnsupportedFeature, match="no number of JSON is read as one that keeps"):
        resolve(Annotated[float, Field(**bound)]).grammar()


@pytest.mark.parametrize(
    ("tp", "fits", "does_not"),
    [
        (
            Annotated[collections.defaultdict[str, int], Field(min_length=1)],
            ['{"a": 1}'],
            ["{}"],
        ),
        (Annotated[collections.deque[int], Field(min_length=1)], ["[1]"], ["[]"]),
        (Annotated[list[int] | set[int], Field(max_length=1)], ["[1]"], []),
    ],
    ids=str,
)
def test_lengths_are_those_of_what_has_them(tp: Any, fits: list[str], does_not: list[str]) -> None:
    output, start = resolve(tp), matcher(tp)
    for text in (*fits, *does_not):
        is_written = start.fork().longest_valid_prefix(text).status == "complete"
        assert is_written == (text in fits), text
    for text in fits:
        output.parse(text)
