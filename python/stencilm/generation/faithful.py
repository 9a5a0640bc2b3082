"""Faithful sampling: whole texts as the model itself would write them, given that they are valid.

Drawing under a mask takes the next token among those allowed, so a text is too probable where the
model would have left the grammar later. Here the texts of a grammar come with the probabilities
that the model gives to them, made to add up to 1: of all token sequences that it writes, with the
stop token and within `max_tokens`, those that the grammar accepts.

One idea: the mask of a prefix tells which part of the model's next token is lost, so what is known
of a set of prefixes bounds the probability of each to end in a valid text. "exact" draws by these
bounds and rejects where a new prefix loses more than was known; nothing it was told is forgotten,
so it rejects less and less, and what it accepts has the right probability at any time. "smc" writes
several texts side by side, weighs each by what the masks left of it, and draws anew among them
where few have most of the weight.

Rejection that learns: Park et al. (2024), arXiv:2405.21047, and Parys et al. (2025),
arXiv:2510.01902. Sequential Monte Carlo under a grammar: Loula et al. (2025), arXiv:2504.13139, and
Lipkin et al. (2025), arXiv:2504.05410, who estimate by rejection the mass that a mask leaves; here
the whole mask is at hand, and the mass is computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stencilm.errors import LimitExceeded, ModelError
from stencilm.generation.result import Generation
from stencilm.generation.sampling import Sampling, log_normaliser, weights_of
from stencilm.generation.stats import Clock, Stats
from stencilm.generation.trace import Prompt, Sampled, Stopped, Trace
from stencilm.matching.matcher import GrammarMatcher, closing_within
from stencilm.models.protocol import DraftSequence, LanguageModel, TokenSequence
from stencilm.shown import Shown

SamplingMethod: TypeAlias = Literal["masked", "exact", "smc"]
"""How texts are drawn. "masked": token by token, among those that the grammar allows. "exact" and
"smc": with the model's own probabilities of whole texts."""

DEFAULT_MAX_PASSES = 10_000
MIN_PARTICLES = 32
_KEPT_BYTES = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SamplingReport(Shown):
    """How the texts of one call were drawn; all of them have the same report.

    Attributes:
        method: "exact" or "smc".
        texts: How many were drawn.
        grammar_logprob: An estimate of the natural logarithm of the probability that what the model
            writes after the prompt is a text of the grammar, within `max_tokens`.
        effective_sample_size: As how many independent texts these count. For "exact" all of them;
            for "smc" the square of the sum of the particles' weights over the sum of their squares.
        forward_passes: Calls of the model.
        attempts: How many texts were begun; those that were not accepted are rejected. For "smc"
            the number of particles.

    Examples:
        >>> import stencilm
        >>> model = stencilm.load("tiny")
        >>> colour = stencilm.Choice(["red", "blue"])
        >>> report = model.generate("A colour:", colour, sampling="exact", seed=1).sampling
        >>> report.method, report.texts, report.effective_sample_size, report.grammar_logprob < 0
        ('exact', 1, 1.0, True)
    """

    method: SamplingMethod
    texts: int
    grammar_logprob: float
    effective_sample_size: float
    forward_passes: int
    attempts: int

    @property
    def grammar_probability(self) -> float:
        """The estimated probability that the model writes a text of the grammar by itself."""
        return math.exp(self.grammar_logprob)

    def __repr__(self) -> str:
        """The method and what it found, in a line."""
        return (
            f"<{type(self).__name__}: {self.method}, {self.texts:,} texts, probability of the "
            f"grammar {self.grammar_probability:.3g}, effective sample size "
            f"{self.effective_sample_size:,.1f}, {self.forward_passes:,} forward passes>"
        )

    def to_json(self) -> dict[str, Any]:
        """The report as JSON-ready values."""
        return {name: getattr(self, name) for name in self.__slots__}


