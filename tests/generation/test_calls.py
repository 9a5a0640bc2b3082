"""What every local model's calls have in common: stop texts, retries, typed schemas, functions."""

from __future__ import annotations

import asyncio
import enum
import itertools
import json
import math
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

import stencilm
from generation.conftest import STOP, ByteModel
from stencilm.generation.partial import MISSING
from stencilm.generation.result import IncompleteOutput, InvalidOutput
from stencilm.generation.trace import Sampled
from stencilm.generation.typed import by_value
from stencilm.grammars.complaints import complaint_of, refusal
from stencilm.grammars.outputs import resolve
from stencilm.models.model import Model
from stencilm.models.options import Drawing
from stencilm.models.partials import Partials


def says(said: str) -> Model:
    """A model that answers the last question mark with this text."""

    def logits_after(tokens: list[int]) -> list[float]:
        text = bytes(tokens).decode()
        written = text[text.rindex("?") + 1 :]
        row = [0.0] * 257
        if said.startswith(written):
            rest = said[len(written) :].encode()
            row[rest[0] if rest else STOP] = 9.0
        return row

    return Model(ByteModel(logits_after))


# Stop texts


@pytest.mark.parametrize(
    ("stop", "text", "found"),
    [
        ("END", "one two ", "END"),
        (["zzz", "two"], "one ", "two"),
        (["ND", "END"], "one two ", "END"),  # the one that comes first
        ("three", "one two END four", None),
        (["one"], "", "one"),
    ],
)
def test_a_stop_text_ends_the_text(stop: Any, text: str, found: str | None) -> None:
    model = says("one two END four")
    generation = model.generate("?", stop=stop)
    assert (generation.text, generation.stop_text) == (text, found)
    assert (generation.value, generation.finish_reason) == (text, "stop")
    # What may yet be a stop text is not shown.
    shown = list(model.stream("?", stop=stop))
    assert shown[-1] == text and all(text.startswith(part) for part in shown)


def test_a_stop_text_within_a_typed_text_cuts_it() -> None:
    model = says("123;")
    whole = model.generate("?", stencilm.Regex("[0-9]+;?"), stop=";")
    assert (whole.text, whole.value, whole.stop_text) == ("123", "123", ";")
    cut = model.generate("?", stencilm.Regex("[0-9]+;"), stop=[";"])
    assert (cut.text, cut.value, cut.finish_reason) == ("123", None, "stop")
    assert not cut.is_complete
    with pytest.raises(IncompleteOutput, match="the stop text ';' cut the text"):
        model("?", stencilm.Regex("[0-9]+;"), stop=[";"])
    for wrong in ("", ["a", ""], [3]):
        with pytest.raises(ValueError, match="stop holds"):
            model("?", stop=wrong)  # type: ignore[arg-type]


def test_forced_text_may_hold_a_stop_text() -> None:
    model = says("say: yes.")
    generation = model.generate("?", stencilm.Regex("say: (yes|no)\\."), stop=": ")
    assert (generation.text, generation.stop_text) == ("say", ": ")


# Drawing


def test_penalties_and_biases_are_kept_to_within_a_text() -> None:
    flat = Model(
        ByteModel(lambda tokens: [1.0 if chr(token) in "abc" else 0.0 for token in range(257)])
    )
    letters = stencilm.Regex("[abc]{6}")
    assert flat("x", letters) == "aaaaaa"
    assert flat("x", letters, presence_penalty=0.5) == "abcaaa"
    assert flat("x", letters, frequency_penalty=0.5) == "abcabc"
    assert flat("a", letters, repetition_penalty=2.0)[:2] == "bc"
    assert flat("x", letters, logit_bias={ord("c"): 5.0}) == "cccccc"
    assert flat("x", letters, logit_bias={ord("z"): 99.0}) == "aaaaaa"  # the grammar goes first
    assert set(flat("x", letters, temperature=5.0, min_p=1.0, logit_bias={97: 1.0})) == {"a"}
    options: Any
    for options in ({}, {"sampling": "smc", "particles": 2}):
        with pytest.raises(ValueError, match=r"the token 257, but .* has the ids 0 to 256"):
            flat("x", letters, logit_bias={97: 1.0, 257: 1.0}, **options)


# Retries


def odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError("must be odd")
    return value


Odd = Annotated[int, Field(ge=0, le=99), AfterValidator(odd)]


