"""The matcher: the state of one sequence in its grammar.

One idea: the class adds nothing to the hot calls. They are inherited unchanged from the Rust core,
so making a matcher, accepting a token and filling a mask run no Python at all.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn, Self, cast

import numpy as np
from numpy.typing import NDArray

from stencilm import _core
from stencilm.bitmask.rows import MaskPatch
from stencilm.errors import MatcherError
from stencilm.matching.candidates import Candidate, Literal, Pattern
from stencilm.shown import is_word, shown_value
from stencilm.tokenizers.joint import MAX_SPANNING, RECENT_TOKENS
from stencilm.whole_numbers import MOST, as_real, as_whole, count, listed, shown, whole_number


class Verdict(NamedTuple):
    """Whether a text fits its grammar, and how much of it does.

    Examples:
        >>> stencilm.Verdict("viable", 2).status
        'viable'
    """

    status: typing.Literal["complete", "viable", "dead"]
    """All of it fits and may end here; all of it fits and must go on; some of it cannot fit."""
    valid_bytes: int
    """How many bytes of its UTF-8 form fit."""


class GrammarMatcher(_core.Matcher):
    """The state of one sequence in a compiled grammar: which tokens may come next.

    Each sequence needs its own matcher; all share the compiled grammar. A refused call changes
    nothing.

    Args:
        compiled_grammar: What the sequence must fit.
        override_stop_tokens: The tokens that may end the text, instead of the vocabulary's own.
        terminate_without_stop_token: The sequence is over as soon as its text is complete.
        max_rollback_tokens: Accepted for compatibility; rollback has no limit here.
        canonical: Allow only the tokens that the tokenizer itself would write for the text, so that
            the whole sequence is the encoding of its text. What follows a text that `accept_string`
            took, or a token without text, is written as if it began a text.
        token_budget: The number of tokens, not counting the stop token, within which the text must
            be complete. Near the end, masks narrow to what keeps that possible, so a text whose
            tokens come from the masks is always complete in time; far from it they are unchanged. A
            text passed to `accept_string` counts as the fewest tokens that spell it. Tokens outside
            the narrowed mask may still be accepted; when the budget can no longer be kept, masks
            contain only the next token of a shortest path to the end, and `token_budget_left` goes
            below 0.
        whitespace_budget: For a grammar of JSON texts: the most bytes of whitespace between the
            parts of the whole text. Near that number, masks leave out the tokens that would exceed
            it, except those without which nothing could come or the `token_budget` could not be
            kept. It has no use for other texts, because it takes quotes for those of JSON strings.

    Raises:
        MatcherError: `token_budget` is less than `tokens_to_end()` is at the beginning, or the
            grammar has parts with budgets of their own.
        TypeError: An argument is of another type.
        UnsupportedFeature: `canonical` is set, and the tokenizer's merges are not known.
        ValueError: The vocabulary lacks one of `override_stop_tokens`; or the list is empty, and
            nothing else ends the text.

    Examples:
        >>> import stencilm
        >>> tokens = [b"a", b"b", b"ab", b"c", b"</s>"]
        >>> info = stencilm.TokenizerInfo(tokens, stop_token_ids=[4])
        >>> compiled = stencilm.GrammarCompiler(info).compile_regex("ab+c?")
        >>> matcher = stencilm.GrammarMatcher(compiled)

        The examples of the methods go on here.
    """

    __slots__ = ()

    def fork(self, *, token_budget: int | None = None) -> Self:
        """A matcher in the same state, with the same history; the two are independent from here.

        Args:
            token_budget: The number of further tokens within which its text must be complete,
                instead of this one's budget. Refused as in the constructor.

        Examples:
            >>> other = matcher.fork()
            >>> other.accept_token(2), matcher.num_accepted_tokens
            (True, 0)
        """
        return _core.Matcher.__new__(type(self), (self,), token_budget=token_budget)

    def __copy__(self) -> Self:
        """The same as `fork`."""
        return self.fork()

    def __deepcopy__(self, memo: object) -> Self:
        """The same as `fork`: what a matcher shares with others never changes."""
        return self.fork()

    def __reduce__(self) -> NoReturn:
        """Raises: a state cannot be used in another process."""
        raise TypeError(
            "a GrammarMatcher cannot be pickled: send the grammar and the accepted tokens, compile "
            "the grammar there, and accept the tokens again"
        )

    def __repr__(self) -> str:
        """The progress of the sequence."""
        state = (
            "terminated"
            if self.is_terminated()
            else "complete"
            if self.is_completed()
            else "not complete"
        )
        return f"<{type(self).__name__}: {self.num_accepted_tokens} tokens accepted, {state}>"

    def find_mask_patch(self) -> MaskPatch:
        """The mask as a row of the vocabulary and the few tokens in which it differs.

        For engines that keep rows on the device of the logits: see `MaskRows`. Changes nothing.

        Raises:
            MatcherError: As `fill_next_token_bitmask` does.

        Examples:
            >>> patch = matcher.find_mask_patch()
            >>> patch.flipped.dtype
            dtype('int32')
        """
        row, flipped = self._find_mask_patch()
        return MaskPatch(row, np.frombuffer(flipped, dtype=np.int32))

    def withheld_tokens(self) -> NDArray[np.int64]:
        """The tokens that the last mask lacks for the budget alone, ascending: [number of tokens].

        They fit the grammar, but the text could not be complete in time after them. Empty if the
        budget removed nothing, and after another token was accepted.

        Examples:
            >>> short = matcher.fork(token_budget=1)
            >>> (
            ...     short.num_allowed_tokens(),
            ...     short.withheld_tokens().tolist(),
            ... )  # "a" would need "b", too
            (1, [0])
        """
        words = np.frombuffer(self._withheld(), dtype=np.uint8)
        return np.flatnonzero(np.unpackbits(words, bitorder="little"))

    def longest_valid_prefix(self, text: str | bytes) -> Verdict:
        """How much of a text fits after the accepted text, and whether it is then complete.

        Changes nothing.

        Examples:
            >>> matcher.longest_valid_prefix("abbx")
            Verdict(status='dead', valid_bytes=3)
        """
        status, valid_bytes = self._longest_valid_prefix(text)
        return Verdict(cast("Any", status), valid_bytes)

    def find_jump_forward_tokens(self, recent_tokens: Sequence[int] | None = None) -> list[int]:
        """The tokens that must come next, as the model's own tokenizer would write them.

        They spell the beginning of `find_jump_forward_string`. The spelling of the rest depends on
        what follows; it stays forced, so the masks after these tokens allow every token that begins
        with it, including longer ones. If the grammar asks for one single token by its name or id,
        it is that token.

        If the previous tokens are not what the tokenizer itself would write, the nearest ones that
        are decide. Changes nothing; accept the tokens to continue after them.

        Args:
            recent_tokens: The last tokens of the whole sequence, for example the end of a prompt
                and the accepted tokens; by default the accepted ones.

        Examples:
            >>> matcher.find_jump_forward_tokens()
            [2]
        """
        forced, spans = self._forced_spans(MAX_SPANNING)
        if not forced:
            single = self._forced_token()
            return [] if single is None else [single]
        return self._within_budget(
            self._tokenizer_info.joint.split(forced, self._recent(recent_tokens), spans)[0]
        )

    def _within_budget(self, tokens: list[int]) -> list[int]:
        """The first of these tokens, as far as the budget has room for them."""
        if self.token_budget is None:
            return tokens
        probe = self.fork()
        for taken, token_id in enumerate(tokens):
            # The tokenizer may spell a text with more tokens than the fewest.
            if not probe.is_allowed(token_id) or not probe.accept_token(token_id):
                return tokens[:taken]
        return tokens

    def forced_draft_tokens(
        self, recent_tokens: Sequence[int] | None = None, *, max_tokens: int | None = None
    ) -> list[int]:
        """Tokens of all that must come next, as draft tokens for an engine that verifies drafts.

        More than `find_jump_forward_tokens` returns: also tokens at the end that another
        continuation would spell differently. A model that verifies drafts takes those or draws
        others, so only the attempt can be lost. The masks along the way allow all of them.

        Args:
            recent_tokens: As for `find_jump_forward_tokens`.
            max_tokens: The most tokens to return; by default all.

        Examples:
            >>> matcher.forced_draft_tokens(max_tokens=1)
            [2]
        """
        if max_tokens is not None:
            max_tokens = count("max_tokens", max_tokens, least=0)
        forced, _ = self._forced_spans(0)
        if not forced:
            single = self._forced_token()
            tokens = [] if single is None else [single]
        else:
            tokens = self._tokenizer_info.joint.whole(forced, self._recent(recent_tokens))
        return self._within_budget(tokens[:max_tokens])

    def _recent(self, recent_tokens: Sequence[int] | None) -> Sequence[int]:
        if recent_tokens is None:
            return self._recent_tokens(RECENT_TOKENS)
        is_set = isinstance(recent_tokens, (set, frozenset))
        given = list(recent_tokens) if is_set else listed(recent_tokens)
        if given is None:
            raise TypeError(
                f"recent_tokens is {shown(recent_tokens)}, but must be token ids, as in [1, 2]"
            )
        numbers = [as_whole(token_id) for token_id in given]
        tokens = [token_id for token_id in numbers if token_id is not None]
        if len(tokens) < len(numbers):
            wrong = given[numbers.index(None)]
            raise TypeError(f"recent_tokens holds {shown(wrong)}, but must hold token ids")
        if is_set:
            raise TypeError(f"recent_tokens is {shown(recent_tokens)}, but must have an order")
        return tokens

    def candidates(self, limit: int = 16) -> list[Candidate]:
        """What may come next, up to the end of one lexeme each, such as a key, a number or a word.

        A lexeme with at most `limit` texts stands as these, another one as a pattern: the syntax
        of `Grammar.from_regex`, except that a lexeme which no pattern can describe (an
        intersection, or half a character) stands as `(?s:.)+`, which is too much. Texts first; no
        more than `limit` in all. What is kept as a list of texts, as keys, the values of an `enum`
        and short classes such as `[0-9]` are, counts as a lexeme for each text, and the first
        `limit` of them stand for all. That the text may end here is not among them; see
        `is_completed`.

        Examples:
            >>> matcher.candidates()
            [Pattern(regex='ab+c?')]
        """
        limit = whole_number("limit", limit, least=0, most=_MAX_CANDIDATES)
        return [
            Literal(text) if known else Pattern(text) for known, text in self._candidates(limit)
        ]

    def traverse_draft_tree(
        self,
        retrieve_next_token: Any,
        retrieve_next_sibling: Any,
        draft_tokens: Any,
        bitmask: Any,
        *,
        time_threshold: float = -1.0,
        root_position: int = 0,
    ) -> bool:
        """Fill one row of the bitmask for every node of a tree of draft tokens.

        Node `n` holds the token `draft_tokens[n]`; its first child is `retrieve_next_token[n]`, and
        `retrieve_next_sibling[n]` is the next child of the same parent, -1 for none. The root
        stands for the accepted tokens; its own token is ignored. Row `n` says which tokens may come
        after node `n`. Nodes that the grammar refuses, nodes at which the text has ended, and all
        nodes below them get a row of zeros. The matcher's state does not change.

        Args:
            retrieve_next_token: Integers, one for each node: a list, an array or a CPU tensor.
            retrieve_next_sibling: As above.
            draft_tokens: As above.
            bitmask: A contiguous bitmask with one row for each node.
            time_threshold: Seconds after which the walk stops; negative for no limit.
            root_position: The node to start from. Rows of nodes that are not below it are left
                unchanged.

        Returns:
            True, or False if the time was over before all rows were filled; the others are then
            zeros.

        Examples:
            A chain of two draft tokens after the root: "a", then "b".

            >>> bitmask = stencilm.allocate_token_bitmask(3, info.vocab_size)
            >>> matcher.traverse_draft_tree([1, 2, -1], [-1, -1, -1], [0, 0, 1], bitmask)
            True
            >>> [bin(int(row[0])) for row in bitmask]
            ['0b101', '0b10', '0b11010']
        """
        return self._traverse_draft_tree(
            _numbers("retrieve_next_token", retrieve_next_token),
            _numbers("retrieve_next_sibling", retrieve_next_sibling),
            _numbers("draft_tokens", draft_tokens),
            bitmask,
            time_limit=_time_limit(time_threshold),
            root=_position(root_position),
        )

    def draft_tree_temperatures(
        self,
        retrieve_next_token: Any,
        retrieve_next_sibling: Any,
        draft_tokens: Any,
        *,
        root_position: int = 0,
    ) -> list[float | None]:
        """The temperature for the token after every node of a tree of draft tokens.

        The tree is as in `traverse_draft_tree`, and node `n` has the `temperature` after it: a
        number from 0 on, or None if the grammar sets none. Nodes that the grammar refuses, nodes at
        which the text has ended, and nodes below either have None. The matcher's state does not
        change.

        Args:
            retrieve_next_token: Integers, one for each node: a list, an array or a CPU tensor.
            retrieve_next_sibling: As above.
            draft_tokens: As above.
            root_position: The node to begin at.

        Examples:
            >>> matcher.draft_tree_temperatures([1, -1], [-1, -1], [0, 0])
            [None, None]
        """
        return self._draft_tree_temperatures(
            _numbers("retrieve_next_token", retrieve_next_token),
            _numbers("retrieve_next_sibling", retrieve_next_sibling),
            _numbers("draft_tokens", draft_tokens),
            _position(root_position),
        )


class _Closing(typing.Protocol):
    """A matcher that may have a token budget."""

    def tokens_to_end(self) -> int: ...

    def fork(self, *, token_budget: int | None = None) -> Self: ...


_Matcher = typing.TypeVar("_Matcher", bound=_Closing)


def checked_whitespace(budget: int | None) -> int | None:
    """Check a whitespace budget, or None. Raises ValueError for an invalid one."""
    if budget is None:
        return None
    return count("whitespace_budget", budget, least=0, otherwise=", or None")


def closing_within(matcher: _Matcher, max_tokens: int) -> tuple[_Matcher, int | None]:
    """A matcher whose text is complete within `max_tokens`, and the tokens of a shortest text.

    The same matcher if it knows of no text that short, if its grammar has budgets, or if it cannot
    spell the end; None if no shortest text is known.
    """
    try:
        shortest = matcher.tokens_to_end()
        return (
            matcher.fork(token_budget=max_tokens) if shortest <= max_tokens else matcher
        ), shortest
    except MatcherError:
        return matcher, None


def traverse_draft_tree(
    retrieve_next_token: Any,
    retrieve_next_sibling: Any,
    draft_tokens: Any,
    matcher: GrammarMatcher,
    bitmask: Any,
    time_threshold: float = -1.0,
) -> bool:
    """`GrammarMatcher.traverse_draft_tree` as a function.

    Examples:
        >>> import stencilm
        >>> info = stencilm.TokenizerInfo([b"a", b"b", b"</s>"], stop_token_ids=[2])
        >>> compiled = stencilm.GrammarCompiler(info).compile_regex("ab")
        >>> matcher = stencilm.GrammarMatcher(compiled)
        >>> bitmask = stencilm.allocate_token_bitmask(2, info.vocab_size)
        >>> stencilm.traverse_draft_tree([1, -1], [-1, -1], [0, 0], matcher, bitmask)
        True
        >>> bitmask.tolist()
        [[1], [2]]
    """
    if not isinstance(matcher, GrammarMatcher):
        raise TypeError(f"matcher is {shown_value(matcher):.80}, but must be a GrammarMatcher")
    return matcher.traverse_draft_tree(
        retrieve_next_token,
        retrieve_next_sibling,
        draft_tokens,
        bitmask,
        time_threshold=time_threshold,
    )


class _OfClassToo:
    """A method that may also be called on the class, and then uses a new batch."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self.__doc__ = getattr(_core.BatchMatcher, name).__doc__

    def __get__(self, batch: _core.BatchMatcher | None, owner: type) -> Any:
        used = _core.BatchMatcher() if batch is None else batch
        return getattr(_core.BatchMatcher, self._name).__get__(used)


