"""How much work, time and memory a grammar may cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn, Self

from stencilm import _core
from stencilm.shown import shown_value
from stencilm.whole_numbers import whole_number

_MOST = {"automaton_states": 2**30 - 1, "schema_bytes": 2**30}
_MOST_ENTRIES = 2**31
_MOST_BYTES = 2**48


class CancelToken(_core.CancelToken):
    """Ends, from any thread, the operations that were given it with `Limits(cancel=token)`.

    An operation that is under way ends within about 50 ms, and every later one at once, with
    `OperationCancelled`. Nothing is spoiled by it: matchers stand where they stood, and other
    limits may be used with the same tokenizer meanwhile.

    Examples:
        >>> import stencilm
        >>> token = stencilm.CancelToken()
        >>> limits = stencilm.Limits(cancel=token)
        >>> token.cancel()  # from any thread
        >>> try:
        ...     stencilm.Grammar.from_regex("[a-z]+", limits=limits)
        ... except stencilm.OperationCancelled:
        ...     print("cancelled:", token.is_cancelled)
        cancelled: True
    """

    __slots__ = ()

    def cancel(self) -> None:
        """Ends these operations; there is no way back. May be called any number of times."""
        super().cancel()

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return super().is_cancelled

    def __repr__(self) -> str:
        """Whether it was cancelled."""
        return f"<{type(self).__name__}{' (cancelled)' if self.is_cancelled else ''}>"

    def __reduce__(self) -> NoReturn:
        """Refused: what ends operations of this process is nothing to another one."""
        raise TypeError(
            "a CancelToken cannot be pickled: make one in the process whose operations it ends"
        )

    def __copy__(self) -> Self:
        """Itself: a copy would end nothing."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Itself: a copy would end nothing."""
        return self


class _Read:
    """What the core made of the bounds: kept beside them, and no bound itself."""

    __slots__ = ("core",)
    core: _core.Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(_Read):
    """Bounds on what a `GrammarCompiler` compiles, and on the matchers of it.

    Where a bound is reached the answer is a `LimitExceeded` that names it, except for
    `lexicon_bytes` and `mask_cache_bytes`, which only bound what is kept. Names in bytes count
    bytes, the others count things or milliseconds.

    Attributes:
        schema_bytes: Longest schema, EBNF text or pattern, in UTF-8. Only schemas may be longer
            than 1 MiB. A structural tag, which has the schemas of many tools, may be eight times as
            long.
        grammar_expressions: Most regular expressions, each part counted, that a grammar's lexemes
            are made of. Only schemas may have more than the default.
        derived_expressions: Most expressions that one operation, such as one mask, derives from
            those.
        search_steps: Most expressions that are visited to tell whether an intersection or a
            complement of lexemes matches anything.
        automaton_states: Most states of one automaton; it holds the lexemes that may come at one
            place.
        working_bytes: What one operation, such as one mask, may add to automata and to the
            expressions that they are derived from; and what the text of one matcher may need of
            them, where it is read once more (see `lexicon_bytes`).
        stack_bytes: What the stacks of one matcher may hold, its whole history included.
        lexicon_bytes: What the lexemes may hold that grammars of one tokenizer and of equal limits
            share: automata, and what is known of all tokens in their states. Where they hold more,
            those that no call is working with are dropped, and worked out again where they are
            asked for: a matcher then reads what it has accepted once more.
        mask_cache_bytes: What the masks may hold that are kept for one grammar. Where they hold
            more, all of them are dropped.
        milliseconds: The longest time that one operation may take: reading a notation, compiling
            it, or one mask. It is processor time. A batch is one operation: each of its threads
            has so much time for all of its sequences. Where Python's main thread compiles, Ctrl-C
            ends it, too.
        cancel: Ends every operation when it is cancelled, with `OperationCancelled`; None where
            only the bounds end them.

    Examples:
        >>> import stencilm
        >>> limits = stencilm.Limits(milliseconds=200)
        >>> grammar = stencilm.Grammar.from_regex("[a-z]{1,99}", limits=limits)
        >>> limits.schema_bytes == stencilm.Limits().schema_bytes
        True
    """

    schema_bytes: int = 1 << 20
    grammar_expressions: int = 1_200_000
    derived_expressions: int = 1_000_000
    search_steps: int = 100_000
    automaton_states: int = 500_000
    working_bytes: int = 256 << 20
    stack_bytes: int = 256 << 20
    lexicon_bytes: int = 128 << 20
    mask_cache_bytes: int = 16 << 20
    milliseconds: int = 5_000
    cancel: CancelToken | None = None

    def __post_init__(self) -> None:
        """Checks that every bound is a number that can be one.

        Raises:
            TypeError: A bound is no int, or `cancel` no token.
            ValueError: It is negative, or larger than this library can count.
        """
        for name in BOUNDS:
            usual = _MOST_BYTES if name.endswith("_bytes") else _MOST_ENTRIES
            most = _MOST.get(name, usual)
            number = whole_number(name, getattr(self, name), least=0, most=most)
            object.__setattr__(self, name, number)
        if self.cancel is not None and not isinstance(self.cancel, CancelToken):
            raise TypeError(
                f"cancel is {shown_value(self.cancel):.80}, but must be a CancelToken, or None"
            )
        object.__setattr__(self, "core", _core.Limits(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Made anew from the bounds, for the core's part of it is no data."""
        return _limits, (*(getattr(self, name) for name in BOUNDS), self.cancel)


BOUNDS = tuple(each.name for each in fields(Limits) if each.name != "cancel")


def _limits(*values: Any) -> Limits:
    return Limits(**dict(zip((*BOUNDS, "cancel"), values, strict=True)))


DEFAULT_LIMITS = Limits()


def checked_limits(limits: Any) -> Limits:
    """The limits, if that is what they are; raises TypeError."""
    if not isinstance(limits, Limits):
        raise TypeError(
            f"limits is a {type(limits).__name__}, but must be Limits, such as "
            "Limits(automaton_states=10_000)"
        )
    return limits


def uncancelled(limits: Limits) -> Limits:
    """The bounds alone."""
    return limits if limits.cancel is None else replace(limits, cancel=None)


def widest(several: Iterable[Limits]) -> Limits:
    """The widest bound of each kind, and the first token."""
    distinct = list(dict.fromkeys(several))
    if len(distinct) == 1:
        return distinct[0]
    bounds = {name: max(getattr(one, name) for one in distinct) for name in BOUNDS}
    tokens = (one.cancel for one in distinct if one.cancel is not None)
    return Limits(**bounds, cancel=next(tokens, None))
