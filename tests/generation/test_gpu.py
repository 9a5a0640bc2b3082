"""Models on a GPU write what they write on the CPU, in our loops and in those of transformers."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

import stencilm

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

PROMPTS = ["Describe a person as JSON.\n", "Another person as JSON, please:\n"]


class Person(BaseModel):
    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=120)
    job: Literal["baker", "pilot"]


@pytest.fixture(scope="module")
def model() -> stencilm.Model:
    return stencilm.load("tiny")


@pytest.fixture(scope="module")
def on_gpu() -> stencilm.Model:
    loaded = stencilm.load("tiny", device="cuda")
    backend: Any = loaded.backend
    assert backend.model.device.type == "cuda"
    return loaded


TYPES: list[Any] = [
    Person,
    list[int],
    Literal["red", "green"],
    stencilm.Regex("[a-z]{3,9}, [0-9]+"),
    dict[str, float],
]


@pytest.mark.parametrize("output_type", TYPES, ids=str)
def test_a_call_gives_the_same_value(
    model: stencilm.Model, on_gpu: stencilm.Model, output_type: Any
) -> None:
    for prompt in PROMPTS:
        expected = model.generate(prompt, output_type, max_tokens=60)
        found = on_gpu.generate(prompt, output_type, max_tokens=60)
        assert (found.text, found.value) == (expected.text, expected.value)


def test_batches_samples_and_streams(model: stencilm.Model, on_gpu: stencilm.Model) -> None:
    assert on_gpu.batch(PROMPTS, Person) == model.batch(PROMPTS, Person)
    options: dict[str, Any] = {"temperature": 1.0, "seed": 5}
    found, expected = (one.samples(PROMPTS[0], Person, n=4, **options) for one in (on_gpu, model))
    assert found == expected
    assert list(on_gpu.stream(PROMPTS[0], Person))[-1] == model(PROMPTS[0], Person)


def test_probabilities_and_beams(model: stencilm.Model, on_gpu: stencilm.Model) -> None:
    found, expected = (
        dict(one.probabilities("Yes or no? ", Literal["yes", "no", "maybe"]))
        for one in (on_gpu, model)
    )
    assert found == pytest.approx(expected, abs=1e-4)
    found_beams, expected_beams = (
        one.beam_search(PROMPTS[0], Person, beams=3, max_tokens=60) for one in (on_gpu, model)
    )
    assert [value for value, _ in found_beams] == [value for value, _ in expected_beams]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_halves(dtype: str) -> None:
    model = stencilm.load("tiny", device="cuda", dtype=dtype)
    for prompt in PROMPTS:
        assert isinstance(model(prompt, Person, temperature=1.0, seed=1), Person)


def test_a_static_cache(model: stencilm.Model, on_gpu: stencilm.Model) -> None:
    backend: Any = on_gpu.backend
    static = stencilm.from_transformers(backend.model, backend.tokenizer, static_cache=256)
    assert static(PROMPTS[0], Person) == model(PROMPTS[0], Person)


def write(model: stencilm.Model, prompts: list[str], **options: Any) -> list[str]:
    """The texts that `generate` of transformers writes."""
    backend: Any = model.backend
    tokenizer = backend.tokenizer
    tokenizer.padding_side = "left"
    inputs = tokenizer(prompts, return_tensors="pt", padding=True).to(backend.model.device)
    inputs.pop("token_type_ids", None)
    ids = backend.model.generate(
        **inputs, **{"max_new_tokens": 80, "do_sample": False, "pad_token_id": 3, **options}
    )
    start = inputs["input_ids"].shape[1]
    return [str(tokenizer.decode(row[start:], skip_special_tokens=True)) for row in ids]


LOOPS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"do_sample": True, "temperature": 1.5},
    "beams": {"num_beams": 3},
    "several": {"do_sample": True, "num_return_sequences": 3},
    "static cache": {"cache_implementation": "static", "disable_compile": True},
}


@pytest.mark.parametrize("name", list(LOOPS))
def test_loops_of_transformers(on_gpu: stencilm.Model, model: stencilm.Model, name: str) -> None:
    compiled = model.compile(Person)
    texts = write(
        on_gpu, PROMPTS, logits_processor=[stencilm.LogitsProcessor(compiled)], **LOOPS[name]
    )
    for text in texts:
        Person.model_validate_json(text)
    if name == "greedy":
        again = write(model, PROMPTS, logits_processor=[stencilm.LogitsProcessor(compiled)])
        assert texts == again


def test_assisted_loops(on_gpu: stencilm.Model) -> None:
    backend: Any = on_gpu.backend
    for options in ({"prompt_lookup_num_tokens": 4}, {"assistant_model": backend.model}):
        processor = stencilm.LogitsProcessor(on_gpu.compile(Person))
        text = write(on_gpu, PROMPTS[:1], logits_processor=[processor], **options)[0]
        Person.model_validate_json(text)


def test_custom_generate(on_gpu: stencilm.Model, model: stencilm.Model) -> None:
    custom = stencilm.CustomGenerate(model.compile(Person))
    for options in ({}, {"do_sample": True}):
        texts = write(on_gpu, PROMPTS, custom_generate=custom, **options)
        for text in texts:
            Person.model_validate_json(text)
    assert write(on_gpu, PROMPTS[:1], custom_generate=custom) == write(
        model, PROMPTS[:1], custom_generate=custom
    )


def test_continuous_batching(on_gpu: stencilm.Model) -> None:
    pytest.importorskip("transformers.generation.continuous_batching.cb_logits_processors")
    backend: Any = on_gpu.backend
    grammars = [on_gpu.compile(Person), on_gpu.compile(list[int]), None]
    prompts = [*PROMPTS, "Once"]
    processor = stencilm.ContinuousBatchingLogitsProcessor()
    results = processor.generate_batch(
        backend.model,
        [backend.tokenizer(prompt)["input_ids"] for prompt in prompts],
        grammars,
        generation_config=transformers.GenerationConfig(
            max_new_tokens=60, do_sample=False, eos_token_id=2, pad_token_id=3
        ),
    )
    assert [result.error for result in results] == [None] * 3
    texts = [
        backend.tokenizer.decode(result.generated_tokens, skip_special_tokens=True)
        for result in results
    ]
    Person.model_validate_json(texts[0])
    assert all(isinstance(number, int) for number in json.loads(texts[1]))


def test_a_processor_in_the_way_of_xgrammar(on_gpu: stencilm.Model) -> None:
    import stencilm.compat.xgrammar as xgr
    from stencilm.compat.xgrammar.contrib import hf

    backend: Any = on_gpu.backend
    width = backend.model.config.vocab_size
    info = xgr.TokenizerInfo.from_huggingface(backend.tokenizer, vocab_size=width)
    compiled = xgr.GrammarCompiler(info).compile_json_schema(json.dumps(Person.model_json_schema()))
    processor = hf.LogitsProcessor(compiled)
    text = write(on_gpu, PROMPTS[:1], logits_processor=[processor])[0]
    Person.model_validate_json(text)
