"""SentencePiece processors: pieces with `▁` for a space, and bytes as separate pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stencilm.errors import TokenizerError
from stencilm.tokenizers.source import Source, place_tokens
from stencilm.tokenizers.spelling import METASPACE, Spelling


class SentencePieceCodec:
    """A `sentencepiece.SentencePieceProcessor`, used for plain text."""

    __slots__ = ("_processor",)

    def __init__(self, processor: Any) -> None:
        """Keep the processor."""
        self._processor = processor

    def encode(self, text: str) -> list[int]:
        """The tokens of plain text."""
        ids: list[int] = self._processor.encode(text, out_type=int, add_bos=False, add_eos=False)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens; for SentencePiece, control pieces have no text."""
        text: str = self._processor.decode([int(token_id) for token_id in ids])
        return text


def read_sentencepiece(processor: Any) -> Source:
    """Read a source from a `sentencepiece.SentencePieceProcessor` with a loaded model.

    Raises:
        TokenizerError: It is not a processor, or has no model.
    """
    if not all(
        hasattr(processor, name)
        for name in ("get_piece_size", "id_to_piece", "is_byte", "is_control")
    ):
        raise TokenizerError(
            f"a {type(processor).__name__} is no SentencePieceProcessor; give "
            "sentencepiece.SentencePieceProcessor(model_file=...)"
        )
    size = processor.get_piece_size()
    if size == 0:
        raise TokenizerError(
            "this SentencePieceProcessor holds no model; load one with model_file=..."
        )
    ids = range(size)
    pieces = [processor.id_to_piece(token_id) for token_id in ids]
    special = {
        token_id: pieces[token_id]
        for token_id in ids
        if processor.is_control(token_id) or processor.is_unknown(token_id)
    }
    byte_fallback = any(processor.is_byte(token_id) for token_id in ids)
    spelling = Spelling(replaced=((METASPACE, " "),), byte_fallback=byte_fallback)
    used = {pieces[token_id]: token_id for token_id in ids if not processor.is_unused(token_id)}
    tokens = place_tokens(used, special, spelling, label="the SentencePiece model")
    end = processor.eos_id()
    return Source(
        label="the SentencePiece model",
        tokens=[*tokens, *[None] * (size - len(tokens))],
        special=special,
        stop=(end,) if end >= 0 else (),
        spelling=spelling,
        codec=SentencePieceCodec(processor),
    )
