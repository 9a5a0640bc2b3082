"""The engine: vLLM's `StructuredOutputBackend` over a compiler, and how masks are filled."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from vllm.sampling_params import StructuredOutputsParams
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)
from vllm.v1.structured_output.request import get_structured_output_key
from vllm.v1.structured_output.utils import grammar_is_likely_lark

import stencilm
from stencilm.bitmask.arrays import allocate_token_bitmask
from stencilm.integrations.vllm.requests import Kind, grammar_of, is_json, tag_of_wishes
from stencilm.integrations.vllm.sequences import RequestSequence, fill_bitmasks, tokens_left
from stencilm.integrations.vllm.settings import Options
from stencilm.matching.compiler import CompiledGrammar, GrammarCompiler
from stencilm.matching.matcher import BatchGrammarMatcher
from stencilm.tokenizers import TokenizerInfo

logger = logging.getLogger("vllm.stencilm")

# vLLM checks whether a grammar is an instance of its own class.
StructuredOutputGrammar.register(RequestSequence)

_KINDS = {
    StructuredOutputOptions.JSON: Kind.JSON_SCHEMA,
    StructuredOutputOptions.JSON_OBJECT: Kind.JSON_OBJECT,
    StructuredOutputOptions.REGEX: Kind.REGEX,
    StructuredOutputOptions.CHOICE: Kind.CHOICE,
    StructuredOutputOptions.GRAMMAR: Kind.EBNF,
    StructuredOutputOptions.STRUCTURAL_TAG: Kind.STRUCTURAL_TAG,
}


def key_of(params: StructuredOutputsParams) -> tuple[StructuredOutputOptions, str]:
    """Replaces `get_structured_output_key`: the request's grammar, with its additional options.

    Not every request comes through the Python front end, so the engine reads the options, too.

    Raises:
        ValueError: An option cannot be enforced.
    """
    if (tag := tag_of_wishes(params)) is not None:
        return StructuredOutputOptions.STRUCTURAL_TAG, tag
    key: tuple[StructuredOutputOptions, str] = get_structured_output_key(params)
    return key


def kind_of(request_type: StructuredOutputOptions, spec: str) -> Kind:
    """The notation of a request; vLLM has one type for EBNF and Lark."""
    kind = _KINDS[request_type]
    return Kind.LARK if kind is Kind.EBNF and grammar_is_likely_lark(spec) else kind


def _vocabulary(tokenizer: Any, vocab_size: int) -> TokenizerInfo:
    """The vocabulary of a tokenizer in vLLM.

    Some tokenizers that come with their model (PLaMo 3) only reveal what their tokens spell through
    a method that vLLM also calls.

    Raises:
        TokenizerError: Its tokens cannot be read.
    """
    if not callable(begin := getattr(tokenizer, "init_xgrammar", None)):
        return TokenizerInfo._of_model(tokenizer, vocab_size)
    known, stop_token_ids = begin()
    return TokenizerInfo(
        list(known.decoded_vocab),
        vocab_size=vocab_size,
        stop_token_ids=list(stop_token_ids),
        special_token_ids=sorted({*known.special_token_ids, *stop_token_ids}),
    )


class RequestCompiler:
    """Compiles the requests of one model; the front end and the engine have one each.

    Args:
        tokenizer: The tokenizer in vLLM.
        vocab_size: The number of the model's logits.
        structured_outputs_config: vLLM's own settings.
    """

    def __init__(self, tokenizer: Any, vocab_size: int, structured_outputs_config: Any) -> None:
        """Read the vocabulary.

        Raises:
            TokenizerError: Its tokens cannot be read.
            ValueError: The options in the environment are not valid.
        """
        options = Options.from_environment()
        if structured_outputs_config.disable_any_whitespace:
            options = replace(options, max_whitespace=0)
        self.options = options
        self.info = _vocabulary(tokenizer, vocab_size)
        self._compiler = GrammarCompiler(self.info, limits=options.limits)

    def compile(self, request_type: StructuredOutputOptions, spec: str) -> CompiledGrammar:
        """The grammar of a request for this model.

        Raises:
            StencilError: It cannot be enforced; says where and why.
        """
        grammar = grammar_of(kind_of(request_type, spec), spec, self.options)
        return self._compiler.compile_grammar(grammar)

    def clear(self) -> None:
        """Drop the cached grammars."""
        self._compiler.clear_cache()


@dataclass
class StencilmBackend(StructuredOutputBackend):  # type: ignore[misc]
    """The grammars of one engine."""

    def __post_init__(self) -> None:
        """Read the vocabulary, at the first constrained request."""
        self._requests = RequestCompiler(
            self.tokenizer, self.vocab_size, self.vllm_config.structured_outputs_config
        )
        logger.info(
            "stencilm %s enforces structured outputs in process %d: %r, %r",
            stencilm.__version__,
            os.getpid(),
            self._requests.info,
            self._requests.options,
        )

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> StructuredOutputGrammar:
        """The grammar of one request, at its beginning; called in a pool of threads.

        Raises:
            StencilError: It cannot be enforced; only this request fails.
        """
        is_bounded = is_json(kind_of(request_type, grammar_spec), grammar_spec)
        return RequestSequence(
            self._requests.compile(request_type, grammar_spec),
            stop_token_ids,
            whitespace_budget=self._requests.options.whitespace_budget if is_bounded else None,
        )

    def allocate_token_bitmask(self, max_num_seqs: int) -> Any:
        """An int32 CPU tensor of shape (max_num_seqs, ceil(vocab_size / 32)), all ones."""
        return allocate_token_bitmask(max_num_seqs, self.vocab_size)

    def destroy(self) -> None:
        """Drop the grammars."""
        self._requests.clear()


class Closing:
    """Completes the text of each request within its `max_tokens`, if the options ask for it.

    vLLM creates a grammar without access to its request, so the grammar is told afterwards. vLLM
    also does not tell a grammar how many draft tokens of reasoning precede its text in a step. But
    it fills a row for each of them, so the rows are counted.
    """

    NAMES = ("_create_grammar", "_fill_bitmasks", "grammar_bitmask")

    def __init__(self, manager: StructuredOutputManager) -> None:
        """Prepare, without changing anything yet."""
        self._longest = manager.vllm_config.model_config.max_model_len
        self._create = manager._create_grammar
        self._fill = manager._fill_bitmasks
        self._step = manager.grammar_bitmask
        # For each grammar, the number of rows requested in this step.
        self._rows: Counter[RequestSequence] = Counter()

    @staticmethod
    def install(manager: StructuredOutputManager) -> bool:
        """Tell grammars of their requests, if this vLLM allows it; returns whether it does."""
        if not all(hasattr(manager, name) for name in Closing.NAMES):
            return False
        closing = Closing(manager)
        manager._create_grammar = closing.create
        manager._fill_bitmasks = closing.fill
        manager.grammar_bitmask = closing.step
        return True

    def create(self, request: Any) -> Any:
        """Replaces `_create_grammar`: the grammar of a request, which knows its token limit."""
        grammar = self._create(request)
        if isinstance(grammar, RequestSequence):
            grammar.close_within(
                lambda: tokens_left(request, self._longest), lambda: self._rows[grammar]
            )
        return grammar

    def step(self, *arguments: Any, **options: Any) -> Any:
        """Replaces `grammar_bitmask`: all rows of a step."""
        self._rows.clear()
        return self._step(*arguments, **options)

    def fill(self, batch: Iterable[tuple[Any, ...]]) -> None:
        """Replaces `_fill_bitmasks`: some rows of a step, one row of a grammar at a time."""
        entries = list(batch)
        self._fill(entries)
        self._rows.update(entry[0] for entry in entries if isinstance(entry[0], RequestSequence))


class _AtOnce:
    """Replaces vLLM's pool of threads that fill masks, for a call that has threads of its own."""

    def __init__(self) -> None:
        """Accept calls from now on."""
        self._is_shut = False

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run the call at once.

        Raises:
            RuntimeError: It was shut down, with the message of thread pools.
        """
        if self._is_shut:
            raise RuntimeError("cannot schedule new futures after shutdown")
        done: Future[Any] = Future()
        done.set_result(call(*arguments))
        return done

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut down; no call is in progress."""
        self._is_shut = True


