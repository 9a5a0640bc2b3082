"""The Rust core, wrapped by the public classes. Signatures are checked against the built module."""

from collections.abc import Iterable, Sequence
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from stencilm import limits as bounds
from stencilm.tokenizers import TokenizerInfo

__all__ = [
    "BatchMatcher",
    "CancelToken",
    "CompiledGrammar",
    "Grammar",
    "IndexBuilder",
    "JsonSchemaOptions",
    "Limits",
    "LockGuard",
    "Matcher",
    "Preparation",
    "TokenIndex",
    "Vocabulary",
    "__version__",
]

__version__: str

_Row = tuple[str, str, str]

@final
class JsonSchemaOptions:
    """How a schema is read and how its instances are written. Made once, used for many schemas."""

    def __new__(
        cls,
        *,
        any_whitespace: bool,
        indent: int | None,
        separators: tuple[str, str] | None,
        strict_mode: bool,
        max_whitespace: int | None,
        property_order: str,
        spelling: str,
        escapes: str,
        formats: str,
        nullable: bool,
        on_unsupported: str,
    ) -> JsonSchemaOptions: ...

@final
class Grammar:
    """A grammar without a vocabulary."""

    @staticmethod
    def from_json_schema(
        schema: str,
        options: JsonSchemaOptions,
        documents: Sequence[tuple[str, str]],
        limits: Limits,
    ) -> Grammar:
        """The instances of a schema; `documents` are the schemas that it may refer to, each with its URI."""
    @staticmethod
    def any_json() -> Grammar:
        """Any JSON text."""
    @staticmethod
    def from_regex(pattern: str, limits: Limits) -> Grammar:
        """The texts that a regular expression matches as a whole."""
    @staticmethod
    def from_ebnf(
        text: str, root_rule_name: str, symbols: Sequence[tuple[str, Sequence[str]]], limits: Limits
    ) -> Grammar:
        """The texts of an EBNF grammar; `symbols` are the tables of names that it may use."""
    @staticmethod
    def from_lark(
        text: str,
        start: str,
        grammars: Sequence[tuple[str, Grammar | str]],
        symbols: Sequence[tuple[str, Sequence[str]]],
        limits: Limits,
    ) -> Grammar:
        """The texts of a Lark grammar; `grammars` are those that it uses by name, `symbols` the tables of names."""
    @staticmethod
    def from_structural_tag(text: str, limits: Limits) -> Grammar:
        """The texts of a structural tag, given as JSON."""
    def names_as_text(self, names: Sequence[str]) -> list[str]:
        """Those of the given special-token names that the grammar spells only as text."""
    def to_ebnf(self) -> str:
        """The grammar as EBNF, which `from_ebnf` reads as the same set of texts."""
    def serialize_json(self) -> str:
        """The grammar and its report as JSON text."""
    @staticmethod
    def deserialize_json(text: str, limits: Limits) -> Grammar:
        """The grammar that `serialize_json` wrote."""
    @staticmethod
    def concat(grammars: Sequence[Grammar], limits: Limits) -> Grammar:
        """The concatenations of one text of each grammar, in order."""
    @staticmethod
    def union(grammars: Sequence[Grammar], limits: Limits) -> Grammar:
        """The texts of any of the grammars."""
    def is_completable(self, pieces: Sequence[bytes | None], limits: Limits) -> bool:
        """Whether the holes, each `None`, can be filled so that the result is a text of the grammar."""
    def fill(self, pieces: Sequence[bytes | None], limits: Limits) -> Grammar:
        """The texts that may be put into the first hole."""
    def report(self) -> tuple[list[_Row], list[_Row], list[_Row]]:
        """How every keyword of a schema was treated: enforced, annotations, relaxed; each as keyword, location and note."""
    @property
    def memory_size_bytes(self) -> int:
        """The memory that it uses, in bytes."""

