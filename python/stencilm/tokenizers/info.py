"""`TokenizerInfo`: what each token id of a model spells, tested when loaded, then frozen.

Engines mask ids, grammars describe bytes; this is the only place where the two meet. The bytes and
the special and stop tokens are also in Rust (`core`), where masks are computed. What stays here is
for people and for encoding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, NoReturn, Self

from stencilm._core import Vocabulary
from stencilm.errors import TokenizerError
from stencilm.shown import shown_value
from stencilm.tokenizers.facts import Notes, TokenizerFacts
from stencilm.tokenizers.folder import read_file
from stencilm.tokenizers.huggingface import read_huggingface
from stencilm.tokenizers.joint import JointTokenizer
from stencilm.tokenizers.listed import read_list
from stencilm.tokenizers.llama_cpp_source import read_llama_cpp
from stencilm.tokenizers.selftest import choose
from stencilm.tokenizers.sentencepiece_source import read_sentencepiece
from stencilm.tokenizers.source import Source, ids_of
from stencilm.tokenizers.spelling import VocabType
from stencilm.tokenizers.state import State, dump, restore, settle
from stencilm.tokenizers.tiktoken_source import read_tiktoken
from stencilm.tokenizers.view import show_tokens
from stencilm.whole_numbers import as_whole, listed, shown, truth

_Ids = Iterable[int] | int | None


class TokenizerInfo:
    """A model's vocabulary: the bytes of every token id, its special and its stop tokens.

    Immutable, and safe to share between threads. Two are equal if they lead to the same masks.

    Examples:
        >>> from pathlib import Path
        >>> import stencilm
        >>> info = stencilm.TokenizerInfo(["a", "b", "ab", "</s>"], stop_token_ids=[3])
        >>> info.vocab_size, info.vocab_type.name, info.add_prefix_space
        (4, 'RAW', False)
        >>> info.decoded_vocab
        [b'a', b'b', b'ab', b'</s>']
        >>> info.stop_token_ids, info.special_token_ids, info.special_token_names
        ([3], [3], ['</s>'])
        >>> info.decode_bytes([2, 0]), info.decode_str([2, 0]), info.dbg_tokens([2, 3])
        (b'aba', 'aba', 'ab‧</s>')
        >>> info.tokenize_bytes(b"abb"), info.tokenize_partial(b"ab")
        ([2, 1], ([2], b''))
        >>> stencilm.TokenizerInfo.deserialize_json(info.serialize_json()) == info
        True
        >>> len(info.fingerprint), info.facts.padding
        (32, 0)
        >>> tiny = stencilm.TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
        >>> tiny.learn_encoding()
        >>> tiny.decode_str(tiny.encode("A person"))
        'A person'
    """

    __slots__ = ("_state",)

    _state: State

    def __init__(
        self,
        encoded_vocab: Sequence[str | bytes | None],
        vocab_type: VocabType = VocabType.RAW,
        *,
        vocab_size: int | None = None,
        stop_token_ids: _Ids = None,
        special_token_ids: _Ids = None,
        add_prefix_space: bool = False,
    ) -> None:
        """Reads a vocabulary from a list: entry i is how token i is written.

        Args:
            encoded_vocab: The tokens by id. Bytes stand for themselves whatever the type; None is
                a hole.
            vocab_type: How text entries are written.
            vocab_size: The number of the model's logits, if padding makes it larger.
            stop_token_ids: The tokens that end a text. They never spell text themselves.
            special_token_ids: More tokens that never spell text; their entries are their names.
            add_prefix_space: The tokenizer puts a space before the first word of a text.

        Raises:
            TokenizerError: An entry is not written as the type says, an id is out of range, or
                nothing spells text.
        """
        special = ids_of(special_token_ids, what="special_token_ids")
        stop = ids_of(stop_token_ids, what="stop_token_ids")
        source = read_list(encoded_vocab, vocab_type, special, stop)
        adds_prefix_space = truth("add_prefix_space", add_prefix_space)
        notes = Notes(source.spelling.space_symbol, adds_prefix_space=adds_prefix_space)
        object.__setattr__(self, "_state", settle(source, notes, vocab_size, stop))

    @classmethod
    def from_huggingface(
        cls, tokenizer: Any, *, vocab_size: int | None = None, stop_token_ids: _Ids = None
    ) -> Self:
        """Reads any kind of transformers tokenizer, or a bare `tokenizers.Tokenizer`.

        Args:
            tokenizer: The loaded tokenizer: fast, slow, over SentencePiece or over tiktoken. It is
                not changed.
            vocab_size: The number of the model's logits, if padding makes it larger.
            stop_token_ids: The tokens that end a text; by default every `eos_token_id` that the
                tokenizer declares. A bare `tokenizers.Tokenizer` declares none.

        Raises:
            TokenizerError: The tokenizer fails its test or is of no known kind, or an id is out of
                range.
        """
        return cls._from_sources(read_huggingface(tokenizer), vocab_size, stop_token_ids)

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        *,
        vocab_size: int | None = None,
        stop_token_ids: _Ids = None,
    ) -> Self:
        """Reads a tokenizer.json, a SentencePiece .model, or a folder with one of them.

        Settings next to the file are read, too: tokenizer_config.json, special_tokens_map.json and
        generation_config.json for special and stop tokens, config.json for the number of logits.

        Args:
            path: The file or folder.
            vocab_size: The number of the model's logits; by default that of config.json, or the
                tokenizer's own size if that is larger.
            stop_token_ids: The tokens that end a text; by default all that the settings name.

        Raises:
            TokenizerError: Nothing there is a tokenizer, it fails its test, or an id is out of
                range.
            TypeError: `path` is not a path.
        """
        return cls._from_sources([read_file(path)], vocab_size, stop_token_ids)

    @classmethod
    def from_tiktoken(
        cls, encoding: Any, *, vocab_size: int | None = None, stop_token_ids: _Ids = None
    ) -> Self:
        """Reads a `tiktoken.Encoding`.

        Args:
            encoding: The encoding.
            vocab_size: The number of the model's logits, if padding makes it larger.
            stop_token_ids: The tokens that end a text; by default `<|endoftext|>` if the encoding
                has it.

        Raises:
            TokenizerError: It is not an encoding, fails its test, or an id is out of range.
        """
        return cls._from_sources([read_tiktoken(encoding)], vocab_size, stop_token_ids)

    @classmethod
    def from_sentencepiece(
        cls, processor: Any, *, vocab_size: int | None = None, stop_token_ids: _Ids = None
    ) -> Self:
        """Reads a `sentencepiece.SentencePieceProcessor`.

        Args:
            processor: The processor, with a model loaded.
            vocab_size: The number of the model's logits, if padding makes it larger.
            stop_token_ids: The tokens that end a text; by default `eos_id()` if there is one.

        Raises:
            TokenizerError: It is not a processor, has no model, fails its test, or an id is out of
                range.
        """
        return cls._from_sources([read_sentencepiece(processor)], vocab_size, stop_token_ids)

    @classmethod
    def from_llama_cpp(
        cls, llama: Any, *, vocab_size: int | None = None, stop_token_ids: _Ids = None
    ) -> Self:
        """Reads the vocabulary of a GGUF file from a `llama_cpp.Llama`.

        Args:
            llama: The model; `vocab_only=True` is enough.
            vocab_size: The number of the model's logits; by default that of the file.
            stop_token_ids: The tokens that end a text; by default those of llama.cpp.

        Raises:
            TokenizerError: It is not a `Llama`, fails its test, or an id is out of range.
        """
        return cls._from_sources([read_llama_cpp(llama)], vocab_size, stop_token_ids)

    @classmethod
    def deserialize_json(cls, text: str) -> Self:
        """Reads what `serialize_json` wrote; it masks and decodes as before, but cannot `encode`.

        Raises:
            TokenizerError: The text was cut short, changed, or written by another version.
        """
        return cls._of(restore(text))

    @classmethod
    def _from_sources(
        cls,
        sources: Sequence[Source],
        vocab_size: int | None,
        stop_token_ids: _Ids,
        *,
        logits: int | None = None,
    ) -> Self:
        source, findings = choose(sources)
        if logits is not None:
            source = source.within(logits)
        notes = Notes(
            source.spelling.space_symbol,
            findings.adds_prefix_space,
            findings.lossy,
            source.cleans_up_spaces,
            source.decode_shows_bytes,
            has_tokenizer=source.codec is not None,
        )
        return cls._of(settle(source, notes, vocab_size, stop_token_ids))

    @classmethod
    def _of_model(cls, tokenizer: Any, logits: int, stop_token_ids: _Ids = None) -> Self:
        """A transformers tokenizer in an engine, exactly as wide as the model's logits.

        Some tokenizers have tokens without logits, such as the `<|image|>` of Llama 3.2 Vision. No
        model generates them, and the engine's mask has no bits for them.

        Raises:
            TokenizerError: As in `from_huggingface`.
        """
        return cls._from_sources(read_huggingface(tokenizer), logits, stop_token_ids, logits=logits)

    @classmethod
    def _of(cls, state: State) -> Self:
        made = cls.__new__(cls)
        object.__setattr__(made, "_state", state)
        return made

    @property
    def core(self) -> Vocabulary:
        """The vocabulary in Rust, for the rest of this library."""
        return self._state.core

    @property
    def vocab_size(self) -> int:
        """The number of ids, including padding: the width of a mask."""
        return self._state.core.vocab_size

    def fill_mask_row(self, row: int, bitmask: Any, index: int = 0) -> None:
        """Writes the row of a `MaskPatch` into a row of a bitmask.

        Args:
            row: The number of the row, 0 for one without tokens. It means the same words as long as
                this vocabulary lives.
            bitmask: int32 of shape (batch, words) or (words,), in main memory.
            index: Which row of the bitmask.

        Raises:
            LookupError: No living grammar has returned this row as one of its last 64; ask a
                matcher for its patch again.
        """
        number = as_whole(row)
        if number is None:
            raise TypeError(f"row is {shown(row)}, but must be the number of a row")
        is_number = 0 <= number < 1 << 32
        if not is_number or not self.core.fill_mask_row(number, bitmask, index):
            raise LookupError(
                f"no grammar that had row {shown(number)} is alive; ask a matcher for its patch "
                "again"
            )

    @property
    def vocab_type(self) -> VocabType:
        """How the tokenizer writes its tokens."""
        return self._state.vocab_type

    @property
    def add_prefix_space(self) -> bool:
        """Whether the tokenizer puts a space before the first word of a text."""
        return self._state.notes.adds_prefix_space

    @property
    def decoded_vocab(self) -> list[bytes]:
        """The bytes of every id: for special tokens their name, for unused ids and padding nothing.

        Each access makes a new list; in a loop, keep one list for all look-ups.
        """
        return list(self._state.decoded)

    @property
    def stop_token_ids(self) -> list[int]:
        """The tokens that end a text, ascending."""
        return self._state.core.stop_token_ids

    @property
    def special_token_ids(self) -> list[int]:
        """The tokens that never spell text, including stop tokens, ascending."""
        return self._state.core.special_token_ids

    @property
    def special_token_names(self) -> list[str]:
        """The names of the special tokens, each once, in the order of their ids."""
        names = self._state.names
        return list(dict.fromkeys(names[token_id] for token_id in sorted(names)))

    @property
    def facts(self) -> TokenizerFacts:
        """What loading found: unused ids, duplicates, how spaces and bytes are spelled."""
        return self._state.facts

    @property
    def fingerprint(self) -> str:
        """A digest of everything that decides masks."""
        return self._state.core.fingerprint()

    def encode(self, text: str) -> list[int]:
        """The tokenizer's own tokens of a text, including its leading space; no token is added.

        The names of special tokens in the text are plain text here.

        Raises:
            TokenizerError: The vocabulary came without a tokenizer, or the text holds half of a
                surrogate pair.
        """
        return self._state.encoder.encode(text)

    def tokenize_bytes(self, data: bytes | bytearray | memoryview) -> list[int]:
        """Tokens that spell exactly these bytes, with no space put before them.

        Valid UTF-8 gets the tokenizer's own tokens; bytes that no tokenizer encodes, and all bytes
        if there is no tokenizer, get the fewest tokens that spell them.

        Raises:
            TokenizerError: No tokens spell the bytes; the place says where they end.
            TypeError: `data` is a str.
        """
        return self._state.encoder.tokenize_bytes(_checked_bytes(data))

    def tokenize_partial(
        self,
        data: bytes | bytearray | memoryview,
        recent_tokens: Iterable[int] | None = None,
    ) -> tuple[list[int], bytes]:
        """The tokens that `data` begins with whatever follows it, and the bytes left over.

        `order` is a token, but also the beginning of the token `orderId`: nothing of it is certain
        yet, so all of it is left over. An incomplete character is left over, too. Put the left-over
        bytes before what comes next.

        Args:
            data: The beginning of a text, which goes on.
            recent_tokens: The tokens before it, for tokenizers that look back; a few are enough.

        Raises:
            TokenizerError: A recent token is out of range.
            TypeError: `data` is a str, or `recent_tokens` holds something else than ints.
        """
        recent = self._checked(() if recent_tokens is None else recent_tokens, "recent_tokens")
        return self._state.joint.split(_checked_bytes(data), recent)

    def learn_encoding(self) -> None:
        """Builds the tokenizer's merge tables, for canonical masks and for forced tokens.

        This happens automatically where it is needed. It takes up to a second for a large
        vocabulary, and makes forced tokens several times as fast. Calling it again does nothing.

        Raises:
            UnsupportedFeature: The merges are not known; the sentence says what is in the way.
        """
        self._state.encoder.own.learn()

    @property
    def joint(self) -> JointTokenizer:
        """The tokenizer for incomplete texts, for the rest of this library."""
        return self._state.joint

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes that tokens spell, one after another; special tokens and holes spell none.

        A leading space that the tokenizer's own `decode` would strip stays.

        Raises:
            TokenizerError: An id is out of range.
            TypeError: `ids` holds something else than ints.
        """
        held = self._state.tokens
        return b"".join([held[i] or b"" if i < len(held) else b"" for i in self._checked(ids)])

    def decode_str(self, ids: Iterable[int]) -> str:
        """The text that tokens spell; an invalid or incomplete character shows as one U+FFFD.

        Raises:
            TokenizerError: An id is out of range.
            TypeError: `ids` holds something else than ints.
        """
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def dbg_tokens(self, ids: Iterable[int]) -> str:
        """Readable tokens: `Hello‧ world‧<|eot_id|>`, whitespace escaped, unused ids as `<[id]>`.

        Raises:
            TokenizerError: An id is out of range.
            TypeError: `ids` holds something else than ints.
        """
        return show_tokens(self._checked(ids), self._state.tokens, self._state.names)

    def serialize_json(self) -> str:
        """One line of JSON that `deserialize_json` reads, closed by a checksum."""
        return dump(self._state)

    def _checked(self, ids: Iterable[int], name: str = "ids") -> list[int]:
        held = listed(ids)
        found = [None] if held is None else [as_whole(token_id) for token_id in held]
        numbers = [number for number in found if number is not None]
        if len(numbers) < len(found):
            what = f"a {type(ids).__name__}" if held is None else shown_value(ids)[:60]
            raise TypeError(f"{name} is {what}, but must be token ids, as in [1, 2]")
        for number in numbers:
            if not 0 <= number < self.vocab_size:
                raise TokenizerError(
                    f"token id {shown(number)} is outside of this vocabulary; ids lie between 0 "
                    f"and {self.vocab_size - 1}"
                )
        return numbers

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"TokenizerInfo is immutable; load another instead of setting {name!r}"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TokenizerInfo):
            return NotImplemented
        return self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return type(self).deserialize_json, (self.serialize_json(),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        return (
            f"TokenizerInfo({self._state.vocab_type.value}, vocab_size={self.vocab_size}, "
            f"stop_token_ids={self.stop_token_ids}, fingerprint={self.fingerprint[:12]!r})"
        )


def _checked_bytes(data: Any) -> bytes:
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    # NumPy's numbers support the buffer protocol, too, but are not bytes of a text.
    raise TypeError(f"data is a {type(data).__name__}, but must be bytes: text.encode() makes them")
