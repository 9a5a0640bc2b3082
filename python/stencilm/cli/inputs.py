"""Reads a command's inputs: text from files or standard input, types by name."""

from __future__ import annotations

import builtins
import importlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any

from stencilm.cli.failure import USAGE, Failure
from stencilm.errors import StencilError
from stencilm.files import run_file
from stencilm.whole_numbers import written_number

STANDARD_INPUT = "-"
MAX_BYTES = 1 << 30
"""The largest file, as large as the largest schema of the limits."""


def read_text(source: str) -> str:
    """The text of a file, or of standard input for "-": UTF-8, with or without a BOM."""
    try:
        if source == STANDARD_INPUT:
            if sys.stdin is None:
                raise Failure("standard input is closed, and nothing can be read from it")
            buffer = getattr(sys.stdin, "buffer", None)
            data = sys.stdin.read().encode() if buffer is None else buffer.read()
        else:
            data = _bytes_of(source)
    except FileNotFoundError:
        raise Failure(f"there is no file {source!r:.300}") from None
    except OSError as error:
        raise Failure(f"cannot read {source!r:.300}: {error.strerror or error}") from error
    except ValueError as error:  # a name with a zero byte
        raise Failure(f"{source!r:.300} names no file: {error}") from error
    try:
        return str(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Failure(
            f"{shown(source)} is not UTF-8 text: byte {error.start} is no part of it"
        ) from None


def _bytes_of(source: str) -> bytes:
    """The content of a file, or of a pipe that has a writer.

    A named pipe is opened without waiting for its writer, which may never come. Raises OSError if
    it cannot be opened.
    """
    is_pipe = stat.S_ISFIFO(os.stat(source).st_mode)
    waits = getattr(os, "O_NONBLOCK", 0) if is_pipe else 0
    number = os.open(source, os.O_RDONLY | waits | getattr(os, "O_BINARY", 0))
    with os.fdopen(number, "rb") as stream:
        first = stream.raw.read(1) if is_pipe else b""  # None: nothing written yet
        if first == b"" and is_pipe and Path(source).is_fifo() and not _is_of_shell(source):
            raise Failure(
                f"nobody writes into the pipe {source!r}: begin to write first, or hand the text "
                "to standard input, with '-'"
            )
        if is_pipe:
            os.set_blocking(number, True)
        data = (first or b"") + stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise Failure(f"{source!r} has more than {MAX_BYTES} bytes, and no more are read")
    return data


def _is_of_shell(source: str) -> bool:
    """Whether a pipe comes from the shell, as in `<(command)`; its writer may write nothing."""
    return source.startswith(("/dev/fd/", "/proc/"))


def read_prompt(source: str) -> str:
    """The text itself, or standard input without its last line break for "-"."""
    if source == STANDARD_INPUT:
        return without_line_break(read_text(source))
    return checked_text(source)


def checked_text(text: str) -> str:
    """A text argument; the shell may pass bytes that are not text."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Failure(
            f"{text!r:.60} is not UTF-8 text: character {error.start} stands for a byte that is "
            "no part of it",
            USAGE,
        ) from None
    return text


def without_line_break(text: str) -> str:
    """A text without its last line break, of either kind."""
    return text.removesuffix("\r\n" if text.endswith("\r\n") else "\n")


def read_type(name: str) -> Any:
    """The Python type `module:Name`, `file.py:Name` or a built-in such as `int`."""
    module_name, colon, path = name.rpartition(":")
    if not colon:
        if isinstance(getattr(builtins, name, None), type):
            return getattr(builtins, name)
        raise Failure(
            f"{name!r} names no type: write module:Name, file.py:Name or a built-in", USAGE
        )
    found: Any = _read_module(module_name)
    for part in path.split("."):
        if not hasattr(found, part):
            raise Failure(f"{module_name!r} has no {path!r}")
        found = getattr(found, part)
    return found


@contextmanager
def reported_by(name: str) -> Iterator[None]:
    """Report what the code of a caller's type raises while pydantic reads a text with it.

    It may raise anything; the report names it and the reason. Errors of this package, or of a
    model, are passed on.
    """
    try:
        yield
    except (Failure, StencilError):
        raise
    except Exception as error:
        files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
        reads = [file for file in files if file.startswith(_folder_of("pydantic"))]
        if not reads or files[-1].startswith(_folder_of("stencilm")):
            raise
        reported = f"{type(error).__name__}: {error}"
        notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
        raise Failure(
            f"{name} cannot read the text, because its code raises {reported}{notes}"
        ) from error


def _folder_of(package: str) -> str:
    """The folder of a package, as a prefix of its files' names."""
    return str(Path(str(importlib.import_module(package).__file__)).parent) + os.sep


def read_limits(given: list[str] | None) -> Any:
    """The limits of `--limits NAME=NUMBER`, also comma-separated; None if none is given."""
    if not given:
        return None
    from stencilm.limits import BOUNDS as names
    from stencilm.limits import Limits

    bounds: dict[str, Any] = {}
    for part in (part.strip() for one in given for part in one.split(",")):
        name, equals, number = part.partition("=")
        if name not in names:
            raise Failure(f"--limits names {name!r:.60}: give one of {', '.join(names)}", USAGE)
        bound = written_number(number.replace("_", ""))
        if not equals or bound is None:
            digits = number.replace("_", "")
            if equals and digits.isdecimal():
                raise Failure(
                    f"--limits: {name} is beyond 64 bits: write it as {name}=NUMBER", USAGE
                )
            raise Failure(f"--limits has {part!r:.60}: write it as {name}=NUMBER", USAGE)
        bounds[name] = bound
    try:
        return Limits(**bounds)
    except ValueError as error:
        raise Failure(f"--limits: {error}", USAGE) from error


def shown(source: str) -> str:
    """The name of an input in messages."""
    return "standard input" if source == STANDARD_INPUT else source


def _read_module(name: str) -> ModuleType:
    try:
        if not name.endswith(".py"):
            if "" not in sys.path and str(Path.cwd()) not in sys.path:
                sys.path.insert(0, str(Path.cwd()))  # an installed script does not look here
            return importlib.import_module(name)
        if not Path(name).is_file():
            raise Failure(f"there is no file {name!r}")
        return run_file(name)
    except Failure:
        raise
    except (Exception, SystemExit) as error:
        # The user's module may raise anything, or exit; its name and the reason help most.
        raise Failure(f"cannot import {name!r}: {type(error).__name__}: {error}") from error
