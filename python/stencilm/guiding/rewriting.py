"""Rewrite the values of a draft so that a grammar accepts them.

One idea: the grammar's matcher alone decides. Values are offered to it one by one: members in any
order that it accepts, scalars in all spellings of the same value (`30` for "30", `"30"` for 30). A
value that is accepted in no form is left out. Only values of the draft are offered, so nothing is
made up. The search continues from the state that has lost least.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from stencilm.errors import StencilError
from stencilm.generation.result import LeftOut
from stencilm.guiding.cursor import SPACE, Cursor, Piece, State, joined, values_of
from stencilm.guiding.declared_orders import Orders, bare_name
from stencilm.guiding.left_out import Placed
from stencilm.guiding.loose_json import (
    Elements,
    Members,
    Node,
    Scalar,
    constant_in,
    number_in,
)
from stencilm.guiding.outline import Outline
from stencilm.matching.candidates import Literal
from stencilm.matching.matcher import GrammarMatcher

PUNCTUATION = b"{}[],:\"' \t\r\n"
MAX_OFFERS = 4_000
"""How many offers may be made without keeping more of the draft."""
_OFFERS_FOR_A_BYTE = 4
_LEAST_OFFERS = 4_000
"""How many offers all readings of a draft may make together, even if it is late."""
_MAX_WORK = 4_000_000
"""The most bytes given to the matcher; for each byte that is reached, `_WORK_FOR_A_BYTE` more."""
_WORK_FOR_A_BYTE = 64
_MAX_LOOK_AHEAD = 32
_MAX_DIGITS = 400
_CLOSING = (b"}", b"]")
_OPEN = b"(a scalar that the draft did not end)"


class Reread(NamedTuple):
    """A draft in the grammar's own form.

    Attributes:
        text: The text after the text so far.
        kept: How much of the draft is in it, by `content`.
        is_complete: The text is complete.
        owes_comma: The draft ended with a comma, which is not in the text: another item may follow,
            but the last one is finished.
        is_lossy: The text lacks some of the draft.
        is_apart: A continuation of the draft is not a continuation of the text.
        left_out: The values of the draft that the text lacks.
    """

    text: bytes
    kept: int
    is_complete: bool
    owes_comma: bool = False
    is_lossy: bool = False
    is_apart: bool = False
    left_out: tuple[LeftOut, ...] = ()

    @property
    def rank(self) -> tuple[int, bool, int]:
        """The order of preference.

        Of two that keep as much, the one with empty strings and lists.
        """
        return self.kept, self.is_complete, len(self.text.translate(None, SPACE))


def content(text: bytes) -> int:
    """The number of bytes of words and numbers, without the punctuation of JSON."""
    return len(text.translate(None, PUNCTUATION))


class Patience:
    """A number of tries, and after these as many as there is time for.

    So a short draft is read in the same way on a busy machine and on an idle one.

    Attributes:
        offers: How many offers may be made without keeping more of the draft.
    """

    def __init__(self, is_late: Callable[[], bool], offers: int = MAX_OFFERS) -> None:
        self.offers = offers
        self._left = _LEAST_OFFERS
        self._is_late = is_late

    def try_once(self) -> None:
        """Count one try."""
        self._left -= 1

    def is_over(self) -> bool:
        """Whether to stop trying."""
        return self._left <= 0 and self._is_late()


class Rewriter:
    """Offers values to a matcher, and counts the offers."""

    def __init__(
        self,
        start: GrammarMatcher,
        written: bytes,
        orders: Orders,
        patience: Patience,
        begin: int = 0,
    ) -> None:
        self.cursor = Cursor(start)
        self.written = written
        self.begin = begin  # the position of the matcher in the text so far
        self.orders = orders
        self.patience = patience
        self.offers = 0
        self.offers_before = 0  # the number of offers when `reached` last grew
        self.reached = begin
        self.furthest: State | None = None
        self._placed = Placed(has_sets=orders.has_sets)

    def best(self, node: Node, begun: Outline | None = None) -> Reread:
        """The first complete text, or else the one that keeps most.

        Args:
            node: The contents of the draft.
            begun: The cursor's position within the text so far; None for its beginning.
        """
        first = State(self.begin, self.cursor.first, 0, b"")
        chosen: State | None = None
        is_open = not isinstance(node, Scalar) and node.is_open
        most = _new_content(node) if is_open else 0
        if begun is None:
            ends = self._values(first, node)
        else:
            self.furthest = first if self.begin == len(self.written) else None
            ends = self._going_on(first, node, begun, len(begun.brackets))
        for state in ends:
            if is_open:  # no text is complete yet: search for one with all of the draft
                if self.furthest is not None and self.furthest.kept >= most:
                    break
                continue
            if state.length >= len(self.written) and self._is_completed(state):
                chosen = state
            break
        furthest = self.furthest
        if chosen is None or (furthest is not None and furthest.kept > chosen.kept):
            chosen = furthest
        if chosen is None:
            return Reread(b"", 0, False)
        text = joined(chosen)[len(self.written) - self.begin :]
        self._placed.values.update(values_of(chosen))
        return Reread(
            text,
            chosen.kept,
            self._is_completed(chosen),
            owes_comma=_ends_with_comma(node),
            left_out=tuple(self._placed.left_out(node)),
        )

    def _is_completed(self, state: State) -> bool:
        return self.cursor.at(state.pieces).is_completed()

    def _is_spent(self) -> bool:
        """Whether the draft has had as many tries as it is worth.

        Progress allows more of them, so the total is proportional to what was reached.
        """
        return (
            self.offers - self.offers_before >= self.patience.offers
            or self.offers >= MAX_OFFERS + _OFFERS_FOR_A_BYTE * self.reached
            or self.cursor.work >= _MAX_WORK + _WORK_FOR_A_BYTE * self.reached
            or self.patience.is_over()
        )

    def _offer(
        self,
        state: State,
        token: bytes,
        kept: int = 0,
        *,
        last: bytes | None = None,
        is_whole: bool = False,
        value: Node | None = None,
    ) -> State | None:
        """The state after a token, preceded by the whitespace of the text or of the grammar."""
        if self._is_spent() or state.comes_behind is _OPEN:
            return None
        self.offers += 1
        self.patience.try_once()
        for text in self._spaced(state, token):
            piece = self.cursor.tried(state.pieces, text, is_whole=is_whole)
            if piece is not None:
                piece.value = value
                return self._moved(state, piece, token if last is None else last, kept)
        return None

    def _spaced(self, state: State, token: bytes) -> list[bytes]:
        """A token with the whitespace that may precede it."""
        written, at = self.written, state.length
        if at < len(written):
            begin = at
            while begin < len(written) and written[begin] in SPACE:
                begin += 1
            text = written[at:begin] + token
            # Whitespace at the end of the text so far may continue.
            return [text] if written.startswith(text[: len(written) - at], at) else []
        whitespace = self.cursor.whitespace(state.pieces)
        is_apart = state.comes_behind in (b",", b":")
        return [
            *([whitespace + token] if whitespace else [b" " + token] if is_apart else []),
            token,
        ]

    def _moved(self, state: State, piece: Piece, token: bytes, kept: int) -> State:
        length = state.length + len(piece.text)
        kept = state.kept + (kept if length > len(self.written) else 0)
        moved = State(length, piece, kept, token)
        best = self.furthest
        if length < len(self.written):
            is_further = length > self.reached
        else:
            is_further = best is None or kept > best.kept
            # A bracket that closes in the draft must close here, so that the next part continues
            # after it.
            is_closed = best is not None and best.pieces is piece.before and token in _CLOSING
            self.furthest = moved if is_further or is_closed else best
        if is_further:
            self.reached = max(self.reached, length)
            self.offers_before = self.offers
        return moved

    def _values(self, state: State, node: Node) -> Iterator[State]:
        """The states after a value, the one with the fewest changes first."""
        if isinstance(node, Scalar):
            is_cut = node.is_cut and node.is_new
            kept = content(node.text.encode("utf-8", "replace")) if node.is_new else 0
            for spelling in _beginnings(node) if is_cut else self._spellings(state, node):
                is_number = node.is_new and not is_cut and spelling[-1:].isdigit()
                last = _OPEN if is_cut else spelling
                behind = self._offer(
                    state, spelling, kept, last=last, is_whole=is_number, value=node
                )
                if behind is not None:
                    if behind.length == len(self.written):
                        kept = 0  # it is already in the text: `.0` after it says no more
                    yield behind
        elif isinstance(node, Elements):
            yield from self._elements(state, node)
        else:
            yield from self._members(state, node)

    def _going_on(self, first: State, node: Node, begun: Outline, depth: int) -> Iterator[State]:
        """The states after a value whose brackets and settled items are already in the text."""
        if isinstance(node, Scalar):
            return
        self._placed.stands(node, begun, len(begun.brackets) - depth)
        if depth == 1:
            opening = b"" if begun.is_begun else b"[" if isinstance(node, Elements) else b"{"
            yield from self._items(first._replace(comes_behind=opening), node)
            return
        # Its first item is itself continued.
        inner: Node | None
        rest: Elements | Members
        if isinstance(node, Elements):
            inner = node.values[0]
            rest = Elements(node.values[1:], is_open=node.is_open)
        else:
            inner = node.items[0][1]
            rest = Members(node.items[1:], is_open=node.is_open, fixed=max(0, node.fixed - 1))
        if inner is None:
            return
        for behind in self._going_on(first, inner, begun, depth - 1):
            if behind.comes_behind is _OPEN:
                yield behind
            else:
                yield from self._items(behind, rest)

    def _items(self, opened: State, node: Elements | Members) -> Iterator[State]:
        """The states after the items of an open object or array, which may have some already."""
        if isinstance(node, Elements):
            yield from self._elements_in(opened, node)
        else:
            yield from self._members_in(opened, node)

    def _elements(self, state: State, node: Elements) -> Iterator[State]:
        opened = self._offer(state, b"[", value=node)
        if opened is not None:
            yield from self._elements_in(opened, node)

    def _elements_in(self, opened: State, node: Elements) -> Iterator[State]:
        def next_states(before: State, number: int) -> Iterator[tuple[State, bool]]:
            behind = before
            is_last = number + 1 == len(node.values)
            if not _is_first(before, opened):
                comma = self._comma(before)
                if comma is None:
                    self._placed.no_room.add(id(node.values[number]))
                    yield before, True
                    return
                behind = comma
            value = node.values[number]
            for state in self._values(behind, value):
                yield state, is_last
            if not isinstance(value, Scalar) or not value.is_doubtful:
                yield before, is_last  # leave it out

        for behind in _walked(opened, len(node.values), next_states, self._is_spent):
            closed = self._ended(behind, node, b"]")
            if closed is not None:
                yield closed

    def _members(self, state: State, node: Members) -> Iterator[State]:
        opened = self._offer(state, b"{", value=node)
        if opened is not None:
            yield from self._members_in(opened, node)

    def _members_in(self, opened: State, node: Members) -> Iterator[State]:
        left = _Left(self._ordered(node))
        names = frozenset(key.text for key, _ in node.items)

        def keyed_by(before: State, number: int, is_first: bool) -> Iterator[State]:
            return self._keyed(before, node.items[number][0], names, is_first=is_first)

        def place(before: State, number: int) -> Iterator[State]:
            """The states after one member."""
            key, value = node.items[number]
            kept = content(key.text.encode("utf-8", "replace")) if key.is_new else 0
            for keyed in keyed_by(before, number, _is_first(before, opened)):
                colon = None if value is None else self._offer(keyed, b":")
                if colon is not None and value is not None:
                    # A key without a value counts for nothing.
                    yield from self._values(colon._replace(kept=colon.kept + kept), value)

        def next_states(before: State, step: int) -> Iterator[tuple[State, bool]]:
            if step < node.fixed:
                options: Sequence[int] | _Left = [step]
            else:
                options = left
            for behind, number in self._by_loss(before, options, place, keyed_by, opened):
                left.take(number)
                yield behind, not left
                left.put_back(number)
            if step >= node.fixed:  # leave the others out; leaving out null loses nothing
                nothing = sum(_null(node.items[number]) for number in left)
                yield before._replace(kept=before.kept + nothing), True

        for behind in _walked(opened, len(node.items), next_states, self._is_spent):
            closed = self._ended(behind, node, b"}")
            if closed is not None:
                yield closed

    def _ended(self, behind: State, node: Elements | Members, bracket: bytes) -> State | None:
        """The state after an object or array; nothing may follow if the draft did not end it."""
        if node.is_open:
            return behind._replace(comes_behind=_OPEN)
        return self._offer(behind, bracket)

    def _by_loss(
        self,
        before: State,
        options: Sequence[int] | _Left,
        place: Callable[[State, int], Iterator[State]],
        keyed_by: Callable[[State, int, bool], Iterator[State]],
        opened: State,
    ) -> Iterator[tuple[State, int]]:
        """The states after each member that may come next; first those that exclude fewest others.

        A member excludes the keys that may come before it, but not after it.
        """
        looks_ahead = len(options) <= _MAX_LOOK_AHEAD
        is_first = _is_first(before, opened)

        def takes(state: State, number: int, first: bool) -> bool:
            known = state.pieces.fits
            if number not in known:
                known[number] = next(keyed_by(state, number, first), None) is not None
            return known[number]

        open_now = [n for n in options if takes(before, n, is_first)] if looks_ahead else options
        held_back: list[tuple[int, State, int]] = []
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

    def _keyed(
        self, before: State, key: Scalar, others: Collection[str], *, is_first: bool
    ) -> Iterator[State]:
        """The states after a key, in the first spelling that the grammar accepts."""
        behind = before if is_first else self._comma(before)
        if behind is None:
            return
        for name in (key.text, *self.orders.meant(key.text, others)):
            keyed = self._offer(behind, _quoted(name))
            if keyed is not None:
                self._placed.known.add(id(key))
                yield keyed
                return
        if not key.is_new:
            keyed = self._offer(behind, key.spelling.encode("utf-8", "replace"))
            if keyed is not None:
                yield keyed

    def _comma(self, before: State) -> State | None:
        """The state after a comma, which is shared by everything that may come next."""
        known = before.pieces.comma
        if known is not None:
            return State(before.length + len(known.text), known, before.kept, b",")
        behind = self._offer(before, b",")
        if behind is not None:
            before.pieces.comma = behind.pieces
        return behind

    def _ordered(self, node: Members) -> list[int]:
        """The members in the order of the declaration that knows most of them, or else as given."""
        names = [key.text for key, _ in node.items]
        bare = [bare_name(name) for name in names]
        best: list[int | None] = [None] * len(names)
        most = 0
        for ranks, bare_ranks in zip(self.orders.ranks, self.orders.bare_ranks, strict=True):
            found = [
                ranks.get(name, bare_ranks.get(other))
                for name, other in zip(names, bare, strict=True)
            ]
            known = len(found) - found.count(None)
            if known > most:
                best, most = found, known
        declared = (number for number, rank in enumerate(best) if rank is not None)
        self._placed.known.update(id(node.items[number][0]) for number in declared)
        return sorted(
            range(len(names)), key=lambda number: (best[number] is None, best[number] or 0)
        )

    def _spellings(self, state: State, scalar: Scalar) -> Iterator[bytes]:
        """Spellings of the same value: as it is, of another type, then in the grammar's letters."""
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
            yield from self._similar(state, text)
        elif scalar.kind == "number":
            yield from _numbers(text)
            yield _quoted(scalar.spelling)
        else:
            yield text.encode()
            if text != "null":
                yield _quoted(scalar.spelling)

    def _similar(self, state: State, text: str) -> Iterator[bytes]:
        """The strings that the grammar lists here and that only differ in case and separators."""
        bare = bare_name(text)
        try:
            candidates = self.cursor.at(state.pieces).candidates(64)
        except StencilError:
            return
        texts = (one.text.strip() for one in candidates if isinstance(one, Literal))
        listed = {text for text in texts if len(text) > 2 and text[0] == text[-1] == '"'}
        alike = [text for text in listed if bare_name(text) == bare]
        if bare and len(alike) == 1:  # if there are two, it is not known which one is meant
            yield alike[0].encode()


