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
    """Ends, from any thread, the operations whose limits have it: `Limits(cancel=token)`.

    A running operation ends within about 50 ms, and every later one at once, with
    `OperationCancelled`. Matchers keep their state, and other limits may be used with the same
    tokenizer meanwhile.

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
        """Raises: another process cannot cancel operations of this one."""
        raise TypeError(
            "a CancelToken cannot be pickled: make one in the process whose operations it ends"
        )

    def __copy__(self) -> Self:
        """Returns itself: a copy would cancel nothing."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Returns itself: a copy would cancel nothing."""
        return self


class _Read:
    """The core's form of the bounds: kept beside them, but not compared."""

    __slots__ = ("core",)
    core: _core.Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(_Read):
    """Bounds for a `GrammarCompiler` and its matchers.

    When a bound is reached, a `LimitExceeded` names it, except for `lexicon_bytes` and
    `mask_cache_bytes`, which only limit caches. Names in bytes count bytes, the others count things
    or milliseconds.

    Attributes:
        schema_bytes: The longest schema, EBNF text or pattern, in UTF-8. Only schemas may be longer
            than 1 MiB. A structural tag, which has the schemas of many tools, may be eight times as
            long.
        grammar_expressions: The most regular expressions, counting each part, in a grammar's
            lexemes. Only schemas may have more than the default.
        derived_expressions: The most expressions that one operation, such as one mask, derives from
            these.
        search_steps: The most expressions visited to decide whether an intersection or a complement
            of lexemes matches anything.
        automaton_states: The most states of one automaton, for the lexemes that may come at one
            position.
        working_bytes: What one operation, such as one mask, may add to automata and the expressions
            that they are derived from; and what the text of one matcher may need of them when it is
            read again (see `lexicon_bytes`).
        stack_bytes: The size of the stacks of one matcher, including its whole history.
        lexicon_bytes: The size of the lexemes that grammars with the same tokenizer and limits
            share: automata, and what is known of all tokens in their states. Beyond it, lexemes
            that no call is working with are dropped, and computed again when needed: a matcher then
            reads its accepted text again.
        mask_cache_bytes: The size of the masks cached for one grammar. Beyond it, all of them are
            dropped.
        milliseconds: The longest time of one operation, in processor time: reading a notation,
            compiling it, or one mask. A batch is one operation: each of its threads has this time
            for all of its sequences. When Python's main thread compiles, Ctrl-C ends it, too.
        cancel: Ends every operation with `OperationCancelled` when it is cancelled; None for no
            cancellation.

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
        """Check that every bound is a valid number.

        Raises:
            TypeError: A bound is not an int, or `cancel` is not a token.
            ValueError: A bound is negative, or larger than this library can count.
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
        """Pickle the bounds alone, because the core's part cannot be pickled."""
        return _limits, (*(getattr(self, name) for name in BOUNDS), self.cancel)


BOUNDS = tuple(each.name for each in fields(Limits) if each.name != "cancel")


def _limits(*values: Any) -> Limits:
    return Limits(**dict(zip((*BOUNDS, "cancel"), values, strict=True)))


DEFAULT_LIMITS = Limits()


def checked_limits(limits: Any) -> Limits:
    """Check that the value is a `Limits` and return it; raises TypeError."""
    if not isinstance(limits, Limits):
        raise TypeError(
            f"limits is a {type(limits).__name__}, but must be Limits, such as "
            "Limits(automaton_states=10_000)"
        )
    return limits


def uncancelled(limits: Limits) -> Limits:
    """The bounds without the cancel token."""
    return limits if limits.cancel is None else replace(limits, cancel=None)


def widest(several: Iterable[Limits]) -> Limits:
    """The largest bound of each kind, and the first token."""
    distinct = list(dict.fromkeys(several))
    if len(distinct) == 1:
        return distinct[0]
    bounds = {name: max(getattr(one, name) for one in distinct) for name in BOUNDS}
    tokens = (one.cancel for one in distinct if one.cancel is not None)
    return Limits(**bounds, cancel=next(tokens, None))
