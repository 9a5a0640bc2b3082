"""Many texts, each step of all of them in one forward pass; and beam search.

One idea: a text being generated only requests logits (`Pass`). So a driver can gather the requests
of many texts, run them as rows of one pass, and return each its row. Rows whose text has ended
leave the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from stencilm.bitmask.arrays import apply_token_bitmask_inplace
from stencilm.errors import ModelError
from stencilm.generation.ends import is_over
from stencilm.generation.loop import Decoding, Pass
from stencilm.generation.sampling import Normaliser
from stencilm.generation.trace import Event
from stencilm.matching.matcher import GrammarMatcher
from stencilm.models.protocol import LanguageModel

OnEvent = Callable[[int, Event], None]

_MORE_WAYS = 64


class TokenBatch(Protocol):
    """Rows of tokens inside a model."""

    def append(self, token_ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Add tokens to each row; returns the logits after it: [rows, width]."""

    def select(self, rows: Sequence[int]) -> None:
        """Make row i what row `rows[i]` was."""


@runtime_checkable
class BatchModel(Protocol):
    """A model that runs several sequences in one pass."""

    runs_batches: bool

    def start_batch(self, prompts: Sequence[Sequence[int]]) -> TokenBatch:
        """Start a batch whose rows hold these prompts."""


def decode_batch(
    model: LanguageModel, decodings: Sequence[Decoding], on_event: OnEvent | None = None
) -> int:
    """Generate all texts to their ends; returns the number of forward passes.

    If the model runs no batches, or texts use a draft, they are generated one after another. Equal
    prompts are read once. The first text that fails raises, as it would alone.
    """
    has_draft = any(decoding.has_draft for decoding in decodings)
    if has_draft or not isinstance(model, BatchModel) or not model.runs_batches:
        for number, decoding in enumerate(decodings):
            for event in decoding:
                if on_event is not None:
                    on_event(number, event)
        return sum(decoding.stats.forward_passes for decoding in decodings)

    def advance(number: int, logits: NDArray[np.float32] | None) -> tuple[int, ...] | None:
        """Advance a text to its next request; None at its end."""
        while True:
            try:
                step = decodings[number].step(logits)
            except StopIteration:
                return None
            if isinstance(step, Pass):
                return step.token_ids
            logits = None
            if on_event is not None:
                on_event(number, step)

    wishes = {number: advance(number, None) for number in range(len(decodings))}
    wanted = {number: tokens for number, tokens in wishes.items() if tokens is not None}
    batch: TokenBatch | None = None
    rows: list[int] = []
    passes = 0
    while wanted:
        if batch is None:
            rows = list(wanted)
            batch, logits = _first_pass(model, [decodings[n] for n in rows], wanted, rows)
        else:
            kept = [place for place, number in enumerate(rows) if number in wanted]
            if len(kept) < len(rows):
                batch.select(kept)
                rows = [rows[place] for place in kept]
            logits = batch.append([wanted[number] for number in rows])
        passes += 1
        for place, number in enumerate(rows):
            tokens = advance(number, logits[place])
            if tokens is None:
                del wanted[number]
            else:
                wanted[number] = tokens
    return passes


def _first_pass(
    model: BatchModel,
    decodings: Sequence[Decoding],
    wanted: dict[int, tuple[int, ...]],
    rows: Sequence[int],
) -> tuple[TokenBatch, NDArray[np.float32]]:
    """The pass over the prompts; a single row is computed if all of them are the same."""
    prompts = [decoding.prompt_ids for decoding in decodings]
    tokens = [wanted[number] for number in rows]
    if len(rows) > 1 and all(p == prompts[0] for p in prompts) and len(set(tokens)) == 1:
        batch = model.start_batch(prompts[:1])
        logits = batch.append(tokens[:1])
        batch.select([0] * len(rows))
        return batch, np.repeat(logits, len(rows), axis=0)
    batch = model.start_batch(prompts)
    return batch, batch.append(tokens)


@runtime_checkable
class PositionBatch(TokenBatch, Protocol):
    """A batch that returns the logits at several positions of each row in one pass."""

    def append_last(self, token_ids: Sequence[Sequence[int]], count: int) -> NDArray[np.float32]:
        """Add tokens to each row; the logits after each of the last `count`: [rows, count, width].

        A row may be given fewer tokens than others, or none.
        """


