"""How whole texts were sampled, and what that revealed about the model."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from stencilm.shown import Shown

SamplingMethod: TypeAlias = Literal["masked", "exact", "smc"]
"""How texts are sampled. "masked": token by token, among those that the grammar allows.

"exact" and "smc": with the model's own probabilities of whole texts.
"""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SamplingReport(Shown):
    """How the texts of one call were drawn; all of them have the same report.

    Attributes:
        method: "exact" or "smc".
        texts: How many were drawn.
        grammar_logprob: An estimate of the natural logarithm of the probability that what the model
            writes after the prompt is a text of the grammar, within `max_tokens`.
        effective_sample_size: How many independent texts these are worth. For "exact", all of them;
            for "smc", the square of the sum of the particles' weights over the sum of their
            squares.
        forward_passes: Calls of the model.
        attempts: How many texts were begun, including rejected ones. For "smc", the number of
            particles.

    Examples:
        >>> import stencilm
        >>> model = stencilm.load("tiny")
        >>> colour = stencilm.Choice(["red", "blue"])
        >>> report = model.generate("A colour:", colour, sampling="exact", seed=1).sampling
        >>> report.method, report.texts, report.effective_sample_size, report.grammar_logprob < 0
        ('exact', 1, 1.0, True)
        >>> 0 < report.grammar_probability < 1, report.to_json()["method"]
        (True, 'exact')
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
        """The method and its results, in one line."""
        return (
            f"<{type(self).__name__}: {self.method}, {self.texts:,} texts, probability of the "
            f"grammar {self.grammar_probability:.3g}, effective sample size "
            f"{self.effective_sample_size:,.1f}, {self.forward_passes:,} forward passes>"
        )

    def to_json(self) -> dict[str, Any]:
        """The report as JSON-ready values."""
        return asdict(self)