@final
class Vocabulary:
    """What each token of a tokenizer spells, which tokens are stop tokens, and the trie of all tokens."""

    def __new__(
        cls,
        tokens: Sequence[bytes | None],
        *,
        vocab_size: int,
        stop_token_ids: Sequence[int],
        special_token_ids: Sequence[int],
        special_names: Sequence[str],
    ) -> Vocabulary: ...
    def prepare(self) -> None:
        """Compute, before the first grammar, what grammars have in common: numbers, dates, addresses."""
    @property
    def vocab_size(self) -> int:
        """The number of token ids, including those without a token."""
    @property
    def stop_token_ids(self) -> list[int]:
        """The ids of the tokens that end a text."""
    @property
    def special_token_ids(self) -> list[int]:
        """The ids of the special tokens, in ascending order."""
    def token_bytes(self, token_id: int) -> bytes | None:
        """The bytes of a token; None for a special token, a stop token, or an id without a token."""
    def all_token_bytes(self) -> list[bytes]:
        """The bytes of every token, by id; empty if it has no text."""
    def fill_mask_row(self, row: int, bitmask: Any, index: int) -> bool:
        """Write the row of a mask patch; False if the grammars that had it are gone."""
    def spans(self, text: bytes, limit: int) -> list[tuple[int, list[int]]]:
        """The tokens that span the end of a text, grouped by where they begin, at most `limit` for each position."""
    def learn_encoding(
        self, model: bytes, *, byte_level: bool, space: str, pattern: str | None
    ) -> None:
        """Learn how the tokenizer encodes, from the model of its tokenizer.json.

        Raises:
            ValueError: The model cannot be learned; the message says why.
        """
    def learn_saved_encoding(self, saved: bytes) -> None:
        """Learn what `saved_encoding` returned.

        Raises:
            ValueError: It cannot be learned; the message says why.
        """
    def saved_encoding(self) -> bytes | None:
        """What was learned, for `learn_saved_encoding`; None if nothing was."""
    def encode(self, text: str) -> list[int] | None:
        """The tokens of a text as its tokenizer writes them; None if its encoding was not learned."""
    def fingerprint(self) -> str:
        """32 hexadecimal digits that are the same for equal vocabularies."""
    def trie_nodes(self) -> int:
        """The number of nodes in the trie of all tokens."""
    @property
    def memory_size_bytes(self) -> int:
        """The memory that it uses, in bytes, without what its grammars share."""
    @property
    def lexicon_size_bytes(self) -> int:
        """The memory of the lexemes that all its grammars share, in bytes; does not wait for threads that use them."""

@final
class Limits:
    """How much work and memory a grammar may cost. Read once, used for many grammars."""

    def __new__(cls, limits: bounds.Limits) -> Limits: ...

@disjoint_base
class CancelToken:
    """Ends the operations that it was passed to."""

    def __new__(cls) -> Self: ...
    def cancel(self) -> None:
        """End these operations."""
    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called."""

@final
class LockGuard:
    """Holds a lock for one `with` statement."""

    def __new__(cls, lock: Any) -> Self: ...
    def __enter__(self) -> None:
        """Waits for the lock and takes it."""
    def __exit__(self, *_error: object) -> None:
        """Gives the lock back."""

@disjoint_base
class Preparation:
    """Finds masks in the background, before they are needed."""

    def __new__(
        cls,
        compiled_grammar: CompiledGrammar,
        milliseconds: float,
        bytes: int | None,
        background: bool,
    ) -> Self: ...
    def cancel(self) -> None:
        """End it soon. What was found by then is kept."""
    @property
    def done(self) -> bool:
        """Whether it has ended."""
    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, for at most `timeout` seconds; returns whether it has."""
    @property
    def ended_by(self) -> str | None:
        """Why it has ended."""
    @property
    def masks(self) -> int:
        """The number of new masks that it has found."""
    @property
    def bytes(self) -> int:
        """The growth of the grammar and the shared lexemes, in bytes."""
    @property
    def milliseconds(self) -> float:
        """The time that it has worked, in milliseconds."""

