"""stencilm next to the released versions of its peers: `python -m bench.peers`.

    python -m bench.peers --schemas 200 --tokenizer ../shared/tokenizers/llama3

Each peer is installed from the package index into an environment of its own in `.peers`, on top of
the packages here; one that cannot be installed is named and left out. All engines read the same
schemas with the same texts, one engine after another for each schema, taking turns at going first,
so that other load on the machine affects all of them. Times are of schemas that all engines pass.
The page has the tables, and the status of every schema with every engine.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.json_schema import SHARED, maskbench
from stencilm import TokenizerInfo

ROOT = Path(__file__).resolve().parent.parent
PEERS = ("llguidance", "xgrammar", "outlines-core")
PAGE = ROOT / "docs" / "benchmark.md"
_MOST_WAITED = 20
"""The timeout of an answer, as a multiple of the limit on processor time."""
MOST_TOKENS = 20_000
"""The most tokens in the texts of a schema; a longer one would dominate the times."""


class Worker:
    """An engine in a process of its own, restarted after a crash or a timeout."""

    def __init__(self, name: str, python: Path, folder: Path, info: TokenizerInfo) -> None:
        self.name = name
        self._command = [
            str(python), str(ROOT / "bench" / "peer_worker.py"), name, str(folder),
            str(info.vocab_size), str(info.stop_token_ids[0]),
        ]  # fmt: skip
        self._process: subprocess.Popen[str] | None = None
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the worker

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The engine's answer for a schema, or how the engine failed."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                env={**os.environ, "TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"},
            )
            if self._line(300) is None:
                self.stop()
                self._errors.seek(0)
                why = (self._errors.read().strip().splitlines() or [""])[-1]
                print(f"{self.name} does not start: {why}", file=sys.stderr)
                return {"status": "does not start", "why": why}
        process = self._process
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({**request, "seconds": seconds}) + "\n")
            process.stdin.flush()
            answer = self._line(_MOST_WAITED * seconds)
        except BrokenPipeError:
            answer = {"status": "crashes", "why": ""}
        if answer is None:
            answer = {"status": "times out" if self._is_late() else "crashes", "why": ""}
        if answer["status"] in ("times out", "crashes"):
            self.stop()
        return answer

    def _is_late(self) -> bool:
        """Whether the process is still at work, or was ended by the time limit."""
        assert self._process is not None
        try:
            return self._process.wait(1) == -getattr(signal, "SIGPROF", 0)
        except subprocess.TimeoutExpired:
            return True

    def _line(self, seconds: float) -> dict[str, Any] | None:
        assert self._process is not None and self._process.stdout is not None
        stdout = self._process.stdout
        ready, _, _ = select.select([stdout], [], [], seconds)
        line = stdout.readline() if ready else ""
        found: dict[str, Any] | None = json.loads(line) if line else None
        return found

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def installed(peer: str, folder: Path) -> tuple[Path, str] | None:
    """The interpreter of a peer's environment and its version; None if there is none."""
    home = folder / peer
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        # Packages that are here, such as torch, are not installed a second time.
        site = next(home.glob("**/site-packages"))
        here = [path for path in sys.path if path.endswith("site-packages")]
        (site / "over.pth").write_text("\n".join(here), encoding="utf-8")
    install = [str(python), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", peer]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    ask = f"from importlib.metadata import version; print(version({peer!r}))"
    found = subprocess.run([str(python), "-c", ask], capture_output=True, text=True, check=False)
    if found.returncode:
        reason = (done.stderr.strip().splitlines() or ["it cannot be installed"])[-1]
        print(f"{peer} is left out: {reason}", file=sys.stderr)
        return None
    return python, found.stdout.strip()


def requests_of(count: int, seed: int, info: TokenizerInfo) -> list[tuple[str, dict[str, Any]]]:
    """Schemas of the public data with their texts, drawn from all of its groups."""
    cases = [case for case in maskbench([]) if case.tests]
    random.Random(seed).shuffle(cases)
    found: list[tuple[str, dict[str, Any]]] = []
    for case in cases:
        texts = [
            (info.tokenize_bytes(json.dumps(value, ensure_ascii=False).encode()), is_valid)
            for value, is_valid in case.tests
        ]
        if sum(len(ids) for ids, _ in texts) <= MOST_TOKENS:
            found.append((case.name, {"schema": json.dumps(case.schema), "texts": texts}))
        if len(found) == count:
            break
    return found


def main() -> int:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--schemas", type=int, default=200, help="how many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="of processor time, for a schema"
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="for all schemas together")
    parser.add_argument("--tokenizer", type=Path, default=SHARED / "tokenizers" / "llama3")
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS)
    parser.add_argument("--environments", type=Path, default=ROOT / ".peers")
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    if not (options.tokenizer / "tokenizer.json").exists() or not (SHARED / "maskbench").is_dir():
        parser.error(
            f"a tokenizer is looked for in {options.tokenizer}, and the schemas of MaskBench in "
            f"{SHARED / 'maskbench'}; name their folder in STENCILM_SHARED"
        )
    info = TokenizerInfo.from_file(options.tokenizer)
    versions = {"stencilm": _own_version()}
    workers = [Worker("stencilm", Path(sys.executable), options.tokenizer, info)]
    for peer in options.peers:
        found = installed(peer, options.environments)
        if found is not None:
            versions[peer] = found[1]
            workers.append(Worker(peer, found[0], options.tokenizer, info))
    results: dict[str, dict[str, Any]] = {}
    begun = time.monotonic()
    requests = requests_of(options.schemas, options.seed, info)
    for number, (name, request) in enumerate(requests):
        turn = number % len(workers)
        results[name] = {
            worker.name: worker.ask(request, options.seconds)
            for worker in workers[turn:] + workers[:turn]
        }
        if sys.stderr.isatty():
            print(f"\r{number + 1} of {len(requests)}", end="", file=sys.stderr)
        if time.monotonic() - begun > options.minutes * 60:
            print(f"the time is over after {number + 1} schemas", file=sys.stderr)
            break
    for worker in workers:
        worker.stop()
    command = " ".join(["python -m bench.peers", *sys.argv[1:]])
    options.out.write_text(
        page(results, versions, command=command, about=f"{info.vocab_size:,} tokens"),
        encoding="utf-8",
    )
    print(f"the page is {options.out}")
    return 0


