"""Threads, signals and garbage collection on one vocabulary: they answer as one thread does.

A short run of `python -m bench.stress`, which also says how long calls stood still.
"""

from __future__ import annotations

import functools
import itertools
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Annotated

import pytest
from pydantic import Field

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


def interrupted(work: Callable[[], object], step: int) -> bool:
    """Does some work, in whose midst an exception comes where the handler of a signal may raise.

    That is at the beginning of a function, and after one of C. Gives whether there are so many.
    """
    left = step

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal left
        left -= event in ("call", "c_return")
        if left == 0:
            left = -1
            raise _Interrupted

    sys.setprofile(profile)
    try:
        work()
    except _Interrupted:
        pass
    finally:
        sys.setprofile(None)
    return left < 0


def test_a_cache_of_grammars_goes_on_wherever_a_handler_has_raised() -> None:
    info = TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
    size = GrammarCompiler(info).compile_regex("[a-z]00000").memory_size_bytes
    # Some are dropped, too.
    compiler, numbers = GrammarCompiler(info, cache_limit_bytes=6 * size), itertools.count()
    for name in ("is new", "is known"):
        step, goes_on = 0, True
        while goes_on:
            step += 1
            pattern = f"[a-z]{next(numbers):05}"
            if name == "is known":
                compiler.compile_regex(pattern)
            goes_on = interrupted(functools.partial(compiler.compile_regex, pattern), step)
            for other in (pattern, "[0-9]{3}", f"[a-f]{next(numbers):05}"):
                assert compiler.compile_regex(other) is compiler.compile_regex(other), (name, step)
            assert 0 < compiler.get_cache_size_bytes() <= 6 * size, (name, step)
        assert step > 20


def test_models_keep_their_types_wherever_a_handler_has_raised() -> None:
    model = stencilm.load("tiny")
    for limits in (None, stencilm.Limits(schema_bytes=999)):
        prepare = functools.partial(model._prepare, Annotated[int, Field(ge=0, le=9)], limits)
        prepare()
        step, goes_on = 0, True
        while goes_on:
            step += 1
            goes_on = interrupted(prepare, step)
            assert prepare()[1] is prepare()[1], step
        assert step > 5


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
