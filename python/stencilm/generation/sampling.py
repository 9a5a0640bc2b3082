"""Draws the next token from a row of logits; NumPy only, deterministic for a seed.

One idea: a masked row has few finite entries, so everything after the first pass works on the
remaining tokens and never on the whole vocabulary. That includes penalties and biases: they change
the scores of tokens, but never which of them the grammar allows. Nucleus (top-p) sampling: Holtzman
et al. (2020), "The Curious Case of Neural Text Degeneration".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stencilm.shown import shown_value
from stencilm.whole_numbers import MOST, as_real, as_whole, count, plain, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How to draw a token.

    The grammar's mask comes first, so all of these count allowed tokens only; then the penalties
    and the bias, temperature, top-k, top-p, and min-p. Raises ValueError for a value out of range.

    Attributes:
        temperature: 0 takes the most probable token (the lowest id among equals); above 0 the
            logits are divided by it before the draw.
        top_p: Keep the fewest tokens whose probabilities add up to at least this; 1 keeps all.
        top_k: Keep this many of the most probable tokens; None keeps all.
        min_p: Keep the tokens that are at least this probable, as a part of the probability of the
            most probable one, after the temperature; 0 keeps all.
        repetition_penalty: The logits of tokens that the prompt or the text holds are divided by
            this where they are positive, and multiplied where they are negative; 1 changes nothing.
        frequency_penalty: Taken from a logit as often as the text holds the token.
        presence_penalty: Taken once from the logits of tokens that the text holds.
        logit_bias: Added to the logits of these tokens, by their ids.
        seed: The same seed gives the same tokens; None takes a new one for every sequence.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int | None = None
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict, hash=False)
    seed: int | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.name != "logit_bias":
                object.__setattr__(self, each.name, plain(getattr(self, each.name)))
        if not _is_real(self.temperature) or not 0 <= self.temperature < math.inf:
            raise ValueError(
                f"temperature is {shown(self.temperature)}, but must be a number from 0 (greedy) "
                "upwards"
            )
        if not _is_real(self.top_p) or not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {shown(self.top_p)}, but must be above 0 and at most 1")
        if self.top_k is not None:
            count("top_k", self.top_k, least=1, otherwise=", or None")
        if not _is_real(self.min_p) or not 0 <= self.min_p <= 1:
            raise ValueError(f"min_p is {shown(self.min_p)}, but must be from 0 to 1")
        if not _is_real(self.repetition_penalty) or not 0 < self.repetition_penalty < math.inf:
            raise ValueError(
                f"repetition_penalty is {shown(self.repetition_penalty)}, but must be above 0"
            )
        for name in ("frequency_penalty", "presence_penalty"):
            value = getattr(self, name)
            if not _is_real(value) or not math.isfinite(value):
                raise ValueError(f"{name} is {shown(value)}, but must be a finite number")
        if not isinstance(self.logit_bias, Mapping):
            raise ValueError(
                f"logit_bias is {shown_value(self.logit_bias):.60}, but must be numbers by token "
                "ids"
            )
        for token_id, bias in self.logit_bias.items():
            at = as_whole(token_id)
            is_bias = _is_real(bias) and math.isfinite(bias)
            if at is None or not 0 <= at <= MOST or not is_bias:
                raise ValueError(
                    f"logit_bias has {shown(bias)} for {shown(token_id)}, "
                    "but must give finite numbers by token ids"
                )
        biases = {int(plain(token_id)): plain(bias) for token_id, bias in self.logit_bias.items()}
        object.__setattr__(self, "logit_bias", biases)
        if self.seed is not None and (as_whole(self.seed) is None or self.seed < 0):
            raise ValueError(f"seed is {shown(self.seed)}, but must be an integer from 0 up")

    def check_tokens(self, vocab_size: int) -> None:
        """Raise ValueError if `logit_bias` names a token that a vocabulary does not have."""
        for token_id in self.logit_bias:
            if token_id >= vocab_size:
                raise ValueError(
                    f"logit_bias has a number for the token {shown(token_id)}, but the model's "
                    f"vocabulary has the ids 0 to {vocab_size - 1}"
                )

    @property
    def is_greedy(self) -> bool:
        """Whether the draw needs no randomness."""
        return self.temperature == 0 or self.top_k == 1

    @property
    def changes_scores(self) -> bool:
        """Whether scores are penalised or biased."""
        return bool(
            self.repetition_penalty != 1
            or self.frequency_penalty
            or self.presence_penalty
            or self.logit_bias
        )


def draw(
    logits: NDArray[np.float32],
    sampling: Sampling,
    random: np.random.Generator,
    *,
    prompt_ids: Sequence[int] = (),
    written: Sequence[int] = (),
) -> int | None:
    """Draw one token id from a row of logits; None if every entry is -inf.

    Args:
        logits: float, shape [vocab]; -inf means refused.
        sampling: The options.
        random: The source of randomness.
        prompt_ids: The tokens of the prompt, for the penalties.
        written: The tokens of the text so far, for the penalties.

    Raises:
        ValueError: An entry is NaN.
    """
    token_ids, weights = weights_of(logits, sampling, prompt_ids=prompt_ids, written=written)
    if token_ids.size == 0:
        return None
    if sampling.is_greedy:
        return int(token_ids[0])
    cumulative = np.cumsum(weights)
    # The point is below the last sum, unless rounding lifts it there.
    point = random.random() * cumulative[-1]
    chosen = min(int(np.searchsorted(cumulative, point, side="right")), token_ids.size - 1)
    return int(token_ids[chosen])


def weights_of(
    logits: NDArray[np.float32],
    sampling: Sampling,
    *,
    prompt_ids: Sequence[int] = (),
    written: Sequence[int] = (),
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The tokens that may be drawn from a row of logits, with their weights.

    Args:
        logits: float, shape [vocab]; -inf means refused.
        sampling: The options.
        prompt_ids: The tokens of the prompt, for the penalties.
        written: The tokens of the text so far, for the penalties.

    Returns:
        Token ids, ascending, and weights in proportion to their probabilities; both of shape [n].

    Raises:
        ValueError: An entry is NaN.
    """
    if np.isnan(logits).any():
        raise ValueError("the logits hold NaN, so no token can be drawn from them")
    token_ids = np.flatnonzero(logits > -np.inf)
    if token_ids.size == 0:
        return token_ids, np.zeros(0)
    scores = logits[token_ids].astype(np.float64)
    if sampling.changes_scores:
        _change(scores, token_ids, sampling, prompt_ids, written)
    if sampling.is_greedy:
        # argmax takes the first, that is the lowest id
        return token_ids[[np.argmax(scores)]], np.ones(1)
    scores = _tempered(scores, sampling.temperature)
    if sampling.top_k is not None and sampling.top_k < scores.size:
        kept = _best(scores, sampling.top_k)
        token_ids, scores = token_ids[kept], scores[kept]
    weights = np.exp(scores)
    if sampling.top_p < 1:
        kept = _nucleus(weights, sampling.top_p)
        token_ids, weights = token_ids[kept], weights[kept]
    if sampling.min_p > 0:
        likely = weights >= sampling.min_p * weights.max()
        token_ids, weights = token_ids[likely], weights[likely]
    return token_ids, weights


