"""A guided text as it comes: what has fit so far, and the answer that is being read.

One idea: an answer is shown while it comes, and what it turns out to be afterwards. Where the two
differ, because something was corrected, all that was shown is taken back and shown anew.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import TypeAlias

from stencilm.generation.trace import Event
from stencilm.guiding.drafts import Answer, Ask, Consult, StreamingDrafter
from stencilm.guiding.task import Guided
from stencilm.guiding.text import TextGuide
from stencilm.matching.matcher import GrammarMatcher

GuidedPiece: TypeAlias = str | Guided | None
"""A part of a text; None where what was shown is taken back; the result last."""


def guided_pieces(
    loop: TextGuide,
    drafter: StreamingDrafter,
    listeners: Sequence[Callable[[Event], None]] = (),
    *,
    is_json: bool,
) -> Iterator[GuidedPiece]:
    """Run a guided text that has no chooser, and show it.

    Args:
        loop: The text, not begun.
        drafter: Who drafts it.
        listeners: Told each event as it happens.
        is_json: The text is JSON, which is shown also where it is not yet known to fit.
    """
    shown = _Shown()
    steps = loop.run()
    answer: Answer | None = None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration:
            yield from shown.settled(loop.response)
            yield loop.result()
            return
        answer = None
        if isinstance(step, Ask):
            coming = _coming(step, loop, is_json)
            for part in drafter.parts(step):
                if isinstance(part, Answer):
                    answer = part
                elif coming is not None and (piece := coming.feed(part)):
                    yield shown.add(piece)
        else:
            yield from _reported(step, loop, listeners, shown)


async def aguided_pieces(
    loop: TextGuide,
    drafter: StreamingDrafter,
    listeners: Sequence[Callable[[Event], None]] = (),
    *,
    is_json: bool,
) -> AsyncGenerator[GuidedPiece, None]:
    """`guided_pieces`, awaited."""
    shown = _Shown()
    steps = loop.run()
    answer: Answer | None = None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration:
            for settled in shown.settled(loop.response):
                yield settled
            yield loop.result()
            return
        answer = None
        if isinstance(step, Ask):
            coming = _coming(step, loop, is_json)
            async with aclosing(drafter.parts_async(step)) as parts:
                async for part in parts:
                    if isinstance(part, Answer):
                        answer = part
                    elif coming is not None and (piece := coming.feed(part)):
                        yield shown.add(piece)
        else:
            for reported in _reported(step, loop, listeners, shown):
                yield reported


def _reported(
    event: Event | Consult,
    loop: TextGuide,
    listeners: Sequence[Callable[[Event], None]],
    shown: _Shown,
) -> Iterator[str | None]:
    assert isinstance(event, Event), "invariant: there is no chooser to consult"
    loop.trace.append(event)
    for listener in listeners:
        listener(event)
    if loop.response:
        yield from shown.settled(loop.response)


def _coming(ask: Ask, loop: TextGuide, is_json: bool) -> _Coming | None:
    """The answer to a question, where it is the beginning of the text."""
    return _Coming(loop.start, is_json) if ask.kind != "choose" and not ask.prefix else None


class _Shown:
    """What was shown."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def add(self, piece: str) -> str:
        self._parts.append(piece)
        return piece

    def settled(self, text: str) -> Iterator[str | None]:
        """What is to be shown so that it is this text."""
        shown = "".join(self._parts)
        self._parts = [text]
        if not text.startswith(shown):
            yield None
            shown = ""
        if len(text) > len(shown):
            yield text[len(shown) :]


class _Coming:
    """An answer while it comes: what of it is the text."""

    def __init__(self, matcher: GrammarMatcher, is_json: bool) -> None:
        self._matcher = matcher
        self._is_json = is_json
        self._waiting = ""  # talk, perhaps
        self._reads: str = "start"  # or "fitting", "json", "nothing"

    def feed(self, piece: str) -> str:
        """What is to be shown of one more piece."""
        if self._reads == "json":
            return piece
        if self._reads == "fitting":
            return self._fitting(piece)
        if self._reads == "nothing":
            return ""
        self._waiting += piece
        bracket = min((at for at in map(self._waiting.find, "{[") if at >= 0), default=-1)
        if self._is_json and bracket >= 0 and _may_precede(self._waiting[:bracket]):
            # Members may come in another order than the grammar's, so what fits tells nothing.
            self._reads = "json"
            return self._waiting[bracket:]
        start = self._waiting.lstrip()
        verdict = self._matcher.longest_valid_prefix(start)
        if start and verdict.status != "dead":
            self._reads = "fitting"
            self._matcher.accept_string(start)
            return start
        if len(self._waiting) > _LONGEST_TALK:
            self._reads = "nothing"
        return ""

    def _fitting(self, piece: str) -> str:
        if self._matcher.accept_string(piece):
            return piece
        valid = self._matcher.longest_valid_prefix(piece).valid_bytes
        self._reads = "nothing"
        return piece.encode("utf-8", "replace")[:valid].decode("utf-8", "ignore")


def _may_precede(talk: str) -> bool:
    """Whether this may stand before JSON: nothing, or talk that has ended."""
    return not talk.strip() or talk.rstrip(" \t").endswith(("\n", ":"))


_LONGEST_TALK = 4_096