class _Prefix:
    """The beginning of a text, and what is known of the ways on.

    `token_ids` are the allowed next tokens of some probability, `logprobs` the model's logarithms
    for them as it draws, `scores` those at temperature 1; all of shape [n], None where the model
    was not asked. `bounds` are logarithms of the most that may become of each.
    """

    __slots__ = (
        "allowed",
        "bounds",
        "children",
        "cumulative",
        "depth",
        "is_end",
        "is_found",
        "log_mass",
        "logprobs",
        "parent",
        "scores",
        "slot",
        "token_ids",
    )

    def __init__(self, parent: _Prefix | None = None, slot: int = 0) -> None:
        self.parent = parent
        self.slot = slot
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.children: dict[int, _Prefix] = {}
        self.log_mass = 0.0
        self.is_end = self.is_found = False
        self.allowed = 0
        self.token_ids: NDArray[np.int32] | None = None
        self.logprobs: NDArray[np.float64] = np.zeros(0)
        self.scores: NDArray[np.float32] = np.zeros(0, np.float32)
        self.bounds: NDArray[np.float64] = np.zeros(0)
        self.cumulative: NDArray[np.float64] | None = None

    @property
    def token_id(self) -> int:
        """The last token."""
        assert self.parent is not None and self.parent.token_ids is not None
        return int(self.parent.token_ids[self.slot])

    @property
    def logprob(self) -> float:
        """The logarithm of the probability that the model draws the last token."""
        return 0.0 if self.parent is None else float(self.parent.logprobs[self.slot])

    def path(self) -> list[_Prefix]:
        """The prefixes from one token to this one."""
        found: list[_Prefix] = []
        prefix = self
        while prefix.parent is not None:
            found.append(prefix)
            prefix = prefix.parent
        return found[::-1]

    def total(self) -> float:
        """The logarithm of the most that may become of it."""
        if self.token_ids is None:
            return 0.0
        return float(np.logaddexp.reduce(self.logprobs + self.bounds, initial=-np.inf))

    def draw(self, random: np.random.Generator) -> int:
        """The place of a next token, drawn by its probability and its bound."""
        if self.cumulative is None:
            weights = self.logprobs + self.bounds
            self.cumulative = np.cumsum(np.exp(weights - weights.max()))
        point = random.random() * self.cumulative[-1]
        found = int(np.searchsorted(self.cumulative, point, side="right"))
        return min(found, self.cumulative.size - 1)

    @property
    def num_bytes(self) -> int:
        """Memory of its arrays, about."""
        return 32 * self.logprobs.size


class _Text(NamedTuple):
    """A whole text that was drawn, and the forward passes since the one before."""

    end: _Prefix
    passes: int


