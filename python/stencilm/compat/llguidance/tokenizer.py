"""The original's `LLTokenizer` and `TokenizerWrapper`."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from stencilm.compat.arguments import check_kinds, check_mapping, whole_numbers
from stencilm.errors import TokenizerError
from stencilm.foreign import is_failure
from stencilm.shown import shown_value
from stencilm.tokenizers import TokenizerInfo
from stencilm.tokenizers.merge_prefixes import check_tokenizer_file, check_tokenizer_text
from stencilm.whole_numbers import as_whole

# The first byte that marks the bytes of a special token.
_SPECIAL = b"\xff"
# Names of special tokens that end a text, if no stop tokens are given.
_STOPS = ("</s>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "<|endoftext|>", "<eos>")
_SLICES = [
    r"[\x20\x0A\x0D\x09]+",
    r'[^"\\\x00-\x1F\x7F]{1,10}',
    r'[^"\\\x00-\x1F\x7F]{1,30}',
    r'[^"\\\x00-\x1F\x7F]+',
]

_Eos = int | list[int] | None


class TokenizerWrapper:
    """Wraps any object that has tokens and can encode.

    Args:
        gtokenizer: Has `eos_token_id`, `bos_token_id`, `tokens` (the bytes of every id) and
            optionally `special_token_ids`; called with bytes or a text, it returns ids.
    """

    def __init__(self, gtokenizer: Any) -> None:
        self.eos_token_id: int = gtokenizer.eos_token_id
        self.bos_token_id: int | None = gtokenizer.bos_token_id
        self.tokens: Sequence[bytes] = gtokenizer.tokens
        self.special_token_ids: Sequence[int] = getattr(gtokenizer, "special_token_ids", [])
        self.is_tokenizer_wrapper = True
        self._gtokenizer = gtokenizer
        try:
            gtokenizer(b"test")
            self._accepts_bytes = True
        except Exception:  # it may raise anything for bytes
            self._accepts_bytes = False

    def __call__(self, s: str) -> list[int]:
        """The tokens of a text."""
        given = self._gtokenizer(s.encode() if self._accepts_bytes else s)
        return whole_numbers("what the tokenizer gives", given)


class LLTokenizer:
    """A vocabulary and its encoding.

    Args:
        tokenizer: The text of a tokenizer.json, the path of one, "byte" for one token for each
            byte, or a `TokenizerWrapper`.
        n_vocab: The number of the model's logits, if it is larger.
        eos_token: The tokens that end a text; by default the first of the usual names, or the one
            of the wrapper.
        slices: Accepted for compatibility: masks are not computed in slices here.

    Raises:
        ValueError: It cannot be read, or is the name of a tokenizer that would have to be fetched.
    """

    def __init__(
        self,
        tokenizer: str | TokenizerWrapper,
        n_vocab: int | None = None,
        eos_token: _Eos = None,
        slices: list[str] | None = None,
    ) -> None:
        if slices is not None:
            check_kinds("slices", slices, str, "patterns")
        if isinstance(tokenizer, str):
            self._read_text(tokenizer, n_vocab, _ids(eos_token))
        elif getattr(tokenizer, "is_tokenizer_wrapper", False):
            stops = _ids(eos_token) or [tokenizer.eos_token_id]
            info = _listed(tokenizer.tokens, tokenizer.special_token_ids, stops, n_vocab)
            self._set(info, stops, tokenizer)
        else:
            raise TypeError(
                f"tokenizer is a {type(tokenizer).__name__}, but must be a str or a "
                "TokenizerWrapper"
            )

    def _read_text(self, text: str, n_vocab: int | None, stops: list[int] | None) -> None:
        if text == "byte":
            names = ["tool", "/tool", "user", "system", "assistant", "end"]
            tokens = [bytes([byte]) for byte in range(256)]
            tokens += [f"<|{name}|>".encode() for name in names]
            stops = stops or [261]
            self._set(_listed(tokens, range(256, 262), stops, n_vocab), stops, None)
            return
        from tokenizers import Tokenizer

        try:
            if text.lstrip().startswith("{"):
                check_tokenizer_text(text.encode("utf-8", "surrogatepass"))
                read = Tokenizer.from_str(text)
            elif Path(text).is_file():
                check_tokenizer_file(Path(text))
                read = Tokenizer.from_file(text)
            else:
                raise ValueError(
                    f"{text!r} is no file: give the path or the text of a tokenizer.json, or use "
                    "stencilm.compat.llguidance.hf.from_tokenizer; nothing is fetched here"
                )
        except TokenizerError as error:
            raise ValueError(str(error)) from error
        except ValueError:
            raise
        except BaseException as error:  # the library raises plain Exception, and panics
            if not is_failure(error):
                raise
            raise ValueError(f"the tokenizer cannot be read: {error}") from error
        read.no_padding()
        read.no_truncation()
        self._read(lambda given: TokenizerInfo.from_huggingface(read, **given), n_vocab, stops)

    def _read(
        self,
        reader: Callable[[dict[str, Any]], TokenizerInfo],
        n_vocab: int | None,
        stops: list[int] | None,
    ) -> None:
        """Use a tokenizer that this package has read, which can encode itself."""
        try:
            given: dict[str, Any] = {} if n_vocab is None else {"vocab_size": n_vocab}
            if stops is None:
                info = reader(given)
                stops = info.stop_token_ids or _named_stops(info)
            info = reader({**given, "stop_token_ids": stops})
        except TokenizerError as error:
            raise ValueError(str(error)) from error
        self._set(info, stops, None)

    def _set(
        self, info: TokenizerInfo, stops: list[int], encode: Callable[[str], list[int]] | None
    ) -> None:
        self._info = info
        self._encode = encode
        self.vocab_size = info.vocab_size
        self.eos_token = stops[0]
        self.eos_tokens = list(stops)
        self.is_canonical = encode is not None or info._state.notes.has_tokenizer
        self._special = frozenset(info.special_token_ids)
        self._sorted: list[bytes] | None = None
        self._longest = 0

    @classmethod
    def _of(
        cls,
        reader: Callable[[dict[str, Any]], TokenizerInfo],
        n_vocab: int | None,
        eos_token: _Eos,
    ) -> LLTokenizer:
        made = cls.__new__(cls)
        made._read(reader, n_vocab, _ids(eos_token))
        return made

    @staticmethod
    def from_tiktoken(
        *,
        encoder: dict[bytes, int],
        special_tokens: dict[str, int],
        pattern: str,
        eos_token: int | list[int],
        n_vocab: int | None = None,
        slices: list[str] | None = None,
    ) -> LLTokenizer:
        """The tokenizer of an encoding's ranks, special tokens and pattern; needs tiktoken."""
        ranks = check_mapping("encoder", encoder, bytes, "bytes of tokens")
        special = check_mapping("special_tokens", special_tokens, str, "names of tokens")
        if not isinstance(pattern, str):
            raise TypeError(f"pattern is {shown_value(pattern):.60}, but must be a str")
        import tiktoken

        encoding = tiktoken.Encoding(
            "encoding", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special
        )
        return LLTokenizer._of(
            lambda given: TokenizerInfo.from_tiktoken(encoding, **given), n_vocab, eos_token
        )

    @staticmethod
    def from_llamacpp(
        *,
        tokens: list[bytes],
        vocab_ptr: int,
        tokenize_fptr: int,
        eos_token: int | list[int],
        slices: list[str] | None = None,
    ) -> LLTokenizer:
        """The tokenizer of a list of tokens; special ones begin with the byte 0xff.

        The pointers are not used: texts are encoded in the fewest tokens.
        """
        stops = _ids(eos_token)
        if not stops:
            raise ValueError(
                f"eos_token is {shown_value(eos_token):.80}, "
                f"but must be the id of the token that ends a text, or "
                "a list of such ids"
            )
        made = LLTokenizer.__new__(LLTokenizer)
        made._set(_listed(tokens, (), stops, None), stops, None)
        return made

    def with_slices(self, slices: list[str]) -> LLTokenizer:
        """The same tokenizer: masks are not computed in slices here.

        Raises:
            TypeError: They are not a list of texts.
        """
        check_kinds("slices", slices, str, "patterns")
        return self

    @staticmethod
    def general_slices() -> list[str]:
        """The original's default slices, which have no effect here."""
        return list(_SLICES)

    @staticmethod
    def json_slices() -> list[str]:
        """The original's slices for JSON, which have no effect here."""
        return list(_SLICES)

    def greedy_tokenize(self, text: str) -> list[int]:
        """The tokens of a text, each the longest that fits; the tokenizer itself may differ."""
        data = _text(text).encode()
        spelled = {
            each: token_id
            for token_id, each in reversed(list(enumerate(self._info.decoded_vocab)))
            if each and not self.is_special_token(token_id)
        }
        longest = max(map(len, spelled))
        tokens = []
        while data:
            for length in range(min(longest, len(data)), 0, -1):
                if data[:length] in spelled:
                    tokens.append(spelled[data[:length]])
                    data = data[length:]
                    break
            else:
                raise ValueError(f"no token spells the byte {data[:1]!r}")
        return tokens

    def tokenize_bytes(self, utf8bytes: bytes, *, parse_special: bool = False) -> list[int]:
        """The tokens of bytes, without a leading space.

        Args:
            utf8bytes: The bytes.
            parse_special: Names of special tokens in the bytes become these tokens.
        """
        utf8bytes = _bytes("utf8bytes", utf8bytes)
        if not parse_special:
            return self._plain(utf8bytes)
        names = {
            name.encode(): token_id
            for token_id in self._info.special_token_ids
            if (name := self._info.decoded_vocab[token_id].decode("utf-8", "replace"))
        }
        if not names:
            return self._plain(utf8bytes)
        longest_first = sorted(names, key=len, reverse=True)
        parts = re.split(b"(" + b"|".join(map(re.escape, longest_first)) + b")", utf8bytes)
        tokens: list[int] = []
        for part in parts:
            tokens += [names[part]] if part in names else self._plain(part) if part else []
        return tokens

    def _plain(self, data: bytes) -> list[int]:
        if self._encode is None:
            return self._info.tokenize_bytes(data)
        try:
            return self._encode(data.decode())
        except UnicodeDecodeError as error:
            valid = self._encode(data[: error.start].decode())
            return valid + self._info.tokenize_bytes(data[error.start :])

    def tokenize_str(self, text: str, *, parse_special: bool = False) -> list[int]:
        """The tokens of a text; as `tokenize_bytes`."""
        return self.tokenize_bytes(_text(text).encode(), parse_special=parse_special)

    def tokenize_partial(
        self, new_bytes: bytes, recent_tokens: list[int] | None = None
    ) -> tuple[list[int], bytes]:
        """The tokens that `data` begins with whatever follows it, and the bytes left over."""
        new_bytes = _bytes("new_bytes", new_bytes)
        if self._encode is None:
            return self._info.tokenize_partial(new_bytes, recent_tokens)
        tokens, rest, open_bytes = self._plain(new_bytes), b"", self._open_bytes(new_bytes)
        while tokens and len(rest) < open_bytes:
            rest = self._info.decode_bytes([tokens.pop()]) + rest
        return tokens, rest

    def _open_bytes(self, data: bytes) -> int:
        """The length of the longest suffix that begins a longer token, wherever tokens end now."""
        if self._sorted is None:
            vocab = enumerate(self._info.decoded_vocab)
            self._sorted = sorted(each for i, each in vocab if each and i not in self._special)
            self._longest = max(map(len, self._sorted), default=0)
        for count in range(min(len(data), self._longest - 1), 0, -1):
            tail = data[-count:]
            place = bisect_right(self._sorted, tail)
            if place < len(self._sorted) and self._sorted[place].startswith(tail):
                return count
        return 0

    def dbg_tokens(self, tokens: list[int]) -> str:
        """Tokens for display."""
        return f"⟦{self.test_trace_tokens(tokens)}⟧"

    def test_trace_tokens(self, tokens: list[int]) -> str:
        """Tokens for display, without the brackets."""
        return "‧".join(
            "≺EOS≻" if token in self.eos_tokens else self._info.dbg_tokens([token])
            for token in self._info._checked(tokens, "tokens")
        )

    def decode_str(self, tokens: list[int]) -> str:
        """The text of tokens, special ones by name; invalid characters as U+FFFD."""
        return self.decode_bytes(tokens).decode("utf-8", "replace")

    def decode_bytes(self, tokens: list[int]) -> bytes:
        """The bytes of tokens, special ones by name."""
        vocab = self._info.decoded_vocab
        return b"".join(vocab[token] for token in self._info._checked(tokens, "tokens"))

    def is_special_token(self, token: int) -> bool:
        """Whether a token is a special one; raises TypeError for any other value."""
        number = as_whole(token)
        if number is None:
            raise TypeError(f"token is {shown_value(token):.60}, but must be an int")
        return number in self._special


