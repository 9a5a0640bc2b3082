"""Drafts that come in pieces, cut anywhere: a value is what was written, or no value."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import stencilm
from guiding.test_transcript import Chat
from stencilm import Budget

TEXTS = [
    "", "a", "é€😀", 'q"\\/', "\n\t", "ab abc", "123.5", "true", "\u2028", "a'b", "{[,:]}",
    "\\u0041",
]  # fmt: skip


class Record(BaseModel):
    name: str
    age: int
    score: float
    ok: bool
    kind: Literal["ab", "abc", "b"]
    note: str | None


def drawn_value(output_type: Any, drawn: random.Random) -> Any:
    scalars: dict[Any, list[Any]] = {
        str: TEXTS,
        int: [0, 7, -12, 12345],
        float: [123.5, 0.5, -2.25, 1e22, 12.0, 3.0e-9],
        bool: [True, False],
        int | None: [None, 12, -3],
        bool | None: [True, False, None],
        str | None: [None, "nul", "null"],
        Literal["ab", "abc", "b"]: ["ab", "abc", "b"],
    }
    if output_type in scalars:
        return drawn.choice(scalars[output_type])
    if output_type is Record:
        return {
            name: drawn_value(field.annotation, drawn)
            for name, field in Record.model_fields.items()
        }
    *_, inner = output_type.__args__
    many = [drawn_value(inner, drawn) for _ in range(drawn.randrange(4))]
    return many if output_type.__origin__ is list else dict(zip(TEXTS[1:], many, strict=False))


def cut(text: str, drawn: random.Random) -> list[str]:
    most = min(drawn.choice([1, 2, 3, 5, len(text)]), len(text) - 1)
    places = sorted(drawn.sample(range(1, len(text)), most)) if len(text) > 1 else []
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def by_prefix(pieces: list[str]) -> Callable[[str, str, int], str]:
    """Goes on after the text so far, to the next cut."""
    text = "".join(pieces)
    ends = [len("".join(pieces[: number + 1])) for number in range(len(pieces))]

    def draft(prefix: str, prompt: str, max_new_tokens: int) -> str:
        at = len(prefix) if text.startswith(prefix) else len(text)
        return text[at : next((end for end in ends if end > at), len(text))]

    return draft


def in_turn(pieces: list[str]) -> Callable[[str, str, int], str]:
    """Goes on where it stopped, whatever was forced in between."""
    left = iter(pieces)
    return lambda prefix, prompt, max_new_tokens: next(left, "")


def unasked(pieces: list[str]) -> Callable[[str], str]:
    """The same, of a function that is told no bound: what is whole is all that it says."""
    left = iter(pieces)
    return lambda prompt: next(left, "")


TYPES = [
    Record, list[Record], list[float], list[str], dict[str, int], list[bool | None],
    float, int, bool, int | None, str,
]  # fmt: skip


@pytest.mark.parametrize("way", [by_prefix, in_turn, unasked])
@pytest.mark.parametrize("output_type", TYPES)
def test_a_value_is_what_was_written(way: Callable[[list[str]], Any], output_type: Any) -> None:
    drawn = random.Random(5)
    same = 0
    for _ in range(120):
        value = drawn_value(output_type, drawn)
        text = json.dumps(value, ensure_ascii=drawn.random() < 0.5)
        text = value if output_type is str else text
        pieces = cut(text, drawn)
        if way is unasked and output_type in (float, int, int | None, str):
            pieces = [text]
        result = stencilm.guide(way(pieces), output_type, "p", budget=Budget(calls=60))
        if result.status != "valid" or any(part.is_made_up for part in result.filled):
            continue  # no value: the call of a model raises
        found = result.response if output_type is str else json.loads(result.response)
        assert (found, type(found)) == (value, type(value)), (pieces, result.response)
        same += 1
    assert same > (40 if way is by_prefix else 20)


@pytest.mark.parametrize(
    ("output_type", "pieces", "value"),
    [
        (float, ["123", ".5"], 123.5),
        (float, ["-", "2", ".", "2", "5"], -2.25),
        (list[float], ["[1", ".5, 3e", "-0", "9]"], [1.5, 3e-09]),
        (list[str], ['["a\\', 'u00', 'e9\\', '\\b"]'], ["aé\\b"]),
        (list[bool], ["[f", "alse, fal", "se, false]"], [False, False, False]),
        (list[bool], ["[tr", "ue, tru", "e, true]"], [True, True, True]),
        (list[bool | None], ["[fa", "lse,", " fa", "lse, null]"], [False, False, None]),
    ],
)  # fmt: skip
def test_what_is_cut_is_one_value(output_type: Any, pieces: list[str], value: Any) -> None:
    result = stencilm.guide(in_turn(pieces), output_type, "p", budget=Budget(calls=60))
    assert (json.loads(result.response), result.status, result.filled) == (value, "valid", ())


class Named(BaseModel):
    name: str
    n: int = 0


class Pair(BaseModel):
    b: bool
    a: int


@pytest.mark.parametrize(
    ("output_type", "pieces", "value"),
    [
        # What stands before a comma is not gone on with.
        (list[int], ['[1, "2", ', "2]"], [1, 2, 2]),
        (list[bool], ["[True,", "True,False,]"], [True, True, False]),
        (list[str], ["['a', 'b',", '"c"]'], ["a", "b", "c"]),
        (list[bool], ["[True, ", "]"], [True]),
        # Of two readings that keep as many letters, one has the empty text.
        (list[list[str]], ['[""], ]'], [[""]]),
        # What was forced is said again, with other whitespace.
        (Named, ['{"na', 'me" :"x", "n" : 3,}'], {"name": "x", "n": 3}),
        (Named, ['{"', 'name":"x",}'], {"name": "x"}),
        # A word that is cut is no talk.
        (list[Pair], ['[{"a": 1, "b": true}, {"b": tr', 'ue, "a": 2}]'],
         [{"b": True, "a": 1}, {"b": True, "a": 2}]),
        (list[Pair], ['[{"a": 1, "b": True}, {"b": T', 'rue, "a": 2}]'],
         [{"b": True, "a": 1}, {"b": True, "a": 2}]),
        (list[Pair], ['[{"a": 1, "b": true}, {"a": -', '2, "b": true}]'],
         [{"b": True, "a": 1}, {"a": -2, "b": True}]),
    ],
)  # fmt: skip
def test_what_came_before_a_cut_stands(output_type: Any, pieces: list[str], value: Any) -> None:
    result = stencilm.guide(unasked(pieces), output_type, "p", budget=Budget(calls=60))
    if not any(part.is_made_up for part in result.filled):
        assert json.loads(result.response) == value
    is_lost = output_type == list[Pair] and '"a": -' in pieces[0]  # its order is another
    assert is_lost or (result.status, result.filled) == ("valid", ())


class Two(BaseModel):
    a: str
    b: str


QUOTED: list[tuple[Any, str]] = [
    (Pair, '{"b": true, "a": 3}'),
    (Two, '{"a": "x", "b": "yz"}'),
    (list[str], '["a", "bc", ""]'),
    (dict[str, str], '{"k": "v", "l": "w"}'),
    (list[Two], '[{"a": "x", "b": "y"}, {"a": "z", "b": "w"}]'),
]


@pytest.mark.parametrize("way", [in_turn, unasked])
@pytest.mark.parametrize(("output_type", "text"), QUOTED, ids=str)
def test_a_quote_alone_has_its_place(
    way: Callable[[list[str]], Any], output_type: Any, text: str
) -> None:
    quotes = [place for place, character in enumerate(text) if character == '"']
    for first in quotes:
        for second in quotes:
            ends = sorted({first, first + 1, second, second + 1} - {0, len(text)})
            pieces = [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]
            result = stencilm.guide(way(pieces), output_type, "p", budget=Budget(calls=60))
            found = json.loads(result.response)
            assert (found, result.status, result.filled) == (json.loads(text), "valid", ()), pieces


@pytest.mark.parametrize(
    ("output_type", "pieces", "value"),
    [
        # A part of what was forced is said again, and the rest of it next.
        (Named, ["{", '"', "na", "me", '"', ': "x", "n": 3}'], {"name": "x", "n": 3}),
        (Named, ['{"name": "x", ', '"', "n", '"', ": 3}"], {"name": "x", "n": 3}),
        (list[str], ['["a\\ud83d', "\\", "u", "de", '00", ', '"b"]'], ["a😀", "b"]),
        # What was forced is not known, and another is said.
        (Two, ["{ ", '"', 'b": "y", "a": "x"}'], {"a": "x", "b": "y"}),
        (Named, ["{ ", '"', 'n": 3, "name": "x"}'], {"name": "x", "n": 3}),
        # A pair of escapes is cut.
        (Two, ['{"', 'b": "c", "a": "\\ud83d\\ude0', '0"}'], {"a": "😀", "b": "c"}),
    ],
)  # fmt: skip
def test_what_is_said_of_forced_text_counts(
    output_type: Any, pieces: list[str], value: Any
) -> None:
    result = stencilm.guide(in_turn(pieces), output_type, "p", budget=Budget(calls=60))
    assert (json.loads(result.response), result.status, result.filled) == (value, "valid", ())


@pytest.mark.parametrize("way", [in_turn, unasked])
@pytest.mark.parametrize(
    ("output_type", "text"),
    [
        (Two, '{ "b": "yz", "a": "x" }'),
        (Pair, '{ "a": 3, "b": true }'),
        (list[Two], '[{ "b": "y", "a": "x" }, { "b": "w", "a": "z" }]'),
    ],
    ids=str,
)
def test_a_quote_alone_makes_no_value_of_another(
    way: Callable[[list[str]], Any], output_type: Any, text: str
) -> None:
    quotes = [place for place, character in enumerate(text) if character == '"']
    same = 0
    for first in quotes:
        for second in quotes:
            ends = sorted({first, first + 1, second, second + 1} - {0, len(text)})
            pieces = [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]
            result = stencilm.guide(way(pieces), output_type, "p", budget=Budget(calls=60))
            if result.status != "valid" or any(part.is_made_up for part in result.filled):
                continue
            assert json.loads(result.response) == json.loads(text), pieces
            same += 1
    assert same > len(quotes) ** 2 / 2


def test_who_says_a_part_of_forced_text_has_not_refused() -> None:
    pieces = ['{"', "na", "me", '": "x", "n": 3}']
    result = stencilm.guide(Chat(pieces), Named, "p", budget=Budget(calls=60))
    assert (result.response, result.status) == ('{"name": "x", "n": 3}', "valid")


def test_the_same_part_of_forced_text_without_end_ends() -> None:
    result = stencilm.guide(lambda prompt: "na", Named, "p", budget=Budget(calls=60))
    assert result.status == "closed" and "name" in json.loads(result.response)
