"""The text so far, and the ways to read the draft after it.

One idea: a draft continues the text as it is, or it says the same as JSON in another form, or all
drafts together say more than the last one alone. Each of these is a reading, which does not change
the text until it is applied.
"""

from __future__ import annotations

from collections.abc import Callable

from stencilm.errors import MatcherError
from stencilm.generation.ends import is_over
from stencilm.generation.result import LeftOut
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.sources import JsonSchemaSource
from stencilm.guiding.backtrack import cut_place
from stencilm.guiding.extent import are_items, is_element
from stencilm.guiding.lone_strings import Unquoted
from stencilm.guiding.loose_json import first_document, number_cut, unclear_from, unescaped
from stencilm.guiding.reading import begun_again, fitting, start_of_text
from stencilm.guiding.rereading import Rereader, begins_again
from stencilm.guiding.rewriting import Reread, content
from stencilm.guiding.text_matcher import TextMatcher
from stencilm.guiding.transcript import Anew, Otherwise, Transcript, begins_document
from stencilm.matching.candidates import Literal
from stencilm.matching.matcher import GrammarMatcher

_OFFERS_ANEW = 1_000


class Written:
    """The text so far.

    Args:
        matcher: A fresh matcher of the grammar.
        grammar: The grammar.
        seed: The beginning of every text.
        is_late: Whether to stop reading a long draft, and use what was read so far.

    Attributes:
        text: Its bytes.
        matcher: The matcher after it.
        start: A matcher at the beginning; it is not changed.
        transcript: The transcript of all drafts.
        filled: Start, end and reason of each part that no model wrote.
        forced: The bytes at its end that were forced, and that no draft has said since.
        kept: The number of bytes in it from the model's own words and numbers.
        has_draft: It contains a part of a draft.
        owes_comma: The last draft had a comma after the end of the text.
        is_held: It does not end where the drafts end.
        left_out: Values of drafts that it lacks, because the grammar accepts them in no form.
    """

    def __init__(
        self, matcher: GrammarMatcher, grammar: Grammar, seed: bytes, is_late: Callable[[], bool]
    ) -> None:
        self.text = bytearray()
        self.matcher = matcher
        self.start = matcher.fork()
        self.filled: list[tuple[int, int, str]] = []
        self.forced = 0
        self.kept = 0
        self.has_draft = False
        self.owes_comma = False
        self.is_held = False
        self.left_out: dict[LeftOut, None] = {}
        self._grammar = grammar
        self._seed = seed
        self._is_late = is_late
        self._rereader = Rereader(self.start, grammar, is_late)
        is_json = isinstance(grammar.source, JsonSchemaSource)
        self.transcript = Transcript(
            self._read_anew, is_late, is_json=is_json, is_seeded=bool(seed)
        )

    def accept(self, text: bytes) -> None:
        """Append a text that is known to fit."""
        if not self.matcher.accept_string(text):
            raise AssertionError(f"invariant: {text!r} was found to fit")
        self.text += text
        self.forced = 0
        self.owes_comma = False

    def keep(self, text: bytes) -> None:
        """Append a text that a model wrote."""
        self.accept(text)
        self.transcript.add(text)
        self.kept += content(text)

    def supersede(self, rest: bytes) -> None:
        """The text goes on with what a model chose in place of the rest of a draft."""
        if self.transcript.is_json:
            self.transcript.supersede(self._rereader.unsettled(bytes(self.text)), rest)

    def fill(self, text: bytes, means: str) -> None:
        """Append a text that no model wrote."""
        start = len(self.text)
        self.accept(text)
        self.filled.append((start, len(self.text), means))

    def may_say_in_other_order(self, draft: bytes) -> bool:
        """Whether the beginning of a draft may be JSON in another form: all again, or the rest."""
        opening = bytes(self.text[:1])
        if opening not in (b"{", b"["):
            return False
        if draft.lstrip().startswith((opening, b"```")):
            return True
        return self.transcript.may_go_on_with(draft)

    def says_forced(self, draft: bytes) -> bool:
        """Whether a draft only repeats a part of what was forced; then it is finished."""
        if not self.forced or self.matcher.longest_valid_prefix(draft).status != "dead":
            return False
        length = begun_again(bytes(self.text[len(self.text) - self.forced :]), draft)
        if length:
            self.forced -= length
            self.transcript.say_forced(length)
        return length > 0

    def otherwise(
        self, said: bytes, whole: bytes, draft: bytes, *, is_held: bool, is_finished: bool
    ) -> Anew | Reread | None:
        """How to read a draft that is not taken as it is: with all earlier ones, or as other JSON.

        Args:
            said: The draft as it came.
            whole: The same with the comma that precedes it.
            draft: The part of it that comes after the text.
            is_held: The text does not end where the drafts end.
            is_finished: The draft is all that its writer had to say.
        """
        verdict = self.matcher.longest_valid_prefix(draft)
        if verdict.status != "dead":
            if not self.transcript.is_owing:
                return None
            fits = Reread(draft, content(draft), verdict.status == "complete")
            return self._anew(said, fits, is_held=is_held)
        found = self._reread(whole, draft, is_finished=is_finished)
        is_less = found is None or found.is_lossy or found.is_apart
        if (is_less or self.transcript.is_owing) and not self._fits_after_talk(draft):
            anew = self._anew(said, found, is_held=is_held)
            if anew is not None:
                return anew
        return found

    def _reread(self, whole: bytes, draft: bytes, *, is_finished: bool) -> Reread | None:
        """The draft rewritten in the grammar's form, if that keeps more than the draft as it is.

        Args:
            whole: The draft as it came.
            draft: The draft without what it repeats of the text so far.
            is_finished: The draft is all that its writer had to say.
        """
        written = bytes(self.text)
        found = self._rereader.reread(written, whole, is_finished=is_finished)
        if found is None:
            return None
        is_again = begins_again(written, whole, self._is_late)
        # Brackets without any of the draft's contents would be a different value.
        if not found.kept and (is_again or found.is_lossy):
            return None
        if is_again or self._begins_with_element(whole, written):
            return found
        if found.is_complete and found.kept and whole.lstrip().startswith((b"{", b"[")):
            is_talk = False  # then nothing before it is left out
        else:
            is_talk = not self.has_draft
        skipped = start_of_text(self.talk_matcher, written, draft) if is_talk else 0
        if _is_within(draft[:skipped], written):
            skipped = 0
        fits = draft[skipped : skipped + fitting(self.matcher, draft[skipped:])]
        is_complete = self.matcher.longest_valid_prefix(fits).status == "complete"
        is_better = (found.kept, found.is_complete) > (content(unescaped(fits)), is_complete)
        return found if is_better else None

    def _begins_with_element(self, draft: bytes, written: bytes) -> bool:
        """Whether the bracket that a draft begins with is not the one that is open, said again."""
        text, told = draft.decode("utf-8", "ignore"), written.decode("utf-8", "ignore")
        first = first_document(text)
        return first is not None and is_element(text, first[0], told, self._is_late)

    def _read_anew(self, said: bytes) -> Reread | None:
        """Read a transcript from the beginning of the text, which is the seed."""
        seed = self._seed
        rereader = Rereader(self.start, self._grammar, self._is_late, _OFFERS_ANEW)
        found = rereader.reread(seed, said)
        return None if found is None else found._replace(text=seed + found.text)

    def _anew(self, said: bytes, found: Reread | None, *, is_held: bool) -> Anew | None:
        """The text of all drafts together, if it says more than the text without them.

        Args:
            said: The draft.
            found: The reading of the draft alone.
            is_held: The text does not end where the drafts end.
        """
        before = bytes(self.text)
        may_hold = is_held or found is None
        text, is_complete = (b"", False) if found is None else (found.text, found.is_complete)
        is_lossy = may_hold or (found is not None and found.is_lossy)
        otherwise = Otherwise(before, before + text, is_complete, is_lossy)
        return self.transcript.read_with(said, otherwise, may_hold=may_hold)

    def held(self) -> Anew | None:
        """The text of all drafts together, if the last ones were noted but not read."""
        if not self.is_held:
            return None
        text = bytes(self.text)
        otherwise = Otherwise(text, text, is_complete=False, is_lossy=True)
        return self.transcript.read_with(b"", otherwise, may_hold=False)

    def put_anew(self, anew: Anew, start: int) -> None:
        """Replace the text by another one, which is equal up to `start`."""
        self.matcher = self.start.fork()
        self.text = bytearray()
        self._rereader = Rereader(self.start, self._grammar, self._is_late)
        self.filled = [span for span in self.filled if span[1] <= start]
        self.accept(anew.text)
        self.transcript.take(anew.said)
        self.after_reread(anew.reread, is_of_all=True)
        self.kept = max(self.kept + (anew.reread.kept > 0), anew.reread.kept)

    def after_reread(self, found: Reread, *, is_of_all: bool) -> None:
        """Note which parts of the drafts the text lacks."""
        self.transcript.note(found, bytes(self.text), is_of_all=is_of_all)
        if is_of_all:
            self.left_out.clear()
        self.left_out.update(dict.fromkeys(found.left_out))
        self.is_held = found.is_apart
        self.owes_comma = found.owes_comma
        self.has_draft = True

    def _fits_after_talk(self, draft: bytes) -> bool:
        """Whether a draft fits as it is, after talk at its beginning."""
        if self.has_draft:
            return False
        written = bytes(self.text)
        start = start_of_text(self.talk_matcher, written, draft)
        if start == 0 or _is_within(draft[:start], written):
            return False
        rest = draft[start:]
        verdict = self.matcher.longest_valid_prefix(rest)
        return verdict.status != "dead" or self.ends_at(rest[: verdict.valid_bytes])

    def unclear_from(self, draft: bytes, valid: int) -> int | None:
        """Where in a JSON draft a value begins of which a part would be another value."""
        if not isinstance(self._grammar.source, JsonSchemaSource):
            return None
        told = self._rereader.unsettled(bytes(self.text))
        so_far = told + draft.decode("utf-8", "replace")
        end = len(told + draft[:valid].decode("utf-8", "ignore"))
        places = (unclear_from(so_far, self._is_late), number_cut(so_far, end))
        found = [place for place in places if place is not None]
        return max(0, len(so_far[: min(found)].encode()) - len(told.encode())) if found else None

    @property
    def talk_matcher(self) -> TextMatcher:
        """The matcher to find the rest of the text in talk with: without the quotes of a string."""
        is_string = self._rereader.is_in_lone_string(bytes(self.text))
        return Unquoted(self.matcher) if is_string else self.matcher

    def takes_no_part(self, draft: bytes, start: int, end: int) -> bool:
        """Whether a part of the word or number from `start` on would be another text or value."""
        if self.ends_at(draft[:end]) or draft[end - 1 : end + 1].isdigit():
            return True
        _, candidates = cut_place(self.matcher.fork(), draft, start)
        return all(isinstance(candidate, Literal) for candidate in candidates)

    def ends_at(self, draft: bytes) -> bool:
        """Whether the text may end after a draft that fits, but for a quote that closes it."""
        matcher = self.talk_matcher.fork()
        matcher.accept_string(draft)
        return matcher.is_completed()

    def may_end_behind(self, forced: bytes) -> bool:
        """Whether a text is complete after forced text, but may continue: the drafter decides.

        A model that answers `1` means exactly that, even if there is a `1` already.
        """
        there = self.matcher.fork()
        there.accept_string(forced)
        return there.is_completed() and not is_over(there, there.stop_token_ids)

    def shortest(self) -> bytes:
        """The shortest completion; empty if it would be too long."""
        try:
            return self.matcher.shortest_completion()
        except MatcherError:
            return b""


def _is_within(talk: bytes, written: bytes) -> bool:
    """Whether the beginning of a draft is not talk, because it is within the same brackets.

    A repetition of the text so far is not talk either.
    """
    return begins_document(talk.removesuffix(written)) or are_items(
        talk.decode("utf-8", "ignore"), written.decode("utf-8", "ignore")
    )
