"""The little that a decode loop asks of a language model.

One idea: a sequence is a list of tokens that can grow and be cut; what the backend keeps for it (a
key-value cache, a handle on a server) is its own business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from stencilm.characters import check_characters
from stencilm.shown import shown_value
from stencilm.tokenizers import TokenizerInfo

Prompt: TypeAlias = str | Sequence[Mapping[str, object]]
"""Plain text, or chat messages such as `[{"role": "user", "content": "Hello"}]`."""


def checked_prompt(prompt: Any) -> Prompt:
    """The prompt, if it is one.

    Raises TypeError for what is neither text nor chat messages, and ValueError for half of a
    surrogate pair, which no tokenizer can read.
    """
    if isinstance(prompt, str):
        check_characters(prompt, "the prompt", "no tokenizer can read")
        return prompt
    is_list = isinstance(prompt, Sequence) and not isinstance(prompt, (bytes, bytearray))
    if not is_list or not all(isinstance(message, Mapping) for message in prompt):
        raise TypeError(
            f"the prompt is {shown_value(prompt):.60}, but must be a str, or chat messages such as "
            "[{'role': 'user', 'content': 'Hello'}]"
        )
    return cast("Prompt", prompt)


@runtime_checkable
class TokenSequence(Protocol):
    """One sequence of tokens inside a model."""

    @property
    def num_tokens(self) -> int:
        """How many tokens the sequence holds, the prompt included."""

    def append(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """Add tokens, and return the logits of the token that comes next.

        The result is float32, shape [logits width], and the caller may write into it. The width
        may exceed the tokenizer's vocabulary (padding). An empty list asks for the logits at the
        present end. Raises ModelError when the sequence is empty or leaves the model's context.
        """

    def crop(self, num_tokens: int) -> None:
        """Keep only the first `num_tokens` tokens.

        Raises ValueError when there are fewer tokens than that.
        """


@runtime_checkable
class DraftSequence(TokenSequence, Protocol):
    """A sequence that can check several tokens in one forward pass; loops make use of it."""

    def append_rows(self, token_ids: Sequence[int], rows: int) -> NDArray[np.float32]:
        """Add tokens, and return the logits after each of the last `rows` tokens.

        The result is float32, shape [rows, logits width], and the caller may write into it.
        """


@runtime_checkable
class LanguageModel(Protocol):
    """A causal language model with its tokenizer."""

    @property
    def tokenizer_info(self) -> TokenizerInfo:
        """The vocabulary that the logits speak of."""

    @property
    def context_size(self) -> int | None:
        """The most tokens that one sequence may hold; None when there is no such limit."""

    def encode(self, prompt: Prompt) -> list[int]:
        """The tokens of a prompt, with the beginning-of-text policy of the tokenizer itself.

        Raises ModelError for a prompt without a single token, and for chat messages where the
        tokenizer knows no chat format.
        """

    def start(self, prompt_ids: Sequence[int]) -> TokenSequence:
        """A new sequence that holds the prompt. Nothing is computed before the first `append`."""
