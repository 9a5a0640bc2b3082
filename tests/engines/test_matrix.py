"""The page of engines says what `docs/engines.json` says, and that names what is there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MATRIX: dict[str, Any] = json.loads((DOCS / "engines.json").read_text(encoding="utf-8"))
BEGIN, END = "<!-- engines.json -->", "<!-- end -->"
SHOWN = {"served": "✓", "called": "(✓)", "guided": "guided", "open": "?", "none": "-"}


def rendered() -> str:
    """The tables of the page."""
    features = MATRIX["features"]
    lines = ["| engine | versions tested | switch | how to check that it is on | tests |"]
    lines += ["|---|---|---|---|---|"]
    for engine in MATRIX["engines"]:
        name = f"[{engine['name']}]({engine['page']})"
        versions = ", ".join(engine["versions"])
        where = f"`{engine['tests']}`"
        lines.append(f"| {name} | {versions} | {engine['on']} | {engine['seen']} | {where} |")
    lines += ["", f"| engine | {' | '.join(features.values())} |", "|---|" + ":-:|" * len(features)]
    for engine in MATRIX["engines"]:
        cells = " | ".join(SHOWN[engine["features"][feature]] for feature in features)
        lines.append(f"| {engine['name']} | {cells} |")
    lines += [""]
    lines += [f"* {SHOWN[state]}: {words}" for state, words in MATRIX["states"].items()]
    return "\n".join(lines)


def test_the_page_shows_the_matrix() -> None:
    page = (DOCS / "engines.md").read_text(encoding="utf-8")
    found = re.search(f"{re.escape(BEGIN)}\n\n(.*?)\n\n{re.escape(END)}", page, re.DOTALL)
    assert found
    assert found[1] == rendered(), "write it anew: python tests/engines/test_matrix.py"


@pytest.mark.parametrize("engine", MATRIX["engines"], ids=lambda engine: engine["name"])
def test_a_row_names_what_is_there(engine: dict[str, Any]) -> None:
    assert set(engine["features"]) == set(MATRIX["features"])
    assert set(engine["features"].values()) <= set(MATRIX["states"]) == set(SHOWN)
    assert (ROOT / engine["tests"]).exists()
    assert (DOCS / engine["page"]).exists()
    assert engine["versions"]


def test_the_versions_are_those_that_the_plug_ins_name() -> None:
    from stencilm.integrations.sglang import TESTED as SGLANG

    tested = {engine["name"]: engine["versions"] for engine in MATRIX["engines"]}
    assert tested["SGLang"] == list(SGLANG)
    from stencilm.integrations.vllm.versions import TESTED as VLLM

    assert tested["vLLM"] == list(VLLM)


def write() -> None:
    """Writes the tables into the page."""
    path = DOCS / "engines.md"
    page = path.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n\n{rendered()}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write()