class BatchFill:
    """Fills all masks of a step in one call without the GIL, instead of one after the other.

    vLLM fills masks in batches if a step has more requests than a threshold and no drafts. The
    threshold is lowered to one request, a batch includes all of them, and the core's own threads
    fill it.
    """

    NAMES = (
        "fill_bitmask_parallel_threshold",
        "_fill_bitmasks",
        "_grammar_bitmask",
    )

    def __init__(self, manager: StructuredOutputManager) -> None:
        """Start no thread yet."""
        self._manager = manager
        self._others = manager._fill_bitmasks
        self._workers = BatchGrammarMatcher()

    @staticmethod
    def install(manager: StructuredOutputManager) -> bool:
        """Fill the masks of this engine this way, if this vLLM allows it.

        Returns whether it does.
        """
        if not all(hasattr(manager, name) for name in BatchFill.NAMES):
            return False
        if (pool := getattr(manager, "executor_for_fillmask", None)) is not None:
            pool.shutdown(wait=False)
        manager.executor_for_fillmask = _AtOnce()
        manager.fill_bitmask_parallel_threshold = 1
        manager.fill_bitmask_parallel_batch_size = 1 << 30
        manager._fill_bitmasks = BatchFill(manager)
        return True

    def __call__(self, batch: Iterable[tuple[Any, ...]]) -> None:
        """Fill rows: an entry is a grammar, its row, whether it applies, and fields of versions."""
        ours: list[tuple[RequestSequence, int]] = []
        others: list[tuple[Any, ...]] = []
        for entry in batch:
            grammar, row, applies = entry[:3]
            if applies and isinstance(grammar, RequestSequence) and not grammar.is_terminated():
                ours.append((grammar, row))
            else:
                others.append(entry)
        bitmask = self._manager._grammar_bitmask
        if len(ours) == 1:
            sequence, row = ours[0]
            sequence.fill_bitmask(bitmask, row)
        elif ours:
            fill_bitmasks(ours, bitmask, self._workers)
        if others:
            self._others(others)