class FaithfulSampler:
    """Draws texts after one prompt.

    Args:
        model: The model.
        matcher: A fresh matcher.
        prompt_ids: The tokens of the prompt.
        sampling: How the model draws a token where no grammar is in its way.
        max_tokens: The most tokens of a text.
        max_passes: "exact": the most forward passes for one text.
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
    ) -> None:
        self._model = model
        self._prompt_ids = list(prompt_ids)
        self._sampling = sampling
        self._max_tokens = max_tokens
        self._max_passes = max_passes
        self._room = max_tokens
        if model.context_size is not None:
            self._room = min(max_tokens, max(1, model.context_size + 1 - len(self._prompt_ids)))
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

    def exact(self, randoms: Sequence[np.random.Generator]) -> Iterator[list[Generation[Any]] | None]:
        """One text for each source of randomness.

        Yields None after each attempt, and the texts last.

        Raises:
            LimitExceeded: A text took more than `max_passes` forward passes.
            ModelError: The model gives a probability of zero to every text of the grammar.
        """
        texts: list[_Text] = []
        attempts, seen, found = 0, -math.inf, -math.inf
        for random in randoms:
            before = self.forward_passes
            while True:
                if self._root.log_mass == -math.inf:
                    raise self._impossible()
                attempts += 1
                bound = self._root.log_mass
                end = self._attempt(random)
                if end is not None:
                    break
                if self.forward_passes - before >= self._max_passes:
                    raise LimitExceeded(
                        f"{self._max_passes:,} forward passes found no text of the grammar that "
                        "the model would write by itself; what it does write is a text of the "
                        f"grammar with a probability of at most {math.exp(self._root.log_mass):.2g}"
                        ": raise `max_passes`, or use sampling='smc'"
                    )
                yield None
            seen = float(np.logaddexp(seen, bound))
            if not end.is_found:
                end.is_found = True
                found = float(np.logaddexp(found, sum(one.logprob for one in end.path())))
            texts.append(_Text(end, self.forward_passes - before))
            if self._kept_bytes > _KEPT_BYTES:  # What is not known costs rejections, and is no error.
                self._root, self._kept_bytes, found = _Prefix(), 0, -math.inf
            yield None
        # Each attempt is accepted with the grammar's probability over its bound.
        estimate = min(max(seen - math.log(attempts), found), self._root.log_mass)
        report = SamplingReport(
            method="exact",
            texts=len(texts),
            grammar_logprob=estimate,
            effective_sample_size=float(len(texts)),
            forward_passes=self.forward_passes,
            attempts=attempts,
        )
        yield self._generations(texts, report)

    def _attempt(self, random: np.random.Generator) -> _Prefix | None:
        """A text, or None where the draw left the grammar."""
        prefix = self._root
        while not prefix.is_end:
            if prefix.token_ids is None:
                self._back_up(self._ask(prefix))
                # The model's own next tokens are allowed with so much probability.
                if random.random() >= math.exp(prefix.total()):
                    return None
            prefix = self._next(prefix, prefix.draw(random))
        return prefix

    def _back_up(self, prefix: _Prefix) -> None:
        """Let the bounds before a prefix know what is known of it."""
        while True:
            prefix.log_mass = 0.0 if prefix.is_end else prefix.total()
            if prefix.parent is None:
                return
            prefix.parent.bounds[prefix.slot] = prefix.log_mass
            prefix.parent.cumulative = None
            prefix = prefix.parent

    # Several texts side by side

    def smc(
        self, randoms: Sequence[np.random.Generator], particles: int
    ) -> Iterator[list[Generation[Any]] | None]:
        """One text for each source of randomness, from so many particles.

        Yields None after each step of all particles, and the texts last.

        Raises:
            ModelError: No particle came to the end of a text within `max_tokens`.
        """
        random = randoms[0]
        at = [self._root] * particles
        weights = np.zeros(particles)
        estimate = 0.0
        while not all(prefix.is_end for prefix in at):
            places: dict[int, list[int]] = {}
            for place, prefix in enumerate(at):
                if not prefix.is_end and weights[place] > -np.inf:
                    places.setdefault(id(prefix), []).append(place)
            groups = sorted(places.values(), key=lambda group: self._tokens(at[group[0]]))
            for group in groups:
                self._move(at, weights, group, random)
                yield None
            total = float(np.logaddexp.reduce(weights))
            if total == -math.inf:
                raise self._impossible()
            shares = np.exp(weights - total)
            is_going_on = not all(prefix.is_end for prefix in at)
            if is_going_on and 1 / float(np.square(shares).sum()) < particles / 2:
                estimate += total - math.log(particles)
                at = [at[place] for place in _resampled(shares, particles, random)]
                weights = np.zeros(particles)
        total = float(np.logaddexp.reduce(weights))
        shares = np.exp(weights - total)
        chosen = _resampled(shares, len(randoms), random)
        random.shuffle(chosen)
        share, rest = divmod(self.forward_passes, len(randoms))
        texts = [
            _Text(at[place], share + (number < rest)) for number, place in enumerate(chosen)
        ]
        report = SamplingReport(
            method="smc",
            texts=len(texts),
            grammar_logprob=min(0.0, estimate + total - math.log(particles)),
            effective_sample_size=1 / float(np.square(shares).sum()),
            forward_passes=self.forward_passes,
            attempts=particles,
        )
        yield self._generations(texts, report)

    def _move(
        self,
        at: list[_Prefix],
        weights: NDArray[np.float64],
        group: list[int],
        random: np.random.Generator,
    ) -> None:
        """Take the particles at one prefix a step on, to where the grammar leaves a choice."""
        prefix = at[group[0]]
        last = self._ask(prefix)
        forced = 0.0
        step = last
        while step is not prefix:
            forced += step.logprob
            assert step.parent is not None
            step = step.parent
        weights[group] += forced + (0.0 if last.is_end else last.total())
        if last.is_end or not last.logprobs.size:
            for place in group:
                at[place] = last
            return
        for place in group:
            at[place] = self._next(last, last.draw(random))

    # What both ask

    def _tokens(self, prefix: _Prefix) -> list[int]:
        return [one.token_id for one in prefix.path()]

    def _next(self, prefix: _Prefix, slot: int) -> _Prefix:
        """The prefix that is longer by the token at a place."""
        known = prefix.children.get(slot)
        if known is None:
            known = prefix.children[slot] = _Prefix(prefix, slot)
            # Only a stop token ends a text, where there are some.
            if not self._stop_token_ids or known.token_id in self._stop_token_ids:
                with self._clock.stage("mask"):
                    self._go_to(self._tokens(known))
                    known.is_end = self._matcher.is_terminated()
        return known

    def _go_to(self, token_ids: list[int]) -> None:
        """Bring the matcher behind these tokens, all of which it allows."""
        shared = _shared(self._accepted, token_ids)
        if len(self._accepted) > shared:
            self._matcher.rollback(len(self._accepted) - shared)
        for token_id in token_ids[shared:]:
            is_accepted = self._matcher.accept_token(token_id)
            assert is_accepted, "invariant: a token that the mask allows is accepted"
        self._accepted = token_ids

    def _ask(self, prefix: _Prefix) -> _Prefix:
        """Find out the ways on from a prefix, in one forward pass.

        Where the grammar leaves no choice, those from the next ones, too, up to one that has a
        choice, or ends. Returns the last.
        """
        asked: list[tuple[_Prefix, NDArray[np.intp], Sampling]] = []
        while prefix.token_ids is None and not prefix.is_end:
            with self._clock.stage("mask"):
                self._go_to(self._tokens(prefix))
                allowed = self._allowed(prefix)
                temperature = self._matcher.temperature
            sampling = self._sampling
            if temperature is not None:
                sampling = replace(sampling, temperature=temperature)
            prefix.token_ids, prefix.allowed = allowed.astype(np.int32), allowed.size
            if not allowed.size:
                break
            asked.append((prefix, allowed, sampling))
            if allowed.size > 1 or int(allowed[0]) in self._stop_token_ids:
                break
            # What the model thinks of the one token is filled in below.
            prefix = self._next(prefix, 0)
        if asked:
            rows = self._logits(asked[-1][0], len(asked))
            with self._clock.stage("sampling"):
                for (one, allowed, sampling), row in zip(asked, rows, strict=True):
                    self._fill(one, allowed, sampling, row)
        return prefix

    def _allowed(self, prefix: _Prefix) -> NDArray[np.intp]:
        """The next tokens that the grammar allows; none behind the most tokens."""
        if prefix.depth > self._room:
            return np.zeros(0, np.intp)
        if not self._matcher.fill_next_token_bitmask(self._mask, 0):
            allowed = np.arange(self._vocab_size)
        else:
            bits = np.unpackbits(self._mask.view(np.uint8), bitorder="little")
            allowed = np.flatnonzero(bits[: self._vocab_size])
        if prefix.depth == self._room:
            return allowed[np.isin(allowed, list(self._stop_token_ids))]
        return allowed

    def _logits(self, prefix: _Prefix, rows: int) -> list[NDArray[np.float32]]:
        """The logits after a prefix and those before it: `rows` of shape [width] each."""
        token_ids = self._tokens(prefix)
        with self._clock.stage("model"):
            if self._sequence is None:
                self._sequence = self._model.start(self._prompt_ids)
            first = len(token_ids) - rows + 1
            shared = min(_shared(self._read, token_ids), first)
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

    def _fill(
        self,
        prefix: _Prefix,
        allowed: NDArray[np.intp],
        sampling: Sampling,
        logits: NDArray[np.float32],
    ) -> None:
        """Give a prefix what the model thinks of its next tokens."""
        row = logits[: self._vocab_size]
        written = self._tokens(prefix) if sampling.changes_scores else ()
        try:
            drawn, weights = weights_of(
                row, sampling, prompt_ids=self._prompt_ids, written=written
            )
        except ValueError as error:
            raise ModelError(f"behind {prefix.depth} tokens of the text, {error}") from error
        of_all = np.zeros(row.size)
        if drawn.size:
            of_all[drawn] = weights / weights.sum()
        allowed = allowed[allowed < row.size]
        if prefix.children:  # The one way on, which has its place already.
            kept = allowed
        else:
            kept = allowed[of_all[allowed] > 0]
        prefix.token_ids = kept.astype(np.int32)
        with np.errstate(divide="ignore"):
            prefix.logprobs = np.log(of_all[kept])
        prefix.scores = (row[kept] - np.float32(log_normaliser(row))).astype(np.float32)
        prefix.bounds = np.zeros(kept.size)
        prefix.cumulative = None
        self._kept_bytes += prefix.num_bytes

    def _impossible(self) -> ModelError:
        return ModelError(
            "the model gives a probability of zero to every text of the grammar within "
            f"max_tokens={self._max_tokens}: raise it, or keep more of its tokens (top_k, top_p, "
            "min_p)"
        )

    def _generations(
        self, texts: list[_Text], report: SamplingReport
    ) -> list[Generation[Any]]:
        seconds = (perf_counter() - self._start) / len(texts)
        stages = {name: spent / len(texts) for name, spent in self._clock.seconds.items()}
        info = self._model.tokenizer_info
        prompt = Prompt(
            token_ids=tuple(self._prompt_ids), text=info.decode_bytes(self._prompt_ids)
        )
        found = []
        for text in texts:
            path = text.end.path()
            last = path.pop() if path and path[-1].token_id in self._stop_token_ids else None
            token_ids = tuple(one.token_id for one in path)
            trace = Trace()
            trace.append(prompt)
            for one in path:
                assert one.parent is not None
                trace.append(
                    Sampled(
                        token_id=one.token_id,
                        text=info.decode_bytes([one.token_id]),
                        logprob=float(one.parent.scores[one.slot]),
                        allowed=one.parent.allowed,
                    )
                )
            score = None
            if last is not None:
                assert last.parent is not None
                score = float(last.parent.scores[last.slot])
            trace.append(
                Stopped(
                    reason="stop",
                    token_id=None if last is None else last.token_id,
                    logprob=score,
                    limit=None,
                )
            )
            stats = Stats(
                prompt_tokens=len(self._prompt_ids),
                tokens=len(token_ids),
                forced_tokens=sum(one.parent is not None and one.parent.allowed == 1 for one in path),
                forward_passes=text.passes,
                mask_seconds=stages["mask"],
                model_seconds=stages["model"],
                sampling_seconds=stages["sampling"],
                seconds=seconds,
                seed=self._sampling.seed,
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


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _resampled(
    shares: NDArray[np.float64], count: int, random: np.random.Generator
) -> NDArray[np.intp]:
    """Places drawn by their shares, each as often as expected, rounded up or down (systematic)."""
    points = (random.random() + np.arange(count)) / count
    found = np.searchsorted(np.cumsum(shares), points, side="right")
    return np.minimum(found, shares.size - 1)
