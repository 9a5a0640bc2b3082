"""How probable each of a few texts is: every beginning that some of them share is read once.

One idea: the texts, as the tokenizer writes them, are a trie of tokens. Where it branches, the
model's logits are shared out among the branches, the end of a text being one; where it does not,
nothing is asked. So the numbers are those of drawing under a mask that allows these texts alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stencilm.errors import ModelError
from stencilm.models.protocol import LanguageModel


def probabilities(
    model: LanguageModel, prompt_ids: Sequence[int], texts: Sequence[bytes]
) -> list[float]:
    """The log probability of each text after a prompt, among these texts.

    Args:
        model: The model; it makes one forward pass for each place where texts part.
        prompt_ids: The tokens of the prompt.
        texts: Texts that differ.

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
        scores = [_score(logits, stops if token is None else [token]) for token in branches]
        if None in branches and not stops:
            # A vocabulary without a stop token ends with the first whole text.
            scores = [0.0 if token is None else -np.inf for token in branches]
        total = float(np.logaddexp.reduce(scores))
        if not np.isfinite(total):
            raise ModelError("the model gives a probability of zero, or none, to every text")
        for score, members in zip(scores, branches.values(), strict=True):
            todo.append((members, depth + 1, logprob + score - total))
    return found


def _score(logits: np.typing.NDArray[np.float32], token_ids: Sequence[int]) -> float:
    return float(np.logaddexp.reduce(logits[list(token_ids)].astype(np.float64)))
