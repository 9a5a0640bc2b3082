"""Reasoning before the answer, for every model.

One idea: a model whose chat template shows how it reasons does so in its own markers, within the
text (`stencilm.matching.reasoning`). Any other model is called twice, first to reason and then to
answer; so is a model that writes a draft first.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from stencilm.generation.result import Generation
from stencilm.generation.sampling import Sampling
from stencilm.generation.trace import Event, Forced, Sampled, Trace
from stencilm.generation.trace import Prompt as PromptEvent
from stencilm.generation.trace import Reasoned as ReasonedEvent
from stencilm.matching.matcher import GrammarMatcher
from stencilm.matching.reasoning import (
    DEFAULT_REASONING,
    ReasoningFormat,
    ReasoningMatcher,
    reasoning_tokens,
)
from stencilm.models.prompts import Conversation, with_text
from stencilm.models.protocol import LanguageModel, Prompt
from stencilm.whole_numbers import MOST, as_whole, shown

Reasoning: TypeAlias = Literal["auto", "draft"] | bool | int
"""Whether a model reasons before its answer.

"auto": if its chat template makes it reason, or the prompt ends with its marker. True: it does.
False: it does not, if its template can express that. A number: it does, with at most this many
tokens. "draft": it writes a free answer first, then the same answer in the requested form.
"""


def checked_reasoning(value: Any) -> Reasoning:
    """Check the option. Raises ValueError for an invalid one."""
    is_word = isinstance(value, str) and value in ("auto", "draft")
    if is_word or isinstance(value, bool):
        checked: Reasoning = value
        return checked
    number = as_whole(value)
    if number is not None and 0 <= number <= MOST:
        return number
    raise ValueError(
        f"reasoning is {shown(value)}, but must be 'auto', 'draft', True, False, or a number of "
        "tokens"
    )


def budget_of(reasoning: Reasoning) -> int:
    """The most tokens of reasoning."""
    number = as_whole(reasoning)
    if number is not None:
        return number
    return 0 if reasoning is False else DEFAULT_REASONING


def format_of(backend: LanguageModel) -> ReasoningFormat | None:
    """The markers in which a model reasons; None if they are not known."""
    form: ReasoningFormat | None = getattr(backend, "reasoning_format", None)
    return form


def begin(
    backend: LanguageModel,
    matcher: GrammarMatcher,
    prompt: Prompt,
    reasoning: Reasoning,
    max_tokens: int,
) -> tuple[list[int], GrammarMatcher | ReasoningMatcher]:
    """The tokens of a prompt, and the matcher of the text after it, including its reasoning.

    Args:
        backend: The model.
        matcher: The matcher of the answer.
        prompt: Text, or chat messages; the template is told whether to allow reasoning.
        reasoning: As for a call; "draft" counts as False, because the draft already exists.
        max_tokens: The most tokens of the answer: this many stay free in the model's context, or
            half of the rest of it.
    """
    form = format_of(backend)
    if form is None or (isinstance(prompt, Conversation) and prompt.has_reasoning_format):
        return backend.encode(prompt), matcher
    is_wanted = not (reasoning is False or reasoning == "draft")
    is_chat = not isinstance(prompt, str)
    if not isinstance(prompt, str) and reasoning != "auto":
        prompt = Conversation.of(prompt, {name: is_wanted for name in form.switches})
    prompt_ids = backend.encode(prompt)
    tokens = reasoning_tokens(backend.tokenizer_info, form)
    end = tokens.end_of(prompt_ids)
    is_open, is_closed = form.is_open(end), form.is_closed(end)
    if reasoning == "auto":
        is_wanted = is_open or (is_chat and form.is_on and not is_closed)
    if not is_wanted and not is_open:
        if is_chat and not is_closed:
            prompt_ids = [*prompt_ids, *tokens.encode(form.without)]
        return prompt_ids, matcher
    budget = budget_of(reasoning) if is_wanted else 0
    if backend.context_size is not None:
        room = backend.context_size - len(prompt_ids) - len(tokens.begin) - len(tokens.whole_end)
        budget = max(0, min(budget, room - min(max_tokens, room // 2)))
    return prompt_ids, ReasoningMatcher(matcher, tokens, budget, is_open=is_open)


@dataclass(frozen=True, slots=True)
class Reasoned:
    """A prompt with the text that the model wrote before its answer.

    Attributes:
        prompt_ids: The tokens after which the answer begins.
        text: The reasoning, or the draft; None if there is none.
        num_tokens: Its number of tokens, including markers.
        passes: Its number of forward passes.
    """

    prompt_ids: list[int]
    text: str | None = None
    num_tokens: int = 0
    passes: int = 0


def reason(
    backend: LanguageModel,
    new_matcher: Callable[[], GrammarMatcher],
    prompt: Prompt,
    reasoning: Reasoning,
    max_tokens: int,
    sampling: Sampling | None = None,
) -> Generator[Event, None, Reasoned]:
    """Let a local model reason before its answer, for callers that generate the answer themselves.

    Args:
        backend: The model.
        new_matcher: Makes a fresh matcher of free text.
        prompt: Text, or chat messages.
        reasoning: As for a call.
        max_tokens: The most tokens of the answer: this many stay free in the model's context, or
            half of the rest of it; also the most tokens of a draft.
        sampling: The sampling; None takes the most probable tokens.

    Yields:
        A `Reasoned` event for each part.
    """
    from stencilm.generation.loop import Decoding

    is_draft = reasoning == "draft"
    is_asked = not isinstance(reasoning, str) and budget_of(reasoning) > 0
    text: str | None = None
    tokens = passes = 0
    if is_draft or (is_asked and format_of(backend) is None):
        steps = TwoSteps(is_draft, as_text=True)
        first = steps.first(prompt)
        ids, matcher = begin(
            backend, new_matcher(), first, "auto" if is_draft else False, max_tokens
        )
        limit = max_tokens if is_draft else budget_of(reasoning)
        if backend.context_size is not None:
            limit = min(limit, max(1, (backend.context_size - len(ids)) // 2))
        decoding = Decoding(backend, matcher, ids, sampling=sampling, max_tokens=limit)
        for event in decoding:
            if isinstance(event, (Sampled, Forced, ReasonedEvent)):
                yield _as_reasoning(event)
        written = decoding.result()
        stats = written.stats
        text, passes = written.text.strip(), stats.forward_passes
        tokens = stats.tokens + stats.reasoning_tokens
        prompt, reasoning = steps.then(prompt, written.text), False
    ids, matcher = begin(backend, new_matcher(), prompt, reasoning, max_tokens)
    if not isinstance(matcher, ReasoningMatcher):
        return Reasoned(ids, text, tokens, passes)
    decoding = Decoding(backend, matcher, ids, sampling=sampling, max_tokens=max_tokens)
    while matcher.is_reasoning:
        event = next(decoding)
        if isinstance(event, ReasonedEvent):
            yield event
    taken = list(matcher.reasoning_token_ids)
    passes += decoding.stats.forward_passes
    text = matcher.reasoning if text is None else text
    return Reasoned([*ids, *taken], text, tokens + len(taken), passes)


def after_reasoning(
    generation: Generation[Any], reasoned: Reasoned, events: Sequence[Event]
) -> Generation[Any]:
    """An answer that was generated after reasoning, with the reasoning, its events and its cost."""
    if not reasoned.num_tokens:
        return generation
    prompt, *rest = generation.trace
    if isinstance(prompt, PromptEvent):
        begun = b"".join(event.text for event in events if isinstance(event, ReasonedEvent))
        prompt = PromptEvent(
            token_ids=prompt.token_ids[: -reasoned.num_tokens],
            text=prompt.text[: len(prompt.text) - len(begun)],
        )
    stats = generation.stats
    return replace(
        generation,
        reasoning=reasoned.text,
        trace=Trace([prompt, *events, *rest]),
        stats=replace(
            stats,
            prompt_tokens=stats.prompt_tokens - reasoned.num_tokens,
            reasoning_tokens=reasoned.num_tokens,
            forward_passes=stats.forward_passes + reasoned.passes,
        ),
    )


def _as_reasoning(event: Sampled | Forced | ReasonedEvent) -> ReasonedEvent:
    if isinstance(event, ReasonedEvent):
        return event
    token_ids = (event.token_id,) if isinstance(event, Sampled) else event.token_ids
    return ReasonedEvent(token_ids=token_ids, text=event.text, logprob=None)


@dataclass(frozen=True, slots=True)
class TwoSteps:
    """Two requests: a first text, then the answer.

    Attributes:
        is_draft: The first text is a draft of the answer, not reasoning.
        as_text: A prompt that is a text is continued; otherwise it becomes a message.
    """

    is_draft: bool
    as_text: bool

    def first(self, prompt: Prompt) -> Prompt:
        """The prompt of the first text."""
        if self.is_draft:
            return prompt
        if self.as_text and isinstance(prompt, str):
            return f"{prompt}\n\nReasoning, step by step:\n"
        return _with_instruction(prompt, _REASON)

    def then(self, prompt: Prompt, written: str) -> Prompt:
        """The prompt of the answer."""
        if self.as_text and isinstance(prompt, str):
            if self.is_draft:
                return f"{prompt}{written}\n\nThe same in the form asked for:\n"
            return f"{self.first(prompt)}{written}\n\nAnswer:\n"
        messages: list[dict[str, Any]] = [
            *_messages(self.first(prompt)),
            {"role": "assistant", "content": written},
            {"role": "user", "content": _SAME if self.is_draft else _ANSWER},
        ]
        return Conversation(messages, prompt.tools if isinstance(prompt, Conversation) else ())


_REASON = "First think it through, step by step. Do not give the answer yet."
_ANSWER = "Now give the answer, and nothing else."
_SAME = "Now write that answer in the form that was asked for. Do not change what it says."


def with_first(
    generation: Generation[Any], first: Generation[Any], *, adds_prompts: bool = False
) -> Generation[Any]:
    """An answer with the text that was asked for before it, and what that cost.

    `adds_prompts` says that the prompts of all requests are counted; else that of the answer is,
    with which its trace begins.
    """
    before, stats = first.stats, generation.stats
    prompts = before.prompt_tokens if adds_prompts else 0
    return replace(
        generation,
        reasoning=first.text.strip(),
        stats=replace(
            stats,
            prompt_tokens=stats.prompt_tokens + prompts,
            cached_tokens=stats.cached_tokens + before.cached_tokens,
            reasoning_tokens=stats.reasoning_tokens + before.reasoning_tokens + before.tokens,
            forward_passes=stats.forward_passes + before.forward_passes,
            mask_seconds=stats.mask_seconds + before.mask_seconds,
            model_seconds=stats.model_seconds + before.model_seconds,
            sampling_seconds=stats.sampling_seconds + before.sampling_seconds,
            seconds=stats.seconds + before.seconds,
            cost=stats.cost + before.cost,
            saved_passes=stats.saved_passes + before.saved_passes,
            is_estimate=stats.is_estimate or before.is_estimate,
        ),
    )


def _messages(prompt: Prompt) -> list[dict[str, Any]]:
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    return [dict(message) for message in prompt]


def _with_instruction(prompt: Prompt, text: str) -> Prompt:
    messages: Sequence[dict[str, Any]] = with_text(_messages(prompt), text)
    return Conversation(messages, prompt.tools if isinstance(prompt, Conversation) else ())
