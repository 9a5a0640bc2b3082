"""Rewrite a model's JSON in the grammar's form: order, quotes, types.

One idea: a draft may be read in several ways, as a separate document or as a continuation of the
text so far. Each is rewritten (`rewriting`), and the one that keeps most of the draft is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from stencilm.grammars.grammar import Grammar
from stencilm.grammars.sources import JsonSchemaSource
from stencilm.guiding.declared_orders import property_orders
from stencilm.guiding.extent import goes_on_alike, has_brackets, has_words, is_element, said_by
from stencilm.guiding.lone_strings import Unquoted, lone_string
from stencilm.guiding.loose_json import (
    Elements,
    Members,
    Node,
    Scalar,
    documents,
    first_document,
    merged,
    read,
)
from stencilm.guiding.outline import Outline
from stencilm.guiding.rewriting import MAX_OFFERS, Patience, Reread, Rewriter
from stencilm.matching.matcher import GrammarMatcher
from stencilm.matching.texts import byte_matcher

_WHOLE_TEXTS = 1_000_000
"""The budget, in bytes of text so far, for merging documents of drafts with it."""
_TEXTS_FOR_A_DRAFT = 16
"""The increase of that budget for each character of a draft."""
_MAX_DOCUMENTS = 8


class Rereader:
    """Reads the drafts of one text as JSON, each against the text so far.

    Args:
        start: A matcher at the beginning of the grammar; it is not changed.
        grammar: The grammar.
        is_late: Whether to stop reading a long draft, and use what was read so far.
        offers: As for `Patience`.
    """

    def __init__(
        self,
        start: GrammarMatcher,
        grammar: Grammar,
        is_late: Callable[[], bool] = lambda: False,
        offers: int = MAX_OFFERS,
    ) -> None:
        self._offers = offers
        self._start = start
        self._orders = property_orders(grammar)
        self._is_late = is_late
        self._is_possible = any(
            start.longest_valid_prefix(opening).valid_bytes for opening in (b"{", b"[")
        )
        self._outline: Outline | None = Outline()
        # A grammar without a schema may accept texts that are not JSON; this matcher detects that.
        is_schema = isinstance(grammar.source, JsonSchemaSource)
        self._may_be_string = is_schema and start.longest_valid_prefix(b'"').valid_bytes > 0
        self._json = None if is_schema or not self._is_possible else _any_json()
        self._checked = 0
        self._settled = start.fork()  # a matcher after the settled part of the text so far
        self._settled_at = 0
        self._worth = _WHOLE_TEXTS

    def unsettled(self, written: bytes) -> str:
        """A short text with all that a reader of the rest must know about the text so far."""
        if self._json is not None and not self._json.accept_string(written[self._checked :]):
            self._json = self._outline = None
        self._checked = len(written)
        if self._outline is None:
            return written.decode("utf-8", "ignore")
        self._outline.read(written)
        rest = written[self._outline.settled :].decode("utf-8", "ignore")
        return f"{self._outline.opening}{rest}"

    def reread(self, written: bytes, draft: bytes, *, is_finished: bool = False) -> Reread | None:
        """The best reading of a draft; None if there is none.

        Args:
            written: The text so far, which does not change.
            draft: The draft.
            is_finished: The draft ends where its writer ended it.
        """
        text = draft.decode("utf-8", "replace")
        patience = Patience(self._is_late, self._offers)
        best = self._document(written, text, patience) if self._is_possible else None
        is_begun = not written or self.is_in_lone_string(written)
        if best is None and is_begun and is_finished and self._may_be_string:
            best = self._string(written, text, patience)
        return best.compared() if best is not None and best.found.text else None

    def is_in_lone_string(self, written: bytes) -> bool:
        """Whether the text so far is only the quote before a string that is all of the text."""
        return self._may_be_string and written == b'"'

    def _document(self, written: bytes, draft: str, patience: Patience) -> _Reading | None:
        """The best reading with objects and arrays."""
        told = self.unsettled(written)
        is_whole = self._outline is None or not self._outline.brackets
        if written and is_whole and isinstance(read(told)[0], (Scalar, type(None))):
            return None
        best: _Reading | None = None
        for reading in self._found(written, told, draft, patience):
            if best is None or reading.found.rank > best.found.rank:
                best = reading
        return best

    def _string(self, written: bytes, draft: str, patience: Patience) -> _Reading | None:
        """A draft that says a string without its quotes, such as a date."""
        within = self._start.fork()
        within.accept_string(b'"')
        text = lone_string(Unquoted(within), draft)
        if text is None:
            return None
        string = Scalar("string", text, text)
        rewriter = Rewriter(self._start, written, self._orders, patience)
        return _Reading(rewriter.best(string), string, written.decode())

    def _found(
        self, written: bytes, told: str, draft: str, patience: Patience
    ) -> Iterator[_Reading]:
        """The possible meanings: a document in the draft, or one that the draft continues.

        A list may continue with any number of documents.
        """
        is_again = begins_again(written, draft.encode("utf-8", "replace"), self._is_late)
        self._worth += _TEXTS_FOR_A_DRAFT * len(draft)
        has_nodes = False
        first = first_document(draft)
        # Among items of the text so far it is another item, not a separate document.
        is_item = (
            first is not None and bool(written) and is_element(draft, first[0], told, self._is_late)
        )
        nodes = iter(()) if is_item else _documents(draft, self._is_late)
        for node in islice(nodes, _MAX_DOCUMENTS):
            has_nodes = True
            # Merging marks the parts that are already there, so read the text again for each
            # document.
            if _is_talk(node) or not self._may_merge(written, node, is_again):
                continue
            so_far = read(written.decode("utf-8", "ignore"))[0] if written else None
            together = merged(so_far, node)
            if together is not None:
                rewriter = Rewriter(self._start, written, self._orders, patience)
                text = written.decode("utf-8", "ignore")
                yield _Reading(rewriter.best(together), together, text)
        if not written or is_again:
            return
        whole = read(told + draft, is_late=self._is_late)[0]
        if whole is None or _is_talk(whole) or (has_nodes and has_brackets(whole)):
            return
        together = merged(read(told)[0], whole)
        if together is None:
            return
        begun = self._outline
        if begun is None or not begun.brackets:
            rewriter = Rewriter(self._start, written, self._orders, patience)
            yield _Reading(rewriter.best(together), together, told)
            return
        if not self._settled.accept_string(written[self._settled_at : begun.settled]):
            raise AssertionError("invariant: the text so far was accepted")
        self._settled_at = begun.settled
        rewriter = Rewriter(self._settled, written, self._orders, patience, begun.settled)
        yield _Reading(rewriter.best(together, begun), together, told)

    def _may_merge(self, written: bytes, node: Node, is_again: bool) -> bool:
        """Whether to merge a document with the whole text so far.

        That costs as much as the text so far is long, so for drafts of small parts it is limited,
        except for a draft that repeats all of it.
        """
        opening = written.lstrip()[:1]
        kind = {b"{": Members, b"[": Elements}.get(opening)
        if kind is not None and not isinstance(node, kind):
            return False  # they contradict each other
        if is_again:
            return True
        self._worth -= len(written)
        return self._worth >= 0


def _any_json() -> GrammarMatcher:
    return byte_matcher(Grammar.from_json_schema({}))


class _Reading(NamedTuple):
    """One way to read a draft.

    Attributes:
        found: The rewritten draft.
        said: The contents of the draft and the text before it.
        before: What a reader must know about that text.
    """

    found: Reread
    said: Node
    before: str

    def compared(self) -> Reread:
        """The rewritten draft, compared with the contents."""
        there, _ = read(self.before + self.found.text.decode("utf-8", "ignore"))
        is_open = not isinstance(self.said, Scalar) and self.said.is_open
        return self.found._replace(
            is_lossy=said_by(there) < said_by(self.said),
            is_apart=is_open and not goes_on_alike(self.said, there),
        )


def _documents(draft: str, is_late: Callable[[], bool]) -> Iterator[Node]:
    """The documents of a draft and single ones within them; last those within lists."""
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
            inner = wrapped(inner)
    yield from listed


def wrapped(node: Node) -> Node | None:
    """The only object or array inside another one; None for a list that may get more elements."""
    inner: Node | None = None
    if isinstance(node, Members) and len(node.items) == 1:
        inner = node.items[0][1]
    elif isinstance(node, Elements) and len(node.values) == 1:
        inner = node.values[0]
        if node.is_open and not (isinstance(inner, Scalar) or inner.is_open):
            return None
    return None if isinstance(inner, Scalar) else inner


def _is_talk(node: Node) -> bool:
    """Whether a reading is unfinished and has words without quotes: a bracket, then talk."""
    return not isinstance(node, Scalar) and node.is_open and has_words(node)


def begins_again(written: bytes, draft: bytes, is_late: Callable[[], bool] = lambda: False) -> bool:
    """Whether a draft is a whole document that begins as the text does, not a continuation."""
    opening = written[:1]
    stripped = draft.strip()
    if opening not in (b"{", b"[") or not stripped.startswith(opening):
        return False
    text = stripped.decode("utf-8", "replace")
    node, end = read(text, is_late=is_late)
    if isinstance(node, Members) and node.is_open:
        return bool(node.items) and node.items[0][1] is not None
    if isinstance(node, Elements) and node.is_open:
        first, _ = read(written.decode("utf-8", "ignore"), is_late=is_late)
        return isinstance(first, Elements) and first.values[:1] == node.values[:1] != []
    return isinstance(node, (Elements, Members)) and not node.is_open and end == len(text)
