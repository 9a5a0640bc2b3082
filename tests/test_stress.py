"""Threads, signals and garbage collection on one vocabulary: they answer as one thread does.

A short run of `python -m bench.stress`, which also says how long calls stood still.
"""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

import stencilm
from bench.stress import Run, alone
from stencilm import GrammarCompiler, TokenizerInfo

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


class _Interrupted(Exception):
    pass


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no such timers here")
def test_a_handler_that_raises_leaves_no_lock_taken() -> None:
    compiler = GrammarCompiler(TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny"))

    rung = False

    def interrupt(*_: object) -> None:
        nonlocal rung
        rung = True
        raise _Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        # Wherever the signal comes, in compiling or in what surrounds it.
        for number in range(300):
            rung = False
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0001 + number * 0.000005)
                # Python drops what is raised within a callback of garbage collection.
                while not rung:
                    compiler.compile_regex(f"[a-z]{{{number}}}")
            except _Interrupted:
                pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    done = threading.Thread(target=compiler.compile_regex, args=("[a-z]{7}",), daemon=True)
    done.start()
    done.join(60)
    assert not done.is_alive(), "another thread waits for a lock that nobody holds"
