"""The package as the reference reads it: sources, and the extension as one more of them.

One idea: the reference is made from sources, and the extension has none in Python. Its stub has the
signatures and the docstrings, so it takes the place of the extension.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import stencilm


def copy_package(target: Path) -> None:
    """Copy the package below `target`, with `_core.py` in the place of the extension."""
    source = Path(stencilm.__file__).parent
    suffixes = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "*.safetensors", "static")
    shutil.copytree(source, target / "stencilm", ignore=suffixes)
    stub = target / "stencilm" / "_core.pyi"
    stub.rename(stub.with_suffix(".py"))
