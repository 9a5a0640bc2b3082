"""Every public name is documented at run time, in the stub, and by an example.

The examples run: that of a class first, then those of its members, each in a copy of what the first
one leaves.
"""

from __future__ import annotations

import ast
import copy
import doctest
import inspect
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib.util import find_spec
from typing import Any

import pydantic
import pytest

import stencilm
from stencilm import _core
from website.stub import STUB, docstring, documented

NAMES = sorted(set(stencilm.__all__) - {"__version__", "bitmask_dtype"})
BUILT_IN = (object, tuple, BaseException, pydantic.BaseModel)
NEEDS = {
    "transformers": ("torch", "transformers"),
    'load("tiny")': ("torch", "transformers"),
    "from openai": ("openai",),
    "from anthropic": ("anthropic",),
}
"""The packages that an example needs, by what its text says."""
INTERNAL = {
    # What other parts of the package ask of a model, and users have no need of.
    "ApiModel": "answer answer_async biases_tokens can check_budget checked_prompt drafts_in_parts "
    "parts parts_async reads_complaints reasons_natively short",
    "BatchError": "of",
    "ContinuousBatchingLogitsProcessor": "fill_defaults prepare_tensor_args",
    "EndpointError": "of",
    "ModelRefused": "of",
    "TokenizerInfo": "core joint",
}
ELSEWHERE = {
    # Shown on a page that runs, since they need a tokenizer of another package or many lines.
    "Model": "chat achat dump",
    "TypedModel": "chat achat dump",
    "ApiModel": "chat achat dump",
    "TokenizerInfo": "from_huggingface from_llama_cpp from_sentencepiece from_tiktoken "
    "fill_mask_row",
}


def public_members(owner: type) -> Iterator[tuple[str, Any]]:
    """Methods and properties of a class that are its own, or come from a class of this package."""
    declared = {field.name for field in fields(owner)} if is_dataclass(owner) else set()
    declared |= set(getattr(owner, "_fields", ()))
    for name in dir(owner):
        if name.startswith("_") or name in declared:
            continue
        home = next(kind for kind in owner.__mro__ if name in vars(kind))
        member = inspect.getattr_static(owner, name)
        if home in BUILT_IN or isinstance(member, owner):
            continue
        is_property = isinstance(member, property) or inspect.isgetsetdescriptor(member)
        if callable(getattr(owner, name, None)) or is_property:
            yield name, member


def doc_of(owner: Any, name: str) -> str:
    return docstring(owner, name) or inspect.getdoc(getattr(owner, name)) or ""


MEMBERS = [
    (name, member)
    for name in NAMES
    if inspect.isclass(getattr(stencilm, name))
    for member, _ in public_members(getattr(stencilm, name))
]


@pytest.mark.parametrize("name", NAMES)
def test_public_names_have_a_docstring_with_an_example(name: str) -> None:
    value = getattr(stencilm, name)
    assert value.__doc__, name
    if inspect.isclass(value) and issubclass(value, BaseException):
        return  # an error is shown where it is raised
    assert ">>>" in value.__doc__, f"{name} has no example"


@pytest.mark.parametrize(("name", "member"), MEMBERS)
def test_public_members_have_a_docstring_and_are_shown(name: str, member: str) -> None:
    owner = getattr(stencilm, name)
    assert doc_of(owner, member), f"{name}.{member} has no docstring"
    if member in f"{INTERNAL.get(name, '')} {ELSEWHERE.get(name, '')}".split():
        return
    shown = [doc_of(owner, member), *(kind.__doc__ or "" for kind in owner.__mro__)]
    lines = [
        line for doc in shown for line in doc.splitlines() if line.lstrip()[:3] in (">>>", "...")
    ]
    assert ">>>" in shown[0] or any(f".{member}" in line for line in lines), (
        f"{name}.{member} has no example, nor has its class one that uses it"
    )


