"""Drafts that come in parts, or begin again a little or all: no value is lost without a mark."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import stencilm
from stencilm import Budget, Grammar, JsonSchema
from stencilm.generation.trace import TakenBack
from stencilm.guiding.drafts import Answer, Ask
from stencilm.guiding.extent import closing, goes_on_alike, said_by
from stencilm.guiding.loose_json import documents, read
from stencilm.guiding.overlaps import Overlap, overlaps
from stencilm.guiding.transcript import Transcript, begins_document, is_all_again
from stencilm.guiding.values import unwritten
from stencilm.views.segments import segments, standing


class Item(BaseModel):
    label: str = ""
    size: int
    flags: list[bool] = []


class Record(BaseModel):
    id: int = 0
    name: str | None = None
    kind: Literal["red", "redder", "dark red"]
    values: list[float] = []
    items: list[Item] = []
    note: str = ""


class Chat:
    """An API that answers as a whole, and is asked in words to go on."""

    reads_complaints = True
    drafts_in_parts = False
    may_refuse = True

    def __init__(self, answers: list[str]) -> None:
        self._left = iter(answers)

    def can(self, kind: str, grammar: Grammar) -> bool:
        return kind == "draft"

    def answer(self, ask: Ask) -> Answer:
        return Answer(text=next(self._left, ""))

    async def answer_async(self, ask: Ask) -> Answer:
        return self.answer(ask)


def in_turn(answers: list[str]) -> Callable[[str, str, int], str]:
    left = iter(answers)
    return lambda prefix, prompt, max_new_tokens: next(left, "")


def guided(way: Callable[[list[str]], Any], answers: list[str], kind: Any) -> stencilm.Guided:
    return stencilm.guide(way(answers), kind, "p", budget=Budget(calls=60))


def is_marked(result: stencilm.Guided) -> bool:
    is_made_up = any(part.is_made_up for part in result.filled)
    return result.status != "valid" or result.was_cut or is_made_up or bool(result.lost)


@pytest.mark.parametrize("way", [in_turn, Chat])
@pytest.mark.parametrize(
    ("kind", "answers", "value"),
    [
        # What comes too late for its place, in a later draft.
        (Record, ['{"kind": "red", "values": [1', ', 2], "name": "x", "id": 5}'],
         {"id": 5, "name": "x", "kind": "red", "values": [1, 2]}),
        # What comes too early, before what must stand before it.
        (Record, ['{"note": "n", "values": [1, 2', '], "kind": "redder"}'],
         {"kind": "redder", "values": [1, 2], "note": "n"}),
        # A name that was cut, or waits for its value.
        (Record, ["{'no", "te': 'n', 'kind': 'red'}"], {"kind": "red", "note": "n"}),
        (Record, ["{'kind': 'red', 'values':", " [], 'note': 'n'}"],
         {"kind": "red", "values": [], "note": "n"}),
        # A list that was just opened, or has just got an empty one.
        (list[list[int]], ["[[1,], [],", " [2]]"], [[1], [], [2]]),
        (list[Item], ['[{"size": 1,}, {', '"size": 2}]'], [{"size": 1}, {"size": 2}]),
        # Within an escape, with a draft that is written anew.
        (list[str], ["['a', \"\\u00e9\\", 'u20ac"]'], ["a", "é€"]),
        # A number that was cut is not gone on with by what comes after another member.
        (Record, ['{"items": [{"flags": [true], "size": 1', '2}], "kind": "red"}'],
         {"kind": "red", "items": [{"size": 12, "flags": [True]}]}),
        # In small parts, each out of order.
        (list[Item], ['[{"flags": [tr', 'ue], "size"', ': 3, "lab', 'el": "a"}, {"fl',
                      'ags": [], "size": 4}]'],
         [{"label": "a", "size": 3, "flags": [True]}, {"size": 4, "flags": []}]),
        # The whole again, after talk and in another order.
        (Record, ['{"values": [1, 2', 'Again:\n{"values": [1, 2, 3], "id": 1, "kind": "red"}'],
         {"id": 1, "kind": "red", "values": [1, 2, 3]}),
        (list[str], ['See: ["red", "blue", "red', 'See: ["red", "blue", "red"]\nWell?'],
         ["red", "blue", "red"]),
        (list[str], ['["a", ', '["a", "b', '["a", "b", "c"]'], ["a", "b", "c"]),
        # The list, the member or the words again.
        (Record, ['{"kind": "red", "values": [1, 2', '[1, 2, 3], "note": "n"}'],
         {"kind": "red", "values": [1, 2, 3], "note": "n"}),
        (Record, ['{"kind": "red", "name": nu', '"name": null, "note": "n"}'],
         {"kind": "red", "name": None, "note": "n"}),
        (Record, ['{"kind": "red", "note"', '"note": "n"}'], {"kind": "red", "note": "n"}),
        (list[str], ['["a", "words that go on fo', 'words that go on for long", "b"]'],
         ["a", "words that go on for long", "b"]),
        (list[float], ["[704, 100", "704, 100, 5]"], [704, 100, 5]),
        (list[bool], ["[false, false, true, fal", "rue, false, true]"],
         [False, False, True, False, True]),
        (list[str], ['["red", "re', '"redder", "blue"]'], ["red", "redder", "blue"]),
        # What only looks like that.
        (list[bool], ["[True, tru", "e, true]"], [True, True, True]),
        (list[bool], ["[false, false, tru", "e, true]"], [False, False, True, True]),
        (list[str], ['["ab", "a', 'b", "ab"]'], ["ab", "ab", "ab"]),
        (list[str], ['["dark red", "re', 'd", "redder"]'], ["dark red", "red", "redder"]),
        (list[Item], ['[{"flags": [], "size": 1}, {"flags"', ': [], "size": 1}, {"size": 2}]'],
         [{"size": 1, "flags": []}, {"size": 1, "flags": []}, {"size": 2}]),
        (list[str], ['["the cat the ca', 't the cat"]'], ["the cat the cat the cat"]),
        (list[str], [r'["\u00e9\u20ac\u00e9\u', r'20ac\u00e9\u20ac"]'], ["é€é€é€"]),
        # A list that was just begun is no wrapping, and may be begun again.
        (list[list[int]], ["See:\n[[],", " [1, 2]]"], [[], [1, 2]]),
        (list[list[str]], ["[['a'], [", "['b', 'b']]"], [["a"], ["b", "b"]]),
    ],
)  # fmt: skip
def test_all_that_drafts_say_together_is_there(
    way: Callable[[list[str]], Any], kind: Any, answers: list[str], value: Any
) -> None:
    result = guided(way, answers, kind)
    assert (json.loads(result.response), result.lost) == (value, "")
    assert standing(segments(result.trace)) == result.response
    assert not is_marked(result)


def test_what_may_be_repeated_is_marked_where_a_model_was_asked_in_words() -> None:
    result = guided(Chat, ["[1, 2, ", "2, 3]"], list[int])
    assert json.loads(result.response) == [1, 2, 2, 3]
    assert [(part.start, part.text, part.means) for part in result.filled] == [
        (7, "2, ", "repeated")
    ]
    assert is_marked(result)
    assert unwritten(result) == "at character 7 it says '2, ' again, or once more"
    # A function goes on after the text, by its contract.
    assert not is_marked(guided(in_turn, ["[1, 2, ", "2, 3]"], list[int]))
    answers = ['[{"size": 12}, {"', 'size": 12}, {"size": 12}]']
    for way in (in_turn, Chat):
        result = guided(way, answers, list[Item])
        assert json.loads(result.response) == [{"size": 12}] * 3
        assert is_marked(result) is (way is Chat)


@pytest.mark.parametrize("way", [in_turn, Chat])
def test_of_equal_elements_none_is_lost_where_some_are_said_again(
    way: Callable[[list[str]], Any],
) -> None:
    """The draft may begin with the first element or with the second; the text has one too many."""
    answers = ['[{"size": 12}, {"siz', '{"size": 12}, {"size": 12}]']
    result = guided(way, answers, list[Item])
    assert json.loads(result.response) == [{"size": 12}] * 3
    assert [part.means for part in result.filled] == ["repeated"]


TEXTS = [
    "alpha",
    "a, b",
    "it's",
    "",
    "12",
    "true",
    'say "hi"',
    "back\\s",
    "a\nb",
    "é€",
    "x]",
    "// no",
]


def drawn_record(drawn: random.Random) -> dict[str, Any]:
    def item() -> dict[str, Any]:
        value = {"label": drawn.choice(TEXTS), "size": drawn.choice([0, 7, -12, 12345])}
        return value | {"flags": [drawn.random() < 0.5 for _ in range(drawn.randrange(4))]}

    optional: dict[str, Any] = {
        "id": drawn.randrange(10_000),
        "name": drawn.choice([None, *TEXTS]),
        "values": [drawn.choice([1.5, -2.25, 12.0, 3e-9]) for _ in range(drawn.randrange(5))],
        "items": [item() for _ in range(drawn.randrange(4))],
        "note": drawn.choice(TEXTS),
    }
    kept = {name: one for name, one in optional.items() if drawn.random() < 0.7}
    return {"kind": drawn.choice(["red", "redder", "dark red"]), **kept}


def sloppy(value: Any, drawn: random.Random) -> str:
    """A text of a value, with its members in any order, and a comma or a quote too many."""
    comma = "," if drawn.random() < 0.2 else ""
    if isinstance(value, dict):
        items = list(value.items())
        drawn.shuffle(items)
        members = [f"{json.dumps(name)}: {sloppy(one, drawn)}" for name, one in items]
        return "{" + ", ".join(members) + (comma if members else "") + "}"
    if isinstance(value, list):
        return "[" + ", ".join(sloppy(one, drawn) for one in value) + (comma if value else "") + "]"
    text = json.dumps(value, ensure_ascii=drawn.random() < 0.5)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f'"{text}"' if is_number and drawn.random() < 0.2 else text


def in_parts(text: str, drawn: random.Random) -> list[str]:
    parts: list[str] = []
    while text:
        length = drawn.randint(20, 80)
        parts.append(text[:length])
        text = text[length:]
    return parts


def cut_once(text: str, drawn: random.Random) -> list[str]:
    at = drawn.randrange(1, len(text))
    return [text[:at], text[at:]]


def begun_again(text: str, drawn: random.Random) -> list[str]:
    at = drawn.randrange(1, len(text))
    return [text[:at], drawn.choice([text, f"Once more:\n```json\n{text}\n```\nIs that all?"])]


@pytest.mark.parametrize("way", [in_turn, Chat])
@pytest.mark.parametrize("cut", [in_parts, cut_once, begun_again])
def test_random_drafts_lose_nothing_without_a_mark(
    cut: Callable[[str, random.Random], list[str]], way: Callable[[list[str]], Any]
) -> None:
    drawn = random.Random(46)
    same = 0
    for _ in range(100):
        value = drawn_record(drawn)
        answers = cut(sloppy(value, drawn), drawn)
        result = guided(way, answers, Record)
        if is_marked(result):
            continue
        assert json.loads(result.response) == value, answers
        assert standing(segments(result.trace)) == result.response
        same += 1
    assert same > 85


def test_what_was_taken_back_is_told() -> None:
    answers = ['{"kind": "red", "values": [1', ', 2], "id": 5}']
    result = guided(in_turn, answers, Record)
    (taken,) = [event for event in result.trace if isinstance(event, TakenBack)]
    assert taken.text.startswith(b"kind") and taken.position == 2
    assert result.response.startswith('{"id": 5')
    assert not result.filled


def test_what_was_said_and_has_no_more_place_is_told() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}, "c": {}},
        "required": ["b"],
        "additionalProperties": False,
    }
    result = guided(in_turn, ['{"b": "x", "c": [1, {"d":', " ~~", "2}"], JsonSchema(schema))
    assert is_marked(result)
    # What the grammar has no place for at all is left out.
    plain = guided(in_turn, ['{"z": 1, "b": "x", "c": 2}'], JsonSchema(schema))
    told = replace(plain, lost="x")
    assert unwritten(plain) is None
    assert unwritten(told) == "values of it came where the grammar has no more place for them"
    assert (json.loads(plain.response), plain.lost) == ({"b": "x", "c": 2}, "")
    assert not is_marked(plain)


def test_text_of_another_grammar_is_left_alone() -> None:
    grammar = stencilm.Regex(r"(\[[a-z ]+\]\n)*end")
    answers = ["[one two]\n", "[one two]\n", "[one two]\nend"]
    assert guided(in_turn, answers, grammar).response == "[one two]\n" * 3 + "end"


def test_json_of_another_grammar_is_not_read_anew_for_each_part() -> None:
    """Each part is out of order; 200 of them took minutes when all was read for each."""
    grammar = Grammar.from_lark(
        r"""start: "[" (row (", " row)*)? "]"
