"""Random structural tags against a slow recogniser: texts, tokens, masks, ends and rollback."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo, allocate_token_bitmask
from stencilm.errors import GrammarSyntaxError, StencilError, Unsatisfiable
from structural_tags.recogniser import SPECIAL, Recogniser

NAMES = ["<a>", "</a>", "<|b|>", "[A]"]
LETTERS = ["a", "b", "c", "<", ">", "/", "é", "[", "A", "]"]
PATTERNS = ["[ab]+", "a|ab", "[ab<]{1,2}", "a*", "(ab)*", "<a>", "[^<]{0,3}", "b?c"]


class Case:
    """A random vocabulary and a random format over it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        single = [
            *(bytes([byte]) for byte in b"abc<>/[]A|"),
            *(bytes([byte]) for byte in b"\xc3\xa9\x80"),
        ]
        longer = ["".join(self.chance.choices(LETTERS, k=size)).encode() for size in [2, 3, 4] * 8]
        parts = dict.fromkeys([*single, *longer, b"<a>", b"<a", b"a>", b"\xa9a"])
        self.vocabulary = list(parts)
        self.special = {
            name: len(self.vocabulary) + index
            for index, name in enumerate(self.chance.sample(NAMES, self.chance.randrange(5)))
        }
        self.stop = len(self.vocabulary) + len(self.special)
        every: list[str | bytes] = [*self.vocabulary, *self.special, "<stop>"]
        of_model = [*self.special.values(), self.stop]
        self.info = TokenizerInfo(every, stop_token_ids=[self.stop], special_token_ids=of_model)
        self.words: list[str] = ["a"]
        self.tag = self.format(self.chance.choice([1, 2, 2, 3]))

    def word(self) -> str:
        kind = self.chance.random()
        letters = "".join(self.chance.choices("ab" if kind < 0.6 else LETTERS, k=3))
        letters = letters[: self.chance.randrange(1, 4)]
        if kind < 0.3:
            marker = self.chance.choice(NAMES)
            letters = self.chance.choice([marker, letters[:1] + marker, marker + letters[:1]])
        self.words.append(letters)
        return letters

    def several(self, most: int) -> list[str]:
        return list(dict.fromkeys(self.word() for _ in range(self.chance.randrange(1, most + 1))))

    def token(self) -> int | str:
        if self.special and self.chance.random() < 0.8:
            return self.chance.choice(list(self.special))
        return self.chance.randrange(len(self.vocabulary))

    def mark(self, text_only: bool) -> Any:
        if not text_only and self.chance.random() < 0.15:
            return {"type": "token", "token": self.token()}
        return self.word() if self.chance.random() < 0.95 else ""

    def tag_of(self, depth: int, text_only: bool) -> dict[str, Any]:
        begin = self.mark(text_only)
        if not text_only and self.chance.random() < 0.1:
            begin = {"type": "regex", "pattern": self.chance.choice(PATTERNS)}
        ends = [self.mark(False) for _ in range(self.chance.choice([1, 1, 1, 2, 3]))]
        return {
            "begin": begin,
            "content": self.format(depth - 1)
            if self.chance.random() < 0.8
            else {"type": "any_text"},
            "end": ends[0] if len(ends) == 1 else ends,
        }

    def format(self, depth: int) -> dict[str, Any]:
        kinds = ["const_string", "regex", "any_text", "token", "exclude_token", "any_tokens"]
        kinds += ["grammar"]
        if depth > 0:
            kinds += ["sequence", "or", "optional", "star", "plus", "tag", "tag", "dispatch"] * 2
            kinds += ["triggered_tags"] * 4 + ["tags_with_separator"] * 2
        kind = self.chance.choice(kinds)
        made: dict[str, Any] = {"type": kind}
        often = {
            name: True
            for name in ("at_least_one", "stop_after_first")
            if self.chance.random() < 0.3
        }
        if kind == "const_string":
            made["value"] = self.word()
        elif kind == "regex":
            made["pattern"] = self.chance.choice(PATTERNS)
        elif kind == "grammar":
            pattern = f"/{self.chance.choice(PATTERNS)}/"
            syntax = self.chance.choice(["ebnf", "lark"])
            text = f"root ::= {pattern}" if syntax == "ebnf" else f"start: {pattern}"
            made |= {"grammar": text, "syntax": syntax}
        elif kind == "token":
            made["token"] = self.token()
        elif kind in ("exclude_token", "any_tokens"):
            made["exclude_tokens"] = [self.token()]
        elif kind in ("sequence", "or"):
            made["elements"] = [self.format(depth - 1) for _ in range(self.chance.randrange(1, 4))]
        elif kind in ("optional", "star", "plus"):
            made["content"] = self.format(depth - 1)
        elif kind == "tag":
            made |= self.tag_of(depth, False)
        elif kind == "tags_with_separator":
            tags = [self.tag_of(depth, False) for _ in range(self.chance.randrange(1, 3))]
            made |= {"tags": tags, "separator": self.chance.choice(["", self.word()]), **often}
        elif kind == "triggered_tags":
            tags = [self.tag_of(depth, True) for _ in range(self.chance.randrange(1, 4))]
            begins = [tag["begin"] for tag in tags if tag["begin"]]
            triggers = {begin[: self.chance.choice([1, 2, 9, 9])]: None for begin in begins}
            made |= {"tags": tags, "triggers": list(triggers) or ["a"], **often}
        elif kind == "dispatch":
            words = self.several(3) if self.chance.random() < 0.9 else []
            made["rules"] = [[word, self.format(depth - 1)] for word in words]
            made["loop"] = self.chance.random() < 0.7
        if kind in ("any_text", "triggered_tags", "dispatch") and self.chance.random() < 0.3:
            made["excludes"] = self.several(2)
        if kind == "any_text" and self.chance.random() < 0.2:
            made["max_chars"] = self.chance.randrange(5)
        return made

    def spelled(self, token: int) -> tuple[int, str]:
        if token < len(self.vocabulary):
            return token, self.vocabulary[token].decode("latin-1")
        return token, chr(SPECIAL + token)

    def tokens(self, text: str) -> list[int]:
        """Random tokens that spell a text."""
        found, at = [], 0
        while at < len(text):
            if ord(text[at]) >= SPECIAL:
                token = ord(text[at]) - SPECIAL
            else:
                fitting = (
                    token
                    for token in range(len(self.vocabulary))
                    if text.startswith(self.spelled(token)[1], at)
                )
                token = self.chance.choice(list(fitting))
            found.append(token)
            at += len(self.spelled(token)[1])
        return found

    def planned(self, recogniser: Recogniser) -> list[int]:
        """Tokens that may come next: a text of the format, a part of one, or any token."""
        if self.chance.random() < 0.4:
            return [self.chance.randrange(self.stop)]
        text = self.chance.choice(recogniser.spellings(self.chance.choice(self.words)))
        return self.tokens(text[self.chance.choice([0, 0, 0, 1]) :])


