"""JSON in another form than the grammar's: no value is lost, and none is made up."""

from __future__ import annotations

import itertools
import json
import random
import re
import time
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, create_model

import stencilm
from guiding.drawn import drawn_value
from guiding.test_text import script
from stencilm import Budget, Grammar, JsonSchema
from stencilm.guiding import rewriting
from stencilm.guiding.cursor import Cursor, Piece
from stencilm.guiding.loose_json import MAX_DEPTH, Members, documents, read
from stencilm.guiding.parsers import as_grammar
from stencilm.guiding.rereading import Rereader
from stencilm.matching.matcher import GrammarMatcher
from stencilm.matching.texts import byte_matcher


class Person(BaseModel):
    name: str
    age: int


class Job(BaseModel):
    title: str
    level: Literal["junior", "senior"] = "junior"
    tags: list[str] = []


class Worker(BaseModel):
    first_name: str
    age: int
    score: float
    ok: bool
    job: Job
    note: str | None = None


ANN = '{"name": "Ann", "age": 30}'
BO = """{"first_name": "Bo", "age": 41, "score": 3.5, "ok": true,
 "job": {"title": "x", "level": "senior", "tags": ["a", "b"]}, "note": null}"""


@pytest.mark.parametrize(
    ("output_type", "answer", "value"),
    [
        (Person, '{"age": 30, "name": "Ann"}', ANN),
        (Person, '{"name": "Ann", "age": "30"}', ANN),
        (Person, '{"name": "Ann", "age": 30.0}', ANN),
        (Person, '{"name": "Ann", "age": 3e1}', ANN),
        (Person, '{"age": "30", "name": "Ann"}', ANN),
        (Person, 'Sure:\n```json\n{"age": 30, "name": "Ann"}\n```\nAnything else?', ANN),
        (Person, 'Here it is: {"age": 30, "name": "Ann"} - does it fit {your} needs?', ANN),
        (Person, "{'age': 30, 'name': 'Ann',}", ANN),
        (Person, "{name: Ann, age: 30}", ANN),
        (Person, '{"name": "Ann" "age": 30 // years\n}', ANN),
        (Person, '{"Name": "Ann", "AGE": "30"}', ANN),
        (Person, '{"person": {"age": 30, "name": "Ann"}}', ANN),
        (Person, '[{"age": 30, "name": "Ann"}]', ANN),
        (Person, '{"people": [{"age": 30, "name": "Ann"}]}', ANN),
        (list[Person], '[[{"age": 30, "name": "Ann"}]]', f"[{ANN}]"),
        (Person, '{"name": "Ann", "age": 30, "city": "Rome"}', ANN),
        (Person, '{"name": "Ann", "city": "Rome", "age": 30}', ANN),
        (Person, '{"name": 7, "age": 30}', '{"name": "7", "age": 30}'),
        (Person, '{"name": true, "age": 30}', '{"name": "true", "age": 30}'),
        (Person, '{"age": 30, "name": "A\\n\\"é\\u0041"}', '{"name": "A\\n\\"éA", "age": 30}'),
        (Worker, BO, BO),
        (
            Worker,
            '{"note": null, "job": {"tags": ["a", "b",], "level": "Senior", "title": "x"}, '
            '"ok": "True", "score": "3.5", "age": "41", "firstName": "Bo"}',
            BO,
        ),
        (list[Person], 'Here: [{"age": 1, "name": "A"}]', '[{"name": "A", "age": 1}]'),
        (dict[str, int], '{"b": "1", "a": 2}', '{"b": 1, "a": 2}'),
        (
            JsonSchema({"properties": {"zip": {"type": "string"}}, "required": ["zip"]}),
            '{"zip": 00123}',
            '{"zip": "00123"}',
        ),
        # A member that may be left out and is null where that is no value.
        (
            JsonSchema(
                {
                    "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
                    "additionalProperties": False,
                }
            ),
            '{"a": null, "b": 1}',
            '{"b": 1}',
        ),
        (
            list[Person],
            '[{"age": 1, "name" // who\n: "A"}, {"age" /* : */ : 2, "name": "B"}]',
            '[{"name": "A", "age": 1}, {"name": "B", "age": 2}]',
        ),
        (JsonSchema({"type": "object"}, indent=2), '{"a":"b",}', '{"a": "b"}'),
        (JsonSchema({"type": "object"}, any_whitespace=False), "{'a': 1}", '{"a": 1}'),
    ],
)
def test_values_are_kept_in_one_call(output_type: Any, answer: str, value: str) -> None:
    result = stencilm.guide(script(answer), output_type, "p")
    assert json.loads(result.response) == json.loads(value)
    assert (result.status, result.usage.calls, result.filled) == ("valid", 1, ())
    assert byte_matcher(as_grammar(output_type)).longest_valid_prefix(result.response).status == (
        "complete"
    )


