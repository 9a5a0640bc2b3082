"""Writes what a command draws to a file, or to standard output for "-"."""

from __future__ import annotations

from pathlib import Path

from stencilm.cli.failure import USAGE, Failure
from stencilm.files import check_writable

STANDARD_OUTPUT = "-"


def check_output(file: str | Path | None) -> None:
    """Raise OSError for a file that cannot be written, before any work is done."""
    if file is not None and str(file) != STANDARD_OUTPUT:
        check_writable(Path(file))


def check_one_output(**options: bool) -> None:
    """Failure if more than one output would go to standard output."""
    there = [f"--{name}" for name, is_there in options.items() if is_there]
    if len(there) > 1:
        raise Failure(f"{' and '.join(there)} cannot both write to standard output", USAGE)


def write_output(file: str | Path, text: str) -> None:
    """Write a text; system errors carry the file's name."""
    if str(file) == STANDARD_OUTPUT:
        print(text, end="" if text.endswith("\n") else "\n")
        return
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        if error.filename is None:  # it was opened, but could not be written
            error.filename = str(file)
        raise
