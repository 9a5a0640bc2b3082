"""Tokenizers of transformers, recognised by their parts, so that it need not be imported.

Fast classes hold a `tokenizers.Tokenizer`. Slow ones are Python: some wrap tiktoken, some
SentencePiece, some spell bytes with an alphabet of their own. For slow ones each known spelling is
tried, and used only if it passes the whole self-test.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stencilm.errors import TokenizerError
from stencilm.tokenizers.fast import read_fast
from stencilm.tokenizers.sentencepiece_source import read_sentencepiece
from stencilm.tokenizers.source import Source, ids_of, place_tokens
from stencilm.tokenizers.spelling import BYTE_LEVEL_ALPHABET, METASPACE, Spelling
from stencilm.tokenizers.tekken_source import tekken_source
from stencilm.tokenizers.tiktoken_source import read_tiktoken

_BYTE_NAMES = re.compile("(?:<0x[0-9A-F]{2}>)+")


def read_huggingface(tokenizer: Any) -> list[Source]:
    """The ways to read a transformers tokenizer or a bare `tokenizers.Tokenizer`, likeliest first.

    Raises:
        TokenizerError: It is not a tokenizer, or of a kind whose tokens do not spell bytes.
    """
    label = f"the {type(tokenizer).__name__}"
    mistral = _mistral_common(tokenizer)
    if mistral is not None:
        return [_read_mistral_common(tokenizer, mistral, label=label)]
    backend = _backend(tokenizer)
    if backend is not None and backend is tokenizer:
        return [read_fast(tokenizer, label=label, special={})]
    if not hasattr(tokenizer, "get_vocab") or not hasattr(tokenizer, "decode"):
        raise TokenizerError(
            f"this {type(tokenizer).__name__} is no transformers tokenizer; give {_hint(tokenizer)}"
        )
    special = special_tokens(tokenizer)
    stop = stop_tokens(tokenizer)
    if backend is not None:
        fast = read_fast(backend, label=label, special=special, stop=stop)
        sources = [replace(fast, wrapper_decode=WrapperCodec(tokenizer).decode)]
    else:
        sources = _read_slow(tokenizer, label=label, special=special, stop=stop)
    cleans_up = bool(getattr(tokenizer, "clean_up_tokenization_spaces", False))
    return [replace(source, cleans_up_spaces=cleans_up) for source in sources]


class WrapperCodec:
    """A transformers tokenizer, used through the methods that its users call."""

    __slots__ = ("_read_bytes", "_tokenizer")

    def __init__(self, tokenizer: Any, *, read_bytes: bool = False) -> None:
        self._tokenizer = tokenizer
        self._read_bytes = read_bytes

    def encode(self, text: str) -> list[int]:
        """The tokens of plain text; some remote classes nevertheless read special tokens in it.

        Raises:
            TokenizerError: The tokenizer's own code fails.
        """
        ids = self._call(
            "encode", text, {"add_special_tokens": False}, {"split_special_tokens": True}
        )
        return [int(token_id) for token_id in ids]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, including special ones, without clean-up of spaces.

        Raises:
            TokenizerError: The tokenizer's own code fails.
        """
        options = {"clean_up_tokenization_spaces": False, "spaces_between_special_tokens": False}
        text: str = self._call("decode", list(ids), {"skip_special_tokens": False}, options)
        return _BYTE_NAMES.sub(_bytes_of_names, text) if self._read_bytes else text

    def _call(
        self, name: str, argument: Any, needed: dict[str, bool], wanted: dict[str, bool]
    ) -> Any:
        method = getattr(self._tokenizer, name)
        try:
            try:
                return method(argument, **needed, **wanted)
            except TypeError:
                return method(argument, **needed)  # a remote class with fewer parameters
        except Exception as error:  # remote code may fail in any way
            kind = type(self._tokenizer).__name__
            raise TokenizerError(
                f"{kind}.{name}({str(argument)[:60]}) fails with {error!r}; mend that class"
            ) from error


def _bytes_of_names(names: re.Match[str]) -> str:
    return bytes.fromhex(re.sub("<0x|>", "", names[0])).decode("utf-8", "replace")


def special_tokens(tokenizer: Any) -> dict[int, str]:
    """Names of special tokens by id: declared ones, and added ones that are marked as special."""
    names = [str(name) for name in getattr(tokenizer, "all_special_tokens", [])]
    ids = [tokenizer.convert_tokens_to_ids(name) for name in names]
    # A name that is not in the vocabulary gets the id of the unknown token, which has another name.
    found = {
        token_id: name
        for token_id, name in zip(ids, names, strict=True)
        if isinstance(token_id, int)
        and tokenizer.convert_ids_to_tokens(token_id) in (name, name.encode())
    }
    for token_id, token in getattr(tokenizer, "added_tokens_decoder", {}).items():
        if getattr(token, "special", False):
            found.setdefault(int(token_id), str(token))
    return found


def stop_tokens(tokenizer: Any) -> tuple[int, ...]:
    """The end-of-sequence ids that the tokenizer declares; there may be several.

    Other tokens that often end a turn are not guessed from their names. A generation loop stops
    only at the ids that it was given; if a mask allowed others, the text would go on after its end.
    """
    return ids_of(getattr(tokenizer, "eos_token_id", None), what="eos_token_id of the tokenizer")


def _hint(given: Any) -> str:
    if hasattr(given, "encode_ordinary"):
        return "it to from_tiktoken"
    if hasattr(given, "id_to_piece"):
        return "it to from_sentencepiece"
    if hasattr(given, "tokenizer"):
        return "its .tokenizer"
    return "what AutoTokenizer.from_pretrained(...) returns"


