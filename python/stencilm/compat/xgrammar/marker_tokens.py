"""Structural tags whose markers are tokens, for parsers that recognise a marker by its id.

One idea: texts of a tag are split at its markers, each of which becomes a token format. If a token
ends free text, the free text becomes free tokens. A part that cannot be expressed with tokens is
reported, not left as text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from stencilm.compat.xgrammar.formats import (
    AnyTextFormat,
    AnyTokensFormat,
    ConstStringFormat,
    DispatchFormat,
    OptionalFormat,
    OrFormat,
    PlusFormat,
    RepeatFormat,
    SequenceFormat,
    StarFormat,
    StructuralTag,
    TagFormat,
    TagsWithSeparatorFormat,
    TokenDispatchFormat,
    TokenFormat,
    TokenTriggeredTagsFormat,
    TriggeredTagsFormat,
)

_Changed = TypeVar("_Changed", bound=Any)


def with_marker_tokens(tag: StructuralTag, markers: Sequence[str]) -> StructuralTag:
    """The tag with these markers as tokens; within arguments and patterns they stay text.

    Markers in the texts of a `repeat` or a `dispatch` also stay text.

    Raises:
        ValueError: A marker ends a part that a token cannot end.
    """
    return tag.model_copy(update={"format": _Markers(markers).bound(tag.format)})


class _Markers:
    """The markers; longer ones are matched first."""

    def __init__(self, markers: Sequence[str]) -> None:
        self._known = sorted({marker for marker in markers if marker}, key=len, reverse=True)
        self._markers = re.compile(f"({'|'.join(map(re.escape, self._known))})")

    def bound(self, given: Any) -> Any:
        """The format with tokens for its markers."""
        if isinstance(given, ConstStringFormat):
            pieces = self._pieces(given.value)
            return given if pieces == [given] else _sequence(pieces)
        if isinstance(given, TagFormat):
            return self._tag(given, begins_by_token=isinstance(given.begin, str))
        if isinstance(given, TriggeredTagsFormat):
            return self._triggered(given)
        if isinstance(given, TokenTriggeredTagsFormat | TagsWithSeparatorFormat):
            return _with(given, tags=[self.bound(tag) for tag in given.tags])
        if isinstance(given, SequenceFormat | OrFormat):
            return _with(given, elements=[self.bound(element) for element in given.elements])
        if isinstance(given, OptionalFormat | PlusFormat | StarFormat):
            return _with(given, content=self.bound(given.content))
        return given

    def _pieces(self, text: str) -> list[Any]:
        """A text split at its markers; the text itself if it has none."""
        if not self._known:
            return [ConstStringFormat(value=text)]
        # Every second part is a marker.
        parts = enumerate(self._markers.split(text))
        pieces: list[Any] = [
            TokenFormat(token=part) if number % 2 else ConstStringFormat(value=part)
            for number, part in parts
            if part
        ]
        return pieces or [ConstStringFormat(value=text)]

    def _leading(self, text: str) -> str | None:
        return next((marker for marker in self._known if text.startswith(marker)), None)

    def _trailing(self, text: str) -> str | None:
        return next((marker for marker in self._known if text.endswith(marker)), None)

    def _tag(self, tag: TagFormat, *, begins_by_token: bool) -> TagFormat:
        begin: Any = tag.begin
        before: list[Any] = []
        after: list[Any] = []
        leading = self._leading(begin) if begins_by_token else None
        if leading is not None:
            before = self._rest(begin[len(leading) :])
            begin = TokenFormat(token=leading)
        end: Any = tag.end
        if isinstance(end, list):
            self._check_ends(end)
        trailing = self._trailing(end) if isinstance(end, str) else None
        content = self.bound(tag.content)
        if trailing is not None:
            after = self._rest(end[: len(end) - len(trailing)])
            end = TokenFormat(token=trailing)
            content = self._ended_by_token(content)
        return _with(tag, begin=begin, content=_sequence([*before, content, *after]), end=end)

    def _rest(self, text: str) -> list[Any]:
        return self._pieces(text) if text else []

    def _check_ends(self, ends: list[Any]) -> None:
        wrong = [end for end in ends if isinstance(end, str) and self._trailing(end) is not None]
        if wrong:
            raise ValueError(
                f"token_markers: the ends of a tag are {ends!r:.200}, and {wrong[0]!r:.80} ends "
                "with a marker: give it one end, or leave token_markers out"
            )

    def _triggered(self, given: TriggeredTagsFormat) -> Any:
        """Free tokens, if every trigger begins with a marker; otherwise the free text as it was."""
        leading = [self._leading(trigger) for trigger in given.triggers]
        begun = [
            self._leading(tag.begin) if isinstance(tag.begin, str) else None for tag in given.tags
        ]
        if None in leading or not set(begun) <= set(leading):
            # A tag in free text must begin with its trigger, as text.
            return _with(given, tags=[self._tag(tag, begins_by_token=False) for tag in given.tags])
        triggers: list[Any] = list(dict.fromkeys(leading))
        return TokenTriggeredTagsFormat(
            trigger_tokens=triggers,
            tags=[self._tag(tag, begins_by_token=True) for tag in given.tags],
            # Free tokens cannot exclude a text that several tokens spell.
            exclude_tokens=[text for text in given.excludes if text in self._known],
            at_least_one=given.at_least_one,
            stop_after_first=given.stop_after_first,
        )

    def _ended_by_token(self, given: Any) -> Any:
        """Turn the free text within a format into free tokens, since a token ends it."""
        if isinstance(given, AnyTextFormat):
            others = [text for text in given.excludes if text not in self._known]
            if others or given.max_chars is not None:
                what = f"excludes {others!r:.80}" if others else f"max_chars={given.max_chars}"
                raise ValueError(
                    f"token_markers: free text with {what} cannot be ended by the token of a "
                    "marker: leave that out, or token_markers"
                )
            excludes: list[Any] = list(given.excludes)
            return AnyTokensFormat(exclude_tokens=excludes, max_tokens=given.max_tokens)
        if isinstance(given, RepeatFormat | DispatchFormat | TokenDispatchFormat):
            raise ValueError(
                f"token_markers: a {given.type} cannot be ended by the token of a marker, since "
                "text within it stays text: use another format, or leave token_markers out"
            )
        if isinstance(given, SequenceFormat | OrFormat):
            return _with(
                given, elements=[self._ended_by_token(element) for element in given.elements]
            )
        if isinstance(given, OptionalFormat | PlusFormat | StarFormat):
            return _with(given, content=self._ended_by_token(given.content))
        return given


def _with(given: _Changed, **fields: Any) -> _Changed:
    changed: _Changed = given.model_copy(update=fields)
    return changed


def _sequence(elements: list[Any]) -> Any:
    """The sequence of these elements; a single element without a sequence."""
    return elements[0] if len(elements) == 1 else SequenceFormat(elements=elements)
