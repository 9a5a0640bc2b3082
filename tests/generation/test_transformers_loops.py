"""`LogitsProcessor` and `CustomGenerate` in the loops of transformers: right, or an error."""

from __future__ import annotations

import copy
import pickle
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import stencilm
from generation.small_models import byte_tokenizer, random_llama
from generation.stepped_rows import Person, allowed, expected_after, walk

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def model() -> stencilm.Model:
    return stencilm.load("tiny")


PROMPT = "Describe a person as JSON.\n"
# The tokens of the beginning of a person, but not of a whole one: what prompt lookup drafts.
LOOKED_UP = 'As in {"name": "Ada", "job": "butcher", "name": 1} describe a person.\n'


def write(model: stencilm.Model, prompt: str, **options: Any) -> str:
    """The text that `generate` of transformers writes after a prompt."""
    backend: Any = model.backend
    inputs = backend.tokenizer(prompt, return_tensors="pt")
    ids = backend.model.generate(
        **inputs, **{"max_new_tokens": 60, "do_sample": False, "pad_token_id": 3, **options}
    )
    start = inputs["input_ids"].shape[1]
    return str(backend.tokenizer.decode(ids[0, start:], skip_special_tokens=True))


ASSISTED: dict[str, dict[str, Any]] = {
    "lookup": {"prompt_lookup_num_tokens": 4},
    "lookup, one token": {"prompt_lookup_num_tokens": 1},
    "lookup, sampled": {"prompt_lookup_num_tokens": 6, "do_sample": True},
    "assistant": {"assistant_model": None},
    "assistant, sampled": {"assistant_model": None, "do_sample": True, "temperature": 2.0},
    "early exit": {"assistant_early_exit": 2},
}


@pytest.mark.parametrize("name", list(ASSISTED))
def test_assisted_generation_writes_what_fits(model: stencilm.Model, name: str) -> None:
    options = dict(ASSISTED[name])
    if "assistant_model" in options:
        backend: Any = model.backend
        options["assistant_model"] = backend.model
    processor = stencilm.LogitsProcessor(model.compile(Person))
    for prompt in (PROMPT, LOOKED_UP, PROMPT):
        torch.manual_seed(0)
        text = write(model, prompt, logits_processor=[processor], **options)
        Person.model_validate_json(text)
        if not options.get("do_sample"):
            alone = stencilm.LogitsProcessor(model.compile(Person))
            assert text == write(model, prompt, logits_processor=[alone])


@pytest.mark.parametrize("width", [264, 4609])
def test_an_assistant_with_a_tokenizer_of_its_own(model: stencilm.Model, width: int) -> None:
    """Its scores are not of the grammar's vocabulary, even if there are nearly as many."""
    backend: Any = model.backend
    assistant = random_llama(vocab_size=width, max_position_embeddings=512)
    compiled = model.compile(Person)
    drafted = {
        "assistant_model": assistant,
        "tokenizer": backend.tokenizer,
        "assistant_tokenizer": byte_tokenizer(pad_token="</s>"),
    }
    written = [
        write(model, PROMPT, logits_processor=[stencilm.LogitsProcessor(compiled)], **options)
        for options in ({}, drafted)
    ]
    assert written[0] == written[1] and Person.model_validate_json(written[0])


def test_a_draft_that_the_grammar_refuses_is_never_taken(model: stencilm.Model) -> None:
    """Drafts of an assistant that knows no grammar: the main model is shown refused tokens."""
    from transformers.generation import candidate_generator

    class Free(candidate_generator.CandidateGenerator):  # type: ignore[misc]
        def get_candidates(self, input_ids: Any, *_: Any, **__: Any) -> Any:
            length = input_ids.shape[1]
            drafted = torch.tensor([[(length * 7 + step) % 4000 + 4 for step in range(5)]])
            return torch.cat([input_ids, drafted], dim=1), None

        def update_candidate_strategy(self, *_: Any) -> None:
            """Nothing is learned from what was kept."""

    backend: Any = model.backend
    processor = stencilm.LogitsProcessor(model.compile(Person))
    expected = write(
        model, PROMPT, logits_processor=[stencilm.LogitsProcessor(model.compile(Person))]
    )
    kept = backend.model._get_candidate_generator
    try:
        backend.model._get_candidate_generator = lambda **_: Free()
        text = write(model, PROMPT, logits_processor=[processor], prompt_lookup_num_tokens=3)
    finally:
        del backend.model._get_candidate_generator
    assert backend.model._get_candidate_generator == kept
    assert text == expected


