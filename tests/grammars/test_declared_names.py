"""Names that a text declares and refers to: masks against all texts of small grammars."""

from __future__ import annotations

import json
import pickle
import random
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import pytest

import stencilm
from stencilm import (
    HOLE,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    TokenIndex,
    TokenizerInfo,
)
from stencilm.errors import StencilError, UnsupportedFeature
from stencilm.grammars.holes import Hole
from tokenizer_folders import tokenizer_info

LETTERS = "abxy"
_TOKENS = [
    *LETTERS,
    *map("".join, product(LETTERS, repeat=2)),
    "aba",
    "xab",
    "aya",
    "abxab",
    "axax",
]
STOP = len(_TOKENS)
INFO = TokenizerInfo([token.encode() for token in _TOKENS] + ["</s>"], stop_token_ids=[STOP])
COMPILER = GrammarCompiler(INFO, cache_enabled=False)
COMPILER_OF_BYTES = GrammarCompiler(TokenizerInfo([bytes([byte]) for byte in range(128)]))

Env = frozenset[tuple[str, str]]
Texts = set[tuple[str, Env]]


class TooMany(Exception):
    pass


@dataclass(frozen=True)
class Node:
    """A part of a grammar without recursion, as EBNF and as the set of its texts."""

    kind: str
    parts: tuple[Node, ...] = ()
    words: tuple[str, ...] = ()
    set: str = ""
    counts: tuple[int, int] = (0, 0)

    @cached_property
    def ebnf(self) -> str:
        inner = [part.ebnf for part in self.parts]
        words = " | ".join(f'"{word}"' for word in self.words)
        match self.kind:
            case "text":
                return f"({words})"
            case "declares":
                return f'%declares("{self.set}": {words})'
            case "refers":
                return f'%refers("{self.set}")'
            case "either":
                return f"({' | '.join(inner)})"
            case "repeat":
                return f"{inner[0]}{{{self.counts[0]},{self.counts[1]}}}"
        return f"({' '.join(inner)})"

    def texts(self, env: Env) -> Texts:
        """All texts with the names that there are after each."""
        match self.kind:
            case "text":
                return {(word, env) for word in self.words}
            case "declares":
                return {(word, env | {(self.set, word)}) for word in self.words}
            case "refers":
                return {(name, env) for set, name in env if set == self.set}
            case "either":
                return {found for part in self.parts for found in part.texts(env)}
            case "repeat":
                return self.rounds(env)
        found: Texts = {("", env)}
        for part in self.parts:
            found = behind(found, part)
        return found

    def rounds(self, env: Env) -> Texts:
        found: Texts = {("", env)}
        everything: Texts = set()
        for count in range(self.counts[1] + 1):
            if count >= self.counts[0]:
                everything |= found
            found = behind(found, self.parts[0])
        return everything


def behind(found: Texts, part: Node) -> Texts:
    longer = {(text + more, env) for text, before in found for more, env in part.texts(before)}
    if len(longer) > 3000:
        raise TooMany
    return longer


def drawn(draw: random.Random, depth: int) -> Node:
    kinds = ["text", "declares", "refers"]
    if depth:
        kinds += ["either", "sequence", "sequence", "sequence", "repeat"]
    kind = draw.choice(kinds)
    words = tuple(sorted({"".join(draw.choices("ab", k=draw.randint(1, 2))) for _ in range(2)}))
    if kind == "text":
        words = tuple(sorted({draw.choice(["x", "y", "a", "xy", ""]) for _ in range(2)}))
    least = draw.randint(0, 1)
    return Node(
        kind,
        parts=tuple(drawn(draw, depth - 1) for _ in range(1 if kind == "repeat" else 3))
        if kind in ("either", "sequence", "repeat")
        else (),
        words=words,
        set=draw.choice("st" if draw.random() < 0.3 else "s"),
        counts=(least, draw.randint(max(1, least), 2)),
    )


