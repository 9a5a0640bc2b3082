"""What a model wrote as JSON, written again as the grammar wants it: order, quotes, types.

One idea: the grammar's matcher is the only judge. The values of a draft are offered to it one by
one, members in whatever order it takes, each scalar in the spellings that say the same (`30` for
"30", `"30"` for 30), and what it takes in no way is left out. Nothing is offered that is not in the
draft, so nothing is made up; of several results, the one that keeps most of the draft counts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from stencilm.errors import StencilError
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.json_values import read_json
from stencilm.grammars.sources import JsonSchemaSource
from stencilm.guiding.loose_json import (
    Elements,
    Members,
    Node,
    Scalar,
    begins_value,
    constant_in,
    documents,
    merged,
    number_in,
    read,
)
from stencilm.guiding.outline import Outline
from stencilm.matching.candidates import Literal
from stencilm.matching.matcher import GrammarMatcher

PUNCTUATION = b"{}[],:\"' \t\r\n"
_MAX_OFFERS = 4_000
"""How many offers there may be before any more of a draft is kept than so far."""
_OFFERS_FOR_A_BYTE = 4
_WHOLE_TEXTS = 1_000_000
"""Bytes of texts so far that are read together with documents of drafts that go on."""
_TEXTS_FOR_A_DRAFT = 16
"""How many more of them for each character of a draft."""
_LEAST_OFFERS = 4_000
"""How many offers all readings of a draft together have, whatever the time is."""
_MAX_WORK = 4_000_000
"""Bytes that the matcher is given, with as many more for each that is kept as follows."""
_WORK_FOR_A_BYTE = 64
_MAX_LOOK_AHEAD = 32
_MAX_DOCUMENTS = 8
_MAX_DIGITS = 400
_SPACE = b" \t\r\n"
_CLOSING = (b"}", b"]")
_OPEN = b"(a scalar that the draft did not end)"


class Reread(NamedTuple):
    """A draft in the grammar's own form.

    Attributes:
        text: What comes after the text so far.
        kept: How much of it is the draft's, by `content`.
        is_complete: The text is whole now.
        owes_comma: The draft had a comma after all of it, which is not in the text: another item
            may come, and no more of the last one.
    """

    text: bytes
    kept: int
    is_complete: bool
    owes_comma: bool = False

    @property
    def rank(self) -> tuple[int, bool, int]:
        """What is compared: of two that keep as much, one has empty texts and lists, too."""
        return self.kept, self.is_complete, len(self.text.translate(None, _SPACE))


def content(text: bytes) -> int:
    """How many bytes of words and numbers there are, the punctuation of JSON left out."""
    return len(text.translate(None, PUNCTUATION))


class _Patience:
    """So many tries, and after these as many as there is time for.

    A short draft is read alike on a busy machine and on an idle one.
    """

    def __init__(self, is_late: Callable[[], bool]) -> None:
        self._left = _LEAST_OFFERS
        self._is_late = is_late

    def try_once(self) -> None:
        self._left -= 1

    def is_over(self) -> bool:
        return self._left <= 0 and self._is_late()


class Rereader:
    """Reads the drafts of one text as JSON, each against the text so far.

    Args:
        start: A matcher at the beginning of the grammar; it is not changed.
        grammar: The grammar.
        is_late: Whether a long draft is to be left with what was read of it so far.
    """

    def __init__(
        self,
        start: GrammarMatcher,
        grammar: Grammar,
        is_late: Callable[[], bool] = lambda: False,
    ) -> None:
        self._start = start
        self._orders = _property_orders(grammar)
        self._is_late = is_late
        self._is_possible = any(
            start.longest_valid_prefix(opening).valid_bytes for opening in (b"{", b"[")
        )
        self._outline = Outline() if isinstance(grammar.source, JsonSchemaSource) else None
        self._settled = start.fork()  # a matcher after so much of the text so far
        self._settled_at = 0
        self._worth = _WHOLE_TEXTS

    def unsettled(self, written: bytes) -> str:
        """A text that says of the text so far what a reader of its rest has to know."""
        if self._outline is None:
            return written.decode("utf-8", "ignore")
        self._outline.read(written)
        rest = written[self._outline.settled :].decode("utf-8", "ignore")
        return f"{self._outline.opening}{rest}"

    def reread(self, written: bytes, draft: bytes) -> Reread | None:
        """The best way to read a draft of all of the text; None where it is none.

        Args:
            written: The text so far, which stands.
            draft: What the model wrote.
        """
        if not self._is_possible:
            return None
        told = self.unsettled(written)
        is_whole = self._outline is None or not self._outline.brackets
        if written and is_whole and isinstance(read(told)[0], (Scalar, type(None))):
            return None
        patience = _Patience(self._is_late)
        best: Reread | None = None
        for found in self._found(written, told, draft.decode("utf-8", "replace"), patience):
            if best is None or found.rank > best.rank:
                best = found
        return best if best is not None and best.text else None

    def _found(
        self, written: bytes, told: str, draft: str, patience: _Patience
    ) -> Iterator[Reread]:
        """What a model may mean: a document of the draft, or one that the draft goes on with.

        A list goes on with any number of documents.
        """
        is_again = begins_again(written, draft.encode("utf-8", "replace"), self._is_late)
        self._worth += _TEXTS_FOR_A_DRAFT * len(draft)
        for node in islice(_documents(draft, self._is_late), _MAX_DOCUMENTS):
            # Merging marks what stands already, so it is read anew for each.
            if _is_talk(node) or not self._may_merge(written, node, is_again):
                continue
            so_far = read(written.decode("utf-8", "ignore"))[0] if written else None
            together = merged(so_far, node)
            if together is not None:
                yield _Rewriter(self._start, written, self._orders, patience).best(together)
        if not written or is_again:
            return
        whole = read(told + draft, is_late=self._is_late)[0]
        if whole is None or _is_talk(whole):
            return
        together = merged(read(told)[0], whole)
        if together is None:
            return
        begun = self._outline
        if begun is None or not begun.brackets:
            yield _Rewriter(self._start, written, self._orders, patience).best(together)
            return
        if not self._settled.accept_string(written[self._settled_at : begun.settled]):
            raise AssertionError("invariant: the text so far was accepted")
        self._settled_at = begun.settled
        rewriter = _Rewriter(self._settled, written, self._orders, patience, begun.settled)
        yield rewriter.best(together, begun)

    def _may_merge(self, written: bytes, node: Node, is_again: bool) -> bool:
        """Whether a document is read together with the whole text so far.

        That costs as much as the text so far is long: what comes in small parts is worth it only so
        often, except for a draft that says all of it again.
        """
        opening = written.lstrip()[:1]
        kind = {b"{": Members, b"[": Elements}.get(opening)
        if kind is not None and not isinstance(node, kind):
            return False  # they contradict each other
        if is_again:
            return True
        self._worth -= len(written)
        return self._worth >= 0


def reread(start: GrammarMatcher, grammar: Grammar, written: bytes, draft: bytes) -> Reread | None:
    """The best way to read one draft; see `Rereader`."""
    return Rereader(start, grammar).reread(written, draft)


def _documents(draft: str, is_late: Callable[[], bool]) -> Iterator[Node]:
    """The documents of a draft with what they wrap in a name, then what lists of one hold."""
    listed: list[Node] = []
    for node in islice(documents(draft, is_late), _MAX_DOCUMENTS):
        inner: Node | None = node
        is_listed = False
        while inner is not None:
            if is_listed:
                listed.append(inner)
            else:
                yield inner
            is_listed = is_listed or isinstance(inner, Elements)
            inner = _wrapped(inner)
    yield from listed


def _wrapped(node: Node) -> Node | None:
    """The one object or array that another holds."""
    inner: Node | None = None
    if isinstance(node, Members) and len(node.items) == 1:
        inner = node.items[0][1]
    elif isinstance(node, Elements) and len(node.values) == 1:
        inner = node.values[0]
    return None if isinstance(inner, Scalar) else inner


def _is_talk(node: Node) -> bool:
    """Whether a reading has words without quotes and no end: a bracket, and talk after it.

    The `tr` with which a draft ends may become `true`.
    """
    if isinstance(node, Scalar) or not node.is_open:
        return False
    todo: list[Node] = [node]
    while todo:
        here = todo.pop()
        if isinstance(here, Scalar):
            if here.kind == "word" and not (here.is_cut and begins_value(here.text)):
                return True
        elif isinstance(here, Elements):
            todo += here.values
        else:
            for key, value in here.items:
                todo += [key] if value is None else [key, value]
    return False


def begins_again(written: bytes, draft: bytes, is_late: Callable[[], bool] = lambda: False) -> bool:
    """Whether a draft is a whole document that begins as the text does, and no part after it."""
    opening = written[:1]
    stripped = draft.strip()
    if opening not in (b"{", b"[") or not stripped.startswith(opening):
        return False
    text = stripped.decode("utf-8", "replace")
    node, end = read(text, is_late=is_late)
    if isinstance(node, Members) and node.is_open:
        return bool(node.items) and node.items[0][1] is not None
    return isinstance(node, (Elements, Members)) and not node.is_open and end == len(text)


@dataclass(frozen=True, slots=True)
class _Orders:
    """The orders in which a schema declares the members of its objects.

    Attributes:
        ranks: For each order the place of each name in it.
        bare_ranks: The same for names without case and separators.
        by_name: The names that are declared, sorted, by what they are without case and separators.
        places: Of each name the orders that it is in.
    """

    ranks: tuple[dict[str, int], ...]
    bare_ranks: tuple[dict[str, int], ...]
    by_name: dict[str, list[str]]
    places: dict[str, frozenset[int]]

    def meant(self, name: str, others: Collection[str]) -> list[str]:
        """The names that are declared and that another spelling of them may mean.

        Names that one object has both are two, and so are those of the draft's own object, which
        `others` are. Where a spelling may mean either of two, it means none.
        """
        here = self.places.get(name, frozenset())
        same = [
            one
            for one in self.by_name.get(_bare(name), ())
            if one not in others and here.isdisjoint(self.places[one])
        ]
        seen: Counter[int] = Counter()
        for one in same:
            seen.update(self.places[one])
        return [one for one in same if all(seen[place] == 1 for place in self.places[one])]


@lru_cache(maxsize=16)
def _property_orders(grammar: Grammar) -> _Orders:
    """The orders in which the schema of a grammar declares the members of its objects."""
    orders = tuple(_declared(grammar))
    places: dict[str, set[int]] = {}
    for number, order in enumerate(orders):
        for name in order:
            places.setdefault(name, set()).add(number)
    by_name: dict[str, list[str]] = {}
    for name in sorted(places):
        if bare := _bare(name):
            by_name.setdefault(bare, []).append(name)
    return _Orders(
        ranks=tuple({name: rank for rank, name in enumerate(order)} for order in orders),
        bare_ranks=tuple(
            {_bare(name): rank for rank, name in enumerate(order)} for order in orders
        ),
        by_name=by_name,
        places={name: frozenset(numbers) for name, numbers in places.items()},
    )


def _declared(grammar: Grammar) -> Iterable[tuple[str, ...]]:
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
    return orders


@dataclass(slots=True, eq=False)
class _Piece:
    """The last piece of a text, and those before it.

    Attributes:
        before: The piece before; None for what stands for the beginning.
        text: The piece.
        number: How many pieces there are before it.
        whitespace: The whitespace that the grammar has after it, where that is known.
        comma: The comma after it, where that is known.
        fits: Whether a member of the object that goes on after it may come next, where known.
    """

    before: _Piece | None
    text: bytes
    number: int
    whitespace: bytes | None = None
    comma: _Piece | None = None
    fits: dict[int, bool] = field(default_factory=dict)


class _State(NamedTuple):
    """A place in the text: its length, and the pieces that led to it."""

    length: int
    pieces: _Piece
    kept: int
    comes_behind: bytes  # the last token


class _Cursor:
    """One matcher that goes from place to place, back over what two texts do not share.

    A fork keeps its whole text; the way from one try to the next is short.
    """

    def __init__(self, start: GrammarMatcher) -> None:
        self._matcher = start.fork()
        self.first = _Piece(None, b"", 0)
        self._path = [self.first]
        self.work = 0

    def at(self, piece: _Piece) -> GrammarMatcher:
        """The matcher after a piece, until the next call."""
        path = self._path
        missing: list[_Piece] = []
        here = piece
        while here.number >= len(path) or path[here.number] is not here:
            missing.append(here)
            assert here.before is not None, "all texts share their beginning"
            here = here.before
        self._back(len(path) - 1 - here.number)
        for one in reversed(missing):
            self.work += len(one.text)
            if not self._matcher.accept_string(one.text):  # pragma: no cover
                raise RuntimeError("a text that was accepted is not accepted again")
            path.append(one)
        return self._matcher

    def tried(self, piece: _Piece, text: bytes, *, is_whole: bool) -> _Piece | None:
        """The piece that a text is after another; None where it does not fit.

        Args:
            piece: The piece before.
            text: What comes next.
            is_whole: It is a number, which must not have to go on.
        """
        matcher = self.at(piece)
        self.work += len(text)
        if not matcher.accept_string(text):
            return None
        behind = _Piece(piece, text, piece.number + 1)
        self._path.append(behind)
        return None if is_whole and _must_go_on(matcher) else behind

    def whitespace(self, piece: _Piece) -> bytes:
        """The whitespace that the grammar has after a piece."""
        if piece.whitespace is None:
            forced = self.at(piece).find_jump_forward_string().encode()
            piece.whitespace = forced[: len(forced) - len(forced.lstrip(_SPACE))]
        return piece.whitespace

    def _back(self, count: int) -> None:
        if count:
            self._matcher.rollback(count)
            del self._path[-count:]


class _Rewriter:
    """Offers values to a matcher; counts what it offers."""

    def __init__(
        self,
        start: GrammarMatcher,
        written: bytes,
        orders: _Orders,
        patience: _Patience,
        begin: int = 0,
    ) -> None:
        self.cursor = _Cursor(start)
        self.written = written
        self.begin = begin  # where in the text so far the matcher stands
        self.orders = orders
        self.patience = patience
        self.offers = 0
        self.offers_before = 0  # what was reached
        self.reached = begin
        self.furthest: _State | None = None

    def best(self, node: Node, begun: Outline | None = None) -> Reread:
        """The first whole text, else the one that keeps most.

        Args:
            node: What the draft says.
            begun: Where the cursor stands in the text so far; None for its beginning.
        """
        first = _State(self.begin, self.cursor.first, 0, b"")
        chosen: _State | None = None
        is_open = not isinstance(node, Scalar) and node.is_open
        most = _new_content(node) if is_open else 0
        if begun is None:
            ends = self._values(first, node)
        else:
            self.furthest = first if self.begin == len(self.written) else None
            ends = self._going_on(first, node, begun, len(begun.brackets))
        for state in ends:
            if is_open:  # no text is whole yet: the search is for all that the draft says
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
        text = _joined(chosen)[len(self.written) - self.begin :]
        return Reread(text, chosen.kept, self._is_completed(chosen), _ends_with_comma(node))

    def _is_completed(self, state: _State) -> bool:
        return self.cursor.at(state.pieces).is_completed()

    def _is_spent(self) -> bool:
        """Whether the draft has had as many tries as it is worth.

        What is read is worth more of them, so that the whole grows with what is read.
        """
        return (
            self.offers - self.offers_before >= _MAX_OFFERS
            or self.offers >= _MAX_OFFERS + _OFFERS_FOR_A_BYTE * self.reached
            or self.cursor.work >= _MAX_WORK + _WORK_FOR_A_BYTE * self.reached
            or self.patience.is_over()
        )

    def _offer(
        self,
        state: _State,
        token: bytes,
        kept: int = 0,
        *,
        last: bytes | None = None,
        is_whole: bool = False,
    ) -> _State | None:
        """The state after a token, with the whitespace of the text or the grammar before it."""
        if self._is_spent() or state.comes_behind is _OPEN:
            return None
        self.offers += 1
        self.patience.try_once()
        for text in self._spaced(state, token):
            piece = self.cursor.tried(state.pieces, text, is_whole=is_whole)
            if piece is not None:
                return self._moved(state, piece, token if last is None else last, kept)
        return None

    def _spaced(self, state: _State, token: bytes) -> list[bytes]:
        """A token with the whitespace that may come before it."""
        written, at = self.written, state.length
        if at < len(written):
            begin = at
            while begin < len(written) and written[begin] in _SPACE:
                begin += 1
            text = written[at:begin] + token
            # Whitespace that ends the text so far may go on.
            return [text] if written.startswith(text[: len(written) - at], at) else []
        whitespace = self.cursor.whitespace(state.pieces)
        is_apart = state.comes_behind in (b",", b":")
        return [
            *([whitespace + token] if whitespace else [b" " + token] if is_apart else []),
            token,
        ]

    def _moved(self, state: _State, piece: _Piece, token: bytes, kept: int) -> _State:
        length = state.length + len(piece.text)
        kept = state.kept + (kept if length > len(self.written) else 0)
        moved = _State(length, piece, kept, token)
        best = self.furthest
        if length < len(self.written):
            is_further = length > self.reached
        else:
            is_further = best is None or kept > best.kept
            # What closes in the draft closes here, so that what comes after it goes on from there.
            is_closed = best is not None and best.pieces is piece.before and token in _CLOSING
            self.furthest = moved if is_further or is_closed else best
        if is_further:
            self.reached = max(self.reached, length)
            self.offers_before = self.offers
        return moved

    def _values(self, state: _State, node: Node) -> Iterator[_State]:
        """The states after a value, the one that changes least first."""
        if isinstance(node, Scalar):
            is_cut = node.is_cut and node.is_new
            kept = content(node.text.encode("utf-8", "replace")) if node.is_new else 0
            for spelling in _beginnings(node) if is_cut else self._spellings(state, node):
                is_number = node.is_new and not is_cut and spelling[-1:].isdigit()
                last = _OPEN if is_cut else spelling
                behind = self._offer(state, spelling, kept, last=last, is_whole=is_number)
                if behind is not None:
                    if behind.length == len(self.written):
                        kept = 0  # it stands already: `.0` after it says no more
                    yield behind
        elif isinstance(node, Elements):
            yield from self._elements(state, node)
        else:
            yield from self._members(state, node)

    def _going_on(self, first: _State, node: Node, begun: Outline, depth: int) -> Iterator[_State]:
        """The states after a value of which the brackets and all settled items stand already."""
        if isinstance(node, Scalar):
            return
        if depth == 1:
            opening = b"" if begun.is_begun else b"[" if isinstance(node, Elements) else b"{"
            yield from self._items(first._replace(comes_behind=opening), node)
            return
        # The first of its items goes on itself.
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

    def _items(self, opened: _State, node: Elements | Members) -> Iterator[_State]:
        """The states after the items of an object or array, which is open or has some already."""
        if isinstance(node, Elements):
            yield from self._elements_in(opened, node)
        else:
            yield from self._members_in(opened, node)

    def _elements(self, state: _State, node: Elements) -> Iterator[_State]:
        opened = self._offer(state, b"[")
        if opened is not None:
            yield from self._elements_in(opened, node)

    def _elements_in(self, opened: _State, node: Elements) -> Iterator[_State]:
        def next_states(before: _State, number: int) -> Iterator[tuple[_State, bool]]:
            behind = before
            is_last = number + 1 == len(node.values)
            if not _is_first(before, opened):
                comma = self._comma(before)
                if comma is None:
                    yield before, True
                    return
                behind = comma
            value = node.values[number]
            for state in self._values(behind, value):
                yield state, is_last
            if not isinstance(value, Scalar) or not value.is_doubtful:
                yield before, is_last  # without it

        for behind in _walked(opened, len(node.values), next_states, self._is_spent):
            closed = self._ended(behind, node, b"]")
            if closed is not None:
                yield closed

    def _members(self, state: _State, node: Members) -> Iterator[_State]:
        opened = self._offer(state, b"{")
        if opened is not None:
            yield from self._members_in(opened, node)

    def _members_in(self, opened: _State, node: Members) -> Iterator[_State]:
        left = _Left(self._ordered(node))
        names = frozenset(key.text for key, _ in node.items)

        def keyed_by(before: _State, number: int, is_first: bool) -> Iterator[_State]:
            return self._keyed(before, node.items[number][0], names, is_first=is_first)

        def place(before: _State, number: int) -> Iterator[_State]:
            """The states after one member."""
            key, value = node.items[number]
            kept = content(key.text.encode("utf-8", "replace")) if key.is_new else 0
            for keyed in keyed_by(before, number, _is_first(before, opened)):
                colon = None if value is None else self._offer(keyed, b":")
                if colon is not None and value is not None:
                    # A key without its value is nothing.
                    yield from self._values(colon._replace(kept=colon.kept + kept), value)

        def next_states(before: _State, step: int) -> Iterator[tuple[_State, bool]]:
            if step < node.fixed:
                options: Sequence[int] | _Left = [step]
            else:
                options = left
            for behind, number in self._by_loss(before, options, place, keyed_by, opened):
                left.take(number)
                yield behind, not left
                left.put_back(number)
            if step >= node.fixed:  # without the others; one that is null says nothing
                nothing = sum(_null(node.items[number]) for number in left)
                yield before._replace(kept=before.kept + nothing), True

        for behind in _walked(opened, len(node.items), next_states, self._is_spent):
            closed = self._ended(behind, node, b"}")
            if closed is not None:
                yield closed

    def _ended(self, behind: _State, node: Elements | Members, bracket: bytes) -> _State | None:
        """The state after an object or array; nothing may follow where the draft did not end it."""
        if node.is_open:
            return behind._replace(comes_behind=_OPEN)
        return self._offer(behind, bracket)

    def _by_loss(
        self,
        before: _State,
        options: Sequence[int] | _Left,
        place: Callable[[_State, int], Iterator[_State]],
        keyed_by: Callable[[_State, int, bool], Iterator[_State]],
        opened: _State,
    ) -> Iterator[tuple[_State, int]]:
        """The states after each member that may come next; first those that keep others out least.

        The keys that may come now and not after a member are what it keeps out.
        """
        looks_ahead = len(options) <= _MAX_LOOK_AHEAD
        is_first = _is_first(before, opened)

        def takes(state: _State, number: int, first: bool) -> bool:
            known = state.pieces.fits
            if number not in known:
                known[number] = next(keyed_by(state, number, first), None) is not None
            return known[number]

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

    def _keyed(
        self, before: _State, key: Scalar, others: Collection[str], *, is_first: bool
    ) -> Iterator[_State]:
        """The states after a key in the spellings that the grammar may know it by."""
        behind = before if is_first else self._comma(before)
        if behind is None:
            return
        for name in (key.text, *self.orders.meant(key.text, others)):
            keyed = self._offer(behind, _quoted(name))
            if keyed is not None:
                yield keyed
                return
        if not key.is_new:
            keyed = self._offer(behind, key.spelling.encode("utf-8", "replace"))
            if keyed is not None:
                yield keyed

    def _comma(self, before: _State) -> _State | None:
        """The state after a comma, which is the same for all that may come next."""
        known = before.pieces.comma
        if known is not None:
            return _State(before.length + len(known.text), known, before.kept, b",")
        behind = self._offer(before, b",")
        if behind is not None:
            before.pieces.comma = behind.pieces
        return behind

    def _ordered(self, node: Members) -> list[int]:
        """The members in the order of the declaration that knows most of them, else as they are."""
        names = [key.text for key, _ in node.items]
        bare = [_bare(name) for name in names]
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
        return sorted(
            range(len(names)), key=lambda number: (best[number] is None, best[number] or 0)
        )

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
            yield from self._similar(state, text)
        elif scalar.kind == "number":
            yield from _numbers(text)
            yield _quoted(scalar.spelling)
        else:
            yield text.encode()
            if text != "null":
                yield _quoted(scalar.spelling)

    def _similar(self, state: _State, text: str) -> Iterator[bytes]:
        """The strings that the grammar lists here and that differ in case and separators only."""
        bare = _bare(text)
        try:
            candidates = self.cursor.at(state.pieces).candidates(64)
        except StencilError:
            return
        texts = (one.text.strip() for one in candidates if isinstance(one, Literal))
        listed = {text for text in texts if len(text) > 2 and text[0] == text[-1] == '"'}
        alike = [text for text in listed if _bare(text) == bare]
        if bare and len(alike) == 1:  # of two nobody knows which one is meant
            yield alike[0].encode()


class _Left:
    """The members that have not come yet, in an order; what was taken last is put back first."""

    def __init__(self, ordered: Sequence[int]) -> None:
        self._count = len(ordered)
        # A ring, whose beginning is no member.
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
    first: _State,
    steps: int,
    next_states: Callable[[_State, int], Iterator[tuple[_State, bool]]],
    is_spent: Callable[[], bool],
) -> Iterator[_State]:
    """The ends of all paths of at most so many steps, depth first.

    Where nothing more may be offered no path comes to an end that closes, and each would be walked
    for each of its steps.
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


