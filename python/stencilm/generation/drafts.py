"""Drafts: guesses at the next tokens that a model reads ahead, several in one forward pass.

One idea: a guess changes only when a row of logits is computed, never what is drawn from it. So a
loop stays as it is: it appends tokens to a sequence and gets logits, and if the tokens are those
that were guessed, the logits are already there. Guesses come from earlier text, or from a smaller
model with the same vocabulary; the grammar removes those that it refuses.

Speculative decoding is that of Leviathan et al. (2023), arXiv:2211.17192. There, the smaller model
draws a token that is accepted or replaced at random; here the large one draws from its own row, and
the guess only has to be equal. So a seed gives the same text with and without a draft.
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
# One more token makes a pass over few of them about a fifth dearer on a CPU, and saves a whole one
# where it is right.
_LEAST_ODDS = 0.4


class Drafter(Protocol):
    """Whatever guesses the next tokens of one text after another."""

    def guess(
        self,
        token_ids: Sequence[int],
        matcher: GrammarMatcher,
        stops: Collection[int],
        room: int,
    ) -> list[int]:
        """Up to `room` tokens that may follow, that the grammar allows and that end no text.

        Args:
            token_ids: The prompt and the text so far.
            matcher: Stands at the end of the text; it is left as it is.
            stops: The stop tokens.
            room: The most tokens to guess.
        """


class LookupDrafter:
    """Guesses by what the grammar forces, and by what followed the same tokens before."""

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
        """See `Drafter`. A text that begins anew is no end of what was learnt."""
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
        """See `Drafter`. Ends where the guesses together are less likely than not to be right."""
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
        """The most probable allowed token after these, and its share among those allowed."""
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
    """A sequence of tokens of which the model has read on, by guesses.

    Args:
        sequence: The sequence of the model.
        prompt_ids: The tokens that it holds.
        guess: Tokens that may follow those given.
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
        """How many tokens the sequence holds, without those that were guessed."""
        return len(self._token_ids)

    def append(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """See `TokenSequence`. No forward pass where all of the tokens were guessed."""
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
        """Take back the guesses but for the first ones, which held."""
        if len(self._ahead) > held:
            self._sequence.crop(len(self._token_ids) + held)
        self._ahead, self._rows = [], []


def new_drafter(draft: Any, info: TokenizerInfo) -> Drafter | None:
    """What makes the guesses of one call; None for none.

    Args:
        draft: "lookup", a model, or None.
        info: The vocabulary of the model that writes.

    Raises:
        TypeError: The draft is neither.
        TokenizerError: The model has another vocabulary.
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
    """Whether the tokens that both have spell the same texts; what pads a vocabulary is free."""
    if one == other:
        return True
    both = min(one.vocab_size, other.vocab_size)
    return one.decoded_vocab[:both] == other.decoded_vocab[:both]


def shared_length(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
