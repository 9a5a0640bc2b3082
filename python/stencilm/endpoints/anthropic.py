"""Anthropic's API, through the `anthropic` library."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from stencilm.endpoints.api_model import DEFAULT_CONCURRENCY, ApiModel
from stencilm.endpoints.capabilities import Capabilities, Prices, capabilities_of
from stencilm.endpoints.clients import check_client, check_model_name, library, made, within
from stencilm.endpoints.messages import in_form, text_of
from stencilm.endpoints.reading import Piece, check_is_no_error, ended_by, reported_tokens
from stencilm.endpoints.requests import Request
from stencilm.endpoints.tool_messages import names_of_calls


def from_anthropic(
    client: Any = None,
    model: str = "",
    *,
    capabilities: Capabilities | str = "anthropic",
    prices: Prices | None = None,
    schema_in_prompt: bool | None = None,
    concurrency: int = DEFAULT_CONCURRENCY,
) -> ApiModel:
    """A model behind Anthropic's API.

    Args:
        client: An `anthropic.Anthropic` or `anthropic.AsyncAnthropic`; None for one made from the
            environment.
        model: The name of the model.
        capabilities: "anthropic" for models with structured outputs, "anthropic-prefill" for older
            ones that continue a last message of the assistant; or a `Capabilities`.
        prices: The price of a million tokens.
        schema_in_prompt: Whether the grammar is described in the prompt; None: if nothing else
            carries it.
        concurrency: How many texts of a batch are requested at once.

    Raises:
        ModelError: The `anthropic` library is missing, or no key is found.
        ValueError: The model name is empty, or there is no such preset.
        TypeError: `client` is not a client of the library, or `model` is not a str.

    Examples:
        >>> from anthropic import Anthropic
        >>> import stencilm
        >>> model = stencilm.from_anthropic(Anthropic(api_key="none"), "claude-sonnet-5")
        >>> model("A number:", int)  # doctest: +SKIP
        42
    """
    check_model_name(model, "from_anthropic")
    known = replace(capabilities_of(capabilities), needs_max_tokens=True)  # the API requires it
    anthropic = library("anthropic", "Anthropic's API")
    if client is None:
        client = made(anthropic.Anthropic, anthropic.AnthropicError)
    check_client(client, "messages", "anthropic.Anthropic or anthropic.AsyncAnthropic")
    if schema_in_prompt is not None:
        known = replace(known, schema_in_prompt=schema_in_prompt)
    provider = _Anthropic(client, is_async=isinstance(client, anthropic.AsyncAnthropic))
    return ApiModel(provider, model, capabilities=known, prices=prices, concurrency=concurrency)


class _Anthropic:
    """Calls of the messages resource."""

    def __init__(self, client: Any, *, is_async: bool) -> None:
        self._client = client
        self.is_async = is_async

    def resource(self, request: Request, timeout: float | None) -> tuple[Any, dict[str, Any]]:
        return within(self._client, timeout).messages, _arguments(request)

    def read(self, response: Any) -> Piece:
        check_is_no_error(response)
        if response.content is None and response.stop_reason is None:
            raise TypeError("what has neither content nor an end is no answer")
        piece = _said_in(response.content or ())
        piece.is_finished = ended_by(response.stop_reason)
        piece.is_refused = response.stop_reason == "refusal"
        return _counted(piece, response.usage)

    def read_part(self, part: Any) -> Piece:
        if part.type == "content_block_delta":
            return Piece(
                text=getattr(part.delta, "text", "") or "",
                reasoning=getattr(part.delta, "thinking", "") or "",
            )
        if part.type == "content_block_start":
            return _said_in([part.content_block])  # the first part of it, for some servers
        if part.type == "message_start":
            piece = _counted(_said_in(part.message.content or ()), part.message.usage)
            piece.output_tokens = None  # cumulative
            return piece
        if part.type == "message_delta":
            reason = part.delta.stop_reason
            piece = Piece(
                is_finished=ended_by(reason),
                is_refused=reason == "refusal",
            )
            piece.output_tokens = getattr(part.usage, "output_tokens", None)
            return piece
        return Piece()


def _arguments(request: Request) -> dict[str, Any]:
    """The arguments under the names of this API, whose system prompt is not a message."""
    arguments = {name: value for name, value in request.arguments.items() if name != "messages"}
    # Newer models choose their own sampling, so the library no longer has these names.
    drawing = {name: arguments.pop(name) for name in ("temperature", "top_p") if name in arguments}
    if drawing:
        arguments["extra_body"] = arguments.get("extra_body", {}) | drawing
    stops = arguments.pop("stop", None)
    if stops:
        arguments["stop_sequences"] = stops
    messages = request.arguments["messages"]
    system = [text_of(message) for message in messages if message["role"] in _SYSTEM]
    if system:
        arguments["system"] = "\n\n".join(system)
    others = [message for message in messages if message["role"] not in _SYSTEM]
    arguments["messages"] = in_form(others, "anthropic")
    called = names_of_calls(arguments["messages"])
    if called:  # The API refuses calls of tools that no request declares.
        tools = [{"name": name, "input_schema": {"type": "object"}} for name in called]
        arguments |= {"tools": tools, "tool_choice": {"type": "none"}}
    return arguments


_SYSTEM = ("system", "developer")
"""The roles whose messages are the system prompt; the second one is OpenAI's newer name."""


def _said_in(blocks: Iterable[Any]) -> Piece:
    """The text and the reasoning of some blocks."""
    listed = list(blocks)
    return Piece(
        text="".join(block.text or "" for block in listed if block.type == "text"),
        reasoning="".join(block.thinking or "" for block in listed if block.type == "thinking"),
    )


def _counted(piece: Piece, usage: Any) -> Piece:
    """The piece with its token counts, if reported; other servers omit some of them."""
    cached = reported_tokens(getattr(usage, "cache_read_input_tokens", None)) or 0
    written = reported_tokens(getattr(usage, "cache_creation_input_tokens", None)) or 0
    given = reported_tokens(getattr(usage, "input_tokens", None))
    piece.prompt_tokens = None if given is None else given + cached + written
    piece.output_tokens = getattr(usage, "output_tokens", None)
    piece.cached_tokens = cached
    return piece