def check_masks(grammar: Grammar, texts: set[str]) -> None:
    """Every mask on the way to every text holds the tokens that lead to one, and no others."""
    compiled = COMPILER.compile(grammar)
    prefixes = {text[:end] for text in texts for end in range(len(text) + 1)}
    shown = sorted(prefixes)
    shown = shown if len(shown) < 60 else random.Random(1).sample(shown, 60)
    for prefix in shown:
        matcher = GrammarMatcher(compiled)
        assert matcher.accept_string(prefix), (str(grammar), prefix)
        allowed = [token for token in range(STOP) if matcher.is_allowed(token)]
        expected = [at for at, token in enumerate(_TOKENS) if prefix + token in prefixes]
        names = [_TOKENS[token] for token in allowed], [_TOKENS[token] for token in expected]
        assert names[0] == names[1], (str(grammar), prefix)
        assert matcher.is_allowed(STOP) == (prefix in texts), (str(grammar), prefix)
        # By tokens, undone, and in a fork.
        matcher = GrammarMatcher(compiled)
        for token in INFO.tokenize_bytes(prefix.encode()):
            assert matcher.accept_token(token), (str(grammar), prefix)
        fork = matcher.fork()
        for token in expected:
            assert fork.accept_token(token), (str(grammar), prefix, token)
            assert prefix + _TOKENS[token] + fork.shortest_completion().decode() in texts
            fork.rollback(1)
        assert [token for token in range(STOP) if fork.is_allowed(token)] == expected


@pytest.mark.parametrize("seed", range(40))
def test_masks_are_those_of_all_texts(seed: int) -> None:
    draw = random.Random(seed)
    checked = 0
    for _ in range(40):
        node = Node("sequence", parts=tuple(drawn(draw, 2) for _ in range(3)))
        try:
            texts = {text for text, _ in node.texts(frozenset())}
        except TooMany:
            continue
        if '%refers("' not in node.ebnf or '%declares("' not in node.ebnf:
            continue
        try:
            grammar = Grammar.from_ebnf(f"root ::= {node.ebnf}")
        except StencilError:
            has_both = all(
                f'%declares("{name}"' in node.ebnf
                for name in "st"
                if f'%refers("{name}"' in node.ebnf
            )
            assert not texts or not has_both, node.ebnf
            continue
        assert texts, node.ebnf
        check_masks(grammar, texts)
        if checked == 0:
            check_masks(Grammar.from_ebnf(str(grammar)), texts)
            check_masks(Grammar.deserialize_json(grammar.serialize_json()), texts)
        checked += 1
        if checked == 3:
            return


GRAPH = {
    "type": "object",
    "properties": {
        "nodes": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"id": {"type": "string", "x-stencilm-declares": "ids"}},
                "required": ["id"],
                "additionalProperties": False,
            },
        },
        "edges": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "from": {"type": "string", "x-stencilm-refers": "ids"},
                    "to": {"type": "string", "x-stencilm-refers": "ids"},
                },
                "required": ["from", "to"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["nodes", "edges"],
    "additionalProperties": False,
}
BYTES = TokenizerInfo([bytes([byte]) for byte in range(256)] + ["</s>"], stop_token_ids=[256])
BYTE_COMPILER = GrammarCompiler(BYTES)


def fits(grammar: Grammar, text: str) -> bool:
    matcher = GrammarMatcher(BYTE_COMPILER.compile(grammar))
    return matcher.accept_string(text) and matcher.is_allowed(256)


def next_bytes(grammar: Grammar, text: str) -> str:
    matcher = GrammarMatcher(BYTE_COMPILER.compile(grammar))
    assert matcher.accept_string(text)
    return "".join(chr(byte) for byte in range(256) if matcher.is_allowed(byte))


