"""OpenAI, and every endpoint that speaks its language, through the `openai` library."""

from __future__ import annotations

from typing import Any

from stencilm.endpoints.api_model import ApiModel, Piece
from stencilm.endpoints.capabilities import Capabilities, Prices, capabilities_of
from stencilm.endpoints.requests import Request
from stencilm.errors import ModelError
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
    if not model:
        raise ValueError("from_openai needs the name of a model: from_openai(client, 'name')")
    known = capabilities_of(capabilities)
    library = _library()
    if client is None:
        try:
            client = library.OpenAI()
        except library.OpenAIError as error:
            raise ModelError(f"cannot make an OpenAI client: {error}") from error
    provider = _OpenAI(client, is_async=isinstance(client, library.AsyncOpenAI))
    return ApiModel(
        provider, model, capabilities=known, tokenizer_info=tokenizer_info, prices=prices
    )


class _OpenAI:
    """Calls of the chat and the completions resource."""

    def __init__(self, client: Any, *, is_async: bool) -> None:
        self._client = client
        self.is_async = is_async

    def call(self, request: Request, timeout: float | None, *, stream: bool) -> Any:
        client = self._client
        if timeout is not None:
            # What is left is for the retries of the library too.
            timeout = timeout / (1 + client.max_retries)
            limit = client.timeout
            limit = getattr(limit, "read", limit)
            client = client.with_options(timeout=min(timeout, limit or timeout))
        resource = client.completions if request.route == "completions" else client.chat.completions
        return resource.create(**request.arguments, stream=stream)

    def read(self, response: Any) -> Piece:
        choices = response.choices or []
        text = ""
        if choices:
            message = getattr(choices[0], "message", None)
            text = (choices[0].text if message is None else message.content) or ""
        finished = bool(choices) and choices[0].finish_reason not in ("length", None)
        return _counted(Piece(text=text, is_finished=finished), response)

    def read_part(self, part: Any) -> Piece:
        choices = part.choices or []
        if not choices:
            return _counted(Piece(), part)
        delta = getattr(choices[0], "delta", None)
        text = (choices[0].text if delta is None else delta.content) or ""
        reason = choices[0].finish_reason
        finished = None if reason is None else reason != "length"
        return _counted(Piece(text=text, is_finished=finished), part)


def _counted(piece: Piece, response: Any) -> Piece:
    usage = getattr(response, "usage", None)
    if usage is not None:
        piece.prompt_tokens = usage.prompt_tokens
        piece.output_tokens = usage.completion_tokens
        details = getattr(usage, "prompt_tokens_details", None)
        piece.cached_tokens = getattr(details, "cached_tokens", None) or 0
    return piece


def _library() -> Any:
    try:
        import openai
    except ImportError as error:
        raise ModelError(
            "OpenAI's API needs the package 'openai': pip install 'stencilm[openai]'"
        ) from error
    return openai
