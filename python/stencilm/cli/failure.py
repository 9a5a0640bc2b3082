"""A problem that ends a command with one sentence."""

from __future__ import annotations

import re

REFUSED = 1
USAGE = 2
INTERRUPTED = 130


class Failure(Exception):
    """Ends a command: `str(self)` is the sentence, `exit_code` what the process returns."""

    def __init__(self, sentence: str, exit_code: int = REFUSED) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


def sentence_of(error: Exception) -> str:
    """The sentence, with the command-line option instead of the argument of a call."""
    return re.sub(r"raise `(\w+)` of the limits", r"raise it by --limits \1=NUMBER", str(error))


def sentence_of_system(error: OSError) -> str:
    """The system's message with its file, without the error number."""
    if error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename!r}: {error.strerror}"
