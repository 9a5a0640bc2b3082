"""What a reading of a document leaves out, and whether the value is another without it.

One idea: a reading notes which values of the document it put into the text. What it left out are
the greatest parts of the document of which it put nothing there.
"""

from __future__ import annotations

from collections.abc import Iterator

from stencilm.generation.result import LeftOut
from stencilm.guiding.loose_json import Elements, Members, Node, Scalar, read
from stencilm.guiding.outline import Outline


class Placed:
    """What a reading knows of the values of a document.

    Attributes:
        values: Those that stand in the text, by identity.
        known: Keys that the grammar took somewhere, by identity.
        room: How many elements of an array were tried before it took no further one, by identity.
        has_sets: The grammar may refuse an element because an equal one is there.
        before: How many items of an array, by identity, the document leaves out before its first.
        names: How the first member of an object is named, by identity, where the document has
            another name for it.
    """

    def __init__(self, *, has_sets: bool) -> None:
        self.values: set[int] = set()
        self.known: set[int] = set()
        self.room: dict[int, int] = {}
        self.has_sets = has_sets
        self.before: dict[int, int] = {}
        self.names: dict[int, str] = {}

    def stands(self, node: Elements | Members, begun: Outline, level: int) -> None:
        """An object or array stands in the text already, and the document has what is open of it.

        Args:
            node: What the document has of it.
            begun: The text so far.
            level: How many brackets of it are around this one.
        """
        self.values.add(id(node))
        if isinstance(node, Elements):
            self.before[id(node)] = begun.counts[level]
        elif level + 1 < len(begun.brackets):
            self.names[id(node)] = _text_of(begun.names[level])

    def left_out(self, root: Node) -> Iterator[LeftOut]:
        """The parts of a document that do not stand in the text, in the document's order."""
        todo: list[tuple[str, Node]] = [("", root)]
        while todo:
            path, here = todo.pop()
            if isinstance(here, Scalar) or id(here) not in self.values:
                continue
            inner: list[tuple[str, Node]] = []
            for name, value, changes_value in self._items(here):
                below = f"{path}/{name}"
                if id(value) in self.values:
                    inner.append((below, value))
                else:
                    yield LeftOut(below, _shown(value), changes_value)
            todo += reversed(inner)

    def _items(self, node: Elements | Members) -> Iterator[tuple[str, Node, bool]]:
        """The items that say something, each with whether the value is another without it."""
        seen: set[str] = set()
        if isinstance(node, Elements):
            room = self.room.get(id(node), len(node.values))
            for number, value in enumerate(node.values):
                shown = _shown(value) if self.has_sets else ""
                name = str(self.before.get(id(node), 0) + number)
                yield name, value, number >= room or shown not in seen
                if self.has_sets:
                    seen.add(shown)
            return
        for number, (key, member) in enumerate(node.items):
            if member is None or (isinstance(member, Scalar) and _is_null(member)):
                continue
            name = key.text if number else self.names.get(id(node), key.text)
            name = name.replace("~", "~0").replace("/", "~1")
            shown = f"{name}: {_shown(member)}"
            yield name, member, id(key) in self.known and shown not in seen
            seen.add(shown)


def _text_of(string: str) -> str:
    """The characters of a string of JSON."""
    node, _ = read(string)
    return node.text if isinstance(node, Scalar) else string


def _is_null(scalar: Scalar) -> bool:
    return scalar.kind == "constant" and scalar.text == "null"


def _shown(node: Node) -> str:
    """A value as the draft spelled its scalars."""
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
