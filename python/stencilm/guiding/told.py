"""Whether a response says all that its drafts said, and what else they held.

One idea: a reading lists what it leaves out of its document (`left_out`), but a document may have
no reading, or stand beside the one that the response says. So at the end the drafts are compared
with the response, value by value, however they were read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple, TypeAlias

from stencilm.generation.result import LeftOut
from stencilm.guiding.declared_orders import bare_name
from stencilm.guiding.extent import has_words, scalars_of, value_of
from stencilm.guiding.loose_json import (
    Elements,
    How,
    Listener,
    Members,
    Node,
    Scalar,
    read,
    read_on,
)

_Value: TypeAlias = str | Decimal
_OPENING = re.compile(r"[{\[]")


class _Document(NamedTuple):
    node: Elements | Members
    text: str


class Told:
    """What a response says of its drafts, however they were read.

    Args:
        response: The response, which is JSON.
        listed: What the readings of its drafts left out, and what models have replaced.
        is_cut: The last draft was not read to its end.
        is_late: Whether to stop reading.
    """

    def __init__(
        self,
        response: str,
        listed: Iterable[LeftOut | Scalar],
        *,
        is_cut: bool,
        is_late: Callable[[], bool],
    ) -> None:
        node, _ = read(response, is_late=is_late)
        self._node, self._form = node, _form(node)
        self._known = _values_of(node)
        for one in listed:
            self._known |= _values_in(one.text)
        self._response = response
        self._is_cut = is_cut
        self._is_late = is_late

    def others(self, said: str, *, is_exact: bool) -> tuple[LeftOut, ...] | None:
        """The documents of a text beside the one that the response says.

        None if the response says none of them; a text without documents says nothing beside it.

        Args:
            said: Drafts.
            is_exact: The response says exactly what its document does. Otherwise all values of
                that are in it, or are listed as left out.
        """
        if is_exact and (self._node is None or not _OPENING.search(said)):
            return None
        found = list(_documents(said, self._is_late))
        source = next((one for one in found if self._is_told(one.node, is_exact)), None)
        if source is None:
            return None if found or is_exact else ()
        form = _form(source.node)
        beside = [
            one for one in found if _form(one.node) != form and self._says_something(one.node)
        ]
        if not is_exact:
            # What the response says beyond its document, as the rest of it in another one.
            more = _values_of(self._node) - _values_of(source.node)
            parts = [one for one in beside if more & _values_of(one.node)]
            if not all(self._is_told(one.node, is_exact) for one in parts):
                return None  # the rest of another document
            beside = [one for one in beside if one not in parts]
        others = (LeftOut("", one.text, changes_value=False) for one in beside)
        return tuple(dict.fromkeys(others))

    def _is_told(self, node: Node, is_exact: bool) -> bool:
        if is_exact:
            return _form(node) == self._form
        return all(
            value_of(here) in self._known or (here.is_cut and here.text in self._response)
            for here in _values(node)
        )

    def _says_something(self, node: Elements | Members) -> bool:
        """Whether a document has a value, or was not read up to one."""
        return (self._is_cut and node.is_open) or next(_values(node), None) is not None


class _Behind(Listener):
    """Notes the first value that ends behind a position."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.found: Scalar | None = None

    def scalar(self, text: str, span: tuple[int, int], scalar: Scalar, how: How) -> None:
        if self.found is None and span[1] > self.at and not how.is_key:
            self.found = scalar


def value_behind(told: str, text: str) -> Scalar | None:
    """The first value of a text that is not a part of its beginning alone."""
    listener = _Behind(len(told))
    read_on(text, 0, [], listener)
    return listener.found


def words_read(text: str, is_late: Callable[[], bool]) -> Iterator[str]:
    """What a reader of a text takes notice of: its talk, and the scalars of its documents."""
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        yield text[at : opening.start()]
        node, end = read(text, opening.start(), is_late=is_late)
        for scalar in scalars_of(node):
            yield from (scalar.spelling, scalar.text)
        at = max(end, opening.end())
    yield text[at:]


def is_talk(text: str) -> bool:
    """Whether a text has no document with a value."""
    found = _documents(text, lambda: False)
    return all(next(_values(one.node), None) is None for one in found)


def _documents(text: str, is_late: Callable[[], bool]) -> Iterator[_Document]:
    """The objects and arrays of a text, without those that are a bracket and then talk."""
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        node, end = read(text, opening.start(), is_late=is_late)
        if isinstance(node, (Elements, Members)) and not (node.is_open and has_words(node)):
            yield _Document(node, text[opening.start() : end].strip())
        at = max(end, opening.end())


def _values(node: Node) -> Iterator[Scalar]:
    """The scalars of a document that say something, without the names of members."""
    todo: list[Node] = [node]
    while todo:
        here = todo.pop()
        if isinstance(here, Elements):
            todo += here.values
        elif isinstance(here, Members):
            todo += [value for _, value in here.items if value is not None]
            todo += here.unnamed
        elif here.text and (here.kind, here.text) != ("constant", "null"):
            yield here


def _values_of(node: Node | None) -> set[_Value]:
    return set() if node is None else {value_of(scalar) for scalar in _values(node)}


def _values_in(text: str) -> set[_Value]:
    node, _ = read(text)
    found = {text} if node is None else _values_of(node)
    return found | {value_of(Scalar("word", text, text))}


def _form(node: Node | None) -> object:
    """A value that is equal for documents that say the same."""
    if isinstance(node, Elements):
        return ["array", *map(_form, node.values)]
    if isinstance(node, Members):
        members = {bare_name(key.text) or key.text: _form(value) for key, value in node.items}
        unnamed = {number: _form(value) for number, value in enumerate(node.unnamed)}
        return {name: value for name, value in (members | unnamed).items() if value is not None}
    if node is None or (node.kind, node.text) == ("constant", "null"):
        return None
    return value_of(node)
