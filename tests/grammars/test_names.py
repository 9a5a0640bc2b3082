"""Names that are given at run time: symbol tables, and SELECT over the schema of a database."""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import stencilm
from bench.sql import Walker, connected, database, problem
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, SymbolTable, TokenizerInfo
from stencilm.errors import GrammarSyntaxError, LimitExceeded, StencilError

BYTES = TokenizerInfo([bytes([byte]) for byte in range(256)] + ["</s>"], stop_token_ids=[256])
COMPILER = GrammarCompiler(BYTES)
ODD = SymbolTable(["users", "orders", 'two "words"', "naïve", "user"])


def fits(grammar: Grammar, text: str) -> bool:
    matcher = GrammarMatcher(COMPILER.compile(grammar))
    return matcher.accept_string(text) and matcher.is_allowed(256)


def check(grammar: Grammar, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not fits(grammar, text)] == []
    assert [text for text in bad if fits(grammar, text)] == []


def test_a_table_in_ebnf() -> None:
    grammar = Grammar.from_ebnf('root ::= "from " %symbols("t") "."?', symbols={"t": ODD})
    good = [f"from {name}{end}" for name in ODD for end in ("", ".")]
    check(grammar, good, ["from ", "from use", "from userss", "from orders users"])
    assert Grammar.from_ebnf(str(grammar)) is not None


def test_a_table_in_lark_stands_in_rules_and_terminals() -> None:
    text = """
        start: "from" %symbols("t") ("," NAME)*
        NAME: %symbols("t") | "*"
        %ignore " "
    """
    grammar = Grammar.from_lark(text, symbols={"t": ODD})
    check(grammar, ["from users, *", "fromnaïve ,user", "from user"], ["from u", "from users,"])
    # The texts among the grammars that it uses may name the tables, too.
    other = Grammar.from_lark(
        "start: @other", grammars={"other": 'start: %symbols("t")'}, symbols={"t": ODD}
    )
    check(other, ["users"], ["use"])
    schema = Grammar.from_lark('start: %json {"x-stencilm-symbols": "t"}', symbols={"t": ODD})
    check(schema, ['"users"'], ["users", '"us"'])


def test_a_table_in_a_schema() -> None:
    schema = {
        "type": "object",
        "properties": {"table": {"x-stencilm-symbols": "t", "pattern": "s$"}},
        "propertyNames": {"x-stencilm-symbols": "keys"},
        "required": ["table"],
    }
    keys = SymbolTable(["table", "more"])
    grammar = Grammar.from_json_schema(schema, symbols={"t": ODD, "keys": keys})
    good = ['{"table": "users"}', '{"table": "orders", "more": 1}']
    check(grammar, good, ['{"table": "user"}', '{"table": "users", "less": 1}', '{"table": 1}'])
    assert "x-stencilm-symbols" in [finding.keyword for finding in grammar.report.enforced]
    quoted = Grammar.from_json_schema({"x-stencilm-symbols": "t"}, symbols={"t": ODD})
    check(quoted, ['"two \\"words\\""', '"naïve"'], ['"two "words""', "null"])