class Aged(BaseModel):
    age: int
    name: str


class Named(BaseModel):
    kind: Literal["car", "cat"]
    name: str


@pytest.mark.parametrize(
    "age",
    [
        "1 000", "1,234", "1,234,567", "12 0", "3/4", "12:30", "5-6", "2024-05-06", "10^6", "50%",
        "3 km", "3km", "3.", "1.5.2", "0x1F", "3+1", "3 or 4", '3 "x"', '"3" or "4"', "1\u202f000",
        "1'234", "3L", "1.234,50",
    ],
)  # fmt: skip
def test_a_part_of_a_value_is_no_value(age: str) -> None:
    for answer, kind in [
        (f'{{"name": "Ann", "age": {age}}}', Person),
        (f'{{"age": {age}, "name": "Ann"}}', Aged),
        (f'{{"age": [{age}, 2], "name": "Ann"}}', JsonSchema(WITH_AGES)),
    ]:
        if kind not in (Person, Aged) and ("," in age or age in ("12 0", '3 "x"')):
            continue  # several elements, with a comma too few
        result = stencilm.guide(script(answer), kind, "p", budget=stencilm.Budget(calls=4))
        assert any(part.is_made_up for part in result.filled) or not result.is_valid, answer


WITH_AGES = {
    "type": "object",
    "properties": {
        "age": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        "name": {"type": "string"},
    },
    "required": ["age", "name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("kind", ["cars", "caribou", "cat-like"])
def test_a_part_of_a_word_is_none_that_is_listed(kind: str) -> None:
    answer = f'{{"kind": "{kind}", "name": "Ann"}}'
    result = stencilm.guide(script(answer), Named, "p", budget=stencilm.Budget(calls=4))
    assert any(part.is_made_up for part in result.filled)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("Ann Lee", "Ann Lee"),
        ("Paris, France", "Paris, France"),
        ("2024-05-06", "2024-05-06"),
        ("12:30", "12:30"),
        ("1 000", "1 000"),
        ("12 cm", "12 cm"),
        ("http://a.org/b", "http://a.org/b"),
        ("it's", "it's"),
        ('Ann "the" Lee', 'Ann "the" Lee'),
        ("Ann // a comment\n", "Ann"),
        ("Ann # a comment\n", "Ann"),
    ],
)
def test_a_text_without_quotes_is_read_to_its_end(written: str, value: str) -> None:
    for answer in (f'{{name: {written}, "age": 30}}', f'{{"age": 30, "name": {written}}}'):
        result = stencilm.guide(script(answer), Person, "p")
        assert (json.loads(result.response), result.filled) == ({"name": value, "age": 30}, ())
    listed = stencilm.guide(script("[New York, Rome]"), list[str], "p")
    assert json.loads(listed.response) == ["New York", "Rome"]


def test_quotes_within_quotes_cut_no_text_off() -> None:
    for answer in ('{"name": "say "hi" now", "age": 30}', '{"name": "A" "B", "age": 30}'):
        result = stencilm.guide(script(answer), Person, "p", budget=stencilm.Budget(calls=4))
        assert any(part.is_made_up for part in result.filled)


