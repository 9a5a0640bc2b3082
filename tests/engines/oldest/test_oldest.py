"""The tests of the package beside the oldest versions that it may be installed beside."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from engines.oldest.floors import floors

TESTS = Path(__file__).resolve().parents[2]
FOLDERS = [
    "cli", "compat", "endpoints", "generation", "guiding", "notations", "output_types",
    "playground", "schemas", "structural_tags", "tokenizers", "tool_calls", "views",
]  # fmt: skip


def newer() -> list[str]:
    """The packages that are missing here, or of another version than the oldest."""
    found = []
    for name, minor in floors().items():
        try:
            if not f"{version(name)}.".startswith(f"{minor}."):
                found.append(name)
        except PackageNotFoundError:
            found.append(name)
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_of_tests(folder: str) -> None:
    others = newer()
    if others:
        pytest.skip(f"not of the oldest version here: {', '.join(others)}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TESTS / folder)],
        cwd=TESTS.parent, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20_000:]
