"""The corpus as an endless, seeded stream of examples, with a part of all prompts held out for good.

A prompt is held out by its own checksum, so training and evaluation agree without sharing a list.
"""

import random
import zlib
from collections.abc import Iterator

from training.prompts import FAMILIES, Example

HELD_OUT_IN = 20
"""One prompt in so many is never trained on."""
WITHOUT_HELD_OUT = ("n_keys", "scalar", "bare", "sentence")
"""Families with a handful of prompts, all of which are trained on; only their answers vary."""


def is_held_out(example: Example) -> bool:
    if example.family in WITHOUT_HELD_OUT:
        return False
    return zlib.crc32(example.prompt.encode()) % HELD_OUT_IN == 7


def examples(seed: int) -> Iterator[Example]:
    """All examples of a seed, held out or not."""
    rng = random.Random(seed)
    families, weights = list(FAMILIES), list(FAMILIES.values())
    while True:
        yield rng.choices(families, weights=weights)[0](rng)


def training_examples(seed: int) -> Iterator[Example]:
    return (example for example in examples(seed) if not is_held_out(example))


def held_out_examples(seed: int, family: str, count: int) -> list[Example]:
    """So many examples of one family, with different prompts that training never sees."""
    found: dict[str, Example] = {}
    for tried, example in enumerate(examples(seed)):
        if example.family == family and is_held_out(example):
            found.setdefault(example.prompt, example)
        if len(found) == count or tried > 400_000:
            break
    return list(found.values())
