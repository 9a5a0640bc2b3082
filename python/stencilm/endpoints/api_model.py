"""A model behind an API: answers the requests of `guide`, and returns typed values like any model.

One idea: the client library handles connections, timeouts and retries with backoff. What remains
here is to send a request, to read the answer as long as that is useful, and to count.
"""

from __future__ import annotations

from asyncio import Semaphore, create_task, gather
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, NoReturn, Protocol, Self

from stencilm.characters import whole_characters
from stencilm.endpoints.answer_time import AnswerTime
from stencilm.endpoints.capabilities import Capabilities, Prices
from stencilm.endpoints.clients import no_stream, stop_asking, unstreamed, whole
from stencilm.endpoints.messages import checked_messages
from stencilm.endpoints.requests import (
    Request,
    check_options,
    native_form,
    request_for,
    schema_of,
    subset_of,
)
from stencilm.endpoints.schema_subset import Unwrapping, unwrapped
from stencilm.errors import EndpointError, ModelRefused, StencilError, UnsupportedFeature
from stencilm.generation.result import Generation
from stencilm.generation.typed import Known
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.outputs import Output, resolve
from stencilm.guiding.api import aguide, guide, text_guide
from stencilm.guiding.drafts import Answer, Ask, AskKind, estimated_tokens
from stencilm.guiding.labels import Labels
from stencilm.guiding.parsers import as_grammar
from stencilm.guiding.pieces import GuidedPiece, aguided_pieces, guided_pieces
from stencilm.guiding.task import Budget, Guided
from stencilm.guiding.task import Options as GuideOptions
from stencilm.guiding.text import TextGuide
from stencilm.guiding.values import generation_of
from stencilm.in_thread import in_thread
from stencilm.matching.texts import byte_matcher
from stencilm.models.options import Drawing, options_of
from stencilm.models.typed_model import Check, Job, OnEvent, TypedModel, go_on
from stencilm.models.typed_model import Piece as TextPiece
from stencilm.shown import in_a_line
from stencilm.tokenizers import TokenizerInfo
from stencilm.whole_numbers import as_whole, count

DEFAULT_CONCURRENCY = 8
_LOOKAHEAD = 256
"""The most tokens requested at once for a typed text that is continued.

Each call costs the prompt again, and a stream that no longer fits is ended early anyway.
"""

_UNSUPPORTED = frozenset({400, 422, 501})
"""Status codes of endpoints for an unknown form of request; they may have other causes."""

_MAX_REMEMBERED = 256

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


class Provider(Protocol):
    """The calls of one library; only this part knows its types."""

    is_async: bool

    def resource(self, request: Request, timeout: float | None) -> tuple[Any, dict[str, Any]]:
        """The resource for a request, whose `create` makes the call, and the arguments."""

    def read(self, response: Any) -> Piece:
        """A whole response."""

    def read_part(self, part: Any) -> Piece:
        """A part of a stream."""


@dataclass(slots=True)
class _Reading:
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


@dataclass(slots=True)
class _TypedText:
    """A text of a type, ready to be guided."""

    loop: TextGuide
    output: Output
    completed: bool

    def piece(self, piece: GuidedPiece, known: Known | None) -> TextPiece:
        """The next part of it, with the value in the last one."""
        if isinstance(piece, Guided):
            return generation_of(piece, self.output, completed=self.completed, known=known)
        return piece


