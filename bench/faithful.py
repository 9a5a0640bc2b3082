"""How close the frequencies of sampled texts are to the model's own probabilities.

    python -m bench.faithful [--texts 20000] [--seed 1]

For each grammar whose texts can all be listed, and for each sampling method: the total variation
distance between the sampled texts and their probabilities, which are computed along every sequence
of tokens; the forward passes per token; and the estimated probability of the grammar next to the
right one. Each distance includes sampling noise: the last column has the mean distance of
independent texts. At most 1,000 masked texts are sampled.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import stencilm
from stencilm import Choice, GrammarMatcher, Model, Regex
from stencilm.generation.sampling import Sampling, weights_of

PROMPT = "A colour: "
GRAMMARS: list[tuple[str, Any]] = [
    ("red, green, blue", Choice(["red", "green", "blue"])),
    ("a, b, ab", Literal["a", "b", "ab"]),
    ("true, false", bool),
    ("(yes|no|maybe)!?", Regex("(yes|no|maybe)!?")),
    ("[ab]{1,3}", Regex("[ab]{1,3}")),
    ("x{1,6}", Regex("x{1,6}")),
    ("[0-4]", Regex("[0-4]")),
    ("one to four", Literal["one", "two", "three", "four"]),
    ("null or boolean", bool | None),
    ("1 to 9", Regex("[1-9]")),
    ("the (cat|dog)s?", Regex("the (cat|dog)s?")),
    ("[.!?]", Regex("[.!?]")),
    ("(ab|ba)(ab|ba)?", Regex("(ab|ba)(ab|ba)?")),
    ("low, medium, high", Literal["low", "medium", "high"]),
    ("A+, A, B, C", Literal["A+", "A", "B", "C"]),
    ("north, south, east, west", Literal["north", "south", "east", "west"]),
    ("(in)?valid", Regex("(in)?valid")),
    ("[01]{2}", Regex("[01]{2}")),
    ("-?1", Regex("-?1")),
    ('""|"a"|"aa"', Regex('"a{0,2}"')),
]
MAX_TOKENS = 10


class RememberingModel:
    """A model that runs once for each prefix, so that many texts are cheap here."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.tokenizer_info = model.tokenizer_info
        self.context_size = model.context_size
        self.encode = model.encode
        self.known: dict[tuple[int, ...], NDArray[np.float32]] = {}

    def start(self, prompt_ids: Sequence[int]) -> RememberingSequence:
        """A sequence."""
        return RememberingSequence(self, prompt_ids)


class RememberingSequence:
    """A sequence of it."""

    def __init__(self, owner: RememberingModel, prompt_ids: Sequence[int]) -> None:
        self.owner = owner
        self.token_ids = list(prompt_ids)

    @property
    def num_tokens(self) -> int:
        """How many tokens it holds."""
        return len(self.token_ids)

    def crop(self, num_tokens: int) -> None:
        """Keep the first tokens."""
        del self.token_ids[num_tokens:]

    def append(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """The logits after the tokens."""
        self.token_ids += token_ids
        return self._row(len(self.token_ids))

    def append_rows(self, token_ids: Sequence[int], rows: int) -> NDArray[np.float32]:
        """The logits after each of the last tokens."""
        self.token_ids += token_ids
        length = len(self.token_ids)
        return np.array([self._row(upto) for upto in range(length - rows + 1, length + 1)])

    def _row(self, length: int) -> NDArray[np.float32]:
        key = tuple(self.token_ids[:length])
        if key not in self.owner.known:
            self.owner.known[key] = self.owner.model.start(key).append(())
        return self.owner.known[key].copy()


def conditional(
    model: Model,
    output_type: Any,
    sampling: Sampling,
    max_tokens: int = MAX_TOKENS,
    prompt: str = PROMPT,
) -> tuple[dict[str, float], float]:
    """The probability of each text, given that it is one of the grammar, and that of the grammar.

    By brute force: every sequence of tokens that the grammar accepts, with its end.
    """
    matcher = GrammarMatcher(model.compile(output_type))
    info = model.tokenizer_info
    prompt_ids = model.backend.encode(prompt)
    mask = np.zeros((1, -(-info.vocab_size // 32)), np.int32)
    found: dict[str, float] = {}

    def walk(token_ids: list[int], probability: float) -> None:
        matcher.fill_next_token_bitmask(mask)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: info.vocab_size]
        logits = model.backend.start(prompt_ids).append(token_ids)[: info.vocab_size]
        ids, weights = weights_of(logits, sampling)
        weights = weights / weights.sum()
        for token_id, weight in zip(ids, weights, strict=True):
            if not bits[token_id]:
                continue
            if token_id in info.stop_token_ids:
                text = info.decode_str(token_ids)
                found[text] = found.get(text, 0.0) + probability * weight
            elif len(token_ids) < max_tokens:
                assert matcher.accept_token(int(token_id))
                walk([*token_ids, int(token_id)], probability * weight)
                matcher.rollback(1)

    walk([], 1.0)
    total = sum(found.values())
    return {text: probability / total for text, probability in found.items()}, total


def variation(texts: Sequence[str], expected: dict[str, float]) -> float:
    """The total variation distance between sampled texts and the expected ones."""
    counts = Counter(texts)
    assert counts.keys() <= expected.keys(), counts.keys() - expected.keys()
    return 0.5 * sum(abs(counts[text] / len(texts) - share) for text, share in expected.items())


def noise(expected: dict[str, float], texts: int) -> float:
    """The mean total variation distance of `count` independent texts."""
    spreads = (math.sqrt(share * (1 - share) / texts) for share in expected.values())
    return 0.5 * math.sqrt(2 / math.pi) * sum(spreads)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    model = Model(RememberingModel(stencilm.load("tiny").backend))
    print(
        "| Grammar | Texts | exact | smc | masked | passes a token: exact, smc "
        "| Probability | Noise |"
    )
    print("|---|---|---|---|---|---|---|---|")
    worst = {"exact": 0.0, "smc": 0.0}
    for name, output_type in GRAMMARS:
        expected, total = conditional(model, output_type, Sampling(temperature=1.0))
        shown, passes = [], []
        for method in ("exact", "smc", "masked"):
            drawn = model.generate_batch(
                [PROMPT] * (given.texts if method != "masked" else min(given.texts, 1_000)),
                output_type,
                sampling=method,
                temperature=1.0,
                max_tokens=MAX_TOKENS,
                seed=given.seed,
            )
            found = variation([one.text for one in drawn], expected)
            shown.append(f"{found:.4f}")
            if method != "masked":
                tokens = sum(one.stats.tokens for one in drawn)
                passes.append(sum(one.stats.forward_passes for one in drawn) / tokens)
                worst[method] = max(worst[method], found)
                report = drawn[0].sampling
        estimate = report.grammar_probability if report is not None else math.nan
        print(
            f"| `{name.replace('|', chr(92) + '|')}` | {len(expected)} | {' | '.join(shown)} "
            f"| {passes[0]:.4f}, {passes[1]:.4f} | {total:.3g} (smc: {estimate:.3g}) "
            f"| {noise(expected, given.texts):.4f} |",
            flush=True,
        )
    print(f"\nAt most: exact {worst['exact']:.4f}, smc {worst['smc']:.4f}")


if __name__ == "__main__":
    main()
