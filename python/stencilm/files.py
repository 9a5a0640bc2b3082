"""Files that a caller names: to be run as a module, or to be written at the end."""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def run_file(name: str) -> ModuleType:
    """The module that a file makes. What the file raises comes through.

    Raises:
        ValueError: There is no such file, or it is none of Python.
    """
    file = Path(name)
    if not file.is_file():
        raise ValueError(f"there is no file {name!r}")
    # Its path is a name that nobody imports: a file named types.py hides no other module.
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ValueError(f"{name!r} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module  # pydantic looks there for forward references
    spec.loader.exec_module(module)
    return module


def check_writable(path: Path) -> None:
    """Raise OSError where a file cannot be written, while nothing is there yet that would be lost.

    What it holds stays, and a file that is not there is none afterwards.
    """
    file = Path(os.path.realpath(path))  # A link to no file stays one.
    is_new = not file.exists()
    if not (is_new or file.is_file() or file.is_dir()):
        return  # A pipe or a device would notice.
    file.open("ab").close()
    if is_new:
        file.unlink()
