"""The rows of a `LogitsProcessor`: forward, back, reordered, dropped and come again."""

from __future__ import annotations

import pytest

import stencilm
from generation.stepped_rows import Person, allowed, expected_after, walk

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def model() -> stencilm.Model:
    return stencilm.load("tiny")


def test_rows_step_forward_and_back_by_any_number(model: stencilm.Model) -> None:
    processor, tokens = walk(model, '{"name": "Ada", "job": "pilot"}')
    other = model.tokenizer_info.tokenize_bytes(b'{"name": "Bo')
    prompt = [50, 60, 70]
    assert allowed(processor, prompt) == [expected_after(model, [])]
    for length in (1, 4, 2, 3, len(tokens), 0, 5, 5, len(tokens) - 1, 1):
        assert allowed(processor, prompt + tokens[:length]) == [
            expected_after(model, tokens[:length])
        ], length
        assert allowed(processor, prompt + other) == [expected_after(model, other)]


def test_rows_are_reordered_repeated_and_dropped(model: stencilm.Model) -> None:
    processor, tokens = walk(model, '{"name": "Ada", "job": "pilot"}')
    other = model.tokenizer_info.tokenize_bytes(b'{"name": "Bo')[: len(tokens)]
    width = min(len(tokens), len(other))
    prompt = [50, 60, 70]
    allowed(processor, prompt, prompt, prompt)
    for length in range(1, width):
        rows = [tokens[:length], other[:length], tokens[:length]][:: -1 if length % 2 else 1]
        assert allowed(processor, *(prompt + row for row in rows)) == [
            expected_after(model, row) for row in rows
        ]


def test_any_number_of_sets_of_prompts_in_turn(model: stencilm.Model) -> None:
    """More than keep their matchers: a set that comes again is read anew from its prompt's end."""
    processor, tokens = walk(model, '{"name": "Ada", "job": "pilot"}')
    other = model.tokenizer_info.tokenize_bytes(b'{"name": "Bo')
    for length in (0, 1, 2, 2, 3, 4):
        for number in range(30):
            prompt = [50, 60 + number]
            rows = [tokens[:length], other[:length]][:: -1 if length % 2 else 1]
            assert allowed(processor, *(prompt + row for row in rows)) == [
                expected_after(model, row) for row in rows
            ], (length, number)


def test_a_prompt_that_goes_on_from_another_leaves_that_as_it_was(model: stencilm.Model) -> None:
    """Two conversations in turn, of which one is the other's beginning."""
    processor, tokens = walk(model, '{"name": "Ada", "job": "pilot"}')
    shorter, longer = [50], [50, 2, 51, 52]
    for length in range(6):
        for prompt in (shorter, longer):
            assert allowed(processor, prompt + tokens[:length]) == [
                expected_after(model, tokens[:length])
            ], (prompt, length)


def test_a_batch_that_loses_rows(model: stencilm.Model) -> None:
    """As loops do that leave out the rows that have ended."""
    processor, tokens = walk(model, '{"name": "Ada", "job": "pilot"}')
    prompts = [[50, 60], [50, 61], [50, 62]]
    allowed(processor, *prompts)
    for length, left in ((1, (0, 1, 2)), (2, (0, 2)), (3, (0, 2)), (4, (2,)), (5, (2,))):
        rows = [prompts[number] + tokens[:length] for number in left]
        assert allowed(processor, *rows) == [expected_after(model, tokens[:length])] * len(left)

    grammars = [model.compile(Person), model.compile(stencilm.Regex("red|blue"))]
    processor = stencilm.LogitsProcessor(grammars)
    prompts = [[50, 60], [50, 61], [50, 62], [50, 63]]
    allowed(processor, *prompts)
    with pytest.raises(ValueError, match=r"2 rows are no whole batch.*2 grammars"):
        allowed(processor, prompts[0] + tokens[:1], prompts[1] + tokens[:1])


@pytest.mark.parametrize("sizes", [(2, 1), (1, 2), (3, 1, 2)])
def test_prompts_come_again_in_batches_of_another_size(
    model: stencilm.Model, sizes: tuple[int, ...]
) -> None:
    """As with another `num_return_sequences`, where no text had gone on from its prompt."""
    grammars = [model.compile(Person), model.compile(stencilm.Regex("red|blue"))]
    processor = stencilm.LogitsProcessor(grammars)
    for size in sizes:
        rows = [[50, 60]] * size + [[50, 61]] * size
        found = allowed(processor, *rows)
        assert found[0] == expected_after(model, []) != found[-1]
        assert found == [found[0]] * size + [found[-1]] * size


def test_a_prompt_a_token_longer_than_an_old_one(model: stencilm.Model) -> None:
    processor, _ = walk(model, "")
    first = expected_after(model, [])
    for number in range(20):
        assert allowed(processor, [50, 60 + number]) == [first]
    assert allowed(processor, [50, 60, 77]) == [first]  # the grammar does not take token 77 there


def test_an_ended_row_may_only_end(model: stencilm.Model) -> None:
    processor, tokens = walk(model, '{"name": "Ada", "job": "pilot"}')
    (stop,) = model.tokenizer_info.stop_token_ids
    assert allowed(processor, [50]) != [{stop}]
    for padding in ([stop], [stop, 3], [stop, 3, 3]):
        assert allowed(processor, [50, *tokens, *padding]) == [{stop}]


def test_a_prompt_that_goes_on_from_another_begins_anew(model: stencilm.Model) -> None:
    processor, tokens = walk(model, '{"name": "Ada", "job": "pilot"}')
    first = expected_after(model, [])
    chat = [50, *tokens, 2, 51, 52]
    assert allowed(processor, [50]) == [first]
    assert allowed(processor, [50, *tokens[:1]]) == [expected_after(model, tokens[:1])]
    assert allowed(processor, chat) == [first]
    assert allowed(processor, chat + tokens[:2]) == [expected_after(model, tokens[:2])]
    processor.reset()
    assert allowed(processor, chat + tokens[:2]) == [first]
