"""Setting up: nothing is downloaded before what cannot be downloaded is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKE = shutil.which("make")


@pytest.fixture
def path_without_cargo(tmp_path: Path) -> str:
    """A folder with the few programs that the Makefile calls before it needs Rust."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "bash", "env", "python3", "find", "cmp", "test", "touch"):
        found = shutil.which(name)
        if found is not None:
            (folder / name).symlink_to(found)
    return str(folder)


@pytest.mark.skipif(MAKE is None, reason="there is no make")
@pytest.mark.parametrize("target", ["demo", "test", "setup", "lint", "wheel", "docs"])
def test_a_missing_cargo_is_told_before_anything_is_downloaded(
    target: str, path_without_cargo: str, tmp_path: Path
) -> None:
    assert MAKE is not None
    environment = tmp_path / "environment"
    done = subprocess.run(
        [MAKE, target, f"VENV={environment}"],
        cwd=ROOT,
        env={"PATH": path_without_cargo, "HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "there is no cargo on the path: install Rust" in done.stdout, done.stderr
    assert not environment.exists()


@pytest.mark.skipif(MAKE is None, reason="there is no make")
def test_the_demo_needs_no_framework(tmp_path: Path) -> None:
    assert MAKE is not None
    steps = [MAKE, "--dry-run", "demo", f"VENV={tmp_path / 'environment'}"]
    done = subprocess.run(steps, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "maturin develop" in done.stdout and "Downloading" in done.stdout
    assert "torch" not in done.stdout and "--group" not in done.stdout
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "dev" not in project["dependency-groups"], "maturin develop installs it unasked"
