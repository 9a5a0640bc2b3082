"""What an endpoint can do, declared and not guessed; `ApiModel.probe` tries each of it.

One idea: the ladder from best to worst means is read off these flags. Native constraints come
first, then ways to continue a given text, then ways to choose among few, then asking again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from stencilm.endpoints.schema_subset import SchemaSubset

Native: TypeAlias = Literal[
    "json_schema", "custom_tool", "structured_outputs", "guided_grammar", "ebnf", "output_config"
]
"""How an endpoint takes a grammar: `response_format` with a schema; OpenAI's custom tools with a
Lark grammar or a regular expression; vLLM's `structured_outputs`; llama.cpp's `grammar`; SGLang's
`ebnf`; Anthropic's `output_config`."""

Continuation: TypeAlias = Literal["completion", "continue_final_message", "prefix", "prefill"]
"""How an endpoint goes on with a given text: raw completions; `continue_final_message` of vLLM and
SGLang; `prefix: true` of DeepSeek and Mistral; a last message of the assistant, as older models of
Anthropic read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an endpoint can do.

    Attributes:
        native: How it takes a grammar, in the order to try; none where it takes none.
        continuation: How it goes on with a given text; None where an assistant's turn is history.
        logit_bias: It takes a bias on up to 300 tokens; needs the vocabulary (`tokenizer_info`).
        bias: What is sent for a token that is allowed; some endpoints want an int, some a float.
        choice: It may be asked to choose by number.
        stream: Answers may be read while they come, so that a dead one is cut short.
        stream_usage: A stream tells its numbers of tokens when asked to.
        max_tokens: What the bound of an answer is called.
        seed: It takes a seed.
        temperature: It takes a temperature and `top_p`.
        schema_subset: Which part of JSON Schema its native form takes: that of OpenAI's strict mode
            or that of Anthropic's structured outputs; None for all of it.
    """

    native: tuple[Native, ...] = ()
    continuation: Continuation | None = None
    logit_bias: bool = False
    bias: float = 100
    choice: bool = True
    stream: bool = True
    stream_usage: bool = False
    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    seed: bool = False
    temperature: bool = True
    schema_subset: SchemaSubset | None = None


PRESETS: dict[str, Capabilities] = {
    "openai": Capabilities(
        native=("json_schema", "custom_tool"),
        logit_bias=True,
        stream_usage=True,
        max_tokens="max_completion_tokens",
        seed=True,
        schema_subset="openai",
    ),
    "vllm": Capabilities(
        native=("structured_outputs",),
        continuation="continue_final_message",
        logit_bias=True,
        stream_usage=True,
        seed=True,
    ),
    "sglang": Capabilities(
        native=("json_schema", "ebnf"),
        continuation="continue_final_message",
        logit_bias=True,
        stream_usage=True,
        seed=True,
    ),
    "llama.cpp": Capabilities(
        native=("guided_grammar",), continuation="completion", logit_bias=True, seed=True
    ),
    "transformers": Capabilities(continuation="completion", logit_bias=True, bias=100.0, seed=True),
    "deepseek": Capabilities(continuation="prefix", stream_usage=True),
    "mistral": Capabilities(native=("json_schema",), continuation="prefix"),
    "compatible": Capabilities(),
    "anthropic": Capabilities(
        native=("output_config",), temperature=False, schema_subset="anthropic"
    ),
    "anthropic-prefill": Capabilities(continuation="prefill"),
}
"""Endpoints by name; `compatible` is the least that an OpenAI-compatible one can do."""


def capabilities_of(given: Capabilities | str) -> Capabilities:
    """Capabilities, or those of a preset. Raises ValueError for a name that is none."""
    if isinstance(given, Capabilities):
        return given
    if given not in PRESETS:
        raise ValueError(
            f"capabilities is {given!r}, but must be a Capabilities or one of {', '.join(PRESETS)}"
        )
    return PRESETS[given]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What tokens cost, for a million of them, in any unit of money."""

    prompt: float
    output: float
    cached: float | None = None

    def cost(self, prompt_tokens: int, output_tokens: int, cached_tokens: int) -> float:
        """The cost of a call; `cached_tokens` are among `prompt_tokens`."""
        cached = self.prompt if self.cached is None else self.cached
        fresh = prompt_tokens - cached_tokens
        return (fresh * self.prompt + cached_tokens * cached + output_tokens * self.output) / 1e6
