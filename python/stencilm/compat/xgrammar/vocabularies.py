"""The original's `TokenizerInfo` and `VocabType`."""

from __future__ import annotations

import json
import warnings
from enum import Enum
from typing import Any

from stencilm.compat.arguments import check_kinds
from stencilm.compat.xgrammar.failures import DeserializeFormatError, translated
from stencilm.compat.xgrammar.longest_tokens import Spelling
from stencilm.compat.xgrammar.saved import load, save
from stencilm.errors import TokenizerError
from stencilm.shown import shown_value
from stencilm.tokenizers import TokenizerInfo as _TokenizerInfo
from stencilm.tokenizers import VocabType as _VocabType
from stencilm.whole_numbers import whole_number

# Names of tokens that end a text, for vocabularies without declared stop tokens.
_STOPS = (
    *("</s>", "<|end_of_text|>", "<|eot_id|>", "<|endoftext|>", "<eos>", "<|eos|>"),
    "<end_of_turn>",
)


class VocabType(Enum):
    """How the entries of a vocabulary are written."""

    RAW = 0
    """As they are."""
    BYTE_FALLBACK = 1
    """SentencePiece: `▁` stands for a space, `<0x0A>` for the byte 10."""
    BYTE_LEVEL = 2
    """GPT-2: every byte is written as one printable character."""


# The other fields of the JSON that `dump_metadata` writes.
_METADATA = ("vocab_size", "stop_token_ids", "add_prefix_space")
_TYPES = {
    VocabType.RAW: _VocabType.RAW,
    VocabType.BYTE_FALLBACK: _VocabType.BYTE_FALLBACK,
    VocabType.BYTE_LEVEL: _VocabType.BYTE_LEVEL,
}
_NAMES = {ours: theirs for theirs, ours in _TYPES.items()}