def _is_first(before: _State, opened: _State) -> bool:
    """Whether the first item comes next: no comma stands before it."""
    return before.pieces is opened.pieces and opened.comes_behind in (b"[", b"{")


def _must_go_on(matcher: GrammarMatcher) -> bool:
    """Whether the number before a place is only the beginning of those that may come."""
    return not matcher.is_completed() and not any(map(matcher.is_allowed, b",]} \t\r\n"))


def _ends_with_comma(node: Node) -> bool:
    """Whether a comma stands at the end of the innermost object or array that is open."""
    last: Node | None = node
    while isinstance(last, (Elements, Members)) and last.is_open:
        if last.goes_on:
            return True
        items = last.values if isinstance(last, Elements) else [value for _, value in last.items]
        last = items[-1] if items else None
    return False


def _null(member: tuple[Scalar, Node | None]) -> int:
    """What a member holds that is null, for which leaving it out is another word."""
    key, value = member
    is_null = isinstance(value, Scalar) and value.kind == "constant" and value.text == "null"
    return content(key.text.encode("utf-8", "replace")) + len("null") if is_null else 0


def _new_content(node: Node) -> int:
    """How much there is to keep of a draft."""
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


def _joined(state: _State) -> bytes:
    pieces: list[bytes] = []
    here: _Piece | None = state.pieces
    while here is not None:
        pieces.append(here.text)
        here = here.before
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
        yield from (text.encode() for text in dict.fromkeys((scalar.text, scalar.text.casefold())))


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
