"""SELECT statements over the tables of one SQLite database, as a grammar.

One idea: which columns a text may name depends on its FROM clause, but the first columns come
before it. So the grammar has rules for each FROM clause, called a scope, which share the columns of
their tables: its size grows with the number of columns and of scopes. The first column decides the
scope: before it there is one alternative for each table, not for each scope.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from stencilm.errors import LimitExceeded, OperationCancelled
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.sqlite_schema import Kind, Table, folded, identifier, read_schema
from stencilm.grammars.symbols import SymbolTable
from stencilm.limits import DEFAULT_LIMITS, Limits
from stencilm.whole_numbers import whole_number

# Until the FROM clause is read, the matcher follows every scope that contains the columns named so
# far. A column name that occurs in more scopes than this must be qualified with its table.
_MOST_ALIKE = 32
# In a database of at most this many tables any two may be joined; in a larger one only those along
# foreign keys.
_MOST_FREELY_JOINED = 8
# Scopes of two tables, and of three.
_MOST_PAIRS = 256
_MOST_TRIPLES = 128
# SQLite's own bound on the columns of a result, and our bound on the items of a list.
_MOST_RESULTS = 2000
_MOST_ITEMS = 32
_ALIASES = ("t1", "t2", "t3")
_MOST_DEPTH = 8
# The kinds of columns, and the letters that name their rules.
_KINDS: dict[Kind, str] = {"number": "n", "text": "x", "other": "o"}

_SHARED = r"""
string    ::= %lexeme("'" ([^'\x00-\x1f\x7f] | "''")* "'")
number    ::= "-"? ("0" | [1-9] [0-9]{0,17}) ("." [0-9]{1,15})?
other     ::= number | string
compared  ::= " " ("=" | "<>" | "!=" | "<" | "<=" | ">" | ">=") " "
sp        ::= [ \n]
sum       ::= "SUM(" | "AVG("
extreme   ::= "MIN(" | "MAX("
joined    ::= sp ("JOIN " | "INNER JOIN " | "LEFT JOIN ")
every     ::= "COUNT(*)"
direction ::= (" ASC" | " DESC")?
natural   ::= "0" | [1-9] [0-9]{0,8}
limit     ::= sp "LIMIT " natural (" OFFSET " natural)?
"""


def sql(
    connection: sqlite3.Connection,
    *,
    tables: Iterable[str] | None = None,
    max_depth: int = 2,
    limits: Limits = DEFAULT_LIMITS,
) -> Grammar:
    """The SELECT statements that a SQLite database can prepare, as a grammar of its schema.

    Each text is one statement without side effects. Its tables and views exist, and each column
    belongs to a table in its FROM clause. A text may have DISTINCT, aggregates, joins, WHERE, GROUP
    BY with HAVING, ORDER BY and LIMIT, and subqueries in `IN (...)`. Names are spelled as in the
    schema, in double quotes where necessary; keywords and functions are uppercase.

    Joins are of two or three tables along their foreign keys, in either direction, and of any two
    tables if there are at most 8. Columns of joins are qualified with their table; so is a column
    whose name occurs in more than 32 tables. Tables may have the aliases t1, t2 and t3, in
    databases of at most 32 tables and for the first 32 joins.

    The schema is read once; make the grammar again if it changes. Grammars of equal schemas are
    equal.

    Args:
        connection: An open connection; only its main and temporary databases are read.
        tables: The names of the tables and views to use; None for all.
        max_depth: How deep subqueries may be nested, from 0 to 8.
        limits: How large and how costly the grammar may be.

    Raises:
        TypeError: An argument is of another type.
        ValueError: The database has no tables, or none of a name; `max_depth` is out of range.
        GrammarSyntaxError: A view or a virtual table cannot be read; says which. Or the database
            cannot: its connection is closed, or its file is none of SQLite.
        LimitExceeded: The schema is too large.

    Examples:
        >>> import sqlite3, stencilm
        >>> connection = sqlite3.connect(":memory:")
        >>> _ = connection.execute("CREATE TABLE users (id INTEGER, name TEXT)")
        >>> grammar = stencilm.sql(connection)
        >>> info = stencilm.TokenizerInfo([chr(code) for code in range(32, 127)] + ["</s>"])
        >>> compiled = stencilm.GrammarCompiler(info).compile(grammar)
        >>> def fits(text):
        ...     return stencilm.GrammarMatcher(compiled).accept_string(text)
        >>> fits("SELECT name FROM users WHERE id = 7"), fits("SELECT age"), fits("DROP")
        (True, False, False)
    """
    max_depth = whole_number("max_depth", max_depth, least=0, most=_MOST_DEPTH)
    return _Writer(read_schema(connection, tables), max_depth).grammar(limits)


@dataclass(frozen=True, slots=True)
class _Scope:
    """A FROM clause: its tables by number, and whether they have aliases."""

    tables: tuple[int, ...]
    is_aliased: bool


@dataclass(slots=True)
class _Writer:
    """Writes the rules of the grammar.

    Names of rules are letters and a number. With `c` (the columns of a table), `b` (those that may
    be unqualified) and `q` (the qualified ones) it is the number of a table, otherwise of a scope.
    """

    tables: list[Table]
    max_depth: int
    rules: list[str] = field(default_factory=lambda: [_SHARED])
    symbols: dict[str, SymbolTable] = field(default_factory=dict)

    def grammar(self, limits: Limits) -> Grammar:
        self._columns()
        self._tails()
        scopes = list(self._scopes())
        for number, scope in enumerate(scopes):
            self._scope(number, scope)
        self._root(scopes)
        text = "\n".join(self.rules)
        try:
            return Grammar.from_ebnf(text, symbols=self.symbols, limits=limits)
        except OperationCancelled:
            raise
        except LimitExceeded as error:
            raise LimitExceeded(
                f"the grammar of {len(self.tables):,} tables is too large: {error}; give `tables` "
                "with the names of those that a query may read"
            ) from error

    def _rule(self, name: str, *alternatives: str) -> str:
        self.rules.append(f"{name} ::= {' | '.join(alternatives)}")
        return name

    def _columns(self) -> None:
        """Write, for each table, the rules of its columns of each kind, and of all kinds."""
        alike: dict[str, int] = {}
        for table in self.tables:
            for column in table.columns:
                alike[folded(column.name)] = alike.get(folded(column.name), 0) + 1
        for number, table in enumerate(self.tables):
            qualifier = _literal(identifier(table.name) + ".")
            of_all: list[str] = []
            for kind, letter in _KINDS.items():
                columns = [column.name for column in table.columns if column.kind == kind]
                few = [name for name in columns if alike[folded(name)] <= _MOST_ALIKE]
                for prefix, names in (("c", columns), ("b", few)):
                    if names:
                        rule = f"{prefix}{letter}{number}"
                        self.symbols[rule] = SymbolTable(map(identifier, names))
                        self._rule(rule, f'%symbols("{rule}")')
                if columns:
                    body = f"{qualifier} c{letter}{number}"
                    of_all.append(self._rule(f"q{letter}{number}", body))
            self._rule(f"c{number}", *(f"c{rule[1:]}" for rule in of_all))
            self._rule(f"q{number}", *of_all)

    def _tails(self) -> None:
        """Write what may follow a column in a condition, for each kind and subquery depth."""
        for depth in range(self.max_depth + 1):
            nested = [f'" NOT"? " IN (" subquery{depth - 1} ")"'] if depth else []
            null = self._rule(f"null{depth}", '" IS " "NOT "? "NULL"', *nested)
            for kind, letter in _KINDS.items():
                value = "string" if kind == "text" else kind
                like = ['" NOT"? " LIKE " string'] if kind != "number" else []
                self._rule(
                    f"tail-{letter}{depth}",
                    f"compared {value}",
                    f'" NOT"? " BETWEEN " {value} " AND " {value}',
                    f'" NOT"? " IN (" {value} (", " {value}){{0,63}} ")"',
                    null,
                    *like,
                )
        for depth in range(self.max_depth):
            queries = " | ".join(f"s{number}-{depth}" for number in range(len(self.tables)))
            self._rule(f"subquery{depth}", f'"SELECT " "DISTINCT "? ({queries})')

    def _scopes(self) -> Iterator[_Scope]:
        """Every table alone, then joins: first along foreign keys, then of any two tables."""
        count = len(self.tables)
        number = {table.name: at for at, table in enumerate(self.tables)}
        linked: list[set[int]] = [set() for _ in self.tables]
        for at, table in enumerate(self.tables):
            for target in table.refers_to:
                if target in number:
                    linked[at].add(number[target])
                    linked[number[target]].add(at)
        for at in range(count):
            yield _Scope((at,), False)
        pairs = [(at, other) for at in range(count) for other in sorted(linked[at])]
        if count <= _MOST_FREELY_JOINED:
            known = set(pairs)
            every = ((at, other) for at in range(count) for other in range(count))
            pairs += [pair for pair in every if pair not in known]
        # SQLite bounds the number of columns that `*` may stand for.
        pairs = [pair for pair in pairs if self._results(pair) <= _MOST_RESULTS][:_MOST_PAIRS]
        triples: list[tuple[int, ...]] = []
        for one, other in pairs:
            if other in linked[one]:
                triples += [
                    (one, other, third)
                    for third in sorted(linked[one] | linked[other])
                    if len({one, other, third}) == 3
                    and self._results((one, other, third)) <= _MOST_RESULTS
                ]
        joins = [*pairs, *triples[:_MOST_TRIPLES]]
        for join in joins:
            if len(set(join)) == len(join):
                yield _Scope(join, False)
        if count <= _MOST_ALIKE:
            for at in range(count):
                yield _Scope((at,), True)
        for join in joins[:_MOST_ALIKE]:
            yield _Scope(join, True)

    def _named(self, scope: _Scope, at: int, letter: str) -> str:
        """The columns of one kind, or of all, of a table in a scope, qualified with the table."""
        number = scope.tables[at]
        if scope.is_aliased:
            return f'"{_ALIASES[at]}." c{letter}{number}'
        return f"q{letter}{number}"

    def _columns_named(self, scope: _Scope, letter: str) -> list[str]:
        """How columns of a kind are named: in a join qualified, so that none is ambiguous."""
        alternatives = [
            self._named(scope, at, letter)
            for at, number in enumerate(scope.tables)
            if f"c{letter}{number}" in self.symbols
        ]
        if len(scope.tables) == 1 and f"b{letter}{scope.tables[0]}" in self.symbols:
            alternatives.append(f"b{letter}{scope.tables[0]}")
        return alternatives

    def _scope(self, number: int, scope: _Scope) -> None:
        """Write the rules of a scope: for the items of a list, and for all that follows FROM."""
        letters: list[str] = []
        for letter in _KINDS.values():
            alternatives = self._columns_named(scope, letter)
            if alternatives:
                self._rule(f"{letter}{number}", *alternatives)
                letters.append(letter)
        column = self._rule(f"a{number}", *(f"{letter}{number}" for letter in letters))
        summed = [f"{letter}{number}" for letter in letters if letter != "x"]
        aggregate = self._rule(f"g{number}", *_aggregates(column, summed))
        stars: list[str] = []
        if self._has_stars(scope):
            stars = [_literal(f"{self._called(scope, at)}.*") for at in range(len(scope.tables))]
        self._rule(f"i{number}", column, aggregate, "every", *stars)
        is_table = len(scope.tables) == 1 and not scope.is_aliased
        for depth in range(0 if is_table else self.max_depth, self.max_depth + 1):
            self._where(number, letters, depth)
            if is_table and depth < self.max_depth:
                query = f"({column} | {aggregate} | every) {self._from(scope)} w{number}-{depth}?"
                self._rule(f"s{number}-{depth}", query)
        key = self._rule(f"k{number}", f"{column} direction")
        of_group = self._rule(f"h{number}", f"({column} | {aggregate} | every) direction")
        self._rule(
            f"t{number}",
            f"w{number}-{self.max_depth}? ("
            f'sp "GROUP BY " {column} (", " {column}){{0,7}} '
            f'(sp "HAVING " ({aggregate} | every) compared number)? '
            f'(sp "ORDER BY " {of_group} (", " {of_group}){{0,7}})? '
            f'| (sp "ORDER BY " {key} (", " {key}){{0,7}})?) limit?',
        )

    def _where(self, number: int, letters: list[str], depth: int) -> None:
        test = self._rule(
            f"p{number}-{depth}",
            *(
                f"{letter}{number} (tail-{letter}{depth} | compared {letter}{number})"
                for letter in letters
            ),
        )
        several = f'"(" {test} ((" AND " | " OR ") {test}){{1,7}} ")"'
        condition = self._rule(f"d{number}-{depth}", f'"NOT "? ({test} | {several})')
        self._rule(
            f"w{number}-{depth}",
            f'sp "WHERE " {condition} (sp ("AND " | "OR ") {condition}){{0,15}}',
        )

    def _called(self, scope: _Scope, at: int) -> str:
        """The name of a table within a scope."""
        return _ALIASES[at] if scope.is_aliased else identifier(self.tables[scope.tables[at]].name)

    def _from(self, scope: _Scope) -> str:
        """The FROM clause of a scope."""
        parts = [f'sp "FROM " {self._source(scope, 0)}']
        parts += [self._join(scope, at) for at in range(1, len(scope.tables))]
        return " ".join(parts)

    def _source(self, scope: _Scope, at: int) -> str:
        name = identifier(self.tables[scope.tables[at]].name)
        return _literal(f"{name} AS {_ALIASES[at]}" if scope.is_aliased else name)

    def _join(self, scope: _Scope, at: int) -> str:
        """The JOIN that adds one more table to a scope."""
        here = self._named(scope, at, "")
        others = [self._named(scope, other, "") for other in range(at)]
        before = others[0] if at == 1 else f"({' | '.join(others)})"
        condition = f'({before} " = " {here} | {here} " = " {before})'
        return f'joined {self._source(scope, at)} sp "ON " {condition}'

    def _has_stars(self, scope: _Scope) -> bool:
        """Whether every item of a list may be `*` without too many columns in total."""
        return self._results(scope.tables) * _MOST_ITEMS <= _MOST_RESULTS

    def _results(self, tables: Iterable[int]) -> int:
        return sum(len(self.tables[table].columns) for table in tables)

    def _root(self, scopes: list[_Scope]) -> None:
        """Write the root: lists of results by first column, with the scopes that contain it."""
        firsts: dict[tuple[str, int], list[tuple[_Scope, int, int]]] = {}
        bare: dict[int, list[int]] = {}
        for number, scope in enumerate(scopes):
            self._rule(
                f"r{number}",
                f'(", " i{number}){{0,{_MOST_ITEMS - 2}}} {self._from(scope)} t{number}',
            )
            for at, table in enumerate(scope.tables):
                key = (_ALIASES[at] if scope.is_aliased else "", table)
                firsts.setdefault(key, []).append((scope, at, number))
            if len(scope.tables) == 1:
                bare.setdefault(scope.tables[0], []).append(number)
        alternatives = ['(every | "*") sources']
        for count, ((_, table), found) in enumerate(firsts.items()):
            scope, at, _ = found[0]
            named = {letter: self._named(scope, at, letter) for letter in ("", *_KINDS.values())}
            stars = [_literal(f"{self._called(scope, at)}.*")]
            if not all(self._has_stars(scope) for scope, _, _ in found):
                stars = []
            first = self._first(f"f{count}", table, "c", named, stars)
            rest = self._rule(f"m{count}", *(f"r{number}" for _, _, number in found))
            alternatives.append(f"{first} {rest}")
        for table, numbers in bare.items():
            letters = [letter for letter in _KINDS.values() if f"b{letter}{table}" in self.symbols]
            if letters:
                of_all = self._rule(f"b{table}", *(f"b{letter}{table}" for letter in letters))
                named = {"": of_all} | {letter: f"b{letter}{table}" for letter in letters}
                first = self._first(f"e{table}", table, "b", named, [])
                alternatives.append(f"{first} ({' | '.join(f'r{number}' for number in numbers)})")
        tree = {scope: number for number, scope in enumerate(scopes)}
        self._rule("sources", f'sp "FROM " ({self._tree(tree, False, ())})')
        if any(scope.is_aliased for scope in scopes):
            self.rules.append(f'  | sp "FROM " ({self._tree(tree, True, ())})')
        self._rule(
            "root", f'"SELECT " "DISTINCT "? (every ", ")? ({" | ".join(alternatives)}) ";"?'
        )

    def _first(
        self, name: str, table: int, prefix: str, named: dict[str, str], stars: list[str]
    ) -> str:
        """Write the rule of a first result whose columns come from these alternatives by kind."""
        summed = [named[letter] for letter in "no" if f"{prefix}{letter}{table}" in self.symbols]
        return self._rule(name, named[""], *_aggregates(named[""], summed), *stars)

    def _tree(self, scopes: dict[_Scope, int], is_aliased: bool, before: tuple[int, ...]) -> str:
        """FROM clauses that begin with these tables, with what follows each, as a prefix tree."""
        at = len(before)
        alike = {
            scope: number
            for scope, number in scopes.items()
            if scope.is_aliased == is_aliased and scope.tables[:at] == before
        }
        alternatives: list[str] = []
        if _Scope(before, is_aliased) in alike:
            alternatives.append(f"t{alike[_Scope(before, is_aliased)]}")
        behind: dict[int, dict[_Scope, int]] = {}
        for scope, number in alike.items():
            if len(scope.tables) > at:
                behind.setdefault(scope.tables[at], {})[scope] = number
        for table, those in behind.items():
            scope = _Scope((*before, table), is_aliased)
            place = self._join(scope, at) if at else self._source(scope, 0)
            alternatives.append(f"{place} ({self._tree(those, is_aliased, scope.tables)})")
        return " | ".join(alternatives)


def _aggregates(column: str, summed: list[str]) -> list[str]:
    """Aggregates of a column, and sums of columns that may be numbers."""
    alternatives = [f'"COUNT(" "DISTINCT "? ({column}) ")"', f'extreme ({column}) ")"']
    if summed:
        alternatives.append(f'sum "DISTINCT "? ({" | ".join(summed)}) ")"')
    return alternatives


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
