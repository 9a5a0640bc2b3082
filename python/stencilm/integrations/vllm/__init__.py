"""Structured outputs in vLLM by stencilm; `STENCILM_VLLM=1` enables it.

One idea: vLLM finds `register` by its entry point and calls it in every process of a server. If the
switch is off, it does nothing. If it is on, it replaces the backend that vLLM calls "xgrammar", in
the front end that admits requests and in the engine that serves them; or it stops the server with
an explanation.
"""

from __future__ import annotations


def register() -> None:
    """Replace vLLM's backend if `STENCILM_VLLM` says so.

    vLLM logs a plug-in that cannot be imported and goes on without it, so nothing is imported
    before this is called.

    Raises:
        ValueError: The environment contains an invalid setting.
        RuntimeError: This vLLM has moved something that is needed.
    """
    from stencilm.integrations.vllm.settings import Options, is_switched_on

    if not is_switched_on():
        return
    # An invalid setting must stop the server, not its first request.
    Options.from_environment()
    from stencilm.integrations.vllm.plugin import install

    install()
