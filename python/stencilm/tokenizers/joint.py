r"""From bytes to the tokens that all continuations share.

The tokens at the end of a text depend on what follows: `order` alone is one token, but also the
beginning of `orderId`. So the last tokens of an incomplete text are not known yet.

One idea: in a longer text, some token begins at or before the end of the known part and reaches it;
let it begin at `p`. The tokens before `p` are those of the text up to `p` alone, because a token
does not depend on later ones. So the certain tokens are the common prefix over every possible `p`.
There are few of these: the bytes from `p` to the end must begin a longer token.

One exception: pre-tokenizers split off the last character of a run of whitespace if something else
follows (`\s+(?!\S)`). This is a second case after whitespace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from stencilm.errors import TokenizerError
from stencilm.tokenizers.encoding import Encoder

# How many tokens that cross the end are requested for each start.
MAX_SPANNING = 8
# How many tokens before a text are tokenized with it.
RECENT_TOKENS = 8

Spans = list[tuple[int, list[int]]]
"""The starts of tokens that cross the end of a text, each with a few such tokens."""


class JointTokenizer:
    """Tokenizes incomplete texts, for one vocabulary."""

    __slots__ = ("_encoder", "_ids", "_longest", "_spans", "_tokens")

    def __init__(
        self,
        tokens: Sequence[bytes | None],
        encoder: Encoder,
        spans: Callable[[bytes, int], Spans],
    ) -> None:
        """Keep the tokens by id, their encoder, and the function that finds crossing tokens."""
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
            recent_tokens: The tokens before it. As many of them as are the tokenizer's own are
                tokenized together with the text.
            spans: Starts of tokens that may cross the end of `data`; None for all starts that the
                vocabulary has.
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
        """The tokens of `data` after others as if nothing followed; empty if there are none.

        An incomplete character at the end is left out.
        """
        recent = self._spelled(recent_tokens)
        for count in dict.fromkeys((len(recent), 4, 2, 1, 0)):
            if count <= len(recent):
                behind = _Behind(self._encoder, self._tokens, recent[len(recent) - count :], data)
                if found := behind.tokens_to_end():
                    return found
        return []

    def _spelled(self, recent_tokens: Sequence[int]) -> list[int]:
        """The last few tokens: after the last one without bytes, from the start of a character."""
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
        """The common prefix of all cases; None if the context fits none of them."""
        behind = _Behind(self._encoder, self._tokens, context, data)
        if behind.readable < len(data):
            # The end is not complete UTF-8; look for tokens that cross the end of the complete
            # part.
            spans = self._spans(data[: behind.readable], MAX_SPANNING)
        places: list[tuple[int, list[int] | None]] = [(behind.readable, None)]
        places += sorted(((start, ids) for start, ids in spans), reverse=True)
        seen = {start for start, _ in places}
        shared: list[int] | None = None
        for start, spanning in places:  # the loop may append to it
            if start > 0 and not behind.is_boundary(start):
                # No encoder reads half a character, so try the starts of tokens that may end here.
                for earlier in self._begins_of(data, start):
                    if earlier not in seen:
                        seen.add(earlier)
                        places.append((earlier, None))
                continue
            # Before the first byte there are no tokens, even if the case is missing because the
            # context ends in spaces that are separate tokens only before more text.
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
        """The starts of tokens that may end at this byte."""
        if self._ids is None:
            self._longest = max((len(token) for token in self._tokens if token), default=0)
            self._ids = frozenset(token for token in self._tokens if token)
        return [
            start
            for start in range(max(0, end - self._longest), end)
            if data[start:end] in self._ids
        ]


class _Behind:
    """A text after some tokens, encoded together with them up to any position."""

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
        """The tokens up to a position of the text, without the context, one list for each case.

        No list if the tokenizer joins the end of the context and the text in one token. An empty
        list stands for a case in which the tokens do not spell the text.
        """
        found = self._encode(place)
        cases = [] if found is None else [found]
        last = self._last_space(place)
        if last is not None and (before := self._encode(last)) is not None:
            space = self._encoder.own_tokens(self._data[last:place])
            cases.append([] if space is None else before + space)
        return cases

    def can_go_on(self, place: int, found: list[int], spanning: list[int]) -> bool:
        """Whether one of these tokens can come at a position, after the tokens found there."""
        for token_id in spanning:
            token = self._tokens[token_id] or b""
            behind = self._encoder.own_tokens(self._text + self._data[:place] + token)
            # A token that ends within a character cannot be tried, and after whitespace the split
            # is not known yet.
            if (
                behind is None
                or behind == [*self._context, *found, token_id]
                or token.decode("utf-8", "ignore")[-1:].isspace()
            ):
                return True
        return len(spanning) >= MAX_SPANNING

    def tokens_to_end(self) -> list[int] | None:
        """The tokens of the complete characters, as if nothing followed."""
        return self._encode(self.readable)

    def _encode(self, place: int) -> list[int] | None:
        """The tokens up to a position; None if no token ends with the context."""
        if place in self._ends and self._last_space(place) is None:
            return self._whole[: self._ends[place]]
        try:
            ids = self._encoder.own_tokens(self._text + self._data[:place])
        except TokenizerError:
            return []  # the vocabulary cannot spell it at all
        if ids is None:
            return []
        count = len(self._context)
        if ids[:count] != self._context:
            return None
        if place == self.readable:
            # If one of these tokens ends at a position, those up to it are the tokens of that
            # position.
            self._whole = ids[count:]
            ends = accumulate(len(self._tokens[token_id] or b"") for token_id in self._whole)
            self._ends = {end: at for at, end in enumerate(ends, 1)}
        return ids[count:]

    def _last_space(self, place: int) -> int | None:
        """The start of the character before a position, if it is whitespace."""
        if not self._encoder.reads_text:
            return None
        character = self._data[:place].decode("utf-8", "ignore")[-1:]
        return place - len(character.encode()) if character.isspace() else None


def _common(one: list[int], other: list[int]) -> int:
    """The length of the common prefix of two lists."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))