def test_long_drafts_are_read_once() -> None:
    began = time.process_time()
    read('{"a": 1' + " /*" * 20_000)
    read('{"a": x' + ", y" * 20_000)
    read('{"a": x' + "," * 20_000 + " y y")
    read('{"a": 1' + " #" * 100_000)
    assert time.process_time() - began < 3


@pytest.mark.parametrize("length", [2, 5, 20, 200])
def test_drafts_in_parts_are_read_so_too(length: int) -> None:
    whole = '{"name": "Ann", "age": "30"}'

    def draft(prefix: str, prompt: str, max_new_tokens: int) -> str:
        without_quote = whole.replace(': "3', ": 3")
        said = whole if whole.startswith(prefix) else without_quote
        return said[len(prefix) :][:length]

    result = stencilm.guide(draft, Person, "p")
    assert json.loads(result.response) == json.loads(ANN)
    assert (result.status, result.filled) == ("valid", ())


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        # What is missing is filled in and marked; what is there stays.
        ('{"age": 30}', {"age": 30}),
        ('{"name": "Ann"}', {"name": "Ann"}),
        ('{"age": "thirty", "name": "Ann"}', {"name": "Ann"}),
        ('{"age": 30, "name": null}', {"age": 30}),
        ('{"age": 30, "name": "An', {"name": "An", "age": 30}),
    ],
)
def test_what_no_model_wrote_is_marked(answer: str, kept: dict[str, Any]) -> None:
    result = stencilm.guide(script(answer), Person, "p")
    value = json.loads(result.response)
    assert value | kept == value
    assert any(part.is_made_up for part in result.filled)
    for part in result.filled:
        assert result.response[part.start : part.end] == part.text
    assert result.to_json()["filled"][0]["means"] == result.filled[0].means


def test_a_text_with_nothing_of_the_draft_is_not_valid() -> None:
    result = stencilm.guide(script("~~~"), JsonSchema({"enum": ["red", "blue"]}), "p")
    assert json.loads(result.response) in ("red", "blue")
    assert (result.status, result.is_written) == ("closed", False)
    assert all(part.is_made_up for part in result.filled)


def test_two_documents_and_the_one_that_fits() -> None:
    answer = 'I was given {"city": "Rome"} and say {"age": 30, "name": "Ann"}.'
    assert json.loads(stencilm.guide(script(answer), Person, "p").response) == json.loads(ANN)


def test_arrays_have_an_order() -> None:
    pair = JsonSchema({"prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2,
                       "items": False, "type": "array"})  # fmt: skip
    result = stencilm.guide(script('[1, "a"]'), pair, "p")
    assert json.loads(result.response)[0] == "1"
    assert result.filled


