"""The token index: a regular grammar as an explicit automaton over tokens.

One idea: it is the matcher with everything computed. States are numbers, each with the allowed
tokens and where they lead; what a matcher finds step by step can be examined, drawn and saved.
"""

from __future__ import annotations

import json
import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from stencilm import _core
from stencilm.errors import LimitExceeded, MatcherError, OperationCancelled, TokenizerError
from stencilm.grammars.grammar import Grammar
from stencilm.limits import DEFAULT_LIMITS, Limits, checked_limits
from stencilm.matching.compiler import GrammarCompiler, checked_info
from stencilm.shown import shown_value
from stencilm.tokenizers import TokenizerInfo
from stencilm.tokenizers.joint import MAX_SPANNING
from stencilm.whole_numbers import as_real, shown, whole_number

DEFAULT_MAX_STATES = 100_000
DEFAULT_MAX_BYTES = 256 << 20

_FORMAT = "stencilm.TokenIndex"
_VERSION = 2
_CHECKSUM = ',"checksum":"'
# Seconds between two reports of progress; interrupts are noticed as often.
_SLICE = 0.05


class Stretch(NamedTuple):
    """A text that must come at a state, because every way on begins with it."""

    state: int
    """Where it begins."""
    text: bytes
    """All of it, up to where ways part or the text may end."""
    tokens: list[int]
    """The tokens with which every continuation begins, as the tokenizer itself writes them."""
    next_state: int
    """The state after these tokens."""
    left_over: bytes
    """What is left of the text: how it is written depends on what follows."""


