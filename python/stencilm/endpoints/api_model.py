"""A model behind an API: answers the requests of `guide`, and returns typed values like any model.

One idea: the client library handles connections, timeouts and retries with backoff. What remains
here is to send a request, to read the answer as long as that is useful, and to count.
"""

from __future__ import annotations

from asyncio import Semaphore, create_task, gather
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self

from stencilm.endpoints.capabilities import Capabilities, Prices
from stencilm.endpoints.clients import no_stream, no_stream_of, stop_asking, unstreamed, whole
from stencilm.endpoints.messages import checked_messages
from stencilm.endpoints.reading import Provider, Reading
from stencilm.endpoints.requests import (
    check_options,
    native_form,
    request_for,
    schema_of,
    subset_of,
)
from stencilm.errors import StencilError, UnsupportedFeature
from stencilm.generation.result import Generation
from stencilm.generation.typed import Known
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.outputs import Output, resolve
from stencilm.guiding.api import aguide, guide, text_guide
from stencilm.guiding.drafts import Answer, Ask, AskKind
from stencilm.guiding.parsers import as_grammar
from stencilm.guiding.pieces import GuidedPiece, aguided_pieces, guided_pieces
from stencilm.guiding.task import Budget, Guided
from stencilm.guiding.task import Options as GuideOptions
from stencilm.guiding.text import TextGuide
from stencilm.guiding.values import generation_of
from stencilm.in_thread import in_thread
from stencilm.matching.texts import byte_matcher
from stencilm.models.jobs import Check, Job, OnEvent, go_on
from stencilm.models.jobs import Piece as TextPiece
from stencilm.models.options import Drawing, options_of
from stencilm.models.typed_model import TypedModel
from stencilm.tokenizers import TokenizerInfo
from stencilm.whole_numbers import count

DEFAULT_CONCURRENCY = 8
_LOOKAHEAD = 256
"""The most tokens requested at once for a typed text that is continued.

Each call costs the prompt again, and a stream that no longer fits is ended early anyway.
"""

_MAX_REMEMBERED = 256


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
        reading = Reading(request_for(ask, self.model, self.capabilities), ask)
        try:
            resource, arguments = self._asked(reading)
            if ask.timeout is not None:
                stop_asking(resource, reading.time)
            if self._streams(reading):
                response = reading.time.begun(lambda: resource.create(**arguments, stream=True))
                with reading.time.closing(response):
                    reading.no_stream = no_stream_of(response)
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
        reading = Reading(request_for(ask, self.model, self.capabilities), ask)
        try:
            resource, arguments = self._asked(reading)
            async with reading.time.awaiting():
                response = await resource.create(**arguments, stream=self._streams(reading))
            if self._streams(reading):
                try:
                    reading.no_stream = no_stream_of(response)
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

    def _streams(self, reading: Reading) -> bool:
        return self.capabilities.stream and reading.ask.kind != "choose"

    def _asked(self, reading: Reading) -> tuple[Any, dict[str, Any]]:
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
