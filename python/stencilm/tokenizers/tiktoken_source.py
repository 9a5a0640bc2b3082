"""tiktoken encodings: their vocabulary already consists of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stencilm.errors import TokenizerError
from stencilm.tokenizers.source import Source


class TiktokenCodec:
    """A `tiktoken.Encoding`, used for plain text."""

    __slots__ = ("_encoding",)

    def __init__(self, encoding: Any) -> None:
        """Keep the encoding."""
        self._encoding = encoding

    def encode(self, text: str) -> list[int]:
        """The tokens of plain text."""
        ids: list[int] = self._encoding.encode_ordinary(text)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, special ones included."""
        text: str = self._encoding.decode(list(ids), errors="replace")
        return text


def token_bytes(encoding: Any) -> list[bytes | None]:
    """Bytes by id, also of special tokens.

    None for holes, such as those before the special tokens.
    """
    found: list[bytes | None] = []
    for token_id in range(encoding.n_vocab):
        try:
            found.append(encoding.decode_single_token_bytes(token_id))
        except KeyError:
            found.append(None)
    return found


def read_tiktoken(encoding: Any) -> Source:
    """Read a source from a `tiktoken.Encoding`.

    Its stop token is `<|endoftext|>` if it has one; the caller must name other ends of turns
    (`<|im_end|>`, `<|return|>`).

    Raises:
        TokenizerError: It is not an encoding.
    """
    wanted = ("n_vocab", "decode_single_token_bytes", "special_tokens_set", "encode_ordinary")
    if not all(hasattr(encoding, name) for name in wanted):
        raise TokenizerError(
            f"a {type(encoding).__name__} is no tiktoken.Encoding; give tiktoken.get_encoding(...) "
            "or from_huggingface it"
        )
    special = {encoding.encode_single_token(name): name for name in encoding.special_tokens_set}
    tokens = [
        None if token_id in special else token
        for token_id, token in enumerate(token_bytes(encoding))
    ]
    try:
        stop: tuple[int, ...] = (encoding.eot_token,)
    except KeyError:
        stop = ()
    return Source(
        label=f"the tiktoken encoding {encoding.name!r}",
        tokens=tokens,
        special=special,
        stop=stop,
        codec=TiktokenCodec(encoding),
    )
