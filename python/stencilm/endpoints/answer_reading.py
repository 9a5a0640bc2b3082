"""One answer of a provider: its parts as they arrive, and the answer that they make.

One idea: a provider's library tells pieces, and everything else is the same for all providers: what
is new of the text, whether the rest is of use, what it cost, and whether it is an answer at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from stencilm.characters import whole_characters
from stencilm.endpoints.answer_time import AnswerTime
from stencilm.endpoints.capabilities import Prices
from stencilm.endpoints.requests import Request
from stencilm.endpoints.schema_subset import Unwrapping, unwrapped
from stencilm.errors import EndpointError, ModelRefused
from stencilm.guiding.drafts import Answer, Ask, estimated_tokens
from stencilm.guiding.labels import Labels
from stencilm.shown import in_a_line
from stencilm.whole_numbers import as_whole

_UNSUPPORTED = frozenset({400, 422, 501})
"""Status codes of endpoints for an unknown form of request; they may have other causes."""

_SHORT = 512
"""Up to this many characters, every part of an answer is checked."""
_LOOKS_AFTER_A_PART = 8
_MOST_CHARACTERS = 1 << 24
"""The longest answer in characters, with its reasoning; some endpoints ignore any limit."""


@dataclass(slots=True, kw_only=True)
class Piece:
    """A part of an answer, as the provider's library gave it.

    `reasoning` is what the model wrote before the answer to reason, and `reasoning_tokens` are
    those of `output_tokens` that went there, where the provider tells.
    `refusal` is what the model says in place of an answer, where the provider marks it as that;
    `is_refused` and `is_filtered` say that the provider ended the answer for such a reason.
    `place` names the stretch of the answer that this belongs to. A piece that `is_again` says a
    stretch as a whole whose parts may have come before; without a place, all of the answer.
    `is_unknown` says that it has nothing of an answer, as what only keeps a connection open.
    """

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    is_refused: bool = False
    is_filtered: bool = False
    is_finished: bool | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int = 0
    place: tuple[Any, ...] = ()
    is_again: bool = False
    is_unknown: bool = False


class ResponseFailed(Exception):
    """An answer that is itself an error, or has no end; used as the `__cause__` of the error."""


def check_is_no_error(answer: Any) -> None:
    """Raise ResponseFailed for an answer, or a part of one, that is an error with HTTP 200.

    Servers write it as the member `error`, an object or a text, or in place of the answer.
    """
    error = getattr(answer, "error", None)
    if not error and "error" in (getattr(answer, "object", None), getattr(answer, "type", None)):
        error = answer
    if error:
        said = error.get("message") if isinstance(error, dict) else getattr(error, "message", None)
        raise ResponseFailed(str(said or error))


_CUT_SHORT = frozenset(
    {"length", "max_tokens", "model_length", "model_context_window_exceeded", "pause_turn"}
)
_FAILED = frozenset({"error", "abort", "cancelled", "insufficient_system_resource"})


def ended_by(reason: str | None) -> bool | None:
    """Whether a model ended its answer itself, by a provider's finish reason; None for no reason.

    Raises:
        ResponseFailed: The reason says that the provider failed.
    """
    word = (reason or "").lower()
    if word in _FAILED:
        raise ResponseFailed(f"the provider ended the answer with {reason!r}")
    return word not in _CUT_SHORT if word else None


def _checked(read: Callable[[Any], Piece], part: Any) -> Piece:
    """A part of an answer, which may be anything that a server sends."""
    try:
        piece = read(part)
    except ResponseFailed:
        raise
    except Exception as error:  # whatever looking at something else raises
        raise ResponseFailed(f"{_sent(part)} is no part of an answer of its API") from error
    if not all(isinstance(text, str) for text in (piece.text, piece.reasoning, piece.refusal)):
        raise ResponseFailed(f"{_sent(part)} is no part of an answer of its API")
    for name in ("prompt_tokens", "output_tokens", "reasoning_tokens"):
        setattr(piece, name, reported_tokens(getattr(piece, name)))
    piece.cached_tokens = reported_tokens(piece.cached_tokens) or 0
    return piece


def _sent(part: Any) -> str:
    """What came in place of a part of an answer: as it was sent, where the library knows that."""
    try:
        shown = part.to_json(indent=None, warnings=False)
    except Exception:  # no object of the library, or one that it cannot write
        shown = str(part)
    return in_a_line(shown, 200)


def reported_tokens(reported: Any) -> int | None:
    """A reported number of tokens; None if it is not a valid number."""
    number = as_whole(reported)
    return None if number is None or number < 0 else number


@dataclass(slots=True)
class Reading:
    """What has come of an answer so far."""

    request: Request
    ask: Ask
    started: float = field(default_factory=perf_counter)
    text: str = ""
    half: str = ""  # of a surrogate pair whose other half is to come
    piece: Piece = field(default_factory=Piece)
    is_cut: bool = False
    looked_at: int = 0  # how long the text was when it was last asked whether it is worth reading
    unwrapping: Unwrapping = field(default_factory=Unwrapping)
    length: int = 0  # in characters, with all that is no text
    no_stream: str = ""  # what has come in place of a stream
    unknown: str = ""  # the last event that had nothing of an answer
    places: set[tuple[Any, ...]] = field(default_factory=set)  # the stretches that have come
    time: AnswerTime = field(init=False)

    def __post_init__(self) -> None:
        self.time = AnswerTime(self.ask.timeout)

    def take(self, read: Callable[[Any], Piece], part: Any) -> tuple[bool, str]:
        """Take one more part: whether it is of use to read on, and what is new of the text.

        What is new is empty while whitespace that was held back may come again.

        Raises:
            ResponseFailed: It is no part of an answer, or the answer has no end.
            TimeoutError: The time of the answer is over.
        """
        piece = _checked(read, part)
        if piece.is_unknown:
            self.unknown = _sent(part)
        self._leave_out_again(piece)
        new = self._whole(piece.text)
        # Python lengthens a text in place where nobody else holds it, and copies it otherwise.
        text, self.text = self.text, ""
        text += new
        self.text = text
        del text
        self._add(piece)
        self.length += len(piece.text) + len(piece.reasoning) + len(piece.refusal)
        if self.length > _MOST_CHARACTERS:
            raise ResponseFailed(
                f"the answer is longer than {_MOST_CHARACTERS:,} characters, whatever bound it was "
                "given"
            )
        if self.piece.is_finished is None:
            self.time.check()
        if not new or self.request.options:
            return True, ""
        if self.request.is_wrapped:
            return True, self.unwrapping.feed(new)
        # A long answer is looked at again when it has grown by a part, for each look reads it all.
        if len(self.text) >= self.looked_at + self.looked_at // _LOOKS_AFTER_A_PART:
            self.looked_at = len(self.text) if len(self.text) > _SHORT else 0
            self.is_cut = not self.ask.fits(self._rest())
        return not self.is_cut, "" if self.request.held_back else new

    def _leave_out_again(self, piece: Piece) -> None:
        """Take nothing of a piece that has come before in parts."""
        if not piece.is_again:
            self.places.add(piece.place)
        elif piece.place:
            if piece.place in self.places:
                piece.text = piece.reasoning = piece.refusal = ""
            self.places.add(piece.place)
        else:
            piece.text = "" if self.text or self.half else piece.text
            piece.reasoning = "" if self.piece.reasoning else piece.reasoning
            piece.refusal = "" if self.piece.refusal else piece.refusal

    def _add(self, piece: Piece) -> None:
        kept = self.piece
        self.piece = Piece(
            reasoning=kept.reasoning + piece.reasoning,
            refusal=kept.refusal + piece.refusal,
            is_refused=kept.is_refused or piece.is_refused,
            is_filtered=kept.is_filtered or piece.is_filtered,
            is_finished=kept.is_finished if piece.is_finished is None else piece.is_finished,
            prompt_tokens=kept.prompt_tokens or piece.prompt_tokens,
            output_tokens=piece.output_tokens or kept.output_tokens,
            reasoning_tokens=piece.reasoning_tokens or kept.reasoning_tokens,
            cached_tokens=piece.cached_tokens or kept.cached_tokens,
        )

    def _whole(self, text: str) -> str:
        """What is new of the text in whole characters: a stream may cut a pair of surrogates."""
        text = self.half + text
        self.half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return whole_characters(text.removesuffix(self.half))

    def answer(self, prices: Prices | None, error: Exception | None = None) -> Answer:
        """The answer, with what it cost. A stream that broke off is one that is not finished."""
        self.text += whole_characters(self.half)
        piece = self.piece
        if error is None and piece.is_finished is None and not self.is_cut:
            stops = "the answer stops without a word why it ends there"
            if self.unknown:
                stops += f", after {self.unknown}"
            error = ResponseFailed(stops if self.length else self.no_stream or stops)
        if error is not None:
            error = self.time.reason_for(error)
        text = self._rest()
        if self.request.options:
            is_cut = piece.is_finished is False
            text = Labels(self.request.options).picked(self.text, is_cut=is_cut) or ""
        finished = False if error is not None or self.is_cut else piece.is_finished
        return Answer(
            text=text,
            means=self.request.means,
            is_finished=finished,
            prompt_tokens=piece.prompt_tokens,
            output_tokens=piece.output_tokens,
            cached_tokens=piece.cached_tokens,
            cost=0.0 if prices is None else self._cost(prices),
            seconds=perf_counter() - self.started,
            is_cut=self.is_cut,
            error=self._fault(error),
            broke_off=None if error is None or not self.text else self._failed(error),
            is_unsupported=self._is_unsupported(error),
            reasoning=piece.reasoning,
            reasoning_tokens=piece.reasoning_tokens,
        )

    def _cost(self, prices: Prices) -> float:
        """The cost.

        Estimated from lengths if tokens are not counted, as for a stream that was left early.
        """
        piece, ask = self.piece, self.ask
        prompt, output = piece.prompt_tokens, piece.output_tokens
        if output is None and self.length:
            output = estimated_tokens(self.text) + estimated_tokens(piece.reasoning)
        if prompt is None and output is not None:
            prompt = estimated_tokens(f"{ask.prompt}{ask.prefix}")
        return prices.cost(prompt or 0, output or 0, piece.cached_tokens)

    def _fault(self, error: Exception | None) -> Exception | None:
        """The error, if there is no answer.

        A stream that broke off after some text is an answer.
        """
        if self.piece.refusal or self.piece.is_refused:
            return ModelRefused.of("refusal", self.piece.refusal or self.text)
        if self.piece.is_filtered:
            return ModelRefused.of("filter", self.text)
        if error is None or self.text:
            return None
        return self._failed(error)

    def _failed(self, error: Exception) -> EndpointError:
        return EndpointError.of(error, self.request.arguments["model"])

    def _is_unsupported(self, error: Exception | None) -> bool:
        """Whether another form of the request may work; only for requests that have one."""
        has_other = self.ask.kind != "draft"
        return has_other and getattr(error, "status_code", None) in _UNSUPPORTED

    def _rest(self) -> str:
        """The text after the prefix; whitespace that was held back may be repeated."""
        held = self.request.held_back
        if self.request.is_wrapped:
            return unwrapped(self.text)
        return self.text[len(held) :] if held and self.text.startswith(held) else self.text
