"""Reading what a command is given: text from files or standard input, types by their name."""

from __future__ import annotations

import builtins
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from stencilm.cli.failure import USAGE, Failure
from stencilm.files import run_file

STANDARD_INPUT = "-"


def read_text(source: str) -> str:
    """The text of a file, or of standard input for "-"; UTF-8, with or without a mark."""
    try:
        if source == STANDARD_INPUT:
            if sys.stdin is None:
                raise Failure("standard input is closed, and nothing can be read from it")
            buffer = getattr(sys.stdin, "buffer", None)
            data = sys.stdin.read().encode() if buffer is None else buffer.read()
        else:
            data = Path(source).read_bytes()
    except FileNotFoundError:
        raise Failure(f"there is no file {source!r}") from None
    except OSError as error:
        raise Failure(f"cannot read {source!r}: {error.strerror or error}") from error
    try:
        return str(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Failure(
            f"{shown(source)} is not UTF-8 text: byte {error.start} is no part of it"
        ) from None


def read_prompt(source: str) -> str:
    """The text itself, or standard input without its last line break for "-"."""
    if source == STANDARD_INPUT:
        return without_line_break(read_text(source))
    return checked_text(source)


def checked_text(text: str) -> str:
    """An argument that is a text; the shell may hand on bytes that are none."""
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


def read_limits(given: list[str] | None) -> Any:
    """The limits of `--limits NAME=NUMBER`, also several with commas; None where none is given."""
    if not given:
        return None
    from stencilm.limits import BOUNDS as names
    from stencilm.limits import Limits

    bounds: dict[str, Any] = {}
    for part in (part.strip() for one in given for part in one.split(",")):
        name, equals, number = part.partition("=")
        if name not in names:
            raise Failure(f"--limits names {name!r}: give one of {', '.join(names)}", USAGE)
        if not equals or not number.replace("_", "").isdecimal() or len(number) > _MOST_DIGITS:
            raise Failure(f"--limits has {part!r}: write it as {name}=NUMBER", USAGE)
        bounds[name] = int(number)
    try:
        return Limits(**bounds)
    except ValueError as error:
        raise Failure(f"--limits: {error}", USAGE) from error


_MOST_DIGITS = 20


def shown(source: str) -> str:
    """How messages call an input."""
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
        # Somebody else's module may raise anything, or end the program; the name and the reason
        # are what helps.
        raise Failure(f"cannot import {name!r}: {type(error).__name__}: {error}") from error
