"""A guided text as it comes: the part that fits so far, and the answer that is being read.

One idea: an answer is shown while it arrives, and then the text that results from it. If these
differ, because something was corrected, everything shown is taken back and shown again.
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
"""A part of a text; None if everything shown is taken back; the result is last."""


def guided_pieces(
    loop: TextGuide,
    drafter: StreamingDrafter,
    listeners: Sequence[Callable[[Event], None]] = (),
    *,
    is_json: bool,
) -> Iterator[GuidedPiece]:
    """Run a guided text without a chooser, and show it.

    Args:
        loop: The text, not yet begun.
        drafter: The drafter.
        listeners: Called with each event as it happens.
        is_json: The text is JSON, which is also shown before it is known to fit.
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
    """The answer to a request, if it is the beginning of the text."""
    return _Coming(loop.start, is_json) if ask.kind != "choose" and not ask.prefix else None


class _Shown:
    """What has been shown."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def add(self, piece: str) -> str:
        self._parts.append(piece)
        return piece

    def settled(self, text: str) -> Iterator[str | None]:
        """What must be shown to arrive at this text."""
        shown = "".join(self._parts)
        self._parts = [text]
        if not text.startswith(shown):
            yield None
            shown = ""
        if len(text) > len(shown):
            yield text[len(shown) :]


class _Coming:
    """An answer while it arrives: the part of it that is the text."""

    def __init__(self, matcher: GrammarMatcher, is_json: bool) -> None:
        self._matcher = matcher
        self._is_json = is_json
        self._waiting = ""  # possibly talk
        self._reads: str = "start"  # or "fitting", "json", "nothing"

    def feed(self, piece: str) -> str:
        """What must be shown after one more piece."""
        if self._reads == "json":
            return piece
        if self._reads == "fitting":
            return self._fitting(piece)
        if self._reads == "nothing":
            return ""
        self._waiting += piece
        bracket = min((at for at in map(self._waiting.find, "{[") if at >= 0), default=-1)
        if self._is_json and bracket >= 0 and _may_precede(self._waiting[:bracket]):
            # Members may come in another order than the grammar's, so fitting tells nothing.
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
    """Whether this may precede JSON: nothing, or talk that has ended."""
    return not talk.strip() or talk.rstrip(" \t").endswith(("\n", ":"))


_LONGEST_TALK = 4_096
