"""Installs both sides in vLLM, once per process."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import vllm

import stencilm
from stencilm.integrations.vllm.versions import TESTED, check

logger = logging.getLogger("vllm.stencilm")


def install() -> None:
    """Replace the backend that vLLM calls "xgrammar"; a second call changes nothing.

    Raises:
        RuntimeError: This vLLM has moved something that is needed.
    """
    check(vllm.__version__)
    # These import the names that were just checked.
    import vllm.v1.structured_output as engine
    import vllm.v1.structured_output.backend_xgrammar as front_end
    from vllm.sampling_params import SamplingParams
    from vllm.v1.structured_output.request import get_structured_output_key

    from stencilm.integrations.vllm.admission import SERVED_AS, Admission
    from stencilm.integrations.vllm.backend import BatchFill, Closing, StencilmBackend, key_of
    from stencilm.integrations.vllm.settings import Options

    if engine.XgrammarBackend is StencilmBackend:
        return
    admission = Admission()

    def validate(
        self: SamplingParams, model_config: Any, structured_outputs_config: Any, tokenizer: Any
    ) -> None:
        admission.validate_structured_outputs(
            self, model_config, structured_outputs_config, tokenizer
        )

    begin = engine.StructuredOutputManager.__init__

    def begin_with_stencilm(self: Any, vllm_config: Any) -> None:
        backend = vllm_config.structured_outputs_config.backend
        if backend not in SERVED_AS:
            raise ValueError(
                f"STENCILM_VLLM is on, but the server was started with the structured-outputs "
                f"backend {backend!r}: leave the backend out, or unset STENCILM_VLLM"
            )
        begin(self, vllm_config)
        if not BatchFill.install(self):
            logger.warning("stencilm: this vLLM fills masks one by one")
        if Options.from_environment().finish == "valid" and not Closing.install(self):
            raise ValueError(
                f"STENCILM_VLLM_OPTIONS has finish 'valid', but vLLM {vllm.__version__} does not "
                "tell what a request may have: leave it out"
            )

    SamplingParams._validate_structured_outputs = validate
    front_end.validate_xgrammar_grammar = admission.validate_grammar
    front_end.XgrammarBackend = StencilmBackend
    engine.XgrammarBackend = StencilmBackend
    _replace(get_structured_output_key, key_of)
    engine.StructuredOutputManager.__init__ = begin_with_stencilm
    if vllm.__version__.split("+")[0] not in TESTED:
        logger.warning(
            "stencilm %s was tested with vLLM %s, this is %s",
            stencilm.__version__,
            ", ".join(TESTED),
            vllm.__version__,
        )
    if os.environ.get("VLLM_USE_RUST_FRONTEND", "0") not in ("", "0"):
        logger.warning(
            "stencilm: vLLM's Rust front end admits requests without asking a plug-in; those that "
            "cannot be enforced fail in the engine"
        )
    logger.info("stencilm %s is in place in process %d", stencilm.__version__, os.getpid())


def _replace(function: Callable[..., Any], ours: Callable[..., Any]) -> None:
    """Replace a function of vLLM, in each module that has imported it by name."""
    for path, module in list(sys.modules.items()):
        names = getattr(module, "__dict__", {})
        if path.startswith("vllm.") and names.get(function.__name__) is function:
            names[function.__name__] = ours
