"""The tables and views of a SQLite database with their columns, as values.

One idea: the database itself describes its schema, once, so names mean here what they mean there.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from stencilm.errors import GrammarSyntaxError
from stencilm.grammars.texts import checked_text

Kind = Literal["number", "text", "other"]

# From SQLite's list of keywords. SQLite accepts some of them as names; quoting is always correct.
_KEYWORDS = frozenset(
    """
    ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN
    BETWEEN BY CASCADE CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS
    CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE
    DESC DETACH DISTINCT DO DROP EACH ELSE END ESCAPE EXCEPT EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL
    FALSE FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL GENERATED GLOB GROUP GROUPS HAVING IF IGNORE
    IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS ISNULL JOIN KEY LAST
    LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL NULLS OF OFFSET ON OR
    ORDER OTHERS OUTER OVER PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY RAISE RANGE RECURSIVE
    REFERENCES REGEXP REINDEX RELEASE RENAME REPLACE RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS
    SAVEPOINT SELECT SET TABLE TEMP TEMPORARY THEN TIES TO TRANSACTION TRIGGER TRUE UNBOUNDED UNION
    UNIQUE UPDATE USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW WITH WITHIN WITHOUT
    """.split()
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, and the kind of its values by its declared type."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view: its columns, and the tables that its foreign keys refer to."""

    name: str
    columns: tuple[Column, ...]
    refers_to: tuple[str, ...]


def identifier(name: str) -> str:
    """A name as SQL writes it: quoted if necessary."""
    if _PLAIN.fullmatch(name) and name.upper() not in _KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def folded(name: str) -> str:
    """Fold a name as SQLite compares names: the case of ASCII letters does not matter."""
    return "".join(c.lower() if c.isascii() else c for c in name)


def read_schema(connection: sqlite3.Connection, names: Iterable[str] | None) -> list[Table]:
    """The tables and views of the main and the temporary database, or only those with these names.

    Raises:
        TypeError: It is not a connection.
        ValueError: There are no tables, or none with one of the names.
        GrammarSyntaxError: A view or a virtual table cannot be read; says which. Or the database
            cannot: its connection is closed, or its file is not one of SQLite.
    """
    if not isinstance(connection, sqlite3.Connection):
        raise TypeError(
            f"connection is a {type(connection).__name__}, but must be a sqlite3.Connection: "
            "sqlite3.connect('file.db')"
        )

    def rows(query: str, *parameters: str) -> list[tuple[Any, ...]]:
        try:
            cursor = connection.cursor()
            cursor.row_factory = None
            return [tuple(map(_text, row)) for row in cursor.execute(query, parameters)]
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise GrammarSyntaxError(
                f"the schema of the database cannot be read: {error}; give an open connection to "
                "a database of SQLite, in the thread that opened it"
            ) from error

    # A temporary table hides a table of the main database with the same name.
    there = {
        folded(name): name
        for (name,) in rows(
            "SELECT name FROM main.sqlite_master WHERE type IN ('table', 'view') UNION ALL "
            "SELECT name FROM temp.sqlite_master WHERE type IN ('table', 'view')"
        )
        if not folded(name).startswith("sqlite_")
    }
    if names is not None:
        if isinstance(names, str):
            raise TypeError("tables is a str, but must be a list of names: tables=['users']")
        wanted = [checked_text("a name of tables", name) for name in names]
        missing = [name for name in wanted if folded(name) not in there]
        if missing:
            known = ", ".join(map(repr, sorted(there.values())[:8]))
            raise ValueError(
                f"the database has no table or view {missing[0]!r}; it has {known or 'none'}"
                + (f" and {len(there) - 8} more" if len(there) > 8 else "")
            )
        there = {folded(name): there[folded(name)] for name in wanted}
    tables: list[Table] = []
    for name in sorted(there.values()):
        try:
            connection.execute(f"EXPLAIN SELECT * FROM {identifier(name)}").fetchall()
        except sqlite3.Error as error:
            raise GrammarSyntaxError(
                f"the table or view {name!r} cannot be read: {error}; mend it, or give `tables` "
                "with the names of the others"
            ) from None
        columns = tuple(
            Column(column, _kind(declared))
            for column, declared, hidden in rows(
                "SELECT name, type, hidden FROM pragma_table_xinfo(?)", name
            )
            if hidden != 1
        )
        keys = rows('SELECT DISTINCT "table" FROM pragma_foreign_key_list(?) ORDER BY id', name)
        targets = (there.get(folded(target)) for (target,) in keys)
        if columns:
            tables.append(Table(name, columns, tuple(t for t in targets if t is not None)))
    if not tables:
        raise ValueError(
            "the database has no tables, so no SELECT could be written; create them first"
        )
    return tables


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _kind(declared: str | None) -> Kind:
    """The affinity of a declared type by SQLite's rules; "other" if both kinds are possible."""
    declared = (declared or "").upper()
    if "INT" in declared:
        return "number"
    if any(part in declared for part in ("CHAR", "CLOB", "TEXT")):
        return "text"
    if any(part in declared for part in ("REAL", "FLOA", "DOUB")):
        return "number"
    return "other"
