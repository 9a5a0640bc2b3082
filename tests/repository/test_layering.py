"""Every file uses rooms before its own only, and no files form a circle: read from the imports."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# The longest function, in lines.
MAX_LINES = 80

# Rooms in the order in which they may use each other: each may use itself and those before it.
# Files that no room holds come last, but for the first list, which any room may use.
BASE = {
    "support": [],
    "regex": ["limits"],
    "grammar": ["error", "word_trie"],
    "engine": ["error", "limits", "switches"],
    "python": [],
    "package": [
        "_core",
        "characters",
        "errors",
        "files",
        "foreign",
        "in_thread",
        "limits",
        "callbacks",
        "renewed_lock",
        "shown",
        "whole_numbers",
    ],
}
ORDER = {
    "support": [],
    "regex": ["numbers", "expr", "derivative", "analysis", "syntax"],
    "grammar": [
        "json",
        "ir",
        "passes",
        "json_schema::options",
        "json_schema::read",
        "json_schema::normal_form",
        "json_schema::constraints",
        "json_schema::lower",
        "json_schema",
        "notations::regex",
        "notations",
        "holes",
    ],
    "engine": [
        *["vocabulary", "lexeme", "state", "machine", "parse", "distinct", "mask", "canonical"],
        *["completion", "shared", "compiled", "matcher", "query", "index"],
    ],
    "python": [],
    "package": [
        *[
            "tokenizers",
            "grammars",
            "bitmask",
            "matching",
            "chat_templates",
            "tool_calls",
            "models::protocol",
            "generation",
            "views",
            "models",
        ],
        *["guiding", "endpoints", "integrations", "compat", "audit", "playground", "cli"],
    ],
}


def _rust_modules(crate: str) -> dict[str, str]:
    """The source of each module of a crate, without comments and unit tests, by its path."""
    modules = {}
    root = ROOT / "crates" / crate / "src"
    for path in sorted(root.rglob("*.rs")):
        parts = list(path.relative_to(root).with_suffix("").parts)
        if parts[-1] in ("mod", "lib"):
            parts.pop()
        source = path.read_text(encoding="utf-8")
        source = re.split(r"#\[cfg\(test\)\]\n(?:pub(?:\(\w+\))? )?mod \w+ \{", source)[0]
        modules["::".join(parts)] = re.sub(r"//[^\n]*", "", source)
    return modules


def _leaves(tree: str, prefix: str = "") -> Iterator[str]:
    """The paths of a `use` tree, with its groups written out."""
    start = tree.find("{")
    if start < 0:
        yield prefix + re.split(r"\s+as\s+", tree.strip())[0]
        return
    part, depth = "", 0
    for character in tree[start + 1 : tree.rindex("}")] + ",":
        if character == "," and depth == 0:
            if part.strip():
                yield from _leaves(part.strip(), prefix + tree[:start].strip())
            part = ""
            continue
        depth += {"{": 1, "}": -1}.get(character, 0)
        part += character


def _parent(module: str) -> str:
    return module.rpartition("::")[0]


def _rust_imports(crate: str) -> dict[str, set[str]]:
    """Which modules of a crate each module names."""
    modules = _rust_modules(crate)
    imports: dict[str, set[str]] = {}
    for module, source in modules.items():
        paths = set(re.findall(r"\b((?:crate|super|self)(?:::\w+)+)", source))
        for tree in re.findall(r"\buse\s+((?:crate|super|self)::[^;]+);", source):
            paths.update(_leaves(tree))
        found = imports.setdefault(module, set())
        # Children that are named without a path: `use child::Type`, `child::function(...)`.
        children = {name.split("::")[-1] for name in modules if module and _parent(name) == module}
        found.update(
            f"{module}::{child}" for child in children if re.search(rf"(?<![\w:]){child}::", source)
        )
        for path in paths:
            segments = re.sub(r"\s", "", path).split("::")
            at = module.split("::") if module else []
            if segments[0] == "crate":
                at = []
            while segments[0] == "super":
                at, segments = at[:-1], segments[1:]
            full = at + [segment for segment in segments if segment not in ("crate", "self")]
            target = next(
                "::".join(full[:length])
                for length in range(len(full), -1, -1)
                if "::".join(full[:length]) in modules
            )
            if target not in ("", module) and module:
                found.add(target)
    return imports


def _package_imports() -> dict[str, set[str]]:
    """Which modules of the package each imports, when loaded or later; not for types alone."""
    root = ROOT / "python" / "stencilm"
    files = {
        "::".join(
            part for part in path.relative_to(root).with_suffix("").parts if part != "__init__"
        ): path
        for path in sorted(root.rglob("*.py"))
    }
    imports: dict[str, set[str]] = {}
    for module, path in files.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for_types = {
            inner
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
            for statement in node.body
            for inner in ast.walk(statement)
        }
        found = imports.setdefault(module, set())
        for node in ast.walk(tree):
            if node in for_types:
                continue
            names = []
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "stencilm":
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [
                    alias.name for alias in node.names if alias.name.split(".")[0] == "stencilm"
                ]
            for name in names:
                parts = name.split(".")[1:]
                while parts and "::".join(parts) not in files:
                    parts.pop()
                target = "::".join(parts)
                if target and module and target != module and not module.startswith(target + "::"):
                    found.add(target)
    return imports


@functools.cache
def _imports(part: str) -> dict[str, set[str]]:
    return _package_imports() if part == "package" else _rust_imports(part)


def _rank(part: str, module: str) -> int:
    """Where in the order a module stands."""
    if module.split("::")[0] in BASE[part]:
        return -1
    rooms = [room for room in ORDER[part] if module == room or module.startswith(room + "::")]
    return ORDER[part].index(max(rooms, key=len)) if rooms else len(ORDER[part])


def _against_the_order(part: str) -> list[str]:
    return sorted(
        f"{module} -> {target}"
        for module, targets in _imports(part).items()
        for target in targets
        if _rank(part, target) > _rank(part, module)
    )


def _in_circles(part: str) -> list[str]:
    """The modules that can be reached from themselves: Tarjan's components of more than one."""
    graph = _imports(part)
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        waiting = list(graph[start])
        while waiting:
            module = waiting.pop()
            if module not in seen:
                seen.add(module)
                waiting.extend(graph.get(module, ()))
        reach[start] = seen
    return sorted(module for module, seen in reach.items() if module in seen)


