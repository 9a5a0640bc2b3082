"""How much work, time and memory a grammar may cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from stencilm import _core

_MOST = {"automaton_states": 2**30 - 1, "schema_bytes": 2**30}
_MOST_ENTRIES = 2**31
_MOST_BYTES = 2**48


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
            than 1 MiB.
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

    def __post_init__(self) -> None:
        """Checks that every bound is a number that can be one.

        Raises:
            TypeError: A bound is no int.
            ValueError: It is negative, or larger than this library can count.
        """
        for name in _BOUNDS:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} is {value!r:.80}, but must be an int")
            usual = _MOST_BYTES if name.endswith("_bytes") else _MOST_ENTRIES
            most = _MOST.get(name, usual)
            if not 0 <= value <= most:
                shown = value if abs(value) < 2**64 else "beyond 64 bits"
                raise ValueError(f"{name} is {shown}, but must be from 0 to {most}")
        object.__setattr__(self, "core", _core.Limits(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Made anew from the bounds, for the core's part of it is no data."""
        return _limits, tuple(getattr(self, name) for name in _BOUNDS)


_BOUNDS = tuple(each.name for each in fields(Limits))


def _limits(*values: int) -> Limits:
    return Limits(**dict(zip(_BOUNDS, values, strict=True)))


DEFAULT_LIMITS = Limits()


def checked_limits(limits: Any) -> Limits:
    """The limits, if that is what they are; raises TypeError."""
    if not isinstance(limits, Limits):
        raise TypeError(
            f"limits is a {type(limits).__name__}, but must be Limits, such as "
            "Limits(automaton_states=10_000)"
        )
    return limits


def widest(several: Iterable[Limits]) -> Limits:
    """The widest bound of each kind."""
    distinct = set(several)
    if len(distinct) == 1:
        return distinct.pop()
    return Limits(**{name: max(getattr(one, name) for one in distinct) for name in _BOUNDS})