class TokenIndex:
    """The minimal deterministic automaton over tokens of a regular grammar.

    It allows exactly what the masks of a matcher allow. Immutable; indexes of the same grammar and
    tokenizer number their states in the same way.

    Examples:
        >>> import stencilm
        >>> info = stencilm.TokenizerInfo([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> index = stencilm.TokenIndex.from_regex("ab+", info)
        >>> index == stencilm.TokenIndex.from_grammar(stencilm.Grammar.from_regex("ab+"), info)
        True
        >>> index.initial_state, index.final_states, index.num_states, index.num_transitions
        (0, frozenset({2}), 3, 4)
        >>> index.allowed_tokens(0), index.next_state(0, 2), index.next_state(0, 1)
        ([0, 2], 2, None)
        >>> dict(index.transitions[0]), index.with_tokens()[1]
        ({0: 1, 2: 2}, {'b': 2})
        >>> [stretch.text for stretch in index.coalesce()]
        [b'ab']
        >>> bitmask = stencilm.allocate_token_bitmask(1, info.vocab_size)
        >>> index.fill_bitmask(0, bitmask)
        >>> bin(int(bitmask[0, 0]))
        '0b101'
        >>> drawing = index.to_dot(max_states=9)
        >>> svg = index.to_svg()  # with graphviz  # doctest: +SKIP
        >>> stencilm.TokenIndex.deserialize_json(index.serialize_json(), info) == index
        True
        >>> index.tokenizer_info is info, index.memory_size_bytes > 0
        (True, True)
    """

    __slots__ = ("_core", "_tokenizer_info")

    def __init__(self, core: _core.TokenIndex, tokenizer_info: TokenizerInfo) -> None:
        """Wraps what the core has built; use `from_regex` or `from_grammar`."""
        if not isinstance(core, _core.TokenIndex):
            raise TypeError(
                f"a TokenIndex is not made of {shown_value(core):.60}: use TokenIndex.from_regex "
                "or TokenIndex.from_grammar"
            )
        self._core = core
        self._tokenizer_info = tokenizer_info

    @classmethod
    def from_regex(
        cls,
        pattern: str,
        tokenizer_info: TokenizerInfo,
        *,
        max_states: int = DEFAULT_MAX_STATES,
        max_bytes: int = DEFAULT_MAX_BYTES,
        max_seconds: float | None = None,
        progress: Callable[[int, int], None] | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> TokenIndex:
        """The index of a regular expression; the arguments are those of `from_grammar`."""
        return cls.from_grammar(
            Grammar.from_regex(pattern, limits=limits),
            tokenizer_info,
            max_states=max_states,
            max_bytes=max_bytes,
            max_seconds=max_seconds,
            progress=progress,
            limits=limits,
        )

    @classmethod
    def from_grammar(
        cls,
        grammar: Grammar,
        tokenizer_info: TokenizerInfo,
        *,
        max_states: int = DEFAULT_MAX_STATES,
        max_bytes: int = DEFAULT_MAX_BYTES,
        max_seconds: float | None = None,
        progress: Callable[[int, int], None] | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> TokenIndex:
        """The index of any grammar whose machine is finite: one that neither nests nor remembers.

        Args:
            grammar: The grammar.
            tokenizer_info: The vocabulary.
            max_states: The most states, before equivalent states are joined.
            max_bytes: The most bytes that the transitions may take. If a sample of the states shows
                that they would take more than twice as many, none are computed.
            max_seconds: The longest processor time for building; None for no limit.
            progress: Called now and then with the numbers of finished and of known states, first
                while states are found, then while tokens are followed.
            limits: How much work and memory the grammar itself may cost, and the token that cancels
                the building.

        Raises:
            LimitExceeded: The index is larger than that, or takes longer; for a grammar that nests,
                it is infinite.
            OperationCancelled: `limits.cancel` was cancelled.
            TokenizerError: The vocabulary begins a text that it cannot spell to the end.
            UnsupportedFeature: The grammar asks for single tokens.
            TypeError: `max_states` or `max_bytes` is not an int, `max_seconds` not a number, or
                `progress` cannot be called.
            ValueError: One of the first two is less than 1, or `max_seconds` is not above 0.
        """
        max_states = whole_number("max_states", max_states, least=1)
        max_bytes = whole_number("max_bytes", max_bytes, least=1)
        watch = _Watch(max_seconds, checked_limits(limits))
        if progress is not None and not callable(progress):
            raise TypeError(
                f"progress is {shown_value(progress):.80}, "
                f"but must be a function of two numbers: the states that "
                "are done, and those that are known"
            )
        compiler = GrammarCompiler(tokenizer_info, cache_enabled=False, limits=limits)
        compiled = compiler.compile_grammar(grammar)
        builder = _core.IndexBuilder(compiled, max_states=max_states, max_bytes=max_bytes)
        while not builder.advance(_SLICE):
            watch.check()
            if progress is not None:
                progress(*builder.progress())
        core = builder.finish()
        assert core is not None, "the builder says when it is done"
        return cls(core, tokenizer_info)

    @property
    def tokenizer_info(self) -> TokenizerInfo:
        """The vocabulary."""
        return self._tokenizer_info

    @property
    def initial_state(self) -> int:
        """The state before the first token."""
        return 0

    @property
    def final_states(self) -> frozenset[int]:
        """The states at which the text may end."""
        states = range(self._core.num_states)
        return frozenset(state for state in states if self._core.is_final(state))

    @property
    def num_states(self) -> int:
        """The number of states, which are numbered from 0."""
        return self._core.num_states

    @property
    def num_transitions(self) -> int:
        """How many transitions there are."""
        return self._core.num_transitions

    @property
    def memory_size_bytes(self) -> int:
        """The approximate size in bytes, without the tokenizer."""
        return self._core.memory_size_bytes

    @property
    def transitions(self) -> Mapping[int, Mapping[int, int]]:
        """For every state its tokens, in the order of their bytes, with the states they lead to.

        The outer mapping is a view; each inner one is made when it is asked for.
        """
        return _Transitions(self._core)

    def allowed_tokens(self, state: int) -> list[int]:
        """The tokens that may come at a state, ascending, stop tokens at a final one among them.

        Raises:
            MatcherError: There is no such state.
        """
        allowed = [token_id for token_id, _ in self._core.transitions(state)]
        if self._core.is_final(state):
            allowed += self._tokenizer_info.stop_token_ids
        return sorted(allowed)

    def next_state(self, state: int, token_id: int) -> int | None:
        """The state after a token; None where it is not allowed, or ends the text.

        Raises:
            MatcherError: There is no such state.
        """
        return self._core.next_state(state, token_id)

    def fill_bitmask(self, state: int, bitmask: Any, index: int = 0) -> None:
        """Writes what may come at a state into a row of a bitmask, as a matcher would.

        Raises:
            MatcherError: There is no such state.
        """
        self._core.fill_bitmask(state, bitmask, index)

    def with_tokens(self) -> dict[int, dict[str, int]]:
        """The states that have transitions, with tokens as text, for reading.

        A token that is not text, such as half a character, is escaped. If that is the text of
        another token with another target, it is shown as its id, such as `<[195]>`.
        """
        shown = {}
        vocabulary = self._tokenizer_info.decoded_vocab
        for state, row in self.transitions.items():
            texts: dict[str, int] = {}
            escaped: list[tuple[int, str, int]] = []
            for token_id, target in row.items():
                text = vocabulary[token_id].decode("utf-8", "backslashreplace")
                if text.encode() == vocabulary[token_id]:
                    texts[text] = target
                else:
                    escaped.append((token_id, text, target))
            for token_id, text, target in escaped:
                is_taken = texts.get(text, target) != target
                texts[f"<[{token_id}]>" if is_taken else text] = target
            if texts:
                shown[state] = texts
        return shown

    def coalesce(self) -> list[Stretch]:
        """The stretches where every continuation agrees, in the order of their states.

        A stretch begins at the start or after a choice, and is listed once.

        Raises:
            LimitExceeded: They take more than 16 MiB of text, plus 16 bytes each: thousands of
                states may share a long continuation.
            MatcherError: The text that the index was read from was changed by somebody.
        """
        stretches = []
        for state in self._core.forced_states():
            text, spans = self._core.forced_spans(state, MAX_SPANNING)
            tokens, left_over = self._tokenizer_info.joint.split(text, [], spans)
            stretches.append(Stretch(state, text, tokens, self._behind(state, tokens), left_over))
        return stretches

    def _behind(self, state: int, forced: list[int]) -> int:
        """The state after tokens that must come.

        When an index is read, it is not checked that the tokens' bytes agree with the transitions.
        """
        here = state
        for token_id in forced:
            behind = self._core.next_state(here, token_id)
            if behind is None:
                raise MatcherError(
                    f"token {token_id} must come at state {here} and is not allowed there: the "
                    "text that this index was read from was changed, so build it anew"
                )
            here = behind
        return here

    def to_dot(self, *, max_states: int = 60) -> str:
        """A drawing in graphviz's language; for more states than that, a summary."""
        max_states = whole_number("max_states", max_states, least=1, most=None)
        from stencilm.matching.index_drawing import dot

        return dot(self, max_states)

    def to_svg(self, *, max_states: int = 60) -> str:
        """The drawing as SVG.

        Raises:
            StencilError: The program `dot` of graphviz is not installed, or fails.
        """
        from stencilm.matching.index_drawing import svg

        return svg(self.to_dot(max_states=max_states))

    def _repr_svg_(self) -> str | None:
        """The drawing in a notebook, where graphviz is installed."""
        from stencilm.matching.index_drawing import is_graphviz_installed

        return self.to_svg() if is_graphviz_installed() else None

    def serialize_json(self) -> str:
        """One line of JSON that `deserialize_json` reads, closed by a checksum."""
        payload = {
            "format": _FORMAT,
            "version": _VERSION,
            "tokenizer": self._tokenizer_info.fingerprint,
            "data": b64encode(zlib.compress(self._core.to_bytes(), 6)).decode(),
        }
        body = json.dumps(payload, separators=(",", ":"))[:-1]
        return f'{body}{_CHECKSUM}{sha256(body.encode()).hexdigest()}"}}'

    @classmethod
    def deserialize_json(cls, text: str, tokenizer_info: TokenizerInfo) -> TokenIndex:
        """The index that `serialize_json` wrote, for the same tokenizer.

        Raises:
            MatcherError: The text was cut short, changed, or is something else.
            TokenizerError: It was built for another tokenizer.
            TypeError: `text` is not a str, or `tokenizer_info` not a TokenizerInfo.
        """
        if not isinstance(text, str):
            raise TypeError(
                f"text is a {type(text).__name__}, but must be the str of serialize_json()"
            )
        info = checked_info(tokenizer_info)
        body, found, rest = text.rpartition(_CHECKSUM)
        digest = sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
        if not found or rest != f'{digest}"}}':
            raise MatcherError(
                "this is no whole serialized TokenIndex; it was cut short or changed, so write it "
                "again"
            )
        try:
            payload = json.loads(text)
            if (payload["format"], payload["version"]) != (_FORMAT, _VERSION):
                raise MatcherError(
                    f"this is {payload['format']!r} in version {payload['version']!r}, and this "
                    f"release reads {_FORMAT!r} in version {_VERSION}; write it again"
                )
            if payload["tokenizer"] != info.fingerprint:
                raise TokenizerError(
                    f"this index was built for the tokenizer with the fingerprint "
                    f"{payload['tokenizer']!r}, and this one has {info.fingerprint!r}; "
                    "give that tokenizer, or build the index for this one",
                    place="#/tokenizer",
                )
            inflate = zlib.decompressobj()
            data = inflate.decompress(b64decode(payload["data"], validate=True), _MAX_DATA)
            if inflate.unconsumed_tail:
                raise MatcherError(f"the index has more than {_MAX_DATA} bytes; build it here")
        except (KeyError, TypeError, ValueError, RecursionError, zlib.error) as error:
            if isinstance(error, (MatcherError, TokenizerError)):
                raise
            raise MatcherError(
                f"the fields of this TokenIndex are not those that serialize_json() writes "
                f"({type(error).__name__}); write it again"
            ) from error
        return cls(_core.TokenIndex.from_bytes(data, info.core), info)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as its text and the vocabulary."""
        return type(self).deserialize_json, (self.serialize_json(), self._tokenizer_info)

    def __copy__(self) -> TokenIndex:
        """Returns itself, because it is immutable."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> TokenIndex:
        """Returns itself, because it is immutable."""
        return self

    def __eq__(self, other: object) -> bool:
        """Whether both are the same automaton over the same tokens."""
        if not isinstance(other, TokenIndex):
            return NotImplemented
        same_tokens = self._tokenizer_info == other._tokenizer_info
        return same_tokens and self._core.to_bytes() == other._core.to_bytes()

    def __hash__(self) -> int:
        """Equal for equal indexes."""
        return hash(self._core.to_bytes())

    def __repr__(self) -> str:
        """The number of states and transitions."""
        return f"<TokenIndex: {self.num_states} states, {self.num_transitions} transitions>"


_MAX_DATA = 1 << 31


class _Watch:
    """Stops work that is done in slices when its time is over, or its token was cancelled."""

    def __init__(self, max_seconds: float | None, limits: Limits) -> None:
        if max_seconds is not None:
            seconds = as_real(max_seconds)
            if seconds is None:
                raise TypeError(
                    f"max_seconds is {shown(max_seconds)}, but must be a number or None"
                )
            if not seconds > 0:
                raise ValueError(f"max_seconds is {shown(max_seconds)}, but must be above 0")
            max_seconds = seconds
        self._max_seconds = max_seconds
        self._cancel = limits.cancel
        self._begun = time.thread_time()

    def check(self) -> None:
        if self._cancel is not None and self._cancel.is_cancelled:
            raise OperationCancelled(
                "the index was not finished: its token was cancelled; give another token to what "
                "is still wanted"
            )
        if self._max_seconds is None:
            return
        if time.thread_time() - self._begun > self._max_seconds:
            raise LimitExceeded(
                f"the index takes more than {self._max_seconds} s; use a GrammarMatcher, bound its "
                "repetitions, or raise max_seconds"
            )


class _Transitions(Mapping[int, Mapping[int, int]]):
    """All states with their transitions, as a view."""

    __slots__ = ("_core",)

    def __init__(self, core: _core.TokenIndex) -> None:
        self._core = core

    def __getitem__(self, state: int) -> Mapping[int, int]:
        if state not in range(len(self)):
            raise KeyError(state)
        return dict(self._core.transitions(state))

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return self._core.num_states
