"""Questions that list options, and the option that an answer names."""

from __future__ import annotations

from typing import Literal

import pytest

import stencilm
from stencilm.guiding.labels import Labels

NUMBERS = ("10", "2", "1")


@pytest.mark.parametrize(
    ("options", "kind", "names"),
    [
        (("LIKE", "IN"), "number", "1 2"),
        (NUMBERS, "letter", "A B C"),
        (("v2", "v1"), "letter", "A B"),
        (("A1", "B2", "I"), "letter", "C D"),
        (("\u0664", "x"), "letter", "A B"),
        (tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ1"), "text", ""),
        (tuple(map(str, range(26))), "text", ""),
    ],
)
def test_labels_are_in_no_option(options: tuple[str, ...], kind: str, names: str) -> None:
    labels = Labels(options)
    assert labels.kind == kind and labels.names[:2] == names.split()[:2]
    asked = labels.question("Which?")
    assert asked.startswith("Which?\n") and all(option in asked for option in options)
    for name, option in zip(labels.names, options, strict=False):
        assert f"\n{name}. {option}\n" in asked
        for answer in (name, f" {name}.", f"**{name}**", f"{name}. {option}", f"It is {name}."):
            assert labels.picked(answer) == option
    for option in options:
        assert labels.picked(option) == option
        assert labels.picked(f' "{option}".\n') == option


@pytest.mark.parametrize(
    ("answer", "option"),
    [("2", "2"), ("1", "1"), ("10", "10"), ("A", "10"), ("B) 2", "2"), ("(C)", "1")]
    + [(none, None) for none in ("3", "0", "B. 1", "A 2", "D", "A good one is 2", "1 or 2")]
    + [(none, None) for none in ("I", "A or B", "2 of 3", "7/10", "", "BC", "b2", "1" * 5_000)],
)
def test_an_option_that_is_a_number_is_itself(answer: str, option: str | None) -> None:
    assert Labels(NUMBERS).picked(answer) == option


@pytest.mark.parametrize(
    ("answer", "option"),
    [("2. IN", "IN"), ("2. LIKE", None), ("1: LIKE", "LIKE"), ("LIKE", "LIKE")],
)
def test_who_names_two_options_names_none(answer: str, option: str | None) -> None:
    assert Labels(("LIKE", "IN")).picked(answer) == option


def test_a_cut_answer_is_no_option_that_another_one_begins_with() -> None:
    labels = Labels(NUMBERS)
    assert labels.picked("1", is_cut=True) is None
    assert labels.picked("2", is_cut=True) == "2"
    assert labels.picked("A", is_cut=True) == "10"
    assert Labels(("in", "int")).picked("in", is_cut=True) is None


@pytest.mark.parametrize("wanted", [10, 2, 1])
def test_a_function_that_answers_with_the_value_has_chosen_it(wanted: int) -> None:
    def target(prompt: str) -> int:
        assert "1. " not in prompt
        return wanted

    options = [str(number) for number in (10, 2, 1)]
    assert stencilm.choose_candidate(options, "Points: ", target) == str(wanted)
    result = stencilm.guide(
        lambda prompt: "x", Literal["2", "3", "4"], "Points?", lambda prompt: "3"
    )
    assert (result.response, result.filled) == ("3", ())