def test_a_grammar_is_known_by_its_tables() -> None:
    def made(names: list[str]) -> Grammar:
        return Grammar.from_ebnf('root ::= %symbols("t")', symbols={"t": SymbolTable(names)})

    assert made(["a", "b"]) == made(["b", "a", "b"]) != made(["a"])
    assert len({made(["a"]), made(["a"]), made(["b"])}) == 2
    assert pickle.loads(pickle.dumps(made(["a", "b"]))) == made(["a", "b"])
    compiler = GrammarCompiler(BYTES)
    text = 'root ::= %symbols("t")'
    one = compiler.compile_grammar(text, symbols={"t": SymbolTable(["a"])})
    two = compiler.compile_grammar(text, symbols={"t": SymbolTable(["b"])})
    assert GrammarMatcher(one).accept_string("a") and not GrammarMatcher(two).accept_string("a")
    schema = stencilm.JsonSchema({"x-stencilm-symbols": "t"}, symbols={"t": ODD})
    assert fits(Grammar.from_type(schema), '"users"')
    assert schema != stencilm.JsonSchema({"x-stencilm-symbols": "t"}, symbols={})
    for output_type in (
        stencilm.Ebnf(text, symbols={"t": ODD}),
        stencilm.Lark('start: %symbols("t")', symbols={"t": ODD}),
    ):
        assert fits(Grammar.from_type(output_type), "users")


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: SymbolTable([]), ValueError, "no names"),
        (lambda: SymbolTable(["a", ""]), ValueError, "empty name"),
        (lambda: SymbolTable("users"), TypeError, "must be a list"),
        (lambda: SymbolTable([1]), TypeError, r"names\[0\] is a int"),  # type: ignore[list-item]
        (lambda: SymbolTable(["\ud800"]), GrammarSyntaxError, "lone surrogate"),
        (
            lambda: Grammar.from_ebnf('root ::= %symbols("u")', symbols={"t": ODD}),
            GrammarSyntaxError,
            'line 1, column 19.*"u".*"t"',
        ),
        (
            lambda: Grammar.from_ebnf("root ::= %symbols(t)", symbols={"t": ODD}),
            GrammarSyntaxError,
            "line 1, column 19.*in quotes",
        ),
        (
            lambda: Grammar.from_lark('start: "a"\n | %symbols("u")', symbols={"t": ODD}),
            GrammarSyntaxError,
            'line 2, column 4.*"u"',
        ),
        (
            lambda: Grammar.from_json_schema({"items": {"x-stencilm-symbols": "u"}}),
            GrammarSyntaxError,
            '#/items.*"u".*give it in `symbols`',
        ),
        (
            lambda: Grammar.from_json_schema(
                {"x-stencilm-symbols": "u"}, on_unsupported="relax", symbols={"t": ODD}
            ),
            GrammarSyntaxError,
            '#: .*"u"',
        ),
        (
            lambda: Grammar.from_json_schema({"x-stencilm-symbols": 1}, symbols={"t": ODD}),
            GrammarSyntaxError,
            "must be the name of a table",
        ),
        (
            lambda: Grammar.from_ebnf('root ::= "a"', symbols={"t": ["a"]}),  # type: ignore[dict-item]
            TypeError,
            "must be a SymbolTable",
        ),
    ],
)
def test_what_is_wrong_is_said(make: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()  # type: ignore[operator]


SHOP = connected(
    [
        'CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, "from" DATE)',
        "CREATE TABLE orders (id INTEGER, user_id INTEGER REFERENCES users(id), price REAL)",
        'CREATE VIEW "per day" AS SELECT "from" AS day, count(*) AS n FROM users GROUP BY 1',
    ]
)


def test_what_a_select_may_say() -> None:
    grammar = stencilm.sql(SHOP)
    good = [
        "SELECT * FROM users",
        'SELECT name, "from" FROM users;',
        'SELECT day FROM "per day" WHERE n > 3',
        "SELECT DISTINCT users.name FROM users ORDER BY users.name DESC LIMIT 3 OFFSET 1",
        "SELECT COUNT(*) FROM users\nWHERE name LIKE 'a%' AND id BETWEEN 1 AND 9",
        "SELECT t1.name FROM users AS t1 WHERE t1.id IN (1, 2, 3) OR name IS NOT NULL",
        "SELECT users.name, SUM(orders.price) FROM users LEFT JOIN orders ON users.id = "
        "orders.user_id GROUP BY users.name HAVING SUM(orders.price) > 9 ORDER BY COUNT(*)",
        "SELECT t1.name FROM users AS t1 JOIN orders AS t2 ON t2.user_id = t1.id",
        "SELECT name FROM users WHERE id IN (SELECT user_id FROM orders WHERE price > 1.5)",
        "SELECT name FROM users WHERE NOT (name = 'it''s' OR id < -1)",
    ]
    bad = [
        "SELECT price FROM users",
        "SELECT from FROM users",
        "SELECT id FROM users JOIN orders ON users.id = orders.user_id",
        "SELECT t2.name FROM users AS t1 JOIN orders AS t2 ON t2.user_id = t1.id",
        "SELECT name FROM nobody",
        "SELECT name FROM users WHERE id = 'seven'",
        "SELECT name FROM users WHERE id IN (SELECT name FROM orders)",
        "SELECT name FROM users; DROP TABLE users",
        "DELETE FROM users",
    ]
    check(grammar, good, bad)
    assert [found for text in good if (found := problem(SHOP, text))] == []


def test_no_mask_leads_to_a_column_of_no_table() -> None:
    matcher = GrammarMatcher(COMPILER.compile(stencilm.sql(SHOP, tables=["users", "orders"])))
    assert matcher.accept_string("SELECT price, ")
    # Of the two tables one has this column, and it has no name.
    assert not matcher.accept_string("name")
    assert not matcher.is_allowed(ord("n"))
    assert matcher.accept_string("user_id FROM ")
    assert [chr(token) for token in range(256) if matcher.is_allowed(token)] == ["o"]


def test_random_statements_can_all_be_prepared() -> None:
    info = TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
    compiler = GrammarCompiler(info, cache_enabled=False)
    walker = Walker(info, list(info.decoded_vocab), np.random.default_rng(5))
    for seed in range(20):
        connection = connected(database(seed))
        compiled = compiler.compile(stencilm.sql(connection))
        for _ in range(5):
            assert problem(connection, walker.text(GrammarMatcher(compiled))) is None


def test_a_large_schema_has_a_grammar_of_its_size() -> None:
    sizes = []
    for tables in (50, 200):
        connection = connected(database(1, tables, 20))
        sizes.append(len(stencilm.sql(connection).source.text))  # type: ignore[attr-defined]
    assert sizes[1] < 6 * sizes[0]


def test_a_schema_is_read_as_the_database_reads_it() -> None:
    connection = connected(
        [
            "CREATE TABLE both (a INTEGER)",
            "CREATE TEMP TABLE both (b INTEGER)",
            "CREATE TABLE made (x, y AS (x + 1))",
        ]
    )
    connection.row_factory = sqlite3.Row
    grammar = stencilm.sql(connection)
    check(grammar, ["SELECT b FROM both", "SELECT y FROM made"], ["SELECT a FROM both"])
    assert stencilm.sql(connection) == grammar
    connection.execute("ALTER TABLE made ADD COLUMN z")
    assert stencilm.sql(connection) != grammar


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"tables": ["nobody"]}, ValueError, "no table or view 'nobody'.*'orders'"),
        ({"tables": "users"}, TypeError, "list of names"),
        ({"max_depth": 9}, ValueError, "from 0 to 8"),
        ({"max_depth": True}, TypeError, "must be an int"),
    ],
)
def test_wrong_arguments(arguments: dict[str, object], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        stencilm.sql(SHOP, **arguments)  # type: ignore[arg-type]


def test_a_schema_that_is_too_large_says_the_way_out() -> None:
    many = connected([f"CREATE TABLE t{number} (x)" for number in range(2_000)])
    with pytest.raises(LimitExceeded, match=r"grammar of 2,000 tables is too large: .*`tables`"):
        stencilm.sql(many)
    assert stencilm.sql(many, tables=["t7", "t8"])


def test_databases_that_cannot_be_read(tmp_path: Path) -> None:
    closed = sqlite3.connect(":memory:")
    closed.close()
    with pytest.raises(StencilError, match=r"cannot be read: Cannot operate on a closed database"):
        stencilm.sql(closed)
    (tmp_path / "text.db").write_text("no database " * 100)
    with pytest.raises(StencilError, match="cannot be read: file is not a database"):
        stencilm.sql(sqlite3.connect(tmp_path / "text.db"))
    # A name that is no UTF-8, as only a damaged file has it.
    damaged = connected(["CREATE TABLE a (b)", "PRAGMA writable_schema = ON"])
    damaged.execute(
        "UPDATE sqlite_master SET name = CAST(x'ff' AS TEXT), tbl_name = CAST(x'ff' AS TEXT)"
    )
    for reads in (str, bytes):
        damaged.text_factory = reads
        with pytest.raises(StencilError, match="the schema of the database cannot be read"):
            stencilm.sql(damaged)


def test_databases_without_a_grammar() -> None:
    with pytest.raises(TypeError, match=r"sqlite3\.Connection"):
        stencilm.sql("file.db")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no tables"):
        stencilm.sql(sqlite3.connect(":memory:"))
    broken = connected(["CREATE TABLE t (a)", "CREATE VIEW v AS SELECT a FROM t"])
    broken.execute("CREATE VIEW w AS SELECT absent FROM nowhere")
    with pytest.raises(StencilError, match=r"'w' cannot be read.*`tables`"):
        stencilm.sql(broken)
    check(stencilm.sql(broken, tables=["t", "V"]), ["SELECT a FROM v"], ["SELECT a FROM w"])
