"""Times of single calls, and the cost of timing itself."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

# If a process was off the processor for longer than this during a call, the call's CPU time counts:
# on a shared machine, the tail would otherwise measure the scheduler.
STOLEN_NS = 20_000


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """The microseconds of one call, and its result."""
    cpu = time.thread_time_ns()
    start = time.perf_counter_ns()
    result = call(*arguments)
    wall = time.perf_counter_ns() - start
    cpu = time.thread_time_ns() - cpu
    return (wall if wall - cpu <= STOLEN_NS else cpu) / 1000, result


def mean_of_loop(call: Callable[..., Any], items: Iterable[Any]) -> float:
    """Mean microseconds of a call over items, including the loop: for calls too short to time."""
    items = list(items)
    cpu = time.thread_time_ns()
    start = time.perf_counter_ns()
    for item in items:
        call(item)
    wall = time.perf_counter_ns() - start
    cpu = time.thread_time_ns() - cpu
    return (wall if wall - cpu <= STOLEN_NS else cpu) / 1000 / len(items)


def overheads(vocab_size: int) -> dict[str, float]:
    """The cost of a timed call and of a loop that do nothing, and of copying a row."""
    row = np.full((vocab_size + 31) // 32, -1, dtype=np.int32)
    mask = np.zeros_like(row)

    def nothing(_: Any) -> None:
        return None

    for _ in range(200):
        timed(np.copyto, mask, row)
    return {
        "empty timed call, us": statistics.median(timed(nothing, 0)[0] for _ in range(2000)),
        "empty loop, us a round": mean_of_loop(nothing, range(20_000)),
        "floor: one row copied, us": statistics.median(
            timed(np.copyto, mask, row)[0] for _ in range(2000)
        ),
    }


def summary(name: str, times: list[float]) -> dict[str, float]:
    """Mean, median, 99th percentile and maximum of some times, under this name."""
    if not times:
        return {}
    ordered = sorted(times)
    return {
        f"{name} mean": statistics.fmean(ordered),
        f"{name} p50": ordered[len(ordered) // 2],
        f"{name} p99": ordered[len(ordered) * 99 // 100],
        f"{name} max": ordered[-1],
    }