@disjoint_base
class CompiledGrammar:
    """A grammar compiled for a vocabulary; immutable and usable from many threads at once."""

    def __new__(
        cls,
        source: Any,
        made: Grammar | JsonSchemaOptions | None,
        tokenizer_info: TokenizerInfo,
        vocabulary: Vocabulary,
        limits: Limits,
    ) -> Self: ...
    @property
    def tokenizer_info(self) -> TokenizerInfo:
        """The tokenizer of the vocabulary."""
    @property
    def _source(self) -> Any:
        """What the grammar was made of; None if it was read from the output of `serialize_json`."""
    def _grammar(self) -> Grammar:
        """The grammar without its source."""
    def serialize_json(self) -> str:
        """The grammar as JSON text, with the fingerprint of the vocabulary."""
    @property
    def memory_size_bytes(self) -> int:
        """The memory that it uses so far, in bytes."""

@disjoint_base
class Matcher:
    """The state of one sequence. Made from a compiled grammar, or from another matcher as its fork."""

    def __new__(
        cls,
        compiled_grammar: CompiledGrammar | tuple[Matcher],
        *,
        override_stop_tokens: int | Sequence[int] | None = None,
        terminate_without_stop_token: bool = False,
        max_rollback_tokens: int = 0,
        canonical: bool = False,
        token_budget: int | None = None,
        whitespace_budget: int | None = None,
    ) -> Self: ...
    def accept_token(self, token_id: int) -> bool:
        """Accept the next token of the sequence; a refused token changes nothing.

        Args:
            token_id: Its id, from 0 to `vocab_size - 1`.

        Returns:
            True if the grammar allows the token here; False if it does not, if there is no such id, or after the end of
            the text.

        Raises:
            TypeError: `token_id` is not an int.
            LimitExceeded: The step takes more work or memory than the `Limits` of the compiled grammar.
            MatcherError: Another thread is using this matcher.

        Examples:
            >>> matcher.accept_token(2), matcher.accept_token(0)
            (True, False)
        """
    def accept_string(self, text: str | bytes) -> bool:
        """Accept a text. If it does not fit as a whole, it is refused and changes nothing.

        The text counts as one token of the history: `rollback(1)` takes all of it back.

        Args:
            text: Text as str, or as bytes, which may end in the middle of a character.

        Returns:
            True if the text fits here, otherwise False.

        Raises:
            TypeError: `text` is neither str nor bytes.
            LimitExceeded: As in `accept_token`.
            MatcherError: As in `accept_token`.

        Examples:
            >>> matcher.accept_string("abb"), matcher.accept_string(b"a")
            (True, False)
        """
    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> bool:
        """Write the mask of the next token into one row of a bitmask.

        Args:
            bitmask: A writable, contiguous int32 array or CPU tensor of shape (batch, ceil(vocab_size / 32)), as from
                `allocate_token_bitmask`, or of one row alone. Bit `i % 32` of word `i // 32` is 1 if token `i` is
                allowed.
            index: The row to write, counted from 0.

        Returns:
            True if the mask must be applied; False if it allows every token.

        Raises:
            TypeError: `bitmask` is not of dtype int32.
            ValueError: `bitmask` has another shape, or is read-only.
            IndexError: There is no such row.
            MatcherError: The text has ended, or another thread is using this matcher.
            LimitExceeded: As in `accept_token`.

        Examples:
            >>> bitmask = stencilm.allocate_token_bitmask(1, info.vocab_size)
            >>> matcher.fill_next_token_bitmask(bitmask)
            True
            >>> bin(int(bitmask[0, 0]))  # tokens 0 and 2
            '0b101'
        """
    def _find_mask_patch(self) -> tuple[int, bytes]:
        """The number of a row, and the ids in which the mask differs from it, as int32 in native byte order."""
    def is_allowed(self, token_id: int) -> bool:
        """Whether `accept_token` would accept a token here; changes nothing.

        Args:
            token_id: Its id. An id that the vocabulary does not have is not allowed.

        Raises:
            TypeError: `token_id` is not an int.
            LimitExceeded: As in `accept_token`.
            MatcherError: As in `accept_token`.

        Examples:
            >>> matcher.is_allowed(0), matcher.is_allowed(1)
            (True, False)
        """
    def num_allowed_tokens(self) -> int:
        """The number of tokens that the mask allows here; changes nothing.

        Raises:
            MatcherError: The text has ended, or another thread is using this matcher.
            LimitExceeded: As in `accept_token`.

        Examples:
            >>> matcher.num_allowed_tokens()
            2
        """
    def validate_tokens(self, token_ids: Iterable[int]) -> int:
        """How many of these tokens could be accepted in order; changes nothing.

        Args:
            token_ids: Ids: any iterable of ints.

        Returns:
            The length of the longest prefix that fits, from 0 to the number of tokens.

        Raises:
            TypeError: One of them is not an int.
            LimitExceeded: As in `accept_token`.
            MatcherError: As in `accept_token`.

        Examples:
            >>> matcher.validate_tokens([0, 1, 1, 0])
            3
        """
    def _longest_valid_prefix(self, text: str | bytes) -> tuple[str, int]:
        """The status of a text ("complete", "viable" or "dead"), and how many of its bytes fit."""
    def find_jump_forward_string(self) -> str:
        """The text that must come next, whatever the model would choose; empty if there is a choice.

        The forced text is cut after its last whole character. Changes nothing.

        Raises:
            LimitExceeded: As in `accept_token`.
            MatcherError: As in `accept_token`.

        Examples:
            >>> matcher.find_jump_forward_string()
            'ab'
        """
    def explain(self, token_id: int) -> str:
        """Why a token is allowed or refused here, as a sentence for people; changes nothing.

        Args:
            token_id: Its id. An id without a token is explained, too.

        Raises:
            TypeError: `token_id` is not an int.
            LimitExceeded: As in `accept_token`.
            MatcherError: As in `accept_token`.

        Examples:
            >>> matcher.explain(3)
            'token 3 "c" cannot come next: here comes "a", and not "c"'
        """
    def get_captures(self) -> list[tuple[str, bytes]]:
        r"""The texts of the grammar's captures, in the order in which they begin, outer ones first; changes nothing.

        Returns:
            Pairs of a name and its bytes. A name appears as often as its part was captured.

        Raises:
            LimitExceeded: As in `accept_token`.
            MatcherError: As in `accept_token`.

        Examples:
            >>> named = stencilm.Grammar.from_lark('start: word "c"\nword[capture]: /[ab]+/')
            >>> matcher = stencilm.GrammarMatcher(stencilm.GrammarCompiler(info).compile(named))
            >>> matcher.accept_string("abbc"), matcher.get_captures()
            (True, [('word', b'abb')])
        """
    def _candidates(self, limit: int) -> list[tuple[bool, str]]:
        """For each candidate, whether it is a literal, and its text."""
    def shortest_completion(self, *, max_bytes: int = 65_536) -> bytes:
        """A shortest text that completes the accepted text; empty if it is complete. Changes nothing.

        Args:
            max_bytes: The longest text to look for, in bytes.

        Raises:
            MatcherError: Every completion is longer than `max_bytes` (which may be negative), or another thread is
                using this matcher.
            LimitExceeded: As in `accept_token`.
            TypeError: `max_bytes` is not an int.

        Examples:
            >>> matcher.shortest_completion()
            b'ab'
        """
    def tokens_to_end(self) -> int:
        """The number of tokens that complete the text, not counting the stop token; changes nothing.

        They are the fewest that spell the shortest known completion; another text may take fewer.

        Raises:
            MatcherError: The grammar has budgets of its own, the vocabulary cannot spell the end, or another thread is
                using this matcher.
            LimitExceeded: As in `accept_token`.

        Examples:
            >>> matcher.tokens_to_end()
            1
        """
    @property
    def token_budget(self) -> int | None:
        """The number of tokens from its beginning within which the text must be complete; None without a budget.

        It is the given number; for a fork, it includes the tokens accepted before the fork.

        Examples:
            >>> matcher.fork(token_budget=3).token_budget
            3
        """
    @property
    def token_budget_left(self) -> int | None:
        """How many tokens of the budget are left; below 0 if it could not be kept, None without a budget.

        Examples:
            >>> short = matcher.fork(token_budget=3)
            >>> short.accept_token(2), short.token_budget_left
            (True, 2)
        """
    @property
    def whitespace_budget(self) -> int | None:
        """The most bytes of whitespace between the parts of a JSON text, as given; None without a limit.

        Examples:
            >>> stencilm.GrammarMatcher(compiled, whitespace_budget=3).whitespace_budget
            3
        """
    @property
    def whitespace_budget_left(self) -> int | None:
        """How many bytes of whitespace are left; below 0 if nothing else could come, None without a limit.

        Examples:
            >>> matcher.whitespace_budget_left is None
            True
        """
    @property
    def is_narrowed(self) -> bool:
        """Whether the last mask of this step lacks tokens because of the budget.

        Examples:
            >>> matcher.is_narrowed
            False
        """
    def _withheld(self) -> bytes:
        """The tokens that the budget removed from the last mask, as the bytes of a row; empty if it removed none."""
    def _traverse_draft_tree(
        self,
        next_token: NDArray[np.int64],
        next_sibling: NDArray[np.int64],
        tokens: NDArray[np.int64],
        bitmask: Any,
        *,
        time_limit: float | None,
        root: int,
    ) -> bool:
        """`GrammarMatcher.traverse_draft_tree` over contiguous int64 arrays, with a time limit in seconds."""
    def _draft_tree_temperatures(
        self,
        next_token: NDArray[np.int64],
        next_sibling: NDArray[np.int64],
        tokens: NDArray[np.int64],
        root: int,
    ) -> list[float | None]:
        """`GrammarMatcher.draft_tree_temperatures` over contiguous int64 arrays."""
    def rollback(self, num_tokens: int | None = None) -> None:
        """Take back the last accepted tokens; a text passed to `accept_string` counts as one.

        Args:
            num_tokens: How many, by default 1.

        Raises:
            MatcherError: Fewer were accepted, `num_tokens` is negative, or another thread is using this matcher.
            TypeError: It is not an int.

        Examples:
            >>> matcher.accept_token(0), matcher.rollback(1), matcher.num_accepted_tokens
            (True, None, 0)
        """
    def reset(self) -> None:
        """Go back to the beginning of the text.

        Raises:
            MatcherError: Another thread is using this matcher.

        Examples:
            >>> matcher.accept_token(2), matcher.reset(), matcher.num_accepted_tokens
            (True, None, 0)
        """
    def is_terminated(self) -> bool:
        """Whether the text has ended: a stop token was accepted, or, with `terminate_without_stop_token`, it is complete.

        Examples:
            >>> matcher.accept_token(2), matcher.is_terminated()
            (True, False)
            >>> matcher.accept_token(4), matcher.is_terminated()
            (True, True)
        """
    def is_completed(self) -> bool:
        """Whether the accepted text is a whole text of the grammar and may end here. It may also go on.

        Examples:
            >>> matcher.is_completed(), matcher.accept_token(2), matcher.is_completed()
            (False, True, True)
        """
    @property
    def stop_token_ids(self) -> list[int]:
        """The ids of the tokens that may end the text: the vocabulary's, or `override_stop_tokens`.

        Examples:
            >>> matcher.stop_token_ids
            [4]
        """
    @property
    def num_accepted_tokens(self) -> int:
        """The number of tokens accepted so far; each text passed to `accept_string` counts as one.

        Examples:
            >>> matcher.accept_string("abb"), matcher.num_accepted_tokens
            (True, 1)
        """
    @property
    def temperature(self) -> float | None:
        """The temperature, 0 or more, at which the grammar wants the next token sampled; None if it specifies none.

        Examples:
            >>> matcher.temperature is None
            True
        """
    @property
    def max_rollback_tokens(self) -> int:
        """The given value. It is accepted for compatibility; rollback has no limit here.

        Examples:
            >>> matcher.max_rollback_tokens
            0
        """
    @property
    def _tokenizer_info(self) -> TokenizerInfo:
        """The tokenizer of its grammar."""
    @property
    def memory_size_bytes(self) -> int:
        """The memory that this matcher itself uses, in bytes, without the compiled grammar that it shares.

        Examples:
            >>> matcher.memory_size_bytes > 0
            True
        """
    def _naive_bitmask(self, bitmask: Any, index: int) -> None:
        """The mask from the slow reference, which tries every token by itself. For tests."""
    def _forced_bytes(self) -> bytes:
        """The bytes that must come next; they may end within a character."""
    def _forced_spans(self, limit: int) -> tuple[bytes, list[tuple[int, list[int]]]]:
        """The forced bytes, and the tokens that span their end, grouped by where they begin."""
    def _forced_token(self) -> int | None:
        """The id of the single token that the grammar asks for here; None if it asks for text, or for more than one."""
    def _recent_tokens(self, limit: int) -> list[int]:
        """The last accepted tokens, at most `limit`, oldest first."""

