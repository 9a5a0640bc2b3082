"""Vocabularies given as a list, with nothing to test them against except the list itself.

So the list is read strictly. An entry that does not match the given type is refused, and so is a
list that is clearly of another type: read as RAW, words marked with `Ġ` or `▁` would match no
grammar.
"""

from __future__ import annotations

from collections.abc import Sequence

from stencilm.errors import TokenizerError
from stencilm.shown import shown_value
from stencilm.tokenizers.source import MAX_VOCAB_SIZE, Source
from stencilm.tokenizers.spelling import BY_TYPE, BYTE_LEVEL_ALPHABET, METASPACE, VocabType
from stencilm.whole_numbers import shown

_LABEL = "the vocabulary"
_ESCAPE = "pass that entry as bytes, or name its id in special_token_ids or stop_token_ids"


def read_list(
    encoded_vocab: Sequence[str | bytes | None],
    vocab_type: VocabType,
    special: Sequence[int],
    stop: Sequence[int],
) -> Source:
    """Read a source from written tokens by id.

    Raises:
        TokenizerError: An entry is of a wrong kind or not written as the type says, or an id is not
            in the list.
    """
    if not isinstance(vocab_type, VocabType):
        raise TokenizerError(
            f"vocab_type is {shown_value(vocab_type):.80}; give one of VocabType's members"
        )
    if isinstance(encoded_vocab, (str, bytes)) or not isinstance(encoded_vocab, Sequence):
        raise TokenizerError(
            f"encoded_vocab is a {type(encoded_vocab).__name__}; give a list of str or bytes, one "
            "a token"
        )
    if len(encoded_vocab) > MAX_VOCAB_SIZE:
        raise TokenizerError(
            f"encoded_vocab has {len(encoded_vocab)} entries; the most is {MAX_VOCAB_SIZE}"
        )
    for token_id in special:
        if not 0 <= token_id < len(encoded_vocab):
            raise TokenizerError(
                f"special_token_ids has {shown(token_id)}, but the list ends at "
                f"{len(encoded_vocab) - 1}; give ids of its entries"
            )
    # Stop tokens beyond the list may be padding; they are checked later, when the width is known.
    never_text = {*special, *(token_id for token_id in stop if 0 <= token_id < len(encoded_vocab))}
    names = {token_id: _name(encoded_vocab[token_id], token_id) for token_id in sorted(never_text)}
    texts: dict[int, str] = {}
    tokens: list[bytes | None] = [None] * len(encoded_vocab)
    for token_id, entry in enumerate(encoded_vocab):
        if token_id in never_text or entry is None:
            continue
        if isinstance(entry, str):
            texts[token_id] = entry
        elif isinstance(entry, (bytes, bytearray)):
            tokens[token_id] = bytes(entry)
        else:
            raise TokenizerError(
                f"the entry is {shown_value(entry):.80}; give str or bytes, or None for a hole",
                place=f"token {token_id}",
            )
    _check_written(texts, vocab_type)
    spelling = BY_TYPE[vocab_type]
    for token_id, spelled in zip(texts, spelling.spell(list(texts.values())), strict=True):
        tokens[token_id] = spelled
    return Source(label=_LABEL, tokens=tokens, special=names, spelling=spelling)


def _name(entry: object, token_id: int) -> str:
    if isinstance(entry, (bytes, bytearray)):
        return bytes(entry).decode("utf-8", "backslashreplace")
    if isinstance(entry, str):
        return entry.encode("utf-8", "backslashreplace").decode()
    return f"<[{token_id}]>"


def _check_written(texts: dict[int, str], vocab_type: VocabType) -> None:
    for token_id, text in texts.items():
        if vocab_type is VocabType.BYTE_LEVEL and not _ALPHABET.issuperset(text):
            odd = next(char for char in text if char not in _ALPHABET)
            raise TokenizerError(
                f"{text!r} holds {odd!r}, which is not in the byte-level alphabet; {_ESCAPE}",
                place=f"token {token_id}",
            )
        if not text.isascii() and not _is_unicode(text):
            raise TokenizerError(
                f"{text!r} holds a lone surrogate, which is no text; {_ESCAPE}",
                place=f"token {token_id}",
            )
    if vocab_type is VocabType.BYTE_LEVEL:
        return
    # If no token writes a space, but many begin with a symbol that stands for one, the vocabulary
    # is of another type.
    stands_in = {"\u0120": VocabType.BYTE_LEVEL}
    if vocab_type is VocabType.RAW:
        stands_in[METASPACE] = VocabType.BYTE_FALLBACK
    plain = " " if vocab_type is VocabType.RAW else METASPACE
    if any(plain in text for text in texts.values()):
        return
    for mark, meant in stands_in.items():
        marked = [text for text in texts.values() if text.startswith(mark)]
        if len(marked) > 1:
            raise TokenizerError(
                f"{len(marked)} tokens begin with {mark!r}, such as {marked[0]!r}, and none has "
                f"{plain!r}; "
                f"this vocabulary is not written as {vocab_type}: give {meant}, or bytes to mean "
                "just that"
            )


_ALPHABET = frozenset(BYTE_LEVEL_ALPHABET)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
