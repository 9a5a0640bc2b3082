"""Faithful sampling: valid texts, with the probabilities that the model itself gives them.

Sampling under a mask draws each token among the allowed ones, so a text is too probable if the
model would have left the grammar later. Here the texts of a grammar have the model's own
probabilities, normalised to add up to 1. These are over all token sequences that it generates, with
the stop token and within `max_tokens`, and that the grammar accepts.

One idea: the mask of a prefix shows how much of the model's next-token probability is lost. So what
is known about a set of prefixes bounds the probability that each of them ends in a valid text.
"exact" draws by these bounds, and rejects when a new prefix loses more than was known. It forgets
nothing, so it rejects less and less, and accepted texts have the right probability at any time.
"smc" generates several texts side by side, weights each by the probability that the masks left, and
resamples when few texts hold most of the weight. Each wave of texts draws by the bounds that
earlier waves left (a twisted proposal).

Rejection that learns: Park et al. (2024), arXiv:2405.21047, and Parys et al. (2025),
arXiv:2510.01902. Sequential Monte Carlo under a grammar: Loula et al. (2025), arXiv:2504.13139, and
Lipkin et al. (2025), arXiv:2504.05410, who estimate by rejection the mass that a mask leaves; here
the whole mask is available, and the mass is computed.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stencilm.errors import LimitExceeded, ModelError
from stencilm.generation.batches import BatchModel, BranchingText, PositionBatch
from stencilm.generation.drafts import Drafter, shared_length
from stencilm.generation.result import Generation
from stencilm.generation.sampling import Normaliser, Sampling, weights_of
from stencilm.generation.sampling_report import SamplingReport
from stencilm.generation.stats import Clock, Stats
from stencilm.generation.trace import Prompt, Sampled, Stopped, Trace
from stencilm.limits import DEFAULT_LIMITS
from stencilm.matching.matcher import GrammarMatcher, closing_within
from stencilm.models.protocol import DraftSequence, LanguageModel, TokenSequence
from stencilm.whole_numbers import shown

DEFAULT_MAX_PASSES = 10_000
MIN_PARTICLES = 8
_FIRST_WAVE = 4
_KEPT_BYTES = 256 << 20
_PARTICLE_BYTES = 64  # its slot, weights and shares; prefixes are shared


class _Prefix:
    """A prefix of a text, and what is known of its continuations.

    `token_ids` are the allowed next tokens of nonzero probability, `logprobs` their log
    probabilities under the sampling options, `scores` those at temperature 1; all of shape [n],
    None if the model was not asked. `bounds` are upper bounds, as logarithms, on the probability
    that each ends in a valid text.
    """

    __slots__ = (
        "allowed",
        "bounds",
        "children",
        "cumulative",
        "is_end",
        "log_mass",
        "logprob",
        "logprobs",
        "num_tokens",
        "parent",
        "score",
        "scores",
        "slot",
        "token_id",
        "token_ids",
    )

    def __init__(self, parent: _Prefix | None = None, slot: int = 0, token_id: int = -1) -> None:
        self.parent = parent
        self.slot = slot
        self.token_id = token_id
        self.num_tokens: int = 0 if parent is None else parent.num_tokens + 1
        # The model's log probabilities of the last token: as sampled, and at temperature 1.
        self.logprob = self.score = 0.0
        self.log_mass = 0.0
        self.is_end = False
        self.allowed = 0
        self.forget()

    def forget(self) -> None:
        """Forget everything about the continuations."""
        self.children: dict[int, _Prefix] = {}
        self.token_ids: NDArray[np.int32] | None = None
        self.logprobs: NDArray[np.float64] = np.zeros(0)
        self.scores: NDArray[np.float32] = np.zeros(0, np.float32)
        self.bounds: NDArray[np.float64] = np.zeros(0)
        self.cumulative: NDArray[np.float64] | None = None

    def path(self) -> list[_Prefix]:
        """The prefixes from the first token to this one."""
        found: list[_Prefix] = []
        prefix = self
        while prefix.parent is not None:
            found.append(prefix)
            prefix = prefix.parent
        return found[::-1]

    def total(self) -> float:
        """The logarithm of the upper bound on the probability of a valid end."""
        if self.token_ids is None:
            return 0.0
        return float(np.logaddexp.reduce(self.logprobs + self.bounds, initial=-np.inf))

    def draw(self, random: np.random.Generator) -> int:
        """The slot of a next token, drawn by its probability times its bound."""
        return int(self._at(np.array([random.random()]))[0])

    def draw_evenly(self, count: int, random: np.random.Generator) -> NDArray[np.intp]:
        """`count` slots in random order, each as often as expected, rounded up or down."""
        points = (random.random() + np.arange(count)) / count
        places: NDArray[np.intp] = random.permutation(self._at(points))
        return places

    def _at(self, points: NDArray[np.float64]) -> NDArray[np.intp]:
        if self.cumulative is None:
            weights = self.logprobs + self.bounds
            self.cumulative = np.cumsum(np.exp(weights - weights.max()))
        found = np.searchsorted(self.cumulative, points * self.cumulative[-1], side="right")
        places: NDArray[np.intp] = np.minimum(found, self.cumulative.size - 1)
        return places

    @property
    def num_bytes(self) -> int:
        """The approximate memory of its arrays."""
        return 32 * self.logprobs.size


class _Text(NamedTuple):
    """A complete sampled text, and the number of forward passes since the previous one."""

    end: _Prefix
    passes: int


class _Asked(NamedTuple):
    """A prefix to ask the model about, its allowed tokens [n], and the sampling options there."""

    prefix: _Prefix
    allowed: NDArray[np.intp]
    sampling: Sampling


class FaithfulSampler:
    """Samples texts after one prompt.

    Args:
        model: The model.
        matcher: A fresh matcher.
        prompt_ids: The tokens of the prompt.
        sampling: How the model draws a token without a grammar.
        max_tokens: The most tokens of a text.
        max_passes: "exact": the most forward passes for one text.
        drafter: Guesses tokens that the model reads ahead, if its sequences support that; None for
            no drafts.
        working_bytes: "smc": the most memory that its particles may take.
    """

    def __init__(
        self,
        model: LanguageModel,
        matcher: GrammarMatcher,
        prompt_ids: Sequence[int],
        *,
        sampling: Sampling,
        max_tokens: int,
        max_passes: int = DEFAULT_MAX_PASSES,
        drafter: Drafter | None = None,
        working_bytes: int = DEFAULT_LIMITS.working_bytes,
    ) -> None:
        self._model = model
        self._drafter = drafter
        self._prompt_ids = list(prompt_ids)
        self._sampling = sampling
        self._max_tokens = max_tokens
        self._max_passes = max_passes
        self._working_bytes = working_bytes
        self._room = max_tokens
        if model.context_size is not None:
            # After the last token of a text, the model is asked once more, for the probability of
            # its end.
            self._room = min(max_tokens, max(1, model.context_size - len(self._prompt_ids)))
        self._matcher, _ = closing_within(matcher.fork(), self._room)
        self._accepted: list[int] = []
        self._stop_token_ids = frozenset(matcher.stop_token_ids)
        self._vocab_size = model.tokenizer_info.vocab_size
        self._mask = np.zeros((1, -(-self._vocab_size // 32)), dtype=np.int32)
        self._sequence: TokenSequence | None = None
        self._read: list[int] = []
        self._clock = Clock()
        self._start = perf_counter()
        self._root = _Prefix()
        self._kept_bytes = 0
        self.forward_passes = 0

    # One text after the other

    def exact(self, seeds: Sequence[int]) -> Iterator[list[Generation[Any]] | None]:
        """One text for each seed.

        Yields None after each attempt, and the texts last.

        Raises:
            LimitExceeded: A text took more than `max_passes` forward passes.
            ModelError: The model gives every text of the grammar the probability zero.
        """
        texts: list[_Text] = []
        attempts, seen = 0, -math.inf
        # Probabilities of the texts that were found; their sum is a lower bound on that of the
        # grammar.
        found: dict[tuple[int, ...], float] = {}
        for seed in seeds:
            random = _random(seed)
            before, tried = self.forward_passes, 0
            while True:
                if self._root.log_mass == -math.inf:
                    raise self._impossible()
                attempts, tried = attempts + 1, tried + 1
                bound = self._root.log_mass
                end = self._attempt(random)
                if end is not None:
                    break
                if max(self.forward_passes - before, tried) >= self._max_passes:
                    raise LimitExceeded(
                        f"{self._max_passes:,} forward passes found no text of the grammar that "
                        "the model would write by itself; what it does write is a text of the "
                        f"grammar with a probability of at most {math.exp(self._root.log_mass):.2g}"
                        ": raise `max_passes`, or use sampling='smc'"
                    )
                yield None
            seen = float(np.logaddexp(seen, bound))
            found[tuple(self._tokens(end))] = sum(one.logprob for one in end.path())
            texts.append(_Text(end, self.forward_passes - before))
            yield None
        # The acceptance probability of each attempt is the grammar's probability over its bound.
        least = float(np.logaddexp.reduce(list(found.values())))
        estimate = min(max(seen - math.log(attempts), least), self._root.log_mass)
        report = SamplingReport(
            method="exact",
            texts=len(texts),
            grammar_logprob=estimate,
            effective_sample_size=float(len(texts)),
            forward_passes=self.forward_passes,
            attempts=attempts,
        )
        yield self._generations(texts, seeds, report)

    def _attempt(self, random: np.random.Generator) -> _Prefix | None:
        """A text, or None if the draw left the grammar."""
        prefix = self._root
        while not prefix.is_end:
            if prefix.token_ids is None:
                self._back_up(self._ask(prefix))
                # This is the probability that the model's own next token is allowed.
                if random.random() >= math.exp(prefix.total()):
                    return None
            before, prefix = prefix, self._next(prefix, prefix.draw(random))
            self._leave(before)
        return prefix

    def _back_up(self, prefix: _Prefix) -> None:
        """Update the bounds of all earlier prefixes from this one."""
        while True:
            prefix.log_mass = 0.0 if prefix.is_end else prefix.total()
            parent = prefix.parent
            if parent is None or parent.token_ids is None:
                return
            parent.bounds[prefix.slot] = prefix.log_mass
            parent.cumulative = None
            prefix = parent

    def _leave(self, prefix: _Prefix) -> None:
        """Forget a prefix that was left if too much is cached; it may be made again.

        The first prefixes stay known; they serve the most texts.
        """
        if self._kept_bytes > _KEPT_BYTES:
            self._kept_bytes -= prefix.num_bytes
            prefix.forget()
            self._back_up(prefix)

    # Several texts side by side

    def smc(self, seeds: Sequence[int], particles: int) -> Iterator[list[Generation[Any]] | None]:
        """One text for each seed, from `particles` particles, which use the first seed.

        Yields None after each step of all particles, and the texts last.

        Raises:
            LimitExceeded: The particles take too much memory.
            ModelError: No particle reached the end of a text within `max_tokens`.
        """
        needed = particles * _PARTICLE_BYTES
        if needed > self._working_bytes:
            raise LimitExceeded(
                f"particles is {shown(particles)}, which take {shown(needed)} bytes side by side, "
                f"and {self._working_bytes} are allowed: lower it, or raise `working_bytes` of the "
                "limits"
            )
        random = _random(seeds[0])
        at: list[_Prefix] = []
        weights = np.zeros(0)
        while len(at) < particles:
            # Each wave draws by the bounds of earlier ones, so the first waves are small.
            size = min(particles - len(at), max(_FIRST_WAVE, len(at)))
            ends, found = yield from self._wave(size, random)
            at += ends
            weights = np.concatenate([weights, found])
        total = float(np.logaddexp.reduce(weights))
        if total == -math.inf:
            raise self._impossible()
        shares = np.exp(weights - total)
        chosen = _resampled(shares, len(seeds), random)
        random.shuffle(chosen)
        share, rest = divmod(self.forward_passes, len(seeds))
        texts = [_Text(at[place], share + (number < rest)) for number, place in enumerate(chosen)]
        report = SamplingReport(
            method="smc",
            texts=len(texts),
            grammar_logprob=min(0.0, total - math.log(particles)),
            effective_sample_size=1 / float(np.square(shares).sum()),
            forward_passes=self.forward_passes,
            attempts=particles,
        )
        yield self._generations(texts, seeds, report)

    def _wave(
        self, size: int, random: np.random.Generator
    ) -> Generator[None, None, tuple[list[_Prefix], NDArray[np.float64]]]:
        """Generate `size` texts side by side; returns them with the logarithms of their weights.

        The mean of the weights is an estimate of the probability of the grammar.
        """
        at = [self._root] * size
        weights = np.zeros(size)
        # The bound of each particle when its last token was drawn.
        held = np.zeros(size)
        while True:
            places: dict[int, list[int]] = {}
            for place, prefix in enumerate(at):
                if not prefix.is_end and weights[place] > -np.inf:
                    places.setdefault(id(prefix), []).append(place)
            if not places:
                return at, weights
            # Sorted, so that neighbours share what the model has read.
            groups = sorted(places.values(), key=lambda group: self._tokens(at[group[0]]))
            first = [at[group[0]] for group in groups]
            for group, prefix, last in zip(groups, first, self._ask_all(first), strict=True):
                self._back_up(last)
                weights[group] += prefix.log_mass - held[group]
                if prefix.log_mass > -np.inf:
                    slots = last.draw_evenly(len(group), random) if not last.is_end else ()
                    for number, place in enumerate(group):
                        at[place] = last if last.is_end else self._next(last, int(slots[number]))
                        held[place] = 0.0 if last.is_end else last.bounds[slots[number]]
                self._leave(last)
                yield None
            total = float(np.logaddexp.reduce(weights))
            if total == -math.inf:
                return at, weights
            shares = np.exp(weights - total)
            if 1 / float(np.square(shares).sum()) < size / 2:
                chosen = _resampled(shares, size, random)
                at, held = [at[place] for place in chosen], held[chosen]
                weights = np.full(size, total - math.log(size))

    # Shared by both methods

    def _tokens(self, prefix: _Prefix) -> list[int]:
        return [one.token_id for one in prefix.path()]

    def _next(self, prefix: _Prefix, slot: int) -> _Prefix:
        """The prefix extended by the token in a slot."""
        known = prefix.children.get(slot)
        if known is None:
            assert prefix.token_ids is not None, "invariant: the ways on are known"
            known = _Prefix(prefix, slot, int(prefix.token_ids[slot]))
            prefix.children[slot] = known
            if prefix.logprobs.size:
                known.logprob, known.score = (
                    float(prefix.logprobs[slot]),
                    float(prefix.scores[slot]),
                )
            # If there are stop tokens, only they end a text.
            if not self._stop_token_ids or known.token_id in self._stop_token_ids:
                with self._clock.stage("mask"):
                    self._go_to(self._tokens(known))
                    known.is_end = self._matcher.is_terminated()
        return known

    def _go_to(self, token_ids: list[int]) -> None:
        """Move the matcher to the end of these tokens, all of which it allows."""
        shared = shared_length(self._accepted, token_ids)
        if len(self._accepted) > shared:
            self._matcher.rollback(len(self._accepted) - shared)
        for token_id in token_ids[shared:]:
            is_accepted = self._matcher.accept_token(token_id)
            assert is_accepted, "invariant: a token that the mask allows is accepted"
        self._accepted = token_ids

    def _ask(self, prefix: _Prefix) -> _Prefix:
        """Evaluate the continuations of a prefix in one forward pass.

        While the grammar leaves no choice, the pass also covers the following prefixes, up to one
        with a choice, or an end. Returns the last one. The prefixes that a draft guesses are
        covered, too.
        """
        last, asked = self._open_run(prefix)
        if asked:
            if last is asked[-1].prefix:
                asked += self._guessed(asked[-1])
            self._fill_run(asked, self._logits(asked[-1].prefix, len(asked)))
        return last

    def _ask_all(self, prefixes: Sequence[_Prefix]) -> Iterator[_Prefix]:
        """`_ask` of each; all in one forward pass if the model runs batches.

        Not with a draft: its guesses need a sequence that can be cropped.
        """
        branches = self._branches
        if branches is None or self._drafter is not None:
            yield from map(self._ask, prefixes)
            return
        runs = [self._open_run(prefix) for prefix in prefixes]
        open_runs = [asked for _, asked in runs if asked]
        size = max(map(len, open_runs), default=0) * len(open_runs) * self._vocab_size * 4
        if size > _KEPT_BYTES:
            for asked in open_runs:
                self._fill_run(asked, self._logits(asked[-1].prefix, len(asked)))
        elif open_runs:
            before = branches.passes
            with self._clock.stage("model"):
                texts = [self._tokens(asked[-1].prefix) for asked in open_runs]
                rows = branches.logits(texts, list(map(len, open_runs)))
            self.forward_passes += branches.passes - before
            for asked, found in zip(open_runs, rows, strict=True):
                self._fill_run(asked, found)
        yield from (last for last, _ in runs)

    @cached_property
    def _branches(self) -> BranchingText | None:
        """The texts as rows of a batch; None if the model does not run batches."""
        model = self._model
        if not isinstance(model, BatchModel) or not model.runs_batches:
            return None
        batch = model.start_batch([self._prompt_ids])
        if not isinstance(batch, PositionBatch):
            return None
        with self._clock.stage("model"):
            branches = BranchingText(batch)
        self.forward_passes += branches.passes
        return branches

    def _open_run(self, prefix: _Prefix) -> tuple[_Prefix, list[_Asked]]:
        """Follow forced tokens.

        Returns the prefix that has a choice, and all prefixes to evaluate.
        """
        asked: list[_Asked] = []
        while prefix.token_ids is None and not prefix.is_end:
            found = self._open(prefix)
            if found is None:
                break
            asked.append(found)
            allowed = found.allowed
            if allowed.size > 1 or int(allowed[0]) in self._stop_token_ids:
                break
            # The probability of the forced token is filled in below.
            prefix = self._next(prefix, 0)
        return prefix, asked

    def _fill_run(self, asked: Sequence[_Asked], rows: Sequence[NDArray[np.float32]]) -> None:
        """Give consecutive prefixes the model's probabilities."""
        with self._clock.stage("sampling"):
            for one, row in zip(asked, rows, strict=True):
                self._fill(one, row)
        self._back_up(asked[-1].prefix)

    def _open(self, prefix: _Prefix) -> _Asked | None:
        """Find the tokens that the grammar allows; None if there are none."""
        with self._clock.stage("mask"):
            self._go_to(self._tokens(prefix))
            allowed = self._allowed(prefix)
            temperature = self._matcher.temperature
        sampling = self._sampling
        if temperature is not None:
            sampling = replace(sampling, temperature=temperature)
        prefix.token_ids, prefix.allowed = allowed.astype(np.int32), allowed.size
        return _Asked(prefix, allowed, sampling) if allowed.size else None

    def _guessed(self, last: _Asked) -> list[_Asked]:
        """Prefixes that the draft guesses, to be evaluated in the same pass.

        They are only evaluated sooner: the draws and their probabilities stay the same.
        """
        drafter, size = self._drafter, self._model.context_size
        sequence = self._sequence = self._sequence or self._model.start(self._prompt_ids)
        if drafter is None or not isinstance(sequence, DraftSequence):
            return []
        written = [*self._prompt_ids, *self._tokens(last.prefix)]
        room = self._room - last.prefix.num_tokens
        if size is not None:
            room = min(room, size - len(written))
        found: list[_Asked] = []
        for token_id in drafter.guess(written, self._matcher, self._stop_token_ids, room):
            slot = int(np.searchsorted(last.allowed, token_id))
            if slot == last.allowed.size or last.allowed[slot] != token_id:
                break
            prefix = self._next(last.prefix, slot)
            if prefix.is_end or prefix.token_ids is not None:
                break
            asked = self._open(prefix)
            if asked is None:
                prefix.forget()
                break
            found.append(asked)
            last = asked
        return found

    def _allowed(self, prefix: _Prefix) -> NDArray[np.intp]:
        """The next tokens that the grammar allows; none once `max_tokens` is reached."""
        if not self._matcher.fill_next_token_bitmask(self._mask, 0):
            allowed = np.arange(self._vocab_size)
        else:
            bits = np.unpackbits(self._mask.view(np.uint8), bitorder="little")
            allowed = np.flatnonzero(bits[: self._vocab_size])
        if prefix.num_tokens >= self._room:
            return allowed[np.isin(allowed, list(self._stop_token_ids))]
        return allowed

    def _logits(self, prefix: _Prefix, rows: int) -> list[NDArray[np.float32]]:
        """The logits after a prefix and those before it: `rows` of shape [width] each."""
        token_ids = self._tokens(prefix)
        with self._clock.stage("model"):
            if self._sequence is None:
                self._sequence = self._model.start(self._prompt_ids)
            first = len(token_ids) - rows + 1
            shared = min(shared_length(self._read, token_ids), first)
            if len(self._read) > shared:
                self._sequence.crop(len(self._prompt_ids) + shared)
            self._read = token_ids
            if rows == 1 or isinstance(self._sequence, DraftSequence):
                self.forward_passes += 1
                if rows == 1:
                    return [self._sequence.append(token_ids[shared:])]
                assert isinstance(self._sequence, DraftSequence)
                return list(self._sequence.append_rows(token_ids[shared:], rows))
            self.forward_passes += rows
            found = [self._sequence.append(token_ids[shared:first])]
            return found + [self._sequence.append([one]) for one in token_ids[first:]]

    def _fill(self, asked: _Asked, logits: NDArray[np.float32]) -> None:
        """Give a prefix the model's probabilities of its next tokens."""
        prefix, allowed, sampling = asked
        row = np.full(self._vocab_size, -np.inf, np.float32)
        row[: logits.size] = logits[: self._vocab_size]
        written = self._tokens(prefix) if sampling.changes_scores else ()
        try:
            drawn, weights = weights_of(row, sampling, prompt_ids=self._prompt_ids, written=written)
        except ValueError as error:
            raise ModelError(f"behind {prefix.num_tokens} tokens of the text, {error}") from error
        shares = np.zeros(row.size)
        if drawn.size:
            shares[drawn] = weights / weights.sum()
        kept = allowed if prefix.children else allowed[shares[allowed] > 0]
        prefix.token_ids = kept.astype(np.int32)
        with np.errstate(divide="ignore"):
            prefix.logprobs = np.log(shares[kept])
        prefix.scores = Normaliser(row).logprobs(row[kept])
        prefix.bounds = np.zeros(kept.size)
        prefix.cumulative = None
        for slot, child in prefix.children.items():  # A forced token was followed before.
            child.logprob, child.score = float(prefix.logprobs[slot]), float(prefix.scores[slot])
        self._kept_bytes += prefix.num_bytes

    def _impossible(self) -> ModelError:
        return ModelError(
            "the model gives a probability of zero to every text of the grammar within "
            f"max_tokens={self._max_tokens}: raise it, or keep more of its tokens (top_k, top_p, "
            "min_p)"
        )

    def _generations(
        self, texts: list[_Text], seeds: Sequence[int], report: SamplingReport
    ) -> list[Generation[Any]]:
        seconds = (perf_counter() - self._start) / len(texts)
        stages = {name: spent / len(texts) for name, spent in self._clock.seconds.items()}
        info = self._model.tokenizer_info
        prompt = Prompt(token_ids=tuple(self._prompt_ids), text=info.decode_bytes(self._prompt_ids))
        found: list[Generation[Any]] = []
        for text, seed in zip(texts, seeds, strict=True):
            path = text.end.path()
            last = path.pop() if path and path[-1].token_id in self._stop_token_ids else None
            token_ids = tuple(one.token_id for one in path)
            trace = Trace()
            trace.append(prompt)
            for one in path:
                trace.append(
                    Sampled(
                        token_id=one.token_id,
                        text=info.decode_bytes([one.token_id]),
                        logprob=one.score,
                        allowed=one.parent.allowed if one.parent else None,
                    )
                )
            trace.append(
                Stopped(
                    reason="stop",
                    token_id=None if last is None else last.token_id,
                    logprob=None if last is None else last.score,
                    limit=None,
                )
            )
            stats = Stats(
                prompt_tokens=len(self._prompt_ids),
                tokens=len(token_ids),
                forced_tokens=sum(
                    one.parent is not None and one.parent.allowed == 1 for one in path
                ),
                forward_passes=text.passes,
                mask_seconds=stages["mask"],
                model_seconds=stages["model"],
                sampling_seconds=stages["sampling"],
                seconds=seconds,
                seed=seed,
            )
            found.append(
                Generation(
                    text=info.decode_bytes(token_ids).decode("utf-8", "replace"),
                    token_ids=token_ids,
                    finish_reason="stop",
                    is_complete=True,
                    trace=trace,
                    stats=stats,
                    sampling=report,
                )
            )
        return found


def _random(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def _resampled(
    shares: NDArray[np.float64], count: int, random: np.random.Generator
) -> NDArray[np.intp]:
    """Draw slots by share (systematic resampling): as often as expected, rounded up or down."""
    points = (random.random() + np.arange(count)) / count
    found = np.searchsorted(np.cumsum(shares), points, side="right")
    return np.minimum(found, shares.size - 1)
