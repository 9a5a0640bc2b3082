"""The `tokenizers` library (the fast classes of transformers), and tokenizer.json in memory.

The decoder determines what tokens spell, so the spelling is derived from its parts, and tested
afterwards. Encoding uses a bare copy that shares the model (it takes microseconds, and no second
vocabulary). So the truncation, padding and special tokens of the user's tokenizer have no effect,
and the user's tokenizer is not changed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from stencilm.errors import TokenizerError
from stencilm.tokenizers.merging import Recipe, read_recipe
from stencilm.tokenizers.source import Source, place_tokens
from stencilm.tokenizers.spelling import METASPACE, Spelling


class FastCodec:
    """Encodes through a bare copy of a `tokenizers.Tokenizer`; decodes through itself."""

    __slots__ = ("_ids", "_original", "_plain")

    def __init__(self, tokenizer: Any) -> None:
        self._original = tokenizer
        self._plain = plain_copy(tokenizer)
        # The copy may renumber added tokens if the original has gaps: map those ids back.
        meant = {
            token.content: token_id
            for token_id, token in tokenizer.get_added_tokens_decoder().items()
        }
        self._ids = {
            token_id: meant[token.content]
            for token_id, token in self._plain.get_added_tokens_decoder().items()
            if meant[token.content] != token_id
        }

    def encode(self, text: str) -> list[int]:
        """The tokens of plain text."""
        ids: list[int] = self._plain.encode(text, add_special_tokens=False).ids
        return [self._ids.get(token_id, token_id) for token_id in ids] if self._ids else ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, special ones included."""
        text: str = self._original.decode(ids, skip_special_tokens=False)
        return text

    def recipe(self) -> Recipe:
        """The recipe of its encoding.

        Raises:
            TokenizerError: A part of it is of an unknown kind.
        """
        return read_recipe(self._original)


def plain_copy(tokenizer: Any) -> Any:
    """A copy with the same model and text stages, but no truncation, padding, template, decoder."""
    copy = type(tokenizer)(tokenizer.model)
    for stage in ("normalizer", "pre_tokenizer"):
        part = getattr(tokenizer, stage)
        if part is not None:
            setattr(copy, stage, part)
    copy.add_tokens([token for _, token in sorted(tokenizer.get_added_tokens_decoder().items())])
    copy.encode_special_tokens = True  # the name of a special token is plain text here
    return copy


def read_fast(
    tokenizer: Any, *, label: str, special: dict[int, str], stop: tuple[int, ...] = ()
) -> Source:
    """Read a source from a `tokenizers.Tokenizer` and the special tokens that its wrapper knows.

    Raises:
        TokenizerError: The decoder is of a kind whose tokens do not spell bytes, or the library is
            too old.
    """
    if not hasattr(tokenizer, "get_added_tokens_decoder"):
        raise TokenizerError(
            f"{label} comes from a release of tokenizers before 0.15; install a newer one"
        )
    spelling = spelling_of_decoder(tokenizer, label=label)
    added = tokenizer.get_added_tokens_decoder()
    marked = {token_id: token.content for token_id, token in added.items() if token.special}
    unknown = getattr(tokenizer.model, "unk_token", None)
    if isinstance(unknown, str) and (unknown_id := tokenizer.token_to_id(unknown)) is not None:
        marked.setdefault(unknown_id, unknown)
    marked = marked | special
    tokens = place_tokens(
        tokenizer.get_vocab(with_added_tokens=True),
        marked,
        spelling,
        label=label,
        written_by_id=tokenizer.id_to_token,
    )
    return Source(
        label=label,
        tokens=tokens,
        special=marked,
        stop=stop,
        spelling=spelling,
        codec=FastCodec(tokenizer),
    )


def spelling_of_decoder(tokenizer: Any, *, label: str) -> Spelling:
    """The spelling of the tokens, derived from the parts of the decoder.

    Raises:
        TokenizerError: A part is of a kind whose tokens do not spell bytes by themselves.
    """
    parts = _parts(tokenizer.decoder)
    kinds = [part.get("type") for part in parts]
    if not parts:
        return Spelling(word_prefix="")  # then the library joins tokens by spaces
    if "ByteLevel" in kinds:
        return Spelling(alphabet="byte_level")
    if kinds == ["WordPiece"]:
        return Spelling(word_prefix=str(parts[0].get("prefix", "##")))
    replaced = []
    for part in parts:
        match part:
            case {"type": "Metaspace"}:
                replaced.append((str(part.get("replacement", METASPACE)), " "))
            case {"type": "Replace", "pattern": {"String": str(old)}, "content": str(new)}:
                replaced.append((old, new))
            case {"type": "ByteFallback" | "Fuse" | "Strip"}:
                pass
            case _:
                raise TokenizerError(
                    f"{label} has a decoder of {' + '.join(map(str, kinds))}, and with a "
                    f"{part.get('type')} its tokens do "
                    "not spell bytes by themselves; byte-level, byte-fallback, metaspace and "
                    "WordPiece decoders are read, "
                    "for others give the bytes of the tokens to TokenizerInfo(...)",
                    place="#/decoder",
                )
    return Spelling(replaced=tuple(replaced), byte_fallback="ByteFallback" in kinds)


def _parts(decoder: Any) -> list[dict[str, Any]]:
    """The decoder as a flat list."""
    # The pickled state is the JSON of this part alone; `to_str()` would write 6 MB.
    if decoder is None:
        return []
    try:
        state = json.loads(decoder.__getstate__())
    except (AttributeError, TypeError, ValueError):
        return [{"type": type(decoder).__name__}]  # a decoder written in Python
    pending = [state]
    flat = []
    while pending:
        part = pending.pop(0)
        if part.get("type") == "Sequence":
            pending[:0] = part.get("decoders", [])
        else:
            flat.append(part)
    return flat