class ApiModel(TypedModel):
    """A model behind an API; made by `stencilm.from_openai` and `stencilm.from_anthropic`.

    It has the calls of every model; with an asynchronous client, only the coroutine ones. Its texts
    are drafted, checked and corrected as in `stencilm.guide`; `Generation.guided` has the details.

    Args:
        provider: How its library is called.
        model: The name of the model.
        capabilities: What the endpoint can do.
        tokenizer_info: The model's vocabulary, which a logit bias needs.
        prices: What its tokens cost; None to count no cost.
        concurrency: How many texts of a batch are requested at once.

    Examples:
        >>> from openai import OpenAI
        >>> import stencilm
        >>> client = OpenAI(base_url="http://localhost:8000/v1", api_key="none")
        >>> model = stencilm.from_openai(client, "Qwen/Qwen3-4B", capabilities="vllm")
        >>> model.name, model
        ('Qwen/Qwen3-4B', <ApiModel: Qwen/Qwen3-4B>)
        >>> model.is_async, model.left_to_checking(int)
        (False, ())
        >>> model.probe()["native"]  # asks the endpoint  # doctest: +SKIP
        'works'
    """

    def __init__(
        self,
        provider: Provider,
        model: str,
        *,
        capabilities: Capabilities,
        tokenizer_info: TokenizerInfo | None = None,
        prices: Prices | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
    ) -> None:
        super().__init__()
        self._concurrency = count("concurrency", concurrency, least=1)
        self._provider = provider
        self.model = model
        self.capabilities = capabilities
        self.tokenizer_info = tokenizer_info
        self.prices = prices
        self._refused: OrderedDict[tuple[AskKind, Grammar | None], None] = OrderedDict()

    def __copy__(self) -> Self:
        """A model with the same client."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._refused = self._refused.copy()
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The same: a client holds connections, which are not copied."""
        return self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"an ApiModel cannot be pickled, since its client holds connections: make one of "
            f"{self.model!r} in the other process, with a client of its own; threads may share one"
        )

    may_refuse = True

    @property
    def name(self) -> str:
        """The name of the model, as its provider calls it."""
        return self.model

    def checked_prompt(self, prompt: Any) -> Any:
        """Check that a request can hold the prompt; raises TypeError or ValueError."""
        return checked_messages(prompt)

    def check_budget(self, budget: Budget) -> None:
        """Raise UnsupportedFeature for a limit of money if no prices are known."""
        if budget.cost is not None and self.prices is None:
            raise UnsupportedFeature(
                f"the budget has a cost of {budget.cost:g}, and nothing tells what the tokens of "
                f"{self.model!r} cost: give the model prices=Prices(prompt=..., output=...)"
            )

    def _facts(self) -> dict[str, str | None]:
        prices = self.prices
        return {
            "asked by": type(self._provider).__name__.lstrip("_"),
            "takes grammars": ", ".join(self.capabilities.native) or "in words alone",
            "prices": None if prices is None else f"{prices.prompt:g} in, {prices.output:g} out",
        }

    @property
    def is_async(self) -> bool:
        """Whether its client is asynchronous, so that answers are awaited."""
        return self._provider.is_async

    @property
    def biases_tokens(self) -> bool:
        """Whether an answer can be restricted to a few tokens."""
        return self.capabilities.logit_bias and self.tokenizer_info is not None

    @property
    def reasons_natively(self) -> bool:
        """Whether its model is told to reason, so that one request suffices."""
        return self.capabilities.reasoning is not None

    @property
    def drafts_in_parts(self) -> bool:
        """Whether it continues a given text, so that short drafts make sense."""
        return self.capabilities.continuation is not None

    @property
    def reads_complaints(self) -> bool:
        """Whether it can be told what was wrong: only if it is asked in words."""
        return self.capabilities.continuation is None

    def can(self, kind: AskKind, grammar: Grammar) -> bool:
        """Whether it answers requests of this kind about this grammar."""
        if (kind, grammar if kind == "whole" else None) in self._refused:
            return False
        if kind == "whole":
            return native_form(grammar, self.capabilities) is not None
        return kind == "draft" or self.capabilities.choice or self.biases_tokens

    def answer(self, ask: Ask) -> Answer:
        """Make the call for a request; an exception of the library becomes an answer.

        That answer's error is an EndpointError, or a ModelRefused.
        """
        for part in self.parts(ask):
            if isinstance(part, Answer):
                return part
        raise AssertionError("invariant: the last part is the answer")

    async def answer_async(self, ask: Ask) -> Answer:
        """The same, awaited; a synchronous client is called in a thread."""
        if not self.is_async:
            return await in_thread(self.answer, ask)
        async with aclosing(self.parts_async(ask)) as parts:
            async for part in parts:
                if isinstance(part, Answer):
                    return part
        raise AssertionError("invariant: the last part is the answer")

    def parts(self, ask: Ask) -> Iterator[str | Answer]:
        """The text of an answer as it arrives, and the answer last."""
        self._check_client(is_async=False)
        reading = _Reading(request_for(ask, self.model, self.capabilities), ask)
        try:
            resource, arguments = self._asked(reading)
            if ask.timeout is not None:
                stop_asking(resource, reading.time)
            if self._streams(reading):
                response = reading.time.begun(lambda: resource.create(**arguments, stream=True))
                with reading.time.closing(response):
                    if (short := unstreamed(response)) is not None:
                        short.read()
                        reading.no_stream = no_stream(short)
                    for part in response:
                        goes_on, text = reading.take(self._provider.read_part, part)
                        if not goes_on:
                            break
                        if text:
                            yield text
            else:
                reading.take(self._provider.read, whole(resource, arguments, reading.time))
        except StencilError:
            raise
        except Exception as error:
            yield reading.answer(self.prices, error)
            return
        self._remember(ask)
        yield reading.answer(self.prices)

    async def parts_async(self, ask: Ask) -> AsyncGenerator[str | Answer, None]:
        """The same, awaited."""
        if not self.is_async:
            yield await in_thread(self.answer, ask)
            return
        reading = _Reading(request_for(ask, self.model, self.capabilities), ask)
        try:
            resource, arguments = self._asked(reading)
            async with reading.time.awaiting():
                response = await resource.create(**arguments, stream=self._streams(reading))
            if self._streams(reading):
                try:
                    if (short := unstreamed(response)) is not None:
                        async with reading.time.awaiting():
                            await short.aread()
                        reading.no_stream = no_stream(short)
                    async with aclosing(reading.time.parts(response)) as parts:
                        async for part in parts:
                            goes_on, text = reading.take(self._provider.read_part, part)
                            if not goes_on:
                                break
                            if text:
                                yield text
                finally:
                    await response.close()
            else:
                reading.take(self._provider.read, response)
        except StencilError:
            raise
        except Exception as error:
            yield reading.answer(self.prices, error)
            return
        self._remember(ask)
        yield reading.answer(self.prices)

    def _check_client(self, *, is_async: bool) -> None:
        if self.is_async and not is_async:
            raise TypeError(
                "the client is asynchronous: await model.acall, model.agenerate, model.abatch, "
                "model.astream, model.achat or stencilm.aguide"
            )

    def _remember(self, ask: Ask) -> None:
        """Do not use a form again that was refused, once another form was answered.

        If none is answered, the refusal may have another reason, such as a prompt that is too long.
        A native form may be unsupported for this grammar only.
        """
        for kind in ask.refused - {ask.kind}:
            self._refused[kind, ask.grammar if kind == "whole" else None] = None
            if len(self._refused) > _MAX_REMEMBERED:
                self._refused.popitem(last=False)

    def _streams(self, reading: _Reading) -> bool:
        return self.capabilities.stream and reading.ask.kind != "choose"

    def _asked(self, reading: _Reading) -> tuple[Any, dict[str, Any]]:
        """The resource, and the arguments of its `create`."""
        request = reading.request
        if self._streams(reading) and self.capabilities.stream_usage:
            arguments = {**request.arguments, "stream_options": {"include_usage": True}}
            request = replace(request, arguments=arguments)
        return self._provider.resource(request, reading.ask.timeout)

    # Typed texts

    @property
    def _has_markers(self) -> bool:
        return self.reasons_natively

    _after_a_draft = "auto"
    _counts_requests = True

    def _compile(self, output_type: Any, limits: Any) -> tuple[Output, Grammar]:
        output = resolve(output_type)
        return output, output.grammar(limits)

    def _pieces(
        self,
        job: Job,
        output_type: Any,
        options: Drawing,
        on_event: OnEvent | None,
        known: Known | None = None,
    ) -> Iterator[TextPiece]:
        self._check_client(is_async=False)
        text = self._text(job, output_type, options)
        listeners = [] if on_event is None else [on_event]
        for piece in guided_pieces(text.loop, self, listeners, is_json=text.output.is_json):
            yield text.piece(piece, known)

    async def _apieces(
        self, job: Job, output_type: Any, options: Drawing, known: Known | None = None
    ) -> AsyncGenerator[TextPiece, None]:
        if not self.is_async:
            async with aclosing(super()._apieces(job, output_type, options, known)) as stepped:
                async for piece in stepped:
                    yield piece
            return
        text = self._text(job, output_type, options)
        pieces = aguided_pieces(text.loop, self, is_json=text.output.is_json)
        async with aclosing(pieces):
            async for guided in pieces:
                yield text.piece(guided, known)

    def _write_all(
        self, jobs: Sequence[Job], output_type: Any, options: Drawing, check: Check = go_on
    ) -> list[Generation[Any]]:
        self._check_client(is_async=False)
        self._prepare(output_type, options.get("limits"))  # once, and before any request
        if not jobs:
            return []
        with ThreadPoolExecutor(min(self._concurrency, len(jobs))) as pool:
            return list(
                pool.map(
                    lambda job: self._write(job, output_type, options, lambda _: check()), jobs
                )
            )

    async def _awrite_all(
        self, jobs: Sequence[Job], output_type: Any, options: Drawing
    ) -> list[Generation[Any]]:
        if not self.is_async:
            return await super()._awrite_all(jobs, output_type, options)
        self._prepare(output_type, options.get("limits"))
        room = Semaphore(self._concurrency)

        async def write(job: Job) -> Generation[Any]:
            async with room:
                return await self._awrite(job, output_type, options)

        tasks = [create_task(write(job)) for job in jobs]
        try:
            # In order, so that the first failing one raises, whichever fails earliest.
            return [await task for task in tasks]
        finally:
            # If one failed, stop waiting for the others, which would continue to send requests.
            for task in tasks:
                task.cancel()
            await gather(*tasks, return_exceptions=True)

    def _sampled(self, n: int, options: Drawing) -> Drawing:
        return options  # the endpoint's default is not greedy

    def _text(self, job: Job, output_type: Any, options: Drawing) -> _TypedText:
        given = options_of(options)
        if given.sampling != "masked":
            raise UnsupportedFeature(
                f"sampling={given.sampling!r} needs the logits of a local model: leave it out"
            )
        if given.draft is not None:
            raise UnsupportedFeature("draft needs the logits of a local model: leave it out")
        if given.whitespace_budget is not None:
            raise UnsupportedFeature(
                "whitespace_budget needs the masks of a local model: leave it out"
            )
        sampling = given.token_sampling(job.number)
        check_options(sampling, given.temperature, given.stops, self.capabilities)
        output, grammar = self._prepare(output_type, given.limits)
        budget = given.budget or Budget()
        if given.max_tokens is not None:
            budget = replace(budget, tokens=given.max_tokens)
        if job.first is not None:
            budget = _left_after(job.first, budget)
        loop = text_guide(
            self,
            grammar,
            job.prompt,
            options=GuideOptions(
                stop_at=given.stops,
                sampling=sampling,
                temperature=given.temperature,
                token_lookahead=_LOOKAHEAD,
                budget=budget,
                has_budget=given.budget is not None or given.max_tokens is not None,
                reasoning=given.reasoning,
            ),
        )
        return _TypedText(loop, output, completed=given.finish == "valid")

    def left_to_checking(self, output_type: Any) -> tuple[str, ...]:
        """What a strict mode of the endpoint cannot be told about an output type.

        The answer is checked for it, as for everything else, and corrected where it does not fit.

        Returns:
            The places of keywords in the type's schema; `("#",)` where nothing of it is enforced by
            the endpoint.
        """
        grammar = as_grammar(output_type)
        form = native_form(grammar, self.capabilities)
        subset = subset_of(grammar, self.capabilities)
        if form is None or (self.capabilities.schema_subset and schema_of(grammar) and not subset):
            return ("#",)
        return () if subset is None else subset.left_out

    def short(self, prompt: str, grammar: Grammar, *, max_tokens: int) -> Any:
        """A short guided text, for choosers; it is awaited if the client is asynchronous."""
        run = aguide if self.is_async else guide
        return run(self, grammar, prompt, budget=Budget(tokens=max_tokens, calls=4))

    def probe(self) -> dict[str, str]:
        """Try each declared form of question by a small call: "works", or what was wrong instead.

        "draft" is always tried; "native", "grammar", "logit_bias" and "choice" where they are
        declared. Options and reasoning are not tried.

        Raises:
            TypeError: The client is asynchronous.
        """
        if self.is_async:
            raise TypeError(
                "the client is asynchronous, and probe() waits for its answers: make a model of "
                f"{self.model!r} with a synchronous client, and probe that"
            )
        found = {}
        yes_or_no = Grammar.from_json_schema({"type": "object", "properties": {}})
        digits = Grammar.from_regex("[0-9]{2}")
        allowed: tuple[int, ...] = ()
        if self.tokenizer_info is not None:
            allowed = tuple(self.tokenizer_info.tokenize_bytes(b"7"))[:1]
        asks = {
            "draft": _ask(yes_or_no, "draft", prefix='{"'),
            "native": _ask(yes_or_no, "whole") if self.can("whole", yes_or_no) else None,
            "grammar": _ask(digits, "whole") if self.can("whole", digits) else None,
            "logit_bias": (
                _ask(yes_or_no, "choose", allowed_tokens=allowed) if self.biases_tokens else None
            ),
            "choice": (
                _ask(yes_or_no, "choose", options=("yes", "no"))
                if self.capabilities.choice
                else None
            ),
        }
        for name, ask in asks.items():
            if ask is None:
                continue
            answer = self.answer(ask)
            found[name] = "works"
            fits = byte_matcher(ask.grammar).longest_valid_prefix(answer.text).status != "dead"
            if answer.error is not None:
                error = answer.error.__cause__ or answer.error
                found[name] = f"{type(error).__name__}: {error}"
            elif ask.kind == "whole" and not (answer.text and fits):
                found[name] = f"wrote {answer.text!r}, which is not in the grammar"
            elif name == "logit_bias" and answer.text.strip() != "7":
                found[name] = f"wrote {answer.text!r} where only '7' was allowed"
            elif name == "choice" and not answer.text:
                found[name] = "answered with no number"
        return found


def _left_after(first: Generation[Any], budget: Budget) -> Budget:
    """The budget left for a text after the request before it, whose tokens do not count.

    If nothing is left, it is minimal: one call with almost no waiting.
    """
    spent = first.stats
    return replace(
        budget,
        calls=max(1, budget.calls - spent.forward_passes),
        seconds=max(0.001, budget.seconds - spent.seconds),
        cost=None if budget.cost is None else max(1e-12, budget.cost - spent.cost),
    )


def _ask(grammar: Grammar, kind: AskKind, **more: Any) -> Ask:
    return Ask(
        kind=kind, prompt="Write a JSON object.", max_tokens=16, grammar=grammar,
        **({"prefix": ""} | more),
    )  # fmt: skip