def test_what_something_else_chose_is_an_error(model: stencilm.Model) -> None:
    processor, tokens = walk(model, '{"name": "Ada", "job": "pilot"}')
    allowed(processor, [50])
    with pytest.raises(
        stencilm.MatcherError, match=r"row 0: token 0 after the prompt is .*refuses"
    ):
        allowed(processor, [50, tokens[2]])
    assert allowed(processor, [50, tokens[0]]) == [expected_after(model, tokens[:1])]

    class Forcing:
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            forced = torch.full_like(scores, -torch.inf)
            forced[:, 77] = 0.0
            return forced

    with pytest.raises(stencilm.MatcherError, match="which the grammar refuses"):
        write(model, PROMPT, logits_processor=[processor, Forcing()])
    with pytest.raises(stencilm.MatcherError, match="forbids"):
        write(model, PROMPT, logits_processor=[Forcing(), processor])
    custom = stencilm.CustomGenerate(model.compile(Person))
    with pytest.raises(stencilm.MatcherError, match="which the grammar refuses"):
        write(model, PROMPT, custom_generate=custom, logits_processor=[Forcing()])


FORBIDDEN: dict[str, dict[str, Any]] = {
    "min_new_tokens": {"min_new_tokens": 20},
    "min_new_tokens, sampled": {"min_new_tokens": 20, "do_sample": True},
    "min_new_tokens, beams": {"min_new_tokens": 20, "num_beams": 3},
    "min_new_tokens, lookup": {"min_new_tokens": 20, "prompt_lookup_num_tokens": 3},
    "lowest numbers": {"min_new_tokens": 20, "remove_invalid_values": True},
}


@pytest.mark.parametrize("name", list(FORBIDDEN))
def test_nothing_left_to_choose_is_an_error(model: stencilm.Model, name: str) -> None:
    compiled = model.compile(stencilm.Regex("yes|no|maybe"))
    processor = stencilm.LogitsProcessor(compiled)
    with pytest.raises(stencilm.MatcherError, match="min_new_tokens") as raised:
        write(model, PROMPT, logits_processor=[processor], **FORBIDDEN[name])
    assert str(raised.value).startswith("row ")
    if not {"num_beams", "prompt_lookup_num_tokens"} & set(FORBIDDEN[name]):
        custom = stencilm.CustomGenerate(compiled)
        with pytest.raises(stencilm.MatcherError, match="min_new_tokens"):
            write(model, PROMPT, custom_generate=custom, **FORBIDDEN[name])


NOT_NUMBERS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"do_sample": True},
    "beams": {"num_beams": 3},
    "sampled beams": {"num_beams": 3, "do_sample": True},
    "the last token": {"max_new_tokens": 2},
}


@pytest.mark.parametrize("name", list(NOT_NUMBERS))
@pytest.mark.parametrize("column", [slice(None), 7])
def test_scores_that_are_no_numbers_choose_nothing(
    model: stencilm.Model, name: str, column: Any
) -> None:
    """NaN is the highest to whoever looks for the highest, and so ends texts in their middle."""

    class Breaking(transformers.LogitsProcessor):  # type: ignore[misc, name-defined]
        steps = 0

        def __call__(self, input_ids: Any, scores: Any) -> Any:
            self.steps += 1
            scores = scores.clone()
            if self.steps == 2:
                scores[:, column] = float("nan")
            return scores

    compiled = model.compile(stencilm.Regex(r"[\x00-\x7f]{12}"))
    options = NOT_NUMBERS[name]
    processors = [Breaking(), stencilm.LogitsProcessor(compiled)]
    with pytest.raises(stencilm.MatcherError, match=r"^row 0: the scores hold NaN"):
        write(model, PROMPT, logits_processor=processors, **options)
    if "num_beams" not in options:
        custom = stencilm.CustomGenerate(compiled)
        with pytest.raises(stencilm.MatcherError, match=r"^row 0: the scores hold NaN"):
            write(model, PROMPT, custom_generate=custom, logits_processor=[Breaking()], **options)
    # Where the grammar allows no such token, there is nothing wrong.
    digits = stencilm.LogitsProcessor(model.compile(stencilm.Regex("[0-9]{4}")))
    if column == 7:
        text = write(model, PROMPT, logits_processor=[Breaking(), digits], **options)
        assert re.fullmatch("[0-9]{1,4}", text)


