"""The record of a run: the numbers, the command, and the machine."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import stencilm
from bench.cases import Case

FOLDER = Path(__file__).resolve().parent / "records"


def machine() -> dict[str, Any]:
    """The facts that numbers depend on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "rust": _first_line(["rustc", "--version"]),
        "stencilm": stencilm.__version__,
        "commit": _first_line(["git", "-C", str(FOLDER), "describe", "--always", "--dirty"]),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), "unknown")


def _first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def record(case: Case, command: str, rounds: list[dict[str, float]]) -> dict[str, Any]:
    """The medians of some rounds, each with the minimum and the maximum."""
    numbers = {}
    for name in dict.fromkeys(name for numbers in rounds for name in numbers):
        values = sorted(numbers[name] for numbers in rounds if name in numbers)
        low, middle, high = values[0], values[len(values) // 2], values[-1]
        numbers[name] = [round(value, 4) for value in (middle, low, high)]
    goals = {
        name: [limit, numbers[name][0]] for name, limit in case.goals.items() if name in numbers
    }
    return {
        "case": case.name,
        "title": case.title,
        "command": command,
        "tokenizers": list(case.tokenizers),
        "variants": case.variants,
        "position": case.position,
        "rounds": len(rounds),
        "machine": machine(),
        "goals (limit, measured)": goals,
        "numbers (median, least, greatest)": numbers,
    }


def table(kept: dict[str, Any]) -> str:
    """A record as text for people."""
    facts = kept["machine"]
    lines = [
        f"# {kept['title']}",
        "",
        f"`{kept['command']}`; {', '.join(kept['tokenizers'])}; {facts['processor']}, "
        f"{facts['cores']} cores, Python {facts['python']}, {facts['rust']}, commit "
        f"{facts['commit']}. Median of {kept['rounds']} rounds, each in a fresh process, with the "
        "least and the greatest. Microseconds and one thread unless said.",
        "",
        "| what | median | least | greatest | goal |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, values in kept["numbers (median, least, greatest)"].items():
        goal = kept["goals (limit, measured)"].get(name)
        limit = "" if goal is None else f"{goal[0]:g} {'ok' if values[0] <= goal[0] else 'MISSED'}"
        shown = " | ".join(f"{value:,.2f}" for value in values)
        lines.append(f"| {name} | {shown} | {limit} |")
    return "\n".join(lines) + "\n"


def save(kept: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(kept, indent=1, ensure_ascii=False)
    (folder / f"{kept['case']}.json").write_text(text + "\n", encoding="utf-8")
    (folder / f"{kept['case']}.md").write_text(table(kept), encoding="utf-8")
