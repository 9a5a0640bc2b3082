"""Python files that somebody names, run as modules."""

from __future__ import annotations

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