def _own_version() -> str:
    try:
        return version("stencilm")
    except PackageNotFoundError:
        return "of these sources"


def page(
    results: dict[str, dict[str, Any]], versions: dict[str, str], *, command: str, about: str
) -> str:
    """The page: counts of statuses, times of what all engines pass, and every schema."""
    names = list(versions)
    statuses = {name: Counter(row[name]["status"] for row in results.values()) for name in names}
    kinds = [kind for kind in _STATUSES if any(statuses[name][kind] for name in names)]
    passed = [
        row for row in results.values() if all(row[one]["status"] == "passes" for one in names)
    ]

    def times(what: str, share: float | None) -> list[str]:
        """A number for each engine: a quantile, or the mean."""
        cells = []
        for name in names:
            found = [one for row in passed for one in row[name][what]]
            cells.append(_number(_mean(found) if share is None else _quantile(found, share)))
        return cells

    rows = [
        ["compile and first mask, p50", *times("first", 0.5)],
        ["compile and first mask, p99", *times("first", 0.99)],
        ["mask and token, mean", *times("steps", None)],
        ["mask and token, p50", *times("steps", 0.5)],
        ["mask and token, p99", *times("steps", 0.99)],
    ]
    return _PAGE.format(
        command=command,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        count=len(results),
        about=about,
        machine=f"{platform.system()} on {platform.machine()}, {os.cpu_count()} processors",
        statuses=table(
            ["", *(f"{name} {versions[name]}" for name in names)],
            ([kind, *(str(statuses[name][kind]) for name in names)] for kind in kinds),
        ),
        meanings="\n".join(f"- *{kind}*: {_STATUSES[kind]}." for kind in kinds),
        passed=len(passed),
        times=table(["", *names], rows),
        schemas=table(
            ["schema", *names],
            (
                [f"`{name}`", *(str(row[one]["status"]) for one in names)]
                for name, row in sorted(results.items())
            ),
        ),
    )


_PAGE = """# Benchmark against other engines

`{command}` wrote this page on {date}: {count} schemas of MaskBench with their texts, a
vocabulary of {about}, one thread, {machine}. All engines read each schema one after another,
each in its own process, and each in turn goes first. Limits are in processor time. Times are
wall-clock times, on a machine that may do other work, so only ratios count.

## Statuses

{statuses}

{meanings}

stencilm reads keys in any order (`property_order="any"`), as the texts have them. The other
engines have their defaults for JSON Schema, with undeclared properties allowed if there is an
option for that. An engine with narrower rules for order or whitespace by design is *too strict*
here.

## Times

Of the {passed} schemas that all engines pass, in microseconds:

{times}

## Every schema

{schemas}
"""

_STATUSES = {
    "passes": "compiles, accepts every valid text and no invalid one",
    "refused": "the schema does not compile",
    "too strict": "a valid text is refused",
    "too loose": "an invalid text is accepted",
    "times out": "compiling and reading all texts takes more processor time than the limit",
    "crashes": "the process ended",
    "failed": "an error that is not the engine's own",
    "does not start": "the engine could not be set up for the tokenizer",
}


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


def _quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[round((len(ordered) - 1) * share)] if ordered else math.nan


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


if __name__ == "__main__":
    sys.exit(main())
