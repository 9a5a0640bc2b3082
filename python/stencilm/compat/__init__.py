"""The interfaces of other packages over this engine, so that existing code runs unchanged.

One idea: a package here only translates names, arguments, results and errors. If it cannot behave
like the original, it refuses with an explanation; `docs/compat.md` lists every difference.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Literal

from stencilm.shown import is_word, shown_value


def stand_in(name: Literal["xgrammar", "llguidance"]) -> ModuleType:
    """Make `import xgrammar`, or `import llguidance`, load the package of that name here.

    Call it before anything imports the original. It affects this process, including submodules that
    are imported later.

    Args:
        name: "xgrammar" or "llguidance".

    Returns:
        The replacement package.

    Raises:
        ValueError: There is no such package here.
        RuntimeError: The original is already imported, so parts of the program hold its names.
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
