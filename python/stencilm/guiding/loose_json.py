"""Parse JSON as models write it: as far as it goes, with slips that do not change any value.

One idea: a tree that keeps the original spelling. Quotes of either kind, extra or missing commas,
comments, Python's names of constants and a missing end do not change what a text says, so they are
accepted; each scalar keeps its spelling. A value ends where the next one, or the end of its
container, begins: the `3` of `3/4` and the `1` of `1 000` are not values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, TypeAlias

MAX_DEPTH = 64
"""Deeper texts are refused, because rewriting them is recursive."""

_BETWEEN_LOOKS = 4_096
"""Brackets and scalars between two checks of the time, so that short texts are read in whole."""

_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?(?:\*/|\Z)|,)*+", re.DOTALL)
_A_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)("|\\\Z|)|\'((?:[^\'\\]|\\.)*)(\'|\\\Z|)', re.DOTALL)
_PRINTED = re.compile(  # in typographic quotes, which it does not contain
    r"(?:“(?P<a>[^“”„\n]{0,2000}+)[”“]|„(?P<b>[^“”„\n]{0,2000}+)[“”]|«(?P<c>[^«»\n]{0,2000}+)»"
    r"|\u2018(?P<d>(?:[^\u2018\u2019\n]|(?<=\w)\u2019(?=\w)){0,2000}+)\u2019)(?=\s*(?:[:,}\]]|\Z))"
)
_CUT_ESCAPE = re.compile(
    r"(?<!\\)(?P<whole>(?:\\\\)*)"  # an even number of backslashes is a sequence of characters
    r"(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[0-9a-fA-F]{0,3})?|\\u[0-9a-fA-F]{0,3})\Z"
)
_QUOTES = "\"'“„«\u2018"
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")
_WORD = re.compile(r"[^\s,:{}\[\]\"']+")
# Bounded, because otherwise each word of a long line would search for a colon after it.
_KEY_OF_WORDS = re.compile(r"[^\s,:{}\[\]\"'][^,:{}\[\]\"'\n]{0,200}+(?=:)")
_BEGINS_AS_NUMBER = re.compile(r"[-+]?\.?\d")
_NUMBER_BEGUN = re.compile(r"(?<![\w.+-])(?:-\d*|\d+)(?:\.\d*)?(?:(?<=\d)[eE][-+]?\d*)?\Z")
_NUMBER_CUT = re.compile(r"[-+]|[-+]?\d+\.|[-+]?\d+(?:\.\d+)?[eE][-+]?")
_MORE_OF_NUMBER = re.compile(r"\d|\.(?!0+(?!\w|\.\d))\d|[eE][-+]?\d")
_WHOLE_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_WHITESPACE = re.compile(r"\s*")
_RUN_STOP = re.compile(r"[}\]\n,]|\s/[/*]|\s#")
_LATE_QUOTE = re.compile(r"""["']\s*(?:[,}\]]|\Z)""")  # in a string without an opening quote
_COMMENT = re.compile(r"\s*/[/*]|\s+#")
# A possible name with its colon, or as far as the text goes.
_BEFORE_COLON = r"(?:\s|//[^\n]*|/\*.*?(?:\*/|\Z))*+(?::|\Z)"
_NAME = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,:{}\[\]\"']+)"""
_KEY = rf"""(?:{_NAME}{_BEFORE_COLON}|["'][^"']*\Z)"""
_MEMBER = re.compile(rf"\Z|[}}\]{{\[]|{_KEY}", re.DOTALL)
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})+(?!\d)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_CONSTANTS = {"true": "true", "false": "false", "null": "null", "none": "null"}
FENCE = re.compile(r"```[ \t]*[A-Za-z0-9_+-]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
_OPENING = re.compile(r"[{\[]")


@dataclass(slots=True)
class Scalar:
    """A string, a number, a constant such as `true`, or any other word, without quotes.

    Attributes:
        kind: "string", "number", "constant", "word", or "unclear" if there is no single reading,
            such as for a string with something directly after its quotes.
        text: Its meaning: the characters of a string, the digits of a number, the constant.
        spelling: Its spelling.
        is_cut: The text ended within it.
        is_new: It belongs to the draft, not to the text so far.
        is_doubtful: It continues after a value that could stand alone, as `3/4` does after `3`.
    """

    kind: str
    text: str
    spelling: str
    is_cut: bool = False
    is_new: bool = True
    is_doubtful: bool = False


@dataclass(slots=True)
class Elements:
    """An array.

    Attributes:
        values: Its elements.
        is_open: Its end is missing.
        goes_on: The text ended after one of its commas.
    """

    values: list[Node] = field(default_factory=list)
    is_open: bool = True
    goes_on: bool = False


@dataclass(slots=True)
class Members:
    """An object: its members in the order in which they were written.

    Attributes:
        items: Keys and values; None if the text ended before the value.
        is_open: Its end is missing.
        fixed: How many of the first members are in the text so far, in this order.
        goes_on: The text ended after one of its commas.
        unnamed: Objects and arrays without a name, whose meaning is not known.
    """

    items: list[tuple[Scalar, Node | None]] = field(default_factory=list)
    is_open: bool = True
    fixed: int = 0
    goes_on: bool = False
    unnamed: list[Node] = field(default_factory=list)


Node: TypeAlias = Scalar | Elements | Members


def _never() -> bool:
    return False


def documents(text: str, is_late: Callable[[], bool] = _never) -> Iterator[Node]:
    """The objects and arrays in a text: those in code fences first, then all in order."""
    for fenced in FENCE.finditer(text):
        yield from _documents(fenced[1], is_late)
    yield from _documents(text, is_late)


def first_document(text: str) -> tuple[int, int] | None:
    """The start of the first of the `documents`, and the end of the text that may belong to it."""
    fences = FENCE.finditer(text) if "```" in text else ()
    for fenced in fences:
        found = _OPENING.search(text, *fenced.span(1))
        if found is not None:
            return found.start(), fenced.end(1)
    found = _OPENING.search(text)
    return None if found is None else (found.start(), len(text))


def _documents(text: str, is_late: Callable[[], bool]) -> Iterator[Node]:
    at = 0
    while (found := _OPENING.search(text, at)) is not None:
        node, end = read(text, found.start(), is_late=is_late)
        if node is not None:
            yield node
        at = max(end, found.end())


def begins_with_a_value(text: str) -> bool:
    """Whether a text begins with a string, a number or a constant."""
    node, _ = read(text)
    return isinstance(node, Scalar) and node.kind in ("string", "number", "constant")


def unclear_from(text: str, is_late: Callable[[], bool] = _never) -> int | None:
    """Where in a document the first value begins that continues after a whole one, as `3/4` does.

    None if there is no such value, or if the text is not a document.
    """
    begin = len(text) - len(text.lstrip())
    if _OPENING.match(text, begin) is None:
        return None
    unclear: list[int] = []
    read(text, begin, unclear, is_late=is_late)
    return unclear[0] if unclear else None


def number_cut(text: str, end: int) -> int | None:
    """Where a number begins of which JSON that ends at a position would contain only a part.

    None if no number is cut: `12` is all that `12.0` says. Up to the position, the text is JSON.
    """
    begun = _NUMBER_BEGUN.search(text, 0, end)
    if begun is None:
        return None
    is_a_number = text[end - 1].isdigit()
    if is_a_number and _MORE_OF_NUMBER.match(text, end) is None:
        return None
    is_within_string = '"' in _WHOLE_STRING.sub("", text[: begun.start()])
    return None if is_within_string else begun.start()


def read(
    text: str,
    at: int = 0,
    unclear: list[int] | None = None,
    *,
    is_late: Callable[[], bool] = _never,
) -> tuple[Node | None, int]:
    """The value that begins at a position, and its end; None if it is nested too deeply or missing.

    Positions of values that continue after a whole one are added to `unclear`. For a long text, the
    result is None if it is late.
    """
    return read_on(text, at, [], _Noting(unclear), is_late=is_late)


class Listener:
    """Is informed about each part of a document as it is read."""

    def scalar(self, text: str, span: tuple[int, int], scalar: Scalar, how: How) -> None:
        """A name or value was read at this span."""

    def settled(self, at: int, open_nodes: list[Elements | Members]) -> None:
        """A value has ended, and no name waits for its value."""


class How(NamedTuple):
    """The context in which a scalar was read.

    Attributes:
        is_key: As the name of a member.
        is_run: As the continuation after a whole value.
        is_element: In an array.
    """

    is_key: bool
    is_run: bool
    is_element: bool


class _Noting(Listener):
    def __init__(self, unclear: list[int] | None) -> None:
        self._unclear = unclear

    def scalar(self, text: str, span: tuple[int, int], scalar: Scalar, how: How) -> None:
        if self._unclear is not None and scalar.is_doubtful and not how.is_key:
            self._unclear.append(span[0])


def read_on(
    text: str,
    at: int,
    open_nodes: list[Elements | Members],
    listener: Listener,
    *,
    is_late: Callable[[], bool] = _never,
) -> tuple[Node | None, int]:
    """`read`, from a position on at which these nodes are open, and no name waits for its value."""
    # For each depth, the key that waits for its value.
    keys: list[Scalar | None] = [None] * (len(open_nodes) + 1)
    for number in count(1):
        if number % _BETWEEN_LOOKS == 0 and is_late():
            return None, len(text)
        before, at = at, _skip(text, at)
        parent = open_nodes[-1] if open_nodes else None
        if at >= len(text):
            if parent is not None:
                parent.goes_on = "," in _A_COMMENT.sub("", text[before:])
            break
        character = text[at]
        if character in "}]":
            if parent is None:
                return None, at + 1
            _settle(open_nodes[-1], keys)
            parent.is_open = False
            node: Node = open_nodes.pop()
            keys.pop()
            at += 1
            if not open_nodes:
                return node, at
            listener.settled(at, open_nodes)
            continue
        if character == ":":
            at += 1
            continue
        if character in "{[":
            if len(open_nodes) >= MAX_DEPTH:
                return None, len(text)
            node = Members() if character == "{" else Elements()
            _add(open_nodes, keys, node)
            open_nodes.append(node)
            keys.append(None)
            at += 1
            continue
        is_key = isinstance(parent, Members) and keys[-1] is None
        begin = at
        scalar, at = _key(text, at) if is_key else _scalar(text, at)
        if parent is None:
            return scalar, at
        is_run = not is_key and not _ends(text, at, scalar, parent)
        if is_run:
            scalar, at = _run(text, begin, at, parent, scalar)
        is_element = isinstance(parent, Elements)
        listener.scalar(text, (begin, at), scalar, How(is_key, is_run, is_element))
        if is_key:
            keys[-1] = scalar
        else:
            _add(open_nodes, keys, scalar)
            listener.settled(at, open_nodes)
    if not open_nodes:
        return None, at
    for depth in range(len(open_nodes) - 1, -1, -1):
        _settle(open_nodes[depth], keys[: depth + 2])
    return open_nodes[0], at


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _add(open_nodes: list[Elements | Members], keys: list[Scalar | None], node: Node) -> None:
    """Put a value where it belongs: after its key, or into the array."""
    if not open_nodes:
        return
    parent = open_nodes[-1]
    if isinstance(parent, Elements):
        parent.values.append(node)
        return
    key = keys[-1]
    if key is None:
        parent.unnamed.append(node)
        return
    parent.items.append((key, node))
    keys[-1] = None


def _settle(node: Elements | Members, keys: list[Scalar | None]) -> None:
    """Keep a key even if its value did not come."""
    key = keys[-1]
    if isinstance(node, Members) and key is not None:
        node.items.append((key, None))
        keys[-1] = None


def _scalar(text: str, at: int) -> tuple[Scalar, int]:
    found = _STRING.match(text, at)
    if found is not None:
        body, end = (found[1], found[2]) if found[1] is not None else (found[3], found[4])
        is_cut = end not in ('"', "'")
        if is_cut:  # half of an escape means nothing yet
            body = _CUT_ESCAPE.sub(r"\g<whole>", body)
        text = _unescaped(body)
        # A lone surrogate is not a character, and it is not known which one was meant.
        kind = "unclear" if _SURROGATE.search(text) else "string"
        return Scalar(kind, text, found[0], is_cut=is_cut), found.end()
    found = _PRINTED.match(text, at)
    if found is not None and found.lastgroup is not None:
        body = _unescaped(found[found.lastgroup])
        return Scalar("string", body, found[0]), found.end()
    found = _NUMBER.match(text, at)
    if found is not None:
        is_cut = found.end() == len(text)
        return Scalar("number", _digits(found[0]), found[0], is_cut=is_cut), found.end()
    found = _WORD.match(text, at)
    assert found is not None, "invariant: every other character begins a word"
    word = found[0]
    constant = _CONSTANTS.get(word.casefold())
    is_cut = found.end() == len(text) and constant is None
    kind = "word" if constant is None else "constant"
    is_doubtful = _BEGINS_AS_NUMBER.match(word) is not None
    scalar = Scalar(kind, constant or word, word, is_cut=is_cut, is_doubtful=is_doubtful)
    return scalar, found.end()


def _key(text: str, at: int) -> tuple[Scalar, int]:
    found = None if text[at] in _QUOTES else _KEY_OF_WORDS.match(text, at)
    if found is None:
        return _scalar(text, at)
    name = found[0].rstrip()
    return Scalar("word", name, name), found.end()


def _ends(text: str, at: int, scalar: Scalar, parent: Elements | Members) -> bool:
    """Whether a value ends at a position, because what follows is not a part of it."""
    behind = _WHITESPACE.match(text, at)
    place = at if behind is None else behind.end()
    following = text[place : place + 1]
    if scalar.kind != "string" and _LATE_QUOTE.match(text, at):
        return True
    if following in ("", "}", "]") or "\n" in text[at:place] or _COMMENT.match(text, at):
        return True
    if following == ",":
        is_quoted = scalar.kind == "string"
        return is_quoted or isinstance(parent, Elements) or _begins_member(text, _skip(text, place))
    if following in "{[":
        return place > at
    if isinstance(parent, Members):  # a comma is missing
        return place > at and _begins_member(text, _skip(text, place))
    if following in "\"'":
        return place > at
    begin = at - len(scalar.spelling)
    is_number = scalar.kind == "number" and _NUMBER.match(text, place) is not None
    return place > at and is_number and not _GROUPED.match(text, begin)


def _begins_member(text: str, at: int) -> bool:
    """Whether a name, or the end of the object, comes next."""
    return _MEMBER.match(text, at) is not None


def _run(
    text: str, begin: int, at: int, parent: Elements | Members, scalar: Scalar
) -> tuple[Scalar, int]:
    """Read the rest of a value that continues, up to what follows it."""
    end = len(text)
    while (found := _RUN_STOP.search(text, at)) is not None:
        is_part = found[0] == "," and isinstance(parent, Members)
        at = _skip(text, found.start())
        if not is_part or _begins_member(text, at):
            end = found.start()
            break
    written = text[begin:end].rstrip()
    kind = "unclear" if scalar.kind == "string" else "word"
    is_doubtful = scalar.is_doubtful or scalar.kind != "word"
    run = Scalar(kind, written, written, is_cut=end == len(text), is_doubtful=is_doubtful)
    return run, begin + len(written)


def begins_value(word: str) -> bool:
    """Whether a cut word may become a constant or a number, as `tr` and `-` may."""
    bare = word.casefold()
    return _NUMBER_CUT.fullmatch(word) is not None or any(
        name.startswith(bare) for name in _CONSTANTS
    )


def ends_in_escape(spelling: str) -> bool:
    """Whether a cut string ends within an escape, which its text does not contain."""
    return spelling.endswith("\\") or _CUT_ESCAPE.search(spelling) is not None


def number_in(text: str) -> str | None:
    """The number that a text denotes, as JSON spells it; None for any other text."""
    text = text.strip()
    return _digits(text) if _NUMBER.fullmatch(text) else None


def constant_in(text: str) -> str | None:
    """The constant that a text denotes; None for any other text."""
    return _CONSTANTS.get(text.strip().casefold())


def _digits(text: str) -> str:
    """A number as JSON spells it, with all digits: no plus, underscores or leading zeros."""
    sign = "-" if text.startswith("-") else ""
    digits = text.lstrip("+-").replace("_", "")
    stripped = digits.lstrip("0")
    return sign + (stripped if stripped[:1].isdigit() else f"0{stripped}")


def unescaped(text: bytes) -> bytes:
    """A JSON text with its escapes decoded, some of which take six bytes."""
    return _unescaped(text.decode("utf-8", "replace")).encode("utf-8", "surrogatepass")


def _unescaped(body: str) -> str:
    try:
        if '"' not in body.replace('\\"', ""):
            return str(json.loads(f'"{body}"', strict=False))
    except ValueError:
        pass  # an escape unknown to JSON stands for itself
    return _ESCAPE.sub(_one_escape, body)


def _one_escape(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] == "u" and len(code) == 5:
        return chr(int(code[1:], 16))
    return _ESCAPED.get(code, code if code in "\"'\\/" else f"\\{code}")


def merged(written: Node | None, draft: Node | None) -> Node | None:
    """Merge a text so far with a new draft of all of it; None if they contradict each other.

    The text so far does not change, so its members come first and its values are kept.
    """
    if written is None or draft is None:
        return draft if written is None else _old(written)
    if isinstance(written, Members) and isinstance(draft, Members):
        return _merged_members(written, draft)
    if isinstance(written, Elements) and isinstance(draft, Elements):
        if not written.is_open:
            return _old(written)
        values = [_old(value) for value in written.values]
        last = len(values) - 1
        if 0 <= last < len(draft.values) and _is_open(written.values[last]):
            together = merged(written.values[last], draft.values[last])
            if together is None:
                return None
            values[last] = together
        rest = draft.values[len(values) :]
        return Elements([*values, *rest], is_open=draft.is_open, goes_on=draft.goes_on)
    if isinstance(written, Scalar):
        if not written.is_cut:
            return _old(written)
        if _goes_on(written, draft):
            return draft
        # A number may end where it is, but a string may not.
        is_other = written.kind == "string" or _contradicts(written, draft)
        return None if is_other else _old(written)
    return None if _is_open(written) else _old(written)


def _goes_on(written: Scalar, draft: Node) -> bool:
    if not isinstance(draft, Scalar):
        return False
    if written.kind == "word" and draft.kind in (
        "number",
        "constant",
    ):  # `-` of `-1`, `t` of `true`
        return draft.spelling.startswith(written.spelling)
    return draft.kind == written.kind and draft.text.startswith(written.text)


def _contradicts(written: Scalar, draft: Node) -> bool:
    """Whether a draft shows that a number was only the beginning of something else."""
    if not isinstance(draft, Scalar) or draft.kind != "word":
        return False
    return draft.text != written.text and draft.spelling.startswith(written.spelling)


def _merged_members(written: Members, draft: Members) -> Node | None:
    if not written.is_open:
        return _old(written)
    rest = list(draft.items)
    items: list[tuple[Scalar, Node | None]] = []
    for key, value in written.items:
        place = next((n for n, (other, _) in enumerate(rest) if _is_same_key(key, other)), None)
        other, drafted = (key, None) if place is None else rest.pop(place)
        if key.is_cut and place is None:
            return None
        together = merged(value, drafted)
        if together is None and value is not None:
            return None
        kept = Scalar("string", key.text, key.spelling, is_new=False)
        items.append((other if key.is_cut else kept, together))
    return Members([*items, *rest], is_open=draft.is_open, fixed=len(items), goes_on=draft.goes_on)


def _is_same_key(key: Scalar, other: Scalar) -> bool:
    return other.text.startswith(key.text) if key.is_cut else other.text == key.text


def _is_open(node: Node | None) -> bool:
    return node is None or (node.is_cut if isinstance(node, Scalar) else node.is_open)


def _old(node: Node) -> Node:
    """Mark a value as already in the text."""
    todo: list[Node] = [node]
    while todo:
        here = todo.pop()
        if isinstance(here, Scalar):
            here.is_new = False
        elif isinstance(here, Elements):
            todo += here.values
        else:
            here.fixed = len(here.items)
            for key, value in here.items:
                key.is_new = False
                todo += [] if value is None else [value]
    return node