def test_bad_words_leave_the_other_texts(model: stencilm.Model) -> None:
    compiled = model.compile(stencilm.Regex("[ab]"))
    info = model.tokenizer_info
    # A letter may be spelled by its own token and by that of its byte.
    bad, rest = (
        [[i] for i in range(4, 4608) if info.decode_bytes([i]) == text] for text in (b"a", b"b")
    )
    for options in (
        {"logits_processor": [stencilm.LogitsProcessor(compiled)]},
        {"custom_generate": stencilm.CustomGenerate(compiled)},
    ):
        assert write(model, PROMPT, bad_words_ids=bad, **options) == "b"
        with pytest.raises(stencilm.MatcherError, match="bad_words_ids"):
            write(model, PROMPT, bad_words_ids=bad + rest, **options)


def test_beams_find_all_texts(model: stencilm.Model) -> None:
    """Also where there are more beams than texts, so that beams die."""
    compiled = model.compile(stencilm.Regex("yes|no"))
    backend: Any = model.backend
    inputs = backend.tokenizer(PROMPT, return_tensors="pt")
    for sample in (False, True):
        ids = backend.model.generate(
            **inputs, max_new_tokens=20, do_sample=sample, num_beams=2, num_return_sequences=2,
            logits_processor=[stencilm.LogitsProcessor(compiled)], pad_token_id=3,
        )  # fmt: skip
        texts = backend.tokenizer.batch_decode(
            ids[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True
        )
        assert set(texts) <= {"yes", "no"}, sample
    best = write(model, PROMPT, num_beams=6, logits_processor=[stencilm.LogitsProcessor(compiled)])
    assert best in ("yes", "no")


def test_static_cache_and_several_sequences(model: stencilm.Model) -> None:
    processor = stencilm.LogitsProcessor(model.compile(Person))
    custom = stencilm.CustomGenerate(model.compile(Person))
    plain = write(model, PROMPT, logits_processor=[processor])
    for options in ({"logits_processor": [processor]}, {"custom_generate": custom}):
        assert write(model, PROMPT, cache_implementation="static", **options) == plain
        backend: Any = model.backend
        inputs = backend.tokenizer(PROMPT, return_tensors="pt")
        torch.manual_seed(3)
        ids = backend.model.generate(
            **inputs, max_new_tokens=60, do_sample=True, num_return_sequences=3, pad_token_id=3,
            **options,
        )  # fmt: skip
        for row in ids[:, inputs["input_ids"].shape[1] :]:
            text = backend.tokenizer.decode(row, skip_special_tokens=True)
            Person.model_validate_json(text)


COMPILED: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"do_sample": True, "num_return_sequences": 2},
    "lookup": {"prompt_lookup_num_tokens": 3},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(COMPILED))
def test_static_cache_with_compiled_passes(model: stencilm.Model, name: str) -> None:
    """The passes are replayed from what torch.compile recorded; masks are no part of them."""
    replayed = 0

    def counting(graph: Any, _: Any) -> Any:
        def run(*values: Any) -> Any:
            nonlocal replayed
            replayed += 1
            return graph.forward(*values)

        return run

    if transformers.__version__.startswith("5.4."):
        pytest.skip("compiled passes of transformers 5.4 fail without any processor: NameError")
    config = transformers.CompileConfig(backend=counting, fullgraph=False, mode=None)
    config._compile_all_devices = True  # else passes are compiled on GPUs only
    options = {"cache_implementation": "static", "max_new_tokens": 60, "pad_token_id": 3}
    backend: Any = model.backend
    inputs = backend.tokenizer(PROMPT, return_tensors="pt")
    torch.manual_seed(3)
    ids = backend.model.generate(
        **inputs, **{"do_sample": False, **options, **COMPILED[name]},
        compile_config=config, logits_processor=[stencilm.LogitsProcessor(model.compile(Person))],
    )  # fmt: skip
    # Before transformers 5.17 drafts are read with another cache than the static one.
    is_newer = tuple(map(int, transformers.__version__.split(".")[:2])) >= (5, 17)
    assert (replayed > 5) == (is_newer or name != "lookup"), replayed
    for row in ids[:, inputs["input_ids"].shape[1] :]:
        Person.model_validate_json(backend.tokenizer.decode(row, skip_special_tokens=True))


