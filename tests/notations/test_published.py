"""Published grammars as a user would have them: of Python, JSON and Lark by Lark, and of SQL."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import stencilm
from stencilm import CompiledGrammar, Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo

JSON = r"""
    ?start: value

    ?value: object
          | array
          | string
          | SIGNED_NUMBER      -> number
          | "true"             -> true
          | "false"            -> false
          | "null"             -> null

    array  : "[" [value ("," value)*] "]"
    object : "{" [pair ("," pair)*] "}"
    pair   : string ":" value

    string : ESCAPED_STRING

    %import common.ESCAPED_STRING
    %import common.SIGNED_NUMBER
    %import common.WS

    %ignore WS
"""

SQL = r"""
    start: statement (";" statement)* ";"?
    ?statement: select | insert | delete

    select: "select"i ["distinct"i] columns "from"i source join* [where] [group] [order] [limit]
    columns: "*" | _list{column}
    column: expression ["as"i NAME]
    source: NAME ["as"i NAME] | "(" select ")" "as"i NAME
    join: ["left"i | "inner"i] "join"i source "on"i condition
    where: "where"i condition
    group: "group"i "by"i _list{expression} ["having"i condition]
    order: "order"i "by"i _list{sorting}
    sorting: expression ["asc"i | "desc"i]
    limit: "limit"i INT
    insert: "insert"i "into"i NAME "(" _list{NAME} ")" "values"i _list{row}
    row: "(" _list{expression} ")"
    delete: "delete"i "from"i NAME [where]

    ?condition: condition "or"i both | both
    ?both: both "and"i test | test
    ?test: "not"i test | expression COMPARE expression | "(" condition ")"
         | expression ["not"i] "in"i "(" _list{expression} ")" | expression "is"i ["not"i] "null"i
    ?expression: expression ("+" | "-") product | product
    ?product: product ("*" | "/") item | item
    ?item: NUMBER | STRING | NAME ["." NAME] | call | "(" expression ")"
    call: NAME "(" ("*" | _list{expression}) ")"

    _list{x}: x ("," x)*
    COMPARE: "=" | "<>" | "!=" | "<=" | ">=" | "<" | ">"
    KEYWORD: /select|from|where|and|or|not|in|is|null|join|on|as|group|order|by|limit/i
           | /insert|into|values|delete|having|left|inner|distinct|asc|desc/i
    NAME: /[A-Za-z_][A-Za-z0-9_]*/ & ~KEYWORD
    STRING: /'([^']|'')*'/
    %import common (INT, NUMBER, WS, SQL_COMMENT)
    %ignore WS
    %ignore SQL_COMMENT
"""

# The toolkit's own indenter makes these tokens; a text has none, so the tests write marks for them.
MARKS = {"_INDENT": 'start: "<in>"', "_DEDENT": 'start: "<out>"'}

PYTHON_INSIDE = [
    "x = 1\n",
    'x = "a" + \'b\\\'\' + r"c\\""\n',
    'x = """a"b\nc"""\n',
    "def f(a, *b, c=1):\n<in>return a ** -2 # so\n<out>",
    "for i in range(10): print(i, end='')\n",
    "@d.e(1)\nclass A(B):\n<in>async def f(self) -> int:\n<in>if self.x not in {1, 2}:\n"
    "<in>pass\n<out>else:\n<in>return [y for y in self if y]\n<out><out><out>",
    "x = 00 + 0x1F + 1_000 + 1e-9j + \\\n  .5\n",
    "match x:\n<in>case [1, *_]:\n<in>pass\n<out><out>",
]
PYTHON_OUTSIDE = [
    'x = "a" b "c"\n',
    'x = """"\n',
    "for i in range(10) print(i)\n",
    "def f(a):\nreturn a\n",
    "x = (1, 2\n",
    "x = 01\n",
    "x = 'a\n'\n",
]


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny"))


