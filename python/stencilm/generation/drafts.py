"""Drafts: guesses of the next tokens, several of which the model reads in one forward pass.

One idea: a guess only changes when a row of logits is computed, never which token is drawn from it.
So the loop does not change: it appends tokens to a sequence and gets logits; if it appends the
guessed tokens, the logits are already there. Guesses come from earlier text, or from a smaller
model with the same vocabulary; those that the grammar refuses are dropped.

Speculative decoding is due to Leviathan et al. (2023), arXiv:2211.17192. There, the smaller model
draws a token that is accepted or replaced at random. Here, the large model draws from its own row,
and a guess is right if it is the same token. So a seed gives the same text with and without a
draft.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stencilm.bitmask.arrays import apply_token_bitmask_inplace
from stencilm.errors import TokenizerError
from stencilm.generation.guesses import Guesser
from stencilm.matching.matcher import GrammarMatcher
from stencilm.models.protocol import DraftSequence, LanguageModel, TokenSequence
from stencilm.shown import shown_value
from stencilm.tokenizers import TokenizerInfo

MOST_GUESSES = 8
# On a CPU, one more token makes a pass over few tokens about a fifth more expensive; if it is
# right, it saves a whole pass.
_LEAST_ODDS = 0.4


class Drafter(Protocol):
    """Guesses the next tokens, for one text after another."""

    def guess(
        self,
        token_ids: Sequence[int],
        matcher: GrammarMatcher,
        stops: Collection[int],
        room: int,
    ) -> list[int]:
        """Up to `room` tokens that may follow, fit the grammar, and do not end the text.

        Args:
            token_ids: The prompt and the text so far.
            matcher: Positioned at the end of the text; it is not changed.
            stops: The stop tokens.
            room: The most tokens to guess.
        """


class LookupDrafter:
    """Guesses what the grammar forces, and what followed the same tokens before."""

    def __init__(self, info: TokenizerInfo) -> None:
        self._guesser = Guesser(info, (), MOST_GUESSES)
        self._read: list[int] = []

    def guess(
        self,
        token_ids: Sequence[int],
        matcher: GrammarMatcher,
        stops: Collection[int],
        room: int,
    ) -> list[int]:
        """See `Drafter`. What was learned is kept when a new text begins."""
        shared = shared_length(self._read, token_ids)
        if shared < len(self._read):
            self._guesser.go_back(token_ids[:shared])
        self._guesser.extend(token_ids[shared:])
        self._read = list(token_ids)
        return self._guesser.guess(matcher, stops, room)


class ModelDrafter:
    """Guesses the most probable tokens of a smaller model, among those that the grammar allows."""

    def __init__(self, model: LanguageModel, info: TokenizerInfo) -> None:
        self._model = model
        self._vocab_size = info.vocab_size
        self._sequence: TokenSequence | None = None
        self._read: list[int] = []

    def guess(
        self,
        token_ids: Sequence[int],
        matcher: GrammarMatcher,
        stops: Collection[int],
        room: int,
    ) -> list[int]:
        """See `Drafter`. Stops when all guesses together are less likely right than wrong."""
        limit = self._model.context_size
        if limit is not None:
            room = min(room, limit - len(token_ids))
        guesses: list[int] = []
        odds, ahead = 1.0, matcher.fork()
        while len(guesses) < min(MOST_GUESSES, room):
            token_id, share = self._best([*token_ids, *guesses], ahead)
            odds *= share
            if odds < _LEAST_ODDS or token_id in stops or not ahead.accept_token(token_id):
                break
            guesses.append(token_id)
        return guesses

    def _best(self, token_ids: list[int], matcher: GrammarMatcher) -> tuple[int, float]:
        """The most probable allowed token after these, and its share among the allowed ones."""
        if self._sequence is None:
            self._sequence, self._read = self._model.start(token_ids), token_ids
        shared = shared_length(self._read, token_ids)
        if shared < len(self._read):
            self._sequence.crop(shared)
        logits = self._sequence.append(token_ids[shared:])
        self._read = token_ids
        width = min(logits.size, self._vocab_size)
        mask = np.zeros((1, -(-self._vocab_size // 32)), dtype=np.int32)
        if matcher.fill_next_token_bitmask(mask, 0):
            apply_token_bitmask_inplace(logits[None, :width], mask, vocab_size=width)
        best = int(np.argmax(logits[:width]))
        top = logits[best]
        if top == -np.inf:
            return best, 0.0
        return best, float(1 / np.exp(logits[:width] - top).sum())


class DraftedSequence:
    """A sequence of tokens that a model reads ahead by guesses.

    Args:
        sequence: The sequence of the model.
        prompt_ids: The tokens that it holds.
        guess: Returns tokens that may follow the given ones.
    """

    def __init__(
        self,
        sequence: DraftSequence,
        prompt_ids: Sequence[int],
        guess: Callable[[Sequence[int]], Sequence[int]],
    ) -> None:
        self._sequence = sequence
        self._token_ids = list(prompt_ids)
        self._guess = guess
        self._ahead: list[int] = []
        self._rows: list[NDArray[np.float32]] = []
        self.saved_passes = 0

    @property
    def num_tokens(self) -> int:
        """The number of tokens in the sequence, without guesses."""
        return len(self._token_ids)

    def append(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """See `TokenSequence`. If all of the tokens were guessed, no forward pass is needed."""
        held = shared_length(self._ahead, token_ids)
        if held and held == len(token_ids):
            self._token_ids += token_ids
            row = self._rows[held - 1]
            self._ahead, self._rows = self._ahead[held:], self._rows[held:]
            self.saved_passes += 1
            return row
        self._forget_guesses(held)
        self._token_ids += token_ids
        guesses = list(self._guess(self._token_ids))
        rows = self._sequence.append_rows([*token_ids[held:], *guesses], len(guesses) + 1)
        self._ahead, self._rows = guesses, list(rows[1:])
        first: NDArray[np.float32] = rows[0]
        return first

    def crop(self, num_tokens: int) -> None:
        """See `TokenSequence`."""
        self._forget_guesses(0)
        self._sequence.crop(num_tokens)
        del self._token_ids[num_tokens:]

    def _forget_guesses(self, held: int) -> None:
        """Take back all guesses but the first `held`, which were right."""
        if len(self._ahead) > held:
            self._sequence.crop(len(self._token_ids) + held)
        self._ahead, self._rows = [], []


def new_drafter(draft: Any, info: TokenizerInfo) -> Drafter | None:
    """The drafter of one call; None if there is no draft.

    Args:
        draft: "lookup", a model, or None.
        info: The vocabulary of the model that generates the text.

    Raises:
        TypeError: The draft is something else.
        TokenizerError: The draft's model has another vocabulary.
    """
    if draft is None:
        return None
    if isinstance(draft, str) and draft == "lookup":
        return LookupDrafter(info)
    model = getattr(draft, "backend", draft)
    if not isinstance(model, LanguageModel):
        raise TypeError(
            f"draft is {shown_value(draft):.60}, but must be 'lookup', or a local model that "
            "guesses the next "
            "tokens"
        )
    if not _agree(model.tokenizer_info, info):
        raise TokenizerError(
            f"the draft model has a vocabulary of {model.tokenizer_info.vocab_size:,} tokens that "
            f"spell other texts than the {info.vocab_size:,} of the model: give a model of the "
            "same family, or draft='lookup'"
        )
    return ModelDrafter(model, info)


@lru_cache(maxsize=16)
def _agree(one: TokenizerInfo, other: TokenizerInfo) -> bool:
    """Whether the tokens that both have spell the same texts; their padding may differ."""
    if one == other:
        return True
    both = min(one.vocab_size, other.vocab_size)
    return one.decoded_vocab[:both] == other.decoded_vocab[:both]


def shared_length(one: Sequence[int], other: Sequence[int]) -> int:
    """The length of the common prefix."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
