"""What a step of `model.stream` costs in a list of n elements: python -m bench.streaming

A model that knows its text writes it under the grammar, with the tokenizer of the embedded model,
so that a step is what a user pays beside the model: mask, draw, accept, partial value. The seconds
of the processor are divided by the steps; the elements are all alike, so a step should cost the
same in a long list as in a short one.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, RootModel

import stencilm
from stencilm import JsonSchema, Model, TokenizerInfo
from stencilm.models.protocol import Prompt

RECORD = Path(__file__).parent / "records" / "streaming.md"


class Item(BaseModel):
    name: str = Field(alias="the name")
    size: int
    tags: list[str] = []


class Items(RootModel[list[Item]]):
    pass


ITEM = {"the name": "a name", "size": 17, "tags": ["one", "two"]}
TYPES: dict[str, tuple[Any, Any]] = {
    "list[int]": (list[int], 12345),
    "list[Item]": (list[Item], ITEM),
    "RootModel of list[Item]": (Items, ITEM),
    "tuple[Item, ...]": (tuple[Item, ...], ITEM),
    "JsonSchema": (JsonSchema({"type": "array", "items": {"type": "object"}}), ITEM),
}


class Replay:
    """A model that writes one text, whatever it is asked."""

    context_size = None

    def __init__(self, info: TokenizerInfo, text: str) -> None:
        self.tokenizer_info = info
        self._wanted = [*info.tokenize_bytes(text.encode()), info.stop_token_ids[0]]
        self._row = np.zeros(info.vocab_size, dtype=np.float32)

    def encode(self, prompt: Prompt) -> list[int]:
        return [0]

    def start(self, prompt_ids: Sequence[int]) -> ReplaySequence:
        return ReplaySequence(self._row, self._wanted)


class ReplaySequence:
    def __init__(self, row: NDArray[np.float32], wanted: list[int]) -> None:
        self._row, self._wanted, self.num_tokens = row, wanted, 1

    def append(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        self.num_tokens += len(token_ids)
        row = self._row.copy()
        row[self._wanted[self.num_tokens - 1]] = 9.0
        return row

    def crop(self, num_tokens: int) -> None:
        self.num_tokens = num_tokens


def microseconds(info: TokenizerInfo, output_type: Any, element: Any, count: int) -> float:
    """CPU time for each step of a stream of so many elements."""
    text = json.dumps([element] * count)
    model = Model(Replay(info, text))
    model.compile(output_type)
    start = time.process_time()
    shown = sum(1 for _ in model.stream("", output_type, max_tokens=1 << 20))
    spent = time.process_time() - start
    steps = len(info.tokenize_bytes(text.encode()))
    assert shown > count, "every element is shown"
    return spent / steps * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.streaming", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 400, 1600])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", action="store_true", help=f"keep the table in {RECORD.name}")
    options = parser.parse_args()
    info = TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
    small, large = min(options.sizes), max(options.sizes)
    head = " | ".join(f"{size:,}" for size in options.sizes)
    lines = [
        f"| µs of the processor for a step, by elements | {head} | {large:,} to {small:,} |",
        f"|---|{'--:|' * (len(options.sizes) + 1)}",
    ]
    for name, (output_type, element) in TYPES.items():
        microseconds(info, output_type, element, 10)  # what is made once
        # Sizes take turns, and the least of the rounds is what was disturbed least.
        rounds = [
            [microseconds(info, output_type, element, size) for size in options.sizes]
            for _ in range(options.rounds)
        ]
        best = [min(each) for each in zip(*rounds, strict=True)]
        ratio = best[options.sizes.index(large)] / best[options.sizes.index(small)]
        numbers = " | ".join(f"{one:.0f}" for one in best)
        lines.append(f"| `{name}` | {numbers} | {ratio:.2f} |")
    table = "\n".join(lines)
    print(table)
    if options.record:
        RECORD.write_text(
            "# A step of a stream\n\n"
            f"`python -m bench.streaming --rounds {options.rounds}` on {platform.machine()}, "
            f"Python {platform.python_version()}.\n\n{table}\n",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
