"""The one tree of errors.

Every error is a sentence that shows the offending value, the place it stands at, and the way out.
The place is kept apart from the sentence, so that a program can point at it: a JSON pointer for
schemas, line and column or an offset for texts.
"""

from __future__ import annotations

from typing import Any


class StencilError(Exception):
    """The base of everything this library raises on purpose.

    Attributes:
        message: The sentence, without the place.
        place: Where in the input the fault stands (`#/properties/age`, `line 3, column 7`), or
            None where there is no such place.
    """

    message: str
    place: str | None

    def __init__(self, message: str, *, place: str | None = None) -> None:
        """Keeps the sentence and the place apart; `str()` joins them."""
        super().__init__(message)
        self.message = message
        self.place = place

    def __str__(self) -> str:
        """The sentence as a reader wants it: the place first, then what is wrong there."""
        return self.message if self.place is None else f"{self.place}: {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuilds any subclass without its `__init__`, so that all of them pickle and copy."""
        return _rebuild, (type(self), self.args), self.__dict__


def _rebuild(cls: type[StencilError], args: tuple[Any, ...]) -> StencilError:
    return cls.__new__(cls, *args)


class GrammarSyntaxError(StencilError, ValueError):
    """A schema, a pattern or a grammar text is not well formed."""


class UnsupportedFeature(StencilError, ValueError):
    """The input is well formed, but asks for something that cannot be enforced here."""


class Unsatisfiable(StencilError, ValueError):
    """Two constraints of the input clash, so no text at all would fit."""


class LimitExceeded(StencilError):
    """The input asks for more work, memory or depth than the limits allow."""


class TokenizerError(StencilError, ValueError):
    """A vocabulary or a tokenizer cannot be read, or does not belong to what it is used with."""


class MatcherError(StencilError, ValueError):
    """A matcher was asked for something it cannot do from where it stands; it has not changed."""


class BatchError(MatcherError):
    """Some sequences of a batch failed; the others have done what was asked.

    Attributes:
        results: What the call returns where nothing fails, with None for the sequences that failed.
        errors: The error of every sequence that failed, by its index in the batch.
    """

    results: list[Any]
    errors: dict[int, StencilError]

    @classmethod
    def of(cls, results: list[Any], errors: dict[int, StencilError]) -> BatchError:
        """The one error for these."""
        index, first = next(iter(errors.items()))
        error = cls(
            f"{len(errors)} of {len(results)} sequences failed, the first with: {first}; "
            "see .errors, and .results for the others",
            place=f"sequence {index}",
        )
        error.results = results
        error.errors = errors
        return error


class ModelError(StencilError):
    """A language model cannot be loaded, or did not do what a generation loop needs from it."""
