"""Compiling: a grammar times a vocabulary, each request once.

One idea: a request is its grammar's source, so it is looked up before anything is built. Threads
that ask for the same one at the same time wait for the first of them.
"""

from __future__ import annotations

import copy
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack

from stencilm import _core
from stencilm.errors import StencilError
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.sources import (
    EbnfSource,
    JsonSchemaSource,
    LarkSource,
    RegexSource,
    SchemaOptions,
    SerializedSource,
    Source,
    StructuralTagSource,
    json_schema_options,
)
from stencilm.grammars.texts import Schema, checked_text
from stencilm.limits import DEFAULT_LIMITS, Limits, checked_limits, uncancelled
from stencilm.matching.preparation import Preparation
from stencilm.renewed_lock import RenewedLock
from stencilm.tokenizers import TokenizerInfo
from stencilm.whole_numbers import truth, whole_number

if TYPE_CHECKING:
    from stencilm.grammars.structural_tag import Format, StructuralTag, StructuralTagItem
    from stencilm.grammars.symbols import SymbolTable

DEFAULT_CACHE_LIMIT_BYTES = 256 << 20
# Shorter names of special tokens occur in many texts by chance.
_SHORTEST_NAME = 3


class CompiledGrammar(_core.CompiledGrammar):
    """A grammar prepared for a vocabulary; immutable, and shareable between threads.

    Compiling computes almost nothing: what masks need is computed on first use, and cached for all
    matchers of this grammar.

    Examples:
        >>> import stencilm
        >>> info = stencilm.TokenizerInfo([b"a", b"b", b"</s>"], stop_token_ids=[2])
        >>> compiled = stencilm.GrammarCompiler(info).compile_regex("ab+")
        >>> compiled.grammar == stencilm.Grammar.from_regex("ab+")
        True
        >>> compiled.tokenizer_info is info, compiled.memory_size_bytes > 0
        (True, True)
        >>> saved = compiled.serialize_json()
        >>> again = stencilm.CompiledGrammar.deserialize_json(saved, info)
        >>> stencilm.GrammarMatcher(again).accept_string("abb")
        True
    """

    __slots__ = ("_known_grammar",)

    _known_grammar: Grammar

    @property
    def grammar(self) -> Grammar:
        """The grammar that it was compiled from."""
        try:
            return self._known_grammar
        except AttributeError:
            pass  # Built on request, because few callers need it.
        core = self._grammar()
        source = self._source
        if source is None:
            source = SerializedSource(core.serialize_json())
        elif isinstance(source, tuple):
            text, options = source
            source = JsonSchemaSource(text, options, documents=())
        self._known_grammar = Grammar(source, core)
        return self._known_grammar

    def __repr__(self) -> str:
        """The grammar and the vocabulary."""
        parts = f"grammar={self.grammar!r}, tokenizer_info={self.tokenizer_info!r}"
        return f"{type(self).__name__}({parts})"

    def __reduce__(self) -> NoReturn:
        """Raises: pickling would include the whole tokenizer each time."""
        raise TypeError(
            "a CompiledGrammar cannot be pickled: send the schema or pattern that it was made of, "
            "and compile it there, or send what serialize_json() returns"
        )

    def __copy__(self) -> Self:
        """Returns itself, because it is immutable."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Returns itself, because it is immutable."""
        return self

    def serialize_json(self) -> str:
        """The grammar as JSON text, with the fingerprint of the tokenizer, for `deserialize_json`.

        Computed masks are not included, because computing them again is as quick.
        """
        return super().serialize_json()

    @staticmethod
    def deserialize_json(
        text: str, tokenizer_info: TokenizerInfo, *, limits: Limits = DEFAULT_LIMITS
    ) -> CompiledGrammar:
        """The compiled grammar that `serialize_json` wrote; the whole text is checked.

        Args:
            text: The text.
            tokenizer_info: The tokenizer that it was compiled for.
            limits: The limits of its matchers, which are not in the text.

        Raises:
            TokenizerError: It was compiled for another tokenizer.
            GrammarSyntaxError: The text is damaged, or of another format or version.
            LimitExceeded: The text is too large.
        """
        text = checked_text("text", text)
        vocabulary = checked_info(tokenizer_info).core
        return CompiledGrammar(text, None, tokenizer_info, vocabulary, checked_limits(limits).core)

    def prepare(
        self, *, milliseconds: float = 5, bytes: int | None = None, background: bool = True
    ) -> Preparation:
        """Computes in advance the masks that a model is likely to need first.

        A walk through the grammar visits likely states: names, the beginnings of values, what is
        inside them and what follows them. It changes no mask; masks that it computed need only be
        copied. Call it while a prompt is processed:

            preparation = compiled.prepare(milliseconds=5)

        A thread without Python's lock does the work. The process has one such thread, so several
        preparations run one after the other. When a mask is requested meanwhile, the thread
        releases what the mask needs at once. Nobody has to wait for a preparation; it ends early
        when nobody uses the grammar any more.

        Args:
            milliseconds: The longest time that it may work, in wall-clock time.
            bytes: By how much the grammar, and the lexemes that it shares with others, may grow.
                Never more than half of `mask_cache_bytes` of the limits, which is also the default.
            background: If False, the calling thread does the work, and the call returns at its end.

        Raises:
            TypeError: `milliseconds` or `bytes` is not a number.
            ValueError: One of them is negative or not finite.
            OperationCancelled: The token of the grammar's limits was cancelled.

        Examples:
            >>> compiled.prepare(milliseconds=5).wait()
            True
        """
        return Preparation(self, milliseconds, bytes, background)

    @property
    def memory_size_bytes(self) -> int:
        """Its current size in memory; it grows as matchers visit more of the grammar."""
        return super().memory_size_bytes


