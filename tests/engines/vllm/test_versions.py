"""The gate by version, and that the matrix of the documentation names tests that exist."""

from __future__ import annotations

import importlib
import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from stencilm.integrations.vllm import register, versions
from stencilm.integrations.vllm.settings import SWITCH
from stencilm.integrations.vllm.versions import REQUIRED, Name, check

HERE = Path(__file__).parent


def test_the_matrix_names_tests_that_exist() -> None:
    matrix = json.loads((HERE / "matrix.json").read_text(encoding="utf-8"))
    for row in matrix["rows"]:
        for test in row["tests"]:
            name, function = test.split("::")
            source = (HERE / name).read_text(encoding="utf-8")
            assert re.search(rf"^def {function}\(", source, re.M), test
    assert set(versions.TESTED) == set(matrix["versions"])


def test_nothing_happens_while_it_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    before = set(sys.modules)
    register()
    new = {name for name in set(sys.modules) - before if name.startswith("vllm")}
    assert not new


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module in which something can have moved."""
    module = types.ModuleType("an_engine")

    class Grammar:
        def accept(self, tokens: list[int]) -> bool:
            return bool(tokens)

    module.Grammar = Grammar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "an_engine", module)
    return module


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        (Name("an_engine", "Grammar"), None),
        (Name("an_engine", "Grammar.accept", ("self", "tokens")), None),
        (Name("an_engine", "Grammar.accept", ("self",)), None),
        (Name("an_engine", "Grammar.refuse"), "an_engine.Grammar.refuse is not there"),
        (Name("no_engine", "Grammar"), "no_engine.Grammar is not there"),
        (
            Name("an_engine", "Grammar.accept", ("self", "ids")),
            "an_engine.Grammar.accept takes ('self', 'tokens'), not ('self', 'ids')",
        ),
    ],
)
def test_faults_are_found(engine: types.ModuleType, name: Name, fault: str | None) -> None:
    found = name.fault()
    assert found is None if fault is None else found is not None and fault in found


def test_what_has_moved_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "REQUIRED", (Name("no_engine", "Grammar"),))
    with pytest.raises(RuntimeError) as raised:
        check("9.9.9")
    message = str(raised.value)
    assert "vLLM 9.9.9: no_engine.Grammar is not there" in message
    assert "0.32.0" in message and "unset STENCILM_VLLM" in message


def test_this_vllm_has_what_is_needed() -> None:
    vllm: Any = pytest.importorskip(
        "vllm", reason="vLLM is not here: tests/engines/vllm/install.sh"
    )
    assert [fault for name in REQUIRED if (fault := name.fault())] == []
    check(vllm.__version__)
    types_of = importlib.import_module("vllm.v1.structured_output.backend_types")
    assert types_of.StructuredOutputGrammar.__abstractmethods__
