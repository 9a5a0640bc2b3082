"""Rows in and out of one worker, without a cluster."""

from __future__ import annotations

import datetime
import json
import re
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    PlainSerializer,
    WrapSerializer,
    computed_field,
    create_model,
    model_serializer,
)

import stencilm

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'stencilm[ray]'")

import stencilm.ray  # noqa: E402
from engines.ray.job import ByteModel, Person, byte_model  # noqa: E402
from stencilm.grammars.grammar import Grammar  # noqa: E402
from stencilm.grammars.outputs import resolve  # noqa: E402
from stencilm.integrations.ray.arrow_types import arrow_type  # noqa: E402
from stencilm.integrations.ray.engines import VllmEngine, _constraint  # noqa: E402
from stencilm.integrations.ray.rows import columns_of  # noqa: E402


def answered(rows: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    """What one worker makes of a batch of rows."""
    options = {"model": byte_model, "prompt": "{text}", "max_tokens": 200, **options}
    worker = stencilm.ray.Generate(**options)()
    found: list[dict[str, Any]] = worker(pa.Table.from_pylist(rows)).to_pylist()
    return found


class Node(BaseModel):
    children: list[Node] = Field(max_length=1)


class Halved(BaseModel):
    x: Annotated[int, PlainSerializer(lambda value: value * 0.5)]


class Numbered(BaseModel):
    x: Annotated[int, PlainSerializer(lambda value: f"#{value}", return_type=str)]


class Whole(BaseModel):
    x: int

    @model_serializer
    def written(self):  # type: ignore[no-untyped-def]  # which is the point
        return {"y": "a", "z": self.x}


class Wrapped(BaseModel):
    x: Annotated[int, WrapSerializer(lambda value, write: [write(value)])]


@pytest.mark.parametrize(
    ("output_type", "expected"),
    [
        (Halved, None),
        (Numbered, "struct<x: string>"),
        (Whole, None),
        (Wrapped, None),
        (list[Halved], None),
        (str, "string"),
        (int, "int64"),
        (bool, "bool"),
        (float, "double"),
        (Literal["yes", "no"], "string"),
        (Literal[1, 2], "int64"),
        (stencilm.Regex("a+"), "string"),
        (stencilm.Choice(["a", "b"]), "string"),
        (stencilm.Choice([1, 2.5]), "double"),
        (stencilm.Choice([1, "a"]), None),
        (list[int], "list<item: int64>"),
        (tuple[int, int], "list<item: int64>"),
        (tuple[int, str], None),
        (int | None, "int64"),
        (int | str, None),
        (dict[str, int], None),
        (datetime.date, "string"),
        (Person, "struct<name: string, age: int64, tags: list<item: string>>"),
        (Node, None),
        (stencilm.JsonSchema({"type": "object", "properties": {"a": {}}}), None),
        (stencilm.JsonSchema({"type": ["integer", "null"]}), "int64"),
        (stencilm.JsonSchema(True), None),
    ],
    ids=str,
)
def test_the_type_of_a_column_follows_from_the_output_type(
    output_type: Any, expected: str | None
) -> None:
    found = arrow_type(output_type, resolve(output_type))
    assert (None if found is None else str(found)) == expected


def test_a_row_comes_back_typed() -> None:
    (row,) = answered([{"text": "A person: "}], output_type=Person)
    assert row["text"] == "A person: "
    assert Person.model_validate_json(row["output_text"]).model_dump() == row["output"]
    assert row["output_error"] is None
    assert row["output_stats"]["prompt_tokens"] == len("A person: ")
    assert row["output_stats"]["tokens"] == len(row["output_text"].encode())


@pytest.mark.parametrize(
    "output_type",
    [
        stencilm.Ebnf('root ::= "(" [0-9]{2} ")"'),
        stencilm.Lark('start: "(" /[0-9]{2}/ ")"'),
        stencilm.StructuralTag.from_json(
            {
                "type": "tag",
                "begin": "(",
                "content": {"type": "regex", "pattern": "[0-9]{2}"},
                "end": ")",
            }
        ),
    ],
    ids=lambda output_type: type(output_type).__name__,
)
def test_every_notation(output_type: Any) -> None:
    (row,) = answered([{"text": "x"}], output_type=output_type)
    assert re.fullmatch(r"\(\d\d\)", row["output"])


@pytest.mark.parametrize("output_type", [Halved, Whole, Wrapped])
def test_what_a_serializer_without_a_type_writes_is_not_lost(output_type: Any) -> None:
    (row,) = answered([{"text": "x"}], output_type=output_type)
    value = output_type.model_validate_json(row["output_text"])
    assert json.loads(row["output"]) == json.loads(value.model_dump_json())


def test_values_without_a_type_come_as_json_text() -> None:
    (row,) = answered(
        [{"text": "x"}], output_type=stencilm.JsonSchema({"enum": [[1, "a"], {"b": None}]})
    )
    assert json.loads(row["output"]) in ([1, "a"], {"b": None})


def test_a_row_that_fails_is_a_row_with_its_error() -> None:
    def prompt(row: dict[str, Any]) -> Any:
        if row["text"] == "raise":
            raise RuntimeError("no prompt\nfor this row")
        return {"number": 5, "long": "x" * 5000}.get(row["text"], row["text"])

    rows = [{"text": text} for text in ("fine", "raise", "number", "long", "fine too")]
    found = answered(rows, output_type=Literal["yes", "no"], prompt=prompt, column="reply")
    errors = [row["reply_error"] for row in found]
    assert errors[0] is None and errors[4] is None
    assert errors[1] == "RuntimeError: no prompt for this row"
    assert errors[2] is not None and errors[2].startswith("TypeError: the prompt is 5")
    assert errors[3] is not None
    assert [row["reply"] is None for row in found] == [False, True, True, True, False]


def test_a_cut_text_is_an_error_of_its_row_and_says_what_was_written() -> None:
    (row,) = answered([{"text": "x"}], output_type=stencilm.Regex("[a-z]{50}"), max_tokens=5)
    assert row["output"] is None
    assert len(row["output_text"]) == 5
    assert row["output_error"].startswith("IncompleteOutput: max_tokens=5 cut the text")
    rows = answered([{"text": "x"}] * 2, output_type=stencilm.Regex("[a-z]{50}"), max_tokens=5)
    for row in rows:
        assert row["output"] is None and len(row["output_text"]) == 5
        assert row["output_error"].startswith("IncompleteOutput: max_tokens=5 cut the text")


@pytest.mark.parametrize("options", [{}, {"seed": 3, "temperature": 1.0}])
def test_a_row_is_the_same_alone_and_in_a_batch(options: dict[str, Any]) -> None:
    """Texts of a batch were cut where one alone was whole within `max_tokens`."""
    rows = [{"text": text} for text in ("Words: ", "List: ", "More: ")]
    given = {"output_type": list[str], "max_tokens": 8, "model": "tiny", **options}
    found = answered(rows, **given)
    told = ("output", "output_text", "output_error")
    for row, together in zip(rows, found, strict=True):
        (alone,) = answered([row], **given)
        assert [alone[name] for name in told] == [together[name] for name in told]
    assert all(row["output"] for row in found)


@pytest.mark.parametrize(
    ("finish_reason", "said"),
    [
        ("stop", None),
        ("length", "max_tokens or the model's context cut the text"),
        *((one, f"vLLM ended the text of .* by '{one}'") for one in ("error", "abort")),
    ],
)
def test_what_vllm_has_not_ended_is_no_value(finish_reason: str, said: str | None) -> None:
    """Of a text that failed, what there was of it was taken for a value: 123 of 12345."""
    completion = SimpleNamespace(text="123", token_ids=[1, 2], finish_reason=finish_reason)
    engine = object.__new__(VllmEngine)
    engine._output = resolve(int)
    answer = engine._read(SimpleNamespace(outputs=[completion], prompt_token_ids=[1]))
    assert (answer.error is None) is (said is None)
    assert said is None or re.search(said, str(answer.error))
    # Each beginning of a `str` is one, but not where the request failed.
    engine._output = resolve(str)
    free = engine._read(SimpleNamespace(outputs=[completion], prompt_token_ids=[1]))
    assert (free.error is None) is (finish_reason in ("stop", "length"))


def test_lark_that_vllm_would_take_for_ebnf_is_printed() -> None:
    grammar = Grammar.from_lark('start: "::=" /[a-z]+/')
    given = _constraint(grammar)["grammar"]
    assert str(Grammar.from_ebnf(given)) == str(grammar)


def test_a_number_that_its_column_cannot_hold_is_an_error_of_its_row() -> None:
    (row,) = answered(
        [{"text": "x"}], output_type=stencilm.JsonSchema({"const": 10**30, "type": "integer"})
    )
    assert row["output"] is None
    assert row["output_text"] == str(10**30)
    assert row["output_error"].startswith("OverflowError")


def test_a_model_that_fails_for_one_prompt_fails_for_no_other() -> None:
    class Weak(ByteModel):
        runs_batches = True  # so that all fail together at first

        def start(self, prompt_ids: Any) -> Any:
            if bytes(prompt_ids) == b"bad":
                raise MemoryError
            return super().start(prompt_ids)

        def start_batch(self, prompts: Any) -> Any:
            raise MemoryError

    rows = [{"text": text} for text in ("good", "bad", "good as well")]
    found = answered(rows, model=lambda: stencilm.Model(Weak(0)), output_type=bool)
    assert [row["output_error"] for row in found] == [None, "MemoryError", None]


class Endpoint:
    """What answers as a model behind an API does: one prompt at a time."""

    def generate(self, prompt: Any, output_type: Any, **options: Any) -> Any:
        if prompt == "down":
            raise stencilm.EndpointError("the endpoint gave no answer")
        assert output_type is int and options == {"max_tokens": 200}  # and nothing unasked
        stats = SimpleNamespace(prompt_tokens=3, tokens=1, forced_tokens=0)
        return SimpleNamespace(text="7", error=None, stats=stats)


def test_a_model_behind_an_api() -> None:
    found = answered([{"text": "up"}, {"text": "down"}], model=Endpoint, output_type=int)
    assert found[0]["output"] == 7 and found[0]["output_stats"]["prompt_tokens"] == 3
    assert found[1]["output_error"] == "EndpointError: the endpoint gave no answer"


def test_finished_rows_are_not_done_again(tmp_path: Path) -> None:
    rows = [{"id": number, "text": f"number {number}"} for number in range(6)]
    options: dict[str, Any] = {"output_type": int, "key": "id", "resume": tmp_path}
    first = answered(rows[:3], **options)
    again = answered(rows, **options)
    assert [row["output_stats"]["resumed"] for row in again] == [True] * 3 + [False] * 3
    assert [row["output"] for row in again[:3]] == [row["output"] for row in first]
    # Another prompt, another option and another type are other work.
    changed = [{**row, "text": "changed"} for row in rows]
    for other in (
        answered(changed, **options),
        answered(rows, **options, temperature=0.5, seed=1),
        answered(rows, **{**options, "output_type": bool}),
    ):
        assert not any(row["output_stats"]["resumed"] for row in other)


def test_a_folder_may_be_named_by_its_uri(tmp_path: Path) -> None:
    rows = [{"id": 1, "text": "x"}]
    options: dict[str, Any] = {"output_type": int, "key": "id"}
    answered(rows, **options, resume=tmp_path)
    (row,) = answered(rows, **options, resume=tmp_path.as_uri())
    assert row["output_stats"]["resumed"]


def test_failed_rows_are_tried_again(tmp_path: Path) -> None:
    rows = [{"id": 1, "text": "x"}]
    options: dict[str, Any] = {
        "output_type": stencilm.Regex("[a-z]{50}"),
        "max_tokens": 5,
        "key": "id",
        "resume": tmp_path,
    }
    for _ in range(2):
        (row,) = answered(rows, **options)
        assert row["output_error"] and not row["output_stats"]["resumed"]


def test_what_a_validator_refuses_is_tried_again(tmp_path: Path) -> None:
    def refuse(value: int) -> int:
        raise ValueError("not this one")

    rows = [{"id": 1, "text": "x"}, {"id": 2, "text": "y"}]
    kind = Annotated[int, AfterValidator(refuse), Field(ge=0, le=9)]
    for _ in range(2):
        found = answered(rows, output_type=kind, key="id", resume=tmp_path)
        for row in found:
            assert row["output"] is None and row["output_text"].isdigit()
            assert "not this one" in row["output_error"]
            assert not row["output_stats"]["resumed"]


def test_a_damaged_line_is_a_row_that_is_done_again(tmp_path: Path) -> None:
    rows = [{"id": number, "text": "x"} for number in range(2)]
    options: dict[str, Any] = {"output_type": int, "key": "id", "resume": tmp_path}
    answered(rows, **options)
    (path,) = tmp_path.iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0][:20] + b"\n" + lines[1])
    found = answered(rows, **options)
    assert [row["output_stats"]["resumed"] for row in found] == [False, True]


