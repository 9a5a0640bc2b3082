"""Many threads on one vocabulary, with signals and garbage collection: answers must not change.

    python -m bench.stress --threads 8 --minutes 10

Jobs are numbered: a number makes the same requests, walks and queries again. Each is first done by
a single thread in a separate process. Then threads do them in any order, over and over, while
caches are cleared, signal handlers make calls of their own, and garbage is collected. A job's
answers must be those of the single thread.

Each call is timed. On Linux the system reports how long a thread was neither on a processor nor
waiting for one: for that long the call was blocked, whatever the load of the machine. No call may
be blocked for more than a second beyond the deadline of its request.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import stencilm
from stencilm import (
    BatchGrammarMatcher,
    CompiledGrammar,
    GrammarCompiler,
    GrammarMatcher,
    LimitExceeded,
    Limits,
    StencilError,
    TokenizerInfo,
)

ROOT = Path(__file__).resolve().parent.parent
DEADLINE = 2.0
"""The limit of one operation, in seconds of processor time."""
LONGEST_STALL = 1.0
"""How many seconds beyond its deadline a call may be blocked."""
LIMITS = Limits(milliseconds=int(DEADLINE * 1000), lexicon_bytes=8 << 20, mask_cache_bytes=1 << 20)
"""Small budgets, so that shared data is evicted and computed again all the time."""

LIST = """
root ::= "[" item ("," item)* "]"
item ::= name@([a-z]{1,8}) | "(" inner@(root) ")" | number@([0-9]+)
"""
CALLS = {
    "type": "triggered_tags",
    "triggers": ["<call="],
    "tags": [
        {
            "begin": "<call=weather>",
            "content": {
                "type": "json_schema",
                "json_schema": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                    "required": ["city"],
                },
            },
            "end": "</call>",
        }
    ],
}


@dataclass
class Times:
    """The durations of calls of one kind, in seconds."""

    count: int = 0
    longest: float = 0.0
    longest_stall: float = 0.0
    cpu: float = 0.0

    def add(self, wall: float, cpu: float, stall: float) -> None:
        self.count += 1
        self.cpu += cpu
        self.longest = max(self.longest, wall)
        self.longest_stall = max(self.longest_stall, stall)


class Clock:
    """Times the calls of one thread, by name."""

    def __init__(self) -> None:
        self.times: dict[str, Times] = {}
        try:
            self._schedule: Any = open("/proc/thread-self/schedstat", "rb", buffering=0)  # noqa: SIM115
        except OSError:
            self._schedule = None

    def _at_work(self) -> float:
        """Seconds for which this thread has run or has waited for a processor."""
        if self._schedule is None:
            return time.perf_counter()
        self._schedule.seek(0)
        ran, waited, _ = self._schedule.read(100).split()
        return (int(ran) + int(waited)) / 1e9

    def __call__(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        at_work, cpu, begun = self._at_work(), time.thread_time(), time.perf_counter()
        try:
            return call(*arguments)
        finally:
            wall = time.perf_counter() - begun
            cpu = time.thread_time() - cpu
            stall = max(0.0, wall - (self._at_work() - at_work))
            self.times.setdefault(name, Times()).add(wall, cpu, stall)


class Walk:
    """One sequence whose steps depend on the job's own random numbers, and the answers it got."""

    def __init__(
        self, compiled: CompiledGrammar, rng: random.Random, clock: Clock, told: Any
    ) -> None:
        self.matcher = clock("matcher", GrammarMatcher, compiled)
        self.rng, self.clock, self.told = rng, clock, told
        self.size = compiled.tokenizer_info.vocab_size
        self.mask: NDArray[np.int32] = np.zeros((self.size + 31) // 32, dtype=np.int32)

    def allowed(self) -> NDArray[np.int64]:
        self.clock("mask", self.matcher.fill_next_token_bitmask, self.mask)
        self.told.update(self.mask.tobytes())
        return np.flatnonzero(
            np.unpackbits(self.mask.view(np.uint8), bitorder="little")[: self.size]
        )

    def step(self) -> bool:
        if self.matcher.is_terminated():
            return False
        allowed = self.allowed()
        token = int(allowed[self.rng.randrange(len(allowed))])
        assert self.clock("accept", self.matcher.accept_token, token)
        return not self.matcher.is_terminated()

    def steps(self, count: int) -> None:
        for _ in range(count):
            if not self.step():
                return


def schema(rng: random.Random) -> dict[str, Any]:
    kinds: list[dict[str, Any]] = [
        {"type": "string", "maxLength": rng.randrange(3, 60)},
        {"type": "integer", "minimum": rng.randrange(100), "maximum": rng.randrange(100, 9000)},
        {"type": "number"},
        {"type": "string", "pattern": f"^[a-z]{{{rng.randrange(1, 9)}}}(-[0-9]+)?$"},
        {"type": "array", "items": {"type": "boolean"}, "maxItems": rng.randrange(1, 9)},
        {"enum": [f"value {rng.randrange(50)}" for _ in range(rng.randrange(1, 30))]},
        {"type": "string", "format": rng.choice(["date-time", "uuid", "email", "ipv4", "uri"])},
    ]
    names = [f"{word}_{rng.randrange(20)}" for word in ("name", "age", "city", "tag", "note")]
    properties = {name: rng.choice(kinds) for name in names}
    return {
        "type": "object",
        "properties": properties,
        "required": names[: rng.randrange(len(names))],
        "additionalProperties": rng.random() < 0.3,
    }


def unique(rng: random.Random) -> dict[str, Any]:
    items = rng.choice(
        [
            {"type": "integer"},
            {"type": "string", "pattern": "^[ab]{1,3}$"},
            {"enum": list(range(rng.randrange(3, 40)))},
            {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
        ]
    )
    return {"type": "array", "items": items, "uniqueItems": True, "minItems": 1}


def pattern(rng: random.Random) -> str:
    part = rng.choice(["[a-z]", ".", r"\w", "[ab]", "[0-9a-f]"])
    count = rng.randrange(1, 30)
    return rng.choice(
        [
            f"{part}*x{part}{{{count}}}{part}+",
            f"({part}{{{count}}}-)*{part}+",
            f"(?i)({part}+[ab].{{{count}}}|x{count})",
        ]
    )


def compiled_of(kind: str, rng: random.Random, compiler: GrammarCompiler) -> CompiledGrammar:
    if kind == "schema":
        return compiler.compile_json_schema(schema(rng))
    if kind == "unique":
        return compiler.compile_json_schema(unique(rng))
    if kind == "pattern":
        return compiler.compile_regex(pattern(rng))
    if kind == "list":
        return compiler.compile_grammar(LIST.replace("{1,8}", f"{{1,{rng.randrange(2, 40)}}}"))
    return compiler.compile_structural_tag(CALLS)


KINDS = ("schema", "unique", "pattern", "list", "tag")


def job(number: int, compiler: GrammarCompiler, batch: BatchGrammarMatcher, clock: Clock) -> str:
    """Do the job with a number.

    Returns a fingerprint of its answers, or the limit that it reached.
    """
    rng = random.Random(number)
    told = hashlib.blake2b(digest_size=12)
    kind = KINDS[number % len(KINDS)]
    try:
        compiled = clock(f"compile {kind}", compiled_of, kind, rng, compiler)
        walk = Walk(compiled, rng, clock, told)
        walk.steps(rng.randrange(2, 12))
        matcher = walk.matcher
        if matcher.num_accepted_tokens:
            clock("rollback", matcher.rollback, rng.randrange(matcher.num_accepted_tokens))
        fork = Walk.__new__(Walk)
        fork.__dict__.update(walk.__dict__, matcher=clock("fork", matcher.fork))
        fork.steps(3)
        walk.steps(2)
        told.update(repr(clock("captures", matcher.get_captures)).encode())
        told.update(clock("completion", matcher.shortest_completion))
        told.update(clock("forced", matcher.find_jump_forward_string).encode())
        several = [matcher.fork() for _ in range(4)]
        running = [one for one in several if not one.is_terminated()]
        masks = np.zeros((len(running), len(walk.mask)), dtype=np.int32)
        if running:
            clock("batch", batch.batch_fill_next_token_bitmask, running, masks)
        told.update(masks.tobytes())
        if rng.random() < 0.2:
            told.update(clock("serialize", compiled.serialize_json).encode())
    except LimitExceeded as error:
        return f"limit: {type(error).__name__}"
    except StencilError as error:
        return f"{type(error).__name__}: {error}"
    return told.hexdigest()


def alone(jobs: int, info: TokenizerInfo) -> list[str]:
    """The answers of a single thread, job by job."""
    compiler, batch, clock = GrammarCompiler(info, limits=LIMITS), BatchGrammarMatcher(1), Clock()
    return [job(number, compiler, batch, clock) for number in range(jobs)]


@dataclass
class Outcome:
    """The results of a run with threads."""

    done: int = 0
    limits: int = 0
    wrong: list[str] = field(default_factory=list)
    signals: int = 0
    collections: int = 0
    times: dict[str, Times] = field(default_factory=dict)

    def stalled(self) -> list[str]:
        """The calls that were blocked for too long."""
        longest = DEADLINE + LONGEST_STALL
        return [name for name, times in self.times.items() if times.longest_stall > longest]


class Run:
    """Threads that do jobs until they are told to stop."""

    def __init__(self, info: TokenizerInfo, expected: list[str], seed: int) -> None:
        self.info, self.expected, self.seed = info, expected, seed
        self.compiler = GrammarCompiler(info, limits=LIMITS)
        self.batch = BatchGrammarMatcher(2)
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.outcome = Outcome()
        self.in_handler = False

    def work(self, thread: int) -> None:
        rng, clock = random.Random(f"{self.seed}-{thread}"), Clock()
        done: Counter[str] = Counter()
        wrong: list[str] = []
        while not self.stop.is_set():
            number = rng.randrange(len(self.expected))
            if rng.random() < 0.02:
                clock("clear_cache", self.compiler.clear_cache)
            try:
                found = job(number, self.compiler, self.batch, clock)
            except Exception as error:  # any other error is a finding, and the other threads go on
                found = f"{type(error).__name__}: {error}"
            expected = self.expected[number]
            is_limit = found.startswith("limit") or expected.startswith("limit")
            done["limits" if is_limit else "done"] += 1
            if found != expected and not is_limit:
                wrong.append(f"job {number}: {found}, by one thread {expected}")
        with self.lock:
            self.outcome.done += done["done"]
            self.outcome.limits += done["limits"]
            self.outcome.wrong += wrong
            for name, times in clock.times.items():
                all_times = self.outcome.times.setdefault(name, Times())
                all_times.count += times.count
                all_times.cpu += times.cpu
                all_times.longest = max(all_times.longest, times.longest)
                all_times.longest_stall = max(all_times.longest_stall, times.longest_stall)

    def collect(self) -> None:
        while not self.stop.wait(0.02):
            gc.collect()
            self.outcome.collections += 1

    def on_signal(self, *_: Any) -> None:
        """A handler that requests a mask itself, in the middle of whatever the main thread does."""
        if self.in_handler:
            return  # The handler of the last signal is still at work.
        self.in_handler = True
        self.outcome.signals += 1
        pattern = f"[a-z]{{{self.outcome.signals % 50}}}x"
        matcher = GrammarMatcher(self.compiler.compile_regex(pattern))
        mask = np.zeros((self.info.vocab_size + 31) // 32, dtype=np.int32)
        matcher.fill_next_token_bitmask(mask)
        self.in_handler = False

    def __call__(self, threads: int, seconds: float) -> Outcome:
        """Let threads work for this long, including the main thread, where signals are handled."""
        pool = [threading.Thread(target=self.work, args=(number,)) for number in range(threads - 1)]
        pool.append(threading.Thread(target=self.collect))
        timer = threading.Timer(seconds, self.stop.set)
        has_signals = hasattr(signal, "setitimer")
        before = signal.signal(signal.SIGALRM, self.on_signal) if has_signals else None
        for thread in (*pool, timer):
            thread.start()
        try:
            if has_signals:
                signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
            self.work(threads - 1)
        finally:
            if has_signals:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)
            self.stop.set()
            for thread in (*pool, timer):
                thread.join()
        return self.outcome


def in_a_process_of_its_own(folder: Path, jobs: int) -> list[str]:
    command = [sys.executable, "-m", "bench.stress", "--alone", "--tokenizer", str(folder)]
    command += ["--jobs", str(jobs)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    found: list[str] = json.loads(done.stdout)
    return found


def report(outcome: Outcome) -> str:
    lines = [
        f"{outcome.done} jobs done, {outcome.limits} met a limit, {len(outcome.wrong)} were wrong; "
        f"{outcome.signals} signals, {outcome.collections} collections of garbage",
        "",
        "| call | calls | processor time, s | longest, s | longest standstill, s |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, times in sorted(outcome.times.items()):
        lines.append(
            f"| {name} | {times.count} | {times.cpu:.1f} | {times.longest:.3f} | "
            f"{times.longest_stall:.3f} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.stress", description=__doc__)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--jobs", type=int, default=300, help="how many different jobs there are")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokenizer", type=Path, help="its folder; the embedded one by default")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = options.tokenizer or Path(stencilm.__file__).parent / "tiny"
    if options.alone:
        print(json.dumps(alone(options.jobs, TokenizerInfo.from_file(folder))))
        return 0
    expected = in_a_process_of_its_own(folder, options.jobs)
    kinds = Counter(found if ":" in found else "an answer" for found in expected)
    print(f"by one thread: {dict(kinds)}", flush=True)
    run = Run(TokenizerInfo.from_file(folder), expected, options.seed)
    outcome = run(options.threads, options.minutes * 60)
    print(report(outcome))
    for line in outcome.wrong[:20]:
        print(f"WRONG: {line}")
    for name in outcome.stalled():
        print(f"STALLED: {name}")
    return 1 if outcome.wrong or outcome.stalled() else 0


if __name__ == "__main__":
    sys.exit(main())
