"""Constrained decoding in SGLang by stencilm; `--grammar-backend stencilm` enables it.

One idea: SGLang finds `register` by its entry point and calls it in every process of a server. It
adds one name to the grammar backends that the flag can select, and changes nothing else; the
backend is created only if it was selected.
"""

from __future__ import annotations

import logging
from typing import Any

NAME = "stencilm"
"""The value of `--grammar-backend`."""

TESTED = ("0.5.23",)
"""The versions of SGLang with which `tests/engines/sglang` has passed."""


def register() -> None:
    """Add the backend to those that SGLang knows.

    SGLang logs errors here and continues without the name, so that the flag is then refused.

    Raises:
        RuntimeError: This SGLang takes no grammar backends from plug-ins.
    """
    try:
        from sglang.srt.arg_groups.choices import (
            GRAMMAR_BACKEND_CHOICES,
            add_grammar_backend_choices,
        )
        from sglang.srt.constrained.base_grammar_backend import register_grammar_backend
    except ImportError as error:
        raise RuntimeError(_moved(str(error))) from error
    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])
    register_grammar_backend(NAME, create)


def create(
    server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: set[int] | None = None
) -> Any:
    """Create the backend of a scheduler, as SGLang requests it.

    Args:
        server_args: The arguments of the server.
        tokenizer: The model's tokenizer.
        vocab_size: The width of the model's logits.
        eos_token_ids: The tokens that end a text, from the model's configuration.

    Raises:
        RuntimeError: This SGLang has moved something that is needed; the server does not start.
        TokenizerError: The tokenizer cannot be read; the server does not start.
        ValueError: An argument of the server requests an unsupported option.
    """
    try:
        from stencilm.integrations.sglang import backend
    except ImportError as error:
        raise RuntimeError(_moved(str(error))) from error
    made = backend.create(tokenizer, vocab_size, eos_token_ids)
    _announce()
    return made


def _announce() -> None:
    import sglang

    import stencilm

    logger = logging.getLogger("sglang.stencilm")
    if sglang.__version__.split("+")[0] not in TESTED:
        logger.warning(
            "stencilm %s was tested with SGLang %s, this is %s",
            stencilm.__version__,
            ", ".join(TESTED),
            sglang.__version__,
        )
    logger.info("stencilm %s is the grammar backend", stencilm.__version__)


def _moved(what: str) -> str:
    return (
        f"stencilm cannot be a grammar backend of this SGLang: {what}. It was tested with SGLang "
        f"{', '.join(TESTED)}: install one of these, or a newer stencilm, or choose another "
        "--grammar-backend"
    )
