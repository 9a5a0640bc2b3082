"""What a generation gives back, and the two ways in which it may fail to give a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from stencilm.errors import StencilError
from stencilm.generation.stats import Stats
from stencilm.generation.trace import FinishReason, Trace

T = TypeVar("T")


class IncompleteOutput(StencilError):
    """A limit cut the text before its grammar was done; `text` is what was written so far."""

    def __init__(self, message: str, *, text: str) -> None:
        super().__init__(message)
        self.text = text


class InvalidOutput(StencilError):
    """The text fits its grammar, but the Python type refuses it; `text` is the whole text.

    This happens where a type asks for more than a schema can say, such as a pydantic validator
    written in Python.
    """

    def __init__(self, message: str, *, text: str) -> None:
        super().__init__(message)
        self.text = text


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation(Generic[T]):
    """One generated text.

    Attributes:
        text: What the model wrote, without the stop token; where a limit cut a character in two,
            its bytes are left out.
        token_ids: The tokens of the text, without the stop token.
        finish_reason: "stop" when the grammar or the model ended the text, "length" when
            `max_tokens` or the model's context did.
        is_complete: The text is a whole text of its grammar. A cut text may be: "12" of "1234".
        trace: What happened, step by step.
        stats: What it cost.
        value: The typed value; None where `error` is set.
        error: Why there is no value; None where there is one.
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    is_complete: bool
    trace: Trace
    stats: Stats
    value: T | None = None
    error: StencilError | None = None

    def to_json(self, *, value: Any = None, trace: bool = False) -> dict[str, Any]:
        """The result as JSON-ready values; `value` is the typed value in JSON form."""
        record: dict[str, Any] = {
            "text": self.text,
            "value": value,
            "finish_reason": self.finish_reason,
            "is_complete": self.is_complete,
            "error": None if self.error is None else str(self.error),
            "token_ids": list(self.token_ids),
            "stats": self.stats.to_json(),
        }
        return record | ({"trace": self.trace.to_json()} if trace else {})
