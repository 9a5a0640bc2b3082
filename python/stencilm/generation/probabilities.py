"""The probabilities of a few texts: every common prefix is read once.

One idea: the texts, in the tokenizer's spelling, form a trie of tokens. Where it branches, the
model's probabilities are divided among the branches, one of which may be the end of a text;
elsewhere the model is not asked. So the result is that of sampling under a mask that allows only
these texts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stencilm.errors import ModelError
from stencilm.generation.sampling import finite_scores
from stencilm.models.protocol import LanguageModel


def probabilities(
    model: LanguageModel, prompt_ids: Sequence[int], texts: Sequence[bytes]
) -> list[float]:
    """The log probability of each text after a prompt, among these texts.

    Args:
        model: The model; it runs one forward pass for each branching of the texts.
        prompt_ids: The tokens of the prompt.
        texts: Distinct texts.

    Raises:
        ModelError: The logits hold NaN, or give every text the probability zero.
    """
    info = model.tokenizer_info
    stops = list(info.stop_token_ids)
    spelled = [tuple(info.tokenize_bytes(text)) for text in texts]
    found = [-np.inf] * len(texts)
    sequence = model.start(prompt_ids)
    read: tuple[int, ...] = ()
    todo: list[tuple[list[int], int, float]] = [(list(range(len(texts))), 0, 0.0)]
    while todo:
        group, depth, logprob = todo.pop()
        if len(group) == 1:
            found[group[0]] = logprob
            continue
        if logprob == -np.inf:  # all texts with this prefix are impossible
            continue
        branches: dict[int | None, list[int]] = {}
        for number in group:
            tokens = spelled[number]
            branches.setdefault(tokens[depth] if depth < len(tokens) else None, []).append(number)
        if len(branches) == 1 and None not in branches:
            todo.append((group, depth + 1, logprob))
            continue
        if len(branches) == 1:
            raise ModelError("two texts are spelled by the same tokens, so no model tells them")
        prefix = spelled[group[0]][:depth]
        shared = 0
        while shared < min(len(read), len(prefix)) and read[shared] == prefix[shared]:
            shared += 1
        sequence.crop(len(prompt_ids) + shared)
        logits = sequence.append(prefix[shared:])
        read = prefix
        ways = [stops if token is None else [token] for token in branches]
        if None in branches and not stops:
            # Without a stop token, generation ends with the first complete text.
            shares = [0.0 if token is None else -np.inf for token in branches]
        else:
            shares = _shares(logits, ways)
        for share, members in zip(shares, branches.values(), strict=True):
            todo.append((members, depth + 1, logprob + share))
    return found


def _shares(logits: NDArray[np.float32], ways: Sequence[Sequence[int]]) -> list[float]:
    """The log probability of each of these branches, given as its possible first tokens."""
    scores = logits[[token_id for way in ways for token_id in way]].astype(np.float64)
    if np.isnan(scores).any():
        raise ModelError("the logits hold NaN for the texts, so none has a probability")
    top = scores.max()
    if top == -np.inf:
        raise ModelError("the model gives a probability of zero to every text")
    # Relative to the highest score: next to a large one, small differences would be lost.
    scores = finite_scores(scores) if top == np.inf else scores - top
    ends = np.cumsum([len(way) for way in ways])[:-1]
    sums = [float(np.logaddexp.reduce(part)) for part in np.split(scores, ends)]
    total = float(np.logaddexp.reduce(sums))
    return [each - total for each in sums]
