"""Calls that run in a thread while a coroutine waits for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """`asyncio.to_thread`, also for functions that raise StopIteration.

    A future cannot hold a StopIteration, so its waiter would wait forever. It becomes a
    RuntimeError, as Python does in a coroutine function.
    """
    from asyncio import to_thread

    def call() -> T:
        try:
            return function(*arguments, **named)
        except StopIteration as stopped:
            raise RuntimeError("coroutine raised StopIteration") from stopped

    return await to_thread(call)
