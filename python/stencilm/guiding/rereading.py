"""What a model wrote as JSON, written again as the grammar wants it: order, quotes, types.

One idea: the grammar's matcher is the only judge. The values of a draft are offered to it one by
one, members in whatever order it takes, each scalar in the spellings that say the same (`30` for
"30", `"30"` for 30), and what it takes in no way is left out. Nothing is offered that is not in the
draft, so nothing is made up; of several results, the one that keeps most of the draft counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, TypeAlias

from stencilm.errors import StencilError
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.json_values import read_json
from stencilm.grammars.sources import JsonSchemaSource
from stencilm.guiding.loose_json import (
    Elements,
    Members,
    Node,
    Scalar,
    constant_in,
    documents,
    merged,
    number_in,
    read,
)
from stencilm.matching.candidates import Literal
from stencilm.matching.matcher import GrammarMatcher

PUNCTUATION = b"{}[],:\"' \t\r\n"
_MAX_OFFERS = 4_000
_MAX_WORK = 1_500_000
"""Bytes behind which matchers are forked, all together: each fork keeps about 150 for one."""
_MAX_LOOK_AHEAD = 32
_MAX_DOCUMENTS = 8
_MAX_DIGITS = 400
_SPACE = b" \t\r\n"
_OPEN = b"(a scalar that the draft did not end)"


class Reread(NamedTuple):
    """A draft in the grammar's own form.

    Attributes:
        text: What comes behind the text so far.
        kept: How much of it is the draft's, by `content`.
        is_complete: The text is whole now.
    """

    text: bytes
    kept: int
    is_complete: bool


def content(text: bytes) -> int:
    """How many bytes of words and numbers there are, the punctuation of JSON left out."""
    return len(text.translate(None, PUNCTUATION))


def reread(start: GrammarMatcher, grammar: Grammar, written: bytes, draft: bytes) -> Reread | None:
    """The best way to read a draft of all of the text as JSON; None where it is none.

    Args:
        start: A matcher at the beginning of the grammar; it is not changed.
        grammar: The grammar.
        written: The text so far, which stands.
        draft: What the model wrote.
    """
    if not any(start.longest_valid_prefix(opening).valid_bytes for opening in (b"{", b"[")):
        return None
    so_far = written.decode("utf-8", "ignore")
    if written and isinstance(read(so_far)[0], (Scalar, type(None))):
        return None
    orders = property_orders(grammar)
    best: Reread | None = None
    for node in islice(_readings(so_far, draft.decode("utf-8", "replace")), _MAX_DOCUMENTS):
        if _is_talk(node):
            continue
        # Merging marks what stands already, so it is read anew for each.
        together = merged(read(so_far)[0] if written else None, node)
        if together is None:
            continue
        found = _Rewriter(start, written, orders).best(together)
        if best is None or (found.kept, found.is_complete) > (best.kept, best.is_complete):
            best = found
    return best if best is not None and best.text else None


def _readings(so_far: str, draft: str) -> Iterator[Node]:
    """What a model may mean: a document of the draft, or one that the draft goes on with."""
    for node in documents(draft):
        yield node
        while isinstance(node, Members) and len(node.items) == 1:  # wrapped in a name
            inner = node.items[0][1]
            if inner is None or isinstance(inner, Scalar):
                break
            yield inner
            node = inner
    if so_far and not begins_again(so_far.encode(), draft.encode("utf-8", "replace")):
        whole = read(so_far + draft)[0]
        if whole is not None:
            yield whole


def _is_talk(node: Node) -> bool:
    """Whether a reading has words without quotes and no end: a bracket, and talk behind it."""
    if isinstance(node, Scalar) or not node.is_open:
        return False
    todo: list[Node] = [node]
    while todo:
        here = todo.pop()
        if isinstance(here, Scalar):
            if here.kind == "word":
                return True
        elif isinstance(here, Elements):
            todo += here.values
        else:
            for key, value in here.items:
                todo += [key] if value is None else [key, value]
    return False


def begins_again(written: bytes, draft: bytes) -> bool:
    """Whether a draft is a whole document that begins as the text does, and no part behind it."""
    opening = written[:1]
    stripped = draft.strip()
    if opening not in (b"{", b"[") or not stripped.startswith(opening):
        return False
    text = stripped.decode("utf-8", "replace")
    node, end = read(text)
    if isinstance(node, Members) and node.is_open:
        return bool(node.items) and node.items[0][1] is not None
    return isinstance(node, (Elements, Members)) and not node.is_open and end == len(text)


Orders: TypeAlias = tuple[tuple[str, ...], ...]


@lru_cache(maxsize=16)
def property_orders(grammar: Grammar) -> Orders:
    """The orders in which the schema of a grammar declares the members of its objects."""
    source = grammar.source
    if not isinstance(source, JsonSchemaSource):
        return ()
    orders: dict[tuple[str, ...], None] = {}
    try:
        todo: list[object] = [read_json(source.text)]
    except (ValueError, RecursionError):
        return ()
    while todo:
        here = todo.pop()
        if isinstance(here, list):
            todo += here
        elif isinstance(here, dict):
            declared = here.get("properties")
            if isinstance(declared, dict):
                required = here.get("required")
                more = [n for n in required if isinstance(n, str)] if type(required) is list else []
                orders[tuple(dict.fromkeys([*declared, *more]))] = None
            todo += here.values()
    return tuple(orders)


class _State(NamedTuple):
    """A place in the text: a matcher behind it, its length, and the pieces that led to it."""

    matcher: GrammarMatcher
    length: int
    pieces: tuple[object, bytes] | None
    kept: int
    comes_behind: bytes  # the last token


@dataclass(slots=True)
class _Rewriter:
    """Offers values to a matcher; counts what it offers."""

    start: GrammarMatcher
    written: bytes
    orders: Orders
    offers: int = 0
    work: int = 0
    furthest: _State | None = None

    def best(self, node: Node) -> Reread:
        """The first whole text, else the one that keeps most."""
        first = _State(self.start, 0, None, 0, b"")
        chosen: _State | None = None
        for state in self._values(first, node):
            if state.length >= len(self.written) and state.matcher.is_completed():
                chosen = state
            break
        furthest = self.furthest
        if chosen is None or (furthest is not None and furthest.kept > chosen.kept):
            chosen = furthest
        if chosen is None:
            return Reread(b"", 0, False)
        text = _joined(chosen)[len(self.written) :]
        return Reread(text, chosen.kept, chosen.matcher.is_completed())

    def _is_spent(self) -> bool:
        return self.offers >= _MAX_OFFERS or self.work >= _MAX_WORK

    def _offer(
        self,
        state: _State,
        token: bytes,
        kept: int = 0,
        *,
        last: bytes | None = None,
        is_whole: bool = False,
    ) -> _State | None:
        """The state behind a token, with whatever blanks the text or the grammar has before it."""
        if self._is_spent() or state.comes_behind is _OPEN:
            return None
        self.offers += 1
        self.work += state.length
        rest = self.written[state.length :]
        if rest:
            blanks = rest[: len(rest) - len(rest.lstrip(_SPACE))]
            text = blanks + token
            common = min(len(text), len(rest))
            # Blanks that end the text so far may go on.
            spaces = [text] if text[:common] == rest[:common] else []
        else:
            forced = state.matcher.find_jump_forward_string().encode()
            blanks = forced[: len(forced) - len(forced.lstrip(_SPACE))]
            is_apart = state.comes_behind in (b",", b":")
            spaces = [blanks + token] if blanks else [b" " + token] if is_apart else []
            spaces += [token]
        for text in spaces:
            matcher = state.matcher.fork()
            if matcher.accept_string(text) and not (is_whole and _must_go_on(matcher)):
                return self._moved(state, matcher, text, token if last is None else last, kept)
        return None

    def _moved(
        self, state: _State, matcher: GrammarMatcher, text: bytes, token: bytes, kept: int
    ) -> _State:
        length = state.length + len(text)
        kept = state.kept + (kept if length > len(self.written) else 0)
        moved = _State(matcher, length, (state.pieces, text), kept, token)
        best = self.furthest
        if length >= len(self.written) and (best is None or kept > best.kept):
            self.furthest = moved
        return moved

    def _values(self, state: _State, node: Node) -> Iterator[_State]:
        """The states behind a value, the one that changes least first."""
        if isinstance(node, Scalar):
            is_cut = node.is_cut and node.is_new
            kept = content(node.text.encode("utf-8", "replace")) if node.is_new else 0
            for spelling in _beginnings(node) if is_cut else self._spellings(state, node):
                is_number = node.is_new and not is_cut and spelling[-1:].isdigit()
                last = _OPEN if is_cut else spelling
                behind = self._offer(state, spelling, kept, last=last, is_whole=is_number)
                if behind is not None:
                    yield behind
        elif isinstance(node, Elements):
            yield from self._elements(state, node)
        else:
            yield from self._members(state, node)

    def _elements(self, state: _State, node: Elements) -> Iterator[_State]:
        opened = self._offer(state, b"[")
        if opened is None:
            return

        def next_states(before: _State, number: int) -> Iterator[_State]:
            behind = before
            if before.comes_behind != b"[" or before.pieces is not opened.pieces:
                comma = self._offer(before, b",")
                if comma is None:
                    yield before
                    return
                behind = comma
            value = node.values[number]
            yield from self._values(behind, value)
            if not isinstance(value, Scalar) or not value.is_doubtful:
                yield before  # without it

        for behind in _walked(opened, len(node.values), next_states, self._is_spent):
            closed = None if node.is_open else self._offer(behind, b"]")
            if closed is not None:
                yield closed

    def _members(self, state: _State, node: Members) -> Iterator[_State]:
        opened = self._offer(state, b"{")
        if opened is None:
            return
        ordered = self._ordered(node)
        # Which members are left, for each state on the path: paths share their beginnings.
        left = {id(opened.pieces): frozenset(ordered)}
        keep_alive: list[object] = [opened.pieces]

        def place(before: _State, number: int) -> Iterator[_State]:
            """The states behind one member."""
            key, value = node.items[number]
            kept = content(key.text.encode("utf-8", "replace")) if key.is_new else 0
            for keyed in self._keyed(before, key, is_first=before.pieces is opened.pieces):
                colon = None if value is None else self._offer(keyed, b":")
                if colon is not None and value is not None:
                    # A key without its value is nothing.
                    yield from self._values(colon._replace(kept=colon.kept + kept), value)

        def next_states(before: _State, step: int) -> Iterator[_State]:
            here = left[id(before.pieces)]
            if not here:
                yield before
                return
            if step < node.fixed:
                options: Sequence[int] = [step] if step in here else []
            else:
                options = [number for number in ordered if number in here]
            for behind, number in self._by_loss(before, options, place, node, opened):
                left[id(behind.pieces)] = here - {number}
                keep_alive.append(behind.pieces)
                yield behind
            if step >= node.fixed:  # without the others; one that is null says nothing
                left[id(before.pieces)] = frozenset()
                nothing = sum(_null(node.items[number]) for number in here)
                yield before._replace(kept=before.kept + nothing)
                left[id(before.pieces)] = here

        for behind in _walked(opened, len(node.items), next_states, self._is_spent):
            closed = None if node.is_open else self._offer(behind, b"}")
            if closed is not None:
                yield closed

    def _by_loss(
        self,
        before: _State,
        options: Sequence[int],
        place: Callable[[_State, int], Iterator[_State]],
        node: Members,
        opened: _State,
    ) -> Iterator[tuple[_State, int]]:
        """The states behind each member that may come next; first those that keep others out least.

        The keys that may come now and not behind a member are what it keeps out.
        """
        looks_ahead = len(options) <= _MAX_LOOK_AHEAD
        is_first = before.pieces is opened.pieces

        def takes(state: _State, number: int, first: bool) -> bool:
            work = self.work
            is_taken = any(True for _ in self._keyed(state, node.items[number][0], is_first=first))
            self.work = work  # what is only tried is not kept
            return is_taken

        open_now = [n for n in options if takes(before, n, is_first)] if looks_ahead else options
        held_back: list[tuple[int, _State, int]] = []
        for number in open_now:
            states = place(before, number)
            behind = next(states, None)
            if behind is None:
                continue
            lost = 0
            if looks_ahead:
                others = (other for other in open_now if other != number)
                lost = sum(not takes(behind, other, False) for other in others)
            if lost == 0:
                yield behind, number
                for other_state in states:
                    yield other_state, number
            else:
                held_back.append((lost, behind, number))
        held_back.sort(key=lambda held: held[0])
        for _, behind, number in held_back:
            yield behind, number

    def _keyed(self, before: _State, key: Scalar, *, is_first: bool) -> Iterator[_State]:
        """The states behind a key in the spellings that the grammar may know it by."""
        behind = before if is_first else self._offer(before, b",")
        if behind is None:
            return
        for name in self._names(key):
            keyed = self._offer(behind, _quoted(name))
            if keyed is not None:
                yield keyed
                return
        if not key.is_new:
            keyed = self._offer(behind, key.spelling.encode("utf-8", "replace"))
            if keyed is not None:
                yield keyed

    def _names(self, key: Scalar) -> list[str]:
        """A key as it is, and the declared keys that differ from it in case and separators only."""
        bare = _bare(key.text)
        alike = {name for order in self.orders for name in order if _bare(name) == bare}
        return [key.text, *sorted(alike - {key.text})]

    def _ordered(self, node: Members) -> list[int]:
        """The members in the order of the declaration that knows most of them, else as they are."""
        bare = [_bare(key.text) for key, _ in node.items]
        numbers = list(range(len(node.items)))
        best: dict[str, int] = {}
        most = 0
        for order in self.orders:
            ranks = {_bare(name): rank for rank, name in enumerate(order)}
            known = sum(name in ranks for name in bare)
            if known > most:
                best, most = ranks, known
        return sorted(numbers, key=lambda number: best.get(bare[number], len(best)))

    def _spellings(self, state: _State, scalar: Scalar) -> Iterator[bytes]:
        """What says the same: as it is, then as another type, then in the grammar's letters."""
        spelling = scalar.spelling.encode("utf-8", "replace")
        text = scalar.text
        if not scalar.is_new:
            yield spelling
        if scalar.kind == "unclear":
            return
        if scalar.kind in ("string", "word"):
            yield from _strings(text)
            number = number_in(text)
            if number is not None:
                yield from _numbers(number)
            constant = constant_in(text)
            if constant is not None:
                yield constant.encode()
            yield from self._alike(state, text)
        elif scalar.kind == "number":
            yield from _numbers(text)
            yield _quoted(scalar.spelling)
        else:
            yield text.encode()
            if text != "null":
                yield _quoted(scalar.spelling)

    def _alike(self, state: _State, text: str) -> Iterator[bytes]:
        """The strings that the grammar lists here and that differ in case and separators only."""
        bare = _bare(text)
        try:
            candidates = state.matcher.candidates(64)
        except StencilError:
            return
        for candidate in candidates:
            listed = candidate.text.strip() if isinstance(candidate, Literal) else ""
            if len(listed) > 2 and listed[0] == listed[-1] == '"' and _bare(listed) == bare:
                yield listed.encode()