def accepts(compiled: CompiledGrammar, text: str) -> bool:
    matcher = GrammarMatcher(compiled)
    return matcher.accept_string(text) and matcher.is_completed()


def published(name: str) -> str:
    lark: Any = pytest.importorskip("lark")
    return (Path(lark.__file__).parent / "grammars" / name).read_text("utf-8")


def test_python(compiler: GrammarCompiler) -> None:
    text = published("python.lark")
    compiled = compiler.compile_lark(text, start="file_input", grammars=MARKS)
    for inside in PYTHON_INSIDE:
        assert accepts(compiled, inside), inside
    for outside in PYTHON_OUTSIDE:
        assert not accepts(compiled, outside), outside
    again = compiler.compile_grammar(Grammar.from_ebnf(str(compiled.grammar)))
    assert all(accepts(again, inside) for inside in PYTHON_INSIDE)

    # The toolkit says the same of these texts, with the marks as terminals.
    lark = import_module("lark")
    marked = text.replace("%declare _INDENT _DEDENT", '_INDENT: "<in>"\n_DEDENT: "<out>"')
    reader = lark.Lark(marked, parser="lalr", start="file_input")
    for inside in PYTHON_INSIDE:
        reader.parse(inside)
    for outside in PYTHON_OUTSIDE:
        with pytest.raises(lark.exceptions.LarkError):
            reader.parse(outside)


def test_masks_of_python(compiler: GrammarCompiler) -> None:
    """So many threads are alive that masks follow them together."""
    text = published("python.lark")
    compiled = compiler.compile_lark(text, start="file_input", grammars=MARKS)
    info = compiler.tokenizer_info
    mask = stencilm.allocate_token_bitmask(1, info.vocab_size)
    for start in ("", "x", "x = (1", "def f(a, *b,", "return a # s"):
        matcher = GrammarMatcher(compiled)
        assert matcher.accept_string(start), start
        matcher.fill_next_token_bitmask(mask)
        for token in range(info.vocab_size):
            is_set = bool(int(mask[0][token // 32]) >> token % 32 & 1)
            assert is_set == matcher.is_allowed(token), (start, info.decoded_vocab[token])


def test_what_python_declares_must_be_given() -> None:
    with pytest.raises(stencilm.UnsupportedFeature, match="`_INDENT` is declared"):
        Grammar.from_lark(published("python.lark"), start="file_input")


def test_json(compiler: GrammarCompiler) -> None:
    compiled = compiler.compile_lark(JSON)
    for inside in ('{"a": [1, -2.5e3, true, null], "b\\"": {}}', ' "x" ', "[\n]"):
        assert accepts(compiled, inside), inside
    for outside in ("{a: 1}", '{"a" 1}', "[1,]", '"x'):
        assert not accepts(compiled, outside), outside


def test_lark_in_lark(compiler: GrammarCompiler) -> None:
    text = published("lark.lark")
    compiled = compiler.compile_lark(text)
    assert accepts(compiled, '?start: "a"i /b[^\\n]*/is -> c\n  | d{e}~1..2\n%ignore X // y\n')
    assert not accepts(compiled, 'start: "a')


def test_sql(compiler: GrammarCompiler) -> None:
    compiled = compiler.compile_lark(SQL)
    for inside in (
        "select * from a",
        "SELECT DISTINCT a.b AS c, count(*) FROM t AS u LEFT JOIN v ON u.x = v.x "
        "WHERE a > 1 AND NOT (b = 'it''s' OR c IS NOT NULL) GROUP BY a HAVING sum(b) >= 2 "
        "ORDER BY a DESC, b LIMIT 10;",
        "insert into t (a, b) values (1, 'x'), (2, 'y') -- two\n; delete from t where a in (1, 2)",
        "select a from (select b from c) as d",
    ):
        assert accepts(compiled, inside), inside
    for outside in (
        "select from a",
        "select a where b = 1",
        "delete t",
        "select a from from",
        "select a from b limit x",
    ):
        assert not accepts(compiled, outside), outside