def test_references_of_json() -> None:
    grammar = Grammar.from_json_schema(GRAPH, compact=True)
    good = [
        '{"nodes":[],"edges":[]}',
        '{"nodes":[{"id":"a"}],"edges":[{"from":"a","to":"a"}]}',
        '{"nodes":[{"id":"a"},{"id":"a b"}],"edges":[{"from":"a b","to":"a"}]}',
        # Names are equal where their values are.
        '{"nodes":[{"id":"\\u0061\\n"}],"edges":[{"from":"a\\u000a","to":"a\\n"}]}',
        '{"nodes":[{"id":""}],"edges":[{"from":"","to":""}]}',
    ]
    bad = [
        '{"nodes":[],"edges":[{"from":"a","to":"a"}]}',
        '{"nodes":[{"id":"a"}],"edges":[{"from":"a","to":"b"}]}',
        '{"nodes":[{"id":"ab"}],"edges":[{"from":"a","to":"ab"}]}',
    ]
    assert [text for text in good if not fits(grammar, text)] == []
    assert [text for text in bad if fits(grammar, text)] == []
    # No edge is begun where there is no name for it.
    assert next_bytes(grammar, '{"nodes":[],"edges":[') == "]"
    assert next_bytes(grammar, '{"nodes":[{"id":"a"}],"edges":[') == "]{"
    assert {finding.keyword for finding in grammar.report.enforced} >= {
        "x-stencilm-declares",
        "x-stencilm-refers",
    }


def test_a_name_is_required_where_a_reference_is() -> None:
    schema = json.loads(json.dumps(GRAPH))
    schema["properties"]["edges"]["minItems"] = 1
    grammar = Grammar.from_json_schema(schema, compact=True)
    assert next_bytes(grammar, '{"nodes":[') == "{"
    printed = Grammar.from_ebnf(str(grammar))
    saved = Grammar.deserialize_json(grammar.serialize_json())
    for same in (grammar, printed, saved):
        assert next_bytes(same, '{"nodes":[{"id":"xy"},{"id":"xz"}],"edges":[{"from":"x') == "\\yz"
    assert pickle.loads(pickle.dumps(grammar)) == grammar


def test_a_name_declared_on_one_way_only() -> None:
    """Until the kind is told, nobody knows whether the id is a name."""
    node = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "x-stencilm-declares": "ids"},
            "kind": {"const": "node"},
        },
        "required": ["id", "kind"],
        "additionalProperties": False,
    }
    note = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "kind": {"const": "note"}},
        "required": ["id", "kind"],
        "additionalProperties": False,
    }
    schema = {
        "type": "array",
        "prefixItems": [{"anyOf": [node, note]}, {"anyOf": [node, note]}],
        "items": {"type": "string", "x-stencilm-refers": "ids"},
        "minItems": 3,
    }
    grammar = Grammar.from_json_schema(schema, compact=True)
    notes = '[{"id":"a","kind":"note"},{"id":"b","kind":"no'
    assert next_bytes(grammar, notes) == "d"
    both = '[{"id":"a","kind":"note"},{"id":"b","kind":"node"},"'
    assert next_bytes(grammar, both) == "\\b"
    first = '[{"id":"a","kind":"node"},{"id":"b","kind":"note"},"'
    assert next_bytes(grammar, first) == "\\a"


def test_references_in_lark() -> None:
    grammar = Grammar.from_lark(
        """
        start: statement+
        statement: "let" %declares("names": NAME) "=" value ";" | "print" value ";"
        value: %refers("names") | /[0-9]+/
        NAME: /[a-z]+/
        %ignore " "
        """
    )
    assert fits(grammar, "let x = 1; let yy=x;print yy ;")
    assert not fits(grammar, "let x = y;")
    assert fits(grammar, "let x = 1; let x = x;")
    assert not fits(grammar, "let x = 1; print y;")
    assert next_bytes(grammar, "let x = 1; print ") == " 0123456789x"
    assert next_bytes(grammar, "print ") == " 0123456789"


