"""The duration of one thread's step of a warm matcher while another thread does heavy work.

    python -m bench.latency --tokenizer ../shared/tokenizers/llama3

A step fills a cached mask, accepts a token and takes it back. It needs Python's lock, and the lock
of what the grammars of a vocabulary share. For comparison, there is the cost of Python's lock
alone: releasing and taking it again. Time spent waiting for a processor is the machine's affair: on
Linux it is subtracted, as the system reports it. The heavy thread also waits for a processor while
it holds a lock. So of a wait for Python's lock, at most the processor time of the heavy thread in
this period counts. Python switches threads every 0.1 ms here instead of every 5 ms, so that the
rest is work within one call. In the first row, the other thread holds neither lock.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import stencilm
from stencilm import BatchGrammarMatcher, Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STENCILM_SHARED", ROOT.parent / "shared"))
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}

Heavy = Callable[[], Any]
HEAVY: dict[str, Callable[[GrammarCompiler], Heavy]] = {}


def heavy(title: str) -> Callable[[Callable[[GrammarCompiler], Heavy]], None]:
    def add(prepare: Callable[[GrammarCompiler], Heavy]) -> None:
        HEAVY[title] = prepare

    return add


def cold_patterns() -> Iterator[str]:
    return (f"(?i)([a-z]+[ab].{{{number % 40 + 1}}}|.*x{number})" for number in count())


@heavy("nothing (sleeps)")
def _(_: GrammarCompiler) -> Heavy:
    return lambda: time.sleep(0.005)


@heavy("cold masks")
def _(made: GrammarCompiler) -> Heavy:
    patterns = cold_patterns()
    mask = np.zeros((made.tokenizer_info.vocab_size + 31) // 32, dtype=np.int32)

    def work() -> None:
        matcher = GrammarMatcher(made.compile_regex(next(patterns)))
        matcher.fill_next_token_bitmask(mask)

    return work


@heavy("a batch of cold masks")
def _(made: GrammarCompiler) -> Heavy:
    patterns, batch = cold_patterns(), BatchGrammarMatcher(1)
    masks = np.zeros((16, (made.tokenizer_info.vocab_size + 31) // 32), dtype=np.int32)

    def work() -> None:
        matchers = [GrammarMatcher(made.compile_regex(next(patterns))) for _ in range(16)]
        batch.batch_fill_next_token_bitmask(matchers, masks)

    return work


@heavy("compiling schemas")
def _(made: GrammarCompiler) -> Heavy:
    numbers = count()

    def work() -> None:
        names = [f"p{next(numbers)}" for _ in range(200)]
        schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
        made.compile_json_schema(json.dumps(schema))

    return work


@heavy("elements that must differ")
def _(made: GrammarCompiler) -> Heavy:
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    matcher = GrammarMatcher(made.compile_json_schema(schema))
    assert matcher.accept_string("[" + ",".join(map(str, range(3000))))
    mask = np.zeros((made.tokenizer_info.vocab_size + 31) // 32, dtype=np.int32)
    return lambda: matcher.fill_next_token_bitmask(mask)


@heavy("shortest_completion")
def _(made: GrammarCompiler) -> Heavy:
    item = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(30)}}
    item["required"] = list(item["properties"])
    compiled = made.compile_json_schema({"type": "array", "items": item, "minItems": 50})
    matcher = GrammarMatcher(compiled)
    assert matcher.accept_string("[")
    return lambda: matcher.shortest_completion(max_bytes=1 << 20)


@heavy("accepting a long text")
def _(made: GrammarCompiler) -> Heavy:
    compiled = made.compile_builtin_json_grammar()
    text = json.dumps([{"a": number, "b": [str(number)]} for number in range(5000)])

    def work() -> None:
        GrammarMatcher(compiled).accept_string(text)

    return work


@heavy("accepting an ambiguous text")
def _(made: GrammarCompiler) -> Heavy:
    compiled = made.compile_grammar('root ::= "a" root "b"* "c"? | "a"')

    def work() -> None:
        matcher = GrammarMatcher(compiled)
        matcher.accept_string("a" * 1000 + "b" * 200)

    return work


@heavy("captures")
def _(made: GrammarCompiler) -> Heavy:
    compiled = made.compile_grammar('root ::= "[" item@([a-z]+) ("," item@([a-z]+))* "]"')
    matcher = GrammarMatcher(compiled)
    assert matcher.accept_string("[" + ",".join(["abc"] * 3000))
    return matcher.get_captures


@heavy("draft trees")
def _(made: GrammarCompiler) -> Heavy:
    info = made.tokenizer_info
    matcher = GrammarMatcher(made.compile_regex("[a-z]*"))
    tokens = np.full(200, info.tokenize_bytes(b"a")[0])
    next_token = np.array([*range(1, 200), -1])
    masks = np.zeros((200, (info.vocab_size + 31) // 32), dtype=np.int32)
    siblings = np.full(200, -1)
    return lambda: matcher.traverse_draft_tree(next_token, siblings, tokens, masks)


@heavy("explaining and candidates")
def _(made: GrammarCompiler) -> Heavy:
    schema = {"enum": [f"value {number}" for number in range(3000)]}
    matcher = GrammarMatcher(made.compile_json_schema(schema))
    tokens = iter(count())

    def work() -> None:
        matcher.candidates(limit=4000)
        matcher.explain(next(tokens) % made.tokenizer_info.vocab_size)

    return work


@heavy("printing and serializing")
def _(_: GrammarCompiler) -> Heavy:
    names = [f"p{number}" for number in range(2000)]
    schema = {"type": "object", "properties": {name: {"enum": [name, 1]} for name in names}}
    grammar = Grammar.from_json_schema(schema)

    def work() -> None:
        str(grammar)
        Grammar.deserialize_json(grammar.serialize_json())

    return work


@heavy("memory asked for")
def _(made: GrammarCompiler) -> Heavy:
    names = [f"p{number}" for number in range(2000)]
    schema = {"type": "object", "properties": {name: {"enum": [name, 1]} for name in names}}
    compiled = made.compile_json_schema(schema)
    mask = np.zeros((made.tokenizer_info.vocab_size + 31) // 32, dtype=np.int32)
    matcher = GrammarMatcher(compiled)
    matcher.fill_next_token_bitmask(mask)

    def work() -> None:
        _ = compiled.memory_size_bytes
        made.get_cache_size_bytes()

    return work


@heavy("dropping large grammars")
def _(made: GrammarCompiler) -> Heavy:
    numbers = count()

    def work() -> None:
        names = [f"q{next(numbers)}" for _ in range(300)]
        schema = {"type": "object", "properties": {name: {"enum": [name, 1]} for name in names}}
        GrammarMatcher(made.compile_json_schema(schema)).accept_string('{"' + names[0])
        made.clear_cache()

    return work


class Waiting:
    """Seconds for which a thread has waited for a processor, as the system reports it."""

    def __init__(self) -> None:
        try:
            self._schedule = open("/proc/thread-self/schedstat", "rb", buffering=0)  # noqa: SIM115
        except OSError:
            self._schedule = None

    def __call__(self) -> float:
        if self._schedule is None:
            return 0.0
        self._schedule.seek(0)
        return int(self._schedule.read(100).split()[1]) / 1e9


def timed(
    act: Callable[[], Any], seconds: float, worked: Callable[[], float] | None = None
) -> list[float]:
    """The duration of each act in seconds, without the time spent waiting for a processor.

    With `worked`, a clock of another thread's processor time, at most what that thread worked.
    """
    waiting, taken = Waiting(), []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        before = worked() if worked else 0.0
        waited, begun = waiting(), time.perf_counter()
        act()
        wall = time.perf_counter() - begun
        took = max(0.0, wall - (waiting() - waited))
        taken.append(min(took, worked() - before) if worked else took)
        # Like an engine that waits for its model; the lock is free meanwhile.
        time.sleep(0.0005)
    return taken


def processor_time(thread: threading.Thread) -> Callable[[], float] | None:
    """A clock of a thread's processor time, in seconds; None if the system has none."""
    if not hasattr(time, "pthread_getcpuclockid") or thread.ident is None:
        return None
    clock = time.pthread_getcpuclockid(thread.ident)
    return lambda: time.clock_gettime(clock)


