"""Other objects in the place of models, clients, paths and lists: each is named with what it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stencilm

MODEL = stencilm.load("tiny")
WRONG: list[Any] = [None, 5, object()]


def of_transformers(value: Any) -> Any:
    pytest.importorskip("transformers")
    return stencilm.from_transformers(value, value)


def with_tokenizer(value: Any) -> Any:
    pytest.importorskip("transformers")
    from generation.small_models import random_llama

    return stencilm.from_transformers(random_llama(), value)


def of_client(library: str) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        pytest.importorskip(library)
        # None is a client of the environment.
        return getattr(stencilm, f"from_{library}")(value or [], "m")

    return call


def with_name(library: str) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        pytest.importorskip(library)
        return getattr(stencilm, f"from_{library}")(object(), value or 5)

    return call


async def _awaited(draft: Any, value: Any) -> Any:
    return await stencilm.aguide(draft, int, "x", on_event=value)


async def _coroutine(prompt: str) -> str:
    return "1"


def _guided(value: Any) -> Any:
    return stencilm.guide(lambda prompt: "1", int, "x", on_event=value)


def _generated(value: Any) -> Any:
    return MODEL.generate("x", int, on_event=value)


def of_generate(processor: str) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        pytest.importorskip("transformers")
        return getattr(stencilm, processor)(value)

    return call


def with_reasoning(processor: str) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        pytest.importorskip("transformers")
        compiled = MODEL.compile(stencilm.Regex("a"))
        return getattr(stencilm, processor)(compiled, reasoning=value or 5)

    return call


CALLS: dict[str, Callable[[Any], Any]] = {
    "model is .* must be a causal language model of transformers": of_transformers,
    "tokenizer is .* must be a tokenizer of transformers": with_tokenizer,
    "client is .* must be an openai.OpenAI": of_client("openai"),
    "client is .* must be an anthropic.Anthropic": of_client("anthropic"),
    "model is .* must be the name of a model": with_name("openai"),
    "model is .* must be the name of a model: anthropic": with_name("anthropic"),
    "path is .* must be a str or a Path": stencilm.TokenizerInfo.from_file,
    "prompts is .* must be a list of prompts": lambda value: MODEL.batch(value, int),
    # None is one of what these take.
    "on_event is .* must be a function of an event, or None": lambda value: _guided(value or 5),
    "on_event is .* must be a function of an event, or None: awaited": lambda value: asyncio.run(
        _awaited(_coroutine, value or 5)
    ),
    "on_event is .* must be a function of an event, or None: in a thread": (
        lambda value: asyncio.run(_awaited(lambda prompt: "1", value or 5))
    ),
    "on_event is .* must be a function of an event, or None: of a model": (
        lambda value: _generated(value or 5)
    ),
    "LogitsProcessor takes a Comp.* compiled is (None|5|<obj)": of_generate("LogitsProcessor"),
    "CustomGenerate takes a Comp.* compiled is (None|5|<obj)": of_generate("CustomGenerate"),
    "reasoning is .* must be a ReasoningFormat": with_reasoning("LogitsProcessor"),
    "reasoning is .* must be a ReasoningFormat: custom": with_reasoning("CustomGenerate"),
    "a Grammar is not made of .*from_json_schema": lambda value: stencilm.Grammar(value, value),
    "a TokenIndex is not made of .*from_regex": lambda value: stencilm.TokenIndex(value, value),
    "a ToolCallParser is not made of .*parser": lambda value: stencilm.ToolCallParser(
        value, value, []
    ),
    "candidates is .* must be a list of them": lambda value: stencilm.choose_candidate(
        value, "x", MODEL
    ),
}


@pytest.mark.parametrize("words", CALLS)
@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
def test_what_is_none_of_them_is_named(words: str, value: Any) -> None:
    with pytest.raises(TypeError, match=words.partition(": ")[0]):
        CALLS[words](value)


ITEM = stencilm.StructuralTagItem(begin="<f>", schema={"type": "integer"}, end="</f>")


@pytest.mark.parametrize("value", [*WRONG, "<f>"])
def test_triggers_and_their_tags_are_lists(value: Any) -> None:
    """One text would be read as a list of its letters."""
    make = stencilm.StructuralTag.from_legacy_structural_tag
    with pytest.raises(TypeError, match=r"triggers is .*, but must be a list of texts"):
        make([ITEM], value)
    with pytest.raises(TypeError, match=r"tags has .*, but must be a list of StructuralTagItem"):
        make(value, ["<f>"])
    with pytest.raises(TypeError, match="tag must be a list of StructuralTagItem"):
        stencilm.Grammar.from_structural_tag(value, ["<f>"])
    if value is not None:  # which are no triggers
        with pytest.raises(TypeError, match=r"triggers is .*, but must be a list of texts"):
            stencilm.Grammar.from_structural_tag([ITEM], value)


def test_tags_are_read_once() -> None:
    once: Any = iter([ITEM])
    grammar = stencilm.Grammar.from_structural_tag([ITEM], ["<f>"])
    assert str(stencilm.Grammar.from_structural_tag(once, ["<f>"])) == str(grammar)


@pytest.mark.parametrize("value", WRONG)
def test_what_is_no_source(value: Any) -> None:
    with pytest.raises(TypeError, match=r"source is .*, but must be the source of a grammar"):
        stencilm.Grammar.from_source(value)


class Unshown:
    """What raises whatever is asked of it."""

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    __hash__ = None  # type: ignore[assignment]


def nested() -> list[Any]:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


HARD: dict[str, Any] = {
    "unshown": Unshown(),
    "nested": nested(),
    "array": np.zeros((2, 2)),
    "digits": 10**5_000,
    "long": "x" * 100_000,
    "bytes": b"auto",
}
"""Values that cannot be shown, compared or read in whole."""
MASK = stencilm.allocate_token_bitmask(1, 8)
REGEX = stencilm.Grammar.from_regex("a")
TOOL = {"type": "function", "function": {"name": "f"}}


def of_draft(prompt: str) -> str:
    return "a"


def traversed(value: Any) -> Any:
    one = [-1]
    return stencilm.traverse_draft_tree(one, one, [0], value, MASK)


def capabilities_of(value: Any) -> Any:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url="http://127.0.0.1:9", api_key="k")
    return stencilm.from_openai(client, "m", capabilities=value)


WORDS: dict[str, Callable[[Any], Any]] = {
    "backend": lambda value: stencilm.apply_token_bitmask_inplace(
        np.zeros((1, 8), np.float32), MASK, backend=value
    ),
    "capabilities": capabilities_of,
    "notation": REGEX.converted,
    "on_unsupported": lambda value: stencilm.Grammar.from_json_schema({}, on_unsupported=value),
    "max_threads": stencilm.BatchGrammarMatcher,
    "reasoning": lambda value: stencilm.tools("qwen_3", [TOOL], reasoning=value),
    "tool_choice": lambda value: stencilm.tools("qwen_3", [TOOL], value),
    "tools": lambda value: stencilm.tools("qwen_3", value),
    "on_error": lambda value: MODEL.chat("x", on_error=value),
    "finish": lambda value: MODEL("x", int, finish=value),
    "sampling": lambda value: MODEL("x", int, sampling=value),
    "seed_str": lambda value: stencilm.guide(of_draft, REGEX, "x", seed_str=value),
    "budget": lambda value: stencilm.guide(of_draft, REGEX, "x", budget=value),
    "stop_at": lambda value: stencilm.guide(of_draft, REGEX, "x", stop_at=[value]),
    "vocab_type": lambda value: stencilm.TokenizerInfo([b"a"], vocab_type=value),
    "names": stencilm.SymbolTable,
    "matcher": traversed,
    "text": MODEL.tokenizer_info.encode,
    "compiled": of_generate("LogitsProcessor"),
}


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("kind", HARD)
def test_what_cannot_be_shown_is_told_by_its_name(name: str, kind: str) -> None:
    value = HARD[kind]
    if (kind, name) in {("long", "text"), ("long", "stop_at")}:
        return  # which are texts
    with pytest.raises((TypeError, ValueError, stencilm.StencilError)) as caught:
        WORDS[name](value)
    said = str(caught.value)
    assert len(said) < 2_000
    assert name in said or ((kind, name) == ("long", "seed_str") and "seed text" in said), said


@pytest.mark.parametrize("name", ["seed_str", "budget", "stop_at"])
def test_an_empty_value_of_another_type_is_not_the_default(name: str) -> None:
    empty: list[Any] = [b"", 0, {}, False]
    for value in empty:
        given: dict[str, Any] = {name: value}
        if name == "stop_at" and value in (b"", {}):
            continue  # which hold no texts
        with pytest.raises(TypeError, match=f"{name} is "):
            stencilm.guide(of_draft, REGEX, "x", **given)


@pytest.mark.parametrize("value", ["yes", b"yes", bytearray(b"yes")])
def test_the_parts_of_a_text_are_no_options(value: Any) -> None:
    with pytest.raises(ValueError, match=f"a list of options, not the {type(value).__name__} "):
        stencilm.Choice(value)


LONG = "a" * 1_000_000

QUOTED: list[Callable[[], Any]] = [
    lambda: stencilm.Grammar.from_ebnf(f"root ::= {LONG}"),
    lambda: stencilm.Grammar.from_ebnf(LONG),
    lambda: stencilm.Grammar.from_lark(f"start: {LONG}"),
    lambda: stencilm.Grammar.from_lark(f"start: x\nx[{LONG}=3]: /a/"),
    lambda: stencilm.Grammar.from_lark(f'%import {LONG}\nstart: "a"'),
    lambda: stencilm.Grammar.from_json_schema({"properties": {LONG: {"type": "x"}}}),
    lambda: stencilm.Grammar.from_json_schema(
        {"type": "object", "required": [LONG], "additionalProperties": False}
    ),
    lambda: stencilm.Grammar.from_json_schema({"type": LONG}),
    lambda: stencilm.Grammar.from_json_schema({}, documents={LONG: 5}),  # type: ignore[dict-item]
    lambda: stencilm.Grammar.from_json_schema({}, **{LONG: 5}),  # type: ignore[arg-type]
    lambda: stencilm.Grammar.from_structural_tag({"type": LONG}),
    lambda: stencilm.Grammar.from_type(LONG.encode()),
]


@pytest.mark.parametrize("call", QUOTED, ids=range(len(QUOTED)))
def test_a_name_without_end_is_quoted_in_short(call: Callable[[], Any]) -> None:
    with pytest.raises((stencilm.StencilError, TypeError)) as caught:
        call()
    shown = f"{caught.value!r} {caught.value}"
    assert len(shown) < 5_000 and "a" * 50 in shown and "…" in shown


def test_a_place_is_kept_whole_beside_the_message() -> None:
    error = stencilm.GrammarSyntaxError("no schema", place=f"#/{LONG}")
    assert error.place == f"#/{LONG}" and error.message == "no schema"
    assert len(str(error)) < 500 and str(error).endswith("a: no schema")


def test_a_sentence_is_cut_in_the_middle() -> None:
    words = " ".join(map(str, range(5_000)))
    error = stencilm.LimitExceeded(f"{words}: this is the way out")
    assert len(str(error)) == 2_000
    assert str(error).startswith("0 1 2") and str(error).endswith("4999: this is the way out")
    assert str(stencilm.LimitExceeded(words[:2_000])) == words[:2_000]