def test_hostile_drafts_are_bounded() -> None:
    drafts = [
        "[" * 100_000, '{"a":' * 50_000, "{" + '"a": 1, ' * 20_000, "[" + "1," * 30_000,
        '{"' + "\\" * 60_000, "/*" * 30_000, "```" * 20_000, "{'" * 20_000, "}" * 60_000,
        "{" * 3_000 + "}" * 3_000, '{"name": ' + "9" * 60_000 + "}", "\ud800{\x00: \x01}",
        '{"age": 1e999999999, "name": 1}', "{}" * 30_000,
    ]  # fmt: skip
    for draft in drafts:
        for output_type in (Person, dict[str, list[int]]):
            result = stencilm.guide(
                script(draft), output_type, "p", max_grammar_corrections=2,
                budget=stencilm.Budget(calls=2),
            )  # fmt: skip
            assert result.is_valid
    node, _ = read("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))
    assert node is None


@pytest.mark.parametrize(
    "draft",
    ["It is [95]", "[95] I think", "It is [abc]", 'It is ["x"]', 'It is {"a": 95}', "No: ]"],
)
def test_what_is_left_of_a_list_that_does_not_fit_is_no_empty_list(draft: str) -> None:
    for output_type in (list[Annotated[int, Field(ge=0, le=50)]], dict[str, Literal[1, 2]]):
        result = stencilm.guide(lambda prompt: draft, output_type, "q")
        assert any(part.is_made_up for part in result.filled) or result.status == "closed"


def test_a_number_that_must_go_on_is_not_offered() -> None:
    fields: Any = {"a": (Annotated[int, Field(gt=5, le=50)], ...), "b": (str, ...)}
    result = stencilm.guide(
        lambda prompt: '`{"b": "z", "a": 5}`', create_model("Both", **fields), "q"
    )
    assert any(part.is_made_up for part in result.filled)


@pytest.mark.parametrize(
    ("draft", "response"), [("It is []", "[]"), ("none [ ] here", "[ ]"), ("See [1].", "[1]")]
)
def test_a_list_behind_talk_is_read(draft: str, response: str) -> None:
    result = stencilm.guide(lambda prompt: draft, list[int], "q")
    assert (result.response, result.status, result.filled) == (response, "valid", ())


def test_a_spent_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = 0
    offer = rewriting.Rewriter._offer

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal tried
        tried += 1
        return offer(*arguments, **options)

    monkeypatch.setattr(rewriting.Rewriter, "_offer", counted)
    start = byte_matcher(as_grammar(list[str]))
    draft = b'["' + b'", "'.join([b"a"] * 3_000) + b"',"
    found = Rereader(start, as_grammar(list[str])).reread(b"", draft)
    assert found is not None and found.kept > 0
    for element in ("1", '"a" ', "'a'"):
        draft = b"[" + f"{element},".encode() * 3_000
        Rereader(start, as_grammar(list[str])).reread(b"", draft)
    assert tried < 50_000


def shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        items = [(key, shuffled(one, rng)) for key, one in value.items()]
        rng.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        return [shuffled(one, rng) for one in value]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return str(value) if is_number and rng.random() < 0.5 else value


def drawn(rng: random.Random) -> dict[str, Any]:
    text = "".join(rng.choices('abc "\\{}[]:,\n\té0', k=rng.randrange(6)))
    return {
        "first_name": text,
        "age": rng.randrange(-9, 1000),
        "score": rng.choice([0.5, -1.25, 1e-7, 3.0, 12345.678]),
        "ok": rng.random() < 0.5,
        "job": {
            "title": text + "x",
            "level": rng.choice(["junior", "senior"]),
            "tags": rng.choices(["a", "b c", text], k=rng.randrange(4)),
        },
        "note": rng.choice([None, "n"]),
    }


def test_random_values_survive_any_order_and_type() -> None:
    rng = random.Random(7)
    for _ in range(150):
        value = drawn(rng)
        answer = json.dumps(
            shuffled(value, rng), ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 2])
        )
        if rng.random() < 0.3:
            answer = f"Well:\n```json\n{answer}\n```"
        result = stencilm.guide(script(answer), Worker, "p")
        assert json.loads(result.response) == value, answer
        assert (result.status, result.usage.calls, result.filled) == ("valid", 1, ())


def people(count: int) -> list[dict[str, Any]]:
    return [{"age": number % 90, "name": f"n{number}"} for number in range(count)]


@pytest.mark.parametrize("count", [120, 1_200, 12_000])  # 3, 30 and 300 kB
def test_long_drafts_in_another_order_are_read_to_their_end(count: int) -> None:
    grammar = as_grammar(list[Person])
    draft = json.dumps(people(count)).encode()
    began = time.process_time()
    found = Rereader(byte_matcher(grammar), grammar).reread(b"", draft)
    assert time.process_time() - began < 30
    assert found is not None and found.is_complete
    assert json.loads(found.text) == people(count)
    assert found.text.startswith(b'[{"name": "n0", "age": 0}, ')


