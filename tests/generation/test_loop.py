"""The decode loop, with a model over bytes and a matcher over a list of texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stencilm.errors import MatcherError, ModelError
from stencilm.generation.loop import Decoding, generate
from stencilm.generation.sampling import Sampling
from stencilm.generation.trace import Forced, Prompt, Sampled, Stopped, Trace

PROMPT = [ord(">")]


def run(toys: Any, wants: str, texts: list[str] | None, **options: Any) -> Any:
    """Let a model that wants to write `wants` run under a matcher of `texts`."""
    matcher = None if texts is None else toys.matcher(texts)
    return generate(toys.model(toys.spelling(wants)), matcher, PROMPT, **options)


@pytest.mark.parametrize(
    ("wants", "texts", "max_tokens", "text", "reason", "complete", "passes"),
    [
        ("cat", ["cat", "dog"], 9, "cat", "stop", True, 3),  # nothing can follow: no pass for it
        ("cat", ["dog"], 9, "dog", "stop", True, 3),  # the mask overrules the model
        ("ca", ["ca", "cat"], 9, "ca", "stop", True, 3),  # the model chooses to stop: one pass
        ("cat", ["ca", "cat"], 9, "cat", "stop", True, 3),
        ("cat", ["cat"], 3, "cat", "stop", True, 3),  # done exactly at the limit
        ("cat", ["cat"], 2, "ca", "length", False, 2),
        ("cats", ["cat", "cats"], 3, "cat", "length", True, 3),  # a whole text, but it might go on
        ("", [""], 9, "", "stop", True, 0),
        ("hi", None, 9, "hi", "stop", True, 3),  # free text ends with the stop token
        ("hello", None, 2, "he", "length", True, 2),
        ("é", None, 1, "", "length", True, 1),  # half a character is left out
    ],
)
def test_texts_and_their_ends(
    toys: Any,
    wants: str,
    texts: list[str] | None,
    max_tokens: int,
    text: str,
    reason: str,
    complete: bool,
    passes: int,
) -> None:
    generation = run(toys, wants, texts, max_tokens=max_tokens)
    assert (generation.text, generation.finish_reason) == (text, reason)
    assert generation.is_complete is complete
    assert generation.stats.forward_passes == passes
    assert generation.stats.tokens == len(generation.token_ids)
    assert generation.value is None


def test_the_trace_tells_the_whole_story(toys: Any) -> None:
    generation = run(toys, "do", ["do", "dog"])
    kinds = [type(event) for event in generation.trace]
    assert kinds == [Prompt, Sampled, Sampled, Stopped]
    prompt, first, second, stopped = generation.trace
    assert prompt == Prompt(token_ids=(ord(">"),), text=b">")
    assert (first.text, first.allowed, second.text) == (b"d", 1, b"o")
    assert (stopped.reason, stopped.token_id, stopped.limit) == ("stop", toys.stop, None)
    # The model's own probability: softmax of one 5 among zeros, over the whole vocabulary.
    expected = 5 - np.log(np.exp(5) + toys.vocab_size - 1)
    assert first.logprob == pytest.approx(expected, abs=1e-5)
    assert stopped.logprob == pytest.approx(expected, abs=1e-5)
    assert Trace.loads(generation.trace.dumps()) == generation.trace


def test_each_step_gives_the_model_only_what_it_has_not_read(toys: Any) -> None:
    model = toys.model(toys.spelling("dog"))
    generate(model, toys.matcher(["dog"]), PROMPT)
    assert model.calls == [[], [ord("d")], [ord("o")]]


def test_a_decoding_is_an_iterator_that_can_be_left_and_taken_up(toys: Any) -> None:
    decoding = Decoding(toys.model(toys.spelling("cat")), toys.matcher(["cat"]), PROMPT)
    next(decoding)
    assert decoding.text == b""
    next(decoding)
    assert (decoding.text, decoding.finish_reason) == (b"c", None)
    with pytest.raises(ValueError, match="not finished"):
        decoding.result()
    assert [type(event) for event in decoding] == [Sampled, Sampled, Stopped]
    assert decoding.result().text == "cat"


def test_padding_beyond_the_vocabulary_is_never_drawn(toys: Any) -> None:
    def logits_after(token_ids: list[int]) -> Any:
        return np.concatenate([toys.spelling("ok")(token_ids), np.full(64, 99.0)])

    for texts in (["ok"], None):
        matcher = None if texts is None else toys.matcher(texts)
        assert generate(toys.model(logits_after), matcher, PROMPT).text == "ok"


def test_logits_narrower_than_the_vocabulary_are_allowed(toys: Any) -> None:
    model = toys.model(lambda token_ids: np.zeros(200))
    generation = generate(model, toys.matcher(["ok"]), PROMPT)
    assert generation.text == "ok"


def test_a_matcher_that_ends_without_a_stop_token(toys: Any) -> None:
    matcher = toys.matcher(["a", "ab"], needs_stop_token=False)
    generation = generate(toys.model(toys.spelling("ab")), matcher, PROMPT)
    assert (generation.text, generation.finish_reason) == ("a", "stop")


def test_no_way_on_raises_for_this_sequence_alone(toys: Any) -> None:
    matcher = toys.matcher(["a"])
    matcher.stop_token_ids, matcher.allowed = [toys.stop], lambda: set()
    with pytest.raises(MatcherError, match="can follow the prompt"):
        generate(toys.model(toys.spelling("a")), matcher, PROMPT)
    assert run(toys, "a", ["a"]).text == "a"


@pytest.mark.parametrize(
    ("logits", "word"),
    [(np.full(257, -np.inf), "probability of zero"), (np.full(257, np.nan), "NaN")],
)
def test_logits_of_no_use_are_the_models_fault(toys: Any, logits: Any, word: str) -> None:
    with pytest.raises(ModelError, match=word):
        generate(toys.model(lambda token_ids: logits), toys.matcher(["ab"]), PROMPT)


def test_a_full_context_cuts_the_text(toys: Any) -> None:
    model = toys.model(toys.spelling("hello"), context_size=3)
    generation = generate(model, None, PROMPT)
    # Two tokens fit after the prompt, and the last of the three predicts one more.
    assert (generation.text, generation.finish_reason) == ("hel", "length")
    assert generation.trace[-1].limit == "context"  # type: ignore[attr-defined]


def test_the_same_seed_writes_the_same_text(toys: Any) -> None:
    def text(sampling: Sampling) -> Any:
        model = toys.model(lambda token_ids: np.zeros(257))
        return generate(model, None, PROMPT, sampling=sampling, max_tokens=30)

    first = text(Sampling(temperature=1.0, seed=7))
    assert first.token_ids == text(Sampling(temperature=1.0, seed=7)).token_ids
    assert first.token_ids != text(Sampling(temperature=1.0, seed=8)).token_ids
    # A text drawn without a seed can be drawn again, because the statistics keep the one it used.
    unseeded = text(Sampling(temperature=1.0))
    again = text(Sampling(temperature=1.0, seed=unseeded.stats.seed))
    assert again.token_ids == unseeded.token_ids


def test_statistics_add_up(toys: Any) -> None:
    stats = run(toys, "dog", ["dog"]).stats
    parts = stats.mask_seconds + stats.model_seconds + stats.sampling_seconds
    assert 0 < parts <= stats.seconds
    assert (stats.prompt_tokens, stats.tokens, stats.seed) == (1, 3, None)


@pytest.mark.parametrize(
    ("wants", "texts", "options", "text", "forced", "passes"),
    [
        ("cats", ["cats"], {}, "cats", 4, 0),  # nothing is left to the model
        ("cat 1", ["cat 1", "cat 2"], {}, "cat 1", 4, 1),
        ("dog", ["cat", "dog"], {}, "dog", 2, 1),
        ("ca1bb", ["ca1bb", "ca2bb", "da1bb"], {}, "ca1bb", 3, 2),
        ("ca", ["ca", "cat"], {}, "ca", 2, 1),  # whether the text ends is up to the model
        ("cat", ["cats"], {"max_tokens": 3}, "cat", 3, 0),
        ("cat 1", ["cat 1", "cat 2"], {"fast_forward": False}, "cat 1", 0, 5),
    ],
)
def test_forced_tokens_cost_no_pass(
    toys: Any,
    wants: str,
    texts: list[str],
    options: dict[str, Any],
    text: str,
    forced: int,
    passes: int,
) -> None:
    model = toys.model(toys.spelling(wants))
    generation = generate(model, toys.matcher(texts, forces=True), PROMPT, **options)
    stats = generation.stats
    assert (generation.text, stats.forced_tokens, stats.forward_passes) == (text, forced, passes)
    # The model has read all but the last drawn token and what was forced after it, each once.
    read = [token_id for call in model.calls for token_id in call]
    assert list(generation.token_ids[: len(read)]) == read
    events = [event for event in generation.trace if isinstance(event, (Forced, Sampled))]
    assert b"".join(event.text for event in events) == text.encode()
    assert sum(len(event.token_ids) for event in events if isinstance(event, Forced)) == forced
    assert Trace.loads(generation.trace.dumps()) == generation.trace


def test_forced_tokens_stop_where_the_context_is_full(toys: Any) -> None:
    model = toys.model(toys.spelling("hello"), context_size=3)
    generation = generate(model, toys.matcher(["hello"], forces=True), PROMPT)
    assert (generation.text, generation.finish_reason) == ("hel", "length")
    assert model.calls == []


@pytest.mark.parametrize("max_tokens", [0, -3, 2.5, True])
def test_max_tokens_must_be_positive(toys: Any, max_tokens: Any) -> None:
    with pytest.raises(ValueError, match=r"max_tokens is .*, but must be at least 1"):
        run(toys, "a", ["a"], max_tokens=max_tokens)


def test_the_temperature_of_a_grammar_goes_before_that_of_the_call(toys: Any) -> None:
    def texts(temperature: float | None, sampling: Sampling) -> set[str]:
        written = set()
        for _ in range(40):
            matcher = toys.matcher(["cat", "dog"])
            matcher.temperature = temperature
            generation = generate(
                toys.model(toys.spelling("cat")), matcher, PROMPT, sampling=sampling
            )
            written.add(generation.text)
            drawn = max(sampling.temperature, temperature or 0.0) > 0
            assert (generation.stats.seed is not None) == drawn
        return written

    assert texts(None, Sampling()) == {"cat"}
    assert texts(1000.0, Sampling()) == {"cat", "dog"}
    assert texts(0.0, Sampling(temperature=1000.0)) == {"cat"}


def test_a_text_drawn_at_the_temperature_of_a_grammar_can_be_made_again(toys: Any) -> None:
    def written(seed: int | None) -> Any:
        matcher = toys.matcher(["cat", "dog", "cow", "hen"])
        matcher.temperature = 1000.0
        model = toys.model(toys.spelling("cat"))
        return generate(model, matcher, PROMPT, sampling=Sampling(seed=seed))

    first = written(None)
    assert written(first.stats.seed).text == first.text
