"""The bound on recursion: stored, but without effect, since nothing here recurses on its input.

This package has its own bounds on nesting; exceeding them is an error, not a crash.
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
    """The last number that was set; initially 10,000 or the value in the environment."""
    return _depth[0]


def set_max_recursion_depth(max_recursion_depth: int) -> None:
    """Store a number, for compatibility; it bounds nothing here.

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
    """Set a number for the duration of a block, then restore the previous one."""
    before = get_max_recursion_depth()
    set_max_recursion_depth(temp_depth)
    try:
        yield
    finally:
        set_max_recursion_depth(before)