class _Left:
    """The remaining members, in an order; the last one taken is put back first."""

    def __init__(self, ordered: Sequence[int]) -> None:
        self._count = len(ordered)
        # A ring, whose beginning is not a member.
        self._beginning = len(ordered)
        ring = [self._beginning, *ordered]
        self._next = dict(zip(ring, [*ring[1:], self._beginning], strict=True))
        self._before = {after: number for number, after in self._next.items()}

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        number = self._next[self._beginning]
        while number != self._beginning:
            yield number
            number = self._next[number]

    def take(self, number: int) -> None:
        before, after = self._before[number], self._next[number]
        self._next[before], self._before[after] = after, before
        self._count -= 1

    def put_back(self, number: int) -> None:
        self._next[self._before[number]] = self._before[self._next[number]] = number
        self._count += 1


def _walked(
    first: State,
    steps: int,
    next_states: Callable[[State, int], Iterator[tuple[State, bool]]],
    is_spent: Callable[[], bool],
) -> Iterator[State]:
    """The ends of all paths of at most `steps` steps, depth first.

    Once nothing more may be offered, no path could be closed; so stop, instead of walking all of
    them.
    """
    if steps == 0:
        yield first
        return
    path = [next_states(first, 0)]
    while path and not is_spent():
        state, is_last = next(path[-1], (None, False))
        if state is None:
            path.pop()
        elif is_last:
            yield state
        else:
            path.append(next_states(state, len(path)))


