"""What is read on of a text that grows is what is read of the whole, and long ones keep all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import stencilm
from stencilm import Budget, Grammar
from stencilm.guiding.extent import said_by
from stencilm.guiding.growing import Growing
from stencilm.guiding.loose_json import documents

CASES = 300
WORDS = [
    "true",
    "None",
    "word",
    "two words",
    "3/4",
    "1 000",
    "-",
    "tr",
    "it's",
    "7",
    "2.5",
    "4.",
    "1e3",
]
TEXTS = [
    "'a'", "'it'", '\'a"b\'', "'{'", "“a”", "«b»", '"a"', '"b c"', r'"\u00e9"', r'"q\"q"',
    r'"\\"', '"```"', '"\n```"', '"// c"', '"it\'s: "', r'"\ud83d\ude00"',
]  # fmt: skip
NAMES = ['"a"', '"b"', "c", "two words", "'d'", '"it\'s"', "“e”", '"f" /* c */']


def value(random: Random, depth: int = 0) -> str:
    """JSON as models write it, with slips."""
    kind = random.randrange(5 if depth < 4 else 3)
    if kind < 3:
        return random.choice(TEXTS if kind else WORDS)
    comma = random.choice([", ", ",", " ", ",\n", ", // c\n"])
    count = random.randrange(6)
    if kind == 3:
        items = [value(random, depth + 1) for _ in range(count)]
        return "[" + comma.join(items) + random.choice(["]", "]", "", ",]"])
    members = [
        random.choice(NAMES) + random.choice([": ", ":", " : ", " "]) + value(random, depth + 1)
        for _ in range(count)
    ]
    return "{" + comma.join(members) + random.choice(["}", "}", "", ",}"])


def answer(random: Random) -> bytes:
    """Documents with talk and fences around them, and a few characters wrong."""
    text = random.choice(["", "", "Sure: ", "see [1] ", "```json\n", "Sure\n```\n", "[", '{"r": ['])
    text += random.choice(["", ", ", "\n"]).join(value(random) for _ in range(random.randint(1, 3)))
    text += random.choice(["", "\n```", '\n``` done {"a": 1}', "}]", "]"])
    for _ in range(random.choice([0, 0, 1, 3])):
        place = random.randrange(len(text) + 1)
        text = text[:place] + random.choice("{}[]\",:'/\\*#\n `e1") + text[place + 1 :]
    return text.encode()


def beginnings(random: Random, text: bytes) -> Iterator[bytes]:
    """A text as it grows, and others that begin as it does."""
    at = 0
    while at < len(text):
        end = min(len(text), at + random.randrange(1, 20))
        if random.random() < 0.3:
            yield text[:at] + text[at + 1 : end]
        yield text[:end]
        if random.random() < 0.2:
            yield text[: at // 2] + text[at:end]
        at = end


def test_what_is_read_on_is_what_is_read_at_once() -> None:
    for seed in range(CASES):
        random = Random(seed)
        growing = Growing(lambda: False)
        for text in beginnings(random, answer(random)):
            expected = next(documents(text.decode("utf-8", "ignore")), None)
            found = growing.read(text)
            assert found.node == expected, (seed, text)
            assert found.said == said_by(expected), (seed, text)


def test_what_is_settled_is_not_read_again() -> None:
    rows = [{"b": [str(number)], "a": number} for number in range(300)]
    text = json.dumps(rows).encode()
    looks = 0

    class Counted(Growing):
        def scalar(self, *given: Any) -> None:
            nonlocal looks
            looks += 1
            super().scalar(*given)

    growing = Counted(lambda: False)
    for end in range(0, len(text), 17):
        growing.read(text[:end])
    scalars = 4 * len(rows)
    assert scalars <= looks < 4 * scalars


ROW = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"}, "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["id", "name", "tags"],
    "additionalProperties": False,
}  # fmt: skip


def rows_of(random: Random, count: int) -> list[dict[str, Any]]:
    """Objects whose members come in any order."""
    found = []
    for number in range(count):
        tags = [f"t{random.randrange(1000)}" for _ in range(3)]
        members = [("id", number), ("name", f"name {random.random()}"), ("tags", tags)]
        random.shuffle(members)
        found.append(dict(members))
    return found


def said(kind: str, rows: list[dict[str, Any]]) -> tuple[dict[str, Any], Any]:
    """A schema, and rows in its form."""
    if kind == "list":
        return {"type": "array", "items": ROW}, rows
    if kind == "late":
        names: dict[str, Any] = {
            "count": {"type": "integer"},
            "rows": {"type": "array", "items": ROW},
        }
        whole: dict[str, Any] = {"rows": rows, "count": len(rows)}
    else:
        names = {f"k{number}": ROW for number in range(len(rows))}
        whole = dict(reversed(list(zip(names, rows, strict=True))))
    schema = {"type": "object", "properties": names, "required": list(names)}
    return schema | {"additionalProperties": False}, whole


@pytest.mark.parametrize("kind", ["list", "late", "named"])
def test_long_texts_in_another_order_keep_all_of_their_parts(kind: str) -> None:
    schema, whole = said(kind, rows_of(Random(3), 45))
    text = json.dumps(whole)
    parts = iter([text[at : at + 17] for at in range(0, len(text), 17)])
    result = stencilm.guide(
        lambda prompt, prefix, most: next(parts, ""),
        Grammar.from_json_schema(schema),
        "p",
        max_grammar_corrections=1_000,
        budget=Budget(tokens=10**6, seconds=600),
    )
    assert json.loads(result.response) == whole
    assert (result.status, result.filled, result.lost) == ("valid", (), "")


def test_what_is_held_is_read_when_no_more_comes() -> None:
    schema, whole = said("list", rows_of(Random(3), 45))
    text = json.dumps(whole)
    parts = [text[at : at + 17] for at in range(0, len(text), 17)]
    for calls in (60, 100, 140):
        coming = iter(parts)
        result = stencilm.guide(
            lambda prompt, prefix, most, coming=coming: next(coming, ""),
            Grammar.from_json_schema(schema),
            "p",
            max_grammar_corrections=1_000,
            budget=Budget(calls=calls, tokens=10**6, seconds=600),
        )
        written = sum(map(len, parts[:calls]))
        assert result.status == "closed"
        # The row that is cut may be in it in part.
        whole_rows = text[:written].count("}")
        assert len(json.loads(result.response)) >= whole_rows, (calls, result.response)


def test_a_stop_text_ends_what_is_held() -> None:
    parts = iter(['{"rows": [{"tags": ["a"], ', '"name": "x", "id": 1}STOP', ', {"id": 2'])
    schema, _ = said("late", [])
    result = stencilm.guide(
        lambda prompt, prefix, most: next(parts, ""),
        Grammar.from_json_schema(schema),
        "p",
        stop_at=["STOP"],
    )
    assert result.stop_text == "STOP" and next(parts) == ', {"id": 2'