def test_a_seed_and_a_key_decide_a_text_whatever_batch_it_is_in() -> None:
    rows = [{"id": number, "text": "the same"} for number in range(4)]
    options: dict[str, Any] = {
        "output_type": stencilm.Regex("[a-z]{20}"),
        "key": "id",
        "temperature": 1.0,
        "seed": 3,
    }
    together = [row["output"] for row in answered(rows, **options)]
    alone = [answered([row], **options)[0]["output"] for row in rows]
    assert together == alone
    assert len(set(together)) == 4


@pytest.mark.parametrize("damage", [r'"text": "[^"]*"', r'"prompt_tokens": \d+', r'"error": null'])
def test_a_field_of_another_type_is_a_row_that_is_done_again(tmp_path: Path, damage: str) -> None:
    rows = [{"id": 1, "text": "x"}]
    options: dict[str, Any] = {"output_type": stencilm.Regex("[a-z]{3}"), "key": "id"}
    answered(rows, **options, resume=tmp_path)
    (file,) = tmp_path.iterdir()
    name = damage.partition(":")[0]
    changed = re.sub(damage, f"{name}: []", file.read_text(encoding="utf-8"))
    assert changed != file.read_text(encoding="utf-8")
    file.write_text(changed, encoding="utf-8")
    (row,) = answered(rows, **options, resume=tmp_path)
    assert row["output_error"] is None and not row["output_stats"]["resumed"]