def test_the_model_is_told_what_was_refused() -> None:
    prompts: list[str] = []

    def logits_after(tokens: list[int]) -> list[float]:
        text = bytes(tokens).decode()
        prompts.append(text)
        row = [0.0] * 257
        row[ord("7") if "must be odd" in text else ord("8")] = 5.0
        row[STOP] = 9.0
        return row

    model = Model(ByteModel(logits_after))
    assert model("A number: ", Odd) == 7
    generation = model.generate("A number: ", Odd)
    (refused,) = generation.refused
    assert (generation.value, refused.text, refused.value) == (7, "8", None)
    assert "must be odd" in str(refused.error)
    assert prompts[-1].startswith("A number: 8\nThat was refused: Value error, must be odd.")
    assert [*model.stream("A number: ", Odd)][-1] == 7
    assert model.batch(["A number: "] * 3, Odd) == [7, 7, 7]
    assert asyncio.run(model.acall("A number: ", Odd)) == 7
    assert asyncio.run(model.abatch(["A number: "], Odd)) == [7]
    with pytest.raises(InvalidOutput, match="must be odd"):
        model("A number: ", Odd, max_retries=0)
    with pytest.raises(ValueError, match="max_retries is -1"):
        model("A number: ", Odd, max_retries=-1)


@pytest.mark.parametrize("call", ["generate", "chat", "stream"])
def test_a_message_without_a_role_is_told(call: str) -> None:
    """A chat template may leave it out without a word."""
    messages: Any = [{"role": "user", "content": "a"}, {"content": "Say b."}]
    with pytest.raises(TypeError, match=r"a message is .*Say b.*, but must have a 'role'"):
        list(getattr(stencilm.load("tiny"), call)(messages))


def test_bytes_are_no_stop_texts() -> None:
    wrong: Any = b"ab"
    with pytest.raises(TypeError, match="stop is b'ab', but must be a text, or a list of texts"):
        says("[true]")("?", list[bool], stop=wrong)
    with pytest.raises(TypeError, match="stop_at is b'ab', but must be a text, or a list of texts"):
        stencilm.guide(lambda prompt: "a", stencilm.Regex("a"), "?", stop_at=wrong)


async def _last(values: Any) -> Any:
    return [value async for value in values][-1]


@pytest.mark.parametrize("name", sorted(set(Drawing.__annotations__) - {"max_whitespace"}))
def test_an_option_that_is_none_is_not_given(name: str) -> None:
    model, tp = says("[true]"), list[bool]
    given: Any = {"max_tokens": 60, name: None}
    without: Any = {} if name == "max_tokens" else {"max_tokens": 60}
    usual = model.generate("?", tp, **without)
    assert model.generate("?", tp, **given).text == usual.text == "[true]"
    assert model("?", tp, **given) == [True]
    assert model.batch(["?"], tp, **given) == [[True]]
    assert [*model.stream("?", tp, **given)][-1] == [True]
    assert isinstance(model.chat("?", output_type=tp, **given).value, list)
    assert asyncio.run(model.acall("?", tp, **given)) == [True]
    assert asyncio.run(model.abatch(["?"], tp, **given)) == [[True]]
    assert asyncio.run(_last(model.astream("?", tp, **given))) == [True]
    seeded: Any = {} if name == "seed" else {"seed": 3}
    whole = model.samples("?", tp, n=2, **{"sampling": "smc", **seeded, **given})
    assert len(whole) == 2 and all(isinstance(one, list) for one in whole)


def test_none_of_the_other_calls_is_not_given_either() -> None:
    model, choice = stencilm.load("tiny"), stencilm.Choice(["a", "b"])
    nothing: Any = {"reasoning": None, "limits": None}
    beams = model.beam_search(
        "?", choice, beams=None, max_tokens=None, length_penalty=None, **nothing
    )
    assert beams == model.beam_search("?", choice)
    assert model.probabilities("?", choice, **nothing) == model.probabilities("?", choice)
    # `samples` has a temperature of its own, which None does not replace.
    drawn = model.samples("?", choice, n=40, temperature=None, seed=1)
    assert drawn == model.samples("?", choice, n=40, seed=1)
    guided = stencilm.guide(
        model, choice, "?", top_p=None, temperature=None, seed=None, stop_at=None, budget=None,
        reasoning=None, max_grammar_corrections=None, token_lookahead=None,
    )  # fmt: skip
    assert guided.response == stencilm.guide(model, choice, "?").response
    unknown: Any = {"nothing": None}
    with pytest.raises(TypeError, match="'nothing' is no option"):
        model("?", choice, **unknown)


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")
    x: int
    y: str

    @field_validator("x")
    @classmethod
    def at_least_five(cls, value: int) -> int:
        if value < 5:
            raise ValueError("must be\nat least 5")
        return value

    @model_validator(mode="after")
    def not_bad(self) -> Part:
        if self.y == "bad":
            raise ValueError("y is bad")
        return self


