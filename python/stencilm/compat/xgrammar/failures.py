"""The original's error classes, and the translation of this package's errors into them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stencilm.errors import StencilError


class DeserializeFormatError(RuntimeError):
    """A serialized value does not have the expected form, or belongs to another tokenizer."""


class DeserializeVersionError(RuntimeError):
    """A serialized value was written by another version, or by another package."""


class InvalidStructuralTagError(RuntimeError):
    """A structural tag that is malformed, or that cannot be enforced."""


class InvalidJSONError(RuntimeError):
    """A text that is not JSON."""


@contextmanager
def translated(
    kind: type[RuntimeError] = RuntimeError, *, also: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Raise the errors of this package as another class, with the same message.

    `also` names classes of Python's own that are converted, too.
    """
    kinds: tuple[type[Exception], ...] = (StencilError, *also)
    try:
        yield
    except kinds as error:
        raise kind(str(error)) from error
