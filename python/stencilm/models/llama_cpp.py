"""Models of llama.cpp, through llama-cpp-python: any GGUF file of a text model.

One idea: a `Llama` has one context, which holds the tokens of one text. When a sequence is used,
the prefix that it shares with the context stays, the rest is removed, and only the missing tokens
are read. So sequences are independent, taking tokens back costs nothing, and a prompt that was just
read is not read again.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from threading import Lock
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from stencilm._core import LockGuard
from stencilm.characters import check_characters
from stencilm.chat_templates.renderer import Renderer, today
from stencilm.errors import ModelError
from stencilm.matching.reasoning import ReasoningFormat
from stencilm.models.exact_numbers import with_marks
from stencilm.models.prompts import (
    no_chat_template,
    or_document_start,
    reported_as_template,
    switches_of,
    text_messages,
)
from stencilm.models.protocol import Prompt
from stencilm.models.sequences import CachedSequence
from stencilm.shown import shown_value
from stencilm.tokenizers import TokenizerInfo
from stencilm.tool_calls.reasoning import reasoning_format


class LlamaCppCache:
    """The tokens of a sequence that were read; the model's context may hold others by now."""

    def __init__(self) -> None:
        self.token_ids = np.zeros(0, dtype=np.int32)

    @property
    def num_tokens(self) -> int:
        """How many tokens were read."""
        return len(self.token_ids)

    def crop(self, num_tokens: int) -> bool:
        """Keep the first `num_tokens` tokens. Always True: the next pass updates the context."""
        self.token_ids = self.token_ids[:num_tokens]
        return True


