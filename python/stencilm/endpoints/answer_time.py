"""How long an answer is read: what a client's timeout does not bound.

One idea: a client's timeout is for each read, so an endpoint that keeps sending something, such as
spaces, reasoning or comments, never exceeds it. An answer has its own time limit, after which what
has come is all of it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import copy_context
from threading import Thread, Timer
from time import perf_counter
from typing import Any

_GRACE = 1.0
"""Seconds after which a stream that shows nothing is closed: the client's timeout comes first."""


class AnswerTime:
    """The time of one answer.

    Args:
        seconds: How long it may take from now on; None for no end.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._started = perf_counter()
        self._is_over = False

    def check(self) -> None:
        """Raise TimeoutError where the time is over."""
        left = self._left()
        if left is not None and left <= 0:
            raise self._late()

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self._is_over

    def reason_for(self, error: Exception) -> Exception:
        """Why a stream ended: its time was over, or else the error that it ended with."""
        return self._late() if self._is_over else error

    def begun(self, begin: Callable[[], Any]) -> Any:
        """What a call of the library gives, which is waited for no longer than is left.

        Looking up an address, the header of a response and the pause before the next try of the
        library have no end that it could be told, and nothing to close from outside. So the call is
        made in a thread of its own. Where it takes too long it is left there, and what it gives
        later is closed.

        Raises:
            TimeoutError: The time is over.
            Exception: What the call raises.
        """
        left = self._left()
        if left is None:
            return begin()
        answer: Future[Any] = Future()

        def call() -> None:
            try:
                answer.set_result(begin())
            except BaseException as error:  # whatever it is, it is raised where it is waited for
                answer.set_exception(error)

        Thread(target=copy_context().run, args=(call,), daemon=True).start()
        is_begun = False
        try:
            is_begun = bool(wait([answer], max(left, 0) + _GRACE).done)
        finally:  # also where an interruption ends the waiting
            if not is_begun:
                self._is_over = True
                answer.add_done_callback(_close)
        if not is_begun:
            raise self._late()
        return answer.result()

    @contextmanager
    def closing(self, stream: Any) -> Iterator[None]:
        """Close the stream at the end, where it can be closed, and soon after its time is over."""
        close = getattr(stream, "close", None)
        if close is None or inspect.iscoroutinefunction(close):
            yield
            return

        def end() -> None:
            self._is_over = True
            close()  # what waits for more of it gets an error, or nothing

        left = self._left()
        timer = None if left is None else Timer(left + _GRACE, end)
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
            close()

    @asynccontextmanager
    async def awaiting(self) -> AsyncIterator[None]:
        """Raise TimeoutError where what is awaited within takes longer than is left."""
        left = self._left()
        if left is None or not _is_in_asyncio():
            yield
            return
        limit = asyncio.timeout(left + _GRACE)
        try:
            async with limit:
                yield
        except TimeoutError as error:
            if limit.expired():
                raise self._late() from error
            raise

    async def parts(self, stream: AsyncIterable[Any]) -> AsyncGenerator[Any, None]:
        """The parts of a stream; each is waited for within what is left."""
        parts = aiter(stream)
        while True:
            async with self.awaiting():
                try:
                    part = await anext(parts)
                except StopAsyncIteration:
                    return
            yield part

    def _left(self) -> float | None:
        return None if self._seconds is None else self._started + self._seconds - perf_counter()

    def _late(self) -> TimeoutError:
        self._is_over = True
        return TimeoutError(
            f"the answer did not end within the {self._seconds:.3g} seconds that were left for it"
        )


def _close(answer: Future[Any]) -> None:
    """Close an answer for which nobody waits any more."""
    close = None if answer.exception() else getattr(answer.result(), "close", None)
    if close is not None:
        with suppress(Exception):  # which nobody could be told
            close()


def _is_in_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # another library's loop, which knows no `asyncio.timeout`
        return False
    return True