class BatchGrammarMatcher(_core.BatchMatcher):
    """Fills, accepts and rolls back for many sequences in one call, without Python's lock.

    It uses several threads, which start with the first batch that can use them. Every matcher and
    every row may occur once in a batch. If sequences fail, the others are done as usual, and one
    `BatchError` holds their results and the errors by index; the rows of failed sequences are
    zeros. `batch_accept_token` and `batch_accept_string` may also be called on the class, for
    engines that know them as static methods.

    Args:
        max_threads: "auto" takes one for each processor that this process may use, within the CPU
            quota of its container, and at most 8.

    Examples:
        >>> import numpy as np
        >>> import stencilm
        >>> info = stencilm.TokenizerInfo([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> compiled = stencilm.GrammarCompiler(info).compile_regex("ab+")
        >>> matchers = [stencilm.GrammarMatcher(compiled) for _ in range(2)]
        >>> batch = stencilm.BatchGrammarMatcher(max_threads=2)

        The examples of the methods go on here.
    """

    __slots__ = ()

    if not typing.TYPE_CHECKING:
        batch_accept_token = _OfClassToo()
        batch_accept_string = _OfClassToo()

    def __new__(cls, max_threads: int | typing.Literal["auto"] = "auto") -> Self:
        """Start no thread yet."""
        if is_word(max_threads, ["auto"]):
            return cast("Self", super().__new__(cls))
        number = whole_number(
            "max_threads", max_threads, least=1, most=_MAX_THREADS, otherwise=" or 'auto'"
        )
        return cast("Self", super().__new__(cls, number))

    def batch_find_mask_patches(
        self,
        matchers: Sequence[_core.Matcher],
        row_ids: NDArray[np.int32],
        offsets: NDArray[np.int32],
        flipped: NDArray[np.int32],
    ) -> int:
        """Writes the masks of all sequences as rows and the few tokens in which they differ.

        `MaskPatches` keeps such arrays, and `MaskRows` makes bitmasks of them.

        Args:
            matchers: One for each sequence.
            row_ids: Receives the numbers of the rows, int32 of shape (sequences,) or more.
            offsets: Where the tokens of each sequence begin, and where the last one's end, int32 of
                shape (sequences + 1,) or more.
            flipped: Receives the tokens, those of a sequence in any order; int32.

        Returns:
            The number of flipped tokens. If that exceeds the size of `flipped`, none of them is
            written: call again with a longer array.

        Raises:
            BatchError: Some sequences failed; the arrays hold the others' patches, and for these an
                empty mask.

        Examples:
            >>> row_ids, offsets, flipped = (np.zeros(n, dtype=np.int32) for n in (2, 3, 8))
            >>> count = batch.batch_find_mask_patches(matchers, row_ids, offsets, flipped)
            >>> count == offsets[-1]
            np.True_
        """
        return super().batch_find_mask_patches(matchers, row_ids, offsets, flipped)

    def batch_accept_and_fill(
        self,
        matchers: Sequence[_core.Matcher],
        token_ids: Sequence[int | None],
        bitmask: Any,
        indices: Sequence[int] | None = None,
    ) -> list[tuple[bool, bool]]:
        """Accepts a token for every sequence and fills the mask after it, in one call per step.

        Args:
            matchers: One for each sequence.
            token_ids: The next token of each; None to fill only the mask.
            bitmask: As in `fill_next_token_bitmask`, with a row for each sequence.
            indices: The rows of the sequences; 0, 1, 2 and so on by default.

        Returns:
            For each sequence, whether its token was accepted, and whether its mask must be applied.
            A sequence whose token was refused keeps its state, and its row is the mask there. The
            row of a sequence that has ended allows everything.

        Raises:
            BatchError: Some sequences failed; their rows are zeros.

        Examples:
            >>> bitmask = stencilm.allocate_token_bitmask(2, info.vocab_size)
            >>> batch.batch_accept_and_fill(matchers, [2, None], bitmask)
            [(True, True), (True, True)]
            >>> [bin(int(row[0])) for row in bitmask]  # "b" or the end; "a" or "ab"
            ['0b1010', '0b101']
        """
        return super().batch_accept_and_fill(matchers, token_ids, bitmask, indices)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as a batch with the same number of threads."""
        return type(self), (self.max_threads,)

    def __repr__(self) -> str:
        """The number of threads."""
        return f"{type(self).__name__}(max_threads={self.max_threads})"


_MAX_THREADS = 1024
_MAX_CANDIDATES = 1_000_000
_MOST_SECONDS = 1e9


def _time_limit(threshold: Any) -> float | None:
    """A time limit in seconds; None if it is negative, or longer than any walk takes."""
    seconds = as_real(threshold)
    if seconds is None or math.isnan(seconds):
        raise TypeError(f"time_threshold is {shown(threshold)}, but must be a number of seconds")
    return seconds if 0 <= seconds <= _MOST_SECONDS else None


def _position(position: Any) -> int:
    number = as_whole(position)
    if number is None:
        raise TypeError(f"root_position is {shown(position)}, but must be an int")
    if not 0 <= number <= MOST:
        raise ValueError(f"root_position is {shown(number)}, but must be the number of a node")
    return number


def _numbers(name: str, values: Any) -> NDArray[np.int64]:
    try:
        numbers = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:  # rows of several lengths, a gradient
        raise ValueError(
            f"{name} is {shown(values)}, but must be a list of integers, one for each node"
        ) from error
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and numbers.size):
        raise ValueError(
            f"{name} has shape {numbers.shape} and dtype {numbers.dtype}, but must be a list of "
            "integers, one for each node"
        )
    return np.ascontiguousarray(numbers, dtype=np.int64)
