"""What a model wrote as JSON, written again as the grammar wants it: order, quotes, types.

One idea: the grammar's matcher is the only judge. The values of a draft are offered to it one by
one, members in whatever order it takes, each scalar in the spellings that say the same (`30` for
"30", `"30"` for 30), and what it takes in no way is left out. Nothing is offered that is not in the
draft, so nothing is made up; of several results, the one that keeps most of the draft counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
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
"""How many offers there may be before any more of a draft is kept than so far."""
_OFFERS_FOR_A_BYTE = 4
_MAX_WORK = 4_000_000
"""Bytes that the matcher is given, with as many more for each that is kept as follows."""
_WORK_FOR_A_BYTE = 64
_MAX_LOOK_AHEAD = 32
_MAX_DOCUMENTS = 8
_MAX_DIGITS = 400
_SPACE = b" \t\r\n"
_OPEN = b"(a scalar that the draft did not end)"


class Reread(NamedTuple):
    """A draft in the grammar's own form.

    Attributes:
        text: What comes after the text so far.
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
    orders = _property_orders(grammar)
    best: Reread | None = None
    for node in _readings(so_far, draft.decode("utf-8", "replace")):
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
    """What a model may mean: a document of the draft, or one that the draft goes on with.

    A list goes on with any number of documents.
    """
    yield from islice(_documents(draft), _MAX_DOCUMENTS)
    if so_far and not begins_again(so_far.encode(), draft.encode("utf-8", "replace")):
        whole = read(so_far + draft)[0]
        if whole is not None:
            yield whole


def _documents(draft: str) -> Iterator[Node]:
    """The documents of a draft with what they wrap in a name, then what lists of one hold."""
    listed: list[Node] = []
    for node in islice(documents(draft), _MAX_DOCUMENTS):
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
    """Whether a reading has words without quotes and no end: a bracket, and talk after it."""
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
    """Whether a draft is a whole document that begins as the text does, and no part after it."""
    opening = written[:1]
    stripped = draft.strip()
    if opening not in (b"{", b"[") or not stripped.startswith(opening):
        return False
    text = stripped.decode("utf-8", "replace")
    node, end = read(text)
    if isinstance(node, Members) and node.is_open:
        return bool(node.items) and node.items[0][1] is not None
    return isinstance(node, (Elements, Members)) and not node.is_open and end == len(text)


@dataclass(frozen=True, slots=True)
class _Orders:
    """The orders in which a schema declares the members of its objects, by their bare names.

    Attributes:
        ranks: For each order the place of each name in it.
        by_name: The names that are declared, sorted.
    """

    ranks: tuple[dict[str, int], ...]
    by_name: dict[str, list[str]]


