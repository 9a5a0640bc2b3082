"""The minimal interface of a language model for a decode loop.

One idea: a sequence is a list of tokens that can grow and be cropped. What the backend stores for
it (a key-value cache, a handle on a server) is up to the backend.
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
    """Check a prompt and return it.

    Raises TypeError if it is neither text nor chat messages with roles, and ValueError for a lone
    surrogate, which no tokenizer can read.
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
    for message in prompt:
        check_role(message)
    return cast("Prompt", prompt)


def check_role(message: Mapping[str, Any]) -> None:
    """Raise TypeError for a message without a role, which a chat template may leave out."""
    if not isinstance(message.get("role"), str):
        raise TypeError(
            f"a message is {shown_value(dict(message)):.100}, but must have a 'role', such as "
            "'user'"
        )


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
    """A sequence that can check several tokens in one forward pass, if the loop supports that."""

    def append_rows(self, token_ids: Sequence[int], rows: int) -> NDArray[np.float32]:
        """Add tokens, and return the logits after each of the last `rows` tokens.

        The result is float32, shape [rows, logits width], and the caller may write into it.
        """


@runtime_checkable
class LanguageModel(Protocol):
    """A causal language model with its tokenizer."""

    @property
    def tokenizer_info(self) -> TokenizerInfo:
        """The vocabulary of the logits."""

    @property
    def context_size(self) -> int | None:
        """The most tokens that one sequence may hold; None if there is no such limit."""

    def encode(self, prompt: Prompt) -> list[int]:
        """The tokens of a prompt, with a beginning-of-text token if the tokenizer adds one.

        Raises ModelError for a prompt without any token, and for chat messages if the tokenizer has
        no chat format.
        """

    def start(self, prompt_ids: Sequence[int]) -> TokenSequence:
        """A new sequence that holds the prompt. Nothing is computed before the first `append`."""
