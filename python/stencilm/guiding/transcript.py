"""The transcript of a text: what its drafts say, in their own words, next to the text itself.

One idea: the text follows the grammar's order, so a part of a draft may have no place in it yet, or
none any more. The transcript keeps everything as it came. When the text says less than it could, it
is written again from the transcript, except where the grammar has replaced a part of a draft.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from stencilm.generation.result import LeftOut
from stencilm.guiding.extent import closing, has_words, is_element, said_by
from stencilm.guiding.growing import Growing
from stencilm.guiding.loose_json import (
    Elements,
    Members,
    Node,
    Scalar,
    documents,
    first_document,
    read,
)
from stencilm.guiding.overlaps import Overlap, overlap, overlaps, says_something
from stencilm.guiding.reading import said_again
from stencilm.guiding.rereading import wrapped
from stencilm.guiding.rewriting import Reread
from stencilm.guiding.told import Told, is_talk, value_behind, words_read

_FREE_WORK = 100_000
"""Bytes of transcripts that may be read again in any case."""
_WORK_FOR_A_BYTE = 16
"""How many more for each byte of drafts, so that a transcript is read again as it grows."""
_LEAST_GROWTH = 4
"""The fraction by which a held transcript must grow to be read again: all readings of it together
cost only a few times its length."""
_WORD = re.compile(r"[^\W_]+")
_OPENING = re.compile(rb"[\[{]")
_IN_DOCUMENT = re.compile(rb"\"|'\s*:|^\s*[]}:,]")


class Anew(NamedTuple):
    """A text that was written again from a transcript.

    Attributes:
        text: The whole text.
        said: The transcript that it was written from.
        reread: The result of rewriting it.
    """

    text: bytes
    said: bytes
    reread: Reread


class Otherwise(NamedTuple):
    """The text that would result without using the transcript.

    Attributes:
        before: The text before a draft.
        text: The text with it.
        is_complete: The latter is a complete text.
        is_lossy: It lacks some of the draft.
    """

    before: bytes
    text: bytes
    is_complete: bool
    is_lossy: bool


class Transcript:
    """The transcript of all drafts of one text.

    Args:
        read_anew: Reads a transcript from the beginning of the grammar.
        is_late: Whether there is no more time for reading.
        is_json: The text is JSON by a schema; for any other text, nothing is noted.
        is_seeded: The text begins with a seed, which no draft said.

    Attributes:
        is_json: The text is JSON by a schema.
        is_owing: The text says less than the transcript, in which the rest has a place.
    """

    def __init__(
        self,
        read_anew: Callable[[bytes], Reread | None],
        is_late: Callable[[], bool],
        *,
        is_json: bool,
        is_seeded: bool = False,
    ) -> None:
        self._read_anew = read_anew
        self._growing = Growing(is_late)
        self._is_seeded = is_seeded
        self._read_up_to = 0  # the length at the last reading of everything
        self._is_late = is_late
        self.is_json = is_json
        self._superseded: list[Scalar] = []
        self._said: bytes | None = b"" if is_json else None
        self._before = self._behind = b""  # what was taken for talk around the text
        self._drafts = b""  # as they came, without the grammar's additions
        self._heard: list[bytes] = []  # the same, one by one
        self._is_begun = False  # by a draft
        self._forced = 0  # bytes at the end that the grammar added
        self._is_lossy = False
        self._left = _FREE_WORK
        self.is_owing = False

    @property
    def lost(self) -> str:
        """The drafts, if the text lacks a part of them that the grammar has a place for."""
        drafts = self._drafts if self._is_lossy or self.is_owing else b""
        return drafts.decode("utf-8", "ignore")

    def add(self, text: bytes, *, is_drafted: bool = True) -> None:
        """Add something to the transcript that is also in the text, from a draft or the grammar."""
        if self._said is not None:
            self._said += text
            self._is_begun = self._is_begun or is_drafted
            self._forced = 0 if is_drafted else len(text)
            self._left += _WORK_FOR_A_BYTE * len(text)

    def say_forced(self, length: int) -> None:
        """A draft repeated this many bytes of what the grammar added."""
        self._forced = max(0, self._forced - length)
        self._is_begun = True

    def add_draft(self, draft: bytes, rest: bytes) -> bool:
        """Add a draft; `rest` is the part of it that does not repeat the text.

        Returns:
            Whether it is everything that was said.
        """
        is_all = not self._is_begun
        is_first = is_all and draft == rest
        if is_first and self._is_all_again(draft):
            self.take(draft)
        else:
            self.add(rest)
        return is_all

    def may_go_on_with(self, draft: bytes) -> bool:
        """Whether the beginning of a draft goes on with the transcript, as JSON without talk."""
        if self._said is None:
            return False
        for said in (self._said, self._drafted):  # its writer may not know the additions
            node = self._document(said + draft)
            if node is not None and not has_words(node):
                return True
        return False

    def overlap(self, draft: bytes) -> Overlap:
        """How much of the start of a draft repeats the transcript.

        Nothing if the text is not JSON.
        """
        if self._said is None:
            return Overlap()
        said = self._drafted

        def fits(text: bytes) -> bool:
            if not self._is_affordable(len(text)) or has_words(self._document(text)):
                return False
            found = self._read_anew(text)
            return found is not None and not found.is_lossy

        found = overlap(said, draft, self._added, fits)
        is_again = found.doubtful > 0 and self._is_all_again(draft)
        return Overlap(found.length) if is_again else found

    def read_without(self, draft: bytes, again: Overlap) -> Reread | None:
        """Read the transcript with a draft of which all of an overlap is a repetition.

        Returns:
            The reading; None if it loses something, or if nothing is doubtful.
        """
        before = self._drafted if again.length else self._said or b""
        said = before + draft[again.length + again.doubtful :]
        if not again.doubtful:
            return None
        found = self._read_anew(said) if self._is_affordable(len(said)) else None
        return None if found is None or found.is_lossy else found

    def add_refused(self, text: bytes) -> None:
        """Add something to the transcript of which nothing is in the text."""
        if self._said is not None and text.strip():
            self.add(text)
            self.is_owing = True

    def take(self, said: bytes) -> None:
        """Replace the transcript."""
        if self._said is None:
            return
        self._left += _WORK_FOR_A_BYTE * max(0, len(said) - len(self._said))
        self._said = said
        self._forced = 0
        self._is_begun = True
        self.is_owing = False

    def forget(self) -> None:
        """Give up the transcript, because the text contains something that no draft said."""
        if self.is_owing and self._said is not None:
            self._is_lossy = True
        self._said = None
        self.is_owing = False

    def note(self, found: Reread, text: bytes, *, is_of_all: bool) -> None:
        """Note what a reading lacks, given the text after it.

        Parts for which the grammar has no place are not owed: the text says no less than if the
        drafts ended here. After a complete reading of the whole transcript, nothing is owed.
        """
        if is_of_all and found.is_complete:
            self.is_owing = False
        elif not self.is_owing:
            self.is_owing = found.is_apart or (found.is_lossy and self._may_say_more(text))

    def settle(self, text: bytes) -> None:
        """After the last draft, find out whether the text, which is complete, lacks something."""
        if self.is_owing:
            self._left += len(self._said or b"")
            found = self._if_ended()
            self.is_owing = found is not None and says(found.text) > says(text)

    def _may_say_more(self, text: bytes) -> bool:
        """Whether the text may contain more once all drafts have come.

        It may not if the drafts, ended here, would give exactly this text.
        """
        found = self._if_ended()
        return found is None or not found.is_complete or says(found.text) != says(text)

    def _if_ended(self) -> Reread | None:
        """The text that the drafts would give if they ended here."""
        said = self._document(self._said or b"")
        if said is None or not self._is_affordable(len(self._said or b"")):
            return None
        return self._read_anew((self._said or b"") + closing(said))

    def read_with(self, draft: bytes, otherwise: Otherwise, *, may_hold: bool) -> Anew | None:
        """The text of all drafts together, if it says more; None if it does not.

        Args:
            draft: The last draft, as it came.
            otherwise: The text without this.
            may_hold: Accept a text that says only as much as the present one, because an unfinished
                draft may contain parts without a place yet.
        """
        self._read_up_to = len(self._said or b"") + len(draft)
        readings = list(self._readings(draft))
        alone = self._read_alone(draft)
        if alone is not None and says(alone.text) > says(otherwise.text):
            return alone
        if not readings:
            return None
        best = max(readings, key=_rank) if self._is_begun else None
        is_again = best is not None and self._is_all_again(draft)
        if is_again and _is_all(readings[0].reread):
            best = readings[0]
        if best is not None and best.reread.is_complete >= otherwise.is_complete:
            is_all = otherwise.is_lossy and _is_all(best.reread)
            if is_all or says(best.text) > says(otherwise.text):
                return best
        if not may_hold:
            return None
        fitting = (one for one in readings if self._may_hold(one.said, draft))
        return next((one for one in fitting if says(one.text) >= says(otherwise.before)), None)

    def hold(self, draft: bytes) -> bool:
        """Note a draft that continues a part without a place in the text yet.

        False if it does not.
        """
        if self._said is None or not draft.strip() or self._is_all_again(draft):
            return False
        said = next(self._joined(draft), b"")
        if not self._may_hold(said, draft):
            return False
        if any(_is_all(one.reread) for one in self._readings(draft, self._may_be_whole)):
            return False
        self.take(said)
        self.is_owing = True
        return True

    @property
    def has_grown(self) -> bool:
        """Whether much was said since the last reading of everything."""
        length = len(self._said or b"")
        return _LEAST_GROWTH * (length - self._read_up_to) >= self._read_up_to

    def _may_hold(self, said: bytes, draft: bytes) -> bool:
        """Whether a transcript is unfinished and says more than before.

        A draft that is only punctuation need not say more: the quote that ends a name does not.
        """
        before = self._growing.read(self._said or b"").said
        node, more, _ = self._growing.read(said)
        if not isinstance(node, (Elements, Members)) or not node.is_open:
            return False
        return more > before or (more == before and not says_something(draft))

    def _may_be_whole(self, said: bytes) -> bool:
        """Whether a transcript may be a complete text: one of its documents has ended."""
        node: Node | None
        node, _, is_first = self._growing.read(said)
        if node is None or not is_first or self._is_seeded:
            return True
        while isinstance(node, (Elements, Members)) and node.is_open:
            node = wrapped(node)
        return node is not None

    def _readings(
        self, draft: bytes, may_read: Callable[[bytes], bool] = lambda said: True
    ) -> Iterator[Anew]:
        """The readings of the possible transcripts, for those in `may_read`."""
        if self._said is None:
            return
        for said in filter(may_read, dict.fromkeys(self._joined(draft))):
            if not self._is_affordable(len(said)):
                return
            found = self._read_anew(said)
            if found is not None:
                yield Anew(found.text, said, found)

    def _read_alone(self, draft: bytes) -> Anew | None:
        """The drafts without the grammar's additions, which their writer may not know about.

        Used only if they are one complete document of which nothing is lost.
        """
        said = self._drafts + draft
        known = {self._said, (self._said or b"") + draft, self._drafted + draft}
        if self._said is None or said in known or not begins_document(said):
            return None
        node = self._document(said) if self._is_affordable(len(said)) else None
        if not isinstance(node, (Elements, Members)) or node.is_open or has_words(node):
            return None
        found = self._read_anew(said)
        return Anew(found.text, said, found) if found is not None and _is_all(found) else None

    def hear(self, draft: bytes) -> None:
        """A draft was read, whatever part of it is in the text."""
        if self.is_json:
            self._drafts += draft
            self._heard.append(draft)

    def set_aside(self, text: bytes, *, is_before: bool) -> None:
        """A part of a draft was taken for talk before the text, which it follows, or after it."""
        if is_before:
            self._before += text
        else:
            self._behind += text

    def supersede(self, told: str, rest: bytes) -> None:
        """The value that the rest of a draft begins with was replaced by a model.

        Args:
            told: What a reader of the rest must know of the text so far.
            rest: The rest of the draft, which may begin within the value.
        """
        value = value_behind(told, told + rest.decode("utf-8", "ignore"))
        if value is not None:
            self._superseded.append(value)

    def untold(
        self, response: str, left_out: Iterable[LeftOut], *, is_cut: bool
    ) -> tuple[tuple[LeftOut, ...], str]:
        """The documents beside the response, and all drafts if it lacks more than is listed."""
        if not self.is_json or self._drafts.strip() == response.strip().encode():
            return (), self.lost
        told = Told(response, [*left_out, *self._superseded], is_cut=is_cut, is_late=self._is_late)
        texts = [(self._drafts, True), (self._drafts, False)]
        if len(self._heard) > 1:  # side by side, those that say a word again say another one
            again = [(draft, True) for draft in self._heard if _is_alone(draft)]
            if self._has_all_words():
                said = (self._said or b"") + self._behind
                again += [(said, True), (said, False)]
            texts = [*again, *texts]
        for said, is_exact in texts:
            others = told.others(said.decode("utf-8", "ignore"), is_exact=is_exact)
            if others is not None:
                return others, self.lost
        return (), self.lost or self._drafts.decode("utf-8", "ignore")

    def _joined(self, draft: bytes) -> Iterator[bytes]:
        """The possible transcripts of a draft and all before it, likeliest first.

        A model that was asked to continue may start all over, or repeat the list or the words that
        were cut.
        """
        said = self._said or b""
        if not said:
            yield draft
            return
        if self._is_all_again(draft):
            yield draft
        is_added = said_again(self._added, draft) > 0
        yield (self._drafted if is_added else said) + draft
        yield self._drafted + draft  # its writer does not know the additions
        for length in islice(overlaps(said, draft), 1):
            yield said + draft[length:]

    @property
    def _added(self) -> bytes:
        """What the grammar added after the last draft."""
        said = self._said or b""
        return said[len(said) - self._forced :]

    @property
    def _drafted(self) -> bytes:
        """The transcript up to the end of the last draft."""
        said = self._said or b""
        return said[: len(said) - self._forced]

    def _is_affordable(self, length: int) -> bool:
        if length > self._left or (length > _FREE_WORK and self._is_late()):
            return False
        self._left -= length
        return True

    def _document(self, said: bytes) -> Node | None:
        """The first document of a transcript, without the talk and fences around it."""
        return self._growing.read(said).node

    def _has_all_words(self) -> bool:
        """Whether the transcript has every word of the drafts, before its documents end."""
        if self._said is None:
            return False
        before, text, behind = (
            part.decode("utf-8", "ignore") for part in (self._before, self._said, self._behind)
        )
        there = " ".join(
            [before if is_talk(before) else "", *words_read(text, self._is_late), behind]
        )
        known = set(_WORD.findall(there))
        for draft in self._heard:
            words = _WORD.findall(draft.decode("utf-8", "ignore"))
            cut = (*words[:1], *words[-1:])  # by the ends of the draft
            if not known.issuperset(words[1:-1]) or not all(word in there for word in cut):
                return False
        first = first_document(text)
        end = len(text) if first is None else read(text, first[0])[1]
        rest = text[end:].lstrip()
        return rest[:1] not in ("]", "}", ",", ":") or not says_something(rest.encode())

    def _is_all_again(self, draft: bytes) -> bool:
        if not begins_document(draft):
            return False
        text = draft.decode("utf-8", "ignore")
        first = first_document(text)
        said = self._said or b""
        # Among items of the open document it is another item.
        if first is not None and is_element(
            text, first[0], said.decode("utf-8", "ignore"), self._is_late
        ):
            return False
        return is_all_again(self._document(said), draft)


def _is_all(found: Reread) -> bool:
    return found.is_complete and not found.is_lossy


def _rank(found: Anew) -> tuple[bool, int]:
    return found.reread.is_complete, says(found.text)


def says(text: bytes) -> int:
    """How much a JSON text says."""
    node, _ = read(text.decode("utf-8", "ignore"))
    return said_by(node)


def is_all_again(before: Node | None, draft: bytes) -> bool:
    """Whether a draft begins a document again: with the same first member or element."""
    again = next(documents(draft.decode("utf-8", "ignore")), None)
    if isinstance(before, Members) and isinstance(again, Members):
        if not before.items or not again.items:
            return bool(again.items)
        return again.items[0][0].text.startswith(before.items[0][0].text)
    if isinstance(before, Elements) and isinstance(again, Elements):
        if not before.values or not again.values:
            return bool(again.values)
        first, other = before.values[0], again.values[0]
        if isinstance(first, Scalar) and isinstance(other, Scalar):
            return other.text.startswith(first.text)
        if isinstance(first, Elements) and isinstance(other, Elements):
            return first.is_open or other.is_open or first == other
        return type(first) is type(other)
    return False


def _is_alone(draft: bytes) -> bool:
    """Whether a draft is a whole document with nothing but talk around it."""
    if not begins_document(draft):
        return False
    text = draft.decode("utf-8", "ignore")
    begin = min(at for at in map(text.find, "{[") if at >= 0)
    node, end = read(text, begin)
    is_closed = isinstance(node, (Elements, Members)) and not node.is_open
    return is_closed and not has_words(node) and text[end:].lstrip()[:1] not in ("]", "}", ",")


def begins_document(draft: bytes) -> bool:
    """Whether only talk precedes the first bracket of a draft."""
    found = _OPENING.search(draft)
    return found is not None and _IN_DOCUMENT.search(draft, 0, found.start()) is None
