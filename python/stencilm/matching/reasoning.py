"""Reasoning before the answer: a matcher that lets a model think, and then enforces its grammar.

One idea: a loop knows a grammar only by its matcher, so reasoning is a matcher as well. It allows
every token of text, watches the bytes for the end marker, counts tokens, and writes the marker
itself when the budget is used up. From there on it is the matcher of the answer. The allowed tokens
depend on a single number: how many bytes of the marker the text ends with. So the masks are a few
rows, which are computed once.

The search for the marker is that of Knuth, Morris and Pratt (1977), byte by byte: a marker may
begin and end within tokens.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stencilm.matching.matcher import GrammarMatcher, closing_within
from stencilm.shown import shown_value
from stencilm.tokenizers import TokenizerInfo
from stencilm.whole_numbers import count

DEFAULT_REASONING = 2_048
"""The default budget of reasoning, in tokens."""

_END_OF_PROMPT = 64
"""The number of tokens at the end of a prompt in which markers are searched.

Markers are shorter.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningFormat:
    r"""How a model writes its reasoning and continues to its answer.

    Attributes:
        begin: The text before the reasoning, such as `<think>` and a line break.
        end: The marker that ends it, such as `</think>`.
        answer: The text between the end marker and the answer, such as two line breaks.
        closing: The text before a marker that is written for the model, such as a line break.
        without: The text before an answer without reasoning, if the prompt does not say.
        is_on: Whether the chat template makes the model reason by default.
        switches: The variables that tell the chat template to reason or not.

    Raises ValueError if `end` is empty or ends within `closing`, and TypeError for a marker that is
    not a str.

    Examples:
        >>> import stencilm
        >>> form = stencilm.ReasoningFormat(begin="<think>\n", end="</think>", answer="\n\n")
        >>> form.is_open("Why?<think>\n"), form.is_closed("Why?<think>\n</think>\n\n")
        (True, True)
    """

    begin: str
    end: str
    answer: str = ""
    closing: str = ""
    without: str = ""
    is_on: bool = True
    switches: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for name in ("begin", "end", "answer", "closing", "without"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(
                    f"{name} is {shown_value(getattr(self, name)):.60}, but must be a str"
                )
        if not self.end:
            raise ValueError("the end marker of reasoning is empty: give one such as '</think>'")
        if (self.closing + self.end).find(self.end) != len(self.closing):
            raise ValueError(
                f"closing is {self.closing!r}, with which the end marker {self.end!r} would stand "
                "in the text too early: give blanks, or nothing"
            )

    def is_open(self, prompt: str) -> bool:
        """Whether a prompt ends where reasoning has begun, so that a text begins within it."""
        begin = self.begin.strip()
        return bool(begin) and prompt.rstrip().endswith(begin)

    def is_closed(self, prompt: str) -> bool:
        """Whether a prompt ends where reasoning has ended, so that a text is the answer."""
        return prompt.rstrip().endswith(self.end.strip())


class ReasoningTokens:
    """A format of reasoning in the tokens of a vocabulary; cached by `reasoning_tokens`."""

    def __init__(self, info: TokenizerInfo, form: ReasoningFormat) -> None:
        self.info = info
        self.form = form
        self.bytes = info.decoded_vocab  # special tokens by name
        special = {self.bytes[one].decode(): one for one in info.special_token_ids}
        self._special = {name: one for name, one in special.items() if name}
        self._marker = form.end.encode()
        self._answer = form.answer.encode()
        self._borders = _borders(self._marker)
        self._rows: dict[int, NDArray[np.int32]] = {}
        self.begin = self.encode(form.begin)
        self.end = self.encode(form.end)
        self.whole_end = self.encode(form.closing + form.end + form.answer)

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens of a text in which names of special tokens stand for these tokens."""
        if not self._special:
            return tuple(self.info.tokenize_bytes(text.encode()))
        names = sorted(self._special, key=len, reverse=True)
        found: list[int] = []
        for part in re.split(f"({'|'.join(map(re.escape, names))})", text):
            if part in self._special:
                found.append(self._special[part])
            elif part:
                found += self.info.tokenize_bytes(part.encode())
        return tuple(found)

    def end_of(self, prompt_ids: Sequence[int]) -> str:
        """The end of a prompt as text, special tokens by name."""
        last = prompt_ids[-_END_OF_PROMPT:]
        held = [self.bytes[one] for one in last if 0 <= one < len(self.bytes)]
        return b"".join(held).decode("utf-8", "replace")

    def step(self, at: int, token_id: int) -> tuple[int, bytes | None]:
        """How many bytes of the marker the text ends with after a token; `at` bytes before it.

        Also the bytes after the whole marker if the token completes it, else None.
        """
        return self._scan(at, self.bytes[token_id])

    def end_after(self, at: int) -> tuple[int, ...]:
        """The tokens that end the reasoning if the text ends with `at` bytes of the marker.

        If the marker is a single token and its text does not complete a marker early: the whole
        marker. Otherwise the rest of it.
        """
        whole = (self.form.closing + self.form.end).encode()
        is_whole = self._scan(at, whole)[1] == b""
        if at == 0 or (is_whole and len(self.end) == 1):
            return self.whole_end
        rest = self._marker[at:]
        try:
            return self.encode(rest.decode() + self.form.answer)
        except UnicodeDecodeError:  # it begins within a character
            return (*self.info.tokenize_bytes(rest), *self.encode(self.form.answer))

    def rest_of_answer(self, begun: bytes) -> tuple[int, ...]:
        """The tokens between marker and answer, after `begun` of that text."""
        return self.encode(self._answer[len(begun) :].decode())

    def row(self, at: int) -> NDArray[np.int32]:
        """The mask if the text ends with `at` bytes of the marker: int32, shape [words]."""
        row = self._rows.get(at)
        if row is None:
            row = self._rows[at] = self._made_row(at)
        return row

    def _made_row(self, at: int) -> NDArray[np.int32]:
        allowed = self._text.copy()
        for token_id in self._that_end(at):
            rest = self.step(at, token_id)[1]
            if rest is not None and not self._answer.startswith(rest):
                allowed[token_id] = False
        return np.packbits(allowed, bitorder="little").view(np.int32)

    @cached_property
    def _text(self) -> NDArray[np.bool_]:
        """Which tokens are text, or a part of the end marker: bool, shape [words * 32]."""
        size = self.info.vocab_size
        allowed = np.zeros(-(-size // 32) * 32, dtype=np.bool_)
        allowed[:size] = np.fromiter(map(bool, self.bytes), np.bool_, size)
        # A stop token cannot end the text here; reasoning ends with its marker.
        allowed[[*self.info.special_token_ids, *self.info.stop_token_ids]] = False
        allowed[list(self.end)] = True
        return allowed

    @cached_property
    def _sorted(self) -> list[tuple[bytes, int]]:
        return sorted((one, number) for number, one in enumerate(self.bytes) if one)

    @cached_property
    def _holding(self) -> list[int]:
        """The tokens that contain the whole marker."""
        return [number for number, one in enumerate(self.bytes) if self._marker in one]

    def _that_end(self, at: int) -> set[int]:
        """The tokens that may complete the marker: they continue it, or contain all of it."""
        found = set(self._holding)
        while at:
            rest = self._marker[at:]
            place = bisect_left(self._sorted, (rest, -1))
            while place < len(self._sorted) and self._sorted[place][0].startswith(rest):
                found.add(self._sorted[place][1])
                place += 1
            at = self._borders[at]
        return found

    def _scan(self, at: int, text: bytes) -> tuple[int, bytes | None]:
        marker = self._marker
        for place, byte in enumerate(text):
            while at and marker[at] != byte:
                at = self._borders[at]
            at += marker[at] == byte
            if at == len(marker):
                return at, text[place + 1 :]
        return at, None


@lru_cache(maxsize=16)
def reasoning_tokens(info: TokenizerInfo, form: ReasoningFormat) -> ReasoningTokens:
    """A format of reasoning in a vocabulary; the latest ones are cached."""
    return ReasoningTokens(info, form)


def begun(
    matcher: GrammarMatcher,
    info: TokenizerInfo,
    reasoning: ReasoningFormat | None,
    budget: int,
    prompt_ids: Sequence[int],
) -> GrammarMatcher | ReasoningMatcher:
    """The matcher of a text that reasons first, unless its prompt has already ended the reasoning.

    Args:
        matcher: The matcher of the answer, at its beginning.
        info: The vocabulary.
        reasoning: The format of reasoning; None for no reasoning.
        budget: The most tokens of reasoning.
        prompt_ids: The tokens of the prompt.
    """
    if reasoning is None:
        return matcher
    tokens = reasoning_tokens(info, reasoning)
    end = tokens.end_of(prompt_ids)
    if reasoning.is_closed(end):
        return matcher
    return ReasoningMatcher(matcher, tokens, budget, is_open=reasoning.is_open(end))


def closing_after_reasoning(
    matcher: GrammarMatcher | ReasoningMatcher, max_tokens: int
) -> GrammarMatcher | ReasoningMatcher:
    """The matcher of a text that is complete within `max_tokens`, including its reasoning.

    Where the whole budget of reasoning leaves no room for an answer, the budget becomes smaller: to
    half of the tokens, or to what a shortest answer leaves if that is less. The matcher is
    unchanged if no answer is known that fits.
    """
    if not isinstance(matcher, ReasoningMatcher):
        return closing_within(matcher, max_tokens)[0] if max_tokens > 0 else matcher
    left = max_tokens - matcher.most_reasoning_tokens
    bounded, shortest = closing_within(matcher, max(left, 0))
    if shortest is None or shortest <= left:
        return bounded
    drawn = max_tokens - matcher.num_marker_tokens
    if shortest > drawn:
        return matcher
    drawn = min(drawn // 2, drawn - shortest)
    return closing_after_reasoning(matcher.with_budget(drawn), max_tokens)


def checked_form(reasoning: Any) -> ReasoningFormat | None:
    """Check a format of reasoning, or None. Raises TypeError for anything else."""
    if reasoning is not None and not isinstance(reasoning, ReasoningFormat):
        raise TypeError(
            f"reasoning is {shown_value(reasoning):.60}, but must be a ReasoningFormat, such as "
            "stencilm.reasoning_format(tokenizer), or None"
        )
    return reasoning


def checked_budget(budget: Any) -> int:
    """Check a budget of reasoning. Raises ValueError for an invalid one."""
    return count("the budget of reasoning", budget, least=0, wish="an int from 0 up")


class _Place(NamedTuple):
    """The state of a text within its reasoning; `pending` must come next."""

    pending: tuple[int, ...]
    is_over: bool
    at: int
    drawn: int


class ReasoningMatcher:
    """The matcher of a text that begins with reasoning; it replaces the matcher of the answer.

    While it reasons, a stop token ends nothing, and only the end marker has a meaning. The marker
    counts only when it is complete. A token that continues after it with anything but the text
    before answers is not allowed, so the answer begins at a token boundary.

    Args:
        matcher: The matcher of the answer, at its beginning.
        tokens: The format of the reasoning in the vocabulary.
        budget: The most tokens that the model writes before the end marker is written for it; its
            own end marker counts, `begin` does not.
        is_open: The prompt has already begun the reasoning.
    """

    def __init__(
        self, matcher: GrammarMatcher, tokens: ReasoningTokens, budget: int, *, is_open: bool
    ) -> None:
        self.answer = matcher
        self._tokens = tokens
        self._budget, self._is_open = budget, is_open
        # The loop may have stop tokens of its own, which the text row allows.
        stops = {*matcher.stop_token_ids}.difference(tokens.info.stop_token_ids, tokens.end)
        self._barred = sorted(stops)
        pending = () if is_open else tokens.begin
        self._places = [self._place(_Place(pending, False, 0, 0))]
        self._taken: list[int] = []

    @property
    def is_reasoning(self) -> bool:
        """Whether the answer has not begun yet."""
        place = self._places[-1]
        return bool(place.pending) or not place.is_over

    @property
    def reasoning_token_ids(self) -> Sequence[int]:
        """The tokens of the reasoning so far, including markers and the text after them."""
        return self._taken

    @property
    def num_drawn(self) -> int:
        """How many of them the model wrote, including its own end marker."""
        return self._places[-1].drawn

    @property
    def reasoning(self) -> str:
        """The text of the reasoning, without markers and the whitespace around it."""
        drawn = [
            token_id
            for token_id, before, after in zip(
                self._taken, self._places, self._places[1:], strict=False
            )
            if after.drawn > before.drawn
        ]
        held = self._tokens.bytes
        text = b"".join(held[token_id] for token_id in drawn)
        text = text.partition(self._tokens.form.end.encode())[0]
        return text.decode("utf-8", "replace").strip()

    # The interface that a loop uses

    @property
    def stop_token_ids(self) -> list[int]:
        """The tokens that end a text."""
        return self.answer.stop_token_ids

    @property
    def _tokenizer_info(self) -> TokenizerInfo:
        return self._tokens.info

    @property
    def temperature(self) -> float | None:
        """The temperature of the answer's grammar; None within the reasoning."""
        return None if self.is_reasoning else self.answer.temperature

    @property
    def num_accepted_tokens(self) -> int:
        """The number of accepted tokens."""
        return len(self._taken) + self.answer.num_accepted_tokens

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> bool:
        """Write the allowed tokens into a row; False if everything is allowed."""
        if not self.is_reasoning:
            return self.answer.fill_next_token_bitmask(bitmask, index)
        row = self._row()
        if hasattr(bitmask, "data_ptr"):
            import torch

            bitmask[index] = torch.from_numpy(row)
        else:
            bitmask[index] = row
        return True

    def accept_token(self, token_id: int) -> bool:
        """Accept one token; False if it is not allowed."""
        if not self.is_reasoning:
            return self.answer.accept_token(token_id)
        place = self._places[-1]
        if not self.is_allowed(token_id):
            return False
        if place.pending:
            new = place._replace(pending=place.pending[1:])
        else:
            at, rest = self._tokens.step(place.at, token_id)
            new = _Place((), False, at, place.drawn + 1)
            if rest is not None:
                pending = self._tokens.rest_of_answer(rest)
                new = new._replace(pending=pending, is_over=True)
        self._taken.append(token_id)
        self._places.append(self._place(new))
        return True

    def is_allowed(self, token_id: int) -> bool:
        """Whether a token may come next."""
        if not self.is_reasoning:
            return self.answer.is_allowed(token_id)
        is_token = 0 <= token_id < self._tokens.info.vocab_size
        return is_token and bool(self._row()[token_id // 32] >> (token_id % 32) & 1)

    def num_allowed_tokens(self) -> int:
        """The number of allowed tokens."""
        if not self.is_reasoning:
            return self.answer.num_allowed_tokens()
        return int(np.unpackbits(self._row().view(np.uint8)).sum())

    def find_jump_forward_tokens(self, recent_tokens: Sequence[int] | None = None) -> list[int]:
        """The tokens that must come next; those of the answer only once it has begun."""
        if self.is_reasoning:
            return list(self._places[-1].pending)
        return self.answer.find_jump_forward_tokens(recent_tokens)

    def is_terminated(self) -> bool:
        """Whether the last token of the answer was accepted."""
        return not self.is_reasoning and self.answer.is_terminated()

    def is_completed(self) -> bool:
        """Whether the answer so far is a complete text."""
        return not self.is_reasoning and self.answer.is_completed()

    def rollback(self, num_tokens: int = 1) -> None:
        """Take back the last tokens. Raises ValueError if there are fewer."""
        if num_tokens > self.num_accepted_tokens:
            raise ValueError(
                f"cannot take {num_tokens} tokens back: there are {self.num_accepted_tokens}"
            )
        of_answer = min(num_tokens, self.answer.num_accepted_tokens)
        if of_answer:
            self.answer.rollback(of_answer)
        left = len(self._taken) - (num_tokens - of_answer)
        del self._taken[left:], self._places[left + 1 :]

    def tokens_to_end(self) -> int:
        """The fewest tokens known to complete the answer, as in `GrammarMatcher.tokens_to_end`."""
        return self.answer.tokens_to_end()

    @property
    def is_narrowed(self) -> bool:
        """Whether the last mask lacks tokens because of the answer's budget."""
        return not self.is_reasoning and self.answer.is_narrowed

    def withheld_tokens(self) -> NDArray[np.int64]:
        """The tokens that the budget removed from the last mask; ids, int64."""
        return self.answer.withheld_tokens()

    @property
    def most_reasoning_tokens(self) -> int:
        """The most tokens before the answer, including markers."""
        return self._budget + self.num_marker_tokens

    @property
    def num_marker_tokens(self) -> int:
        """The most tokens of markers, and of the text between them and the answer."""
        return len(self._tokens.begin) + len(self._tokens.whole_end)

    def with_budget(self, budget: int) -> ReasoningMatcher:
        """A matcher at the beginning of the text, with another budget of reasoning."""
        return ReasoningMatcher(self.answer.fork(), self._tokens, budget, is_open=self._is_open)

    def fork(self, *, token_budget: int | None = None) -> ReasoningMatcher:
        """An independent copy, with a token budget for its answer."""
        copy = object.__new__(ReasoningMatcher)
        copy.answer = self.answer.fork(token_budget=token_budget)
        copy._tokens, copy._budget, copy._barred = self._tokens, self._budget, self._barred
        copy._is_open = self._is_open
        copy._places, copy._taken = list(self._places), list(self._taken)
        return copy

    def _row(self) -> NDArray[np.int32]:
        """The mask here; must not be written to."""
        place = self._places[-1]
        if place.pending:
            words = -(-self._tokens.info.vocab_size // 32)
            return _with_bits(np.zeros(words, dtype=np.int32), place.pending[:1], True)
        row = self._tokens.row(place.at)
        return _with_bits(row.copy(), self._barred, False) if self._barred else row

    def _place(self, place: _Place) -> _Place:
        """The state, with the end marker pending if the budget is used up."""
        if place.pending or place.is_over or place.drawn < self._budget:
            return place
        return place._replace(pending=self._tokens.end_after(place.at), is_over=True)


def _with_bits(row: NDArray[np.int32], token_ids: Sequence[int], value: bool) -> NDArray[np.int32]:
    words = row.view(np.uint32)
    for token_id in token_ids:
        bit = np.uint32(1 << (token_id % 32))
        words[token_id // 32] = (
            words[token_id // 32] | bit if value else (words[token_id // 32] & ~bit)
        )
    return row


def _borders(text: bytes) -> list[int]:
    """For each prefix of the text, the length of its longest border: a proper prefix and suffix."""
    borders = [0, 0]
    for byte in text[1:]:
        at = borders[-1]
        while at and text[at] != byte:
            at = borders[at]
        borders.append(at + (text[at] == byte))
    return borders