@pytest.mark.parametrize("form", ["numpy", "pandas"])
def test_batches_may_have_any_form(form: str) -> None:
    pytest.importorskip("ray.data")
    import numpy as np
    import pandas as pd

    columns = {"text": np.array(["a", "b"]), "vector": np.zeros((2, 3))}
    batch = columns if form == "numpy" else pd.DataFrame({"text": ["a", "b"]})
    worker = stencilm.ray.Generate(model=byte_model, output_type=bool, prompt="{text}")()
    found = worker(batch)
    assert found.num_rows == 2
    assert found.column("output").type == pa.bool_()


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"prompt": 3}, TypeError, "prompt is 3"),
        ({"prompt": "{"}, ValueError, "no format string"),
        ({"prompt": "{}"}, ValueError, "named by their columns"),
        ({"prompt": "{a:{}}"}, ValueError, "named by their columns"),
        ({"prompt": "{a!z}"}, ValueError, "no format string: .* not by !z"),
        ({"resume": "folder"}, ValueError, "resume needs key="),
        ({"resume": 5, "key": "id"}, TypeError, "resume is 5, but must be a folder"),
        ({"key": 5}, TypeError, "key is 5, but must be the name of a column"),
        ({"model_options": 5}, TypeError, "model_options is 5, but must be a dict"),
        ({"engine": "fast"}, ValueError, "'stencilm' or 'vllm'"),
        ({"model": None}, TypeError, "model is None"),
        ({"column": ""}, ValueError, "name of a column"),
        ({"max_tokens": 0}, ValueError, "max_tokens is 0"),
        ({"temperature": -1}, ValueError, "temperature"),
        ({"output_type": "a+"}, stencilm.UnsupportedFeature, "wrap it in Regex"),
    ],
)
def test_a_wrong_option_is_named_before_the_job_begins(
    options: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        stencilm.ray.Generate(**{"model": "tiny", "prompt": "{text}", **options})


def test_a_column_that_is_there_already_is_named() -> None:
    with pytest.raises(ValueError, match="already has the column 'output'"):
        answered([{"text": "x", "output": 1}], output_type=bool)


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("{a} {b!r:>5} {c[0]} {d.real} {{e}}", {"a", "b", "c", "d"}),
        ("{a:>{b}.{c}}", {"a", "b", "c"}),
        ("no column", set()),
        (str, None),
    ],
)
def test_the_columns_of_a_prompt(prompt: Any, expected: Any) -> None:
    assert columns_of(prompt) == expected


