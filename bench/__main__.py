"""The one runner of all cases: python -m bench --list."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from bench import records
from bench.cases import CASES, Case
from bench.measures import MEASURES

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STENCILM_SHARED", ROOT.parent / "shared"))


def in_fresh_process(case: Case, first: bool) -> dict[str, float]:
    command = [sys.executable, "-m", "bench", "--one", case.name] + (["--first"] if first else [])
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers


def run(case: Case, rounds: int) -> list[dict[str, float]]:
    measured = []
    for _ in range(rounds):
        numbers = in_fresh_process(case, first=False)
        if case.measure == "walk":
            numbers |= in_fresh_process(case, first=True)
        measured.append(numbers)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    parser.add_argument(
        "--case", action="append", metavar="NAME", help="only these; may be repeated"
    )
    parser.add_argument("--rounds", type=int, default=3, help="fresh processes for each case")
    parser.add_argument("--out", type=Path, help="keep the records in this folder")
    parser.add_argument(
        "--record", action="store_true", help=f"keep them in {records.FOLDER.name}/"
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--first", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    cases = {case.name: case for case in CASES}
    if options.one:
        case = cases[options.one]
        print(json.dumps(MEASURES[case.measure](case, SHARED, options.first)))
        return
    if options.list:
        for case in CASES:
            print(f"{case.name:<16} {case.title}")
        return
    unknown = set(options.case or []) - set(cases)
    if unknown:
        parser.error(f"no case is called {', '.join(sorted(unknown))}; --list names them")
    if not SHARED.is_dir():
        parser.error(f"tokenizers are looked for in {SHARED}; name their folder in STENCILM_SHARED")
    for case in CASES:
        if options.case and case.name not in options.case:
            continue
        measured = run(case, options.rounds)
        if not any(measured):
            print(f"{case.name}: not measured, since this version cannot do it\n")
            continue
        command = f"python -m bench --case {case.name} --rounds {options.rounds}"
        kept = records.record(case, command, measured)
        print(records.table(kept), flush=True)
        for folder in filter(None, [options.out, records.FOLDER if options.record else None]):
            records.save(kept, folder)


if __name__ == "__main__":
    main()
