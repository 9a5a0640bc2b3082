"""The stretch of an editor that an error's place names."""

from __future__ import annotations

import json

import pytest

from stencilm.errors import StencilError
from stencilm.grammars.grammar import Grammar
from stencilm.playground.places import Stretch, find_place, position_of

SCHEMA = '{"properties": {"a": {"enum": [1, "x]", {"b": true}]}, "é~/ü": {"type": "strin"}}}'


@pytest.mark.parametrize(
    ("text", "place", "marked"),
    [
        ("ab\ncd ef", "line 2, column 4", "ef"),
        ("ab\ncd", "line 2, column 3", "d"),  # after the end
        ("ab\n", "line 2, column 1", "\n"),
        ("ab", "line 9, column 9", "b"),
        ("a(b", "offset 1", "("),
        ("é(b", "offset 2", "("),  # offsets count bytes
        ("a(", "offset 2", "("),
        (SCHEMA, "#/properties/a", '{"enum": [1, "x]", {"b": true}]}'),
        (SCHEMA, "#/properties/a/enum/0", "1"),
        (SCHEMA, "#/properties/a/enum/1", '"x]"'),
        (SCHEMA, "#/properties/a/enum/2/b", "true"),
        (SCHEMA, "#/properties/é~0~1ü/type", '"strin"'),
        (SCHEMA, "#/properties/%C3%A9~0~1%C3%BC/type", '"strin"'),
        (SCHEMA, "#/properties/a/enum/7", '[1, "x]", {"b": true}]'),  # the nearest around it
        (SCHEMA, "#", SCHEMA),
        ('{"a": {"x": 1}, "b": {"x": 2}}', "#/b/x", "2"),
        ('{"a": [1, {"b": 2}], "b": 3}', "#/b", "3"),
    ],
)
def test_a_place_marks(text: str, place: str, marked: str) -> None:
    stretch = find_place(text, place)
    assert stretch is not None
    units = text.encode("utf-16-le")
    assert units[stretch.start * 2 : stretch.end * 2].decode("utf-16-le") == marked


@pytest.mark.parametrize(
    ("text", "place"),
    [("", "line 1, column 1"), ("abc", None), ("abc", "somewhere"), ("not json: ", "#/a")],
)
def test_no_place_marks_nothing_or_something_that_is_there(text: str, place: str | None) -> None:
    stretch = find_place(text, place)
    assert stretch is None or 0 <= stretch.start < stretch.end <= len(text)


def test_units_are_those_of_a_browser() -> None:
    assert find_place("😀(b", "offset 4") == Stretch(2, 3)
    assert position_of("😀\n😀x", Stretch(5, 6)) == (2, 2)


def test_depth_is_no_matter() -> None:
    depth = 100_000
    deep = "[" * depth + "1" + "]" * depth
    assert find_place(deep, "#" + "/0" * 3) == Stretch(3, 2 * depth + 1 - 3)


@pytest.mark.parametrize(
    ("schema", "marked"),
    [
        ({"properties": {"b": {"type": "strin"}}}, '{"type": "strin"}'),
        ({"items": {"minimum": 5, "maximum": 1, "type": "integer"}, "minItems": 1}, None),
    ],
)
def test_the_places_of_real_errors_are_found(schema: dict[str, object], marked: str | None) -> None:
    text = json.dumps(schema)
    with pytest.raises(StencilError) as caught:
        Grammar.from_json_schema({**schema, "type": "array"} if marked is None else text)
    stretch = find_place(text, caught.value.place)
    assert stretch is not None
    if marked is not None:
        assert text[stretch.start : stretch.end] == marked
