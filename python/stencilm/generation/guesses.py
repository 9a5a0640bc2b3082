"""Guesses of the next tokens for a model to verify, several in one forward pass.

One idea: there are three sources. The grammar, if text is forced but its tokens depend on what
follows. The grammar again, if the current part may end now and a known frame follows, such as `":
"` after any key. And the text so far. Each is asked in turn, after the guesses so far, as long as
all guesses together are likely enough to be worth their places in the pass. The verification is
that of Leviathan et al. (2023).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from stencilm.errors import MatcherError
from stencilm.generation.lookup import Lookup, Odds
from stencilm.matching.matcher import GrammarMatcher
from stencilm.tokenizers import TokenizerInfo

# On a CPU, one more token makes a pass over few tokens about a fifth more expensive; if it is
# right, it saves a whole pass. On a GPU it costs even less.
_LEAST_ODDS = 0.4
_FORCED_ODDS = 0.9
_PATIENCE = 8
_MAX_ENDS = 4
_LONG = 3


class Guesser:
    """Makes guesses while a text is generated.

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
        self._ends: list[bytes] = []  # bytes that ended a part, the latest first
        self._offers: dict[int, tuple[int, int]] = {}  # where a frame was possible, and which
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
        """Go back to the end of these tokens, which were learned before; nothing is forgotten."""
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
            # Odds by the length of the part so far (one token, a few, many): a part that has just
            # begun seldom ends at once, and a long part may continue.
            kind = frame, self._tokens_since_frame(guesses)
            self._offers[self._length + len(guesses)] = kind
            if self._frames.of(kind) > odds:
                return frame, self._frames.of(kind)
        return token, odds

    def _tokens_since_frame(self, guesses: Sequence[int]) -> int:
        """The number of tokens after the last frame, including these guesses; at most 3."""
        frames = self._spelled.values()
        recent = [*self._recent, *guesses]
        for count, token in enumerate(reversed(recent[-_LONG:])):
            if token in frames:
                return count
        return _LONG

    def _frame(self, ahead: GrammarMatcher) -> int | None:
        """The first token of what follows if the current part ends now; None if that is not known.

        A shortest completion shows how the part can end. It costs more than all the rest, so it is
        computed only if none of the known ends leads to forced text, and then only now and then,
        once an end is known or after many failures.
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
    """These bytes and the text that they force; None if they do not fit or force nothing."""
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
