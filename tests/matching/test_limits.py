"""What a limit does when it is reached, and that it spoils nothing."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stencilm
from stencilm import (
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    LimitExceeded,
    Limits,
    TokenizerInfo,
)
from stencilm.limits import BOUNDS

INFO = TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
LONG = {"type": "integer", "description": "é" * 600_000}
TWO_PATTERNS = {"type": "string", "allOf": [{"pattern": "a.*b.*c"}, {"pattern": "c.*d.*e"}]}


def compiler(**limits: Any) -> GrammarCompiler:
    return GrammarCompiler(INFO, limits=Limits(**limits))


def masks(compiled: CompiledGrammar, text: str) -> list[bytes]:
    """The masks before every character of a text, and after it."""
    matcher = GrammarMatcher(compiled)
    mask = np.zeros((1, (INFO.vocab_size + 31) // 32), dtype=np.int32)
    found = []
    for character in [*text, ""]:
        matcher.fill_next_token_bitmask(mask)
        found.append(mask.tobytes())
        assert matcher.accept_string(character)
    return found


CASES: dict[str, tuple[dict[str, int], Callable[[GrammarCompiler], Any]]] = {
    "a long schema": ({"schema_bytes": 10}, lambda made: made.compile_json_schema(LONG)),
    "a long pattern": ({"schema_bytes": 3}, lambda made: made.compile_regex("éé")),
    "a long EBNF text": ({"schema_bytes": 10}, lambda made: made.compile_grammar('root ::= "a"')),
    "a large schema": (
        {"grammar_expressions": 3},
        lambda made: made.compile_json_schema({"enum": ["one", "two", "three"]}),
    ),
    "a large pattern": ({"grammar_expressions": 3}, lambda made: made.compile_regex("abcdefgh")),
    "a large grammar": (
        {"grammar_expressions": 3},
        lambda made: made.compile(Grammar.from_regex("abcdefgh")),
    ),
    "a mask that derives much": (
        {"derived_expressions": 5},
        lambda made: masks(made.compile_regex("(abcdefgh|[a-d]{3,90}x)*"), "abcdefgh"),
    ),
    "a long search": (
        {"search_steps": 1},
        lambda made: masks(made.compile_json_schema(TWO_PATTERNS), '"'),
    ),
    "a large automaton": (
        {"automaton_states": 40},
        lambda made: masks(made.compile_regex("(x{200}y)*"), "x" * 100),
    ),
    "a mask that fills the memory": (
        {"working_bytes": 20_000},
        lambda made: masks(made.compile_regex(".*[abc].{24}"), "abc"),
    ),
    "large stacks": (
        {"stack_bytes": 20_000},
        lambda made: masks(made.compile_builtin_json_grammar(), "[" * 2_000),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_limit_is_named_with_its_value(case: str) -> None:
    limits, work = CASES[case]
    [(name, value)] = limits.items()
    with pytest.raises(LimitExceeded, match=f"{value}.* raise `{name}` of the limits"):
        work(compiler(**limits))
    # Others of the same tokenizer have limits of their own.
    if case != "a long schema":
        work(compiler())


def test_a_limit_may_be_raised() -> None:
    with pytest.raises(LimitExceeded, match=r"at most 1048576 are accepted.*`schema_bytes`"):
        compiler().compile_json_schema(LONG)
    compiled = compiler(schema_bytes=2 << 20).compile_json_schema(LONG)
    assert GrammarMatcher(compiled).accept_string("17")


@pytest.mark.parametrize("made", [Grammar.from_ebnf, Grammar.from_lark, Grammar.from_regex])
def test_a_text_that_no_limit_lets_in_is_not_told_to_raise_one(made: Any) -> None:
    text = 'root ::= "' + "a" * (1 << 20) + '"'
    with pytest.raises(LimitExceeded, match=r"at most 1048576 are accepted; split it$"):
        made(text)
    with pytest.raises(LimitExceeded, match=r"at most 10 are accepted; split it, or raise"):
        compiler(schema_bytes=10).compile_grammar(text)


def test_a_matcher_that_was_full_goes_on_where_it_is_rolled_back_to() -> None:
    compiled = compiler(stack_bytes=20_000).compile_grammar('root ::= "(" root ")" | ""')
    matcher, read = GrammarMatcher(compiled), 0
    with pytest.raises(LimitExceeded, match="stack_bytes"):
        while matcher.accept_string("("):
            read += 1
    assert read > 100
    # What it gave up does not count.
    matcher.rollback(3 * read // 4)
    for _ in range(read - 3 * read // 4):
        assert matcher.accept_string(")")
    assert matcher.is_completed()


def test_what_only_bounds_what_is_kept_changes_no_mask() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}}}
    text = '{"a": "xyz", "b": [1, {"c": null}]}'
    expected = masks(compiler().compile_json_schema(schema), text)
    for limits in ({"lexicon_bytes": 0}, {"mask_cache_bytes": 0}):
        made = compiler(**limits)
        compiled = made.compile_json_schema(schema)
        assert masks(compiled, text) == masks(compiled, text) == expected
        made.clear_cache()
        assert masks(made.compile_json_schema(schema), text) == expected


def test_the_cache_of_masks_is_bounded() -> None:
    grammar = Grammar.from_regex("([a-z]{1,30} ){40}")
    text = "some words of many lengths and more of them " * 4
    small, large = compiler(mask_cache_bytes=1), compiler()
    sizes = []
    for made in (small, large):
        compiled = made.compile(grammar)
        masks(compiled, text[:150])
        sizes.append(compiled.memory_size_bytes)
    assert sizes[0] < sizes[1]


def test_a_grammar_that_failed_leaves_its_matchers_to_come_as_they_were() -> None:
    compiled = compiler(automaton_states=40).compile_regex("x{0,200}|y")
    for _ in range(3):
        matcher = GrammarMatcher(compiled)
        with pytest.raises(LimitExceeded):
            matcher.accept_string("x" * 150)
        assert GrammarMatcher(compiled).accept_string("y")


def test_read_again_with_limits() -> None:
    text = compiler().compile_regex("abcdefgh").serialize_json()
    assert CompiledGrammar.deserialize_json(text, INFO).serialize_json() == text
    with pytest.raises(LimitExceeded, match="`grammar_expressions`"):
        CompiledGrammar.deserialize_json(text, INFO, limits=Limits(grammar_expressions=3))


def test_limits_are_values() -> None:
    assert Limits() == Limits(schema_bytes=1 << 20) != Limits(schema_bytes=5)
    assert compiler(search_steps=7).limits == dataclasses.replace(Limits(), search_steps=7)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Limits().schema_bytes = 5  # type: ignore[misc]
    given = Limits(milliseconds=9)
    assert pickle.loads(pickle.dumps(given)) == copy.deepcopy(given) == given
    assert dataclasses.asdict(given) | {"milliseconds": 5_000} == dataclasses.asdict(Limits())


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize(
    ("value", "error"),
    [
        (-1, ValueError),
        (2**60, ValueError),
        (2**9_000, ValueError),
        (-(2**9_000), ValueError),
        (1.5, TypeError),
        (True, TypeError),
        (None, TypeError),
        ("x" * 1_000, TypeError),
        (float("nan"), TypeError),
    ],
)
def test_absurd_limits_are_refused_by_name(name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"{name} is .*must be") as caught:
        Limits(**{name: value})
    assert len(str(caught.value)) < 200


def test_the_greatest_limits_are_taken() -> None:
    greatest = Limits(
        schema_bytes=2**30,
        grammar_expressions=2**31,
        derived_expressions=2**31,
        search_steps=2**31,
        automaton_states=2**30 - 1,
        working_bytes=2**48,
        stack_bytes=2**48,
        lexicon_bytes=2**48,
        mask_cache_bytes=2**48,
        milliseconds=2**31,
    )
    compiled = GrammarCompiler(INFO, limits=greatest).compile_json_schema({"type": "integer"})
    assert GrammarMatcher(compiled).accept_string("12")


@pytest.mark.parametrize("value", [None, 5, {"schema_bytes": 5}, Limits])
def test_what_is_no_limits_is_named(value: Any) -> None:
    with pytest.raises(TypeError, match=r"limits is a .*but must be Limits"):
        GrammarCompiler(INFO, limits=value)
    with pytest.raises(TypeError, match=r"limits is a .*but must be Limits"):
        CompiledGrammar.deserialize_json("", INFO, limits=value)


MANY = [f"w{number}" for number in range(200)]
ANY_OF_MANY = '"' + '" | "'.join(MANY) + '"'
TAG = {"type": "sequence", "elements": [{"type": "const_string", "value": name} for name in MANY]}
SCHEMA = {"anyOf": [{"type": "object", "properties": {name: True}} for name in MANY]}
NOTATIONS: dict[str, Callable[[GrammarCompiler], Any]] = {
    "regex": lambda made: made.compile_regex("|".join(MANY)),
    "EBNF": lambda made: made.compile_grammar(f"root ::= {ANY_OF_MANY}"),
    "Lark": lambda made: made.compile_lark(f"start: {ANY_OF_MANY}"),
    "a pattern in Lark": lambda made: made.compile_lark(f"start: /{'|'.join(MANY)}/"),
    "a named grammar in Lark": lambda made: made.compile_lark(
        "start: @name", grammars={"name": f"start: {ANY_OF_MANY}"}
    ),
    "a structural tag": lambda made: made.compile_structural_tag(TAG),
    "a schema in a structural tag": lambda made: made.compile_structural_tag(
        {"type": "json_schema", "json_schema": SCHEMA}
    ),
}


@pytest.mark.parametrize("notation", NOTATIONS)
def test_reading_any_notation_ends_in_time(notation: str) -> None:
    with pytest.raises(LimitExceeded, match=r"more than 0 ms.*`milliseconds`"):
        NOTATIONS[notation](compiler(milliseconds=0))
    NOTATIONS[notation](compiler())


@pytest.mark.parametrize(
    "made",
    [
        lambda limits: Grammar.from_json_schema(LONG, limits=limits),
        lambda limits: Grammar.from_type(stencilm.JsonSchema(LONG), limits=limits),
        lambda limits: Grammar.from_type(stencilm.JsonSchema(LONG, limits=limits)),
        lambda limits: stencilm.TokenIndex.from_grammar(
            Grammar.from_json_schema(LONG, limits=limits), INFO, limits=limits
        ),
    ],
)
def test_every_way_to_a_grammar_takes_limits(made: Any) -> None:
    with pytest.raises(LimitExceeded, match="raise `schema_bytes` of the limits"):
        made(Limits())
    assert made(Limits(schema_bytes=2 << 20))


MAKERS: dict[str, Callable[..., Grammar]] = {
    "regex": lambda **limits: Grammar.from_regex("abcdef", **limits),
    "ebnf": lambda **limits: Grammar.from_ebnf('root ::= "abcdef"', **limits),
    "lark": lambda **limits: Grammar.from_lark('start: "abcdef"', **limits),
    "structural tag": lambda **limits: Grammar.from_structural_tag(
        {"format": {"type": "const_string", "value": "abcdef"}}, **limits
    ),
    "type": lambda **limits: Grammar.from_type(stencilm.Choice(["abcdef"]), **limits),
    "output type": lambda **limits: Grammar.from_type(stencilm.Regex("abcdef", **limits)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_every_notation_takes_limits(name: str) -> None:
    # A tag, which has the schemas of many tools, may be eight times as long.
    most = 8 * 3 if name == "structural tag" else 3
    with pytest.raises(LimitExceeded, match=f"at most {most} are"):
        MAKERS[name](limits=Limits(schema_bytes=3))
    with pytest.raises(TypeError, match="must be Limits"):
        MAKERS[name](limits={"schema_bytes": 3})
    assert MAKERS[name]() == MAKERS[name](limits=Limits(schema_bytes=5000))


def test_a_grammar_keeps_its_limits() -> None:
    wide, other = Limits(schema_bytes=2 << 20), Limits(search_steps=7)
    grammar = Grammar.from_json_schema(LONG, limits=wide)
    again = pickle.loads(pickle.dumps(grammar))
    assert again == grammar and again.limits == wide
    joined = grammar + Grammar.from_regex("a", limits=other)
    assert joined.limits == wide
    assert pickle.loads(pickle.dumps(joined)) == joined


def test_models_take_limits() -> None:
    pytest.importorskip("transformers")
    model = stencilm.load("tiny", limits=Limits(schema_bytes=10))
    assert model("yes or no? ", stencilm.Regex("yes|no")) in ("yes", "no")
    long = stencilm.Regex("yes, please|no")
    with pytest.raises(LimitExceeded, match="raise `schema_bytes` of the limits"):
        model("x", long)
    wide = Limits(schema_bytes=100)
    text = model("x", long, limits=wide)
    assert model.generate("x", long, limits=wide).value == text
    assert list(model.stream("x", long, limits=wide))[-1] == text
    assert model.batch(["x"], long, limits=wide) == [text]
    assert model("x", stencilm.Regex(long.pattern, limits=wide)) == text
    assert model("x", Grammar.from_regex(long.pattern, limits=wide)) == text
    with pytest.raises(LimitExceeded):
        model("x", long)
    with pytest.raises(TypeError, match="must be Limits"):
        model("x", long, limits=5)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="must be Limits"):
        stencilm.load("tiny", limits=5)  # type: ignore[arg-type]
    for number in range(6):  # few compilers are kept, the model's own always
        model("x", long, limits=Limits(schema_bytes=100 + number))
    with pytest.raises(LimitExceeded):
        model("x", stencilm.Regex("x" * 20))