def summary(taken: list[float]) -> list[float]:
    p50, p99, p999 = (float(value) for value in np.percentile(taken, [50, 99, 99.9]) * 1000)
    return [len(taken), p50, p99, p999]


def one(title: str, folder: Path, seconds: float) -> tuple[list[float], list[float]]:
    info = TokenizerInfo.from_file(folder)
    made = GrammarCompiler(info)
    matcher = GrammarMatcher(made.compile_json_schema(PERSON))
    assert matcher.accept_string('{"name": "')
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    token = info.tokenize_bytes(b"a")[0]

    def step() -> None:
        matcher.fill_next_token_bitmask(mask)
        matcher.accept_token(token)
        matcher.rollback(1)

    work = HEAVY[title](made)
    work()
    timed(step, 0.2)
    stop = threading.Event()

    def heavily() -> None:
        while not stop.is_set():
            work()

    thread = threading.Thread(target=heavily)
    sys.setswitchinterval(0.0001)
    thread.start()
    worked = processor_time(thread)
    found = summary(timed(lambda: time.sleep(0), seconds, worked)), summary(timed(step, seconds))
    stop.set()
    thread.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--tokenizer", type=Path, help="its folder; the embedded one by default")
    parser.add_argument("--seconds", type=float, default=10, help="of each kind of heavy work")
    parser.add_argument("--case", action="append", help="only titles that hold this text")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = options.tokenizer or Path(stencilm.__file__).parent / "tiny"
    if options.one:
        print(json.dumps(one(options.one, folder, options.seconds)))
        return
    print("| heavy work | Python's lock: p50, ms | p99 | p99.9 | a step: p50, ms | p99 | p99.9 |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for title in HEAVY:
        if options.case and not any(part in title for part in options.case):
            continue
        command = [
            sys.executable,
            "-m",
            "bench.latency",
            "--one",
            title,
            "--tokenizer",
            str(folder),
        ]
        command += ["--seconds", str(options.seconds)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        lock, step = json.loads(done.stdout)
        cells = [f"{value:.3f}" for value in (*lock[1:], *step[1:])]
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
