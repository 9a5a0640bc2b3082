"""The package as the reference reads it: sources, and the extension as one more of them.

One idea: the reference is made from sources, and the extension has none in Python. Its stub has the
signatures, the extension itself the docstrings; together they are a module like any other.
"""

from __future__ import annotations

import ast
import inspect
import shutil
from pathlib import Path
from typing import Any

import stencilm
from stencilm import _core


def copy_package(target: Path) -> None:
    """Copy the package below `target`, with `_core.py` in the place of the extension."""
    source = Path(stencilm.__file__).parent
    suffixes = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "*.safetensors", "static")
    shutil.copytree(source, target / "stencilm", ignore=suffixes)
    stub = target / "stencilm" / "_core.pyi"
    documented = with_docstrings(stub.read_text(encoding="utf-8"), _core)
    stub.unlink()
    (target / "stencilm" / "_core.py").write_text(documented, encoding="utf-8")


def with_docstrings(stub: str, module: Any) -> str:
    """The stub with the docstrings that its classes and functions have at run time."""
    tree = ast.parse(stub)
    _document(tree.body, module)
    return ast.unparse(ast.fix_missing_locations(tree))


def _document(body: list[ast.stmt], owner: Any) -> None:
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        found = getattr(owner, node.name, None)
        doc = None if found is None else inspect.getdoc(found)
        if doc and not node.name.startswith("__") and ast.get_docstring(node) is None:
            node.body.insert(0, ast.Expr(ast.Constant(doc)))
        if isinstance(node, ast.ClassDef):
            _document(node.body, found)