@pytest.mark.parametrize(
    ("output_type", "value"),
    [
        (dict[str, int], {f"k{number}": number for number in range(3_000)}),
        (
            JsonSchema(
                {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {f"m{number}": {"type": "integer"} for number in range(31)},
                        "additionalProperties": False,
                    },
                }
            ),
            [{f"m{number * 7 % 31}": number for number in range(31)} for _ in range(60)],
        ),
    ],
)
def test_many_members_are_read_to_their_end(output_type: Any, value: Any) -> None:
    text = json.dumps(value).replace("{", "{,", 1)
    result = stencilm.guide(script(text), output_type, "p", budget=stencilm.Budget(tokens=10_000))
    assert json.loads(result.response) == value
    assert (result.status, result.usage.calls, result.filled) == ("valid", 1, ())


def test_a_list_goes_on_with_more_documents_than_are_read_each() -> None:
    text = json.dumps([{"name": one["name"], "age": one["age"]} for one in people(400)])

    def draft(prefix: str, prompt: str, max_new_tokens: int) -> str:
        assert text.startswith(prefix)
        return re.sub(r'"age": (\d+)', r'"age": "\1"', text[len(prefix) :])[:3_000]

    result = stencilm.guide(draft, list[Person], "p", max_grammar_corrections=9)
    assert (result.response, result.status, result.filled) == (text, "valid", ())


class _Forking(Cursor):
    """Each place by a matcher of its own, which has never been anywhere else."""

    def __init__(self, start: GrammarMatcher) -> None:
        super().__init__(start)
        self._start = start

    def at(self, piece: Piece) -> GrammarMatcher:
        texts = []
        here: Piece | None = piece
        while here is not None and here.before is not None:
            texts.append(here.text)
            here = here.before
        self._matcher = self._start.fork()
        self._path = [self.first]
        assert all(self._matcher.accept_string(text) for text in reversed(texts))
        return self._matcher


def test_one_matcher_that_goes_back_reads_as_new_ones_do(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(11)
    output_types: list[Any] = [Worker, list[Worker], JsonSchema({"type": "object"}), WITH_OPTIONAL]
    found = 0
    for _ in range(60):
        grammar = as_grammar(rng.choice(output_types))
        start = byte_matcher(grammar)
        value = rng.choice([drawn(rng), [drawn(rng), drawn(rng)], {"b": 1, "a": "1", "d": None}])
        draft = json.dumps(shuffled(value, rng)).encode()
        if rng.random() < 0.5:
            at = rng.randrange(len(draft))
            draft = draft[:at] + rng.choice([b'"', b",", b"}", b"]", b"{", b"x", b""]) + draft[at:]
        reread = Rereader(start, grammar).reread(b"", draft)
        with monkeypatch.context() as patched:
            patched.setattr(rewriting, "Cursor", _Forking)
            assert Rereader(start, grammar).reread(b"", draft) == reread, draft
        found += reread is not None
    assert found > 20


WITH_OPTIONAL = JsonSchema(
    {
        "type": "object",
        "properties": {name: {"type": ["string", "integer"]} for name in "abcd"},
        "required": ["c"],
        "minProperties": 2,
        "additionalProperties": False,
    }
)


def test_drafts_that_fit_nearly_are_bounded() -> None:
    row = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
           "required": ["name", "age"], "additionalProperties": False}  # fmt: skip
    too_many: Any = JsonSchema({"type": "array", "items": row, "minItems": 100_000})
    text = json.dumps(people(2_000))
    counted = json.dumps({f"k{number}": number for number in range(5_000)})
    keys = json.dumps({f"{number}" + "x" * 2_000: number for number in range(31)})
    began = time.process_time()
    for output_type, draft in [
        (too_many, text),
        (list[Person], text[:-1]),
        (list[Person], text[:-1] + ', "x" : }}'),
        (list[Person], re.sub('"age": 1.?,', '"age": "z",', text)),
        (JsonSchema({"type": "object", "minProperties": 100_000}), counted),
        (dict[str, int], counted[:-1]),
        (dict[str, Literal["z"]], counted),
        (JsonSchema({"type": "object", "minProperties": 32}), keys),
    ]:
        grammar = as_grammar(output_type)
        Rereader(byte_matcher(grammar), grammar).reread(b"", draft.encode())
    assert time.process_time() - began < 30