def _change(
    scores: NDArray[np.float64],
    token_ids: NDArray[np.intp],
    sampling: Sampling,
    prompt_ids: Sequence[int],
    written: Sequence[int],
) -> None:
    """Penalise and bias the scores of these tokens, in place; `token_ids` are ascending."""

    def places(of: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        found = np.minimum(np.searchsorted(token_ids, of), token_ids.size - 1)
        return found, token_ids[found] == of

    if sampling.repetition_penalty != 1:
        seen = np.unique(np.array([*prompt_ids, *written], dtype=np.int64))
        at, is_here = places(seen)
        at = at[is_here]
        penalty = sampling.repetition_penalty
        scores[at] = np.where(scores[at] > 0, scores[at] / penalty, scores[at] * penalty)
    if sampling.frequency_penalty or sampling.presence_penalty:
        seen, counts = np.unique(np.array(written, dtype=np.int64), return_counts=True)
        at, is_here = places(seen)
        scores[at[is_here]] -= (
            float(sampling.frequency_penalty) * counts[is_here] + sampling.presence_penalty
        )
    if sampling.logit_bias:
        biased = np.array(list(sampling.logit_bias), dtype=np.int64)
        biases = np.array(list(sampling.logit_bias.values()), dtype=np.float64)
        at, is_here = places(biased)
        scores[at[is_here]] += biases[is_here]


class Normaliser:
    """Converts the logits of one row to log probabilities.

    Tokens with the logit +inf share all of the probability, as they do in a draw.

    Args:
        logits: float32, shape [vocab].
    """

    __slots__ = ("_log_sum", "_top")

    def __init__(self, logits: NDArray[np.float32]) -> None:
        self._top = float(logits.max())
        self._log_sum = 0.0
        if self._top > -np.inf:
            self._log_sum = math.log(float(np.exp(self._below(logits)).sum()))

    def logprob(self, logit: float) -> float:
        """The log probability of a token with this logit."""
        return float(self.logprobs(np.float64(logit)))

    def logprobs(self, logits: Any) -> NDArray[Any]:
        """The log probabilities of tokens with these logits: the same type and shape [n]."""
        return np.asarray(self._below(logits) - logits.dtype.type(self._log_sum))

    def _below(self, logits: Any) -> Any:
        """Logits relative to the highest: next to a large one, small differences would be lost."""
        if self._top == np.inf:
            return finite_scores(logits)
        if not math.isfinite(self._top):
            return logits
        with np.errstate(over="ignore"):  # far below the highest it becomes -inf, as it should
            return logits - logits.dtype.type(self._top)


def finite_scores(scores: NDArray[Any]) -> NDArray[Any]:
    """Scores in which those of +inf are equal, and all others impossible; the same shape."""
    return np.where(scores == np.inf, 0, -np.inf).astype(scores.dtype)


def _tempered(scores: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """Scores over temperature, with the highest at 0 so that no exp overflows."""
    top = scores.max()
    if top == np.inf:
        return finite_scores(scores)
    with np.errstate(over="ignore"):  # a tiny temperature drives far scores to -inf, as it should
        return np.asarray((scores - top) / temperature, dtype=np.float64)


def _best(scores: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """Positions of the `count` highest scores, in order; the lowest positions among equals."""
    threshold = np.partition(scores, -count)[-count]
    above = np.flatnonzero(scores > threshold)
    equal = np.flatnonzero(scores == threshold)[: count - above.size]
    return np.sort(np.concatenate([above, equal]))


def _nucleus(weights: NDArray[np.float64], top_p: float) -> NDArray[np.intp]:
    """Positions of the fewest heaviest weights that hold `top_p` of the total, heaviest first."""
    order = np.argsort(-weights, kind="stable")
    cumulative = np.cumsum(weights[order])
    enough = int(np.searchsorted(cumulative, top_p * cumulative[-1], side="left")) + 1
    return order[:enough]


def _is_real(value: object) -> bool:
    real = as_real(value)
    return real is not None and (math.isfinite(real) or isinstance(value, float))
