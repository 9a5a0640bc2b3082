"""Whatever drafts say is in the response, or the result tells that it is not."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel, Field

import stencilm
from stencilm.guiding.told import value_behind
from stencilm.guiding.values import unwritten


class Number(BaseModel):
    a: int


class Row(BaseModel):
    a: int
    b: list[int]


class Short(BaseModel):
    a: Annotated[list[int], Field(max_length=2)]
    s: Annotated[str, Field(max_length=4)]


TYPES: list[Any] = [list[list[int]], list[int], Row, Short, list[Row], dict[str, list[int]]]


def guided(parts: Sequence[str], output_type: Any, **options: Any) -> stencilm.Guided:
    answers = iter(parts)
    budget = stencilm.Budget(calls=len(parts) + 10)
    return stencilm.guide(
        lambda prompt: next(answers, ""), output_type, "?", budget=budget, **options
    )


@pytest.mark.parametrize(
    ("draft", "output_type", "response", "others"),
    [
        ('{"a":1}\n{"a":2}', Number, '{"a":1}', ['{"a":2}']),
        ('{"a":1}{"a":2}', Number, '{"a":1}', ['{"a":2}']),
        ('{"a":1}, {"a":2}', Number, '{"a":1}', ['{"a":2}']),
        ('{"a":1} or, perhaps, {"a":2}. {"a":3}', Number, '{"a":1}', ['{"a":2}', '{"a":3}']),
        ('Sure: {"a":1}\nor: {"a":2}', Number, '{"a":1}', ['{"a":2}']),
        ('```json\n{"a":1}\n```\n```json\n{"a":2}\n```', Number, '{"a":1}', ['{"a":2}']),
        ("[1,2]\n[3,4]", list[int], "[1,2]", ["[3,4]"]),
        # One that does not fit, and one that comes in another form.
        ('{"b":1}\n{"a":2}', Number, '{"a": 2}', ['{"b":1}']),
        ('{"a":"1"}\n{"a": 2}', Number, '{"a": 1}', ['{"a": 2}']),
        # The same again says nothing more, in whatever form; nor do a bracket and then talk.
        ('{"a":1}\n{"a":1}', Number, '{"a":1}', []),
        ('{"a":1}\n{ "a": "1", }', Number, '{"a":1}', []),
        ('{"a":1} {I am sure', Number, '{"a":1}', []),
        ('{"a":1} :{', Number, '{"a":1}', []),
        ('{"a":1}\nI chose 1 and not "2".', Number, '{"a":1}', []),
    ],
)
def test_of_several_documents_those_that_are_not_taken_are_told(
    draft: str, output_type: Any, response: str, others: list[str]
) -> None:
    result = guided([draft], output_type)
    assert (result.response, result.status, result.filled) == (response, "valid", ())
    assert [tuple(one) for one in result.left_out] == [("", other, False) for other in others]
    assert result.lost == ""
    assert unwritten(result) is None  # the response says all that its own document says


@pytest.mark.parametrize(
    ("parts", "output_type", "response"),
    [
        (["[[7],", "5,6]"], list[list[int]], "[[7],[]]"),
        (["[[[29]", '],"w30"]'], list[list[int]], "[[29]]"),
        (['{"b":[', '[12,13]],"s":14}'], dict[str, list[int]], '{"b": [12, 13]}'),
        (["[26]"], list[Row], "[]"),
        (["[", '"w15"]'], list[int], "[]"),
        (['[["w12"],13,14]'], list[list[list[int]]], "[[]]"),
        (['{"a": 34, "s": [35, 36]}'], Short, '{"a":[],"s":""}'),
        (["[", "12"], list[list[list[int]]], "[[]]"),
        (['[{"a":1},{"a":2}]'], Number, '{"a":1}'),
        # The rest of another document is no rest of this one, wherever it begins.
        (['{"a":1,', '{"a":2,"b":[3]}'], Row, '{"a":1, "b": [3]}'),
        (['{"a":1', '{"b":[3],"a":2}'], Row, '{"a":1, "b": [3]}'),
        (['{"a":1}', '{"a":2,"b":[3]}'], Row, '{"a": 1, "b": [3]}'),
        (['[{"a":1}]', '[{"a":2,"b":[3]}]'], list[Row], '[{"a": 1, "b": [3]}]'),
        (['{"x":[1],', '{"x":[2],"y":[3]}'], dict[str, list[int]], '{"x":[1], "y": [3]}'),
    ],
)
def test_values_that_no_reading_lists_are_in_what_is_lost(
    parts: list[str], output_type: Any, response: str
) -> None:
    result = guided(parts, output_type)
    assert (result.response, result.lost) == (response, "".join(parts))
    assert unwritten(result) is not None


@pytest.mark.parametrize(
    ("parts", "response"),
    [
        (['{"a":1,', '{"a":1,"b":[3]}'], '{"a":1,"b":[3]}'),
        (['{"a":1}', '{"b":[3]}'], '{"a": 1, "b": [3]}'),
        (['{"a":1}', '{"b":[3],"a":1}'], '{"a": 1, "b": [3]}'),
    ],
)
def test_the_rest_of_a_document_may_come_in_one_of_its_own(parts: list[str], response: str) -> None:
    """It is in the response, so it is not left out of it."""
    result = guided(parts, Row)
    assert (result.response, result.filled, result.left_out) == (response, (), ())
    assert unwritten(result) is None


def drawn(rng: random.Random, depth: int, numbers: Any) -> Any:
    kind = rng.random()
    if depth == 0 or kind < 0.4:
        number = next(numbers)
        return number if rng.random() < 0.7 else f"w{number}"
    if kind < 0.8:
        return [drawn(rng, depth - 1, numbers) for _ in range(rng.randint(1, 3))]
    return {rng.choice("abs"): drawn(rng, depth - 1, numbers) for _ in range(2)}


def in_parts(rng: random.Random, text: str) -> list[str]:
    cuts = sorted(rng.sample(range(1, len(text)), min(len(text) - 1, rng.choice([0, 1, 1, 2]))))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@pytest.mark.parametrize("seed", range(150))
def test_no_value_of_drafts_is_lost_in_silence(seed: int) -> None:
    """Drafts of other types than the one that is asked for, whole and in parts."""
    rng = random.Random(seed)
    output_type = rng.choice(TYPES)
    wish = list if get_origin(output_type) is list else dict
    numbers = iter(range(10, 10_000))
    value = None
    while not isinstance(value, wish):
        value = drawn(rng, 3, numbers)
    parts = in_parts(rng, json.dumps(value, separators=(",", ":")))
    result = guided(parts, output_type)
    told = " ".join([result.response, *(one.text for one in result.left_out)])
    heard = "".join(parts[: result.usage.calls])  # it may end before all parts have come
    said = set(re.findall(r"\bw?[0-9]+(?!$)", heard))
    if not said <= set(re.findall(r"\bw?[0-9]+", told)):
        assert result.lost == heard


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_told_of_drafts_whose_values_are_all_there(seed: int) -> None:
    """Also where they have another order, talk around them, and parts that are said again."""
    rng = random.Random(seed)
    output_type = rng.choice(TYPES[:3] + TYPES[4:])
    value = right_value(rng, output_type)
    if isinstance(value, dict):
        value = dict(rng.sample([*value.items()], len(value)))
    text = json.dumps(value)
    whole = rng.choice([text, f"Sure!\n{text}\nAnything else?", f"```json\n{text}\n```"])
    parts = in_parts(rng, whole) if whole == text else [whole]
    if rng.random() < 0.5:
        parts[1:] = ["".join(parts)] * (len(parts) > 1)  # it begins again
    result = guided(parts, output_type)
    assert json.loads(result.response) == value
    assert (result.left_out, result.lost) == ((), "")


def right_value(rng: random.Random, tp: Any) -> Any:
    if tp is int:
        return rng.randint(0, 99)
    if tp is Row:
        return {"a": right_value(rng, int), "b": right_value(rng, list[int])}
    arguments = get_args(tp)
    if get_origin(tp) is list:
        return [right_value(rng, arguments[0]) for _ in range(rng.randint(1, 3))]
    return {key: right_value(rng, arguments[1]) for key in "xy"}


def test_what_a_model_chose_instead_is_not_lost() -> None:
    """A chooser replaces a value of a draft; that is a correction, and no loss."""

    class Sized(BaseModel):
        size: Literal["small", "large"]
        n: int

    parts = ['{"size": "tiny", "n": 5}', '{"size": "large", "n": 5}']

    def chooser(prompt: str) -> str:
        return "2"

    result = guided(parts, Sized, target_model=chooser)
    assert json.loads(result.response)["n"] == 5 and result.lost == ""


@pytest.mark.parametrize(
    ("told", "rest", "value"),
    [
        ('{"a": "t', 'iny", "b": 5}', "tiny"),
        ('{"a": ', '"tiny", "b": 5}', "tiny"),
        ("[1, 2", "5, 3]", "25"),
        ('{"a": 1, "', 'b": 2}', "2"),
        ("[1", "]", None),
    ],
)
def test_the_value_that_a_rest_begins_with(told: str, rest: str, value: str | None) -> None:
    found = value_behind(told, told + rest)
    assert (None if found is None else found.text) == value
