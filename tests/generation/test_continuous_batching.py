"""A grammar for each request of transformers' continuous batching."""

from __future__ import annotations

import copy
import json
import re
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, Field

import stencilm
from grammar_kinds import KINDS, check_text

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
if tuple(map(int, transformers.__version__.split(".")[:2])) < (5, 12):
    pytest.skip("continuous batching needs transformers 5.12", allow_module_level=True)


class Person(BaseModel):
    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=120)


@pytest.fixture(scope="module")
def model() -> stencilm.Model:
    return stencilm.load("tiny")


def settings(**options: Any) -> dict[str, Any]:
    """A small cache, and configurations under which masks are known in time."""
    batching = {
        "use_async_batching": False, "use_cuda_graph": False, "num_blocks": 8,
        "max_batch_tokens": 64,
    }  # fmt: skip
    for name in list(options):
        if hasattr(transformers.ContinuousBatchingConfig(), name):
            batching[name] = options.pop(name)
    return {
        "generation_config": transformers.GenerationConfig(
            **{"max_new_tokens": 60, "do_sample": False, "eos_token_id": 2, "pad_token_id": 3}
            | options
        ),
        "continuous_batching_config": transformers.ContinuousBatchingConfig(**batching),
    }


def test_every_request_keeps_its_grammar(model: stencilm.Model) -> None:
    backend: Any = model.backend
    tokenizer = backend.tokenizer
    pattern = "(red|green), [a-z]{3}"
    prompts = ["Describe a person as JSON.\n", "Colours:", "Once", "Another person as JSON:\n"]
    grammars = [
        model.compile(Person), model.compile(stencilm.Regex(pattern)), None, model.compile(Person),
    ]  # fmt: skip
    processor = stencilm.ContinuousBatchingLogitsProcessor()
    results = processor.generate_batch(
        backend.model, [tokenizer(prompt)["input_ids"] for prompt in prompts], grammars,
        **settings(),
    )  # fmt: skip
    assert [result.error for result in results] == [None] * 4
    texts = [tokenizer.decode(one.generated_tokens, skip_special_tokens=True) for one in results]
    assert texts[0] == model.generate(prompts[0], Person).text
    assert texts[1] == model.generate(prompts[1], stencilm.Regex(pattern)).text
    Person.model_validate_json(texts[3])
    with pytest.raises(ValueError, match="2 grammars for 1 prompts"):
        processor.generate_batch(backend.model, [[5]], [None, None])
    assert processor.generate_batch(backend.model, []) == []


@pytest.mark.parametrize("do_sample", [False, True])
def test_requests_of_every_kind_of_grammar_share_their_passes(
    model: stencilm.Model, do_sample: bool
) -> None:
    backend: Any = model.backend
    kinds = list(KINDS.values()) * 2
    prompts = [f"Describe {number} as JSON.\n" for number in range(len(kinds))]
    results = stencilm.ContinuousBatchingLogitsProcessor().generate_batch(
        backend.model,
        [backend.tokenizer(prompt)["input_ids"] for prompt in prompts],
        [model.compile(kind.output_type) for kind in kinds],
        **settings(do_sample=do_sample),
    )
    assert [result.error for result in results] == [None] * len(kinds)
    for kind, result in zip(kinds, results, strict=True):
        check_text(
            kind, backend.tokenizer.decode(result.generated_tokens, skip_special_tokens=True)
        )


@pytest.mark.parametrize("num_blocks", [8, 3])  # with few of them requests are put off
def test_texts_are_whole_within_the_bound_of_their_request(
    model: stencilm.Model, num_blocks: int
) -> None:
    backend: Any = model.backend
    compiled = model.compile(list[Person])
    prompts = ["Describe people as JSON.\n", "Some people:", "Three people as JSON:\n"]
    inputs = [backend.tokenizer(prompt)["input_ids"] for prompt in prompts]
    shortest = stencilm.GrammarMatcher(compiled).tokens_to_end()
    for most in (shortest, 17):
        for finish in ("valid", "cut"):
            processor = stencilm.ContinuousBatchingLogitsProcessor(compiled, finish=finish)
            given = settings(max_new_tokens=most, num_blocks=num_blocks)
            results = processor.generate_batch(backend.model, inputs, **given)
            for result in results:
                assert result.error is None and len(result.generated_tokens) <= most
                text = backend.tokenizer.decode(result.generated_tokens, skip_special_tokens=True)
                if finish == "valid":
                    assert all(Person.model_validate(one) for one in json.loads(text))
    with pytest.raises(ValueError, match="finish is 'all'"):
        stencilm.ContinuousBatchingLogitsProcessor(compiled, finish="all")  # type: ignore[arg-type]


