"""From the way a vocabulary writes its tokens to the bytes that they spell.

There are three common conventions: byte-level alphabets (GPT-2: every byte has a printable
character), byte fallback with a visible space (SentencePiece: `▁` and `<0x0A>`), and words joined
by spaces (WordPiece). A `Spelling` is one of them as data. It converts whole lists, because a call
for each of 128,256 tokens would take longer than all the rest of loading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate, pairwise
from string import hexdigits

METASPACE = "\u2581"


class VocabType(Enum):
    """How the entries of a vocabulary are written.

    Examples:
        >>> import stencilm
        >>> stencilm.TokenizerInfo(["Ġtrue"], stencilm.VocabType.BYTE_LEVEL).decoded_vocab
        [b' true']
    """

    RAW = "raw"
    """As they are: text stands for its UTF-8 bytes."""
    BYTE_FALLBACK = "byte_fallback"
    """SentencePiece: `▁` stands for a space, `<0x0A>` for the byte 10."""
    BYTE_LEVEL = "byte_level"
    """GPT-2: every byte is written as one printable character, a space as `Ġ`."""


def byte_level_alphabet() -> dict[str, int]:
    """The character that GPT-2 writes for each byte: itself, or the next from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    alphabet.update({chr(0x100 + rank): byte for rank, byte in enumerate(hidden)})
    return alphabet


BYTE_LEVEL_ALPHABET = byte_level_alphabet()
# Map Latin-1 characters outside the alphabet to one that Latin-1 cannot encode, so that they are
# not taken for bytes.
_BYTE_LEVEL_TABLE: dict[int, int | str] = {byte: "\uffff" for byte in range(256)} | {
    ord(char): byte for char, byte in BYTE_LEVEL_ALPHABET.items()
}
_LATIN_TABLE: dict[int, int | str] = {}
_BYTE_TOKENS = {
    f"<0x{high}{low}>": bytes([int(high + low, 16)]) for high in hexdigits for low in hexdigits
}


@dataclass(frozen=True)
class Spelling:
    """How the written form of a token becomes bytes.

    Attributes:
        alphabet: One character stands for one byte: "byte_level" (GPT-2's alphabet), "latin" (the
            character with the byte's number, as in ByT5), or None if characters stand for
            themselves.
        replaced: Texts and their replacements, in order, such as `▁` by a space.
        byte_fallback: `<0x0A>` stands for the byte 10.
        word_prefix: Words are joined by a space, except before tokens with this prefix (WordPiece's
            `##`); "" if every token is a word. None if tokens are simply joined.
    """

    alphabet: str | None = None
    replaced: tuple[tuple[str, str], ...] = ()
    byte_fallback: bool = False
    word_prefix: str | None = None

    @property
    def vocab_type(self) -> VocabType:
        """The nearest of the three public types."""
        if self.alphabet == "byte_level":
            return VocabType.BYTE_LEVEL
        if self.byte_fallback or any(content == " " for _, content in self.replaced):
            return VocabType.BYTE_FALLBACK
        return VocabType.RAW

    @property
    def space_symbol(self) -> str:
        """The symbol that the vocabulary writes for a space."""
        if self.alphabet == "byte_level":
            return "\u0120"
        return next((written for written, content in self.replaced if content == " "), " ")

    def describe(self) -> str:
        """A short name for messages."""
        if self.alphabet is not None:
            return "byte-level" if self.alphabet == "byte_level" else "one character for each byte"
        if self.word_prefix is not None:
            return "words joined by blanks"
        space = "" if self.space_symbol == " " else f" with {self.space_symbol!r} for a space"
        return f"plain text{space}{' and byte tokens' if self.byte_fallback else ''}"

    def spell(self, written: Sequence[str]) -> list[bytes]:
        """The bytes of each token, in order.

        A token with a character outside the alphabet stands for its own text, as in the decoders of
        the `tokenizers` library: added tokens such as `<｜User｜>` are written plainly among
        byte-level ones.
        """
        if self.alphabet is not None:
            table = _BYTE_LEVEL_TABLE if self.alphabet == "byte_level" else _LATIN_TABLE
            return _spell_by_alphabet(written, table)
        texts = list(written)
        if self.word_prefix is not None:
            texts = _with_whitespace(texts, self.word_prefix)
        for old, new in self.replaced:
            texts = [text.replace(old, new) for text in texts]
        if self.byte_fallback:
            return [_BYTE_TOKENS.get(text) or text.encode() for text in texts]
        return [text.encode() for text in texts]


BY_TYPE = {
    VocabType.RAW: Spelling(),
    VocabType.BYTE_FALLBACK: Spelling(replaced=((METASPACE, " "),), byte_fallback=True),
    VocabType.BYTE_LEVEL: Spelling(alphabet="byte_level"),
}


def _spell_by_alphabet(written: Sequence[str], table: dict[int, int | str]) -> list[bytes]:
    # Translate the whole vocabulary at once, then split it: one character is one byte, so the
    # lengths stay the same.
    try:
        joined = "".join(written).translate(table).encode("latin-1")
    except UnicodeEncodeError:
        return [_spell_one(text, table) for text in written]
    ends = accumulate(map(len, written), initial=0)
    return [joined[start:end] for start, end in pairwise(ends)]


def _spell_one(text: str, table: dict[int, int | str]) -> bytes:
    try:
        return text.translate(table).encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _with_whitespace(texts: Sequence[str], mark: str) -> list[str]:
    if not mark:
        return [" " + text for text in texts]
    return [text[len(mark) :] if text.startswith(mark) else " " + text for text in texts]
