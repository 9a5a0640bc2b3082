"""Vocabularies of GGUF files, read by llama.cpp, which reports the bytes that each token spells.

One idea: the form of the file's entries depends on the kind of tokenizer, so they are not parsed
here; the bytes are those that llama.cpp writes for a token.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

from stencilm.errors import TokenizerError
from stencilm.tokenizers.source import Source
from stencilm.tokenizers.spelling import METASPACE, Spelling

_LONGEST = 256  # bytes; most tokens have fewer, and for a longer one llama.cpp returns the size


class LlamaCppCodec:
    """A `llama_cpp.Llama`, used for plain text."""

    __slots__ = ("_llama", "_pieces")

    def __init__(self, llama: Any, pieces: Sequence[bytes]) -> None:
        """Keep the model, and the bytes of each token, special ones with their names."""
        self._llama = llama
        self._pieces = pieces

    def encode(self, text: str) -> list[int]:
        """The tokens of plain text."""
        ids: list[int] = self._llama.tokenize(text.encode(), add_bos=False, special=False)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, special ones included."""
        return b"".join([self._pieces[token_id] for token_id in ids]).decode("utf-8", "replace")


def read_llama_cpp(llama: Any) -> Source:
    """Read a source from a `llama_cpp.Llama`.

    Its stop tokens are all tokens that end a text for llama.cpp itself.

    Raises:
        TokenizerError: It is not a `Llama`.
    """
    library: Any = sys.modules.get("llama_cpp")  # imported if such an object exists
    if library is None or not isinstance(llama, library.Llama):
        raise TokenizerError(
            f"a {type(llama).__name__} is no llama_cpp.Llama; give llama_cpp.Llama(model_path=...)"
        )
    vocab = library.llama_model_get_vocab(llama.model)
    ids = range(llama.n_vocab())
    kinds = [library.llama_vocab_get_attr(vocab, token_id) for token_id in ids]
    pieces = [_piece(library, vocab, token_id) for token_id in ids]
    unnamed = library.LLAMA_TOKEN_ATTR_CONTROL | library.LLAMA_TOKEN_ATTR_UNKNOWN
    special = {
        token_id: pieces[token_id].decode("utf-8", "replace")
        for token_id in ids
        if kinds[token_id] & unnamed
    }
    no_text = unnamed | library.LLAMA_TOKEN_ATTR_UNUSED
    return Source(
        label="the GGUF vocabulary",
        tokens=[None if kinds[token_id] & no_text else pieces[token_id] for token_id in ids],
        special=special,
        stop=tuple(token_id for token_id in ids if library.llama_vocab_is_eog(vocab, token_id)),
        spelling=_spelling(library, library.llama_vocab_type(vocab)),
        codec=LlamaCppCodec(llama, pieces),
    )


def _spelling(library: Any, kind: int) -> Spelling:
    """How the file writes tokens: for display, not needed for the bytes."""
    if kind == library.LLAMA_VOCAB_TYPE_BPE:
        return Spelling(alphabet="byte_level")
    if kind in (library.LLAMA_VOCAB_TYPE_SPM, library.LLAMA_VOCAB_TYPE_UGM):
        return Spelling(replaced=((METASPACE, " "),), byte_fallback=True)
    return Spelling()


def _piece(library: Any, vocab: Any, token_id: int) -> bytes:
    """The bytes that llama.cpp writes for a token, including its leading space."""
    size = _LONGEST
    while True:
        buffer = ctypes.create_string_buffer(size)
        written = library.llama_token_to_piece(vocab, token_id, buffer, size, 0, True)
        if written >= 0:
            return buffer.raw[:written]
        size = -written
