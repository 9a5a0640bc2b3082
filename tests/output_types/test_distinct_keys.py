"""Keys of dicts that are read as one: no text loses what stands under one of them."""

from __future__ import annotations

import datetime
import ipaddress
import json
import pathlib
import uuid
from collections import OrderedDict
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    StringConstraints,
)

from stencilm.generation.partial import MISSING, PartialReader
from stencilm.grammars.outputs import resolve
from stencilm.tool_calls.answers import ToolCall
from stencilm.tool_calls.functions import tool_of

from .random_texts import matcher

Address = ipaddress.IPv6Address
Lower = Annotated[str, AfterValidator(str.lower)]
NAME = "12345678-1234-1234-1234-123456789abc"


class Ports(BaseModel):
    ports: dict[Address | str, int]
    note: str = ""


def left_to_right(tp: Any) -> Any:
    return Annotated[tp, Field(union_mode="left_to_right")]


@pytest.mark.parametrize(
    ("tp", "one", "other"),
    [
        (Address | str, "::1", "0:0:0:0:0:0:0:1"),
        (left_to_right(Address | str), "::1", "0::1"),
        (Address | bytes, "::1", "0::1"),
        (uuid.UUID | str, NAME, NAME.upper()),
        (str | uuid.UUID, NAME, NAME.replace("-", "")),
        (pathlib.Path | str, "a", "./a"),
        (int | float, "1", "1.0"),
        (int | bool, "1", "true"),
        (Decimal | float, "1", "1.0"),
        (ByteSize | str, "1000", "1kB"),
        (datetime.date | datetime.datetime, "2020-01-01", "2020-01-01T00:00:00"),
        (datetime.date | int, "2020-01-01", "1577836800"),
        (Annotated[str, StringConstraints(to_lower=True)] | str, "a", "A"),
        (Lower, "a", "A"),
        (Annotated[str, BeforeValidator(str.strip)], "a", " a"),
    ],
)
@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_no_key_is_lost(kind: Any, tp: Any, one: str, other: str) -> None:
    output = resolve(kind[tp, int])
    both = json.dumps({one: 1, "|": 2, other: 3} if str in tp.__args__ else {one: 1, other: 3})
    walk = matcher(kind[tp, int])
    assert walk.accept_string(both)
    with pytest.raises(ValueError, match="a dict can hold one of them") as caught:
        output.parse(both)
    assert repr(one) in str(caught.value)
    assert repr(other) in str(caught.value)
    for alone in (one, other):
        assert len(output.parse(json.dumps({alone: 1}))) == 1
    reader = PartialReader(output.json_type)
    reader.feed(both)
    assert reader.whole(both) is MISSING


@pytest.mark.parametrize(
    "wrap", ['{{"ports": {}}}', '[{{"ports": {}, "note": "a"}}]'], ids=["model", "list"]
)
def test_within_other_types(wrap: str) -> None:
    tp = Ports if wrap.startswith("{{") else list[Ports | None]
    output = resolve(tp)
    fits, does_not = ('{"::1": 1, "::2": 2}', '{"::1": 1, "0::1": 2}')
    output.parse(wrap.format(fits))
    with pytest.raises(ValueError, match="'::1' and '0::1', are both read as IPv6Address"):
        output.parse(wrap.format(does_not))


class Stripped(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)
    counts: dict[str | bytes, int]


def test_keys_are_read_by_the_configuration_of_their_model() -> None:
    read = resolve(list[Stripped]).parse
    assert read('[{"counts": {"a": 1, "b": 2}}]')[0].counts == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match="'a' and ' a', are both read as 'a'"):
        read('[{"counts": {"a": 1, " a": 2}}]')


def test_a_union_reads_objects_by_a_type_that_loses_no_key() -> None:
    read = resolve(dict[Lower, int] | dict[str, str]).parse
    assert read('{"a": "1", "A": "2"}') == {"a": "1", "A": "2"}
    read = resolve(dict[Lower, int] | dict[str, int | None]).parse
    assert read('{"a": 1, "A": 2}') == {"a": 1, "A": 2}
    assert read('{"b": 1, "A": 2}') == {"b": 1, "a": 2}
    read = resolve(dict[Lower, int] | Ports).parse
    with pytest.raises(ValueError, match="'a' and 'A', are both read as 'a'"):
        read('{"a": 1, "A": 2}')
    assert read('{"ports": {"::1": 3}}') == Ports(ports={Address("::1"): 3})


class Mapped(BaseModel):
    counts: dict[Lower, dict[Lower, int]]


def test_keys_within_values_of_other_keys() -> None:
    read = resolve(list[Mapped | int]).parse
    assert read('[{"counts": {"a": {"b": 1}, "B": {"b": 2, "A": 3}}}]') == [
        Mapped(counts={"a": {"b": 1}, "b": {"b": 2, "a": 3}})
    ]
    for lost in ('{"a": {"b": 1, "B": 2}}', '{"a": {"b": 1}, "A": {}}'):
        with pytest.raises(ValueError, match="a dict can hold one of them"):
            read(f'[{{"counts": {lost}}}]')


def test_keys_of_arguments_that_no_grammar_bound() -> None:
    seen = []

    def count(of: dict[int, int]) -> None:
        seen.append(of)

    tool = tool_of(count)
    tool.run(ToolCall("count", {"of": {"1": 2, "3": 4}}, "call_0"))
    with pytest.raises(ValueError, match="'1' and '01', are both read as 1"):
        tool.run(ToolCall("count", {"of": {"1": 2, "01": 4}}, "call_1"))
    assert seen == [{1: 2, 3: 4}]
