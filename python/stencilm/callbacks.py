"""Functions of the caller, which run in the middle of generators and coroutines of this package.

One idea: an exception of such a function reaches the caller as it is. Only StopIteration and
StopAsyncIteration cannot: to whatever runs the function they say that it has ended. These become
the cause of a RuntimeError that names the function.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any


def raised(error: Exception) -> Exception:
    """What was raised: Python itself reports the StopIteration of a generator or a coroutine."""
    cause = error.__cause__
    is_report = isinstance(error, RuntimeError) and str(error).endswith("raised StopIteration")
    return cause if is_report and isinstance(cause, StopIteration) else error


def passed_on(error: BaseException, called: str) -> BaseException:
    """An exception of a function of the caller, in the form in which it is passed on.

    Args:
        error: The exception.
        called: What the function is called in messages.
    """
    if isinstance(error, Exception):
        error = raised(error)
    if not isinstance(error, (StopIteration, StopAsyncIteration)):
        return error
    reported = RuntimeError(f"{called} raises {type(error).__name__}")
    reported.__cause__ = error
    return reported


async def awaited(value: Awaitable[Any], called: str) -> Any:
    """What a function of the caller gives once it is awaited; its exceptions are passed on."""
    try:
        return await value
    except (RuntimeError, StopAsyncIteration) as error:
        failure = passed_on(error, called)
    raise failure


def guarded(function: Callable[..., Any], called: str) -> Callable[..., Any]:
    """The function, whose exceptions are passed on."""

    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except (StopIteration, StopAsyncIteration) as error:
            raise passed_on(error, called) from error

    return call
