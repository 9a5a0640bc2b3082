"""What the original and the package that stands in for it are both asked.

`SAME` has one answer for both. `DIFFERENT` is the table of differences in `docs/compat.md`: each
row has what the original answers and what is answered here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

Ask = Callable[[Any], Any]
Package = Any


@dataclass(frozen=True)
class Difference:
    """One row of the table of differences: a question, and the two answers."""

    ask: Ask
    there: Any
    here: Any


def raised(call: Callable[[], Any]) -> Any:
    """What a call gives, or which of the built-in classes of error it raises."""
    try:
        return call()
    except Exception as error:
        for kind in (RuntimeError, OverflowError, ValueError, TypeError, AssertionError):
            if isinstance(error, kind):
                return kind.__name__
        raise


def fails(call: Callable[[], Any]) -> Any:
    """As `raised`, with True for whatever a call gives."""
    outcome = raised(call)
    return outcome if isinstance(outcome, str) and outcome.endswith("Error") else True


def each_fails(call: Callable[[Any], Any], *given: Any) -> list[Any]:
    """As `fails`, for each of several arguments."""
    return [fails(partial(call, one)) for one in given]
