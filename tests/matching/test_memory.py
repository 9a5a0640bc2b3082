"""What is kept in memory stays within what the limits allow, seen from outside of the process.

Each case runs in a process of its own. What it held at most is what the system says of it when it
has ended, less what a process holds that only has the tokenizer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import memory_cases
from stencilm import Limits
from tokenizer_folders import FOLDERS, missing

MIB = 1 << 20
# Smaller than by default, so that the small tokenizer comes to them, too.
SMALL = {"lexicon_bytes": 32 * MIB, "working_bytes": 64 * MIB}
LIMITS: dict[str, dict[str, Any]] = {"tiny": SMALL, "llama3": {}}
# What lists take while they grow, and what the allocator keeps for later.
SLACK = 64 * MIB


@cache
def measured(case: str, tokenizer: str) -> tuple[int, dict[str, Any]]:
    """The most bytes that a process holds which runs a case, and what the case says."""
    tests = Path(__file__).resolve().parents[1]
    paths = os.pathsep.join(filter(None, [str(tests), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "memory_cases", case, tokenizer, json.dumps(LIMITS[tokenizer])]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": paths}
    )
    assert child.stdout is not None
    said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, f"the case {case} ended with {child.returncode}"
    unit = 1 if sys.platform == "darwin" else 1024
    return usage.ru_maxrss * unit, json.loads(said.splitlines()[-1])


def bounds(tokenizer: str) -> Limits:
    return Limits(**LIMITS[tokenizer])


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="the system does not say what a child held")
@pytest.mark.parametrize("tokenizer", LIMITS)
@pytest.mark.parametrize("case", [case for case in memory_cases.CASES if case != "nothing"])
def test_a_process_holds_what_its_limits_allow(case: str, tokenizer: str) -> None:
    if not (FOLDERS[tokenizer] / "tokenizer.json").exists():
        pytest.skip(missing(tokenizer))
    limits = bounds(tokenizer)
    base, _ = measured("nothing", tokenizer)
    most, said = measured(case, tokenizer)
    # All that is kept, and what one call works with.
    allowed = {
        "requests": limits.lexicon_bytes,
        "waiting": limits.lexicon_bytes,
        "ordinary": limits.lexicon_bytes + said["cache"],
        "forty": limits.lexicon_bytes + limits.working_bytes,
        # Where a text is read again, what it needed before is still being let go.
        "pairs": limits.lexicon_bytes + 2 * limits.working_bytes,
        # Its grammar: some 80 bytes for each of the text, and as much again while it is read.
        "literal": 176 * MIB,
        # As much while one of them is read.
        "texts": 176 * MIB,
    }[case]
    assert most - base <= allowed + SLACK, f"{(most - base) / MIB:.0f} MiB"
    assert said["shared"] <= limits.lexicon_bytes + limits.working_bytes


@pytest.mark.parametrize("tokenizer", LIMITS)
def test_long_texts_take_a_small_multiple_of_their_length(tokenizer: str) -> None:
    if not (FOLDERS[tokenizer] / "tokenizer.json").exists():
        pytest.skip(missing(tokenizer))
    _, base = measured("nothing", tokenizer)
    _, said = measured("texts", tokenizer)
    if said["resident"] is None:
        pytest.skip("the system does not say what a process holds")
    # Five texts of a megabyte, which Python has, too; 20 bytes for each byte.
    assert said["resident"] - base["resident"] <= 5 * 20 * MIB


def test_a_limit_that_is_reached_says_which_to_raise() -> None:
    _, said = measured("pairs", "tiny")
    assert said["refused"], "so many states are more than the limit allows"
    assert all("raise `working_bytes` of the limits" in message for message in said["refused"])
