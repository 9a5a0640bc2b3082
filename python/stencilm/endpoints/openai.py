"""OpenAI, and every compatible endpoint, through the `openai` library."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from stencilm.endpoints.answer_reading import Piece, ResponseFailed, check_is_no_error, ended_by
from stencilm.endpoints.api_model import (
    DEFAULT_CONCURRENCY,
    ApiModel,
    Provider,
)
from stencilm.endpoints.capabilities import (
    Capabilities,
    Prices,
    capabilities_of,
    known_of,
    preset_at,
)
from stencilm.endpoints.clients import check_client, check_model_name, library, made, within
from stencilm.endpoints.messages import in_form, text_of
from stencilm.endpoints.requests import Request
from stencilm.tokenizers import TokenizerInfo


def from_openai(
    client: Any = None,
    model: str = "",
    *,
    capabilities: Capabilities | str | None = None,
    tokenizer_info: TokenizerInfo | None = None,
    prices: Prices | None = None,
    schema_in_prompt: bool | None = None,
    concurrency: int = DEFAULT_CONCURRENCY,
) -> ApiModel:
    """A model behind OpenAI's API or a compatible one.

    Args:
        client: An `openai.OpenAI`, `openai.AsyncOpenAI`, or one of their Azure classes, which holds
            address, key, timeout and retries; None for one made from the environment.
        model: The name of the model, or of the deployment.
        capabilities: What the endpoint can do: a `Capabilities`, or the name of a preset: "openai",
            "openai-reasoning", "openai-responses", "azure", "azure-reasoning", "gemini", "mistral",
            "deepseek", "deepseek-beta", "groq", "openrouter", "together", "ollama", "lmstudio",
            "vllm", "vllm-reasoning", "sglang", "sglang-reasoning", "llama.cpp", "transformers",
            "compatible". Where None, by the client's address and the model's name; "openai" where
            they tell nothing.
        tokenizer_info: The model's vocabulary, for `logit_bias`.
        prices: The price of a million tokens.
        schema_in_prompt: Whether the grammar is described in the prompt; None for the preset's
            default, which is: if nothing else carries it.
        concurrency: How many texts of a batch are requested at once.

    Raises:
        ModelError: The `openai` library is missing, or no key is found.
        ValueError: The model name is empty, or there is no such preset.
        TypeError: `client` is not a client of the library, or `model` is not a str.

    Examples:
        >>> from openai import OpenAI
        >>> import stencilm
        >>> client = OpenAI(base_url="http://localhost:8000/v1", api_key="none")
        >>> model = stencilm.from_openai(client, "Qwen/Qwen3-4B", capabilities="vllm")
        >>> model("A number:", int)  # doctest: +SKIP
        42
    """
    check_model_name(model, "from_openai")
    known: Capabilities | None = None
    if isinstance(capabilities, str):
        known = known_of(capabilities, model)
    elif capabilities is not None:
        known = capabilities_of(capabilities)
    openai = library("openai", "OpenAI's API")
    if client is None:
        client = made(openai.OpenAI, openai.OpenAIError)
    check_client(client, "chat", "openai.OpenAI or openai.AsyncOpenAI")
    if known is None:
        known = known_of(preset_at(str(getattr(client, "base_url", "")), model), model)
    if schema_in_prompt is not None:
        known = replace(known, schema_in_prompt=schema_in_prompt)
    is_async = isinstance(client, openai.AsyncOpenAI)
    kind = _Responses if known.responses else _OpenAI
    provider: Provider = kind(client, is_async=is_async)
    return ApiModel(
        provider,
        model,
        capabilities=known,
        tokenizer_info=tokenizer_info,
        prices=prices,
        concurrency=concurrency,
    )


class _OpenAI:
    """Calls of the chat and the completions resource."""

    def __init__(self, client: Any, *, is_async: bool) -> None:
        self._client = client
        self.is_async = is_async

    def resource(self, request: Request, timeout: float | None) -> tuple[Any, dict[str, Any]]:
        client = within(self._client, timeout)
        if request.route == "completions":
            return client.completions, request.arguments
        messages = in_form(request.arguments["messages"], "chat")
        return client.chat.completions, {**request.arguments, "messages": messages}

    def read(self, response: Any) -> Piece:
        check_is_no_error(response)
        if response.choices is None:
            raise TypeError("what has no choices is no answer")
        return _counted(_first_choice(response, "message"), response)

    def read_part(self, part: Any) -> Piece:
        check_is_no_error(part)
        piece = _first_choice(part, "delta")
        # The library does not tell the names of events, so an error may look like this as well.
        piece.is_unknown = part.choices is None and getattr(part, "usage", None) is None
        return _counted(piece, part)


class _Stretch(NamedTuple):
    """What of a piece a stretch of a streamed response is, and where its end says it as a whole."""

    field: str
    whole: str


_SAID_IN = {
    "response.output_text": _Stretch("text", "text"),
    "response.custom_tool_call_input": _Stretch("text", "input"),
    "response.refusal": _Stretch("refusal", "refusal"),
    "response.reasoning_summary_text": _Stretch("reasoning", "text"),
    "response.reasoning_text": _Stretch("reasoning", "text"),
}
_INDEXES = ("output_index", "content_index", "summary_index")


class _Responses:
    """Calls of the responses resource."""

    def __init__(self, client: Any, *, is_async: bool) -> None:
        self._client = client
        self.is_async = is_async

    def resource(self, request: Request, timeout: float | None) -> tuple[Any, dict[str, Any]]:
        arguments = dict(request.arguments)
        messages = arguments.pop("messages")
        system = [text_of(message) for message in messages if message["role"] == "system"]
        if system:
            arguments["instructions"] = "\n\n".join(system)
        others = [message for message in messages if message["role"] != "system"]
        arguments["input"] = in_form(others, "responses")
        return within(self._client, timeout).responses, arguments

    def read(self, response: Any) -> Piece:
        check_is_no_error(response)
        if response.output is None and response.status is None:
            raise TypeError("what has neither an output nor a status is no answer")
        piece = self._said(response)
        if response.status in ("queued", "in_progress") and not piece.text:
            raise ResponseFailed(f"the answer is {response.status!r}, and nothing is written yet")
        return piece

    def _said(self, response: Any) -> Piece:
        """What a whole response says."""
        text, refusal = "", ""
        thought = []
        for item in response.output or ():
            if item.type == "reasoning":
                for name in ("summary", "content"):
                    thought += [part.text or "" for part in getattr(item, name, None) or ()]
                continue
            if item.type == "custom_tool_call":
                text += item.input or ""
            for part in getattr(item, "content", None) or ():
                if part.type == "output_text":
                    text += part.text or ""
                elif part.type == "refusal":
                    refusal += part.refusal or ""
        reasoning = "\n\n".join(thought)
        return replace(self._ended(response), text=text, refusal=refusal, reasoning=reasoning)

    def read_part(self, part: Any) -> Piece:
        kind = getattr(part, "type", None)
        if not isinstance(kind, str):
            return Piece(is_unknown=True)
        stretch, _, word = kind.rpartition(".")
        said_in = _SAID_IN.get(stretch)
        if said_in is not None and word in ("delta", "done"):
            said = part.delta if word == "delta" else getattr(part, said_in.whole, None) or ""
            indexes = (getattr(part, name, None) for name in _INDEXES)
            place = (stretch, *indexes)
            piece = Piece(place=place, is_again=word == "done")
            setattr(piece, said_in.field, said)
            return piece
        if kind == "response.reasoning_summary_part.added" and part.summary_index:
            return Piece(reasoning="\n\n")
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            return replace(self._said(part.response), is_again=True)
        if kind == "error":
            raise ResponseFailed(part.message)
        return Piece()

    def _ended(self, response: Any) -> Piece:
        if response.status in ("failed", "cancelled"):
            raise ResponseFailed(getattr(response.error, "message", None) or response.status)
        reason = getattr(response.incomplete_details, "reason", None)
        piece = Piece(
            is_finished=response.status == "completed", is_filtered=reason == "content_filter"
        )
        usage = response.usage
        if usage is not None:
            piece.prompt_tokens = getattr(usage, "input_tokens", None)
            piece.output_tokens = getattr(usage, "output_tokens", None)
            output = getattr(usage, "output_tokens_details", None)
            piece.reasoning_tokens = getattr(output, "reasoning_tokens", None)
            details = getattr(usage, "input_tokens_details", None)
            piece.cached_tokens = getattr(details, "cached_tokens", None) or 0
        return piece


def _first_choice(response: Any, part: str) -> Piece:
    """The contents of the first choice; parts of other choices may come between its own."""
    for choice in response.choices or ():
        if not choice.index:  # Other servers leave it out.
            return _piece(choice, part)
    return Piece()


def _piece(choice: Any, part: str) -> Piece:
    """The contents of a choice: the text of a completion, or of a message and its tools."""
    is_filtered = choice.finish_reason == "content_filter"
    is_finished = ended_by(choice.finish_reason)
    said = getattr(choice, part, None)
    if said is None:
        text = getattr(choice, "text", None) or ""
        return Piece(text=text, is_finished=is_finished, is_filtered=is_filtered)
    calls = getattr(said, "tool_calls", None) or ()
    content, reasoning = _content(said)
    text = content + "".join(map(_tool_input, calls))
    refusal = getattr(said, "refusal", None)
    return Piece(
        text=text,
        reasoning=reasoning,
        refusal=refusal if isinstance(refusal, str) else "",
        is_finished=is_finished,
        is_filtered=is_filtered,
    )


def _content(said: Any) -> tuple[str, str]:
    """The text of a message, and its reasoning, for which providers have three names."""
    content = said.content or ""
    for name in ("reasoning_content", "reasoning"):
        reasoning = getattr(said, name, None)
        if isinstance(reasoning, str) and reasoning:
            break
    else:
        reasoning = ""
    if isinstance(content, str):
        return content, reasoning
    text, thought = "", reasoning
    for part in content:  # Mistral's reasoning models answer in parts
        if part.get("type") == "thinking":
            thought += "".join(one.get("text", "") for one in part.get("thinking") or ())
        else:
            text += part.get("text") or ""
    return text, thought


def _tool_input(call: Any) -> str:
    """The input of a custom tool; the parts of a stream are plain dictionaries."""
    custom = getattr(call, "custom", None)
    given = custom.get("input") if isinstance(custom, dict) else getattr(custom, "input", None)
    return given or ""


def _counted(piece: Piece, response: Any) -> Piece:
    usage = getattr(response, "usage", None)
    if usage is not None:
        piece.prompt_tokens = getattr(usage, "prompt_tokens", None)
        piece.output_tokens = getattr(usage, "completion_tokens", None)
        output = getattr(usage, "completion_tokens_details", None)
        piece.reasoning_tokens = getattr(output, "reasoning_tokens", None)
        details = getattr(usage, "prompt_tokens_details", None)
        piece.cached_tokens = getattr(details, "cached_tokens", None) or 0
    return piece