def test_a_budget_of_whitespace_is_for_json(model: stencilm.Model) -> None:
    backend: Any = model.backend
    spaced = stencilm.JsonSchema({"type": "array", "items": {"type": "integer"}, "minItems": 3})
    grammars = [model.compile(spaced), model.compile(stencilm.Regex("( [a-c]){9}"))]
    inputs = [backend.tokenizer(prompt)["input_ids"] for prompt in ("A list:", "Letters:")]
    processor = stencilm.ContinuousBatchingLogitsProcessor(whitespace_budget=0)
    results = processor.generate_batch(backend.model, inputs, grammars, **settings(do_sample=True))
    assert [result.error for result in results] == [None, None]
    listed, letters = (
        backend.tokenizer.decode(one.generated_tokens, skip_special_tokens=True) for one in results
    )
    assert len(json.loads(listed)) >= 3 and not any(blank in listed for blank in " \t\n")
    assert letters.count(" ") == 9
    with pytest.raises(ValueError, match="whitespace_budget is -1"):
        stencilm.ContinuousBatchingLogitsProcessor(whitespace_budget=-1)


def test_sampled_sequences_of_one_request(model: stencilm.Model) -> None:
    backend: Any = model.backend
    prompt = backend.tokenizer("A person as JSON:\n")["input_ids"]
    processor = stencilm.ContinuousBatchingLogitsProcessor(model.compile(Person))
    results = processor.generate_batch(
        backend.model, [prompt], **settings(num_return_sequences=3, do_sample=True, top_k=5)
    )
    assert len(results) == 3
    for result in results:
        assert result.error is None
        text = backend.tokenizer.decode(result.generated_tokens, skip_special_tokens=True)
        Person.model_validate_json(text)


def test_a_request_with_nothing_left_has_an_error(model: stencilm.Model) -> None:
    backend: Any = model.backend
    prompt = backend.tokenizer("yes or no?\n")["input_ids"]
    compiled = model.compile(stencilm.Regex("yes|no"))
    results = stencilm.ContinuousBatchingLogitsProcessor().generate_batch(
        backend.model, [prompt, prompt], [compiled, None],
        **settings(suppress_tokens=[2], max_new_tokens=12),
    )  # fmt: skip
    assert "suppress_tokens" in results[0].error
    assert results[1].error is None
    assert len(results[1].generated_tokens) == 12


