"""Facts about a loaded vocabulary: gaps, duplicates, how it spells spaces and bytes.

None of them is an error by itself. They help to find out why a grammar cannot be spelled.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

SpaceSpelling = Literal["prefix", "suffix", "separate", "none"]


@dataclass(frozen=True)
class TokenizerFacts:
    """What loading found out about a vocabulary.

    Attributes:
        text_tokens: Ids that spell text.
        special_tokens: Ids that are special or stop tokens; they never spell text.
        holes: Ids below the largest one that stand for nothing.
        padding: Ids above the largest one, up to the width of the model's logits.
        duplicates: Ids that spell the same bytes as a smaller id; all of them are usable.
        empty: Ids that spell no bytes at all; they are never allowed.
        longest: Bytes of the longest token.
        not_utf8: Text tokens that are not UTF-8 on their own, such as half a character.
        missing_bytes: Bytes that no token spells on its own.
        unspellable_bytes: Bytes that occur in no token: no text with one of them can be generated.
        space: How a space before a word is spelled: with the word after it ("prefix": ` word`),
            with the word before it ("suffix"), as a token of its own ("separate"), or not at all
            ("none").
        space_symbol: What the vocabulary writes for a space: `Ġ`, `▁` or a space.
        adds_prefix_space: The tokenizer puts a space before the first word of a text.
        lossy: Kinds of text that encoding does not bring back (a normaliser lower-cases, drops or
            joins characters, or the vocabulary lacks them). Masks do not depend on encoding;
            `tokenize_bytes` works around it.
        cleans_up_spaces: The tokenizer's own `decode` drops spaces before punctuation unless it is
            told `clean_up_tokenization_spaces=False`.
        decode_shows_bytes: The tokenizer's own `decode` writes byte tokens out as `<0x0A>`; use
            `TokenizerInfo.decode_str`.
        has_stop_token: Whether any token ends a text; without one, matchers need
            `terminate_without_stop_token=True`.
    """

    text_tokens: int
    special_tokens: int
    holes: int
    padding: int
    duplicates: int
    empty: int
    longest: int
    not_utf8: int
    missing_bytes: bytes
    unspellable_bytes: bytes
    space: SpaceSpelling
    space_symbol: str
    adds_prefix_space: bool
    lossy: tuple[str, ...]
    cleans_up_spaces: bool
    decode_shows_bytes: bool
    has_stop_token: bool


@dataclass(frozen=True)
class Notes:
    """Facts that cannot be computed from the bytes: the tokenizer's behaviour at load."""

    space_symbol: str = " "
    adds_prefix_space: bool = False
    lossy: tuple[str, ...] = ()
    cleans_up_spaces: bool = False
    decode_shows_bytes: bool = False
    has_tokenizer: bool = False


def count_facts(
    tokens: Sequence[bytes | None],
    *,
    special: Collection[int],
    vocab_size: int,
    has_stop_token: bool,
    notes: Notes,
) -> TokenizerFacts:
    """Compute the facts of a vocabulary.

    Args:
        tokens: Bytes by id; None for special tokens and holes.
        special: The ids of special and stop tokens.
        vocab_size: The number of ids, padding included.
        decode_shows_bytes: The tokenizer's own `decode` writes byte tokens out as `<0x0A>`; use
            `TokenizerInfo.decode_str`.
        has_stop_token: Whether any token ends a text.
        notes: The facts that cannot be computed.
    """
    spelled = [token for token in tokens if token]
    distinct = set(spelled)
    empty = tokens.count(b"")
    used = set(b"".join(distinct))
    special_below = sum(token_id < len(tokens) for token_id in special)
    return TokenizerFacts(
        text_tokens=len(spelled),
        special_tokens=len(special),
        holes=len(tokens) - len(spelled) - empty - special_below,
        padding=vocab_size - len(tokens) - (len(special) - special_below),
        duplicates=len(spelled) - len(distinct),
        empty=empty,
        longest=max(map(len, distinct), default=0),
        not_utf8=sum(not token.isascii() and _is_broken(token) for token in spelled),
        missing_bytes=bytes(byte for byte in range(256) if bytes([byte]) not in distinct),
        unspellable_bytes=bytes(byte for byte in range(256) if byte not in used),
        space=_space_spelling(distinct),
        space_symbol=notes.space_symbol,
        adds_prefix_space=notes.adds_prefix_space,
        lossy=notes.lossy,
        cleans_up_spaces=notes.cleans_up_spaces,
        decode_shows_bytes=notes.decode_shows_bytes,
        has_stop_token=has_stop_token,
    )


def _is_broken(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return True
    return False


def _space_spelling(distinct: set[bytes]) -> SpaceSpelling:
    if any(token[0] == 0x20 and token[1:].isalnum() for token in distinct):
        return "prefix"
    if any(token[-1] == 0x20 and token[:-1].isalnum() for token in distinct):
        return "suffix"
    return "separate" if b" " in distinct else "none"
