"""The command line: `stencilm generate`, `stencilm check` and others.

Each command has its own file; `app.py` lists them. Nothing heavy is imported before a command needs
it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0 means success, 1 that an input was refused or something failed, 2 that the command line is
    wrong, 130 that it was interrupted. Results go to standard output; problems go to standard
    error, as one sentence.

    Args:
        argv: The arguments after the program's name; None for those of the process.
    """
    try:
        from stencilm.cli.app import run

        return run(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:  # while the commands were read, or where none was there to take it
        print("stencilm: interrupted", file=sys.stderr)
        return 130
