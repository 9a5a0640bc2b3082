"""JSON Schema on public data: what compiles, what is decided wrongly, what takes long.

    python bench/json_schema.py maskbench --tokenizer llama3 --jobs 2 --out out/maskbench.jsonl
    python bench/json_schema.py suite --out out/suite.jsonl

`maskbench` compiles every schema of MaskBench and reads every instance token by token; the mask
before each token must agree with whether the token is accepted. A step that takes more CPU time
than the limit ends its process, and counts as a timeout. `suite` decides every case of the
JSON-Schema-Test-Suite, each written in four ways by `json.dumps`. Both print tables, and store
everything unexpected as JSON Lines.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Literal

import numpy as np

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STENCILM_SHARED", ROOT.parent / "shared"))
# A process is replaced after this many schemas.
SCHEMAS_PER_PROCESS = 300
TINY = Path(stencilm.__file__).parent / "tiny"
REMOTE = "http://localhost:1234/"
# The ways in which `json.dumps` writes a case of the suite.
STYLES: dict[str, dict[str, Any]] = {
    "compact": {"separators": (",", ":"), "ensure_ascii": False},
    "default": {"ensure_ascii": False},
    "compact, escaped": {"separators": (",", ":")},
    "default, escaped": {},
}


@dataclass
class Schema:
    """A schema with its instances, each with whether it is valid."""

    name: str
    group: str
    schema: Any
    tests: list[tuple[Any, bool]]


@dataclass
class Outcome:
    """The outcome of one schema."""

    name: str
    group: str
    what: str
    note: str = ""
    compile_s: float = 0.0
    slowest_s: float = 0.0
    decided: Counter[str] = field(default_factory=Counter)


def maskbench(only: list[str]) -> Iterator[Schema]:
    """All schemas, or those with the requested names or groups."""
    for file in sorted((SHARED / "maskbench").glob("*.jsonl.gz")):
        group = file.name.removesuffix(".jsonl.gz")
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if only and group not in only and row["id"] not in only:
                    continue
                tests = [(test["data"], test["valid"]) for test in row["tests"]]
                yield Schema(row["id"], group, row["schema"], tests)


class Reader:
    """Compiles schemas and reads instances, with a limit of CPU seconds for every step."""

    def __init__(self, info: TokenizerInfo, limit_s: float, options: dict[str, Any]) -> None:
        self._compiler = GrammarCompiler(info, cache_enabled=False)
        self._info = info
        self._limit_s = limit_s
        self._options = options
        self._mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)

    def read(self, case: Schema) -> Outcome:
        """Compile, fill the first mask, and decide all instances."""
        outcome = Outcome(case.name, case.group, "pass")
        text = json.dumps(case.schema)
        self._begin()
        start = time.process_time()
        try:
            compiled = self._compiler.compile(Grammar.from_json_schema(text, **self._options))
            GrammarMatcher(compiled).fill_next_token_bitmask(self._mask)
        except stencilm.StencilError as error:
            outcome.what, outcome.note = "refused", f"{type(error).__name__}: {error}"
            return outcome
        finally:
            outcome.compile_s = time.process_time() - start
            self._end()
        for at, (data, valid) in enumerate(case.tests):
            ids = self._info.tokenize_bytes(json.dumps(data, ensure_ascii=False).encode())
            self._begin()
            start = time.process_time()
            try:
                accepted, note = self._decide(GrammarMatcher(compiled), ids)
            except stencilm.StencilError as error:
                accepted, note = not valid, f"{type(error).__name__}: {error}"
            finally:
                outcome.slowest_s = max(outcome.slowest_s, time.process_time() - start)
                self._end()
            verdict = "right" if accepted == valid else "refused" if valid else "accepted"
            outcome.decided[f"{'valid' if valid else 'invalid'} {verdict}"] += 1
            if verdict != "right" and outcome.what == "pass":
                outcome.what = f"{'valid' if valid else 'invalid'} {verdict}"
                outcome.note = f"instance {at}: {note}"
        return outcome

    def _decide(self, matcher: GrammarMatcher, ids: list[int]) -> tuple[bool, str]:
        """Whether all tokens and then the end are allowed.

        Otherwise the position of the refusal.
        """
        mask = self._mask
        for at, token in enumerate(ids):
            matcher.fill_next_token_bitmask(mask)
            allowed = bool(int(mask[token >> 5]) >> (token & 31) & 1)
            if matcher.accept_token(token) != allowed:
                raise AssertionError(f"the mask says {allowed} of token {at}, which is {token}")
            if not allowed:
                before = self._info.dbg_tokens(ids[max(0, at - 8) : at])
                return False, f"{self._info.dbg_tokens([token])} behind …{before}"
        matcher.fill_next_token_bitmask(mask)
        stop = self._info.stop_token_ids[0]
        allowed = bool(int(mask[stop >> 5]) >> (stop & 31) & 1)
        if allowed != matcher.is_completed():
            raise AssertionError("the mask and is_completed disagree on the end")
        return allowed, "the end" if not allowed else "accepted"

    def _begin(self) -> None:
        # An exception that nothing catches, so that it ends the process even within Rust.
        signal.setitimer(signal.ITIMER_PROF, self._limit_s)

    def _end(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)


def work(pipe: Connection, folder: str, limit_s: float, options: dict[str, Any]) -> None:
    """A process that reads one schema after another."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    reader = Reader(TokenizerInfo.from_file(folder), limit_s, options)
    pipe.send(None)
    while True:
        case = pipe.recv()
        if case is None:
            return
        try:
            outcome = reader.read(case)
        except BaseException as error:
            # A panic of Rust is not an Exception.
            outcome = Outcome(case.name, case.group, "crash", f"{type(error).__name__}: {error}")
        pipe.send(outcome)