def test_grammars_that_are_no_json_are_left_alone() -> None:
    grammar = Grammar.from_ebnf('root ::= "{" [a-z]+ "}" "!"')
    result = stencilm.guide(script("{abc}?"), grammar, "p")
    assert result.response == "{abc}!"
    assert "reread" not in [correction.means for correction in result.correction_log]


def test_a_document_is_read_loosely() -> None:
    (node,) = documents("x {a: 'it\\'s', \"b\": [1 2,, +03, -.5, None], c} y")
    assert isinstance(node, Members) and not node.is_open
    assert [key.text for key, _ in node.items] == ["a", "b", "c"]
    assert node.items[2][1] is None


class Group(BaseModel):
    title: str
    people: list[Person]
    tags: list[str] = []
    notes: dict[str, list[int]] = {}


SAID: dict[Any, list[Any]] = {
    str: ["a, b", "x]", "{", 'q"', "é", "\\", "€[", ""],
    int: [7, "7", 1234],
    float: [1.5, -2.0, 1e3],
}
"""As a model may write them: numbers as texts."""


@pytest.mark.parametrize(
    "output_type",
    [
        list[Person], list[Group], Group, dict[str, Person], dict[str, dict[str, int]],
        list[list[int]], list[dict[str, float]],
    ],
)  # fmt: skip
def test_a_part_is_read_as_with_all_before_it(output_type: Any) -> None:
    """What is settled is not read again, which changes nothing."""
    drawn = random.Random(3)
    grammar = as_grammar(output_type)
    start = byte_matcher(grammar)
    compared = 0
    for _ in range(150):
        whole = json.dumps(drawn_value(output_type, drawn, SAID), ensure_ascii=False).encode()
        valid = start.longest_valid_prefix(whole).valid_bytes
        written = whole[: drawn.randrange(valid + 1)].decode("utf-8", "ignore").encode()
        # A name that has begun stands, where all the text may be read without the object.
        if re.search(rb'[{,]\s*"[^"]*$', written):
            continue
        end = len(whole) if drawn.random() < 0.7 else drawn.randrange(len(written), len(whole) + 1)
        draft = whole[len(written) : end].decode("utf-8", "ignore").encode()
        short, long = (Rereader(start, grammar) for _ in range(2))
        long._outline = None
        assert short.reread(written, draft) == long.reread(written, draft), (written, draft)
        compared += 1
    assert compared > 50


def test_many_parts_cost_as_much_as_they_are_long() -> None:
    """Each part is out of order, and is read anew: 200 of them took 28 s when all was read anew."""
    count = 400

    def draft(prefix: str, prompt: str, max_new_tokens: int) -> str:
        number = prefix.count('"name"')
        if number == count:
            return "]"
        comma = ", " if prefix.endswith("}") else ""
        return ("" if prefix else "[") + comma + json.dumps({"age": number, "name": f"n{number}"})

    began = time.process_time()
    result = stencilm.guide(
        draft, list[Person], "p", max_grammar_corrections=10_000, budget=Budget(tokens=10**6)
    )
    assert time.process_time() - began < 10
    assert json.loads(result.response) == [{"name": f"n{n}", "age": n} for n in range(count)]
    assert (result.status, result.filled, result.usage.calls) == ("valid", (), count + 1)


def test_the_budget_of_seconds_ends_a_rereading() -> None:
    answer = json.dumps([{"age": n, "name": f"n{n}"} for n in range(40_000)])
    budget = Budget(seconds=0.3, tokens=10**7)
    began = time.process_time()
    result = stencilm.guide(script(answer), list[Person], "p", budget=budget)
    assert time.process_time() - began < 5  # 14 s without it
    assert (result.status, result.reason) == ("closed", "the budget of 0.3 seconds is spent")
    read_of_it = json.loads(result.response)
    assert read_of_it[:-1] == [{"name": f"n{n}", "age": n} for n in range(len(read_of_it) - 1)]


