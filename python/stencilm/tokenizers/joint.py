r"""Bytes to the tokens that every continuation shares.

What a tokenizer makes of the end of a text depends on what follows: `order` alone is one token, and
the beginning of `orderId`. So the last tokens of a text are not known before more of it is.

One idea: a tokenizer that sees the whole text puts some token over the end of what is known, or
begins one there; let it begin at `p`. What it has before `p` is then what it makes of the text up
to `p` alone, because a token does not depend on those after it. So the tokens that stand in all
cases are the common beginning of its tokens for each possible `p`, and these places are few: from
there to the end must be the beginning of a longer token.

One exception: pre-tokenizers split the last of a run of whitespace off where something else follows
(`\s+(?!\S)`). After whitespace that is a second case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from stencilm.errors import TokenizerError
from stencilm.tokenizers.encoding import Encoder

# How many tokens that span the end are asked for at one place.
MAX_SPANNING = 8
# How many tokens before a text are tokenized with it.
RECENT_TOKENS = 8

Spans = list[tuple[int, list[int]]]
"""Where tokens begin that span the end of a text, each with a few of them."""


class JointTokenizer:
    """Tokens of texts that go on, for one vocabulary."""

    __slots__ = ("_encoder", "_ids", "_longest", "_spans", "_tokens")

    def __init__(
        self,
        tokens: Sequence[bytes | None],
        encoder: Encoder,
        spans: Callable[[bytes, int], Spans],
    ) -> None:
        """Keeps the tokens by id, their encoder, and what finds spanning tokens."""
        self._tokens = tokens
        self._encoder = encoder
        self._spans = spans
        self._longest = 0
        self._ids: frozenset[bytes] | None = None

    def split(
        self, data: bytes, recent_tokens: Sequence[int], spans: Spans | None = None
    ) -> tuple[list[int], bytes]:
        """The tokens with which every continuation of `data` begins, and the bytes left over.

        Args:
            data: The text; it may end within a character.
            recent_tokens: What stands before it. As many as are themselves what the tokenizer
                would write are tokenized together with the text.
            spans: Where tokens may begin that span the end of `data`; None for wherever the
                vocabulary has one.
        """
        if not data:
            return [], b""
        if spans is None:
            spans = self._spans(data, MAX_SPANNING)
        recent = self._spelled(recent_tokens)
        shared = None
        for count in dict.fromkeys((len(recent), 4, 2, 1, 0)):
            if count <= len(recent) and shared is None:
                shared = self._shared(data, recent[len(recent) - count :], spans)
        tokens = shared or []
        return tokens, data[len(self._bytes(tokens)) :]

    def whole(self, data: bytes, recent_tokens: Sequence[int]) -> list[int]:
        """The tokens of `data` after others as if nothing followed; none where there are none.

        An unfinished character at the end is left out.
        """
        recent = self._spelled(recent_tokens)
        for count in dict.fromkeys((len(recent), 4, 2, 1, 0)):
            if count <= len(recent):
                behind = _Behind(self._encoder, self._tokens, recent[len(recent) - count :], data)
                if found := behind.tokens_to_end():
                    return found
        return []

    def _spelled(self, recent_tokens: Sequence[int]) -> list[int]:
        """The last few tokens: after the last that spells nothing, beginning with a character."""
        recent = list(recent_tokens)[-RECENT_TOKENS:]
        for at in range(len(recent) - 1, -1, -1):
            token = self._tokens[recent[at]] if 0 <= recent[at] < len(self._tokens) else None
            if not token:
                recent = recent[at + 1 :]
                break
        while recent and self._bytes(recent[:1])[0] & 0xC0 == 0x80:
            recent = recent[1:]
        return recent

    def _bytes(self, ids: Sequence[int]) -> bytes:
        return b"".join([self._tokens[token_id] or b"" for token_id in ids])

    def _shared(self, data: bytes, context: list[int], spans: Spans) -> list[int] | None:
        """The common beginning of all cases; None where the context fits none of them."""
        behind = _Behind(self._encoder, self._tokens, context, data)
        if behind.readable < len(data):
            # The end is not text yet, so what may span the end of what is text is not known.
            spans = self._spans(data[: behind.readable], MAX_SPANNING)
        places: list[tuple[int, list[int] | None]] = [(behind.readable, None)]
        places += sorted(((start, ids) for start, ids in spans), reverse=True)
        seen = {start for start, _ in places}
        shared: list[int] | None = None
        for start, spanning in places:  # grows while it is walked
            if start > 0 and not behind.is_boundary(start):
                # No encoder reads half a character: the tokens that may end here are given
                # instead.
                for earlier in self._begins_of(data, start):
                    if earlier not in seen:
                        seen.add(earlier)
                        places.append((earlier, None))
                continue
            # Before the first byte stands nothing, also after spaces that are tokens of their own
            # only because something follows.
            for found in behind.cases(start) or ([[]] if start == 0 and shared else []):
                if shared is None:
                    shared = found
                common = _common(shared, found)
                if common < len(shared) and (
                    spanning is None or behind.can_go_on(start, found, spanning)
                ):
                    shared = shared[:common]
            if shared is not None and not shared:
                break
        return shared

    def _begins_of(self, data: bytes, end: int) -> list[int]:
        """Where a token may begin that ends at this byte."""
        if self._ids is None:
            self._longest = max((len(token) for token in self._tokens if token), default=0)
            self._ids = frozenset(token for token in self._tokens if token)
        return [
            start
            for start in range(max(0, end - self._longest), end)
            if data[start:end] in self._ids
        ]


class _Behind:
    """A text after some tokens, encoded together with them up to any place."""

    __slots__ = (
        "_context",
        "_data",
        "_encoder",
        "_ends",
        "_text",
        "_tokens",
        "_whole",
        "readable",
    )

    def __init__(
        self,
        encoder: Encoder,
        tokens: Sequence[bytes | None],
        context: list[int],
        data: bytes,
    ) -> None:
        self._encoder = encoder
        self._tokens = tokens
        self._context = context
        self._data = data
        self._text = b"".join([tokens[token_id] or b"" for token_id in context])
        self._whole: list[int] = []
        self._ends: dict[int, int] = {}
        self.readable = len(data)
        if encoder.reads_text:
            try:
                (self._text + data).decode()
            except UnicodeDecodeError as error:
                self.readable = max(0, error.start - len(self._text))

    def is_boundary(self, place: int) -> bool:
        """Whether an encoder can read the text up to here."""
        if not self._encoder.reads_text or place >= self.readable:
            return True
        return self._data[place] & 0xC0 != 0x80

    def cases(self, place: int) -> list[list[int]]:
        """The tokens up to a place of the text, without the context, one list for each case.

        None where the tokenizer joins context and text in a token. The empty list where it does not
        bring the text back.
        """
        found = self._encode(place)
        cases = [] if found is None else [found]
        last = self._last_space(place)
        if last is not None and (before := self._encode(last)) is not None:
            space = self._encoder.own_tokens(self._data[last:place])
            cases.append([] if space is None else before + space)
        return cases

    def can_go_on(self, place: int, found: list[int], spanning: list[int]) -> bool:
        """Whether one of these tokens can come at a place, after the tokens found there."""
        for token_id in spanning:
            token = self._tokens[token_id] or b""
            behind = self._encoder.own_tokens(self._text + self._data[:place] + token)
            # What ends within a character cannot be tried, and whitespace is not decided yet.
            if (
                behind is None
                or behind == [*self._context, *found, token_id]
                or token.decode("utf-8", "ignore")[-1:].isspace()
            ):
                return True
        return len(spanning) >= MAX_SPANNING

    def tokens_to_end(self) -> list[int] | None:
        """The tokens of all that can be read, as if nothing followed."""
        return self._encode(self.readable)

    def _encode(self, place: int) -> list[int] | None:
        """The tokens up to a place; None where none ends with the context."""
        if place in self._ends and self._last_space(place) is None:
            return self._whole[: self._ends[place]]
        try:
            ids = self._encoder.own_tokens(self._text + self._data[:place])
        except TokenizerError:
            return []  # a vocabulary that does not spell it at all
        if ids is None:
            return []
        count = len(self._context)
        if ids[:count] != self._context:
            return None
        if place == self.readable:
            # Where one of these tokens ends, those before it are the tokens up to there.
            self._whole = ids[count:]
            ends = accumulate(len(self._tokens[token_id] or b"") for token_id in self._whole)
            self._ends = {end: at for at, end in enumerate(ends, 1)}
        return ids[count:]

    def _last_space(self, place: int) -> int | None:
        """Where the character before a place begins, if it is whitespace."""
        if not self._encoder.reads_text:
            return None
        character = self._data[:place].decode("utf-8", "ignore")[-1:]
        return place - len(character.encode()) if character.isspace() else None


def _common(one: list[int], other: list[int]) -> int:
    """How many tokens two lists have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))