def test_the_lists_of_exceptions_name_what_there_is() -> None:
    for names in (INTERNAL, ELSEWHERE):
        for name, members in names.items():
            known = {member for owner, member in MEMBERS if owner == name}
            assert set(members.split()) <= known, name


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_described(name: str) -> None:
    """A docstring that has a list of arguments has all of them."""
    value = getattr(stencilm, name)
    callables = [(name, value)]
    if inspect.isclass(value):
        callables += [(f"{name}.{one}", getattr(value, one)) for one, _ in public_members(value)]
    for place, called in callables:
        doc = inspect.getdoc(called) or ""
        if not callable(called) or "\nArgs:\n" not in doc:
            continue
        for parameter in inspect.signature(called).parameters:
            if parameter not in ("self", "cls", "args", "kwargs"):
                described = f" {parameter}:" in doc or f"**{parameter}:" in doc
                assert described or f"*{parameter}" in doc, f"{place}: {parameter}"


def examples(name: str) -> Iterator[tuple[str, str]]:
    """The docstrings with examples of a public name: its own, then those of its members."""
    value = getattr(stencilm, name)
    yield name, value.__doc__ or ""
    if inspect.isclass(value):
        for member, _ in public_members(value):
            yield f"{name}.{member}", doc_of(value, member)


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_run(name: str) -> None:
    parser, variables = doctest.DocTestParser(), {"stencilm": stencilm}
    options = doctest.REPORT_NDIFF
    for number, (place, doc) in enumerate(examples(name)):
        if ">>>" not in doc:
            continue
        for words, packages in NEEDS.items():
            if words in doc and any(find_spec(package) is None for package in packages):
                pytest.skip(f"the example needs {' and '.join(packages)}")
        given = variables if number == 0 else {key: _own(one) for key, one in variables.items()}
        test = parser.get_doctest(inspect.cleandoc(doc), dict(given), place, None, None)
        told: list[str] = []
        runner = doctest.DocTestRunner(verbose=False, optionflags=options)
        runner.run(test, out=told.append, clear_globs=False)
        assert runner.failures == 0, "".join(told)
        if number == 0:
            variables = test.globs


def _own(value: Any) -> Any:
    """A matcher of one's own, or a list of such; everything else is shared."""
    if isinstance(value, list):
        return [_own(one) for one in value]
    return copy.copy(value) if isinstance(value, stencilm.GrammarMatcher) else value


# The extension and its stub


def test_every_public_member_of_the_extension_has_a_docstring() -> None:
    for name in _core.__all__ if hasattr(_core, "__all__") else dir(_core):
        value = getattr(_core, name)
        if name.startswith("_") or not inspect.isclass(value):
            continue
        assert value.__doc__, name
        for member in vars(value):
            if not member.startswith("__"):
                assert docstring(value, member), f"{name}.{member}"


def test_the_stub_has_the_docstrings_of_the_extension() -> None:
    stub = STUB.read_text(encoding="utf-8")
    hint = "python -m website.stub writes them"
    assert _docstrings(documented(stub, _core)) == _docstrings(stub), hint


def _docstrings(source: str) -> list[tuple[str, str | None]]:
    kinds = ast.ClassDef | ast.FunctionDef
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    return [(node.name, ast.get_docstring(node)) for node in nodes]


def test_a_stub_gets_docstrings_in_every_form_of_body() -> None:
    class Owner:
        """What it is."""

        @staticmethod
        def one() -> None:
            """Does one.

            And a \\ more.
            """

        @property
        def two(self) -> int:
            """Two."""
            return 2

    class Module:
        """A module."""

    Module.Owner = Owner  # type: ignore[attr-defined]
    stub = (
        "class Owner:\n    @staticmethod\n    def one() -> None: ...\n"
        "    @property\n    def two(self) -> int:\n        '''Old.'''\n"
    )
    found = documented(stub, Module)
    assert _docstrings(found) == [
        ("Owner", "What it is."),
        ("one", "Does one.\n\nAnd a \\ more."),
        ("two", "Two."),
    ]
    assert documented(found, Module) == found
