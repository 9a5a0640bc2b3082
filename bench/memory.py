"""The memory of processes that get requests for much of it, next to what is reported.

Each case of `tests/memory_cases.py` runs in a process of its own. Its peak is what the system
reports when it has ended, minus that of a process that only loads the tokenizer.

    python bench/memory.py --tokenizer llama3 --case requests --case ordinary
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20


def measured(case: str, tokenizer: str, limits: str) -> tuple[int, float, dict[str, Any]]:
    """The peak memory in bytes, the seconds of processor time, and the output of the case."""
    paths = os.pathsep.join(
        filter(None, [str(ROOT / "tests"), str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    )
    child = subprocess.Popen(
        [sys.executable, "-m", "memory_cases", case, tokenizer, limits],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": paths},
    )
    assert child.stdout is not None
    said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"the case {case} ended with {child.returncode}")
    return usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime, json.loads(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", default="tiny")
    parser.add_argument("--case", action="append", help="only these; may be repeated")
    parser.add_argument("--limits", default="{}", help="bounds other than by default, as JSON")
    options = parser.parse_args()
    every = ["requests", "waiting", "ordinary", "forty", "pairs", "literal", "texts"]
    base, seconds, _ = measured("nothing", options.tokenizer, options.limits)
    print(f"{options.tokenizer}: {base / MIB:.0f} MiB and {seconds:.1f} s before the requests\n")
    print("| case | MiB held beside that | cache | shared | CPU s | limits reached |")
    print("|---|--:|--:|--:|--:|--:|")
    for case in options.case or every:
        most, used, said = measured(case, options.tokenizer, options.limits)
        reported = [f"{said[name] / MIB:.0f}" for name in ("cache", "shared")]
        cells = [case, f"{(most - base) / MIB:.0f}", *reported]
        cells += [f"{used - seconds:.1f}", str(len(said["refused"]))]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