def _is_first(before: State, opened: State) -> bool:
    """Whether the first item comes next, so that no comma precedes it."""
    return before.pieces is opened.pieces and opened.comes_behind in (b"[", b"{")


def _ends_with_comma(node: Node) -> bool:
    """Whether the innermost open object or array ends with a comma."""
    last: Node | None = node
    while isinstance(last, (Elements, Members)) and last.is_open:
        if last.goes_on:
            return True
        items = last.values if isinstance(last, Elements) else [value for _, value in last.items]
        last = items[-1] if items else None
    return False


def _null(member: tuple[Scalar, Node | None]) -> int:
    """The content of a member that is null; leaving it out means the same."""
    key, value = member
    is_null = isinstance(value, Scalar) and value.kind == "constant" and value.text == "null"
    return content(key.text.encode("utf-8", "replace")) + len("null") if is_null else 0


def _new_content(node: Node) -> int:
    """How much content a draft has."""
    total = 0
    todo: list[Node] = [node]
    while todo:
        here = todo.pop()
        if isinstance(here, Scalar):
            total += content(here.text.encode("utf-8", "replace")) if here.is_new else 0
        elif isinstance(here, Elements):
            todo += here.values
        else:
            for key, value in here.items:
                todo += [] if value is None else [key, value]
    return total


def _beginnings(scalar: Scalar) -> Iterator[bytes]:
    """A scalar that the draft did not finish, as far as it came."""
    if scalar.kind == "unclear":
        return
    if scalar.kind == "string":
        yield _quoted(scalar.text)[:-1]
        number = number_in(scalar.text)
        if number is not None:
            yield number.encode()
    else:
        yield from (text.encode() for text in dict.fromkeys((scalar.text, scalar.text.casefold())))


def _quoted(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")


def _strings(text: str) -> Iterable[bytes]:
    return dict.fromkeys((_quoted(text), json.dumps(text).encode()))


def _numbers(text: str) -> Iterator[bytes]:
    """A number as it is, then in other spellings of exactly the same value."""
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
