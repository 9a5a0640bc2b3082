"""Types that no text is read as: left out of unions, and refused alone with a way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, Json

from case_names import case_name
from stencilm import Grammar
from stencilm.errors import UnsupportedFeature

from .random_texts import matcher


class Custom:
    pass


class Holder(BaseModel, arbitrary_types_allowed=True):
    value: Custom


class Hooks(BaseModel, arbitrary_types_allowed=True):
    done: Callable[[int], int] | None = None
    kind: type | None = None
    value: Custom | None = None


@pytest.mark.parametrize(
    ("tp", "texts", "others"),
    [
        (Callable[[int], int] | None, ["null"], ["1", "{}"]),
        (type | None, ["null"], ["1"]),
        (int | None | Callable[[int], int], ["null", "1"], ["{}"]),
        (int | Callable[[int], int], ["1"], ["null"]),
        (list[type | None], ["[]", "[null]"], ["[1]"]),
        (Hooks, ["{}", '{"done": null, "kind": null, "value": null}'], ['{"value": 1}']),
    ],
    ids=case_name,
)
def test_they_are_left_out_of_unions(tp: Any, texts: list[str], others: list[str]) -> None:
    start = matcher(tp)
    for text in texts + others:
        fits = start.longest_valid_prefix(text).status == "complete"
        assert fits == (text in texts), text


@pytest.mark.parametrize(
    ("tp", "words"),
    [
        (Custom, "use a model or a dataclass with its fields"),
        (list[Custom], "use a model or a dataclass with its fields"),
        (Holder, "no JSON as Custom: use a model or a dataclass with its fields"),
        (
            Callable[[int], int],
            "no JSON as a function: use a model or a dataclass of its arguments",
        ),
        (Callable[[int], int] | type, "no JSON as any of the union: add a type of values"),
        (Json | None, "Json is JSON within a string"),
    ],
    ids=case_name,
)
def test_alone_they_are_refused(tp: Any, words: str) -> None:
    with pytest.raises(UnsupportedFeature) as refused:
        Grammar.from_type(tp)
    assert words in str(refused.value)
    # Following it would only lead to the next refusal.
    assert "arbitrary_types_allowed" not in str(refused.value)