def test_random_documents_have_no_dangling_reference() -> None:
    """Walks by tokens of many bytes, which declare a name and refer to it in one."""
    draw = random.Random(3)
    tokens = [chr(code) for code in range(32, 127)]
    tokens += ['"a"', '":"', '"},{"', '[{"id":"', '"}],"edges":[{"from":"', '","to":"', '"}]}']
    tokens += ["ab", "\\u0061", '{"nodes":[{"id":"a"}],"edges":[{"from":"a']
    tokens += ['"}],"edges":[{"from":"a","to"', '"}],"edges":[{"from":"b","to":"b"}]}']
    tokens += ['a"}],"edges":[{"from":"a']
    spelled = [token.encode() for token in tokens]
    info = TokenizerInfo([*spelled, "</s>"], stop_token_ids=[len(tokens)])
    compiled = GrammarCompiler(info).compile(Grammar.from_json_schema(GRAPH, compact=True))
    edges = 0
    for _ in range(200):
        matcher, text = GrammarMatcher(compiled), ""
        for _ in range(60):
            allowed = [token for token in range(len(tokens)) if matcher.is_allowed(token)]
            if not allowed:
                break
            # Longer tokens first: these cross the ends of names.
            long = [token for token in allowed if len(tokens[token]) > 1]
            token = draw.choice(long if long and draw.random() < 0.7 else allowed)
            assert matcher.accept_token(token)
            text += tokens[token]
        text += matcher.shortest_completion().decode()
        value = json.loads(text)
        names = {node["id"] for node in value["nodes"]}
        assert all(edge[end] in names for edge in value["edges"] for end in ("from", "to")), text
        edges += len(value["edges"])
    assert edges > 100


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"x-stencilm-declares": "ids"}, '#: x-stencilm-declares.*"type": "string"'),
        ({"type": "string", "x-stencilm-refers": 1}, "x-stencilm-refers is 1.*name of a set"),
        ({"type": "string", "x-stencilm-refers": "ids"}, "nothing declares any"),
        (
            {"type": "string", "x-stencilm-refers": "ids", "pattern": "a"},
            "#: x-stencilm-refers: a reference is any name",
        ),
        (
            {"type": "string", "x-stencilm-declares": "ids", "enum": ["a"]},
            "x-stencilm-declares: enum and const",
        ),
        (
            {"type": "string", "not": {"x-stencilm-refers": "ids"}},
            "x-stencilm-refers: it is negated",
        ),
        (
            {"type": "string", "allOf": [{"x-stencilm-refers": "a"}, {"x-stencilm-refers": "b"}]},
            "keep one of both",
        ),
        (
            {"type": "object", "propertyNames": {"x-stencilm-refers": "ids", "type": "string"}},
            "a key of an object is no name",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string", "x-stencilm-declares": "s"}}},
            '"s".*an object that is open.*additionalProperties: false',
        ),
        (
            {"type": "array", "uniqueItems": True,
             "items": {"type": "string", "x-stencilm-declares": "s"}},
            '"s".*elements must differ.*uniqueItems',
        ),
    ],
)  # fmt: skip
def test_schemas_whose_names_cannot_be_kept(schema: object, words: str) -> None:
    with pytest.raises(StencilError, match=words):
        Grammar.from_json_schema(schema)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('root ::= %refers("s")', '"s", and nothing declares any'),
        ('root ::= %declares("s": "a"?)', '"s" may be empty'),
        ('root ::= %declares("s": root)', "line 1, column"),
        ('root ::= %lexeme(%declares("s": "a"))', "a declaration of names stands within a term"),
        ('root ::= %declares(s: "a")', "line 1, column 20.*in quotes"),
        (
            'root ::= (%declares("s": "a") | "b"){100} %refers("s")',
            "large counts; give it no greatest count",
        ),
    ],
)
def test_texts_whose_names_cannot_be_kept(text: str, words: str) -> None:
    with pytest.raises(StencilError, match=words):
        Grammar.from_ebnf(text)


