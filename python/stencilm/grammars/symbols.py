"""Names that are only known at run time, as parts of grammars: tables of a database, ids.

One idea: a table of names is a value like any other option of a source, so a grammar with names is
still identified by its source.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from stencilm.grammars.texts import checked_mapping, checked_text
from stencilm.shown import shown_value


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SymbolTable:
    """A set of names, any of which may come where a grammar has `%symbols("...")`.

    Tables of equal names are equal. A name is any text of at least one character, and may contain
    spaces and quotes. A grammar is made with its tables, so it does not follow later changes.

    Args:
        names: The names, at least one; duplicates count once.

    Attributes:
        names: The names, sorted.

    Raises:
        TypeError: The names are not strings, or are a single string.
        ValueError: There is no name, or one is empty.
        GrammarSyntaxError: A name has a lone surrogate, which no text can spell.

    Examples:
        >>> import stencilm
        >>> tables = stencilm.SymbolTable(["users", "orders"])
        >>> grammar = stencilm.Grammar.from_ebnf(
        ...     'root ::= "from " %symbols("tables")', symbols={"tables": tables}
        ... )
        >>> "users" in tables, len(tables), tables
        (True, 2, SymbolTable(['orders', 'users']))
    """

    names: tuple[str, ...]

    def __init__(self, names: Iterable[str]) -> None:
        if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
            raise TypeError(
                f"names is {shown_value(names):.80}, but must be a list or another iterable of "
                "texts: SymbolTable(['users', 'orders'])"
            )
        unique = {checked_text(f"names[{at}]", name) for at, name in enumerate(names)}
        if not unique:
            raise ValueError(
                "a symbol table has no names, so nothing could stand where it is used; give one "
                "at least, or leave its part out of the grammar"
            )
        if "" in unique:
            raise ValueError(
                "a symbol table has an empty name; leave it out, and write its part as optional"
            )
        object.__setattr__(self, "names", tuple(sorted(unique)))

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        """The first names, and how many more there are."""
        shown = ", ".join(map(repr, self.names[:4]))
        more = f", ... {len(self) - 4} more" if len(self) > 4 else ""
        return f"{type(self).__name__}([{shown}{more}])"


SYMBOLS = "x-stencilm-symbols"
"""The keyword of a schema that names a table."""

Symbols: TypeAlias = tuple[tuple[str, SymbolTable], ...]


def checked_symbols(symbols: Mapping[str, Any] | None) -> Symbols:
    """The tables by name, sorted; raises TypeError and ValueError."""
    checked: list[tuple[str, SymbolTable]] = []
    for name, table in checked_mapping("symbols", symbols).items():
        if not checked_text("a key of symbols", name):
            raise ValueError("a key of symbols is empty, but must name its table")
        if not isinstance(table, SymbolTable):
            raise TypeError(
                f"symbols[{name!r}] is a {type(table).__name__}, but must be a SymbolTable: "
                "SymbolTable(names)"
            )
        checked.append((name, table))
    return tuple(sorted(checked, key=lambda entry: entry[0]))


def symbol_texts(symbols: Mapping[str, SymbolTable]) -> tuple[tuple[str, str], ...]:
    """The tables as JSON arrays beside a schema, each under its URI."""
    return tuple(
        (f"{SYMBOLS}:{name}", json.dumps(table.names, ensure_ascii=False))
        for name, table in checked_symbols(symbols)
    )


def size_bytes(symbols: Symbols) -> int:
    """The approximate size of the tables."""
    return sum(64 + len(name) for _, table in symbols for name in table.names)


def rows(symbols: Symbols) -> list[tuple[str, list[str]]]:
    """The tables in the form that the core takes."""
    return [(name, list(table.names)) for name, table in symbols]
