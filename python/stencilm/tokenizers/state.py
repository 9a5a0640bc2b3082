"""All that a `TokenizerInfo` holds, made in one go: from a tested source, or from its own text.

Here the wishes of the caller (width, stop tokens) meet what the source knows, the core is built,
and the facts are counted.
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
    """A settled vocabulary.

    Attributes:
        tokens: Bytes by id; None for special tokens and holes. Padding is left out.
        names: What special and stop tokens are called, by id, ascending.
        vocab_type: How the tokenizer writes its tokens.
        notes: What the tokenizer showed at load.
        facts: The notes, and what can be counted.
        core: The vocabulary in Rust.
        encoder: Text and bytes to tokens.
        joint: Texts that go on to tokens.
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
        """The bytes of every id: of special tokens their name, of holes and padding nothing."""
        held = [token or b"" for token in self.tokens]
        held += [b""] * (self.core.vocab_size - len(held))
        for token_id, name in self.names.items():
            held[token_id] = name.encode("utf-8", "replace")
        return tuple(held)


def settle(source: Source, notes: Notes, vocab_size: object, stop_token_ids: object) -> State:
    """Fits what was asked for to the source; a stop token spells no text, whatever it looks like.

    Raises:
        TokenizerError: A width or an id does not fit, or nothing is left that spells text.
    """
    width = settle_width(source, vocab_size)
    stop = settle_stop(source, stop_token_ids, width)
    names = {token_id: source.name_of(token_id) for token_id in sorted({*source.special, *stop})}
    tokens = [None if token_id in names else token for token_id, token in enumerate(source.tokens)]
    return _build(tokens, names, stop, width, source.spelling.vocab_type, notes, source.codec)


def restore(text: str) -> State:
    """The state that `dump` wrote, without the tokenizer, but with its merges where they are known.

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
        # A checksum shows damage, not malice: it can be made to fit any text.
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
