"""Other objects in the place of models, clients, paths and lists: each is named with what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


CALLS: dict[str, Callable[[Any], Any]] = {
    "model is .* must be a causal language model of transformers": of_transformers,
    "tokenizer is .* must be a tokenizer of transformers": with_tokenizer,
    "client is .* must be an openai.OpenAI": of_client("openai"),
    "client is .* must be an anthropic.Anthropic": of_client("anthropic"),
    "model is .* must be the name of a model": with_name("openai"),
    "model is .* must be the name of a model: anthropic": with_name("anthropic"),
    "path is .* must be a str or a Path": stencilm.TokenizerInfo.from_file,
    "prompts is .* must be a list of prompts": lambda value: MODEL.batch(value, int),
    "candidates is .* must be a list of them": lambda value: stencilm.choose_candidate(
        value, "x", MODEL
    ),
}


@pytest.mark.parametrize("words", CALLS)
@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
def test_what_is_none_of_them_is_named(words: str, value: Any) -> None:
    with pytest.raises(TypeError, match=words.partition(": ")[0]):
        CALLS[words](value)