@disjoint_base
class BatchMatcher:
    """A pool of threads that work on the sequences of a batch."""

    def __new__(cls, max_threads: int | None = None) -> BatchMatcher: ...
    @property
    def max_threads(self) -> int:
        """The most threads that work on a batch.

        Examples:
            >>> batch.max_threads
            2
        """
    def batch_fill_next_token_bitmask(
        self, matchers: Sequence[Matcher], bitmask: Any, indices: Sequence[int] | None = None
    ) -> list[bool]:
        """Write the masks of all sequences into the rows of a bitmask.

        Args:
            matchers: One for each sequence, all of one vocabulary.
            bitmask: As in `GrammarMatcher.fill_next_token_bitmask`, int32 of shape (batch, ceil(vocab_size / 32)).
            indices: The row of each sequence, each row once; by default 0, 1, 2 and so on.

        Returns:
            For each sequence, whether its mask must be applied.

        Raises:
            BatchError: Some sequences failed; their rows are zeros, and the rows of the others are filled.
            TypeError: `bitmask` is not of dtype int32, or an element of `matchers` is not a matcher.
            ValueError: There are not as many indices as matchers, a row or a matcher occurs twice, or the bitmask has
                another shape.

        Examples:
            >>> bitmask = stencilm.allocate_token_bitmask(2, info.vocab_size)
            >>> batch.batch_fill_next_token_bitmask(matchers, bitmask)
            [True, True]
        """
    def batch_find_mask_patches(
        self, matchers: Sequence[Matcher], row_ids: Any, offsets: Any, flipped: Any
    ) -> int:
        """Write the patches of all masks, and return the number of flipped tokens; these are written only if all fit."""
    def batch_accept_and_fill(
        self,
        matchers: Sequence[Matcher],
        token_ids: Sequence[int | None],
        bitmask: Any,
        indices: Sequence[int] | None = None,
    ) -> list[tuple[bool, bool]]:
        """Accept the given token, if any, for every sequence, and fill the mask after it."""
    def batch_accept_token(
        self, matchers: Sequence[Matcher], token_ids: Iterable[int]
    ) -> list[bool]:
        """Accept one token for every sequence; a refused token leaves its sequence unchanged.

        Args:
            matchers: One for each sequence.
            token_ids: An id for each: any iterable of ints.

        Returns:
            For each sequence, what `GrammarMatcher.accept_token` returns.

        Raises:
            BatchError: Some sequences failed; the others have accepted or refused their tokens.
            TypeError: An id is not an int, or an element of `matchers` is not a matcher.
            ValueError: There are not as many ids as matchers, or a matcher occurs twice.

        Examples:
            >>> batch.batch_accept_token(matchers, [0, 1])
            [True, False]
        """
    def batch_accept_string(
        self, matchers: Sequence[Matcher], texts: Sequence[str | bytes]
    ) -> list[bool]:
        """Accept one text for every sequence; a refused text leaves its sequence unchanged.

        Args:
            matchers: One for each sequence.
            texts: A text for each, str or bytes.

        Returns:
            For each sequence, what `GrammarMatcher.accept_string` returns.

        Raises:
            BatchError: Some sequences failed; the others have accepted or refused their texts.
            TypeError: A text is neither str nor bytes, or an element of `matchers` is not a matcher.
            ValueError: There are not as many texts as matchers, or a matcher occurs twice.

        Examples:
            >>> batch.batch_accept_string(matchers, ["ab", b"b"])
            [True, False]
        """
    def batch_temperature(self, matchers: Sequence[Matcher]) -> list[float | None]:
        """`GrammarMatcher.temperature` of every sequence: a number, 0 or more, or None.

        Args:
            matchers: One for each sequence.

        Raises:
            BatchError: Some sequences failed.
            TypeError: An element of `matchers` is not a matcher.
            ValueError: A matcher occurs twice.

        Examples:
            >>> batch.batch_temperature(matchers)
            [None, None]
        """
    def batch_rollback(self, matchers: Sequence[Matcher], counts: Sequence[int]) -> None:
        """Take back the last tokens of every sequence.

        Args:
            matchers: One for each sequence.
            counts: How many tokens each takes back, 0 or more.

        Raises:
            BatchError: Some sequences have accepted fewer; the others were rolled back.
            MatcherError: A count is negative.
            TypeError: A count is not an int, or an element of `matchers` is not a matcher.
            ValueError: There are not as many counts as matchers, or a matcher occurs twice.

        Examples:
            >>> batch.batch_accept_token(matchers, [0, 2]), batch.batch_rollback(matchers, [1, 0])
            ([True, True], None)
        """

