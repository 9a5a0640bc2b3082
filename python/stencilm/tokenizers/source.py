"""The result of a loader: the bytes of every token id, and the tokenizer to test them against.

Every loader returns a `Source`, so no later code knows which library a vocabulary came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from stencilm.errors import TokenizerError
from stencilm.foreign import reported_as, said
from stencilm.shown import shown_value
from stencilm.tokenizers.spelling import Spelling
from stencilm.whole_numbers import as_whole, listed, shown

# Far above any model (the largest known vocabularies have 262,144 entries). A larger width is a
# mistake, and would allocate bitmasks and lists of that size.
MAX_VOCAB_SIZE = 1 << 24


class Codec(Protocol):
    """A tokenizer that encodes and decodes text."""

    def encode(self, text: str) -> list[int]:
        """The tokens of plain text: none are added, and names of special tokens are plain text."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, including special ones, without clean-up of spaces."""


def encode_with(codec: Codec, text: str) -> list[int]:
    """The codec's tokens of a text.

    Raises:
        TokenizerError: The tokenizer's library fails, as some do on characters that they lack.
    """
    with reported_as(
        lambda error: TokenizerError(
            f"the tokenizer cannot encode {text[:40]!r} ({said(error)}); leave out what it lacks"
        )
    ):
        return codec.encode(text)


@dataclass(frozen=True)
class Source:
    """A vocabulary as read from a tokenizer.

    Attributes:
        label: What it was read from, for messages.
        tokens: Bytes by id; None for special tokens and holes.
        special: Names of the special tokens, by id.
        stop: The ids that end a text, if the tokenizer declares any.
        stop_file: The file that names those of `stop` which the tokenizer's own file does not.
        own_stop: The ids that the tokenizer's own file names, if there is another file.
        spelling: How the tokenizer writes its tokens.
        codec: The tokenizer itself, or None if there is only a list.
        wrapper_decode: The decode method that users call, if it differs from the codec's (it is
            tested on a sample).
        cleans_up_spaces: The tokenizer's own decode drops spaces before punctuation unless told not
            to.
        decode_shows_bytes: The tokenizer's own decode writes byte tokens as `<0x0A>`.
        width: The number of the model's logits, if the source knows it.
    """

    label: str
    tokens: list[bytes | None]
    special: dict[int, str] = field(default_factory=dict)
    stop: tuple[int, ...] = ()
    spelling: Spelling = Spelling()  # noqa: RUF009 - frozen, so one default serves all
    codec: Codec | None = None
    wrapper_decode: Callable[[Sequence[int]], str] | None = None
    cleans_up_spaces: bool = False
    decode_shows_bytes: bool = False
    width: int | None = None
    stop_file: str | None = None
    own_stop: tuple[int, ...] = ()

    def name_of(self, token_id: int) -> str:
        """The name of a special token, the text of any other token, or `<[id]>` for a hole."""
        token = self.tokens[token_id] if token_id < len(self.tokens) else None
        text = f"<[{token_id}]>" if token is None else token.decode("utf-8", "backslashreplace")
        return self.special.get(token_id, text)

    def within(self, width: int) -> Source:
        """The vocabulary without the tokens that have no logits in a model of this width.

        The tokenizer is kept if it encodes no plain text with these tokens.
        """
        if width >= len(self.tokens):
            return self
        is_plain = any(self.tokens[width:])
        return replace(
            self,
            tokens=self.tokens[:width],
            special={at: name for at, name in self.special.items() if at < width},
            stop=tuple(token_id for token_id in self.stop if token_id < width),
            codec=None if is_plain else self.codec,
            wrapper_decode=None if is_plain else self.wrapper_decode,
        )


