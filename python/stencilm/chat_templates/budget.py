"""The budget of one rendering of a chat template: processor time, and bytes of values.

One idea: the size of a value is never subtracted again, even if Python has long freed it. So live
memory never exceeds the count, and need not be measured. A value that contains one list twice
counts with its written size, so no small value takes long to write, to compare or to hash.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from sys import getsizeof
from typing import Any

from stencilm.errors import LimitExceeded

SECONDS = 5.0
"""The processor time of one rendering, in seconds."""

MAX_BYTES = 256 << 20
"""The bytes that one rendering may allocate, besides `BYTES_OF_INPUT` per byte of the messages."""

BYTES_OF_INPUT = 32
MAX_DEPTH = 500
"""The deepest nesting of lists and dicts that are written, compared or hashed."""

SLOW_BYTES = 4096
"""The largest text for operations that may take quadratic time."""

MAX_BITS = 1 << 14
"""The largest integers in calculations; Python writes at most 4,300 digits."""

GROWTH = 12
"""The most characters that one character may become: a surrogate pair in JSON."""

_SCALARS = (str, int, float, bool, type(None))
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()))


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of a value when it is written out.

    Attributes:
        bytes: The size of all its parts; a part that occurs several times counts each time.
        parts: The number of parts.
        depth: The nesting depth of lists and dicts.
    """

    bytes: int
    parts: int
    depth: int


class Budget:
    """The remaining budget of one rendering.

    Args:
        name: The template's name in messages.
        input_bytes: The size of the messages and of the other variables.
    """

    __slots__ = ("_began", "_name", "_said", "_wall", "left", "most")

    def __init__(self, name: str, input_bytes: int = 0) -> None:
        self._name = name
        self.most = self.left = MAX_BYTES + BYTES_OF_INPUT * input_bytes
        self._wall = time.perf_counter()
        self._began = time.thread_time()
        self._said: str | None = None

    def refuse(self, what: str) -> LimitExceeded:
        """The error for a template that does too much; every later check raises it, too."""
        self._said = self._said or (
            f"{self._name} {what}: it is broken, or is not to be trusted; repair it, or give the "
            "prompt as one str"
        )
        return LimitExceeded(self._said)

    def step(self) -> None:
        """Count one step of the template.

        Raises LimitExceeded if its time is over.
        """
        if self._said is not None:
            raise self.refuse("")
        # The wall clock is cheap to read, and never behind the processor clock.
        if time.perf_counter() - self._wall > SECONDS and (
            time.thread_time() - self._began > SECONDS
        ):
            raise self.refuse(f"takes more than {SECONDS:g} s of processor time")

    def expect(self, size: int) -> None:
        """Raise LimitExceeded if this many bytes would exceed the budget."""
        self.step()
        if size > self.left:
            raise self.refuse(f"makes more than {self.most >> 20} MiB of text and lists")

    def make(self, size: int) -> None:
        """Count allocated bytes."""
        self.expect(size)
        self.left -= size

    def kept(self, value: Any) -> Any:
        """Count a new value and return it; an iterator is counted step by step."""
        if isinstance(value, (str, bytes, int, list, tuple, dict, set)):
            self.make(getsizeof(value))
        elif isinstance(value, Iterator):
            return self.counted(value)
        return value

    def counted(self, values: Iterable[Any]) -> Generator[Any, None, None]:
        """The values, each counted as a step."""
        return self._counted(iter(values))

    def _counted(self, values: Iterator[Any]) -> Generator[Any, None, None]:
        for value in values:
            self.make(8)
            yield value

    def whole(self, values: Any) -> Any:
        """Values that are all read at once: an iterator becomes a list, and is counted."""
        if isinstance(values, str):
            self.expect(getsizeof(values) + 66 * len(values))  # a string for each character
            return values
        if hasattr(values, "__len__"):
            self.make(8 * len(values))
            return values
        return list(self.counted(values))

    def weigh(self, *values: Any) -> int:
        """The bytes of values that are written out, compared or hashed.

        Raises LimitExceeded if they exceed the budget.
        """
        total = 0
        for value in values:
            if value.__class__ in _SCALARS:
                total += getsizeof(value)
            else:
                total += self.extent(value).bytes
        self.expect(total)
        return total

    def extent(self, value: Any) -> Extent:
        """The extent of a value.

        Raises LimitExceeded as `weigh` does, and if it is nested too deeply.
        """
        size = parts = depth = 0
        waiting: list[Iterator[Any]] = [iter((value,))]
        while waiting:
            for part in waiting[-1]:
                size += 32 * len(part) if isinstance(part, range) else getsizeof(part, 64)
                parts += 1
                held = _held(part)
                if held is not None:
                    waiting.append(held)
                    break
            else:
                waiting.pop()
                continue
            if len(waiting) > MAX_DEPTH:
                raise self.refuse(f"nests lists deeper than {MAX_DEPTH} levels")
            depth = max(depth, len(waiting) - 1)
            self.expect(size)
        self.expect(size)
        return Extent(size, parts, depth)

    def slow(self, *values: Any) -> None:
        """Raise LimitExceeded if values are too large for an operation of quadratic time."""
        if self.weigh(*values) > SLOW_BYTES + 64 * len(values):
            raise self.refuse(f"hands more than {SLOW_BYTES} bytes to what is slow")

    def number(self, *values: Any) -> None:
        """Raise LimitExceeded for an integer that is too large for calculations."""
        for value in values:
            if isinstance(value, int) and value.bit_length() > MAX_BITS:
                raise self.refuse(f"calculates with integers of more than {MAX_BITS} bits")


class Steps:
    """The values of a loop, each counted as a step."""

    __slots__ = ("_budget", "_values")

    def __init__(self, budget: Budget, values: Any) -> None:
        self._budget = budget
        self._values = values

    def __iter__(self) -> Iterator[Any]:
        return self._budget.counted(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _held(value: Any) -> Iterator[Any] | None:
    """The elements of a value that are written with it; None if it has none."""
    parts: Iterable[Any] = value
    if isinstance(value, dict):
        return (part for pair in value.items() for part in pair)
    if isinstance(value, type({}.items())):
        return (part for pair in parts for part in pair)
    if isinstance(value, (list, tuple, set, frozenset, *_VIEWS)):
        return iter(parts)
    # A Jinja namespace stores all its attributes in one dict.
    try:
        return iter((object.__getattribute__(value, "_Namespace__attrs"),))
    except AttributeError:
        return None
