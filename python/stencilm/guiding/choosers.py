"""Choosing among candidates: by a model's probabilities, or by the label in a function's answer.

One idea: a choice is a generator that yields the call to make and is sent its result. So the same
code serves synchronous and asynchronous callers, and an event loop is never blocked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias

from stencilm.callbacks import passed_on
from stencilm.errors import StencilError
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.output_types import alternatives
from stencilm.guiding.drafts import Answer, Consult, is_coroutine_function
from stencilm.guiding.labels import Labels
from stencilm.in_thread import in_thread
from stencilm.matching.candidates import Candidate, Literal, Pattern
from stencilm.matching.texts import byte_matcher
from stencilm.shown import shown_value
from stencilm.whole_numbers import as_whole, shown

_CHOICE_TOKENS = 32

Choosing: TypeAlias = Generator[Callable[[], Any], Any, Answer]


def choose_candidate(candidates: Sequence[Candidate | str], prefix: str, target_model: Any) -> str:
    """The candidate that a model prefers after a prefix; for a pattern, a text that it writes.

    Args:
        candidates: What may come; a plain str means its own text.
        prefix: The text so far, including the prompt.
        target_model: A `stencilm.Model`, which takes the most probable of them; an API model; or
            any `fn(prompt) -> str`, which is given the numbered texts and returns a number: a
            letter if a text contains a digit. If the answer names none of them, the first is taken.

    Raises:
        ValueError: There is no candidate.
        TypeError: `candidates` is not a list of candidates, or `target_model` is of another type.

    Examples:
        >>> import stencilm
        >>> stencilm.choose_candidate(["bus", "bike"], "I ride a ", lambda prompt: "2")
        'bike'
    """
    if isinstance(candidates, str) or not isinstance(candidates, Iterable):
        raise TypeError(f"candidates is {shown_value(candidates):.60}, but must be a list of them")
    given = tuple(Literal(one) if isinstance(one, str) else one for one in candidates)
    if not given:
        raise ValueError("there are no candidates to choose from")
    answer = Chooser(target_model).answer(Consult(given, prefix))
    if answer.error is not None:
        raise passed_on(answer.error, "the target model")
    return answer.text or _first(given)


def chooser_of(target_model: Any) -> Chooser | None:
    """The chooser of a target model; None if there is none."""
    if target_model is None or isinstance(target_model, Chooser):
        return target_model
    return Chooser(target_model)


class Chooser:
    """Chooses one of some candidates; a call that fails becomes an answer with an error.

    Raises TypeError for an unsuitable target model.
    """

    def __init__(self, target_model: Any) -> None:
        if not callable(target_model):
            raise TypeError(
                f"target_model is a {type(target_model).__name__}, but must be a stencilm.Model, "
                "an API model, or a function of a prompt"
            )
        self._target = target_model
        self.is_async = getattr(target_model, "is_async", False) or is_coroutine_function(
            target_model
        )

    def answer(self, consult: Consult) -> Answer:
        """The choice; its text is None if the answer names none of the candidates."""
        if self.is_async:
            raise TypeError("the target model is asynchronous: await stencilm.aguide")
        started = perf_counter()
        steps = self._choice(consult)
        given: Any = None
        try:
            while True:
                try:
                    call = steps.send(given)
                except StopIteration as end:
                    return _answered(end)
                given = call()
                if inspect.iscoroutine(given):
                    given.close()  # which is never awaited
                    raise TypeError("the target model gives a coroutine: await stencilm.aguide")
        except Exception as error:
            return Answer(means="chooser", error=error, seconds=perf_counter() - started)

    async def answer_async(self, consult: Consult) -> Answer:
        """The same, awaited; a function that is not a coroutine function runs in a thread.

        A coroutine function must not run in a thread: a thread that it waits for may be waiting for
        it.
        """
        started = perf_counter()
        steps = self._choice(consult)
        given: Any = None
        try:
            while True:
                try:
                    call = steps.send(given)
                except StopIteration as end:
                    return _answered(end)
                given = call() if self.is_async else await in_thread(call)
                if inspect.isawaitable(given):
                    given = await given
        except Exception as error:
            return Answer(means="chooser", error=error, seconds=perf_counter() - started)

    def _choice(self, consult: Consult) -> Choosing:
        started = perf_counter()
        literals = [one.text for one in consult.candidates if isinstance(one, Literal)]
        if len(consult.candidates) == len(literals) < 2:
            return Answer(text="".join(literals), means="chooser", calls=0)
        grammar = candidates_grammar(consult.candidates)
        if hasattr(self._target, "short"):
            guided = yield partial(
                self._target.short, consult.prefix, grammar, max_tokens=_CHOICE_TOKENS
            )
            usage = guided.usage
            return Answer(
                text=guided.response, means="chooser", seconds=perf_counter() - started,
                prompt_tokens=usage.prompt_tokens, output_tokens=usage.output_tokens,
                cached_tokens=usage.cached_tokens, cost=usage.cost, calls=usage.calls,
            )  # fmt: skip
        if hasattr(self._target, "backend"):
            generation = yield partial(
                self._target.generate, consult.prefix, grammar, max_tokens=_CHOICE_TOKENS
            )
            stats = generation.stats
            return Answer(
                text=generation.text, means="chooser", seconds=perf_counter() - started,
                prompt_tokens=stats.prompt_tokens, output_tokens=stats.tokens,
                calls=stats.forward_passes,
            )  # fmt: skip
        labels = Labels(literals)
        question = _question(consult.prefix, labels) if literals else consult.prefix
        text = _said((yield partial(self._target, question)))
        chosen = labels.picked(text) if literals else _beginning(text, grammar)
        return Answer(text=chosen or "", means="chooser", seconds=perf_counter() - started)


def _said(given: Any) -> str:
    """The text of a function's answer; a number becomes its digits."""
    number = as_whole(given)
    if number is not None:
        return shown(number)
    if not isinstance(given, str):
        raise TypeError(
            f"the target function gave {type(given).__name__} {shown_value(given):.60}, but must "
            "give a str "
            "or an int"
        )
    return given


def candidates_grammar(candidates: Sequence[Candidate]) -> Grammar:
    """The grammar of the texts of some candidates."""
    literals = [c.text for c in candidates if isinstance(c, Literal)]
    grammars = [Grammar.from_regex(alternatives(literals))] if literals else []
    grammars += [Grammar.from_regex(c.regex) for c in candidates if isinstance(c, Pattern)]
    return grammars[0] if len(grammars) == 1 else Grammar.union(*grammars)


def _question(prefix: str, labels: Labels) -> str:
    asked = labels.question(f"{prefix}\n\nWhich of these comes next in the text above?")
    return f"{asked}: "


def _beginning(text: str, grammar: Grammar) -> str:
    """The longest beginning of a text that fits."""
    draft = text.strip().encode("utf-8", "replace")
    valid = byte_matcher(grammar).longest_valid_prefix(draft).valid_bytes
    return draft[:valid].decode("utf-8", "ignore")


def _first(candidates: Sequence[Candidate]) -> str:
    """The first of the texts, or else the shortest text that a pattern matches."""
    for candidate in candidates:
        if isinstance(candidate, Literal):
            return candidate.text
    try:
        return byte_matcher(candidates_grammar(candidates)).shortest_completion().decode()
    except StencilError:
        return ""


def _answered(end: StopIteration) -> Answer:
    answer: Answer = end.value
    return answer
