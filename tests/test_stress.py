"""Threads, signals and garbage collection on one vocabulary: they answer as one thread does.

A short run of `python -m bench.stress`, which also says how long calls stood still.
"""

from __future__ import annotations

from pathlib import Path

import stencilm
from bench.stress import Run, alone
from stencilm import TokenizerInfo

JOBS = 40
SECONDS = 4.0


def test_threads_answer_as_one_thread_does() -> None:
    folder = Path(stencilm.__file__).parent / "tiny"
    expected = alone(JOBS, TokenizerInfo.from_file(folder))
    assert sum(":" not in found for found in expected) > JOBS // 2, "most jobs have an answer"
    # A vocabulary of its own, of which nothing is known yet.
    outcome = Run(TokenizerInfo.from_file(folder), expected, seed=1)(threads=4, seconds=SECONDS)
    assert not outcome.wrong
    assert outcome.done > 0