def _walked(
    first: _State,
    steps: int,
    next_states: Callable[[_State, int], Iterator[_State]],
    is_spent: Callable[[], bool],
) -> Iterator[_State]:
    """The ends of all paths of so many steps, depth first.

    Where nothing more may be offered no path comes to an end that closes, and each would be walked
    for each of its steps.
    """
    if steps == 0:
        yield first
        return
    path = [next_states(first, 0)]
    while path and not is_spent():
        state = next(path[-1], None)
        if state is None:
            path.pop()
        elif len(path) == steps:
            yield state
        else:
            path.append(next_states(state, len(path)))


def _must_go_on(matcher: GrammarMatcher) -> bool:
    """Whether the number before a place is only the beginning of those that may come."""
    return not matcher.is_completed() and not any(map(matcher.is_allowed, b",]} \t\r\n"))


def _null(member: tuple[Scalar, Node | None]) -> int:
    """What a member holds that is null, for which leaving it out is another word."""
    key, value = member
    is_null = isinstance(value, Scalar) and value.kind == "constant" and value.text == "null"
    return content(key.text.encode("utf-8", "replace")) + len("null") if is_null else 0


def _joined(state: _State) -> bytes:
    pieces: list[bytes] = []
    here: object = state.pieces
    while isinstance(here, tuple):
        here, piece = here
        pieces.append(piece)
    return b"".join(reversed(pieces))


def _beginnings(scalar: Scalar) -> Iterator[bytes]:
    """A scalar that the draft did not end, as far as it came."""
    if scalar.kind == "unclear":
        return
    if scalar.kind == "string":
        yield _quoted(scalar.text)[:-1]
        number = number_in(scalar.text)
        if number is not None:
            yield number.encode()
    else:
        yield scalar.text.encode()


def _quoted(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")


def _strings(text: str) -> Iterable[bytes]:
    return dict.fromkeys((_quoted(text), json.dumps(text).encode()))


def _numbers(text: str) -> Iterator[bytes]:
    """A number as it is, and in the other spellings of exactly the same value."""
    yield text.encode()
    try:
        value = Decimal(text)
    except InvalidOperation:
        return
    if len(text) > _MAX_DIGITS or abs(value.adjusted()) > _MAX_DIGITS:
        return
    plain = format(value, "f")
    whole = plain.rstrip("0").rstrip(".") if "." in plain else plain
    found = dict.fromkeys((whole, plain, f"{whole}.0" if "." not in whole else whole))
    yield from (spelling.encode() for spelling in found if spelling != text)


def _bare(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())
