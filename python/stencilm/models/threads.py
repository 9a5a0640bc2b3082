"""Small models run on one thread: synchronising with a second one costs more than it saves.

Measured with the embedded model (3 million parameters, CPU of two cores, one of them busy with
other work; `model_seconds / forward_passes` of the person example, 3 texts each): two threads 19 to
250 ms for a token, one thread 2.2 to 5.0 ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

SMALL_MODEL = 20_000_000
"""The most parameters of a small model."""

_lock = Lock()
_inside = 0  # callers in `one_thread` now; the last one to leave restores the number
_threads_outside = 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one torch thread per operation for the duration of the body, then the previous number."""
    global _inside, _threads_outside
    with _lock:
        if _inside == 0:
            _threads_outside = torch.get_num_threads()
            torch.set_num_threads(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                torch.set_num_threads(_threads_outside)
