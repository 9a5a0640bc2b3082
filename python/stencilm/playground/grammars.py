"""The grammar that a state of the page describes.

One idea: the text in the editors is untrusted, including SQL. Tables are created in an in-memory
database, through a connection that can do nothing else: it attaches no files, loads no code, and
stops when its time or its memory is used up.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from stencilm.errors import GrammarSyntaxError, LimitExceeded, StencilError
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.holes import HOLE
from stencilm.grammars.sql import sql
from stencilm.grammars.symbols import SymbolTable
from stencilm.limits import Limits
from stencilm.playground.questions import State

SECONDS_FOR_TABLES = 2.0
# A row holds at most 2,000 values. The authorizer is not called while a function runs, and the time
# of `instr` and LIKE is the product of the lengths of their texts.
_MOST_VALUE_BYTES = 1 << 17
_MOST_PATTERN_BYTES = 100
_MOST_DATABASE_PAGES = 8 << 10  # of 4 KiB; each table takes one or more
_STEPS_BETWEEN_LOOKS = 10_000
_OF_TABLES = frozenset(
    {
        sqlite3.SQLITE_CREATE_TABLE,
        sqlite3.SQLITE_CREATE_INDEX,
        sqlite3.SQLITE_CREATE_VIEW,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_INSERT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_REINDEX,
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_UPDATE,
    }
)


def grammar_of(state: State, limits: Limits) -> Grammar:
    """The grammar, or the grammar of a hole if there is text after it.

    Raises:
        StencilError: The grammar, the names or the tables are not well-formed, or no text fits
            before the one after the hole.
    """
    grammar = _whole(state, limits)
    return grammar.fill([HOLE, state.behind]) if state.behind else grammar


def _whole(state: State, limits: Limits) -> Grammar:
    if state.notation == "sql":
        with _tables(state.grammar) as connection:
            return sql(connection, limits=limits)
    symbols = _symbols(state.names)
    if state.notation == "json-schema":
        return Grammar.from_json_schema(
            state.grammar,
            any_whitespace=not state.compact,
            separators=(",", ":") if state.compact else None,
            strict_mode=state.strict,
            on_unsupported="relax" if state.relax else "error",
            symbols=symbols,
            limits=limits,
        )
    with_names: dict[str, Callable[..., Grammar]] = {
        "ebnf": Grammar.from_ebnf,
        "lark": Grammar.from_lark,
    }
    if state.notation in with_names:
        return with_names[state.notation](state.grammar, symbols=symbols, limits=limits)
    others: dict[str, Callable[..., Grammar]] = {
        "regex": Grammar.from_regex,
        "structural-tag": Grammar.from_structural_tag,
    }
    return others[state.notation](state.grammar, limits=limits)


def _symbols(names: str) -> dict[str, SymbolTable] | None:
    """The tables of names, from a JSON object with a list of names for each."""
    if not names.strip():
        return None
    try:
        found: Any = json.loads(names, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise GrammarSyntaxError(
            f'the names are no JSON ({error}): write them like {{"people": ["ada", "grace"]}}'
        ) from error
    if not isinstance(found, dict) or not all(isinstance(each, list) for each in found.values()):
        raise GrammarSyntaxError(
            'the names must be an object with a list for each table: {"people": ["ada", "grace"]}'
        )
    if "" in found:
        raise GrammarSyntaxError(
            'the names have a table without a name: name it, as in {"people": ["ada", "grace"]}'
        )
    tables = {}
    for name, each in found.items():
        try:
            tables[name] = SymbolTable(each)
        except (TypeError, ValueError) as error:
            raise GrammarSyntaxError(f"the names {name!r}: {error}") from error
    return tables


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; raises ValueError if a name occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{twice!r:.80} stands there twice")
    return found


@contextmanager
def _tables(script: str) -> Iterator[sqlite3.Connection]:
    """An in-memory database with the tables and views of a script.

    Reading them has the same bounds, since views on views may take long to read; errors in reading
    are reported like errors in creating them.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_VALUE_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _MOST_PATTERN_BYTES)
        connection.execute(f"PRAGMA max_page_count = {_MOST_DATABASE_PAGES}")
        deadline = time.monotonic() + SECONDS_FOR_TABLES
        allowed: frozenset[int] | None = _OF_TABLES

        def is_over() -> bool:
            return time.monotonic() > deadline

        def may(action: int, *_: Any) -> int:
            # SQLite calls this for every part of a statement before running it, so the deadline
            # holds.
            is_allowed = not is_over() and (allowed is None or action in allowed)
            return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY

        connection.set_progress_handler(is_over, _STEPS_BETWEEN_LOOKS)
        connection.set_authorizer(may)
        try:
            try:
                connection.executescript(script)
            except sqlite3.OperationalError as error:
                raise GrammarSyntaxError(f"the tables cannot be made: {error}") from error
            except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
                raise GrammarSyntaxError(
                    f"the tables cannot be made ({error}): give CREATE TABLE and CREATE VIEW alone"
                ) from error
            allowed = None
            yield connection
        except (StencilError, sqlite3.Error, ValueError) as error:
            if is_over() and not isinstance(error, LimitExceeded):
                raise LimitExceeded(
                    f"making and reading the tables took more than {SECONDS_FOR_TABLES:.0f} s: "
                    "leave out rows, or views that name views"
                ) from error
            if isinstance(error, StencilError):
                raise
            raise GrammarSyntaxError(str(error)) from error  # such as that there are no tables