class Worker:
    """A process, and the schema that it is working on."""

    def __init__(self, folder: str, limit_s: float, options: dict[str, Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=work, args=(theirs, folder, limit_s, options), daemon=True
        )
        self.process.start()
        theirs.close()
        self.done = 0
        self.case: Schema | None = None

    def outcome(self) -> Outcome | None:
        """The outcome; None from a process that is ready for its first schema."""
        try:
            outcome: Outcome | None = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            assert self.case is not None, "a process ended before its first schema"
            code = self.process.exitcode or 0
            what = "timeout" if code == -signal.SIGPROF else "crash"
            outcome = Outcome(self.case.name, self.case.group, what, f"exit code {code}")
            self.done = SCHEMAS_PER_PROCESS
        return outcome

    def end(self) -> None:
        """Release the process."""
        if self.process.is_alive():
            self.pipe.send(None)
        self.process.join()


def read_all(
    cases: list[Schema], folder: str, jobs: int, limit_s: float, options: dict[str, Any]
) -> Iterator[Outcome]:
    """All outcomes, in the order of completion."""
    left = iter(cases)
    workers = [Worker(folder, limit_s, options) for _ in range(min(jobs, len(cases)))]
    while workers:
        for pipe in wait([worker.pipe for worker in workers]):
            place = next(place for place, worker in enumerate(workers) if worker.pipe is pipe)
            worker = workers[place]
            outcome = worker.outcome()
            if outcome is not None:
                worker.done += 1
                yield outcome
            if worker.done >= SCHEMAS_PER_PROCESS:
                worker.end()
                workers[place] = Worker(folder, limit_s, options)
                continue
            worker.case = next(left, None)
            if worker.case is None:
                worker.end()
                workers.pop(place)
                break
            worker.pipe.send(worker.case)


def run_maskbench(options: argparse.Namespace) -> int:
    """Read all schemas and print their outcomes."""
    cases = list(maskbench(options.only))
    given = {"property_order": options.order, "spelling": options.spelling}
    folder = str(SHARED / "tokenizers" / options.tokenizer)
    outcomes: list[Outcome] = []
    with options.out.open("w", encoding="utf-8") as out:
        for outcome in read_all(cases, folder, options.jobs, options.limit, given):
            outcomes.append(outcome)
            slow = max(outcome.compile_s, outcome.slowest_s) > 0.5
            if outcome.what != "pass" or slow:
                out.write(json.dumps(outcome.__dict__, ensure_ascii=False) + "\n")
                out.flush()
            if len(outcomes) % 500 == 0:
                print(f"{len(outcomes)} of {len(cases)}", file=sys.stderr, flush=True)
    kinds = ["pass", "refused", "valid refused", "invalid accepted", "crash", "timeout"]
    print("| group | schemas | " + " | ".join(kinds) + " | slowest compile, s | instance, s |")
    print("|---|" + "--:|" * (len(kinds) + 3))
    groups = sorted({outcome.group for outcome in outcomes})
    for group in [*groups, "all"]:
        mine = [outcome for outcome in outcomes if group in (outcome.group, "all")]
        counts = Counter(outcome.what for outcome in mine)
        cells = " | ".join(str(counts[kind]) for kind in kinds)
        compiled = max(outcome.compile_s for outcome in mine)
        slowest = max(outcome.slowest_s for outcome in mine)
        print(f"| {group} | {len(mine)} | {cells} | {compiled:.2f} | {slowest:.2f} |")
    decided = sum((outcome.decided for outcome in outcomes), Counter())
    print("\ninstances:", ", ".join(f"{count} {what}" for what, count in sorted(decided.items())))
    return 0


def documents() -> dict[str, Any]:
    """The documents that the suite's schemas refer to, by the addresses in the suite."""
    remotes = SHARED / "json-schema-test-suite" / "remotes"
    files = [path for path in remotes.rglob("*.json") if not is_of_another_draft(path, remotes)]
    return {
        REMOTE + path.relative_to(remotes).as_posix(): json.loads(path.read_text(encoding="utf-8"))
        for path in files
    }


def is_of_another_draft(path: Path, remotes: Path) -> bool:
    """Whether a document is only for drafts 3, 4 or 6, or for the next version."""
    first = path.relative_to(remotes).parts[0]
    return first in ("draft3", "draft4", "draft6", "v1")


def run_suite(options: argparse.Namespace) -> int:
    """Decides all cases in all styles and prints the counts."""
    info = TokenizerInfo.from_file(TINY)
    compiler = GrammarCompiler(info)
    folder = SHARED / "json-schema-test-suite" / "draft2020-12"
    remote = documents()
    counts: Counter[str] = Counter()
    with options.out.open("w", encoding="utf-8") as out:
        for file in sorted(folder.rglob("*.json")):
            name = file.relative_to(folder).as_posix()
            for group in json.loads(file.read_text(encoding="utf-8")):
                # Other files assume that formats are asserted, this one that they are not.
                formats: Literal["enforced", "annotation"]
                formats = "annotation" if name == "format.json" else "enforced"
                for title, verdict in decide_group(compiler, group, remote, formats):
                    counts[verdict.split(":")[0]] += 1
                    if verdict != "right":
                        row = {"file": name, "case": title, "verdict": verdict}
                        out.write(json.dumps(row, ensure_ascii=False) + "\n")
    total = sum(counts.values())
    for verdict, count in counts.most_common():
        print(f"{verdict}: {count} of {total}, {100 * count / total:.2f} %")
    return 0


def decide_group(
    compiler: GrammarCompiler,
    group: dict[str, Any],
    given: dict[str, Any],
    formats: Literal["enforced", "annotation"],
) -> Iterator[tuple[str, str]]:
    """The verdict of every case of a group."""
    try:
        compiled = compiler.compile_json_schema(
            group["schema"],
            spelling="any",
            property_order="any",
            formats=formats,
            documents=given,
        )
    except stencilm.Unsatisfiable:
        for test in group["tests"]:
            title = f"{group['description']}: {test['description']}"
            yield title, "wrong: unsatisfiable" if test["valid"] else "right"
        return
    except stencilm.StencilError as error:
        for test in group["tests"]:
            yield f"{group['description']}: {test['description']}", f"refused: {error}"
        return
    for test in group["tests"]:
        found = set()
        for style, how in STYLES.items():
            matcher = GrammarMatcher(compiled)
            text = json.dumps(test["data"], **how)
            if (matcher.accept_string(text) and matcher.is_completed()) != test["valid"]:
                found.add(style)
        verdict = f"wrong: valid is {test['valid']}; {', '.join(sorted(found))}"
        yield f"{group['description']}: {test['description']}", verdict if found else "right"


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    bench = commands.add_parser("maskbench", help="all schemas and instances of MaskBench")
    bench.add_argument("only", nargs="*", help="groups or names of schemas")
    bench.add_argument("--tokenizer", default="llama3", choices=["llama3", "gpt2", "mistral-v1"])
    bench.add_argument("--order", default="any", choices=["any", "declared"])
    bench.add_argument("--spelling", default="natural", choices=["natural", "any"])
    bench.add_argument("--limit", type=float, default=5.0, help="CPU seconds for each step")
    bench.add_argument("--jobs", type=int, default=1)
    bench.set_defaults(run=run_maskbench)
    suite = commands.add_parser("suite", help="the JSON-Schema-Test-Suite, draft 2020-12")
    suite.set_defaults(run=run_suite)
    for command in (bench, suite):
        command.add_argument("--out", type=Path, required=True, help="what is not as it should be")
    options = parser.parse_args()
    if not SHARED.is_dir():
        parser.error(f"data is looked for in {SHARED}; name its folder in STENCILM_SHARED")
    result: int = options.run(options)
    return result


if __name__ == "__main__":
    sys.exit(main())