def test_a_transformers_that_would_break_grammars_is_refused(
    model: stencilm.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformers.__version__", "5.11.0")
    backend: Any = model.backend
    with pytest.raises(stencilm.ModelError, match=r"5\.12 or later.*5\.11\.0"):
        stencilm.ContinuousBatchingLogitsProcessor().generate_batch(
            backend.model, [[1, 5]], [model.compile(Person)], max_new_tokens=4
        )


def test_managers_that_cannot_be_constrained_are_refused(model: stencilm.Model) -> None:
    backend: Any = model.backend
    processor = stencilm.ContinuousBatchingLogitsProcessor(model.compile(Person))
    manager = backend.model.init_continuous_batching(**settings(use_async_batching=True))
    with pytest.raises(stencilm.ModelError, match="use_async_batching=False"):
        processor.attach(manager)
    manager = backend.model.init_continuous_batching(**settings())
    manager.start()
    try:
        with pytest.raises(stencilm.ModelError, match="has started"):
            processor.attach(manager)
    finally:
        manager.stop(block=True)
        manager.destroy()


def state(prompt: list[int], written: list[int], **more: Any) -> Any:
    """A request as transformers shows it before a pass."""
    described = {
        "request_id": "one", "initial_tokens": prompt, "generated_tokens": written,
        "_true_initial_tokens": 0, "position_offset": len(prompt) + len(written), "error": None,
        "eos_token_id": 2, "logit_processor_kwargs": {}, "max_new_tokens": None,
    }  # fmt: skip
    return SimpleNamespace(state=SimpleNamespace(**described | more))


def allowed(processor: Any, *requests: Any) -> list[set[int]]:
    rows = processor.prepare_tensor_args(list(requests))
    kept = processor(torch.zeros((len(requests) + 1, 4608)), rows)  # one row of padding
    assert (kept[-1] == 0).all()
    return [set((row > -torch.inf).nonzero()[:, 0].tolist()) for row in kept[:-1]]


def test_requests_are_known_by_their_tokens(model: stencilm.Model) -> None:
    """Reset with their tokens as a prompt, begun again under the same name, in any order."""
    compiled = model.compile(stencilm.Regex("[ab]{2}c"))
    processor = stencilm.ContinuousBatchingLogitsProcessor(compiled)
    tokens = model.tokenizer_info.tokenize_bytes(b"abc")
    (first,) = allowed(processor, state([9], []))
    (second,) = allowed(processor, state([9], tokens[:1]))
    assert first != second
    reset = state([9, *tokens[:1]], [], _true_initial_tokens=1)
    assert allowed(processor, reset) == [second]
    other = state([7], [], request_id="two")
    assert allowed(processor, other, reset) == [first, second]
    assert allowed(processor, state([8], [])) == [first]
    free = state([8], [], request_id="three", logit_processor_kwargs={"grammar": None})
    assert [len(row) for row in allowed(processor, free)] == [4608]


def test_what_another_processor_chose_ends_the_request(model: stencilm.Model) -> None:
    processor = stencilm.ContinuousBatchingLogitsProcessor(model.compile(stencilm.Regex("[ab]+")))
    wrong = state([9], [77])
    assert allowed(processor, wrong) == [{2}]
    assert "refuses" in wrong.state.error
    late = state([9], [], position_offset=2)
    with pytest.raises(stencilm.ModelError, match="use_async_batching=False"):
        allowed(processor, late)


def test_the_grammar_must_be_of_this_vocabulary() -> None:
    info = stencilm.TokenizerInfo([b"a", b"b", b""], stop_token_ids=[2])
    compiled = stencilm.GrammarCompiler(info).compile_regex("[ab]+")
    processor = stencilm.ContinuousBatchingLogitsProcessor(compiled)
    with pytest.raises(stencilm.TokenizerError, match="4608 columns"):
        allowed(processor, state([9], []))
    with pytest.raises(TypeError, match="CompiledGrammar"):
        stencilm.ContinuousBatchingLogitsProcessor("a")  # type: ignore[arg-type]


def test_a_grammar_of_another_vocabulary_ends_its_own_request_only(model: stencilm.Model) -> None:
    compiled = model.compile(stencilm.Regex("[ab]{2}c"))
    foreign_info = stencilm.TokenizerInfo([b"a", b"b", b""], stop_token_ids=[2])
    foreign = stencilm.GrammarCompiler(foreign_info).compile_regex("[ab]+")
    processor = stencilm.ContinuousBatchingLogitsProcessor(compiled)
    (alone,) = allowed(processor, state([9], [], request_id="alone"))
    wrong = state([9], [], request_id="wrong", logit_processor_kwargs={"grammar": foreign})
    right = state([9], [], request_id="right")
    assert allowed(processor, wrong, right) == [{2}, alone]
    assert "compile all with one GrammarCompiler" in wrong.state.error
    assert right.state.error is None


def test_requests_beside_one_of_another_vocabulary_go_on(model: stencilm.Model) -> None:
    foreign_info = stencilm.TokenizerInfo([b"a", b"b", b"</s>"], stop_token_ids=[2])
    foreign = stencilm.GrammarCompiler(foreign_info).compile_regex("[ab]+")
    grammars = [foreign, model.compile(stencilm.Regex("[ab]{2}c")), None]
    backend: Any = model.backend
    results = stencilm.ContinuousBatchingLogitsProcessor().generate_batch(
        backend.model, [[5], [6], [7]], grammars, **settings(max_new_tokens=6)
    )
    assert "4608 columns" in str(results[0].error)
    assert [result.error for result in results[1:]] == [None, None]
    text = backend.tokenizer.decode(results[1].generated_tokens, skip_special_tokens=True)
    assert re.fullmatch("[ab]{2}c", text)


@pytest.mark.parametrize(
    ("inputs", "options", "kind", "said"),
    [
        (None, {}, TypeError, "inputs is None, but must be a list of prompts"),
        (["Hi"], {}, TypeError, "prompt 0 has 'H' at 0"),
        ([5], {}, TypeError, "inputs is [5], but must be a list of prompts"),
        ([[5], []], {}, ValueError, "prompt 1 is empty"),
        ([[5], [6, -1]], {}, ValueError, "prompt 1 has the token id -1 at 1"),
        ([[10**6]], {}, ValueError, "lie between 0 and 4607"),
        ([[5]], {"grammars": "x"}, TypeError, "grammars is 'x', but must be a list"),
        ([[5]], {"grammars": 5}, TypeError, "grammars is 5, but must be a list"),
        ([[5]], {"grammars": ["x"]}, TypeError, "grammar 0 is 'x'"),
        ([[5]], {"max_new_tokens": 0}, ValueError, "max_new_tokens is 0"),
        ([[5]], {"max_new_tokens": "5"}, ValueError, "max_new_tokens is '5'"),
    ],
)
def test_what_is_no_request_is_told_before_the_model_runs(
    model: stencilm.Model, inputs: Any, options: dict[str, Any], kind: type[Exception], said: str
) -> None:
    backend: Any = model.backend
    processor = stencilm.ContinuousBatchingLogitsProcessor()
    with pytest.raises(kind, match=re.escape(said)):
        processor.generate_batch(backend.model, inputs, **options)


def test_prompts_may_be_tensors(model: stencilm.Model) -> None:
    backend: Any = model.backend
    processor = stencilm.ContinuousBatchingLogitsProcessor(
        model.compile(stencilm.Regex("[ab]{2}c"))
    )
    given = torch.tensor([[5, 6], [7, 8]])
    results = processor.generate_batch(backend.model, given, **settings())
    assert [result.prompt_ids for result in results] == given.tolist()


def test_a_stop_token_without_a_score_is_not_written() -> None:
    info = stencilm.TokenizerInfo([b"a", b"b", b"</s>"], stop_token_ids=[2], special_token_ids=[2])
    compiled = stencilm.GrammarCompiler(info).compile_regex("ab?")
    processor = stencilm.ContinuousBatchingLogitsProcessor(compiled)
    rows = processor.prepare_tensor_args([state([9], [0, 2])])
    scores = torch.zeros((1, 2))
    assert processor(scores, rows).tolist() == scores.tolist()


def test_managers_in_several_threads_share_a_processor(model: stencilm.Model) -> None:
    """Their requests have the same names, and each manager has a thread of its own."""
    backend: Any = model.backend
    patterns = ["(red|blue)( red| blue){9}", "[0-9]{20}"]
    processor = stencilm.ContinuousBatchingLogitsProcessor()

    def written(pattern: str) -> list[str]:
        results = processor.generate_batch(
            copy.deepcopy(backend.model),
            [backend.tokenizer(text)["input_ids"] for text in ("A:", "A colour:")],
            [model.compile(stencilm.Regex(pattern))] * 2,
            **settings(),
        )
        assert [one.error for one in results] == [None, None]
        return [
            backend.tokenizer.decode(one.generated_tokens, skip_special_tokens=True)
            for one in results
        ]

    with ThreadPoolExecutor(2) as pool:
        for pattern, texts in zip(patterns, pool.map(written, patterns), strict=True):
            assert all(re.fullmatch(pattern, text) for text in texts), texts