@pytest.mark.parametrize(
    "output_type",
    [
        stencilm.Ebnf('root ::= "(" [0-9]{2} ")"'),
        stencilm.Lark('start: "(" /[0-9]{2}/ ")"'),
        stencilm.StructuralTag.from_json(
            {"type": "tag", "begin": "(", "content": {"type": "regex", "pattern": "[0-9]{2}"},
             "end": ")"}
        ),
    ],
    ids=lambda output_type: type(output_type).__name__,
)  # fmt: skip
def test_every_notation(model: stencilm.Model, output_type: Any) -> None:
    processor = stencilm.LogitsProcessor(model.compile(output_type))
    assert re.fullmatch(r"\(\d\d\)", write(model, PROMPT, logits_processor=[processor]))


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_beams_of_several_prompts_with_a_grammar_each(model: stencilm.Model, cache: str) -> None:
    backend: Any = model.backend
    inputs = backend.tokenizer(
        [PROMPT, "A code: "], return_tensors="pt", padding=True, padding_side="left"
    )
    grammars = [model.compile(Person), model.compile(stencilm.Regex("[A-Z]{2}-[0-9]{3}"))]
    ids = backend.model.generate(
        **inputs, max_new_tokens=60, do_sample=False, num_beams=3, num_return_sequences=3,
        cache_implementation=cache, pad_token_id=3,
        logits_processor=[stencilm.LogitsProcessor(grammars)],
    )  # fmt: skip
    texts = backend.tokenizer.batch_decode(
        ids[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True
    )
    assert len(set(texts)) == 6
    for text in texts[:3]:
        Person.model_validate_json(text)
    for text in texts[3:]:
        assert re.fullmatch("[A-Z]{2}-[0-9]{3}", text)


def test_rows_must_be_a_multiple_of_the_grammars(model: stencilm.Model) -> None:
    backend: Any = model.backend
    backend.tokenizer.pad_token, backend.tokenizer.padding_side = "</s>", "left"
    inputs = backend.tokenizer(["a", "b", "c"], return_tensors="pt", padding=True)
    compiled = [model.compile(stencilm.Regex(pattern)) for pattern in ("x", "y")]
    for options in (
        {"logits_processor": [stencilm.LogitsProcessor(compiled)]},
        {"custom_generate": stencilm.CustomGenerate(compiled)},
    ):
        with pytest.raises(ValueError, match="3 rows cannot be shared out among 2 grammars"):
            backend.model.generate(**inputs, max_new_tokens=5, pad_token_id=3, **options)


def test_what_are_no_rows_is_told_by_its_shape(model: stencilm.Model) -> None:
    processor = stencilm.LogitsProcessor(model.compile(int))
    scores = np.zeros((1, model.tokenizer_info.vocab_size), dtype=np.float32)
    for rows, given in [([1, 2], scores[0]), ([[1, 2]], scores), (np.array([[1, 2]]), None)]:
        with pytest.raises(ValueError, match=r"^input_ids has shape \(.*but LogitsProcessor takes"):
            processor(rows, given)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool])
def test_ids_that_are_no_integers_are_told(model: stencilm.Model, dtype: Any) -> None:
    processor = stencilm.LogitsProcessor(model.compile(bool))
    with pytest.raises(TypeError, match=f"input_ids has dtype {dtype}, but must hold token ids"):
        processor(torch.ones(1, 3, dtype=dtype), torch.zeros(1, 4608))


