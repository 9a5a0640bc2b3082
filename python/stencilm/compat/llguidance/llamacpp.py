"""Vocabularies of llama-cpp-python."""

from __future__ import annotations

import ctypes
from typing import Any

import llama_cpp

from stencilm.compat.llguidance.tokenizer import LLTokenizer

_ROOM = 1 << 14


def lltokenizer_from_vocab(
    vocab: Any,
    n_vocab: int | None = None,
    eos_token: int | list[int] | None = None,
    slices: list[str] | None = None,
) -> LLTokenizer:
    """The tokenizer of a vocabulary of llama.cpp.

    Args:
        vocab: A pointer, as `llama_cpp.llama_model_get_vocab` gives it.
        n_vocab: The number of the model's logits, where it is larger.
        eos_token: The tokens that end a text; by default its own.
        slices: Accepted for compatibility.

    Raises:
        ValueError: A token is longer than 16 KiB, or nothing spells text.
    """
    if eos_token is None:
        eos_token = llama_cpp.llama_vocab_eos(vocab)
    room = ctypes.create_string_buffer(_ROOM)
    tokens: list[bytes] = []
    for token in range(llama_cpp.llama_vocab_n_tokens(vocab)):
        length = llama_cpp.llama_token_to_piece(vocab, token, room, _ROOM, 0, True)
        if length < 0:
            raise ValueError(f"token {token} is longer than {_ROOM} bytes")
        spelled = room.raw[:length]
        kind = llama_cpp.llama_token_get_attr(vocab, token)
        is_marked = kind & llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED and (
            spelled.startswith(b"<") and spelled.endswith(b">")
        )
        special = kind & llama_cpp.LLAMA_TOKEN_ATTR_CONTROL or is_marked
        tokens.append(b"\xff" + spelled if special else spelled)
    tokens += [b""] * ((n_vocab or 0) - len(tokens))
    return LLTokenizer.from_llamacpp(
        tokens=tokens, vocab_ptr=0, tokenize_fptr=0, eos_token=eos_token, slices=slices
    )
