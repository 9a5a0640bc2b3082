"""Exceptions of other libraries, reported as errors of this package.

One idea: a library that reads other people's files may fail in any way. One in Python raises
whatever the faulty line raises; one in Rust may also panic, and a panic arrives as a
`BaseException` that `except Exception` lets through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stencilm.errors import StencilError

# Their messages alone tell nothing: `KeyError('vocab')` is "'vocab'".
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
    """Runs the body; what a library raises in it is the cause of the error that is made for it.

    Errors of ours, and what ends a program, come through as they are.
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
    """Whether a library failed: any `Exception`, or the panic of one in Rust."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def said(error: BaseException) -> str:
    """The first sentence of an error, with its kind where the sentence alone tells nothing."""
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