@lru_cache(maxsize=16)
def _property_orders(grammar: Grammar) -> _Orders:
    """The orders in which the schema of a grammar declares the members of its objects."""
    orders = tuple(_declared(grammar))
    ranks = tuple({_bare(name): rank for rank, name in enumerate(order)} for order in orders)
    by_name: dict[str, list[str]] = {}
    for name in sorted({name for order in orders for name in order}):
        by_name.setdefault(_bare(name), []).append(name)
    return _Orders(ranks, by_name)


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

    def __init__(self, start: GrammarMatcher, written: bytes, orders: _Orders) -> None:
        self.cursor = _Cursor(start)
        self.written = written
        self.orders = orders
        self.offers = 0
        self.offers_before = 0  # what was reached
        self.reached = 0
        self.furthest: _State | None = None

    def best(self, node: Node) -> Reread:
        """The first whole text, else the one that keeps most."""
        first = _State(0, self.cursor.first, 0, b"")
        chosen: _State | None = None
        for state in self._values(first, node):
            if state.length >= len(self.written) and self._is_completed(state):
                chosen = state
            break
        furthest = self.furthest
        if chosen is None or (furthest is not None and furthest.kept > chosen.kept):
            chosen = furthest
        if chosen is None:
            return Reread(b"", 0, False)
        text = _joined(chosen)[len(self.written) :]
        return Reread(text, chosen.kept, self._is_completed(chosen))

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
            self.furthest = moved if is_further else best
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
                    yield behind
        elif isinstance(node, Elements):
            yield from self._elements(state, node)
        else:
            yield from self._members(state, node)

    def _elements(self, state: _State, node: Elements) -> Iterator[_State]:
        opened = self._offer(state, b"[")
        if opened is None:
            return

        def next_states(before: _State, number: int) -> Iterator[tuple[_State, bool]]:
            behind = before
            is_last = number + 1 == len(node.values)
            if before.comes_behind != b"[" or before.pieces is not opened.pieces:
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
            closed = None if node.is_open else self._offer(behind, b"]")
            if closed is not None:
                yield closed

    def _members(self, state: _State, node: Members) -> Iterator[_State]:
        opened = self._offer(state, b"{")
        if opened is None:
            return
        left = _Left(self._ordered(node))

        def place(before: _State, number: int) -> Iterator[_State]:
            """The states after one member."""
            key, value = node.items[number]
            kept = content(key.text.encode("utf-8", "replace")) if key.is_new else 0
            for keyed in self._keyed(before, key, is_first=before.pieces is opened.pieces):
                colon = None if value is None else self._offer(keyed, b":")
                if colon is not None and value is not None:
                    # A key without its value is nothing.
                    yield from self._values(colon._replace(kept=colon.kept + kept), value)

        def next_states(before: _State, step: int) -> Iterator[tuple[_State, bool]]:
            if step < node.fixed:
                options: Sequence[int] | _Left = [step]
            else:
                options = left
            for behind, number in self._by_loss(before, options, place, node, opened):
                left.take(number)
                yield behind, not left
                left.put_back(number)
            if step >= node.fixed:  # without the others; one that is null says nothing
                nothing = sum(_null(node.items[number]) for number in left)
                yield before._replace(kept=before.kept + nothing), True

        for behind in _walked(opened, len(node.items), next_states, self._is_spent):
            closed = None if node.is_open else self._offer(behind, b"}")
            if closed is not None:
                yield closed

    def _by_loss(
        self,
        before: _State,
        options: Sequence[int] | _Left,
        place: Callable[[_State, int], Iterator[_State]],
        node: Members,
        opened: _State,
    ) -> Iterator[tuple[_State, int]]:
        """The states after each member that may come next; first those that keep others out least.

        The keys that may come now and not after a member are what it keeps out.
        """
        looks_ahead = len(options) <= _MAX_LOOK_AHEAD
        is_first = before.pieces is opened.pieces

        def takes(state: _State, number: int, first: bool) -> bool:
            known = state.pieces.fits
            if number not in known:
                keyed = self._keyed(state, node.items[number][0], is_first=first)
                known[number] = next(keyed, None) is not None
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

    def _keyed(self, before: _State, key: Scalar, *, is_first: bool) -> Iterator[_State]:
        """The states after a key in the spellings that the grammar may know it by."""
        behind = before if is_first else self._comma(before)
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

    def _comma(self, before: _State) -> _State | None:
        """The state after a comma, which is the same for all that may come next."""
        known = before.pieces.comma
        if known is not None:
            return _State(before.length + len(known.text), known, before.kept, b",")
        behind = self._offer(before, b",")
        if behind is not None:
            before.pieces.comma = behind.pieces
        return behind

    def _names(self, key: Scalar) -> list[str]:
        """A key as it is, and the declared keys that differ from it in case and separators only."""
        by_name = self.orders.by_name.get(_bare(key.text), ())
        return [key.text, *(name for name in by_name if name != key.text)]

    def _ordered(self, node: Members) -> list[int]:
        """The members in the order of the declaration that knows most of them, else as they are."""
        bare = [_bare(key.text) for key, _ in node.items]
        numbers = list(range(len(node.items)))
        best: dict[str, int] = {}
        most = 0
        for ranks in self.orders.ranks:
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
        for candidate in candidates:
            listed = candidate.text.strip() if isinstance(candidate, Literal) else ""
            if len(listed) > 2 and listed[0] == listed[-1] == '"' and _bare(listed) == bare:
                yield listed.encode()


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