@pytest.mark.parametrize("part", list(ORDER))
def test_files_use_earlier_rooms_only(part: str) -> None:
    found = _against_the_order(part)
    assert not found, f"{part}: a room may use those before it only ({ORDER[part]}): {found}"


@pytest.mark.parametrize("part", list(ORDER))
def test_no_files_form_a_circle(part: str) -> None:
    found = _in_circles(part)
    assert not found, f"{part}: files must not import each other in a circle: {found}"


def test_every_room_is_there() -> None:
    for part, rooms in ORDER.items():
        modules = _imports(part)
        missing = [
            room
            for room in rooms
            if not any(m == room or m.startswith(room + "::") for m in modules)
        ]
        assert not missing, (part, missing)


@pytest.mark.parametrize("crate", ["support", "regex", "grammar", "engine", "python"])
def test_no_function_is_long(crate: str) -> None:
    root = ROOT / "crates" / crate / "src"
    long = []
    for path in sorted(root.rglob("*.rs")):
        lines = path.read_text(encoding="utf-8").split("\n")
        for first, line in enumerate(lines):
            begun = re.match(r"(\s*)(?:pub(?:\([^)]*\))? )?(?:const |unsafe )*fn (\w+)", line)
            if begun and not line.rstrip().endswith(";"):
                end = next(
                    at for at in range(first, len(lines)) if lines[at].startswith(f"{begun[1]}}}")
                )
                if end - first + 1 > MAX_LINES:
                    long.append(f"{path.relative_to(root)}: {begun[2]} has {end - first + 1} lines")
    assert not long, f"{crate}: at most {MAX_LINES} lines, split by meaning: {long}"
