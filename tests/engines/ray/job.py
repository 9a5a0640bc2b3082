"""A job on Ray's own local cluster, to be run, killed and run again.

With `--model bytes` its workers run a toy over bytes, which needs no framework; any other name is
one for `stencilm.load`. The summary is written beside the result, as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, Field

import stencilm
import stencilm.ray


class Person(BaseModel):
    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=120)
    tags: list[Literal["red", "green"]] = Field(max_length=2)


class ByteSequence:
    """What a `ByteModel` has read; its logits are drawn from that, so they are always the same."""

    def __init__(self, token_ids: list[int], pause: float) -> None:
        self.token_ids = token_ids
        self.pause = pause

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)

    def append(self, token_ids: Sequence[int]) -> Any:
        self.token_ids.extend(token_ids)
        time.sleep(self.pause)
        random = np.random.Generator(np.random.PCG64(hash(tuple(self.token_ids)) & 0xFFFFFFFF))
        return random.standard_normal(257).astype(np.float32)

    def crop(self, num_tokens: int) -> None:
        del self.token_ids[num_tokens:]


class ByteModel:
    """A model whose tokens are the 256 bytes and a stop token."""

    context_size = 2000

    def __init__(self, pause: float) -> None:
        self.pause = pause
        vocabulary = [bytes([value]) for value in range(256)] + [b"</s>"]
        self.tokenizer_info = stencilm.TokenizerInfo(vocabulary, stop_token_ids=[256])

    def encode(self, prompt: Any) -> list[int]:
        return list(str(prompt).encode())

    def start(self, prompt_ids: Sequence[int]) -> ByteSequence:
        return ByteSequence(list(prompt_ids), self.pause)


def byte_model(pause: float = 0.0) -> stencilm.Model:
    return stencilm.Model(ByteModel(pause))


def prompt_that_may_end_the_worker(marker: Path) -> Any:
    """A prompt that ends the process of the first worker that comes to row 17."""

    def prompt(row: dict[str, Any]) -> str:
        if row["id"] == 17 and not marker.exists():
            marker.touch()
            os._exit(1)
        return f"Describe {row['name']}."

    return prompt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--model", default="bytes")
    parser.add_argument("--engine", default="stencilm")
    parser.add_argument("--options", type=json.loads, default={}, help="of the model, as JSON")
    parser.add_argument("--resume", help="the folder of finished rows")
    parser.add_argument("--out", required=True, help="the folder that the result is written to")
    parser.add_argument("--end-a-worker", type=Path, help="a file that says that it is done")
    given = parser.parse_args()

    import ray

    # Nothing on the machine but the loopback, and no page to look at it.
    ray.init(num_cpus=given.workers, include_dashboard=False, logging_level="ERROR")
    rows = [{"id": number, "name": f"person {number}"} for number in range(given.rows)]
    dataset = ray.data.from_items(rows, override_num_blocks=max(1, given.rows // given.batch))
    worker = stencilm.ray.Generate(
        model=byte_model if given.model == "bytes" else given.model,
        output_type=Person,
        prompt=(
            prompt_that_may_end_the_worker(given.end_a_worker)
            if given.end_a_worker
            else "Describe {name}."
        ),
        engine=given.engine,
        model_options=given.options,
        max_tokens=200,
        key="id",
        resume=given.resume,
    )
    answers = dataset.map_batches(
        worker,
        compute=ray.data.ActorPoolStrategy(size=given.workers),
        num_cpus=1,
        batch_size=given.batch,
    )
    answers.write_parquet(given.out)
    summary = stencilm.ray.summarize(ray.data.read_parquet(given.out))
    # Into a file, because Ray writes to the standard output, too.
    Path(f"{given.out}.json").write_text(json.dumps(asdict(summary)), encoding="utf-8")


if __name__ == "__main__":
    main()
