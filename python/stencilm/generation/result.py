"""The result of a generation, and the two ways in which it may fail to give a value."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from stencilm.errors import StencilError
from stencilm.generation.sampling_report import SamplingReport
from stencilm.generation.stats import Stats
from stencilm.generation.trace import FinishReason, Trace
from stencilm.shown import Shown, in_a_line

if TYPE_CHECKING:
    from stencilm.guiding.task import Guided

T = TypeVar("T")


class Filled(NamedTuple):
    """A stretch of a text that no model wrote.

    Examples:
        >>> import stencilm
        >>> stencilm.Filled(0, 2, "no", "shortest").is_made_up
        True
    """

    start: int
    """Where it begins, in characters of the text."""
    end: int
    """Where it ends."""
    text: str
    """The stretch itself."""
    means: str
    """How it came about.

    "respelled": drafted, but in the grammar's own case of letters. "forced": the grammar left no
    choice, but the draft had something else. "nearest": the candidate with the longest prefix in
    common with the draft. "shortest": the beginning of the shortest completion, in place of the
    draft. "closed": the end when a limit was reached: a shortest completion, or what the model
    could still choose within `max_tokens`. "repeated": written by a model that was asked to
    continue, but it may only have begun with what was already there.
    """

    @property
    def is_made_up(self) -> bool:
        """The grammar left a choice here, and what a model wrote did not decide it."""
        return self.means in MADE_UP


class LeftOut(NamedTuple):
    """A value in a draft that the response lacks.

    Either the grammar accepts it in no form, or it is a whole document beside the one that the
    response says.

    Examples:
        >>> import stencilm
        >>> result = stencilm.guide(lambda prompt: '[1, "many", 2]', list[int], "Numbers:")
        >>> result.response, result.left_out[0].path, result.left_out[0].text
        ('[1, 2]', '/1', '"many"')
    """

    path: str
    """Its JSON pointer, in the text so far with the draft after it; "" for a document."""
    text: str
    """The value as the draft spelled it."""
    changes_value: bool
    """The response says something else without it: it was an element of an array, or the value of a
    member that the grammar knows. False for a member that the grammar has no place for, for a
    repeated element of a set, and for a document."""


MADE_UP = frozenset({"nearest", "shortest", "closed", "repeated"})
"""The means by which a text gets what the grammar left open and no model decided."""


class IncompleteOutput(StencilError):
    """A limit cut the text before its grammar was done; `text` is what was written so far.

    Examples:
        >>> import stencilm
        >>> model = stencilm.load("tiny")
        >>> try:
        ...     model("A number:", stencilm.Regex("[0-9]{50}"), max_tokens=3, finish="cut")
        ... except stencilm.IncompleteOutput as error:
        ...     print(len(error.text) < 50)
        True
    """

    def __init__(self, message: str, *, text: str) -> None:
        super().__init__(message)
        self.text = text


class InvalidOutput(StencilError):
    """The text fits its grammar, but the Python type refuses it; `text` is the whole text.

    This happens if a type requires more than a schema can say, such as a pydantic validator written
    in Python. `complaint` is what the validators said.
    """

    complaint: str = ""

    def __init__(self, message: str, *, text: str) -> None:
        super().__init__(message)
        self.text = text


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Generation(Shown, Generic[T]):
    """One generated text.

    Attributes:
        text: What the model wrote, without the stop token and a stop text; if a limit cut a
            character in two, its bytes are left out.
        token_ids: The tokens that were written, including those of a stop text and excluding the
            stop token. Empty for an endpoint, which reports no tokens.
        finish_reason: "stop" when the grammar, the model or a stop text ended the text, "length"
            when `max_tokens`, the model's context or another budget did.
        is_complete: The text is a whole text of its grammar; even a cut text may be: "12" of
            "1234".
        trace: What happened, step by step.
        stats: What it cost.
        value: The typed value; None if `error` is set.
        error: Why there is no value; None if there is one.
        stop_text: The stop text that ended the text; None if none did.
        closed: A limit came first, and the text was closed for it: by a shortest completion, or by
            masks that narrowed near the end of `max_tokens`. `filled` says from where on the
            model's first choice was overruled; everything before is as the model wrote it.
        filled: The stretches of the text that no model wrote, in order.
        left_out: For a model behind an API, the values that it wrote and the text lacks.
        refused: Earlier attempts that the type's own validators refused; the model was told why
            each time.
        reasoning: The reasoning of the model, without markers and whitespace around it; None
            without reasoning. In draft mode, the draft.
        guided: The result of `stencilm.guide` for a model behind an API: its calls, its
            corrections, and its cost.
        sampling: How the text was drawn, if `sampling` was "exact" or "smc".

    Examples:
        >>> import stencilm
        >>> model = stencilm.load("tiny")
        >>> generation = model.generate("A colour:", stencilm.Choice(["red", "blue"]))
        >>> generation.value in ("red", "blue"), generation.finish_reason
        (True, 'stop')
        >>> "<html" in generation.html  # a notebook shows it by itself
        True
        >>> generation.to_json()["is_complete"], generation.stats.tokens > 0
        (True, True)
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    is_complete: bool
    trace: Trace
    stats: Stats
    value: T | None = None
    error: StencilError | None = None
    stop_text: str | None = None
    closed: bool = False
    filled: tuple[Filled, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    refused: tuple[Generation[T], ...] = ()
    guided: Guided | None = None
    reasoning: str | None = None
    sampling: SamplingReport | None = None

    @property
    def html(self) -> str:
        """The trace as a self-contained page."""
        drawn: str = import_module("stencilm.views.notebook").generation_page(self)
        return drawn

    def __repr__(self) -> str:
        """The text, and how it ended, in one line."""
        failed = "" if self.error is None else f", {type(self.error).__name__}"
        return (
            f"<{type(self).__name__}: {in_a_line(self.text)}, {self.finish_reason}, "
            f"{self.stats.tokens:,} tokens, {self.stats.seconds:.2f} s{failed}>"
        )

    def to_json(self, *, value: Any = None, trace: bool = False) -> dict[str, Any]:
        """The result as JSON-ready values; `value` is the typed value in JSON form."""
        record: dict[str, Any] = {
            "text": self.text,
            "value": value,
            "finish_reason": self.finish_reason,
            "is_complete": self.is_complete,
            "closed": self.closed,
            "filled": [filled._asdict() for filled in self.filled],
            "left_out": [left_out._asdict() for left_out in self.left_out],
            "refused": [str(generation.error) for generation in self.refused],
            "error": None if self.error is None else str(self.error),
            "reasoning": self.reasoning,
            "token_ids": list(self.token_ids),
            "stats": self.stats.to_json(),
        }
        return record | ({"trace": self.trace.to_json()} if trace else {})
