"""What the grammar takes in no way is left out of a text, and told."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

import stencilm
from guiding.drawn import drawn_value
from stencilm import Budget, JsonSchema
from stencilm.guiding.loose_json import read
from stencilm.guiding.transcript import is_all_again
from stencilm.guiding.values import unwritten

SCALARS: dict[Any, list[Any]] = {
    str: ["ab", "x]", "{", "é z", "12a"],
    int: [7, 1234, -3],
    str | None: ["n1", None],
}


class Person(BaseModel):
    name: str
    age: int
    nick: str | None = None


class Group(BaseModel):
    title: str
    people: list[Person]
    tags: list[str] = []
    notes: dict[str, list[int]] = {}


UNIQUE = JsonSchema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True})
AT_MOST_TWO = JsonSchema({"type": "array", "items": {"type": "integer"}, "maxItems": 2})
UNIQUE_PAIR = JsonSchema(
    {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "maxItems": 2}
)


def guided(parts: list[str], output_type: Any) -> stencilm.Guided:
    answers = iter(parts)
    budget = Budget(calls=len(parts) + 30)
    return stencilm.guide(lambda prompt: next(answers, ""), output_type, "?", budget=budget)


@pytest.mark.parametrize(
    ("output_type", "draft", "response", "left_out"),
    [
        (list[int], '[1, "many", 2]', "[1, 2]", [("/1", '"many"', True)]),
        (list[float], "[NaN, 1]", "[1]", [("/0", "NaN", True)]),
        (list[float], "[null, 1]", "[1]", [("/0", "null", True)]),
        (list[int], '[1, {"a": [2, null]}]', "[1]", [("/1", '{"a": [2, null]}', True)]),
        (list[list[int]], '[[1, 2], ["x", 3]]', "[[1, 2], [3]]", [("/1/0", '"x"', True)]),
        (AT_MOST_TWO, "[1, 1, 1]", "[1, 1]", [("/2", "1", True)]),
        # Nothing says more than a set that has an element once.
        (UNIQUE, "[1, 2, 1]", "[1, 2]", [("/2", "1", False)]),
        (UNIQUE_PAIR, "[1, 2, 1]", "[1, 2]", [("/2", "1", True)]),
        (
            Person,
            '{"name": "A", "age": 3, "nick": ["b"]}',
            '{"name": "A", "age": 3}',
            [("/nick", '["b"]', True)],
        ),
        # The grammar has no place for a member of that name.
        (
            Person,
            '{"a/b~": {}, "age": 3, "name": "A"}',
            '{"name": "A", "age": 3}',
            [("/a~1b~0", "{}", False)],
        ),
        # What is null says no more than nothing does.
        (Person, '{"name": "A", "age": 3, "more": null}', '{"name": "A", "age": 3}', []),
        (
            Person,
            '{"name": "A", "age": 3, "age": 4}',
            '{"name": "A", "age": 3}',
            [("/age", "4", True)],
        ),
        (
            dict[str, list[int]],
            'Sure:\n```json\n{"a": [1, "x"], "b": ["y"]}\n```\n',
            '{"a": [1], "b": []}',
            [("/a/1", '"x"', True), ("/b/0", '"y"', True)],
        ),
    ],
)
def test_what_is_left_out_is_told(
    output_type: Any, draft: str, response: str, left_out: list[tuple[str, str, bool]]
) -> None:
    result = guided([draft], output_type)
    assert (result.response, result.status, result.filled) == (response, "valid", ())
    assert [tuple(one) for one in result.left_out] == left_out
    assert result.to_json()["left_out"] == [one._asdict() for one in result.left_out]
    # A value is what the model wrote, or none.
    reason = unwritten(result)
    if any(changes_value for _, _, changes_value in left_out):
        first = result.left_out[0]
        assert reason is not None
        assert reason.startswith(f"{first.text} at {first.path} does not fit, and was left out")
    else:
        assert reason is None


@pytest.mark.parametrize("size", [4, 9, 17])
def test_places_are_those_of_the_whole_text(size: int) -> None:
    draft = '{"title": "T", "people": [], "tags": ["a", 1, "b"], "notes": {"x\\"y": [1, "z", 2]}}'
    parts = [draft[at : at + size] for at in range(0, len(draft), size)]
    result = guided(parts, Group)
    notes = {"title": "T", "people": [], "tags": ["a", "1", "b"], "notes": {'x"y': [1, 2]}}
    assert json.loads(result.response) == notes
    first = next(one for one in result.left_out if one.changes_value)
    assert (first.path, first.text) == ('/notes/x"y/1', '"z"')


def test_values_before_the_text_are_no_talk() -> None:
    """What comes after a forced bracket are the elements, and of talk they have no words."""
    for rest, response, path in [
        ('"many", 1, 2]', "[1, 2]", "/0"),
        ("null, 3]", "[3]", "/0"),
        ("7, [2]]", "[7]", "/1"),
        ("Sure: [2]", "[2]", None),
        ("Sure, here: 1, 2]", "[1, 2]", None),
    ]:
        result = guided([rest], list[int])
        assert (result.response, result.status) == (response, "valid")
        assert [one.path for one in result.left_out] == ([] if path is None else [path])


def test_a_list_that_may_go_on_is_not_taken_out_of_a_list() -> None:
    result = guided(["[[2],", " 7]"], list[int])
    assert (result.response, [one.text for one in result.left_out]) == ("[7]", ["[2]"])
    assert guided(["[[2, 7]]"], list[int]).response == "[2, 7]"


def test_another_list_begins_no_list_of_lists_again() -> None:
    assert guided(["[[], ", "[2]", "]"], list[list[int]]).response == "[[], [2]]"
    for before, draft, expected in [
        ("[[1], [2", "[[1], [2], [3]]", True),
        ("[[1], ", "[[2]]", False),
        ("[[1", "[[1, 2]]", True),
    ]:
        assert is_all_again(read(before)[0], draft.encode()) == expected, (before, draft)


def spoiled(output_type: Any, value: Any, drawn: random.Random) -> Any:
    """The value with one scalar in it that the type takes in no way, if it has any."""
    if output_type is int:
        return drawn.choice(["many", {"z": 1}, "1.5x"])
    if output_type in (str, str | None):
        return {"q": 1}
    if hasattr(output_type, "model_fields"):
        name = drawn.choice(list(value))
        inner = output_type.model_fields[name].annotation
        return value | {name: spoiled(inner, value[name], drawn)}
    if not value:
        return value
    *_, inner = output_type.__args__
    if output_type.__origin__ is dict:
        name = drawn.choice(list(value))
        return value | {name: spoiled(inner, value[name], drawn)}
    at = drawn.randrange(len(value))
    return [*value[:at], spoiled(inner, value[at], drawn), *value[at + 1 :]]


def without_nothing(value: Any) -> Any:
    """The value without members that are null."""
    if isinstance(value, dict):
        return {name: without_nothing(one) for name, one in value.items() if one is not None}
    return [without_nothing(one) for one in value] if isinstance(value, list) else value


def in_parts(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize(
    "spelled",
    [
        lambda text: [text],
        lambda text: [f"Sure! Here it is:\n```json\n{text}\n```\nBye"],
        lambda text: in_parts(text, 17),
        lambda text: in_parts(text, 5),
    ],
    ids=["whole", "in prose", "in parts", "in small parts"],
)
def test_a_text_says_what_the_draft_says_or_tells_what_it_lacks(
    spelled: Callable[[str], list[str]],
) -> None:
    counts = {True: 0, False: 0}
    types: list[Any] = [
        list[int], list[Person], Group, dict[str, Person], list[list[int]], dict[str, list[int]],
    ]  # fmt: skip
    for seed in range(150):
        drawn = random.Random(seed)
        output_type = drawn.choice(types)
        value = drawn_value(output_type, drawn, SCALARS)
        if drawn.random() < 0.7:
            value = spoiled(output_type, value, drawn)
        result = guided(spelled(json.dumps(value, ensure_ascii=False)), output_type)
        is_same = without_nothing(json.loads(result.response)) == without_nothing(value)
        assert (unwritten(result) is None) == is_same, (output_type, value, result)
        counts[is_same] += 1
    assert min(counts.values()) > 30


def test_elements_after_a_forced_bracket_are_told_alike() -> None:
    """Who is told where the text ends goes on there."""
    for seed in range(200):
        drawn = random.Random(seed)
        output_type: Any = drawn.choice([list[int], list[Person], list[list[int]]])
        value = drawn_value(output_type, drawn, SCALARS)
        value = spoiled(output_type, value, drawn)
        text = json.dumps(value, ensure_ascii=False)
        result = stencilm.guide(
            lambda prefix, prompt, max_new_tokens, text=text: (
                text[len(prefix) :] if text.startswith(prefix) else ""
            ),
            output_type,
            "?",
            budget=Budget(calls=30),
        )
        is_same = without_nothing(json.loads(result.response)) == without_nothing(value)
        assert (unwritten(result) is None) == is_same, (value, result)


@pytest.mark.parametrize(
    "pieces",
    [
        ["[", "1234, [2], -3]"],
        ["[", "1234, [2]", ", -3]"],
        ["[1234", ", [2]", ", -3]"],
        ["[1234", ", [2],", " -3]"],
        ["[12", "34, [2]", ", -3]"],
    ],
)
def test_a_list_among_elements_is_left_out_however_the_draft_is_cut(pieces: list[str]) -> None:
    drafts = iter(pieces)
    result = stencilm.guide(lambda prompt: next(drafts, ""), list[int], "Write numbers.")
    assert result.response.replace(" ", "") == "[1234,-3]"
    assert [(one.path, one.text, one.changes_value) for one in result.left_out] == [
        ("/1", "[2]", True)
    ]


@pytest.mark.parametrize("pieces", [["[", "[2], 7]"], ["[2], 7]"]])
def test_a_list_that_others_follow_is_an_element(pieces: list[str]) -> None:
    drafts = iter(pieces)
    result = stencilm.guide(lambda prompt: next(drafts, ""), list[int], "Write numbers.")
    assert result.response == "[7]"
    assert [(one.path, one.text) for one in result.left_out] == [("/0", "[2]")]
    # Nothing follows, so it is the list begun anew.
    drafts = iter(["[", "[2, 7]", " is the list"])
    assert stencilm.guide(lambda prompt: next(drafts, ""), list[int], "q").response == "[2, 7]"
