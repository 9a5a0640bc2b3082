"""How much a document says, and where it continues.

One idea: two texts that say the same may differ in order and spelling, so they are compared by how
much they say. A continuation of one is a continuation of the other only if the same objects and
lists are open in both, with the same last item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation

from stencilm.guiding.declared_orders import bare_name
from stencilm.guiding.loose_json import (
    Elements,
    Members,
    Node,
    Scalar,
    begins_value,
    ends_in_escape,
    number_in,
    read,
)
from stencilm.guiding.rewriting import content


def said_by(node: Node | None) -> int:
    """How much a document says: its words and numbers, and how many values it has."""
    total = 0
    for here in _parts(node):
        total += 1
        if isinstance(here, Scalar):
            total += content(here.text.encode("utf-8", "replace"))
    return total


def goes_on_alike(one: Node | None, other: Node | None) -> bool:
    """Whether a continuation of one document, which was cut, also continues another one."""
    while _is_open(one) and _is_open(other):
        if isinstance(one, Elements) and isinstance(other, Elements):
            one, other = (node.values[-1] if node.values else None for node in (one, other))
        elif isinstance(one, Members) and isinstance(other, Members):
            (key, one), (other_key, other) = map(_last, (one, other))
            if bare_name(key) != bare_name(other_key):
                return False
        else:
            return False
    if isinstance(one, Scalar) and isinstance(other, Scalar):
        is_within = one.is_cut and ends_in_escape(one.spelling)
        return value_of(one) == value_of(other) and not is_within
    return type(one) is type(other) and _is_open(one) == _is_open(other)


def has_words(node: Node | None) -> bool:
    """Whether a document has words without quotes.

    A cut `tr` at the end of a draft does not count: it may become `true`.
    """
    words = (here for here in _parts(node) if isinstance(here, Scalar) and here.kind == "word")
    return any(not (word.is_cut and begins_value(word.text)) for word in words)


def has_brackets(node: Node | None) -> bool:
    """Whether a word without quotes contains an opening bracket, as talk before a document does."""
    words = (here for here in _parts(node) if isinstance(here, Scalar) and here.kind == "word")
    return any("[" in word.text or "{" in word.text for word in words)


def are_items(talk: str, told: str) -> bool:
    """Whether the beginning of a draft consists of items of the object or array that is open.

    Talk contains words, and does not end with a comma, unlike items that are followed by others.

    Args:
        talk: The beginning of the draft.
        told: The text so far, or what a reader of its rest must know of it.
    """
    said = talk.strip()
    if not said.endswith(","):
        return False
    before, _ = read(told)
    node, _ = read(told + talk)
    if node is None or isinstance(node, Scalar) or not node.is_open or has_words(node):
        return False
    if said == ",":  # after an element that is in the text already
        return isinstance(node, Elements) and bool(node.values)
    return said_by(node) > said_by(before)


def is_element(draft: str, at: int, told: str, is_late: Callable[[], bool]) -> bool:
    """Whether the object or array in a draft is an element of the array that is open.

    It is after other elements, and before others with the bracket that ends the array.

    Args:
        draft: The draft.
        at: Where the object or array begins in it.
        told: The text so far, or what a reader of its rest must know of it.
        is_late: Whether to stop reading.
    """
    if are_items(draft[:at], told):
        return True
    if draft[:at].strip() or not told.rstrip().endswith("["):
        return False
    _, length = read(draft[at:], is_late=is_late)
    if not draft[at + length :].lstrip().startswith(","):
        return False
    node, end = read(told.rstrip()[-1:] + draft[at:], is_late=is_late)
    is_closed = isinstance(node, Elements) and not node.is_open and not has_words(node)
    return is_closed and not draft[at + end - 1 :].strip(" \t\r\n]}")


def closing(node: Node) -> bytes:
    """The text that closes a document which was cut."""
    found: list[str] = []
    here: Node | None = node
    while isinstance(here, (Elements, Members)) and here.is_open:
        found.append("]" if isinstance(here, Elements) else "}")
        if isinstance(here, Elements):
            here = here.values[-1] if here.values else None
        else:
            _, here = _last(here)
    if isinstance(here, Scalar) and here.is_cut and here.kind == "string":
        found.append(here.spelling[0])
    return "".join(reversed(found)).encode()


def scalars_of(node: Node | None) -> Iterator[Scalar]:
    """The scalars of a document, including the names of members."""
    return (here for here in _parts(node) if isinstance(here, Scalar))


def _parts(node: Node | None) -> Iterator[Node]:
    """A document and all nodes in it, including the names of members."""
    todo: list[Node] = [] if node is None else [node]
    while todo:
        here = todo.pop()
        yield here
        if isinstance(here, Elements):
            todo += here.values
        elif isinstance(here, Members):
            for key, value in here.items:
                todo += [key] if value is None else [key, value]


def _is_open(node: Node | None) -> bool:
    return isinstance(node, (Elements, Members)) and node.is_open


def _last(node: Members) -> tuple[str, Node | None]:
    if not node.items:
        return "", None
    key, value = node.items[-1]
    return key.text, Scalar("word", ":", ":") if value is None else value


def value_of(scalar: Scalar) -> str | Decimal:
    """The value of a scalar, independent of its spelling."""
    number = number_in(scalar.text)
    if number is not None:
        try:
            return Decimal(number)
        except InvalidOperation:  # the exponent is out of range
            return number
    return bare_name(scalar.text) or scalar.text