class GrammarCompiler:
    """Compiles grammars for one vocabulary, and caches the latest ones.

    May be used from many threads: threads that want the same grammar at the same time share one
    compilation, and its error if it fails. Errors are not cached.

    The first compiler for a large vocabulary reads a short text of numbers, dates and addresses (15
    ms for 128,000 tokens), so that the first grammars need not compute what they have in common.

    Args:
        tokenizer_info: The vocabulary.
        max_threads: Accepted for compatibility. A compilation uses one thread, without Python's
            lock: to compile many grammars, call it from several threads.
        cache_enabled: If False, every call compiles again.
        cache_limit_bytes: The size of all cached grammars together; the least recently used are
            evicted first. An evicted grammar that is still referenced stays usable.
        limits: How much work and memory each grammar may cost.

    Examples:
        >>> import stencilm
        >>> info = stencilm.TokenizerInfo([b"1", b"2", b"a", b"</s>"], stop_token_ids=[3])
        >>> compiler = stencilm.GrammarCompiler(info, cache_limit_bytes=1 << 24)
        >>> integer = compiler.compile_json_schema({"type": "integer", "maximum": 20})
        >>> integer is compiler.compile_json_schema({"type": "integer", "maximum": 20})
        True
        >>> others = [
        ...     compiler.compile_regex("[12]a"),
        ...     compiler.compile_grammar('root ::= "1" | "2"'),
        ...     compiler.compile_lark('start: "1" | "2"'),
        ...     compiler.compile_structural_tag({"type": "const_string", "value": "1"}),
        ...     compiler.compile_builtin_json_grammar(),
        ...     compiler.compile(int),
        ... ]
        >>> 0 < compiler.get_cache_size_bytes() <= 1 << 24, compiler.get_shared_size_bytes() >= 0
        (True, True)
        >>> compiler.clear_cache()
        >>> compiler.get_cache_size_bytes()
        0
        >>> (
        ...     compiler.tokenizer_info is info,
        ...     compiler.max_threads,
        ...     compiler.limits == stencilm.Limits(),
        ... )
        (True, 8, True)
    """

    def __init__(
        self,
        tokenizer_info: TokenizerInfo,
        *,
        max_threads: int = 8,
        cache_enabled: bool = True,
        cache_limit_bytes: int = DEFAULT_CACHE_LIMIT_BYTES,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._max_threads = whole_number("max_threads", max_threads, least=1, most=None)
        self._cache_limit_bytes = whole_number(
            "cache_limit_bytes", cache_limit_bytes, least=0, most=None
        )
        self._tokenizer_info = checked_info(tokenizer_info)
        self._limits = checked_limits(limits)
        self._vocabulary, self._bounds = tokenizer_info.core, limits.core
        is_kept = truth("cache_enabled", cache_enabled)
        self._cache = _Cache(self._cache_limit_bytes) if is_kept else None
        if uncancelled(limits) == DEFAULT_LIMITS:
            tokenizer_info.core.prepare()

    @property
    def tokenizer_info(self) -> TokenizerInfo:
        """The vocabulary that this compiler compiles for."""
        return self._tokenizer_info

    @property
    def max_threads(self) -> int:
        """As given."""
        return self._max_threads

    @property
    def limits(self) -> Limits:
        """As given."""
        return self._limits

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as a compiler of the same vocabulary with the same options and an empty cache."""
        options: dict[str, Any] = {
            "max_threads": self._max_threads,
            "cache_enabled": self._cache is not None,
            "cache_limit_bytes": self._cache_limit_bytes,
            "limits": self._limits,
        }
        return partial(type(self), **options), (self._tokenizer_info,)

    def __copy__(self) -> Self:
        """Returns itself: all threads and all copies of an owner may share one cache."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Returns itself: all threads and all copies of an owner may share one cache."""
        return self

    def __repr__(self) -> str:
        """The vocabulary that it compiles for."""
        return f"<{type(self).__name__} for {self._tokenizer_info.vocab_size} tokens>"

    def compile_json_schema(
        self,
        schema: Schema,
        *,
        documents: Mapping[str, Schema] | None = None,
        symbols: Mapping[str, SymbolTable] | None = None,
        **options: Unpack[SchemaOptions],
    ) -> CompiledGrammar:
        """The compiled form of `Grammar.from_json_schema` with the same options."""
        if self._cache is None and type(schema) is str and documents is None and symbols is None:
            # Only the text is checked; the `Grammar` is made when it is requested.
            if not schema.isascii():
                checked_text("schema", schema)
            read = json_schema_options(**options)
            return CompiledGrammar(
                (schema, read),
                read.core,
                self._tokenizer_info,
                self._vocabulary,
                self._bounds,
            )
        return self._compile_source(
            JsonSchemaSource.of(schema, documents=documents, symbols=symbols, **options)
        )

    def compile_builtin_json_grammar(self) -> CompiledGrammar:
        """The compiled form of `Grammar.builtin_json_grammar`."""
        return self._compile_source(JsonSchemaSource.of(True))

    def compile_regex(self, pattern: str) -> CompiledGrammar:
        """The compiled form of `Grammar.from_regex`."""
        return self._compile_source(RegexSource.of(pattern))

    def compile_lark(
        self,
        text: str,
        *,
        start: str = "start",
        grammars: Mapping[str, Grammar | str] | None = None,
        symbols: Mapping[str, SymbolTable] | None = None,
    ) -> CompiledGrammar:
        """The compiled form of `Grammar.from_lark` with the same options."""
        return self._compile_source(LarkSource.of(text, start, grammars, symbols))

    def compile_structural_tag(
        self,
        tag: StructuralTag | Format | Mapping[str, Any] | str | Sequence[StructuralTagItem],
        triggers: Sequence[str] | None = None,
    ) -> CompiledGrammar:
        """The compiled form of `Grammar.from_structural_tag`."""
        return self._compile_source(StructuralTagSource.of(tag, triggers))

    def compile_grammar(
        self,
        grammar: Grammar | str,
        *,
        root_rule_name: str = "root",
        symbols: Mapping[str, SymbolTable] | None = None,
    ) -> CompiledGrammar:
        """The compiled form of a grammar, or of an EBNF text with the options of `from_ebnf`."""
        if isinstance(grammar, str):
            return self._compile_source(EbnfSource.of(grammar, root_rule_name, symbols))
        if not isinstance(grammar, Grammar):
            raise TypeError(
                f"grammar is a {type(grammar).__name__}, but must be a Grammar or an EBNF text: "
                "make one with Grammar.from_json_schema, Grammar.from_regex or Grammar.from_type"
            )
        compile_it = partial(self._compiled, grammar.source, grammar.core)
        return compile_it() if self._cache is None else self._cache.get(grammar.source, compile_it)

    def compile(self, grammar_or_type: Any) -> CompiledGrammar:
        """The compiled form of a grammar, or of what `Grammar.from_type` takes."""
        if isinstance(grammar_or_type, Grammar):
            return self.compile_grammar(grammar_or_type)
        return self.compile_grammar(Grammar.from_type(grammar_or_type))

    def clear_cache(self) -> None:
        """Remove everything from the cache."""
        if self._cache is not None:
            self._cache.clear()

    def get_cache_size_bytes(self) -> int:
        """The current size of the cached grammars: never more than `cache_limit_bytes`.

        `get_shared_size_bytes` gives the size of what they share with others.
        """
        return 0 if self._cache is None else self._cache.measure()

    def get_shared_size_bytes(self) -> int:
        """The current size of the lexemes that the grammars of the vocabulary share.

        They belong to no single grammar, so `get_cache_size_bytes` does not count them. For each
        `Limits` in use they take no more than its `lexicon_bytes`, plus, during a call, what the
        call works with.
        """
        return self._vocabulary.lexicon_size_bytes

    def _compile_source(self, source: Source) -> CompiledGrammar:
        if self._cache is None:
            return self._compiled(source, source.build(self._limits))
        return self._cache.get(source, lambda: self._compiled(source, source.build(self._limits)))

    def _compiled(self, source: Source, core: _core.Grammar) -> CompiledGrammar:
        if isinstance(source, (RegexSource, EbnfSource, LarkSource)):
            _warn_of_names(core, self._tokenizer_info)
        return CompiledGrammar(source, core, self._tokenizer_info, self._vocabulary, self._bounds)


def _warn_of_names(core: _core.Grammar, tokenizer_info: TokenizerInfo) -> None:
    """Warn if a grammar spells the name of a special token, which models write as one token."""
    names = [name for name in tokenizer_info.special_token_names if len(name) >= _SHORTEST_NAME]
    for name in core.names_as_text(names) if names else ():
        warnings.warn(
            f"the grammar spells {name!r} as text, which is a special token of the vocabulary, "
            "too: a model that writes the token does not write the text. Where the token is meant, "
            f"write it as one: {name} in Lark, Token(id) in EBNF; the texts of a structural tag "
            "mean both",
            stacklevel=5,
        )


def checked_info(tokenizer_info: Any) -> TokenizerInfo:
    """The vocabulary that was given; raises TypeError for anything else."""
    if not isinstance(tokenizer_info, TokenizerInfo):
        raise TypeError(
            f"tokenizer_info is a {type(tokenizer_info).__name__}, but must be a "
            "TokenizerInfo: TokenizerInfo.from_huggingface makes one of a tokenizer"
        )
    return tokenizer_info


class _Flight:
    """A compilation in progress, and the threads that wait for it."""

    def __init__(self) -> None:
        # Locked until the compilation has ended. An event would do, but setting one takes several
        # steps of Python, between which a signal handler may raise; releasing a lock is a single
        # step.
        self.under_way = Lock()
        self.under_way.acquire()
        self.thread = get_ident()
        self.compiled: CompiledGrammar | None = None
        self.error: StencilError | None = None


@dataclass(slots=True, eq=False)
class _Entry:
    """A cached grammar, and its size when it was last measured."""

    source: Source
    compiled: CompiledGrammar
    size_bytes: int = 0


class _Cache:
    """The latest compiled grammars within a budget of bytes, and the compilations in progress."""

    # Grammars grow while they are used, so their sizes are measured repeatedly. With every new
    # entry, measure those used last, which grow the most, and some of the others in turn.
    _USED_LAST = 2
    _IN_TURN = 6

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._lock = RenewedLock(self._forget_other_threads)
        # Least recently used first. Not an OrderedDict: if a signal handler raises within a hash,
        # it reports a missing key instead.
        self._entries: dict[Source, _Entry] = {}
        # Least recently measured first.
        self._turn: OrderedDict[_Entry, None] = OrderedDict()
        self._total = 0
        # Whether the fields above are being changed. If a signal handler raises meanwhile, they are
        # inconsistent.
        self._is_changing = False
        self._flights: dict[Source, _Flight] = {}

    def get(self, source: Source, compile_it: Callable[[], CompiledGrammar]) -> CompiledGrammar:
        if self._lock.is_mine:
            return compile_it()  # A signal handler interrupted an access to the cache.
        with self._lock.held:
            known = self._known(source)
        return self._compile(source, compile_it) if known is None else known

    def _known(self, source: Source) -> CompiledGrammar | None:
        self._begin()
        known = self._entries.pop(source, None)
        if known is not None:
            self._entries[source] = known
            self._measure(known)
        self._is_changing = False
        return None if known is None else known.compiled

    def _begin(self) -> None:
        if self._is_changing:
            self._empty()
        self._is_changing = True

    def _empty(self) -> None:
        self._entries, self._turn, self._total = {}, OrderedDict(), 0

    def _compile(
        self, source: Source, compile_it: Callable[[], CompiledGrammar]
    ) -> CompiledGrammar:
        mine = _Flight()
        try:
            while True:
                with self._lock.held:
                    known = self._known(source)
                    if known is not None:
                        return known
                    flight = self._flights.get(source)
                    if flight is None or not flight.under_way.locked():
                        # A finished one is left behind if a signal handler raised.
                        flight = self._flights[source] = mine
                if flight is mine:
                    break
                if flight.thread == mine.thread:
                    # A signal handler requests what it interrupted: waiting would never end.
                    return compile_it()
                with _core.LockGuard(flight.under_way):
                    pass
                if flight.compiled is not None:
                    return flight.compiled
                if flight.error is not None:
                    # A copy: threads that raise the same exception would write into the same
                    # traceback.
                    raise copy.copy(flight.error)
                # The other thread was stopped for a reason unrelated to the grammar, such as an
                # interrupt.
                with self._lock.held:
                    if self._flights.get(source) is flight:
                        del self._flights[source]
            mine.compiled = compile_it()
        except StencilError as error:
            mine.error = copy.copy(error)
            raise
        finally:
            try:
                with self._lock.held:
                    if self._flights.get(source) is mine:
                        del self._flights[source]
                        if mine.compiled is not None:
                            self._add(source, mine.compiled)
            finally:
                # Also if a signal handler raised: other threads wait for this.
                mine.under_way.release()
        return mine.compiled

    def _forget_other_threads(self, was_locked: bool) -> None:
        """In a forked process, forget the compilations of other threads: they do not go on."""
        if was_locked:
            # One of them was changing these fields.
            self._empty()
        mine = get_ident()
        self._flights = {
            source: flight for source, flight in self._flights.items() if flight.thread == mine
        }

    def clear(self) -> None:
        if self._lock.is_mine:
            return  # As in `get`: what is being accessed stays.
        with self._lock.held:
            self._begin()
            self._empty()
            self._is_changing = False

    def measure(self) -> int:
        if self._lock.is_mine:
            return self._total
        with self._lock.held:
            self._begin()
            self._measure(*self._turn)
            self._is_changing = False
            return self._total

    def _add(self, source: Source, compiled: CompiledGrammar) -> None:
        self._begin()
        added = self._entries[source] = _Entry(source, compiled)
        self._turn[added] = None
        used_last = islice(reversed(self._entries.values()), 1 + self._USED_LAST)
        self._measure(*used_last, *islice(self._turn, self._IN_TURN))
        self._is_changing = False

    def _measure(self, *entries: _Entry) -> None:
        """Measure these entries; evict those that are too large, then others beyond the budget."""
        for entry in entries:
            size = entry.source.size_bytes + entry.compiled.memory_size_bytes
            self._total += size - entry.size_bytes
            entry.size_bytes = size
            self._turn.move_to_end(entry)
        for entry in entries:
            if entry.size_bytes > self._limit_bytes and entry in self._turn:
                self._drop(entry)  # evict it rather than all the others
        while self._total > self._limit_bytes:
            self._drop(next(iter(self._entries.values())))

    def _drop(self, entry: _Entry) -> None:
        del self._entries[entry.source]
        del self._turn[entry]
        self._total -= entry.size_bytes
