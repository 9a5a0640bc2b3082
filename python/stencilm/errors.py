"""The one tree of errors.

Every error is a sentence that shows the offending value, its location, and the way out. The
location is also kept apart from the sentence, so that a program can use it: a JSON pointer for
schemas, line and column or an offset for texts.
"""

from __future__ import annotations

from typing import Any

from stencilm.shown import in_short


class StencilError(Exception):
    """The base class of all errors that this library raises on purpose.

    Attributes:
        message: The sentence, without the location. Very long quotations in it are shortened.
        place: The location of the fault in the input (`#/properties/age`, `line 3, column 7`), or
            None if there is none.

    Examples:
        >>> import stencilm
        >>> try:
        ...     stencilm.Grammar.from_json_schema({"minimum": 9, "maximum": 3, "type": "integer"})
        ... except stencilm.Unsatisfiable as error:
        ...     print(error.place, isinstance(error, stencilm.StencilError))
        # True
    """

    message: str
    place: str | None

    def __init__(self, message: str, *, place: str | None = None) -> None:
        """Store the sentence and the place separately; `str()` joins them."""
        message = in_short(str(message))
        super().__init__(message)
        self.message = message
        self.place = place

    def __str__(self) -> str:
        """The place first, then the sentence."""
        return self.message if self.place is None else f"{in_short(self.place)}: {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild any subclass without its `__init__`, so that all can be pickled and copied."""
        return _rebuild, (type(self), self.args), self.__dict__


def _rebuild(cls: type[StencilError], args: tuple[Any, ...]) -> StencilError:
    return cls.__new__(cls, *args)


class GrammarSyntaxError(StencilError, ValueError):
    """A schema, a pattern or a grammar text is not well-formed.

    Examples:
        >>> import stencilm
        >>> try:
        ...     stencilm.Grammar.from_regex("a(")
        ... except stencilm.GrammarSyntaxError as error:
        ...     print(error.place)
        offset 1
    """


class UnsupportedFeature(StencilError, ValueError):
    r"""The input is well-formed, but asks for something that cannot be enforced.

    Examples:
        >>> import stencilm
        >>> try:
        ...     stencilm.Grammar.from_regex(r"(a|b)\1")
        ... except stencilm.UnsupportedFeature as error:
        ...     print(error.place)
        offset 5
    """


class Unsatisfiable(StencilError, ValueError):
    """Two constraints of the input contradict each other, so no text at all would fit.

    Examples:
        >>> import stencilm
        >>> try:
        ...     stencilm.Grammar.from_json_schema({"type": "integer", "minimum": 9, "maximum": 3})
        ... except stencilm.Unsatisfiable as error:
        ...     print(error)
        #: minimum 9 is above maximum 3, so no integer fits
    """


class LimitExceeded(StencilError):
    """The input needs more work, memory or depth than the limits allow.

    Examples:
        >>> import stencilm
        >>> try:
        ...     stencilm.Grammar.from_json_schema({}, limits=stencilm.Limits(schema_bytes=1))
        ... except stencilm.LimitExceeded as error:
        ...     print(str(error).partition(";")[0])
        the schema has 2 bytes and at most 1 are accepted
    """


class OperationCancelled(LimitExceeded):
    """The `CancelToken` of the limits was cancelled; the operation has had no effect."""


class TokenizerError(StencilError, ValueError):
    """A vocabulary or a tokenizer cannot be read, or does not belong to what it is used with.

    Examples:
        >>> import stencilm
        >>> try:
        ...     stencilm.TokenizerInfo([b"a"], stop_token_ids=[7])
        ... except stencilm.TokenizerError as error:
        ...     print(str(error).partition(";")[0])
        stop_token_ids has the stop token 7, but ids lie between 0 and 0
    """


class MatcherError(StencilError, ValueError):
    """A matcher cannot do what was asked in its current state, which has not changed.

    Examples:
        >>> import stencilm
        >>> info = stencilm.TokenizerInfo([b"a", b"</s>"], stop_token_ids=[1])
        >>> matcher = stencilm.GrammarMatcher(stencilm.GrammarCompiler(info).compile_regex("a"))
        >>> try:
        ...     matcher.rollback(1)
        ... except stencilm.MatcherError as error:
        ...     print(error)
        cannot roll back 1 tokens: only 0 were accepted; roll back at most that many
    """


