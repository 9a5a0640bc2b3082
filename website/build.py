"""From the pages of the repository to a site.

One idea: pages link to each other and to files of the repository by relative paths. So the site has
the layout of the repository: the pages, and every file that one of them links to, are copied to a
folder at their own places, and no link is rewritten. Only the reference is written here, a page for
each group of public names.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import stencilm
from website.contents import COMING_FROM, FOLDERS, NAVIGATION, REFERENCE, Group
from website.package import copy_package

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent
_LINK = re.compile(r"(?:\]\(|src=\")(?!https?:|mailto:|#)(?P<target>[^)#\s\"]+)")
_CODE = re.compile(r"^```.*?^```[ ]*$|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def publish(out: Path, version: str) -> None:
    """Build the site of a version beside those of others, and name it among them.

    `out` has a folder for each version, a list of them for the selector of every page, and a page
    that leads to the newest.
    """
    if not re.fullmatch(r"\d+(\.\d+)*", version):
        raise ValueError(
            f"the version is {version!r}, but must be numbers with points, such as 0.1"
        )
    build(out / version, version=version)
    list_versions(out)


def list_versions(out: Path) -> list[str]:
    """Write what leads to the versions that a folder has; the newest is the first of them."""
    folders = [path.parent.name for path in out.glob("*/index.html")]
    numbered = [name for name in folders if re.fullmatch(r"\d+(\.\d+)*", name)]
    versions = sorted(numbered, key=lambda name: [*map(int, name.split("."))], reverse=True)
    entries = [
        {"version": name, "title": name, "aliases": ["latest"] if name == versions[0] else []}
        for name in versions
    ]
    (out / "versions.json").write_text(json.dumps(entries), encoding="utf-8")
    (out / "index.html").write_text(
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>stencilm</title>\n'
        f'<meta http-equiv="refresh" content="0; url={versions[0]}/index.html">\n'
        f'<a href="{versions[0]}/index.html">stencilm {versions[0]}</a></html>\n',
        encoding="utf-8",
    )
    return versions


def build(out: Path, *, version: str | None = None) -> None:
    """Build the site; a link that leads nowhere, or a page that is in no menu, is an error.

    With a version, every page can be left for the same one of another version: see `publish`.
    """
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config

    with tempfile.TemporaryDirectory() as folder:
        pages = Path(folder) / "pages"
        collect(pages)
        write_reference(pages)
        copy_package(Path(folder) / "package")
        config = load_config(
            str(HERE / "mkdocs.yml"),
            docs_dir=str(pages),
            site_dir=str(out),
            strict=True,
            nav=navigation(),
            copyright=f"stencilm {version or stencilm.__version__}, licensed under Apache-2.0",
        )
        if version is not None:
            # What the theme reads is the list that `list_versions` writes.
            config.extra["version"] = {"provider": "mike", "default": "latest"}
        config.plugins["mkdocstrings"].config.handlers["python"]["paths"] = [
            str(Path(folder) / "package")
        ]
        build_site(config)


def collect(target: Path) -> None:
    """Copy the pages, and what they link to, to their places below `target`."""
    waiting = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    done: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in done:
            continue
        done.add(path)
        place = target / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".md":
            shutil.copyfile(path, place)
            continue
        text = path.read_text(encoding="utf-8")
        place.write_text(text.replace("```python no-run\n", "```python\n"), encoding="utf-8")
        waiting += _linked(path, text)
    shutil.copytree(HERE / "assets", target / "assets")


def _linked(page: Path, text: str) -> list[Path]:
    found = []
    for target in _LINK.findall(_CODE.sub("", text)):
        path = (page.parent / target).resolve()
        if path.is_file() and path.is_relative_to(ROOT):
            found.append(path)
    return found


def write_reference(target: Path) -> None:
    """One page for each group of public names, from their docstrings."""
    folder = target / "reference"
    folder.mkdir(parents=True)
    for group in groups():
        lines = [f"# {group.title}", "", group.about, ""]
        for name in group.names:
            lines += [f"::: stencilm.{home_of(name)}.{name}", ""]
        (folder / f"{group.page}.md").write_text("\n".join(lines), encoding="utf-8")


def groups() -> list[Group]:
    """The groups of the reference, with one more for public names that none of them lists."""
    listed = {name for group in REFERENCE for name in group.names}
    rest = tuple(sorted(set(stencilm.__all__) - listed - {"__version__"}))
    more = [Group("more", "More", "Further public names.", rest)] if rest else []
    return [*REFERENCE, *more]


def home_of(name: str) -> str:
    """The module that defines a public name."""
    return str(stencilm._HOMES[name])


def navigation() -> list[Any]:
    """The menu; folders of pages are listed as they are."""
    menu: list[Any] = []
    for title, entries in NAVIGATION:
        listed: list[Any] = []
        for entry in entries:
            if entry in FOLDERS:
                listed += [_of_root(page) for page in sorted((ROOT / entry).glob("*.md"))]
            elif (ROOT / entry).exists():
                listed.append(entry)
            else:
                raise FileNotFoundError(f"website/contents.py lists {entry}, which is not there")
        menu.append({title: listed})
    guides = sorted((ROOT / COMING_FROM).glob("*.md"))
    if guides:
        menu.insert(2, {"Coming from": [_of_root(page) for page in guides]})
    menu.append({"Reference": [f"reference/{group.page}.md" for group in groups()]})
    return menu


def _of_root(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
