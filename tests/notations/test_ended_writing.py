"""Grammars written as text while signals come: their handlers run in its midst, and end it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from stencilm import Grammar

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no such timers here")

EVERY = 0.001
"""Seconds between two signals; the handlers are looked for less often."""


class _Ended(Exception):
    pass


@contextmanager
def signals(handler: Callable[[], None]) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, lambda *_: handler())
    try:
        signal.setitimer(signal.ITIMER_REAL, EVERY, EVERY)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


WRITE: dict[str, Callable[[Grammar], object]] = {
    "EBNF": str,
    "JSON": lambda grammar: grammar.serialize_json(),
}


@pytest.fixture(scope="module")
def grammar() -> Grammar:
    text = "".join(chr(97 + (number * number // 7) % 26) for number in range(150_000))
    return Grammar.from_ebnf(f'root ::= Substring("{text}")')


@pytest.mark.parametrize("how", WRITE)
def test_handlers_run_while_a_grammar_is_written(how: str, grammar: Grammar) -> None:
    write = WRITE[how]
    whole, ticks = write(grammar), 0

    def count() -> None:
        nonlocal ticks
        ticks += 1

    with signals(count):
        before = ticks
        again = write(grammar)
        during = ticks - before
    # One that is only looked for when the text is written would run once at most.
    assert during > 1
    assert again == whole


@pytest.mark.parametrize("how", WRITE)
def test_a_handler_that_raises_ends_it(how: str, grammar: Grammar) -> None:
    ticks = 0

    def end() -> None:
        nonlocal ticks
        ticks += 1
        if ticks == 2:
            raise _Ended

    with pytest.raises(_Ended), signals(end):
        WRITE[how](grammar)
    assert WRITE[how](grammar) == WRITE[how](grammar)
