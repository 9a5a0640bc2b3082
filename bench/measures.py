"""The measurement of each kind of case. Every function runs in a fresh process.

Cold: the first time for this compiled grammar, in a process that has compiled other grammars (or,
for number 0 of `--first`, the very first grammar of the process). Warm: once more, with another
matcher of the same compiled grammar. Calls are Python calls, because that is what users pay.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import stencilm
from bench import clock, loading, tags
from bench.cases import OTHERS, Case, Source
from stencilm import CompiledGrammar, Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo

Numbers = dict[str, float]


class Bench:
    """A vocabulary, and the calls that cases are made of."""

    def __init__(self, shared: Path, tokenizer: str) -> None:
        self.shared = shared
        self.folder = shared / "tokenizers" / tokenizer
        self.info = TokenizerInfo.from_file(self.folder)
        self.compiler = GrammarCompiler(self.info, cache_enabled=False)
        self.mask = np.zeros((self.info.vocab_size + 31) // 32, dtype=np.int32)

    def compile(self, source: Source) -> CompiledGrammar:
        if source.regex is not None:
            return self.compiler.compile(Grammar.from_regex(source.regex))
        assert source.schema is not None, "a source has a schema or a regular expression"
        return self.compiler.compile(Grammar.from_json_schema(source.schema))

    def tokens(self, text: str) -> list[int]:
        return self.info.tokenize_bytes(text.encode())

    def walk(self, compiled: CompiledGrammar, tokens: list[int]) -> list[float]:
        """The time of the mask before each token and after the last."""
        matcher = GrammarMatcher(compiled)
        fill = matcher.fill_next_token_bitmask
        times = []
        for token in tokens:
            times.append(clock.timed(fill, self.mask)[0])
            assert matcher.accept_token(token), self.info.decode_bytes(tokens)
        times.append(clock.timed(fill, self.mask)[0])
        assert matcher.is_completed()
        return times

    def meet_others(self) -> None:
        for source in OTHERS:
            self.walk(self.compile(source), self.tokens(source.text))


def positions(text: str, ends: list[int]) -> Iterator[str]:
    """Where in JSON each token starts, and "end" after the last."""
    where, depth_kinds = "structural", []
    kinds = []
    escaped, expects_key = False, False
    for character in text:
        kinds.append(where)
        if where in ("string", "key"):
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                where = "structural"
        elif character == '"':
            where = "key" if expects_key else "string"
        elif character in "{[":
            depth_kinds.append(character)
            expects_key = character == "{"
        elif character in "}]":
            depth_kinds.pop()
        elif character == ":":
            expects_key = False
        elif character == ",":
            expects_key = bool(depth_kinds) and depth_kinds[-1] == "{"
    encoded = [
        kind for kind, character in zip(kinds, text, strict=True) for _ in character.encode()
    ]
    start = 0
    for end in ends:
        yield encoded[start]
        start = end
    yield "end"


def walk(case: Case, shared: Path, first: bool) -> Numbers:
    numbers: Numbers = {}
    means: dict[tuple[str, str], float] = {}
    for tokenizer in case.tokenizers:
        bench = Bench(shared, tokenizer)
        if not first:
            bench.meet_others()
        for label, source in case.sources.items():
            name = ", ".join(
                ([label] if len(case.sources) > 1 else [])
                + ([tokenizer] if len(case.tokenizers) > 1 else [])
            )
            name = f"{name}: " if name else ""
            cold: list[float] = []
            warm: list[float] = []
            for number in range(1, 2 if first else case.variants + 1):
                variant = source.variant(number)
                tokens = bench.tokens(variant.text)
                lengths = np.cumsum([len(bench.info.decode_bytes([token])) for token in tokens])
                wanted = [
                    case.position in (None, kind)
                    for kind in (
                        positions(variant.text, list(lengths))
                        if case.position
                        else [None] * (len(tokens) + 1)
                    )
                ]
                compiled = bench.compile(variant)
                for times in (cold, warm):
                    walked = bench.walk(compiled, tokens)
                    times.extend(
                        t for t, is_wanted in zip(walked, wanted, strict=True) if is_wanted
                    )
            if first:
                numbers |= clock.summary(f"{name}first", cold)
                continue
            numbers |= clock.summary(f"{name}cold", cold) | clock.summary(f"{name}warm", warm)
            overheads = clock.overheads(bench.info.vocab_size)
            floor = overheads["floor: one row copied, us"]
            numbers[f"{name}warm p50, floors"] = numbers[f"{name}warm p50"] / floor
            numbers |= overheads
            for kind in ("cold", "warm"):
                means[f"{label}{tokenizer}", kind] = numbers[f"{name}{kind} mean"]
    if not first and len(means) > 2:
        keys = list(dict.fromkeys(key for key, _ in means))
        compared, base = (keys[0], keys[1]) if len(case.sources) > 1 else (keys[-1], keys[0])
        title = (
            "ratio" if len(case.sources) > 1 else f"{case.tokenizers[-1]} to {case.tokenizers[0]}"
        )
        for kind in ("cold", "warm"):
            numbers[f"{kind} mean, {title}"] = means[compared, kind] / means[base, kind]
    return numbers


def accept(case: Case, shared: Path, first: bool) -> Numbers:
    bench = Bench(shared, case.tokenizers[0])
    means = []
    for source in case.sources.values():
        variant = source.variant(1)
        compiled, tokens = bench.compile(variant), bench.tokens(variant.text)
        bench.walk(compiled, tokens)
        for _ in range(30):
            matcher = GrammarMatcher(compiled)
            means.append(clock.mean_of_loop(matcher.accept_token, tokens))
    return {"accept mean": statistics.median(means), **clock.overheads(bench.info.vocab_size)}


def rollback(case: Case, shared: Path, first: bool) -> Numbers:
    bench = Bench(shared, case.tokenizers[0])
    source = case.sources["person"].variant(1)
    compiled, tokens = bench.compile(source), bench.tokens(source.text)
    matcher = GrammarMatcher(compiled)
    times = []
    for _ in range(300):
        matcher.reset()
        for token in tokens[:-12]:
            assert matcher.accept_token(token)
        for token in tokens[-12:-2]:
            assert matcher.accept_token(token)
        times.append(clock.timed(matcher.rollback, 10)[0])
    return clock.summary("rollback", times) | clock.overheads(bench.info.vocab_size)


def batch(case: Case, shared: Path, first: bool) -> Numbers:
    if not hasattr(stencilm, "BatchGrammarMatcher"):
        return {}
    bench = Bench(shared, case.tokenizers[0])
    matchers = []
    for number in range(256):
        source = list(case.sources.values())[number % len(case.sources)]
        tokens = bench.tokens(source.text)
        matcher = GrammarMatcher(bench.compile(source))
        for token in tokens[: 1 + number * 7 % (len(tokens) - 1)]:
            assert matcher.accept_token(token)
        matchers.append(matcher)
    masks = np.zeros((256, len(bench.mask)), dtype=np.int32)
    filler = stencilm.BatchGrammarMatcher(max_threads=2)
    times = []
    for _ in range(200):
        # The plain clock, because the time of other threads counts.
        start = time.perf_counter_ns()
        filler.batch_fill_next_token_bitmask(matchers, masks)
        times.append((time.perf_counter_ns() - start) / 1000)
    return clock.summary("fill first", times[:1]) | clock.summary("fill", times[1:])


def length(case: Case, shared: Path, first: bool) -> Numbers:
    bench = Bench(shared, case.tokenizers[0])
    source = case.sources["records"]
    compiled, tokens = bench.compile(source), bench.tokens(source.text)[:10_000]
    bench.walk(compiled, bench.tokens(json.dumps(json.loads(source.text)[:20])))
    matcher = GrammarMatcher(compiled)
    times = []
    for token in tokens:
        fill = clock.timed(matcher.fill_next_token_bitmask, bench.mask)[0]
        times.append(fill + clock.timed(matcher.accept_token, token)[0])
    early, late = statistics.fmean(times[:1000]), statistics.fmean(times[-1000:])
    return {
        "tokens": len(times),
        "first 1,000, us": early,
        "last 1,000, us": late,
        "last to first": late / early,
        "matcher, bytes a token": matcher.memory_size_bytes / len(times),
    }


def depth(case: Case, shared: Path, first: bool) -> Numbers:
    bench = Bench(shared, case.tokenizers[0])
    compiled = bench.compile(case.sources["lists"])
    (token,) = bench.tokens("[")
    matcher = GrammarMatcher(compiled)
    means = {}
    for level in range(1, 1_001):
        assert matcher.accept_token(token)
        matcher.fill_next_token_bitmask(bench.mask)
        if level in (10, 100, 1_000):
            times = []
            for _ in range(300):
                fill = clock.timed(matcher.fill_next_token_bitmask, bench.mask)[0]
                times.append(fill + clock.timed(matcher.accept_token, token)[0])
                matcher.rollback(1)
            means[level] = statistics.median(times)
    return {f"depth {level}, us": mean for level, mean in means.items()} | {
        "1000 to 10": means[1_000] / means[10]
    }


def size(case: Case, shared: Path, first: bool) -> Numbers:
    bench = Bench(shared, case.tokenizers[0])
    bench.meet_others()
    numbers: Numbers = {}
    for label, source in case.sources.items():
        variant = source.variant(1)
        tokens = bench.tokens(variant.text)
        compile_time, compiled = clock.timed(bench.compile, variant)
        matcher = GrammarMatcher(compiled)
        first_mask = clock.timed(matcher.fill_next_token_bitmask, bench.mask)[0]
        cold = bench.walk(compiled, tokens)
        warm = bench.walk(compiled, tokens)
        numbers |= {
            f"{label}: compile, us": compile_time,
            f"{label}: first mask": first_mask,
            f"{label}: cold mean": statistics.fmean(cold[1:]),
            f"{label}: cold max": max(cold[1:]),
            f"{label}: warm mean": statistics.fmean(warm),
            f"{label}: compiled, KiB": compiled.memory_size_bytes / 1024,
        }
    return numbers


def memory(case: Case, shared: Path, first: bool) -> Numbers:
    """The development half of MaskBench, every fourth schema of it, so that it takes minutes."""
    bench = Bench(shared, case.tokenizers[0])
    sizes, refused = [], 0
    for path in sorted((shared / "maskbench").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                digest = hashlib.sha256(record["id"].encode()).digest()
                if digest[0] >= 128 or digest[1] % 4:
                    continue
                try:
                    compiled = bench.compile(Source("", json.dumps(record["schema"])))
                except stencilm.StencilError:
                    refused += 1
                    continue
                for test in record["tests"]:
                    _follow(bench, compiled, json.dumps(test["data"], ensure_ascii=False))
                sizes.append(compiled.memory_size_bytes / 1024)
    sizes.sort()
    numbers = {
        f"p{p}, KiB": sizes[min(len(sizes) * p // 100, len(sizes) - 1)]
        for p in (25, 50, 75, 90, 99)
    }
    return numbers | {"max, KiB": sizes[-1], "schemas": len(sizes), "refused": refused}


def _follow(bench: Bench, compiled: CompiledGrammar, text: str) -> None:
    matcher = GrammarMatcher(compiled)
    for token in bench.tokens(text):
        matcher.fill_next_token_bitmask(bench.mask)
        if not matcher.accept_token(token):
            return


def cache(case: Case, shared: Path, first: bool) -> Numbers:
    bench = Bench(shared, case.tokenizers[0])
    limit = 64 << 20
    compiler = GrammarCompiler(bench.info, cache_limit_bytes=limit)
    before = _resident()
    largest = 0
    for number in range(10_000):
        source = case.sources["person"].variant(number)
        assert source.schema is not None, "the case is about schemas"
        compiled = compiler.compile_json_schema(source.schema)
        bench.walk(compiled, bench.tokens(source.text))
        if number % 100 == 99:
            largest = max(largest, compiler.get_cache_size_bytes())
            if number == 999:
                after_a_thousand = _resident()
    return {
        "limit, MiB": limit / 2**20,
        "largest cache, MiB": largest / 2**20,
        "resident before, MiB": before,
        "resident after 1,000, MiB": after_a_thousand,
        "resident after 10,000, MiB": _resident(),
        "most resident, MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _resident() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float("nan")
    return pages * resource.getpagesize() / 2**20


def load(case: Case, shared: Path, first: bool) -> Numbers:
    numbers: Numbers = {}
    for tokenizer in case.tokenizers:
        numbers |= loading.times(str(shared / "tokenizers" / tokenizer), tokenizer)
    return numbers


def tag_masks(case: Case, shared: Path, first: bool) -> Numbers:
    """Tool calls in free text."""
    return tags.measure(Bench(shared, case.tokenizers[0]).info, first)


MEASURES: dict[str, Callable[[Case, Path, bool], Numbers]] = {
    "walk": walk,
    "accept": accept,
    "rollback": rollback,
    "batch": batch,
    "length": length,
    "depth": depth,
    "size": size,
    "memory": memory,
    "cache": cache,
    "loading": load,
    "tags": tag_masks,
}