class Parts(BaseModel):
    parts: list[Part]
    n: Annotated[int, AfterValidator(odd)]


def test_each_fault_is_a_line_with_its_place_and_its_value() -> None:
    bad = "b" * 200
    text = json.dumps({"parts": [{"x": 1, "y": bad}, {"x": 7, "y": "bad"}], "n": 2})
    error = says(text).generate("?", Parts, max_tokens=900, max_retries=0).error
    assert isinstance(error, InvalidOutput)
    assert error.complaint.splitlines() == [
        "parts/0/x: Value error, must be at least 5 (it is 1)",
        'parts/1: Value error, y is bad (it is {"x": 7, "y": "bad"})',
        "n: Value error, must be odd (it is 2)",
    ]
    told = refusal(error.complaint, "Again.")
    assert told.splitlines() == [
        "That was refused:",
        *(f"- {line}" for line in error.complaint.splitlines()),
        "Again.",
    ]
    many = json.dumps({"parts": [{"x": 1, "y": bad}] * 11, "n": 1})
    error = says(many).generate("?", Parts, max_tokens=9000, max_retries=0).error
    assert isinstance(error, InvalidOutput)
    lines = error.complaint.splitlines()
    assert len(lines) == 9 and lines[8] == "and 3 more"
    assert all(len(line) < 300 for line in lines)


def test_long_values_and_missing_ones_are_told_in_short() -> None:
    with pytest.raises(ValidationError) as caught:
        Part.model_validate({"x": "z" * 500})
    long, missing = complaint_of(caught.value).splitlines()
    assert long.startswith("x: Input should be a valid integer") and long.endswith("zzz…)")
    assert len(long) < 200 and missing == "y: Field required"


def test_who_learns_nothing_is_asked_as_often_as_wanted() -> None:
    model = Model(ByteModel(lambda tokens: [9.0 if token in (ord("8"), STOP) else 0.0
                                            for token in range(257)]))  # fmt: skip
    generation = model.generate("?", Odd, max_retries=3)
    assert isinstance(generation.error, InvalidOutput)
    assert [one.text[0] for one in generation.refused] == ["8"] * 3
    assert all(one.refused == () for one in generation.refused)


def test_endpoint_options_are_named() -> None:
    with pytest.raises(TypeError, match="budget is an option of models behind an API"):
        says("a")("?", budget=stencilm.Budget(calls=1))


# Output types


class Person(BaseModel):
    name: str = Field(max_length=4)
    ages: list[int] = Field(max_length=2)


def search(query: str, limit: int = 3, *words: str, exact: bool | None = None, **more: int) -> str:
    """Look something up."""
    return f"{query}/{limit}/{exact}"


def untyped(one, two=2):  # type: ignore[no-untyped-def]
    return one, two


def test_functions_give_their_arguments() -> None:
    arguments = says('{"query": "cats", "exact": true}')("?", search)
    assert arguments == {"query": "cats", "exact": True}
    assert search(**arguments) == "cats/3/True"
    assert says('{"query": "cats", "limit": 5}')("?", search) == {"query": "cats", "limit": 5}
    assert says('{"one": [1]}')("?", untyped) == {"one": [1]}
    partial = list(says('{"query": "cats", "limit": 5}').stream("?", search))
    assert {"query": "ca"} in partial and partial[-1] == {"query": "cats", "limit": 5}


def nothing() -> None: ...


