"""What an endpoint can do, declared and not guessed; `ApiModel.probe` tries each capability.

One idea: the order from best to worst means follows from these flags. Native constraints come
first, then ways to continue a given text, then ways to choose among few, then asking again.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from stencilm.endpoints.reasoning import ReasoningWay
from stencilm.endpoints.schema_subset import SchemaSubset
from stencilm.shown import is_word, shown_value
from stencilm.whole_numbers import as_real, plain, shown

Native: TypeAlias = Literal[
    "json_schema", "json_object", "regex_format", "custom_tool",
    "structured_outputs", "structural_tag", "guided_grammar", "ebnf", "output_config",
]  # fmt: skip
"""How an endpoint takes a grammar: `response_format` with a schema, that asks for any JSON object,
or with a regular expression; OpenAI's custom tools with a Lark grammar or a regular expression;
vLLM's `structured_outputs`, which takes structural tags, too; `response_format` with a structural
tag; llama.cpp's `grammar`; SGLang's `regex` and `ebnf`; Anthropic's `output_config`."""

Continuation: TypeAlias = Literal["completion", "continue_final_message", "prefix", "prefill"]
"""How an endpoint goes on with a given text: raw completions; `continue_final_message` of vLLM and
SGLang; `prefix: true` of DeepSeek and Mistral; a last message of the assistant, as older models of
Anthropic read it."""

Option: TypeAlias = Literal[
    "top_k", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty"
]

