"""Requests that ask for much memory, each a function; run as a program, one of them in a process.

`test_memory.py` and `bench/memory.py` run them in processes of their own and look at what these
hold from outside. What a case prints is JSON: the figures that the library itself gives.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stencilm import (
    CompiledGrammar,
    GrammarCompiler,
    GrammarMatcher,
    LimitExceeded,
    Limits,
    TokenizerInfo,
)
from tokenizer_folders import FOLDERS

MIB = 1 << 20
Figures = dict[str, Any]


class Reader:
    """Compiles, and reads texts with a mask before every piece."""

    def __init__(self, tokenizer: str, limits: Limits) -> None:
        self.info = TokenizerInfo.from_file(FOLDERS[tokenizer])
        self.compiler = GrammarCompiler(self.info, limits=limits)
        self.mask = np.zeros((1, (self.info.vocab_size + 31) // 32), np.int32)
        self.refused: list[str] = []
        self.kept: list[GrammarMatcher] = []
        # A mask of a large vocabulary meets as many states as ten of a small one.
        self.steps = 150 if self.info.vocab_size < 10_000 else 15

    def read(self, compiled: CompiledGrammar, pieces: Any) -> GrammarMatcher:
        """A matcher after the pieces, or after those before a limit was reached."""
        matcher = GrammarMatcher(compiled)
        try:
            matcher.fill_next_token_bitmask(self.mask)
            for piece in pieces:
                assert matcher.accept_string(piece)
                matcher.fill_next_token_bitmask(self.mask)
        except LimitExceeded as error:
            self.refused.append(str(error))
        return matcher


def letters(count: int, seed: int, of: str = "abc") -> str:
    draw = random.Random(seed)
    return "".join(draw.choice(of) for _ in range(count))


def nothing(reader: Reader) -> None:
    """What a tokenizer and a compiler take."""


def requests(reader: Reader) -> None:
    """Different patterns, each with many states, one after the other; all stay in the cache."""
    for at in range(12):
        reader.read(
            reader.compiler.compile_regex(f"(?:.*[ab].{{24}}|x{at})"), letters(reader.steps, at)
        )
    assert not reader.refused


def waiting(reader: Reader) -> None:
    """The same as sequences that take turns, and none of which ends."""
    made = [reader.compiler.compile_regex(f"(?:.*[ab].{{24}}|x{at})") for at in range(12)]
    sequences = [(GrammarMatcher(each), letters(reader.steps, at)) for at, each in enumerate(made)]
    for at in range(reader.steps):
        for matcher, text in sequences:
            matcher.fill_next_token_bitmask(reader.mask)
            assert matcher.accept_string(text[at])


def ordinary(reader: Reader) -> None:
    """20,000 ordinary schemas, of each twelve tokens."""
    for at in range(20_000):
        schema = {
            "type": "object",
            "properties": {
                f"name{at}": {"type": "string"},
                f"age{at}": {"type": "integer"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "kind": {"enum": [f"a{at}", "b", "c"]},
            },
            "required": [f"name{at}", f"age{at}"],
            "additionalProperties": False,
        }
        text = f'{{"name{at}": "x", "age{at}": 12, "tags"'
        pieces = [text[start : start + 3] for start in range(0, 36, 3)]
        reader.read(reader.compiler.compile_json_schema(json.dumps(schema)), pieces)
    assert not reader.refused


def forty(reader: Reader) -> None:
    """One grammar of forty lexemes with many states each, which may begin anywhere."""
    names = [f"T{at}" for at in range(40)]
    rules = [f'{name}: /.*[abc].{{24}}/ "{name}"' for name in names]
    text = "\n".join([f"start: ({' | '.join(names)})+", *rules])
    reader.read(reader.compiler.compile_lark(text), letters(reader.steps, 0))


def pairs(reader: Reader) -> None:
    """A pattern beside a great length, and a text of a million characters."""
    schema = {"type": "string", "pattern": "^(ab|ba)*$", "maxLength": 1_000_000}
    compiled = reader.compiler.compile_json_schema(schema)
    reader.read(compiled, ['"', *["ab" * 500] * 1_000])


def literal(reader: Reader) -> None:
    """A text of a megabyte that must come as it is."""
    text = letters((1 << 20) - 2_000, 0, "abcdefghijklmnopqrstuvwxyz ")
    compiled = reader.compiler.compile_regex(text)
    matcher = reader.read(compiled, [text[:400], text[400:2_000]])
    # The rest at once: nothing of it needs a mask.
    assert matcher.accept_string(text[2_000:])
    assert matcher.is_completed()


def texts(reader: Reader) -> None:
    """A text of a megabyte in each notation, all of them kept, and begun."""
    size = (1 << 20) - 2_000
    made = [letters(size, at, "abcdefghijklmnopqrstuvwxyz ,-0123456789") for at in range(5)]
    parts = [made[4][start : start + 100_000] for start in range(0, size, 100_000)]
    compiler = reader.compiler
    grammars = [
        compiler.compile_regex(made[0]),
        compiler.compile_json_schema({"type": "string", "pattern": f"^{made[1]}$"}),
        compiler.compile_json_schema({"const": made[2]}),
        compiler.compile_grammar(f'root ::= "{made[3]}"'),
        compiler.compile_json_schema({"enum": parts}),
    ]
    for at, compiled in enumerate(grammars):
        quote = "" if at in (0, 3) else '"'
        reader.kept.append(reader.read(compiled, [quote + made[at][:400], made[at][400:2_000]]))
    assert not reader.refused


CASES: dict[str, Callable[[Reader], None]] = {
    case.__name__: case
    for case in (nothing, requests, waiting, ordinary, forty, pairs, literal, texts)
}


def resident() -> int | None:
    """The bytes that this process holds now; `None` where the system does not say."""
    status = Path("/proc/self/statm")
    if not status.exists():
        return None
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run(case: str, tokenizer: str, limits: Limits) -> Figures:
    reader = Reader(tokenizer, limits)
    CASES[case](reader)
    return {
        "resident": resident(),
        "cache": reader.compiler.get_cache_size_bytes(),
        "shared": reader.compiler.get_shared_size_bytes(),
        "refused": reader.refused,
    }


if __name__ == "__main__":
    chosen, name, bounds = sys.argv[1:]
    print(json.dumps(run(chosen, name, Limits(**json.loads(bounds)))))
