"""The gain of each cache and special case of the engine, measured by switching it off alone.

The extension must be built with the feature `switches`; a normal build has no switches, and no cost
for them:

    cargo build -p stencilm-python --profile release --features switches
    cp target/release/lib_core.so python/stencilm/_core.abi3.so
    python bench/ablation.py --kind canonical --only "canonical: forced texts" --rounds 3
    python bench/ablation.py --kind cases --only "state: what starts" --rounds 2
    python bench/ablation.py --kind budgets --tokenizer gpt2 --sample 60
    python bench/ablation.py --kind budget-cases --tokenizer gpt2

Both runs of a pair take place in one process, in turn, each with a tokenizer without caches. Times
are the thread's processor time; for each mask the least of all rounds counts. Cold masks are those
of the first walk along the texts, warm masks those of a second walk along the same texts. Cases are
single grammars of kinds that are rare in schemas; for each, the mean of the masks along a text.
Budgets are texts near the end of a token budget (`bench/completions.py`), of schemas or cases.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import completions
import numpy as np
from forced_tokens import SHARED, schemas

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo, _core

FIGURES = ("mean", "p99", "p99.9", "first mask", "warm", "learning", "memory")


@dataclass
class Times:
    """The microseconds of one run along all texts: one number per mask, in a fixed order."""

    first: list[float] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    learning: float = 0.0
    memory: float = 0.0

    def least(self, other: Times) -> None:
        """Keep the smaller of each two numbers."""
        for name in ("first", "cold", "warm"):
            pairs = zip(getattr(self, name), getattr(other, name), strict=True)
            setattr(self, name, [min(pair) for pair in pairs])
        self.learning = min(self.learning, other.learning)

    def figures(self) -> dict[str, float]:
        """The figures of a row of the table."""
        return {
            "mean": float(np.mean(self.cold)),
            "p99": float(np.percentile(self.cold, 99)),
            "p99.9": float(np.percentile(self.cold, 99.9)),
            "first mask": float(np.median(self.first)),
            "warm": float(np.mean(self.warm)),
            "learning": self.learning,
            "memory": self.memory,
        }


Task = list[tuple[str, list[Any]]]


def tasks(sample: int, seed: int) -> Task:
    """Some schemas with their valid instances."""
    everything = [(schema, instances[:3]) for _, schema, instances in schemas(1 << 30)]
    return random.Random(seed).sample(everything, sample)


def texts(info: TokenizerInfo, instances: list[Any]) -> Iterator[list[int]]:
    for instance in instances:
        yield info.tokenize_bytes(json.dumps(instance, ensure_ascii=False).encode())


def run(kind: str, tokenizer: str, sample: Task) -> Times:
    """One run with a tokenizer without caches."""
    times = Times()
    clock = time.thread_time_ns
    info = TokenizerInfo.from_file(SHARED / "tokenizers" / tokenizer)
    canonical = kind == "canonical"
    if canonical:
        start = clock()
        info.learn_encoding()
        times.learning = (clock() - start) / 1e3
    compiler = GrammarCompiler(info, cache_enabled=False)
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    held = 0
    for schema, instances in sample:
        try:
            grammar = Grammar.from_json_schema(schema, property_order="any")
            start = clock()
            compiled = compiler.compile(grammar)
            took = clock() - start
        except stencilm.StencilError:
            continue
        for walk in (times.cold, times.warm):
            for number, ids in enumerate(texts(info, instances)):
                matcher = GrammarMatcher(compiled, canonical=canonical)
                for place, token_id in enumerate(ids):
                    start = clock()
                    matcher.fill_next_token_bitmask(mask)
                    filled = clock()
                    accepted = matcher.accept_token(token_id)
                    walk.append((clock() - start) / 1e3)
                    if walk is times.cold and number == place == 0:
                        times.first.append((filled - start + took) / 1e3)
                    if not accepted:
                        break
        held += compiled.memory_size_bytes
    times.memory = held + info.core.memory_size_bytes
    return times


def ratios(off: dict[str, float], on: dict[str, float]) -> dict[str, float]:
    """By how many per cent each figure is greater without the switched-off parts."""
    return {name: 100 * (off[name] / on[name] - 1) if on[name] else 0.0 for name in FIGURES}


def pair(kind: str, tokenizer: str, off: list[str], sample: Task, rounds: int) -> dict[str, float]:
    """The joint gain of these parts, in per cent, by figure."""
    best: dict[bool, Times] = {}
    for number in range(rounds):
        for is_on in (True, False) if number % 2 == 0 else (False, True):
            _core.switch_off([] if is_on else off)  # type: ignore[attr-defined]
            times = run(kind, tokenizer, sample)
            gc.collect()
            if is_on in best:
                best[is_on].least(times)
            else:
                best[is_on] = times
    _core.switch_off([])  # type: ignore[attr-defined]
    return ratios(best[False].figures(), best[True].figures())


_TEXT = "some text that goes on and on, with words of all kinds in it, and then some more "


def _string(**keywords: Any) -> Grammar:
    return Grammar.from_json_schema({"type": "string", **keywords})


def _keys_with(pattern: str) -> tuple[Grammar, str]:
    """Objects in which keys that match a pattern have other values than the rest."""
    schema = {"type": "object", "patternProperties": {pattern: {"type": "array"}}}
    return Grammar.from_json_schema(schema), '{"zZ": 1}'


def cases() -> dict[str, tuple[Grammar, str]]:
    """Grammars, each with a text, by description."""
    strings = {name: {"type": "string", "maxLength": 60} for name in "ab"}
    ambiguous = "root ::= (. root)* | . (root .)*"
    sums = 'root ::= e\ne ::= e "+" e | e "*" e | "(" e ")" | [0-9]+ | [a-z]+'
    return {
        "host name": (_string(format="hostname"), json.dumps("www.example-of-a-host.com")),
        "label in Punycode": (_string(format="hostname"), json.dumps("xn--bcher-kva.example")),
        "email": (_string(format="email", maxLength=254), json.dumps("some.body@example.com")),
        "words": (
            _string(pattern=r"^(?:\S+\s+){0,29}\S+$", maxLength=300),
            json.dumps(_TEXT[:60]),
        ),
        "text before a letter": (Grammar.from_regex("^.{0,5000}x$"), _TEXT * 6),
        "two strings": (
            Grammar.from_json_schema({"properties": strings, "required": ["a", "b"]}),
            json.dumps({"a": _TEXT[:58], "b": _TEXT[57::-1]}),
        ),
        "two words in a text": (Grammar.from_regex(".*foo.*bar.*"), "some foo of a bar"),
        "keys with a letter": _keys_with("a"),
        "keys with a class": _keys_with("[abde]"),
        "keys with a word": _keys_with("customer"),
        "keys with 32 digits": _keys_with("[0-9a-f]{32}"),
        "any splits": (Grammar.from_ebnf(ambiguous), _TEXT[:34]),
        "sums": (Grammar.from_ebnf(sums), "1+2*(3+a)*b+((c+4)*5)+x*y+(z)"),
        "deep": (Grammar.from_ebnf('root ::= "a" root? "b"?'), "a" * 3000),
    }


def mean_masks(tokenizer: str) -> dict[str, float]:
    """The mean of the masks along the text of each case, with a tokenizer without caches."""
    info = TokenizerInfo.from_file(SHARED / "tokenizers" / tokenizer)
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    means: dict[str, float] = {}
    for name, (grammar, text) in cases().items():
        matcher = GrammarMatcher(GrammarCompiler(info, cache_enabled=False).compile(grammar))
        times: list[float] = []
        for token_id in info.tokenize_bytes(text.encode()):
            start = time.thread_time_ns()
            matcher.fill_next_token_bitmask(mask)
            times.append((time.thread_time_ns() - start) / 1e3)
            if not matcher.accept_token(token_id):
                raise SystemExit(f"{name}: the grammar refuses its text")
        means[name] = float(np.mean(times))
    return means


def print_cases(tokenizer: str, names: list[str], rounds: int) -> None:
    """Print a table of the cases, everything on, then each part off: the least of all rounds."""
    every: list[list[str]] = [[], *([name] for name in names)]
    best: dict[int, dict[str, float]] = {}
    for _ in range(rounds):
        for number, off in enumerate(every):
            _core.switch_off(off)  # type: ignore[attr-defined]
            means = mean_masks(tokenizer)
            known = best.setdefault(number, means)
            best[number] = {name: min(known[name], mean) for name, mean in means.items()}
    _core.switch_off([])  # type: ignore[attr-defined]
    print("| off | " + " | ".join(best[0]) + " |\n|---|" + "--:|" * len(best[0]))
    for number, off in enumerate(every):
        cells = [f"{mean:,.1f}" for mean in best[number].values()]
        print("| " + " | ".join([*(off or ["nothing"]), *cells]) + " |")


def _grammars(sample: Task) -> dict[str, Grammar]:
    """The grammars of the schemas that have one, by number."""
    grammars: dict[str, Grammar] = {}
    for number, (schema, _) in enumerate(sample):
        with contextlib.suppress(stencilm.StencilError):
            grammars[f"schema {number}"] = Grammar.from_json_schema(schema)
    return grammars


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = ["plain", "canonical", "cases", "budgets", "budget-cases"]
    parser.add_argument("--kind", choices=kinds, default="plain")
    parser.add_argument("--tokenizer", default="llama3")
    parser.add_argument("--sample", type=int, default=200, help="schemas")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", help="the beginning of names; may be repeated")
    parser.add_argument("--together", action="store_true", help="what is named, off all at once")
    options = parser.parse_args()
    if not hasattr(_core, "switch_off"):
        raise SystemExit("the extension has no switches: build it with the feature `switches`")
    sample = tasks(options.sample, options.seed)
    is_budget = options.kind.startswith("budget")
    rooms = {"canonical": "canonical"} | dict.fromkeys(("budgets", "budget-cases"), "completion")
    room = rooms.get(options.kind)
    others = tuple({*rooms.values()} - {room})
    names = [name for name in _core.switch_off([]) if not name.startswith(others)]
    names = [name for name in names if room is None or name.startswith(room)]
    if options.only:
        names = [name for name in names if name.startswith(tuple(options.only))]
    if is_budget:
        info = TokenizerInfo.from_file(SHARED / "tokenizers" / options.tokenizer)
        grammars = completions.cases() if options.kind == "budget-cases" else _grammars(sample)
        drawn = [completions.draw(name, grammar, info) for name, grammar in grammars.items()]
        chosen = [task for task in drawn if task is not None]
        completions.print_tables(chosen, info, names, options.rounds, _core.switch_off)
        return
    if options.kind == "cases":
        print_cases(options.tokenizer, names, options.rounds)
        return
    print(
        f"{options.kind} masks, {options.tokenizer}, {options.sample} schemas, "
        f"seed {options.seed}, {options.rounds} rounds"
    )
    print("| off | " + " | ".join(FIGURES) + " |\n|---|" + "--:|" * len(FIGURES))
    figures = run(options.kind, options.tokenizer, sample).figures()
    cells = [f"{figures[name]:,.1f}" for name in FIGURES]
    print("| " + " | ".join(["figures", *cells]) + " |", flush=True)
    for off in [names] if options.together else [[name] for name in names]:
        gains = pair(options.kind, options.tokenizer, off, sample, options.rounds)
        cells = [f"{gains[name]:+.1f} %" for name in FIGURES]
        print("| " + " | ".join(["; ".join(off), *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