def _backend(tokenizer: Any) -> Any | None:
    """The `tokenizers.Tokenizer` in or under an object, or None."""
    library = sys.modules.get("tokenizers")  # such an object exists only if its library is imported
    if library is None:
        return None
    for candidate in (
        tokenizer,
        getattr(tokenizer, "backend_tokenizer", None),
        getattr(tokenizer, "_tokenizer", None),
    ):
        if isinstance(candidate, library.Tokenizer):
            return candidate
    return None


def _mistral_common(tokenizer: Any) -> Any | None:
    """The tokenizer of mistral-common in a `MistralCommonBackend` or a `MistralTokenizer`."""
    library = sys.modules.get("mistral_common.tokens.tokenizers.base")
    if library is None:
        return None
    inner = getattr(tokenizer, "tokenizer", tokenizer)
    inner = getattr(getattr(inner, "instruct_tokenizer", inner), "tokenizer", inner)
    return inner if isinstance(inner, library.Tokenizer) else None


def _read_mistral_common(tokenizer: Any, inner: Any, *, label: str) -> Source:
    """Read a tokenizer of mistral-common, which wraps tiktoken or SentencePiece.

    Raises:
        TokenizerError: It wraps neither.
    """
    special = {
        token_id: str(inner.id_to_piece(token_id))
        for token_id in range(inner.n_words)
        if inner.is_special(token_id)
    }
    encoding = _embedded(inner, "tiktoken", "Encoding")
    processor = _embedded(inner, "sentencepiece", "SentencePieceProcessor")
    if processor is not None:
        # Its own decode writes SentencePiece's piece names if special tokens are kept, so the
        # self-test cannot compare with it.
        return replace(read_sentencepiece(processor), label=label)
    if encoding is None or sorted(special) != list(range(len(special))):
        raise TokenizerError(
            f"{label} wraps neither tiktoken nor SentencePiece; give its tekken.json or .model to "
            "from_file"
        )
    source = tekken_source(encoding, special, label=label, stop=int(inner.eos_id))
    if not hasattr(tokenizer, "convert_ids_to_tokens"):
        return source

    def decode(ids: Sequence[int]) -> str:
        text: str = tokenizer.decode(list(ids), skip_special_tokens=False)
        return text

    return replace(source, wrapper_decode=decode)


def _read_slow(
    tokenizer: Any, *, label: str, special: dict[int, str], stop: tuple[int, ...]
) -> list[Source]:
    codec = WrapperCodec(tokenizer)
    encoding = _embedded(tokenizer, "tiktoken", "Encoding")
    if encoding is not None:
        # Such classes keep tiktoken's ids; get_vocab() is text, and loses tokens with invalid
        # UTF-8.
        source = read_tiktoken(encoding)
        special = source.special | special
        tokens = [None if i in special else token for i, token in enumerate(source.tokens)]
        stop = stop or source.stop
        kept = replace(source, label=label, tokens=tokens, special=special, stop=stop, codec=codec)
        return [kept]
    try:
        vocabulary = dict(tokenizer.get_vocab())
    except Exception as error:  # remote code may fail in any way
        raise TokenizerError(
            f"{label}.get_vocab() fails with {error!r}; mend that class"
        ) from error
    plain = Source(label=label, tokens=[], special=special, stop=stop, codec=codec)
    processor = _embedded(tokenizer, "sentencepiece", "SentencePieceProcessor")
    if processor is not None:
        return _over_pieces(plain, vocabulary, processor, WrapperCodec(tokenizer, read_bytes=True))
    spellings = [Spelling(alphabet="byte_level")]
    if getattr(tokenizer, "byte_decoder", None) != BYTE_LEVEL_ALPHABET:
        spellings.append(Spelling(replaced=((METASPACE, " "),), byte_fallback=True))
        spellings += [Spelling(alphabet="latin"), Spelling(), Spelling(word_prefix="##")]
    return [_spelled(plain, vocabulary, spelling) for spelling in spellings]


def _spelled(plain: Source, vocabulary: dict[Any, int], spelling: Spelling) -> Source:
    tokens = place_tokens(vocabulary, plain.special, spelling, label=plain.label)
    return replace(plain, tokens=tokens, spelling=spelling)


def _over_pieces(
    plain: Source, vocabulary: dict[Any, int], processor: Any, byte_reader: WrapperCodec
) -> list[Source]:
    """A wrapper of SentencePiece with ids of its own; the processor knows what each piece is."""
    pieces = [(processor.id_to_piece(piece), piece) for piece in range(processor.get_piece_size())]
    special = dict(plain.special)
    for name, piece in pieces:
        if name in vocabulary and (processor.is_control(piece) or processor.is_unknown(piece)):
            special.setdefault(vocabulary[name], name)
        elif processor.is_unused(piece):
            vocabulary.pop(name, None)
    has_bytes = any(processor.is_byte(piece) for _, piece in pieces)
    spelling = Spelling(replaced=((METASPACE, " "),), byte_fallback=has_bytes)
    source = _spelled(replace(plain, special=special), vocabulary, spelling)
    if not has_bytes:
        return [source]
    # Some classes write byte pieces by name. SentencePiece itself says that they are bytes.
    return [source, replace(source, codec=byte_reader, decode_shows_bytes=True)]


def _embedded(tokenizer: Any, module: str, name: str) -> Any | None:
    """An object of an imported library that a wrapper holds, directly or one level down."""
    library = sys.modules.get(module)
    if library is None:
        return None
    kind = getattr(library, name)
    for value in getattr(tokenizer, "__dict__", {}).values():
        if isinstance(value, kind):
            return value
        inner = getattr(value, "sp_model", None)
        if isinstance(inner, kind):
            return inner
    return None