def allowed(matcher: GrammarMatcher, size: int) -> set[int]:
    mask = np.asarray(allocate_token_bitmask(1, size))
    matcher.fill_next_token_bitmask(mask)
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[:size]
    return set(map(int, np.flatnonzero(bits)))


def walk(case: Case, matcher: GrammarMatcher, recogniser: Recogniser) -> None:
    written: list[int] = []
    plan: list[int] = []

    def belongs(tokens: list[int]) -> bool:
        return recogniser.accepts(map(case.spelled, tokens))

    for _ in range(case.chance.randrange(1, 14)):
        mask = allowed(matcher, case.info.vocab_size)
        told = (case.tag, case.special, [case.spelled(token)[1] for token in written])
        assert matcher.is_completed() == (case.stop in mask) == belongs(written), told
        if case.chance.random() < 0.2:
            assert mask == {token for token in range(case.stop + 1) if matcher.is_allowed(token)}, (
                told
            )
        plan = plan or case.planned(recogniser)
        if not plan:
            continue
        token = plan.pop(0)
        if token not in mask:
            assert not belongs([*written, token]), told
            assert not belongs([*written, token, *plan]), (told, token, plan)
            plan = []
            others = sorted(mask - {case.stop})
            if not others:
                break
            token = case.chance.choice(others)
        assert matcher.accept_token(token), (told, token)
        written.append(token)
        if case.chance.random() < 0.1:
            back = case.chance.randrange(1, len(written) + 1)
            matcher.rollback(back)
            del written[-back:]
            plan = []
    try:
        rest = matcher.shortest_completion().decode("latin-1")
    except StencilError:
        # A single token by its number has to come.
        return
    assert belongs(written + case.tokens(rest)), (case.tag, case.special, written, rest)


@pytest.mark.parametrize("block", range(8))
def test_random_formats(block: int) -> None:
    compared = 0
    for seed in range(block * 15, block * 15 + 15):
        case = Case(seed)
        try:
            compiled = GrammarCompiler(case.info).compile_structural_tag(case.tag)
        except (GrammarSyntaxError, Unsatisfiable):
            continue
        compared += 1
        recogniser = Recogniser(case.tag, case.special)
        for _ in range(12):
            walk(case, GrammarMatcher(compiled, max_rollback_tokens=50), recogniser)
    assert compared > 5
