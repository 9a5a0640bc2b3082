"""The encoding of a tokenizer in the core: byte-pair merges, and the pattern that splits texts.

Building the merge tables takes up to a second for a large vocabulary, so it is done when first
needed: for canonical masks, and for saving the encoding with the vocabulary. The result is compared
with the tokenizer before it is used; then it also encodes in its place.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stencilm._core import Vocabulary
from stencilm.errors import TokenizerError, UnsupportedFeature
from stencilm.renewed_lock import RenewedLock
from stencilm.tokenizers.selftest import SAMPLES
from stencilm.tokenizers.source import Codec

# GPT-2's pre-tokenizer pattern, and the default of the byte-level pre-tokenizer.
GPT_2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# Texts that distinguish patterns and orders of merges, in addition to the samples.
_HARD = (
    "I'll we've 'REally' they'D 12 123 1234 12345678  9",
    "x  1   2\t\t3 \n 4\r\n\r\n  y \n\n\n z   ",
    '{"a":[1,22,333,4444],"bb":{"c":null},"d":"\\"e\\\\"}',
    "aaaaaaaaaaaaaaaaaaa          bbbbbbbbbbbbb--------====####",
    "ﬁ \u017f's ½ ² ⅷ ٣٤٥٦ \u0301 \u200b\ufeff",
)


@dataclass(frozen=True)
class Recipe:
    """How a tokenizer encodes.

    Attributes:
        model: The model of its tokenizer.json.
        byte_level: Whether bytes are spelled with GPT-2's visible characters.
        space: The symbol for a space, if it spells characters.
        pattern: The pattern that splits texts; None if a text is not split.
    """

    model: bytes
    byte_level: bool
    space: str
    pattern: str | None


class OwnEncoding:
    """The encoding of one vocabulary, built when it is first needed."""

    __slots__ = ("_codec", "_core", "_expected", "_lock", "_reason", "_saved", "is_learned")

    def __init__(
        self,
        core: Vocabulary,
        codec: Codec | None,
        expected: Callable[[bytes], list[int] | None],
        saved: str | None,
    ) -> None:
        """Build nothing yet; `expected` calls the tokenizer, `saved` is the serialized encoding."""
        self._core = core
        self._codec = codec
        self._expected = expected
        self._saved = saved
        self._lock = RenewedLock()
        self._reason: str | None = None
        self.is_learned = False

    def learn(self) -> None:
        """Pass the encoding to the core, once.

        Raises:
            UnsupportedFeature: The encoding is not known; the message names the obstacle.
        """
        with self._lock.held:
            if self._reason is None and not self.is_learned:
                try:
                    self._learn()
                    self.is_learned = True
                except (TokenizerError, ValueError) as error:
                    self._reason = str(error)
        if self._reason is not None:
            raise UnsupportedFeature(
                f"the merges of this tokenizer are not known: {self._reason}; leave canonical=True "
                "out, or load a byte-pair tokenizer with from_huggingface or from_file"
            )

    def can_learn(self) -> bool:
        """Whether the encoding is known; builds it."""
        try:
            self.learn()
        except UnsupportedFeature:
            return False
        return True

    def encode(self, text: str) -> list[int] | None:
        """The tokens of a text at the beginning; None if they are not known."""
        return self._core.encode(text) if self.is_learned else None

    def save(self) -> str | None:
        """The encoding as text; None if it is not known."""
        if self._saved is None and self.can_learn():
            saved = self._core.saved_encoding()
            self._saved = None if saved is None else b64encode(saved).decode()
        return self._saved

    @property
    def was_saved(self) -> bool:
        """Whether the encoding was deserialized with the vocabulary."""
        return self._codec is None and self._saved is not None

    def _learn(self) -> None:
        if self._codec is None and self._saved is not None:
            self._core.learn_saved_encoding(b64decode(self._saved))
            return
        describe = getattr(self._codec, "recipe", None)
        if describe is None:
            raise TokenizerError(
                "it is a list of tokens, which says nothing of merges"
                if self._codec is None
                else "they are read from the tokenizers library (tokenizer.json) only"
            )
        recipe: Recipe = describe()
        self._core.learn_encoding(
            recipe.model,
            byte_level=recipe.byte_level,
            space=recipe.space,
            pattern=recipe.pattern,
        )
        for text in (*SAMPLES.values(), *_HARD):
            expected = self._expected(text.encode())
            if expected is not None and self._core.encode(text) != expected:
                raise TokenizerError(f"{text[:40]!r} would be encoded otherwise than it does")


def read_recipe(tokenizer: Any) -> Recipe:
    """Read the recipe of a `tokenizers.Tokenizer`.

    Raises:
        TokenizerError: A part of it is of a kind that is not known here.
    """
    for token in tokenizer.get_added_tokens_decoder().values():
        if not token.special:
            raise TokenizerError(f"{token.content!r} was added as a token that merges pass by")
    space = " "
    for part in _parts(tokenizer.normalizer, "normalizers"):
        match part:
            case {"type": "Replace", "pattern": {"String": " "}, "content": str(mark)}:
                space = mark
            case {"type": "Prepend"}:
                pass
            case _:
                raise TokenizerError(f"its normaliser may change texts ({part.get('type')})")
    pattern, byte_level = None, False
    for part in _parts(tokenizer.pre_tokenizer, "pretokenizers"):
        match part:
            case {"type": "Split", "pattern": {"Regex": str(regex)}, "behavior": str(behavior)} if (
                pattern is None
                and not byte_level
                and (behavior, part.get("invert"))
                in {("Isolated", False), ("Isolated", True), ("Removed", True)}
            ):
                pattern = regex
            case {"type": "ByteLevel", "use_regex": True} if pattern is None:
                pattern, byte_level = GPT_2_PATTERN, True
            case {"type": "ByteLevel", "use_regex": False}:
                byte_level = True
            case {"type": "Metaspace", "replacement": str(mark), "split": False}:
                space = mark
            case _:
                raise TokenizerError(
                    f"its pre-tokenizer cuts texts in a way that is not known ({part.get('type')})"
                )
    if byte_level and space != " ":
        raise TokenizerError("it spells bytes and changes spaces before")
    if len(space) != 1:
        raise TokenizerError(f"it writes {space!r} for a space")
    return Recipe(tokenizer.model.__getstate__(), byte_level, space, pattern)


def _parts(stage: Any, nested: str) -> list[dict[str, Any]]:
    """A stage of a tokenizer as a flat list."""
    if stage is None:
        return []
    try:
        pending = [json.loads(stage.__getstate__())]
    except (AttributeError, TypeError, ValueError):
        return [{"type": type(stage).__name__}]  # written in Python
    flat = []
    while pending:
        part = pending.pop(0)
        if part.get("type") == "Sequence":
            pending[:0] = part.get(nested, [])
        else:
            flat.append(part)
    return flat