def test_a_prompt_without_columns_has_all_rows() -> None:
    found = answered([{"text": "a"}, {"text": "b"}], output_type=bool, prompt="Yes? ")
    assert [row["text"] for row in found] == ["a", "b"]
    assert all(row["output_error"] is None for row in found)


def test_the_prompt_names_a_column_that_is_missing() -> None:
    (row,) = answered([{"name": "x"}], output_type=bool)
    assert "the prompt names the column 'text', but the row has 'name'" in row["output_error"]
    (row,) = answered([{"name": {"first": "x"}}], output_type=bool, prompt="{name[last]}")
    assert "the prompt names 'last' within a column that lacks it" in row["output_error"]


def test_the_format_of_a_field_may_name_columns() -> None:
    rows = [{"text": "abc", "width": 5, "other": 1}]
    (row,) = answered(rows, output_type=bool, prompt="{text:.{width}}")
    assert row["output_error"] is None


@pytest.mark.parametrize(
    ("output_type", "name"),
    [
        (Person, "json"),
        (stencilm.JsonSchema({"type": "integer"}), "json"),
        (stencilm.JsonSchema({"type": "integer"}, any_whitespace=False), "grammar"),
        (stencilm.Regex("a+"), "regex"),
        (stencilm.Ebnf('root ::= "a"'), "grammar"),
        (stencilm.Lark('start: "a"'), "grammar"),
        (stencilm.Grammar.from_regex("a") | stencilm.Grammar.from_regex("b"), "grammar"),
    ],
    ids=repr,
)
def test_vllm_is_told_the_whole_grammar(output_type: Any, name: str) -> None:
    constraint = _constraint(resolve(output_type).grammar())
    assert list(constraint) == [name]