def test_the_end_may_be_told_by_a_tensor(model: stencilm.Model) -> None:
    backend: Any = model.backend
    stop = model.tokenizer_info.stop_token_ids[0]
    inputs = backend.tokenizer("a", return_tensors="pt")
    texts = []
    for stops in (stop, [stop], torch.tensor(stop), torch.tensor([stop]), torch.tensor([3, stop])):
        custom = stencilm.CustomGenerate(model.compile(stencilm.Regex("[A-Z]{2}-[0-9]{3}")))
        options = {"custom_generate": custom, "pad_token_id": stop, "eos_token_id": stops}
        ids = backend.model.generate(**inputs, max_new_tokens=30, **options)[0]
        texts.append(ids.tolist())
    assert len({*map(tuple, texts)}) == 1, texts


def test_a_row_ends_with_the_token_that_ends_it_as_with_generate(model: stencilm.Model) -> None:
    """Also if that is an ordinary token, which no decoding leaves out."""
    backend: Any = model.backend
    end = backend.tokenizer.encode("\n", add_special_tokens=False)[-1]
    inputs = backend.tokenizer("A colour:", return_tensors="pt")
    custom = stencilm.CustomGenerate(model.compile(stencilm.Regex("red|blue")))
    options = {"eos_token_id": end, "pad_token_id": 0, "max_new_tokens": 9}
    ids = backend.model.generate(**inputs, custom_generate=custom, **options)[0].tolist()
    free = backend.model.generate(**inputs, **options | {"max_new_tokens": 90})[0].tolist()
    assert (ids[-1], ids.count(end)) == (end, 1) == (free[-1], free.count(end))
    text = backend.tokenizer.decode(ids[inputs["input_ids"].shape[1] : -1])
    assert text in ("red", "blue")


def test_a_grammar_for_another_vocabulary_is_an_error(model: stencilm.Model) -> None:
    small = stencilm.TokenizerInfo(
        [bytes([byte]) for byte in range(256)] + [b""], stop_token_ids=[256]
    )
    large = stencilm.TokenizerInfo(
        [b"%d" % number for number in range(9000)] + [b""], stop_token_ids=[9000]
    )
    for info in (small, large):
        compiled = stencilm.GrammarCompiler(info).compile_regex("[0-9]+")
        for options in (
            {"logits_processor": [stencilm.LogitsProcessor(compiled)]},
            {"custom_generate": stencilm.CustomGenerate(compiled)},
        ):
            with pytest.raises(stencilm.TokenizerError, match=r"4608 columns.*vocab_size="):
                write(model, PROMPT, eos_token_id=2, **options)
    mixed = [model.compile(int), stencilm.GrammarCompiler(small).compile_regex("[0-9]+")]
    for kind in (stencilm.LogitsProcessor, stencilm.CustomGenerate):
        with pytest.raises(stencilm.TokenizerError, match="one model has one vocabulary"):
            kind(mixed)


def test_a_streamer_shows_all_that_custom_generate_writes(model: stencilm.Model) -> None:
    class Shown:
        def __init__(self) -> None:
            self.tokens: list[int] = []
            self.is_over = False

        def put(self, value: Any) -> None:
            self.tokens += value.flatten().tolist()

        def end(self) -> None:
            self.is_over = True

    backend: Any = model.backend
    inputs = backend.tokenizer(PROMPT, return_tensors="pt")
    for options in (
        {"logits_processor": [stencilm.LogitsProcessor(model.compile(Person))]},
        {"custom_generate": stencilm.CustomGenerate(model.compile(Person))},
    ):
        streamer = Shown()
        ids = backend.model.generate(
            **inputs, max_new_tokens=60, do_sample=False, streamer=streamer, pad_token_id=3,
            **options,
        )  # fmt: skip
        assert streamer.is_over and streamer.tokens == ids[0].tolist()
    two = backend.tokenizer(["a", "b"], return_tensors="pt")
    with pytest.raises(ValueError, match="2 rows"):
        backend.model.generate(
            **two, max_new_tokens=9, pad_token_id=3, streamer=Shown(),
            custom_generate=stencilm.CustomGenerate(model.compile(Person)),
        )  # fmt: skip