class BatchError(MatcherError):
    """Some sequences of a batch failed; the others have done what was asked.

    Attributes:
        results: What the call returns if nothing fails, with None for the sequences that failed.
        errors: The error of every sequence that failed, by its index in the batch.
    """

    results: list[Any]
    errors: dict[int, StencilError]

    @classmethod
    def of(cls, results: list[Any], errors: dict[int, StencilError]) -> BatchError:
        """The error for these."""
        index, first = next(iter(errors.items()))
        error = cls(
            f"{len(errors)} of {len(results)} sequences failed, the first with: {first}; "
            "see .errors, and .results for the others",
            place=f"sequence {index}",
        )
        error.results = results
        error.errors = errors
        return error


class TraceError(StencilError, ValueError):
    """A text or a record is not a trace, or not the whole of one.

    Examples:
        >>> from stencilm.generation.trace import Trace
        >>> import stencilm
        >>> try:
        ...     Trace.loads("[")
        ... except stencilm.TraceError as error:
        ...     print(error.place)
        line 1, column 2
    """


class ModelError(StencilError):
    """A language model cannot be loaded, or did not do what a generation loop needs."""


class EndpointError(ModelError):
    """A model behind an API could not be called: no connection, or its provider returned an error.

    The exception of the provider's library is the `__cause__`; the library has already made its
    retries.

    Attributes:
        status: The HTTP status of the provider's answer; None if there was no answer.
        provider_message: What the provider, or its library, said.
        text: What was written before the call that failed.
    """

    status: int | None = None
    provider_message: str = ""
    text: str = ""

    @classmethod
    def of(cls, error: Exception, model: str) -> EndpointError:
        """The error for an exception of a provider's library."""
        status = getattr(error, "status_code", None)
        status = status if isinstance(status, int) else None
        said = _provider_message(error)
        if status is None:
            kind = type(error).__name__
            message = f"the model {model!r} gave no answer: {kind}: {said}"
        else:
            message = f"the provider of the model {model!r} answered with HTTP {status}: {said}"
        hint = _HINTS.get(500 if status is not None and status >= 500 else status)
        made = cls(f"{message} ({hint})" if hint else message)
        made.status = status
        made.provider_message = said
        made.__cause__ = error
        return made


_HINTS: dict[int | None, str] = {
    None: "check the client's base URL, its timeout and the network",
    401: "check the client's API key",
    403: "check what the client's API key may use",
    404: "check the model's name and the client's base URL",
    429: "ask less often, raise the client's max_retries, or check the quota",
    500: "try again later, or raise the client's max_retries",
}


def _provider_message(error: Exception) -> str:
    """The provider's own message, from the body of its answer if it has one."""
    body = getattr(error, "body", None)
    for _ in range(2):  # the body is the error, or contains it
        if isinstance(body, dict):
            said = body.get("message")
            if isinstance(said, str) and said:
                return said
            body = body.get("error")
        if isinstance(body, str) and body:
            return body
    sentence = str(error) or type(error).__name__
    reason = error.__cause__
    return sentence if reason is None or not str(reason) else f"{sentence.rstrip('.')}: {reason}"


class ModelRefused(ModelError):
    """A model did not write what was requested.

    Attributes:
        reason: "refusal": the provider marks the answer as refused. "filter": the provider's filter
            removed the answer. "empty": the answers had no text. "unfit": nothing in the answers
            fits, as in "I'm sorry, but I cannot help with that."
        text: What the model said instead; the answer that was cut for "filter".
    """

    reason: str = "refusal"
    text: str = ""

    @classmethod
    def of(cls, reason: str, text: str, *, detail: str = "") -> ModelRefused:
        """The error for a reason and the model's words."""
        said = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        sentence = {
            "refusal": f"the model refused to answer: {said!r}",
            "filter": "the provider's content filter stopped the answer",
            "empty": "the model wrote nothing",
            "unfit": f"nothing that the model wrote fits the grammar: {said!r}",
        }[reason]
        made = cls(f"{sentence}{detail}; change the prompt, or ask another model")
        made.reason = reason
        made.text = text
        return made


_SHOWN = 300