class Named(BaseModel):
    """Read and written under other names than its fields have, and with a field that is made."""

    user_name: str = Field(alias="userName", max_length=3)
    size: int = Field(validation_alias="sizeIn", serialization_alias="sizeOut", ge=0, le=9)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def twice(self) -> int:
        return 2 * self.size


@pytest.mark.parametrize("output_type", [Named, stencilm.JsonSchema(Named), list[Named]], ids=str)
def test_a_value_is_in_its_column_under_the_names_that_it_is_written_by(output_type: Any) -> None:
    """Under others Arrow took each field for missing, and wrote null."""
    if output_type == list[Named]:
        output_type = Annotated[list[Named], Field(min_length=1, max_length=1)]
    (row,) = answered([{"text": "x"}], output_type=output_type)
    text, found = json.loads(row["output_text"]), row["output"]
    if isinstance(text, list):
        (text,), (found,) = text, found
    size = text["sizeIn"]
    assert found == {"userName": text["userName"], "sizeOut": size, "twice": 2 * size}


def test_json_text_has_the_numbers_that_were_written() -> None:
    far = stencilm.JsonSchema('{"enum": [[1e400, "é"]]}')
    (row,) = answered([{"text": "x"}], output_type=far, max_tokens=500)
    assert json.loads(row["output"], parse_int=Decimal, parse_float=Decimal) == [
        Decimal("1e400"),
        "é",
    ]


