"""Files named by a caller: run as a module, or checked before they are written at the end."""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def run_file(name: str) -> ModuleType:
    """Run a file as a module. Exceptions of the file are passed on.

    Raises:
        ValueError: There is no such file, or it is not Python.
    """
    file = Path(name)
    if not file.is_file():
        raise ValueError(f"there is no file {name!r}")
    # The path is a module name that nobody imports: a file named types.py must not hide a module.
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ValueError(f"{name!r} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module  # pydantic resolves forward references there
    spec.loader.exec_module(module)
    return module


def check_writable(path: Path) -> None:
    """Raise OSError if a file cannot be written, before there are results that would be lost.

    Existing content is kept, and a file that does not exist is not created.
    """
    file = Path(os.path.realpath(path))  # A link to a missing file stays one.
    is_new = not file.exists()
    if not (is_new or file.is_file() or file.is_dir()):
        return  # Opening a pipe or a device has effects.
    file.open("ab").close()
    if is_new:
        file.unlink()
