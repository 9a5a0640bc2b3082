"""The names of other packages over this one's engine, so that code written for them runs unchanged.

One idea: a package here only translates names, arguments, results and errors. What it cannot do as
the original does, it refuses with a sentence; `docs/compat.md` lists every difference.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Literal

from stencilm.shown import is_word, shown_value


def stand_in(name: Literal["xgrammar", "llguidance"]) -> ModuleType:
    """Makes `import xgrammar`, or `import llguidance`, lead to the package of that name here.

    Call it before anything imports the original. It holds for this process, and for the submodules
    that are imported later, too.

    Args:
        name: "xgrammar" or "llguidance".

    Returns:
        The package that stands in.

    Raises:
        ValueError: There is no such package here.
        RuntimeError: The original is imported already, so some of the program holds its names.
    """
    if not is_word(name, ("xgrammar", "llguidance")):
        raise ValueError(f"name is {shown_value(name):.80}, but must be 'xgrammar' or 'llguidance'")
    package = import_module(f"stencilm.compat.{name}")
    if sys.modules.get(name, package) is not package:
        raise RuntimeError(
            f"{name} is imported already: call stand_in({name!r}) before anything imports it"
        )
    sys.modules[name] = package
    return package
