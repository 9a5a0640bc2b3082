"""Guesses at the next tokens for a model to confirm, several in one forward pass.

One idea: three things know what may come. The grammar, where text is forced but its tokens depend
on what follows; the grammar again, where what is open may end now and is followed by a known frame,
as `": "` after any key; and the text so far. Each is asked in turn, after the guesses before, as
long as all of them together are likely enough to be right to be worth a place in the pass. The
check is that of Leviathan et al. (2023).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from stencilm.errors import MatcherError
from stencilm.generation.lookup import Lookup, Odds
from stencilm.matching.matcher import GrammarMatcher
from stencilm.tokenizers import TokenizerInfo

# One more token makes a pass over few of them about a fifth dearer on a CPU, and saves a whole one
# where it is right. On a GPU it costs less still.
_LEAST_ODDS = 0.4
_FORCED_ODDS = 0.9
_PATIENCE = 8
_MAX_ENDS = 4
_LONG = 3


class Guesser:
    """Guesses after a text that is being written.

    Args:
        info: The vocabulary.
        tokens: The tokens of the prompt.
        limit: The most tokens to guess at once.
    """

    def __init__(self, info: TokenizerInfo, tokens: Sequence[int], limit: int) -> None:
        self._info = info
        self._limit = limit
        self._lookup = Lookup(tokens)
        self._frames = Odds()
        self._spelled: dict[bytes, int] = {}  # the first token of each frame
        self._ends: list[bytes] = []  # bytes that ended something, the latest first
        self._offers: dict[int, tuple[int, int]] = {}  # where a frame might have come, and which
        self._recent = list(tokens[-_LONG:])
        self._length = len(tokens)
        self._misses = 0

    def extend(self, tokens: Sequence[int]) -> None:
        """Learn from more tokens at the end of the text."""
        for token in tokens:
            offer = self._offers.pop(self._length, None)
            if offer is not None:
                self._frames.learn(offer, offer[0] == token)
            self._length += 1
            self._recent = [*self._recent, token][-_LONG:]
        self._lookup.extend(tokens)

    def go_back(self, tokens: Sequence[int]) -> None:
        """Stand at the end of these tokens, which were learnt from; nothing is forgotten."""
        self._offers.clear()
        self._recent = list(tokens[-_LONG:])
        self._length = len(tokens)
        self._lookup.go_back(tokens)

    def guess(self, matcher: GrammarMatcher, stops: Collection[int], room: int) -> list[int]:
        """Tokens that may come next, that the grammar allows, and that do not end the text."""
        self._offers.clear()
        guesses: list[int] = []
        ahead = matcher.fork()
        odds = 1.0
        while len(guesses) < min(self._limit, room):
            token, chance = self._next(ahead, guesses)
            odds *= chance
            if odds < _LEAST_ODDS or token in stops or not ahead.accept_token(token):
                break
            guesses.append(token)
        return guesses

    def _next(self, ahead: GrammarMatcher, guesses: Sequence[int]) -> tuple[int, float]:
        """The best guess after other guesses, and the odds that it is right."""
        forced = ahead.forced_draft_tokens(max_tokens=1)
        if forced:
            return forced[0], _FORCED_ODDS
        token, odds = self._lookup.best(guesses) or (0, 0.0)
        frame = self._frame(ahead)
        if frame is not None:
            # Of one token, few or many: what only now begins seldom ends at once, and what goes on
            # for long may go on.
            kind = frame, self._tokens_since_frame(guesses)
            self._offers[self._length + len(guesses)] = kind
            if self._frames.of(kind) > odds:
                return frame, self._frames.of(kind)
        return token, odds

    def _tokens_since_frame(self, guesses: Sequence[int]) -> int:
        """How many tokens stand after the last frame, these guesses included; at most 3."""
        frames = self._spelled.values()
        recent = [*self._recent, *guesses]
        for count, token in enumerate(reversed(recent[-_LONG:])):
            if token in frames:
                return count
        return _LONG

    def _frame(self, ahead: GrammarMatcher) -> int | None:
        """The first token of what comes where what is open ends now; None where that is not known.

        A shortest completion shows how something ends. That is asked where no end that was found
        before leads to forced text, and only now and then once some end is known, or none after
        many tries: it costs more than all the rest.
        """
        for end in self._ends:
            frame = _framed(ahead, end)
            if frame is not None:
                break
        else:
            is_time = self._misses % _PATIENCE == 0 or (not self._ends and self._misses < _PATIENCE)
            end = _first_byte_of_completion(ahead) if is_time else b""
            frame = _framed(ahead, end) if end else None
        if frame is None:
            self._misses += 1
            return None
        if self._ends[:1] != [end]:
            self._ends = [end, *(other for other in self._ends if other != end)][:_MAX_ENDS]
        if frame not in self._spelled:
            self._spelled[frame] = self._info.tokenize_bytes(frame)[0]
        return self._spelled[frame]


def _framed(matcher: GrammarMatcher, end: bytes) -> bytes | None:
    """These bytes and what they force; None where they do not fit or force nothing."""
    matcher = matcher.fork()
    if not matcher.accept_string(end):
        return None
    forced = matcher.find_jump_forward_string()
    return end + forced.encode() if forced else None


def _first_byte_of_completion(matcher: GrammarMatcher) -> bytes:
    try:
        return matcher.shortest_completion()[:1]
    except MatcherError:
        return b""
