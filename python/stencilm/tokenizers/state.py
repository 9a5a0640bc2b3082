"""The contents of a `TokenizerInfo`, from a tested source or from their serialized form.

Here the caller's options (width, stop tokens) are combined with the source, the core is built, and
the facts are computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from stencilm._core import Vocabulary
from stencilm.errors import TokenizerError
from stencilm.shown import shown_value
from stencilm.tokenizers import wire
from stencilm.tokenizers.encoding import Encoder
from stencilm.tokenizers.facts import Notes, TokenizerFacts, count_facts
from stencilm.tokenizers.joint import JointTokenizer
from stencilm.tokenizers.source import Codec, Source, settle_stop, settle_width
from stencilm.tokenizers.spelling import VocabType


@dataclass(frozen=True, eq=False)
class State:
    """A complete vocabulary.

    Attributes:
        tokens: Bytes by id; None for special tokens and holes. Padding is left out.
        names: The names of special and stop tokens, by id, ascending.
        vocab_type: How the tokenizer writes its tokens.
        notes: The tokenizer's behaviour when it was loaded.
        facts: The notes, and what can be computed.
        core: The vocabulary in Rust.
        encoder: Encodes text and bytes.
        joint: Encodes incomplete texts.
    """

    tokens: tuple[bytes | None, ...]
    names: Mapping[int, str]
    vocab_type: VocabType
    notes: Notes
    facts: TokenizerFacts
    core: Vocabulary
    encoder: Encoder
    joint: JointTokenizer

    @cached_property
    def decoded(self) -> tuple[bytes, ...]:
        """The bytes of every id: the names of special tokens, nothing for holes and padding."""
        held = [token or b"" for token in self.tokens]
        held += [b""] * (self.core.vocab_size - len(held))
        for token_id, name in self.names.items():
            held[token_id] = name.encode("utf-8", "replace")
        return tuple(held)


def settle(source: Source, notes: Notes, vocab_size: object, stop_token_ids: object) -> State:
    """Apply the caller's options to a source; a stop token never spells text, whatever its bytes.

    Raises:
        TokenizerError: A width or an id is not valid, or no remaining token spells text.
    """
    width = settle_width(source, vocab_size)
    stop = settle_stop(source, stop_token_ids, width)
    names = {token_id: source.name_of(token_id) for token_id in sorted({*source.special, *stop})}
    tokens = [None if token_id in names else token for token_id, token in enumerate(source.tokens)]
    return _build(tokens, names, stop, width, source.spelling.vocab_type, notes, source.codec)


def restore(text: str) -> State:
    """Restore what `dump` wrote: without the tokenizer, but with its merges if they were known.

    Raises:
        TokenizerError: The text was cut short, changed, or written by another version.
    """
    try:
        fields, tokens = wire.read(text)
        encoding = fields.get("encoding")
        if not isinstance(encoding, (str, type(None))):
            raise TypeError(f"encoding is {shown_value(encoding):.80}")
        return _build(
            tokens,
            {token_id: name for token_id, name in fields["special"]},
            fields["stop_token_ids"],
            fields["vocab_size"],
            VocabType(fields["vocab_type"]),
            Notes(**fields["notes"] | {"lossy": tuple(fields["notes"]["lossy"])}),
            None,
            encoding,
        )
    except TokenizerError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        # A checksum detects damage, not malice: anyone can compute it for any text.
        raise TokenizerError(
            f"the fields of this TokenizerInfo are not those that serialize_json() writes "
            f"({type(error).__name__}: {str(error)[:200]}); write it again"
        ) from error


def dump(state: State) -> str:
    """One line of JSON that `restore` reads."""
    fields: dict[str, Any] = {
        "vocab_type": state.vocab_type.value,
        "vocab_size": state.core.vocab_size,
        "stop_token_ids": state.core.stop_token_ids,
        "special": list(state.names.items()),
        "notes": asdict(state.notes),
    }
    encoding = state.encoder.own.save()
    if encoding is not None:
        fields["encoding"] = encoding
    return wire.write(fields, state.tokens)


def _build(
    tokens: Sequence[bytes | None],
    names: Mapping[int, str],
    stop: Sequence[int],
    width: int,
    vocab_type: VocabType,
    notes: Notes,
    codec: Codec | None,
    saved_encoding: str | None = None,
) -> State:
    if not any(tokens):
        raise TokenizerError(
            "no token of this vocabulary spells text; load a tokenizer that was trained"
        )
    core = Vocabulary(
        tokens,
        vocab_size=width,
        stop_token_ids=stop,
        special_token_ids=list(names),
        special_names=list(names.values()),
    )
    held = tuple(tokens)
    facts = count_facts(
        held, special=names, vocab_size=width, has_stop_token=bool(stop), notes=notes
    )
    encoder = Encoder(
        held,
        codec,
        prefixed=notes.adds_prefix_space,
        core=core,
        is_lost=notes.has_tokenizer and codec is None,
        saved=saved_encoding,
    )
    joint = JointTokenizer(held, encoder, core.spans)
    return State(held, names, vocab_type, notes, facts, core, encoder, joint)