def test_what_does_not_go_together_is_said() -> None:
    plain = 'root ::= %declares("s": [a-c]+) ("," %refers("s"))*'
    with pytest.raises(UnsupportedFeature, match="declares names"):
        TokenIndex.from_grammar(Grammar.from_ebnf(plain), BYTES)
    with pytest.raises(StencilError, match="declares names and has captures"):
        BYTE_COMPILER.compile_grammar(f'{plain} more\nmore[capture] ::= "x"?')
    with pytest.raises(StencilError, match="declares names and has parts with max_tokens"):
        BYTE_COMPILER.compile_grammar(f'{plain} more\nmore[max_tokens=3] ::= "x"+')
    compiled = GrammarCompiler(tokenizer_info("tiny")).compile_grammar(Grammar.from_ebnf(plain))
    with pytest.raises(StencilError, match="declares names where only canonical tokens may come"):
        GrammarMatcher(compiled, canonical=True)


def test_a_batch_gives_the_masks_of_its_matchers() -> None:
    """Each row knows the names of its own text."""
    grammar = Grammar.from_ebnf('root ::= (%declares("s": "a" | "b" | "ab") "x")+ %refers("s")')
    compiled = COMPILER.compile(grammar)
    texts = ["ax", "bx", "abx", "axbx", "", "abxax"]
    matchers = [GrammarMatcher(compiled) for _ in texts]
    for matcher, text in zip(matchers, texts, strict=True):
        assert matcher.accept_string(text)
    batch = stencilm.BatchGrammarMatcher(max_threads=2)
    rows = stencilm.allocate_token_bitmask(len(texts), INFO.vocab_size)
    batch.batch_fill_next_token_bitmask(matchers, rows)
    for row, (matcher, text) in enumerate(zip(matchers, texts, strict=True)):
        alone = stencilm.allocate_token_bitmask(1, INFO.vocab_size)
        matcher.fill_next_token_bitmask(alone)
        assert np.array_equal(np.asarray(rows)[row], np.asarray(alone)[0]), text
        assert np.asarray(rows)[row].any(), text


REQUIRED = json.loads(json.dumps(GRAPH))
REQUIRED["properties"]["edges"]["minItems"] = 2


@pytest.mark.parametrize("budget", [60, 90])
def test_texts_with_references_are_complete_within_their_budget(budget: int) -> None:
    """The names that are written decide how many tokens their references take."""
    tokens = [chr(code) for code in range(32, 127)]
    tokens += [
        '{"nodes":[{"id":"',
        '"}],"edges":[{"from":"',
        '","to":"',
        '"},{"id":"',
        '"}]}',
        "ab",
    ]
    tokens += ["a" * 9, '"},{"from":"']
    info = TokenizerInfo(
        [token.encode() for token in tokens] + ["</s>"], stop_token_ids=[len(tokens)]
    )
    compiled = GrammarCompiler(info).compile(Grammar.from_json_schema(REQUIRED, compact=True))
    draw = random.Random(budget)
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    spent = 0
    for _ in range(20):
        matcher, text = GrammarMatcher(compiled, token_budget=budget), ""
        while True:
            matcher.fill_next_token_bitmask(mask)
            bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: info.vocab_size]
            allowed = [int(token) for token in np.flatnonzero(bits)]
            # Long names first, to which references are long.
            long = [token for token in allowed if token < len(tokens) and tokens[token].isalnum()]
            token = draw.choice(long if long and draw.random() < 0.6 else allowed)
            assert matcher.accept_token(token)
            if token == len(tokens):
                break
            text += tokens[token]
        spent += matcher.token_budget_left == 0
        assert matcher.token_budget_left is not None and matcher.token_budget_left >= 0, text
        value = json.loads(text)
        names = {node["id"] for node in value["nodes"]}
        assert all(edge[end] in names for edge in value["edges"] for end in ("from", "to")), text
        assert len(value["edges"]) >= 2
    assert spent > 0


