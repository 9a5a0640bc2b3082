"""Tekken, Mistral's tokenizer: tiktoken ranks after a block of special tokens.

A `tekken.json` holds the ranks as base64, the pattern of the pre-tokenizer, and the names of the
special tokens, whose ids come first. The token of rank r has the id r + number of special tokens.
Format: `mistral_common.tokens.tokenizers.tekken` (mistral-common 1.13).
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from stencilm.errors import TokenizerError
from stencilm.tokenizers.source import MAX_VOCAB_SIZE, Source
from stencilm.tokenizers.tiktoken_source import token_bytes

# The special tokens of files without a list of them, that is, up to version 7.
_UNNAMED = (
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
)
_STOP = "</s>"


class TekkenCodec:
    """A `tiktoken.Encoding` whose ids follow those of the special tokens."""

    __slots__ = ("_encoding", "_special")

    def __init__(self, encoding: Any, special: Mapping[int, str]) -> None:
        """Keep the encoding and the names of the special tokens, whose ids begin at 0."""
        self._encoding = encoding
        self._special = special

    def encode(self, text: str) -> list[int]:
        """The tokens of plain text."""
        offset = len(self._special)
        return [rank + offset for rank in self._encoding.encode_ordinary(text)]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, special ones by name."""
        offset = len(self._special)
        parts = (
            self._special[token_id].encode()
            if token_id < offset
            else self._encoding.decode_single_token_bytes(token_id - offset)
            for token_id in ids
        )
        return b"".join(parts).decode("utf-8", "replace")


def is_tekken(data: object) -> bool:
    """Whether a value is the content of a tekken.json."""
    return (
        isinstance(data, dict)
        and isinstance(data.get("vocab"), list)
        and isinstance(data.get("config"), dict)
        and "default_num_special_tokens" in data["config"]
    )


def read_tekken(data: Mapping[str, Any], *, label: str, place: str) -> Source:
    """Read a source from the content of a tekken.json.

    Raises:
        TokenizerError: tiktoken is not installed, or the file contradicts itself.
    """
    try:
        import tiktoken
    except ImportError as error:
        raise TokenizerError(
            "reading a tekken.json needs `pip install tiktoken`", place=place
        ) from error
    config = data["config"]
    try:
        count = int(config["default_num_special_tokens"])
        size = int(config["default_vocab_size"])
        if not 0 <= count < size <= MAX_VOCAB_SIZE:
            raise ValueError(f"{count} special tokens of {size}")
        special = _special_names(data.get("special_tokens"), count)
        ranks = {
            b64decode(entry["token_bytes"], validate=True): int(entry["rank"])
            for entry in data["vocab"]
            if int(entry["rank"]) < size - count
        }
        if sorted(ranks.values()) != list(range(size - count)):
            raise ValueError(f"the ranks are not 0 to {size - count - 1}, each once")
        encoding = tiktoken.Encoding(
            "tekken", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={}
        )
    except Exception as error:  # the file may hold anything, and tiktoken raises several kinds
        raise TokenizerError(
            f"it is no tekken.json as Mistral writes them ({type(error).__name__}: {error}); fetch "
            "the file again",
            place=place,
        ) from error
    return tekken_source(encoding, special, label=label)


def tekken_source(
    encoding: Any, special: Mapping[int, str], *, label: str, stop: int | None = None
) -> Source:
    """Make a source from the encoding of the ranks and the special tokens, whose ids begin at 0."""
    names = {name: token_id for token_id, name in special.items()}
    if stop is None:
        stop = names.get(_STOP)
    without_text: list[bytes | None] = [None] * len(special)
    return Source(
        label=label,
        tokens=without_text + token_bytes(encoding),
        special=dict(special),
        stop=() if stop is None else (stop,),
        codec=TekkenCodec(encoding, special),
    )


def _special_names(entries: Sequence[Mapping[str, Any]] | None, count: int) -> dict[int, str]:
    """The names by id: the given ones, then fillers in Mistral's form."""
    if entries is None:
        given = dict(enumerate(_UNNAMED[:count]))
    else:
        given = {int(entry["rank"]): str(entry["token_str"]) for entry in entries}
    names = {token_id: given.get(token_id, f"<SPECIAL_{token_id}>") for token_id in range(count)}
    if given.keys() - names.keys():
        raise ValueError(f"a special token has a rank of {count} or more")
    if len(set(names.values())) != count:
        raise ValueError("two special tokens have one name")
    return names