class TokenizerInfo:
    """A model's vocabulary.

    Args:
        encoded_vocab: The tokens by id, as text or bytes; an empty one is never allowed.
        vocab_type: How the entries are written.
        vocab_size: The number of the model's logits, if it is larger than the list.
        stop_token_ids: The tokens that end a text; None for those with the usual names.
        add_prefix_space: The tokenizer puts a space before the first word of a text.

    Raises:
        RuntimeError: No entry spells text, an entry is not written as the type says, or an id or a
            size is out of range.
        TypeError: An entry is neither text nor bytes, or `vocab_type` is not a VocabType.
    """

    def __init__(
        self,
        encoded_vocab: list[bytes] | list[str],
        vocab_type: VocabType = VocabType.RAW,
        *,
        vocab_size: int | None = None,
        stop_token_ids: list[int] | int | None = None,
        add_prefix_space: bool = False,
    ) -> None:
        wanted = "str or bytes; an empty one, b'', is a token that never comes"
        given = check_kinds("encoded_vocab", encoded_vocab, (str, bytes, bytearray), wanted)
        if not isinstance(vocab_type, VocabType):
            raise TypeError(
                f"vocab_type is {shown_value(vocab_type):.60}, but must be VocabType.RAW, "
                "VocabType.BYTE_FALLBACK or VocabType.BYTE_LEVEL"
            )
        if stop_token_ids is None:
            stop_token_ids = [
                token_id for token_id, entry in enumerate(given) if _text(entry) in _STOPS
            ]
        entries = [
            None if len(entry) == 0 else entry if vocab_type is VocabType.RAW else _written(entry)
            for entry in given
        ]
        with translated():
            self._info = _TokenizerInfo(
                entries,
                _TYPES[vocab_type],
                vocab_size=vocab_size,
                stop_token_ids=stop_token_ids,
                add_prefix_space=add_prefix_space,
            )

    @staticmethod
    def from_huggingface(
        tokenizer: Any,
        *,
        vocab_size: int | None = None,
        stop_token_ids: list[int] | int | None = None,
    ) -> TokenizerInfo:
        """Read a tokenizer of transformers.

        Args:
            tokenizer: The tokenizer.
            vocab_size: The number of the model's logits; by default the tokenizer's own size.
                Tokens beyond it are never allowed.
            stop_token_ids: The tokens that end a text; by default `tokenizer.eos_token_id`.

        Raises:
            ValueError: `stop_token_ids` is empty, `vocab_size` is less than 1, or the tokenizer
                cannot be read.
            TypeError: `vocab_size` is not an integer.
        """
        if vocab_size is not None:
            vocab_size = whole_number("vocab_size", vocab_size, least=1, otherwise=" or None")
        if isinstance(stop_token_ids, list) and not stop_token_ids:
            raise ValueError("stop_token_ids is empty: give at least one id, or None")
        if stop_token_ids is None and getattr(tokenizer, "eos_token_id", None) is not None:
            stop_token_ids = [tokenizer.eos_token_id]
        try:
            if vocab_size is None:
                info = _TokenizerInfo.from_huggingface(tokenizer, stop_token_ids=stop_token_ids)
            else:
                info = _TokenizerInfo._of_model(tokenizer, vocab_size, stop_token_ids)
        except TokenizerError as error:
            raise ValueError(str(error)) from error
        return TokenizerInfo._of(info)

    @staticmethod
    def from_vocab_and_metadata(encoded_vocab: list[bytes | str], metadata: str) -> TokenizerInfo:
        """Read a vocabulary from a list, and the rest from JSON that `dump_metadata` wrote.

        Raises:
            ValueError: `metadata` is something else.
            RuntimeError: As for a new TokenizerInfo.
        """
        entries: Any = encoded_vocab
        try:
            read = json.loads(metadata)
            vocab_type = VocabType(read["vocab_type"])
            options = {name: read[name] for name in _METADATA}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(
                f"metadata is {metadata!r:.80}, which is not what dump_metadata() returned: "
                f"{type(error).__name__}: {error}"
            ) from error
        return TokenizerInfo(entries, vocab_type, **options)

    @staticmethod
    def deserialize_json(json_string: str) -> TokenizerInfo:
        """Read what `serialize_json` wrote.

        Raises:
            InvalidJSONError: The text is not JSON.
            DeserializeVersionError: Another version, or another package, wrote it.
            DeserializeFormatError: It is damaged, or not a tokenizer.
        """
        with translated(DeserializeFormatError):
            return TokenizerInfo._of(
                _TokenizerInfo.deserialize_json(str(load("TokenizerInfo", json_string)["value"]))
            )

    @classmethod
    def _of(cls, info: _TokenizerInfo) -> TokenizerInfo:
        made = cls.__new__(cls)
        made._info = info
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {"_info": self._info}

    def _spelling(self, stops: list[int]) -> Spelling:
        """The spelling of texts with these stop tokens; cached for the latest ones."""
        kept = self.__dict__.get("_kept")
        if kept is None or kept[0] != stops:
            never = {*stops, *self.stop_token_ids, *self.special_token_ids}
            kept = self._kept = (stops, Spelling(self.decoded_vocab, never))
        spelling: Spelling = kept[1]
        return spelling

    def __eq__(self, other: object) -> bool:
        """Whether both lead to the same masks."""
        return self._info == other._info if isinstance(other, TokenizerInfo) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as in the original

    @property
    def vocab_type(self) -> VocabType:
        """How the tokenizer writes its tokens."""
        return _NAMES[self._info.vocab_type]

    @property
    def vocab_size(self) -> int:
        """The number of ids: the width of a mask."""
        return self._info.vocab_size

    @property
    def add_prefix_space(self) -> bool:
        """Whether the tokenizer puts a space before the first word of a text."""
        return self._info.add_prefix_space

    @property
    def prepend_space_in_tokenization(self) -> bool:
        """`add_prefix_space` by an older name; warns."""
        warnings.warn(
            "prepend_space_in_tokenization is an older name: use add_prefix_space", stacklevel=2
        )
        return self.add_prefix_space

    @property
    def decoded_vocab(self) -> list[bytes]:
        """The bytes of every id; those of special tokens are their names."""
        return self._info.decoded_vocab

    @property
    def stop_token_ids(self) -> list[int]:
        """The tokens that end a text, ascending."""
        return self._info.stop_token_ids

    @property
    def special_token_ids(self) -> list[int]:
        """The tokens that neither spell nor end a text: special ones, holes and padding."""
        stops = set(self._info.stop_token_ids)
        special = set(self._info.special_token_ids)
        vocab = self._info.decoded_vocab
        return [
            token_id
            for token_id, spelled in enumerate(vocab)
            if token_id not in stops and (token_id in special or not spelled)
        ]

    def dump_metadata(self) -> str:
        """JSON text of everything but the tokens, for `from_vocab_and_metadata`."""
        return json.dumps(
            {
                "vocab_type": self.vocab_type.value,
                "vocab_size": self.vocab_size,
                "add_prefix_space": self.add_prefix_space,
                "stop_token_ids": self.stop_token_ids,
            },
            separators=(",", ":"),
        )

    def serialize_json(self) -> str:
        """JSON text for `deserialize_json` of this package."""
        return save("TokenizerInfo", {"value": self._info.serialize_json()})


def checked_info(tokenizer_info: Any) -> TokenizerInfo:
    """The argument, if it is a TokenizerInfo; raises ValueError otherwise."""
    if isinstance(tokenizer_info, TokenizerInfo):
        return tokenizer_info
    raise ValueError(
        f"tokenizer_info is a {type(tokenizer_info).__name__}, but must be a TokenizerInfo of this "
        "package: TokenizerInfo.from_huggingface makes one of a tokenizer"
    )


def _text(entry: bytes | bytearray | str) -> str:
    return entry if isinstance(entry, str) else entry.decode("utf-8", "replace")


def _written(entry: bytes | bytearray | str) -> bytes | str:
    """An entry as text, to be read as its type says; bytes that are not UTF-8 become raw bytes."""
    if isinstance(entry, str):
        return entry
    try:
        return entry.decode()
    except UnicodeDecodeError:
        return bytes(entry)
