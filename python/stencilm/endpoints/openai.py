"""OpenAI, and every endpoint that speaks its language, through the `openai` library."""

from __future__ import annotations

from typing import Any

from stencilm.endpoints.api_model import ApiModel, Piece
from stencilm.endpoints.capabilities import Capabilities, Prices, capabilities_of
from stencilm.endpoints.clients import check_model_name, library, made, within
from stencilm.endpoints.requests import Request
from stencilm.tokenizers import TokenizerInfo


def from_openai(
    client: Any = None,
    model: str = "",
    *,
    capabilities: Capabilities | str = "openai",
    tokenizer_info: TokenizerInfo | None = None,
    prices: Prices | None = None,
) -> ApiModel:
    """A model behind OpenAI's API or a compatible one.

    Args:
        client: An `openai.OpenAI` or `openai.AsyncOpenAI`, which holds address, key, timeout and
            retries; None for one made from the environment.
        model: The name of the model.
        capabilities: What the endpoint can do: a `Capabilities`, or the name of a preset: "openai",
            "vllm", "sglang", "llama.cpp", "transformers", "deepseek", "mistral", "compatible".
        tokenizer_info: The model's vocabulary, for `logit_bias`.
        prices: What a million tokens cost.

    Raises:
        ModelError: The `openai` library is missing, or no key is found.
        ValueError: There is no model name, or no such preset.
    """
    check_model_name(model, "from_openai")
    known = capabilities_of(capabilities)
    openai = library("openai", "OpenAI's API")
    if client is None:
        client = made(openai.OpenAI, openai.OpenAIError)
    provider = _OpenAI(client, is_async=isinstance(client, openai.AsyncOpenAI))
    return ApiModel(
        provider, model, capabilities=known, tokenizer_info=tokenizer_info, prices=prices
    )


class _OpenAI:
    """Calls of the chat and the completions resource."""

    def __init__(self, client: Any, *, is_async: bool) -> None:
        self._client = client
        self.is_async = is_async

    def call(self, request: Request, timeout: float | None, *, stream: bool) -> Any:
        client = within(self._client, timeout)
        resource = client.completions if request.route == "completions" else client.chat.completions
        return resource.create(**request.arguments, stream=stream)

    def read(self, response: Any) -> Piece:
        choices = response.choices or []
        if not choices:
            return _counted(Piece(is_finished=False), response)
        piece = _piece(choices[0], "message")
        piece.is_finished = choices[0].finish_reason not in ("length", None)
        return _counted(piece, response)

    def read_part(self, part: Any) -> Piece:
        choices = part.choices or []
        if not choices:
            return _counted(Piece(), part)
        piece = _piece(choices[0], "delta")
        reason = choices[0].finish_reason
        piece.is_finished = None if reason is None else reason != "length"
        return _counted(piece, part)


def _piece(choice: Any, part: str) -> Piece:
    """What a choice says: the text of a completion, or that of a message and its custom tools."""
    is_filtered = choice.finish_reason == "content_filter"
    said = getattr(choice, part, None)
    if said is None:
        return Piece(text=getattr(choice, "text", None) or "", is_filtered=is_filtered)
    calls = getattr(said, "tool_calls", None) or ()
    text = (said.content or "") + "".join(map(_tool_input, calls))
    refusal = getattr(said, "refusal", None)
    return Piece(
        text=text,
        refusal=refusal if isinstance(refusal, str) else "",
        is_filtered=is_filtered,
    )


def _tool_input(call: Any) -> str:
    """What a custom tool is given; the parts of a stream come as plain dictionaries."""
    custom = getattr(call, "custom", None)
    given = custom.get("input") if isinstance(custom, dict) else getattr(custom, "input", None)
    return given or ""


def _counted(piece: Piece, response: Any) -> Piece:
    usage = getattr(response, "usage", None)
    if usage is not None:
        piece.prompt_tokens = usage.prompt_tokens
        piece.output_tokens = usage.completion_tokens
        details = getattr(usage, "prompt_tokens_details", None)
        piece.cached_tokens = getattr(details, "cached_tokens", None) or 0
    return piece
