"""Answers that are a string of the grammar without its quotes, as a date in a line of its own."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

import pytest

import stencilm
from endpoints.scripted import served

openai = pytest.importorskip("openai")

DAY = datetime.date(2024, 2, 28)
NUMBER = "123e4567-e89b-12d3-a456-426614174000"


def generated(output_type: Any, answer: Any) -> stencilm.Generation[Any]:
    with served(lambda body, number: answer) as (address, _):
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="key", max_retries=0)
        model = stencilm.from_openai(client, "m", capabilities="compatible")
        return model.generate("When?", output_type)


@pytest.mark.parametrize(
    ("output_type", "answer", "value"),
    [
        (datetime.date, "2024-02-28", DAY),
        (datetime.date, "```\n2024-02-28\n```", DAY),
        (datetime.date, "`2024-02-28`\n", DAY),
        (datetime.date, '"2024-02-28"', DAY),
        (datetime.date | None, "2024-02-28", DAY),
        (datetime.date | None, "null", None),
        (datetime.date | int, "17", 17),
        (datetime.date | list[int], "2024-02-28", DAY),
        (datetime.date | list[int], "[2024]", [2024]),
        (datetime.time, "10:00:00", datetime.time(10)),
        (uuid.UUID, NUMBER, uuid.UUID(NUMBER)),
        (stencilm.JsonSchema({"type": "string", "pattern": "^[a-z]+@x$"}), "bob@x", "bob@x"),
    ],
    ids=str,
)
def test_a_string_without_its_quotes_is_read(output_type: Any, answer: str, value: Any) -> None:
    made = generated(output_type, answer)
    assert (made.value, made.error, made.left_out) == (value, None, ())


TALK = [
    (datetime.date, "The date is 2024-02-28.", '"2024-02-28"'),
    (datetime.date, "2024-02-28.", '"2024-02-28"'),
    (datetime.date, "Sure! Here it is:\n2024-02-28", '"2024-02-28"'),
    (datetime.date, "**2024-02-28**", '"2024-02-28"'),
    (datetime.date, "The date:\n```\n2024-02-28\n```\nHope this helps", '"2024-02-28"'),
    (datetime.date | None, "The date is 2024-02-28.", '"2024-02-28"'),
    (stencilm.JsonSchema({"enum": ["red", "in progress"]}), "The colour is red.", '"red"'),
    (stencilm.JsonSchema({"enum": ["red", "in progress"]}), "It is in progress.", '"in progress"'),
    (stencilm.JsonSchema({"enum": ["spam", "not spam"]}), "It is not spam.", '"not spam"'),
    (stencilm.JsonSchema({"type": "string", "pattern": "^[a-z]+@x$"}), "It is bob@x.", '"bob@x"'),
]


@pytest.mark.parametrize(("output_type", "answer", "text"), TALK, ids=str)
def test_a_string_is_found_in_talk(output_type: Any, answer: str, text: str) -> None:
    made = generated(output_type, answer)
    assert (made.text, made.error, made.left_out) == (text, None, ())


@pytest.mark.parametrize(("output_type", "answer", "text"), TALK, ids=str)
def test_a_text_function_is_read_in_the_same_way(output_type: Any, answer: str, text: str) -> None:
    budget = stencilm.Budget(calls=4)
    made = stencilm.guide(lambda prompt: answer, output_type, "When?", budget=budget)
    assert (made.response, made.status, made.filled) == (text, "valid", ())


UNCLEAR = [
    (datetime.date, "It is 2024-02-28, not 2024-03-01."),
    (datetime.date, "2024-02-28T10:00:00"),
    (datetime.time, "It is 10:30:00, not 11:30:00"),
    (stencilm.JsonSchema({"enum": ["red", "blue"]}), "Either red or blue."),
    (stencilm.Regex("[0-9]{2}:[0-9]{2}"), "It is 10:30, not 11:30"),
    (stencilm.Regex("[0-9]{4}-[0-9]{2}-[0-9]{2}"), "2024-02-28T10:00:00"),
]


@pytest.mark.parametrize(("output_type", "answer"), UNCLEAR, ids=str)
def test_a_text_that_is_not_clear_is_refused(output_type: Any, answer: str) -> None:
    with pytest.raises(stencilm.ModelRefused):
        generated(output_type, answer)


@pytest.mark.parametrize(("output_type", "answer"), UNCLEAR, ids=str)
def test_a_text_function_says_nothing_that_is_not_clear(output_type: Any, answer: str) -> None:
    budget = stencilm.Budget(calls=4)
    made = stencilm.guide(lambda prompt: answer, output_type, "When?", budget=budget)
    assert made.status == "closed"  # with nothing of the answer, which would be a mixture


def test_talk_is_no_part_of_a_string() -> None:
    phrase = stencilm.JsonSchema({"type": "string", "pattern": "^[a-z ]+$"})
    with pytest.raises(stencilm.ModelRefused):
        generated(phrase, "The answer is bob.")


@pytest.mark.parametrize("answer", ["I cannot tell.", "2024-02-30", "2024-02-28 or later", ""])
def test_what_is_no_string_of_the_grammar_is_refused(answer: str) -> None:
    with pytest.raises(stencilm.ModelRefused):
        generated(datetime.date, answer)


def test_a_cut_answer_is_no_whole_string() -> None:
    with pytest.raises(stencilm.StencilError):
        generated(stencilm.JsonSchema({"type": "string"}), ("Paris is", "length"))
