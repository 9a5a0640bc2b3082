"""Look-around with boundaries and anchors at its edges, against `re` on all short texts."""

from __future__ import annotations

import random
import re
from itertools import product

import pytest

from stencilm import (
    GrammarCompiler,
    GrammarMatcher,
    LimitExceeded,
    TokenizerInfo,
    Unsatisfiable,
    UnsupportedFeature,
)

LETTERS = ["a", "b", " ", "-"]
TEXTS = ["".join(letters) for length in range(5) for letters in product(LETTERS, repeat=length)]
PLAIN = ["a", "b", " ", ".", "[ab]", r"\w", r"\W", ".*", "[^a]*", "a?", "b*"]
EDGES = [r"\b", r"\B", "^", r"\Z"]
AROUND = ["(?=", "(?!", "(?<=", "(?<!"]


def sequence(choose: random.Random, depth: int) -> str:
    return "".join(piece(choose, depth) for _ in range(choose.randint(1, 3)))


def piece(choose: random.Random, depth: int) -> str:
    kind = choose.random()
    if kind < 0.45 or depth > 2:
        return choose.choice(PLAIN)
    if kind < 0.62:
        return choose.choice(EDGES)
    if kind < 0.86:
        return f"{choose.choice(AROUND)}{sequence(choose, depth + 1)})"
    return f"(?:{sequence(choose, depth + 1)}|{sequence(choose, depth + 1)})"


def loop(choose: random.Random) -> str:
    """A character that look-aheads stand beside, repeated at the end of a pattern."""
    aheads = [f"{choose.choice(AROUND[:2])}{sequence(choose, 2)})" for _ in range(2)]
    before, behind = choose.choice([(aheads[0], ""), ("", aheads[0]), tuple(aheads)])
    count = choose.choice(["*", "+", "{2,3}", "{2,}"])
    return f"(?:{before}{choose.choice(['.', 'a', '[ab]', '[^a]'])}{behind}){count}"


def rounds(choose: random.Random, depth: int = 0) -> str:
    """Look-around and boundaries in a repetition, and what stands around it."""
    body = (
        f"{sequence(choose, 1)}|{sequence(choose, 1)}"
        if choose.random() < 0.3
        else sequence(choose, 1)
    )
    if depth == 0 and choose.random() < 0.2:
        body += rounds(choose, 1)
    count = choose.choice(["*", "+", "{2}", "{1,3}", "{2,}", "*?"])
    return f"{choose.choice(['', *PLAIN])}(?:{body}){count}{choose.choice(['', *PLAIN])}"


def matched(compiler: GrammarCompiler, pattern: str) -> list[str]:
    try:
        compiled = compiler.compile_regex(pattern)
    except Unsatisfiable:
        return []
    found = []
    for text in TEXTS:
        matcher = GrammarMatcher(compiled)
        if matcher.accept_string(text) and matcher.is_completed():
            found.append(text)
    return found


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    vocabulary = [letter.encode() for letter in LETTERS]
    return GrammarCompiler(TokenizerInfo([*vocabulary, b""], stop_token_ids=[len(vocabulary)]))


@pytest.fixture(scope="module")
def json_compiler() -> GrammarCompiler:
    vocabulary = [bytes([byte]) for byte in range(256)]
    return GrammarCompiler(TokenizerInfo([*vocabulary, b""], stop_token_ids=[len(vocabulary)]))


@pytest.mark.parametrize(
    "pattern",
    [
        r"ba(?=\b).*",
        r"a(?=^)b",
        r"a(?<=^)b",
        r"a(?<=a\b)b",
        r"a(?<=a\b).*",
        r"a(?!.*\bb\b).*",
        r"[ab]+(?<!\b)[ab ]*",
        r"(?=(?=\b)b)b.*",
        r"(?=(?<=^)b)b.*",
        r"^a.*(?=\b)[^a]*",
        r".*(?<!-)\ba.*",
        r".*(?<= )\b(?<!-)b[ab]*",
        r"[^a]*(?<!b)\B(?!-).*a",
    ],
)
def test_what_stands_on_the_other_side(compiler: GrammarCompiler, pattern: str) -> None:
    expected = [text for text in TEXTS if re.fullmatch(pattern, text)]
    assert matched(compiler, pattern) == expected


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?<!-)\bab",
        r"(?<!a )\bb\b",
        r"(?<=a)\b(?<!-a)-",
        r"(?<!\b-)\b(?<! )[ab]$",
        r"(?:^|(?<!a) )(?<!-)\bb",
    ],
)
def test_look_behind_beside_a_boundary_somewhere_in_a_text(
    json_compiler: GrammarCompiler, pattern: str
) -> None:
    compiled = json_compiler.compile_json_schema({"type": "string", "pattern": pattern})
    found = []
    for text in TEXTS:
        matcher = GrammarMatcher(compiled)
        if matcher.accept_string(f'"{text}"') and matcher.is_completed():
            found.append(text)
    assert found == [text for text in TEXTS if re.search(pattern, text)]