@pytest.mark.parametrize(
    ("function", "words"),
    [(divmod, "by its position only"), (lambda x, /: x, "by its position only")],
)
def test_functions_that_cannot_be_called_by_names(function: Any, words: str) -> None:
    with pytest.raises(stencilm.UnsupportedFeature, match=words):
        says("{}")("?", function)
    assert says("{}")("?", nothing) == {}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"any_whitespace": False}, '{"name": "Ann", "ages": [1, 2]}'),
        ({"any_whitespace": False, "indent": 1}, '{\n "name": "Ann",\n "ages": []\n}'),
        ({"property_order": "any"}, '{"ages": [1], "name": "Ann"}'),
        ({"max_whitespace": 0}, '{"name":"Ann","ages":[]}'),
    ],
)  # fmt: skip
def test_python_types_take_the_options_of_schemas(options: dict[str, Any], text: str) -> None:
    output_type = stencilm.JsonSchema(Person, **options)
    value = says(text)("?", output_type)
    assert value == Person.model_validate_json(text)
    *partial, last = says(text).stream("?", output_type)
    assert last == value and all(isinstance(one, Person) for one in partial)
    grammar = stencilm.Grammar.from_type(output_type)
    assert hash(output_type) == hash(stencilm.JsonSchema(Person, **options))
    assert output_type != stencilm.JsonSchema(Person)
    assert str(grammar) != str(stencilm.Grammar.from_type(Person))


def test_bare_texts_become_json_where_that_is_asked_for() -> None:
    assert says('"yes"')("?", stencilm.JsonSchema(Literal["yes", "no"])) == "yes"
    assert stencilm.JsonSchema(int) != stencilm.JsonSchema(float)
    assert stencilm.JsonSchema(True).is_of_type is False
    assert stencilm.JsonSchema(bool).is_of_type


# Probabilities


def letters(weights: dict[str, float]) -> Callable[[list[int]], list[float]]:
    row = [weights.get(chr(token), -30.0) for token in range(256)] + [weights.get("end", -30.0)]
    return lambda tokens: row


def test_probabilities_are_those_of_drawing() -> None:
    weights = {"a": 1.0, "b": 0.5, "end": 0.2}
    model = Model(ByteModel(letters(weights)))
    choice = stencilm.Choice(["a", "ab", "ba", "bb"])
    found = model.probabilities("x", choice)
    names = [name for name, _ in found]
    values = [value for _, value in found]
    assert sorted(values, reverse=True) == values and sum(values) == pytest.approx(1)
    a, b, end = (math.exp(weights[name]) for name in ("a", "b", "end"))
    expected = {
        "a": a / (a + b) * end / (end + b),
        "ab": a / (a + b) * b / (end + b),
        "ba": b / (a + b) * a / (a + b),
        "bb": b / (a + b) * b / (a + b),
    }
    assert dict(found) == pytest.approx(expected)
    assert sorted(names) == sorted(expected)
    drawn = model.samples("x", choice, n=2000, seed=1)
    for name, value in expected.items():
        assert drawn.count(name) / 2000 == pytest.approx(value, abs=0.04)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({"a": math.inf}, {"a": 1, "b": 0, "cd": 0, "ce": 0}),
        ({"a": math.inf, "b": math.inf}, {"a": 0.5, "b": 0.5, "cd": 0, "ce": 0}),
        ({"a": 3e38, "b": 3e38, "c": 3e38, "d": 3e38, "e": 3e38},
         {"a": 1 / 3, "b": 1 / 3, "cd": 1 / 6, "ce": 1 / 6}),
        ({"a": 0.0, "b": 0.0, "c": -math.inf, "d": -math.inf, "e": -math.inf},
         {"a": 0.5, "b": 0.5, "cd": 0, "ce": 0}),
        ({"a": 0.0, "b": 0.0, "c": -math.inf, "d": math.nan},
         {"a": 0.5, "b": 0.5, "cd": 0, "ce": 0}),
    ],
)  # fmt: skip
def test_probabilities_by_logits_beyond_all(
    weights: dict[str, float], expected: dict[str, float]
) -> None:
    model = Model(ByteModel(letters(weights)))
    found = dict(model.probabilities("x", stencilm.Choice(list(expected))))
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"a": math.nan, "b": math.inf}, "NaN"),
        ({"a": 0.0, "c": 0.0, "d": math.nan}, "NaN"),
        ({"a": 0.0, "c": 0.0, "d": -math.inf, "e": -math.inf}, "zero"),
    ],
)
def test_logits_that_give_no_probability_are_told(weights: dict[str, float], said: str) -> None:
    model = Model(ByteModel(letters(weights)))
    with pytest.raises(stencilm.ModelError, match=said):
        model.probabilities("x", stencilm.Choice(["a", "b", "cd", "ce"]))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sampling", ["masked", "exact", "smc"])
