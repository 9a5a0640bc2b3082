"""The bound on recursion: kept and shown, for nothing here recurses as deeply as its input.

How deep an input may be is this package's own business, and past it an error, not a crash.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from stencilm.whole_numbers import written_number

_MOST = 1_000_000
_VARIABLE = "XGRAMMAR_MAX_RECURSION_DEPTH"


def _initial() -> int:
    number = written_number(os.environ.get(_VARIABLE, ""))
    return number if number is not None and 0 < number <= _MOST else 10_000


_depth = [_initial()]


def get_max_recursion_depth() -> int:
    """The number that was set last; 10,000 or that of the environment at first."""
    return _depth[0]


def set_max_recursion_depth(max_recursion_depth: int) -> None:
    """Keeps a number, for callers that know this option; it bounds nothing here.

    Raises:
        RuntimeError: It is not from 1 to 1,000,000.
    """
    if not 0 < max_recursion_depth <= _MOST:
        raise RuntimeError(
            f"max_recursion_depth is {max_recursion_depth}, but must be from 1 to {_MOST}"
        )
    _depth[0] = max_recursion_depth


@contextmanager
def max_recursion_depth(temp_depth: int) -> Iterator[None]:
    """Keeps a number while a block runs, then the one before it."""
    before = get_max_recursion_depth()
    set_max_recursion_depth(temp_depth)
    try:
        yield
    finally:
        set_max_recursion_depth(before)
