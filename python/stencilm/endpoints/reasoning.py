"""How each provider is told to reason before it answers.

One idea: a request for reasoning (on, off or a number of tokens) is translated into one of a few
ways that providers offer. If a provider takes no number of tokens, it gets the effort with the
largest usual budget within the number. Pure functions, so that a test reads what would be sent.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

from stencilm.errors import UnsupportedFeature
from stencilm.models.reasoning import Reasoning, budget_of

ReasoningWay: TypeAlias = Literal[
    "effort", "responses", "thinking", "thinking_switch", "reasoning", "vllm", "sglang"
]
"""How an endpoint is told to reason: `reasoning_effort`; `reasoning` of OpenAI's Responses API;
`thinking` of Anthropic; `thinking` of DeepSeek, which is on or off; `reasoning` of OpenRouter; the
variables of chat templates, with the budgets of vLLM and of SGLang."""

LEAST_THINKING = 1_024
"""The smallest budget that Anthropic's API accepts."""

_EFFORTS = ((24_576, "high"), (8_192, "medium"), (0, "low"))
"""Efforts with their budgets, as documented by some providers."""

_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[.-](\d{1,2}))?(?!\d)")
_ALWAYS_THINKS = re.compile(r"mythos|fable")
_TAKES_NONE = re.compile(r"(?:openai/)?gpt-[5-9]\.\d")
_TAKES_MINIMAL = re.compile(r"(?:openai/)?gpt-5(?!\.\d)|(?:models/|google/)?gemini")


def extra_tokens(reasoning: Reasoning) -> int:
    """The increase of the answer's limit, for providers that include the reasoning in it."""
    return 0 if isinstance(reasoning, str) else budget_of(reasoning)


def reasoning_arguments(
    way: ReasoningWay | None, model: str, reasoning: Reasoning
) -> dict[str, Any]:
    """The arguments that tell a model whether, and how much, to reason.

    Args:
        way: How the endpoint is told; None if it is not.
        model: The model's name; with some providers, the accepted values depend on it.
        reasoning: The option of the call; nothing is sent for "auto" and "draft".

    Raises UnsupportedFeature for a budget that the provider refuses.
    """
    if way is None or reasoning in ("auto", "draft"):
        return {}
    is_on = budget_of(reasoning) > 0
    if way == "effort":
        effort = _effort(reasoning) if is_on else _least_effort(model)
        return {"reasoning_effort": effort}
    if way == "responses":
        effort = _effort(reasoning) if is_on else _least_effort(model)
        return {"reasoning": {"effort": effort} | ({"summary": "auto"} if is_on else {})}
    if way == "thinking":
        return _thinking(model, reasoning, is_on)
    if way == "thinking_switch":
        return _extra({"thinking": {"type": "enabled" if is_on else "disabled"}})
    if way == "reasoning":
        if not is_on:
            return _extra({"reasoning": {"enabled": False}})
        budget = {"enabled": True} if reasoning is True else {"max_tokens": reasoning}
        return _extra({"reasoning": budget})
    # Templates use one of two names for it, and ignore unknown variables.
    body: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": is_on, "thinking": is_on}}
    if is_on and reasoning is not True:
        is_vllm = way == "vllm"
        body |= (
            {"thinking_token_budget": reasoning}
            if is_vllm
            else {"custom_params": {"thinking_budget": reasoning}}
        )
    return _extra(body)


def _thinking(model: str, reasoning: Reasoning, is_on: bool) -> dict[str, Any]:
    """Anthropic's `thinking`: newer models choose the amount, older ones only take a budget."""
    version = _claude_version(model)
    if not is_on:
        always = _ALWAYS_THINKS.search(model)
        return {} if always else {"thinking": {"type": "disabled"}}
    if version is not None and version < (4, 6):
        budget = extra_tokens(reasoning)
        if budget < LEAST_THINKING:
            raise UnsupportedFeature(
                f"a budget of {budget} tokens of reasoning: this provider takes "
                f"{LEAST_THINKING:,} at least, so give as many, or reasoning=False"
            )
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}
    thinking: dict[str, Any] = {"thinking": {"type": "adaptive", "display": "summarized"}}
    if reasoning is not True:
        thinking["output_config"] = {"effort": _effort(reasoning)}
    return thinking


def _claude_version(model: str) -> tuple[int, int] | None:
    found = _CLAUDE.search(model)
    return None if found is None else (int(found[1]), int(found[2] or 0))


def _effort(reasoning: Reasoning) -> str:
    """The effort for a number of tokens; the usual one if there is no number."""
    if reasoning is True:
        return "medium"
    return next(effort for least, effort in _EFFORTS if budget_of(reasoning) >= least)


def _least_effort(model: str) -> str:
    if _TAKES_NONE.match(model):
        return "none"
    return "minimal" if _TAKES_MINIMAL.match(model) else "low"


def _extra(body: dict[str, Any]) -> dict[str, Any]:
    """Arguments that the client library has no name for."""
    return {"extra_body": body}