class BranchingText:
    """Prefixes of many texts after one prompt, several of which are evaluated in one pass.

    A row of the batch holds a prefix that was evaluated recently. Row 0 holds the prompt; a text
    that extends none of the other rows starts from it.
    """

    def __init__(self, batch: PositionBatch) -> None:
        """`batch` has one row, the prompt, which has not been read yet."""
        self._batch = batch
        self._held: list[list[int]] = [[]]
        self._after_prompt: NDArray[np.float32] = batch.append([[]])[0]
        self.passes = 1

    def logits(
        self, texts: Sequence[Sequence[int]], counts: Sequence[int]
    ) -> list[list[NDArray[np.float32]]]:
        """The logits after each of the last `counts[i]` tokens of text i, in at most one pass.

        A count may exceed the number of tokens by one: then the first logits are those after the
        prompt.
        """
        pairs = list(zip(texts, counts, strict=True))
        known = [[self._after_prompt.copy()] if count > len(text) else [] for text, count in pairs]
        wanted = [min(count, len(text)) for text, count in pairs]
        places = [place for place, count in enumerate(wanted) if count]
        if not places:
            return known
        parents = [self._parent(texts[place], wanted[place]) for place in places]
        self._batch.select([0, *parents])
        added = [texts[p][len(self._held[row]) :] for p, row in zip(places, parents, strict=True)]
        most = max(wanted)
        found = self._batch.append_last([[], *added], most)
        self._held = [[], *(list(texts[place]) for place in places)]
        self.passes += 1
        for row, place in enumerate(places, start=1):
            known[place] += list(found[row, most - wanted[place] :])
        return known

    def _parent(self, text: Sequence[int], unread: int) -> int:
        """The row with the longest prefix of a text that does not include its unread tokens."""

        def fits(row: int) -> bool:
            held = self._held[row]
            return len(held) <= len(text) - unread and list(text[: len(held)]) == held

        return max(filter(fits, range(len(self._held))), key=lambda row: len(self._held[row]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Beam:
    """One text of a beam search.

    Attributes:
        token_ids: Its tokens, without the stop token.
        logprob: The sum of the model's own log probabilities of these, and of the stop token if the
            model chose it.
        is_complete: It is a complete text of the grammar.
    """

    token_ids: tuple[int, ...]
    logprob: float
    is_complete: bool

    def score(self, length_penalty: float) -> float:
        """The log probability, divided by the length to the power of the penalty."""
        if self.logprob == 0:
            return math.inf
        return length_penalty * math.log(max(1, len(self.token_ids))) - math.log(-self.logprob)


def beam_search(
    model: LanguageModel,
    matcher: GrammarMatcher,
    prompt_ids: Sequence[int],
    *,
    beams: int,
    max_tokens: int,
    length_penalty: float = 1.0,
) -> list[Beam]:
    """Search with this many beams; returns the best texts, best first.

    Each step keeps the most probable prefixes; each prefix has its own matcher. If a matcher has a
    token budget of `max_tokens`, every beam can still end in time.

    Raises:
        ModelError: The model runs no batches, its logits hold NaN, or it gives every text the
            probability zero.
    """
    if not isinstance(model, BatchModel) or not model.runs_batches:
        raise ModelError("beams need a model that runs batches, such as one of transformers")
    vocab_size = model.tokenizer_info.vocab_size
    stops = frozenset(matcher.stop_token_ids)
    mask = np.zeros((1, -(-vocab_size // 32)), dtype=np.int32)
    batch = model.start_batch([prompt_ids])
    live: list[tuple[Beam, GrammarMatcher]] = [
        (Beam(token_ids=(), logprob=0.0, is_complete=matcher.is_completed()), matcher)
    ]
    unread: list[tuple[int, ...]] = [()]
    finished: list[Beam] = []
    for step in range(max_tokens):
        is_last = step == max_tokens - 1
        logits = batch.append(unread)
        normalisers = []
        for place, (_, state) in enumerate(live):
            row = logits[place]
            row[min(row.size, vocab_size) :] = -np.inf
            if np.isnan(row).any():
                raise ModelError("the logits hold NaN, so no beam is more probable than another")
            normalisers.append(Normaliser(row))
            if state.fill_next_token_bitmask(mask, 0):
                apply_token_bitmask_inplace(
                    row[None, :], mask, vocab_size=min(row.size, vocab_size)
                )
        ways = _ways(logits, [beam.logprob for beam, _ in live], normalisers, beams)
        num_ended = 0
        chosen: list[tuple[Beam, GrammarMatcher]] = []
        parents: list[int] = []
        unread = []
        for logprob, place, token_id in ways:
            if len(chosen) == beams:
                break
            if is_last and num_ended == beams:
                # The other beams are as long as those that ended now, and less probable.
                last = (logprob, place, token_id)
                finished += _stopped(live, logits, normalisers, stops, last)
                break
            beam, state = live[place]
            if token_id in stops and state.is_completed():
                ended = Beam(token_ids=beam.token_ids, logprob=logprob, is_complete=True)
                finished.append(ended)
                continue
            grown = state.fork()
            if not grown.accept_token(token_id):
                raise AssertionError(f"invariant: token {token_id} was allowed by the mask")
            token_ids = (*beam.token_ids, token_id)
            on = Beam(token_ids=token_ids, logprob=logprob, is_complete=grown.is_completed())
            if is_over(grown, stops):
                num_ended += 1
                finished.append(on)
                continue
            chosen.append((on, grown))
            parents.append(place)
            unread.append((token_id,))
        live = chosen
        if not live or _is_settled(finished, live, beams, length_penalty):
            break
        batch.select(parents)
    # Texts that a limit cut come after all complete ones.
    finished.sort(key=lambda beam: -beam.score(length_penalty))
    cut = sorted((beam for beam, _ in live), key=lambda beam: -beam.score(length_penalty))
    if not finished and not cut:
        raise ModelError("the model gives a probability of zero to every text")
    return (finished + cut)[:beams]


def _stopped(
    live: Sequence[tuple[Beam, GrammarMatcher]],
    logits: NDArray[np.float32],
    normalisers: Sequence[Normaliser],
    stops: frozenset[int],
    first: tuple[float, int, int],
) -> list[Beam]:
    """The beams that a stop token ends here, except those that rank before `first`."""
    found = []
    for place, (beam, state) in enumerate(live):
        for token_id in stops:
            if logits[place][token_id] > -np.inf and state.is_completed():
                logprob = beam.logprob + normalisers[place].logprob(float(logits[place][token_id]))
                if (-logprob, place, token_id) >= (-first[0], *first[1:]):
                    found.append((-logprob, place, token_id, beam.token_ids))
    return [
        Beam(token_ids=token_ids, logprob=-negative, is_complete=True)
        for negative, _, _, token_ids in sorted(found)
    ]


def _ways(
    logits: NDArray[np.float32],
    logprobs: Sequence[float],
    normalisers: Sequence[Normaliser],
    beams: int,
) -> Iterator[tuple[float, int, int]]:
    """The continuations of all beams: log probability, beam and token, most probable first.

    Each beam contributes its `2 * beams` most probable tokens. Callers rarely need more than
    `beams` in total, so only slightly more are sorted; the rest of a large vocabulary is skipped.
    """
    taken, count = 0, 2 * beams + _MORE_WAYS
    while True:
        scores, places, tokens = _best_ways(logits, logprobs, normalisers, beams, count)
        for at in range(taken, len(scores)):
            yield float(scores[at]), int(places[at]), int(tokens[at])
        if len(scores) < count:
            return
        taken, count = count, 4 * count


def _best_ways(
    logits: NDArray[np.float32],
    logprobs: Sequence[float],
    normalisers: Sequence[Normaliser],
    beams: int,
    count: int,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """The `count` most probable continuations, in order: log probabilities, beams and tokens."""
    found: list[tuple[NDArray[Any], ...]] = []
    num_found = 0
    for place, (logprob, normaliser) in enumerate(zip(logprobs, normalisers, strict=True)):
        row = logits[place]
        tokens = np.flatnonzero(row > -np.inf)
        tokens = tokens[_highest(row[tokens], min(count, 2 * beams))]
        scores = logprob + normaliser.logprobs(row[tokens].astype(np.float64))
        found.append((scores, np.full(tokens.size, place), tokens))
        num_found += tokens.size
        if num_found > 8 * count + logits.shape[1]:
            found = [_leading(found, count)]
            num_found = found[0][0].size
    scores, places, tokens = _leading(found, count)
    order = np.lexsort((tokens, places, -scores))[:count]
    return scores[order], places[order], tokens[order]


def _leading(
    found: list[tuple[NDArray[Any], ...]], count: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The `count` most probable continuations, and those as probable as the last of them."""
    scores, places, tokens = (np.concatenate(parts) for parts in zip(*found, strict=True))
    if scores.size <= count:
        return scores, places, tokens
    best = np.flatnonzero(scores >= np.partition(scores, -count)[-count])
    return scores[best], places[best], tokens[best]


def _highest(values: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """The positions of the `count` highest values; the first ones among equals."""
    if values.size <= count:
        return np.arange(values.size)
    threshold = np.partition(values, -count)[-count]
    above = np.flatnonzero(values > threshold)
    equal = np.flatnonzero(values == threshold)[: count - above.size]
    return np.concatenate([above, equal])


def _is_settled(
    finished: Sequence[Beam], live: Sequence[Any], beams: int, length_penalty: float
) -> bool:
    """Whether there are enough texts, and no beam is better than the worst of them."""
    if len(finished) < beams:
        return False
    worst = sorted(beam.score(length_penalty) for beam in finished)[-beams]
    return all(beam.score(length_penalty) <= worst for beam, _ in live)
