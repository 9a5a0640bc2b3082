"""The front end: a request is compiled before it is admitted.

One idea: it compiles exactly as the engine does, with the model's tokenizer and the request's stop
tokens. So whatever the engine would refuse is refused here, with status 400, the location and the
way out.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from contextvars import ContextVar
from copy import copy
from typing import Any

from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams

from stencilm.errors import StencilError
from stencilm.integrations.vllm.backend import RequestCompiler, key_of, kind_of
from stencilm.integrations.vllm.requests import grammar_of, wishes_of
from stencilm.integrations.vllm.sequences import RequestSequence
from stencilm.integrations.vllm.settings import Options

logger = logging.getLogger("vllm.stencilm")

SERVED_AS = ("auto", "xgrammar")
"""The backends of vLLM that are replaced; one that was requested by another name is not."""

_MOST_MODELS = 4

# The context of a check, besides the request.
_around: ContextVar[tuple[Any, Any, Any] | None] = ContextVar("stencilm_vllm", default=None)


class Admission:
    """Checks requests in one process, with a compiler for each tokenizer."""

    def __init__(self) -> None:
        """Start without tokenizers."""
        self._validate = SamplingParams._validate_structured_outputs
        self._compilers: OrderedDict[tuple[int, int, bool], tuple[Any, RequestCompiler]] = (
            OrderedDict()
        )

    def validate_structured_outputs(
        self,
        params: SamplingParams,
        model_config: Any,
        structured_outputs_config: Any,
        tokenizer: Any,
    ) -> None:
        """Replaces `SamplingParams._validate_structured_outputs`: vLLM's own checks, then ours.

        Raises:
            VLLMValidationError: The request is refused.
        """
        config = structured_outputs_config
        if config is not None and config.backend == "auto":
            # With "auto", a request that is refused here would go to another backend.
            config = copy(config)
            object.__setattr__(config, "backend", "xgrammar")
        before = _around.set((model_config, config, tokenizer))
        try:
            self._validate(params, model_config, config, tokenizer)
        finally:
            _around.reset(before)

    def validate_grammar(self, sampling_params: SamplingParams) -> None:
        """Replaces `validate_xgrammar_grammar`: compiles the request's grammar.

        Raises:
            VLLMValidationError: It cannot be enforced.
        """
        params = sampling_params.structured_outputs
        if params is None:
            return
        try:
            if (around := _around.get()) is None:
                _read(params)
                return
            model_config, config, tokenizer = around
            compiler = self._compiler(tokenizer, model_config.get_vocab_size(), config)
            compiled = compiler.compile(*key_of(params))
            RequestSequence(compiled, sampling_params.all_stop_token_ids)
        except (StencilError, ValueError, TypeError, RecursionError) as error:
            raise VLLMValidationError(f"{_opening(params)}: stencilm: {error}") from error

    def _compiler(self, tokenizer: Any, vocab_size: int, config: Any) -> RequestCompiler:
        key = (id(tokenizer), vocab_size, config.disable_any_whitespace)
        if (known := self._compilers.get(key)) is None:
            # Keep a reference to the tokenizer, so that its id is not reused.
            known = (tokenizer, RequestCompiler(tokenizer, vocab_size, config))
            self._compilers[key] = known
            while len(self._compilers) > _MOST_MODELS:
                self._compilers.popitem(last=False)
        return known[1]


def _opening(params: Any) -> str:
    """The beginning of vLLM's own error for such a request, which clients may look for."""
    if params.json is not None or params.json_object:
        return "Failed to transform json schema into a grammar"
    if params.regex is not None:
        return "Failed to transform regex into a grammar"
    if params.choice is not None:
        return "Failed to transform choices into a grammar"
    if params.grammar is not None:
        return "Invalid grammar specification"
    return "Invalid structural tag specification"


def _read(params: Any) -> None:
    """Read a part of a request, as far as that is possible without its tokenizer.

    vLLM checks structural tags before a request is complete, with its own message for errors, and
    also answers that may replace a tool call. All of it is compiled once the request is complete;
    so the check of tags is left until then, which reports our errors.

    Raises:
        StencilError: It is not a grammar.
        ValueError: It has additional options, which one alternative cannot have.
    """
    if params.structural_tag is not None:
        return
    if wishes_of(params):
        raise ValueError("what a request wishes beside its schema cannot be one of two answers")
    request_type, spec = key_of(params)
    grammar_of(kind_of(request_type, spec), spec, Options.from_environment())
