"""Whether this vLLM has the private names that the plug-in relies on.

One idea: vLLM has no interface for other backends, so everything that is replaced is first checked
by name and signature. If something has moved, the server does not start, and the error says what to
do: a server that starts must enforce the requested grammars.
"""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from typing import Any

TESTED = ("0.32.0", "0.33.0")
"""The versions of vLLM with which `tests/engines/vllm` has passed."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name in vLLM: its module, its path there, and its parameters if it is a function."""

    module: str
    path: str
    parameters: tuple[str, ...] | None = None

    def __str__(self) -> str:
        """The dotted path."""
        return f"{self.module}.{self.path}"

    def fault(self) -> str | None:
        """What is wrong with it; None if it is as expected."""
        try:
            found: Any = importlib.import_module(self.module)
            for step in self.path.split("."):
                found = getattr(found, step)
        except (ImportError, AttributeError) as error:
            return f"{self} is not there ({error})"
        if self.parameters is None:
            return None
        parameters = tuple(inspect.signature(found).parameters)
        if parameters[: len(self.parameters)] != self.parameters:
            return f"{self} takes {parameters}, not {self.parameters}"
        return None


_MANAGER = "vllm.v1.structured_output"
_TYPES = "vllm.v1.structured_output.backend_types"

REQUIRED = (
    Name("vllm.exceptions", "VLLMValidationError"),
    Name(
        "vllm.sampling_params",
        "SamplingParams._validate_structured_outputs",
        ("self", "model_config", "structured_outputs_config", "tokenizer"),
    ),
    Name("vllm.sampling_params", "SamplingParams.all_stop_token_ids"),
    Name("vllm.sampling_params", "StructuredOutputsParams"),
    Name(_MANAGER, "XgrammarBackend"),
    Name(_MANAGER, "StructuredOutputManager.__init__", ("self", "vllm_config")),
    Name(f"{_MANAGER}.backend_xgrammar", "validate_xgrammar_grammar", ("sampling_params",)),
    Name(f"{_MANAGER}.request", "get_structured_output_key", ("params",)),
    Name(f"{_MANAGER}.utils", "grammar_is_likely_lark", ("grammar_str",)),
    Name(
        _TYPES,
        "StructuredOutputBackend.compile_grammar",
        ("self", "request_type", "grammar_spec", "stop_token_ids"),
    ),
    Name(_TYPES, "StructuredOutputBackend.allocate_token_bitmask", ("self", "max_num_seqs")),
    Name(_TYPES, "StructuredOutputBackend.destroy", ("self",)),
    Name(_TYPES, "StructuredOutputGrammar.accept_tokens", ("self", "request_id", "tokens")),
    Name(_TYPES, "StructuredOutputGrammar.validate_tokens", ("self", "tokens")),
    Name(_TYPES, "StructuredOutputGrammar.rollback", ("self", "num_tokens")),
    Name(_TYPES, "StructuredOutputGrammar.fill_bitmask", ("self", "bitmask")),
    Name(_TYPES, "StructuredOutputGrammar.is_terminated", ("self",)),
    Name(_TYPES, "StructuredOutputGrammar.reset", ("self",)),
    *(
        Name(_TYPES, f"StructuredOutputOptions.{kind}")
        for kind in ("JSON", "JSON_OBJECT", "REGEX", "GRAMMAR", "CHOICE", "STRUCTURAL_TAG")
    ),
)
"""The names that the plug-in replaces or calls."""

_KNOWN_CALLS = {
    "StructuredOutputBackend": {"compile_grammar", "allocate_token_bitmask", "destroy"},
    "StructuredOutputGrammar": {
        "accept_tokens",
        "validate_tokens",
        "rollback",
        "fill_bitmask",
        "is_terminated",
        "reset",
    },
}


def check(version: str) -> None:
    """Refuse a vLLM that the plug-in does not fit.

    Args:
        version: The version of vLLM, for the message.

    Raises:
        RuntimeError: Something has moved; says what, and the ways out.
    """
    faults = [fault for name in REQUIRED if (fault := name.fault()) is not None]
    if not faults:
        types = importlib.import_module(_TYPES)
        for name, known in _KNOWN_CALLS.items():
            new = set(getattr(types, name).__abstractmethods__) - known
            faults.extend(f"{_TYPES}.{name} also asks for {call}" for call in sorted(new))
    if faults:
        raise RuntimeError(
            f"stencilm cannot enforce the structured outputs of vLLM {version}: "
            f"{'; '.join(faults)}. It was tested with vLLM {', '.join(TESTED)}: install one of "
            "these, or a newer stencilm, or unset STENCILM_VLLM to serve with vLLM's own backends"
        )
