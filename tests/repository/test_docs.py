"""The documentation runs: every ```python block, page by page, from top to bottom.

The blocks of a page share one namespace, as a reader's session would. A block tagged
```python no-run is only compiled: it shows what needs a network, a large model or a GPU.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```python(?P<tags>[^\n]*)\n(?P<code>.*?)^```[ ]*$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#)(?P<target>[^)#\s]+)")
ANCHOR = re.compile(r"\]\((?!https?:)(?P<target>[^)#\s]*)#(?P<anchor>[^)\s]+)\)")
HEADING = re.compile(r"^#+ +(?P<words>.+?) *#*$", re.MULTILINE)
NO_CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
WITH_LINKS = sorted({*PAGES, *ROOT.glob("*.md"), *(ROOT / "bench" / "records").glob("*.md")})
"""All that is read on a site that makes anchors of headings."""
NEEDS = {
    r"\b(stencilm\.load|from_transformers|import (torch|transformers))\b": (
        "torch",
        "transformers",
    ),
    r"\bstarlette\b": ("starlette",),
    r"\b(from_llama_cpp|import llama_cpp)\b": ("llama_cpp", "gguf"),
    r"\b(from_mlx|import (mlx|mlx_lm))\b": ("mlx", "mlx_lm"),
    r"\b(import ray|stencilm\.ray)\b": ("ray", "pyarrow", "torch", "transformers"),
}
"""The packages that a page needs, by what its code says."""


@dataclass(frozen=True)
class Block:
    """One block of code, and the line of the page that it starts at."""

    code: str
    line: int
    is_run: bool


def blocks(page: str) -> Iterator[Block]:
    for match in FENCE.finditer(page):
        tags = match["tags"].split()
        assert set(tags) <= {"no-run"}, f"unknown tags {tags} on a python block"
        line = page.count("\n", 0, match.start("code"))
        yield Block(code=match["code"], line=line, is_run="no-run" not in tags)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT).as_posix()))
def test_the_code_of_the_page_runs(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = list(blocks(path.read_text(encoding="utf-8")))
    for words, packages in NEEDS.items():
        if any(block.is_run and re.search(words, block.code) for block in found):
            for package in packages:
                if find_spec(package) is None:
                    pytest.skip(f"the page runs a model, which needs {package}")
    if path.stem == "llama-cpp":
        from gguf_files import write_tiny

        write_tiny(tmp_path / "tiny.gguf")
    page = ModuleType("page")
    monkeypatch.setitem(sys.modules, page.__name__, page)
    if path.stem == "ray" and any(block.is_run for block in found):
        from ray import cloudpickle

        cloudpickle.register_pickle_by_value(page)  # no worker could import a page
    monkeypatch.chdir(tmp_path)
    for block in found:
        # Blank lines in front, so that a traceback names the line of the page.
        source = "\n" * block.line + block.code
        code = compile(source, str(path), "exec", dont_inherit=True)
        if block.is_run:
            exec(code, page.__dict__)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT).as_posix()))
def test_links_to_files_lead_somewhere(path: Path) -> None:
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def anchors(page: str) -> set[str]:
    """The anchors of the headings of a page: their words in lower case, with hyphens between."""
    words = [heading["words"] for heading in HEADING.finditer(NO_CODE.sub("", page))]
    shown = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in words]
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in shown}


def test_links_to_headings_lead_somewhere() -> None:
    dead = []
    for path in WITH_LINKS:
        text = NO_CODE.sub("", path.read_text(encoding="utf-8"))
        for link in ANCHOR.finditer(text):
            target = path.parent / link["target"] if link["target"] else path
            if target.suffix == ".md" and link["anchor"] not in anchors(target.read_text("utf-8")):
                dead.append(f"{path.relative_to(ROOT).as_posix()}: {link[0]}")
    assert dead == []


def test_anchors_are_those_of_headings() -> None:
    page = (
        "# `guide`: any model, anywhere\n```python\n# no heading\n```\n## [What](a.md) comes_back\n"
    )
    assert anchors(page) == {"guide-any-model-anywhere", "what-comes_back"}


def test_the_index_leads_to_every_page() -> None:
    """Pages of the folder are listed themselves, those of its folders at least by one that is."""
    index = ROOT / "docs" / "index.md"

    def linked(page: Path) -> set[Path]:
        text = page.read_text(encoding="utf-8")
        return {(page.parent / target).resolve() for target in LINK.findall(text)}

    listed = linked(index)
    reached = listed.union(*(linked(page) for page in listed if page.suffix == ".md"))
    assert set(index.parent.glob("*.md")) - {index} <= listed
    assert set(index.parent.rglob("*.md")) - {index} <= reached


def test_blocks_are_found_with_their_lines_and_tags() -> None:
    page = "a\n```python\nx = 1\n```\n```json\n{}\n```\n```python no-run\ny = 2\nz\n```\n"
    assert list(blocks(page)) == [Block("x = 1\n", 2, True), Block("y = 2\nz\n", 8, False)]


def test_the_readme_shows_code() -> None:
    assert any(block.is_run for block in blocks(PAGES[0].read_text(encoding="utf-8")))
