"""Every text that a type's grammar allows reads as a value, and every value can be written."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import ipaddress
import json
import random
import re
import sys
import uuid
import zoneinfo
from collections import Counter, OrderedDict
from dataclasses import InitVar, dataclass, field
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypeVar

import pydantic
import pytest
from pydantic import (
    UUID4,
    AliasPath,
    AnyHttpUrl,
    AnyUrl,
    AwareDatetime,
    Base64Bytes,
    Base64Str,
    Base64UrlBytes,
    Base64UrlStr,
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    FilePath,
    FileUrl,
    FiniteFloat,
    FutureDate,
    FutureDatetime,
    HttpUrl,
    IPvAnyAddress,
    IPvAnyInterface,
    IPvAnyNetwork,
    Json,
    NaiveDatetime,
    PastDate,
    PastDatetime,
    PostgresDsn,
    RedisDsn,
    SecretBytes,
    SecretStr,
    StrictInt,
    StringConstraints,
    UrlConstraints,
    WebsocketUrl,
    condecimal,
)
from pydantic.color import Color
from pydantic.types import PaymentCardNumber
from typing_extensions import TypeAliasType, TypedDict

from case_names import case_name
from stencilm import Grammar, GrammarMatcher
from stencilm.errors import UnsupportedFeature
from stencilm.grammars.outputs import resolve
from stencilm.grammars.python_types import json_schema_of

from .random_texts import COMPILER, matcher, random_text

T = TypeVar("T")


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Colour(enum.Enum):
    RED = "red"


class Share(float, enum.Enum):
    HALF = 0.5
    ALL = 1


class Named(enum.Enum):
    ONE = "one"
    PAIR = (1, 2)


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 8


class Mode(enum.IntFlag):
    FAST = 1
    LOUD = 2


class Raw(bytes, enum.Enum):
    A = b"a"


class Day(datetime.date, enum.Enum):
    NEW_YEAR = (2024, 1, 1)


class Endless(enum.Enum):
    MOST = float("inf")


class SameMember(BaseModel):
    least: Annotated[int, Field(ge=3)] = Field(alias="n")
    n: Annotated[int, Field(le=5)] = 4


@dataclass
class SameMemberOfData:
    whole: Annotated[int, Field(alias="n")]
    n: Annotated[int | str, Field(alias="n")]


class WithNames(BaseModel, extra="allow"):
    __pydantic_extra__: dict[Annotated[str, Field(pattern="^x_")], list[int]]

    a: int = 0


class AllNamed(BaseModel, extra="allow"):
    __pydantic_extra__: dict[Literal["one", "two"], int]  # type: ignore[assignment]


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    count: int
    day: datetime.date


MOMENT = datetime.datetime(2020, 5, 17, 3, 4, 5, 7)
EAST = datetime.timezone(datetime.timedelta(hours=5))

REGULAR: list[Any] = [
    list[int],
    StrictInt,
    Strict,
    FiniteFloat,
    Annotated[FiniteFloat, Field(ge=0)],
    datetime.date,
    datetime.datetime,
    datetime.time,
    datetime.timedelta,
    AwareDatetime,
    NaiveDatetime,
    UUID4,
    uuid.UUID,
    HttpUrl,
    dict[HttpUrl, int],
    AnyHttpUrl,
    WebsocketUrl,
    FileUrl,
    RedisDsn,
    PostgresDsn,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
    ipaddress.IPv4Interface,
    ipaddress.IPv6Interface,
    IPvAnyAddress,
    IPvAnyInterface,
    IPvAnyNetwork,
    Base64Bytes,
    Base64UrlBytes,
    decimal.Decimal,
    condecimal(max_digits=5, decimal_places=2),
    condecimal(max_digits=3),
    condecimal(max_digits=2, decimal_places=2),
    condecimal(max_digits=2, decimal_places=5),
    condecimal(decimal_places=0),
    condecimal(gt=0, max_digits=4, decimal_places=1),
    condecimal(ge=0, decimal_places=2, multiple_of=decimal.Decimal("0.05")),
    dict[float, int],
    dict[bool, int],
    dict[int, int],
    dict[Level, int],
    dict[Literal["a", "b"], int],
    dict[decimal.Decimal, int],
    dict[datetime.date, int],
    dict[UUID4, int],
    dict[Annotated[str, Field(pattern="^[a-z]+$", max_length=3)], int],
    dict[Annotated[int, Field(ge=1, lt=4)], int],
    dict[Annotated[int, Field(ge=0)], int],
    Counter[Level],
    OrderedDict[bool, int],
    PastDate,
    FutureDate,
    PastDatetime,
    FutureDatetime,
    Annotated[datetime.date, Field(gt=datetime.date(2019, 12, 31), le=datetime.date(2020, 3, 1))],
    Annotated[PastDate, Field(ge=datetime.date(2020, 2, 29))],
    Annotated[datetime.datetime, Field(gt=MOMENT, lt=MOMENT + datetime.timedelta(days=400))],
    Annotated[NaiveDatetime, Field(ge=MOMENT, le=MOMENT + datetime.timedelta(seconds=2))],
    Annotated[AwareDatetime, Field(ge=MOMENT.replace(tzinfo=EAST))],
    Annotated[PastDatetime, Field(ge=MOMENT.replace(tzinfo=EAST))],
    Annotated[datetime.time, Field(gt=datetime.time(9, 5, 7, 3), le=datetime.time(17, 30))],
    Annotated[datetime.timedelta, Field(gt=datetime.timedelta(0))],
    Annotated[datetime.timedelta, Field(ge=datetime.timedelta(0))],
    Annotated[datetime.timedelta, Field(ge=datetime.timedelta(-3))],
    Annotated[
        datetime.timedelta,
        Field(gt=datetime.timedelta(minutes=59), lt=datetime.timedelta(days=30)),
    ],
    Annotated[bytes, Field(max_length=3)],
    Base64Str,
    Base64UrlStr,
    ByteSize,
    complex,
    fractions.Fraction,
    re.Pattern,
    Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=2, max_length=3, pattern="^[^b]")
    ],
    dict[int | None, int],
    WithNames,
    AllNamed,
    Access,
    dict[Mode, int],
    Annotated[set[Access], Field(min_length=2)],
    zoneinfo.ZoneInfo,
    dict[zoneinfo.ZoneInfo, int],
    Annotated[decimal.Decimal, Field(ge=decimal.Decimal(10) ** 23)],
    SameMember,
    SameMemberOfData,
    Annotated[SecretBytes, Field(min_length=1, max_length=3)],
    Annotated[SecretStr, Field(min_length=1, max_length=3)],
    Annotated[AnyUrl, UrlConstraints(host_required=True)],
    Annotated[AnyUrl, UrlConstraints(default_host="a.b")],
    Annotated[AnyUrl, UrlConstraints(default_port=3)],
    Annotated[AnyUrl, UrlConstraints(allowed_schemes=["file", "ftp", "a.b+c"])],
    Annotated[AnyUrl, UrlConstraints(allowed_schemes=["file"], host_required=True)],
    Annotated[AnyUrl, UrlConstraints(max_length=12, allowed_schemes=["http"])],
    *(
        [
            Annotated[str, StringConstraints(ascii_only=True)],
            Annotated[str, StringConstraints(ascii_only=True, strip_whitespace=True, min_length=2)],
        ]
        if "ascii_only" in StringConstraints.__dataclass_fields__  # pydantic 2.14 and later
        else []
    ),
]


@pytest.mark.parametrize("tp", REGULAR, ids=str)
def test_every_text_is_a_value(tp: Any) -> None:
    output, start = resolve(tp), matcher(tp)
    for seed in range(60):
        text = random_text(start, random.Random(seed))
        try:
            output.parse(text)
        except ValueError as error:
            pytest.fail(f"{text} is no {tp}: {error}")


UTC = datetime.UTC


@pytest.mark.parametrize(
    ("tp", "values"),
    [
        (datetime.date, [datetime.date(1, 1, 1), datetime.date(2024, 2, 29)]),
        (
            datetime.datetime,
            [
                datetime.datetime(2024, 1, 2, 3, 4, 5),
                datetime.datetime(2000, 2, 29, 23, 59, 59, 123456, tzinfo=UTC),
            ],
        ),
        (NaiveDatetime, [datetime.datetime(2024, 1, 2, 3, 4, 5, 60)]),
        (datetime.time, [datetime.time(3, 4, 5), datetime.time(3, 4, 5, 6, tzinfo=UTC)]),
        (
            datetime.timedelta,
            [
                datetime.timedelta(days=400, seconds=3, microseconds=7),
                datetime.timedelta(days=-1, hours=2),
                datetime.timedelta(0),
                datetime.timedelta(weeks=2),
            ],
        ),
        (HttpUrl, ["http://xn.example", "https://r3---sn.a.example/?a=b#c", "http://[::1]:80/"]),
        (HttpUrl, ["http://user:pw@10.0.0.1:65535/x", "http://x-y_z.example./%20"]),
        (PostgresDsn, ["postgresql+psycopg://u:p%40@a:1,b:2/db?x=y"]),
        (IPvAnyAddress, [ipaddress.ip_address("1.2.3.4"), ipaddress.ip_address("::1")]),
        (
            IPvAnyNetwork,
            [ipaddress.ip_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "fe80::/10")],
        ),
        (condecimal(max_digits=5, decimal_places=2), ["999.99", "-0.10", "7"]),
        (condecimal(max_digits=3), ["0.123", "12.3", "100"]),
        (dict[float, int], [{1e17: 1, -0.5: 2}]),
        (dict[Level, int], [{Level.LOW: 1, Level.HIGH: 2}]),
        (dict[Share, int], [{Share.HALF: 1, Share.ALL: 2}]),
        pytest.param(
            PastDate,
            [datetime.datetime.now(UTC).date() - datetime.timedelta(days=1)],
            id="PastDate",
        ),
        # A day more, since midnight may come before the test.
        pytest.param(
            FutureDate,
            [datetime.datetime.now(UTC).date() + datetime.timedelta(days=2)],
            id="FutureDate",
        ),
        pytest.param(
            PastDatetime,
            [datetime.datetime.now(UTC) - datetime.timedelta(seconds=2)],
            id="PastDatetime",
        ),
        (
            Annotated[datetime.timedelta, Field(gt=datetime.timedelta(0))],
            [datetime.timedelta(days=2, hours=5), datetime.timedelta(microseconds=1)],
        ),
        (
            Annotated[datetime.timedelta, Field(le=datetime.timedelta(hours=30))],
            [datetime.timedelta(days=1), datetime.timedelta(minutes=90), datetime.timedelta(0)],
        ),
        (Base64Str, ["YQ==", "YWI=", ""]),
        (ByteSize, ["1.5 GiB", "20KB", "7b"]),
        (complex, [1 - 2.5j, 3j, 4 + 0j, 1e40 + 1e-40j, sys.float_info.max * 1j, -5e-324 - 1e16j]),
        (fractions.Fraction, [fractions.Fraction(-1, 3), fractions.Fraction(7)]),
        (Annotated[float, Field(ge=1e100)], [1e100, 1.5e308]),
        (Annotated[float, Field(le=1e23, ge=-1e23)], [1e23, -1e23]),
        (Access, [Access(0), Access.READ | Access.RUN, ~Access(0)]),
        (Mode, [Mode(0), Mode.FAST | Mode.LOUD]),
        (zoneinfo.ZoneInfo, [zoneinfo.ZoneInfo("Europe/Berlin")]),
        (re.Pattern, [r"^[a-z_]+(\.\d+|x*?)$"]),
    ],
    ids=case_name,
)
def test_every_value_can_be_written(tp: Any, values: list[Any]) -> None:
    output, start = resolve(tp), matcher(tp)
    for value in values:
        text = (
            json.dumps(output.dump(output.parse(json.dumps(value))))
            if isinstance(value, str)
            else json.dumps(output.dump(value))
        )
        assert start.longest_valid_prefix(text).status == "complete", text


@pytest.mark.parametrize("power", [23, 30, 100])
def test_bounds_of_decimals_are_those_of_their_digits(power: int) -> None:
    bound = decimal.Decimal(f"1e{power}")
    least = matcher(Annotated[decimal.Decimal, Field(ge=bound)])
    most = matcher(Annotated[decimal.Decimal, Field(le=bound)])
    for text, is_least, is_most in (("9" * power, False, True), (f"{bound:f}", True, True)):
        assert (least.fork().longest_valid_prefix(text).status == "complete") == is_least
        assert (most.fork().longest_valid_prefix(text).status == "complete") == is_most


def test_integers_of_types_are_digits() -> None:
    start = matcher(list[int])
    assert start.accept_string("[1") and not start.accept_string(".0")
    both = matcher(list[int | float])
    assert both.accept_string("[1.0, 1, 1e3]")
    given = Grammar.from_json_schema(Strict)
    count = GrammarMatcher(COMPILER.compile_grammar(given))
    assert count.accept_string('{"count": 3') and not count.accept_string(".")
    mixed = matcher(Literal["a", 1])
    assert mixed.accept_string("1") and not mixed.accept_string(".")


@pytest.mark.parametrize(
    ("schema", "fits", "does_not"),
    [
        ({"type": "integer"}, ["1", "0", "-1"], ["1.0", "1e2", "-0"]),
        ({"type": "integer", "minimum": -3, "maximum": 0}, ["0", "-3"], ["-0"]),
        ({"type": "integer", "multipleOf": 3}, ["0", "-3"], ["-0", "1"]),
        ({"type": "integer", "maximum": 5}, ["0", "-3"], ["-0"]),
        ({"enum": [0, 1]}, ["0", "1"], ["-0", "1.0"]),
        ({"enum": ["a", 1, 2.0]}, ['"a"', "1", "2", "2.0"], ["1.0", "1e0"]),
        ({"const": [1, {"a": 2}]}, ['[1, {"a": 2}]'], ['[1.0, {"a": 2}]', '[1, {"a": 2.0}]']),
        ({"type": "integer", "enum": [0, -1]}, ["0", "-1"], ["-0"]),
        ({"type": "integer", "const": 0}, ["0"], ["-0"]),
        ({"type": "number"}, ["1", "1.0", "1e2"], []),
        ({"type": "integer", "minimum": 2, "multipleOf": 3}, ["3"], ["3.0", "2"]),
        ({"type": ["integer", "string"], "enum": [1, "a"]}, ["1", '"a"'], ["1.0"]),
        (
            {"anyOf": [{"type": "integer"}, {"type": "number", "maximum": 0}]},
            ["5", "-1.5"],
            ["5.0"],
        ),
        # 1.0 is an integer, however it is written.
        ({"type": "number", "not": {"type": "integer"}}, ["1.5"], ["1", "1.0"]),
    ],
    ids=str,
)
def test_digits_as_spelling(schema: dict[str, Any], fits: list[str], does_not: list[str]) -> None:
    start = GrammarMatcher(
        COMPILER.compile_grammar(Grammar.from_json_schema(schema, spelling="digits"))
    )
    for text in fits:
        assert start.longest_valid_prefix(text).status == "complete", text
    for text in does_not:
        assert start.longest_valid_prefix(text).status != "complete", text


# Before 2.14 pydantic counts the sign as a digit.
BELOW_ZERO = 4300 if tuple(map(int, pydantic.VERSION.split(".")[:2])) >= (2, 14) else 4299


@pytest.mark.parametrize(
    ("tp", "fits", "does_not"),
    [
        (int, ["9" * 4300, "-" + "9" * BELOW_ZERO], ["9" * 4301, "-1" + "0" * 4300]),
        (Annotated[int, Field(ge=5)], ["5", "9" * 4300], ["4", "9" * 4301]),
        (Annotated[int, Field(lt=5)], ["-" + "9" * BELOW_ZERO], ["5", "-" + "9" * 4301]),
        (Annotated[int, Field(multiple_of=3)], ["9" * 4300], ["9" * 4301, "4"]),
        (
            float,
            ["1.7976931348623157e+308", "-1e308", "1e-400", "9" * 308, "0." + "1" * 5000],
            ["1.7976931348623158e+308", "-1e309", "1e999", "9" * 309],
        ),
        (
            Annotated[float, Field(ge=0)],
            ["1.7976931348623157e+308", "0", "1" + "0" * 308],
            ["1.8e+308", "-1", "1" + "0" * 309],
        ),
        (FiniteFloat, ["1e308"], ["1e309"]),
        (Any, ["9" * 308, '{"a": [1e308]}'], ["9" * 4301, "[1e309]"]),
        (int | float, ["9" * 4300, "1.5"], ["9" * 4301, "1e309"]),
        (dict[int, int], ['{"%s": 1}' % ("9" * 4300)], ['{"%s": 1}' % ("9" * 4301)]),
        (dict[float, int], ['{"1.5e+308": 1}', '{"0.1": 1}'], ['{"1.8e308": 1}', '{"1e309": 1}']),
        (fractions.Fraction, [f'"{"9" * 4300}/7"'], [f'"{"9" * 4301}/7"']),
    ],
    ids=lambda value: str(value)[:40],
)
def test_numbers_of_types_are_those_that_are_read(
    tp: Any, fits: list[str], does_not: list[str]
) -> None:
    output = resolve(tp)
    start = GrammarMatcher(COMPILER.compile_grammar(output.grammar()))
    for text in fits:
        assert start.longest_valid_prefix(text).status == "complete", text[:40]
        value = output.parse(text)
        assert "inf" not in repr(value), text[:40]
    for text in does_not:
        assert start.longest_valid_prefix(text).status != "complete", text[:40]


class Kinded(BaseModel):
    kind: Literal[Colour.RED]


class Nested(BaseModel):
    x: int = Field(validation_alias=AliasPath("a", "b"))


@dataclass
class NestedData:
    x: Annotated[int, Field(validation_alias=AliasPath("a", 0))]


@pytest.mark.parametrize(
    ("tp", "words"),
    [
        (Literal[Colour.RED], "no JSON as Colour.RED in a Literal: derive Colour from str or int"),
        (Kinded, "derive Colour from str"),
        (Literal[b"a"], "no JSON as b'a' in a Literal: leave it out, or use its text"),
        (Named, r"no JSON as Named.PAIR, which is \(1, 2\): give it a value that JSON has"),
        (Raw, "no JSON as Raw.A, which is b'a'"),
        (dict[Day, int], "no JSON as Day.NEW_YEAR, which is datetime.date"),
        (Endless, "no JSON as Endless.MOST, which is inf"),
        (Nested, "the alias a.b is a path into another field"),
        (Json[int], "Json is JSON within a string"),
        (re.Pattern[bytes], "no JSON as a pattern of bytes"),
        (FilePath, "whether there is a file of a name"),
        (PaymentCardNumber, "the last digit of a PaymentCardNumber is a checksum"),
        (list[Color], "which texts pydantic reads as a Color"),
        (type[int], "no JSON as a class"),
        (dict[tuple[int, int], int], "no key of an object as a tuple"),
        (
            Annotated[AwareDatetime, Field(ge=MOMENT)],
            "only one of ge=2020-05-17 03:04:05.000007 and the values",
        ),
        (
            Annotated[datetime.timedelta, Field(lt=datetime.timedelta(0))],
            "no duration of whole seconds",
        ),
    ],
    ids=str,
)
def test_what_no_json_can_say_is_refused(tp: Any, words: str) -> None:
    with pytest.raises(UnsupportedFeature, match=words):
        resolve(tp).grammar()


@pytest.mark.parametrize("coding", ["base64", "hex"])
@pytest.mark.parametrize(("least", "most"), [(0, None), (0, 0), (1, 1), (2, 5), (4, None), (5, 6)])
def test_bytes_in_the_coding_of_a_model(coding: Any, least: int, most: int | None) -> None:
    coded = pydantic.ConfigDict(val_json_bytes=coding, ser_json_bytes=coding)
    bounded: Any = Annotated[bytes, Field(min_length=least, max_length=most)]
    Blob = pydantic.create_model("Blob", __config__=coded, data=(bounded, ...))
    start = matcher(Blob)
    for length in range(10):
        data = random.Random(length).randbytes(length)
        text = Blob.model_construct(data=data).model_dump_json()
        fits = least <= length and (most is None or length <= most)
        assert (start.fork().longest_valid_prefix(text.encode()).status == "complete") == fits
    for seed in range(20):
        Blob.model_validate_json(random_text(start, random.Random(seed)))


def test_a_model_that_strips_counts_no_blanks() -> None:
    class Stripped(BaseModel, str_strip_whitespace=True, str_min_length=2):
        names: list[str]
        kept: Annotated[str, StringConstraints(strip_whitespace=False)]

    start = matcher(Stripped)
    for names, kept, fits in ((["ab"], "ab", True), (["a "], "ab", False), (["ab"], "a ", True)):
        text = json.dumps({"names": names, "kept": kept}).encode()
        assert (start.fork().longest_valid_prefix(text).status == "complete") == fits


@dataclass
class NamedClass:
    s: str


class NamedDict(TypedDict):
    s: str


class NamedPair(NamedTuple):
    s: str


class Pairs(NamedTuple):
    s: NamedClass
    t: tuple[NamedPair, NamedPair]


class Long(BaseModel, str_max_length=5):
    s: NamedPair
    more: NamedPair | None = None


class Checked(BaseModel, str_max_length=5):
    s: NamedPair
    more: NamedPair | None = None

    @pydantic.model_validator(mode="after")
    def check(self) -> Checked:
        return self


class Chain(BaseModel):
    s: NamedPair
    chain: list[Chain] = []


class Boxed(BaseModel, Generic[T]):
    s: T
    more: tuple[NamedPair, NamedPair] | None = None


ALIAS = TypeAliasType("ALIAS", str)
NESTED: Any = TypeAliasType("NESTED", "str | list[NESTED]")


@pytest.mark.parametrize(
    ("inner", "written"),
    [
        (str, "%s"),
        (NamedClass, {"s": "%s"}),
        (NamedDict, {"s": "%s"}),
        (NamedPair, ["%s"]),
        (Pairs, [{"s": "%s"}, [["ab"], ["ab"]]]),
        (Pairs, [{"s": "ab"}, [["ab"], ["%s"]]]),
        (Long, {"s": ["%s"]}),
        (Checked, {"s": ["%s"]}),
        (Chain, {"s": ["%s"]}),
        (Chain, {"s": ["ab"], "chain": [{"s": ["%s"]}]}),
        (Boxed[NamedPair], {"s": ["%s"]}),
        (Boxed[str], {"s": "ab", "more": [["ab"], ["%s"]]}),
        (ALIAS, "%s"),
        (NESTED, ["%s"]),
        (pydantic.RootModel[NamedPair], ["%s"]),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "configured",
    [
        ConfigDict(),
        ConfigDict(str_max_length=3),
        ConfigDict(str_min_length=2, str_strip_whitespace=True),
    ],
    ids=str,
)
def test_what_is_held_is_read_by_the_configuration_that_pydantic_reads_it_by(
    inner: Any, written: Any, configured: ConfigDict
) -> None:
    first = json.loads(json.dumps(written).replace("%s", "ab"))
    one: Any = pydantic.create_model("One", __config__=configured, x=(inner, ...))
    two: Any = pydantic.create_model("Two", __config__=configured, x=(inner, ...), y=(inner, ...))
    short = ConfigDict(str_max_length=2)
    mixed = pydantic.create_model("Mixed", __config__=short, x=(inner, ...), y=(one, ...))
    for outer, whole in (
        (one, {"x": written}),
        (list[one], [{"x": written}]),
        (two, {"x": first, "y": written}),
        (list[two], [{"x": written, "y": first}]),
        (mixed, {"x": first, "y": {"x": written}}),
        (mixed, {"x": written, "y": {"x": first}}),
        (tuple[one, inner], [{"x": first}, written]),
        (tuple[one, inner], [{"x": written}, first]),
    ):
        output, start = resolve(outer), matcher(outer)
        for name in ("", "a", "abc", "abcd", "abcdef"):
            text = json.dumps(whole).replace("%s", name)
            try:
                output.parse(text)
                is_read = True
            except ValueError:
                is_read = False
            is_written = start.fork().longest_valid_prefix(text).status == "complete"
            assert is_written == is_read, (outer, text)


@pytest.mark.parametrize(("low", "high"), [(None, None), (5, None), (None, -12), (-130, 1042)])
def test_keys_that_are_integers_are_written_in_one_way(low: int | None, high: int | None) -> None:
    bounds = [Field(ge=low)] if low is not None else []
    bounds += [Field(le=high)] if high is not None else []
    key: Any = Annotated[(int, *bounds)] if bounds else int
    start = matcher(dict[key, int])
    for number in [*range(-150, 150), 999, 1000, 1039, 1042, 1043, 1050, 1100, 2000, 99999]:
        fits = (low is None or number >= low) and (high is None or number <= high)
        text = json.dumps({number: 1})
        assert (start.fork().longest_valid_prefix(text).status == "complete") == fits, text
    for twice in ("01", "-0", "00", "-01", "+1"):
        assert start.fork().longest_valid_prefix(f'{{"{twice}": 1}}').status != "complete"


def test_dataclasses_are_written_in_their_order() -> None:
    @dataclass
    class Ordered:
        last: int
        first: int = field(kw_only=True)
        given: InitVar[int]
        middle: Annotated[int, Field(alias="mid")] = 3

        def __post_init__(self, given: int) -> None:
            self.last += given

    start = matcher(list[Ordered])
    text = '[{"last": 1, "first": 2, "given": 0, "mid": 4}]'
    assert start.longest_valid_prefix(text).status == "complete"
    assert resolve(list[Ordered]).parse(text) == [Ordered(1, 0, 4, first=2)]


def test_what_a_dataclass_sets_itself_is_not_asked_for() -> None:
    @dataclass
    class Counted:
        name: str
        uses: int = field(init=False, default=9)

    start = matcher(Counted)
    assert start.fork().longest_valid_prefix('{"name": "a"}').status == "complete"
    # It would be read as 9.
    assert start.fork().longest_valid_prefix('{"name": "a", "uses": 2}').status == "dead"
    assert resolve(Counted).parse('{"name": "a"}') == Counted("a")


class Kitten(BaseModel, extra="forbid"):
    kind: Literal["cat", "kitten"] = "kitten"
    colour: Literal["black"] = "black"


class Tabby(BaseModel, extra="forbid"):
    kind: Literal["cat", "kitten"] = "cat"
    colour: Literal["grey"] = "grey"


class Puppy(BaseModel, extra="forbid"):
    kind: Literal["dog"] = Field("dog", alias="is")


class Whelp(BaseModel, extra="forbid"):
    kind: Literal["whelp"] = Field("whelp", alias="is")


@pydantic.dataclasses.dataclass(config=ConfigDict(extra="forbid"))
class Fish:
    kind: Literal["fish"] = "fish"
    colour: str = "red"


class Bird(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    kind: NotRequired[Literal["bird"]]
    wings: int


class Basket(BaseModel, extra="forbid"):
    first: Annotated[Kitten | Fish, Field(discriminator="kind")]
    others: list[Annotated[Kitten | Fish, Field(discriminator="kind")]] = []
    friend: Kitten | None = None


BY_KIND, BY_COLOUR = Field(discriminator="kind"), Field(discriminator="colour")
TEXTS_WITH_TAGS = [
    "{}",
    "null",
    '{"kind": "cat"}',
    '{"kind": "kitten"}',
    '{"kind": "kitten", "colour": "black"}',
    '{"kind": "kitten", "colour": "grey"}',
    '{"colour": "black"}',
    '{"colour": "red"}',
    '{"is": "dog"}',
    '{"is": "whelp"}',
    '{"kind": "fish"}',
    '{"kind": "bird", "wings": 2}',
    '{"wings": 2}',
    '{"first": {}}',
    '{"first": {"kind": "kitten"}, "friend": {}}',
    '{"first": {"kind": "fish"}, "others": [{"kind": "cat"}, {}]}',
    '{"first": {"kind": "fish"}, "others": [{"kind": "cat"}, {"kind": "fish"}]}',
]


@pytest.mark.parametrize(
    "tp",
    [
        Annotated[Kitten | Fish, BY_KIND],
        Annotated[Kitten | Fish, BY_KIND] | None,
        Annotated[Fish | Bird, BY_KIND],
        Annotated[Puppy | Whelp, BY_KIND],
        Annotated[Annotated[Kitten | Tabby, BY_COLOUR] | Fish, BY_KIND],
        Basket,
    ],
    ids=str,
)
def test_the_tag_of_a_union_is_there_also_where_it_has_a_default(tp: Any) -> None:
    start, adapter = matcher(tp), pydantic.TypeAdapter(tp)
    for text in TEXTS_WITH_TAGS:
        try:
            adapter.validate_json(text)
            is_read = True
        except pydantic.ValidationError:
            is_read = False
        assert (start.fork().longest_valid_prefix(text).status == "complete") == is_read, text


def test_a_tag_is_asked_for_once() -> None:
    class Rock(BaseModel):
        kind: Literal["rock"]

    schema = json_schema_of(Annotated[Kitten | Rock, BY_KIND])
    kitten, rock = schema["anyOf"]
    assert kitten == {"$ref": "#/$defs/Kitten", "required": ["kind"]}
    assert rock == {"$ref": "#/$defs/Rock"}
    assert "required" not in schema["$defs"]["Kitten"]


def test_a_type_is_described_as_it_is_read_whatever_its_configuration_shows() -> None:
    class Shown(BaseModel, json_schema_mode_override="serialization"):
        given: int = Field(1, validation_alias="read", serialization_alias="written")

        @pydantic.computed_field
        def double(self) -> int:
            return 2 * self.given

    for held in (Shown, list[Shown]):
        start, text = matcher(held), '{"read": 2}' if held is Shown else '[{"read": 2}, {}]'
        assert start.longest_valid_prefix(text).status == "complete"