class LlamaCppModel:
    """A model of llama.cpp for a decode loop.

    Threads may share it; only one is served at a time.

    Args:
        llama: The model, with the context that it was created with.

    Raises:
        TypeError: It is not a `llama_cpp.Llama`.
        ModelError: It was created for embeddings or for its vocabulary only, so it has no logits.
    """

    def __init__(self, llama: Any) -> None:
        if not isinstance(llama, llama_cpp.Llama):
            raise TypeError(
                f"llama is {shown_value(llama):.60}, but must be a llama_cpp.Llama: "
                "llama_cpp.Llama(model_path='model.gguf') makes one"
            )
        self.llama: Any = llama
        if llama.context_params.embeddings:
            raise ModelError(
                "this Llama was made with embedding=True, so it computes no logits: make one "
                "without it"
            )
        if llama.model_params.vocab_only:
            raise ModelError(
                "this Llama was made with vocab_only=True, so it has no weights: make one without "
                "it, or read its vocabulary with TokenizerInfo.from_llama_cpp"
            )
        self._tokenizer_info = TokenizerInfo.from_llama_cpp(llama)
        self._lock = Lock()

    @property
    def tokenizer_info(self) -> TokenizerInfo:
        """The vocabulary of the file."""
        return self._tokenizer_info

    @property
    def context_size(self) -> int:
        """The number of positions of the context, `n_ctx`."""
        return int(self.llama.n_ctx())

    @property
    def reasoning_format(self) -> ReasoningFormat | None:
        """The model's format of reasoning, taken from the file's chat template."""
        template = self.llama.metadata.get("tokenizer.chat_template")
        return reasoning_format(template) if template else None

    def encode(self, prompt: Prompt) -> list[int]:
        """The tokens of a text, or of chat messages through the chat template of the file."""
        if isinstance(prompt, str):
            # With `add_bos`, the file decides whether texts begin with a beginning-of-text token.
            token_ids = self.llama.tokenize(prompt.encode(), add_bos=True, special=True)
        else:
            text = self._chat_text(prompt)
            check_characters(text, "the prompt", "no tokenizer can read")
            token_ids = self.llama.tokenize(text.encode(), add_bos=False, special=True)
        first = (self.llama.token_bos(), self.llama.token_eos())
        return or_document_start(token_ids, [None if one < 0 else one for one in first])

    def start(self, prompt_ids: Sequence[int]) -> CachedSequence:
        """A new sequence that holds the prompt; the first `append` runs it."""
        return CachedSequence(self, prompt_ids)

    def new_cache(self) -> LlamaCppCache:
        """An empty cache."""
        return LlamaCppCache()

    def read(self, token_ids: Sequence[int], cache: LlamaCppCache, rows: int) -> NDArray[Any]:
        """Run tokens after what the cache holds: the logits of the last `rows` positions.

        The result is float32, shape [rows, width]. At most `n_batch` tokens take one pass.
        """
        wanted = np.concatenate([cache.token_ids, np.array(token_ids, dtype=np.int32)])
        with LockGuard(self._lock):
            start = self._cut(wanted[: len(wanted) - rows])
            found = np.empty((rows, self.llama.n_vocab()), dtype=np.float32)
            for begin in range(start, len(wanted), self.llama.n_batch):
                self._decode(wanted[begin : begin + self.llama.n_batch], len(wanted) - rows, found)
        cache.token_ids = wanted
        return found

    def _cut(self, wanted: NDArray[np.int32]) -> int:
        """Crop the context to its common prefix with these tokens.

        Returns the length of the prefix.
        """
        llama = self.llama
        memory = llama_cpp.llama_get_memory(llama.ctx)
        length = min(llama.n_tokens, len(wanted))
        others = np.flatnonzero(llama.input_ids[:length] != wanted[:length])
        shared = int(others[0]) if len(others) else length
        # A sliding window has dropped its past, and a recurrent state only exists for the end of
        # the text. In these cases the first position that is still known lies after the first one
        # that the next token needs.
        window = llama_cpp.llama_model_n_swa(llama.model)
        is_known = llama_cpp.llama_memory_seq_pos_min(memory, 0) <= max(0, shared - window)
        if not (is_known and llama_cpp.llama_memory_seq_rm(memory, 0, shared, -1)):
            llama_cpp.llama_memory_clear(memory, True)
            shared = 0
        llama.n_tokens = shared
        return shared

    def _decode(self, token_ids: NDArray[np.int32], first: int, found: NDArray[np.float32]) -> None:
        """Read tokens after the context.

        Stores the logits of positions from `first` on in `found`.
        """
        llama = self.llama
        number, past = len(token_ids), llama.n_tokens
        batch = llama_cpp.llama_batch()
        # Default positions: those after the tokens in the context.
        batch.n_tokens = number
        batch.token = (llama_cpp.llama_token * number)(*token_ids.tolist())
        flags = [int(position >= first) for position in range(past, past + number)]
        batch.logits = (ctypes.c_int8 * number)(*flags)
        status = llama_cpp.llama_decode(llama.ctx, batch)
        if status != 0:
            llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(llama.ctx), True)
            llama.n_tokens = 0
            raise ModelError(
                f"llama.cpp could not read {number} tokens behind {past} (llama_decode returned "
                f"{status}): make the Llama with a larger n_ctx or a smaller n_batch"
            )
        # llama-cpp-python's own methods rely on these fields.
        llama.input_ids[past : past + number] = token_ids
        llama.n_tokens = past + number
        for place, is_wanted in enumerate(flags):
            if is_wanted:
                row = llama_cpp.llama_get_logits_ith(llama.ctx, place)
                found[past + place - first] = np.ctypeslib.as_array(row, shape=found.shape[1:])

    def _chat_text(self, messages: Any) -> str:
        template = self.llama.metadata.get("tokenizer.chat_template")
        if not template:
            raise no_chat_template()
        vocab = llama_cpp.llama_model_get_vocab(self.llama.model)
        begin, end = (
            "" if one < 0 else llama_cpp.llama_vocab_get_text(vocab, one).decode()
            for one in (self.llama.token_bos(), self.llama.token_eos())
        )
        # llama-cpp-python's formatter has no limits, escapes HTML in JSON, and passes on no
        # switches.
        special = {"bos_token": begin, "eos_token": end}
        name = f"the chat template of {self.llama.model_path}"
        with reported_as_template():
            renderer = Renderer(template, special, name=name, strftime_now=today)
            written, exact = with_marks(text_messages(messages))
            return exact(
                renderer.render(written, add_generation_prompt=True, **switches_of(messages))
            )
