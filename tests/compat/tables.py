"""The tables of differences in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "compat.md"


def rows(package: str) -> list[str]:
    """The first cells of the table under a package's heading of differences."""
    section = PAGE.read_text(encoding="utf-8").split(f"## What differs from {package}\n")[1]
    table = section.split("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [re.split(r"(?<!\\)\|", line)[1].strip() for line in lines[2:]]
