"""The cost of a step of `model.stream` in a list of n elements: python -m bench.streaming

A model that replays a text writes it under the grammar, with the tokenizer of the embedded model.
So a step is what a user pays besides the model: mask, draw, accept, partial value. Processor time
is divided by the number of steps. All elements are alike, so a step should cost the same in a long
list as in a short one.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pydantic.dataclasses
from numpy.typing import NDArray
from pydantic import AliasChoices, BaseModel, Field, PrivateAttr, RootModel
from typing_extensions import TypedDict

import stencilm
from stencilm import Grammar, JsonSchema, Model, TokenizerInfo
from stencilm.models.protocol import Prompt

RECORD = Path(__file__).parent / "records" / "streaming.md"


class Item(BaseModel):
    name: str = Field(alias="the name")
    size: int
    tags: list[str] = []


class Items(RootModel[list[Item]]):
    pass


class Renamed(BaseModel):
    """Aliases of every kind for the same key."""

    name: str = Field(validation_alias=AliasChoices("the name", "name"))
    size: int = Field(validation_alias="size")
    tags: list[str] = Field([], alias="tags")


@dataclass
class Record:
    name: str
    size: int
    tags: list[str] = field(default_factory=list)


@pydantic.dataclasses.dataclass
class Checked:
    size: int
    name: str = Field(alias="the name")
    tags: list[str] = field(default_factory=list)


class Private(BaseModel):
    name: str
    size: int
    tags: list[str] = []
    _seen: int = PrivateAttr(default=0)

    def model_post_init(self, context: Any) -> None:
        self._seen += 1


class Holder(BaseModel):
    """A list within an object, and one within its elements."""

    title: str = "a title"
    items: list[Item]


class Row(TypedDict):
    name: str
    size: int
    tags: list[str]


class Small(BaseModel):
    kind: Literal["small"]
    size: int


class Large(BaseModel):
    kind: Literal["large"]
    name: str


Either = Annotated[Small | Large, Field(discriminator="kind")]


ITEM = {"the name": "a name", "size": 17, "tags": ["one", "two"]}
PLAIN = {"name": "a name", "size": 17, "tags": ["one", "two"]}
OF_OBJECTS = {"type": "array", "items": {"type": "object"}}

# A type, an element of its list, and a function that makes a whole text from elements.
TYPES: dict[str, tuple[Any, Any, Callable[[list[Any]], Any]]] = {
    "list[int]": (list[int], 12345, list),
    "list[Item]": (list[Item], ITEM, list),
    "RootModel of list[Item]": (Items, ITEM, list),
    "list of models with aliases": (list[Renamed], ITEM, list),
    "list of dataclasses": (list[Record], PLAIN, list),
    "list of pydantic's dataclasses": (
        list[Checked], {"size": 17, "the name": "a name", "tags": ["one", "two"]}, list,
    ),
    "list of models with private attributes": (list[Private], PLAIN, list),
    "model with a list[Item]": (Holder, ITEM, lambda all: {"title": "t", "items": all}),
    "tuple[Item, ...]": (tuple[Item, ...], ITEM, list),
    "list of tuples": (list[tuple[int, str]], [17, "a name"], list),
    "list of TypedDicts": (list[Row], PLAIN, list),
    "list of tagged unions": (list[Either], {"kind": "large", "name": "a name"}, list),
    "dict[str, Item]": (
        dict[str, Item], ITEM, lambda all: {f"key {number}": one for number, one in enumerate(all)},
    ),
    "JsonSchema": (JsonSchema(OF_OBJECTS), ITEM, list),
    "Grammar of a schema": (Grammar.from_json_schema(OF_OBJECTS), ITEM, list),
    "Grammar of a type": (Grammar.from_type(list[Item]), ITEM, list),
}  # fmt: skip


class Replay:
    """A model that writes one text, whatever the prompt."""

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


def microseconds(
    info: TokenizerInfo,
    output_type: Any,
    element: Any,
    whole: Callable[[list[Any]], Any],
    count: int,
) -> float:
    """CPU time for each step of a stream of `count` elements."""
    text = json.dumps(whole([element] * count))
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
    for name, (output_type, element, whole) in TYPES.items():
        microseconds(info, output_type, element, whole, 10)  # what is made once
        # Sizes take turns, and the least of the rounds is the least disturbed one.
        rounds = [
            [microseconds(info, output_type, element, whole, size) for size in options.sizes]
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