def test_the_trace_has_the_probability_of_a_logit_beyond_all(sampling: Any) -> None:
    def row(tokens: list[int]) -> list[float]:
        after = letters({"a": math.inf, "b": math.inf} if tokens[-1] == ord("x") else {"end": 9.0})
        return after(tokens)

    model = Model(ByteModel(row))
    result = model.generate("x", Literal["a", "b", "c"], sampling=sampling, temperature=1.0, seed=1)
    first = next(event for event in result.trace if isinstance(event, Sampled))
    assert math.exp(first.logprob) == pytest.approx(0.5)


def test_values_with_several_texts_stand_there_once() -> None:
    model = Model(ByteModel(letters({"0": 1.0, "1": 0.5, ".": 0.3, "end": 0.1})))
    found = model.probabilities("x", Annotated[int, Field(ge=0, le=1)])
    assert [value for value, _ in found] == [0, 1]
    rounded = Annotated[Literal[1, 2, 3], AfterValidator(lambda number: number // 2)]
    merged = Model(ByteModel(letters({"1": 1.0, "2": 0.5, "3": 0.3}))).probabilities("x", rounded)
    assert len(merged) == 2 and merged[0][0] in (0, 1)
    with pytest.raises(stencilm.ModelError, match="more than 1,000 texts"):
        model.probabilities("x", list[int])
    kinds = model.probabilities("x", stencilm.Choice([1, True]))
    assert {repr(value) for value, _ in kinds} == {"1", "True"}


@pytest.mark.parametrize(
    ("output_type", "expected"),
    [
        (Literal["x", 1, None], ["x", 1, None]),
        (tuple[bool, bool], [(a, b) for a in (False, True) for b in (False, True)]),
        (stencilm.JsonSchema({"enum": ["a b", ["c", 1], 'd"']}), ["a b", ["c", 1], 'd"']),
    ],
)
def test_values_in_json_have_one_text_each(output_type: Any, expected: list[Any]) -> None:
    model = Model(ByteModel(letters({"1": 1.0, " ": 9.0, "\\": 9.0, "end": 0.1})))
    found = model.probabilities("x", output_type)
    assert sorted(map(repr, (value for value, _ in found))) == sorted(map(repr, expected))
    assert sum(probability for _, probability in found) == pytest.approx(1)


def test_each_beginning_is_read_once() -> None:
    backend = ByteModel(letters({"a": 1.0, "b": 0.5}))
    texts = ["".join(word) for word in itertools.product("ab", repeat=4)]
    found = Model(backend).probabilities("x", stencilm.Choice(texts))
    assert len(backend.calls) == 15  # the inner places of a binary tree
    assert sum(probability for _, probability in found) == pytest.approx(1)
    assert np.isclose(max(probability for _, probability in found), dict(found)["aaaa"])


# Streams


CALLS: Counter[Any] = Counter()


def counted(value: Any) -> Any:
    CALLS[repr(value)] += 1
    return value


class Line(BaseModel):
    text: Annotated[str, AfterValidator(counted)]
    numbers: list[Annotated[int, AfterValidator(counted)]]


def test_a_stream_checks_each_part_once() -> None:
    lines = [{"text": f"line {n}", "numbers": [10 * n, 10 * n + 1]} for n in range(1, 9)]
    CALLS.clear()
    *partial, last = says(json.dumps(lines)).stream("?", list[Line])
    assert [line.model_dump() for line in last] == lines and len(partial) > 8
    assert len(CALLS) == 8 * 3 and set(CALLS.values()) == {1}


def test_an_adapter_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import pydantic

    made: Counter[Any] = Counter()

    class Counting(pydantic.TypeAdapter[Any]):  # type: ignore[misc]
        def __init__(self, tp: Any, **options: Any) -> None:
            made[repr(tp)] += 1
            super().__init__(tp, **options)

    class Fresh(BaseModel):
        lines: list[Line]

    monkeypatch.setattr(pydantic, "TypeAdapter", Counting)
    lines = [{"text": "a", "numbers": [1]}, {"text": "b", "numbers": []}]
    model = says(json.dumps({"lines": lines}))
    for _ in range(2):
        assert len([*model.stream("?", Fresh)][-1].lines) == 2
    assert made and set(made.values()) == {1}, made


def test_fields_are_there_from_the_beginning() -> None:
    for partial in says('{"name": "Ann", "ages": [1, 23]}').stream("?", Person):
        assert partial.name is None or "Ann".startswith(partial.name)
        assert partial.ages in (None, [], [1], [1, 23])  # never an open number


class Mood(enum.Enum):
    GLAD = "glad"
    GLADDEST = "gladdest"


class Plain(enum.StrEnum):
    NO = "no"
    NOT_YET = "not yet"


@pytest.mark.parametrize(
    ("tp", "text", "shown"),
    [
        (Literal["glad", "gladdest"], "gladdest", ["gladdest"]),
        (Literal["glad", "gladdest"], "glad", []),  # it might have gone on
        (Mood, "gladdest", [Mood.GLADDEST]),
        (Mood, "glad", []),
        (Plain, "not yet", [Plain.NOT_YET]),
        (Mood | None, '"gladdest"', [Mood.GLADDEST]),
        (Literal["a", 10, None], "10", []),  # an open number is not shown
        (Literal["a", 10, None], "null", [None]),
        (bool | None, "true", [True]),
        (stencilm.Choice(["red", "blue"]), "blue", ["blue"]),
        (stencilm.Choice([1, 10, 2]), "2", [2]),
        (stencilm.Choice([1, 10, 2]), "1", []),
        (stencilm.Choice([True, "truest"]), "true", []),
        (stencilm.Choice([True, "truest"]), "truest", ["truest"]),
    ],
)
def test_a_part_of_a_choice_is_no_value(tp: Any, text: str, shown: list[Any]) -> None:
    *partial, last = says(text).stream("?", tp)
    assert partial == shown and [type(one) for one in partial] == [type(one) for one in shown]
    assert last == resolve(tp).parse(text)
    assert asyncio.run(_streamed(says(text), tp)) == [*shown, last]


def test_a_choice_is_read_once_in_a_stream() -> None:
    read: list[Any] = []

    class Known(enum.Enum):
        RED = "red"
        BLUE = "blue"

    output = resolve(Known)

    def parse(text: str) -> Any:
        read.append(text)
        return output.parse(text)

    partials = Partials(replace(output, parse=parse))
    assert [partials.feed(piece) for piece in ("r", "e", "d", "")] == [
        MISSING, MISSING, Known.RED, MISSING
    ]  # fmt: skip
    assert partials.whole("red") is Known.RED and read == ["red"]
    assert partials.feed(None) is MISSING and partials.whole("red") is MISSING
    assert partials.feed("blue") is Known.BLUE


def test_text_parts_are_joined_and_pictures_refused() -> None:
    pytest.importorskip("torch")
    from generation.small_models import TEMPLATE, byte_tokenizer, random_llama

    model = stencilm.from_transformers(random_llama(), byte_tokenizer(chat_template=TEMPLATE))
    texts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    whole = model.generate([{"role": "user", "content": "ab"}], stencilm.Regex("[a-z]{3}"))
    parts = model.generate([{"role": "user", "content": texts}], stencilm.Regex("[a-z]{3}"))
    assert whole.text == parts.text
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    with pytest.raises(stencilm.ModelError, match="type 'image_url', but this model reads text"):
        model([{"role": "user", "content": [*texts, picture]}], int)
    for text in ({"type": "text"}, {"type": "text", "text": 5}):
        with pytest.raises(stencilm.ModelError, match="has the str of it as its 'text'"):
            model([{"role": "user", "content": [text]}], int)


def test_beams_give_each_value_once() -> None:
    pytest.importorskip("torch")
    from stencilm.generation.batches import beam_search
    from stencilm.matching.matcher import GrammarMatcher

    model = stencilm.load("tiny")
    choice = stencilm.Choice(["reading", "painting"])
    matcher = GrammarMatcher(model.compile(choice))
    prompt_ids = model.backend.encode("I like ")
    beams = beam_search(model.backend, matcher, prompt_ids, beams=12, max_tokens=8)
    texts = [model.tokenizer_info.decode_str(beam.token_ids) for beam in beams if beam.is_complete]
    assert len(texts) > len(set(texts))  # spelled in several ways
    found = model.beam_search("I like ", choice, beams=12, max_tokens=8)
    assert sorted(value for value, _ in found) == sorted(set(texts))
    logprobs = [logprob for _, logprob in found]
    assert logprobs == sorted(logprobs, reverse=True)
    for value, logprob in found:
        alone = [b.logprob for b, text in zip(beams, texts, strict=False) if text == value]
        assert logprob == pytest.approx(float(np.logaddexp.reduce(alone)))


# Tasks that are cancelled


@pytest.mark.parametrize("sampling", ["masked", "exact"])
def test_a_cancelled_batch_stops_the_model(sampling: Any) -> None:
    passes: list[int] = []
    cancelled = threading.Event()

    def logits_after(tokens: list[int]) -> list[float]:
        passes.append(len(tokens))
        if len(passes) == 3:
            # Else the model might be done before this thread is asked again.
            assert cancelled.wait(60)
        return [0.0] * 257

    model = Model(ByteModel(logits_after))
    letters = stencilm.Regex("[ab]{200}")

    async def main() -> None:
        batch = model.abatch(["x"] * 20, letters, max_tokens=200, sampling=sampling, seed=1)
        task = asyncio.create_task(batch)
        while len(passes) < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        cancelled.set()
        await asyncio.get_running_loop().shutdown_default_executor()

    asyncio.run(main())
    assert len(passes) == 3


# What the code of a type raises


class Unforeseen(Exception):
    pass


raised: dict[str, type[BaseException]] = {"kind": Unforeseen}


def fails(value: Any) -> Any:
    raise raised["kind"]("no such row")


class Checked(BaseModel):
    a: Annotated[Literal[1], AfterValidator(fails)]


class CheckedWhole(BaseModel):
    a: Literal[1]

    @model_validator(mode="after")
    def check(self) -> CheckedWhole:
        fails(self)
        return self


@dataclass
class CheckedLater:
    a: Literal[1]

    def __post_init__(self) -> None:
        fails(self)


async def _streamed(model: Model, tp: Any) -> list[Any]:
    return [part async for part in model.astream("?", tp)]


WAYS: dict[str, Callable[[Model, Any], Any]] = {
    "call": lambda model, tp: model("?", tp),
    "generate": lambda model, tp: model.generate("?", tp),
    "stream": lambda model, tp: list(model.stream("?", tp)),
    "batch": lambda model, tp: model.batch(["?", "??"], tp),
    "samples": lambda model, tp: model.samples("?", tp, n=2),
    "agenerate": lambda model, tp: asyncio.run(model.agenerate("?", tp)),
    "astream": lambda model, tp: asyncio.run(_streamed(model, tp)),
    "beam_search": lambda model, tp: by_value([('{"a": 1}', 0.0)], resolve(tp)),
    "chat": lambda model, tp: model.chat([{"role": "user", "content": "?"}], output_type=tp),
}


@pytest.mark.parametrize("call", WAYS)
@pytest.mark.parametrize("tp", [Checked, CheckedWhole, CheckedLater])
def test_what_the_code_of_a_type_raises_comes_with_the_text(call: str, tp: Any) -> None:
    with pytest.raises(Unforeseen, match="no such row") as caught:
        WAYS[call](says('{"a": 1}'), tp)
    assert str(caught.value) == "no such row"
    assert caught.value.__notes__ == ["the generated text is '{\"a\": 1}'"]


def test_a_stream_tells_the_text_so_far() -> None:
    shown = says('[{"a": 1}, 5]').stream("?", list[Checked | int])
    with pytest.raises(Unforeseen) as caught:
        list(shown)
    assert caught.value.__notes__ == ["the generated text is '[{\"a\": 1}'"]


@pytest.mark.parametrize("call", WAYS)
def test_the_end_of_an_iterator_in_the_code_of_a_type(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(raised, "kind", StopIteration)
    with pytest.raises(RuntimeError, match="the code of Checked raises StopIteration") as caught:
        WAYS[call](says('{"a": 1}'), Checked)
    assert caught.value.__notes__ == ["the generated text is '{\"a\": 1}'"]
    assert isinstance(caught.value.__cause__, StopIteration)


def test_a_cancelled_step_leaves_nothing_in_the_event_loop() -> None:
    """With more texts than threads, most steps have not begun: those never do."""
    model = says("1234567890" * 20)

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        calls = [model.agenerate("?", stencilm.Regex("[0-9]{200}")) for _ in range(8)]
        tasks = [asyncio.create_task(call) for call in calls]
        await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ends)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
