"""Random texts, written token by token through masks, are accepted by independent readers."""

from __future__ import annotations

import random
import re
from itertools import product

import numpy as np
import pytest

from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo, allocate_token_bitmask

from . import test_published

ALPHABET = [chr(code) for code in range(32, 127)] + ["\n", "\t", "é", "<end>", "ab", '":']


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    vocabulary = [text.encode() for text in ALPHABET]
    return GrammarCompiler(TokenizerInfo([*vocabulary, b""], stop_token_ids=[len(vocabulary)]))


def walk(compiler: GrammarCompiler, grammar: Grammar, seed: int, steps: int) -> str:
    """A text of the grammar: random tokens out of the masks, then the shortest way to an end."""
    choose = random.Random(seed)
    matcher = GrammarMatcher(compiler.compile_grammar(grammar))
    size = len(ALPHABET) + 1
    bitmask = np.asarray(allocate_token_bitmask(1, size))
    text = b""
    for _ in range(steps):
        matcher.fill_next_token_bitmask(bitmask)
        allowed = np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little")[:size])
        token = int(choose.choice(allowed.tolist()))
        if token == len(ALPHABET):
            return text.decode()
        assert matcher.accept_token(token)
        text += ALPHABET[token].encode()
    completion = matcher.shortest_completion()
    assert completion is not None
    return (text + completion).decode()


LARK = {
    "sums": r"""
        start: sum
        sum: sum ("+" | "-") product | product
        product: product ("*" | "/") item | item
        item: NUMBER | "-" item | "(" sum ")" | NAME
        %import common.NUMBER
        %import common.CNAME -> NAME
        %import common.WS_INLINE
        %ignore WS_INLINE
    """,
    "JSON": r"""
        ?start: value
        ?value: object | array | string | SIGNED_NUMBER -> number
              | "true" -> true | "false" -> false | "null" -> null
        array: "[" [value ("," value)*] "]"
        object: "{" [pair ("," pair)*] "}"
        pair: string ":" value
        string: ESCAPED_STRING
        %import common.ESCAPED_STRING
        %import common.SIGNED_NUMBER
        %import common.WS
        %ignore WS
    """,
    "templates": r"""
        start: "[" _list{item, ","} "]" ~ 1..2
        _list{x, sep}: x (sep x)*
        item: /[a-c]+/ | "[" _list{DIGIT, ";"}? "]"
        DIGIT: "0".."9"
        %ignore " "
    """,
}


@pytest.mark.parametrize("name", LARK)
def test_lark(compiler: GrammarCompiler, name: str) -> None:
    lark = pytest.importorskip("lark")
    reader = lark.Lark(LARK[name], parser="earley", lexer="dynamic_complete")
    grammar = Grammar.from_lark(LARK[name])
    for seed in range(40):
        text = walk(compiler, grammar, seed, steps=14)
        reader.parse(text)  # raises where the text is none of the grammar


def test_sql(compiler: GrammarCompiler) -> None:
    lark = pytest.importorskip("lark")
    # The toolkit reads what is ignored as long as it can, and has no `&` and `~`.
    sql = test_published.SQL.replace("%ignore SQL_COMMENT", "")
    keywords = "|".join(re.findall(r"/([a-z|]+)/i", sql))
    start, end = sql.index("    KEYWORD:"), sql.index("    STRING:")
    name = f"    NAME: /(?!({keywords})\\b)[A-Z_][A-Z0-9_]*/i\n"
    reader = lark.Lark(sql[:start] + name + sql[end:], parser="earley", lexer="dynamic_complete")
    grammar = Grammar.from_lark(sql)
    for seed in range(25):
        reader.parse(walk(compiler, grammar, seed, steps=30))


def test_python(compiler: GrammarCompiler) -> None:
    lark = pytest.importorskip("lark")
    text = test_published.published("python.lark").replace("%ignore COMMENT", "")
    marked = text.replace("%declare _INDENT _DEDENT", '_INDENT: "<in>"\n_DEDENT: "<out>"')
    reader = lark.Lark(marked, parser="earley", lexer="dynamic_complete", start="file_input")
    grammar = Grammar.from_lark(text, start="file_input", grammars=test_published.MARKS)
    for seed in range(8):
        reader.parse(walk(compiler, grammar, seed, steps=20))


PATTERNS = [
    r"[a-z]+\d{2,3}",
    r"(?i:yes|no)( maybe)*",
    r"\bfoo\b.*",
    r"a.*\b[0-9]\b|^x$",
    r"(\w+ ){1,3}\w",
    r"(?=.*\d)(?=.*[a-z])[a-z\d!]{3,5}",
    r"(?!foo|ab)[a-z]+(?<!x)",
    r'"(?!"").*?(?<!\\)(\\\\)*?"',
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(compiler: GrammarCompiler, pattern: str) -> None:
    grammar = Grammar.from_regex(pattern)
    for seed in range(40):
        text = walk(compiler, grammar, seed, steps=12)
        assert re.fullmatch(pattern, text, re.ASCII), text


SMALL = [
    r"(?=a)[ab1]*",
    r"(?!ab)[ab]+1?",
    r"(?:a(?=b)|b(?!a))[ab1]*",
    r".*(?<=ab)1*",
    r".*(?<!a)b(?=1).*",
    r"(?=.*1)(?!.*bb).*(?<=[a1])",
    r"(?:(?=a)..)?1",
    r"a*(?!b1).(?<=.)(?=.?1).*",
    r"(?<!a)b.*|(?=aa$).*|(?!.$)b*",
    r"(?=a(?!b)).*(?<=1)",
    r"b*?(?=1)(?:1|1a)(?<!b1)b?",
]


@pytest.mark.parametrize("pattern", SMALL)
def test_look_around_on_all_short_texts(compiler: GrammarCompiler, pattern: str) -> None:
    compiled = compiler.compile_regex(pattern)
    for length in range(6):
        for letters in product("ab1", repeat=length):
            text = "".join(letters)
            matcher = GrammarMatcher(compiled)
            found = matcher.accept_string(text) and matcher.is_completed()
            assert found is (re.fullmatch(pattern, text) is not None), text
