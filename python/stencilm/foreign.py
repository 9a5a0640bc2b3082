"""Exceptions of other libraries, reported as errors of this package.

One idea: a library that reads other people's files may fail in any way. A Python library raises
whatever the faulty line raises. A Rust library may also panic, and a panic is a `BaseException`,
which `except Exception` does not catch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stencilm.errors import StencilError

# Without its type, such a message means nothing: `KeyError('vocab')` prints "'vocab'".
_SAYS_LITTLE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
)


@contextmanager
def reported_as(error_of: Callable[[BaseException], StencilError]) -> Iterator[None]:
    """Run the body; an exception of a library becomes the cause of the error made for it.

    Errors of this package, and exceptions that end a program, are passed on.
    """
    try:
        yield
    except StencilError:
        raise
    except BaseException as error:
        if not is_failure(error):
            raise
        raise error_of(error) from error


def is_failure(error: BaseException) -> bool:
    """Whether a library failed: any `Exception`, or the panic of a Rust library."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def said(error: BaseException) -> str:
    """The first sentence of an error, with its type if the sentence alone means nothing."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    sentence = lines[0] if lines else ""
    for line in lines[1:]:
        if not sentence.endswith(":"):
            break
        sentence = f"{sentence} {line}"
    kind = type(error).__name__
    if not sentence:
        return kind
    sentence = sentence.rstrip(".")
    is_enough = isinstance(error, Exception) and not isinstance(error, _SAYS_LITTLE)
    return sentence if is_enough else f"{kind}: {sentence}"
