"""Every public class pickled and copied: it is the same again, or one sentence says what to do."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import stencilm
from stencilm import (
    BatchGrammarMatcher,
    CancelToken,
    Choice,
    Ebnf,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    JsonSchema,
    Lark,
    Limits,
    Regex,
    TokenIndex,
    TokenizerInfo,
    ToolCall,
)
from stencilm.endpoints.api_model import ApiModel
from stencilm.endpoints.capabilities import PRESETS

INFO = TokenizerInfo([b"a", b"b", b"ab", None], stop_token_ids=[3])
GRAMMAR = Grammar.from_regex("ab+")
COMPILED = GrammarCompiler(INFO).compile_grammar(GRAMMAR)
MODEL = stencilm.load("tiny")
TOOLS = stencilm.tools("qwen_3", [], reasoning=False)
GENERATION = MODEL.generate("x", Regex("[ab]{2}"), seed=1)


class Connected:
    """A provider whose client holds what is not copied."""

    is_async = False

    def __init__(self) -> None:
        self.client = lambda: None


def raised(call: Callable[[], Any]) -> Exception:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


VALUES: list[Any] = [
    *[INFO, GRAMMAR, TokenIndex.from_grammar(GRAMMAR, INFO), Limits(), stencilm.HOLE],
    *[Regex("a"), JsonSchema({}), JsonSchema(int), Choice(["a"]), Ebnf('root ::= "a"')],
    *[Lark('start: "a"'), stencilm.StructuralTag.from_json({"type": "regex", "pattern": "a"})],
    *[stencilm.SymbolTable({"a": ["b"]}), stencilm.Budget(), stencilm.Prices(prompt=1, output=1)],
    *[stencilm.Capabilities(), TOOLS, TOOLS.parse("hi"), GRAMMAR.report, GENERATION],
    *[GENERATION.trace, GENERATION.stats, ToolCall("a", {"b": 0.1}, "c"), stencilm.VocabType.RAW],
    *GrammarMatcher(COMPILED).candidates(),
    GrammarMatcher(COMPILED).longest_valid_prefix("a"),
    stencilm.guide(lambda prompt: "ab", Regex("ab+"), "x"),
    stencilm.CallDelta(0, "a"),
    stencilm.CallDone(0, ToolCall("a", {}, "c")),
    stencilm.ContentDelta("a"),
    stencilm.ReasoningDelta("a"),
]
ERRORS = [
    raised(lambda: Grammar.from_regex("a(")),
    raised(lambda: Grammar.from_json_schema({"type": "integer", "minimum": 9, "maximum": 3})),
    raised(lambda: Grammar.from_regex(r"(a)\1")),
    raised(lambda: GrammarMatcher(COMPILED).rollback(1)),
    raised(lambda: TokenizerInfo([b"a"], stop_token_ids=[7])),
    raised(lambda: MODEL("x", list[int], max_tokens=3, finish="cut")),
    stencilm.BatchError.of([None], {0: stencilm.MatcherError("no", place="here")}),
    stencilm.EndpointError.of(TimeoutError("late"), "m"),
    stencilm.ModelRefused.of("refusal", "No."),
]
WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_the_same_again(value: Any, way: str) -> None:
    again = WAYS[way](value)
    assert type(again) is type(value)
    assert again == value


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_say_the_same_again(error: Any, way: str) -> None:
    again = WAYS[way](error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert {name: repr(value) for name, value in vars(again).items()} == {
        name: repr(value) for name, value in vars(error).items()
    }


@dataclass(frozen=True)
class Living:
    """What lives in its process: how it is copied, and what is said of pickling it."""

    value: Any
    words: str
    is_copied: bool = True


LIVING = [
    Living(COMPILED, "compile it there"),
    Living(GrammarMatcher(COMPILED), "send the grammar and the accepted tokens"),
    Living(CancelToken(), "make one in the process"),
    Living(COMPILED.prepare(milliseconds=0), "where the masks are used", is_copied=False),
    Living(MODEL, "another process loads it anew", is_copied=False),
    Living(TOOLS.parser(), "make another one", is_copied=False),
    Living(
        ApiModel(Connected(), "m", capabilities=PRESETS["compatible"]),  # type: ignore[arg-type]
        "an ApiModel cannot be pickled.*make one of 'm' in the other process",
    ),
]


@pytest.mark.parametrize("living", LIVING, ids=lambda living: type(living.value).__name__)
def test_what_lives_in_its_process_says_what_to_do(living: Living) -> None:
    with pytest.raises(TypeError, match=living.words):
        pickle.dumps(living.value)
    for way in (copy.copy, copy.deepcopy):
        if living.is_copied:
            assert type(way(living.value)) is type(living.value)
        else:
            with pytest.raises(TypeError, match=living.words):
                way(living.value)


def test_compilers_and_batches_are_made_anew() -> None:
    for value in (GrammarCompiler(INFO), BatchGrammarMatcher(), stencilm.MaskPatches(2)):
        for way in WAYS.values():
            assert type(way(value)) is type(value)


def test_a_copied_model_asks_the_same_client() -> None:
    model = LIVING[-1].value
    for way in (copy.copy, copy.deepcopy):
        again = way(model)
        assert again._provider is model._provider
        assert again._refused is not model._refused
        again.model = "other"
        assert model.model == "m"