MaxTokens: TypeAlias = Literal["max_tokens", "max_completion_tokens", "max_output_tokens"]
SeedName: TypeAlias = Literal["seed", "random_seed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an endpoint can do.

    Attributes:
        native: The forms in which it takes a grammar, in the order to try; empty if it takes none.
        continuation: How it continues a given text; None if an assistant's turn is only history.
        logit_bias: It takes a bias on up to 300 tokens; choosing among few tokens needs the
            vocabulary (`tokenizer_info`).
        bias: The bias for an allowed token; some endpoints want an int, some a float.
        choice: It can choose by number.
        stream: Answers can be streamed, so that one that no longer fits is ended early.
        stream_usage: A stream reports its token counts on request.
        max_tokens: The name of the limit on an answer.
        needs_max_tokens: It requires such a limit.
        seed: It takes a seed.
        seed_name: The name of the seed.
        temperature: It takes a temperature and `top_p`.
        stop: It takes stop texts.
        options: Other sampling options that it takes.
        schema_subset: The part of JSON Schema that its native form takes: that of the strict mode
            of OpenAI or of Azure, or that of Anthropic's structured outputs; None for all of it.
        schema_in_prompt: The grammar is described in the prompt: True always, False never, None if
            nothing native carries it and the prompt is a chat.
        responses: It is called through OpenAI's Responses API, and not by chat completions.
        reasoning: How its model is told to reason before it answers. If None, a call with
            `reasoning=True` asks first for the reasoning and then for the answer.
        extra_body: Fields to send beside a native form, such as routing options.

    Raises:
        ValueError: A field has none of its words; a wrong one would change what is sent.

    Examples:
        >>> import stencilm
        >>> stencilm.Capabilities(seed=False).needs_max_tokens
        False
    """

    native: tuple[Native, ...] = ()
    continuation: Continuation | None = None
    logit_bias: bool = False
    bias: float = 100
    choice: bool = True
    stream: bool = True
    stream_usage: bool = False
    max_tokens: MaxTokens = "max_tokens"
    needs_max_tokens: bool = False
    seed: bool = False
    seed_name: SeedName = "seed"
    temperature: bool = True
    stop: bool = True
    options: tuple[Option, ...] = ()
    schema_subset: SchemaSubset | None = None
    schema_in_prompt: bool | None = None
    responses: bool = False
    reasoning: ReasoningWay | None = None
    extra_body: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for name, kind in _SEVERAL.items():
            value: Any = getattr(self, name)
            words = get_args(kind)
            if not isinstance(value, (tuple, list)) or not all(
                is_word(one, words) for one in value
            ):
                raise _wrong(name, value, f"a tuple of some of {', '.join(words)}")
            object.__setattr__(self, name, tuple(value))
        for name, kind in _ONE.items():
            value = getattr(self, name)
            words = get_args(kind)
            may_be_none = name not in ("max_tokens", "seed_name")
            if not (is_word(value, words) or (may_be_none and value is None)):
                more = " or None" if may_be_none else ""
                raise _wrong(name, value, f"one of {', '.join(words)}{more}")
        try:
            object.__setattr__(self, "extra_body", tuple(dict(self.extra_body).items()))
        except (TypeError, ValueError):
            raise _wrong("extra_body", self.extra_body, "fields and their values") from None


_SEVERAL = {"native": Native, "options": Option}
_ONE = {
    "continuation": Continuation,
    "max_tokens": MaxTokens,
    "seed_name": SeedName,
    "schema_subset": SchemaSubset,
    "reasoning": ReasoningWay,
}


def _wrong(name: str, value: Any, wanted: str) -> ValueError:
    return ValueError(f"{name} is {shown_value(value):.60}, but must be {wanted}")


_PENALTIES: tuple[Option, ...] = ("frequency_penalty", "presence_penalty")
_ALL_OPTIONS: tuple[Option, ...] = ("top_k", "min_p", "repetition_penalty", *_PENALTIES)

_OPENAI = Capabilities(
    native=("json_schema", "custom_tool"),
    logit_bias=True,
    stream_usage=True,
    max_tokens="max_completion_tokens",
    seed=True,
    options=_PENALTIES,
    schema_subset="openai",
)
_ANTHROPIC = Capabilities(
    native=("output_config",),
    temperature=False,
    schema_subset="anthropic",
    needs_max_tokens=True,
    reasoning="thinking",
)

_DEEPSEEK = Capabilities(
    native=("json_object",), stream_usage=True, options=_PENALTIES, reasoning="thinking_switch"
)
_VLLM = Capabilities(
    native=("structured_outputs",),
    continuation="continue_final_message",
    logit_bias=True,
    stream_usage=True,
    seed=True,
    options=_ALL_OPTIONS,
)
_SGLANG = replace(_VLLM, native=("json_schema", "structural_tag", "ebnf"))

# Reasoning models choose their own sampling: they return an error for any option.
_OPENAI_REASONING = replace(
    _OPENAI,
    logit_bias=False,
    seed=False,
    temperature=False,
    stop=False,
    options=(),
    reasoning="effort",
)

PRESETS: dict[str, Capabilities] = {
    "openai": _OPENAI,
    "openai-reasoning": _OPENAI_REASONING,
    "openai-responses": replace(
        _OPENAI,
        responses=True,
        max_tokens="max_output_tokens",
        logit_bias=False,
        seed=False,
        stop=False,
        stream_usage=False,
        options=(),
        reasoning="responses",
    ),
    "azure": replace(_OPENAI, schema_subset="azure"),
    "azure-reasoning": replace(_OPENAI_REASONING, schema_subset="azure"),
    "anthropic": _ANTHROPIC,
    "anthropic-prefill": Capabilities(
        continuation="prefill", options=("top_k",), needs_max_tokens=True
    ),
    "gemini": Capabilities(native=("json_schema",), stream_usage=True, reasoning="effort"),
    "mistral": Capabilities(
        native=("json_schema",),
        continuation="prefix",
        seed=True,
        seed_name="random_seed",
        options=_PENALTIES,
    ),
    "deepseek": _DEEPSEEK,
    "deepseek-beta": replace(_DEEPSEEK, continuation="prefix"),
    "groq": Capabilities(
        native=("json_schema",),
        stream_usage=True,
        max_tokens="max_completion_tokens",
        seed=True,
        schema_subset="openai",
    ),
    "openrouter": Capabilities(
        native=("json_schema",),
        stream_usage=True,
        seed=True,
        options=_ALL_OPTIONS,
        schema_subset="openai",
        # Otherwise a request may be routed to a provider that ignores the schema.
        extra_body=(("provider", {"require_parameters": True}),),
        reasoning="reasoning",
    ),
    "together": Capabilities(
        native=("json_schema", "regex_format"),
        stream_usage=True,
        seed=True,
        options=_ALL_OPTIONS,
        schema_in_prompt=True,  # its documentation requires that
    ),
    "ollama": Capabilities(
        native=("json_schema",), stream_usage=True, seed=True, options=_PENALTIES
    ),
    "lmstudio": Capabilities(
        native=("json_schema",),
        stream_usage=True,
        seed=True,
        logit_bias=True,
        options=("top_k", *_PENALTIES),
    ),
    "vllm": _VLLM,
    # For a reasoning model, with a parser of its reasoning.
    "vllm-reasoning": replace(_VLLM, reasoning="vllm"),
    "sglang": _SGLANG,
    "sglang-reasoning": replace(_SGLANG, reasoning="sglang"),
    "llama.cpp": Capabilities(
        native=("guided_grammar",),
        continuation="completion",
        logit_bias=True,
        stream_usage=True,
        seed=True,
        options=("top_k", "min_p", *_PENALTIES),
    ),
    "transformers": Capabilities(
        continuation="completion",
        logit_bias=True,
        bias=100.0,
        seed=True,
        options=("frequency_penalty",),
    ),
    "compatible": Capabilities(),
}
"""Endpoints by name; `compatible` is the least that an OpenAI-compatible one can do."""

_HOSTS = {
    "api.openai.com": "openai",
    "generativelanguage.googleapis.com": "gemini",
    "api.mistral.ai": "mistral",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "openrouter.ai": "openrouter",
    "api.together.xyz": "together",
    "api.together.ai": "together",
}
_PORTS = {11434: "ollama", 1234: "lmstudio"}
_WEIGHTS_WITH_EFFORT = re.compile(r"gpt-oss")
_REASONING = re.compile(r"(openai/)?(o[1-9]|gpt-[5-9](?!.*chat))")


def capabilities_of(given: Capabilities | str) -> Capabilities:
    """Capabilities, or those of a preset. Raises ValueError for a name that is none."""
    if isinstance(given, Capabilities):
        return given
    if not isinstance(given, str) or given not in PRESETS:
        raise ValueError(
            f"capabilities is {shown_value(given):.80}, "
            f"but must be a Capabilities or one of {', '.join(PRESETS)}"
        )
    return PRESETS[given]


def known_of(preset: str, model: str) -> Capabilities:
    """The capabilities of a preset, which may depend on the model's name.

    Raises ValueError for an unknown preset.
    """
    known = capabilities_of(preset)
    if known.responses and not _REASONING.match(model):
        return replace(known, reasoning=None)
    is_known = known.reasoning is not None or not known.native or known.schema_subset == "anthropic"
    if not is_known and _WEIGHTS_WITH_EFFORT.search(model):
        return replace(known, reasoning="effort")
    return known


def preset_at(address: str, model: str) -> str:
    """The preset of an OpenAI-compatible endpoint, by its address and the name of its model.

    "openai" if the address is not known.
    """
    parts = urlsplit(address)
    host = parts.hostname or ""
    preset = _HOSTS.get(host, "openai")
    if host.endswith((".openai.azure.com", ".cognitiveservices.azure.com")):
        preset = "azure"
    if host in ("localhost", "127.0.0.1", "::1"):
        preset = _PORTS.get(parts.port or 0, "openai")
    if preset == "deepseek" and parts.path.startswith("/beta"):
        preset = "deepseek-beta"
    if preset in ("openai", "azure") and _REASONING.match(model):
        preset = f"{preset}-reasoning"
    return preset


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The price of a million tokens, in any unit of money.

    Examples:
        >>> import stencilm
        >>> stencilm.Prices(prompt=2.0, output=8.0, cached=0.5).cost(1_000_000, 500_000, 0)
        6.0

    Raises:
        ValueError: One of them is not a finite number from 0 up.
    """

    prompt: float
    output: float
    cached: float | None = None

    def __post_init__(self) -> None:
        for name in ("prompt", "output", "cached"):
            value = getattr(self, name)
            if value is None and name == "cached":
                continue
            price = as_real(value)
            if price is None or not 0 <= price < math.inf:
                otherwise = ", or None" if name == "cached" else ""
                raise ValueError(
                    f"{name} is {shown(value)}, but must be a finite number from 0 up{otherwise}"
                )
            object.__setattr__(self, name, plain(value))

    def cost(self, prompt_tokens: int, output_tokens: int, cached_tokens: int) -> float:
        """The cost of a call; `cached_tokens` are among `prompt_tokens`."""
        cached = self.prompt if self.cached is None else self.cached
        cached_tokens = min(cached_tokens, prompt_tokens)  # a server may report anything
        fresh = prompt_tokens - cached_tokens
        return (fresh * self.prompt + cached_tokens * cached + output_tokens * self.output) / 1e6