def test_a_short_draft_is_read_whatever_the_time_is() -> None:
    def draft(prompt: str) -> str:
        time.sleep(0.02)
        return '{"age": 30, "name": "Ann"}'

    result = stencilm.guide(draft, Person, "p", budget=Budget(seconds=0.01))
    assert (result.response, result.status) == (ANN, "valid")


@pytest.mark.parametrize("part", ["-", "t", "1."])
def test_what_a_number_or_constant_begins_with_is_gone_on_with(part: str) -> None:
    wanted = {"-": "-2", "t": "true", "1.": "1.5"}[part]
    kind = JsonSchema(
        {
            "type": "object",
            "properties": {"a": {}, "b": {"type": "integer"}, "c": {"type": "integer"}},
            "required": ["a", "b", "c"],
        }
    )
    grammar = as_grammar(kind)
    written = f'{{"a": {part}'.encode()
    draft = f'{wanted[len(part) :]}, "c": 2, "b": 1}}'.encode()
    found = Rereader(byte_matcher(grammar), grammar).reread(written, draft)
    assert found is not None and found.is_complete
    assert json.loads(written + found.text) == {"a": json.loads(wanted), "b": 1, "c": 2}


ALIKE = ["".join(letters) for letters in itertools.product("aA", "bB", "cC", "dD", "eE")][:31]


@pytest.mark.parametrize("required", [ALIKE, []])
@pytest.mark.parametrize("count", [31, 15, 2])
def test_names_that_differ_in_case_are_other_names(required: list[str], count: int) -> None:
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in ALIKE},
        "required": required[:count],
        "additionalProperties": False,
    }
    members = [(name, number) for number, name in enumerate(ALIKE)]
    random.Random(count).shuffle(members)
    wanted = {name: n for name, n in members if not required or name in required[:count]}
    wanted = dict(list(wanted.items())[:count])
    began = time.process_time()
    result = stencilm.guide(script(json.dumps(wanted)), JsonSchema(schema), "p")
    assert json.loads(result.response) == wanted
    assert (result.status, result.filled) == ("valid", ())
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("names", "draft", "value"),
    [
        (["id", "ID", "x"], '{"x": 1, "ID": 2, "id": 3}', {"id": 3, "ID": 2, "x": 1}),
        (["id", "x"], '{"x": 1, "Id": 2}', {"id": 2, "x": 1}),
        (["id", "ID", "x"], '{"x": 1, "Id": 2}', {"x": 1}),  # which of them nobody knows
        (["id", "x"], '{"x": 1, "ID": 2, "id": 3}', {"id": 3, "x": 1}),
        (["+", "x"], '{"x": 1, "*": 2}', {"x": 1}),
    ],
)
def test_a_name_is_read_as_another_only_where_that_is_clear(
    names: list[str], draft: str, value: dict[str, int]
) -> None:
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "additionalProperties": False,
    }
    result = stencilm.guide(script(draft), JsonSchema(schema), "p")
    assert json.loads(result.response) == value


class Sign(BaseModel):
    sign: Literal["+", "-"]
    n: int


class Case(BaseModel):
    sign: Literal["id", "ID"]
    n: int


@pytest.mark.parametrize(("kind", "said"), [(Sign, "*"), (Case, "Id")])
def test_a_word_is_read_as_another_only_where_that_is_clear(kind: Any, said: str) -> None:
    answer = f'{{"n": 1, "sign": "{said}"}}'
    result = stencilm.guide(script(answer), kind, "p", budget=Budget(calls=2))
    assert result.status == "closed" and any('"sign"' in part.text for part in result.filled)


def test_a_number_that_stands_is_not_spelled_longer() -> None:
    grammar = as_grammar(JsonSchema({"type": "array", "items": {"type": "integer"}}))
    assert Rereader(byte_matcher(grammar), grammar).reread(b"[4, 5", b'", "6", "7') is None


