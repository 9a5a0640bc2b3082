"""Names that a text declares and refers to: masks against all texts of small grammars, one by one."""

from __future__ import annotations

import json
import pickle
import random
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import pytest

from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenIndex, TokenizerInfo
from stencilm.errors import StencilError, UnsupportedFeature

LETTERS = "abxy"
_TOKENS = [*LETTERS, *map("".join, product(LETTERS, repeat=2)), "aba", "xab", "aya", "abxab", "axax"]
STOP = len(_TOKENS)
INFO = TokenizerInfo([token.encode() for token in _TOKENS] + ["</s>"], stop_token_ids=[STOP])
COMPILER = GrammarCompiler(INFO, cache_enabled=False)

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
        """All texts with the names that there are behind each."""
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
                f'%declares("{name}"' in node.ebnf for name in "st" if f'%refers("{name}"' in node.ebnf
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
