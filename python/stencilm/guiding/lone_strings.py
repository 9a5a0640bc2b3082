"""A string of JSON that a model wrote without its quotes, as in the line `Day: 2024-02-28`.

One idea: within its quotes, a string is a text like that of a pattern. So a matcher that stands
behind the first quote is shown as one of the string alone, and talk around a string is left out by
the same rules as talk around any other text.
"""

from __future__ import annotations

from stencilm.guiding.backtrack import cut_word, end_of_text, is_aside
from stencilm.guiding.loose_json import FENCE
from stencilm.guiding.reading import start_of_text
from stencilm.guiding.text_matcher import TextMatcher
from stencilm.matching.candidates import Candidate, Literal
from stencilm.matching.matcher import GrammarMatcher, Verdict

_MARKS = b'"\\'
"""What has another meaning within quotes."""


class Unquoted:
    """A matcher within a string, as one of the string without its quotes.

    Args:
        matcher: A matcher behind the first quote; it is not changed from outside.
    """

    def __init__(self, matcher: GrammarMatcher) -> None:
        self._matcher = matcher

    def fork(self) -> Unquoted:
        """A copy."""
        return Unquoted(self._matcher.fork())

    def accept_string(self, text: str | bytes) -> bool:
        """Accept a part of the string."""
        given = text.encode() if isinstance(text, str) else text
        return not any(mark in _MARKS for mark in given) and self._matcher.accept_string(given)

    def is_completed(self) -> bool:
        """Whether the string may end here, and with it the text."""
        return _is_closed(self._matcher.fork())

    def is_allowed(self, token_id: int) -> bool:
        """Whether a byte may come next within the string."""
        return token_id not in _MARKS and self._matcher.is_allowed(token_id)

    def longest_valid_prefix(self, text: bytes) -> Verdict:
        """How much of a text fits, and whether that is a whole string."""
        end = min((at for mark in _MARKS if (at := text.find(mark)) >= 0), default=len(text))
        found = self._matcher.longest_valid_prefix(text[:end])
        if found.valid_bytes < len(text):
            return Verdict("dead", found.valid_bytes)
        here = self._matcher.fork()
        here.accept_string(text)
        return Verdict("complete" if _is_closed(here) else "viable", len(text))

    def candidates(self, limit: int = 16) -> list[Candidate]:
        """What may come next, without the quote that ends the string."""
        found: dict[Candidate, None] = {}
        for candidate in self._matcher.candidates(limit):
            if isinstance(candidate, Literal):
                text = candidate.text.partition('"')[0]
                if text and "\\" not in text:
                    found[Literal(text)] = None
            else:
                found[candidate] = None
        return list(found)


def _is_closed(matcher: GrammarMatcher) -> bool:
    return matcher.accept_string(b'"') and matcher.is_completed()


def lone_string(matcher: TextMatcher, draft: str) -> str | None:
    """The string that a whole answer says, with talk before it or none; None if it is not clear.

    A string in talk is one word, or one of a few known strings. Nothing but another sentence, or
    the rest of one behind a comma, stands after it: `2024-02-28 or later` does not say that date.

    Args:
        matcher: A matcher of the string without its quotes.
        draft: The answer.
    """
    fenced = FENCE.search(draft)
    text = (draft if fenced is None else fenced[1]).strip().strip("`*")
    given = text.encode()
    if not text:
        return None
    if matcher.longest_valid_prefix(given).status == "complete":
        return text
    start = start_of_text(matcher, b"", given)
    end = start + end_of_text(matcher, given[start:])
    found = given[start:end]
    is_whole = matcher.longest_valid_prefix(found).status == "complete"
    if not found or not is_whole or cut_word(given, end) is not None:
        return None
    names = [one.text for one in matcher.candidates(256) if isinstance(one, Literal)]
    said = found.decode()
    is_one = said in names or not any(map(str.isspace, said))
    return said if is_one and is_aside(given[end:]) else None
