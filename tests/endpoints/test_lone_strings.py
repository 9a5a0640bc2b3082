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


@pytest.mark.parametrize("answer", ["I cannot tell.", "2024-02-30", "2024-02-28 or later", ""])
def test_what_is_no_string_of_the_grammar_is_refused(answer: str) -> None:
    with pytest.raises(stencilm.ModelRefused):
        generated(datetime.date, answer)


def test_a_cut_answer_is_no_whole_string() -> None:
    with pytest.raises(stencilm.StencilError):
        generated(stencilm.JsonSchema({"type": "string"}), ("Paris is", "length"))
