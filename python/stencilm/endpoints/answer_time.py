"""The time limit of a whole answer, which a client's timeout does not provide.

One idea: a client's timeout applies to each read, so an endpoint that keeps sending something, such
as spaces, reasoning or comments, never exceeds it. So an answer has a time limit of its own; after
that, the part that has arrived is the answer.
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
"""Additional seconds before a silent stream is closed, so that the client's timeout comes first."""


class AnswerTime:
    """The time limit of one answer.

    Args:
        seconds: How long it may take from now on; None for no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._started = perf_counter()
        self._is_over = False

    def check(self) -> None:
        """Raise TimeoutError if the time is over."""
        left = self._left()
        if left is not None and left <= 0:
            raise self._late()

    @property
    def is_over(self) -> bool:
        """Whether the answer is no longer waited for."""
        return self._is_over

    def reason_for(self, error: Exception) -> Exception:
        """Why a stream ended: its time was over, or else the given error."""
        return self._late() if self._is_over else error

    def begun(self, begin: Callable[[], Any]) -> Any:
        """Call the library, and wait for the result no longer than the remaining time.

        Looking up an address, the header of a response and the pause before the library's next try
        have no timeout that could be set, and nothing that could be closed from outside. So the
        call is made in a separate thread. If it takes too long, the thread is abandoned, and its
        later result is closed.

        Raises:
            TimeoutError: The time is over.
            Exception: The call raises it.
        """
        left = self._left()
        if left is None:
            return begin()
        answer: Future[Any] = Future()

        def call() -> None:
            try:
                answer.set_result(begin())
            except BaseException as error:  # any exception is raised in the waiting thread
                answer.set_exception(error)

        Thread(target=copy_context().run, args=(call,), daemon=True).start()
        is_begun = False
        try:
            is_begun = bool(wait([answer], max(left, 0) + _GRACE).done)
        finally:  # also if the wait is interrupted
            if not is_begun:
                self._is_over = True
                answer.add_done_callback(_close)
        if not is_begun:
            raise self._late()
        return answer.result()

    @contextmanager
    def closing(self, stream: Any) -> Iterator[None]:
        """Close the stream at the end, if it can be closed, and soon after its time is over."""
        close = getattr(stream, "close", None)
        if close is None or inspect.iscoroutinefunction(close):
            yield
            return

        def end() -> None:
            self._is_over = True
            close()  # a read in progress gets an error, or the end

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
        """Raise TimeoutError if the body takes longer than the remaining time."""
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
        """The parts of a stream; each is waited for within the remaining time."""
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
    """Close an answer that is no longer waited for."""
    close = None if answer.exception() else getattr(answer.result(), "close", None)
    if close is not None:
        with suppress(Exception):  # nobody could be told of it
            close()


def _is_in_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # another library's loop, which has no `asyncio.timeout`
        return False
    return True
