"""The parts of a document that a reading leaves out, and whether that changes the value.

One idea: a reading records which values of the document it has put into the text. The parts left
out are the largest parts of the document without any such value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stencilm.generation.result import LeftOut
from stencilm.guiding.loose_json import Elements, Members, Node, Scalar, read
from stencilm.guiding.outline import Outline


class _Item(NamedTuple):
    """An item of an object or array; `key` is None in an array."""

    path: str
    key: Scalar | None
    value: Node


class Placed:
    """A reading's record about the values of a document.

    Attributes:
        values: Values that are in the text, by identity.
        known: Keys that the grammar accepted somewhere, by identity.
        no_room: Elements for which the array had no room, by identity.
        has_sets: The grammar may refuse an element because an equal one exists.
        before: For an array, by identity, the number of elements that the document omits at its
            start.
        names: The name of an object's first member, by identity, if the document has a placeholder
            for it.
    """

    def __init__(self, *, has_sets: bool) -> None:
        self.values: set[int] = set()
        self.known: set[int] = set()
        self.no_room: set[int] = set()
        self.has_sets = has_sets
        self.before: dict[int, int] = {}
        self.names: dict[int, str] = {}

    def stands(self, node: Elements | Members, begun: Outline, level: int) -> None:
        """Record an object or array that is already in the text, and open in the document.

        Args:
            node: Its part of the document.
            begun: The text so far.
            level: The number of brackets around it.
        """
        self.values.add(id(node))
        if isinstance(node, Elements):
            self.before[id(node)] = begun.counts[level]
        elif level + 1 < len(begun.brackets):
            self.names[id(node)] = _text_of(begun.names[level])

    def left_out(self, root: Node) -> Iterator[LeftOut]:
        """The parts of a document that are not in the text, outer ones first."""
        todo = [_Item("", None, root)] if id(root) in self.values else []
        while todo:
            items = list(self._items(todo.pop()))
            placed = [item for item in items if id(item.value) in self.values]
            if len(placed) < len(items):
                yield from self._missing(items)
            todo += reversed(placed)

    def _missing(self, items: Sequence[_Item]) -> Iterator[LeftOut]:
        """The items of an object or array that are not in the text."""
        seen: set[tuple[str | None, str]] = set()
        has_room = True
        for path, key, value in items:
            has_room = has_room and id(value) not in self.no_room
            said = (None if key is None else key.text, _shown(value))
            if id(value) not in self.values:
                is_again = said in seen and (key is not None or (self.has_sets and has_room))
                has_place = key is None or id(key) in self.known
                yield LeftOut(path, said[1], has_place and not is_again)
            seen.add(said)

    def _items(self, outer: _Item) -> Iterator[_Item]:
        """The items of an object or array that say something."""
        node = outer.value
        if isinstance(node, Elements):
            for number, value in enumerate(node.values, self.before.get(id(node), 0)):
                yield _Item(f"{outer.path}/{number}", None, value)
        elif isinstance(node, Members):
            for number, (key, member) in enumerate(node.items):
                if member is None or (isinstance(member, Scalar) and _is_null(member)):
                    continue
                name = key.text if number else self.names.get(id(node), key.text)
                name = name.replace("~", "~0").replace("/", "~1")
                yield _Item(f"{outer.path}/{name}", key, member)


def _text_of(string: str) -> str:
    """The characters of a JSON string."""
    node, _ = read(string)
    return node.text if isinstance(node, Scalar) else string


def _is_null(scalar: Scalar) -> bool:
    return scalar.kind == "constant" and scalar.text == "null"


def _shown(node: Node) -> str:
    """A value with its scalars as the draft spelled them."""
    found: list[str] = []
    todo: list[Node | str] = [node]
    while todo:
        here = todo.pop()
        if isinstance(here, str):
            found.append(here)
        elif isinstance(here, Scalar):
            found.append(here.spelling)
        elif isinstance(here, Elements):
            items: list[Node | str] = [part for value in here.values for part in (", ", value)]
            todo += reversed(["[", *items[1:], "]"])
        else:
            parts: list[Node | str] = []
            for key, member in here.items:
                parts += [", ", key, ": ", "" if member is None else member]
            todo += reversed(["{", *parts[1:], "}"])
    return "".join(found)
