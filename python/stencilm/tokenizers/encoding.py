"""Encode text and bytes: by the tokenizer if possible, otherwise by the shortest spelling.

If a tokenizer puts a space before each text, it encodes the text after a sentinel, whose tokens are
then cut off. The result is accepted only if its tokens spell exactly the given text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from stencilm._core import Vocabulary
from stencilm.errors import TokenizerError
from stencilm.shown import shown_value
from stencilm.tokenizers.merging import OwnEncoding
from stencilm.tokenizers.segment import Segmenter
from stencilm.tokenizers.source import Codec, encode_with

# Several, because a sentinel may merge with what follows: "\n" with whitespace, "a" with letters.
_SENTINELS = ("\n", "\x02", ".", "a", "1")
_BROKEN = re.compile("([\udc80-\udcff]+)")


class Encoder:
    """Encodes for one vocabulary; the index for invalid bytes is only built when needed."""

    __slots__ = ("_codec", "_is_lost", "_prefixed", "_segmenter", "_tokens", "own")

    def __init__(
        self,
        tokens: Sequence[bytes | None],
        codec: Codec | None,
        *,
        prefixed: bool,
        core: Vocabulary,
        is_lost: bool = False,
        saved: str | None = None,
    ) -> None:
        """Keep the tokens by id and the tokenizer that encodes.

        `is_lost` means that there is a tokenizer, but it was not serialized with the vocabulary:
        its encoding is known only if `saved` holds it.
        """
        self.own = OwnEncoding(core, codec, self._asked, saved)
        self._is_lost = is_lost
        self._tokens = tokens
        self._codec = codec
        self._prefixed = prefixed
        self._segmenter: Segmenter | None = None

    def encode(self, text: str) -> list[int]:
        """The tokenizer's own tokens of a text, its leading space included where it puts one.

        Raises:
            TokenizerError: The vocabulary came without a tokenizer, or the text has a lone
                surrogate.
        """
        if self._codec is None:
            raise TokenizerError(
                "this vocabulary came without a tokenizer that encodes; load it with "
                "from_huggingface, "
                "from_file, from_tiktoken or from_sentencepiece, or use tokenize_bytes"
            )
        if not isinstance(text, str):
            raise TypeError(f"text is {shown_value(text):.80}, but must be a str")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise TokenizerError(
                f"{text[error.start]!r} is half of a character; encode whole text",
                place=f"character {error.start}",
            ) from error
        return encode_with(self._codec, text)

    def tokenize_bytes(self, data: bytes) -> list[int]:
        """Tokens that spell exactly `data`, without a leading space.

        Raises:
            TokenizerError: No tokens spell it.
        """
        if not self.reads_text:
            return self._segment(data)
        ids: list[int] = []
        # Surrogate escapes map invalid bytes, and no others, to U+DC80 to U+DCFF, so one pass finds
        # the valid text between them.
        for piece in _BROKEN.split(data.decode("utf-8", "surrogateescape")):
            spelled = piece.encode("utf-8", "surrogateescape")
            found = None if _BROKEN.match(piece) else self.own_tokens(spelled)
            ids += self._segment(spelled) if found is None else found
        return ids

    @property
    def reads_text(self) -> bool:
        """Whether a tokenizer encodes, and so reads only whole characters."""
        return self._codec is not None or self.own.was_saved

    def own_tokens(self, data: bytes) -> list[int] | None:
        """The tokens that spell exactly `data`, as the tokenizer itself writes them.

        None if the tokenizer has no tokens for it (invalid UTF-8, or text that it changes), or if
        its encoding is lost. If there never was a tokenizer, its own tokens are the fewest.

        Raises:
            TokenizerError: There is no tokenizer, and no tokens spell it.
        """
        if self._codec is None and not self.own.was_saved:
            return None if self._is_lost else self._segment(data)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
        if self.own.is_learned or (self.own.was_saved and self.own.can_learn()):
            return self.own.encode(text)
        return self._asked(data)

    def _asked(self, data: bytes) -> list[int] | None:
        """The tokens of a text, straight from the tokenizer."""
        return None if self._codec is None else self._own_tokens(data.decode(), data, self._codec)

    def _own_tokens(self, text: str, data: bytes, codec: Codec) -> list[int] | None:
        """The tokenizer's tokens of exactly this text; None if they spell something else."""
        if not text:
            return []
        for sentinel in _SENTINELS if self._prefixed else ("",):
            try:
                ids = encode_with(codec, sentinel + text)
            except TokenizerError:
                continue
            rest = self._behind(ids, b" " + sentinel.encode()) if sentinel else ids
            if rest is not None and self._spelled(rest) == data:
                return rest
        return None

    def _behind(self, ids: list[int], start: bytes) -> list[int] | None:
        """The tokens after those that spell `start`; None if no token ends there."""
        spelled = b""
        for count, token_id in enumerate(ids, 1):
            spelled += self._bytes_of(token_id) or b""
            if len(spelled) >= len(start):
                return ids[count:] if spelled == start else None
        return None

    def _spelled(self, ids: Sequence[int]) -> bytes | None:
        tokens = [self._bytes_of(token_id) for token_id in ids]
        return None if None in tokens else b"".join(token for token in tokens if token)

    def _bytes_of(self, token_id: int) -> bytes | None:
        return self._tokens[token_id] if 0 <= token_id < len(self._tokens) else None

    def _segment(self, data: bytes) -> list[int]:
        if self._segmenter is None:
            self._segmenter = Segmenter(
                self._tokens
            )  # two threads may both build it, with the same result
        return self._segmenter.segment(data)