def _bytes(name: str, value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name} is {shown_value(value):.60}, but must be bytes")
    return bytes(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text is {shown_value(value):.60}, but must be a str")
    return value


def _ids(eos_token: _Eos) -> list[int] | None:
    if eos_token is None:
        return None
    number = as_whole(eos_token)
    if number is not None:
        return [number]
    stops = whole_numbers("eos_token", eos_token)
    if not stops:
        raise ValueError(
            f"eos_token is {shown_value(eos_token):.60}, "
            f"but must be the id of the token that ends a text, or "
            "a list of such ids"
        )
    return stops


def _listed(
    tokens: Sequence[bytes], special: Sequence[int], stops: list[int], n_vocab: int | None
) -> TokenizerInfo:
    tokens = check_kinds("tokens", tokens, (bytes, bytearray, str), "the bytes of every id")
    marked = [i for i, token in enumerate(tokens) if token[:1] == _SPECIAL and len(token) > 1]
    entries = [
        token.removeprefix(_SPECIAL) if len(token) > 1 else token or None for token in tokens
    ]
    try:
        return TokenizerInfo(
            entries,
            vocab_size=n_vocab,
            stop_token_ids=stops,
            special_token_ids=sorted({*special, *marked}),
        )
    except TokenizerError as error:
        raise ValueError(str(error)) from error


def _named_stops(info: TokenizerInfo) -> list[int]:
    names = {
        info.decoded_vocab[token].decode("utf-8", "replace"): token
        for token in info.special_token_ids
    }
    for name in _STOPS:
        if name in names:
            return [names[name]]
    raise ValueError("the tokenizer names no token that ends a text: give eos_token")
