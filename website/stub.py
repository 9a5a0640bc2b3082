"""The stub of the extension with its docstrings: `python -m website.stub` writes them into it.

One idea: a docstring is written once, in the Rust source, and editors read the stub. So the stub
has the docstrings that the extension has at run time, word for word, and a test holds them
together.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import stencilm
from stencilm import _core

STUB = Path(stencilm.__file__).parent / "_core.pyi"


def documented(stub: str, module: Any) -> str:
    """The text of a stub with the docstrings that its classes have at run time."""
    lines = stub.splitlines()
    edits: list[tuple[ast.ClassDef | ast.FunctionDef, str]] = []
    _collect(ast.parse(stub).body, module, edits)
    for node, doc in sorted(edits, key=lambda edit: edit[0].lineno, reverse=True):
        first = node.body[0]
        old = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        is_text = old and isinstance(first.value.value, str)  # type: ignore[attr-defined]
        indent = " " * (node.col_offset + 4)
        new = [indent + line if line else "" for line in literal(doc).splitlines()]
        end = first.end_lineno or first.lineno
        if old and (is_text or isinstance(node, ast.FunctionDef)):
            head = lines[first.lineno - 1][: first.col_offset].rstrip()
            lines[first.lineno - 1 : end] = [head, *new] if head else new
        else:
            decorators = first.decorator_list if isinstance(first, ast.FunctionDef) else []
            place = decorators[0].lineno if decorators else first.lineno
            lines[place - 1 : place - 1] = [*new, ""]
    return "\n".join(lines) + "\n"


def _collect(
    body: list[ast.stmt], owner: Any, edits: list[tuple[ast.ClassDef | ast.FunctionDef, str]]
) -> None:
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("__"):
            continue
        doc = docstring(owner, node.name)
        if doc:
            edits.append((node, doc))
        if isinstance(node, ast.ClassDef):
            _collect(node.body, getattr(owner, node.name), edits)


def docstring(owner: Any, name: str) -> str | None:
    """The docstring of a member at run time, without its indentation."""
    doc = getattr(inspect.getattr_static(owner, name, None), "__doc__", None)
    if isinstance(inspect.getattr_static(owner, name, None), staticmethod):
        doc = getattr(owner, name).__doc__
    return None if doc is None else inspect.cleandoc(doc)


def literal(doc: str) -> str:
    """A docstring as it stands in a source."""
    raw = "r" if "\\" in doc else ""
    return f'{raw}"""{doc}"""' if "\n" not in doc else f'{raw}"""{doc}\n"""'


def main() -> int:
    """Write the stub."""
    STUB.write_text(documented(STUB.read_text(encoding="utf-8"), _core), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", str(STUB)], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