@pytest.mark.parametrize("stop", ["ed", "o", "two", "eight", "nine"])
def test_what_stops_may_stand_within_forced_text(model: stencilm.Model, stop: str) -> None:
    """The text ends with it, in the tokens of either way, and no more is shown to a streamer."""
    backend: Any = model.backend
    grammar = model.compile(stencilm.Regex("(red|bed), one two three (a|b) seven eight nine"))
    prompt = "Colours:"
    criterion = transformers.StopStringCriteria(backend.tokenizer, [stop])
    for option in (
        {"logits_processor": [stencilm.LogitsProcessor(grammar)]},
        {"custom_generate": stencilm.CustomGenerate(grammar)},
    ):
        text = write(model, prompt, stopping_criteria=[criterion], **option)
        assert stop in text[-len(stop) - 3 :] and text.count(stop) == 1, text


def test_a_criterion_is_asked_after_each_token(model: stencilm.Model) -> None:
    asked: list[int] = []

    class Asked(transformers.StoppingCriteria):  # type: ignore[name-defined, misc]
        def __call__(self, input_ids: Any, scores: Any, **options: Any) -> Any:
            asked.append(input_ids.shape[1])
            return torch.tensor([len(asked) == 5])

    backend: Any = model.backend
    inputs = backend.tokenizer(["Colours:"], return_tensors="pt")
    start = inputs["input_ids"].shape[1]
    for pattern in ("one two three four five", "(a|b) one two three four five"):
        asked.clear()
        ids = backend.model.generate(
            **inputs, max_new_tokens=60, pad_token_id=3, stopping_criteria=[Asked()],
            custom_generate=stencilm.CustomGenerate(model.compile(stencilm.Regex(pattern))),
        )  # fmt: skip
        assert asked == [start + number for number in range(1, 6)]
        assert ids.shape[1] == start + 5


def test_custom_generate_refuses_what_it_would_ignore(model: stencilm.Model) -> None:
    backend: Any = model.backend
    custom = stencilm.CustomGenerate(model.compile(Person))
    asked: list[dict[str, Any]] = [
        {"assistant_model": backend.model}, {"prompt_lookup_num_tokens": 3},
        {"assistant_early_exit": 2}, {"num_beams": 2}, {"return_dict_in_generate": True},
    ]  # fmt: skip
    for options in asked:
        with pytest.raises(ValueError, match=r"use stencilm\.LogitsProcessor"):
            write(model, PROMPT, custom_generate=custom, **options)


def test_continuous_batching_is_not_dropped_in_silence(model: stencilm.Model) -> None:
    processor = stencilm.LogitsProcessor(model.compile(Person))
    with pytest.raises(stencilm.UnsupportedFeature, match="ContinuousBatchingLogitsProcessor"):
        processor.supports_continuous_batching  # noqa: B018
    with pytest.raises(ValueError, match="ContinuousBatchingLogitsProcessor"):
        processor(torch.tensor([5, 6]), torch.zeros((2, 4608)))
    module = pytest.importorskip("transformers.generation.continuous_batching.cb_logits_processors")
    with pytest.raises(stencilm.UnsupportedFeature, match="ContinuousBatchingLogitsProcessor"):
        module.ContinuousBatchingLogitsProcessorList(transformers.LogitsProcessorList([processor]))


def test_copies_and_pickles_of_processors(model: stencilm.Model) -> None:
    compiled = model.compile(Person)
    for one in (stencilm.LogitsProcessor(compiled), stencilm.CustomGenerate(compiled)):
        assert type(copy.deepcopy(one)) is type(copy.copy(one)) is type(one)
        with pytest.raises(TypeError, match="compile it there"):
            pickle.dumps(one)
    processor, tokens = walk(model, '{"name"')
    allowed(processor, [50])
    twin = copy.deepcopy(processor)
    assert allowed(twin, [50, *tokens]) == [expected_after(model, [])]
    assert allowed(processor, [50, *tokens]) == [expected_after(model, tokens)]


ROW_BY_ROW: dict[str, dict[str, Any]] = {
    "repetition_penalty": {"repetition_penalty": 1.5},
    "encoder_repetition_penalty": {"encoder_repetition_penalty": 1.5},
    "encoder_no_repeat_ngram_size": {"encoder_no_repeat_ngram_size": 2},
}