def place_tokens(
    vocabulary: Mapping[Any, int],
    special: Mapping[int, str],
    spelling: Spelling,
    *,
    label: str,
    written_by_id: Callable[[int], str | bytes | None] | None = None,
) -> list[bytes | None]:
    """Bytes by id from a mapping of written tokens to ids; None for special tokens and holes.

    Two ids with the same written form share a key of such a mapping, so ids missing from it are
    looked up one by one through `written_by_id`.

    Raises:
        TokenizerError: An id is negative or far too large, or the mapping is empty.
    """
    if not vocabulary and not special:
        raise TokenizerError(f"{label} has no tokens; load a tokenizer that was trained")
    largest = max([*vocabulary.values(), *special])
    smallest = min([*vocabulary.values(), *special])
    if smallest < 0 or largest >= MAX_VOCAB_SIZE:
        wrong = smallest if smallest < 0 else largest
        raise TokenizerError(
            f"{label} gives a token the id {wrong}; ids lie between 0 and {MAX_VOCAB_SIZE - 1}, so "
            "mend its vocabulary"
        )
    written: list[Any] = [None] * (largest + 1)
    for token, token_id in vocabulary.items():
        written[token_id] = token
    if written_by_id is not None:
        for token_id, token in enumerate(written):
            if token is None:
                written[token_id] = written_by_id(token_id)
    for token_id in special:
        written[token_id] = None
    texts = [token for token in written if type(token) is str]
    try:
        spelled = iter(spelling.spell(texts))
    except UnicodeEncodeError as error:
        raise TokenizerError(
            f"{label} has a token with a lone surrogate in {error.object[:40]!r}; tokens are text "
            "or bytes"
        ) from error
    return [next(spelled) if type(token) is str else token for token in written]


def ids_of(value: object, *, what: str) -> tuple[int, ...]:
    """Token ids from None, one integer or several, without repetition.

    Raises:
        TokenizerError: The value is something else.
    """
    if value is None:
        return ()
    if isinstance(value, (str, bytes, bytearray, Mapping)):
        raise TokenizerError(f"{what} is {shown_value(value):.80}; give token ids as integers")
    held = list(value) if isinstance(value, Set) else listed(value)
    found: list[int] = []
    for item in (value,) if held is None else held:
        number = as_whole(item)
        if number is None:
            raise TokenizerError(
                f"{what} holds {shown_value(item):.80}; give token ids as integers"
            )
        found.append(number)
    return tuple(dict.fromkeys(found))


def settle_width(source: Source, vocab_size: object) -> int:
    """The number of ids, padding included: the requested width, or the one that the source knows.

    Raises:
        TokenizerError: It is not a valid size, or too small for the tokens.
    """
    size = len(source.tokens)
    if vocab_size is None:
        vocab_size = max(size, source.width or 0)
    width = as_whole(vocab_size)
    if width is None:
        raise TokenizerError(
            f"vocab_size is {shown(vocab_size)}; give the number of the model's logits"
        )
    if width < size:
        raise TokenizerError(
            f"vocab_size is {shown(width)}, but {source.label} has ids up to {size - 1}; "
            "give the number of the model's logits, or leave it out"
        )
    if width > MAX_VOCAB_SIZE:
        raise TokenizerError(
            f"vocab_size is {shown(width)}; the most is {MAX_VOCAB_SIZE}, so give the number of "
            "logits"
        )
    return width


def settle_stop(source: Source, stop_token_ids: object, width: int) -> tuple[int, ...]:
    """The ids that end a text, ascending: the requested ones, or those that the source declares.

    Raises:
        TokenizerError: One is not an id of the vocabulary.
    """
    asked = stop_token_ids is not None
    stop = ids_of(stop_token_ids, what="stop_token_ids") if asked else source.stop
    for token_id in stop:
        if not 0 <= token_id < width:
            is_own = source.stop_file is None or token_id in source.own_stop
            where = f"{source.label if is_own else source.stop_file} declares"
            where = "stop_token_ids has" if asked else where
            raise TokenizerError(
                f"{where} the stop token {shown(token_id)}, but ids lie between 0 and "
                f"{width - 1}; give stop_token_ids of this vocabulary"
            )
    return tuple(sorted(stop))
