"""The model door: typed values, cut texts, refusals, batches; with a random model."""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator

import stencilm
from case_names import case_name
from generation.small_models import byte_tokenizer, random_llama
from stencilm.errors import ModelError, StencilError, TokenizerError, UnsupportedFeature
from stencilm.generation.result import IncompleteOutput, InvalidOutput
from stencilm.generation.trace import Event, Forced, Prompt, Sampled, Stopped


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


def never(value: str) -> str:
    raise ValueError("nothing is good enough")


@pytest.fixture(scope="module")
def model() -> stencilm.Model:
    return stencilm.from_transformers(random_llama(), byte_tokenizer())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("output_type", "values"),
    [
        (Literal["yes", "no"], {"yes", "no"}),
        (Colour, set(Colour)),
        (stencilm.Choice(["", "a", 7]), {"", "a", 7}),
        (stencilm.Regex("[ab]c?"), {"a", "b", "ac", "bc"}),
        (stencilm.Grammar.from_regex("x|y"), {"x", "y"}),
    ],
    ids=case_name,
)
def test_a_value_has_its_type(
    model: stencilm.Model, output_type: Any, values: set[Any], seed: int
) -> None:
    assert model("Well: ", output_type, temperature=1.5, seed=seed) in values


def test_free_text_is_returned_as_far_as_it_came(model: stencilm.Model) -> None:
    generation = model.generate("Once", max_tokens=8)
    assert generation.finish_reason == "length"
    assert generation.value == generation.text == model("Once", str, max_tokens=8)
    assert generation.error is None


def test_a_cut_text_is_never_a_value(model: stencilm.Model) -> None:
    digits = stencilm.Regex("[0-9]{4,}")
    with pytest.raises(IncompleteOutput, match=r"max_tokens=6 cut .* raise max_tokens") as caught:
        model("Count: ", digits, max_tokens=6, finish="cut")
    generation = model.generate("Count: ", digits, max_tokens=6, finish="cut")
    assert caught.value.text == generation.text
    assert len(generation.text) == 6
    assert (generation.finish_reason, generation.value) == ("length", None)
    assert generation.is_complete  # a whole text, but perhaps not the whole number
    assert isinstance(generation.error, StencilError)
    assert not model.generate("Count: ", digits, max_tokens=3).is_complete
    assert model.generate("Count: ", digits, max_tokens=6).value == generation.text


def test_a_full_context_says_so(model: stencilm.Model) -> None:
    with pytest.raises(IncompleteOutput, match=r"context is full .* shorten the prompt"):
        model("x" * 60, stencilm.Regex("a{20}"))
    with pytest.raises(ModelError, match="at most 64"):
        model("x" * 65, stencilm.Regex("a"))


def test_a_type_may_refuse_what_no_schema_can_say(model: stencilm.Model) -> None:
    picky = Annotated[Literal["yes"], AfterValidator(never)]
    with pytest.raises(InvalidOutput, match="nothing is good enough") as caught:
        model("Well: ", picky)
    assert caught.value.text == '"yes"'
    assert "\n" not in str(caught.value)


def test_a_batch_is_its_prompts_one_by_one(model: stencilm.Model) -> None:
    word = stencilm.Regex("[a-z]{6}")
    words = model.batch(["a", "a", "b"], word, temperature=1.0, seed=3)
    assert words == [
        model(prompt, word, temperature=1.0, seed=seed)
        for prompt, seed in [("a", 3), ("a", 4), ("b", 5)]
    ]
    assert words[0] != words[1]
    assert model.batch([], word) == []


def test_a_type_is_compiled_once(model: stencilm.Model) -> None:
    assert model.compile(Literal["a", "b"]) is model.compile(Literal["a", "b"])
    assert model.compile(stencilm.Choice([1])) is not model.compile(stencilm.Choice([True]))
    assert model("x", stencilm.Choice([True])) is True
    assert model("x", stencilm.Choice([1])) == 1


def test_events_come_as_they_happen(model: stencilm.Model) -> None:
    events: list[Event] = []
    generation = model.generate("x", Literal["ab", "ba"], on_event=events.append)
    assert [type(event) for event in events] == [Prompt, Sampled, Forced, Stopped]
    assert list(generation.trace) == events


@pytest.mark.parametrize(
    ("output_type", "words"),
    [("a|b", "wrap it in Regex"), ({"type": "object"}, "wrap it in"), (7, "not an output type")],
)
def test_what_is_no_type_is_refused_before_the_model_runs(
    model: stencilm.Model, output_type: Any, words: str
) -> None:
    with pytest.raises(UnsupportedFeature, match=words):
        model("x", output_type)


@pytest.mark.parametrize(
    ("prompt", "error", "words"),
    [
        (None, TypeError, "the prompt is None"),
        (b"text", TypeError, "the prompt is b'text'"),
        (["text"], TypeError, r"the prompt is \['text'\], but must be a str, or chat messages"),
        ("a\ud800", ValueError, r"lone surrogate '\\ud800' at character 1"),
    ],
)
def test_what_is_no_prompt_is_named(
    model: stencilm.Model, prompt: Any, error: type[Exception], words: str
) -> None:
    for call in (model, model.generate, model.beam_search):
        with pytest.raises(error, match=words):
            call(prompt, bool)
    with pytest.raises(error, match=words):
        next(model.stream(prompt, bool))
    with pytest.raises(error, match=words):
        model.batch(["text", prompt], bool)


@pytest.mark.parametrize("backend", [None, "tiny", stencilm.Regex("a")])
def test_what_is_no_backend_is_named(backend: Any) -> None:
    with pytest.raises(TypeError, match=r"^backend is a \w+, but must follow the protocol"):
        stencilm.Model(backend)


def test_a_text_is_no_list_of_prompts(model: stencilm.Model) -> None:
    calls: tuple[Any, ...] = (model.batch, model.generate_batch)
    for call in calls:
        with pytest.raises(TypeError, match="prompts is the text 'ab', but must be a list"):
            call("ab", bool)
        with pytest.raises(TypeError, match=r"prompts is {'role': 'user'}, but must be a list"):
            call({"role": "user"}, bool)


def test_sampling_options_are_checked(model: stencilm.Model) -> None:
    with pytest.raises(ValueError, match="temperature"):
        model("x", str, temperature=-1)
    with pytest.raises(ValueError, match="max_tokens"):
        model("x", str, max_tokens=0)


def test_a_tokenizer_without_a_stop_token_ends_with_the_grammar() -> None:
    llama, tokenizer = random_llama(eos_token_id=None), byte_tokenizer()
    tokenizer.eos_token = None
    llama.generation_config.eos_token_id = None
    model = stencilm.from_transformers(llama, tokenizer)
    assert list(model.tokenizer_info.stop_token_ids) == []
    assert model("x", Literal["ab", "c"]) in ("ab", "c")


@pytest.mark.parametrize("seed", [True, False])
def test_a_seed_is_no_bool(seed: bool) -> None:
    model = stencilm.load("tiny")
    calls = (model, lambda *given, **more: model.samples(*given, n=2, **more))
    for call in calls:
        with pytest.raises(ValueError, match=f"seed is {seed}, but must be an integer"):
            call("x", bool, seed=seed)


def test_a_stop_token_beyond_the_vocabulary_is_told_with_its_owner() -> None:
    llama = random_llama()
    assert llama.generation_config is not None
    llama.generation_config.eos_token_id = [2, 999_999]
    owner = "eos_token_id of GenerationConfig has 999999"
    with pytest.raises(TokenizerError, match=owner):
        stencilm.from_transformers(llama, byte_tokenizer())
