"""Masks of a batch for logits on a GPU: whole masks are sent, or patches of rows kept there.

    python -m bench.device_rows --rows 32 256 1024 --threads 8

Sequences are at random positions of valid instances of 64 grammars, and their masks are cached. A
step finds the masks, brings them to the GPU and masks the logits there; its time ends when the GPU
has finished. "Host" is the part of a step that occupies the program's thread while the GPU is busy
with other work; it is less than all, because nothing is waited for. For each figure the median of
all rounds counts. If xgrammar is installed, its kernel masks the same logits with the same masks.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from stencilm import TokenizerInfo, apply_token_bitmask_inplace
from stencilm.bitmask.rows import MaskRows, _Torch

from .batches import Calls, sequences
from .forced_tokens import SHARED

# Cycles for which the GPU is kept busy while the host's time is measured; some ten milliseconds.
BUSY_CYCLES = 20_000_000


def median(
    call: Callable[[], object], rounds: int, before: Callable[[], object] | None = None
) -> float:
    """The microseconds of a call until the GPU has finished."""
    times = []
    for _ in range(rounds):
        if before is not None:
            before()
        torch.cuda.synchronize()
        begun = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1e6


def on_host(call: Callable[[], object], rounds: int) -> float:
    """The microseconds for which a call occupies the program's thread while the GPU is busy."""
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        torch.cuda._sleep(BUSY_CYCLES)
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    torch.cuda.synchronize()
    return statistics.median(times) * 1e6


def on_device(call: Callable[[], object], rounds: int) -> float:
    """The GPU's time for a call in microseconds, by its own clock."""
    times: list[float] = []
    for _ in range(rounds):
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        # So that the call's kernels do not wait for the host.
        torch.cuda._sleep(BUSY_CYCLES // 20)
        begun.record()
        call()
        ended.record()
        torch.cuda.synchronize()
        times.append(begun.elapsed_time(ended))
    return statistics.median(times) * 1e3


class Steps:
    """The ways from a batch to its masked logits."""

    def __init__(self, info: TokenizerInfo, calls: Calls, dtype: Any) -> None:
        self.calls, self.info = calls, info
        rows = len(calls.matchers)
        self.mask = torch.zeros(calls.mask.shape, dtype=torch.int32, pin_memory=True)
        self.filled = self.mask.numpy()
        self.start = torch.randn((rows, info.vocab_size), dtype=torch.float32).to("cuda", dtype)
        self.logits = self.start.clone()
        self.kept = MaskRows(info, "cuda")
        self.kept_by_torch = MaskRows(info, "cuda")
        self.kept_by_torch._rows = _Torch(self.mask.shape[1], "cuda")

    def again(self) -> None:
        self.logits.copy_(self.start)

    def fill(self) -> None:
        self.calls.batch.batch_fill_next_token_bitmask(self.calls.matchers, self.filled)

    def send(self) -> Any:
        return self.mask.to("cuda", non_blocking=True)

    def close(self, bitmask: Any, backend: Any = "auto") -> None:
        apply_token_bitmask_inplace(
            self.logits, bitmask, vocab_size=self.info.vocab_size, backend=backend
        )

    def whole(self) -> None:
        self.fill()
        self.close(self.send())

    def patched(self) -> None:
        self.calls.find()
        self.kept.apply(self.logits, self.calls.patches)

    def patched_by_torch(self) -> None:
        self.calls.find()
        self.close(self.kept_by_torch.bitmask(self.calls.patches), "torch")

    def check(self) -> None:
        """Check that all ways give the same logits as the CPU."""
        expected = self.start.float().cpu().numpy()
        self.fill()
        apply_token_bitmask_inplace(expected, self.filled, vocab_size=self.info.vocab_size)
        for way in (self.whole, self.patched, self.patched_by_torch):
            self.again()
            way()
            assert (self.logits.float().cpu().numpy() == expected).all(), way.__name__


def peer_kernel(steps: Steps, bitmask: Any, rounds: int) -> float | None:
    """The microseconds of xgrammar's kernel, by the GPU's clock."""
    try:
        import xgrammar
    except ImportError:
        return None

    def close() -> None:
        xgrammar.apply_token_bitmask_inplace(steps.logits, bitmask, backend="triton")

    expected = steps.start.clone()
    steps.again()
    close()
    apply_token_bitmask_inplace(expected, bitmask, vocab_size=steps.info.vocab_size)
    assert torch.equal(steps.logits, expected)
    return on_device(close, rounds)


COLUMNS = [
    "fill", "send", "whole", "patches", "by patches", "by torch",
    "host: whole", "host: by patches", "GPU: by patches", "GPU: close", "GPU: close, xgrammar",
]  # fmt: skip


def figures(steps: Steps, rounds: int) -> list[float | None]:
    """A line of the table, in microseconds of a whole batch."""
    steps.check()
    bitmask = steps.send()
    patches = steps.calls.patches
    return [
        median(steps.fill, rounds),
        median(steps.send, rounds),
        median(steps.whole, rounds, steps.again),
        median(steps.calls.find, rounds),
        median(steps.patched, rounds, steps.again),
        median(steps.patched_by_torch, rounds, steps.again),
        on_host(steps.whole, rounds // 4),
        on_host(steps.patched, rounds // 4),
        on_device(lambda: steps.kept.apply(steps.logits, patches), rounds),
        on_device(lambda: steps.close(bitmask), rounds),
        peer_kernel(steps, bitmask, rounds),
    ]


def main() -> None:
    """Print a table with a line for each number of rows and type of logits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[32, 256, 1024])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--tokenizer", default="llama3", choices=["llama3", "gpt2", "mistral-v1"])
    options = parser.parse_args()
    info = TokenizerInfo.from_file(SHARED / "tokenizers" / options.tokenizer)
    started = sequences(info, 0, options.threads)
    print(torch.cuda.get_device_name(), torch.__version__, f"{info.vocab_size} tokens")
    print("| " + " | ".join(["logits", "rows", *COLUMNS]) + " |")
    print("|---|" + "--:|" * (len(COLUMNS) + 1))
    for dtype in options.dtypes:
        for rows in options.rows:
            calls = Calls(info, started, rows, options.threads)
            steps = Steps(info, calls, getattr(torch, dtype))
            found = figures(steps, options.rounds)
            cells = ["" if value is None else f"{value:.0f}" for value in found]
            print("| " + " | ".join([dtype, str(rows), *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