class Pair(BaseModel):
    a: str
    b: str


@pytest.mark.parametrize(
    ("output_type", "draft"),
    [
        (Pair, '{"b": "y", "a": "\\ud83d x"}'),
        (Pair, '{"a": "\\ud83d x", "b": "y"}'),
        (Pair, "{'a': 'x\\ude00', 'b': 'y'}"),
        (list[str], '["\\ud83d x",]'),
        (dict[str, str], '{"a": "\\ud83d",}'),
    ],
)
def test_half_of_a_surrogate_pair_is_no_character(output_type: Any, draft: str) -> None:
    result = stencilm.guide(lambda prompt: draft, output_type, "p", budget=stencilm.Budget(calls=5))
    assert "?" not in result.response and "�" not in result.response
    assert any(part.is_made_up for part in result.filled)


@pytest.mark.parametrize("talk", ["Here you go: {}", "Sure! Here it is:\n{}", "```json\n{}\n```"])
@pytest.mark.parametrize(
    ("draft", "value"),
    [
        ("['a b', 'true', 'null']", ["a b", "true", "null"]),
        ("[]", []),
        ('["say \\"hi\\"",\n "{a}"]', ['say "hi"', "{a}"]),
        ('["[z]"]', ["[z]"]),
    ],
)
def test_talk_before_a_list_is_no_element(talk: str, draft: str, value: list[str]) -> None:
    text = talk.format(draft)
    result = stencilm.guide(lambda prompt: text, list[str], "p", budget=stencilm.Budget(calls=5))
    assert (json.loads(result.response), result.status) == (value, "valid")


@pytest.mark.parametrize(
    "draft",
    [
        '{"b": "NaN", "a": "[z]"}, {"a": "\\ud83d\\ude00", "b": "\\ud83d\\ude00"}',
        '{"b": "N", "a": "z"}, {"a": "' + "\\u00e9" * 20 + '", "b": "c"}',
        '{"b": "N", "a": "z"}, {"a": "\\t\\t\\t\\t\\t\\t", "b": "\\n\\n\\n\\n\\n\\n"}',
    ],
)
@pytest.mark.parametrize("talk", ["", "Sure! Here it is:\n"])
def test_what_stands_before_an_element_is_no_talk(talk: str, draft: str) -> None:
    text = f"{talk}[{draft}]"
    result = stencilm.guide(lambda prompt: text, list[Pair], "p", budget=stencilm.Budget(calls=5))
    assert json.loads(result.response) == json.loads(f"[{draft}]")
    assert (result.status, result.filled) == ("valid", ())


@pytest.mark.parametrize(
    ("output_type", "draft", "value"),
    [
        (Pair, "{“a”: “x”, “b”: “y, z”}", {"a": "x", "b": "y, z"}),
        (
            Pair,
            "{\u2018b\u2019: \u2018don\u2019t\u2019, \u2018a\u2019: \u2018it\u2019s: so\u2019}",
            {"a": "it\u2019s: so", "b": "don\u2019t"},
        ),
        (Pair, "{«a»: «x», „b“: „y“}", {"a": "x", "b": "y"}),
        (list[str], "[“a”, “b\\n”, 'c']", ["a", "b\n", "c"]),
        (dict[str, str], "{“k”: “v”}", {"k": "v"}),
        # In other quotes, or of several words, they are of the text.
        (Pair, "{\"a\": \"“x”\", 'b': '\u2018y\u2019'}", {"a": "“x”", "b": "\u2018y\u2019"}),
        (
            Pair,
            "{a: “x” and “y”, b: \u2018z\u2019 or so}",
            {"a": "“x” and “y”", "b": "\u2018z\u2019 or so"},
        ),
    ],
)
def test_quotes_of_printed_texts_are_quotes(output_type: Any, draft: str, value: Any) -> None:
    result = stencilm.guide(lambda prompt: draft, output_type, "p", budget=stencilm.Budget(calls=3))
    assert (json.loads(result.response), result.status, result.filled) == (value, "valid", ())