def test_a_typed_call_is_complete_within_its_tokens() -> None:
    model = stencilm.load("tiny")
    value = model("A graph: ", stencilm.JsonSchema(REQUIRED), max_tokens=60, seed=1)
    names = {node["id"] for node in value["nodes"]}
    assert all(edge[end] in names for edge in value["edges"] for end in ("from", "to"))


def test_holes_in_texts_with_references() -> None:
    grammar = Grammar.from_ebnf(
        'root ::= (%declares("s": [a-c]+) ";")* ("&" %refers("s") "." | "*" [a-c]+ ".")'
    )
    # No reference is read, so which names there are does not matter.
    assert grammar.is_completable(["a;*", HOLE, "."])
    assert grammar.is_completable(["a;", HOLE, "b."]) and not grammar.is_completable([HOLE, "d."])
    undecided: list[list[str | bytes | Hole]] = [["a;&b."], ["a;&", HOLE, "."], [HOLE, "&b."]]
    for pieces in undecided:
        with pytest.raises(UnsupportedFeature, match="declared names"):
            grammar.is_completable(pieces)
    # References before the end of the hole are held against the names before them.
    hole = grammar.fill(["a;bb;", HOLE, "."])
    assert next_bytes(hole, "&") == "ab" and next_bytes(hole, "*") == "abc"
    assert next_bytes(grammar.fill(["a;&", HOLE]), "") == "a"
    with pytest.raises(UnsupportedFeature, match="declared names"):
        grammar.fill([HOLE, "&b."])
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "x-stencilm-declares": "s"},
            "b": {"type": "string"},
            "c": {"type": "string", "x-stencilm-refers": "s"},
        },
        "required": ["a", "b", "c"],
        "additionalProperties": False,
    }
    filled = Grammar.from_json_schema(schema, compact=True).fill(['{"a":"x","b":"', HOLE, "}"])
    assert next_bytes(filled, 'y","c":"') == "\\x"


def test_any_part_of_a_long_sequence_may_declare() -> None:
    """It is written out in parts, or 10,000 declarations would take as many sequences of all."""
    parts = " ".join(f'(%declares("s": "a{number}b") | "x")' for number in range(300))
    compiled = COMPILER_OF_BYTES.compile_grammar(f'root ::= {parts} (%refers("s") | "y")')

    def reads(text: str) -> bool:
        matcher = GrammarMatcher(compiled)
        return matcher.accept_string(text) and matcher.is_completed()

    for at in (0, 63, 64, 65, 150, 299):
        before, after = "x" * at, "x" * (299 - at)
        assert reads(f"{before}a{at}b{after}a{at}b")
        assert not reads(f"{before}a{at}b{after}a{at + 1}b")
    assert reads("x" * 300 + "y") and not reads("x" * 300 + "a0b")


@pytest.mark.parametrize(
    "rules",
    [
        '(%declares("s": [a-z]+) ";")+ "=" %refers("s")',
        '("<" %declares("s": [a-z]+) ">")* ("=" %refers("s"))?',
        '%declares("s": "a" | "b") (%refers("s") | %declares("t": "c") %refers("t"))*',
        '("x" | %declares("s": "a")){2,4} (%refers("s") | "y") ("x" %refers("s"))?',
        '(%declares("s": "a") | "-")\nroot ::= first (root | %refers("s") | "y")',
    ],
)
def test_a_printed_grammar_is_read_as_it_stands(rules: str) -> None:
    printed = str(
        Grammar.from_ebnf(f"root ::= {rules}" if "root" not in rules else f"first ::= {rules}")
    )
    assert str(Grammar.from_ebnf(printed)) == printed
    assert printed.count("%declares") <= 12


def test_a_grammar_whose_references_follow_declarations_has_no_copies() -> None:
    text = 'root ::= item+\nitem ::= %declares("s": %lexeme([a-z]+)) "=" %refers("s") ";"\n'
    printed = str(Grammar.from_ebnf(text))
    assert printed.count("%declares") == printed.count("%refers") == 1