def written_rows(model: stencilm.Model, prompts: list[str], **options: Any) -> list[str]:
    backend: Any = model.backend
    inputs = backend.tokenizer(prompts, return_tensors="pt", padding=True, padding_side="left")
    ids = backend.model.generate(
        **inputs, **{"max_new_tokens": 30, "do_sample": False, "pad_token_id": 3, **options}
    )
    start = inputs["input_ids"].shape[1]
    return [backend.tokenizer.decode(each[start:], skip_special_tokens=True) for each in ids]


@pytest.mark.parametrize("name", list(ROW_BY_ROW))
def test_processors_that_know_their_rows_count_in_custom_generate(
    model: stencilm.Model, name: str
) -> None:
    patterns = ["[0-9]{4}", "(red|blue) [a-z]{3,5}"]
    grammars = [model.compile(stencilm.Regex(pattern)) for pattern in patterns]
    prompts = ["A long prompt that holds 1 2 3 4 and more:", "A colour:"]
    custom = stencilm.CustomGenerate(grammars)
    together = written_rows(model, prompts, custom_generate=custom, **ROW_BY_ROW[name])
    for pattern, text in zip(patterns, together, strict=True):
        assert re.fullmatch(pattern, text)


def test_custom_generate_shows_a_warper_each_row_once(
    model: stencilm.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However different their lengths are, which forced text makes them be."""
    shown: list[int] = []
    whole = transformers.TopKLogitsWarper.__call__

    def counted(self: Any, input_ids: Any, scores: Any) -> Any:
        shown.append(len(input_ids))
        return whole(self, input_ids, scores)

    monkeypatch.setattr(transformers.TopKLogitsWarper, "__call__", counted)
    patterns = ["[0-9]x{0}[0-9]", "[0-9]xx[0-9]", "[0-9]xxxxx[0-9]", "[0-9]xxxxxxxx[0-9]"]
    grammars = [model.compile(stencilm.Regex(pattern)) for pattern in patterns]
    custom = stencilm.CustomGenerate(grammars)
    drawing = {"do_sample": True, "top_k": 5}
    texts = written_rows(model, ["A:", "B:", "C:", "D:"], custom_generate=custom, **drawing)
    for pattern, text in zip(patterns, texts, strict=True):
        assert re.fullmatch(pattern, text)
    assert sum(shown) <= len(patterns) * custom.forward_passes


def test_custom_generate_tells_a_prefix_function_the_row(model: stencilm.Model) -> None:
    """Each row is restricted by what the function says of it, not of the first one."""
    backend: Any = model.backend
    red, blue = (
        [*backend.tokenizer(word, add_special_tokens=False)["input_ids"], 2]
        for word in ("red", "blue")
    )
    assert not set(red[:-1]) & set(blue[:-1])
    custom = stencilm.CustomGenerate(model.compile(stencilm.Regex("red|blue")))
    found = written_rows(
        model, ["A colour:", "Another, longer one:", "And:"], custom_generate=custom,
        prefix_allowed_tokens_fn=lambda row, _: [red, blue, red][row],
    )  # fmt: skip
    assert found == ["red", "blue", "red"]


def synth_id(kind: Any) -> Any:
    return kind(
        ngram_len=3,
        keys=[5, 7],
        sampling_table_size=64,
        sampling_table_seed=0,
        context_history_size=16,
        device=torch.device("cpu"),
    )


def test_custom_generate_refuses_what_has_to_see_every_token(model: stencilm.Model) -> None:
    """SynthID's context would lack the tokens that take no pass, so no detector would find it."""
    custom = stencilm.CustomGenerate(model.compile(Person))
    backend: Any = model.backend
    # As a user makes it to change something.
    own = type("Own", (transformers.SynthIDTextWatermarkLogitsProcessor,), {})
    refused: list[tuple[str, dict[str, Any]]] = [
        ("guidance_scale", {"guidance_scale": 1.5}),
        (
            "guidance_scale",
            {
                "logits_processor": [
                    transformers.UnbatchedClassifierFreeGuidanceLogitsProcessor(2, backend.model)
                ]
            },
        ),
        (
            "SynthID",
            {
                "watermarking_config": transformers.SynthIDTextWatermarkingConfig(
                    ngram_len=3, keys=[5, 7]
                ),
                "do_sample": True,
            },
        ),
        (
            "SynthID",
            {
                "logits_processor": [
                    synth_id(transformers.SynthIDTextWatermarkLogitsProcessor),
                ]
            },
        ),
        ("SynthID", {"logits_processor": [synth_id(own)]}),
    ]
    for name, options in refused:
        with pytest.raises(ValueError, match=rf"{name}.*use stencilm\.LogitsProcessor"):
            write(model, PROMPT, custom_generate=custom, **options)


def test_watermarks_beside_a_grammar(model: stencilm.Model) -> None:
    """SynthID's goes with `LogitsProcessor`, the older one, which looks at the text, with both."""
    synthid = transformers.SynthIDTextWatermarkingConfig(ngram_len=3, keys=[5, 7])
    older = transformers.WatermarkingConfig()
    compiled = model.compile(Person)
    for options in (
        {"logits_processor": [stencilm.LogitsProcessor(compiled)], "watermarking_config": synthid},
        {"logits_processor": [stencilm.LogitsProcessor(compiled)], "watermarking_config": older},
        {"custom_generate": stencilm.CustomGenerate(compiled), "watermarking_config": older},
    ):
        text = write(model, PROMPT, do_sample=True, **options)
        assert Person.model_validate_json(text)


def test_custom_generate_of_no_rows_and_without_an_end(model: stencilm.Model) -> None:
    backend: Any = model.backend
    custom = stencilm.CustomGenerate(model.compile(stencilm.Regex("red|blue")))
    none = torch.zeros((0, 3), dtype=torch.int64)
    options = {"custom_generate": custom, "max_new_tokens": 9, "pad_token_id": 3}
    assert backend.model.generate(none, **options).shape == (0, 3)
    assert write(model, "A colour:", custom_generate=custom, eos_token_id=-1) in ("red", "blue")


def test_a_row_that_ended_by_a_token_without_a_score() -> None:
    """A model may have fewer scores than its tokenizer has special tokens."""
    info = stencilm.TokenizerInfo([b"a", b"b", b"</s>"], stop_token_ids=[2], special_token_ids=[2])
    compiled = stencilm.GrammarCompiler(info).compile_regex("ab?")
    processor = stencilm.LogitsProcessor(compiled)
    processor(torch.tensor([[1]]), torch.zeros((1, 2)))
    scores = torch.zeros((1, 2))
    assert processor(torch.tensor([[1, 0, 2]]), scores).tolist() == scores.tolist()


def test_a_row_that_ended_without_a_token_for_the_end() -> None:
    """What the loop would write there fits no grammar."""
    info = stencilm.TokenizerInfo([b"a", b"b"])
    compiled = stencilm.GrammarCompiler(info).compile_regex("ab?")
    processor = stencilm.LogitsProcessor(compiled)
    processor(torch.tensor([[1]]), torch.zeros((1, 2)))
    with pytest.raises(stencilm.MatcherError, match=r"row 0: .*no stop token.*stop_token_ids"):
        processor(torch.tensor([[1, 0]]), torch.zeros((1, 2)))


def test_what_is_no_grammar_is_named() -> None:
    for wrong in (None, 3, [], [None]):
        with pytest.raises(TypeError, match="LogitsProcessor takes a CompiledGrammar"):
            stencilm.LogitsProcessor(wrong)  # type: ignore[arg-type]


def test_threads_share_a_processor(model: stencilm.Model) -> None:
    compiled = model.compile(stencilm.Regex("[0-9]{3,6}"))
    info = compiled.tokenizer_info
    processor = stencilm.LogitsProcessor(compiled)

    def texts(number: int) -> list[bytes]:
        random = torch.Generator().manual_seed(number)
        found = []
        for _ in range(20):
            ids = [300 + number] * 5
            while ids[-1] not in info.stop_token_ids:
                scores = torch.rand((1, info.vocab_size), generator=random)
                ids.append(int(processor(torch.tensor([ids]), scores).argmax()))
            found.append(info.decode_bytes(ids[5:-1]))
        return found

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(6) as pool:
            found = [text for each in pool.map(texts, range(6)) for text in each]
    finally:
        sys.setswitchinterval(interval)
    assert all(re.fullmatch(rb"[0-9]{3,6}", text) for text in found)
