"""The originals and what stands in for them: the same names, signatures and answers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import pytest

from compat import llguidance_cases, xgrammar_cases

xgrammar = pytest.importorskip("xgrammar", reason="tests/engines/compat/install.sh")
llguidance = pytest.importorskip("llguidance", reason="tests/engines/compat/install.sh")

PAIRS = {
    "xgrammar": (xgrammar, import_module("stencilm.compat.xgrammar")),
    "llguidance": (llguidance, import_module("stencilm.compat.llguidance")),
}
INSIDES = (
    *("xgrammar.libxgrammar_bindings", "xgrammar.load_binding", "xgrammar.tvm_ffi_binding"),
    "llguidance.cli",
)
"""Modules that are not for callers: bindings of C++, and a program of the command line."""
CASES: dict[str, Any] = {"xgrammar": xgrammar_cases, "llguidance": llguidance_cases}


def modules(package: ModuleType) -> Iterator[str]:
    """The names of the modules within a package that callers may import."""
    for found in walk_packages(package.__path__, f"{package.__name__}.", onerror=lambda name: None):
        parts = found.name.split(".")
        inside = any(found.name == one or found.name.startswith(f"{one}.") for one in INSIDES)
        if not inside and not any(part.startswith("_") for part in parts):
            yield found.name


NAMES = [name for original, _ in PAIRS.values() for name in modules(original)]


def pairs() -> list[tuple[str, ModuleType, ModuleType]]:
    """The originals' modules that can be imported here, each with ours of its name."""
    found = [(name, *pair) for name, pair in PAIRS.items()]
    for name in NAMES:
        with suppress(ImportError):  # it is for a framework or a GPU that is not here
            original = import_module(name)
            found.append((name, original, import_module(f"stencilm.compat.{name}")))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_modules_are_there(name: str) -> None:
    assert find_spec(f"stencilm.compat.{name}") is not None


def public(module: ModuleType) -> list[str]:
    """What a module offers: what it lists, or else what it defines itself."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def parameters(called: Any) -> list[tuple[str, Any, Any]] | None:
    """The parameters, but for `self`: name, kind and default; the binding's kinds are not told."""
    try:
        found = inspect.signature(called).parameters.values()
    except (ValueError, TypeError):
        return None
    return [
        (p.name, p.kind, str(p.default) if isinstance(p.default, Enum) else p.default)
        for p in found
        if p.name != "self"
    ]


def covers(own: list[tuple[str, Any, Any]] | None, expected: list[tuple[str, Any, Any]]) -> bool:
    """Whether parameters are those, in this order, and all others may be left out.

    Releases of the originals add some at the end.
    """
    if own is None or own[: len(expected)] != expected:
        return False
    return all(default is not inspect.Parameter.empty for _, _, default in own[len(expected) :])


@pytest.mark.parametrize(
    ("name", "original", "ours"), pairs(), ids=lambda v: v if isinstance(v, str) else ""
)
def test_names_and_signatures(name: str, original: ModuleType, ours: ModuleType) -> None:
    missing, different = [], []
    for each in public(original):
        if each in NOT_OFFERED:
            continue
        if not hasattr(ours, each):
            missing.append(each)
            continue
        theirs, own = getattr(original, each), getattr(ours, each)
        is_model = hasattr(theirs, "model_fields")  # whose fields are compared below
        compared = [(each, theirs, own)] if callable(theirs) and not is_model else []
        if inspect.isclass(theirs):
            for member, value in vars(theirs).items():
                if member.startswith("_") or member.startswith("model_"):
                    continue
                if not hasattr(own, member) and member not in _instance_names(own):
                    missing.append(f"{each}.{member}")
                elif callable(getattr(theirs, member)) and not inspect.isclass(value):
                    compared.append(
                        (f"{each}.{member}", getattr(theirs, member), getattr(own, member))
                    )
        for label, one, other in compared:
            expected = parameters(one)
            if expected is not None and not covers(parameters(other), expected):
                different.append((label, expected, parameters(other)))
    assert (missing, different) == ([], [])


NOT_OFFERED = (
    *("LLInterpreter", "GrammarFunctor", "XGRObject", "apply_token_bitmask_inplace_kernel"),
    *("ASTNode", "AlternativeNode", "GbnfToLarkError", "GrammarParser", "LiteralNode", "Position"),
    *("RegexNode", "RepetitionNode", "RuleNode", "RuleRefNode", "SequenceNode", "resolve"),
    *("main", "parse_args"),
)
"""Refused with a sentence, or the parser within a module that has another parser here."""


def _instance_names(kind: type) -> set[str]:
    """Attributes that `__init__` sets, and fields."""
    fields = getattr(kind, "model_fields", {})
    return {*getattr(kind, "__annotations__", {}), *fields, *_SET.get(kind.__name__, ())}


_SET = {"LLTokenizer": ("vocab_size", "eos_token", "eos_tokens", "is_canonical")}


@pytest.mark.parametrize(
    ("package", "name"), [(package, name) for package in CASES for name in CASES[package].SAME]
)
def test_the_original_answers_the_same(package: str, name: str) -> None:
    ask, expected = CASES[package].SAME[name]
    assert ask(PAIRS[package][0]) == expected


@pytest.mark.parametrize(
    ("package", "name"), [(package, name) for package in CASES for name in CASES[package].DIFFERENT]
)
def test_the_original_answers_as_the_table_says(package: str, name: str) -> None:
    difference = CASES[package].DIFFERENT[name]
    assert difference.there != difference.here
    assert difference.ask(PAIRS[package][0]) == difference.there


@pytest.mark.parametrize("package", CASES)
def test_masks_are_the_same(package: str) -> None:
    original, ours = PAIRS[package]
    assert CASES[package].MASKS(ours) == CASES[package].MASKS(original)


def test_fields_of_formats_are_the_same() -> None:
    ours: Any = import_module("stencilm.compat.xgrammar.structural_tag")
    kind: Any
    for name in ours.__all__:
        theirs: Any = getattr(xgrammar.structural_tag, name, None)
        if isinstance(theirs, type):
            kind = theirs
            expected = {key: field.default for key, field in kind.model_fields.items()}
            fields = getattr(ours, name).model_fields
            assert {key: fields[key].default for key in expected} == expected, name


def test_families_are_known_here() -> None:
    from stencilm import model_structural_tags

    known = import_module("xgrammar.builtin_structural_tag")._structural_tag_registry
    registered = {"marked", "unmarked"}  # by the cases above
    assert set(known) - registered <= set(model_structural_tags())
