"""Texts that are whole within `max_tokens`, through vLLM's own manager of masks."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vllm", reason="vLLM is not here: tests/engines/vllm/install.sh")
torch = pytest.importorskip("torch")

from vllm.v1.structured_output import StructuredOutputManager  # noqa: E402

from stencilm import TokenizerInfo, allocate_token_bitmask  # noqa: E402
from stencilm.integrations.vllm.backend import BatchFill, Closing  # noqa: E402
from stencilm.integrations.vllm.requests import Kind, grammar_of  # noqa: E402
from stencilm.integrations.vllm.sequences import RequestSequence  # noqa: E402
from stencilm.integrations.vllm.settings import Options  # noqa: E402
from stencilm.matching.compiler import GrammarCompiler  # noqa: E402

STOP, END_OF_THINKING = 256, 257
VOCABULARY = 258
INFO = TokenizerInfo(
    [*(bytes([byte]) for byte in range(256)), "<stop>", "</think>"],
    stop_token_ids=[STOP],
    special_token_ids=[STOP, END_OF_THINKING],
)
COMPILED = GrammarCompiler(INFO).compile_grammar(
    grammar_of(Kind.JSON_SCHEMA, '{"type": "array", "items": {"type": "string"}}', Options())
)


class Reasoner:
    """Reasoning that ends with one token."""

    def __init__(self, **_: Any) -> None:
        """It holds nothing."""

    def is_reasoning_end(self, input_ids: list[int]) -> bool:
        return END_OF_THINKING in input_ids

    def is_reasoning_end_streaming(self, input_ids: list[int], delta_ids: list[int]) -> bool:
        return END_OF_THINKING in delta_ids


class Request:
    """What the manager asks of a request."""

    request_id = "r"
    use_structured_output = True
    sampling_params = None
    prompt_token_ids = (1, 2)
    num_prompt_tokens = 2

    def __init__(self, max_tokens: int) -> None:
        """Nothing is written yet."""
        self.max_tokens = max_tokens
        self.written: list[int] = []
        self.structured_output_request = SimpleNamespace(
            grammar=None,
            masked_reasoning_end_ids=None,
            reasoner=None,
            reasoning_ended=None,
            reasoning_parser_kwargs=None,
            structured_output_key=(None, ""),
        )

    @property
    def all_token_ids(self) -> list[int]:
        return [*self.prompt_token_ids, *self.written]

    @property
    def num_output_tokens(self) -> int:
        return len(self.written)


def manager_with(drafts: int) -> Any:
    """vLLM's manager as the plug-in leaves it, without an engine around it."""
    manager: Any = object.__new__(StructuredOutputManager)
    manager.vllm_config = SimpleNamespace(
        model_config=SimpleNamespace(is_diffusion=False, max_model_len=4_096),
        num_speculative_tokens=drafts,
        scheduler_config=SimpleNamespace(max_num_seqs=4),
    )
    manager.backend = SimpleNamespace(
        allocate_token_bitmask=lambda rows: allocate_token_bitmask(rows, VOCABULARY),
        compile_grammar=lambda *_, **__: RequestSequence(COMPILED),
    )
    manager.enable_in_reasoning = False
    manager.fill_bitmask_parallel_threshold = 128
    manager.reasoner_cls = Reasoner
    manager.tokenizer = manager._grammar_bitmask = None
    manager._full_mask = torch.tensor(-1, dtype=torch.int32)
    assert BatchFill.install(manager) and Closing.install(manager)
    return manager


def drafted(rng: Any, most: int, reasoning: list[int]) -> list[int]:
    """Guesses of what comes next, right and wrong, of which some end the reasoning too early."""
    guesses = []
    for place in range(int(rng.integers(0, most + 1))):
        if place < len(reasoning):
            wrong = int(rng.choice([ord("?"), END_OF_THINKING]))
            guesses.append(reasoning[place] if rng.random() < 0.8 else wrong)
        else:
            guesses.append(int(rng.choice(list(b'["ab,'))))
    return guesses


def write(manager: Any, request: Request, reasoning: list[int], drafts: int, rng: Any) -> list[int]:
    """Steps of a model that likes to go on, until the request ends; returns its text."""
    request.structured_output_request.grammar = manager._create_grammar(request)
    while len(request.written) < request.max_tokens and STOP not in request.written:
        rest = reasoning[len(request.written) :]
        guesses = manager.validate_tokens(request, drafted(rng, drafts, rest))
        step = manager.grammar_bitmask({"r": request}, ["r"], {"r": guesses} if guesses else {})
        taken: list[int] = []
        for place, guess in enumerate([*guesses, None]):
            bits = np.unpackbits(step[place].view(np.uint8), bitorder="little")
            allowed = np.flatnonzero(bits[:VOCABULARY]).tolist()
            if place < len(rest):
                taken.append(rest[place])
            elif guess in allowed and rng.random() < 0.7:
                taken.append(guess)
            else:
                taken.append(int(rng.choice([one for one in allowed if one != STOP] or [STOP])))
            if taken[-1] == STOP or taken[-1] != guess:
                break
        taken = taken[: request.max_tokens - len(request.written)]
        request.written += taken
        assert manager.accept_tokens(request, taken)
    return [token for token in request.written[len(reasoning) :] if token != STOP]


@pytest.mark.parametrize("drafts", [0, 1, 3, 5])
def test_texts_behind_drafted_reasoning_are_whole(drafts: int) -> None:
    """Drafts stand before the text in a step, and may be refused, so that it begins later."""
    for seed in range(40):
        manager, request = manager_with(drafts), Request(30 + seed % 7)
        reasoning = [ord(".")] * (6 + seed % 5) + [END_OF_THINKING]
        text = write(manager, request, reasoning, drafts, np.random.default_rng(seed))
        assert isinstance(json.loads(bytes(text)), list), bytes(text)