@final
class IndexBuilder:
    """A token index under construction."""

    def __new__(
        cls, compiled: CompiledGrammar, *, max_states: int, max_bytes: int
    ) -> IndexBuilder: ...
    def advance(self, seconds: float) -> bool:
        """Work for about this many seconds; returns whether it is done."""
    def progress(self) -> tuple[int, int]:
        """The finished states and the known states of the current stage."""
    def finish(self) -> TokenIndex | None:
        """The index, once `advance` has returned True; None before that, and after it was taken."""

@final
class TokenIndex:
    """The explicit automaton over tokens of a regular grammar; immutable."""

    @staticmethod
    def from_bytes(data: bytes, vocabulary: Vocabulary) -> TokenIndex:
        """The index that `to_bytes` wrote."""
    def to_bytes(self) -> bytes:
        """The index as bytes, for `from_bytes` with the same vocabulary."""
    @property
    def num_states(self) -> int:
        """The number of states; they are numbered from 0, which is the initial state."""
    @property
    def num_transitions(self) -> int:
        """The number of transitions of all states."""
    @property
    def memory_size_bytes(self) -> int:
        """The memory that it uses, in bytes."""
    def is_final(self, state: int) -> bool:
        """Whether a text may end at a state."""
    def next_state(self, state: int, token_id: int) -> int | None:
        """The state after a token; None if the token is not allowed."""
    def transitions(self, state: int) -> list[tuple[int, int]]:
        """The allowed tokens of a state and the states after them, in ascending order of token id."""
    def fill_bitmask(self, state: int, bitmask: Any, index: int) -> None:
        """Write the mask of a state into a row of a bitmask."""
    def forced_states(self) -> list[int]:
        """The states at which the next byte is forced."""
    def forced_spans(self, state: int, limit: int) -> tuple[bytes, list[tuple[int, list[int]]]]:
        """The forced bytes at a state, and the tokens that span their end, grouped by where they begin."""