@pytest.mark.parametrize(
    "pattern",
    [r"a(?=(?<=a)b)b", r"x(?!(?<=x)y).*", r"a(?<=a(?=b))b", r"a(?=(?=.(?<=b)).)b"],
)
def test_what_would_look_beyond_is_refused(compiler: GrammarCompiler, pattern: str) -> None:
    with pytest.raises(UnsupportedFeature, match="may look beyond it") as caught:
        compiler.compile_regex(pattern)
    assert caught.value.place == "offset 1"


def test_random_patterns(compiler: GrammarCompiler) -> None:
    choose = random.Random(7)
    compared = 0
    while compared < 800:
        pattern = sequence(choose, 0)
        if choose.random() < 0.3:
            pattern = choose.choice(["", pattern]) + loop(choose)
        elif choose.random() < 0.5:
            pattern = rounds(choose)
        if "(?" not in pattern:
            continue
        try:
            reader = re.compile(pattern)
        except re.error:  # a look-behind of no fixed length
            continue
        try:
            found = matched(compiler, pattern)
        except (UnsupportedFeature, LimitExceeded):
            continue
        # Before Python 3.14 no `\B` holds in the empty text.
        first = 1 if r"\B" in pattern else 0
        expected = [text for text in TEXTS[first:] if reader.fullmatch(text)]
        assert [text for text in found if text or first == 0] == expected, pattern
        compared += 1


def many_rounds(choose: random.Random) -> str:
    """Look-around in a repetition with a count that is not written out if its texts say it."""
    plain = ["a", "b", "[ab]", "-", "[^a]", "ab", "(?:a|b-)", "a?b"]
    body = "".join(
        choose.choice(
            [*plain, f"{choose.choice(AROUND)}{choose.choice(['a', 'b', 'ab', '-', '.b'])})"]
        )
        for _ in range(choose.randint(1, 3))
    )
    if choose.random() < 0.3:
        body += f"|{choose.choice(plain)}"
    least = choose.choice([0, 1, 7, 8, 9])
    most = choose.choice([max(least, 8), least + 9, ""])
    end = choose.choice(["", "-", "[ab]", "(?!b)."])
    return f"{choose.choice(['', 'a', '[b-]*'])}(?:{body}){{{least},{most}}}{end}"


def test_rounds_that_their_texts_count(compiler: GrammarCompiler) -> None:
    choose = random.Random(3)
    compared = 0
    while compared < 300:
        pattern = many_rounds(choose)
        if not any(around in pattern for around in AROUND):
            continue
        reader = re.compile(pattern)
        try:
            compiled = compiler.compile_regex(pattern)
        except Unsatisfiable:
            compiled = None
        except LimitExceeded:
            continue
        texts = ["".join(choose.choices("aab-", k=choose.randint(0, 13))) for _ in range(40)]
        for _ in range(40):
            part = "".join(choose.choices("ab-", k=choose.randint(1, 2)))
            texts.append(choose.choice(["", "a", "b"]) + part * choose.randint(5, 10))
        for text in texts:
            found = False
            if compiled is not None:
                matcher = GrammarMatcher(compiled)
                found = matcher.accept_string(text) and matcher.is_completed()
            assert found == bool(reader.fullmatch(text)), (pattern, text)
        compared += 1


def test_counted_rounds_are_not_written_out(compiler: GrammarCompiler) -> None:
    """However many there may be."""
    compiled = compiler.compile_regex("(?:(?<!a)b|(?<!b)a){9,20000}-")
    for text, is_matched in [
        ("a" * 9, True), ("b" * 4000, True), ("a" * 8, False), ("ab" * 9, False),
    ]:  # fmt: skip
        matcher = GrammarMatcher(compiled)
        assert (matcher.accept_string(f"{text}-") and matcher.is_completed()) == is_matched