def test_a_type_within_another_that_has_changed_is_other_work(tmp_path: Path) -> None:
    def kind(most: int) -> Any:
        return list[create_model("Inner", n=(int, Field(ge=0, le=most)))]  # type: ignore[misc]

    rows = [{"id": 1, "text": "x"}]
    for most, is_known in ((3, False), (3, True), (5, False)):
        (row,) = answered(rows, output_type=kind(most), key="id", resume=tmp_path)
        assert row["output_stats"]["resumed"] is is_known


def test_a_validator_does_not_hide_finished_rows(tmp_path: Path) -> None:
    """The text of a type with a function in it has the function's address."""
    rows = [{"id": 1, "text": "x"}]
    for is_known in (False, True):
        kind = Annotated[int, AfterValidator(lambda value: value)]
        (row,) = answered(rows, output_type=kind, key="id", resume=tmp_path)
        assert row["output_stats"]["resumed"] is is_known


def test_what_a_new_validator_refuses_is_written_again(tmp_path: Path) -> None:
    def refuse(value: int) -> int:
        raise ValueError("no more")

    rows = [{"id": 1, "text": "x"}]
    answered(rows, output_type=int, key="id", resume=tmp_path)
    refused = Annotated[int, AfterValidator(refuse)]
    (row,) = answered(rows, output_type=refused, key="id", resume=tmp_path)
    assert "no more" in row["output_error"] and not row["output_stats"]["resumed"]


def test_a_function_with_other_arguments_is_another_model(tmp_path: Path) -> None:
    rows = [{"id": 1, "text": "x"}]
    for number, is_known in ((1, False), (1, True), (2, False)):
        (row,) = answered(
            rows,
            model=partial(numbered_model, number),
            output_type=int,
            key="id",
            resume=tmp_path,
        )
        assert row["output_stats"]["resumed"] is is_known


def numbered_model(number: int) -> Any:
    return byte_model()


class Maker:
    def __call__(self) -> Any:
        return byte_model()

    def made(self) -> Any:
        return byte_model()

    @classmethod
    def of_class(cls) -> Any:
        return byte_model()


class OtherMaker(Maker):
    pass


def _within(number: int) -> Any:
    def made() -> Any:
        return numbered_model(number)

    return made


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: byte_model(), "in a lambda: give a function of its own"),
        (partial(lambda number: byte_model(), 1), "in a lambda"),
        (_within(1), "made, which takes values from around it"),
        (Maker(), "in an object of Maker"),
        (Maker().made, r"in Maker\.made, a method of an object"),
    ],
    ids=str,
)
def test_a_function_that_its_name_does_not_tell_from_others_is_refused(
    tmp_path: Path, model: Any, words: str
) -> None:
    rows = [{"id": 1, "text": "x"}]
    with pytest.raises(ValueError, match=words):
        answered(rows, model=model, output_type=int, key="id", resume=tmp_path)
    answered(rows, model=model, output_type=int)


def test_class_methods_are_known_with_their_class(tmp_path: Path) -> None:
    rows = [{"id": 1, "text": "x"}]
    makers = ((Maker, False), (Maker, True), (OtherMaker, False))
    for maker, is_known in makers:
        (row,) = answered(rows, model=maker.of_class, output_type=int, key="id", resume=tmp_path)
        assert row["output_stats"]["resumed"] is is_known


@pytest.mark.parametrize("line", [b'{"digest": []}\n', b'{"digest": "%b", "more": 1}\n', b"5\n"])
def test_a_line_of_another_form_is_a_row_that_is_done_again(tmp_path: Path, line: bytes) -> None:
    rows = [{"id": 1, "text": "x"}]
    options: dict[str, Any] = {"output_type": int, "key": "id", "resume": tmp_path}
    answered(rows, **options)
    (path,) = tmp_path.iterdir()
    digest = json.loads(path.read_bytes())["digest"].encode()
    path.write_bytes(line.replace(b"%b", digest))
    (row,) = answered(rows, **options)
    assert row["output_error"] is None and not row["output_stats"]["resumed"]
