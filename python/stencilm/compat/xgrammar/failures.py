"""The original's classes of errors, and this package's errors as those."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stencilm.errors import StencilError


class DeserializeFormatError(RuntimeError):
    """A saved value has not the form of what is read, or belongs to another tokenizer."""


class DeserializeVersionError(RuntimeError):
    """A saved value was written by another version, or by another package."""


class InvalidStructuralTagError(RuntimeError):
    """A structural tag that has not the shape of one, or that cannot be enforced."""


class InvalidJSONError(RuntimeError):
    """A text that is no JSON."""


@contextmanager
def translated(
    kind: type[RuntimeError] = RuntimeError, *, also: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Raises what this package raises on purpose as an error of another class, same sentence.

    `also` names classes of Python's own that are raised so, too.
    """
    kinds: tuple[type[Exception], ...] = (StencilError, *also)
    try:
        yield
    except kinds as error:
        raise kind(str(error)) from error
