"""Random SELECT statements over random SQLite databases: python -m bench.sql

Each text is a random walk over the tokens that the masks of `stencilm.sql` allow, and the database
itself decides whether it can prepare it. Masks are timed along the way, for each database with a
new grammar. There is no model: half of the tokens are drawn from all that are allowed, half from
those without letters and digits, so that literals end.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import stencilm
from bench import clock
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STENCILM_SHARED", ROOT.parent / "shared"))
RECORD = Path(__file__).parent / "records" / "sql.md"

_WORDS = (
    "id name user order item price count date city note total status code kind parent owner type "
    "email product created_at updated_at quantity amount active label region author title body"
).split()
_ODD = (
    "order", "Group", "two words", 'in "quotes"', "it's", "naïve", "日本", "1st", "a.b", "a--b",
    "x;y", "SELECT", "rowid", "%s", "tab\there", "a,b", "(c)", "true", "null", "*", "\\", "[d]",
)  # fmt: skip
_TYPES = (
    "INTEGER", "TEXT", "REAL", "BLOB", "VARCHAR(20)", "DECIMAL(10,2)", "BOOLEAN", "DATETIME",
    "DOUBLE", "", "FLOAT", "NUMERIC",
)  # fmt: skip


def quoted(name: str) -> str:
    """A quoted name, which SQL allows everywhere."""
    return '"' + name.replace('"', '""') + '"'


def database(seed: int, tables: int | None = None, columns: int | None = None) -> list[str]:
    """The statements that create a random schema, or one with this many tables and columns."""
    draw = random.Random(seed)
    statements: list[str] = []
    made: list[tuple[str, list[str]]] = []
    taken: set[str] = set()

    def name(taken: set[str]) -> str:
        for attempt in range(1000):
            if draw.random() < 0.15 and attempt < 20:
                found = draw.choice(_ODD)
            else:
                found = "_".join(draw.sample(_WORDS, 1 if attempt < 5 else 2))
                found = found if attempt < 20 else f"{found}_{attempt}"
            if found.lower() not in taken:
                taken.add(found.lower())
                return found
        raise AssertionError("a thousand names are enough")

    for _ in range(tables or draw.randint(1, 12)):
        of_table, used = name(taken), set[str]()
        listed = [name(used) for _ in range(columns or draw.randint(1, 12))]
        parts = [f"{quoted(column)} {draw.choice(_TYPES)}" for column in listed]
        if draw.random() < 0.3:
            parts[0] = f"{quoted(listed[0])} INTEGER PRIMARY KEY"
        if made and draw.random() < 0.6:
            target, theirs = draw.choice(made)
            parts.append(
                f"FOREIGN KEY ({quoted(draw.choice(listed))}) "
                f"REFERENCES {quoted(target)} ({quoted(theirs[0])})"
            )
        temporary = "TEMP " if draw.random() < 0.05 else ""
        statements.append(f"CREATE {temporary}TABLE {quoted(of_table)} ({', '.join(parts)})")
        made.append((of_table, listed))
    for _ in range(draw.randint(0, 2)):
        target, theirs = draw.choice(made)
        kept = ", ".join(map(quoted, draw.sample(theirs, draw.randint(1, len(theirs)))))
        statements.append(
            f"CREATE TEMP VIEW {quoted(name(taken))} AS SELECT {kept}, count(*) "
            f"FROM {quoted(target)} GROUP BY 1"
        )
    return statements


def connected(statements: list[str]) -> sqlite3.Connection:
    """An in-memory database with this schema."""
    connection = sqlite3.connect(":memory:")
    for statement in statements:
        connection.execute(statement)
    return connection


def _nothing_timed(call: Callable[..., object], *arguments: object) -> tuple[float, object]:
    return 0.0, call(*arguments)


@dataclass
class Walker:
    """Draws texts of a grammar, token by token."""

    info: TokenizerInfo
    spelled: list[bytes]
    draw: np.random.Generator
    longest: int = 120
    timed: Callable[..., tuple[float, object]] = _nothing_timed
    times: list[float] = field(default_factory=list)
    tokens: int = 0

    def __post_init__(self) -> None:
        self.signs = np.array(
            [
                (len(token) == 1 and token[0] < 128 and not token.isalnum()) or token == b"', "
                for token in self.spelled
            ]
        )
        self.mask: NDArray[np.int32] = np.zeros((self.info.vocab_size + 31) // 32, dtype=np.int32)

    def text(self, matcher: GrammarMatcher) -> str:
        """One text of the grammar; one that grows too long is completed in the shortest way."""
        stops = set(self.info.stop_token_ids)
        written: list[bytes] = []
        for _ in range(self.longest):
            taken, _result = self.timed(matcher.fill_next_token_bitmask, self.mask)
            self.times.append(taken)
            bits = np.unpackbits(self.mask.view(np.uint8), bitorder="little")
            allowed = np.flatnonzero(bits[: self.info.vocab_size])
            signs = allowed[self.signs[allowed]]
            few = signs if len(signs) and self.draw.random() < 0.5 else allowed
            token = int(self.draw.choice(few))
            if token in stops:
                return b"".join(written).decode()
            assert matcher.accept_token(token)
            self.tokens += 1
            written.append(self.spelled[token])
        written.append(matcher.shortest_completion())
        return b"".join(written).decode()


def problem(connection: sqlite3.Connection, text: str) -> str | None:
    """The database's error for a text; None if it can prepare it."""
    try:
        connection.execute(f"EXPLAIN {text}").fetchall()
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        return f"{error}: {text}"
    return None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sql", description=__doc__)
    parser.add_argument("--databases", type=int, default=50)
    parser.add_argument("--texts", type=int, default=1000, help="of all databases together")
    parser.add_argument("--tokenizer", default="gpt2", help="a folder in shared/tokenizers")
    parser.add_argument("--record", action="store_true", help=f"keep the table in {RECORD.name}")
    options = parser.parse_args()
    info = TokenizerInfo.from_file(SHARED / "tokenizers" / options.tokenizer)
    compiler = GrammarCompiler(info, cache_enabled=False)
    spelled = list(info.decoded_vocab)
    rows: list[str] = []
    kinds = [
        ("1 to 12 tables of 1 to 12 columns", options.databases, options.texts, None, None),
        ("40 tables of 20 columns", 4, 80, 40, 20),
        ("200 tables of 20 columns", 2, 40, 200, 20),
    ]
    for title, databases, texts, tables, columns in kinds:
        walker = Walker(info, spelled, np.random.default_rng(7), timed=clock.timed)
        again = Walker(info, spelled, np.random.default_rng(7), timed=clock.timed)
        wrong: list[str] = []
        made: list[float] = []
        done = 0
        for seed in range(databases):
            connection = connected(database(seed, tables, columns))
            start = time.perf_counter()
            grammar: Grammar = stencilm.sql(connection)
            compiled = compiler.compile(grammar)
            matcher = GrammarMatcher(compiled)
            matcher.fill_next_token_bitmask(walker.mask)
            made.append(1000 * (time.perf_counter() - start))
            for _ in range(texts // databases):
                found = problem(connection, walker.text(GrammarMatcher(compiled)))
                done += 1
                if found is not None:
                    wrong.append(found)
            for _ in range(texts // databases):  # the same texts, drawn alike
                again.text(GrammarMatcher(compiled))
        known = clock.summary("mask", again.times)
        times = clock.summary("mask", walker.times)
        rows.append(
            f"| {title} | {databases} | {done:,} | {done - len(wrong):,} | {walker.tokens:,} | "
            f"{np.median(made):.0f} | {times['mask p50']:.1f} | {times['mask p99']:.1f} | "
            f"{times['mask max']:.0f} | {known['mask p50']:.1f} | {known['mask p99']:.1f} |"
        )
        print(rows[-1], flush=True)
        for message in wrong[:5]:
            print("  cannot be prepared:", message)
    record = f"""# SELECT statements over SQLite databases

`python -m bench.sql --databases {options.databases} --texts {options.texts}` with the tokenizer \
{options.tokenizer} on {platform.machine()}, Python {platform.python_version()}, SQLite \
{sqlite3.sqlite_version}.

Random walks over the allowed tokens, at most {Walker.longest} of them, then the shortest end.
"Prepared" are those that SQLite compiles. Times of masks are in microseconds: "first" with a
grammar that was not used before, about 20 texts long, "again" for the same texts once more.
"Compile" is the schema read, the grammar made and the first mask, in milliseconds.

| database | databases | texts | prepared | tokens | compile | first p50 | first p99 | greatest \
| again p50 | again p99 |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
""" + "\n".join(rows)
    if options.record:
        RECORD.write_text(record + "\n")


if __name__ == "__main__":
    main()