row: "{\"name\": " /"[a-z0-9]*"/ ", \"age\": " /[0-9]+/ "}"
"""
    )
    said = [[{"age": 8 * part + one, "name": f"n{one}"} for one in range(8)] for part in range(100)]

    def draft(prefix: str, prompt: str, max_new_tokens: int) -> str:
        number = prefix.count('"name"') // 8
        if number == len(said):
            return "]"
        return (", " if prefix.endswith("}") else "[") + json.dumps(said[number])[1:-1]

    result = stencilm.guide(
        draft, grammar, "p", max_grammar_corrections=1_000, budget=Budget(tokens=10**6, seconds=60)
    )
    assert json.loads(result.response) == [row for rows in said for row in rows]
    assert (result.status, result.filled) == ("valid", ())


@pytest.mark.parametrize(
    ("one", "other", "is_alike"),
    [
        ('{"a": [1, "x', '{"a": [1, "x', True),
        ('{"b": 2, "a": [1', '{"a": [1', True),
        ('{"a": [1], "b": {', '{"a": [1]', False),
        ('{"a": 1, "b"', '{"a": 1', False),
        ('["a", "b\\', '["a", "b', False),
        ('["a", 3e1', '["a", 30', True),
        ('["a", 12345678', '["a", 12345679', False),
        ('["a", 1e400', '["a", 2e400', False),
        ('["a", 1e99999999999999999999', '["a", 1e99999999999999999999', True),
        ("[[1], [", "[[1]", False),
    ],
)
def test_where_two_texts_go_on(one: str, other: str, is_alike: bool) -> None:
    assert goes_on_alike(read(one)[0], read(other)[0]) is is_alike


def test_how_much_a_text_says_and_what_ends_it() -> None:
    assert said_by(None) == 0
    assert said_by(read("[[], [], {}]")[0]) > said_by(read("[[], {}]")[0])
    assert said_by(read('{"a": "30"}')[0]) == said_by(read('{"a": 30}')[0])
    for text in ('{"a": [1, {"b": "x', "[[", '{"a', "[1,"):
        node, _ = read(text)
        assert node is not None
        whole, end = read(text + closing(node).decode())
        assert whole is not None and end == len(text + closing(node).decode())


@pytest.mark.parametrize(
    ("said", "draft", "length", "is_all"),
    [
        (b"[1, 2", b"[1, 2, 3]", 5, True),
        (b'{"a": [1, 2', b"[1, 2, 3]}", 5, False),
        (b"[12, 3", b"4]", 0, False),
        (b"[12, 3", b"12, 34]", 5, False),
        (b'{"a": 1', b'See: {"a": 1, "b": 2}', 0, True),
        (b'{"a": 1', b'"x", "c": {"a": 1}', 0, False),
    ],
)
def test_what_a_draft_says_again(said: bytes, draft: bytes, length: int, is_all: bool) -> None:
    assert next(overlaps(said, draft), 0) == length
    before = next(documents(said.decode()), None)
    assert (begins_document(draft) and is_all_again(before, draft)) is is_all


def test_a_transcript_of_no_json_notes_nothing() -> None:
    transcript = Transcript(lambda said: None, lambda: False, is_json=False)
    transcript.add(b"[1, 2")
    assert transcript.overlap(b"[1, 2, 3]") == Overlap()
    assert not transcript.hold(b", 3") and transcript.lost == ""
